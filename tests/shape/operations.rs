//! `docs/OPERATIONS.md`: its limits, exit codes and reasons are those of the code.

use crate::pages::{quoted, read, source, table};
use std::collections::BTreeSet;

const PAGE: &str = "docs/OPERATIONS.md";

/// The file of a constant, and its name: `agent::limits::JOB_BYTES`.
fn place(path: &str) -> (String, String) {
    let (module, name) = path.rsplit_once("::").unwrap_or_else(|| panic!("{PAGE}: {path} is no constant"));
    (format!("src/{}.rs", module.replace("::", "/")), name.to_owned())
}

/// What a source says that a constant is: products and shifts of whole numbers.
fn value_in(path: &str) -> i64 {
    let (file, name) = place(path);
    let text = source(&file);
    let (_, rest) = text.split_once(&format!("const {name}: ")).unwrap_or_else(|| panic!("{file} has no {name}"));
    let (_, expression) = rest.split_once(" = ").unwrap();
    let expression = expression.split(';').next().unwrap();
    let number = |text: &str| -> i64 {
        text.trim().replace('_', "").parse().unwrap_or_else(|_| panic!("{path}: what is {expression}?"))
    };
    match expression.split_once("<<") {
        Some((number_of, by)) => number(number_of) << number(by),
        None => expression.split('*').map(number).product(),
    }
}

/// What the page says: `8 MiB`, `10,000`, `366 d`.
fn value_on_page(cell: &str) -> i64 {
    let (number, unit) = cell.split_once(' ').unwrap_or((cell, ""));
    let factor = match unit {
        "" | "bytes" | "characters" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "d" => 86_400_000,
        _ => panic!("{PAGE}: what is {cell}?"),
    };
    number.replace(',', "").parse::<i64>().unwrap_or_else(|_| panic!("{PAGE}: what is {cell}?")) * factor
}

#[test]
fn limits_are_those_of_the_code() {
    let text = read(PAGE);
    let rows = table(PAGE, &text, &["limit", "value", "constant", "beyond it"]).rows;
    let mut named = BTreeSet::new();
    for row in &rows {
        let path = quoted(&row[2]).remove(0);
        assert_eq!(value_on_page(&row[1]), value_in(&path), "{PAGE}: {path}");
        assert!(named.insert(path), "{PAGE}: {} stands there twice", row[2]);
    }
    for line in source("src/agent/limits.rs").lines() {
        let Some(rest) = line.strip_prefix("pub const ") else { continue };
        let path = format!("agent::limits::{}", rest.split(':').next().unwrap());
        assert!(named.contains(&path), "{PAGE}: the table of limits has no {path}");
    }
}

#[test]
fn every_reason_of_the_store_is_explained() {
    let code = source("src/store.rs");
    let (_, errors) = code.split_once("pub enum Error {").unwrap();
    let errors = errors.split("\n}").next().unwrap();
    let mut said = Vec::new();
    for rest in errors.split("#[error(").skip(1) {
        let sentence = rest.split('"').nth(1).unwrap();
        // A placeholder is shown as a gap.
        let mut shown = String::new();
        let mut inside = false;
        for letter in sentence.chars() {
            match letter {
                '{' => inside = true,
                '}' => {
                    inside = false;
                    shown.push('…');
                }
                letter if !inside => shown.push(letter),
                _ => {}
            }
        }
        said.push(shown);
    }
    assert!(said.len() > 8);
    let text = read(PAGE);
    let explained: Vec<String> = table(PAGE, &text, &["why", "what it means", "what to do"])
        .rows
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    assert_eq!(explained, said, "left: {PAGE}, right: store::Error");
}

#[test]
fn exit_codes_are_those_that_the_help_names() {
    let help = source("src/cli/args.rs");
    let (_, said) = help.split_once("Exit codes: ").unwrap();
    let said: Vec<&str> = said.split('.').next().unwrap().split(", ").collect();
    let text = read(PAGE);
    let rows = table(PAGE, &text, &["exit code", "meaning"]).rows;
    assert_eq!(rows.iter().map(|row| row.join(" ")).collect::<Vec<_>>(), said);
}

#[test]
fn settings_that_it_names_are_settings() {
    let settings: toml::Table = read("config/reprieve.toml").parse().unwrap();
    let text = read(PAGE);
    let mut seen = 0;
    for section in ["worker", "retention"] {
        let prefix = format!("{section}.");
        for word in quoted(&text.replace("```", "")).into_iter().filter(|word| word.starts_with(&prefix)) {
            let key = word.trim_start_matches(&prefix);
            assert!(settings[section].get(key).is_some(), "{PAGE}: there is no setting {word}");
            seen += 1;
        }
    }
    assert!(seen > 4, "{seen}");
}

#[test]
fn every_reason_to_wait_is_explained() {
    let code = read("src/api/why.rs");
    let (_, rest) = code.split_once("pub struct Why {").unwrap();
    let said: BTreeSet<String> = quoted(rest.split("pub reason:").next().unwrap()).into_iter().collect();
    assert!(said.len() > 8);
    let text = read(PAGE);
    let rows = table(PAGE, &text, &["reason", "who decides"]).rows;
    let explained: BTreeSet<String> = rows.iter().flat_map(|row| quoted(&row[0])).collect();
    assert_eq!(explained, said, "left: {PAGE}, right: `Why::reason`");
    // What the source builds is what its head says.
    for rest in source("src/api/why/reasons.rs").split("Reason::new(\"").skip(1) {
        let word = rest.split('"').next().unwrap();
        assert!(explained.contains(word) || ["running", "cancelling"].contains(&word), "{PAGE}: what is {word}?");
    }
}
