//! A stopped queue moves from one database to another: `reprieve move`.
//!
//! What lives here: what a queue consists of ([`tables`]), its rows as both databases understand them ([`value`]), and the
//! way from one end to the other. What does not: SQL; each database reads and writes rows in its own module
//! (`sqlite::transfer`, `postgres::transfer`) behind [`End`]. Rows come in from the source in the order of their keys and go
//! out to the target a chunk at a time.
//!
//! **It can be killed at any instant.** Each chunk is one transaction of the target together with how far the move has
//! come, which stands in a table `transfer` there for as long as the move has not come to its end. A second run goes on
//! behind the last row that is there; while the table is there, opening the target is refused. The last transaction drops it.
//!
//! **The source is not written to, and nobody else writes to it meanwhile**: its write lock is held (`SQLite`), or its tables
//! are locked against writes (Postgres). What happened to it between two runs is found out at the end.
//!
//! **At the end both sides are read again, whole**, and compared table by table: the number of rows, and a digest of every
//! value of every row.

mod end;
mod tables;
mod value;

pub(in crate::store) use end::{
    BYTES, Busy, End, HIGHEST, Hold, Numbers, OWN_COUNTERS, PROGRESS, Progress, ROWS, UNFINISHED,
};
pub use tables::{Column, Kind, OWN, TABLES, Table};
pub use value::Sum;
pub(in crate::store) use value::{Key, Row, Value, rows_within};

use super::{postgres, sqlite};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Workers that are named, of those that live.
const NAMED: usize = 5;

/// One of the two databases.
#[derive(Clone, Debug)]
pub enum Place {
    Sqlite { url: String },
    Postgres { url: String, options: postgres::OpenOptions },
}

impl Place {
    /// Its URL as it may be shown.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Sqlite { url } => url.clone(),
            Self::Postgres { url, .. } => postgres::shown(url),
        }
    }
}

/// Why nothing was moved, or no further.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// One of the databases does not serve.
    #[error("{error}")]
    Store { url: String, error: super::Error },
    /// It cannot be done as things are; says what to do.
    #[error("{0}")]
    Refused(String),
}

type Result<T> = std::result::Result<T, Error>;

/// How far it has come; for people who watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub table: &'static str,
    pub what: Doing,
    /// Rows of the table so far, of those that there are.
    pub rows: u64,
    pub of: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    Moving,
    Comparing,
}

/// How a move came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Moved,
    /// Everything had been moved before, and nothing has changed since on either side.
    AlreadyThere,
    /// Something is other on one side than on the other; the target stays closed.
    Differs,
}

/// One table on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    pub name: &'static str,
    pub source: Sum,
    pub target: Sum,
    /// What was moved is no longer what the source holds.
    pub changed: bool,
}

impl Compared {
    #[must_use]
    pub fn equal(&self) -> bool {
        self.source == self.target && !self.changed
    }
}

#[derive(Clone, Debug)]
pub struct Report {
    pub outcome: Ending,
    /// It went on where an earlier run had ended.
    pub resumed: bool,
    pub tables: Vec<Compared>,
    /// The latest number drawn on either side: source, target.
    pub drawn: (i64, i64),
}

/// Moves everything from one to the other, or what is left of it, and compares both.
///
/// `now_ms` is the instant that leases are judged by; `None`: the source's own clock.
///
/// # Errors
/// [`Error::Refused`] where the source is at work or has another schema, or the target holds something else;
/// [`Error::Store`] where one of them does not serve.
pub async fn run(from: &Place, to: &Place, now_ms: Option<i64>, told: &dyn Fn(Step)) -> Result<Report> {
    let failed = |place: &Place| {
        let url = place.shown();
        move |error| Error::Store { url, error }
    };
    match from {
        Place::Sqlite { url } => {
            let source = sqlite::transfer::End::existing(url).await.map_err(failed(from))?;
            onward(source, to, now_ms, told).await
        }
        Place::Postgres { url, options } => {
            let source = postgres::transfer::End::open(url, options).await.map_err(failed(from))?;
            onward(source, to, now_ms, told).await
        }
    }
}

async fn onward<S: End>(mut source: S, to: &Place, now_ms: Option<i64>, told: &dyn Fn(Step)) -> Result<Report> {
    let outcome = match still(&mut source, now_ms).await {
        Ok(()) => {
            let failed = |error| Error::Store { url: to.shown(), error };
            match to {
                Place::Sqlite { url } => match sqlite::transfer::End::existing_or_new(url).await.map_err(failed) {
                    Ok(target) => between(&mut source, target, told).await,
                    Err(error) => Err(error),
                },
                Place::Postgres { url, options } => {
                    match postgres::transfer::End::open(url, options).await.map_err(failed) {
                        Ok(target) => between(&mut source, target, told).await,
                        Err(error) => Err(error),
                    }
                }
            }
        }
        Err(error) => Err(error),
    };
    source.close().await;
    outcome
}

/// Asks one end; what goes wrong is told with its URL.
macro_rules! ask {
    ($end:ident.$verb:ident($($arg:expr),*)) => {
        match $end.$verb($($arg),*).await {
            Ok(answer) => answer,
            Err(error) => return Err(Error::Store { url: $end.shown().to_owned(), error }),
        }
    };
}

/// Holds the source, if it is a stopped queue.
async fn still<S: End>(source: &mut S, now_ms: Option<i64>) -> Result<()> {
    ask!(source.hold(Hold::Still));
    if ask!(source.progress()).is_some() {
        return Err(Error::Refused(format!("{} holds a part of a queue only: {UNFINISHED}", source.shown())));
    }
    let busy = ask!(source.busy(now_ms));
    if !busy.workers.is_empty() {
        let mut said = String::new();
        for (worker, ago_ms) in busy.workers.iter().take(NAMED) {
            let ago = crate::duration::format(*ago_ms / 1_000 * 1_000);
            // A string takes whatever is written.
            let _ = write!(said, "\n{worker}, which renewed its lease {ago} ago, is alive");
        }
        if busy.workers.len() > NAMED {
            let _ = write!(said, "\nand {} more are", busy.workers.len() - NAMED);
        }
        return Err(Error::Refused(format!(
            "{} is at work: stop every `serve` and `worker` on it (SIGTERM lets each finish what it has in hand), and \
             run this again{said}",
            source.shown()
        )));
    }
    if busy.running > 0 {
        return Err(Error::Refused(format!(
            "{} turns of {} are in the hand of workers that are no more; start `reprieve worker` on it, which takes them \
             back when their leases have lapsed, stop it with SIGTERM, and run this again",
            busy.running,
            source.shown()
        )));
    }
    Ok(())
}

async fn between<S: End, T: End>(source: &mut S, mut target: T, told: &dyn Fn(Step)) -> Result<Report> {
    let outcome = moved(source, &mut target, told).await;
    target.close().await;
    outcome
}

/// The number of rows of each table.
async fn counts<E: End>(end: &mut E) -> Result<Vec<u64>> {
    let mut counts = Vec::new();
    for table in TABLES {
        counts.push(ask!(end.count(table.name)));
    }
    Ok(counts)
}

/// What tells one source from another, and from itself after something happened to it.
fn fingerprint(counts: &[u64], numbers: &Numbers) -> String {
    let mut digest = Sha256::new();
    for count in counts {
        digest.update(count.to_be_bytes());
    }
    for (name, value) in &numbers.counters {
        digest.update(name.as_bytes());
        digest.update(value.to_be_bytes());
    }
    hex(digest)
}

fn hex(digest: Sha256) -> String {
    digest.finalize().iter().take(16).fold(String::new(), |mut hex, byte| {
        // A string takes whatever is written.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

async fn moved<S: End, T: End>(source: &mut S, target: &mut T, told: &dyn Fn(Step)) -> Result<Report> {
    if ask!(source.identity()) == ask!(target.identity()) {
        return Err(Error::Refused(format!("{} is both the source and the target; name another --to", source.shown())));
    }
    let numbers = ask!(source.numbers());
    let counts = counts(source).await?;
    let first = first_rows(source).await?;
    let print = fingerprint(&counts, &numbers) + &first;
    let found = ask!(target.progress());
    let resumed = found.is_some();
    let mut progress = if let Some(found) = found {
        whole(target, found, &print)?
    } else if let Some(full) = full(target).await? {
        return already(source, target, &numbers, &counts, &full, told).await;
    } else {
        let fresh = |table: &Table| Progress {
            name: table.name.to_owned(),
            source: print.clone(),
            last: None,
            moved: Sum::default(),
        };
        let fresh: Vec<Progress> = TABLES.iter().map(fresh).collect();
        ask!(target.begin(&fresh));
        fresh
    };
    for ((table, progress), of_rows) in TABLES.iter().zip(&mut progress).zip(&counts) {
        copy(source, target, table, progress, *of_rows, told).await?;
    }
    ask!(target.settle(&numbers));
    let sums: Vec<Sum> = progress.iter().map(|progress| progress.moved).collect();
    let mut report = compare(source, target, &numbers, Some(&sums), &counts, told).await?;
    report.resumed = resumed;
    if report.outcome == Ending::Moved {
        ask!(target.finish());
    }
    Ok(report)
}

/// A digest of the first row of each table: two queues of one size are told apart by it.
async fn first_rows<S: End>(source: &mut S) -> Result<String> {
    let mut digest = Sha256::new();
    for table in TABLES {
        let page = ask!(source.page(table, None));
        digest.update(Sum::of(page.get(..1).unwrap_or_default()).to_string());
    }
    Ok(hex(digest))
}

/// The progress of an earlier run, in the order of [`TABLES`].
fn whole<T: End>(target: &T, found: Vec<Progress>, print: &str) -> Result<Vec<Progress>> {
    let mut found: BTreeMap<String, Progress> = found.into_iter().map(|one| (one.name.clone(), one)).collect();
    if found.values().any(|one| one.source != print) {
        return Err(Error::Refused(format!(
            "{} holds a part of another queue, or the source has changed since that move began; begin with an empty \
             database (a new SQLite file, or a schema dropped and made again by `reprieve migrate up`)",
            target.shown()
        )));
    }
    TABLES
        .iter()
        .map(|table| {
            found.remove(table.name).ok_or_else(|| {
                Error::Refused(format!("{} holds a part of a move by another release; {UNFINISHED}", target.shown()))
            })
        })
        .collect()
}

/// What the target holds, if it holds anything.
async fn full<T: End>(target: &mut T) -> Result<Option<Vec<u64>>> {
    let found = counts(target).await?;
    let numbers = ask!(target.numbers());
    let workers = ask!(target.count("workers"));
    let empty = found.iter().all(|count| *count == 0)
        && workers == 0
        && numbers.sequence == 0
        && numbers.counters.values().all(|value| *value == 0);
    Ok(if empty { None } else { Some(found) })
}

/// A target that holds something: all of this queue, or what must not be touched.
async fn already<S: End, T: End>(
    source: &mut S,
    target: &mut T,
    numbers: &Numbers,
    here: &[u64],
    there: &[u64],
    told: &dyn Fn(Step),
) -> Result<Report> {
    if here == there {
        let mut report = compare(source, target, numbers, None, here, told).await?;
        if report.outcome == Ending::Moved {
            report.outcome = Ending::AlreadyThere;
            return Ok(report);
        }
    }
    let most = TABLES.iter().zip(there).max_by_key(|(_, count)| **count);
    let held = most.map_or_else(String::new, |(table, count)| format!(" ({count} rows in `{}`)", table.name));
    Err(Error::Refused(format!(
        "{} is not empty{held}, and was left as it is; name a new SQLite file, or a Postgres whose schema `reprieve \
         migrate up` has just made",
        target.shown()
    )))
}

async fn copy<S: End, T: End>(
    source: &mut S,
    target: &mut T,
    table: &Table,
    progress: &mut Progress,
    of_rows: u64,
    told: &dyn Fn(Step),
) -> Result<()> {
    loop {
        told(Step { table: table.name, what: Doing::Moving, rows: progress.moved.rows, of: of_rows });
        let rows = ask!(source.page(table, progress.last.as_ref()));
        let Some(last) = rows.last() else { return Ok(()) };
        let after = Progress {
            last: Some(Key::of(table, last)),
            moved: progress.moved.and(Sum::of(&rows)),
            ..progress.clone()
        };
        if !ask!(target.write(table, &rows, progress.moved.rows, &after)) {
            return Err(Error::Refused(format!("another move is writing to {}; let it end", target.shown())));
        }
        *progress = after;
    }
}

/// Everything that a table holds.
async fn sum<E: End>(end: &mut E, table: &Table, told: &dyn Fn(u64)) -> Result<Sum> {
    let mut sum = Sum::default();
    let mut last: Option<Key> = None;
    loop {
        told(sum.rows);
        let rows = ask!(end.page(table, last.as_ref()));
        let Some(row) = rows.last() else { return Ok(sum) };
        last = Some(Key::of(table, row));
        sum = sum.and(Sum::of(&rows));
    }
}

/// Reads both whole.
async fn compare<S: End, T: End>(
    source: &mut S,
    target: &mut T,
    numbers: &Numbers,
    copied: Option<&[Sum]>,
    counts: &[u64],
    told: &dyn Fn(Step),
) -> Result<Report> {
    ask!(target.hold(Hold::Seen));
    let mut tables = Vec::new();
    for (place, (table, of_rows)) in TABLES.iter().zip(counts).enumerate() {
        let step = |rows| told(Step { table: table.name, what: Doing::Comparing, rows, of: *of_rows });
        let (here, there) = tokio::join!(sum(source, table, &step), sum(target, table, &|_| ()));
        let (source, target) = (here?, there?);
        let changed = copied.and_then(|all| all.get(place)).is_some_and(|copied| *copied != source);
        tables.push(Compared { name: table.name, source, target, changed });
    }
    let settled = ask!(target.numbers());
    tables.push(Compared { name: "counters", source: numbers.sum(), target: settled.sum(), changed: false });
    ask!(target.release());
    let drawn = (numbers.sequence, settled.sequence);
    let equal = tables.iter().all(Compared::equal) && drawn.0 <= drawn.1;
    let outcome = if equal { Ending::Moved } else { Ending::Differs };
    Ok(Report { outcome, resumed: false, tables, drawn })
}
