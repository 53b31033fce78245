//! Typed reading from the tree: each value with the place it came from, each mistake with what would be right.
//!
//! A mistake does not end the reading: the whole configuration is read, so that one run names everything there is to
//! correct.

use super::origin::{Origin, Problem, nearest};
use super::tree::{Node, Table, Value};
use crate::duration;
use serde_json::Value as Json;
use std::ops::RangeInclusive;

/// An effective value and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The whole dotted key, as TOML would spell it.
    pub key: String,
    /// A secret stands here as `set` or `missing`, never as itself.
    pub value: Json,
    pub origin: Origin,
}

/// What reading has brought to light so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub problems: Vec<Problem>,
    pub settings: Vec<Setting>,
}

impl Findings {
    pub fn problem(&mut self, origin: &Origin, key: &str, what: impl Into<String>) {
        self.problems.push(Problem { origin: origin.clone(), key: key.to_owned(), what: what.into() });
    }

    pub fn setting(&mut self, origin: &Origin, key: &str, value: Json) {
        self.settings.push(Setting { key: key.to_owned(), value, origin: origin.clone() });
    }
}

/// A value that was read, and where it stood.
#[derive(Clone, Debug)]
pub(super) struct Read<T> {
    pub value: T,
    pub origin: Origin,
}

/// One table being read. Keys that nobody asked for by the end are mistakes.
pub(super) struct Section<'a> {
    /// The dotted key; empty at the root.
    pub path: String,
    /// Where the table starts; of an absent one, where its parent does.
    pub origin: Origin,
    table: Option<&'a Table>,
    seen: Vec<&'static str>,
}

impl<'a> Section<'a> {
    pub fn root(table: &'a Table) -> Self {
        Self { path: String::new(), origin: Origin::Default, table: Some(table), seen: Vec::new() }
    }

    /// A key below this section, as TOML would spell it.
    pub fn key(&self, key: &str) -> String {
        let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let key = if bare { key.to_owned() } else { format!("{key:?}") };
        if self.path.is_empty() { key } else { format!("{}.{key}", self.path) }
    }

    pub fn is_there(&self) -> bool {
        self.table.is_some()
    }

    pub fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.get(key).is_some())
    }

    fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.seen.push(key);
        self.table?.get(key)
    }

    /// A section of fixed name; where it is absent, an empty one.
    pub fn section(&mut self, key: &'static str, findings: &mut Findings) -> Section<'a> {
        let path = self.key(key);
        match self.node(key) {
            None => Section { path, origin: self.origin.clone(), table: None, seen: Vec::new() },
            Some(node) => open(node, path, findings),
        }
    }

    /// The sections whose names the operator chooses (providers, models), in the order written. Ends this section.
    pub fn named(self, findings: &mut Findings) -> Vec<(String, Section<'a>)> {
        let Some(table) = self.table else {
            return Vec::new();
        };
        table.0.iter().map(|entry| (entry.key.clone(), open(&entry.node, self.key(&entry.key), findings))).collect()
    }

    /// A value, converted; `want` says what would be right.
    pub fn read<T>(
        &mut self,
        key: &'static str,
        want: &str,
        findings: &mut Findings,
        convert: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Option<Read<T>> {
        let path = self.key(key);
        let node = self.node(key)?;
        match convert(&node.value) {
            Ok(value) => Some(Read { value, origin: node.origin.clone() }),
            Err(why) => {
                findings.problem(&node.origin, &path, format!("{why}; {want}"));
                None
            }
        }
    }

    pub fn text(&mut self, key: &'static str, want: &str, findings: &mut Findings) -> Option<Read<String>> {
        let read = self.read(key, want, findings, text)?;
        if read.value.contains("${") {
            let what = format!("`${{…}}` stands for secrets only (`api_key`), and this is none; {want}");
            findings.problem(&read.origin, &self.key(key), what);
            return None;
        }
        Some(read)
    }

    pub fn duration_ms(
        &mut self,
        key: &'static str,
        allowed_ms: RangeInclusive<i64>,
        findings: &mut Findings,
    ) -> Option<Read<i64>> {
        let want = "for instance \"30s\"";
        let read = self.read(key, want, findings, |value| match value {
            Value::Text(text) | Value::Raw(text) => {
                duration::parse_ms(text).map_err(|why| format!("`{}` {why}", text.escape_debug()))
            }
            Value::Integer(Some(number)) => Err(format!("{number} {}", duration::Malformed::Unitless)),
            other => Err(format!("{} {}", other.kind(), duration::Malformed::Grammar)),
        })?;
        if !allowed_ms.contains(&read.value) {
            let (low, high) = (duration::write(*allowed_ms.start()), duration::write(*allowed_ms.end()));
            let what = format!("{} is out of range; write {low} to {high}", duration::write(read.value));
            findings.problem(&read.origin, &self.key(key), what);
            return None;
        }
        Some(read)
    }

    pub fn integer(
        &mut self,
        key: &'static str,
        allowed: RangeInclusive<u32>,
        findings: &mut Findings,
    ) -> Option<Read<u32>> {
        let (low, high) = (*allowed.start(), *allowed.end());
        let want = format!("write a whole number from {low} to {high}");
        self.read(key, &want, findings, |value| {
            let number = match value {
                Value::Integer(number) => *number,
                Value::Raw(text) => match text.trim().parse::<i64>() {
                    Ok(number) => Some(number),
                    Err(_) => return Err(format!("`{}` is no whole number", text.escape_debug())),
                },
                other => return Err(format!("{} is no whole number", other.kind())),
            };
            number.and_then(|number| u32::try_from(number).ok()).filter(|number| allowed.contains(number)).ok_or_else(
                || {
                    number.map_or_else(
                        || "the number is out of range".into(),
                        |number| format!("{number} is out of range"),
                    )
                },
            )
        })
    }

    pub fn boolean(&mut self, key: &'static str, findings: &mut Findings) -> Option<Read<bool>> {
        self.read(key, "write true or false", findings, |value| match value {
            Value::Bool(truth) => Ok(*truth),
            Value::Raw(text) if text == "true" => Ok(true),
            Value::Raw(text) if text == "false" => Ok(false),
            other => Err(format!("{} is no boolean", other.kind())),
        })
    }

    /// A list of strings; in a variable, separated by commas.
    pub fn texts(&mut self, key: &'static str, want: &str, findings: &mut Findings) -> Option<Read<Vec<String>>> {
        self.read(key, want, findings, |value| {
            let items: Vec<String> = match value {
                Value::List(items) => items.iter().map(|item| text(&item.value)).collect::<Result<_, _>>()?,
                Value::Raw(text) => {
                    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
                }
                other => return Err(format!("{} is no list", other.kind())),
            };
            match items.iter().find(|item| item.is_empty() || item.contains("${")) {
                Some(item) if item.is_empty() => Err("an empty name".into()),
                Some(_) => Err("`${…}` stands for secrets only (`api_key`)".into()),
                None => Ok(items),
            }
        })
    }

    /// A list of whole numbers; in a variable, separated by commas.
    pub fn statuses(&mut self, key: &'static str, findings: &mut Findings) -> Option<Read<Vec<u16>>> {
        let want = "write a list of HTTP statuses, for instance [429]";
        self.items(key, want, findings, |item| match item {
            Value::Integer(Some(status)) => u16::try_from(*status).map_err(|_| format!("{status} is no HTTP status")),
            Value::Raw(text) => text.parse().map_err(|_| format!("`{}` is no HTTP status", text.escape_debug())),
            other => Err(format!("{} is no HTTP status", other.kind())),
        })
    }

    /// A list of durations; in a variable, separated by commas.
    pub fn waits_ms(&mut self, key: &'static str, findings: &mut Findings) -> Option<Read<Vec<i64>>> {
        self.items(key, "write a list of durations, for instance [\"1s\", \"2s\"]", findings, |item| match item {
            Value::Text(text) | Value::Raw(text) => {
                duration::parse_ms(text).map_err(|why| format!("`{}` {why}", text.escape_debug()))
            }
            other => Err(format!("{} is no duration", other.kind())),
        })
    }

    fn items<T>(
        &mut self,
        key: &'static str,
        want: &str,
        findings: &mut Findings,
        convert: impl Fn(&Value) -> Result<T, String>,
    ) -> Option<Read<Vec<T>>> {
        self.read(key, want, findings, |value| match value {
            Value::List(items) => items.iter().map(|item| convert(&item.value)).collect(),
            Value::Raw(text) => text
                .split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(|item| convert(&Value::Raw(item.to_owned())))
                .collect(),
            other => Err(format!("{} is no list", other.kind())),
        })
    }

    /// A share, 0 to 1.
    pub fn share(&mut self, key: &'static str, findings: &mut Findings) -> Option<Read<f64>> {
        self.read(key, "write a number from 0 to 1", findings, |value| {
            let number = match value {
                Value::Float(number) => Some(*number),
                Value::Integer(Some(0)) => Some(0.0),
                Value::Integer(Some(1)) => Some(1.0),
                Value::Raw(text) => text.parse().ok(),
                Value::Integer(_) => None,
                other => return Err(format!("{} is no number", other.kind())),
            };
            number.filter(|number| (0.0..=1.0).contains(number)).ok_or_else(|| "out of range".to_owned())
        })
    }

    /// Ends the section: what was not asked for is refused, by name where another release knows it.
    pub fn finish(self, not_yet: &[&str], findings: &mut Findings) {
        let Some(table) = self.table else {
            return;
        };
        for entry in table.0.iter().filter(|entry| !self.seen.contains(&entry.key.as_str())) {
            let what = if not_yet.contains(&entry.key.as_str()) {
                "not supported by this release; remove it".to_owned()
            } else if let Some(near) = nearest(&entry.key, self.seen.iter().copied()) {
                format!("unknown key; did you mean `{near}`?")
            } else {
                let mut known = self.seen.clone();
                known.sort_unstable();
                format!("unknown key; here may stand {}", known.join(", "))
            };
            findings.problem(&entry.key_origin, &self.key(&entry.key), what);
        }
    }
}

fn open<'a>(node: &'a Node, path: String, findings: &mut Findings) -> Section<'a> {
    let table = match &node.value {
        Value::Table(table) => Some(table),
        other => {
            findings.problem(&node.origin, &path, format!("{} stands where a table is wanted", other.kind()));
            None
        }
    };
    Section { path, origin: node.origin.clone(), table, seen: Vec::new() }
}

pub(super) fn text(value: &Value) -> Result<String, String> {
    match value {
        Value::Text(text) | Value::Raw(text) => Ok(text.clone()),
        other => Err(format!("{} is no string", other.kind())),
    }
}
