//! The decision table of the failure contract, §5: one function for every policy, since a policy is numbers.

use super::hold::{Refusal, lengthened, not_before, refusal, refused_until, retried_in_place};
use super::policy::Numbers;
use super::{Decision, Delivery, OnTruncated, Policy, Situation, Spoken, Then};
use crate::failure::{Cause, Class, Failure, Phase};

/// What to do about a failure. Total: every class and cause has its row. Every instant that is named lies at or after
/// now and the resume that the failure named, and before the deadline.
#[must_use]
pub fn recover(failure: &Failure, situation: &Situation, policy: &Policy) -> Decision {
    let n = policy.numbers();
    match row(failure) {
        Row::Cancelled => Decision::Stop,
        Row::Terminal => Decision::Fail,
        Row::Cap => after_cap(situation, n),
        Row::Rate => commit_or(after_rate(failure, situation, n), situation, n),
        Row::SpentWindow => commit_or(after_spent_window(failure, situation, n), situation, n),
        Row::Transient => commit_or(after_transient(failure, situation, n), situation, n),
    }
}

/// The rows of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Cancelled,
    /// Finish by cap.
    Cap,
    Rate,
    SpentWindow,
    /// 5xx, transport, timeout, incomplete.
    Transient,
    Terminal,
}

fn row(failure: &Failure) -> Row {
    match failure.cause {
        Cause::Cancelled => return Row::Cancelled,
        Cause::OutputLimit => return Row::Cap,
        Cause::Deadline | Cause::ContextLimit => return Row::Terminal,
        Cause::RateLimit | Cause::UsageLimit | Cause::ProviderError | Cause::Transport | Cause::Incomplete => {}
    }
    match refusal(failure) {
        Refusal::Rate => return Row::Rate,
        Refusal::SpentWindow => return Row::SpentWindow,
        Refusal::SpentPurse => return Row::Terminal,
        Refusal::None => {}
    }
    match failure.class {
        Class::Timeout | Class::Unavailable | Class::ProviderError => {
            if failure.retryable {
                Row::Transient
            } else {
                Row::Terminal
            }
        }
        // The first two are refusals and were met above.
        Class::RateLimit
        | Class::Quota
        | Class::Authentication
        | Class::ContentFiltered
        | Class::ContextWindowExceeded
        | Class::InvalidRequest => Row::Terminal,
    }
}

fn after_rate(failure: &Failure, situation: &Situation, n: &Numbers) -> Decision {
    if forbidden_to_repeat(failure, situation, n, Repeats::ARefusal) {
        return Decision::Fail;
    }
    let until_ms = refused_until(failure, situation, n);
    let wait_ms = until_ms.saturating_sub(situation.now_ms);
    let in_place = retried_in_place(failure, n)
        && situation.sends < n.refusal.limit
        && wait_ms <= n.near_ms
        && within_turn(wait_ms, situation);
    if in_place { retry_in_place(wait_ms, situation) } else { defer(until_ms, situation, n) }
}

fn after_spent_window(failure: &Failure, situation: &Situation, n: &Numbers) -> Decision {
    if forbidden_to_repeat(failure, situation, n, Repeats::ARefusal) {
        return Decision::Fail;
    }
    defer(refused_until(failure, situation, n), situation, n)
}

fn after_transient(failure: &Failure, situation: &Situation, n: &Numbers) -> Decision {
    if forbidden_to_repeat(failure, situation, n, Repeats::AFault) {
        return Decision::Fail;
    }
    let wait_ms = lengthened(n.transient.wait_ms(situation.sends), situation, n);
    let wait_ms = not_before(failure, situation.now_ms, wait_ms).saturating_sub(situation.now_ms);
    let in_place = situation.sends < n.transient.limit && wait_ms <= n.near_ms && within_turn(wait_ms, situation);
    if in_place { retry_in_place(wait_ms, situation) } else { requeue(failure, situation, n) }
}

fn after_cap(situation: &Situation, n: &Numbers) -> Decision {
    match situation.spoken {
        Spoken::Nothing | Spoken::ToolCall => return Decision::Fail,
        Spoken::Text => {}
    }
    // Half a document of a promised shape is no document, and cannot be continued by prose either.
    if situation.structured_output {
        return Decision::Fail;
    }
    match situation.on_truncated {
        OnTruncated::Fail => Decision::Fail,
        OnTruncated::Accept => Decision::CommitPartial { then: Then::Accept },
        OnTruncated::Continue if !n.commit_partials => Decision::CommitPartial { then: Then::Accept },
        OnTruncated::Continue => {
            if situation.repairs < n.repairs && before_deadline(situation.now_ms, situation) {
                Decision::CommitPartial { then: Then::Continue { not_before_ms: None } }
            } else {
                Decision::Fail
            }
        }
    }
}

/// What becomes of a broken send that had spoken, where `otherwise` would have been done had it not.
///
/// Where nothing may be committed (a promised shape, a tool call begun, a spent budget of repairs), the turn is issued
/// again as `otherwise` says, and what it had said is void.
fn commit_or(otherwise: Decision, situation: &Situation, n: &Numbers) -> Decision {
    let not_before_ms = match otherwise {
        Decision::RetryInPlace { wait_ms } => situation.now_ms.saturating_add(wait_ms),
        Decision::Defer { until_ms } | Decision::Requeue { until_ms } => until_ms,
        Decision::CommitPartial { .. } | Decision::Fail | Decision::Stop => return otherwise,
    };
    match situation.spoken {
        Spoken::Nothing => otherwise,
        _ if !n.commit_partials => Decision::Fail,
        Spoken::Text if !situation.structured_output && situation.repairs < n.repairs => {
            Decision::CommitPartial { then: Then::Continue { not_before_ms: Some(not_before_ms) } }
        }
        Spoken::Text | Spoken::ToolCall => otherwise,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeats {
    ARefusal,
    AFault,
}

/// Under `at_most_once` a send is repeated only where the provider cannot have worked on it: it was never reached, or it
/// said no before it began. What stands inside a 2xx was said after that, whatever status it states of itself.
fn forbidden_to_repeat(failure: &Failure, situation: &Situation, n: &Numbers, repeats: Repeats) -> bool {
    match situation.delivery {
        Delivery::AtLeastOnce => false,
        Delivery::AtMostOnce => {
            let unreached = failure.cause == Cause::Transport && failure.phase == Some(Phase::Connect);
            let declined = failure.http_status.is_some_and(|status| {
                !failure.inside_2xx
                    && !(200..300).contains(&status)
                    && (repeats == Repeats::ARefusal || n.unsent_statuses.contains(&status))
            });
            situation.spoken != Spoken::Nothing || !(unreached || declined)
        }
    }
}

fn retry_in_place(wait_ms: i64, situation: &Situation) -> Decision {
    if before_deadline(situation.now_ms.saturating_add(wait_ms), situation) {
        Decision::RetryInPlace { wait_ms }
    } else {
        Decision::Fail
    }
}

/// Puts a refused turn back. Only the two outer bounds and the deadline fail it.
fn defer(until_ms: i64, situation: &Situation, n: &Numbers) -> Decision {
    let since_ms = situation.waiting_since_ms.unwrap_or(situation.now_ms);
    let within = situation.deferrals < n.max_deferrals && until_ms.saturating_sub(since_ms) <= n.max_wait_ms;
    if within && before_deadline(until_ms, situation) { Decision::Defer { until_ms } } else { Decision::Fail }
}

/// Puts a turn back for a later execution, where one is left.
fn requeue(failure: &Failure, situation: &Situation, n: &Numbers) -> Decision {
    let execution = situation.executions.saturating_add(1);
    // The wait in place is a floor, lest numbers of somebody's own make the last send the most eager one.
    let curve_ms = n.requeue.wait_ms(execution).max(n.transient.wait_ms(situation.sends));
    let wait_ms = lengthened(curve_ms, situation, n);
    let until_ms = not_before(failure, situation.now_ms, wait_ms);
    let within = execution < n.requeue.limit && until_ms.saturating_sub(situation.now_ms) <= n.max_wait_ms;
    if within && before_deadline(until_ms, situation) { Decision::Requeue { until_ms } } else { Decision::Fail }
}

fn within_turn(wait_ms: i64, situation: &Situation) -> bool {
    situation.turn_left_ms.is_none_or(|left_ms| wait_ms < left_ms)
}

fn before_deadline(at_ms: i64, situation: &Situation) -> bool {
    situation.deadline_ms.is_none_or(|deadline_ms| at_ms < deadline_ms)
}
