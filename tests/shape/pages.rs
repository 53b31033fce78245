//! Pages of Markdown, as far as tests read them: tables, blocks of code, and the sources they are compared with.

use std::path::{Path, PathBuf};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A file of this package.
pub fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files below a directory whose names end so, by their paths within the package, in order.
pub fn files(dir: &str, ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect(&Path::new(ROOT).join(dir), &mut found);
    let mut names: Vec<String> = found
        .iter()
        .map(|path| path.strip_prefix(ROOT).unwrap().to_str().unwrap().to_owned())
        .filter(|name| name.ends_with(ending))
        .collect();
    names.sort();
    assert!(!names.is_empty(), "{dir} holds nothing that ends in {ending}");
    names
}

fn collect(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() { collect(&path, found) } else { found.push(path) }
    }
}

/// A source without comments and without unit tests, at its end or in a file of their own.
pub fn source(path: &str) -> String {
    if path.ends_with("/tests.rs") {
        return String::new();
    }
    let text = read(path);
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

#[derive(Debug)]
pub struct Table {
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// The tables of a page, in order.
pub fn tables(text: &str) -> Vec<Table> {
    let mut found = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with('|') || !lines.peek().is_some_and(|next| next.starts_with("|--")) {
            continue;
        }
        lines.next();
        let mut rows = Vec::new();
        while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
            rows.push(cells(row));
        }
        found.push(Table { head: cells(line), rows });
    }
    found
}

/// The table whose head begins with these words.
pub fn table(page: &str, text: &str, head: &[&str]) -> Table {
    tables(text)
        .into_iter()
        .find(|table| table.head.len() >= head.len() && table.head.iter().zip(head).all(|(is, should)| is == should))
        .unwrap_or_else(|| panic!("{page} has no table with the head {head:?}"))
}

fn cells(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches('|').trim_end_matches('|');
    line.split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// What stands in a cell between backticks, each.
pub fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The fenced blocks of one language.
pub fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap_or_default().to_owned()).collect()
}
