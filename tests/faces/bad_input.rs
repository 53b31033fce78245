//! The bad-input table: each wrong flag, value, file, body, cursor, id and date, with what a person reads and how the command
//! exits. Nothing of it writes to stdout, and nothing of it changes anything.

use crate::rig::Place;
use std::fmt::Write;

const UNKNOWN: &str = "0199c2f4-1b2c-7d3e-8f40-516273849c2e";

fn place() -> Place {
    let more = "[providers.keyless]\nadapter = \"openai\"\nendpoint = \"http://127.0.0.1:9/v1/\"\napi_key = \"${NO_SUCH_KEY}\"\n\
        [providers.second]\nadapter = \"openai\"\nendpoint = \"http://127.0.0.1:9/v1/\"\n";
    let place = Place::with_provider("http://127.0.0.1:9/v1/", more);
    let job = |more: &str| format!("{{\"model\":\"m\",\"provider\":\"sim\",\"input\":\"x\"{more}}}");
    for (name, text) in [
        ("good.json", job("")),
        ("member.json", job(",\"colour\":\"red\"")),
        ("twice.json", job(",\"messages\":[]")),
        ("priority.json", job(",\"priority\":1000")),
        ("deadline.json", job(",\"deadline\":\"soon\"")),
        ("past.json", job(",\"deadline\":\"2020-01-01T00:00:00Z\"")),
        ("webhook.json", job(",\"tools\":[{\"name\":\"t\"}]")),
        ("no_model.json", "{\"input\":\"x\"}".to_owned()),
        ("text.json", "hello\n".to_owned()),
        ("list.json", "[1,2]\n".to_owned()),
        ("empty.jsonl", "\n\n".to_owned()),
        ("third.jsonl", [job(""), job(""), job(",\"queue\":\"a b\"")].join("\n")),
    ] {
        place.write(name, &text);
    }
    std::fs::write(place.dir.path().join("latin.json"), b"{\"model\":\"m\",\"input\":\"\xe9\"}\n").unwrap();
    assert_eq!(place.run(&["--config", "r.toml", "submit", "good.json"]).code, 0);
    place
}

/// `$ command`, then the exit code and what stands on stderr.
fn table(place: &Place, cases: &[&[&str]]) -> String {
    let mut shown = String::new();
    for arguments in cases {
        let said = place.run(&[&["--config", "r.toml"], *arguments].concat());
        assert_eq!(said.out, "", "{arguments:?} wrote to stdout");
        assert_ne!(said.code, 0, "{arguments:?} was taken");
        assert!(said.err.starts_with("error: ") || said.err.starts_with("{\"type\":"), "{arguments:?}: {said:?}");
        let quoted: Vec<String> = arguments
            .iter()
            .map(|word| if word.is_empty() || word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() })
            .collect();
        write!(shown, "$ reprieve {}\n[{}] {}", quoted.join(" "), said.code, said.err).unwrap();
    }
    shown
}

fn jobs(place: &Place) -> usize {
    place.run(&["--config", "r.toml", "jobs", "--json"]).json()["items"].as_array().unwrap().len()
}

#[test]
fn flags_and_values() {
    let place = place();
    let shown = table(
        &place,
        &[
            &["submitt"],
            &["jobs", "--stat", "queued"],
            &["jobs", "--state"],
            &["jobs", "--state", "dead"],
            &["jobs", "--why", "boredom"],
            &["jobs", "--time", "later"],
            &["jobs", "--schedule", "nightly"],
            &["jobs", "--label", "x"],
            &["jobs", "--limit", "0"],
            &["jobs", "--limit", "many"],
            &["jobs", "--since", "yesterday"],
            &["jobs", "--since", "5"],
            &["jobs", "--until", "2026-13-01"],
            &["jobs", "--since", "1h", "--since", "2h"],
            &["results", "--state", "running"],
            &["results", "--follow", "--json"],
            &["failures", "--cause", "bad_luck"],
            &["failures", "--class", "bad_luck"],
            &["failures", "--http", "7"],
            &["failures", "--phase", "middle"],
            &["failures", "--by", "colour"],
            &["failures", "--by", "cause", "--limit", "3"],
            &["resets", "--verdict", "guilty"],
            &["resets", "--word", "broken"],
            &["resets", "--accuracy", "--word", "kept"],
            &["usage", "--by", "hour"],
            &["usage", "--by", "label."],
            &["run", "hello", "--model", "m", "--provider", "sim", "--max-wait", "5"],
            &["reprioritise", "--priority", "101", UNKNOWN],
            &["reprioritise", "--label", "run=a"],
            &["worker", "--concurrency", "0"],
            &["worker", "--queues", "a b"],
            &["queues", "pause", "a b"],
            &["queues", "stop", "a"],
            &["schedules", "nightly"],
            &["schedules", "rm", "nightly"],
            &["schedules", "add", "nightly", "good.json"],
            &["schedules", "add", "a b", "--cron", "0 2 * * *", "good.json"],
            &["schedules", "add", "nightly", "--cron", "", "good.json"],
            &["schedules", "add", "nightly", "--cron", "0 2 * *", "good.json"],
            &["schedules", "add", "nightly", "--cron", "60 2 * * *", "good.json"],
            &["schedules", "add", "nightly", "--cron", "0 2 30 2 *", "good.json"],
            &["schedules", "add", "nightly", "--cron", "0 2 * * FRY", "good.json"],
            &["schedules", "add", "nightly", "--cron", "every night", "good.json"],
            &["schedules", "add", "nightly", "--cron", "0 2 * * *", "--zone", "Mars/Base", "good.json"],
            &["schedules", "add", "nightly", "--cron", "0 2 * * *", "--overlap", "both", "good.json"],
            &["schedules", "add", "nightly", "--cron", "0 2 * * *", "nowhere.json"],
            &["schedules", "add", "nightly", "--cron", "0 2 * * *", "text.json"],
            &["schedules", "add", "nightly", "--cron", "0 2 * * *", "member.json"],
            &["migrate", "down"],
            &["completions", "cmd"],
            &["--database", "mysql://h/d", "jobs"],
        ],
    );
    insta::with_settings!({filters => vec![(r"\d+ d( \d+ h)?( ago|\b)", "LONG$2")]}, { insta::assert_snapshot!(shown) });
    assert_eq!(jobs(&place), 1);
}

#[test]
fn ids_cursors_and_what_is_not_there() {
    let place = place();
    let refusal = format!("{UNKNOWN}/1/1");
    let hold = ["holds", UNKNOWN];
    let shown = table(
        &place,
        &[
            &["job"],
            &["job", "7"],
            &["job", "0199c2f4…9c2e"],
            &["job", UNKNOWN],
            &["explain", "zebra"],
            &["explain", UNKNOWN],
            &["message", UNKNOWN, "hello"],
            &["message", UNKNOWN, "-"],
            &["resets", "0199/x"],
            &["resets", UNKNOWN],
            &["resets", &refusal],
            &hold,
            &["holds", "7"],
            &["holds", "release"],
            &["holds", "release", "7"],
            &["holds", "release", UNKNOWN],
            &["holds", "release", "--provider", "nobody"],
            &["holds", "close"],
            &["holds", "close", "--provider", "nobody"],
            &["holds", "close", "--provider", "sim"],
            &["holds", "close", "--provider", "127.0.0.1"],
            &["holds", "close", "--provider", "127.0.0.1", "--account", "nobody"],
            &["holds", "close", "--provider", "127.0.0.1", "--account", "sim", "--until", "2h"],
            &["holds", "close", "--provider", "127.0.0.1", "--account", "sim", "--until", "noon"],
            &["holds", "close", "--provider", "127.0.0.1", "--account", "sim", "--until", "2020-01-01"],
            &["holds", "close", "--provider", "127.0.0.1", "--account", "sim", "--for", "2"],
            &["holds", "close", "--provider", "127.0.0.1", "--account", "sim", "--for", "0s"],
            &["jobs", "--cursor", "nonsense"],
            &["results", "--cursor", "nonsense"],
            &["failures", "--cursor", "nonsense"],
            &["resets", "--cursor", "nonsense"],
            &["cancel"],
            &["cancel", "7"],
            &["cancel", "--cause", "rate_limit"],
            &["retry"],
            &["retry", UNKNOWN, "--state", "failed"],
            &["delete", "--dry-run"],
            &["pause", "--reason", "x"],
            &["--json", "job", UNKNOWN],
            &["--json", "jobs", "--cursor", "nonsense"],
        ],
    );
    insta::with_settings!({filters => vec![(r"\d+ d( \d+ h)?( ago|\b)", "LONG$2")]}, { insta::assert_snapshot!(shown) });
    assert_eq!(jobs(&place), 1);
}

#[test]
fn files_and_bodies() {
    let place = place();
    let shown = table(
        &place,
        &[
            &["submit"],
            &["submit", "nowhere.jsonl"],
            &["submit", "."],
            &["submit", "empty.jsonl"],
            &["submit", "text.json"],
            &["submit", "list.json"],
            &["submit", "latin.json"],
            &["submit", "no_model.json"],
            &["submit", "member.json"],
            &["submit", "twice.json"],
            &["submit", "priority.json"],
            &["submit", "deadline.json"],
            &["submit", "past.json"],
            &["submit", "webhook.json"],
            &["submit", "third.jsonl"],
            &["submit", "-"],
            &["run", "hello", "--model", "m"],
            &["run", "hello", "--model", "m", "--provider", "nobody"],
            &["run", "hello", "--model", "m", "--provider", "keyless"],
            &["run", "", "--model", "m", "--provider", "sim"],
            &["run", "-", "--model", "m", "--provider", "sim"],
            &["classify", "nowhere.json"],
            &["sim", "--scenario", "nowhere.toml"],
        ],
    );
    insta::with_settings!({filters => vec![(r"\d+ d( \d+ h)?( ago|\b)", "LONG$2")]}, { insta::assert_snapshot!(shown) });
    assert_eq!(jobs(&place), 1);
}
