//! The audit of resets: each refusal with what became of its word, and the sources added up.

use super::turns::{candidates, evidence_columns};
use super::{before, lane_at, of_lanes, size};
use crate::store::cursor::{self, List};
use crate::store::postgres::conn::sql;
use crate::store::postgres::fault::Res;
use crate::store::postgres::rows::{at, fence_at, int, job_at, key_opt};
use crate::store::postgres::tx::Tx;
use crate::store::resets::{Accuracy, Closed, Facts, Judged, Test};
use crate::store::text;
use crate::store::{AccuracyRow, HoldId, Page, Query, ResetRow, Result, SendKey};
use sqlx::postgres::PgRow;
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
    async fn next(&mut self, tx: &mut Tx, n: usize) -> Res<Vec<(PgRow, Judged)>> {
        let query = self.query;
        let [at_ms, fence, number] = self.place;
        let stmt = of_lanes(sql!("resets").arg(at_ms).arg(fence).arg(number), query)
            .arg(query.since_ms.unwrap_or(i64::MIN))
            .arg(query.causes.as_slice())
            .arg(query.sources.as_slice())
            .arg(query.verdicts.as_slice())
            .arg(i64::try_from(n).unwrap_or(i64::MAX));
        let rows = tx.all(stmt).await?;
        self.done = rows.len() < n;
        if let Some(row) = rows.last() {
            self.place = place_of(row)?;
        }
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            let judged = facts(&row, [4, 5], 10)?.judge();
            if query.words.is_empty() || query.words.iter().any(|asked| asked == judged.word) {
                found.push((row, judged));
            }
        }
        Ok(found)
    }
}

fn place_of(row: &PgRow) -> Result<[i64; 3]> {
    Ok([at(row, 3)?, at(row, 1)?, at(row, 2)?])
}

/// Newest first.
pub(in crate::store::postgres) async fn resets(tx: &mut Tx, query: &Query) -> Res<Page<ResetRow>> {
    let size = usize::try_from(size(query)).unwrap_or(usize::MAX);
    let mut refusals = Refusals::of(query)?;
    let mut found: Vec<PgRow> = Vec::new();
    while found.len() <= size && !refusals.done {
        // A word is found by looking at refusals, one like another.
        let n = if query.words.is_empty() { size + 1 } else { CHUNK };
        found.extend(refusals.next(tx, n).await?.into_iter().map(|(row, _)| row));
    }
    let more = found.len() > size;
    found.truncate(size);
    let next_cursor = match found.last().filter(|_| more) {
        Some(row) => Some(cursor::encode(List::Resets, &place_of(row)?.map(|number| number.to_string()))),
        None => None,
    };
    let key = |row: &PgRow| Ok(SendKey { job_id: job_at(row, 0)?, fence: fence_at(row, 1)?, n: int(row, 2)? });
    let keys = found.iter().map(key).collect::<Result<Vec<SendKey>>>()?;
    Ok(Page { items: shown(tx, &keys).await?, next_cursor })
}

pub(in crate::store::postgres) async fn reset(tx: &mut Tx, key: SendKey) -> Res<Option<ResetRow>> {
    Ok(shown(tx, &[key]).await?.pop())
}

async fn shown(tx: &mut Tx, keys: &[SendKey]) -> Res<Vec<ResetRow>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let stmt = sql!("resets_shown")
        .arg(keys.iter().map(|key| key.job_id.0).collect::<Vec<Uuid>>())
        .arg(keys.iter().map(|key| key.fence.0).collect::<Vec<i64>>())
        .arg(keys.iter().map(|key| i64::from(key.n)).collect::<Vec<i64>>());
    let rows = tx.all(stmt).await?;
    Ok(rows.iter().map(reset_of).collect::<Result<_>>()?)
}

/// Adds up what [`resets`] lists; a cursor and a limit do not bound it.
pub(in crate::store::postgres) async fn reset_accuracy(tx: &mut Tx, query: &Query) -> Res<Vec<AccuracyRow>> {
    let query = Query { cursor: None, ..query.clone() };
    let mut refusals = Refusals::of(&query)?;
    let mut accuracy = Accuracy::default();
    while !refusals.done {
        for (row, judged) in refusals.next(tx, CHUNK).await? {
            let (kind, name): (Option<String>, Option<String>) = (at(&row, 6)?, at(&row, 7)?);
            let selected = kind.as_deref().zip(name.as_deref());
            accuracy.add(&at::<String>(&row, 8)?, selected, &candidates(&at::<String>(&row, 9)?), &judged);
        }
    }
    Ok(accuracy.rows())
}

/// Two columns for the reset as named and its resume instant; twelve from `first` on: seven of the test, four of the
/// hold, the job's state.
fn facts(row: &PgRow, [named, resume]: [usize; 2], first: usize) -> Result<Facts> {
    let test = match key_opt(row, first)? {
        Some(key) => Some(Test {
            key,
            started_ms: at(row, first + 3)?,
            promised_ms: at(row, first + 4)?,
            outcome: at(row, first + 5)?,
            reset_at_ms: at(row, first + 6)?,
        }),
        None => None,
    };
    let closed = match at::<Option<Uuid>>(row, first + 7)? {
        Some(hold) => Some(Closed {
            hold: HoldId(hold),
            until_ms: at(row, first + 8)?,
            ended: at::<Option<String>>(row, first + 9)?.zip(at(row, first + 10)?),
        }),
        None => None,
    };
    Ok(Facts {
        reset_at_ms: at(row, named)?,
        resume_at_ms: at(row, resume)?,
        test,
        closed,
        job: at::<Option<String>>(row, first + 11)?.as_deref().map(text::state_of),
    })
}

fn reset_of(row: &PgRow) -> Result<ResetRow> {
    let n: u32 = int(row, 2)?;
    let reset = ResetRow {
        key: SendKey { job_id: job_at(row, 0)?, fence: fence_at(row, 1)?, n },
        lane: lane_at(row, 3)?,
        evidence: evidence_columns(row, n, 8)?,
        tested_ms: None,
        lateness_ms: None,
        word: String::new(),
        again_by_ms: None,
        hold: None,
        decision: at(row, 32)?,
        test: None,
    };
    Ok(reset.judged(&facts(row, [9, 10], 20)?))
}
