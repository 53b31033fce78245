//! Deletes what has outlived its retention, counted from the jobs' ends.

use crate::store::{Prune, Pruned, Store};

/// The most rows that one transaction deletes: the writer is shared with claims.
const BATCH: u32 = 1_000;

/// How long ended jobs and their records are kept, in milliseconds after the job's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    pub records_ms: i64,
    pub jobs_ms: i64,
}

/// Deletes one bounded batch.
///
/// # Errors
/// When the store could not; what was deleted before stays deleted.
pub async fn run_once<S: Store>(store: &S, keep: Keep) -> crate::store::Result<Pruned> {
    let now_ms = store.clock().now_ms();
    store
        .prune(Prune {
            records_before_ms: now_ms.saturating_sub(keep.records_ms),
            jobs_before_ms: now_ms.saturating_sub(keep.jobs_ms),
            limit: BATCH,
        })
        .await
}

/// Deletes batch after batch until nothing is left to delete.
pub(super) async fn run_until_done<S: Store>(store: &S, keep: Keep) {
    let mut total = Pruned::default();
    loop {
        match run_once(store, keep).await {
            Ok(Pruned { records: 0, jobs: 0 }) => break,
            Ok(pruned) => {
                total.records += pruned.records;
                total.jobs += pruned.jobs;
            }
            Err(error) => {
                tracing::warn!(%error, "retention stopped before its end; it goes on at its next turn");
                break;
            }
        }
    }
    if total != Pruned::default() {
        tracing::info!(records = total.records, jobs = total.jobs, "retention deleted what had outlived its time");
    }
}
