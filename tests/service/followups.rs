//! What people do to jobs while they live, and after: messages, pauses, retries.

use crate::bench::{Bench, is_final, text};
use reprieve::agent::{self, Directory};
use reprieve::store::{JobId, JobState, NewMessages, Outcome, Pause, Posted, Steer, SteerOutcome, Store, Submitted};
use serde_json::json;

async fn tell(bench: &Bench, job: JobId, body: &str) -> Posted {
    let messages = agent::messages(body).unwrap();
    let new = NewMessages { job, key: None, messages, last_turn: None, now_ms: bench.now_ms() };
    bench.store.post(new).await.unwrap()
}

/// Retries an ended job.
async fn retry(bench: &Bench, id: JobId) -> JobId {
    let (job, history) = (bench.job(id).await, bench.store.history(id).await.unwrap());
    let new = agent::again(&job, &history, &Directory::of(&bench.config), bench.now_ms()).unwrap();
    match bench.store.submit(vec![new]).await.unwrap()[0] {
        Submitted::Accepted(new) => new,
        other => panic!("not accepted: {other:?}"),
    }
}

fn pause(bench: &Bench) -> Pause {
    Pause { since_ms: bench.now_ms(), by: "test".into(), reason: None }
}

#[tokio::test]
async fn a_follow_up_posted_while_a_job_runs_is_answered_before_it_ends() {
    let scenario = "[answer]\nchars = 80\n\
        [[rules]]\nname = \"slow\"\nfirst = 1\nlatency = \"3s\"\nanswer = {}\n";
    let bench = Bench::start(scenario, "").await;
    let id = bench.submit(json!({})).await;
    bench.until(id, |job| job.state == JobState::Running).await;
    assert_eq!(tell(&bench, id, r#"{"input":"And behind it?"}"#).await, Posted::Accepted { seq: 2 });
    let job = bench.succeeded(id).await;
    let history = bench.store.history(id).await.unwrap();
    assert_eq!(history.responses.len(), 2);
    let answers: Vec<String> = history
        .responses
        .iter()
        .map(|(_, _, response)| agent::response::Response::read(response).unwrap().text)
        .collect();
    assert!(!answers[0].is_empty() && answers[0] != answers[1], "{answers:?}");
    assert_eq!(text(&job), answers[1], "the result is the last answer");
    let turns = bench.turns(id).await;
    assert_eq!(turns.iter().map(|turn| turn.record.outcome).collect::<Vec<_>>(), [Outcome::Completed; 2]);
    assert_eq!(tell(&bench, id, r#"{"input":"?"}"#).await, Posted::AlreadyFinal(JobState::Succeeded));
}

#[tokio::test]
async fn a_follow_up_posted_amid_a_cut_answer_waits_for_the_whole_of_it() {
    let scenario = "[answer]\nchars = 400\n\
        [[rules]]\nname = \"dropped\"\nfirst = 1\nlatency = \"3s\"\ndrop = { after_chunks = 5 }\n";
    let calm = Bench::start("[answer]\nchars = 400\n", "").await;
    let whole = text(&calm.succeeded(calm.submit(json!({})).await).await);
    let bench = Bench::start(scenario, "[recovery.tiered.transient]\nbase = \"10ms\"\n").await;
    let id = bench.submit(json!({})).await;
    bench.until(id, |job| job.state == JobState::Running).await;
    assert!(matches!(tell(&bench, id, r#"{"input":"And behind it?"}"#).await, Posted::Accepted { .. }));
    bench.succeeded(id).await;
    let history = bench.store.history(id).await.unwrap();
    let texts =
        history.responses.iter().map(|(_, _, document)| agent::response::Response::read(document).unwrap().text);
    let texts: Vec<String> = texts.collect();
    assert_eq!(texts.len(), 3);
    assert_eq!(texts[..2].concat(), whole, "the answer was broken by what was told in its middle");
    assert!(!texts[2].is_empty());
}

/// Its last turn was spent on the rest of an answer: a job that did not read what it was told has not succeeded.
#[tokio::test]
async fn a_job_that_is_out_of_turns_does_not_pass_over_what_it_was_told() {
    let scenario = "[answer]\nchars = 400\n\
        [[rules]]\nname = \"dropped\"\nfirst = 1\nlatency = \"3s\"\ndrop = { after_chunks = 5 }\n";
    let bench = Bench::start(scenario, "[recovery.tiered.transient]\nbase = \"10ms\"\n").await;
    let id = bench.submit(json!({"max_turns": 2})).await;
    bench.until(id, |job| job.state == JobState::Running).await;
    assert_eq!(tell(&bench, id, r#"{"input":"And behind it?"}"#).await, Posted::Accepted { seq: 2 });
    let job = bench.ended(id).await;
    let error: serde_json::Value = serde_json::from_str(job.error.as_deref().unwrap()).unwrap();
    assert_eq!((job.state, &error["code"]), (JobState::Failed, &json!("turn_limit")));
    let outcomes: Vec<Outcome> = bench.turns(id).await.iter().map(|turn| turn.record.outcome).collect();
    assert_eq!(outcomes, [Outcome::Truncated, Outcome::Completed, Outcome::Failed]);
    let calm = Bench::start("[answer]\nchars = 400\n", "").await;
    let whole = text(&calm.succeeded(calm.submit(json!({})).await).await);
    assert_eq!(text(&job), whole, "the answer there is, whole");
    // A retry reads it.
    let again = bench.succeeded(retry(&bench, id).await).await;
    assert!(!text(&again).is_empty() && text(&again) != whole);
}

#[tokio::test]
async fn what_is_paused_waits_and_goes_on_when_it_is_resumed() {
    let mut bench = Bench::idle_at("", "", reprieve::clock::Clock::system()).await;
    let (job, other) = (bench.submit(json!({})).await, bench.submit(json!({"queue": "other"})).await);
    let steered = bench.store.steer(vec![job], Steer::Pause(pause(&bench)), bench.now_ms()).await.unwrap();
    assert_eq!(steered, [SteerOutcome::Done]);
    assert_eq!(bench.store.pause_queue("other".into(), Some(pause(&bench))).await.unwrap(), None);
    bench.work().await;
    // Claimed and ended past both of them.
    let free = bench.submit(json!({})).await;
    bench.succeeded(free).await;
    for id in [job, other] {
        assert!(!is_final(&bench.job(id).await));
        assert!(bench.turns(id).await.is_empty());
    }
    bench.store.steer(vec![job], Steer::Resume, bench.now_ms()).await.unwrap();
    bench.succeeded(job).await;
    assert!(bench.store.pause_queue("other".into(), None).await.unwrap().is_some());
    bench.succeeded(other).await;
}

#[tokio::test]
async fn a_retry_of_a_job_that_was_cut_twice_ends_with_the_exact_text() {
    let calm = Bench::start("[answer]\nchars = 400\n", "").await;
    let whole = text(&calm.succeeded(calm.submit(json!({})).await).await);
    let scenario = "[answer]\nchars = 400\n\
        [[rules]]\nname = \"dropped\"\nfirst = 2\ndrop = { after_chunks = 5 }\n\
        [[rules]]\nname = \"hard\"\nfirst = 1\nrefuse = { kind = \"context_length\" }\n\
        [[rules]]\nname = \"dropped again\"\nfirst = 1\ndrop = { after_chunks = 5 }\n";
    let bench = Bench::start(scenario, "[recovery.tiered.transient]\nbase = \"10ms\"\n").await;
    let first = bench.submit(json!({"labels": {"k": "v"}})).await;
    let failed = bench.ended(first).await;
    assert_eq!(failed.state, JobState::Failed);
    let said = text(&failed);
    assert!(!said.is_empty() && whole.starts_with(&said) && said != whole);
    let second = retry(&bench, first).await;
    let job = bench.succeeded(second).await;
    assert_eq!(text(&job), whole);
    assert_eq!((job.retry_of, &job.labels), (Some(first), &failed.labels));
    let turns = bench.turns(second).await;
    assert_eq!(
        turns.iter().map(|turn| turn.record.outcome).collect::<Vec<_>>(),
        [Outcome::Truncated, Outcome::Completed]
    );
    // Asked again, it answers the whole question again: nothing is taken over of the one answer there was.
    let third = retry(&bench, second).await;
    assert_eq!(text(&bench.succeeded(third).await), whole);
    assert_eq!(bench.turns(third).await.len(), 1);
}
