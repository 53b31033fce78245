//! What people do to jobs, by ids or by a filter that was frozen: shown first, then done in chunks. One place for the
//! command line, the API and the pages.
//!
//! A [`Frozen`] filter is a query as of an instant: jobs that were accepted later are not in it, however long the chunks
//! take. What an act would do ([`Order::preview`]) and what it did ([`Order::carry_out`]) are told job by job; nothing here
//! ever means "all" where nothing was said.

mod outcome;
mod preview;
mod words;

pub use outcome::{Acted, Outcome};
pub use preview::{Preview, Refusals};
pub use words::{consequence, in_words};

use crate::agent::{Directory, again};
use crate::store::{
    CancelOutcome, DeleteOutcome, JobId, JobRow, JobState, Pause, Query, Result, Steer, SteerOutcome, Store, Submitted,
};
use std::collections::HashMap;

/// Jobs of one chunk.
pub const CHUNK: u32 = 500;
/// Transcripts in memory at once, for a retry takes its job's over.
const TRANSCRIPTS: usize = 50;
/// Above this many jobs an act by filter wants to be confirmed.
pub const CONFIRM: i64 = 1_000;

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    Cancel,
    /// A new job of each, which goes on from where it ended. A job is retried once, however often it is asked for.
    Retry,
    Delete,
    /// No further turn starts; with a reason.
    Pause(Option<String>),
    Resume,
    /// Its own backoff ends now.
    Requeue,
    /// −100..=100.
    Reprioritise(i16),
}

impl Act {
    /// The verb, as commands and buttons are called.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Delete => "delete",
            Self::Pause(_) => "pause",
            Self::Resume => "resume",
            Self::Requeue => "requeue",
            Self::Reprioritise(_) => "reprioritise",
        }
    }

    /// The states that a filter means where it names none: those that the act can do something to. Of a retry only the
    /// failed ones: what succeeded or was cancelled is asked again only by its name.
    #[must_use]
    pub fn states(&self) -> &'static [&'static str] {
        match self {
            Self::Retry => &["failed"],
            Self::Delete => &["succeeded", "failed", "cancelled"],
            Self::Requeue => &["queued", "deferred"],
            Self::Cancel | Self::Pause(_) | Self::Resume | Self::Reprioritise(_) => {
                &["waiting", "running", "requires_action"]
            }
        }
    }

    /// Why it can do nothing to this job, as far as a look at it tells.
    ///
    /// # Errors
    /// The reason, as the end of "1 cannot: …".
    pub fn can(&self, job: &JobRow, now_ms: i64) -> std::result::Result<(), &'static str> {
        let ended = job.finished_ms.is_some();
        match self {
            Self::Retry if job.state == JobState::Running => Err("already running"),
            Self::Retry if !ended => Err("still waiting"),
            Self::Delete if !ended => Err("not ended yet; cancel them first"),
            Self::Retry | Self::Delete => Ok(()),
            _ if ended => Err("already ended"),
            Self::Requeue if job.state == JobState::Running => Err("already running"),
            Self::Requeue if job.executions.unwrap_or(0) == 0 || job.due_ms.is_none_or(|due_ms| due_ms <= now_ms) => {
                Err("not waiting for a backoff of their own")
            }
            Self::Reprioritise(priority) if job.priority == *priority => Err("of that priority already"),
            Self::Pause(_) if job.paused.is_some() => Err("already paused"),
            Self::Resume if job.paused.is_none() => Err("not paused one by one"),
            Self::Cancel | Self::Pause(_) | Self::Resume | Self::Requeue | Self::Reprioritise(_) => Ok(()),
        }
    }
}

/// A filter as of an instant: what it means does not grow.
#[derive(Clone, Debug)]
pub struct Frozen {
    /// With `until_ms` set, and `to_id` unless it is ordered by ends.
    pub query: Query,
}

impl Frozen {
    /// Freezes a filter at `query.now_ms` and at the highest id that it matches. `None`: it matches nothing.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn of<S: Store>(store: &S, mut query: Query, act: &Act) -> Result<Option<Self>> {
        if query.states.is_empty() {
            query.states = act.states().iter().map(|state| (*state).to_owned()).collect();
        }
        query.cursor = None;
        // An instant bounds from above without itself: what happened in this millisecond is meant.
        let until_ms = query.now_ms.saturating_add(1);
        query.until_ms = Some(query.until_ms.map_or(until_ms, |until| until.min(until_ms)));
        let first = store.jobs(Query { limit: 1, ..query.clone() }).await?;
        let Some(newest) = first.items.first() else { return Ok(None) };
        // Ordered by their ends, the first is not the one of the highest id; what ends later is not in it anyway.
        query.to_id = (!query.by_end).then_some(newest.id);
        Ok(Some(Self { query }))
    }

    /// Its jobs, newest first, in chunks.
    #[must_use]
    pub fn walk(&self, chunk: u32) -> Walk {
        let query = Query { limit: chunk, cursor: None, ..self.query.clone() };
        Walk { query: Some(query) }
    }
}

/// A frozen filter in the course of being read.
#[derive(Clone, Debug)]
pub struct Walk {
    query: Option<Query>,
}

impl Walk {
    /// The next jobs; `None`: that was all.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn next<S: Store>(&mut self, store: &S) -> Result<Option<Vec<JobRow>>> {
        let Some(query) = self.query.take() else { return Ok(None) };
        let page = store.jobs(query.clone()).await?;
        self.query = page.next_cursor.map(|cursor| Query { cursor: Some(cursor), ..query });
        Ok(Some(page.items))
    }
}

/// Somebody's wish, carried out on jobs.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    pub act: Act,
    /// Who: `command line`, `api`, or a token's name.
    pub by: String,
    /// What a new job must be acceptable to.
    pub directory: &'a Directory,
}

impl Order<'_> {
    /// Does it to jobs, at most [`CHUNK`] of them. One answer each, in order.
    ///
    /// # Errors
    /// When the store does not answer; what was done before stays done.
    pub async fn carry_out<S: Store>(&self, store: &S, jobs: &[JobId]) -> Result<Vec<Acted>> {
        let now_ms = store.clock().now_ms();
        let outcomes: Vec<Outcome> = match &self.act {
            Act::Cancel => store.cancel(jobs.to_vec(), now_ms).await?.into_iter().map(of_cancel).collect(),
            Act::Retry => {
                let mut outcomes = Vec::with_capacity(jobs.len());
                for part in jobs.chunks(TRANSCRIPTS) {
                    outcomes.extend(self.retried(store, part, now_ms).await?);
                }
                outcomes
            }
            Act::Delete => store.delete(jobs.to_vec()).await?.into_iter().map(of_delete).collect(),
            Act::Pause(reason) => {
                let pause = Pause { since_ms: now_ms, by: self.by.clone(), reason: reason.clone() };
                self.steered(store, jobs, Steer::Pause(pause), "paused", now_ms).await?
            }
            Act::Resume => self.steered(store, jobs, Steer::Resume, "resumed", now_ms).await?,
            Act::Requeue => self.steered(store, jobs, Steer::Requeue, "requeued", now_ms).await?,
            Act::Reprioritise(priority) => {
                self.steered(store, jobs, Steer::Reprioritise(*priority), "reprioritised", now_ms).await?
            }
        };
        Ok(jobs.iter().zip(outcomes).map(|(id, outcome)| Acted { id: *id, outcome }).collect())
    }

    /// Makes new jobs of ended ones, and submits them together.
    async fn retried<S: Store>(&self, store: &S, jobs: &[JobId], now_ms: i64) -> Result<Vec<Outcome>> {
        let before: HashMap<JobId, JobId> = store.retries(jobs.to_vec()).await?.into_iter().collect();
        let histories = store.histories(jobs.to_vec()).await?;
        let (mut new, mut outcomes) = (Vec::new(), Vec::with_capacity(jobs.len()));
        for (id, history) in jobs.iter().zip(&histories) {
            outcomes.push(match (before.get(id), store.job(*id).await?) {
                (Some(job), _) => Some(Outcome::RetriedBefore(*job)),
                (None, None) => Some(Outcome::Unknown),
                (None, Some(job)) if job.finished_ms.is_none() => Some(Outcome::NotFinal(job.state)),
                (None, Some(job)) => match again(&job, history, self.directory, now_ms) {
                    Ok(job) => {
                        new.push(job);
                        None
                    }
                    Err(why) => Some(Outcome::Refused(why.to_string())),
                },
            });
        }
        let answers = if new.is_empty() { Vec::new() } else { store.submit(new).await? };
        let mut answers = answers.into_iter();
        Ok(outcomes
            .into_iter()
            .map(|outcome| outcome.or_else(|| answers.next().map(of_submit)).unwrap_or(Outcome::Unknown))
            .collect())
    }

    async fn steered<S: Store>(
        &self,
        store: &S,
        jobs: &[JobId],
        how: Steer,
        done: &'static str,
        now_ms: i64,
    ) -> Result<Vec<Outcome>> {
        let outcomes = store.steer(jobs.to_vec(), how, now_ms).await?;
        Ok(outcomes
            .into_iter()
            .map(|outcome| match outcome {
                SteerOutcome::Done => Outcome::Done(done),
                SteerOutcome::Unchanged => Outcome::Unchanged,
                SteerOutcome::AlreadyFinal(state) => Outcome::AlreadyFinal(state),
                SteerOutcome::Unknown => Outcome::Unknown,
            })
            .collect())
    }
}

/// Somebody may have been faster: then it had been retried before.
fn of_submit(answer: Submitted) -> Outcome {
    match answer {
        Submitted::Accepted(id) => Outcome::Retried(id),
        Submitted::Duplicate(id) | Submitted::Conflict(id) => Outcome::RetriedBefore(id),
    }
}

fn of_cancel(outcome: CancelOutcome) -> Outcome {
    match outcome {
        CancelOutcome::Cancelled => Outcome::Done("cancelled"),
        CancelOutcome::Asked => Outcome::Asked,
        CancelOutcome::AlreadyFinal(state) => Outcome::AlreadyFinal(state),
        CancelOutcome::Unknown => Outcome::Unknown,
    }
}

fn of_delete(outcome: DeleteOutcome) -> Outcome {
    match outcome {
        DeleteOutcome::Deleted => Outcome::Done("deleted"),
        DeleteOutcome::NotFinal(state) => Outcome::NotFinal(state),
        DeleteOutcome::Unknown => Outcome::Unknown,
    }
}
