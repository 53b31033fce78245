//! `docs/SHAPES.md` is what the code answers with: each example is read as its type and written again.

use reprieve::api::why::Explanation;
use reprieve::api::{Kind, Problem, shapes};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../docs/SHAPES.md");

/// The JSON example of each section.
fn examples() -> BTreeMap<&'static str, &'static str> {
    PAGE.split("\n## ")
        .skip(1)
        .filter_map(|section| {
            let name = section.lines().next()?;
            let example = section.split("```json\n").nth(1)?.split("```").next()?;
            Some((name, example))
        })
        .collect()
}

/// Read as the type (which refuses unknown members and misses none) and written again, it is the same document.
fn is<T: Serialize + DeserializeOwned>(examples: &mut BTreeMap<&str, &str>, name: &str) {
    let example = examples.remove(name).unwrap_or_else(|| panic!("{name} has no example"));
    let read: T = serde_json::from_str(example).unwrap_or_else(|error| panic!("{name}: {error}"));
    let written = serde_json::to_string(&read).unwrap();
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(value(&written), value(example), "{name}");
}

#[test]
fn every_example_is_what_the_code_says() {
    let mut examples = examples();
    is::<shapes::List<Value>>(&mut examples, "List");
    is::<shapes::Job>(&mut examples, "Job");
    is::<shapes::Record>(&mut examples, "Record");
    is::<shapes::Send>(&mut examples, "Send");
    is::<shapes::Evidence>(&mut examples, "Evidence");
    is::<shapes::Hold>(&mut examples, "Hold");
    is::<shapes::HoldEvent>(&mut examples, "HoldEvent");
    is::<shapes::CloseHold>(&mut examples, "CloseHold");
    is::<shapes::Refusal>(&mut examples, "Refusal");
    is::<shapes::Accuracy>(&mut examples, "Accuracy");
    is::<shapes::Queue>(&mut examples, "Queue");
    is::<shapes::Stopped>(&mut examples, "Stopped");
    is::<shapes::Schedule>(&mut examples, "Schedule");
    is::<shapes::Usage>(&mut examples, "Usage");
    is::<shapes::Entry>(&mut examples, "Entry");
    is::<Explanation>(&mut examples, "Explanation");
    is::<shapes::Told>(&mut examples, "Told");
    is::<shapes::Reset>(&mut examples, "Reset");
    is::<shapes::Failure>(&mut examples, "Failure");
    is::<shapes::Count>(&mut examples, "Count");
    is::<shapes::Ack>(&mut examples, "Ack");
    let captured = examples.remove("Classify").unwrap();
    let answer = PAGE.split("The answer:\n\n```text\n").nth(1).unwrap().split("```").next().unwrap();
    let said = crate::rig::Place::new().run_with(&["classify"], captured, &[]);
    assert_eq!((said.code, said.out.as_str()), (0, answer), "{said:?}");
    let problem: Value = serde_json::from_str(examples.remove("Problem").unwrap()).unwrap();
    let id = problem["job"].as_str().unwrap().parse().unwrap();
    assert_eq!(problem, reprieve::api::conflict(id).to_json());
    assert!(examples.is_empty(), "examples of nothing: {examples:?}");
}

#[test]
fn the_page_lists_every_type_of_problem_with_its_status() {
    let kinds = [
        Kind::Malformed,
        Kind::Parameter,
        Kind::NotFound,
        Kind::Method,
        Kind::Conflict,
        Kind::Ended,
        Kind::NotEnded,
        Kind::NoMessages,
        Kind::Exists,
        Kind::Slow,
        Kind::Origin,
        Kind::Invalid,
        Kind::InvalidSchedule,
        Kind::TooLarge,
        Kind::MediaType,
        Kind::Host,
        Kind::InvalidJob,
        Kind::Provider,
        Kind::Internal,
        Kind::Store,
    ];
    let flat = PAGE.replace('\n', " ");
    for kind in kinds {
        let said = format!("`{}` {}", kind.slug(), kind.status().as_u16());
        assert!(flat.contains(&said), "{said}");
        assert_eq!(Problem::new(kind, "x").to_json()["status"], kind.status().as_u16());
    }
}
