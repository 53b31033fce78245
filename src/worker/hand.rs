//! What a worker has in hand: its slots, its waits in place, and the turns that can be told to stop.

use crate::store::JobId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Who listens to live events of this process's executions. Called from the executing task: it must not block.
pub type Live = Arc<dyn Fn(JobId, LiveEvent<'_>) + Send + Sync>;

/// What a listener in this process hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveEvent<'a> {
    /// Answer text.
    Text(&'a str),
    /// The send failed and will be replaced: its text is void.
    Retry { summary: &'a str, wait_ms: i64 },
    /// The turn went back to the queue.
    Deferred { summary: &'a str, until_ms: i64 },
    /// The turn ended; the job may go on with another.
    TurnEnded,
}

/// The slots of one worker.
pub(crate) struct Hand {
    inner: Arc<Inner>,
}

struct Inner {
    concurrency: u32,
    /// Executions that hold a slot. May exceed `concurrency` for a while: a turn whose wait in place is over goes on at
    /// once, because the reset is the promise and the slot is not.
    running: AtomicU32,
    /// Executions that wait in place and have lent their slot.
    waiting: AtomicU32,
    freed: Notify,
    renewed_ms: AtomicI64,
    cancels: Mutex<HashMap<JobId, CancellationToken>>,
    live: Option<Live>,
}

impl Hand {
    pub(crate) fn new(concurrency: u32, live: Option<Live>, registered_ms: i64) -> Self {
        Self {
            inner: Arc::new(Inner {
                concurrency,
                running: AtomicU32::new(0),
                waiting: AtomicU32::new(0),
                freed: Notify::new(),
                renewed_ms: AtomicI64::new(registered_ms),
                cancels: Mutex::new(HashMap::new()),
                live,
            }),
        }
    }

    /// Free slots.
    pub(crate) fn room(&self) -> u32 {
        self.inner.concurrency.saturating_sub(self.inner.running.load(Ordering::Acquire))
    }

    /// Done when a slot is freed after this call.
    pub(crate) fn freed(&self) -> impl Future<Output = ()> + use<> {
        let inner = Arc::clone(&self.inner);
        async move { inner.freed.notified().await }
    }

    pub(crate) fn renewed(&self, at_ms: i64) {
        self.inner.renewed_ms.store(at_ms, Ordering::Release);
    }

    /// When the lease was last renewed; registration is its first renewal.
    pub(crate) fn renewed_ms(&self) -> i64 {
        self.inner.renewed_ms.load(Ordering::Acquire)
    }

    pub(crate) fn take(&self, job: JobId) -> Slot {
        self.inner.running.fetch_add(1, Ordering::AcqRel);
        let cancel = CancellationToken::new();
        self.inner.cancels().insert(job, cancel.clone());
        Slot { inner: Arc::clone(&self.inner), job, cancel, counted: true }
    }

    /// Tells the execution of `job` to stop, if it is in hand.
    pub(crate) fn cancel(&self, job: JobId) {
        if let Some(token) = self.inner.cancels().get(&job) {
            token.cancel();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.inner.cancels().is_empty()
    }
}

impl Inner {
    fn cancels(&self) -> std::sync::MutexGuard<'_, HashMap<JobId, CancellationToken>> {
        self.cancels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One execution's place in the hand; given back when dropped.
pub(crate) struct Slot {
    inner: Arc<Inner>,
    job: JobId,
    /// Cancelled when somebody asked to cancel the job.
    pub(crate) cancel: CancellationToken,
    counted: bool,
}

impl Slot {
    /// Lends the slot for a wait in place. `false`: as many wait already as may.
    pub(crate) fn lend(&mut self) -> bool {
        let fits = |waiting: u32| (waiting < self.inner.concurrency).then_some(waiting + 1);
        if self.inner.waiting.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits).is_err() {
            return false;
        }
        self.inner.running.fetch_sub(1, Ordering::AcqRel);
        self.counted = false;
        self.inner.freed.notify_one();
        true
    }

    /// Takes a slot again after a wait in place.
    pub(crate) fn resume(&mut self) {
        if !self.counted {
            self.counted = true;
            self.inner.running.fetch_add(1, Ordering::AcqRel);
            self.inner.waiting.fetch_sub(1, Ordering::AcqRel);
        }
    }

    pub(crate) fn tell(&self, event: LiveEvent<'_>) {
        if let Some(live) = &self.inner.live {
            live(self.job, event);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.counted {
            self.inner.running.fetch_sub(1, Ordering::AcqRel);
        } else {
            self.inner.waiting.fetch_sub(1, Ordering::AcqRel);
        }
        self.inner.cancels().remove(&self.job);
        self.inner.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lent_slot_is_free_and_comes_back_even_when_others_took_it() {
        let hand = Hand::new(1, None, 0);
        let mut first = hand.take(JobId::fresh());
        assert_eq!(hand.room(), 0);
        assert!(first.lend());
        assert_eq!(hand.room(), 1);
        let mut second = hand.take(JobId::fresh());
        assert!(!second.lend(), "one wait per slot at most");
        first.resume();
        assert_eq!(hand.room(), 0);
        drop(second);
        assert_eq!(hand.room(), 0);
        drop(first);
        assert_eq!(hand.room(), 1);
        assert!(hand.is_empty());
    }
}
