//! What happens by the clock, without a worker: deadlines of waiting jobs, retention.

use super::ends::{End, end, own_error};
use crate::failure::codes;
use crate::store::sqlite::tx::{Tx, at, hex, job_at, json, sql};
use crate::store::{JobState, Prune, Pruned, Result};
use std::collections::HashMap;

/// A job whose deadline passes while it waits fails with the last failure it met (contract §5).
pub(super) async fn expire(tx: &mut Tx<'_>, now_ms: i64, limit: u32) -> Result<u32> {
    let rows = tx.conn.all(sqlx::query(sql!("expire")).bind(now_ms).bind(i64::from(limit))).await?;
    let mut ends = Vec::with_capacity(rows.len());
    let mut ready: HashMap<i64, i64> = HashMap::new();
    for row in &rows {
        if at::<i64>(row, 2)? == 0 && at::<Option<i64>>(row, 3)?.is_none() {
            *ready.entry(at(row, 1)?).or_default() -= 1;
        }
        let error = match at::<Option<String>>(row, 4)? {
            Some(error) => error,
            None => own_error(codes::DEADLINE_EXCEEDED, "the job's deadline passed while it waited", false)?,
        };
        ends.push(End {
            job_id: job_at(row, 0)?,
            state: JobState::Failed,
            result: None,
            error: Some(error),
            at_ms: now_ms,
        });
    }
    tx.ready(&ready).await?;
    end(tx, &ends).await?;
    Ok(u32::try_from(ends.len()).unwrap_or(u32::MAX))
}

/// Workers that are no more are told of for so long.
const WORKERS_KEPT_MS: i64 = 24 * 60 * 60 * 1_000;

pub(super) async fn prune(tx: &mut Tx<'_>, request: &Prune, now_ms: i64) -> Result<Pruned> {
    let limit = i64::from(request.limit);
    let mut pruned = Pruned::default();
    let chosen = choose(tx, sql!("prune_records_jobs"), request.records_before_ms, limit).await?;
    if let Some(ids) = chosen {
        for text in [sql!("prune_sends"), sql!("prune_evidence"), sql!("prune_mark")] {
            tx.conn.run(sqlx::query(text).bind(ids.clone())).await?;
        }
        pruned.records = tx.conn.run(sqlx::query(sql!("prune_records")).bind(ids)).await?;
    }
    if let Some(ids) = choose(tx, sql!("prune_jobs_jobs"), request.jobs_before_ms, limit).await? {
        pruned.jobs = tx.conn.run(sqlx::query(sql!("prune_jobs")).bind(ids)).await?;
    }
    tx.conn.run(sqlx::query(sql!("prune_holds")).bind(request.records_before_ms).bind(limit)).await?;
    let ended_before_ms = now_ms.saturating_sub(WORKERS_KEPT_MS);
    tx.conn.run(sqlx::query(sql!("prune_workers")).bind(ended_before_ms).bind(limit)).await?;
    Ok(pruned)
}

/// Ids as a JSON list; `None`: there are none.
async fn choose(tx: &mut Tx<'_>, text: &'static str, before_ms: i64, limit: i64) -> Result<Option<String>> {
    let rows = tx.conn.all(sqlx::query(text).bind(before_ms).bind(limit)).await?;
    let ids: Vec<String> = rows.iter().map(|row| Ok(hex(job_at(row, 0)?.0))).collect::<Result<_>>()?;
    if ids.is_empty() { Ok(None) } else { json(&ids).map(Some) }
}
