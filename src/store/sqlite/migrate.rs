//! The schema's versions. sqlx's own migrator takes no lock on SQLite, so that two processes could run it at once; here
//! everything happens inside one `BEGIN EXCLUSIVE`, and the version stands in the file's header (`user_version`).

use super::conn::Conn;
use super::open::{self, OpenOptions};
use crate::store::{Error, Migration, Result};

/// One script a version, from 1.
const SCRIPTS: &[&str] = &[
    include_str!("../../../migrations/sqlite/0001_initial.sql"),
    include_str!("../../../migrations/sqlite/0002_steering.sql"),
];

/// Marks a file as ours in its header: `RPRV`.
const APPLICATION: i64 = 0x5250_5256;

/// The schema that this release knows.
pub(super) fn known() -> i64 {
    i64::try_from(SCRIPTS.len()).unwrap_or(i64::MAX)
}

/// Brings the file to this release's schema, or refuses it.
pub(super) async fn run(conn: &mut Conn) -> Result<()> {
    if found(conn).await? == known() {
        return Ok(());
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
    for (version, script) in (1_i64..).zip(SCRIPTS) {
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

/// What each script is called.
const NAMES: &[&str] = &["initial", "steering"];

/// Every step that this release knows, and whether the file has it; a file that is not there has none.
///
/// # Errors
/// [`Error::Open`], [`Error::Newer`].
pub async fn status(url: &str) -> Result<Vec<Migration>> {
    let found = found_in(url).await?;
    let names = NAMES.iter().copied().chain(std::iter::repeat(""));
    let step = |(version, name): (i64, &str)| Migration {
        version,
        name: name.to_owned(),
        applied: version <= found,
        applied_ms: None,
    };
    Ok((1..=known()).zip(names).map(step).collect())
}

/// Brings the file up to date, as opening it does; the steps that were applied now.
///
/// # Errors
/// As [`crate::store::Sqlite::open`].
pub async fn up(url: &str) -> Result<Vec<Migration>> {
    let before = found_in(url).await?;
    let store = super::Sqlite::open(url, crate::clock::Clock::system(), OpenOptions::default()).await?;
    crate::store::Store::close(&store).await;
    Ok(status(url).await?.into_iter().filter(|step| step.version > before).collect())
}

/// Whether the file has this release's schema.
///
/// # Errors
/// [`Error::Open`] where it has an older one or is not there, [`Error::Newer`].
pub async fn verify(url: &str) -> Result<()> {
    let found = found_in(url).await?;
    if found == known() {
        return Ok(());
    }
    let why = format!("its schema has version {found}, and this release needs {}; run `reprieve migrate up`", known());
    Err(Error::Open { url: url.to_owned(), why })
}

async fn found_in(url: &str) -> Result<i64> {
    let options = OpenOptions::default();
    let connect = open::connect_options(url, &options)?;
    if !connect.get_filename().exists() {
        return Ok(0);
    }
    let mut conn = open::reader(url, &connect, &options).await?;
    let found = found(&mut conn).await;
    conn.close().await;
    found.map_err(|error| match error {
        Error::Database(why) => Error::Open { url: url.to_owned(), why },
        other => other,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_script_has_a_name() {
        assert_eq!(super::NAMES.len(), super::SCRIPTS.len());
    }
}
