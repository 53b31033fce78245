//! Claim → execute → complete: leases, heartbeats, permits, waits in place, drain.
//!
//! What lives here: the loop that claims as many turns as there are slots, the execution of one turn, and the writing of
//! its end. What does not: SQL (the store's), what to do about a failure ([`crate::recovery`]'s), what a job does next
//! ([`crate::agent`]'s), how a request goes out ([`crate::provider`]'s). Faces never touch a worker's insides; they meet
//! it in the store.

mod aside;
mod closed;
mod completer;
mod ends;
mod execution;
mod hand;
mod lease;
mod ledger;
mod plan;
mod report;
mod signals;
mod wait;

pub use hand::{Live, LiveEvent};

use crate::clock::Clock;
use crate::failure::Rules;
use crate::provider::Providers;
use crate::recovery::Policy;
use crate::store::{ClaimRequest, Store, WorkerId, WorkerRow};
use hand::Hand;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The most turns that one claim takes; a permit is a chunk of at most a second's worth (see `execution`).
const CLAIM_MOST: u32 = 256;
/// How long the loop waits for a change at most, in milliseconds: the safety net under every wake-up.
const POLL_MS: i64 = 1_000;
/// How long a failed statement is waited out before it is tried again, in milliseconds.
const STORE_AWAY_MS: i64 = 250;

/// What a worker is built from.
#[derive(Clone)]
pub struct Settings {
    pub concurrency: u32,
    /// Empty: all queues.
    pub queues: Vec<String>,
    pub lease_ms: i64,
    pub drain_ms: i64,
    /// By name.
    pub policies: Arc<BTreeMap<String, Policy>>,
    pub providers: Arc<Providers>,
    /// By entry name.
    pub entries: Arc<BTreeMap<String, EntrySettings>>,
    pub rules: Arc<Rules>,
    /// Who is told of live text, retries and ends in this process.
    pub live: Option<Live>,
}

/// What a provider entry says about its calls, besides how they go out.
#[derive(Clone, Debug)]
pub struct EntrySettings {
    /// The name of its recovery policy, unless the job names one.
    pub policy: String,
    pub redact_vendor_messages: bool,
}

/// How a worker is told to stop.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Claim no more; finish what is in hand within `drain`.
    pub drain: CancellationToken,
    /// Stop at once: what is in hand goes back.
    pub now: CancellationToken,
}

/// Everything the tasks of one incarnation of a worker share.
pub(crate) struct Shared<S: Store> {
    store: S,
    clock: Clock,
    id: WorkerId,
    settings: Settings,
    stop: Stop,
    /// The lease has lapsed: nothing may be written or sent any more under `id`.
    lost: CancellationToken,
    /// The drain's time is over, or the worker was told to stop at once.
    over: CancellationToken,
    hand: Hand,
    closed: closed::Closed,
    aside: aside::Aside,
    completions: completer::Completions,
    answers: completer::Answers,
}

/// Runs a worker until it is told to stop and has drained. A lapsed lease begins again under a new id.
pub async fn run<S: Store>(store: S, settings: Settings, stop: Stop) {
    loop {
        match incarnation(store.clone(), settings.clone(), stop.clone()).await {
            Ended::Drained => return,
            Ended::LeaseLost => tracing::warn!("the worker's lease lapsed; it begins again under a new id"),
        }
    }
}

enum Ended {
    Drained,
    LeaseLost,
}

/// One worker id, from its registration to its drain or the loss of its lease.
async fn incarnation<S: Store>(store: S, settings: Settings, stop: Stop) -> Ended {
    let clock = store.clock().clone();
    let Some((id, registered_ms)) = register(&store, &clock, &settings, &stop).await else { return Ended::Drained };
    let lost = CancellationToken::new();
    let over = stop.now.child_token();
    let tasks = TaskTracker::new();
    let (completions, answers, writers) = completer::start(store.clone(), lost.clone());
    let shared = Arc::new(Shared {
        hand: Hand::new(settings.concurrency, settings.live.clone(), registered_ms),
        closed: closed::Closed::default(),
        aside: aside::Aside::default(),
        store,
        clock,
        id,
        settings,
        stop,
        lost,
        over,
        completions,
        answers,
    });
    let lease = tokio::spawn(lease::keep(Arc::clone(&shared)));
    let signals = tokio::spawn(signals::watch(Arc::clone(&shared)));
    tracing::info!(worker.id = %shared.id, concurrency = shared.settings.concurrency, "the worker claims");

    claim_until_stopped(&shared, &tasks).await;
    tasks.close();
    drain(&shared, &tasks).await;

    signals.abort();
    let was_lost = shared.lost.is_cancelled();
    if was_lost {
        lease.abort();
        writers.leave();
    } else {
        // Nothing executes any more, so every end has been handed over; wait until the last is committed.
        writers.finish(&shared).await;
        lease.abort();
        let now_ms = shared.clock.now_ms();
        if let Err(error) = shared.store.retire_worker(shared.id, now_ms).await {
            tracing::warn!(%error, "the worker could not end its lease; it will lapse");
        }
    }
    if was_lost && !shared.stop.drain.is_cancelled() && !shared.stop.now.is_cancelled() {
        Ended::LeaseLost
    } else {
        Ended::Drained
    }
}

/// Registers under a fresh id, waiting for a database that is away: the id, and since when its lease runs. `None`: told
/// to stop meanwhile.
async fn register<S: Store>(store: &S, clock: &Clock, settings: &Settings, stop: &Stop) -> Option<(WorkerId, i64)> {
    loop {
        let now_ms = clock.now_ms();
        let row = WorkerRow {
            id: WorkerId::fresh(),
            queues: settings.queues.clone(),
            started_ms: now_ms,
            heartbeat_ms: now_ms,
            lease_ms: settings.lease_ms,
            concurrency: settings.concurrency,
        };
        let id = row.id;
        match store.register_worker(row).await {
            Ok(()) => return Some((id, now_ms)),
            Err(error) => tracing::warn!(%error, "the worker cannot register yet"),
        }
        tokio::select! {
            _ = clock.nap_until(now_ms + STORE_AWAY_MS, now_ms) => {}
            () = stop.drain.cancelled() => return None,
            () = stop.now.cancelled() => return None,
        }
    }
}

async fn claim_until_stopped<S: Store>(shared: &Arc<Shared<S>>, tasks: &TaskTracker) {
    let mut changes = shared.store.changes();
    loop {
        if shared.stopping() {
            return;
        }
        // Interest is registered before asking, so that no wake-up is lost between the two.
        changes.borrow_and_update();
        let freed = shared.hand.freed();
        let asked = shared.hand.room().min(CLAIM_MOST);
        let mut took = 0;
        let now_ms = shared.clock.now_ms();
        let mut wake_ms = now_ms + POLL_MS;
        let paused_until_ms = shared.aside.paused_until_ms();
        if paused_until_ms > now_ms {
            wake_ms = paused_until_ms;
        } else if asked > 0 && shared.lease_is_fresh() {
            let request = ClaimRequest {
                worker: shared.id,
                queues: shared.settings.queues.clone(),
                without: shared.aside.left(now_ms),
                room: asked,
                now_ms,
            };
            match shared.store.claim(request).await {
                Ok(turns) => {
                    took = u32::try_from(turns.len()).unwrap_or(u32::MAX);
                    for turn in turns {
                        let slot = shared.hand.take(turn.job_id);
                        tasks.spawn(execution::run(Arc::clone(shared), turn, slot));
                    }
                    if took == 0 {
                        // As of the claim: an instant that passes between the two would be slept over. One that had
                        // passed before is the scheduler's, whose work is heard of as a change.
                        let due_ms = shared.next_due_ms(now_ms).await.filter(|due_ms| *due_ms > now_ms);
                        wake_ms = due_ms.map_or(wake_ms, |due_ms| due_ms.min(wake_ms));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "no turn could be claimed");
                    wake_ms = shared.clock.now_ms() + STORE_AWAY_MS;
                }
            }
        }
        if took > 0 {
            continue;
        }
        wait_for_work(shared, &mut changes, freed, wake_ms, now_ms).await;
    }
}

async fn wait_for_work<S: Store>(
    shared: &Shared<S>,
    changes: &mut watch::Receiver<u64>,
    freed: impl Future<Output = ()>,
    wake_ms: i64,
    looked_ms: i64,
) {
    tokio::select! {
        changed = changes.changed() => if changed.is_err() {
            // The store is closed: nothing will change any more, and claims fail until we are told to stop.
            shared.clock.nap_until(wake_ms, looked_ms).await;
        },
        () = freed => {}
        _ = shared.clock.nap_until(wake_ms, looked_ms) => {}
        () = shared.stop.drain.cancelled() => {}
        () = shared.stop.now.cancelled() => {}
        () = shared.lost.cancelled() => {}
    }
}

/// Lets what is in hand finish, for as long as `drain` allows.
async fn drain<S: Store>(shared: &Arc<Shared<S>>, tasks: &TaskTracker) {
    if tasks.is_empty() {
        return;
    }
    let in_hand = tasks.len();
    if !shared.lost.is_cancelled() {
        tracing::info!(in_hand, drain_ms = shared.settings.drain_ms, "the worker drains");
    }
    let now_ms = shared.clock.now_ms();
    let until_ms = now_ms.saturating_add(shared.settings.drain_ms);
    tokio::select! {
        () = tasks.wait() => return,
        _ = shared.clock.nap_until(until_ms, now_ms) => {}
        () = shared.over.cancelled() => {}
        () = shared.lost.cancelled() => {}
    }
    shared.over.cancel();
    tasks.wait().await;
}

impl<S: Store> Shared<S> {
    fn stopping(&self) -> bool {
        self.stop.drain.is_cancelled() || self.stop.now.is_cancelled() || self.lost.is_cancelled()
    }

    /// A worker that has not renewed for two thirds of its lease claims nothing.
    fn lease_is_fresh(&self) -> bool {
        let silent_ms = self.clock.now_ms() - self.hand.renewed_ms();
        silent_ms * 3 < self.settings.lease_ms * 2
    }

    async fn next_due_ms(&self, claimed_ms: i64) -> Option<i64> {
        self.store.next_due_ms(claimed_ms).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the next due instant could not be read");
            None
        })
    }
}
