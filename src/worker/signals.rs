//! Cancels that somebody asked for, carried to the executions in hand.

use super::{POLL_MS, Shared};
use crate::store::Store;
use std::sync::Arc;

/// How often changes are followed at most, in milliseconds: every commit is a change, a cancel is rare.
const FOLLOW_MS: i64 = 100;

pub(super) async fn watch<S: Store>(shared: Arc<Shared<S>>) {
    let mut changes = shared.store.changes();
    loop {
        changes.borrow_and_update();
        let asked_ms = shared.clock.now_ms();
        if !shared.hand.is_empty() {
            match shared.store.cancelled(shared.id).await {
                Ok(turns) => turns.into_iter().for_each(|(job, _)| shared.hand.cancel(job)),
                Err(error) => tracing::warn!(%error, "cancels could not be read"),
            }
        }
        shared.clock.nap_until(asked_ms + FOLLOW_MS, asked_ms).await;
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            _ = shared.clock.nap_until(asked_ms + POLL_MS, asked_ms) => {}
        }
    }
}
