//! The history of failures and of resets.

use super::turns::evidence_columns;
use super::{PAGE, cut, fetch, of_labels, of_lanes};
use crate::store::cursor::{self, List};
use crate::store::postgres::conn::sql;
use crate::store::postgres::fault::Res;
use crate::store::postgres::rows::{at, fence_at, int, int_opt, job_at};
use crate::store::postgres::tx::Tx;
use crate::store::text;
use crate::store::{By, CountRow, FailureRow, LaneKey, Page, Query, ResetRow, Result, ScopeKey, SendKey};
use sqlx::postgres::PgRow;

/// Before which place a page begins; without a cursor, before nothing.
fn before(list: List, query: &Query) -> Result<[i64; 3]> {
    query.cursor.as_deref().map_or(Ok([i64::MAX; 3]), |given| cursor::decode_numbers(list, given))
}

fn place(at_ms: i64, fence: i64, n: i64) -> [String; 3] {
    [at_ms.to_string(), fence.to_string(), n.to_string()]
}

fn lane_of(row: &PgRow) -> Result<LaneKey> {
    let scope = ScopeKey { provider: at(row, 5)?, account: at(row, 6)?, model: at(row, 7)? };
    Ok(LaneKey { queue: at(row, 3)?, tenant: at(row, 4)?, scope })
}

pub(in crate::store::postgres) async fn failures(tx: &mut Tx, query: &Query) -> Res<Page<FailureRow>> {
    let [at_ms, fence, n] = before(List::Failures, query)?;
    let stmt = of_lanes(sql!("failures").arg(at_ms).arg(fence).arg(n), query)
        .arg(query.since_ms)
        .arg(query.until_ms)
        .arg(query.causes.as_slice())
        .arg(query.classes.as_slice());
    let stmt = of_labels(stmt, query).arg(query.include_retried).arg(fetch(query));
    let mut rows = tx.all(stmt).await?;
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

fn failure_of(row: &PgRow) -> Result<FailureRow> {
    let outcome: Option<String> = at(row, 10)?;
    Ok(FailureRow {
        job_id: job_at(row, 0)?,
        fence: fence_at(row, 1)?,
        n: int_opt(row, 2)?,
        lane: lane_of(row)?,
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
    let limit = if query.limit == 0 { PAGE } else { query.limit.min(PAGE) };
    let stmt = of_lanes(sql!("failure_counts").arg(by).arg(query.include_retried), query)
        .arg(query.since_ms)
        .arg(query.until_ms)
        .arg(query.causes.as_slice())
        .arg(query.classes.as_slice());
    let rows = tx.all(of_labels(stmt, query).arg(i64::from(limit))).await?;
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

pub(in crate::store::postgres) async fn resets(tx: &mut Tx, query: &Query) -> Res<Page<ResetRow>> {
    let [at_ms, fence, n] = before(List::Resets, query)?;
    let stmt = of_lanes(sql!("resets").arg(at_ms).arg(fence).arg(n), query)
        .arg(query.since_ms)
        .arg(query.until_ms)
        .arg(query.causes.as_slice())
        .arg(query.sources.as_slice())
        .arg(query.verdicts.as_slice())
        .arg(fetch(query));
    let mut rows = tx.all(stmt).await?;
    let more = cut(&mut rows, query);
    let items = rows.iter().map(reset_of).collect::<Result<Vec<ResetRow>>>()?;
    let last = items.last().map(|reset| {
        cursor::encode(List::Resets, &place(reset.evidence.received_ms, reset.key.fence.0, i64::from(reset.key.n)))
    });
    Ok(Page { items, next_cursor: last.filter(|_| more) })
}

fn reset_of(row: &PgRow) -> Result<ResetRow> {
    let n: u32 = int(row, 2)?;
    let evidence = evidence_columns(row, n, 8)?;
    let tested_ms: Option<i64> = at(row, 20)?;
    let promised_ms = at::<Option<i64>>(row, 21)?.or(evidence.resume_at_ms);
    let outcome: Option<String> = at(row, 22)?;
    let word = match outcome.as_deref() {
        Some("refused") => "refused_again",
        Some(_) => "kept",
        None if at::<bool>(row, 23)? => "released",
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
