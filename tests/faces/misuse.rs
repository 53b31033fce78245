//! The table of bad input: each says what is wrong, where, and what would be right, and exits accordingly.

use crate::rig::Place;

/// `exit n: stderr` of each.
fn table(place: &Place, cases: &[&[&str]]) -> String {
    let mut lines = String::new();
    for arguments in cases {
        let said = place.run(arguments);
        assert_eq!(said.out, "", "{arguments:?} wrote to stdout");
        lines.push_str(&format!("$ reprieve {}\n[{}] {}", arguments.join(" "), said.code, said.err));
    }
    lines
}

#[test]
fn a_misused_command_line_says_what_would_be_right() {
    let place = Place::new();
    insta::assert_snapshot!(table(
        &place,
        &[
            &["submitt"],
            &["jobs", "--stat", "queued"],
            &["job"],
            &["cancel"],
            &["run", "hello"],
            &["run", "hello", "--model", "m", "--max-wait", "5"],
            &["failures", "--by", "colour"],
            &["worker", "--concurrency", "0"],
            &["worker", "--queues", ""],
            &["jbos"],
            &["holds", "release"],
            &["holds", "release", "7"],
            &["holds", "list"],
            &["queues", "list"],
            &["--json", "jobs", "--stat", "queued"],
        ]
    ));
}

#[test]
fn a_wrong_configuration_says_where_and_what_would_be_right() {
    let place = Place::new();
    place.write("key.toml", "[worker]\nconcurency = 3\n");
    place.write("two.toml", "[worker]\nlease = 30\n\n[providers.a]\nadapter = \"openai\"\nendpoint = \"x\"\n");
    place.write("text.toml", "worker = [\n");
    place.write("rules.toml", "version = \"soon\"\n");
    place.write("overlay.toml", "[rules]\nfile = \"rules.toml\"\n");
    place.write("bind.toml", "[server]\nbind = \"0.0.0.0:80\"\n");
    insta::assert_snapshot!(table(
        &place,
        &[
            &["--config", "nowhere.toml", "config", "check"],
            &["--config", "key.toml", "config", "check"],
            &["--config", "two.toml", "jobs"],
            &["--config", "text.toml", "jobs"],
            &["--config", "bind.toml", "serve"],
            &["--config", "overlay.toml", "config", "check"],
            &["--database", "postgres://u:secret@h/d", "jobs"],
            &["--json", "--config", "key.toml", "config", "check"],
        ]
    ));
    let said = place.run_with(&["config", "check"], "", &[("REPRIEVE__WORKER__CONCURRENCY", "three")]);
    insta::assert_snapshot!(said.shown());
}

#[test]
fn the_configuration_in_effect_is_shown_with_its_origins_and_without_secrets() {
    let place = Place::new();
    place.write(
        "r.toml",
        "[worker]\nconcurrency = 3\n\n[providers.a]\nadapter = \"openai\"\nendpoint = \"https://api.example.com/v1\"\n\
         api_key = \"${KEY_A}\"\n\n[providers.b]\nadapter = \"anthropic\"\nendpoint = \"https://b.example/v1/\"\n\
         api_key = \"${KEY_B}\"\nlimits = { max_in_flight = 2 }\n",
    );
    let environment = [("KEY_A", "sk-canary"), ("REPRIEVE__WORKER__LEASE", "1m")];
    let said =
        place.run_with(&["--config", "r.toml", "--database", "sqlite://x.db", "config", "check"], "", &environment);
    insta::assert_snapshot!(said.shown());
    assert!(!said.shown().contains("canary"));
    let said = place.run_with(&["--config", "r.toml", "config", "check", "--json"], "", &environment);
    let key = said.json()["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["key"] == "providers.a.api_key")
        .unwrap()
        .clone();
    assert_eq!((key["value"].as_str(), key["origin"].as_str()), (Some("set"), Some("r.toml:7")));
}
