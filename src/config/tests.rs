//! The whole loader: layers, origins, and every mistake by its place.

use super::*;
use crate::config::{Key, Timeouts};
use crate::recovery::Policy;
use std::io::Write;

fn load_text(text: &str, environment: &[(&str, &str)]) -> Result<Loaded, ConfigError> {
    let mut file = tempfile::Builder::new().prefix("r").suffix(".toml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let environment: Vec<_> = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Config::load(Some(file.path()), &environment).map_err(|mut error| {
        for problem in &mut error.problems {
            if let Origin::File { path, .. } = &mut problem.origin {
                *path = std::sync::Arc::new("r.toml".into());
            }
        }
        error
    })
}

/// The one problem of a text, as it is printed.
fn problem(text: &str) -> String {
    let error = load_text(text, &[]).unwrap_err();
    assert_eq!(error.problems.len(), 1, "{error}");
    error.to_string()
}

const ENTRY: &str = "[providers.a]\nadapter = \"openai\"\nendpoint = \"https://api.example.com/v1/\"\n";

#[test]
fn the_documented_defaults_are_the_defaults_of_the_product() {
    let config = Config::load(None, &[]).unwrap().config;
    assert_eq!(config.database, "sqlite://reprieve.db");
    assert_eq!(config.server.bind.to_string(), "127.0.0.1:7171");
    assert_eq!((config.worker.concurrency, config.worker.lease_ms, config.worker.drain_ms), (64, 30_000, 600_000));
    assert!(config.worker.queues.is_empty());
    assert_eq!((config.retention.records_ms, config.retention.jobs_ms), (7_776_000_000, 7_776_000_000));
    assert!(config.providers.is_empty() && config.rules.is_none());
    assert_eq!(config.policies["tiered"], Policy::tiered());
    assert_eq!(config.policies["strict"], Policy::strict());
    assert_eq!(config.policies.len(), 2);
}

/// The file documents optional keys as comments; what it says of them is checked by taking them at their word.
#[test]
fn the_commented_keys_of_the_defaults_are_right_too() {
    let keys = |line: &str| {
        let text = line.strip_prefix("# ")?.trim_start().to_owned();
        let is_key = line.starts_with("#   ") && text.split(' ').nth(1) == Some("=");
        (text.starts_with('[') || is_key).then_some(text)
    };
    let text: String = DEFAULTS
        .lines()
        .filter_map(keys)
        .filter(|key| !key.starts_with("file"))
        .fold(String::new(), |text, line| text + &line + "\n");
    let said = load_text(&text, &[("OPENAI_API_KEY", "k")]).unwrap().config;
    let openai = &said.providers["openai"];
    assert_eq!(openai.identity.as_deref(), Some("api.openai.com"));
    assert_eq!(openai.models["gpt-4o"].max_in_flight, Some(8));
    let unsaid = load_text(ENTRY, &[]).unwrap().config;
    let bare = &unsaid.providers["a"];
    assert_eq!(bare.timeouts, openai.timeouts);
    assert_eq!((bare.policy.as_str(), bare.redact_vendor_messages), ("tiered", true));
    assert_eq!((&openai.policy, openai.redact_vendor_messages), (&bare.policy, bare.redact_vendor_messages));
}

#[test]
fn a_file_goes_over_the_defaults_and_variables_over_the_file() {
    let text = "[worker]\nconcurrency = 3\nlease = \"1m\"\n";
    let variables = [("REPRIEVE__WORKER__CONCURRENCY", "5"), ("REPRIEVE__WORKER__QUEUES", "a, b")];
    let Loaded { config, settings } = load_text(text, &variables).unwrap();
    assert_eq!((config.worker.concurrency, config.worker.lease_ms), (5, 60_000));
    assert_eq!(config.worker.queues, ["a", "b"]);
    let origin = |key: &str| settings.iter().find(|setting| setting.key == key).unwrap().origin.clone();
    assert_eq!(origin("worker.concurrency"), Origin::Variable("REPRIEVE__WORKER__CONCURRENCY".into()));
    assert!(matches!(origin("worker.lease"), Origin::File { line: 3, .. }));
    assert_eq!(origin("worker.drain"), Origin::Default);
}

#[test]
fn secrets_come_from_variables_and_files_and_are_never_shown() {
    let text = format!("{ENTRY}api_key = \"${{KEY_A}}\"\n");
    let Loaded { config, settings } = load_text(&text, &[("KEY_A", "sk-canary\n")]).unwrap();
    assert!(matches!(&config.providers["a"].key, Key::Value(key) if key == "sk-canary"));
    assert!(!format!("{config:?}{settings:?}").contains("canary"));
    let shown = |settings: &[Setting]| settings.iter().find(|s| s.key == "providers.a.api_key").unwrap().value.clone();
    assert_eq!(shown(&settings), "set");
    let Loaded { config, settings } = load_text(&text, &[("KEY_A", " ")]).unwrap();
    assert!(matches!(&config.providers["a"].key, Key::Missing(name) if name == "KEY_A"));
    assert_eq!(shown(&settings), "missing");
    let config = load_text(&format!("{ENTRY}api_key = {{ file = \"k\" }}\n"), &[]).unwrap().config;
    assert!(matches!(&config.providers["a"].key, Key::File(path) if path.is_absolute() && path.ends_with("k")));
    assert!(matches!(load_text(ENTRY, &[]).unwrap().config.providers["a"].key, Key::None));
    let error = load_text(&format!("{ENTRY}api_key = \"x${{KEY_A}}\"\n"), &[("KEY_A", "sk-canary")]).unwrap_err();
    assert!(!error.to_string().contains("canary"));
}

#[test]
fn a_models_timeouts_start_from_its_providers() {
    let text = format!(
        "{ENTRY}timeouts = {{ read = \"5m\" }}\n[providers.a.models.\"m:1\"]\ntimeouts = {{ headers = \"9s\" }}\n\
         [providers.a.models.x]\nlimits = {{ max_in_flight = 2 }}\n"
    );
    let config = load_text(&text, &[]).unwrap().config;
    let models = &config.providers["a"].models;
    assert_eq!(models["m:1"].timeouts, Some(Timeouts { connect_ms: 10_000, headers_ms: 9_000, read_ms: 300_000 }));
    assert_eq!((models["x"].timeouts, models["x"].max_in_flight), (None, Some(2)));
}

#[test]
fn every_mistake_names_its_line_its_key_and_what_would_be_right() {
    let with = |line: &str| problem(&format!("{ENTRY}{line}\n"));
    let lines = [
        problem("[worker]\nconcurency = 3\n"),
        problem("colour = 1\n"),
        problem("[worker]\nconcurrency = \"many\"\n"),
        problem("[worker]\nconcurrency = 0\n"),
        problem("[worker]\nconcurrency = 99999999999999999999\n"),
        problem("[worker]\nlease = 30\n"),
        problem("[worker]\nlease = \"half a minute\"\n"),
        problem("[worker]\nlease = \"1ms\"\n"),
        problem("[worker]\nqueues = [\"*\", \"a\"]\n"),
        problem("[worker]\nqueues = []\n"),
        problem("worker = 3\n"),
        problem("[server]\nbind = \"localhost\"\n"),
        problem("[server]\nbind = \"0.0.0.0:7171\"\n"),
        problem("[server]\nhosts = [\"a:80\"]\n"),
        problem("[server]\ntokens = []\n"),
        problem("[retention]\njobs = \"0s\"\n"),
        problem("database = \"postgres://u:secret@h:port/d\"\n"),
        problem("database = \"postgres://u:${NOT_SET}@h/d\"\n"),
        problem("[postgres]\nschema = \"Public-2\"\n"),
        problem("[postgres]\nnotify = \"sometimes\"\n"),
        problem("database = \"sqlite::memory:\"\n"),
        problem("database = \"mysql://x\"\n"),
        problem("database = \"sqlite://${HOME}/x\"\n"),
        problem("[batch]\nprovider = \"a\"\n"),
        problem("[rules]\nfile = \"/nowhere/rules.toml\"\n"),
        problem("[recovery.tiered.refusal]\nlimits = 3\n"),
        problem("[recovery.tiered.refusal]\nlimit = 0\n"),
        problem("[recovery.tiered.refusal]\nceiling = \"1ms\"\n"),
        problem("[recovery.tiered]\njitter_share = 2\n"),
        problem("[recovery.strict.in_place]\nstatuses = [200]\n"),
        problem("[recovery.strict.in_place]\nwaits = [\"2s\", \"1s\"]\n"),
        problem("[recovery.lenient]\nmax_wait = \"1d\"\n"),
        problem("[providers.a]\nadapter = \"openai\"\n"),
        problem("[providers.a]\nadapter = \"open-ai\"\nendpoint = \"https://x/\"\n"),
        problem("[providers.a]\nadapter = \"openai\"\nendpoint = \"api.example.com\"\n"),
        problem("[providers.a]\nadapter = \"openai\"\nendpoint = \"ftp://x/\"\n"),
        problem("[providers.a]\nadapter = \"openai\"\nendpoint = \"https://u:secret@x/\"\n"),
        problem("[providers.\"a b\"]\nadapter = \"openai\"\nendpoint = \"https://x/\"\n"),
        with("identity = \"a b\""),
        with("account = \"\""),
        with("policy = \"lenient\""),
        with("on_quota = \"park\""),
        with("api_key = 7"),
        with("api_key = \"a${B}\""),
        with("api_key = { env = \"B\" }"),
        with("limits = { max_in_flight = 0 }"),
        with("limits = { requests_per_minute = 600 }"),
        with("timeouts = { connect = \"0s\" }"),
        with("timeouts = \"10s\""),
        problem(&format!(
            "{ENTRY}account = \"x\"\n[providers.b]\nadapter = \"openai\"\nendpoint = \"https://API.example.com/v2/\"\n\
             account = \"x\"\nlimits = {{ max_in_flight = 2 }}\n"
        )),
    ];
    insta::assert_snapshot!(lines.join("\n"));
    assert!(!lines.concat().contains("secret@"));
}

#[test]
fn all_mistakes_are_named_at_once() {
    let error = load_text("[worker]\nconcurency = 3\nlease = 7\n[retention]\njobs = true\n", &[]).unwrap_err();
    assert_eq!(error.problems.len(), 3, "{error}");
}

#[test]
fn a_variables_mistake_names_the_variable() {
    let say = |name: &str, value: &str| load_text("", &[(name, value)]).unwrap_err().to_string();
    insta::assert_snapshot!(
        [
            say("REPRIEVE__WORKER__CONCURENCY", "3"),
            say("REPRIEVE__WORKER__CONCURRENCY", "three"),
            say("REPRIEVE__WORKER__LEASE", "30"),
            say("REPRIEVE__WORKER", "3"),
            say("REPRIEVE__", "3"),
            say("REPRIEVE__PROVIDERS__A__ADAPTER", "openai"),
        ]
        .join("\n")
    );
}

/// Every default stands in the documented file, not only in the code: nothing is in effect that it does not show.
#[test]
fn the_file_says_every_default() {
    let Loaded { settings, .. } = Config::load(None, &[]).unwrap();
    let file = load_text(DEFAULTS, &[]).unwrap().settings;
    assert_eq!(file.len(), settings.len());
    for (said, setting) in file.iter().zip(&settings) {
        assert_eq!((&said.key, &said.value), (&setting.key, &setting.value));
        assert!(matches!(said.origin, Origin::File { .. }), "{} is not in the file", said.key);
    }
}
