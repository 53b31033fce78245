//! Puts the turns of lapsed workers back. It never runs them.

use crate::recovery::Policy;
use crate::store::{Rescue, Rescued, Store};

/// The most turns that one statement takes back.
const BATCH: u32 = 500;
/// Lost executions in a row that fail a turn as `worker_lost`.
const LOST_IN_A_ROW: u32 = 3;

/// Takes back what lapsed workers held; returns the counts. `None`: the database was away.
pub(super) async fn run_once<S: Store>(store: &S, now_ms: i64, requeue: &Policy) -> Option<Rescued> {
    let request =
        Rescue { now_ms, limit: BATCH, lost_in_a_row: LOST_IN_A_ROW, executions: requeue.numbers().requeue.limit };
    let mut total = Rescued::default();
    loop {
        match store.rescue(request).await {
            Ok(rescued) => {
                total.workers += rescued.workers;
                total.requeued += rescued.requeued;
                total.failed += rescued.failed;
                if rescued.requeued + rescued.failed < BATCH {
                    break;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "lapsed workers' turns could not be taken back");
                return None;
            }
        }
    }
    if total != Rescued::default() {
        tracing::warn!(
            workers = total.workers,
            requeued = total.requeued,
            failed = total.failed,
            "turns of lapsed workers were taken back"
        );
    }
    Some(total)
}
