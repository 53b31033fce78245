//! Where a value stands, and what is wrong with it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Where a value was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The documented defaults, which are built in.
    Default,
    File {
        path: Arc<PathBuf>,
        line: usize,
    },
    /// An environment variable, by its name.
    Variable(Arc<str>),
    /// A flag of the command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// One thing that is wrong: where, which key, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub origin: Origin,
    /// The whole dotted key; empty where a file cannot be read at all.
    pub key: String,
    /// What is wrong and what would be right, in one sentence. Never a secret's value.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            write!(f, "{}: {}", self.origin, self.what)
        } else {
            write!(f, "{}: {}: {}", self.origin, self.key, self.what)
        }
    }
}

/// Everything that is wrong with a configuration, in the order met. Nothing of it takes effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// At least one.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// The candidate nearest to what was written, if it is near enough to have been meant.
pub(crate) fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written = written.to_ascii_lowercase();
    known
        .into_iter()
        .map(|name| (edits(&written, &name.to_ascii_lowercase()), name))
        .filter(|(edits, name)| *edits <= 2.max(name.chars().count() / 3))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
}

/// Levenshtein's distance, over characters.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_only_where_it_is_near() {
        let known = ["concurrency", "queues", "lease", "drain"];
        assert_eq!(nearest("concurency", known), Some("concurrency"));
        assert_eq!(nearest("Queue", known), Some("queues"));
        assert_eq!(nearest("colour", known), None);
    }

    #[test]
    fn distances_count_single_edits() {
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("lease", "lease"), 0);
    }
}
