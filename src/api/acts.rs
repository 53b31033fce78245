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

use crate::agent::Directory;
use crate::store::{
    CancelOutcome, DeleteOutcome, JobId, JobRow, JobState, Pause, Query, Result, Steer, SteerOutcome, Store,
};

/// Jobs of one chunk.
pub const CHUNK: u32 = 500;
/// Above this many jobs an act by filter wants to be confirmed.
pub const CONFIRM: i64 = 1_000;

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    Cancel,
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
            Self::Delete => "delete",
            Self::Pause(_) => "pause",
            Self::Resume => "resume",
            Self::Requeue => "requeue",
            Self::Reprioritise(_) => "reprioritise",
        }
    }

    /// The states that a filter means where it names none: those that the act can do something to.
    #[must_use]
    pub fn states(&self) -> &'static [&'static str] {
        match self {
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
            Self::Delete if !ended => Err("not ended yet; cancel them first"),
            Self::Delete => Ok(()),
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
    /// With `until_ms` and `to_id` set.
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
        if !query.by_end {
            // An instant bounds from above without itself: what was accepted in this millisecond is meant.
            let until_ms = query.now_ms.saturating_add(1);
            query.until_ms = Some(query.until_ms.map_or(until_ms, |until| until.min(until_ms)));
        }
        let first = store.jobs(Query { limit: 1, ..query.clone() }).await?;
        Ok(first.items.first().map(|newest| Self { query: Query { to_id: Some(newest.id), ..query } }))
    }

    /// Its jobs, newest first, in chunks.
    #[must_use]
    pub fn walk(&self, chunk: u32) -> Walk {
        let query = Query { limit: chunk, cursor: None, ..self.query.clone() };
        Walk { failed: Failed::of(&query), query: Some(query), to: self.query.to_id }
    }
}

/// A frozen filter in the course of being read.
#[derive(Clone, Debug)]
pub struct Walk {
    query: Option<Query>,
    to: Option<JobId>,
    failed: Failed,
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
        let mut items = page.items;
        items.retain(|job| self.to.is_none_or(|to| job.id <= to) && self.failed.matches(job));
        Ok(Some(items))
    }
}

/// What of a filter is about the error that a job ended with: it stands in the job's own document.
#[derive(Clone, Debug, Default)]
struct Failed {
    causes: Vec<String>,
    classes: Vec<String>,
    codes: Vec<String>,
    http: Vec<u16>,
}

impl Failed {
    fn of(query: &Query) -> Self {
        Self {
            causes: query.causes.clone(),
            classes: query.classes.clone(),
            codes: query.codes.clone(),
            http: query.http.clone(),
        }
    }

    fn matches(&self, job: &JobRow) -> bool {
        if self.causes.is_empty() && self.classes.is_empty() && self.codes.is_empty() && self.http.is_empty() {
            return true;
        }
        let error: serde_json::Value =
            job.error.as_deref().and_then(|error| serde_json::from_str(error).ok()).unwrap_or_default();
        let word = |pointer: &str, known: &[String]| {
            known.is_empty()
                || error
                    .pointer(pointer)
                    .and_then(serde_json::Value::as_str)
                    .is_some_and(|w| known.iter().any(|k| k == w))
        };
        let status = error.pointer("/model_failure/http_status").and_then(serde_json::Value::as_u64);
        word("/model_failure/cause", &self.causes)
            && word("/class", &self.classes)
            && word("/code", &self.codes)
            && (self.http.is_empty()
                || status.is_some_and(|status| self.http.iter().any(|known| u64::from(*known) == status)))
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
