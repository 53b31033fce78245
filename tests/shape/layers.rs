//! Dependencies between modules point one way, and SQL lives only under `store/`.

use std::fs;
use std::path::{Path, PathBuf};

/// Each module and what it may use of the others. What stands in no list may be used by nobody but the root.
const MAY_USE: &[(&str, &[&str])] = &[
    ("duration", &[]),
    ("clock", &["duration"]),
    ("telemetry", &[]),
    ("failure", &["duration"]),
    ("recovery", &["failure", "duration"]),
    ("config", &["recovery", "failure", "duration"]),
    ("admission", &["recovery", "failure"]),
    ("store", &["admission", "recovery", "failure", "clock", "duration"]),
    ("provider", &["store", "recovery", "failure", "config", "clock", "duration"]),
    ("agent", &["provider", "store", "recovery", "failure", "config", "duration"]),
    ("scheduler", &["agent", "store", "recovery", "failure", "clock", "duration"]),
    ("worker", &["agent", "admission", "provider", "store", "recovery", "failure", "clock", "duration"]),
    ("sim", &["clock", "duration"]),
    ("app", &["worker", "scheduler", "agent", "provider", "store", "recovery", "failure", "config", "clock"]),
    ("api", &["app", "scheduler", "agent", "store", "recovery", "failure", "config", "clock", "duration"]),
    (
        "cli",
        &[
            "api",
            "app",
            "worker",
            "scheduler",
            "agent",
            "provider",
            "store",
            "recovery",
            "failure",
            "config",
            "sim",
            "clock",
            "duration",
            "telemetry",
        ],
    ),
];

fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

fn module_of(file: &Path) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let first = file.strip_prefix(root).unwrap().components().next().unwrap();
    first.as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned()
}

/// The modules that a source names by `crate::…`, also in braces after `use crate::{…}`.
fn used(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for piece in text.split("crate::").skip(1) {
        if let Some(group) = piece.strip_prefix('{') {
            let mut depth = 0;
            let mut word = String::new();
            for letter in group.chars() {
                match letter {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => names.push(std::mem::take(&mut word)),
                    letter if depth == 0 && !letter.is_whitespace() => word.push(letter),
                    _ => {}
                }
            }
            names.push(word);
        } else {
            names.push(piece.to_owned());
        }
    }
    names
        .into_iter()
        .map(|name| name.chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect())
        .filter(|name: &String| !name.is_empty())
        .collect()
}

fn without_comments(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

#[test]
fn dependencies_between_modules_point_one_way() {
    let mut wrong = Vec::new();
    for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let module = module_of(&file);
        if matches!(module.as_str(), "lib" | "main") {
            continue;
        }
        let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == module) else {
            wrong.push(format!("{}: module `{module}` has no place in the order", file.display()));
            continue;
        };
        let text = without_comments(&fs::read_to_string(&file).unwrap());
        for name in used(&text) {
            let known = MAY_USE.iter().any(|(module, _)| *module == name);
            if known && name != module && !allowed.contains(&name.as_str()) {
                wrong.push(format!("{}: `{module}` may not use `{name}`", file.display()));
            }
        }
    }
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_order_has_no_cycle() {
    for (index, (module, allowed)) in MAY_USE.iter().enumerate() {
        for name in *allowed {
            let place = MAY_USE.iter().position(|(other, _)| other == name);
            assert!(place.is_some_and(|place| place < index), "`{name}` stands after `{module}`, which uses it");
        }
    }
}

#[test]
fn pure_modules_know_no_runtime_and_no_database() {
    for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let module = module_of(&file);
        let text = without_comments(&fs::read_to_string(&file).unwrap());
        let banned: &[&str] = match module.as_str() {
            "failure" | "recovery" | "admission" | "agent" => {
                &["tokio::", "sqlx::", "axum::", "hyper::", "Timestamp::now", "SystemTime", "Instant::now", "rand::"]
            }
            "store" => &["axum::", "genai::", "reqwest::"],
            _ => &["sqlx::"],
        };
        for word in banned {
            assert!(!text.contains(word), "{}: `{module}` names `{word}`", file.display());
        }
    }
}

#[test]
fn one_clock_reads_the_wall() {
    for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        if module_of(&file) == "clock" {
            continue;
        }
        let text = without_comments(&fs::read_to_string(&file).unwrap());
        for word in ["Timestamp::now", "SystemTime::now", "Zoned::now"] {
            assert!(!text.contains(word), "{}: only the clock reads `{word}`", file.display());
        }
    }
}
