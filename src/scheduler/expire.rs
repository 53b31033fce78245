//! Ends waiting jobs whose deadline has passed.

use crate::store::Store;

/// The most jobs that one statement ends.
const BATCH: u32 = 500;

/// Ends every overdue waiting job; returns how many. `None`: the database was away.
pub(super) async fn run_once<S: Store>(store: &S, now_ms: i64) -> Option<u64> {
    let mut ended = 0;
    loop {
        match store.expire(now_ms, BATCH).await {
            Ok(count) => {
                ended += u64::from(count);
                if count < BATCH {
                    break;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "overdue jobs could not be ended");
                return None;
            }
        }
    }
    if ended > 0 {
        tracing::info!(ended, "waiting jobs ended at their deadline");
    }
    Some(ended)
}
