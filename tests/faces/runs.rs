//! Commands that execute: against the simulated provider, with the worker in their own process.

use crate::rig::Place;
use reprieve::sim::{Scenario, Sim, SimOptions};
use serde_json::{Value, json};

/// A simulator that runs beside the test's processes.
fn sim(scenario: &str) -> (tokio::runtime::Runtime, Sim) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let scenario = Scenario::parse(&format!("name = \"test\"\n{scenario}"), "test.toml").unwrap();
    let sim = runtime.block_on(Sim::start(scenario, SimOptions::default())).unwrap();
    (runtime, sim)
}

fn place(sim: &Sim) -> Place {
    Place::with_provider(&format!("{}/v1/", sim.url()), "worker.lease = \"5s\"")
}

fn run(place: &Place, arguments: &[&str]) -> crate::rig::Said {
    place.run(&[&["--config", "r.toml"], arguments].concat())
}

#[test]
fn a_prompt_is_answered_and_its_text_streamed() {
    let (_runtime, sim) = sim("");
    let place = place(&sim);
    let said = run(&place, &["run", "Why is the sky blue?", "--model", "m"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.starts_with("no live worker takes queue default;"), "{said:?}");
    let result = run(&place, &["results", "--json"]).json();
    assert_eq!(result["items"][0]["result"]["text"].as_str().unwrap(), said.out.trim_end_matches('\n'));
    assert!(!said.out.trim().is_empty());
}

#[test]
fn a_job_that_fails_exits_1_and_says_why() {
    let (_runtime, sim) = sim("[[rules]]\nname = \"key\"\nrefuse = { kind = \"bad_key\" }\n");
    let place = place(&sim);
    let said = run(&place, &["run", "hello", "--model", "m"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""), "{said:?}");
    assert!(said.err.contains("error: model_error: model returned HTTP 401"), "{said:?}");
    for list in ["jobs", "failures"] {
        let listed = run(&place, &[list]).out;
        assert!(listed.contains("HTTP 401 invalid_api_key"), "{listed}");
    }
    let counts = run(&place, &["failures", "--by", "class", "--json"]).json();
    assert_eq!((&counts["items"][0]["value"], &counts["items"][0]["failed"]), (&json!("authentication"), &json!(1)));
}

#[test]
fn a_wait_beyond_what_was_allowed_leaves_the_job_queued() {
    let (_runtime, sim) = sim("[[rules]]\nname = \"rate\"\nrefuse = { kind = \"plan_window\", reset_in = \"10m\" }\n");
    let place = place(&sim);
    let said = run(&place, &["run", "hello", "--model", "m", "--max-wait", "1m"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("it stays queued"), "{said:?}");
    let job = run(&place, &["jobs", "--json"]).json()["items"][0].clone();
    assert_eq!((&job["state"], &job["waits"]["reason"]), (&json!("deferred"), &json!("hold")));
    let holds = run(&place, &["holds", "--json"]).json();
    assert_eq!(holds["items"].as_array().unwrap().len(), 1);
    let resets = run(&place, &["resets", "--json"]).json();
    assert_eq!(resets["items"][0]["word"], "not_tested");
    // At 80 columns the clock it waits for shows.
    let listed = run(&place, &["jobs", "--state", "deferred"]).out;
    assert!(listed.lines().nth(1).unwrap().contains("until "), "{listed}");
    // Text renderings of the same.
    for list in ["jobs", "holds", "resets", "failures"] {
        let said = run(&place, &[list]);
        assert_eq!(said.code, 0, "{said:?}");
        assert!(said.out.lines().count() >= 1);
    }
    let shown = run(&place, &["job", job["id"].as_str().unwrap()]).out;
    assert!(shown.contains("  why       No live worker takes queue `default`"), "{shown}");
    let id = holds["items"][0]["id"].as_str().unwrap().to_owned();
    let lifted = run(&place, &["holds", "release", &id, "--reason", "a test"]);
    assert!(lifted.code == 0 && lifted.out.contains("released"), "{lifted:?}");
    assert_eq!(run(&place, &["holds", "release", &id]).code, 1);
}

#[test]
fn waiting_prints_each_result_as_it_ends() {
    let (_runtime, sim) =
        sim("[[rules]]\nname = \"long\"\nmodels = [\"long\"]\nrefuse = { kind = \"context_length\" }\n");
    let place = place(&sim);
    let job = |model: &str| json!({"model": model, "input": "x", "labels": {"of": model}}).to_string();
    place.write("jobs.jsonl", &[job("a"), job("b"), job("a")].join("\n"));
    let said = run(&place, &["submit", "jobs.jsonl", "--wait", "--key", "k"]);
    assert_eq!(said.code, 0, "{said:?}");
    let results: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), 3);
    assert!(results.iter().all(|job| job["state"] == "succeeded"));
    // Submitted again, the same results are there at once.
    let again = run(&place, &["submit", "jobs.jsonl", "--wait", "--key", "k"]);
    assert_eq!((again.code, again.out.lines().count()), (0, 3), "{again:?}");
    assert_eq!(sim.stats().totals.received, 3);
    // One that fails decides the exit.
    place.write("jobs.jsonl", &[job("a"), job("long")].join("\n"));
    let said = run(&place, &["submit", "jobs.jsonl", "--wait"]);
    assert_eq!((said.code, said.out.lines().count()), (1, 2), "{said:?}");
    assert_eq!(run(&place, &["results", "--label", "of=long"]).out.lines().count(), 1);
}

#[cfg(unix)]
#[test]
fn the_service_works_until_it_is_asked_to_stop() {
    use std::io::{BufRead, BufReader};
    let (_runtime, sim) = sim("");
    let place = Place::with_provider(&format!("{}/v1/", sim.url()), "server.bind = \"127.0.0.1:0\"");
    let mut child = place
        .command(&["--config", "r.toml", "serve"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = lines.next().unwrap().unwrap().rsplit(' ').next().unwrap().to_owned();
    place.write("job.json", &json!({"model": "m", "input": "x"}).to_string());
    // Another process's worker takes it: none is started here.
    let said = run(&place, &["submit", "job.json", "--wait"]);
    assert_eq!((said.code, said.err.as_str(), said.out.lines().count()), (0, "", 1), "{said:?}");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listed =
        runtime.block_on(async { reqwest::get(format!("{url}/v1/jobs")).await.unwrap().text().await.unwrap() });
    assert!(listed.contains("\"succeeded\""), "{listed}");
    let stopped = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_tour_ends_whole_and_early_for_nothing() {
    let place = Place::new();
    let said = place.run(&["demo", "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    let summary = said.json();
    assert_eq!(summary["early_sends"], 0, "{summary}");
    assert_eq!(summary["jobs"], summary["succeeded"].as_i64().unwrap() + summary["failed"].as_i64().unwrap());
    assert_eq!(summary["failed"], 3, "{summary}");
    assert!(summary["deferrals"].as_i64().unwrap() > 0, "{summary}");
    assert!(summary["elapsed_ms"].as_i64().unwrap() < 60_000, "{summary}");
    for cause in ["rate_limit", "usage_limit", "provider_error", "incomplete", "context_limit"] {
        assert!(summary["failures_by_cause"][cause].as_i64().unwrap_or(0) > 0, "{cause}: {summary}");
    }
}

#[test]
fn the_tour_is_told_in_80_columns_and_says_where_to_look_next() {
    let said = Place::new().run(&["demo"]);
    assert_eq!(said.code, 0, "{said:?}");
    for line in said.out.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for told in ["HTTP 401 invalid_api_key", "HTTP 400 context_length_exceeded", "as the tour intends", "demo --keep"] {
        assert!(said.out.contains(told), "{told}: {}", said.out);
    }
}

#[test]
fn an_interrupted_tour_leaves_nothing() {
    use std::io::{BufRead, BufReader};
    let place = Place::new();
    let mut child = place
        .command(&["demo"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("48 jobs"), "{first}");
    let asked = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(asked.success());
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!((ended.status.code(), said.as_str()), (Some(1), "error: interrupted; nothing of the tour is kept\n"));
    let left: Vec<_> = std::fs::read_dir(place.dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, Vec::<std::path::PathBuf>::new());
}
