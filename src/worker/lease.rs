//! The worker's lease: one heartbeat row, renewed at a third of its length.

use super::Shared;
use crate::store::{Applied, Store};
use std::sync::Arc;

/// Renews the lease until it is lost. At the lease's end without a renewal the worker's sends are aborted: another worker
/// may hold its turns by then.
pub(super) async fn keep<S: Store>(shared: Arc<Shared<S>>) {
    let mut renewed_ms = shared.hand.renewed_ms();
    let (mut looked_ms, mut next_ms) = (renewed_ms, renewed_ms + shared.settings.lease_ms / 3);
    loop {
        shared.clock.nap_until(next_ms, looked_ms).await;
        let asked_ms = shared.clock.now_ms();
        looked_ms = asked_ms;
        let ends_ms = renewed_ms + shared.settings.lease_ms;
        let outcome = tokio::select! {
            outcome = shared.store.heartbeat(shared.id, asked_ms) => Some(outcome),
            _ = shared.clock.nap_until(ends_ms, asked_ms) => None,
        };
        match outcome {
            Some(Ok(Applied::Done)) => {
                // Counted from when it was asked: the store's lease cannot have begun earlier.
                renewed_ms = asked_ms;
                shared.hand.renewed(renewed_ms);
                next_ms = asked_ms + shared.settings.lease_ms / 3;
            }
            Some(Ok(Applied::Void)) => {
                tracing::warn!(worker.id = %shared.id, "the lease was taken back");
                shared.lost.cancel();
                return;
            }
            Some(Err(error)) => {
                tracing::warn!(worker.id = %shared.id, %error, "the lease could not be renewed");
                looked_ms = shared.clock.now_ms();
                next_ms = looked_ms + (shared.settings.lease_ms / 10).clamp(50, 1_000);
            }
            None => {}
        }
        if shared.clock.now_ms() >= renewed_ms + shared.settings.lease_ms {
            tracing::warn!(worker.id = %shared.id, "the lease ran out");
            shared.lost.cancel();
            return;
        }
    }
}
