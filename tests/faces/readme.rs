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
        let mut words = line.split_whitespace().skip(1).peekable();
        let command = words.next().unwrap();
        let mut help = place.run(&[command, "--help"]);
        assert_eq!(help.code, 0, "{line}: {help:?}");
        if let Some(below) = words.peek().filter(|word| help.out.contains(&format!("\n  {word} "))) {
            help = place.run(&[command, below, "--help"]);
        }
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

/// The commands that a page shows, in its prose and in its blocks.
fn commands(text: &str) -> Vec<String> {
    let inline = text.split('`').skip(1).step_by(2).filter(|code| !code.contains('\n'));
    let lines = text.lines().map(|line| line.split(" #").next().unwrap_or(line));
    inline.chain(lines).filter(|line| line.starts_with("reprieve ")).map(|line| line.trim_end().to_owned()).collect()
}

fn pages(dir: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "md") {
            found.push(path);
        }
    }
}

#[test]
fn every_command_that_another_page_shows_exists() {
    let place = Place::new();
    let mut helps = std::collections::BTreeMap::new();
    let mut help = |words: &[&str]| {
        let said = helps.entry(words.join(" ")).or_insert_with(|| place.run(&[words, &["--help"]].concat()));
        assert_eq!(said.code, 0, "{words:?}: {said:?}");
        said.out.clone()
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![root.join("CONTRIBUTING.md"), root.join("config/reprieve.toml")];
    pages(&root.join("docs"), &mut found);
    let mut seen = 0;
    for page in found {
        for line in commands(&std::fs::read_to_string(&page).unwrap()) {
            let mut words: Vec<&str> = line.split_whitespace().skip(1).collect();
            if words[0].starts_with("--") {
                // `--config FILE`, before the command.
                words.drain(..2);
            }
            let shown = format!("{}: {line}", page.display());
            let mut known = help(&words[..1]);
            if words.get(1).is_some_and(|word| known.contains(&format!("\n  {word} "))) {
                known = help(&words[..2]);
            }
            for flag in words.iter().filter(|word| word.starts_with("--")) {
                assert!(known.contains(flag), "{shown}: it knows no {flag}");
            }
            seen += 1;
        }
    }
    assert!(seen > 40, "{seen}");
}
