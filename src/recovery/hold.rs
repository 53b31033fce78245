//! How long a refusal closes its scope, and when a failed send may be made again at the earliest. One arithmetic for
//! the hold and for the decision, so that the two cannot name different instants.

use super::policy::{Numbers, doubled};
use super::{Policy, Situation};
use crate::failure::{Allowance, Cause, Class, Failure, Verdict};
use std::time::Duration;

/// Until when a refusal closes its scope, whatever is decided for the job that met it: a rate refusal, or a spent
/// window that names its reset. `None`: no refusal, or an allowance that no wait refills (it parks, it does not hold).
///
/// The latest of the named resume, the refusal curve at `situation.barren`, and the policy's least wait in place.
#[must_use]
pub fn hold_until(failure: &Failure, situation: &Situation, policy: &Policy) -> Option<i64> {
    match refusal(failure) {
        Refusal::Rate | Refusal::SpentWindow => Some(refused_until(failure, situation, policy.numbers())),
        Refusal::SpentPurse | Refusal::None => None,
    }
}

/// Whose wait an instant is: the name of the header or body member it was read from, or `curve` where our own was longer.
#[must_use]
pub fn wait_source(failure: &Failure, until_ms: i64) -> &str {
    if failure.resume_at_ms != Some(until_ms) {
        return "curve";
    }
    let selected = failure.evidence.iter().find(|candidate| candidate.verdict == Verdict::Selected);
    selected.map_or("curve", |candidate| candidate.name.as_str())
}

/// What kind of refusal a failure is, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Rate,
    /// An allowance that comes back at a named instant.
    SpentWindow,
    /// An allowance that no wait refills, or none that was named.
    SpentPurse,
    None,
}

pub(super) fn refusal(failure: &Failure) -> Refusal {
    match failure.cause {
        Cause::Cancelled | Cause::Deadline | Cause::OutputLimit | Cause::ContextLimit | Cause::Incomplete => {
            return Refusal::None;
        }
        Cause::RateLimit | Cause::UsageLimit | Cause::ProviderError | Cause::Transport => {}
    }
    match failure.class {
        Class::RateLimit => Refusal::Rate,
        Class::Quota => match (failure.allowance, failure.resume_at_ms) {
            (Some(Allowance::Window) | None, Some(_)) => Refusal::SpentWindow,
            (Some(Allowance::Purse), _) | (_, None) => Refusal::SpentPurse,
        },
        Class::Authentication
        | Class::ContentFiltered
        | Class::ContextWindowExceeded
        | Class::InvalidRequest
        | Class::Timeout
        | Class::Unavailable
        | Class::ProviderError => Refusal::None,
    }
}

/// The instant a refusal names or earns; at or after now.
pub(super) fn refused_until(failure: &Failure, situation: &Situation, n: &Numbers) -> i64 {
    let used_up = situation.sends >= n.refusal.limit && n.requeue_after_tier && failure.resume_at_ms.is_none();
    let step = if used_up { situation.barren.max(n.barren_steps) } else { situation.barren };
    let curve_ms = lengthened(refusal_curve_ms(step, failure.per_day, n), situation, n);
    let wait_ms = curve_ms.max(least_in_place_ms(failure, situation, n));
    not_before(failure, situation.now_ms, wait_ms)
}

/// Whether this policy would retry this rate refusal in place, its count of sends apart.
pub(super) fn retried_in_place(failure: &Failure, n: &Numbers) -> bool {
    let of_status = n.in_place.statuses.is_empty()
        || failure.http_status.is_some_and(|status| n.in_place.statuses.contains(&status));
    of_status && !(n.in_place.stopped_by_retry_after && failure.retry_after_stops_strict)
}

/// `now + wait`, or the named resume where that is later: a named wait is a floor, never undercut.
pub(super) fn not_before(failure: &Failure, now_ms: i64, wait_ms: i64) -> i64 {
    let own_ms = now_ms.saturating_add(wait_ms);
    failure.resume_at_ms.map_or(own_ms, |resume_ms| resume_ms.max(own_ms))
}

/// Our own curve with its jitter: never shorter, at most `jitter_share` longer. A jitter out of its range counts as the
/// nearest end of it.
pub(super) fn lengthened(curve_ms: i64, situation: &Situation, n: &Numbers) -> i64 {
    let jitter = if situation.jitter.is_finite() { situation.jitter.clamp(0.0, 1.0) } else { 0.0 };
    let curve = Duration::from_millis(u64::try_from(curve_ms).unwrap_or(0));
    // The share was validated to be within 0 and 1, so that the product cannot overflow.
    let extra = curve.mul_f64(n.jitter_share * jitter).as_millis();
    curve_ms.saturating_add(i64::try_from(extra).unwrap_or(0))
}

/// One curve per scope: along the refusal tier while it is young, then along the requeue tier, whose ceiling is an hour
/// for a window of one day. Never falls as `step` grows, whatever numbers were configured.
fn refusal_curve_ms(step: u32, per_day: bool, n: &Numbers) -> i64 {
    let young = step.min(n.barren_steps.saturating_sub(1));
    let young_ms = doubled(n.refusal.base_ms, young).min(n.refusal.ceiling_ms);
    match step.checked_sub(n.barren_steps) {
        None => young_ms,
        Some(older) => {
            let ceiling_ms = if per_day { n.per_day_ceiling_ms } else { n.requeue.ceiling_ms };
            doubled(n.requeue.base_ms, older).min(ceiling_ms).max(young_ms)
        }
    }
}

fn least_in_place_ms(failure: &Failure, situation: &Situation, n: &Numbers) -> i64 {
    if !retried_in_place(failure, n) || refusal(failure) != Refusal::Rate {
        return 0;
    }
    let place = usize::try_from(situation.sends.saturating_sub(1)).unwrap_or(usize::MAX);
    n.in_place.waits_ms.get(place).or_else(|| n.in_place.waits_ms.last()).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_curve_is_the_contracts() {
        let policy = Policy::tiered();
        let curve = |step, per_day| refusal_curve_ms(step, per_day, policy.numbers());
        assert_eq!([0, 1, 2, 3, 4, 5].map(|step| curve(step, false)), [750, 1_500, 3_000, 6_000, 12_000, 24_000]);
        assert_eq!([6, 7, 8, 9, 10].map(|step| curve(step, false)), [30_000, 60_000, 120_000, 240_000, 480_000]);
        assert_eq!([11, 12, u32::MAX].map(|step| curve(step, false)), [900_000; 3]);
        assert_eq!([11, 12, 13, u32::MAX].map(|step| curve(step, true)), [960_000, 1_920_000, 3_600_000, 3_600_000]);
    }
}
