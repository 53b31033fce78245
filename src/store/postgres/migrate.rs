//! The schema's versions. They are brought up to date by an explicit command, never by opening: [`up`] runs under a
//! session's advisory lock, so that two who begin at once do it once, each step in its own transaction. Through a pooler
//! that lends connections for a transaction there is no session to hold the lock, and it refuses.

use super::conn::connect;
use super::fault::{Fault, Res};
use super::open::{self, Notify, OpenOptions};
use crate::store::{Error, Migration, Result};
use sha2::{Digest, Sha256};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection, Row};
use std::fmt::Write;

/// One script a version, from 1, with its name.
const SCRIPTS: &[(&str, &str)] = &[
    ("initial", include_str!("../../../migrations/postgres/0001_initial.sql")),
    ("steering", include_str!("../../../migrations/postgres/0002_steering.sql")),
];

/// The oldest server that this works on.
const OLDEST: i64 = 140_000;
/// How long the steps of another process are waited for.
const WAIT_MS: u64 = 60_000;
const COMMAND: &str = "run `reprieve migrate up`";

/// The schema that this release knows.
fn known() -> i64 {
    i64::try_from(SCRIPTS.len()).unwrap_or(i64::MAX)
}

fn checksum(script: &str) -> String {
    Sha256::digest(script).iter().fold(String::new(), |mut hex, byte| {
        // A string takes whatever is written.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Every step that this release knows, and whether the database has it.
///
/// # Errors
/// [`Error::Open`], [`Error::Away`], [`Error::Newer`].
pub async fn status(url: &str, options: &OpenOptions) -> Result<Vec<Migration>> {
    let made = open::connect_options(url, options)?;
    told(url, options, async {
        let mut conn = plain(&made).await?;
        let found = check(&mut conn, url, options).await;
        close(conn).await;
        Ok(list(&found?))
    })
    .await
}

/// Brings the schema up to date; the steps that were applied now.
///
/// # Errors
/// As [`status`]; further [`Error::Open`] through a transaction pooler, [`Error::Locked`] where another process is at it
/// for longer than a minute, [`Error::Database`] where a step is refused.
pub async fn up(url: &str, options: &OpenOptions) -> Result<Vec<Migration>> {
    let made = open::connect_options(url, options)?;
    told(url, options, async {
        let mut conn = plain(&made).await?;
        let mut other = plain(&made).await?;
        let pooled = pooled(&mut conn, &mut other).await;
        close(other).await;
        if pooled? {
            return Err(refuse(
                url,
                "it is reached through a pooler that lends connections for one transaction, and a migration needs a \
                 session; give the server's own address to `reprieve migrate up`",
            ));
        }
        let applied = under_lock(&mut conn, url, options).await;
        // With the session ends the lock, whatever happened.
        close(conn).await;
        applied
    })
    .await
}

/// Whether the database has this release's schema.
///
/// # Errors
/// [`Error::Open`] where it has none or an older one, [`Error::Newer`], [`Error::Away`].
pub async fn verify(url: &str, options: &OpenOptions) -> Result<()> {
    let made = open::connect_options(url, options)?;
    told(url, options, async {
        let mut conn = plain(&made).await?;
        let found = check(&mut conn, url, options).await;
        close(conn).await;
        match found?.len() {
            0 => Err(refuse(url, &format!("its schema `{}` is not there; {COMMAND}", options.schema))),
            n if i64::try_from(n) != Ok(known()) => {
                Err(refuse(url, &format!("its schema has version {n}, and this release needs {}; {COMMAND}", known())))
            }
            _ => Ok(()),
        }
    })
    .await
}

async fn told<T>(url: &str, options: &OpenOptions, work: impl Future<Output = Res<T>>) -> Result<T> {
    work.await.map_err(|fault| fault.told(&open::shown(url), options.waits()))
}

fn refuse(url: &str, why: &str) -> Fault {
    Fault::Told(Error::Open { url: open::shown(url), why: why.to_owned() })
}

/// A connection without settings: what is asked here names its schema.
async fn plain(made: &PgConnectOptions) -> Res<PgConnection> {
    connect(&made.clone().statement_cache_capacity(0), &OpenOptions { notify: Notify::Poll, ..OpenOptions::default() })
        .await
}

async fn close(conn: PgConnection) {
    if let Err(error) = conn.close().await {
        tracing::debug!(%error, "a database connection did not close cleanly");
    }
}

async fn rows(conn: &mut PgConnection, text: String) -> Res<Vec<PgRow>> {
    sqlx::raw_sql(AssertSqlSafe(text)).fetch_all(conn).await.map_err(Fault::Sql)
}

async fn word(conn: &mut PgConnection, text: String) -> Res<Option<String>> {
    let found = rows(conn, text).await?;
    found.first().map_or(Ok(None), |row| row.try_get(0)).map_err(Fault::Sql)
}

/// What stands in the table of versions, if there is one: versions, names, checksums, instants.
async fn check(conn: &mut PgConnection, url: &str, options: &OpenOptions) -> Res<Vec<(i64, Option<i64>)>> {
    let server = word(conn, "SHOW server_version_num".into()).await?.unwrap_or_default();
    if server.parse::<i64>().unwrap_or(0) < OLDEST {
        return Err(refuse(url, "it is older than PostgreSQL 14"));
    }
    if word(conn, "SHOW server_encoding".into()).await?.as_deref() != Some("UTF8") {
        return Err(refuse(url, "it is not encoded in UTF8; make the database with ENCODING 'UTF8'"));
    }
    let schema = &options.schema;
    if word(conn, format!("SELECT to_regclass('\"{schema}\".schema_migrations')::text")).await?.is_none() {
        return Ok(Vec::new());
    }
    let text = format!(
        "SELECT version::text, checksum, applied_ms::text FROM \"{schema}\".schema_migrations ORDER BY version"
    );
    let mut found = Vec::new();
    for (place, row) in rows(conn, text).await?.iter().enumerate() {
        let column = |index: usize| row.try_get::<String, _>(index).map_err(Fault::Sql);
        let version: i64 = column(0)?.parse().unwrap_or(0);
        let expected = i64::try_from(place).unwrap_or(i64::MAX) + 1;
        match SCRIPTS.get(place) {
            None => return Err(Error::Newer { found: version, known: known() }.into()),
            Some((name, script)) if version != expected || column(1)? != checksum(script) => {
                let why = format!("what was applied as step {version} is not this release's step {expected} ({name})");
                return Err(refuse(url, &why));
            }
            Some(_) => found.push((version, column(2)?.parse().ok())),
        }
    }
    Ok(found)
}

fn list(found: &[(i64, Option<i64>)]) -> Vec<Migration> {
    (1_i64..)
        .zip(SCRIPTS)
        .map(|(version, (name, _))| {
            let applied = found.iter().find(|(number, _)| *number == version);
            Migration {
                version,
                name: (*name).to_owned(),
                applied: applied.is_some(),
                applied_ms: applied.and_then(|(_, at_ms)| *at_ms),
            }
        })
        .collect()
}

/// Whether two sessions share what belongs to one: then neither is a session.
async fn pooled(one: &mut PgConnection, other: &mut PgConnection) -> Res<bool> {
    for _ in 0..3 {
        for (conn, name) in [(&mut *one, "one"), (&mut *other, "other")] {
            rows(conn, format!("SELECT set_config('reprieve.session', '{name}', false)")).await?;
        }
        for (conn, name) in [(&mut *one, "one"), (&mut *other, "other")] {
            let read = word(conn, "SELECT current_setting('reprieve.session', true)".into()).await?;
            if read.as_deref() != Some(name) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

async fn under_lock(conn: &mut PgConnection, url: &str, options: &OpenOptions) -> Res<Vec<Migration>> {
    let schema = &options.schema;
    let lock = format!(
        "SET statement_timeout = 0; SET lock_timeout = {WAIT_MS}; SET client_min_messages = warning; \
         SELECT pg_advisory_lock(hashtextextended('reprieve.{schema}', 0))::text"
    );
    rows(conn, lock).await?;
    let before = check(conn, url, options).await?;
    if before.is_empty() {
        let made = word(conn, format!("SELECT to_regnamespace('\"{schema}\"')::text")).await?;
        let create = if made.is_none() { format!("CREATE SCHEMA \"{schema}\"; ") } else { String::new() };
        let table = format!(
            "BEGIN; {create}CREATE TABLE IF NOT EXISTS \"{schema}\".schema_migrations (version BIGINT PRIMARY KEY, \
             name TEXT NOT NULL, checksum TEXT NOT NULL, applied_ms BIGINT NOT NULL); COMMIT"
        );
        rows(conn, table).await?;
    }
    for (version, (name, script)) in (1_i64..).zip(SCRIPTS).skip(before.len()) {
        let sum = checksum(script);
        let step = format!(
            "BEGIN; SET LOCAL search_path = \"{schema}\"; {script}\n; \
             INSERT INTO schema_migrations (version, name, checksum, applied_ms) VALUES ({version}, '{name}', '{sum}', \
             floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint); COMMIT"
        );
        rows(conn, step).await?;
    }
    let after = list(&check(conn, url, options).await?);
    Ok(after.into_iter().skip(before.len()).collect())
}

#[cfg(test)]
mod tests {
    /// A change to a step that was released would be refused by every database that has it.
    #[test]
    fn every_step_has_a_number_and_a_name() {
        for (place, (name, script)) in super::SCRIPTS.iter().enumerate() {
            assert!(!name.is_empty() && !script.trim().is_empty(), "{place}");
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
        }
    }
}
