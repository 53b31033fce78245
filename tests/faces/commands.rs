//! Commands on a database: what they print, and how they end.

use crate::rig::{Place, Said};
use serde_json::{Value, json};

/// An address at which nothing answers: nothing is sent in these tests.
const NOWHERE: &str = "http://127.0.0.1:9/v1/";

fn place() -> Place {
    let more = "[providers.keyless]\nadapter = \"openai\"\nendpoint = \"http://127.0.0.1:9/v1/\"\napi_key = \"${NO_SUCH_KEY}\"\n";
    Place::with_provider(NOWHERE, more)
}

fn job(input: &str) -> String {
    json!({"model": "m", "provider": "sim", "input": input}).to_string()
}

fn run(place: &Place, arguments: &[&str]) -> Said {
    place.run(&[&["--config", "r.toml"], arguments].concat())
}

fn count(place: &Place) -> usize {
    run(place, &["jobs", "--json", "--limit", "1000"]).json()["items"].as_array().unwrap().len()
}

#[test]
fn one_wrong_line_of_ten_is_named_and_nothing_is_submitted() {
    let place = place();
    let mut lines: Vec<String> = (1..=10).map(|n| job(&n.to_string())).collect();
    lines[2] = "{\"model\": \"m\", \"provider\": \"sim\", \"input\": }".to_owned();
    lines[6] = json!({"model": "m", "provider": "sim", "input": "x", "colour": "red"}).to_string();
    place.write("jobs.jsonl", &(lines.join("\n") + "\n"));
    let said = run(&place, &["submit", "jobs.jsonl"]);
    insta::assert_snapshot!(said.shown());
    assert_eq!(count(&place), 0);
    let said = run(&place, &["submit", "jobs.jsonl", "--partial"]);
    insta::assert_snapshot!("partial", said.shown());
    assert_eq!(count(&place), 8);
}

#[test]
fn bad_jobs_and_files_say_what_would_be_right() {
    let place = place();
    place.write("keyless.json", "{\"model\": \"m\", \"provider\": \"keyless\", \"input\": \"x\"}");
    place.write("nobody.json", "{\n  \"model\": \"m\",\n  \"provider\": \"nobody\",\n  \"input\": \"x\"\n}\n");
    place.write("broken.json", "{\n  \"model\": \"m\",,\n}\n");
    place.write("empty.jsonl", "\n\n");
    place.write("good.json", &job("x"));
    let mut shown = String::new();
    for arguments in [
        &["submit", "nowhere.jsonl"] as &[&str],
        &["submit", "."],
        &["submit", "keyless.json"],
        &["submit", "nobody.json"],
        &["submit", "broken.json"],
        &["submit", "empty.jsonl"],
        &["run", "hello", "--model", "m"],
        &["run", "hello", "--model", "m", "--provider", "keyless"],
        &["job", "7"],
        &["job", "0199c2f4…9c2e"],
        &["job", "0199c2f4-1b2c-7d3e-8f40-516273849c2e"],
        &["jobs", "--state", "dead"],
        &["jobs", "--since", "yesterday"],
        &["jobs", "--limit", "0"],
        &["jobs", "--label", "x"],
        &["jobs", "--cursor", "nonsense"],
        &["failures", "--cause", "bad_luck"],
        &["resets", "--verdict", "guilty"],
        &["holds", "release", "0199c2f4-1b2c-7d3e-8f40-516273849c2e"],
        &["--json", "job", "0199c2f4-1b2c-7d3e-8f40-516273849c2e"],
    ] {
        let said = run(&place, arguments);
        assert_eq!(said.out, "", "{arguments:?}");
        shown.push_str(&format!("$ reprieve {}\n[{}] {}", arguments.join(" "), said.code, said.err));
    }
    insta::assert_snapshot!(shown);
    assert_eq!(count(&place), 0);
}

#[test]
fn a_database_that_does_not_serve_is_said_to_be_so() {
    let place = place();
    place.write("good.json", &job("x"));
    place.write(
        "text.db",
        "this is no database, and it is long enough to have a header of a hundred bytes or more, surely so",
    );
    let mut shown = String::new();
    for database in ["sqlite://nowhere/r.db", "sqlite://text.db", "sqlite://."] {
        let said = run(&place, &["--database", database, "submit", "good.json"]);
        assert_eq!((said.code, said.out.as_str()), (3, ""), "{said:?}");
        shown.push_str(&format!("{database}\n{}", said.err));
    }
    insta::assert_snapshot!(shown);
}

/// Runs statements on a database file, past the program.
async fn on(place: &Place, statements: &'static [&'static str]) -> sqlx::SqliteConnection {
    use sqlx::{Connection, Executor};
    let url = format!("sqlite://{}", place.dir.path().join("r.db").display());
    let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
    for statement in statements {
        connection.execute(*statement).await.unwrap();
    }
    connection
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_a_newer_release_is_left_alone() {
    let place = place();
    assert_eq!(count(&place), 0);
    drop(on(&place, &["PRAGMA user_version = 9000"]).await);
    let said = run(&place, &["jobs"]);
    assert_eq!((said.code, said.out.as_str()), (3, ""));
    let known: String =
        said.err.chars().rev().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    let known: String = known.chars().rev().collect();
    insta::assert_snapshot!(said.err.replace(&format!("knows {known}"), "knows N"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_another_process_locks_is_waited_for_and_then_said_to_be_so() {
    let place = place();
    place.write("good.json", &job("x"));
    assert_eq!(count(&place), 0);
    let _lock = on(&place, &["BEGIN IMMEDIATE"]).await;
    let said = run(&place, &["submit", "good.json"]);
    assert_eq!((said.code, said.out.as_str()), (3, ""), "{said:?}");
    assert!(said.err.starts_with("error: sqlite://r.db: the database is locked by another process"), "{said:?}");
}

#[test]
fn a_port_in_use_is_said_to_be_so() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let bind = taken.local_addr().unwrap().to_string();
    let place = Place::with_provider(NOWHERE, &format!("server.bind = \"{bind}\""));
    let said = run(&place, &["serve"]);
    assert_eq!((said.code, said.out.as_str()), (3, ""));
    let port = bind.rsplit(':').next().unwrap();
    insta::assert_snapshot!(said.err.replace(port, "PORT"));
}

#[test]
fn a_submission_with_a_key_is_repeatable() {
    let place = place();
    place.write("jobs.jsonl", &format!("{}\n{}\n", job("a"), job("b")));
    let said = run(&place, &["submit", "jobs.jsonl", "--key", "k"]);
    assert_eq!(said.shown(), "exit 0\n-- stdout\n2 jobs submitted\n-- stderr\n");
    let said = run(&place, &["submit", "jobs.jsonl", "--key", "k", "--json"]);
    let acks = said.json();
    assert_eq!(acks["items"].as_array().unwrap().iter().filter(|ack| ack["duplicate"] == true).count(), 2);
    assert_eq!((count(&place), acks["next_cursor"].is_null()), (2, true));
    // The same key with another job is refused, and the rest goes on.
    place.write("jobs.jsonl", &format!("{}\n{}\n{}\n", job("a"), job("c"), job("d")));
    let said = run(&place, &["submit", "jobs.jsonl", "--key", "k"]);
    assert_eq!((said.code, count(&place)), (1, 3), "{said:?}");
    assert!(said.err.starts_with("error: jobs.jsonl:2: the key was used for another job"), "{said:?}");
}

#[test]
fn stdin_is_spooled_and_a_single_object_may_span_lines() {
    let place = place();
    let said = place.run_with(
        &["--config", "r.toml", "submit", "-"],
        "{\n\"model\": \"m\",\n\"provider\": \"sim\",\n\"input\": \"x\"\n}\n",
        &[],
    );
    assert_eq!((said.code, said.out.trim().len()), (0, 36), "{said:?}");
    let id = said.out.trim().to_owned();
    let short = format!("{}…{}", &id[..8], &id[32..]);
    for name in [id.as_str(), &short, &id[..8], &id[..13], &id.to_uppercase()] {
        let shown = run(&place, &["job", name, "--json"]);
        assert_eq!(shown.json()["job"]["id"], id.as_str(), "{name}");
    }
}

#[test]
fn lists_and_one_job_are_shown_in_80_columns() {
    let place = place();
    let labelled = json!({"model": "m", "provider": "sim", "input": "Why?", "system": "Be brief.", "labels": {"run": "7"}, "not_before": "2h", "deadline": "3h"});
    place.write("jobs.jsonl", &format!("{}\n{labelled}\n", job("\u{1b}[31mred")));
    assert_eq!(run(&place, &["submit", "jobs.jsonl"]).code, 0);
    let jobs = run(&place, &["jobs"]);
    let ids: Vec<String> = run(&place, &["jobs", "--json"]).json()["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["id"].as_str().unwrap().to_owned())
        .collect();
    let job = run(&place, &["job", &ids[0]]);
    let shown = format!("{}\n{}", jobs.out, job.out);
    assert!(jobs.out.lines().all(|line| line.chars().count() <= 80));
    insta::with_settings!({filters => vec![
        (r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID"),
        (r"[0-9a-f]{8}…[0-9a-f-]+", "SHORT-ID-9c2e"),
        (r"(\d\d:\d\d:\d\dZ|[A-Z][a-z]{2} \d+ [A-Z][a-z]{2} \d\d:\d\dZ)", "INSTANT"),
        (r"\d+(\.\d)? m?s\b", "A MOMENT"),
        (r"in 1 h 59 min|in 2 h", "in 2 h"),
        (r"in 2 h 59 min|in 3 h", "in 3 h"),
        (r" +AGE", " AGE"),
        (r"m +A MOMENT", "m A MOMENT"),
        // Where a cell is cut depends on how long the moments beside it are.
        (r"(Not before INSTANT|A MOMENT; it goes).*…", "$1 …"),
    ]}, { insta::assert_snapshot!(shown) });
    let escaped = run(&place, &["job", &ids[1]]).out;
    assert!(escaped.contains("␛[31mred") && !escaped.contains('\u{1b}'));
    assert_eq!(run(&place, &["jobs", "--label", "run=7", "--json"]).json()["items"].as_array().unwrap().len(), 1);
}

#[test]
fn empty_lists_say_so() {
    let place = place();
    let mut shown = String::new();
    for list in ["jobs", "failures", "resets", "holds", "results"] {
        let said = run(&place, &[list]);
        assert_eq!(said.code, 0);
        shown.push_str(&format!("{list}: {}\n", said.out.trim_end()));
        let said = run(&place, &[list, "--json"]).json();
        assert_eq!(said["items"], json!([]));
    }
    insta::assert_snapshot!(shown);
    assert_eq!(run(&place, &["failures", "--by", "cause", "--json"]).json(), json!({"items": [], "next_cursor": null}));
}

#[test]
fn cancelled_jobs_end_and_stay_ended() {
    let place = place();
    place.write("job.json", &job("x"));
    let id = run(&place, &["submit", "job.json"]).out.trim().to_owned();
    let said = run(&place, &["cancel", &id, "--json"]);
    assert_eq!((said.code, said.json()["items"][0]["outcome"].as_str()), (0, Some("cancelled")));
    let said = run(&place, &["cancel", &id]);
    assert_eq!((said.code, said.out), (1, format!("{id}  had ended before: cancelled\n")));
    let results = run(&place, &["results"]);
    let result: Value = serde_json::from_str(&results.out).unwrap();
    assert_eq!((&result["id"], &result["state"]), (&json!(id), &json!("cancelled")));
    // A cursor stands at the end, too: later endings follow it.
    let cursor = results.err.trim().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(run(&place, &["results", "--cursor", &cursor]).out, "");
}

/// A reader that leaves early is no error.
#[test]
fn a_closed_pipe_ends_quietly() {
    let place = place();
    let lines: String = (0..1_000).map(|n| job(&n.to_string()) + "\n").collect();
    place.write("jobs.jsonl", &lines);
    assert_eq!(run(&place, &["submit", "jobs.jsonl"]).code, 0);
    let mut child = place
        .command(&["--config", "r.toml", "jobs", "--json", "--limit", "1000"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
}

#[test]
fn a_command_leaves_one_file_that_is_the_whole_database() {
    let place = Place::with_provider("http://127.0.0.1:9/v1/", "");
    place.write("j.json", r#"{"model":"m","provider":"sim","input":"i"}"#);
    // Also one that ends badly.
    for (arguments, code) in [(&["submit", "j.json"][..], 0), (&["jobs"], 0), (&["job", "0000"], 2)] {
        let mut all = vec!["--config", "r.toml"];
        all.extend(arguments);
        assert_eq!(place.run(&all).code, code, "{arguments:?}");
        let mut names: Vec<String> = std::fs::read_dir(place.dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("r.db"))
            .collect();
        names.sort();
        assert_eq!(names, ["r.db"], "{arguments:?}");
    }
}

#[test]
fn a_repeated_submission_says_what_was_new() {
    let place = place();
    place.write("two.jsonl", &[job("1"), job("2")].join("\n"));
    place.write("three.jsonl", &[job("1"), job("2"), job("3")].join("\n"));
    let said = |file: &str| run(&place, &["submit", file, "--key", "k"]).out;
    assert_eq!(said("two.jsonl"), "2 jobs submitted\n");
    assert_eq!(said("two.jsonl"), "0 new jobs submitted; 2 had been submitted before\n");
    assert_eq!(said("three.jsonl"), "1 new jobs submitted; 2 had been submitted before\n");
    // A list that is empty because of what was asked asks for no jobs to be submitted.
    assert_eq!(run(&place, &["jobs", "--state", "running"]).out, "No job matches.\n");
}

#[test]
fn a_short_id_of_several_jobs_says_how_to_tell_them_apart() {
    let place = place();
    place.write("two.jsonl", &[job("1"), job("2")].join("\n"));
    run(&place, &["submit", "two.jsonl"]);
    let jobs = run(&place, &["jobs", "--json"]).json();
    let id = |at: usize| jobs["items"][at]["id"].as_str().unwrap().to_owned();
    if id(0)[..8] != id(1)[..8] {
        return;
    }
    let said = run(&place, &["job", &id(0)[..8]]);
    assert!(said.code == 2 && said.err.contains("write it as lists show it"), "{said:?}");
    let short = format!("{}…{}", &id(0)[..8], &id(0)[24..]);
    assert_eq!(run(&place, &["job", &short]).code, 0);
}
