//! Figures that are asked for: queues as they stand, and tokens used.

use super::Pause;
use crate::store;
use serde::{Deserialize, Serialize};

/// A queue as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    pub queue: String,
    pub paused: Option<Pause>,
    /// Turns that may be claimed now.
    pub ready: i64,
    /// Since when the longest waiting claimable turn is ready, held or not.
    pub oldest_ms: Option<i64>,
    pub running: i64,
    /// Behind a hold.
    pub deferred: i64,
    /// Due later: a backoff or `not_before`.
    pub later: i64,
    /// Paused one by one.
    pub paused_jobs: i64,
    pub requires_action: i64,
    /// Jobs that ended within the last hour, counted up to 100,000.
    pub succeeded_1h: i64,
    pub failed_1h: i64,
    /// Live workers that take it.
    pub workers: i64,
}

impl From<store::QueueRow> for Queue {
    fn from(row: store::QueueRow) -> Self {
        Self {
            queue: row.queue,
            paused: row.paused.map(Pause::from),
            ready: row.ready,
            oldest_ms: row.oldest_ms,
            running: row.running,
            deferred: row.deferred,
            later: row.later,
            paused_jobs: row.paused_jobs,
            requires_action: row.requires_action,
            succeeded_1h: row.succeeded_1h,
            failed_1h: row.failed_1h,
            workers: row.workers,
        }
    }
}

/// Whether a queue is claimed from, after somebody stopped it or let it go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stopped {
    pub queue: String,
    /// Null: its turns are claimed.
    pub paused: Option<Pause>,
    /// What stood before.
    pub was: Option<Pause>,
}

/// Tokens and sends of one value of what they were counted by. Replaced sends are counted, and their tokens where the
/// provider said them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    pub value: String,
    pub jobs: i64,
    pub executions: i64,
    pub sends: i64,
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub total_tokens: i64,
    /// Executions that were answered without a word on tokens.
    pub unreported: i64,
}

impl From<store::UsageRow> for Usage {
    fn from(row: store::UsageRow) -> Self {
        Self {
            value: row.value,
            jobs: row.jobs,
            executions: row.executions,
            sends: row.sends,
            input_tokens: row.input_tokens,
            output_tokens: row.output_tokens,
            total_tokens: row.total_tokens,
            unreported: row.unreported,
        }
    }
}
