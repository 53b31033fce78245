//! The codes of error documents, all of them: what `code` says of a job or a record that failed.
//!
//! A code is written nowhere else; each has its page in `docs/failures`, which a test compares with [`ALL`].

/// A failure at the model boundary: class, cause and record say which.
pub const MODEL_INCOMPLETE: &str = "model_incomplete";
/// Somebody cancelled the job.
pub const MODEL_CANCELLED: &str = "model_cancelled";
/// The job's deadline passed before a model call failed.
pub const DEADLINE_EXCEEDED: &str = "deadline_exceeded";
/// The worker's lease lapsed while it held the turn.
pub const WORKER_LOST: &str = "worker_lost";
/// The worker was stopped before the call ended.
pub const WORKER_DRAINED: &str = "worker_drained";
/// The job has had all of its turns.
pub const TURN_LIMIT: &str = "turn_limit";
/// The transcript outgrew what is sent again.
pub const TRANSCRIPT_LIMIT: &str = "transcript_limit";
/// The worker that claimed the turn has no such recovery policy.
pub const POLICY_UNKNOWN: &str = "policy_unknown";
/// The stored job is not one that this release can read.
pub const SPEC_UNREADABLE: &str = "spec_unreadable";

/// Every code that this release writes.
pub const ALL: [&str; 9] = [
    MODEL_INCOMPLETE,
    MODEL_CANCELLED,
    DEADLINE_EXCEEDED,
    WORKER_LOST,
    WORKER_DRAINED,
    TURN_LIMIT,
    TRANSCRIPT_LIMIT,
    POLICY_UNKNOWN,
    SPEC_UNREADABLE,
];
