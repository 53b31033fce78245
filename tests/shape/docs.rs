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

/// Where a heading is linked to.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || "-_ ".contains(*letter));
    kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
}

#[test]
fn every_link_leads_somewhere() {
    let mut documents = files("docs", ".md");
    documents.extend(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(str::to_owned));
    let mut wrong = Vec::new();
    let mut seen = 0;
    for document in &documents {
        for rest in read(document).split("](").skip(1) {
            let target = rest.split(')').next().unwrap();
            if target.contains("://") {
                continue;
            }
            let (path, place) = target.split_once('#').unwrap_or((target, ""));
            let from = Path::new(document).parent().unwrap();
            let path = if path.is_empty() { Path::new(document).to_owned() } else { from.join(path) };
            let there = Path::new(ROOT).join(&path);
            let text = std::fs::read_to_string(&there).unwrap_or_default();
            let mut headings = text.lines().filter(|line| line.starts_with('#'));
            if !there.is_file()
                || !place.is_empty() && !headings.any(|line| anchor(line.trim_start_matches('#')) == place)
            {
                wrong.push(format!("{document} links {target}"));
            }
            seen += 1;
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(seen > 50, "{seen}");
}

#[test]
fn every_document_is_found_from_the_readme() {
    let readme = read("README.md");
    for document in files("docs", ".md").iter().filter(|document| !document.starts_with("docs/failures/")) {
        assert!(readme.contains(&format!("]({document}")), "README.md does not link {document}");
    }
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
