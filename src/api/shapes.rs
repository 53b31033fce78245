//! The JSON that jobs, records and holds are shown as, by the command line and over HTTP alike. `docs/SHAPES.md` gives an
//! example of each, and a test reads the examples as these types.
//!
//! Instants are UTC Unix milliseconds (`*_ms`). What is not known is null. Documents that were stored as text (specs,
//! results, errors) stand as the JSON they are, digit for digit; one that is no JSON stands as a string.

mod audit;
mod figures;
mod history;
mod holds;
mod schedules;
mod transcript;

pub use audit::{Accuracy, Heard, Refusal, Reset, Tested};
pub use figures::{Queue, Stopped, Usage};
pub use history::{Count, Evidence, Failure, Record, Send, Source};
pub use holds::{CloseHold, Hold, HoldEvent};
pub use schedules::{Run, Schedule};
pub use transcript::{Entry, transcript};

use super::why::{self, Why};
use crate::store::{self, JobId, JobState, ScheduleId, ScopeKey};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A page of a list.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List<T> {
    pub items: Vec<T>,
    /// Asks for the next page; null: this is the last.
    pub next_cursor: Option<String>,
}

impl<T> List<T> {
    #[must_use]
    pub fn of<R>(page: store::Page<R>, shape: impl FnMut(R) -> T) -> Self {
        Self { items: page.items.into_iter().map(shape).collect(), next_cursor: page.next_cursor }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    pub provider: String,
    pub account: String,
    /// Null: the whole account.
    pub model: Option<String>,
}

impl From<ScopeKey> for Scope {
    fn from(scope: ScopeKey) -> Self {
        Self { provider: scope.provider, account: scope.account, model: Some(scope.model).filter(|m| !m.is_empty()) }
    }
}

/// Somebody stopped something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    pub since_ms: i64,
    pub by: String,
    pub reason: Option<String>,
}

impl From<store::Pause> for Pause {
    fn from(pause: store::Pause) -> Self {
        Self { since_ms: pause.since_ms, by: pause.by, reason: pause.reason }
    }
}

/// A job. `spec` and `result` are left out of lists of jobs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    pub id: JobId,
    /// As shown: `deferred` is queued behind a hold.
    pub state: String,
    pub queue: String,
    pub tenant: Option<String>,
    pub priority: i16,
    /// The provider entry that sends it.
    pub provider: String,
    pub scope: Scope,
    pub labels: BTreeMap<String, String>,
    pub created_ms: i64,
    pub finished_ms: Option<i64>,
    pub deadline_ms: Option<i64>,
    pub retry_of: Option<JobId>,
    /// Its live turn; null once it has ended.
    pub turn: Option<Turn>,
    /// Somebody stopped it, or its queue.
    pub paused: Option<Pause>,
    pub queue_paused: Option<Pause>,
    /// The schedule that fired it.
    pub schedule: Option<ScheduleId>,
    /// What it waits for; null where it does not wait.
    pub waits: Option<Why>,
    pub error: Option<Box<RawValue>>,
    /// Null until it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<Box<RawValue>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// From 1.
    pub seq: u32,
    /// Not before this (a backoff, `not_before`); null: at once, holds permitting.
    pub due_ms: Option<i64>,
    /// Lost and requeued so far.
    pub executions: u32,
    /// Put back behind a hold so far.
    pub deferrals: u32,
}

impl Job {
    /// A row of a list.
    #[must_use]
    pub fn listed(row: store::JobRow, now_ms: i64) -> Self {
        let waits = why::why(&row, now_ms);
        Self {
            id: row.id,
            state: state(row.state, row.deferred).to_owned(),
            queue: row.lane.queue,
            tenant: Some(row.lane.tenant).filter(|tenant| !tenant.is_empty()),
            priority: row.priority,
            provider: row.entry,
            scope: row.lane.scope.into(),
            labels: row.labels.into_iter().collect(),
            created_ms: row.created_ms,
            finished_ms: row.finished_ms,
            deadline_ms: row.deadline_ms,
            retry_of: row.retry_of,
            turn: row.seq.map(|seq| Turn {
                seq,
                due_ms: row.due_ms,
                executions: row.executions.unwrap_or(0),
                deferrals: row.deferrals.unwrap_or(0),
            }),
            paused: row.paused.map(Pause::from),
            queue_paused: row.queue_paused.map(Pause::from),
            schedule: row.schedule,
            waits,
            error: row.error.map(document),
            result: None,
            spec: None,
        }
    }

    /// With its result: a row of `results`.
    #[must_use]
    pub fn ended(mut row: store::JobRow, now_ms: i64) -> Self {
        let result = Some(row.result.take().map_or_else(|| RawValue::NULL.to_owned(), document));
        Self { result, ..Self::listed(row, now_ms) }
    }

    /// One job, whole.
    #[must_use]
    pub fn whole(mut row: store::JobRow, workers: &[store::WorkerRow], now_ms: i64) -> Self {
        let waits = why::why_among(&row, workers, now_ms);
        let spec = Some(document(std::mem::take(&mut row.spec)));
        Self { waits, spec, ..Self::ended(row, now_ms) }
    }
}

/// The state as shown.
#[must_use]
pub fn state(state: JobState, deferred: bool) -> &'static str {
    match state {
        JobState::Queued if deferred => "deferred",
        JobState::Queued => "queued",
        JobState::Running => "running",
        JobState::RequiresAction => "requires_action",
        JobState::Succeeded => "succeeded",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
        JobState::Unknown => "unknown",
    }
}

/// A line of a bulk submission that was accepted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ack {
    /// From 1.
    pub line: u64,
    pub id: JobId,
    /// The same job had been accepted before.
    pub duplicate: bool,
}

/// Messages that a job's transcript took: they are read before its turn `seq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    pub seq: u32,
}

/// A stored document as the JSON it is; what is no JSON stands as a string.
fn document(text: String) -> Box<RawValue> {
    if serde_json::from_str::<&RawValue>(&text).is_err() {
        return serde_json::value::to_raw_value(&text).unwrap_or_else(|_| RawValue::NULL.to_owned());
    }
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A member that is there, null included: only an absent one is `None`.
fn present<'de, D: serde::Deserializer<'de>>(member: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(member).map(Some)
}
