//! The audit of resets: each refusal with what became of its word, and the sources added up.

use super::columns::{job, lane, number, text, text_opt, whole, whole_opt};
use super::turns::{candidates, evidence};
use super::{before, size};
use crate::store::resets::{Accuracy, Closed, Facts, Judged, Test};
use crate::store::sqlite::conn::Conn;
use crate::store::sqlite::cursor::{self, List};
use crate::store::sqlite::text as words;
use crate::store::sqlite::tx::{hex, json, sql};
use crate::store::{AccuracyRow, Fence, HoldId, JobId, Page, Query, ResetRow, Result, SendKey};
use serde::de::DeserializeOwned;
use sqlx::sqlite::SqliteRow;
use std::str::FromStr;
use uuid::Uuid;

/// Refusals that one statement reads, where more must be looked at than are shown.
const CHUNK: usize = 2_000;

/// Refusals of a query from `place` on, newest first.
struct Refusals<'q> {
    query: &'q Query,
    place: [i64; 3],
    done: bool,
}

impl<'q> Refusals<'q> {
    fn of(query: &'q Query) -> Result<Self> {
        Ok(Self { query, place: before(List::Resets, query)?, done: false })
    }

    /// Those of the next `n` whose word is asked for. Empty is not the end: `done` is.
    async fn next(&mut self, conn: &mut Conn, n: usize) -> Result<Vec<(SqliteRow, Judged)>> {
        let query = self.query;
        let [at_ms, fence, number] = self.place;
        let bound = sqlx::query(sql!("resets"))
            .bind(at_ms)
            .bind(fence)
            .bind(number)
            .bind(json(&query.queues)?)
            .bind(json(&query.tenants)?)
            .bind(json(&query.providers)?)
            .bind(json(&query.accounts)?)
            .bind(json(&query.models)?)
            .bind(query.since_ms.unwrap_or(i64::MIN))
            .bind(json(&query.causes)?)
            .bind(json(&query.sources)?)
            .bind(json(&query.verdicts)?)
            .bind(i64::try_from(n).unwrap_or(i64::MAX));
        let rows = conn.all(bound).await?;
        self.done = rows.len() < n;
        if let Some(row) = rows.last() {
            self.place = place_of(row);
        }
        let judged = |row: SqliteRow| {
            let judged = facts(&row, [4, 5], 10).judge();
            (row, judged)
        };
        let asked = |word: &str| query.words.is_empty() || query.words.iter().any(|asked| asked == word);
        Ok(rows.into_iter().map(judged).filter(|(_, judged)| asked(judged.word)).collect())
    }
}

fn place_of(row: &SqliteRow) -> [i64; 3] {
    [whole(row, 3), whole(row, 1), whole(row, 2)]
}

/// Newest first.
pub(in crate::store::sqlite) async fn resets(conn: &mut Conn, query: &Query) -> Result<Page<ResetRow>> {
    let size = usize::try_from(size(query)).unwrap_or(usize::MAX);
    let mut refusals = Refusals::of(query)?;
    let mut found: Vec<SqliteRow> = Vec::new();
    while found.len() <= size && !refusals.done {
        // A word is found by looking at refusals, one like another.
        let n = if query.words.is_empty() { size + 1 } else { CHUNK };
        found.extend(refusals.next(conn, n).await?.into_iter().map(|(row, _)| row));
    }
    let more = found.len() > size;
    found.truncate(size);
    let last = found.last().filter(|_| more).map(|row| {
        let place = place_of(row).map(|number| number.to_string());
        cursor::encode(List::Resets, &place)
    });
    let keys: Vec<SendKey> = found
        .iter()
        .map(|row| SendKey { job_id: job(row, 0), fence: Fence(whole(row, 1)), n: number(row, 2) })
        .collect();
    Ok(Page { items: shown(conn, &keys).await?, next_cursor: last })
}

pub(in crate::store::sqlite) async fn reset(conn: &mut Conn, key: SendKey) -> Result<Option<ResetRow>> {
    Ok(shown(conn, &[key]).await?.pop())
}

async fn shown(conn: &mut Conn, keys: &[SendKey]) -> Result<Vec<ResetRow>> {
    let keys: Vec<_> = keys.iter().map(|key| (hex(key.job_id.0), key.fence.0, key.n)).collect();
    let rows = conn.all(sqlx::query(sql!("resets_shown")).bind(json(&keys)?)).await?;
    Ok(rows.iter().map(reset_of).collect())
}

/// Adds up what [`resets`] lists; a cursor and a limit do not bound it.
pub(in crate::store::sqlite) async fn reset_accuracy(conn: &mut Conn, query: &Query) -> Result<Vec<AccuracyRow>> {
    let query = Query { cursor: None, ..query.clone() };
    let mut refusals = Refusals::of(&query)?;
    let mut accuracy = Accuracy::default();
    while !refusals.done {
        for (row, judged) in refusals.next(conn, CHUNK).await? {
            let (kind, name) = (text_opt(&row, 6), text_opt(&row, 7));
            let selected = kind.as_deref().zip(name.as_deref());
            accuracy.add(&text(&row, 8), selected, &candidates(&text(&row, 9)), &judged);
        }
    }
    Ok(accuracy.rows())
}

/// Job, fence, n, start, the instant promised, outcome, the reset named then.
type TestColumn = (String, i64, u32, i64, Option<i64>, String, Option<i64>);

/// Hold, its end, how it ended, when.
type HoldColumn = (String, Option<i64>, Option<String>, Option<i64>);

/// Two columns for the reset as named and its resume instant; three from `first` on: the test, the hold, the job's state.
fn facts(row: &SqliteRow, [named, resume]: [usize; 2], first: usize) -> Facts {
    let test =
        column::<TestColumn>(row, first).and_then(|(job, fence, n, started_ms, promised_ms, outcome, reset_at_ms)| {
            let key = SendKey { job_id: JobId(id(&job)?), fence: Fence(fence), n };
            Some(Test { key, started_ms, promised_ms, outcome, reset_at_ms })
        });
    let closed = column::<HoldColumn>(row, first + 1).and_then(|(hold, until_ms, end, ended_ms)| {
        Some(Closed { hold: HoldId(id(&hold)?), until_ms, ended: end.zip(ended_ms) })
    });
    Facts {
        reset_at_ms: whole_opt(row, named),
        resume_at_ms: whole_opt(row, resume),
        test,
        closed,
        job: text_opt(row, first + 2).as_deref().map(words::state_of),
    }
}

fn reset_of(row: &SqliteRow) -> ResetRow {
    let reset = ResetRow {
        key: SendKey { job_id: job(row, 0), fence: Fence(whole(row, 1)), n: number(row, 7) },
        lane: lane(row, 2),
        evidence: evidence(row, 7),
        tested_ms: None,
        lateness_ms: None,
        word: String::new(),
        again_by_ms: None,
        hold: None,
        decision: text_opt(row, 23),
        test: None,
    };
    reset.judged(&facts(row, [9, 10], 20))
}

/// Several columns of another row as one JSON array; what cannot be read of a damaged row is not there.
fn column<T: DeserializeOwned>(row: &SqliteRow, index: usize) -> Option<T> {
    let document = text_opt(row, index)?;
    serde_json::from_str(&document)
        .inspect_err(|error| tracing::warn!(%error, column = index, "a damaged row was read as absent"))
        .ok()
}

fn id(digits: &str) -> Option<Uuid> {
    Uuid::from_str(digits).ok()
}
