//! `docs/LOGGING.md` lists every event that the binary writes, and what it never writes.

use crate::pages::{files, quoted, read, source, table, tables};
use std::collections::BTreeSet;

const PAGE: &str = "docs/LOGGING.md";

/// Level, message, fields.
type Event = (String, String, BTreeSet<String>);

/// The arguments of a macro, up to its closing parenthesis, split at the commas between them.
fn arguments(text: &str) -> Vec<String> {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let mut found = vec![String::new()];
    for letter in text.chars() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => break,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(String::new());
                continue;
            }
            _ => {}
        }
        found.last_mut().unwrap().push(letter);
    }
    found.iter().map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect()
}

fn literal(argument: &str) -> Option<String> {
    Some(argument.strip_prefix('"')?.strip_suffix('"')?.to_owned())
}

/// The messages of the one helper that takes its event's from its callers.
fn said_by_callers() -> Vec<String> {
    let mut found = Vec::new();
    for file in files("src/worker", ".rs") {
        let text = source(&file);
        found.extend(text.split("store_is_away(").skip(1).filter_map(|rest| literal(arguments(rest).first()?)));
    }
    found
}

fn written() -> BTreeSet<Event> {
    let mut events = BTreeSet::new();
    for file in files("src", ".rs") {
        let text = source(&file);
        for level in ["trace", "debug", "info", "warn", "error"] {
            let call = format!("tracing::{level}!(");
            let (bare, full) = (text.matches(&format!("{level}!(")).count(), text.matches(&call).count());
            assert_eq!(bare, full, "{file}: write `{call}…)` in full, so that events can be found");
            for rest in text.split(&call).skip(1) {
                let mut arguments = arguments(rest);
                let message = arguments.pop().unwrap_or_default();
                let message =
                    literal(&message).unwrap_or_else(|| panic!("{file}: an event without a message: {message}"));
                let fields = arguments.iter().map(|argument| {
                    let name = argument.split('=').next().unwrap_or_default();
                    name.trim().trim_start_matches(['%', '?']).to_owned()
                });
                let fields: BTreeSet<String> = fields.collect();
                let messages = if message == "{what}" { said_by_callers() } else { vec![message] };
                events.extend(messages.into_iter().map(|message| (level.to_owned(), message, fields.clone())));
            }
        }
    }
    assert!(events.len() > 30);
    events
}

#[test]
fn every_event_is_listed_with_its_level_and_fields() {
    let mut listed = BTreeSet::new();
    for table in tables(&read(PAGE)).iter().filter(|table| table.head[0] == "level") {
        for row in &table.rows {
            assert_eq!(row.len(), 4, "{PAGE}: {row:?}");
            assert!(!row[3].is_empty(), "{PAGE}: `{}` does not say what to do", row[1]);
            let event = (row[0].clone(), row[1].clone(), quoted(&row[2]).into_iter().collect());
            assert!(listed.insert(event), "{PAGE}: `{}` stands there twice", row[1]);
        }
    }
    let written = written();
    let missing: Vec<_> = written.difference(&listed).collect();
    let superfluous: Vec<_> = listed.difference(&written).collect();
    assert!(missing.is_empty(), "{PAGE} does not list: {missing:#?}\nbut lists: {superfluous:#?}");
    assert!(superfluous.is_empty(), "{PAGE} lists what nobody writes: {superfluous:#?}");
}

#[test]
fn every_silenced_target_is_listed() {
    let text = source("src/telemetry.rs");
    let (_, list) = text.split_once("const SILENCED").unwrap();
    let (_, list) = list.split_once("= [").unwrap();
    let silenced: Vec<&str> = list.split(']').next().unwrap().split('"').skip(1).step_by(2).collect();
    let page = read(PAGE);
    let listed: Vec<String> =
        table(PAGE, &page, &["target", "why it is dropped"]).rows.iter().flat_map(|row| quoted(&row[0])).collect();
    assert_eq!(listed, silenced);
}

#[test]
fn filters_that_it_shows_are_taken() {
    let page = read(PAGE);
    for row in table(PAGE, &page, &["value", "what it does"]).rows {
        for filter in quoted(&row[0]) {
            let built = reprieve::telemetry::build(&filter, reprieve::telemetry::Format::Text, std::io::sink);
            assert!(built.is_ok(), "{filter}");
        }
    }
    let own = source("src/cli/serve.rs");
    assert!(own.contains("\"info,tokio_cron_scheduler=warn\""), "{PAGE} says what `serve` logs unless told otherwise");
}
