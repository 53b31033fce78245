//! SQLite's result codes as the store's errors. A document never gets into a message: SQLite's own texts name tables,
//! columns and paths only.

use crate::store::Error;

/// The primary result code, if SQLite gave one.
pub(super) fn code(error: &sqlx::Error) -> Option<u32> {
    let sqlx::Error::Database(inner) = error else { return None };
    let extended: u32 = inner.code()?.parse().ok()?;
    Some(extended & 0xff)
}

/// How long a connection waits: for the lock, and for one statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    pub busy_ms: u64,
    pub statement_ms: u64,
}

pub(super) fn map(error: &sqlx::Error, waits: Waits) -> Error {
    match (code(error), error) {
        (Some(5 | 6), _) => Error::Locked { waited_ms: waits.busy_ms },
        (Some(8), _) => Error::ReadOnly,
        (Some(9), _) => Error::TimedOut { after_ms: waits.statement_ms },
        (Some(13), _) => Error::Full,
        (Some(10), _) => Error::Database("the disk failed to read or write (an I/O error)".into()),
        (Some(11), _) => Error::Database("the file is damaged; restore it from a backup".into()),
        (Some(26), _) => Error::Database("the file is no SQLite database".into()),
        (_, sqlx::Error::Database(inner)) => Error::Database(inner.message().to_owned()),
        (_, sqlx::Error::WorkerCrashed | sqlx::Error::PoolClosed) => Error::Closed,
        (_, sqlx::Error::ColumnDecode { index, source }) => {
            Error::Undecodable { what: "a column", why: format!("{index}: {source}") }
        }
        (_, other) => Error::Database(other.to_string()),
    }
}
