//! A configuration as a tree of values that each know where they stand, and the three ways such a tree comes about:
//! TOML text, environment variables, and laying one over another.
//!
//! Nothing here knows which keys exist; that is `schema.rs`.

use super::origin::{Origin, Problem};
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The prefix of environment variables that set a key.
pub const PREFIX: &str = "REPRIEVE__";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub value: Value,
    pub origin: Origin,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    /// The text of an environment variable: read as whatever the key wants.
    Raw(String),
    /// `None`: outside the 64-bit range.
    Integer(Option<i64>),
    Float(f64),
    Bool(bool),
    Date,
    List(Vec<Node>),
    Table(Table),
}

impl Value {
    /// As an error calls it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Raw(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Bool(_) => "a boolean",
            Self::Date => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Entries in the order written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Table(pub Vec<Entry>);

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub key: String,
    pub key_origin: Origin,
    pub node: Node,
}

impl Table {
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.0.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    pub fn put(&mut self, entry: Entry) {
        match self.0.iter_mut().find(|known| known.key == entry.key) {
            Some(known) => *known = entry,
            None => self.0.push(entry),
        }
    }

    /// Lays `over` over this table: tables are merged, everything else is replaced.
    pub fn lay_over(&mut self, over: Table) {
        for entry in over.0 {
            let known = self.0.iter_mut().find(|known| known.key == entry.key);
            match known {
                Some(Entry { node: Node { value: Value::Table(below), .. }, .. })
                    if matches!(entry.node.value, Value::Table(_)) =>
                {
                    if let Value::Table(above) = entry.node.value {
                        below.lay_over(above);
                    }
                }
                Some(known) => *known = entry,
                None => self.0.push(entry),
            }
        }
    }
}

/// Reads TOML text. `path` is `None` for the built-in defaults.
pub(super) fn parse_toml(text: &str, path: Option<&Path>) -> Result<Table, Problem> {
    let path = path.map(|path| Arc::new(path.to_path_buf()));
    let lines = Lines::of(text);
    let origin = |offset: usize| match &path {
        None => Origin::Default,
        Some(path) => Origin::File { path: Arc::clone(path), line: lines.line(offset) },
    };
    match DeTable::parse(text) {
        Ok(table) => Ok(convert_table(table.get_ref(), &origin)),
        Err(error) => Err(Problem {
            origin: origin(error.span().map_or(0, |span| span.start)),
            key: String::new(),
            what: format!("this is no TOML: {}", error.message().replace('\n', ", ")),
        }),
    }
}

fn convert_table(table: &DeTable<'_>, origin: &dyn Fn(usize) -> Origin) -> Table {
    let mut entries: Vec<(usize, Entry)> = table
        .iter()
        .map(|(key, value)| {
            let at = key.span().start;
            let entry = Entry {
                key: key.get_ref().clone().into_owned(),
                key_origin: origin(at),
                node: convert_value(value, at, origin),
            };
            (at, entry)
        })
        .collect();
    entries.sort_by_key(|(at, _)| *at);
    Table(entries.into_iter().map(|(_, entry)| entry).collect())
}

/// `key_at` stands in for values that have no place of their own (a table is where its key is).
fn convert_value(value: &Spanned<DeValue<'_>>, key_at: usize, origin: &dyn Fn(usize) -> Origin) -> Node {
    let at = value.span().start;
    let (at, value) = match value.get_ref() {
        DeValue::String(text) => (at, Value::Text(text.clone().into_owned())),
        DeValue::Integer(number) => {
            (at, Value::Integer(i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()))
        }
        DeValue::Float(number) => (at, Value::Float(number.as_str().replace('_', "").parse().unwrap_or(f64::NAN))),
        DeValue::Boolean(truth) => (at, Value::Bool(*truth)),
        DeValue::Datetime(_) => (at, Value::Date),
        DeValue::Array(items) => {
            (at, Value::List(items.iter().map(|item| convert_value(item, item.span().start, origin)).collect()))
        }
        DeValue::Table(table) => (key_at, Value::Table(convert_table(table, origin))),
    };
    Node { value, origin: origin(at) }
}

/// Byte offsets to line numbers.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect())
    }

    /// From 1.
    fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|newline| *newline < offset) + 1
    }
}

/// Turns `REPRIEVE__SECTION__KEY` variables into a tree. Names are matched without regard to case, and every character
/// outside `[A-Za-z0-9]` counts as `_`, so that `MODELS__GPT_4O` finds `models."gpt-4o"` where `below` has it; a name
/// that `below` does not have is taken in lower case.
pub(super) fn from_variables(variables: &[(String, String)], below: &Table) -> Result<Table, Vec<Problem>> {
    let mut tree = Table::default();
    let mut problems = Vec::new();
    for (name, text) in variables.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        let origin = Origin::Variable(Arc::from(name.as_str()));
        let segments: Vec<&str> = name[PREFIX.len()..].split("__").collect();
        if let Err(what) = put_variable(&mut tree, Some(below), &segments, text, &origin) {
            problems.push(Problem { origin, key: String::new(), what });
        }
    }
    if problems.is_empty() { Ok(tree) } else { Err(problems) }
}

fn put_variable(
    tree: &mut Table,
    below: Option<&Table>,
    segments: &[&str],
    text: &str,
    origin: &Origin,
) -> Result<(), String> {
    let Some((first, rest)) = segments.split_first() else {
        return Ok(());
    };
    if first.is_empty() {
        return Err(format!("an empty part; a variable is {PREFIX}SECTION__KEY, for instance {PREFIX}SERVER__BIND"));
    }
    let alike: Vec<&str> = below
        .map(|table| {
            table.0.iter().map(|entry| entry.key.as_str()).filter(|key| folded(key) == folded(first)).collect()
        })
        .unwrap_or_default();
    let key = match alike.as_slice() {
        [] => first.to_lowercase(),
        [one] => (*one).to_owned(),
        several => {
            return Err(format!("`{first}` could be any of {}; set it in a file instead", several.join(", ")));
        }
    };
    if rest.is_empty() {
        let node = Node { value: Value::Raw(text.to_owned()), origin: origin.clone() };
        tree.put(Entry { key, key_origin: origin.clone(), node });
        return Ok(());
    }
    let below = match below.and_then(|table| table.get(&key)) {
        Some(Node { value: Value::Table(table), .. }) => Some(table),
        _ => None,
    };
    if !matches!(tree.get(&key), Some(Node { value: Value::Table(_), .. })) {
        let node = Node { value: Value::Table(Table::default()), origin: origin.clone() };
        tree.put(Entry { key: key.clone(), key_origin: origin.clone(), node });
    }
    match tree.0.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node.value) {
        Some(Value::Table(inner)) => put_variable(inner, below, rest, text, origin),
        _ => Ok(()),
    }
}

/// A name as a variable can spell it.
fn folded(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: usize) -> Origin {
        Origin::File { path: Arc::new("r.toml".into()), line }
    }

    #[test]
    fn every_value_knows_its_line() {
        let tree = parse_toml("a = 1\n\n[s]\nb = \"x\"\nc = [\n 1,\n 2]\n", Some(Path::new("r.toml"))).unwrap();
        assert_eq!(tree.get("a").unwrap().origin, at(1));
        let Value::Table(section) = &tree.get("s").unwrap().value else { panic!("a table") };
        assert_eq!(section.get("b").unwrap().origin, at(4));
        let Value::List(items) = &section.get("c").unwrap().value else { panic!("a list") };
        assert_eq!(items[1].origin, at(7));
    }

    #[test]
    fn broken_text_names_its_line() {
        let problem = parse_toml("a = 1\nb = \n", Some(Path::new("r.toml"))).unwrap_err();
        assert_eq!(problem.origin, at(2));
        let problem = parse_toml("a = 1\na = 2\n", Some(Path::new("r.toml"))).unwrap_err();
        assert_eq!(problem.origin, at(2));
    }

    #[test]
    fn variables_find_the_names_they_cannot_spell() {
        let below = parse_toml("[p.open-ai.models.\"gpt-4o\"]\nx = 1\n", None).unwrap();
        let variables = vec![("REPRIEVE__P__OPEN_AI__MODELS__GPT_4O__X".to_owned(), "7".to_owned())];
        let over = from_variables(&variables, &below).unwrap();
        let mut merged = below.clone();
        merged.lay_over(over);
        let Value::Table(p) = &merged.get("p").unwrap().value else { panic!("a table") };
        assert_eq!(p.0.len(), 1);
        assert!(format!("{merged:?}").contains("Raw(\"7\")"));
        assert!(!format!("{merged:?}").contains("Integer"));
    }

    #[test]
    fn a_variable_that_fits_two_names_is_refused() {
        let below = parse_toml("[\"a-b\"]\nx = 1\n[a_b]\nx = 1\n", None).unwrap();
        let variables = vec![("REPRIEVE__A_B__X".to_owned(), "7".to_owned())];
        assert!(from_variables(&variables, &below).unwrap_err()[0].what.contains("a-b, a_b"));
    }
}
