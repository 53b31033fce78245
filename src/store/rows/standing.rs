//! Where a job stands, as far as `explain` tells it, and figures that are asked for.

use super::{JobRow, Pause, ScopeKey};
use serde::{Deserialize, Serialize};

/// Everything that can keep a live job, read in one transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    pub job: JobRow,
    /// Claimable turns of its lane before it, counted to 10,000.
    pub ahead: u32,
    /// Claimable turns of its held scope (or account) before it, other lanes included, counted to 10,000.
    pub ahead_in_scope: u32,
    /// Turns that wait behind its hold, counted to 10,000; 0 without one.
    pub behind_hold: u32,
    /// Claims of its lane over the last whole minute.
    pub claims_last_minute: u32,
    pub model: ScopeStanding,
    pub account: ScopeStanding,
    /// Live workers that take its queue.
    pub workers: u32,
    /// The latest heartbeat of a worker that took its queue, live or not.
    pub worker_seen_ms: Option<i64>,
    /// Of its last record that failed or was put back.
    pub last_failure: Option<LastFailure>,
    /// What it fails with if its deadline passes while it waits ([`super::super::Store::expire`]); `None`: as
    /// `deadline_exceeded`.
    pub fails_with: Option<LastFailure>,
    /// Of a running turn.
    pub in_hand: Option<InHandStanding>,
}

/// A scope's controlled number and what is in flight against it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeStanding {
    pub in_flight: u32,
    /// The controlled number; `None`: not limited.
    pub limit: Option<u32>,
    /// As configured.
    pub max_in_flight: Option<u32>,
    /// The claim of the turn that is longest in flight.
    pub oldest_ms: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastFailure {
    pub ended_ms: i64,
    pub outcome: String,
    pub class: Option<String>,
    pub cause: Option<String>,
    pub code: Option<String>,
    pub http_status: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InHandStanding {
    pub claimed_ms: i64,
    /// Sends of this execution that were replaced.
    pub replaced: u32,
    /// Of the wait after the last of them: where it was read, or `curve`; its raw value.
    pub wait_source: Option<String>,
    pub wait_raw: Option<String>,
    pub wait_ms: Option<i64>,
    /// How the last of them ended: `refused` or `failed`.
    pub outcome: Option<String>,
    /// Somebody asked to cancel it.
    pub cancel_asked: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueRow {
    pub queue: String,
    pub paused: Option<Pause>,
    /// Claimable and not held.
    pub ready: i64,
    /// When the longest waiting claimable turn became ready, held or not.
    pub oldest_ms: Option<i64>,
    pub running: i64,
    /// Claimable behind a hold.
    pub deferred: i64,
    /// Due later: a backoff or `not_before`.
    pub later: i64,
    /// Paused one by one.
    pub paused_jobs: i64,
    pub requires_action: i64,
    /// Jobs that ended within the last hour, counted to 100,000.
    pub succeeded_1h: i64,
    pub failed_1h: i64,
    /// Live workers that take it.
    pub workers: i64,
}

/// What tokens are counted by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsageBy {
    Model,
    Tenant,
    Queue,
    Provider,
    Account,
    /// UTC.
    Day,
    Label(String),
}

/// Tokens as reported. Sends that were replaced are counted, and their tokens where the provider said them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageRow {
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

/// How well one source of one vendor keeps its word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccuracyRow {
    /// `header`, `body`, or `curve` where no reset was named.
    pub source_kind: String,
    pub source_name: String,
    pub provider: String,
    /// Refusals in which it was a candidate, and in which it was the selected one.
    pub offered: i64,
    pub selected: i64,
    pub kept: i64,
    pub refused_again: i64,
    pub released: i64,
    pub not_tested: i64,
    /// Refused again: by how much the next reset was later, of those that named one.
    pub again_p50_ms: Option<i64>,
    pub again_p95_ms: Option<i64>,
    /// Our own lateness after the resume instant.
    pub lateness_p50_ms: Option<i64>,
    pub lateness_p99_ms: Option<i64>,
    pub lateness_max_ms: Option<i64>,
}

/// A look at what admission knows of a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeRow {
    pub scope: ScopeKey,
    pub standing: ScopeStanding,
}
