//! One connection, with a time-out on every statement: SQLite itself is asked every few thousand steps whether the
//! statement's time is over, so that a slow one ends where it runs, not only where it is awaited.

use super::error::{self, Waits};
use crate::store::{Error, Result};
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteRow};
use sqlx::{ConnectOptions, Connection, Row, Sqlite, SqliteConnection};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Steps of SQLite's machine between two looks at the time: some tens of microseconds.
const STEPS: i32 = 4_000;

/// Between two looks at a lock that another process has. SQLite's own wait looks ten times a second once it has waited a
/// while: beside a process that takes the lock again as soon as it has let it go, it finds it free after seconds, and a
/// worker's lease runs out behind it.
const LOCK_LOOK: Duration = Duration::from_millis(2);

pub(super) type Query<'q> = sqlx::query::Query<'q, Sqlite, SqliteArguments>;

#[derive(Debug)]
pub(super) struct Conn {
    inner: SqliteConnection,
    waits: Waits,
    epoch: Instant,
    /// Milliseconds after `epoch` at which the running statement's time is over.
    deadline: Arc<AtomicU64>,
    /// A transaction of reads was begun and not ended.
    reading: bool,
}

impl Conn {
    pub async fn open(options: &SqliteConnectOptions, waits: Waits) -> std::result::Result<Self, sqlx::Error> {
        let mut inner = options.connect().await?;
        let epoch = Instant::now();
        let deadline = Arc::new(AtomicU64::new(u64::MAX));
        let seen = Arc::clone(&deadline);
        inner.lock_handle().await?.set_progress_handler(STEPS, move || {
            u64::try_from(epoch.elapsed().as_millis()).unwrap_or(u64::MAX) < seen.load(Ordering::Relaxed)
        });
        Ok(Self { inner, waits, epoch, deadline, reading: false })
    }

    fn arm(&self) {
        let now_ms = u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.deadline.store(now_ms.saturating_add(self.waits.statement_ms), Ordering::Relaxed);
    }

    /// Begins a transaction that writes, waiting for another process's lock.
    pub async fn begin(&mut self) -> Result<()> {
        let since = Instant::now();
        loop {
            match self.run(sqlx::query("BEGIN IMMEDIATE")).await {
                Err(Error::Locked { .. }) if since.elapsed() < Duration::from_millis(self.waits.busy_ms) => {
                    tokio::time::sleep(LOCK_LOOK).await;
                }
                begun => return begun.map(|_| ()),
            }
        }
    }

    /// Rows changed.
    pub async fn run(&mut self, query: Query<'_>) -> Result<u64> {
        self.arm();
        let done = query.execute(&mut self.inner).await.map_err(|e| error::map(&e, self.waits))?;
        Ok(done.rows_affected())
    }

    pub async fn all(&mut self, query: Query<'_>) -> Result<Vec<SqliteRow>> {
        self.arm();
        query.fetch_all(&mut self.inner).await.map_err(|e| error::map(&e, self.waits))
    }

    pub async fn optional(&mut self, query: Query<'_>) -> Result<Option<SqliteRow>> {
        self.arm();
        query.fetch_optional(&mut self.inner).await.map_err(|e| error::map(&e, self.waits))
    }

    pub async fn one(&mut self, query: Query<'_>) -> Result<SqliteRow> {
        self.arm();
        query.fetch_one(&mut self.inner).await.map_err(|e| error::map(&e, self.waits))
    }

    /// What is read from here to [`Conn::end_read`] is of one instant.
    pub async fn begin_read(&mut self) -> Result<()> {
        self.reading = true;
        self.run(sqlx::query("BEGIN")).await?;
        Ok(())
    }

    /// Ends a transaction of reads, where there is one: also one that an abandoned request has left behind.
    pub async fn end_read(&mut self) {
        if self.reading {
            // There is nothing to roll back where the request was abandoned before it began.
            if let Err(error) = self.run(sqlx::query("ROLLBACK")).await {
                tracing::debug!(%error, "a transaction of reads had not begun");
            }
            self.reading = false;
        }
    }

    /// One integer of one row.
    pub async fn number(&mut self, query: Query<'_>) -> Result<i64> {
        let row = self.one(query).await?;
        row.try_get(0).map_err(|e| error::map(&e, self.waits))
    }

    /// Several statements, unprepared, not bounded in time: migrations only.
    pub async fn script(&mut self, script: &'static str) -> Result<()> {
        self.deadline.store(u64::MAX, Ordering::Relaxed);
        sqlx::raw_sql(script).execute(&mut self.inner).await.map_err(|e| error::map(&e, self.waits))?;
        Ok(())
    }

    pub async fn close(self) {
        if let Err(error) = self.inner.close().await {
            tracing::warn!(%error, "a database connection did not close cleanly");
        }
    }
}
