//! What a verb works with inside the writer's transaction, and the small things that every verb needs: draws, rows that
//! are written many at a time, columns.

use super::conn::{Conn, Query};
use crate::store::{Error, Fence, HoldId, JobId, LaneKey, Result};
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Row, Sqlite, Type};
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

/// A statement's text, from `sql/sqlite/`.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/sql/sqlite/", $name, ".sql"))
    };
}
pub(super) use sql;

/// A lane's numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneRef {
    pub lane_id: i64,
}

/// What the writer remembers between transactions. Emptied whenever one fails, so that it never knows a row that was
/// rolled back.
#[derive(Debug, Default)]
pub(super) struct Cache {
    pub lanes: HashMap<LaneKey, LaneRef>,
    /// Statements widened to several rows.
    wide: HashMap<(&'static str, usize), Arc<str>>,
}

impl Cache {
    pub fn forget(&mut self) {
        self.lanes.clear();
    }

    /// `text` with its one tuple of placeholders after `VALUES` repeated.
    fn widened(&mut self, text: &'static str, rows: usize) -> Arc<str> {
        Arc::clone(self.wide.entry((text, rows)).or_insert_with(|| widen(text, rows).into()))
    }
}

fn widen(text: &str, rows: usize) -> String {
    let Some((head, tail)) = text.split_once("VALUES (") else { return text.to_owned() };
    let Some((tuple, tail)) = tail.split_once(')') else { return text.to_owned() };
    let one = format!("({tuple})");
    format!("{head}VALUES {}{tail}", vec![one; rows].join(", "))
}

/// How many rows one statement writes: few widths, so that each is prepared once.
const WIDTHS: [usize; 4] = [64, 16, 4, 1];

/// One transaction of the writer.
pub(super) struct Tx<'a> {
    pub conn: &'a mut Conn,
    pub cache: &'a mut Cache,
    /// Something may have become claimable, cancelled or lifted.
    pub moved: bool,
}

impl Tx<'_> {
    /// Writes `items` with as few statements as the widths allow. `text` has one tuple of placeholders after `VALUES`.
    pub async fn write<T: Sync>(
        &mut self,
        text: &'static str,
        items: &[T],
        bind: impl for<'q> Fn(Query<'q>, &T) -> Query<'q>,
    ) -> Result<u64> {
        let mut rest = items;
        let mut changed = 0;
        for width in WIDTHS {
            while rest.len() >= width {
                let (now, later) = rest.split_at(width);
                rest = later;
                let mut query = if width == 1 {
                    sqlx::query(text)
                } else {
                    sqlx::query(sqlx::AssertSqlSafe(self.cache.widened(text, width)))
                };
                for item in now {
                    query = bind(query, item);
                }
                changed += self.conn.run(query).await?;
            }
        }
        Ok(changed)
    }

    /// Draws `n` numbers of a counter; the first of them.
    pub async fn draw(&mut self, counter: &'static str, n: usize) -> Result<i64> {
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        let last = self.conn.number(sqlx::query(sql!("draw")).bind(counter).bind(n)).await?;
        Ok(last - n + 1)
    }

    /// Adds to lanes' counts of claimable turns.
    pub async fn ready(&mut self, deltas: &HashMap<i64, i64>) -> Result<()> {
        let list: Vec<(i64, i64)> = deltas.iter().filter(|(_, by)| **by != 0).map(|(id, by)| (*id, *by)).collect();
        if !list.is_empty() {
            self.conn.run(sqlx::query(sql!("lanes_ready")).bind(json(&list)?)).await?;
        }
        Ok(())
    }
}

/// A list as the argument of `json_each`. Numbers and hex digits only, but where a statement says otherwise.
pub(super) fn json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::Undecodable { what: "a list of arguments", why: e.to_string() })
}

/// A UUID as the hex digits that `unhex` reads.
pub(super) fn hex(id: Uuid) -> String {
    id.simple().to_string()
}

/// A UUID as it is stored.
pub(super) fn blob(id: Uuid) -> Vec<u8> {
    id.as_bytes().to_vec()
}

/// A column.
pub(super) fn at<'r, T>(row: &'r SqliteRow, index: usize) -> Result<T>
where
    T: Decode<'r, Sqlite> + Type<Sqlite>,
{
    row.try_get(index).map_err(|e| Error::Undecodable { what: "a column", why: e.to_string() })
}

pub(super) fn uuid_at(row: &SqliteRow, index: usize) -> Result<Uuid> {
    let bytes: &[u8] = at(row, index)?;
    Uuid::from_slice(bytes).map_err(|e| Error::Undecodable { what: "an id", why: e.to_string() })
}

pub(super) fn uuid_opt(row: &SqliteRow, index: usize) -> Result<Option<Uuid>> {
    let bytes: Option<&[u8]> = at(row, index)?;
    bytes.map(|b| Uuid::from_slice(b).map_err(|e| Error::Undecodable { what: "an id", why: e.to_string() })).transpose()
}

pub(super) fn job_at(row: &SqliteRow, index: usize) -> Result<JobId> {
    uuid_at(row, index).map(JobId)
}

pub(super) fn hold_at(row: &SqliteRow, index: usize) -> Result<HoldId> {
    uuid_at(row, index).map(HoldId)
}

pub(super) fn fence_at(row: &SqliteRow, index: usize) -> Result<Fence> {
    at(row, index).map(Fence)
}

/// An integer column that fits a narrower type.
pub(super) fn int<T: TryFrom<i64>>(row: &SqliteRow, index: usize) -> Result<T> {
    let wide: i64 = at(row, index)?;
    T::try_from(wide).map_err(|_| Error::Undecodable { what: "a number", why: format!("{wide} is out of range") })
}

pub(super) fn int_opt<T: TryFrom<i64>>(row: &SqliteRow, index: usize) -> Result<Option<T>> {
    let wide: Option<i64> = at(row, index)?;
    wide.map(|wide| {
        T::try_from(wide).map_err(|_| Error::Undecodable { what: "a number", why: format!("{wide} is out of range") })
    })
    .transpose()
}

/// A counter of a turn. One that is out of range reads as the nearest that is in it: a damaged row must stop neither the
/// batch that it stands in nor the rescue of others, and a job whose counter is at its end fails by it.
pub(super) fn counter(row: &SqliteRow, index: usize) -> Result<u32> {
    let wide: i64 = at(row, index)?;
    Ok(u32::try_from(wide.max(0)).unwrap_or(u32::MAX))
}

/// A text that is read further on. One that cannot be decoded reads as empty, which is no valid text there: its own job
/// fails by it, and no other.
pub(super) fn text_at(row: &SqliteRow, index: usize) -> String {
    at(row, index).unwrap_or_else(|error| {
        tracing::error!(%error, "a damaged text was read as empty");
        String::new()
    })
}

#[cfg(test)]
mod tests {
    use super::widen;

    #[test]
    fn a_statement_is_widened_at_its_one_tuple() {
        assert_eq!(
            widen("WITH e (a, b) AS (VALUES (?, ?)) UPDATE t", 3),
            "WITH e (a, b) AS (VALUES (?, ?), (?, ?), (?, ?)) UPDATE t"
        );
        assert_eq!(widen("DELETE FROM t", 2), "DELETE FROM t");
    }
}
