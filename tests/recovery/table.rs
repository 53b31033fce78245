//! The table of the failure contract, §5, row by row, for both policies.

use crate::sample::{NOW_MS, cap, dropped, failure, first, incomplete, quota, rate, unavailable};
use reprieve::failure::{Allowance, Cause, Class, Failure, Phase};
use reprieve::recovery::{
    Decision, Delivery, InPlace, OnTruncated, Policy, Situation, Spoken, Then, Tier, hold_until, recover, wait_source,
};

/// A decision in one word and its instant, relative to now.
fn said(failure: &Failure, situation: &Situation, policy: &Policy) -> String {
    match recover(failure, situation, policy) {
        Decision::RetryInPlace { wait_ms } => format!("in place {wait_ms}"),
        Decision::Defer { until_ms } => format!("defer {}", until_ms - NOW_MS),
        Decision::Requeue { until_ms } => format!("requeue {}", until_ms - NOW_MS),
        Decision::CommitPartial { then: Then::Accept } => "accept".to_owned(),
        Decision::CommitPartial { then: Then::Continue { not_before_ms: None } } => "continue".to_owned(),
        Decision::CommitPartial { then: Then::Continue { not_before_ms: Some(at_ms) } } => {
            format!("continue {}", at_ms - NOW_MS)
        }
        Decision::Fail => "fail".to_owned(),
        Decision::Stop => "stop".to_owned(),
    }
}

#[track_caller]
fn row(failure: &Failure, situation: &Situation, tiered: &str, strict: &str) {
    assert_eq!(said(failure, situation, &Policy::tiered()), tiered, "tiered: {failure:?}");
    assert_eq!(said(failure, situation, &Policy::strict()), strict, "strict: {failure:?}");
}

/// The `sends`-th send, all of them refused at or after their resume instants.
fn refused(sends: u32) -> Situation {
    Situation { sends, barren: sends - 1, ..first() }
}

fn sent(sends: u32) -> Situation {
    Situation { sends, ..first() }
}

fn spoke(spoken: Spoken) -> Situation {
    Situation { spoken, ..first() }
}

#[test]
fn a_rate_with_a_near_reset_is_retried_in_place_then_deferred_to_it() {
    row(&rate(Some(7_000)), &refused(1), "in place 7000", "in place 7000");
    row(&rate(Some(30_000)), &refused(1), "in place 30000", "in place 30000");
    row(&rate(Some(100)), &refused(1), "in place 750", "in place 1000");
    row(&rate(Some(7_000)), &refused(3), "in place 7000", "defer 7000");
    row(&rate(Some(7_000)), &sent(5), "in place 7000", "defer 7000");
    row(&rate(Some(7_000)), &sent(6), "defer 7000", "defer 7000");
    row(&rate(Some(29_000)), &refused(6), "defer 29000", "defer 29000");
}

#[test]
fn a_rate_without_a_reset_is_retried_along_the_curve_then_deferred_along_the_requeue_curve() {
    row(&rate(None), &refused(1), "in place 750", "in place 1000");
    row(&rate(None), &refused(2), "in place 1500", "in place 2000");
    row(&rate(None), &refused(3), "in place 3000", "defer 3000");
    // Where the scope's curve is young again, strict's last wait in place is a floor under its deferral.
    row(&rate(None), &sent(3), "in place 750", "defer 2000");
    row(&rate(None), &refused(4), "in place 6000", "defer 6000");
    row(&rate(None), &refused(5), "in place 12000", "defer 12000");
    row(&rate(None), &refused(6), "defer 30000", "defer 24000");
    row(&rate(None), &refused(7), "defer 30000", "defer 30000");
    row(&rate(None), &refused(9), "defer 120000", "defer 120000");
    row(&rate(None), &refused(99), "defer 900000", "defer 900000");
}

#[test]
fn a_rate_whose_scope_is_long_refused_is_deferred_at_its_first_send() {
    let barren = |barren| Situation { barren, ..first() };
    row(&rate(None), &barren(5), "in place 24000", "in place 24000");
    row(&rate(None), &barren(6), "in place 30000", "in place 30000");
    row(&rate(None), &barren(7), "defer 60000", "defer 60000");
    row(&rate(Some(5_000)), &barren(7), "defer 60000", "defer 60000");
    row(&rate(Some(90_000)), &barren(7), "defer 90000", "defer 90000");
}

#[test]
fn a_rate_with_a_far_reset_is_deferred_at_once() {
    row(&rate(Some(30_001)), &first(), "defer 30001", "defer 30001");
    row(&rate(Some(3_600_000)), &first(), "defer 3600000", "defer 3600000");
}

#[test]
fn a_quota_is_deferred_to_its_reset_or_fails() {
    row(&quota(Allowance::Window, Some(1_000)), &first(), "defer 1000", "defer 1000");
    row(&quota(Allowance::Window, Some(40 * 86_400_000)), &first(), "defer 3456000000", "defer 3456000000");
    row(&quota(Allowance::Window, None), &first(), "fail", "fail");
    row(&quota(Allowance::Purse, None), &first(), "fail", "fail");
    row(&quota(Allowance::Purse, Some(1_000)), &first(), "fail", "fail");
}

#[test]
fn a_day_window_is_asked_again_at_most_hourly() {
    let day = Failure { per_day: true, ..quota(Allowance::Window, Some(36_000)) };
    let barren = |barren| Situation { barren, ..first() };
    row(&day, &barren(0), "defer 36000", "defer 36000");
    row(&day, &barren(12), "defer 1920000", "defer 1920000");
    row(&day, &barren(40), "defer 3600000", "defer 3600000");
}

#[test]
fn transient_faults_are_retried_then_requeued_then_fail() {
    for fault in [
        unavailable(None),
        dropped(),
        incomplete(),
        failure(Class::Timeout, Cause::Transport, None),
        failure(Class::ProviderError, Cause::ProviderError, Some(507)),
    ] {
        row(&fault, &sent(1), "in place 750", "fail");
        row(&fault, &sent(2), "in place 1500", "fail");
        row(&fault, &sent(3), "requeue 30000", "fail");
        let executed = |executions| Situation { executions, ..sent(3) };
        row(&fault, &executed(1), "requeue 60000", "fail");
        row(&fault, &executed(5), "requeue 900000", "fail");
        row(&fault, &executed(6), "requeue 900000", "fail");
        row(&fault, &executed(7), "fail", "fail");
        row(&fault, &Situation { executions: 7, ..sent(1) }, "in place 750", "fail");
    }
}

#[test]
fn the_wait_of_a_5xx_is_a_floor_and_a_far_one_is_requeued_to() {
    row(&unavailable(Some(200)), &sent(1), "in place 750", "fail");
    row(&unavailable(Some(5_000)), &sent(1), "in place 5000", "fail");
    row(&unavailable(Some(30_000)), &sent(2), "in place 30000", "fail");
    row(&unavailable(Some(30_001)), &sent(1), "requeue 30001", "fail");
    row(&unavailable(Some(5_000)), &sent(3), "requeue 30000", "fail");
    row(&unavailable(Some(46 * 86_400_000)), &sent(1), "fail", "fail");
}

#[test]
fn a_stream_that_broke_after_text_is_committed_where_it_would_not_fail() {
    let text = spoke(Spoken::Text);
    row(&incomplete(), &text, "continue 750", "fail");
    row(&dropped(), &Situation { sends: 3, ..text.clone() }, "continue 30000", "fail");
    row(&rate(Some(5_000)), &text, "continue 5000", "fail");
    row(&rate(Some(500_000)), &text, "continue 500000", "fail");
    row(&quota(Allowance::Window, Some(9_000)), &text, "continue 9000", "fail");
    row(&dropped(), &Situation { sends: 3, executions: 7, ..text.clone() }, "fail", "fail");
    row(&quota(Allowance::Purse, None), &text, "fail", "fail");
    row(&failure(Class::ContentFiltered, Cause::ProviderError, None), &text, "fail", "fail");
}

#[test]
fn what_may_not_be_committed_is_issued_again() {
    let shaped = Situation { structured_output: true, ..spoke(Spoken::Text) };
    row(&incomplete(), &shaped, "in place 750", "fail");
    row(&incomplete(), &spoke(Spoken::ToolCall), "in place 750", "fail");
    row(&rate(Some(40_000)), &spoke(Spoken::ToolCall), "defer 40000", "fail");
    // The fourth repair in a row is none.
    let text = |repairs| Situation { repairs, ..spoke(Spoken::Text) };
    row(&incomplete(), &text(2), "continue 750", "fail");
    row(&incomplete(), &text(3), "in place 750", "fail");
}

#[test]
fn a_finish_by_cap_follows_on_truncated() {
    let text = |on_truncated| Situation { on_truncated, ..spoke(Spoken::Text) };
    row(&cap(), &text(OnTruncated::Continue), "continue", "accept");
    row(&cap(), &text(OnTruncated::Accept), "accept", "accept");
    row(&cap(), &text(OnTruncated::Fail), "fail", "fail");
    row(&cap(), &Situation { repairs: 2, ..text(OnTruncated::Continue) }, "continue", "accept");
    row(&cap(), &Situation { repairs: 3, ..text(OnTruncated::Continue) }, "fail", "accept");
    for on_truncated in [OnTruncated::Continue, OnTruncated::Accept, OnTruncated::Fail] {
        row(&cap(), &Situation { on_truncated, ..first() }, "fail", "fail");
        row(&cap(), &Situation { on_truncated, ..spoke(Spoken::ToolCall) }, "fail", "fail");
        row(&cap(), &Situation { structured_output: true, ..text(on_truncated) }, "fail", "fail");
    }
}

#[test]
fn other_4xx_and_terminal_faults_fail() {
    for class in [Class::Authentication, Class::ContentFiltered, Class::ContextWindowExceeded, Class::InvalidRequest] {
        row(&failure(class, Cause::ProviderError, Some(400)), &first(), "fail", "fail");
    }
    row(&failure(Class::ProviderError, Cause::ProviderError, Some(418)), &first(), "fail", "fail");
    row(&failure(Class::ProviderError, Cause::ProviderError, None), &first(), "fail", "fail");
    row(&failure(Class::ContextWindowExceeded, Cause::ContextLimit, None), &first(), "fail", "fail");
    row(&failure(Class::Timeout, Cause::Deadline, None), &first(), "fail", "fail");
}

#[test]
fn a_cancel_stops_whatever_else_is_true() {
    let cancelled =
        Failure { resume_at_ms: Some(NOW_MS + 5), ..failure(Class::RateLimit, Cause::Cancelled, Some(429)) };
    row(&cancelled, &spoke(Spoken::Text), "stop", "stop");
    row(&cancelled, &Situation { deadline_ms: Some(NOW_MS - 1), ..first() }, "stop", "stop");
}

#[test]
fn strict_retries_only_a_429_and_stops_at_a_wait_it_cannot_read_or_keep() {
    for status in [None, Some(503), Some(529), Some(499)] {
        let refusal = Failure { http_status: status, ..rate(Some(3_000)) };
        row(&refusal, &first(), "in place 3000", "defer 3000");
    }
    let stopped = Failure { retry_after_stops_strict: true, ..rate(Some(3_000)) };
    row(&stopped, &first(), "in place 3000", "defer 3000");
    let unreadable = Failure { retry_after_stops_strict: true, ..rate(None) };
    row(&unreadable, &first(), "in place 750", "defer 750");
}

#[test]
fn a_next_send_at_or_past_the_deadline_fails_at_once() {
    let until = |in_ms| Situation { deadline_ms: Some(NOW_MS + in_ms), ..first() };
    row(&rate(Some(7_000)), &until(7_000), "fail", "fail");
    row(&rate(Some(7_000)), &until(7_001), "in place 7000", "in place 7000");
    row(&rate(Some(70_000)), &until(70_000), "fail", "fail");
    row(&rate(Some(70_000)), &until(70_001), "defer 70000", "defer 70000");
    row(&dropped(), &until(750), "fail", "fail");
    row(&dropped(), &Situation { sends: 3, ..until(30_000) }, "fail", "fail");
    row(&dropped(), &Situation { sends: 3, ..until(30_001) }, "requeue 30000", "fail");
    row(&rate(Some(70_000)), &Situation { spoken: Spoken::Text, ..until(70_000) }, "fail", "fail");
    row(&cap(), &Situation { spoken: Spoken::Text, ..until(0) }, "fail", "accept");
}

#[test]
fn beyond_the_turn_a_refusal_is_deferred_and_a_fault_requeued() {
    let left = |left_ms| Situation { turn_left_ms: Some(left_ms), ..first() };
    row(&rate(Some(7_000)), &left(7_000), "defer 7000", "defer 7000");
    row(&rate(Some(7_000)), &left(7_001), "in place 7000", "in place 7000");
    row(&dropped(), &left(750), "requeue 30000", "fail");
    row(&dropped(), &left(751), "in place 750", "fail");
    row(&dropped(), &Situation { executions: 7, ..left(1) }, "fail", "fail");
}

#[test]
fn only_the_outer_bounds_fail_a_refused_job() {
    row(&rate(Some(60_000)), &Situation { deferrals: 999, ..first() }, "defer 60000", "defer 60000");
    row(&rate(Some(60_000)), &Situation { deferrals: 1_000, ..first() }, "fail", "fail");
    let days = |days: i64| days * 86_400_000;
    row(&quota(Allowance::Window, Some(days(45))), &first(), "defer 3888000000", "defer 3888000000");
    row(&quota(Allowance::Window, Some(days(45) + 1)), &first(), "fail", "fail");
    let since = Situation { waiting_since_ms: Some(NOW_MS - days(44)), ..first() };
    row(&rate(Some(days(1))), &since, "defer 86400000", "defer 86400000");
    row(&rate(Some(days(1) + 1)), &since, "fail", "fail");
    // No number of executions does.
    row(&rate(Some(60_000)), &Situation { executions: 9_000, ..first() }, "defer 60000", "defer 60000");
}

#[test]
fn at_most_once_repeats_only_what_cannot_have_begun() {
    let once = Situation { delivery: Delivery::AtMostOnce, ..first() };
    row(&rate(Some(7_000)), &once, "in place 7000", "in place 7000");
    row(&quota(Allowance::Window, Some(7_000)), &once, "defer 7000", "defer 7000");
    row(&Failure { http_status: None, ..rate(Some(7_000)) }, &once, "fail", "fail");
    row(&Failure { http_status: Some(200), ..rate(Some(7_000)) }, &once, "fail", "fail");
    row(&unavailable(None), &once, "in place 750", "fail");
    row(&Failure { http_status: Some(529), ..unavailable(None) }, &once, "in place 750", "fail");
    row(&Failure { http_status: Some(500), ..unavailable(None) }, &once, "fail", "fail");
    row(&dropped(), &once, "fail", "fail");
    row(&Failure { phase: Some(Phase::Connect), ..dropped() }, &once, "in place 750", "fail");
    row(&Failure { phase: Some(Phase::Headers), ..dropped() }, &once, "fail", "fail");
    row(&rate(Some(7_000)), &Situation { spoken: Spoken::Text, ..once.clone() }, "fail", "fail");
    // Far refusals are deferred, and their tier does not end the job.
    row(&rate(Some(45_000)), &once, "defer 45000", "defer 45000");
    row(&rate(None), &Situation { sends: 6, barren: 5, ..once.clone() }, "defer 30000", "defer 24000");
    row(&Failure { http_status: Some(503), ..rate(Some(7_000)) }, &once, "in place 7000", "defer 7000");
    row(&unavailable(None), &Situation { sends: 3, ..once.clone() }, "requeue 30000", "fail");
    row(&unavailable(Some(120_000)), &once, "requeue 120000", "fail");
    row(
        &Failure { phase: Some(Phase::Connect), ..dropped() },
        &Situation { sends: 3, ..once.clone() },
        "requeue 30000",
        "fail",
    );
    row(&Failure { phase: Some(Phase::Read), ..dropped() }, &once, "fail", "fail");
    row(&incomplete(), &once, "fail", "fail");
    for status in [408, 409, 425, 429, 498, 499, 500, 502, 504, 520, 524] {
        row(&Failure { http_status: Some(status), ..unavailable(None) }, &once, "fail", "fail");
    }
    // What stands inside a 2xx was said after the call was taken up, whatever status it states of itself.
    for failure in [rate(Some(7_000)), unavailable(None), quota(Allowance::Window, Some(7_000))] {
        row(&Failure { inside_2xx: true, ..failure }, &once, "fail", "fail");
    }
    // A cut answer is no failed send: what follows is another call.
    row(&cap(), &Situation { spoken: Spoken::Text, ..once.clone() }, "continue", "accept");
    row(&cap(), &once, "fail", "fail");
}

#[test]
fn jitter_lengthens_our_own_curve_alone() {
    let full = Situation { jitter: 1.0, ..first() };
    row(&rate(None), &full, "in place 900", "in place 1000");
    row(&rate(Some(7_000)), &full, "in place 7000", "in place 7000");
    row(&dropped(), &full, "in place 900", "fail");
    row(&dropped(), &Situation { sends: 3, ..full }, "requeue 36000", "fail");
    row(&rate(None), &Situation { jitter: f64::NAN, ..first() }, "in place 750", "in place 1000");
    row(&rate(None), &Situation { jitter: -3.0, ..first() }, "in place 750", "in place 1000");
    row(&rate(None), &Situation { jitter: 7.0, ..first() }, "in place 900", "in place 1000");
}

#[test]
fn the_hold_stands_whatever_becomes_of_the_job() {
    let gone = Situation { deadline_ms: Some(NOW_MS), deferrals: 5_000, spoken: Spoken::Text, ..first() };
    for policy in [Policy::tiered(), Policy::strict()] {
        assert_eq!(recover(&rate(Some(9_000)), &gone, &policy), Decision::Fail);
        assert_eq!(hold_until(&rate(Some(9_000)), &gone, &policy), Some(NOW_MS + 9_000));
        let days_200 = quota(Allowance::Window, Some(200 * 86_400_000));
        assert_eq!(hold_until(&days_200, &first(), &policy), days_200.resume_at_ms);
        assert_eq!(hold_until(&quota(Allowance::Purse, Some(1_000)), &first(), &policy), None);
        assert_eq!(hold_until(&quota(Allowance::Window, None), &first(), &policy), None);
        assert_eq!(hold_until(&unavailable(Some(1_000)), &first(), &policy), None);
        assert_eq!(hold_until(&dropped(), &first(), &policy), None);
    }
}

#[test]
fn a_wait_knows_whose_it_is() {
    use reprieve::failure::{Candidate, SourceKind, Verdict};
    let candidate = |name: &str, verdict| Candidate {
        source: SourceKind::Header,
        name: name.to_owned(),
        raw: None,
        at_ms: None,
        kind: None,
        remaining: None,
        verdict,
        why: String::new(),
    };
    let named = Failure {
        evidence: vec![
            candidate("retry-after", Verdict::Earlier),
            candidate("x-ratelimit-reset-tokens", Verdict::Selected),
        ],
        ..rate(Some(5_000))
    };
    let until = |barren| {
        hold_until(&named, &Situation { barren, ..first() }, &Policy::tiered()).map(|at_ms| wait_source(&named, at_ms))
    };
    assert_eq!(until(0), Some("x-ratelimit-reset-tokens"));
    assert_eq!(until(4), Some("curve"));
    assert_eq!(wait_source(&rate(None), NOW_MS), "curve");
}

#[test]
fn an_operators_numbers_are_obeyed() {
    let mut numbers = Policy::tiered().numbers().clone();
    numbers.refusal = Tier { limit: 2, base_ms: 100, ceiling_ms: 400 };
    numbers.requeue = Tier { limit: 2, base_ms: 5_000, ceiling_ms: 6_000 };
    numbers.near_ms = 10_000;
    numbers.repairs = 0;
    numbers.in_place = InPlace { statuses: vec![503], waits_ms: vec![250], stopped_by_retry_after: false };
    let own = Policy::try_new("own", numbers).unwrap();
    let refusal = Failure { http_status: Some(503), ..rate(None) };
    assert_eq!(said(&refusal, &refused(1), &own), "in place 250");
    assert_eq!(said(&refusal, &refused(2), &own), "defer 5000");
    assert_eq!(said(&rate(None), &refused(1), &own), "defer 100");
    assert_eq!(said(&Failure { resume_at_ms: Some(NOW_MS + 10_001), ..refusal }, &first(), &own), "defer 10001");
    assert_eq!(said(&dropped(), &Situation { executions: 0, ..sent(3) }, &own), "requeue 5000");
    assert_eq!(said(&dropped(), &Situation { executions: 1, ..sent(3) }, &own), "fail");
    assert_eq!(said(&incomplete(), &spoke(Spoken::Text), &own), "in place 750");
}
