//! The history of failures: executions that failed, sends that were replaced, and how many of each kind.

use super::{PAGE, before, cut, fetch, lane_at, numbers, of_labels, of_lanes, size};
use crate::store::cursor::{self, List};
use crate::store::postgres::conn::{Stmt, sql};
use crate::store::postgres::fault::Res;
use crate::store::postgres::rows::{at, fence_at, int, int_opt, job_at};
use crate::store::postgres::tx::Tx;
use crate::store::text;
use crate::store::{By, CountRow, FailureRow, Page, Query, Result};
use sqlx::postgres::PgRow;

pub(in crate::store::postgres) async fn failures(tx: &mut Tx, query: &Query) -> Res<Page<FailureRow>> {
    let [at_ms, fence, n] = before(List::Failures, query)?;
    let stmt = of_lanes(sql!("failures").arg(at_ms).arg(fence).arg(n), query).arg(query.since_ms.unwrap_or(i64::MIN));
    let stmt = filtered(stmt, query).arg(query.include_retried).arg(fetch(query));
    let mut rows = tx.all(stmt).await?;
    let more = cut(&mut rows, query);
    let mut items = Vec::with_capacity(rows.len());
    let mut last = None;
    for row in &rows {
        let failure = failure_of(row)?;
        let place: [i64; 3] = [failure.ended_ms, failure.fence.0, at(row, 20)?];
        last = Some(cursor::encode(List::Failures, &place.map(|number| number.to_string())));
        items.push(failure);
    }
    Ok(Page { items, next_cursor: last.filter(|_| more) })
}

fn failure_of(row: &PgRow) -> Result<FailureRow> {
    let outcome: Option<String> = at(row, 10)?;
    Ok(FailureRow {
        job_id: job_at(row, 0)?,
        fence: fence_at(row, 1)?,
        n: int_opt(row, 2)?,
        lane: lane_at(row, 3)?,
        ended_ms: at(row, 8)?,
        seq: int(row, 9)?,
        // What a newer release wrote is shown without it, and hides no neighbour.
        outcome: outcome.as_deref().map(text::outcome_of),
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

pub(in crate::store::postgres) async fn failure_counts(tx: &mut Tx, query: &Query, by: By) -> Res<Vec<CountRow>> {
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
    let stmt = of_lanes(sql!("failure_counts").arg(by).arg(query.include_retried), query)
        .arg(query.since_ms.unwrap_or(i64::MIN))
        .arg(query.until_ms.unwrap_or(i64::MAX));
    let rows = tx.all(filtered(stmt, query).arg(i64::from(limit))).await?;
    let count = |row: &PgRow| {
        Ok(CountRow {
            value: at(row, 0)?,
            failed: at(row, 1)?,
            recovered: at(row, 2)?,
            first_ms: at(row, 3)?,
            last_ms: at(row, 4)?,
        })
    };
    Ok(rows.iter().map(count).collect::<Result<_>>()?)
}

/// Eight lists that both statements filter by: causes, classes, labels, codes, HTTP statuses, phases, rules.
fn filtered(stmt: Stmt, query: &Query) -> Stmt {
    of_labels(stmt.arg(query.causes.as_slice()).arg(query.classes.as_slice()), query)
        .arg(query.codes.as_slice())
        .arg(numbers(&query.http))
        .arg(query.phases.as_slice())
        .arg(query.rules.as_slice())
}
