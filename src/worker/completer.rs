//! Writes the ends of executions in batches, and tells the answers that let a scope open up.
//!
//! An end that arrives while the database is away is kept and written when it is back, if its fence still stands: also
//! past the worker's lease, because nobody else could take the turn back from a database that was away for all.

use super::{STORE_AWAY_MS, Shared};
use crate::store::{self, Answer, Applied, Completion, Store};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The most completions of one transaction: batches of 500 gain little over these and hold the writer longer.
const BATCH_MOST: usize = 200;
/// How often ends that the database refuses, rather than is away for, are tried again, in milliseconds.
const REFUSED_AGAIN_MS: i64 = 5_000;
/// Ends that may wait for the writer before executions wait for it.
const BACKLOG: usize = 4_096;

pub(super) type Completions = mpsc::Sender<Completion>;
pub(super) type Answers = mpsc::UnboundedSender<Answer>;

pub(super) struct Writers {
    completions: JoinHandle<()>,
    answers: JoinHandle<()>,
    finish: CancellationToken,
}

impl Writers {
    /// Waits until everything handed over is committed, as long as the lease stands; what is left then goes on by itself.
    pub(super) async fn finish<S: Store>(self, shared: &Shared<S>) {
        self.finish.cancel();
        tokio::select! {
            _ = self.completions => {}
            () = shared.lost.cancelled() => {}
        }
        self.answers.abort();
    }

    /// Leaves what was handed over to be written by itself, if its fences still stand.
    pub(super) fn leave(self) {
        self.finish.cancel();
        self.answers.abort();
    }
}

pub(super) fn start<S: Store>(store: S, lost: CancellationToken) -> (Completions, Answers, Writers) {
    let (completions, ends) = mpsc::channel(BACKLOG);
    let (answers, told) = mpsc::unbounded_channel();
    let finish = CancellationToken::new();
    let writers = Writers {
        completions: tokio::spawn(write_ends(store.clone(), ends, lost, finish.clone())),
        answers: tokio::spawn(tell_answers(store, told)),
        finish,
    };
    (completions, answers, writers)
}

async fn write_ends<S: Store>(
    store: S,
    mut ends: mpsc::Receiver<Completion>,
    lost: CancellationToken,
    finish: CancellationToken,
) {
    let clock = store.clock().clone();
    let mut batch = Vec::with_capacity(BATCH_MOST);
    let mut refused = Vec::new();
    let mut again_ms = 0;
    loop {
        tokio::select! {
            biased;
            _ = clock.nap_until(again_ms, again_ms - REFUSED_AGAIN_MS), if !refused.is_empty() => {
                refused = each_by_itself(&store, refused).await;
                again_ms = clock.now_ms() + REFUSED_AGAIN_MS;
                continue;
            }
            count = ends.recv_many(&mut batch, BATCH_MOST) => if count == 0 { break },
            () = finish.cancelled() => {
                // Every execution has ended: what was sent is already in the channel.
                ends.close();
                continue;
            }
        }
        let mut fresh = write(&store, std::mem::take(&mut batch), &lost).await;
        if !fresh.is_empty() {
            again_ms = clock.now_ms() + REFUSED_AGAIN_MS;
            refused.append(&mut fresh);
        }
    }
    let left = each_by_itself(&store, refused).await;
    if !left.is_empty() {
        tracing::error!(
            ends = left.len(),
            "ends are refused by the database; their turns are taken back with the lease"
        );
    }
}

/// Writes a batch, waiting for a database that is away. Returns the ends that it refuses for what they are.
async fn write<S: Store>(store: &S, batch: Vec<Completion>, lost: &CancellationToken) -> Vec<Completion> {
    loop {
        match store.complete(batch.clone()).await {
            Ok(applied) => {
                let stale = applied.iter().filter(|applied| **applied == Applied::Void).count();
                if stale > 0 {
                    tracing::warn!(stale, "ends of turns that had been taken back were not written");
                }
                return Vec::new();
            }
            Err(error @ (store::Error::Undecodable { .. } | store::Error::Database(_))) => {
                tracing::warn!(%error, ends = batch.len(), "ends were refused; each is written by itself");
                return each_by_itself(store, batch).await;
            }
            Err(error) => {
                let lease_is_lost = lost.is_cancelled();
                tracing::warn!(%error, ends = batch.len(), lease_is_lost, "ends could not be written yet");
                let now_ms = store.clock().now_ms();
                store.clock().nap_until(now_ms + STORE_AWAY_MS, now_ms).await;
            }
        }
    }
}

/// Writes each end in a transaction of its own; returns those that could not be written.
async fn each_by_itself<S: Store>(store: &S, ends: Vec<Completion>) -> Vec<Completion> {
    let mut left = Vec::new();
    for end in ends {
        if let Err(error) = store.complete(vec![end.clone()]).await {
            tracing::warn!(%error, job.id = %end.job_id, "an end could not be written");
            left.push(end);
        }
    }
    left
}

async fn tell_answers<S: Store>(store: S, mut told: mpsc::UnboundedReceiver<Answer>) {
    let mut batch = Vec::new();
    while told.recv_many(&mut batch, BATCH_MOST).await > 0 {
        if let Err(error) = store.answered(std::mem::take(&mut batch)).await {
            // The completion tells it again.
            tracing::warn!(%error, "answers could not be told");
        }
    }
}
