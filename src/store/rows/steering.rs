//! What people do to jobs, queues and holds, and what comes of it.

use super::{HoldId, JobId, JobState, ScopeKey};
use serde::{Deserialize, Serialize};

/// Somebody stopped something, until somebody lets it go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    pub since_ms: i64,
    /// Who: `command line`, `api`, or a token's name.
    pub by: String,
    pub reason: Option<String>,
}

/// Messages that join a job's transcript before its next turn.
#[derive(Clone, Debug)]
pub struct NewMessages {
    pub job: JobId,
    /// Makes the posting repeatable; unique within the job.
    pub key: Option<String>,
    /// JSON text, each a message (`role`, `content`), in order.
    pub messages: Vec<String>,
    /// The last turn that the job may have; `None`: no matter which one reads them.
    pub last_turn: Option<u32>,
    pub now_ms: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// Read before the turn `seq`: the waiting one, or the one after the running one. Also the one after a waiting turn
    /// that goes on from a cut, whose continuation is read alone, and never before what was posted earlier.
    Accepted {
        seq: u32,
    },
    /// The same key with the same messages: posted before.
    Duplicate {
        seq: u32,
    },
    /// The same key with other messages: nothing was posted.
    Conflict,
    /// It has ended, or (`Cancelled`) was asked to stop: nobody would read them.
    AlreadyFinal(JobState),
    /// They would be read behind [`NewMessages::last_turn`], which is never: nothing was posted.
    NoTurnLeft,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    Deleted,
    /// It has not ended; cancel it first.
    NotFinal(JobState),
    Unknown,
}

/// What became of a waiting turn that somebody moved (paused, resumed, requeued, given another priority).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteerOutcome {
    Done,
    /// It was so already, or there was nothing to move.
    Unchanged,
    AlreadyFinal(JobState),
    Unknown,
}

/// A way to move live jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steer {
    /// No further turn starts; what is in hand finishes; deadlines run.
    Pause(Pause),
    Resume,
    /// Its own backoff ends now. Holds stand, and so does `not_before`.
    Requeue,
    Reprioritise(i16),
}

/// A scope closed by hand.
#[derive(Clone, Debug)]
pub struct HoldClose {
    pub scope: ScopeKey,
    /// `None`: until somebody releases it.
    pub until_ms: Option<i64>,
    pub by: String,
    pub reason: Option<String>,
    pub now_ms: i64,
}

/// Something that befell a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldEventRow {
    pub hold: HoldId,
    pub at_ms: i64,
    /// `opened`, `extended`, `refused_again`, `concurrent_refusal`, `probe_started`, `probe_returned`, `reopened`,
    /// `released`, `closed_by_hand`.
    pub event: String,
    pub until_ms: Option<i64>,
    pub job: Option<JobId>,
    pub by: Option<String>,
    pub reason: Option<String>,
}
