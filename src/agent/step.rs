//! What a job does next.

use super::JobSpec;
use crate::provider::{Answer, Call};
use crate::recovery::Then;
use crate::store::{History, InboxRow, JobState};

/// How an execution ended, as far as the job's next step depends on it.
#[derive(Clone, Debug)]
pub enum Ended<'a> {
    Completed(&'a Answer),
    /// A committed partial: its text, why it was cut (`output_limit` or `stalled`), and what follows.
    Truncated {
        text: &'a str,
        cut: &'a str,
        then: Then,
    },
}

/// What follows.
#[derive(Clone, Debug)]
pub enum Step {
    Final { state: JobState, result: Option<String>, error: Option<String> },
    Turn { due_ms: Option<i64>, repairs: u32, inbox: Vec<InboxRow> },
}

/// The job's next request, from its spec and what has been said so far.
#[must_use]
pub fn next_call(_spec: &JobSpec, _history: &History) -> Call {
    unreachable!("not written yet")
}

/// The step after an ended turn. `seq` and `repairs` are the ended turn's.
#[must_use]
pub fn next_step(
    _spec: &JobSpec,
    _history: &History,
    _ended: &Ended<'_>,
    _seq: u32,
    _repairs: u32,
    _now_ms: i64,
) -> Step {
    unreachable!("not written yet")
}
