//! `docs/STATE_MACHINE.md` has a row for every variant of what it describes.

use crate::pages::{quoted, read, source, tables};
use std::collections::BTreeSet;

const PAGE: &str = "docs/STATE_MACHINE.md";

/// The variants of an enumeration, as its source has them.
fn variants(file: &str, name: &str) -> Vec<String> {
    let text = source(file);
    let (_, rest) = text.split_once(&format!("pub enum {name} {{")).unwrap_or_else(|| panic!("{file} has no {name}"));
    let (mut depth, mut found) = (0, Vec::new());
    for line in rest.lines() {
        let word: String = line.trim().chars().take_while(char::is_ascii_alphanumeric).collect();
        if depth == 0 && line.trim_start().starts_with('}') {
            break;
        }
        if depth == 0 && word.starts_with(|letter: char| letter.is_ascii_uppercase()) {
            found.push(word);
        }
        let count = |letters: [char; 2]| i64::try_from(line.matches(letters).count()).unwrap();
        depth += count(['{', '(']) - count(['}', ')']);
    }
    assert!(found.len() > 1, "{file}: {name}");
    found
}

fn snake(word: &str) -> String {
    let mut out = String::new();
    for (n, letter) in word.char_indices() {
        if letter.is_ascii_uppercase() && n > 0 {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// The first words of a table's rows; of one that is about several enumerations, those of `of`.
fn rows(head: &str, of: Option<&str>) -> Vec<String> {
    let text = read(PAGE);
    let table = tables(&text).into_iter().find(|table| table.head[0] == head);
    let table = table.unwrap_or_else(|| panic!("{PAGE} has no table of {head}"));
    let about = |row: &&Vec<String>| of.is_none_or(|of| quoted(&row[1]).iter().any(|word| word == of));
    table.rows.iter().filter(about).flat_map(|row| quoted(&row[0]).into_iter().take(1)).collect()
}

#[test]
fn every_variant_has_its_row() {
    let words = |file, name| variants(file, name).iter().map(|word| snake(word)).collect::<Vec<_>>();
    let records = "src/store/rows/records.rs";
    let verbs = "src/store/rows/verbs.rs";
    let holds = "src/admission/holds.rs";
    let steering = "src/store/rows/steering.rs";
    let schedules = "src/store/rows/schedules.rs";
    for (is, should, what) in [
        (rows("job state", None), words(records, "JobState"), "JobState"),
        (rows("outcome", None), words(records, "Outcome"), "Outcome"),
        (rows("next", None), variants(verbs, "Next"), "Next"),
        (rows("answer", Some("Applied")), variants(verbs, "Applied"), "Applied"),
        (rows("answer", Some("Permit")), variants(verbs, "Permit"), "Permit"),
        (rows("asked", Some("CancelOutcome")), variants(verbs, "CancelOutcome"), "CancelOutcome"),
        (rows("asked", Some("Steer")), variants(steering, "Steer"), "Steer"),
        (rows("asked", Some("SteerOutcome")), variants(steering, "SteerOutcome"), "SteerOutcome"),
        (rows("asked", Some("Posted")), variants(steering, "Posted"), "Posted"),
        (rows("asked", Some("DeleteOutcome")), variants(steering, "DeleteOutcome"), "DeleteOutcome"),
        (rows("schedule", Some("CatchUp")), variants(schedules, "CatchUp"), "CatchUp"),
        (rows("schedule", Some("Overlap")), variants(schedules, "Overlap"), "Overlap"),
        (rows("schedule", Some("FiringKind")), variants(schedules, "FiringKind"), "FiringKind"),
        (rows("schedule", Some("Scheduled")), variants(schedules, "Scheduled"), "Scheduled"),
        (rows("schedule", Some("Fired")), variants(schedules, "Fired"), "Fired"),
        (rows("standing", None), variants(holds, "Standing"), "Standing"),
        (rows("hold event", None), words(holds, "HoldEvent"), "HoldEvent"),
    ] {
        let count = is.len();
        let (is, should): (BTreeSet<_>, BTreeSet<_>) = (is.into_iter().collect(), should.into_iter().collect());
        assert_eq!(is, should, "{PAGE}: rows of {what}; left: the page, right: the code");
        assert_eq!(count, is.len(), "{PAGE}: a row of {what} stands there twice");
    }
}

#[test]
fn the_states_of_turns_are_those_of_the_schema() {
    let schema = read("migrations/sqlite/0001_initial.sql");
    let (_, rest) = schema.split_once("CREATE TABLE turns (").unwrap();
    let (_, states) = rest.split_once("CHECK (state IN (").unwrap();
    let states: Vec<&str> = states.split("))").next().unwrap().split(", ").collect();
    let text = read(PAGE);
    let table = tables(&text).into_iter().find(|table| table.head[0] == "turn state").unwrap();
    let stored: Vec<&str> = table.rows.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(stored, states);
}

#[test]
fn every_verb_that_it_names_is_one_and_every_verb_that_moves_a_turn_is_named() {
    let text = read(PAGE);
    let seam = source("src/store.rs");
    let mut named = BTreeSet::new();
    for table in tables(&text) {
        let Some(column) = table.head.iter().position(|head| head == "verb") else { continue };
        named.extend(table.rows.iter().flat_map(|row| quoted(&row[column])));
    }
    for verb in &named {
        assert!(seam.contains(&format!("fn {verb}(")), "{PAGE}: the store has no verb {verb}");
    }
    // Whatever takes or gives back a turn in hand.
    let moves = ["submit", "claim", "permit", "answered", "give_back", "set_back", "complete", "rescue", "expire"];
    for verb in moves.into_iter().chain(["cancel", "steer", "release_hold", "fire"]) {
        assert!(named.contains(verb), "{PAGE} does not say what {verb} does");
    }
}

#[test]
fn every_state_of_a_diagram_is_one() {
    let text = read(PAGE);
    let known: BTreeSet<String> = tables(&text)
        .iter()
        .filter(|table| ["job state", "turn state", "standing"].contains(&table.head[0].as_str()))
        .flat_map(|table| table.rows.iter().flat_map(|row| quoted(&row[0])))
        .map(|word| word.to_lowercase())
        .chain(["[*]", "ended"].map(str::to_owned))
        .collect();
    let mut seen = 0;
    for line in text.lines().filter(|line| line.contains(" --> ")) {
        let (from, rest) = line.split_once(" --> ").unwrap();
        let to = rest.split(':').next().unwrap();
        for state in [from.trim(), to.trim()] {
            assert!(known.contains(state), "{PAGE}: {line}: no table knows {state}");
        }
        seen += 1;
    }
    assert!(seen > 25, "{seen}");
}
