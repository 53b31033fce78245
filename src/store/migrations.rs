//! What can be said of a database's schema, whichever database it is.

use serde::Serialize;

/// One step of a schema that this release knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Migration {
    /// From 1, without gaps.
    pub version: i64,
    pub name: String,
    /// It has been applied.
    pub applied: bool,
    /// When, in UTC Unix milliseconds, where the database remembers.
    pub applied_ms: Option<i64>,
}
