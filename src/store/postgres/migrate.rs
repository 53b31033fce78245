//! The schema's versions. They are brought up to date by an explicit command, never by opening: [`up`] runs under a
//! session's advisory lock, so that two who begin at once do it once, each step in its own transaction. Through a pooler
//! that lends connections for a transaction there is no session to hold the lock, and it refuses.

use super::conn::connect;
use super::fault::{Fault, Res};
use super::open::{self, Notify, OpenOptions};
use crate::store::transfer::UNFINISHED;
use crate::store::{Error, Result, Schema};
use sha2::{Digest, Sha256};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection, Row};
use std::fmt::Write;

macro_rules! script {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../migrations/postgres/", $name, ".sql")))
    };
}

/// One script a version, from 1, under its file's name.
const SCRIPTS: &[(&str, &str)] = &[script!("0001_initial"), script!("0002_steering")];

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

/// The database's schema beside this release's.
///
/// # Errors
/// [`Error::Open`], [`Error::Away`], [`Error::Newer`].
pub async fn schema(url: &str, options: &OpenOptions) -> Result<Schema> {
    let made = open::connect_options(url, options)?;
    told(url, options, async {
        let mut conn = plain(&made).await?;
        let found = check(&mut conn, url, options).await;
        close(conn).await;
        Ok(beside(found?))
    })
    .await
}

/// Brings the schema up to date; returns it as it was.
///
/// # Errors
/// As [`schema`]; further [`Error::Open`] through a transaction pooler, [`Error::Locked`] where another process is at it
/// for longer than a minute, [`Error::Database`] where a step is refused.
pub async fn up(url: &str, options: &OpenOptions) -> Result<Schema> {
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
        let before = under_lock(&mut conn, url, options).await;
        // With the session ends the lock, whatever happened.
        close(conn).await;
        before.map(beside)
    })
    .await
}

/// Where the schema's columns, indices, constraints, functions and views are other than this release's migrations make them; empty:
/// nowhere. They are made beside it for that, and rolled back.
///
/// # Errors
/// As [`schema`]; [`Error::Database`] where this user may make no schema.
pub async fn differences(url: &str, options: &OpenOptions) -> Result<Vec<String>> {
    const BESIDE: &str = "reprieve_beside";
    let made = open::connect_options(url, options)?;
    told(url, options, async {
        let mut conn = plain(&made).await?;
        if check(&mut conn, url, options).await? == 0 {
            close(conn).await;
            return Ok(vec![format!("there is no schema `{}` yet", options.schema)]);
        }
        let scripts = SCRIPTS.iter().map(|(_, script)| *script).collect::<Vec<_>>().join("\n;\n");
        let begin = format!("BEGIN; CREATE SCHEMA {BESIDE}; SET LOCAL search_path = {BESIDE}; {scripts}");
        rows(&mut conn, begin).await?;
        let wanted = parts(&mut conn, BESIDE).await?;
        let found = parts(&mut conn, &options.schema).await?;
        // What was made beside it goes with the connection.
        close(conn).await;
        let missing = wanted.iter().filter(|part| !found.contains(part)).map(|part| format!("missing: {part}"));
        let extra =
            found.iter().filter(|part| !wanted.contains(part)).map(|part| format!("not of this release: {part}"));
        Ok(missing.chain(extra).collect())
    })
    .await
}

/// Each part of a schema as one line; its own table of versions aside.
async fn parts(conn: &mut PgConnection, schema: &str) -> Res<Vec<String>> {
    let text = format!(
        "SELECT replace(part, '{schema}.', '') FROM (
             SELECT format('column %s.%s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                           CASE WHEN a.attnotnull THEN 'not null' ELSE '' END) AS part
             FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
             WHERE c.relnamespace = '{schema}'::regnamespace AND c.relkind IN ('r', 'v') AND a.attnum > 0
               AND NOT a.attisdropped AND c.relname <> 'schema_migrations'
             UNION ALL
             SELECT 'index ' || indexdef FROM pg_indexes
             WHERE schemaname = '{schema}' AND tablename <> 'schema_migrations'
             UNION ALL
             SELECT format('constraint %s %s', c.conrelid::regclass, pg_get_constraintdef(c.oid)) FROM pg_constraint AS c
             WHERE c.connamespace = '{schema}'::regnamespace AND c.conrelid <> 0
               AND c.conrelid <> coalesce(to_regclass('{schema}.schema_migrations')::oid, 0)
             UNION ALL
             SELECT 'function ' || pg_get_functiondef(p.oid) FROM pg_proc AS p
             WHERE p.pronamespace = '{schema}'::regnamespace
             UNION ALL
             SELECT 'view ' || viewname || definition FROM pg_views WHERE schemaname = '{schema}'
         ) AS parts ORDER BY 1"
    );
    let found = rows(conn, text).await?;
    found.iter().map(|row| row.try_get::<String, _>(0).map_err(Fault::Sql)).collect()
}

/// Whether the database has this release's schema.
///
/// # Errors
/// [`Error::Open`] where it has none or an older one, [`Error::Newer`], [`Error::Away`].
pub async fn verify(url: &str, options: &OpenOptions) -> Result<()> {
    verified(url, options, Whole::Only).await
}

/// The same of a database that may hold a part of a queue only.
pub(super) async fn verify_bare(url: &str, options: &OpenOptions) -> Result<()> {
    verified(url, options, Whole::OrPart).await
}

/// Whether a queue that is only partly there will do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    Only,
    OrPart,
}

async fn verified(url: &str, options: &OpenOptions, whole: Whole) -> Result<()> {
    let made = open::connect_options(url, options)?;
    told(url, options, async {
        let mut conn = plain(&made).await?;
        let found = match whole {
            Whole::Only => check(&mut conn, url, options).await,
            Whole::OrPart => steps(&mut conn, url, options).await,
        };
        close(conn).await;
        match found? {
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

/// How many steps the database has, each as this release knows it; 0: there is no table of versions. One that a move into
/// has not come to its end is refused.
async fn check(conn: &mut PgConnection, url: &str, options: &OpenOptions) -> Res<usize> {
    let found = steps(conn, url, options).await?;
    let part = format!("SELECT to_regclass('\"{}\".transfer')::text", options.schema);
    if found > 0 && word(conn, part).await?.is_some() {
        return Err(refuse(url, UNFINISHED));
    }
    Ok(found)
}

async fn steps(conn: &mut PgConnection, url: &str, options: &OpenOptions) -> Res<usize> {
    let server = word(conn, "SHOW server_version_num".into()).await?.unwrap_or_default();
    if server.parse::<i64>().unwrap_or(0) < OLDEST {
        return Err(refuse(url, "it is older than PostgreSQL 14"));
    }
    if word(conn, "SHOW server_encoding".into()).await?.as_deref() != Some("UTF8") {
        return Err(refuse(url, "it is not encoded in UTF8; make the database with ENCODING 'UTF8'"));
    }
    let schema = &options.schema;
    if word(conn, format!("SELECT to_regclass('\"{schema}\".schema_migrations')::text")).await?.is_none() {
        return Ok(0);
    }
    let text = format!("SELECT version::text, checksum FROM \"{schema}\".schema_migrations ORDER BY version");
    let mut found = 0;
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
            Some(_) => found += 1,
        }
    }
    Ok(found)
}

fn beside(found: usize) -> Schema {
    let pending = SCRIPTS.iter().skip(found).map(|(name, _)| (*name).to_owned()).collect();
    let found = i64::try_from(found).ok().filter(|found| *found > 0);
    Schema { found, known: known(), pending }
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

/// How many steps there were before.
async fn under_lock(conn: &mut PgConnection, url: &str, options: &OpenOptions) -> Res<usize> {
    let schema = &options.schema;
    let lock = format!(
        "SET statement_timeout = 0; SET lock_timeout = {WAIT_MS}; SET client_min_messages = warning; \
         SELECT pg_advisory_lock(hashtextextended('reprieve.{schema}', 0))::text"
    );
    rows(conn, lock).await?;
    let before = check(conn, url, options).await?;
    if before == 0 {
        let made = word(conn, format!("SELECT to_regnamespace('\"{schema}\"')::text")).await?;
        let create = if made.is_none() { format!("CREATE SCHEMA \"{schema}\"; ") } else { String::new() };
        let table = format!(
            "BEGIN; {create}CREATE TABLE IF NOT EXISTS \"{schema}\".schema_migrations (version BIGINT PRIMARY KEY, \
             name TEXT NOT NULL, checksum TEXT NOT NULL, applied_ms BIGINT NOT NULL); COMMIT"
        );
        rows(conn, table).await?;
    }
    for (version, (name, script)) in (1_i64..).zip(SCRIPTS).skip(before) {
        let sum = checksum(script);
        let step = format!(
            "BEGIN; SET LOCAL search_path = \"{schema}\"; {script}\n; \
             INSERT INTO schema_migrations (version, name, checksum, applied_ms) VALUES ({version}, '{name}', '{sum}', \
             floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint); COMMIT"
        );
        rows(conn, step).await?;
    }
    check(conn, url, options).await?;
    Ok(before)
}

#[cfg(test)]
mod tests {
    /// A change to a step that was released would be refused by every database that has it.
    #[test]
    fn every_step_has_a_number_and_a_name() {
        for (place, (name, script)) in super::SCRIPTS.iter().enumerate() {
            assert!(!name.is_empty() && !script.trim().is_empty(), "{place}");
            assert!(name.starts_with(&format!("{:04}_", place + 1)), "{name}");
        }
    }
}
