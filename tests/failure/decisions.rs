//! Whatever was read, the decision on it is total: no instant before now or before the selected resume, none at or past
//! the deadline, and more sends never make it more eager.

use crate::{NOW_MS, header, read};
use proptest::prelude::*;
use reprieve::recovery::{Decision, Delivery, OnTruncated, Policy, Situation, Spoken, Then, recover};
use serde_json::json;

fn situation(sends: u32, deadline_ms: Option<i64>, spoken: bool) -> Situation {
    Situation {
        now_ms: NOW_MS,
        sends,
        executions: 0,
        barren: 0,
        turn_left_ms: None,
        deadline_ms,
        spoken: if spoken { Spoken::Text } else { Spoken::Nothing },
        repairs: 0,
        deferrals: 0,
        waiting_since_ms: None,
        delivery: Delivery::AtLeastOnce,
        structured_output: false,
        on_truncated: OnTruncated::Continue,
        jitter: 0.0,
    }
}

/// When the next send could start.
fn next_ms(decision: Decision) -> Option<i64> {
    match decision {
        Decision::RetryInPlace { wait_ms } => Some(NOW_MS + wait_ms),
        Decision::Defer { until_ms } | Decision::Requeue { until_ms } => Some(until_ms),
        Decision::CommitPartial { then: Then::Continue { not_before_ms } } => not_before_ms,
        Decision::CommitPartial { then: Then::Accept } | Decision::Fail | Decision::Stop => None,
    }
}

fn eagerness(decision: Decision) -> u8 {
    match decision {
        Decision::RetryInPlace { .. } => 3,
        Decision::Defer { .. } | Decision::Requeue { .. } | Decision::CommitPartial { .. } => 2,
        Decision::Fail | Decision::Stop => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_instant_respects_now_the_reset_and_the_deadline(
        status in prop_oneof![Just(429_u16), Just(402), Just(503), 400_u16..600],
        wait in prop::option::of(0_i64..5_000_000),
        code in prop::sample::select(vec!["rate_limit_exceeded", "usage_limit_reached", "insufficient_quota", "nobody_knows"]),
        sends in 1_u32..10,
        deadline in prop::option::of(-10_000_i64..10_000_000),
        spoken in any::<bool>(),
        strict in any::<bool>(),
    ) {
        let headers: Vec<_> = wait.iter().map(|secs| header("retry-after", &secs.to_string())).collect();
        let failure = read(Some(status), &headers, Some(json!({"error": {"code": code}})));
        let policy = if strict { Policy::strict() } else { Policy::tiered() };
        let deadline_ms = deadline.map(|ahead| NOW_MS + ahead);
        let decision = recover(&failure, &situation(sends, deadline_ms, spoken), &policy);
        if let Some(next) = next_ms(decision) {
            prop_assert!(next >= NOW_MS);
            if let Some(resume) = failure.resume_at_ms {
                prop_assert!(next >= resume, "{decision:?} before {resume}");
            }
            if let Some(deadline) = deadline_ms {
                prop_assert!(next < deadline, "{decision:?} at or past {deadline}");
            }
        }
        // A deadline exactly at the next send is a deadline before it.
        let open = recover(&failure, &situation(sends, None, spoken), &policy);
        if let Some(next) = next_ms(open) {
            let cut = recover(&failure, &situation(sends, Some(next), spoken), &policy);
            prop_assert!(next_ms(cut).is_none_or(|at_ms| at_ms < next), "{open:?} then {cut:?}");
        }
        let later = recover(&failure, &situation(sends + 1, deadline_ms, spoken), &policy);
        prop_assert!(eagerness(later) <= eagerness(decision), "{decision:?} then {later:?}");
    }
}
