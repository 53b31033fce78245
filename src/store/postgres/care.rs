//! What `doctor` asks of a Postgres. Nothing here changes anything.

use super::conn::connect;
use super::fault::Fault;
use super::migrate;
use super::open::{self, OpenOptions, shown};
use crate::store::{Check, Error};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Row};

/// A transaction that has been open for longer keeps dead rows of the queue from being cleared away.
const LONG_MINUTES: i64 = 10;
/// How far the newest instant may lie ahead of the database's clock.
const AHEAD_MS: i64 = 2_000;

/// Every check of the database that `url` names.
pub async fn checks(url: &str, options: &OpenOptions, _now_ms: i64) -> Vec<Check> {
    let made = match open::connect_options(url, options) {
        Ok(made) => made,
        Err(error) => return vec![Check::fail("database", error.to_string(), "correct `database` or --database")],
    };
    let told = |fault: Fault| fault.told(&shown(url), options.waits());
    let mut conn = match connect(&made, options).await.map_err(told) {
        Ok(conn) => conn,
        Err(error) => {
            let todo = "see whether the server runs, and whether this machine and this user may reach it";
            return vec![Check::fail("database", error.to_string(), todo)];
        }
    };
    let mut checks = Vec::new();
    let told = |error: sqlx::Error| Fault::Sql(error).told(&shown(url), options.waits());
    match server(&mut conn).await.map_err(told) {
        Ok(found) => checks.push(Check::ok("database", format!("{} ({found})", shown(url)))),
        Err(error) => checks.push(refused(&error)),
    }
    if schema(url, options, &mut checks).await {
        for state in [writable(&mut conn).await, transactions(&mut conn).await, clock(&mut conn, options).await] {
            checks.push(state.unwrap_or_else(|error| refused(&told(error))));
        }
    }
    if let Err(error) = conn.close().await {
        tracing::debug!(%error, "a database connection did not close cleanly");
    }
    checks
}

fn refused(error: &Error) -> Check {
    Check::fail("database", error.to_string(), "look into the server's log")
}

/// The schema; whether the rest can be asked for.
async fn schema(url: &str, options: &OpenOptions, checks: &mut Vec<Check>) -> bool {
    let found = match migrate::schema(url, options).await {
        Ok(schema) => schema,
        Err(error) => {
            checks.push(Check::fail("schema", error.to_string(), "run the release that made it, or put back a backup"));
            return false;
        }
    };
    let version = found.found.unwrap_or(0);
    if found.pending.is_empty() {
        checks.push(Check::ok("schema", format!("`{}`, version {version}, this release's", options.schema)));
        return true;
    }
    let what = match found.found {
        None => format!("`{}` is not there yet", options.schema),
        Some(version) => format!("`{}` has version {version}, and this release needs {}", options.schema, found.known),
    };
    checks.push(Check::fail("schema", what, "reprieve migrate up"));
    false
}

async fn text(conn: &mut PgConnection, text: impl Into<String>) -> Result<String, sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(text.into())).fetch_one(conn).await?.try_get(0)
}

async fn server(conn: &mut PgConnection) -> Result<String, sqlx::Error> {
    text(conn, "SELECT 'PostgreSQL ' || current_setting('server_version')").await
}

async fn writable(conn: &mut PgConnection) -> Result<Check, sqlx::Error> {
    let standby =
        text(conn, "SELECT (pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on')::text").await?;
    Ok(if standby == "true" {
        let todo = "name the primary server in the database URL";
        Check::fail("writes", "the server takes none: it is a standby, or set to read only", todo)
    } else {
        Check::ok("writes", "the server takes them")
    })
}

/// What keeps vacuum from clearing the queue of dead rows.
async fn transactions(conn: &mut PgConnection) -> Result<Check, sqlx::Error> {
    let minutes = text(
        conn,
        "SELECT coalesce(max(extract(epoch FROM now() - xact_start) / 60), 0)::bigint::text FROM pg_stat_activity
         WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()",
    )
    .await?;
    let vacuum = text(conn, "SELECT current_setting('autovacuum')").await?;
    if vacuum == "off" {
        let todo = "set autovacuum = on: without it claims walk over every turn that ever ended";
        return Ok(Check::fail("vacuum", "autovacuum is off", todo));
    }
    Ok(if minutes.parse::<i64>().unwrap_or(0) > LONG_MINUTES {
        let todo = "end it (pg_stat_activity says whose it is): while it is open, claims become slow";
        Check::warn("vacuum", format!("a transaction has been open for {minutes} minutes"), todo)
    } else {
        Check::ok("vacuum", "autovacuum is on, and no transaction is open for long")
    })
}

async fn clock(conn: &mut PgConnection, options: &OpenOptions) -> Result<Check, sqlx::Error> {
    // By its full name: through a pooler no session has its schema set.
    let ahead = text(
        conn,
        format!(
            "SELECT (coalesce(max(heartbeat_ms), 0) - floor(extract(epoch FROM clock_timestamp()) * 1000))::bigint::text
             FROM \"{}\".workers",
            options.schema
        ),
    )
    .await?;
    Ok(if ahead.parse::<i64>().unwrap_or(0) > AHEAD_MS {
        let found = format!("a worker's last heartbeat lies {ahead} ms ahead of the server's clock");
        Check::warn("clock", found, "set the server's clock; until it has caught up, leases last longer than they say")
    } else {
        Check::ok("clock", "nothing lies ahead of the server's clock")
    })
}
