//! Jobs that are submitted by the calendar.

use super::{Pause, document};
use crate::store::{self, CatchUp, JobId, Overlap, ScheduleId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A schedule.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    pub id: ScheduleId,
    pub name: String,
    /// 5 fields, or 6 with seconds first.
    pub cron: String,
    /// The same in words; null where this release cannot read it.
    pub in_words: Option<String>,
    /// An IANA zone.
    pub zone: String,
    /// `none`, `last` or `all`: what becomes of instants that passed while nobody could fire.
    pub catch_up: CatchUp,
    /// `skip` or `queue`: what becomes of an instant while the job of an earlier one lives.
    pub overlap: Overlap,
    pub paused: Option<Pause>,
    /// Its next instant; null: none, or it is paused.
    pub next_ms: Option<i64>,
    /// The next three instants.
    pub upcoming_ms: Vec<i64>,
    pub created_ms: i64,
    /// The job that it submits.
    pub job: Box<RawValue>,
    /// Its latest runs, newest first, at most 20.
    pub runs: Vec<Run>,
}

impl Schedule {
    /// `in_words` and `upcoming_ms` are the calendar's.
    #[must_use]
    pub fn of(row: store::ScheduleRow, in_words: Option<String>, upcoming_ms: Vec<i64>) -> Self {
        Self {
            id: row.id,
            name: row.name,
            cron: row.cron,
            in_words,
            zone: row.zone,
            catch_up: row.catch_up,
            overlap: row.overlap,
            next_ms: row.next_ms.filter(|_| row.paused.is_none()),
            paused: row.paused.map(Pause::from),
            upcoming_ms,
            created_ms: row.created_ms,
            job: document(row.spec),
            runs: row.runs.into_iter().map(Run::from).collect(),
        }
    }
}

/// One nominal instant of a schedule, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    pub nominal_ms: i64,
    pub fired_ms: i64,
    /// `submitted`, `skipped_overlap`, `skipped_missed`, `refused` or `by_hand`.
    pub outcome: String,
    pub job: Option<JobId>,
    /// The job's state, where there is one.
    pub job_state: Option<String>,
    /// Why it was refused.
    pub error: Option<String>,
}

impl From<store::RunRow> for Run {
    fn from(row: store::RunRow) -> Self {
        Self {
            nominal_ms: row.nominal_ms,
            fired_ms: row.fired_ms,
            outcome: row.outcome,
            job: row.job,
            job_state: row.job_state,
            error: row.error,
        }
    }
}
