//! How a database is reached, and with what settings each connection works.

use crate::store::{Error, Result};
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use std::fmt::Write;
use std::str::FromStr;

/// How processes learn of each other's commits. All of one schema should do it in the same way: who polls does not hear
/// who only notifies, but within the second after which everybody asks anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notify {
    /// `LISTEN` on a connection of its own; settings stand for the session, statements are prepared once.
    #[default]
    Listen,
    /// By asking every tenth of a second, and without anything that outlives a transaction: for poolers that lend a
    /// connection for one transaction (`PgBouncer` in its mode `transaction`).
    Poll,
}

/// How a database is opened; the defaults are right for all but tests and poolers.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The schema that everything lives in: `[a-z_][a-z0-9_]*`, at most 48 characters.
    pub schema: String,
    pub notify: Notify,
    /// Connections, besides the one that listens.
    pub pool: u32,
    /// How long one statement may run.
    pub statement_ms: u64,
    /// How long one statement may wait for another transaction's lock.
    pub lock_ms: u64,
    /// How long a lost database is waited for before an error is given.
    pub away_ms: u64,
    /// How many commands one transaction may carry at most.
    pub group: usize,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            schema: "reprieve".into(),
            notify: Notify::Listen,
            pool: 10,
            statement_ms: 30_000,
            lock_ms: 10_000,
            away_ms: 5_000,
            group: 256,
        }
    }
}

/// How long a connection waits, on the server's side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    pub statement_ms: u64,
    pub lock_ms: u64,
}

/// The longest name of a schema: with what is put before and behind it, it stays within Postgres' 63.
const SCHEMA_CHARS: usize = 48;
/// A transaction that its process has forgotten is ended by the server, with its locks.
const IDLE_MS: u64 = 60_000;

/// What is wrong with a schema's name.
pub fn schema_problem(name: &str) -> Option<&'static str> {
    let first = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let plain = |byte: u8| first(byte) || byte.is_ascii_digit();
    match name.as_bytes() {
        [] => Some("the name is empty"),
        bytes if bytes.len() > SCHEMA_CHARS => Some("the name is longer than 48 characters"),
        _ if name.starts_with("pg_") => Some("names with pg_ are Postgres' own"),
        _ if name == "information_schema" => Some("it is Postgres' own"),
        [head, tail @ ..] if first(*head) && tail.iter().all(|byte| plain(*byte)) => None,
        _ => Some("a name is small letters, digits and `_`, and does not begin with a digit"),
    }
}

/// The URL as it may be shown: without password and parameters.
pub fn shown(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    // The last `@` ends the user's part: a password may hold one that nobody escaped.
    let (user, place) = match rest.rsplit_once('@') {
        Some((who, place)) => (who.split(':').next(), place),
        None => (None, rest),
    };
    let mut shown = format!("{scheme}://");
    if let Some(user) = user.filter(|user| !user.is_empty()) {
        // A string takes whatever is written.
        let _ = write!(shown, "{user}@");
    }
    shown + place
}

/// What every connection of a store is made with.
pub(super) fn connect_options(url: &str, options: &OpenOptions) -> Result<PgConnectOptions> {
    let refuse = |why: &str| Error::Open { url: shown(url), why: why.to_owned() };
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(refuse("a Postgres database is named postgres://user@host:5432/database"));
    }
    if let Some(why) = schema_problem(&options.schema) {
        return Err(refuse(&format!("its schema cannot be `{}`: {why}", options.schema.escape_debug())));
    }
    // What the parser says of it could repeat the password.
    let parsed = PgConnectOptions::from_str(url)
        .map_err(|_| refuse("the URL is not understood; write postgres://user@host:5432/database"))?;
    let capacity = match options.notify {
        Notify::Listen => 512,
        Notify::Poll => 0,
    };
    let parsed = if parsed.get_application_name().is_none() { parsed.application_name("reprieve") } else { parsed };
    // Poolers refuse parameters at the start that they do not know.
    Ok(parsed.extra_float_digits(None).statement_cache_capacity(capacity).disable_statement_logging())
}

impl OpenOptions {
    pub(super) fn waits(&self) -> Waits {
        Waits { statement_ms: self.statement_ms, lock_ms: self.lock_ms }
    }

    /// What each session is set to, as SQL.
    pub fn settings_of_a_session(&self) -> String {
        self.settings("")
    }

    /// The settings of a session (`scope` is empty) or of one transaction (`LOCAL `).
    ///
    /// Plans are to be the same whatever the statistics say: every statement has its index, joins few rows to it one by
    /// one, and is planned once; a plan that walks a table is one that nobody meant. What a database is set to lose is
    /// not lost here: a commit is acknowledged when it is on the disk.
    pub(super) fn settings(&self, scope: &str) -> String {
        let mut script = String::new();
        for (name, value) in [
            ("search_path", format!("\"{}\"", self.schema)),
            ("statement_timeout", self.statement_ms.to_string()),
            ("lock_timeout", self.lock_ms.to_string()),
            ("idle_in_transaction_session_timeout", IDLE_MS.to_string()),
            ("plan_cache_mode", "force_generic_plan".into()),
            ("enable_seqscan", "off".into()),
            ("enable_bitmapscan", "off".into()),
            ("enable_hashjoin", "off".into()),
            ("enable_mergejoin", "off".into()),
            ("max_parallel_workers_per_gather", "0".into()),
            ("jit", "off".into()),
        ] {
            // A string takes whatever is written.
            let _ = write!(script, "SET {scope}{name} = {value}; ");
        }
        let local = !scope.is_empty();
        let _ = write!(
            script,
            "SELECT set_config('synchronous_commit', 'on', {local}) WHERE current_setting('synchronous_commit') = 'off'; "
        );
        script
    }

    /// The channel on which processes tell each other of commits; one a schema.
    pub(super) fn channel(&self) -> String {
        format!("{}.changes", self.schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_secrets() {
        for (url, expected) in [
            ("postgres://u:secret@h:5432/d?sslmode=require&password=secret", "postgres://u@h:5432/d"),
            ("postgresql://u:se@cret@h/d", "postgresql://u@h/d"),
            ("postgres://h/d", "postgres://h/d"),
            ("postgres:///d?host=/run/x", "postgres:///d"),
        ] {
            assert_eq!(shown(url), expected);
        }
    }

    #[test]
    fn a_schema_is_a_plain_name() {
        assert_eq!(schema_problem("reprieve_2"), None);
        for wrong in ["", "2x", "Reprieve", "a-b", "a\"b", "pg_x", "information_schema", "é"] {
            assert!(schema_problem(wrong).is_some(), "{wrong}");
        }
        assert!(schema_problem(&"a".repeat(49)).is_some());
    }
}
