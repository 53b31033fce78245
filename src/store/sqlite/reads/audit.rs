//! The history of failures and of resets.

use super::turns::evidence_columns;
use super::{PAGE, cut, fetch};
use crate::store::sqlite::conn::Conn;
use crate::store::sqlite::cursor::{self, List};
use crate::store::sqlite::text;
use crate::store::sqlite::tx::{at, fence_at, int, int_opt, job_at, json, sql};
use crate::store::{By, CountRow, Error, FailureRow, LaneKey, Page, Query, ResetRow, Result, ScopeKey, SendKey};
use sqlx::sqlite::SqliteRow;

/// Before which place a page begins; without a cursor, before nothing.
fn before(list: List, query: &Query) -> Result<[i64; 3]> {
    query.cursor.as_deref().map_or(Ok([i64::MAX; 3]), |given| cursor::decode_numbers(list, given))
}

fn place(at_ms: i64, fence: i64, n: i64) -> [String; 3] {
    [at_ms.to_string(), fence.to_string(), n.to_string()]
}

fn lane_of(row: &SqliteRow) -> Result<LaneKey> {
    let scope = ScopeKey { provider: at(row, 5)?, account: at(row, 6)?, model: at(row, 7)? };
    Ok(LaneKey { queue: at(row, 3)?, tenant: at(row, 4)?, scope })
}

pub(in crate::store::sqlite) async fn failures(conn: &mut Conn, query: &Query) -> Result<Page<FailureRow>> {
    let [at_ms, fence, n] = before(List::Failures, query)?;
    let bound = sqlx::query(sql!("failures"))
        .bind(at_ms)
        .bind(fence)
        .bind(n)
        .bind(json(&query.queues)?)
        .bind(json(&query.tenants)?)
        .bind(json(&query.providers)?)
        .bind(json(&query.accounts)?)
        .bind(json(&query.models)?)
        .bind(query.since_ms)
        .bind(query.until_ms)
        .bind(json(&query.causes)?)
        .bind(json(&query.classes)?)
        .bind(json(&query.labels)?)
        .bind(i64::from(query.include_retried))
        .bind(fetch(query));
    let mut rows = conn.all(bound).await?;
    let more = cut(&mut rows, query);
    let mut items = Vec::with_capacity(rows.len());
    let mut last = None;
    for row in &rows {
        let failure = failure_of(row)?;
        last = Some(cursor::encode(List::Failures, &place(failure.ended_ms, failure.fence.0, at(row, 20)?)));
        items.push(failure);
    }
    Ok(Page { items, next_cursor: last.filter(|_| more) })
}

fn failure_of(row: &SqliteRow) -> Result<FailureRow> {
    let outcome: Option<&str> = at(row, 10)?;
    Ok(FailureRow {
        job_id: job_at(row, 0)?,
        fence: fence_at(row, 1)?,
        n: int_opt(row, 2)?,
        lane: lane_of(row)?,
        ended_ms: at(row, 8)?,
        seq: int(row, 9)?,
        // What a newer release wrote is shown without it, and hides no neighbour.
        outcome: outcome.map(text::outcome_of),
        decision: at(row, 11)?,
        class: at(row, 12)?,
        cause: at(row, 13)?,
        code: at(row, 14)?,
        http_status: int_opt(row, 15)?,
        attempts: int_opt(row, 16)?,
        rule: at(row, 17)?,
        request_id: at(row, 18)?,
        error: at(row, 19)?,
    })
}

pub(in crate::store::sqlite) async fn failure_counts(conn: &mut Conn, query: &Query, by: By) -> Result<Vec<CountRow>> {
    let by = match by {
        By::Cause => "cause",
        By::Class => "class",
        By::Model => "model",
        By::Provider => "provider",
        By::Account => "account",
        By::Hour => "hour",
        By::Http => "http",
        By::Code => "code",
        By::Queue => "queue",
    };
    let limit = if query.limit == 0 { PAGE } else { query.limit.min(PAGE) };
    let bound = sqlx::query(sql!("failure_counts"))
        .bind(by)
        .bind(i64::from(query.include_retried))
        .bind(json(&query.queues)?)
        .bind(json(&query.tenants)?)
        .bind(json(&query.providers)?)
        .bind(json(&query.accounts)?)
        .bind(json(&query.models)?)
        .bind(query.since_ms)
        .bind(query.until_ms)
        .bind(json(&query.causes)?)
        .bind(json(&query.classes)?)
        .bind(json(&query.labels)?)
        .bind(i64::from(limit));
    let rows = conn.all(bound).await?;
    rows.iter()
        .map(|row| {
            Ok(CountRow {
                value: at(row, 0)?,
                failed: at(row, 1)?,
                recovered: 0,
                first_ms: at(row, 2)?,
                last_ms: at(row, 3)?,
            })
        })
        .collect()
}

pub(in crate::store::sqlite) async fn resets(conn: &mut Conn, query: &Query) -> Result<Page<ResetRow>> {
    let [at_ms, fence, n] = before(List::Resets, query)?;
    let bound = sqlx::query(sql!("resets"))
        .bind(at_ms)
        .bind(fence)
        .bind(n)
        .bind(json(&query.queues)?)
        .bind(json(&query.tenants)?)
        .bind(json(&query.providers)?)
        .bind(json(&query.accounts)?)
        .bind(json(&query.models)?)
        .bind(query.since_ms)
        .bind(query.until_ms)
        .bind(json(&query.causes)?)
        .bind(json(&query.sources)?)
        .bind(json(&query.verdicts)?)
        .bind(fetch(query));
    let mut rows = conn.all(bound).await?;
    let more = cut(&mut rows, query);
    let mut items = Vec::with_capacity(rows.len());
    for row in &rows {
        items.push(reset_of(row)?);
    }
    let last = items.last().map(|reset| {
        cursor::encode(List::Resets, &place(reset.evidence.received_ms, reset.key.fence.0, i64::from(reset.key.n)))
    });
    Ok(Page { items, next_cursor: last.filter(|_| more) })
}

fn reset_of(row: &SqliteRow) -> Result<ResetRow> {
    let n: u32 = int(row, 2)?;
    let evidence = evidence_columns(row, n, 8)?;
    let test: Option<&str> = at(row, 20)?;
    let test: Option<(i64, Option<i64>, String)> = test
        .map(serde_json::from_str)
        .transpose()
        .map_err(|e| Error::Undecodable { what: "the first send after a reset", why: e.to_string() })?;
    let tested_ms = test.as_ref().map(|(started_ms, _, _)| *started_ms);
    let promised_ms = test.as_ref().and_then(|(_, promised_ms, _)| *promised_ms).or(evidence.resume_at_ms);
    let word = match test {
        Some((_, _, outcome)) if outcome == "refused" => "refused_again",
        Some(_) => "kept",
        None if at::<i64>(row, 21)? == 1 => "released",
        None => "not_tested",
    };
    Ok(ResetRow {
        key: SendKey { job_id: job_at(row, 0)?, fence: fence_at(row, 1)?, n },
        lane: lane_of(row)?,
        evidence,
        tested_ms,
        lateness_ms: tested_ms.zip(promised_ms).map(|(tested_ms, promised_ms)| tested_ms - promised_ms),
        word: word.to_owned(),
        again_by_ms: None,
        hold: None,
        decision: None,
        test: None,
    })
}
