//! Opening a database file: what is refused, the pragmas, and the schema.

use super::conn::Conn;
use super::error::{self, Waits};
use super::migrate;
use crate::store::{Error, Result};
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// How a database is opened; the defaults are right for all but tests.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// How long to wait for another process's lock.
    pub busy_ms: u64,
    /// How long one statement may run.
    pub statement_ms: u64,
    /// Read connections.
    pub readers: u32,
    /// How many commands one transaction may carry at most.
    pub group: usize,
    /// The file may not grow beyond this: [`Error::Full`] instead. `None`: as far as the disk goes.
    pub max_bytes: Option<u64>,
    /// How often other processes' commits are looked for.
    pub poll_ms: u64,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { busy_ms: 5_000, statement_ms: 15_000, readers: 4, group: 256, max_bytes: None, poll_ms: 40 }
    }
}

/// SQLite's default page, in bytes.
const PAGE_BYTES: u64 = 4_096;

impl OpenOptions {
    pub(super) fn waits(&self) -> Waits {
        Waits { busy_ms: self.busy_ms, statement_ms: self.statement_ms }
    }
}

/// What every connection of a store is opened with.
pub(super) fn connect_options(url: &str, options: &OpenOptions) -> Result<SqliteConnectOptions> {
    let refuse = |why: &str| Error::Open { url: url.to_owned(), why: why.to_owned() };
    if url.contains(":memory:") || url.contains("mode=memory") {
        return Err(refuse("a database in memory is lost with the process and cannot be shared; name a file"));
    }
    if !url.starts_with("sqlite:") {
        return Err(refuse("a SQLite database is named sqlite://path"));
    }
    let parsed = SqliteConnectOptions::from_str(url).map_err(|e| refuse(&format!("the URL is not understood: {e}")))?;
    let path = parsed.get_filename();
    if path.as_os_str().is_empty() {
        return Err(refuse("the URL names no file; a SQLite database is named sqlite://path"));
    }
    if path.is_dir() {
        return Err(refuse("it is a directory; name a file in it"));
    }
    if let Some(parent) = path.parent()
        && !parent.as_os_str().is_empty()
        && !parent.is_dir()
    {
        return Err(refuse(&format!("the directory {} does not exist", parent.display())));
    }
    let read_only = url.contains("mode=ro") || url.contains("immutable=");
    let mut connect = parsed
        .create_if_missing(!read_only)
        .busy_timeout(Duration::from_millis(options.busy_ms))
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .statement_cache_capacity(256)
        // A whole claim fits: the connection does not stop for the reader in the middle of a statement.
        .row_buffer_size(2_048)
        .pragma("temp_store", "memory")
        .pragma("cache_size", "-16384")
        // After a long reader the log shrinks again.
        .pragma("journal_size_limit", "67108864")
        .thread_name(|n| format!("sqlite-{n}"));
    if let Some(max_bytes) = options.max_bytes {
        connect = connect.pragma("max_page_count", (max_bytes / PAGE_BYTES).max(1).to_string());
    }
    Ok(sqlx::ConnectOptions::disable_statement_logging(connect))
}

/// The writer's connection, to a file that has this release's schema.
pub(super) async fn writer(url: &str, connect: &SqliteConnectOptions, options: &OpenOptions) -> Result<Conn> {
    let waits = options.waits();
    let mut conn = Conn::open(connect, waits).await.map_err(|e| at_open(url, &e, waits))?;
    prepare(&mut conn, options).await.map_err(|e| name(url, e))?;
    // From now on every lock is taken by `Conn::begin`, which does its own waiting.
    conn.script("PRAGMA busy_timeout = 0").await.map_err(|e| name(url, e))?;
    Ok(conn)
}

/// A read connection: it can write nothing, whatever it is asked.
pub(super) async fn reader(url: &str, connect: &SqliteConnectOptions, options: &OpenOptions) -> Result<Conn> {
    let waits = options.waits();
    let connect = connect.clone().pragma("query_only", "on");
    Conn::open(&connect, waits).await.map_err(|e| at_open(url, &e, waits))
}

async fn prepare(conn: &mut Conn, options: &OpenOptions) -> Result<()> {
    let started = Instant::now();
    loop {
        // Two processes that make one file at once meet here; SQLite does not wait for a lock that it upgrades.
        match conn.script("PRAGMA journal_mode = WAL").await {
            Ok(()) => break,
            Err(Error::Locked { .. }) if started.elapsed() < Duration::from_millis(options.busy_ms) => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => return Err(error),
        }
    }
    migrate::run(conn).await?;
    // SQLite opens a file that it may not write without a word, until something is written.
    conn.script("BEGIN IMMEDIATE").await?;
    let written = conn.script("PRAGMA user_version = 0").await;
    conn.script("ROLLBACK").await?;
    written
}

fn at_open(url: &str, error: &sqlx::Error, waits: Waits) -> Error {
    let why = match error::code(error) {
        Some(14) => "the file cannot be opened or made; check the path and its permissions".to_owned(),
        _ => return name(url, error::map(error, waits)),
    };
    Error::Open { url: url.to_owned(), why }
}

/// A bare database error at opening is about this file.
fn name(url: &str, error: Error) -> Error {
    match error {
        Error::Database(why) => Error::Open { url: url.to_owned(), why },
        other => other,
    }
}
