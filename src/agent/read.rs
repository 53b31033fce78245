//! Reading submitted JSON: into a tree, member by member, with the place of whatever is wrong.

use super::SpecError;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Reads one JSON value. Refuses what would be read differently elsewhere: a member given twice, and NUL characters,
/// which databases and terminals cut texts at.
pub(crate) fn tree(text: &str) -> Result<Value, SpecError> {
    let mut source = serde_json::Deserializer::from_str(text);
    Tree.deserialize(&mut source).and_then(|value| source.end().map(|()| value)).map_err(|error| {
        // serde_json's own message, without the place that it appends.
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        SpecError::new(
            format!("line {}, column {}", error.line(), error.column()),
            format!("is no valid JSON: {message}"),
        )
    })
}

struct Tree;

impl<'de> DeserializeSeed<'de> for Tree {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        without_nul(value).map(|value| Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(Tree)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            without_nul(&name)?;
            if object.contains_key(&name) {
                return Err(A::Error::custom(format_args!("`{}` stands twice in one object", shown(&name))));
            }
            object.insert(name, members.next_value_seed(Tree)?);
        }
        Ok(Value::Object(object))
    }
}

fn without_nul<E: serde::de::Error>(text: &str) -> Result<&str, E> {
    if text.contains('\0') {
        Err(E::custom("a text has a NUL character (`\\u0000`), which cannot be stored"))
    } else {
        Ok(text)
    }
}

/// A member's name as it may stand in a message of ours: printable and short.
pub(crate) fn shown(name: &str) -> String {
    let mut short: String = name.chars().take(64).flat_map(char::escape_debug).collect();
    if name.chars().nth(64).is_some() {
        short.push('…');
    }
    short
}

/// One object of the spec, taken apart by name.
pub(crate) struct Members {
    at: String,
    map: Map<String, Value>,
}

impl Members {
    /// `at` is the object's JSON pointer; empty for the whole.
    pub(crate) fn of(value: Value, at: impl Into<String>) -> Result<Self, SpecError> {
        let at = at.into();
        match value {
            Value::Object(map) => Ok(Self { at, map }),
            _ => Err(SpecError::new(if at.is_empty() { "/".to_owned() } else { at }, "must be an object")),
        }
    }

    /// Refuses members that are not in `known`, and those of `unsupported` that are not null.
    pub(crate) fn check(&self, known: &[&str], unsupported: &[&str]) -> Result<(), SpecError> {
        for (name, value) in &self.map {
            if unsupported.contains(&name.as_str()) {
                if !value.is_null() {
                    return Err(SpecError::new(self.place(name), "is not supported by this release"));
                }
            } else if !known.contains(&name.as_str()) {
                let problem = format!("is unknown; known here: {}", known.join(", "));
                return Err(SpecError::new(self.place(name), problem));
            }
        }
        Ok(())
    }

    /// The object as it stood.
    pub(crate) fn into_value(self) -> Value {
        Value::Object(self.map)
    }

    /// A member's JSON pointer.
    pub(crate) fn place(&self, name: &str) -> String {
        format!("{}/{}", self.at, shown(&name.replace('~', "~0").replace('/', "~1")))
    }

    /// Whether a member is there and not null.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    /// A member with its place; null is absent.
    pub(crate) fn take(&mut self, name: &str) -> Option<(Value, String)> {
        let at = self.place(name);
        self.map.remove(name).filter(|value| !value.is_null()).map(|value| (value, at))
    }

    pub(crate) fn take_with<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Value, &str) -> Result<T, SpecError>,
    ) -> Result<Option<T>, SpecError> {
        self.take(name).map(|(value, at)| read(value, &at)).transpose()
    }

    /// As [`Members::take_with`], for a member that is read and not kept.
    pub(crate) fn read<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Value, &str) -> Result<T, SpecError>,
    ) -> Result<Option<T>, SpecError> {
        self.take(name).map(|(value, at)| read(&value, &at)).transpose()
    }
}

/// A text that is not empty and has at most `most` bytes.
pub(crate) fn text(value: Value, at: &str, most: usize) -> Result<String, SpecError> {
    let Value::String(text) = value else { return Err(SpecError::new(at, "must be a text")) };
    if text.is_empty() {
        return Err(SpecError::new(at, "must not be empty"));
    }
    if text.len() > most {
        return Err(SpecError::new(at, format!("has {} bytes; at most {most} are taken", text.len())));
    }
    Ok(text)
}

/// A text of letters, digits and `marks`.
pub(crate) fn name(value: Value, at: &str, most: usize, marks: &str) -> Result<String, SpecError> {
    let text = text(value, at, most)?;
    if text.chars().all(|c| c.is_ascii_alphanumeric() || marks.contains(c)) {
        Ok(text)
    } else {
        Err(SpecError::new(at, format!("may have letters, digits and `{marks}` only")))
    }
}

/// A text on one line, without control characters.
pub(crate) fn line(value: Value, at: &str, most: usize) -> Result<String, SpecError> {
    let text = text(value, at, most)?;
    if text.chars().any(char::is_control) {
        return Err(SpecError::new(at, "must not have control characters"));
    }
    Ok(text)
}

pub(crate) fn flag(value: &Value, at: &str) -> Result<bool, SpecError> {
    value.as_bool().ok_or_else(|| SpecError::new(at, "must be true or false"))
}

/// A whole number within `range`.
pub(crate) fn whole(value: &Value, at: &str, range: std::ops::RangeInclusive<i64>) -> Result<i64, SpecError> {
    value
        .as_i64()
        .filter(|number| range.contains(number))
        .ok_or_else(|| SpecError::new(at, format!("must be a whole number from {} to {}", range.start(), range.end())))
}

/// One of a few words.
pub(crate) fn word<'a, T: Copy>(value: &Value, at: &str, words: &'a [(&'a str, T)]) -> Result<T, SpecError> {
    let given = value.as_str().unwrap_or_default();
    words.iter().find(|(word, _)| *word == given).map(|(_, meant)| *meant).ok_or_else(|| {
        let known = words.iter().map(|(word, _)| *word).collect::<Vec<_>>();
        SpecError::new(at, format!("must be one of: {}", known.join(", ")))
    })
}
