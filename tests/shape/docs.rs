//! What the documents name exists.

use crate::pages::{files, read};
use std::path::Path;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const PLACES: [&str; 7] = ["src", "docs", "config", "scripts", "tests", "benches", "migrations"];

/// The paths of this package that a text names; those with a placeholder in them are none.
fn paths(text: &str) -> Vec<String> {
    let of_a_path = |letter: char| letter.is_ascii_alphanumeric() || "_./-<>*{}".contains(letter);
    text.split(|letter: char| !of_a_path(letter))
        .map(|word| word.trim_start_matches("./").trim_end_matches('.'))
        .filter(|word| PLACES.iter().any(|place| word.strip_prefix(place).is_some_and(|rest| rest.starts_with('/'))))
        .filter(|word| !word.contains(['<', '*', '{']))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_path_that_a_document_names_exists() {
    let mut documents: Vec<String> =
        ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "config/reprieve.toml"].map(str::to_owned).to_vec();
    documents.extend(files("docs", ".md"));
    assert!(documents.len() > 4);
    let mut wrong = Vec::new();
    for document in &documents {
        for path in paths(&read(document)) {
            if !Path::new(ROOT).join(&path).exists() {
                wrong.push(format!("{document} names {path}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(paths("see `src/a.rs`, ./scripts/b and src/<verb>.sql."), ["src/a.rs", "scripts/b"]);
}

#[test]
fn the_map_names_every_part() {
    let map = read("docs/ARCHITECTURE.md");
    for entry in std::fs::read_dir(Path::new(ROOT).join("src")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let part = name.strip_suffix(".rs").unwrap_or(&name);
        if matches!(part, "lib" | "main") {
            continue;
        }
        let named = [format!("src/{part}/"), format!("src/{part}.rs")];
        assert!(named.iter().any(|path| map.contains(path)), "docs/ARCHITECTURE.md does not name {part}");
    }
}
