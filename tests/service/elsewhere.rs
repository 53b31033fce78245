//! What one worker cannot do, and another can: a provider that it does not know, a machine that has no file left.

use crate::bench::{Bench, config_text, load};
use crate::kill::{ended, outcomes, spec, submit};
use crate::process::Place;
use reprieve::clock::Clock;
use reprieve::store::{JobState, Outcome, Store};
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn a_worker_without_a_jobs_provider_leaves_it_to_one_that_has_it() {
    let mut bench = Bench::idle_at("", "", Clock::system()).await;
    let dir = tempfile::tempdir().unwrap();
    // The same database, and a configuration without the provider `sim`.
    let text = config_text(dir.path(), &bench.sim.url(), "").replace("[providers.sim]", "[providers.other]");
    let text = text.replace("account = \"main\"", "account = \"another\"");
    let lacking = load(dir.path(), &text);
    bench.work_as(&lacking, Arc::new(|_, _| {})).await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(bench.submit(json!({})).await);
    }
    // Work of its own goes on meanwhile: the turns that it cannot send have been claimed before, and given back.
    let mut own = Vec::new();
    for n in 0..3 {
        let directory = reprieve::agent::Directory::of(&lacking);
        let text = json!({"model": format!("m{n}"), "provider": "other", "input": "x"}).to_string();
        let job = reprieve::agent::accept(&text, &directory, bench.now_ms(), None).unwrap();
        own.push(job.id);
        bench.store.submit(vec![job]).await.unwrap();
    }
    for id in own {
        bench.succeeded(id).await;
    }
    for id in &ids {
        let job = bench.job(*id).await;
        assert_eq!((job.state, job.executions), (JobState::Queued, Some(0)), "{:?}", job.error);
    }
    bench.work().await;
    for id in ids {
        bench.succeeded(id).await;
        assert_eq!(outcomes(&bench.turns(id).await), [Outcome::Completed]);
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_machine_without_a_file_left_fails_nobody_and_counts_nothing() {
    let scenario = "[answer]\nlatency = \"300ms\"\n";
    let limits = "limits = { max_in_flight = 64 }\n[worker]\nconcurrency = 64\n";
    let place = Place::new(scenario, limits).await;
    let store = place.store().await;
    let ids = submit(&place, &store, (0..60).map(|_| spec("m")).collect()).await;
    let service = place.spawn_with_files(48, &["serve"]);
    service.logs("this machine is out of files or memory").await;
    for id in ids {
        let job = ended(&store, id).await;
        assert_eq!(job.state, JobState::Succeeded, "{:?}", job.error);
        assert_eq!(outcomes(&store.turns(id).await.unwrap()), [Outcome::Completed]);
    }
    service.stop().await;
}
