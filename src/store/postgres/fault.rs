//! What goes wrong inside the module, until it is either tried again or told as the store's error. A document never gets
//! into a message: Postgres' own primary messages name tables, columns and constraints; its details, which hold values,
//! are not read. Passwords stand only in the URL, which is shown without them.

use super::open::Waits;
use crate::store::Error;
use std::fmt;

pub(super) enum Fault {
    Sql(sqlx::Error),
    /// A connection on which nothing came back within more than the server's own time-out.
    Silent,
    /// No connection is to be had, or none came free in time.
    Busy,
    /// Another transaction was faster at something that is decided anew.
    Raced,
    /// The connection was lost at the commit, and the server cannot say what became of it.
    Unknown,
    Told(Error),
}

/// What may be logged of it: a detail of the server's can hold a row.
impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sql(error) => match code(error) {
                Some(code) => write!(f, "SQLSTATE {code}"),
                None if lost(error) => f.write_str("connection lost"),
                None => f.write_str("client fault"),
            },
            Self::Silent => f.write_str("no answer"),
            Self::Busy => f.write_str("no connection free"),
            Self::Raced => f.write_str("raced"),
            Self::Unknown => f.write_str("commit unknown"),
            Self::Told(error) => write!(f, "{error}"),
        }
    }
}

pub(super) type Res<T> = std::result::Result<T, Fault>;

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}

/// What to do about a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cure {
    /// The transaction came to nothing through others: at once again.
    Again,
    /// The connection or the server is gone: again on another connection, once there is one.
    Reconnect,
    None,
}

/// SQLSTATEs.
mod state {
    pub const SERIALIZATION: &str = "40001";
    pub const DEADLOCK: &str = "40P01";
    pub const CANCELLED: &str = "57014";
    pub const LOCK_TIMEOUT: &str = "55P03";
    pub const READ_ONLY: &str = "25006";
    pub const DISK_FULL: &str = "53100";
    pub const TOO_MANY_CONNECTIONS: &str = "53300";
    pub const IDLE_TIMEOUT: &str = "25P03";
    pub const NO_DATABASE: &str = "3D000";
    pub const NO_TABLE: &str = "42P01";
    pub const NO_PRIVILEGE: &str = "42501";
    /// A cached plan of before a migration.
    pub const PLAN_CHANGED: &str = "0A000";
    /// Shut down, crashed, starting up.
    pub const GONE: [&str; 3] = ["57P01", "57P02", "57P03"];
}

fn code(error: &sqlx::Error) -> Option<String> {
    let sqlx::Error::Database(inner) = error else { return None };
    inner.code().map(std::borrow::Cow::into_owned)
}

impl Fault {
    pub fn cure(&self) -> Cure {
        match self {
            Self::Raced => Cure::Again,
            Self::Silent => Cure::Reconnect,
            Self::Sql(error) => match code(error).as_deref() {
                Some(state::SERIALIZATION | state::DEADLOCK) => Cure::Again,
                Some(state::TOO_MANY_CONNECTIONS | state::IDLE_TIMEOUT | state::PLAN_CHANGED) => Cure::Reconnect,
                Some(code) if state::GONE.contains(&code) || code.starts_with("08") => Cure::Reconnect,
                None if lost(error) => Cure::Reconnect,
                Some(_) | None => Cure::None,
            },
            Self::Busy | Self::Unknown | Self::Told(_) => Cure::None,
        }
    }

    /// The connection is of no further use.
    pub fn spoils_connection(&self) -> bool {
        matches!(self.cure(), Cure::Reconnect)
    }

    pub fn told(self, url: &str, waits: Waits) -> Error {
        let away = |why: &str| Error::Away { url: url.to_owned(), why: why.to_owned() };
        match self {
            Self::Told(error) => error,
            Self::Silent => away("it does not answer"),
            Self::Busy => away("no connection came free in time; raise [postgres] pool, or look for long statements"),
            Self::Raced => Error::Locked { waited_ms: waits.lock_ms },
            Self::Unknown => away("the connection was lost at a commit, and whether it stands could not be found out"),
            Self::Sql(error) => of_sql(&error, &away, waits),
        }
    }
}

/// The connection is broken, or could not be made.
fn lost(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed)
}

fn of_sql(error: &sqlx::Error, away: &dyn Fn(&str) -> Error, waits: Waits) -> Error {
    match (code(error).as_deref(), error) {
        (Some(state::CANCELLED), _) => Error::TimedOut { after_ms: waits.statement_ms },
        (Some(state::LOCK_TIMEOUT | state::SERIALIZATION | state::DEADLOCK), _) => {
            Error::Locked { waited_ms: waits.lock_ms }
        }
        (Some(state::READ_ONLY), _) => Error::ReadOnly,
        (Some(state::DISK_FULL), _) => Error::Full,
        (Some(state::TOO_MANY_CONNECTIONS), _) => away("it has no connection left (max_connections)"),
        (Some(code), sqlx::Error::Database(inner)) if state::GONE.contains(&code) || code.starts_with("08") => {
            away(inner.message())
        }
        (Some(code), sqlx::Error::Database(inner)) if code.starts_with("28") || code == state::NO_DATABASE => {
            away(inner.message())
        }
        (Some(state::NO_TABLE), sqlx::Error::Database(inner)) => {
            Error::Database(format!("{}; run `reprieve migrate up`", inner.message()))
        }
        (Some(state::NO_PRIVILEGE), sqlx::Error::Database(inner)) => {
            Error::Database(format!("{}; grant it to the user of the database URL", inner.message()))
        }
        (_, sqlx::Error::Database(inner)) => Error::Database(inner.message().to_owned()),
        (_, sqlx::Error::Io(io)) => away(&io.to_string()),
        (_, sqlx::Error::Tls(_)) => away("TLS could not be agreed on; check sslmode and sslrootcert in the URL"),
        (_, sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed) => away("the connection broke off"),
        (_, sqlx::Error::ColumnDecode { index, source }) => {
            Error::Undecodable { what: "a column", why: format!("{index}: {source}") }
        }
        (_, other) => Error::Database(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_made_anew_and_what_is_wrong_is_told() {
        let broken = || Fault::Sql(sqlx::Error::Io(std::io::ErrorKind::BrokenPipe.into()));
        assert_eq!(broken().cure(), Cure::Reconnect);
        assert_eq!(Fault::Raced.cure(), Cure::Again);
        assert_eq!(Fault::Unknown.cure(), Cure::None);
        let waits = Waits { statement_ms: 7, lock_ms: 5 };
        assert!(matches!(broken().told("postgres://h/d", waits), Error::Away { .. }));
        assert!(matches!(Fault::Raced.told("", waits), Error::Locked { waited_ms: 5 }));
    }
}
