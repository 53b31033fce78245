//! Connections: a pool of them, statements with their arguments, and a time-out on each also on this side, for servers
//! that vanish without a word.
//!
//! A connection whose use was cut short (an error of the line, a caller that went away in the middle of a transaction) is
//! closed, never lent again: the server rolls back what it was at.

use super::escape;
use super::fault::{Fault, Res};
use super::open::{Notify, OpenOptions, Waits};
use crate::store::Error;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgRow, Postgres};
use sqlx::{Arguments, ConnectOptions, Connection, Encode, Row, Type};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// How long making a connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// After so long at home a connection is asked whether it still stands, and for how long.
const STALE: Duration = Duration::from_secs(30);
const PING: Duration = Duration::from_secs(2);
/// For so long beyond the server's own time-out an answer is waited for.
const GRACE: Duration = Duration::from_secs(5);

/// A statement's text, from `sql/postgres/`.
macro_rules! sql {
    ($name:literal) => {
        $crate::store::postgres::conn::stmt(include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/src/store/sql/postgres/",
            $name,
            ".sql"
        )))
    };
}
pub(super) use sql;

/// A statement and its arguments.
pub(super) struct Stmt {
    text: &'static str,
    args: PgArguments,
    wrong: Option<String>,
}

pub(super) fn stmt(text: &'static str) -> Stmt {
    Stmt { text, args: PgArguments::default(), wrong: None }
}

impl Stmt {
    pub fn arg<T: Arg>(mut self, value: T) -> Self {
        value.add(&mut self);
        self
    }

    fn push<'t, T: Encode<'t, Postgres> + Type<Postgres>>(&mut self, value: T) {
        if let Err(error) = self.args.add(value) {
            self.wrong = Some(error.to_string());
        }
    }
}

/// What can be an argument: numbers and ids as they are, texts escaped, lists of either as arrays.
pub(super) trait Arg {
    fn add(self, stmt: &mut Stmt);
}

macro_rules! plain {
    ($($type:ty),+ $(,)?) => {$(
        impl Arg for $type {
            fn add(self, stmt: &mut Stmt) {
                stmt.push(self);
            }
        }
    )+};
}
plain!(bool, i64, Option<i64>, Uuid, Option<Uuid>, Vec<i64>, Vec<Option<i64>>, Vec<Uuid>, Vec<Option<Uuid>>);

impl Arg for &str {
    fn add(self, stmt: &mut Stmt) {
        stmt.push(&*escape::keep(self));
    }
}

impl Arg for Option<&str> {
    fn add(self, stmt: &mut Stmt) {
        let kept = self.map(escape::keep);
        stmt.push(kept.as_deref());
    }
}

impl Arg for Vec<&str> {
    fn add(self, stmt: &mut Stmt) {
        let kept: Vec<Cow<'_, str>> = self.into_iter().map(escape::keep).collect();
        stmt.push(kept.iter().map(|text| &**text).collect::<Vec<&str>>());
    }
}

impl Arg for Vec<Option<&str>> {
    fn add(self, stmt: &mut Stmt) {
        let kept: Vec<Option<Cow<'_, str>>> = self.into_iter().map(|text| text.map(escape::keep)).collect();
        stmt.push(kept.iter().map(Option::as_deref).collect::<Vec<Option<&str>>>());
    }
}

impl Arg for &[String] {
    fn add(self, stmt: &mut Stmt) {
        self.iter().map(String::as_str).collect::<Vec<&str>>().add(stmt);
    }
}

#[derive(Debug)]
struct Idle {
    conn: PgConnection,
    since: Instant,
}

#[derive(Debug)]
struct Shared {
    connect: PgConnectOptions,
    options: OpenOptions,
    home: Mutex<Vec<Idle>>,
    /// Moves when a connection was lost: those of before are closed rather than lent.
    generation: AtomicU64,
}

/// The connections of a store.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    free: Arc<Semaphore>,
    shared: Arc<Shared>,
}

impl Pool {
    pub fn new(connect: PgConnectOptions, options: OpenOptions) -> Self {
        let free = Arc::new(Semaphore::new(usize::try_from(options.pool.max(2)).unwrap_or(usize::MAX)));
        let shared = Shared { connect, options, home: Mutex::default(), generation: AtomicU64::new(0) };
        Self { free, shared: Arc::new(shared) }
    }

    /// Other connections to the same database, this many.
    pub fn beside(&self, size: u32) -> Self {
        let free = Arc::new(Semaphore::new(usize::try_from(size).unwrap_or(usize::MAX)));
        let (connect, options) = (self.shared.connect.clone(), self.shared.options.clone());
        let shared = Shared { connect, options, home: Mutex::default(), generation: AtomicU64::new(0) };
        Self { free, shared: Arc::new(shared) }
    }

    pub fn options(&self) -> &OpenOptions {
        &self.shared.options
    }

    pub fn connect_options(&self) -> &PgConnectOptions {
        &self.shared.connect
    }

    /// Moves when a connection was lost: what was remembered of the database may be of another one.
    pub fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }

    pub async fn take(&self) -> Res<Conn> {
        let patience = Duration::from_millis(self.shared.options.statement_ms);
        let permit = match tokio::time::timeout(patience, Arc::clone(&self.free).acquire_owned()).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_closed)) => return Err(Error::Closed.into()),
            Err(_) => return Err(Fault::Busy),
        };
        let generation = self.generation();
        loop {
            let idle = self.shared.home.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(Idle { mut conn, since }) = idle else { break };
            if since.elapsed() > STALE && !matches!(tokio::time::timeout(PING, conn.ping()).await, Ok(Ok(()))) {
                continue;
            }
            return Ok(self.lend(conn, generation, permit));
        }
        let conn = connect(&self.shared.connect, &self.shared.options).await?;
        Ok(self.lend(conn, generation, permit))
    }

    fn lend(&self, conn: PgConnection, generation: u64, permit: OwnedSemaphorePermit) -> Conn {
        let waits = self.shared.options.waits();
        let lasting = self.shared.options.notify == Notify::Listen;
        Conn {
            inner: Some(conn),
            shared: Arc::clone(&self.shared),
            generation,
            lasting,
            waits,
            sound: true,
            _permit: permit,
        }
    }

    /// Lends nothing any more and closes what is at home; a connection on loan closes when it comes back.
    pub async fn close(&self) {
        self.free.close();
        self.shared.generation.fetch_add(1, Ordering::AcqRel);
        loop {
            let idle = self.shared.home.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(Idle { conn, .. }) = idle else { break };
            if let Err(error) = conn.close().await {
                tracing::debug!(%error, "a database connection did not close cleanly");
            }
        }
    }
}

/// A new connection with its settings.
pub(super) async fn connect(connect: &PgConnectOptions, options: &OpenOptions) -> Res<PgConnection> {
    let make = async {
        let mut conn = connect.connect().await?;
        if options.notify == Notify::Listen {
            sqlx::raw_sql(sqlx::AssertSqlSafe(options.settings(""))).execute(&mut conn).await?;
        }
        Ok(conn)
    };
    match tokio::time::timeout(CONNECT, make).await {
        Ok(made) => made.map_err(Fault::Sql),
        Err(_) => Err(Fault::Silent),
    }
}

/// A connection on loan; it goes home when dropped, if it is sound.
#[derive(Debug)]
pub(super) struct Conn {
    inner: Option<PgConnection>,
    shared: Arc<Shared>,
    generation: u64,
    /// Prepared statements may outlive the transaction.
    lasting: bool,
    waits: Waits,
    /// Nothing is under way, and nothing broke.
    sound: bool,
    _permit: OwnedSemaphorePermit,
}

/// Runs one thing on the connection, and notes whether the connection survived it.
macro_rules! timed {
    ($self:ident, |$conn:ident| $make:expr) => {{
        let patience = Duration::from_millis($self.waits.statement_ms) + GRACE;
        let Some($conn) = $self.inner.as_mut() else { return Err(Error::Closed.into()) };
        $self.sound = false;
        let outcome = match tokio::time::timeout(patience, $make).await {
            Ok(done) => done.map_err(Fault::Sql),
            Err(_) => Err(Fault::Silent),
        };
        match &outcome {
            Err(fault) if fault.spoils_connection() => $self.lost(),
            _ => $self.sound = true,
        }
        outcome
    }};
}

impl Conn {
    /// Whatever was made before this loss is probably lost with it.
    fn lost(&self) {
        let next = self.generation + 1;
        let moved = self.shared.generation.compare_exchange(self.generation, next, Ordering::AcqRel, Ordering::Acquire);
        if moved.is_ok() {
            self.shared.home.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    /// It is not lent again.
    pub fn spoil(&mut self) {
        self.sound = false;
    }

    fn query(&self, stmt: Stmt) -> Res<sqlx::query::Query<'static, Postgres, PgArguments>> {
        if let Some(why) = stmt.wrong {
            return Err(Error::Undecodable { what: "an argument", why }.into());
        }
        Ok(sqlx::query_with(stmt.text, stmt.args).persistent(self.lasting))
    }

    /// Rows changed.
    pub async fn run(&mut self, stmt: Stmt) -> Res<u64> {
        let query = self.query(stmt)?;
        let done = timed!(self, |conn| query.execute(conn))?;
        Ok(done.rows_affected())
    }

    pub async fn all(&mut self, stmt: Stmt) -> Res<Vec<PgRow>> {
        let query = self.query(stmt)?;
        timed!(self, |conn| query.fetch_all(conn))
    }

    pub async fn optional(&mut self, stmt: Stmt) -> Res<Option<PgRow>> {
        let query = self.query(stmt)?;
        timed!(self, |conn| query.fetch_optional(conn))
    }

    pub async fn one(&mut self, stmt: Stmt) -> Res<PgRow> {
        let query = self.query(stmt)?;
        timed!(self, |conn| query.fetch_one(conn))
    }

    /// One integer of one row.
    pub async fn number(&mut self, stmt: Stmt) -> Res<i64> {
        let row = self.one(stmt).await?;
        Ok(super::rows::at(&row, 0)?)
    }

    /// Several statements, unprepared; the rows of them all, as text.
    pub async fn script(&mut self, script: &str) -> Res<Vec<PgRow>> {
        let script = sqlx::raw_sql(sqlx::AssertSqlSafe(script.to_owned()));
        timed!(self, |conn| script.fetch_all(conn))
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        let fresh = self.shared.generation.load(Ordering::Acquire) == self.generation;
        if let Some(conn) = self.inner.take().filter(|_| self.sound && fresh) {
            let idle = Idle { conn, since: Instant::now() };
            self.shared.home.lock().unwrap_or_else(PoisonError::into_inner).push(idle);
        }
    }
}

/// The first column of a row of a script.
pub(super) fn word(rows: &[PgRow]) -> Option<String> {
    rows.last().and_then(|row| row.try_get(0).ok())
}
