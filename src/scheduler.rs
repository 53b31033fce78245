//! What happens by the clock: ends that are overdue, turns of lost workers, schedules, retention.
//!
//! A duty is one file with one idempotent `run_once` that returns its counts. Two things run duties: the due timer here,
//! for what must be prompt (it wakes at the next due instant and on changes), and cron for what need not be
//! ([`retention`]). Resets need no duty: a hold is over when its instant has passed, and the claim loops wake for it
//! themselves. Every process may run a scheduler; duties that meet harm nobody.

pub mod calendar;
mod expire;
mod rescue;
pub mod retention;
pub mod schedules;

use crate::agent::Directory;
use crate::recovery::Policy;
use crate::store::Store;
use std::sync::Arc;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};
use tokio_util::sync::CancellationToken;

/// The safety net under the due timer, in milliseconds.
const POLL_MS: i64 = 1_000;
/// How often changes are followed at most, in milliseconds.
const FOLLOW_MS: i64 = 50;
/// A database that took so long to answer was away, in milliseconds: locked, or out of reach.
const AWAY_MS: i64 = 1_000;
/// The least between two looks while the database is away, or was a moment ago, in milliseconds.
const AWAY_NAP_MS: i64 = 250;
/// For so long after that no turn is taken back, in milliseconds. A lease that ran out while nobody could renew proves
/// nothing about its worker, which may renew now, and write the answers that it kept.
const GRACE_MS: i64 = 2_000;
/// Every five minutes, at second 7: away from everybody's full minute.
const RETENTION_CRON: &str = "7 */5 * * * *";

/// What the scheduler must know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The policy whose requeue tier bounds lost executions.
    pub requeue: Policy,
    pub retention: retention::Keep,
    /// What the jobs of schedules are accepted against.
    pub directory: Arc<Directory>,
}

/// Runs the duties until told to stop.
///
/// # Errors
/// When the cron scheduler cannot start.
pub async fn run<S: Store>(store: S, settings: Settings, stop: CancellationToken) -> Result<(), JobSchedulerError> {
    let mut cron = JobScheduler::new().await?;
    let (pruned_store, keep) = (store.clone(), settings.retention);
    cron.add(Job::new_async(RETENTION_CRON, move |_, _| {
        let store = pruned_store.clone();
        Box::pin(async move { retention::run_until_done(&store, keep).await })
    })?)
    .await?;
    cron.start().await?;
    timer(&store, &settings, &stop).await;
    cron.shutdown().await
}

/// Wakes for what is due, and for what may have become due.
async fn timer<S: Store>(store: &S, settings: &Settings, stop: &CancellationToken) {
    let clock = store.clock().clone();
    let mut changes = store.changes();
    let mut rescue_from_ms = i64::MIN;
    let (mut last_ms, mut rearm) = (i64::MIN, true);
    loop {
        changes.borrow_and_update();
        let looked_ms = clock.now_ms();
        if looked_ms < last_ms {
            // Measured on the clock as it was.
            (rearm, rescue_from_ms) = (true, looked_ms + GRACE_MS);
        }
        last_ms = looked_ms;
        rearm = rearm && schedules::rearm(store, looked_ms).await.is_none();
        let answered = expire::run_once(store, looked_ms).await.is_some();
        let took_ms = clock.now_ms() - looked_ms;
        if !answered || took_ms >= AWAY_MS {
            rescue_from_ms = clock.now_ms() + GRACE_MS;
        }
        if looked_ms >= rescue_from_ms && rescue::run_once(store, looked_ms, &settings.requeue).await.is_none() {
            rescue_from_ms = clock.now_ms() + GRACE_MS;
        }
        let fired = schedules::run_once(store, &settings.directory, looked_ms).await.is_some();
        // What is due and may not or cannot be done yet does not become so any faster by being looked at all the time.
        let nap_ms = if looked_ms < rescue_from_ms || !fired { AWAY_NAP_MS } else { 1 };
        let due_ms = store.next_due_ms(looked_ms).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the next due instant could not be read");
            None
        });
        let wake_ms = due_ms.unwrap_or(i64::MAX).clamp(looked_ms + nap_ms, looked_ms + POLL_MS);
        tokio::select! {
            () = stop.cancelled() => return,
            _ = clock.nap_until(wake_ms, looked_ms) => {}
            changed = changes.changed() => {
                if changed.is_err() {
                    return;
                }
                tokio::select! {
                    () = stop.cancelled() => return,
                    _ = clock.nap_until((looked_ms + FOLLOW_MS).min(wake_ms), looked_ms) => {}
                }
            }
        }
    }
}
