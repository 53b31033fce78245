//! What can be asked for, and the rows that answer.

use super::{EvidenceRow, SendRow, TurnRecord};
use super::{Fence, HoldId, JobId, JobState, LaneKey, Outcome, Pause, ScheduleId, ScopeKey, SendKey, WorkerId};
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
    /// Of these and the lists below: any of; empty: all.
    pub queues: Vec<String>,
    /// An empty name: jobs without a tenant.
    pub tenants: Vec<String>,
    pub providers: Vec<String>,
    pub accounts: Vec<String>,
    /// An empty name: scopes of whole accounts.
    pub models: Vec<String>,
    pub causes: Vec<String>,
    pub classes: Vec<String>,
    /// Jobs: what they wait for (`hold`, `parked`, `probe`, `backoff`, `not_before`, `in_place`, `line`, `paused`).
    pub whys: Vec<String>,
    /// Failures: our code, the HTTP status, the phase, the rule.
    pub codes: Vec<String>,
    pub http: Vec<u16>,
    pub phases: Vec<String>,
    pub rules: Vec<String>,
    /// Resets: names of candidates, verdicts of candidates, what became of the word (`kept`, `refused_again`, …).
    pub sources: Vec<String>,
    pub verdicts: Vec<String>,
    pub words: Vec<String>,
    /// All of.
    pub labels: Vec<(String, String)>,
    /// Jobs: only those fired by this schedule.
    pub schedule: Option<ScheduleId>,
    /// Jobs: at most this id. With `until_ms` it freezes a filter: what is submitted later is not in it.
    pub to_id: Option<JobId>,
    /// Jobs: `since_ms` and `until_ms` are of their ends, not of their acceptance.
    pub by_end: bool,
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
    Http,
    Code,
    Queue,
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
    /// The job itself is paused.
    pub paused: Option<Pause>,
    /// Its queue is paused.
    pub queue_paused: Option<Pause>,
    /// The schedule that fired it.
    pub schedule: Option<ScheduleId>,
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
    /// Of these, how many belong to jobs that succeeded later.
    pub recovered: i64,
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
    /// `kept`, `refused_again`, `released`, `cancelled` or `not_tested`.
    pub word: String,
    /// Refused again: the reset that the provider named then, minus the one it had named before.
    pub again_by_ms: Option<i64>,
    /// The hold that this refusal opened or dated.
    pub hold: Option<HoldId>,
    /// What was decided: `retry_in_place`, `defer`, `requeue`, `fail`, …
    pub decision: Option<String>,
    /// The first send after the reset.
    pub test: Option<SendKey>,
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
    /// What that refusal was answered with; `None`: not over HTTP, or its send is kept no longer.
    pub refusal_status: Option<u16>,
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
