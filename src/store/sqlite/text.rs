//! The closed vocabularies as they are stored: the same words as in JSON.

use crate::failure::LimitKind;
use crate::store::{JobState, Outcome};

pub(super) fn limit_kind(kind: LimitKind) -> &'static str {
    match kind {
        LimitKind::Requests => "requests",
        LimitKind::Tokens => "tokens",
        LimitKind::MonthlyUsage => "monthly_usage",
    }
}

pub(super) fn limit_kind_of(text: &str) -> Option<LimitKind> {
    match text {
        "requests" => Some(LimitKind::Requests),
        "tokens" => Some(LimitKind::Tokens),
        "monthly_usage" => Some(LimitKind::MonthlyUsage),
        _ => None,
    }
}

pub(super) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::Truncated => "truncated",
        Outcome::Deferred => "deferred",
        Outcome::Requeued => "requeued",
        Outcome::Failed => "failed",
        Outcome::Cancelled => "cancelled",
        Outcome::Lost => "lost",
    }
}

pub(super) fn outcome_of(text: &str) -> Option<Outcome> {
    match text {
        "completed" => Some(Outcome::Completed),
        "truncated" => Some(Outcome::Truncated),
        "deferred" => Some(Outcome::Deferred),
        "requeued" => Some(Outcome::Requeued),
        "failed" => Some(Outcome::Failed),
        "cancelled" => Some(Outcome::Cancelled),
        "lost" => Some(Outcome::Lost),
        _ => None,
    }
}

pub(super) fn state(state: JobState) -> &'static str {
    match state {
        JobState::Queued => "queued",
        JobState::Running => "running",
        JobState::RequiresAction => "requires_action",
        JobState::Succeeded => "succeeded",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
    }
}

pub(super) fn state_of(text: &str) -> Option<JobState> {
    match text {
        "queued" => Some(JobState::Queued),
        "running" => Some(JobState::Running),
        "requires_action" => Some(JobState::RequiresAction),
        "succeeded" => Some(JobState::Succeeded),
        "failed" => Some(JobState::Failed),
        "cancelled" => Some(JobState::Cancelled),
        _ => None,
    }
}

/// The one way a turn's place in its lane is reckoned: a step of priority is worth a minute of waiting, so that waiting
/// ages a turn by one step a minute.
pub(super) fn rank_ms(ready_ms: i64, priority: i64) -> i64 {
    ready_ms.saturating_sub(priority.saturating_mul(60_000))
}
