//! What acts, schedules, messages, results and the configuration answer with, word by word, on both faces.

use crate::rig::{Place, Said};
use crate::served::{Hand, job, redacted, serve_at_now};
use crate::shown;
use reprieve::store::Store;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn place() -> Place {
    Place::with_provider("http://127.0.0.1:9/v1/", "")
}

fn run(place: &Place, arguments: &[&str]) -> Said {
    place.run(&[&["--config", "r.toml"], arguments].concat())
}

/// Submits one job; its id.
fn submit(place: &Place) -> String {
    let job = json!({"model": "m", "provider": "sim", "input": "x", "labels": {"run": "a"}}).to_string();
    place.write("job.json", &job);
    run(place, &["submit", "job.json"]).out.trim().to_owned()
}

/// Each command in its turn, as a text or a document, and how it ended.
fn told(place: &Place, commands: &[&[&str]]) -> String {
    let mut told = String::new();
    for command in commands {
        let said = run(place, command);
        let err = if said.err.is_empty() { String::new() } else { format!("-- stderr\n{}", said.err) };
        told.push_str(&format!("$ reprieve {}\n[{}]\n{}{err}\n", command.join(" "), said.code, said.out));
    }
    told
}

#[test]
fn every_act_is_told_and_previewed() {
    let place = place();
    let (first, second) = (submit(&place), submit(&place));
    let said = told(
        &place,
        &[
            &["pause", &first, "--reason", "wait", "--dry-run"],
            &["pause", &first, "--reason", "wait"],
            &["pause", &first, &second, "--json"],
            &["resume", "--label", "run=a", "--dry-run", "--json"],
            &["resume", "--label", "run=a", "--json"],
            &["reprioritise", "--priority", "7", &first, "--dry-run"],
            &["reprioritise", "--priority", "7", &first, "--json"],
            &["requeue", &first, "--dry-run"],
            &["requeue", &first, "--json"],
            &["retry", &first, "--json"],
            &["cancel", "--label", "run=a", "--dry-run", "--json"],
            &["cancel", &first, "--json"],
            &["cancel", "--label", "run=a"],
            &["retry", &first, "--dry-run"],
            &["retry", &first, "--json"],
            &["delete", &second, "--dry-run", "--json"],
            &["delete", &second, "--json"],
            &["delete", &second],
            &["cancel", "--label", "run=b", "--json"],
        ],
    );
    shown::redacted(|| insta::assert_snapshot!(said));
}

#[test]
fn a_message_is_told_once_on_both_outputs() {
    let place = place();
    let id = submit(&place);
    let said = told(
        &place,
        &[
            &["message", &id, "Be brief.", "--key", "k"],
            &["message", &id, "Be brief.", "--key", "k", "--json"],
            &["message", &id, "Be long.", "--key", "k", "--json"],
            &["cancel", &id],
            &["message", &id, "Too late.", "--json"],
        ],
    );
    shown::redacted(|| insta::assert_snapshot!(said));
}

#[test]
fn schedules_are_tables_and_documents() {
    let place = place();
    submit(&place);
    let add = ["schedules", "add", "nightly", "--cron", "30 2 1 1 *", "--zone", "Europe/Berlin", "job.json"];
    let said = told(
        &place,
        &[
            &["schedules", "--json"],
            &add,
            &[&add[..], &["--json"]].concat(),
            &["schedules"],
            &["schedules", "nightly"],
            &["schedules", "run", "nightly", "--json"],
            &["schedules", "run", "nightly"],
            &["schedules", "pause", "nightly", "--reason", "holidays", "--json"],
            &["schedules"],
            &["schedules", "--json"],
            &["schedules", "resume", "nightly", "--json"],
            &["schedules", "nightly"],
            &["schedules", "rm", "nightly", "--json"],
            &["schedules", "rm", "nightly"],
        ],
    );
    let more = [(r"in \d+ d( \d+ h)?", "in SOME"), (r"\b\d{13}\b", "MS")];
    shown::redacted_too(&more, || insta::assert_snapshot!(said));
}

#[tokio::test]
async fn results_are_lines_and_one_document_and_usage_is_by_anything() {
    let (served, clock) = serve_at_now().await;
    let hand = Hand::new(&served.store, &[]).await;
    let mut labelled = job("a");
    labelled["labels"] = json!({"run": "a"});
    served.taken(&labelled).await;
    clock.advance_ms(1_000);
    hand.complete(hand.answer(&hand.one().await)).await;
    let second = served.taken(&job("b")).await;
    served.store.cancel(vec![second], clock.now_ms()).await.unwrap();
    let mut commands: Vec<Vec<&str>> = vec![vec!["results"], vec!["results", "--json"]];
    for by in ["model", "tenant", "queue", "provider", "account", "day", "label.run"] {
        commands.push(vec!["usage", "--by", by]);
    }
    commands.push(vec!["usage", "--by", "label.run", "--json"]);
    let mut told = String::new();
    for command in commands {
        let said = served.commanded(&command);
        assert_eq!(said.code, 0, "{said:?}");
        told.push_str(&format!("$ reprieve {}\n{}-- stderr\n{}\n", command.join(" "), said.out, said.err));
    }
    let more = [(r"--cursor \S+", "--cursor CURSOR"), (r#""next_cursor": "[^"]+""#, r#""next_cursor": "CURSOR""#)];
    shown::redacted_too(&more, || insta::assert_snapshot!(told));
}

#[test]
fn a_configuration_is_one_document() {
    let place = place();
    let said = run(&place, &["config", "check", "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    insta::assert_snapshot!(said.out);
    place.write("r.toml", "worker.lease = \"soon\"\ncolour = 1\n");
    insta::assert_snapshot!("wrong", run(&place, &["config", "check", "--json"]).shown());
}

#[tokio::test]
async fn what_acts_over_http_answer_with() {
    let (served, clock) = serve_at_now().await;
    let id = served.taken(&job("a")).await;
    let hand = Hand::new(&served.store, &[]).await;
    let at = |what: &str| format!("/v1/jobs/{id}{what}");
    let mut said = vec![
        served.shown(served.delete(&at(""))).await,
        served.shown(served.post(&at("/retry"))).await,
        served.shown(served.post(&at("/cancel"))).await,
        served.shown(served.post(&at("/cancel"))).await,
        served.shown(served.post(&at("/retry"))).await,
        served.shown(served.post(&at("/retry"))).await,
    ];
    clock.advance_ms(1_000);
    let turn = hand.one().await;
    said.push(served.shown(served.post(&format!("/v1/jobs/{}/cancel", turn.job_id))).await);
    hand.complete(hand.answer(&turn)).await;
    said.push(served.shown(served.post(&format!("/v1/jobs/{}/cancel", turn.job_id))).await);
    said.push(served.shown(served.get("/v1/results")).await);
    said.push(served.shown(served.delete(&at(""))).await);
    said.push(served.shown(served.delete(&at(""))).await);
    said.push(served.shown(served.post(&at("/retry"))).await);
    said.push(served.shown(served.post(&at("/cancel"))).await);
    insta::assert_snapshot!(redacted(&said.join("\n"), &served));
}

/// A process that is ended with the test.
struct Following(Child);

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn results_are_followed_as_they_come_and_a_reader_that_leaves_ends_it_quietly() {
    let (served, clock) = serve_at_now().await;
    let mut child = crate::rig::command(served.dir.path(), &["--config", "r.toml", "results", "--follow"]);
    let mut child = Following(child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let (lines, mut read) = tokio::sync::mpsc::unbounded_channel();
    let mut out = BufReader::new(child.0.stdout.take().unwrap());
    // Leaves after eight lines, and closes the pipe with that.
    std::thread::spawn(move || {
        for _ in 0..8 {
            let mut line = String::new();
            if out.read_line(&mut line).unwrap() == 0 || lines.send(line).is_err() {
                break;
            }
        }
    });
    let mut waited = Duration::ZERO;
    for n in 0..8 {
        let id = served.taken(&job(&n.to_string())).await;
        served.store.cancel(vec![id], clock.now_ms()).await.unwrap();
        let begun = Instant::now();
        let line = tokio::time::timeout(Duration::from_secs(30), read.recv()).await.unwrap().unwrap();
        if n > 0 {
            waited += begun.elapsed();
        }
        let row: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&row["id"], &row["state"]), (&json!(id), &json!("cancelled")));
    }
    // Were it woken by the clock alone, it would take half a second each.
    assert!(waited < Duration::from_secs(3), "seven changes were seen after {waited:?}");
    let id = served.taken(&job("one more")).await;
    served.store.cancel(vec![id], clock.now_ms()).await.unwrap();
    let output = tokio::task::spawn_blocking(move || {
        let code = child.0.wait().unwrap().code();
        let err = std::io::read_to_string(child.0.stderr.take().unwrap()).unwrap();
        (code, err)
    });
    let ended = tokio::time::timeout(Duration::from_secs(30), output).await.unwrap().unwrap();
    assert_eq!(ended, (Some(0), String::new()));
}
