//! The README, word by word: what it shows to type is typed, and does what it says.

use crate::rig::Place;
use reprieve::sim::{Scenario, Sim, SimOptions};
use std::path::Path;

fn readme() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

/// What stands between the first `from` and the `to` after it.
fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("the README has no {from}"));
    rest.split_once(to).unwrap_or_else(|| panic!("no {to} after {from}")).0
}

#[test]
fn its_configuration_and_its_jobs_are_taken() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let scenario = Scenario::parse("name = \"readme\"", "readme.toml").unwrap();
    let sim = runtime.block_on(Sim::start(scenario, SimOptions::default())).unwrap();
    let text = readme();
    let place = Place::new();
    let configuration = between(&text, "<<'END'\n", "END\n");
    place.write("reprieve.toml", &configuration.replace("https://api.openai.com/v1/", &format!("{}/v1/", sim.url())));
    let key = [("OPENAI_API_KEY", "sim-readme")];
    let run = |arguments: &[&str]| place.run_with(&[&["--config", "reprieve.toml"], arguments].concat(), "", &key);
    assert_eq!(run(&["config", "check"]).code, 0);
    place.write("jobs.jsonl", between(&text, "A job is JSON: `", "`"));
    let said = run(&["submit", "jobs.jsonl", "--key", "nightly", "--wait"]);
    assert_eq!((said.code, said.out.lines().count()), (0, 1), "{said:?}");
    place.write("curl.json", between(&text, "-d '", "'"));
    assert_eq!(run(&["submit", "curl.json", "--wait"]).code, 0);
    let said = run(&["run", "Why is the sky blue?", "--model", "gpt-4o-mini", "--max-wait", "5m"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn every_command_that_it_shows_exists() {
    let place = Place::new();
    let text = readme();
    let mut seen = 0;
    for line in text.lines().filter(|line| line.starts_with("reprieve ")) {
        let line = line.split(" #").next().unwrap_or(line).trim_end().trim_end_matches(" &");
        let mut words = line.split_whitespace().skip(1);
        let command = words.next().unwrap();
        let help = place.run(&[command, "--help"]);
        assert_eq!(help.code, 0, "{line}: {help:?}");
        for flag in words.filter(|word| word.starts_with("--")) {
            assert!(help.out.contains(flag), "{line}: {command} knows no {flag}");
        }
        seen += 1;
    }
    assert!(seen >= 8, "{seen}");
    let captured = between(&text, "echo '", "' | reprieve classify");
    let said = place.run_with(&["classify"], captured, &[]);
    assert_eq!((said.code, &said.json()["recovery"]["wait_ms"]), (0, &serde_json::json!(7_000)));
}
