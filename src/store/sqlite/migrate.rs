//! The schema's versions. sqlx's own migrator takes no lock on SQLite, so that two processes could run it at once; here
//! everything happens inside one `BEGIN EXCLUSIVE`, and the version stands in the file's header (`user_version`).

use super::conn::Conn;
use crate::store::transfer::UNFINISHED;
use crate::store::{Error, Result, Schema};

macro_rules! script {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../migrations/sqlite/", $name, ".sql")))
    };
}

/// One script a version, from 1, under its file's name.
const SCRIPTS: &[(&str, &str)] = &[script!("0001_initial"), script!("0002_steering")];

/// Marks a file as ours in its header: `RPRV`.
const APPLICATION: i64 = 0x5250_5256;

/// The schema that this release knows.
pub(super) fn known() -> i64 {
    i64::try_from(SCRIPTS.len()).unwrap_or(i64::MAX)
}

/// This release's schema beside a file's.
pub(super) fn schema(found: i64) -> Schema {
    let applied = usize::try_from(found).unwrap_or(0);
    let pending = SCRIPTS.iter().skip(applied).map(|(name, _)| (*name).to_owned()).collect();
    Schema { found: Some(found), known: known(), pending }
}

/// The schema that a file has; 0: none yet. Changes nothing.
pub(super) async fn version(conn: &mut Conn) -> Result<i64> {
    let found = found(conn).await?;
    whole(conn).await?;
    Ok(found)
}

/// The same of a file that may hold a part of a queue only.
pub(super) async fn bare_version(conn: &mut Conn) -> Result<i64> {
    found(conn).await
}

/// Whether a move into the file has not come to its end.
pub(super) async fn unfinished(conn: &mut Conn) -> Result<bool> {
    let there = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'transfer'";
    Ok(conn.number(sqlx::query(there)).await? > 0)
}

async fn whole(conn: &mut Conn) -> Result<()> {
    if unfinished(conn).await? { Err(Error::Database(UNFINISHED.into())) } else { Ok(()) }
}

/// Brings the file to this release's schema, or refuses it.
pub(super) async fn run(conn: &mut Conn) -> Result<()> {
    if found(conn).await? == known() {
        return whole(conn).await;
    }
    conn.script("BEGIN EXCLUSIVE").await?;
    match apply(conn).await {
        Ok(()) => conn.script("COMMIT").await,
        Err(error) => {
            if let Err(rollback) = conn.script("ROLLBACK").await {
                tracing::warn!(%rollback, "a migration could not be rolled back");
            }
            Err(error)
        }
    }
}

async fn apply(conn: &mut Conn) -> Result<()> {
    // Another process may have been faster.
    let found = found(conn).await?;
    for (version, (_, script)) in (1_i64..).zip(SCRIPTS) {
        if version > found {
            conn.script(script).await?;
        }
    }
    conn.run(sqlx::query(sqlx::AssertSqlSafe(format!("PRAGMA application_id = {APPLICATION}")))).await?;
    conn.run(sqlx::query(sqlx::AssertSqlSafe(format!("PRAGMA user_version = {}", known())))).await?;
    Ok(())
}

async fn found(conn: &mut Conn) -> Result<i64> {
    let found = conn.number(sqlx::query("PRAGMA user_version")).await?;
    let application = conn.number(sqlx::query("PRAGMA application_id")).await?;
    let tables = conn.number(sqlx::query("SELECT count(*) FROM sqlite_schema")).await?;
    if application != APPLICATION && (found != 0 || tables != 0) {
        return Err(Error::Database("the file is a SQLite database of something else".into()));
    }
    if found > known() {
        return Err(Error::Newer { found, known: known() });
    }
    Ok(found)
}
