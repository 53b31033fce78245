//! Named cases of recovery, each on real sockets.

use crate::bench::{Bench, PATIENCE, error, is_final, text};
use reprieve::clock::Clock;
use reprieve::store::{JobState, Outcome, Store};
use serde_json::json;

/// A refusal that names its reset `reset_in` ahead in `OpenAI`'s own header, for the first `first` requests.
fn refusal(first: u32, reset_in: &str, naming: &str) -> String {
    format!(
        "[[rules]]\nname = \"refused\"\nfirst = {first}\n\
         refuse = {{ kind = \"rate_limit_requests\", reset_in = \"{reset_in}\", reset = [{naming}] }}\n"
    )
}

#[tokio::test]
async fn a_reset_beyond_the_turns_timeout_defers_at_once_with_the_exact_header() {
    let bench = Bench::start(&refusal(9, "20s", "\"x-ratelimit\""), "").await;
    let id = bench.submit(json!({"turn_timeout": "10s"})).await;
    let job = bench.until(id, |job| job.deferrals == Some(1)).await;
    assert!(job.deferred);
    let turns = bench.turns(id).await;
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0].record.outcome, Outcome::Deferred);
    assert_eq!((turns[0].record.attempts, turns[0].sends.len()), (Some(1), 1));
    let error: serde_json::Value = serde_json::from_str(turns[0].record.error.as_deref().unwrap()).unwrap();
    let limit = &error["model_failure"]["limit"];
    assert_eq!(limit["kind"], "requests");
    assert_eq!(limit["reset_source"], json!({"kind": "header", "name": "x-ratelimit-reset-requests"}));
    let evidence = &turns[0].evidence[0];
    let wait_ms = evidence.resume_at_ms.unwrap() - evidence.received_ms;
    assert!((19_000..=20_001).contains(&wait_ms), "{wait_ms}");
    assert_eq!(job.hold.unwrap().until_ms, evidence.resume_at_ms);
    assert_eq!(bench.sim.stats().totals.received, 1);
}

#[tokio::test]
async fn a_named_reset_without_retry_after_is_a_floor_under_the_second_send() {
    let bench = Bench::start(&refusal(1, "5s", "\"x-ratelimit\""), "").await;
    let id = bench.submit(json!({})).await;
    bench.succeeded(id).await;
    let turns = bench.turns(id).await;
    let sends = &turns[0].sends;
    assert_eq!(sends.len(), 2);
    let resume_ms = turns[0].evidence[0].resume_at_ms.unwrap();
    let lateness_ms = sends[1].started_ms - resume_ms;
    assert!((0..1_000).contains(&lateness_ms), "{lateness_ms}");
    assert_eq!(sends[1].tests_resume_ms, Some(resume_ms));
    assert_eq!(sends[1].tests.unwrap().n, 1);
    let counts = bench.sim.stats().totals;
    assert_eq!((counts.received, counts.early, counts.doomed), (2, 0, 0));
}

#[tokio::test]
async fn a_reset_beyond_the_deadline_fails_at_once_as_itself() {
    let bench = Bench::start(&refusal(9, "2h", "\"retry-after\""), "").await;
    let id = bench.submit(json!({"deadline": "1s"})).await;
    let job = bench.ended(id).await;
    assert_eq!(job.state, JobState::Failed);
    assert!(job.finished_ms.unwrap() < job.deadline_ms.unwrap(), "it waited for its deadline");
    assert_eq!(error(&job)["model_failure"]["cause"], "rate_limit");
    assert_eq!(bench.sim.stats().totals.received, 1);
    // The job is gone; what the provider said of its scope stands.
    assert_eq!(bench.store.holds(bench.query()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_hard_400_inside_a_stream_is_terminal_at_once() {
    let scenario = "[[rules]]\nname = \"hard\"\nerror_frame = { body = \
        '{\"error\":{\"message\":\"Invalid value\",\"type\":\"invalid_request_error\",\"code\":400}}' }\n";
    let bench = Bench::start(scenario, "").await;
    let id = bench.submit(json!({})).await;
    let job = bench.ended(id).await;
    assert_eq!(job.state, JobState::Failed);
    assert_eq!(error(&job)["class"], "invalid_request");
    assert_eq!(bench.turns(id).await[0].record.attempts, Some(1));
    assert_eq!(bench.sim.stats().totals.received, 1);
}

/// A hundred refusals in a row, on a clock of our own: every job lives, the waits reach their cap, one send a window.
#[tokio::test]
async fn a_scope_refused_a_hundred_times_in_a_row_keeps_every_job_and_sends_once_a_window() {
    let clock = Clock::manual(1_790_000_000_000);
    let mut bench = Bench::idle_at(&refusal(100, "1ms", ""), "", clock.clone()).await;
    // A clock that leaps from window to window would lapse any lease on its way.
    bench.config.worker.lease_ms = 90 * 86_400_000;
    bench.work().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(bench.submit(json!({})).await);
    }
    let mut windows = Vec::new();
    let mut before_ms = 0;
    let started = tokio::time::Instant::now();
    while bench.sim.stats().totals.received < 100 {
        assert!(started.elapsed() < PATIENCE, "{:?}", bench.sim.stats().totals);
        let holds = bench.store.holds(bench.query()).await.unwrap();
        match holds.first().and_then(|hold| hold.until_ms) {
            Some(until_ms) if until_ms > bench.now_ms() && bench.sim.stats().totals.in_flight == 0 => {
                let sent = bench.sim.stats().totals.received;
                windows.push((until_ms - before_ms.max(bench.now_ms()), sent));
                before_ms = until_ms;
                clock.set_ms(until_ms);
            }
            _ => tokio::time::sleep(std::time::Duration::from_millis(1)).await,
        }
    }
    // Past the calls that were on the wire together, each window costs one send.
    let tail: Vec<_> = windows.iter().rev().take(80).collect();
    assert!(tail.windows(2).all(|pair| pair[0].1 - pair[1].1 == 1), "{windows:?}");
    let longest_ms = windows.iter().map(|window| window.0).max().unwrap();
    assert!((900_000..=1_080_000).contains(&longest_ms), "{longest_ms}");
    for id in &ids {
        assert!(!is_final(&bench.job(*id).await));
    }
    // The hundred-and-first is answered, and all of them with it.
    for id in ids {
        loop {
            let job = bench.job(id).await;
            if is_final(&job) {
                assert_eq!(job.state, JobState::Succeeded);
                break;
            }
            assert!(started.elapsed() < PATIENCE, "{job:?}");
            if let Some(until_ms) =
                bench.store.holds(bench.query()).await.unwrap().first().and_then(|hold| hold.until_ms)
            {
                clock.set_ms(until_ms.max(bench.now_ms()));
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
    assert_eq!(bench.sim.stats().totals.early, 0);
}

#[tokio::test]
async fn a_spent_plan_window_holds_the_account_and_resumes_when_it_said() {
    let scenario = "[[rules]]\nname = \"spent\"\nmodels = [\"m\"]\nfirst = 1\n\
        refuse = { kind = \"plan_window\", reset_in = \"2s\", closes = \"key\" }\n";
    let bench = Bench::start(scenario, "").await;
    let first = bench.submit(json!({})).await;
    bench.until(first, |job| job.deferrals == Some(1)).await;
    // Another model of the same account waits as well: the allowance is the account's.
    let other = bench.submit(json!({"model": "other"})).await;
    let waiting = bench.job(other).await;
    assert!(waiting.deferred);
    assert_eq!(bench.sim.stats().totals.received, 1);
    let (first, other) = (bench.succeeded(first).await, bench.succeeded(other).await);
    assert!(!text(&first).is_empty() && !text(&other).is_empty());
    let counts = bench.sim.stats().totals;
    assert_eq!((counts.early, counts.doomed), (0, 0));
    let resets = bench.store.resets(bench.query()).await.unwrap().items;
    assert_eq!(resets.len(), 1);
    assert_eq!(resets[0].word, "kept");
    assert!(resets[0].lateness_ms.unwrap() >= 0);
}

#[tokio::test]
async fn a_spell_of_errors_is_waited_out_in_place_and_leaves_its_trace() {
    let scenario = "[[rules]]\nname = \"spell\"\nfirst = 2\nrefuse = { kind = \"server_error\", status = 503 }\n";
    let bench = Bench::start(scenario, "[recovery.tiered.transient]\nbase = \"20ms\"\n").await;
    let id = bench.submit(json!({})).await;
    bench.succeeded(id).await;
    let turns = bench.turns(id).await;
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0].record.attempts, Some(3));
    assert_eq!(
        turns[0].sends.iter().map(|send| send.outcome.as_str()).collect::<Vec<_>>(),
        ["failed", "failed", "answered"]
    );
    assert!(turns[0].sends[0].wait_ms.unwrap() >= 20);
    let mut query = bench.query();
    assert!(bench.store.failures(query.clone()).await.unwrap().items.is_empty());
    query.include_retried = true;
    assert_eq!(bench.store.failures(query).await.unwrap().items.len(), 2);
}
