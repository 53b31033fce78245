//! What goes into each verb of the store, and what it answers.

use super::{EvidenceRow, InboxRow, JobState, SendRow, TurnRecord};
use super::{Fence, HoldId, JobId, LaneKey, ScheduleId, ScopeKey, SendKey, WorkerId};
use crate::failure::LimitKind;

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
    /// What it takes over of another job's transcript (`seq` below [`NewJob::first_seq`]).
    pub carried: Vec<InboxRow>,
    /// Its first turn's place: 1, or behind what it takes over.
    pub first_seq: u32,
    /// `at_most_once`: a turn that is lost while it has a permit may have been sent, and fails its job.
    pub once: bool,
    /// The schedule that fired it.
    pub schedule: Option<ScheduleId>,
    pub created_ms: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    Accepted(JobId),
    /// The same key with the same spec, or a retry of what was retried: the job accepted earlier.
    Duplicate(JobId),
    /// The same key with another spec: nothing was accepted.
    Conflict(JobId),
}

// -- Workers

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
    /// Scopes that are left to other workers: nothing of them is claimed.
    pub without: Vec<ScopeKey>,
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
    /// Something joined its transcript from outside: its history must be read for a first turn, too.
    pub told: bool,
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
    /// Succeeded, unless a message came in meanwhile: then it goes on with its next turn, at once.
    FinalUnlessTold {
        result: Option<String>,
    },
}

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
