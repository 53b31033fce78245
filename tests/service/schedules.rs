//! Schedules: each instant fires once, however many processes there are, and what was missed is caught up with.

use crate::bench::Bench;
use crate::process::{Place, until};
use reprieve::agent::Directory;
use reprieve::clock::Clock;
use reprieve::config::Config;
use reprieve::scheduler::schedules;
use reprieve::store::{JobState, Query, RunRow, ScheduleId, ScheduleRow, Scheduled, Sqlite, Store};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Sunday 2026-11-29T12:00:00Z.
const START_MS: i64 = 1_795_953_600_000;
const HOUR_MS: i64 = 3_600_000;

async fn add(store: &Sqlite, config: &Config, members: Value) -> ScheduleId {
    let mut body = json!({"name": "s", "job": {"model": "m", "provider": "sim", "input": "x"}});
    for (name, value) in members.as_object().unwrap() {
        body[name] = value.clone();
    }
    let new = schedules::accept(&body.to_string(), &Directory::of(config), store.clock().now_ms()).unwrap();
    match store.add_schedule(new).await.unwrap() {
        Scheduled::Added(id) => id,
        other => panic!("not added: {other:?}"),
    }
}

async fn schedule(store: &Sqlite, id: ScheduleId) -> ScheduleRow {
    store.schedules().await.unwrap().into_iter().find(|row| row.id == id).unwrap()
}

/// What came of each instant, the oldest first, in hours after the start.
fn runs(row: &ScheduleRow) -> Vec<(i64, &str)> {
    let run = |run: &RunRow| (run.nominal_ms - START_MS) / HOUR_MS;
    row.runs.iter().rev().map(|one| (run(one), one.outcome.as_str())).collect()
}

#[tokio::test]
async fn an_instant_fires_once_with_two_processes_alive() {
    let place = Place::new("", "").await;
    let store = place.store().await;
    let (one, two) = (place.start(&["serve"]).await, place.start(&["worker"]).await);
    let id = add(&store, &place.config, json!({"cron": "* * * * * *", "overlap": "queue", "catch_up": "all"})).await;
    until("five runs", || async { (schedule(&store, id).await.runs.len() >= 5).then_some(()) }).await;
    let pause = reprieve::store::Pause { since_ms: store.clock().now_ms(), by: "test".into(), reason: None };
    assert!(store.pause_schedule(id, Some(pause), None).await.unwrap());
    let row = schedule(&store, id).await;
    let instants: Vec<i64> = row.runs.iter().rev().map(|run| run.nominal_ms).collect();
    assert!(instants.windows(2).all(|pair| pair[1] - pair[0] == 1_000), "{instants:?}");
    assert!(row.runs.iter().all(|run| run.outcome == "submitted"), "{:?}", row.runs);
    let jobs: HashSet<_> = row.runs.iter().map(|run| run.job.unwrap()).collect();
    let query = Query { schedule: Some(id), limit: 1_000, now_ms: store.clock().now_ms(), ..Query::default() };
    let submitted = store.jobs(query).await.unwrap().items;
    assert_eq!(submitted.iter().map(|job| job.id).collect::<HashSet<_>>(), jobs);
    one.stop().await;
    two.stop().await;
}

/// A clock that leaps ahead for three days and comes back: nothing falls silent until the days have passed.
#[tokio::test]
async fn a_clock_that_was_ahead_does_not_silence_a_schedule() {
    let clock = Clock::manual(START_MS);
    let mut bench = Bench::idle_at("", "", clock.clone()).await;
    let id = add(&bench.store, &bench.config, json!({"cron": "30 * * * *"})).await;
    bench.work().await;
    let store = &bench.store;
    clock.set_ms(START_MS + 72 * HOUR_MS);
    until("the leap", || async { (!schedule(store, id).await.runs.is_empty()).then_some(()) }).await;
    clock.set_ms(START_MS);
    let next_ms = START_MS + HOUR_MS / 2;
    until("the way back", || async { (schedule(store, id).await.next_ms == Some(next_ms)).then_some(()) }).await;
    clock.set_ms(next_ms);
    let run = until("the firing", || async {
        schedule(store, id).await.runs.into_iter().find(|run| run.nominal_ms == next_ms && run.job.is_some())
    });
    assert_eq!(run.await.outcome, "submitted");
    // A worker's polls are not asleep for three days, either.
    let job = bench.submit(json!({})).await;
    bench.succeeded(job).await;
}

#[tokio::test]
async fn what_was_missed_while_nobody_lived_is_caught_up_with() {
    let clock = Clock::manual(START_MS);
    let mut bench = Bench::idle_at("", "", clock.clone()).await;
    let last = add(&bench.store, &bench.config, json!({"cron": "30 * * * *"})).await;
    let all = add(
        &bench.store,
        &bench.config,
        json!({"name": "t", "cron": "30 * * * *", "catch_up": "all", "overlap": "queue"}),
    );
    let all = all.await;
    let none = add(&bench.store, &bench.config, json!({"name": "u", "cron": "0 * * * *", "catch_up": "none"})).await;
    let gone = json!({"name": "v", "cron": "30 * * * *", "job": {"model": "m", "provider": "other", "input": "x"}});
    let mut wider = bench.config.clone();
    let other = wider.providers["sim"].clone();
    wider.providers.insert("other".into(), other);
    let gone = add(&bench.store, &wider, gone).await;
    // Three instants pass while no process lives; the next one of `u` comes on time.
    clock.set_ms(START_MS + 3 * HOUR_MS);
    bench.work().await;
    bench.work().await;
    let store = &bench.store;
    for id in [last, all, none, gone] {
        until("the firing", || async { schedule(store, id).await.runs.first().map(|_| ()) }).await;
    }
    assert_eq!(runs(&schedule(store, last).await), [(0, "skipped_missed"), (1, "skipped_missed"), (2, "submitted")]);
    assert_eq!(runs(&schedule(store, all).await), [(0, "submitted"), (1, "submitted"), (2, "submitted")]);
    assert_eq!(runs(&schedule(store, none).await), [(1, "skipped_missed"), (2, "skipped_missed"), (3, "submitted")]);
    let refused = schedule(store, gone).await;
    assert_eq!(runs(&refused), [(0, "skipped_missed"), (1, "skipped_missed"), (2, "refused")]);
    assert!(refused.runs[0].error.as_deref().unwrap().contains("`other` is not configured"));
    assert_eq!(refused.next_ms, Some(START_MS + 3 * HOUR_MS + HOUR_MS / 2), "it goes on");
    for run in schedule(store, all).await.runs {
        let job = bench.succeeded(run.job.unwrap()).await;
        assert_eq!((job.state, job.schedule), (JobState::Succeeded, Some(all)));
    }
}
