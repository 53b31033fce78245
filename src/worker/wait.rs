//! Waits of a turn in hand: for its hold or backoff to pass, and for the permit of its next send.

use super::POLL_MS;
use super::execution::Execution;
use crate::store::{Grant, Permit, PermitRequest, Store};

/// What follows a wait.
pub(super) enum Waited {
    Go(Grant),
    /// The hold or the queue keeps it longer than a turn in hand waits.
    PutBack,
    Cancelled,
    Deadline,
    Void,
}

impl<S: Store> Execution<S> {
    /// Waits until `until_ms`, and on while a hold or the controlled number keeps the next send for a short while.
    pub(super) async fn wait_in_place(&self, mut until_ms: i64) -> Waited {
        let shared = &self.shared;
        let deadline_ms = self.turn.deadline_ms.unwrap_or(i64::MAX);
        let timeout_ms = self.timeout_at_ms().unwrap_or(i64::MAX);
        let mut changes = shared.store.changes();
        let patience_ms = until_ms.saturating_add(self.plan.policy.numbers().near_ms);
        loop {
            tokio::select! {
                biased;
                () = shared.lost.cancelled() => return Waited::Void,
                () = self.slot.cancel.cancelled() => return Waited::Cancelled,
                _ = shared.clock.sleep_until(deadline_ms), if deadline_ms < until_ms => return Waited::Deadline,
                _ = shared.clock.sleep_until(timeout_ms), if timeout_ms < until_ms => return Waited::PutBack,
                () = shared.stop.drain.cancelled() => return Waited::PutBack,
                () = shared.over.cancelled() => return Waited::PutBack,
                _ = shared.clock.sleep_until(until_ms) => {}
            }
            changes.borrow_and_update();
            match self.ask_permit().await {
                Some(Permit::Granted(grant)) => return Waited::Go(grant),
                Some(Permit::Void) | None => return Waited::Void,
                Some(Permit::Cancelled) => return Waited::Cancelled,
                Some(Permit::Closed { until_ms: Some(later_ms) })
                    if later_ms - shared.clock.now_ms() <= self.plan.policy.numbers().near_ms =>
                {
                    until_ms = later_ms;
                }
                Some(Permit::Closed { .. }) => return Waited::PutBack,
                Some(Permit::Full) => {
                    let now_ms = shared.clock.now_ms();
                    if now_ms >= patience_ms {
                        return Waited::PutBack;
                    }
                    tokio::select! {
                        _ = changes.changed() => {}
                        _ = shared.clock.nap_until(now_ms + POLL_MS, now_ms) => {}
                        () = self.slot.cancel.cancelled() => {}
                        () = shared.lost.cancelled() => {}
                    }
                    until_ms = shared.clock.now_ms();
                }
            }
        }
    }

    /// Asks until the database answers; `None`: the lease is lost meanwhile.
    pub(super) async fn ask_permit(&self) -> Option<Permit> {
        loop {
            let now_ms = self.shared.clock.now_ms();
            let request = PermitRequest { job_id: self.turn.job_id, fence: self.turn.fence, now_ms };
            match self.shared.store.permit(request).await {
                Ok(permit) => return Some(permit),
                Err(error) => self.shared.store_is_away("a permit could not be asked for", &error).await?,
            }
        }
    }
}
