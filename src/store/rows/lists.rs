//! What can be asked for, and the rows that answer.

use super::{EvidenceRow, SendRow, TurnRecord};
use super::{Fence, HoldId, JobId, JobState, LaneKey, Outcome, ScopeKey, SendKey, WorkerId};
use crate::failure::LimitKind;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRow {
    pub id: WorkerId,
    /// Empty: all queues.
    pub queues: Vec<String>,
    pub started_ms: i64,
    pub heartbeat_ms: i64,
    pub lease_ms: i64,
    pub concurrency: u32,
}

/// One set of parameters for every list; what a list does not filter by, it ignores (its callers refuse it by name).
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Any of; empty: all. `deferred` and `waiting` are derived: queued behind a hold, and queued at all.
    pub states: Vec<String>,
    pub queue: Option<String>,
    pub tenant: Option<String>,
    pub provider: Option<String>,
    pub account: Option<String>,
    pub model: Option<String>,
    pub causes: Vec<String>,
    pub classes: Vec<String>,
    pub source: Option<String>,
    pub verdict: Option<String>,
    pub labels: Vec<(String, String)>,
    pub include_retried: bool,
    /// Holds: the ended ones too.
    pub include_ended: bool,
    pub since_ms: Option<i64>,
    pub until_ms: Option<i64>,
    /// 0: the list's default; at most 1,000.
    pub limit: u32,
    /// As handed out by the page before.
    pub cursor: Option<String>,
    pub now_ms: i64,
}

#[derive(Clone, Debug)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next_cursor: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Cause,
    Class,
    Model,
    Provider,
    Account,
    Hour,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRow {
    pub id: JobId,
    pub state: JobState,
    /// Queued while its scope is held.
    pub deferred: bool,
    pub lane: LaneKey,
    pub entry: String,
    pub priority: i16,
    pub labels: Vec<(String, String)>,
    pub spec: String,
    pub result: Option<String>,
    pub error: Option<String>,
    pub created_ms: i64,
    pub finished_ms: Option<i64>,
    pub deadline_ms: Option<i64>,
    pub retry_of: Option<JobId>,
    /// Of its live turn.
    pub seq: Option<u32>,
    pub due_ms: Option<i64>,
    pub executions: Option<u32>,
    pub deferrals: Option<u32>,
    /// A wait in place, where it is in one.
    pub wait_until_ms: Option<i64>,
    /// The hold that keeps it.
    pub hold: Option<HoldRow>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnView {
    pub fence: Fence,
    pub record: TurnRecord,
    /// In order, the final one last.
    pub sends: Vec<SendRow>,
    pub evidence: Vec<EvidenceRow>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureRow {
    pub job_id: JobId,
    pub fence: Fence,
    /// Set for a replaced send: it was recovered within its execution.
    pub n: Option<u32>,
    pub lane: LaneKey,
    pub ended_ms: i64,
    pub seq: u32,
    pub outcome: Option<Outcome>,
    pub decision: Option<String>,
    pub class: Option<String>,
    pub cause: Option<String>,
    pub code: Option<String>,
    pub http_status: Option<u16>,
    pub attempts: Option<u32>,
    pub rule: Option<String>,
    pub request_id: Option<String>,
    pub error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountRow {
    pub value: String,
    pub failed: i64,
    pub first_ms: i64,
    pub last_ms: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResetRow {
    pub key: SendKey,
    pub lane: LaneKey,
    pub evidence: EvidenceRow,
    /// The first send after the resume instant, where one has been.
    pub tested_ms: Option<i64>,
    /// Its start minus the resume instant promised; never negative but by a release.
    pub lateness_ms: Option<i64>,
    /// `kept`, `refused_again`, `released` or `not_tested`.
    pub word: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HoldRow {
    pub id: HoldId,
    pub scope: ScopeKey,
    pub cause: String,
    pub kind: Option<LimitKind>,
    pub opened_ms: i64,
    /// `None`: until somebody lifts it.
    pub until_ms: Option<i64>,
    pub source: String,
    pub raw: Option<String>,
    /// The refusal that `until_ms` was read from.
    pub refusal: Option<SendKey>,
    pub extended: u32,
    pub barren: u32,
    /// The turn that probes it now.
    pub probe: Option<JobId>,
    pub ended_ms: Option<i64>,
    /// `answered`, `released`, …
    pub end: Option<String>,
    /// Turns that wait behind it (counted up to 10,000).
    pub waiting: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overview {
    pub ready: i64,
    pub running: i64,
    pub deferred: i64,
    pub succeeded: i64,
    pub failed: i64,
    pub cancelled: i64,
    pub holds: i64,
    /// The earliest end of an open hold.
    pub next_resume_ms: Option<i64>,
}
