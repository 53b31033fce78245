//! The closed vocabularies as they are stored: the same words as in JSON.

use crate::failure::LimitKind;
use crate::store::{CatchUp, JobState, Outcome, Overlap};

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
        Outcome::Unknown => "unknown",
    }
}

/// A word of a newer release is unknown here, and hides no neighbour.
pub(super) fn outcome_of(text: &str) -> Outcome {
    match text {
        "completed" => Outcome::Completed,
        "truncated" => Outcome::Truncated,
        "deferred" => Outcome::Deferred,
        "requeued" => Outcome::Requeued,
        "failed" => Outcome::Failed,
        "cancelled" => Outcome::Cancelled,
        "lost" => Outcome::Lost,
        _ => Outcome::Unknown,
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
        JobState::Unknown => "unknown",
    }
}

/// A word of a newer release is unknown here, and hides no neighbour.
pub(super) fn state_of(text: &str) -> JobState {
    match text {
        "queued" => JobState::Queued,
        "running" => JobState::Running,
        "requires_action" => JobState::RequiresAction,
        "succeeded" => JobState::Succeeded,
        "failed" => JobState::Failed,
        "cancelled" => JobState::Cancelled,
        _ => JobState::Unknown,
    }
}

pub(super) fn catch_up(catch_up: CatchUp) -> &'static str {
    match catch_up {
        CatchUp::None => "none",
        CatchUp::Last => "last",
        CatchUp::All => "all",
    }
}

pub(super) fn overlap(overlap: Overlap) -> &'static str {
    match overlap {
        Overlap::Skip => "skip",
        Overlap::Queue => "queue",
    }
}

/// The one way a turn's place in its lane is reckoned: a step of priority is worth a minute of waiting, so that waiting
/// ages a turn by one step a minute.
pub(super) fn rank_ms(ready_ms: i64, priority: i64) -> i64 {
    ready_ms.saturating_sub(priority.saturating_mul(60_000))
}
