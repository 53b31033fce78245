//! The history of failures: executions that failed, sends that were replaced, and how many of each kind.

use super::columns::{job, lane, number, number_opt, text, text_opt, whole};
use super::{PAGE, cut, fetch, size};
use crate::store::sqlite::conn::{Conn, Query as Bound};
use crate::store::sqlite::cursor::{self, List};
use crate::store::sqlite::text as words;
use crate::store::sqlite::tx::{json, sql};
use crate::store::{By, CountRow, FailureRow, Fence, Page, Query, Result};
use sqlx::sqlite::SqliteRow;

pub(in crate::store::sqlite) async fn failures(conn: &mut Conn, query: &Query) -> Result<Page<FailureRow>> {
    let [at_ms, fence, n] = super::before(List::Failures, query)?;
    let bound = sqlx::query(sql!("failures")).bind(at_ms).bind(fence).bind(n);
    let mut rows = conn.all(filtered(bound, query)?.bind(fetch(query))).await?;
    let more = cut(&mut rows, query);
    let last = rows.last().map(|row| {
        let place = [whole(row, 8), whole(row, 1), whole(row, 20)];
        cursor::encode(List::Failures, &place.map(|number| number.to_string()))
    });
    Ok(Page { items: rows.iter().map(failure_of).collect(), next_cursor: last.filter(|_| more) })
}

fn failure_of(row: &SqliteRow) -> FailureRow {
    FailureRow {
        job_id: job(row, 0),
        fence: Fence(whole(row, 1)),
        n: number_opt(row, 2),
        lane: lane(row, 3),
        ended_ms: whole(row, 8),
        seq: number(row, 9),
        outcome: text_opt(row, 10).as_deref().map(words::outcome_of),
        decision: text_opt(row, 11),
        class: text_opt(row, 12),
        cause: text_opt(row, 13),
        code: text_opt(row, 14),
        http_status: number_opt(row, 15),
        attempts: number_opt(row, 16),
        rule: text_opt(row, 17),
        request_id: text_opt(row, 18),
        error: text_opt(row, 19),
    }
}

/// Binds what both statements filter by, ?4 to ?18.
fn filtered<'q>(bound: Bound<'q>, query: &Query) -> Result<Bound<'q>> {
    Ok(bound
        .bind(json(&query.queues)?)
        .bind(json(&query.tenants)?)
        .bind(json(&query.providers)?)
        .bind(json(&query.accounts)?)
        .bind(json(&query.models)?)
        .bind(query.since_ms.unwrap_or(i64::MIN))
        .bind(query.until_ms.unwrap_or(i64::MAX))
        .bind(json(&query.causes)?)
        .bind(json(&query.classes)?)
        .bind(i64::from(query.include_retried))
        .bind(json(&query.labels)?)
        .bind(json(&query.codes)?)
        .bind(json(&query.http)?)
        .bind(json(&query.phases)?)
        .bind(json(&query.rules)?))
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
    let limit = if query.limit == 0 { PAGE } else { size(query) };
    // Its places ?2 and ?3 are the list's alone.
    let bound = sqlx::query(sql!("failure_counts")).bind(by).bind(None::<i64>).bind(None::<i64>);
    let rows = conn.all(filtered(bound, query)?.bind(i64::from(limit))).await?;
    let count = |row: &SqliteRow| CountRow {
        value: text(row, 0),
        failed: whole(row, 1),
        recovered: whole(row, 2),
        first_ms: whole(row, 3),
        last_ms: whole(row, 4),
    };
    Ok(rows.iter().map(count).collect())
}
