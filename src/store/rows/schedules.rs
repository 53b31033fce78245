//! Jobs that are submitted by the calendar.

use super::{JobId, NewJob, Pause, ScheduleId};
use serde::{Deserialize, Serialize};

/// What to do about instants that passed while nobody could fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    None,
    Last,
    All,
}

/// What to do at an instant while the job of an earlier one lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    Skip,
    Queue,
}

/// A schedule as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleRow {
    pub id: ScheduleId,
    /// Unique.
    pub name: String,
    /// 5 fields, or 6 with seconds first.
    pub cron: String,
    /// An IANA zone.
    pub zone: String,
    /// The job to submit, as JSON text.
    pub spec: String,
    pub catch_up: CatchUp,
    pub overlap: Overlap,
    pub paused: Option<Pause>,
    /// The nominal instant of its next firing; `None`: its expression names none any more.
    pub next_ms: Option<i64>,
    pub created_ms: i64,
    /// Its latest runs, newest first (at most 20).
    pub runs: Vec<RunRow>,
}

/// One nominal instant of a schedule, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRow {
    pub nominal_ms: i64,
    pub fired_ms: i64,
    /// `submitted`, `skipped_overlap`, `skipped_missed`, `refused` (the job was not acceptable) or `by_hand`.
    pub outcome: String,
    pub job: Option<JobId>,
    /// The job's state, where there is one.
    pub job_state: Option<String>,
    /// Why it was refused.
    pub error: Option<String>,
}

/// What is stored of a new or changed schedule.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    pub id: ScheduleId,
    pub name: String,
    pub cron: String,
    pub zone: String,
    pub spec: String,
    pub catch_up: CatchUp,
    pub overlap: Overlap,
    pub next_ms: Option<i64>,
    pub created_ms: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduled {
    Added(ScheduleId),
    /// The very same schedule stood there already.
    Unchanged(ScheduleId),
    /// Another one has this name.
    Conflict(ScheduleId),
}

/// One firing: written only where the schedule's `next_ms` still is `expected_next_ms` (`None`: by hand, `next_ms` stays),
/// so that an instant fires once however many processes try.
///
/// A `next_ms` before the expected one takes back what a clock that was ahead did: instants after `now_ms` that were passed
/// over without a job are forgotten. One that has its job keeps it.
#[derive(Clone, Debug)]
pub struct Fire {
    pub schedule: ScheduleId,
    pub expected_next_ms: Option<i64>,
    /// From here on.
    pub next_ms: Option<i64>,
    pub firings: Vec<Firing>,
    pub now_ms: i64,
}

/// What is to happen at one nominal instant.
#[derive(Clone, Debug)]
pub struct Firing {
    pub nominal_ms: i64,
    pub what: FiringKind,
}

#[derive(Clone, Debug)]
pub enum FiringKind {
    /// Submit this job; with `Overlap::Skip` unless a job of this schedule lives (then `skipped_overlap`).
    Submit(Box<NewJob>),
    /// It passed while nobody could fire, and is not caught up with.
    Missed,
    /// The stored spec is not acceptable any more; why.
    Refused(String),
}

/// What came of a [`Fire`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fired {
    /// One a firing, in order.
    Done(Vec<RunRow>),
    /// Another process was faster, or the schedule is gone or paused; nothing was written.
    Void,
}
