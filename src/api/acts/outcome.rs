//! What came of an act, job by job.

use crate::api::shapes;
use crate::store::{JobId, JobState};
use serde::{Serialize, Serializer};
use serde_json::json;

/// One job, and what came of the act on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acted {
    pub id: JobId,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As the word says: `cancelled`, `deleted`, `paused`, …
    Done(&'static str),
    /// It runs; its worker was asked to stop.
    Asked,
    /// It goes on as this new job.
    Retried(JobId),
    /// It had been retried before, as this job.
    RetriedBefore(JobId),
    /// It was so already, or there was nothing to move.
    Unchanged,
    AlreadyFinal(JobState),
    NotFinal(JobState),
    Unknown,
    /// A new job cannot be made of it; why.
    Refused(String),
}

impl Outcome {
    /// The stable word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Done(word) => word,
            Self::Asked => "asked",
            Self::Retried(_) => "retried",
            Self::RetriedBefore(_) => "retried_before",
            Self::Unchanged => "unchanged",
            Self::AlreadyFinal(_) => "already_final",
            Self::NotFinal(_) => "not_final",
            Self::Unknown => "unknown",
            Self::Refused(_) => "refused",
        }
    }

    /// Whether the job is now as was asked for.
    #[must_use]
    pub fn is_met(&self) -> bool {
        match self {
            Self::Done(_) | Self::Asked | Self::Retried(_) | Self::RetriedBefore(_) | Self::Unchanged => true,
            Self::AlreadyFinal(_) | Self::NotFinal(_) | Self::Unknown | Self::Refused(_) => false,
        }
    }

    /// Whether this act changed something.
    #[must_use]
    pub fn is_new(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Asked | Self::Retried(_))
    }

    /// For people, after the job's id.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Done(word) => (*word).to_owned(),
            Self::Asked => "runs; its worker was asked to stop".to_owned(),
            Self::Retried(job) => format!("goes on as {job}"),
            Self::RetriedBefore(job) => format!("had been retried before, as {job}"),
            Self::Unchanged => "is so already; nothing was changed".to_owned(),
            Self::AlreadyFinal(state) => format!("had ended before: {}", shapes::state(*state, false)),
            Self::NotFinal(state) => {
                format!("has not ended (it is {}); `reprieve cancel` ends it first", shapes::state(*state, false))
            }
            Self::Unknown => "there is no such job; `reprieve jobs` lists them".to_owned(),
            Self::Refused(why) => format!("cannot go on: {why}"),
        }
    }
}

impl Serialize for Acted {
    /// `{"id","outcome"}`, with `state` of a job that is in the way, `job` of the new one, `error` of a refusal.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut document = json!({"id": self.id, "outcome": self.outcome.word()});
        match &self.outcome {
            Outcome::AlreadyFinal(state) | Outcome::NotFinal(state) => {
                document["state"] = shapes::state(*state, false).into();
            }
            Outcome::Retried(job) | Outcome::RetriedBefore(job) => document["job"] = job.to_string().into(),
            Outcome::Refused(why) => document["error"] = why.as_str().into(),
            Outcome::Done(_) | Outcome::Asked | Outcome::Unchanged | Outcome::Unknown => {}
        }
        document.serialize(to)
    }
}
