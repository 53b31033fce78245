//! What happens by the clock, without a worker: deadlines of waiting jobs, retention.

use super::ends::{End, end};
use crate::store::documents::deadline_error;
use crate::store::postgres::conn::{Stmt, sql};
use crate::store::postgres::fault::Res;
use crate::store::postgres::rows::{at, job_at};
use crate::store::postgres::tx::Tx;
use crate::store::{JobState, Prune, Pruned};
use std::collections::HashMap;
use uuid::Uuid;

/// A job whose deadline passes while it waits fails with the last failure it met (contract §5). Turns that somebody is at
/// are left for the next time.
pub(super) async fn expire(tx: &mut Tx, now_ms: i64, limit: u32) -> Res<u32> {
    let rows = tx.all(sql!("expire").arg(now_ms).arg(i64::from(limit))).await?;
    let mut ends = Vec::with_capacity(rows.len());
    let mut ready: HashMap<i64, i64> = HashMap::new();
    for row in &rows {
        if at::<i64>(row, 2)? == 0 && at::<Option<i64>>(row, 3)?.is_none() {
            *ready.entry(at(row, 1)?).or_default() -= 1;
        }
        let error = match at::<Option<String>>(row, 4)? {
            Some(error) => error,
            None => deadline_error()?,
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

/// Jobs are chosen and locked first; those that another process prunes are left to it.
pub(super) async fn prune(tx: &mut Tx, request: &Prune, now_ms: i64) -> Res<Pruned> {
    let limit = i64::from(request.limit);
    let mut pruned = Pruned::default();
    let ids = choose(tx, sql!("prune_records_jobs").arg(request.records_before_ms).arg(limit)).await?;
    if !ids.is_empty() {
        for stmt in [sql!("prune_sends"), sql!("prune_evidence"), sql!("prune_mark")] {
            tx.run(stmt.arg(ids.clone())).await?;
        }
        pruned.records = tx.run(sql!("prune_records").arg(ids)).await?;
    }
    let ids = choose(tx, sql!("prune_jobs_jobs").arg(request.jobs_before_ms).arg(limit)).await?;
    if !ids.is_empty() {
        pruned.jobs = delete(tx, ids).await?;
    }
    tx.run(sql!("prune_holds").arg(request.records_before_ms).arg(limit)).await?;
    tx.run(sql!("prune_workers").arg(now_ms.saturating_sub(WORKERS_KEPT_MS)).arg(limit)).await?;
    Ok(pruned)
}

/// Deletes ended jobs, which are locked, with all that is theirs.
pub(super) async fn delete(tx: &mut Tx, ids: Vec<Uuid>) -> Res<u64> {
    for stmt in
        [sql!("prune_sends"), sql!("prune_evidence"), sql!("prune_records"), sql!("prune_inbox"), sql!("prune_labels")]
    {
        tx.run(stmt.arg(ids.clone())).await?;
    }
    tx.run(sql!("prune_jobs").arg(ids)).await
}

async fn choose(tx: &mut Tx, stmt: Stmt) -> Res<Vec<Uuid>> {
    let rows = tx.all(stmt).await?;
    rows.iter().map(|row| Ok(job_at(row, 0)?.0)).collect()
}
