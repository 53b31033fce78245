//! Transactions: how they begin, how their commit is known to stand, and what a verb works with inside one.
//!
//! A commit whose answer is lost with the connection is asked about by its transaction's number: the server knows whether
//! it stands. So nothing is done twice and nothing that was done is denied, whatever the verb.

use super::cache::Cache;
use super::conn::{Conn, Pool, Stmt, sql, stmt, word};
use super::fault::{Cure, Fault, Res};
use super::open::Notify;
use super::rows::at;
use crate::store::Error;
use sqlx::postgres::PgRow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two questions after a lost commit, and between two attempts to reach a lost database.
const PAUSE: Duration = Duration::from_millis(50);
/// How often what others made impossible is tried.
const RACES: u32 = 10;

/// What every transaction of a store shares.
#[derive(Clone, Debug)]
pub(super) struct Db {
    pub pool: Pool,
    pub cache: Arc<Cache>,
    /// As it may be shown.
    pub url: Arc<str>,
}

/// A connection in use: in a transaction, or (a single read where sessions last) without one.
pub(super) struct Tx {
    pub conn: Conn,
    pub db: Db,
    /// A transaction is open.
    open: bool,
    /// Its number.
    number: Option<String>,
    /// Something may have become claimable, cancelled or lifted.
    pub moved: bool,
}

impl Db {
    async fn open(&self, begin: &str, number: bool) -> Res<Tx> {
        let mut conn = self.pool.take().await?;
        let options = self.pool.options();
        let mut script = format!("BEGIN {begin}; ");
        if options.notify == Notify::Poll {
            script += &options.settings("LOCAL ");
        }
        if number {
            script += "SELECT pg_current_xact_id()::text";
        }
        let rows = match conn.script(&script).await {
            Ok(rows) => rows,
            Err(fault) => {
                // It may have begun.
                conn.spoil();
                return Err(fault);
            }
        };
        let number = if number { word(&rows) } else { None };
        Ok(Tx { conn, db: self.clone(), open: true, number, moved: false })
    }

    /// A transaction that writes. Locks are its only isolation: each statement sees what is committed when it begins.
    pub async fn write(&self) -> Res<Tx> {
        self.open("ISOLATION LEVEL READ COMMITTED READ WRITE", true).await
    }

    /// Reads, each of its own moment.
    pub async fn read(&self) -> Res<Tx> {
        if self.pool.options().notify == Notify::Poll {
            return self.open("ISOLATION LEVEL READ COMMITTED READ ONLY", false).await;
        }
        let conn = self.pool.take().await?;
        Ok(Tx { conn, db: self.clone(), open: false, number: None, moved: false })
    }

    /// Reads, all of one moment.
    pub async fn snapshot(&self) -> Res<Tx> {
        self.open("ISOLATION LEVEL REPEATABLE READ READ ONLY", false).await
    }

    pub fn told(&self, fault: Fault) -> Error {
        fault.told(&self.url, self.pool.options().waits())
    }

    /// What became of a transaction whose commit was not answered.
    async fn stands(&self, number: &str) -> Res<()> {
        let options = self.pool.options();
        let until = Instant::now() + Duration::from_millis(options.statement_ms.max(options.away_ms));
        while Instant::now() < until {
            let asked = async {
                let mut tx = self.read().await?;
                let row = tx.one(stmt("SELECT pg_xact_status($1::text::xid8)").arg(number)).await;
                let word = match row {
                    Ok(row) => Ok(at::<Option<String>>(&row, 0)?),
                    Err(fault) => Err(fault),
                };
                tx.end(word).await
            };
            match asked.await {
                Ok(Some(word)) if word == "committed" => return Ok(()),
                Ok(Some(word)) if word == "aborted" => return Err(Fault::Raced),
                Ok(Some(word)) if word == "in progress" => {}
                Err(fault) if fault.cure() == Cure::Reconnect => {}
                Ok(_) | Err(_) => return Err(Fault::Unknown),
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(Fault::Unknown)
    }
}

impl Tx {
    pub async fn run(&mut self, stmt: Stmt) -> Res<u64> {
        self.conn.run(stmt).await
    }

    pub async fn all(&mut self, stmt: Stmt) -> Res<Vec<PgRow>> {
        self.conn.all(stmt).await
    }

    pub async fn optional(&mut self, stmt: Stmt) -> Res<Option<PgRow>> {
        self.conn.optional(stmt).await
    }

    pub async fn one(&mut self, stmt: Stmt) -> Res<PgRow> {
        self.conn.one(stmt).await
    }

    pub async fn number(&mut self, stmt: Stmt) -> Res<i64> {
        self.conn.number(stmt).await
    }

    /// Commits, and is sure of it.
    pub async fn commit(mut self) -> Res<()> {
        let Err(fault) = self.conn.script("COMMIT").await else {
            self.open = false;
            return Ok(());
        };
        self.conn.spoil();
        self.open = false;
        let lost = fault.cure() == Cure::Reconnect;
        match self.number.take().filter(|_| lost) {
            Some(number) => {
                let db = self.db.clone();
                drop(self);
                tracing::warn!("the connection was lost at a commit; the database is asked whether it stands");
                db.stands(&number).await
            }
            None => Err(fault),
        }
    }

    /// Ends reads: their transaction, where there is one.
    pub async fn end<T>(mut self, outcome: Res<T>) -> Res<T> {
        if self.open && outcome.is_ok() {
            self.conn.script("COMMIT").await?;
            self.open = false;
        } else if self.open {
            self.roll_back().await;
        }
        outcome
    }

    /// Undoes everything. A connection on which that fails is closed, which does the same.
    pub async fn roll_back(&mut self) {
        if self.open && self.conn.script("ROLLBACK").await.is_ok() {
            self.open = false;
        }
    }

    /// `n` fresh numbers of the sequence, rising. They order what happens in a scope only if the scope is locked.
    pub async fn draw(&mut self, n: usize) -> Res<Vec<i64>> {
        if n == 0 {
            return Ok(Vec::new());
        }
        let rows = self.all(sql!("draw").arg(i64::try_from(n).unwrap_or(i64::MAX))).await?;
        let mut numbers = rows.iter().map(|row| Ok(at(row, 0)?)).collect::<Res<Vec<i64>>>()?;
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Adds to lanes' counts of claimable turns.
    pub async fn ready(&mut self, deltas: &HashMap<i64, i64>) -> Res<()> {
        let (lanes, by): (Vec<i64>, Vec<i64>) = deltas.iter().filter(|(_, by)| **by != 0).unzip();
        if lanes.is_empty() {
            return Ok(());
        }
        let count = lanes.len();
        let changed = self.run(sql!("lanes_ready").arg(lanes).arg(by)).await?;
        if usize::try_from(changed) == Ok(count) {
            return Ok(());
        }
        // What was remembered is of another database: one that was restored, or made anew.
        self.db.cache.forget();
        Err(Fault::Raced)
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        if self.open {
            self.conn.spoil();
        }
    }
}

/// How long something is tried again.
pub(super) struct Tries {
    db: Db,
    races: u32,
    until: Instant,
    pause: Duration,
}

impl Tries {
    pub fn new(db: &Db) -> Self {
        let away = Duration::from_millis(db.pool.options().away_ms);
        Self { db: db.clone(), races: 0, until: Instant::now() + away, pause: PAUSE / 10 }
    }

    /// Waits, if it is worth another try; else the error.
    pub async fn again(&mut self, fault: Fault) -> Result<(), Error> {
        match fault.cure() {
            Cure::Again if self.races < RACES => {
                self.races += 1;
                tracing::debug!(?fault, races = self.races, "a transaction is done again");
                let most = u64::from(self.races) * 4;
                tokio::time::sleep(Duration::from_millis(rand::random_range(0..=most))).await;
                Ok(())
            }
            Cure::Reconnect if Instant::now() < self.until => {
                tracing::debug!(?fault, "a lost database is tried again");
                tokio::time::sleep(self.pause).await;
                self.pause = (self.pause * 2).min(Duration::from_millis(500));
                Ok(())
            }
            Cure::Again | Cure::Reconnect | Cure::None => Err(self.db.told(fault)),
        }
    }
}
