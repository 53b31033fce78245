//! What to do about a failure: policies as numbers, tiers, and the one decision function that driver, holds, scheduler,
//! API and renderers share.
//!
//! Pure. What happened is a [`Failure`](crate::failure::Failure); what to do is a [`Decision`]; neither knows of databases,
//! sockets or clocks. Nothing here reads a failure again: class, cause and resume instant are taken as they were read.
//!
//! ```text
//! Failure + Situation + Policy ── recover ────> Decision     for the job
//!                              └─ hold_until ─> instant      for its scope, the same one
//! ```

mod decide;
mod hold;
mod policy;

pub use decide::recover;
pub use hold::{hold_until, wait_source};
pub use policy::{InPlace, InvalidPolicy, Numbers, Policy, Tier};

use serde::{Deserialize, Serialize};

/// May a send be repeated after it may have reached the provider?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    #[default]
    AtLeastOnce,
    AtMostOnce,
}

/// What becomes of an answer that a cap cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTruncated {
    Continue,
    Accept,
    Fail,
}

/// What the answer had said when it broke.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spoken {
    /// No answer text yet; reasoning alone does not count.
    #[default]
    Nothing,
    Text,
    /// A tool-call chunk came: nothing may be committed.
    ToolCall,
}

/// Everything about the moment of a failure that the decision depends on.
#[derive(Clone, Debug)]
pub struct Situation {
    pub now_ms: i64,
    /// Sends of this execution so far, the failed one included (≥ 1 but for a failure before any send).
    pub sends: u32,
    /// Executions of this turn that were lost or requeued before this one.
    pub executions: u32,
    /// The scope's consecutive refusals at or after their resume instants, this one not counted.
    pub barren: u32,
    /// What is left of `turn_timeout`; `None`: unbounded.
    pub turn_left_ms: Option<i64>,
    /// The job's, absolute; `None`: none.
    pub deadline_ms: Option<i64>,
    pub spoken: Spoken,
    /// Consecutive repairs (continuations after cuts) so far.
    pub repairs: u32,
    /// Deferrals of this turn so far, and when the first of them was; bounds of the outermost tier.
    pub deferrals: u32,
    pub waiting_since_ms: Option<i64>,
    pub delivery: Delivery,
    pub structured_output: bool,
    pub on_truncated: OnTruncated,
    /// In 0.0..=1.0, drawn by the caller; lengthens our own curves by up to 20 %. 0: none.
    pub jitter: f64,
}

/// What follows a committed partial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "then", rename_all = "snake_case")]
pub enum Then {
    /// The job goes on with a turn that continues the text, at or after the instant (`None`: at once).
    Continue { not_before_ms: Option<i64> },
    /// The text stands as the answer; the job succeeds.
    Accept,
}

/// What to do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Decision {
    /// Send again within this execution, after the wait.
    RetryInPlace { wait_ms: i64 },
    /// Put the turn back behind its scope's hold; consumes no execution.
    Defer { until_ms: i64 },
    /// Put the turn back until the instant; consumes an execution.
    Requeue { until_ms: i64 },
    /// Keep the text as one piece of the job's.
    CommitPartial {
        #[serde(flatten)]
        then: Then,
    },
    /// The turn fails with this failure, and its job with it.
    Fail,
    /// It was cancelled.
    Stop,
}

impl Decision {
    /// The name that is stored and shown.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::RetryInPlace { .. } => "retry_in_place",
            Self::Defer { .. } => "defer",
            Self::Requeue { .. } => "requeue",
            Self::CommitPartial { .. } => "commit_partial",
            Self::Fail => "fail",
            Self::Stop => "stop",
        }
    }

    /// The instant of the next send that this decision names, if any, where it was taken at `now_ms`.
    #[must_use]
    pub fn next_send_ms(&self, now_ms: i64) -> Option<i64> {
        match self {
            Self::RetryInPlace { wait_ms } => Some(now_ms.saturating_add(*wait_ms)),
            Self::Defer { until_ms } | Self::Requeue { until_ms } => Some(*until_ms),
            Self::CommitPartial { then: Then::Continue { not_before_ms } } => Some(not_before_ms.unwrap_or(now_ms)),
            Self::CommitPartial { then: Then::Accept } | Self::Fail | Self::Stop => None,
        }
    }
}
