//! A database as one end of a move: what is asked of it, and what both have in common.

use super::{Key, Row, Sum, Table, Value};
use crate::store::{Result, WorkerId};
use std::collections::BTreeMap;

/// Rows of one chunk, at most.
pub(in crate::store) const ROWS: usize = 1_000;
/// Bytes of texts that one chunk stops at: with the row that goes beyond, which may be one long document.
pub(in crate::store) const BYTES: usize = 8 << 20;

/// Counters that one database keeps for itself, or keeps otherwise.
pub(in crate::store) const OWN_COUNTERS: [&str; 3] = ["sequence", "changes", "touched"];

/// The table of progress, as both databases understand it.
pub(in crate::store) const PROGRESS: &str = "CREATE TABLE transfer (
    name TEXT NOT NULL PRIMARY KEY, source TEXT NOT NULL, last_key TEXT, moved BIGINT NOT NULL, digest TEXT NOT NULL
)";

/// Why opening a database is refused that holds a part of a queue.
pub(in crate::store) const UNFINISHED: &str = "a move into it has not come to its end; run the same `reprieve move` again, or begin with an empty \
                                database";

/// The highest number that was drawn for anything that is kept; `{}` is what its counter says.
pub(in crate::store) const HIGHEST: &str = "SELECT max(n) FROM (
    SELECT {} AS n UNION ALL SELECT max(fence) FROM turn_records UNION ALL SELECT max(fence) FROM sends
    UNION ALL SELECT max(dated_no) FROM holds UNION ALL SELECT max(served) FROM lanes
    UNION ALL SELECT max(permit_no) FROM turns UNION ALL SELECT max(fence) FROM turns
) AS drawn";

/// Numbers that stand in no row of [`TABLES`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Numbers {
    /// The latest number drawn for claims, permits and holds.
    pub sequence: i64,
    /// The latest worker's number.
    pub workers: i64,
    pub counters: BTreeMap<String, i64>,
}

impl Numbers {
    pub fn sum(&self) -> Sum {
        let rows: Vec<Row> =
            self.counters.iter().map(|(name, value)| vec![Value::Text(name.clone()), Value::Int(*value)]).collect();
        Sum::of(&rows)
    }
}

/// What keeps a queue from being a stopped one.
#[derive(Debug, Default)]
pub(in crate::store) struct Busy {
    /// Workers whose leases run, and for how long ago they renewed.
    pub workers: Vec<(WorkerId, i64)>,
    /// Turns in somebody's hand.
    pub running: i64,
}

/// How far a table has come in the target.
#[derive(Clone, Debug)]
pub(in crate::store) struct Progress {
    pub name: String,
    /// Which source it is filled from.
    pub source: String,
    pub last: Option<Key>,
    pub moved: Sum,
}

/// A database as one end of a move.
pub(in crate::store) trait End {
    fn shown(&self) -> &str;
    /// The same for two ends that are one database.
    async fn identity(&mut self) -> Result<String>;
    /// From here to [`End::release`] all that is read is of one instant; with `Hold::Still` nobody writes until then.
    async fn hold(&mut self, how: Hold) -> Result<()>;
    async fn release(&mut self) -> Result<()>;
    /// At `now_ms`, or at this instant of the database's clock.
    async fn busy(&mut self, now_ms: Option<i64>) -> Result<Busy>;
    async fn count(&mut self, table: &'static str) -> Result<u64>;
    /// The rows behind a key, in the order of their keys: at most [`ROWS`], and about [`BYTES`].
    async fn page(&mut self, table: &Table, after: Option<&Key>) -> Result<Vec<Row>>;
    async fn numbers(&mut self) -> Result<Numbers>;
    /// How far a move into it has come; `None`: none is under way.
    async fn progress(&mut self) -> Result<Option<Vec<Progress>>>;
    /// Notes in one transaction that a move begins.
    async fn begin(&mut self, all: &[Progress]) -> Result<()>;
    /// Writes rows and how far that is, in one transaction, if it stands at `before` rows. Whether it did.
    async fn write(&mut self, table: &Table, rows: &[Row], before: u64, after: &Progress) -> Result<bool>;
    /// Sets counters, and what numbers are drawn from beyond every one that was drawn.
    async fn settle(&mut self, numbers: &Numbers) -> Result<()>;
    /// From here on it is a database like any other.
    async fn finish(&mut self) -> Result<()>;
    async fn close(self);
}

/// How a database is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Hold {
    /// Others may write.
    Seen,
    /// Nobody writes.
    Still,
}
