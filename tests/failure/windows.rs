//! Headers in any order say the same; a window that did not refuse us changes nothing; one that did never brings the
//! reset forward.

use crate::{NOW_MS, header, read};
use proptest::prelude::*;
use reprieve::failure::{Candidate, Verdict};
use serde_json::json;

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        (1_u32..200_000).prop_map(|secs| secs.to_string()),
        (1_u32..5_000).prop_map(|ms| format!("{ms}ms")),
        (0_u32..30, 0_u32..60).prop_map(|(m, s)| format!("{m}m{s}s")),
        (-100_000_i64..5_000_000).prop_map(|ahead| (NOW_MS / 1_000 + ahead).to_string()),
        (-100_000_i64..5_000_000).prop_map(|ahead| (NOW_MS + ahead * 1_000).to_string()),
        Just("soon".to_owned()),
        Just("-1".to_owned()),
        Just("0".to_owned()),
    ]
}

fn window() -> impl Strategy<Value = (String, String)> {
    let name = prop::sample::select(vec![
        "retry-after",
        "retry-after-ms",
        "x-ratelimit-reset",
        "x-ratelimit-reset-requests",
        "x-ratelimit-reset-tokens",
        "x-ratelimit-reset-tokens-day",
        "ratelimit-reset",
        "anthropic-ratelimit-input-tokens-reset",
        "anthropic-ratelimit-unified-5h-reset",
        "x-codex-primary-reset-after-seconds",
        "x-ratelimit-remaining-requests",
        "x-ratelimit-remaining-tokens",
        "x-codex-primary-used-percent",
        "anthropic-ratelimit-unified-5h-status",
    ]);
    (name, value()).prop_map(|(name, value)| header(name, &value))
}

fn refusal(kind: usize) -> serde_json::Value {
    match kind {
        0 => json!({"error": {"message": "x"}}),
        1 => json!({"error": {"type": "tokens", "code": "rate_limit_exceeded"}}),
        2 => json!({"error": {"type": "usage_limit_reached", "resets_in_seconds": 90}}),
        _ => json!({"error": {"message": "Please try again in 7s."}}),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_headers_changes_nothing(
        (windows, shuffled) in prop::collection::vec(window(), 0..8)
            .prop_flat_map(|windows| (Just(windows.clone()), Just(windows).prop_shuffle())),
        kind in 0_usize..4,
    ) {
        let status = Some(429);
        prop_assert_eq!(
            read(status, &windows, Some(refusal(kind))),
            read(status, &shuffled, Some(refusal(kind)))
        );
    }

    #[test]
    fn a_window_that_does_not_stand_changes_nothing_but_the_evidence(
        windows in prop::collection::vec(window(), 0..5),
        more in value(),
        kind in 0_usize..4,
    ) {
        // Named apart from every other, with something left of it.
        let added = [
            header("x-ratelimit-reset-requests-hour", &more),
            header("x-ratelimit-remaining-requests-hour", "3"),
        ];
        let before = read(Some(429), &windows, Some(refusal(kind)));
        let all: Vec<_> = windows.iter().chain(&added).cloned().collect();
        let after = read(Some(429), &all, Some(refusal(kind)));
        prop_assert_eq!((before.class, before.resume_at_ms, &before.limit), (after.class, after.resume_at_ms, &after.limit));
        prop_assert_eq!(before.evidence.len() + 1, after.evidence.len());
    }

    #[test]
    fn a_window_that_stands_never_brings_the_reset_forward(
        windows in prop::collection::vec(window(), 0..5),
        more in window(),
        kind in 0_usize..4,
    ) {
        // What tells about windows is not itself one.
        prop_assume!(!more.0.contains("remaining") && !more.0.contains("percent") && !more.0.contains("status"));
        let before = read(Some(429), &windows, Some(refusal(kind)));
        let all: Vec<_> = windows.iter().chain(std::iter::once(&more)).cloned().collect();
        let after = read(Some(429), &all, Some(refusal(kind)));
        // Prose is read only where nothing structural stands; it makes room for any structure.
        prop_assume!(kind != 3 || before.evidence.iter().all(|candidate| candidate.name != "/error/message"));
        prop_assert!(after.resume_at_ms >= before.resume_at_ms, "{:?} {:?}", before.evidence, after.evidence);
    }

    #[test]
    fn at_most_one_is_selected_and_it_is_the_latest_that_stands(
        windows in prop::collection::vec(window(), 0..8),
        kind in 0_usize..4,
    ) {
        let failure = read(Some(429), &windows, Some(refusal(kind)));
        let of = |verdict| failure.evidence.iter().filter(move |one: &&Candidate| one.verdict == verdict);
        prop_assert!(of(Verdict::Selected).count() <= 1);
        let selected = of(Verdict::Selected).next();
        prop_assert_eq!(selected.and_then(|one| one.at_ms), failure.resume_at_ms);
        for earlier in of(Verdict::Earlier) {
            prop_assert!(earlier.at_ms <= failure.resume_at_ms);
        }
        for past in of(Verdict::Past) {
            prop_assert!(past.at_ms.is_none_or(|at_ms| at_ms <= NOW_MS));
        }
        prop_assert!(failure.resume_at_ms.is_none_or(|resume_ms| resume_ms > NOW_MS));
    }
}

#[test]
fn a_clock_that_is_ahead_shifts_absolute_resets_and_no_deltas() {
    let at = |headers: &[(String, String)]| {
        let failure = read(Some(429), headers, Some(json!({})));
        let limit = failure.limit.unwrap();
        (limit.reset_at_ms.map(|ms| ms - NOW_MS), failure.resume_at_ms.map(|ms| ms - NOW_MS), failure.skew_ms)
    };
    // 20 s behind us.
    let date = header("date", "Mon, 21 Sep 2026 14:13:00 GMT");
    let absolute = header("x-ratelimit-reset", "1790000010");
    assert_eq!(at(std::slice::from_ref(&absolute)), (Some(10_000), Some(10_000), 0));
    assert_eq!(at(&[absolute.clone(), date.clone()]), (Some(10_000), Some(30_000), 20_000));
    assert_eq!(at(&[absolute.clone(), date.clone(), header("age", "3")]), (Some(10_000), Some(10_000), 0));
    assert_eq!(at(&[header("retry-after", "10"), date]), (Some(10_000), Some(10_000), 0));
    // More than a day is no skew, and a clock that is behind is not corrected.
    assert_eq!(
        at(&[absolute.clone(), header("date", "Sat, 19 Sep 2026 14:13:00 GMT")]),
        (Some(10_000), Some(10_000), 0)
    );
    assert_eq!(at(&[absolute, header("date", "Mon, 21 Sep 2026 14:14:00 GMT")]), (Some(10_000), Some(10_000), 0));
}
