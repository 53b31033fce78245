//! The domain rows: what goes into the store and what comes out of it.

use crate::failure::{Candidate, LimitKind};
use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A fresh UUID v7.
            #[must_use]
            pub fn fresh() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

id!(JobId);
id!(
    /// Random per process start: a restarted process is another worker.
    WorkerId
);
id!(HoldId);

/// A number from one database-wide sequence; the higher one wins, and a stale one writes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(pub i64);

/// What allowances, rates and concurrency belong to. `model` is empty for the whole account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ScopeKey {
    /// The configured identity, else the endpoint's host.
    pub provider: String,
    /// The configured account, else the provider entry's own name.
    pub account: String,
    pub model: String,
}

impl ScopeKey {
    /// The scope of the whole account.
    #[must_use]
    pub fn of_account(&self) -> Self {
        Self { provider: self.provider.clone(), account: self.account.clone(), model: String::new() }
    }
}

impl fmt::Display for ScopeKey {
    /// `provider/account/model`, or `provider/account` for the whole account.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.account)?;
        if self.model.is_empty() { Ok(()) } else { write!(f, "/{}", self.model) }
    }
}

/// A line of turns that share an admission fate.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LaneKey {
    pub queue: String,
    /// Empty: no tenant.
    pub tenant: String,
    pub scope: ScopeKey,
}

/// One send of one execution of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SendKey {
    pub job_id: JobId,
    pub fence: Fence,
    /// From 1 within its execution.
    pub n: u32,
}

/// The result of a guarded write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    Done,
    /// The fence or lease no longer stands; nothing was written.
    Void,
}

// -- Submitting

/// A validated job, ready to be accepted.
#[derive(Clone, Debug)]
pub struct NewJob {
    pub id: JobId,
    pub lane: LaneKey,
    /// The provider entry of the configuration that sends it.
    pub entry: String,
    pub idempotency_key: Option<String>,
    /// A digest of the canonical spec: tells a repeated submission from a conflicting one.
    pub digest: String,
    /// The spec as submitted, byte for byte.
    pub spec: String,
    /// −100..=100.
    pub priority: i16,
    /// `not_before`.
    pub due_ms: Option<i64>,
    pub deadline_ms: Option<i64>,
    pub labels: Vec<(String, String)>,
    pub retry_of: Option<JobId>,
    pub created_ms: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    Accepted(JobId),
    /// The same key with the same spec: the job accepted earlier.
    Duplicate(JobId),
    /// The same key with another spec: nothing was accepted.
    Conflict(JobId),
}

// -- Workers

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

#[derive(Clone, Copy, Debug)]
pub struct Rescue {
    pub now_ms: i64,
    pub limit: u32,
    /// How many lost executions in a row fail the turn (3).
    pub lost_in_a_row: u32,
    /// The requeue tier's bound (8 executions).
    pub executions: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rescued {
    pub workers: u32,
    pub requeued: u32,
    pub failed: u32,
}

// -- Claim and permits

/// What is configured of a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeConfig {
    pub scope: ScopeKey,
    /// ≥ 1; `None`: not limited by configuration.
    pub max_in_flight: Option<u32>,
}

#[derive(Clone, Debug)]
pub struct ClaimRequest {
    pub worker: WorkerId,
    /// Empty: all queues.
    pub queues: Vec<String>,
    /// Free slots: how many turns may be claimed at most.
    pub room: u32,
    pub now_ms: i64,
}

/// A turn in a worker's hand, with its permit.
#[derive(Clone, Debug)]
pub struct ClaimedTurn {
    pub job_id: JobId,
    pub fence: Fence,
    /// From 1: the turn's place in its job.
    pub seq: u32,
    pub lane: LaneKey,
    pub entry: String,
    /// The job's spec as submitted.
    pub spec: String,
    pub created_ms: i64,
    pub deadline_ms: Option<i64>,
    /// Lost and truly requeued executions of this turn so far.
    pub executions: u32,
    pub deferrals: u32,
    /// Consecutive repairs (continuations after cuts) so far.
    pub repairs: u32,
    /// The first deferral of this turn, while it is deferred again and again.
    pub waiting_since_ms: Option<i64>,
    pub grant: Grant,
}

/// A committed permit for one send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// When it was committed. One older than a second is asked for again.
    pub permit_ms: i64,
    /// The send is the probe of a hold.
    pub probe: Option<Probe>,
    /// The controlled number grows by answers: tell them through [`super::Store::answered`] at the first frame.
    pub ramping: bool,
    /// The scope's consecutive refusals at or after their resume instants.
    pub barren: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    pub hold_id: HoldId,
    /// The refusal that named the reset which this send tests.
    pub tests: Option<SendKey>,
    /// The hold's resume instant; lateness is the send's start minus this.
    pub resume_ms: i64,
}

#[derive(Clone, Copy, Debug)]
pub struct PermitRequest {
    pub job_id: JobId,
    pub fence: Fence,
    pub now_ms: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    Granted(Grant),
    /// A hold stands until then (`None`: until somebody lifts it).
    Closed {
        until_ms: Option<i64>,
    },
    /// A probe is out, or as many sends are in flight as may be: ask again after a change.
    Full,
    /// Somebody asked to cancel the job.
    Cancelled,
    /// The fence no longer stands.
    Void,
}

#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub job_id: JobId,
    pub fence: Fence,
    pub probe: Option<HoldId>,
    /// The probe is a call without a stream that has been silent for ten seconds: room for one more, not a lifted hold's
    /// whole ramp.
    pub silent: bool,
    pub now_ms: i64,
}

// -- What an execution writes

/// One send as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendRow {
    pub n: u32,
    pub permit_ms: i64,
    pub started_ms: i64,
    pub first_byte_ms: Option<i64>,
    pub ended_ms: i64,
    /// `answered`, `refused`, `failed`, `cut` or `cancelled`.
    pub outcome: String,
    pub http_status: Option<u16>,
    pub cause: Option<String>,
    pub class: Option<String>,
    /// The failure's error document, where it failed and was replaced.
    pub error: Option<String>,
    /// The wait after it, and whose it was: a source's name, or `curve`.
    pub wait_ms: Option<i64>,
    pub wait_source: Option<String>,
    /// Of the first send after a reset: the refusal that named it, and the instant promised.
    pub tests: Option<SendKey>,
    pub tests_resume_ms: Option<i64>,
}

/// The evidence of one refusal (or of a 5xx that named a wait).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceRow {
    pub n: u32,
    pub received_ms: i64,
    /// As named; null: no reset was named.
    pub reset_at_ms: Option<i64>,
    pub resume_at_ms: Option<i64>,
    pub skew_ms: i64,
    pub source_kind: Option<String>,
    pub source_name: Option<String>,
    pub raw: Option<String>,
    pub limit_kind: Option<LimitKind>,
    pub cause: String,
    pub rule: Option<String>,
    pub rules_version: u32,
    pub candidates: Vec<Candidate>,
}

/// What a refusal does to its scope.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusalRow {
    /// The account's scope for an allowance, the model's for a rate.
    pub scope: ScopeKey,
    pub cause: String,
    pub kind: Option<LimitKind>,
    /// The hold's end: max(named resume, refusal curve).
    pub until_ms: i64,
    /// Where `until_ms` was read: a header or pointer name, or `curve`.
    pub source: String,
    pub raw: Option<String>,
    /// The value of `barren` that this refusal was read with.
    pub barren: u32,
}

/// A send that failed and will be replaced within its execution.
#[derive(Clone, Debug)]
pub struct Setback {
    pub worker: WorkerId,
    pub job_id: JobId,
    pub fence: Fence,
    pub now_ms: i64,
    pub send: SendRow,
    pub evidence: Option<EvidenceRow>,
    pub refusal: Option<RefusalRow>,
    /// The probe right that the send held and now gives back or fails with.
    pub probe: Option<HoldId>,
    /// When the next send may be asked for.
    pub wait_until_ms: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    Queued,
    Running,
    RequiresAction,
    Succeeded,
    Failed,
    Cancelled,
    /// A word that a newer release wrote. It is read, and never written.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Completed,
    Truncated,
    Deferred,
    Requeued,
    Failed,
    Cancelled,
    Lost,
    /// A word that a newer release wrote. It is read, and never written.
    Unknown,
}

/// Tokens as the provider reported them; what it did not report is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
    pub total_tokens: Option<i64>,
}

/// The immutable record of one execution that sent something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    pub seq: u32,
    pub outcome: Outcome,
    /// `output_limit` or `stalled`, of a truncated one.
    pub cut: Option<String>,
    pub started_ms: i64,
    pub ended_ms: i64,
    /// Sends of this execution; `None`: not known.
    pub attempts: Option<u32>,
    /// The error document (JSON text).
    pub error: Option<String>,
    /// The response document (JSON text): see `agent::response`.
    pub response: Option<String>,
    pub usage: Usage,
    pub class: Option<String>,
    pub cause: Option<String>,
    pub code: Option<String>,
    pub http_status: Option<u16>,
    pub rule: Option<String>,
    pub rules_version: Option<u32>,
    /// `retry_in_place`, `defer`, `requeue`, `commit_partial`, `fail` or `stop`.
    pub decision: Option<String>,
    pub resume_at_ms: Option<i64>,
    pub skew_ms: Option<i64>,
    pub phase: Option<String>,
    pub request_id: Option<String>,
    pub provider_code: Option<String>,
    pub provider_type: Option<String>,
    pub finish_reason: Option<String>,
    /// The model as the provider named it.
    pub provider_model: Option<String>,
    pub received_ms: Option<i64>,
}

/// The end of one execution and what follows from it.
#[derive(Clone, Debug)]
pub struct Completion {
    pub worker: WorkerId,
    pub job_id: JobId,
    pub fence: Fence,
    pub now_ms: i64,
    pub record: TurnRecord,
    /// The final send. Replaced ones were written at their receipt. `None`: the execution ended before any send, or
    /// while it waited in place.
    pub send: Option<SendRow>,
    pub evidence: Option<EvidenceRow>,
    pub refusal: Option<RefusalRow>,
    /// The probe right it still holds: given back, or failed with by `refusal`.
    pub probe: Option<HoldId>,
    /// The send was answered and that was not told yet.
    pub answered: bool,
    pub next: Next,
}

#[derive(Clone, Debug)]
pub enum Next {
    /// Ready again behind the hold; consumes no execution.
    Behind,
    /// Ready again at `due_ms`.
    Again {
        due_ms: i64,
        counts: bool,
    },
    /// The job's next turn.
    Turn {
        due_ms: Option<i64>,
        repairs: u32,
        inbox: Vec<InboxRow>,
    },
    Final {
        state: JobState,
        result: Option<String>,
        error: Option<String>,
    },
}

/// What joins the transcript besides the input and the responses: continuation prompts, follow-ups, tool results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InboxRow {
    /// The turn before which it is read.
    pub seq: u32,
    /// `continuation`, `message` or `tool_result`.
    pub kind: String,
    /// JSON text.
    pub body: String,
    pub at_ms: i64,
}

/// What a job's next request is built from, besides its spec.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// `(seq, cut, response)` of its completed and truncated records, in order.
    pub responses: Vec<(u32, Option<String>, String)>,
    pub inbox: Vec<InboxRow>,
}

// -- By the clock

#[derive(Clone, Copy, Debug)]
pub struct Prune {
    /// Records of jobs that ended before this are deleted.
    pub records_before_ms: i64,
    /// Jobs that ended before this are deleted whole.
    pub jobs_before_ms: i64,
    pub limit: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    pub records: u64,
    pub jobs: u64,
}

// -- Steering

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelOutcome {
    /// It waited, and has ended.
    Cancelled,
    /// It runs; its worker was asked to stop.
    Asked,
    /// It had ended before.
    AlreadyFinal(JobState),
    Unknown,
}

#[derive(Clone, Debug)]
pub struct HoldRelease {
    pub id: HoldId,
    pub by: String,
    pub reason: Option<String>,
    pub now_ms: i64,
}

// -- Asking

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
