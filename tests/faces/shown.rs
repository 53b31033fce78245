//! What every command shows, as a table and as its document: one service's history, looked at from every side.

use crate::rig::{Place, Said};
use reprieve::sim::{Scenario, Sim, SimOptions};
use serde_json::{Value, json};

/// A bad key, a rate that clears, and a plan window that does not for ten minutes, each by its model.
const SCENARIO: &str = r#"
name = "shown"
[[rules]]
name = "key"
models = ["locked"]
refuse = { kind = "bad_key" }
[[rules]]
name = "spent"
models = ["spent"]
refuse = { kind = "plan_window", reset_in = "10m" }
"#;

struct Shown {
    place: Place,
    /// Kept alive as long as they are asked.
    _sim: Sim,
    _runtime: tokio::runtime::Runtime,
    deferred: String,
    failed: String,
    succeeded: String,
}

fn run(place: &Place, arguments: &[&str]) -> Said {
    place.run(&[&["--config", "r.toml"], arguments].concat())
}

fn history() -> Shown {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let scenario = Scenario::parse(SCENARIO, "shown.toml").unwrap();
    let sim = runtime.block_on(Sim::start(scenario, SimOptions::default())).unwrap();
    let place = Place::with_provider(
        &format!("{}/v1/", sim.url()),
        "worker.lease = \"5s\"\n[providers.other]\nadapter = \"openai\"\nendpoint = \"http://127.0.0.1:9/v1/\"\naccount = \"b\"\n",
    );
    let job = |model: &str| {
        json!({"model": model, "provider": "sim", "input": "Why is the sky blue?", "labels": {"run": model}})
            .to_string()
    };
    let id = |model: &str, more: &[&str]| {
        place.write("job.json", &job(model));
        let said = run(&place, &[&["submit", "job.json"], more].concat());
        said.out.trim().to_owned()
    };
    let ended = |said: &str| serde_json::from_str::<Value>(said).unwrap()["id"].as_str().unwrap().to_owned();
    let succeeded = ended(&id("m", &["--wait"]));
    // A bad key closes its account, and somebody opens it again before anything else is asked.
    let failed = ended(&id("locked", &["--wait"]));
    run(&place, &["holds", "release", "--all"]);
    let said = run(&place, &["run", "hello", "--model", "spent", "--provider", "sim", "--max-wait", "1m"]);
    assert_eq!(said.code, 1, "{said:?}");
    let deferred = said.out.split(' ').next().unwrap().to_owned();
    run(
        &place,
        &[
            "holds",
            "close",
            "--provider",
            "127.0.0.1",
            "--account",
            "sim",
            "--model",
            "spent",
            "--for",
            "2h",
            "--reason",
            "a test",
        ],
    );
    Shown { place, _sim: sim, _runtime: runtime, deferred, failed, succeeded }
}

/// What differs from run to run.
pub fn redacted(check: impl FnOnce()) {
    redacted_too(&[], check);
}

/// The same, and before it what differs there alone.
pub fn redacted_too(more: &[(&str, &str)], check: impl FnOnce()) {
    let all = [
        (r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID"),
        (r"[0-9a-f]{8}…[0-9a-f-]+", "SHORT"),
        (r"127\.0\.0\.1:\d+", "HOST"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "INSTANT"),
        (r"\d{4}-\d\d-\d\d( |$)", "DAY "),
        (r"(\d\d:\d\d:\d\dZ|[A-Z][a-z]{2} \d+ [A-Z][a-z]{2}( \d{4})? \d\d:\d\dZ)", "AT"),
        (r#""([a-z_0-9]*_ms)": ?-?\d+"#, r#""$1": MS"#),
        (r#""provider_request_id":"[^"]+""#, r#""provider_request_id":"R""#),
        (r"\b\d+(\.\d+)? (ms|s|min|h)( \d+ (s|min))?\b", "SOME"),
        (r#""request_id": "[^"]+""#, r#""request_id": "R""#),
        (r"request_id=[A-Za-z0-9_.-]+", "request_id=R"),
        (r#""fence": \d+"#, r#""fence": F"#),
        (r"execution \d+", "execution F"),
        (r"ID/\d+/", "ID/F/"),
        (r#""rate_per_s": [0-9.]+"#, r#""rate_per_s": RATE"#),
        (r#""raw": "\d+(\.\d+)?""#, r#""raw": "RAW""#),
        (r"(: |  )\d{10}(\b|`)", "${1}RAW$2"),
        (r"reset_at_ms\\*:\d+", "reset_at_ms:MS"),
        (r"[0-9.]+ (KiB|MiB|GiB|TiB)", "SIZE"),
        // Where a cell is cut depends on how long the moments beside it are.
        (r"(until AT \(in SOME\)).*…", "$1 …"),
        (r"[^\s…]+…", "…"),
        (r"…( 1[0-9]{9}\b|[^\s…]+)", "…"),
        (r" {2,}", "  "),
    ];
    insta::with_settings!({filters => [more, &all].concat()}, { check() });
}

/// Sentences on one line: where they are broken depends on how long the moments in them are.
fn unwrapped(command: &str, text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let at = indent(line);
        let goes_on = at >= 12 || (at == 4 && lines.last().is_some_and(|last| indent(last) == 4));
        let sentence = command == "explain" && at == 2 && lines.last().is_some_and(|last| indent(last) == 2);
        match lines.last_mut() {
            Some(last) if goes_on || sentence => last.push_str(&format!(" {}", line.trim_start())),
            _ => lines.push(line.to_owned()),
        }
    }
    lines.join("\n") + "\n"
}

/// Every command's text at 80 columns, and its document.
fn both(shown: &Shown, commands: &[&[&str]]) -> (String, String) {
    let (mut texts, mut documents) = (String::new(), String::new());
    for command in commands {
        let line = command.join(" ");
        let said = run(&shown.place, command);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{line}: {said:?}");
        // What was said in a job is shown as it was said.
        let own = said.out.split("\nTranscript\n").next().unwrap_or_default();
        assert!(own.lines().all(|line| line.chars().count() <= 80), "{line} is wider than 80 columns: {own}");
        texts.push_str(&format!("$ reprieve {line}\n{}\n", unwrapped(command[0], &said.out)));
        let document = run(&shown.place, &[&["--json"], *command].concat());
        assert_eq!((document.code, document.err.as_str()), (0, ""), "{line}: {document:?}");
        // One document, whole.
        document.json();
        documents.push_str(&format!("$ reprieve --json {line}\n{}\n", document.out));
    }
    (texts, documents)
}

#[test]
fn every_command_is_shown_as_a_table_and_as_one_document() {
    let shown = history();
    let (deferred, failed, succeeded) = (shown.deferred.as_str(), shown.failed.as_str(), shown.succeeded.as_str());
    let (texts, documents) = both(
        &shown,
        &[
            &["jobs"],
            &["jobs", "--state", "deferred"],
            &["job", succeeded],
            &["job", deferred],
            &["explain", deferred],
            &["explain", failed],
            &["usage"],
            &["usage", "--by", "day"],
            &["usage", "--by", "label.run"],
            &["failures"],
            &["failures", "--by", "cause"],
            &["failures", "--by", "http", "--include-retried"],
            &["resets"],
            &["resets", deferred],
            &["resets", "--accuracy"],
            &["holds"],
            &["holds", "--include-ended", "--model", "spent"],
            &["queues"],
            &["retry", "--cause", "provider_error", "--dry-run"],
            &["cancel", deferred, failed, "--dry-run"],
            &["migrate"],
            &["migrate", "verify"],
        ],
    );
    redacted(|| insta::assert_snapshot!("tables", texts));
    redacted(|| insta::assert_snapshot!("documents", documents));
}

/// One hold, by the id that a document gives.
#[test]
fn one_hold_is_shown_with_what_befell_it() {
    let shown = history();
    let holds = run(&shown.place, &["holds", "--json"]).json();
    let id = holds["items"][0]["id"].as_str().unwrap().to_owned();
    let (text, document) = both(&shown, &[&["holds", &id]]);
    redacted(|| insta::assert_snapshot!(format!("{text}{document}")));
    let events = run(&shown.place, &["holds", &id, "--json"]).json();
    assert!(!events["events"].as_array().unwrap().is_empty(), "{events}");
}

#[test]
fn a_doctor_looks_at_everything_and_says_what_to_do() {
    let place = Place::with_provider(
        "http://127.0.0.1:9/v1/",
        "[providers.filed]\nadapter = \"openai\"\nendpoint = \"http://127.0.0.1:9/v1/\"\napi_key = { file = \"no.key\" }\n\
         [providers.keyless]\nadapter = \"openai\"\nendpoint = \"http://127.0.0.1:9/v1/\"\napi_key = \"${NO_SUCH_KEY}\"\n",
    );
    let before = run(&place, &["doctor"]);
    assert!(before.code == 1 && before.out.contains("r.db is not there yet"), "{before:?}");
    assert!(!place.dir.path().join("r.db").exists(), "a look makes no file");
    place.write("job.json", &json!({"model": "m", "provider": "sim", "input": "x"}).to_string());
    assert_eq!(run(&place, &["submit", "job.json"]).code, 0);
    let said = run(&place, &["doctor"]);
    assert_eq!((said.code, said.err.as_str()), (1, ""), "{said:?}");
    redacted(|| insta::assert_snapshot!(said.out));
    let document = run(&place, &["doctor", "--json"]).json();
    let of = |name: &str| {
        let checks = document["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name}: {document}"))["level"]
            .clone()
    };
    assert_eq!((&document["ok"], of("provider keyless"), of("integrity")), (&json!(false), json!("fail"), json!("ok")));
    // A configuration that cannot be read is one of its findings.
    place.write("r.toml", "worker = [\n");
    let said = run(&place, &["doctor"]);
    assert!(said.code == 1 && said.out.starts_with("fail  configuration"), "{said:?}");
}

#[test]
fn a_file_that_something_else_wrote_into_is_found_out() {
    let place = Place::with_provider("http://127.0.0.1:9/v1/", "");
    assert_eq!(run(&place, &["migrate", "up"]).code, 0);
    assert_eq!(run(&place, &["migrate", "verify"]).code, 0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        use sqlx::{Connection, Executor};
        let url = format!("sqlite://{}", place.dir.path().join("r.db").display());
        let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
        connection.execute("PRAGMA foreign_keys = off").await.unwrap();
        connection.execute("DROP INDEX holds_opened").await.unwrap();
        connection.execute("CREATE TABLE mine (x)").await.unwrap();
        connection.execute("INSERT INTO labels (key, value, job_id) VALUES ('k', 'v', x'00')").await.unwrap();
        connection.close().await.unwrap();
    });
    let said = run(&place, &["migrate", "verify"]);
    assert_eq!(said.code, 1);
    insta::assert_snapshot!(said.out);
    let said = run(&place, &["doctor"]);
    assert!(said.code == 1 && said.out.contains("fail  references"), "{said:?}");
}
