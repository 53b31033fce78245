//! What `doctor` and `migrate` ask of a SQLite file. Nothing here makes a file or changes one but [`up`].

use super::conn::Conn;
use super::tx::{at, sql};
use super::{OpenOptions, Sqlite, error, migrate, open};
use crate::clock::Clock;
use crate::store::{Check, Error, Result, Schema, Store};
use sqlx::sqlite::SqliteConnectOptions;
use std::path::{Path, PathBuf};

/// A log beyond this was not folded into its file for long.
const LARGE_LOG_BYTES: u64 = 256 << 20;
/// Free space below which one should look for more, and below which writes are about to fail.
const LITTLE_BYTES: u64 = 2 << 30;
const HARDLY_ANY_BYTES: u64 = 100 << 20;
/// How far the newest instant in the file may lie ahead of this machine's clock.
const AHEAD_MS: i64 = 2_000;
/// Integrity is checked whole, however large the file.
const CHECK_MS: u64 = 30 * 60 * 1_000;
const MANY_LINES: usize = 3;

/// The schema of the file that `url` names.
///
/// # Errors
/// As [`Sqlite::open`]; a file that is not there is no error.
pub async fn schema(url: &str) -> Result<Schema> {
    let Some(mut conn) = existing(url).await? else { return Ok(Schema { found: None, ..migrate::schema(0) }) };
    let found = migrate::version(&mut conn).await;
    conn.close().await;
    Ok(migrate::schema(found?))
}

/// Makes the file where there is none, and brings it to this release's schema. Returns the schema as it was.
///
/// # Errors
/// As [`Sqlite::open`].
pub async fn up(url: &str) -> Result<Schema> {
    let before = schema(url).await?;
    Sqlite::open(url, Clock::system(), OpenOptions::default()).await?.close().await;
    Ok(before)
}

/// Where the file's tables, indices and views are other than this release's migrations make them; empty: nowhere.
///
/// # Errors
/// As [`Sqlite::open`].
pub async fn differences(url: &str) -> Result<Vec<String>> {
    let Some(mut conn) = existing(url).await? else { return Ok(vec!["there is no file yet".to_owned()]) };
    let found = parts(&mut conn).await;
    conn.close().await;
    let found = found?;
    let options = OpenOptions::default();
    let connect = SqliteConnectOptions::new().in_memory(true);
    let mut fresh = Conn::open(&connect, options.waits()).await.map_err(|e| error::map(&e, options.waits()))?;
    migrate::run(&mut fresh).await?;
    let wanted = parts(&mut fresh).await?;
    fresh.close().await;
    let mut all = Vec::new();
    for (name, text) in &wanted {
        match found.iter().find(|(known, _)| known == name) {
            None => all.push(format!("{name} is missing")),
            Some((_, other)) if other != text => all.push(format!("{name} is another than this release's")),
            Some(_) => {}
        }
    }
    let extra = found.iter().filter(|(name, _)| wanted.iter().all(|(known, _)| known != name));
    all.extend(extra.map(|(name, _)| format!("{name} is not of this release")));
    Ok(all)
}

/// Each part of a schema, `table turns` and the like, with its text.
async fn parts(conn: &mut Conn) -> Result<Vec<(String, String)>> {
    let rows = conn.all(sqlx::query(sql!("care_schema"))).await?;
    rows.iter().map(|row| Ok((at::<String>(row, 0)?, at::<String>(row, 1)?))).collect()
}

/// Every check of the file that `url` names.
pub async fn checks(url: &str, now_ms: i64) -> Vec<Check> {
    let connect = match open::connect_options(url, &OpenOptions::default()) {
        Ok(connect) => connect,
        Err(error) => return vec![Check::fail("database", error.to_string(), "correct `database` or --database")],
    };
    let file = connect.get_filename().to_owned();
    let mut checks = Vec::new();
    let mut conn = match existing(url).await {
        Ok(Some(conn)) => conn,
        Ok(None) => {
            let found = format!("{} is not there yet", file.display());
            let todo = "the first command that needs it makes it; or make it now: reprieve migrate up";
            return vec![Check::warn("database", found, todo), disk(&file)];
        }
        Err(error) => return vec![refused(&error), disk(&file)],
    };
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.len());
    checks.push(Check::ok("database", format!("{} ({})", file.display(), size(bytes(&file)))));
    let usable = version(&mut conn, &mut checks).await;
    if usable {
        integrity(&mut conn, &mut checks).await;
        checks.push(writable(&mut conn).await);
    }
    checks.push(log(bytes(&beside(&file, "-wal"))));
    checks.push(disk(&file));
    if usable && let Err(error) = state(&mut conn, now_ms, &mut checks).await {
        checks.push(refused(&error));
    }
    conn.close().await;
    checks
}

fn refused(error: &Error) -> Check {
    let todo = match error {
        Error::Locked { .. } => "find the process that holds it (`fuser FILE`) and let it finish",
        Error::ReadOnly => "let this user write the file and its directory",
        _ => "put back a backup, or name another file",
    };
    Check::fail("database", error.to_string(), todo)
}

/// A connection to a file that is there; `None`: it is not.
pub(super) async fn existing(url: &str) -> Result<Option<Conn>> {
    let options = OpenOptions { statement_ms: CHECK_MS, busy_ms: 1_000, ..OpenOptions::default() };
    let connect = open::connect_options(url, &options)?.create_if_missing(false);
    if !connect.get_filename().exists() {
        return Ok(None);
    }
    Conn::open(&connect, options.waits()).await.map(Some).map_err(|e| error::map(&e, options.waits()))
}

fn beside(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// The schema; whether the rest can be asked for.
async fn version(conn: &mut Conn, checks: &mut Vec<Check>) -> bool {
    let schema = match migrate::version(conn).await {
        Ok(found) => migrate::schema(found),
        Err(error @ Error::Newer { .. }) => {
            checks.push(Check::fail("schema", error.to_string(), "run the newer release, or put back an older backup"));
            return false;
        }
        Err(error) => {
            checks.push(refused(&error));
            return false;
        }
    };
    let found = schema.found.unwrap_or(0);
    if schema.pending.is_empty() {
        checks.push(Check::ok("schema", format!("version {found}, this release's")));
        return true;
    }
    let what = format!("version {found} of {}; pending: {}", schema.known, schema.pending.join(", "));
    checks.push(Check::warn("schema", what, "reprieve migrate up (the next command that needs it does so, too)"));
    false
}

async fn integrity(conn: &mut Conn, checks: &mut Vec<Check>) {
    let lines = async {
        let rows = conn.all(sqlx::query("PRAGMA quick_check(10)")).await?;
        let mut lines = Vec::new();
        for row in &rows {
            lines.push(at::<String>(row, 0)?);
        }
        Result::Ok(lines)
    };
    checks.push(match lines.await {
        Ok(lines) if lines == ["ok"] => Check::ok("integrity", "every page and row is whole"),
        Ok(lines) => {
            let shown =
                lines.iter().take(MANY_LINES).map(|line| line.replace('\n', " ")).collect::<Vec<_>>().join("; ");
            Check::fail("integrity", shown, "stop every process on it, keep the file, and put back a backup")
        }
        Err(error) => Check::fail("integrity", error.to_string(), "stop every process on it, and put back a backup"),
    });
    let broken = conn.all(sqlx::query("PRAGMA foreign_key_check")).await;
    checks.push(match broken {
        Ok(rows) if rows.is_empty() => Check::ok("references", "every row has what it names"),
        Ok(rows) => {
            let first = rows.first().and_then(|row| at::<String>(row, 0).ok()).unwrap_or_default();
            let found = format!("{} rows name what is not there, the first in `{first}`", rows.len());
            Check::fail("references", found, "put back a backup; something wrote the file past this program")
        }
        Err(error) => Check::fail("references", error.to_string(), "put back a backup"),
    });
}

/// Takes the lock that every write takes, and gives it back.
async fn writable(conn: &mut Conn) -> Check {
    let taken = async {
        conn.script("BEGIN IMMEDIATE").await?;
        let written = conn.script("PRAGMA user_version = 0").await;
        conn.script("ROLLBACK").await?;
        written
    };
    match taken.await {
        Ok(()) => Check::ok("writes", "are taken"),
        Err(error @ Error::Locked { .. }) => Check::warn(
            "writes",
            error.to_string(),
            "a long write of another process, or a forgotten shell on the file",
        ),
        Err(error) => refused(&error),
    }
}

fn log(bytes: u64) -> Check {
    if bytes > LARGE_LOG_BYTES {
        let found = format!("{} of the log are not folded into the file", size(bytes));
        return Check::warn("log", found, "end long readers (a forgotten `sqlite3` shell, a backup in progress)");
    }
    Check::ok("log", format!("{} not folded into the file yet", size(bytes)))
}

#[cfg(unix)]
fn disk(file: &Path) -> Check {
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let free = match rustix::fs::statvfs(dir) {
        Ok(stat) => stat.f_bavail.saturating_mul(stat.f_frsize),
        Err(error) => return Check::warn("disk", format!("free space is not known ({error})"), "look at it by hand"),
    };
    let found = format!("{} free", size(free));
    match free {
        free if free < HARDLY_ANY_BYTES => {
            Check::fail("disk", found, "make room, or move the file: writes are about to fail")
        }
        free if free < LITTLE_BYTES => Check::warn("disk", found, "make room, or shorten [retention]"),
        _ => Check::ok("disk", found),
    }
}

#[cfg(not(unix))]
fn disk(_file: &Path) -> Check {
    Check::warn("disk", "free space is not known on this system", "look at it by hand")
}

/// What the rows say of workers, turns and clocks.
async fn state(conn: &mut Conn, now_ms: i64, checks: &mut Vec<Check>) -> Result<()> {
    let row = conn.one(sqlx::query(sql!("care_state")).bind(now_ms)).await?;
    let [live, lapsed, stuck, waiting] = [at::<i64>(&row, 0)?, at(&row, 1)?, at(&row, 2)?, at(&row, 3)?];
    let newest_ms: Option<i64> = at(&row, 4)?;
    checks.push(match (live, lapsed) {
        (0, 0) if waiting > 0 => Check::warn(
            "workers",
            format!("none is alive, and {waiting} turns wait"),
            "start one: reprieve worker, or serve",
        ),
        (0, 0) => Check::ok("workers", "none is alive, and nothing waits for one"),
        (live, 0) => Check::ok("workers", format!("{live} alive")),
        (0, lapsed) => Check::warn(
            "workers",
            format!("{lapsed} did not renew their leases, and none is alive"),
            "start one: reprieve worker, or serve; it takes their turns over",
        ),
        (live, lapsed) => Check::warn(
            "workers",
            format!("{live} alive, {lapsed} did not renew their leases"),
            "their turns are taken over within seconds; look at their logs",
        ),
    });
    checks.push(match stuck {
        0 => Check::ok("turns", "none is stuck in a dead worker's hand"),
        stuck if live > 0 => Check::warn(
            "turns",
            format!("{stuck} in the hand of workers that are no more"),
            "a live worker takes them back within seconds; if they stay, please report it",
        ),
        stuck => Check::warn(
            "turns",
            format!("{stuck} in the hand of workers that are no more"),
            "start a worker: reprieve worker, or serve; it takes them back",
        ),
    });
    let ahead_ms = newest_ms.map_or(0, |newest_ms| newest_ms.saturating_sub(now_ms));
    checks.push(if ahead_ms > AHEAD_MS {
        let found = format!("the file knows an instant {} ahead of this machine", crate::duration::format(ahead_ms));
        Check::fail("clock", found, "set this machine's clock (NTP), or that of the machine that wrote it")
    } else {
        Check::ok("clock", "not behind anything that the file knows")
    });
    Ok(())
}

/// Bytes in two or three digits.
fn size(bytes: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut whole = bytes;
    let mut rest = 0;
    while whole >= 1_024 && unit + 1 < units.len() {
        rest = whole % 1_024;
        whole /= 1_024;
        unit += 1;
    }
    let name = units.get(unit).copied().unwrap_or_default();
    if unit > 0 && whole < 10 { format!("{whole}.{} {name}", rest * 10 / 1_024) } else { format!("{whole} {name}") }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_short() {
        let said = [0, 1_023, 1_024, 1_536, 12 << 20, 3 << 30].map(size);
        assert_eq!(said, ["0 bytes", "1023 bytes", "1.0 KiB", "1.5 KiB", "12 MiB", "3.0 GiB"]);
    }
}
