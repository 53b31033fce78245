//! Jobs whose calls may be made once: what is sent again, and what fails rather than being sent again on a guess.

use crate::bench::{Bench, error, text};
use crate::kill::{SHORT_LEASE, consistent, ended, outcomes, submit};
use crate::process::{Place, until};
use reprieve::store::{JobState, Outcome, Query, Store};
use serde_json::{Value, json};

fn spec() -> Value {
    json!({"model": "m", "provider": "sim", "input": "What is at the quay?", "delivery": "at_most_once"})
}

/// The same as chat and raw, streamed and whole.
fn shapes() -> [Value; 3] {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "What is at the quay?"}]});
    [
        json!({"delivery": "at_most_once"}),
        json!({"delivery": "at_most_once", "stream": false}),
        json!({"delivery": "at_most_once", "raw": {"path": "chat/completions", "body": body}}),
    ]
}

#[tokio::test]
async fn a_call_in_hand_of_a_killed_service_is_not_made_again() {
    let place =
        Place::new("[[rules]]\nname = \"stalls\"\nfirst = 1\nstall = { after_chunks = 2 }\n", SHORT_LEASE).await;
    let store = place.store().await;
    let service = place.start(&["serve"]).await;
    let id = submit(&place, &store, vec![spec()]).await[0];
    until("the call", || async { (place.sim.stats().totals.received == 1).then_some(()) }).await;
    service.kill().await;
    let service = place.start(&["serve"]).await;
    let job = ended(&store, id).await;
    assert_eq!((job.state, error(&job)["code"].as_str()), (JobState::Failed, Some("worker_lost")));
    let turns = store.turns(id).await.unwrap();
    assert_eq!((outcomes(&turns), turns[0].record.attempts), (vec![Outcome::Lost], None));
    assert_eq!(place.sim.stats().totals.received, 1);
    service.stop().await;
    consistent(&place).await;
}

#[tokio::test]
async fn a_service_killed_while_such_a_job_waits_in_place_goes_on_with_it() {
    let scenario = "[[rules]]\nname = \"refused\"\nfirst = 1\n\
        refuse = { kind = \"rate_limit_requests\", reset_in = \"5s\", reset = [\"retry-after\"] }\n";
    let place = Place::new(scenario, SHORT_LEASE).await;
    let store = place.store().await;
    let service = place.start(&["serve"]).await;
    let id = submit(&place, &store, vec![spec()]).await[0];
    // Hold, replaced send and wait are one transaction.
    let held = until("the hold", || async { store.holds(Query::default()).await.unwrap().pop() }).await;
    assert_eq!(store.job(id).await.unwrap().unwrap().state, JobState::Running, "it waits in hand");
    service.kill().await;
    let service = place.start(&["serve"]).await;
    let job = ended(&store, id).await;
    assert_eq!(job.state, JobState::Succeeded, "{:?}", job.error);
    let turns = store.turns(id).await.unwrap();
    assert_eq!(outcomes(&turns), [Outcome::Lost, Outcome::Completed]);
    assert!(turns[1].record.started_ms >= held.until_ms.unwrap());
    let counts = place.sim.stats().totals;
    assert_eq!((counts.received, counts.completed, counts.early), (2, 1, 0));
    service.stop().await;
    consistent(&place).await;
}

#[tokio::test]
async fn what_may_have_begun_fails_at_its_first_send() {
    let faults = [
        ("a dropped answer", "drop = { after_chunks = 2 }", Some(true)),
        ("a connection that broke before the head", "drop = {}", Some(false)),
        ("500", "refuse = { kind = \"server_error\", status = 500 }", Some(false)),
        (
            "a 200 that says 429",
            "error_frame = { body = '{\"error\":{\"code\":429,\"message\":\"slow down\"}}' }",
            None,
        ),
    ];
    for (what, fault, speaks) in faults {
        for members in shapes() {
            let streams = members.get("stream").is_none() && members.get("raw").is_none();
            let bench = Bench::start(&format!("[[rules]]\nname = \"broken\"\n{fault}\n"), "").await;
            let id = bench.submit(members).await;
            let job = bench.ended(id).await;
            assert_eq!((job.state, bench.sim.stats().totals.received), (JobState::Failed, 1), "{what}: {job:?}");
            assert_eq!(error(&job)["code"], "model_incomplete", "{what}");
            assert_eq!(outcomes(&bench.turns(id).await), [Outcome::Failed], "{what}");
            if let (Some(speaks), true) = (speaks, streams) {
                assert_eq!(job.result.is_some_and(|result| result.contains("\"text\"")), speaks, "{what}: its text");
            }
        }
    }
}

#[tokio::test]
async fn what_cannot_have_begun_is_sent_again() {
    let faults = [
        "refuse = { kind = \"rate_limit_requests\", reset_in = \"1s\", reset = [\"retry-after\"] }",
        "refuse = { kind = \"server_error\", status = 503 }",
    ];
    for fault in faults {
        for members in shapes() {
            let bench = Bench::start(&format!("[[rules]]\nname = \"refused\"\nfirst = 1\n{fault}\n"), "").await;
            let id = bench.submit(members).await;
            bench.succeeded(id).await;
            let turns = bench.turns(id).await;
            assert_eq!((outcomes(&turns), turns[0].record.attempts), (vec![Outcome::Completed], Some(2)), "{fault}");
            assert_eq!(bench.sim.stats().totals.received, 2, "{fault}");
        }
    }
}

#[tokio::test]
async fn a_worker_stopped_at_once_fails_what_is_on_the_wire_and_gives_back_what_waits() {
    let scenario = "[[rules]]\nname = \"stalls\"\nmodels = [\"m\"]\nstall = { after_chunks = 2 }\n\
        [[rules]]\nname = \"refused\"\nmodels = [\"o\"]\n\
        refuse = { kind = \"rate_limit_requests\", reset_in = \"20s\", reset = [\"retry-after\"] }\n";
    let mut bench = Bench::start(scenario, "").await;
    let sent = bench.submit(json!({"delivery": "at_most_once"})).await;
    let waits = bench.submit(json!({"delivery": "at_most_once", "model": "o"})).await;
    until("both calls", || async {
        let heard = bench.live.lock().unwrap().iter().any(|(id, line)| *id == sent && line.starts_with("text"));
        let held = !bench.store.holds(bench.query()).await.unwrap().is_empty();
        (heard && held).then_some(())
    })
    .await;
    bench.stop.now.cancel();
    bench.stop().await;
    let job = bench.job(sent).await;
    assert_eq!((job.state, error(&job)["code"].as_str()), (JobState::Failed, Some("worker_drained")));
    assert!(!text(&job).is_empty(), "what was heard is kept");
    assert_eq!(outcomes(&bench.turns(sent).await), [Outcome::Failed]);
    let job = bench.job(waits).await;
    assert_eq!((job.state, job.executions), (JobState::Queued, Some(0)));
    assert_eq!(outcomes(&bench.turns(waits).await), [Outcome::Deferred]);
    assert_eq!(bench.sim.stats().totals.received, 2);
}

#[tokio::test]
async fn such_a_job_ends_by_cancel_and_deadline_as_any_other() {
    let bench = Bench::start("[[rules]]\nname = \"stalls\"\nstall = { after_chunks = 2 }\n", "").await;
    let cancelled = bench.submit(json!({"delivery": "at_most_once"})).await;
    let overdue = bench.submit(json!({"delivery": "at_most_once", "deadline": "2s"})).await;
    until("the calls", || async { (bench.sim.stats().totals.received == 2).then_some(()) }).await;
    bench.store.cancel(vec![cancelled], bench.now_ms()).await.unwrap();
    assert_eq!(bench.ended(cancelled).await.state, JobState::Cancelled);
    let job = bench.ended(overdue).await;
    assert_eq!(error(&job)["model_failure"]["cause"], "deadline");
    assert_eq!(bench.sim.stats().totals.received, 2);
}
