//! Invariants of the decision function for any failure, situation and policy (contract §10.3).

use crate::sample::{NOW_MS, failure};
use proptest::prelude::*;
use reprieve::failure::{Allowance, Cause, Class, Failure, Phase};
use reprieve::recovery::{
    Decision, Delivery, InPlace, Numbers, OnTruncated, Policy, Situation, Spoken, Then, Tier, hold_until, recover,
    wait_source,
};
use std::time::Duration;

/// Any failure at all, half of them such as are tried again.
fn any_failure() -> impl Strategy<Value = Failure> {
    let tried_again = prop::sample::select(vec![
        (Class::RateLimit, Cause::RateLimit, Some(429)),
        (Class::Unavailable, Cause::ProviderError, Some(503)),
        (Class::Quota, Cause::UsageLimit, Some(429)),
    ]);
    let coherent = (wild_failure(), tried_again).prop_map(|(wild, (class, cause, http_status))| Failure {
        class,
        cause,
        http_status,
        retryable: true,
        ..wild
    });
    prop_oneof![wild_failure(), coherent]
}

fn wild_failure() -> impl Strategy<Value = Failure> {
    let class = prop::sample::select(vec![
        Class::RateLimit,
        Class::Quota,
        Class::Authentication,
        Class::ContentFiltered,
        Class::ContextWindowExceeded,
        Class::InvalidRequest,
        Class::Timeout,
        Class::Unavailable,
        Class::ProviderError,
    ]);
    let cause = prop::sample::select(vec![
        Cause::RateLimit,
        Cause::UsageLimit,
        Cause::ContextLimit,
        Cause::OutputLimit,
        Cause::ProviderError,
        Cause::Transport,
        Cause::Incomplete,
        Cause::Deadline,
        Cause::Cancelled,
    ]);
    let status = prop_oneof![Just(None), Just(Some(429)), Just(Some(503)), (100_u16..600).prop_map(Some),];
    let allowance = prop::sample::select(vec![None, Some(Allowance::Purse), Some(Allowance::Window)]);
    let phase = prop::sample::select(vec![None, Some(Phase::Connect), Some(Phase::Headers), Some(Phase::Read)]);
    let resume = prop_oneof![
        4 => Just(None),
        4 => (-5_000..120_000_i64).prop_map(|in_ms| Some(NOW_MS + in_ms)),
        1 => (0..400 * 86_400_000_i64).prop_map(|in_ms| Some(NOW_MS + in_ms)),
        1 => any::<i64>().prop_map(Some),
    ];
    (class, cause, status, allowance, phase, resume, any::<[bool; 4]>()).prop_map(
        |(class, cause, status, allowance, phase, resume_at_ms, [retryable, stops, per_day, inside_2xx])| Failure {
            allowance,
            phase,
            resume_at_ms,
            retryable,
            retry_after_stops_strict: stops,
            per_day,
            inside_2xx,
            ..failure(class, cause, status)
        },
    )
}

fn any_situation() -> impl Strategy<Value = Situation> {
    let counts =
        (0..12_u32, 0..12_u32, 0..40_u32, 0..5_u32, prop_oneof![Just(0), Just(999), Just(1_000), 0..2_000_u32]);
    let limits = (
        prop::option::of(-5_000..200_000_i64),
        prop_oneof![
            2 => Just(None),
            3 => (-5_000..200_000_i64).prop_map(|in_ms| Some(NOW_MS + in_ms)),
            // The instants that the curves name: the edges of the deadline's rule.
            2 => prop::sample::select(vec![750, 1_000, 1_500, 2_000, 3_000, 6_000, 12_000, 24_000, 30_000, 60_000])
                .prop_map(|in_ms| Some(NOW_MS + in_ms)),
            1 => any::<i64>().prop_map(Some),
        ],
        prop::option::of(0..60 * 86_400_000_i64),
    );
    let choices = (
        prop::sample::select(vec![Spoken::Nothing, Spoken::Text, Spoken::ToolCall]),
        prop::sample::select(vec![Delivery::AtLeastOnce, Delivery::AtMostOnce]),
        prop::sample::select(vec![OnTruncated::Continue, OnTruncated::Accept, OnTruncated::Fail]),
        any::<bool>(),
        prop_oneof![4 => Just(0.0), 2 => 0.0..=1.0_f64, 1 => any::<f64>()],
    );
    (counts, limits, choices).prop_map(
        |(
            (sends, executions, barren, repairs, deferrals),
            (turn_left_ms, deadline_ms, waited_ms),
            (spoken, delivery, on_truncated, structured_output, jitter),
        )| Situation {
            now_ms: NOW_MS,
            sends,
            executions,
            barren,
            turn_left_ms,
            deadline_ms,
            spoken,
            repairs,
            deferrals,
            waiting_since_ms: waited_ms.map(|waited_ms| NOW_MS - waited_ms),
            delivery,
            structured_output,
            on_truncated,
            jitter,
        },
    )
}

fn any_tier() -> impl Strategy<Value = Tier> {
    (1..10_u32, 1..60_000_i64, 0..900_000_i64).prop_map(|(limit, base_ms, more_ms)| Tier {
        limit,
        base_ms,
        ceiling_ms: base_ms + more_ms,
    })
}

/// The two of the contract, and any other that can be constructed.
fn any_policy() -> impl Strategy<Value = Policy> {
    let own = (
        (any_tier(), any_tier(), any_tier(), 1..10_u32),
        (60_000..7_200_000_i64, 1..120_000_i64, 1..2_000_u32, 1..90 * 86_400_000_i64),
        (0..5_u32, 0.0..=1.0_f64, any::<[bool; 3]>()),
        (prop::sample::select(vec![vec![], vec![429], vec![429, 503]]), prop::collection::vec(1..5_000_i64, 0..4)),
    )
        .prop_map(
            |(
                (transient, refusal, requeue, barren_steps),
                (per_day_ceiling_ms, near_ms, max_deferrals, max_wait_ms),
                (repairs, jitter_share, [stopped, requeue_after_tier, commit_partials]),
                (statuses, mut waits_ms),
            )| {
                waits_ms.sort_unstable();
                let numbers = Numbers {
                    transient,
                    refusal,
                    requeue,
                    barren_steps,
                    per_day_ceiling_ms,
                    near_ms,
                    max_deferrals,
                    max_wait_ms,
                    repairs,
                    jitter_share,
                    in_place: InPlace { statuses, waits_ms, stopped_by_retry_after: stopped },
                    requeue_after_tier,
                    commit_partials,
                    ask_again_without_stream: commit_partials,
                    unsent_statuses: vec![503, 529],
                };
                Policy::try_new("own", numbers).unwrap()
            },
        );
    prop_oneof![Just(Policy::tiered()), Just(Policy::strict()), own]
}

/// How willing a decision is to send again: the way first, then the instant. Smaller is more eager.
fn reluctance(decision: &Decision) -> (u8, i64) {
    let way = match decision {
        Decision::RetryInPlace { .. } => 0,
        Decision::CommitPartial { .. } => 1,
        Decision::Defer { .. } | Decision::Requeue { .. } => 2,
        Decision::Fail | Decision::Stop => 3,
    };
    (way, decision.next_send_ms(NOW_MS).unwrap_or(i64::MAX))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_instant_is_now_or_later_not_before_the_resume_and_before_the_deadline(
        failure in any_failure(), situation in any_situation(), policy in any_policy(),
    ) {
        let decision = recover(&failure, &situation, &policy);
        if let Decision::RetryInPlace { wait_ms } = decision {
            prop_assert!(wait_ms >= 0);
        }
        if let Some(at_ms) = decision.next_send_ms(NOW_MS) {
            prop_assert!(at_ms >= NOW_MS, "{decision:?}");
            prop_assert!(situation.deadline_ms.is_none_or(|deadline_ms| at_ms < deadline_ms), "{decision:?}");
            // A finish by cap names no reset: its failure's resume is nobody's.
            if failure.cause != Cause::OutputLimit {
                prop_assert!(failure.resume_at_ms.is_none_or(|resume_ms| at_ms >= resume_ms), "{decision:?}");
            }
        }
    }

    #[test]
    fn more_sends_are_never_more_eager(
        failure in any_failure(), situation in any_situation(), policy in any_policy(), more in 1..10_u32,
    ) {
        let now = recover(&failure, &situation, &policy);
        let later = recover(&failure, &Situation { sends: situation.sends + more, ..situation.clone() }, &policy);
        let ((way, at_ms), (later_way, later_at_ms)) = (reluctance(&now), reluctance(&later));
        prop_assert!(later_way >= way && later_at_ms >= at_ms, "{now:?} then {later:?}");
    }

    #[test]
    fn the_hold_and_the_decision_name_one_instant(
        failure in any_failure(), situation in any_situation(), policy in any_policy(),
    ) {
        let decision = recover(&failure, &situation, &policy);
        let held_ms = hold_until(&failure, &situation, &policy);
        if let Some(until_ms) = held_ms {
            prop_assert!(until_ms >= NOW_MS);
            prop_assert!(failure.resume_at_ms.is_none_or(|resume_ms| until_ms >= resume_ms));
            prop_assert!(!matches!(decision, Decision::Requeue { .. }), "a refusal consumes no execution");
            if let Some(at_ms) = decision.next_send_ms(NOW_MS) {
                prop_assert_eq!(at_ms, until_ms);
            }
        } else {
            prop_assert!(!matches!(decision, Decision::Defer { .. }), "a deferral needs a hold to wait behind");
        }
    }

    #[test]
    fn no_retry_tier_fails_a_rate_refusal(
        refusal in any_failure(), situation in any_situation(), policy in any_policy(),
    ) {
        let refusal = Failure { class: Class::RateLimit, cause: Cause::RateLimit, ..refusal };
        let within = Situation {
            deadline_ms: None,
            deferrals: 0,
            delivery: Delivery::AtLeastOnce,
            spoken: if policy.numbers().commit_partials { situation.spoken } else { Spoken::Nothing },
            ..situation
        };
        let since_ms = within.waiting_since_ms.unwrap_or(NOW_MS);
        let until_ms = hold_until(&refusal, &within, &policy).unwrap();
        if until_ms.saturating_sub(since_ms) <= policy.numbers().max_wait_ms {
            prop_assert_ne!(recover(&refusal, &within, &policy), Decision::Fail);
        }
    }

    /// Contract §5: after a `connect` fault, or a non-2xx that is a refusal or has status 503 or 529; and nothing else that
    /// is done about a failure depends on the delivery.
    #[test]
    fn at_most_once_sends_again_only_after_what_cannot_have_begun(
        failure in any_failure(), situation in any_situation(), policy in any_policy(),
    ) {
        let decide = |delivery| recover(&failure, &Situation { delivery, ..situation.clone() }, &policy);
        let (once, freely) = (decide(Delivery::AtMostOnce), decide(Delivery::AtLeastOnce));
        let never_began = match (failure.cause, failure.http_status) {
            (Cause::Transport, _) if failure.phase == Some(Phase::Connect) => true,
            (_, Some(503 | 529)) => !failure.inside_2xx,
            (_, Some(status)) => {
                !failure.inside_2xx && status / 100 != 2 && hold_until(&failure, &situation, &policy).is_some()
            }
            (_, None) => false,
        };
        let repeats = matches!(once, Decision::RetryInPlace { .. } | Decision::Defer { .. } | Decision::Requeue { .. });
        prop_assert!(!repeats || never_began && situation.spoken == Spoken::Nothing, "{once:?}");
        if matches!(once, Decision::CommitPartial { .. }) {
            prop_assert_eq!(failure.cause, Cause::OutputLimit, "a broken answer was gone on with");
        }
        if once != freely {
            prop_assert_eq!(once, Decision::Fail);
            prop_assert!(!never_began || situation.spoken != Spoken::Nothing, "{freely:?} was allowed");
        }
    }

    #[test]
    fn jitter_only_lengthens_and_by_its_share_at_most(
        failure in any_failure(), situation in any_situation(), policy in any_policy(), jitter in 0.0..=1.0_f64,
    ) {
        let plain = hold_until(&failure, &Situation { jitter: 0.0, ..situation.clone() }, &policy);
        let jittered = hold_until(&failure, &Situation { jitter, ..situation }, &policy);
        if let (Some(plain_ms), Some(jittered_ms)) = (plain, jittered) {
            prop_assert!(jittered_ms >= plain_ms);
            let waited = |at_ms: i64| Duration::from_millis(u64::try_from(at_ms - NOW_MS).unwrap());
            let most = waited(plain_ms).mul_f64(1.0 + policy.numbers().jitter_share) + Duration::from_millis(1);
            prop_assert!(waited(jittered_ms) <= most);
        }
    }

    #[test]
    fn a_committed_partial_had_text_and_no_promised_shape(
        failure in any_failure(), situation in any_situation(), policy in any_policy(),
    ) {
        if let Decision::CommitPartial { then } = recover(&failure, &situation, &policy) {
            prop_assert_eq!(situation.spoken, Spoken::Text);
            prop_assert!(!situation.structured_output);
            if matches!(then, Then::Continue { .. }) {
                prop_assert!(policy.numbers().commit_partials && situation.repairs < policy.numbers().repairs);
            }
        }
    }

    #[test]
    fn a_wait_is_the_providers_only_where_it_is_the_instant_it_named(
        failure in any_failure(), situation in any_situation(), policy in any_policy(),
    ) {
        if let Some(until_ms) = hold_until(&failure, &situation, &policy)
            && failure.resume_at_ms != Some(until_ms)
        {
            prop_assert_eq!(wait_source(&failure, until_ms), "curve");
        }
    }
}
