//! Cancel, deadlines, drain: what stops a turn, wherever it stands.

use crate::bench::{Bench, error};
use reprieve::clock::Clock;
use reprieve::scheduler::retention::{Keep, run_once};
use reprieve::store::{CancelOutcome, JobState, Outcome, Pruned, Store};
use serde_json::json;

/// Every answer stalls for ever after some chunks.
const STALLS: &str = "[[rules]]\nname = \"stalls\"\nmodels = [\"m\"]\nstall = { after_chunks = 3 }\n";

#[tokio::test]
async fn a_cancel_interrupts_a_stream_and_keeps_what_was_said() {
    let bench = Bench::start(STALLS, "").await;
    let id = bench.submit(json!({})).await;
    loop {
        if bench.live.lock().unwrap().iter().filter(|(_, line)| line.starts_with("text ")).count() >= 3 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.store.cancel(vec![id], bench.now_ms()).await.unwrap(), [CancelOutcome::Asked]);
    let asked_ms = bench.now_ms();
    let job = bench.ended(id).await;
    assert_eq!(job.state, JobState::Cancelled);
    assert!(job.finished_ms.unwrap() - asked_ms < 1_000);
    assert_eq!(error(&job)["code"], "model_cancelled");
    let turns = bench.turns(id).await;
    assert_eq!(turns[0].record.outcome, Outcome::Cancelled);
    let response: serde_json::Value = serde_json::from_str(turns[0].record.response.as_deref().unwrap()).unwrap();
    assert!(!response["text"].as_str().unwrap().is_empty());
}

#[tokio::test]
async fn a_cancel_interrupts_a_wait_in_place_and_a_deferred_turn_ends_at_once() {
    let scenario = "[[rules]]\nname = \"near\"\nmodels = [\"near\"]\nrefuse = { kind = \"rate_limit_requests\", reset_in = \"20s\" }\n\
        [[rules]]\nname = \"far\"\nmodels = [\"far\"]\nrefuse = { kind = \"rate_limit_requests\", reset_in = \"2h\" }\n";
    let bench = Bench::start(scenario, "").await;
    let near = bench.submit(json!({"model": "near"})).await;
    let far = bench.submit(json!({"model": "far"})).await;
    bench.until(near, |job| job.wait_until_ms.is_some()).await;
    bench.until(far, |job| job.deferrals == Some(1)).await;
    let outcomes = bench.store.cancel(vec![near, far], bench.now_ms()).await.unwrap();
    assert_eq!(outcomes, [CancelOutcome::Asked, CancelOutcome::Cancelled]);
    for id in [near, far] {
        let job = bench.ended(id).await;
        assert_eq!(job.state, JobState::Cancelled);
        assert_eq!(error(&job)["code"], "model_cancelled");
    }
    assert_eq!(bench.sim.stats().totals.received, 2);
}

#[tokio::test]
async fn a_deadline_cuts_a_running_call_and_ends_a_waiting_job() {
    let scenario = format!(
        "{STALLS}[[rules]]\nname = \"far\"\nmodels = [\"far\"]\nrefuse = {{ kind = \"rate_limit_requests\", reset_in = \"2s\" }}\n"
    );
    let bench = Bench::start(&scenario, "").await;
    let running = bench.submit(json!({"deadline": "300ms"})).await;
    let job = bench.ended(running).await;
    assert_eq!(job.state, JobState::Failed);
    assert_eq!(error(&job)["model_failure"]["cause"], "deadline");
    assert!(job.finished_ms.unwrap() >= job.deadline_ms.unwrap());
    let deferred = bench.submit(json!({"model": "far"})).await;
    bench.until(deferred, |job| job.wait_until_ms.is_some() || job.deferred).await;
    let waiting = bench.submit(json!({"model": "far", "deadline": "200ms"})).await;
    let job = bench.ended(waiting).await;
    assert_eq!(error(&job)["code"], "deadline_exceeded");
    assert!(error(&job).get("model_failure").is_none());
    assert!(job.finished_ms.unwrap() - job.deadline_ms.unwrap() < 1_000);
}

#[tokio::test]
async fn a_drain_finishes_what_it_can_and_puts_the_rest_back_without_counting_it() {
    let scenario = format!("[answer]\nlatency = \"200ms\"\n{STALLS}");
    let mut bench = Bench::start(&scenario, "[worker]\ndrain = \"400ms\"\n").await;
    let (stuck, quick) = (bench.submit(json!({})).await, bench.submit(json!({"model": "quick"})).await);
    while bench.sim.stats().totals.received < 2 {
        tokio::task::yield_now().await;
    }
    bench.stop().await;
    assert_eq!(bench.job(quick).await.state, JobState::Succeeded);
    let job = bench.job(stuck).await;
    assert_eq!((job.state, job.executions), (JobState::Queued, Some(0)));
    let turns = bench.turns(stuck).await;
    assert_eq!(turns[0].record.outcome, Outcome::Requeued);
    assert_eq!(turns[0].record.code.as_deref(), Some("worker_drained"));
    assert!(bench.store.workers(bench.now_ms()).await.unwrap().is_empty());
}

#[tokio::test]
async fn retention_deletes_what_ended_long_ago_and_nothing_that_still_lives() {
    let clock = Clock::manual(1_790_000_000_000);
    let bench = Bench::start_at("", "", clock.clone()).await;
    let ended = bench.submit(json!({"model": "quick"})).await;
    bench.succeeded(ended).await;
    let lives = bench.submit(json!({"model": "quick", "not_before": "30d"})).await;
    let keep = Keep { records_ms: 1_000, jobs_ms: 5_000 };
    clock.advance_ms(2_000);
    while run_once(&bench.store, keep).await.unwrap() != Pruned::default() {}
    assert!(bench.turns(ended).await.is_empty(), "its records outlived their second");
    assert_eq!(bench.job(ended).await.state, JobState::Succeeded);
    clock.advance_ms(5_000);
    while run_once(&bench.store, keep).await.unwrap() != Pruned::default() {}
    assert!(bench.store.job(ended).await.unwrap().is_none());
    assert_eq!(bench.job(lives).await.state, JobState::Queued);
}
