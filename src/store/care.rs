//! What `doctor` and `migrate` ask of a database, whichever it is: its checks and its schema.

use serde::Serialize;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Ok,
    /// It works, and will not for ever, or not as one would think.
    Warn,
    Fail,
}

/// One check, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// A short stable name, in one word or two.
    pub name: String,
    pub level: Level,
    /// What was found, as a sentence without its full stop.
    pub found: String,
    /// What to do; `None`: nothing.
    pub todo: Option<String>,
}

impl Check {
    #[must_use]
    pub fn ok(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self { name: name.into(), level: Level::Ok, found: found.into(), todo: None }
    }

    #[must_use]
    pub fn warn(name: impl Into<String>, found: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { name: name.into(), level: Level::Warn, found: found.into(), todo: Some(todo.into()) }
    }

    #[must_use]
    pub fn fail(name: impl Into<String>, found: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { name: name.into(), level: Level::Fail, found: found.into(), todo: Some(todo.into()) }
    }
}

/// A database's schema beside this release's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Schema {
    /// `None`: there is no database yet.
    pub found: Option<i64>,
    pub known: i64,
    /// Migrations that `up` would run, by file name.
    pub pending: Vec<String>,
}
