//! A SQLite file as one end of a move (`store::transfer`). Its statements are made from the list of tables there.

use super::conn::{Conn, Query};
use super::tx::{at, uuid_at, uuid_opt};
use super::{OpenOptions, care, migrate, open};
use crate::clock::Clock;
use crate::store::transfer::{
    self, BYTES, Busy, HIGHEST, Hold, Key, Kind, Numbers, OWN_COUNTERS, PROGRESS, Progress, ROWS, Row, Sum, Table,
    Value, rows_within,
};
use crate::store::{Error, Result, WorkerId};
use sqlx::AssertSqlSafe;
use sqlx::sqlite::SqliteRow;

/// How many arguments a statement takes: SQLite's own limit is 32,766.
const ARGUMENTS: usize = 30_000;
/// How many rows one statement writes: few widths, so that each is prepared once.
const WIDTHS: [usize; 4] = [256, 64, 8, 1];

#[derive(Debug)]
pub(in crate::store) struct End {
    conn: Conn,
    url: String,
    file: String,
}

fn query(text: String) -> Query<'static> {
    sqlx::query(AssertSqlSafe(text))
}

fn bind<'q>(query: Query<'q>, value: &'q Value) -> Query<'q> {
    match value {
        Value::Null => query.bind(None::<i64>),
        Value::Id(id) => query.bind(id.as_bytes().as_slice()),
        Value::Int(number) => query.bind(*number),
        Value::Text(text) => query.bind(text.as_str()),
    }
}

fn read(row: &SqliteRow, index: usize, kind: Kind) -> Result<Value> {
    Ok(match kind {
        Kind::Id => uuid_opt(row, index)?.map_or(Value::Null, Value::Id),
        Kind::Int => at::<Option<i64>>(row, index)?.map_or(Value::Null, Value::Int),
        Kind::Text => at::<Option<String>>(row, index)?.map_or(Value::Null, Value::Text),
    })
}

/// What stands behind a key, in order; `what` of it.
fn behind(table: &Table, what: &str, after: Option<&Key>, limit: usize) -> String {
    let keys = table.key_listed();
    let from = after.map_or_else(String::new, |key| {
        let marks = vec!["?"; key.0.len()].join(", ");
        format!("WHERE ({keys}) > ({marks}) ")
    });
    format!("SELECT {what} FROM {} {from}ORDER BY {keys} LIMIT {limit}", table.name)
}

impl End {
    /// A file that is there, with this release's schema.
    pub async fn existing(url: &str) -> Result<Self> {
        let refuse = |why: String| Error::Open { url: url.to_owned(), why };
        let Some(mut conn) = care::existing(url).await? else {
            return Err(refuse("the file does not exist".to_owned()));
        };
        let found = migrate::bare_version(&mut conn).await?;
        if found != migrate::known() {
            let known = migrate::known();
            return Err(refuse(format!(
                "its schema has version {found}, and this release's is {known}; run `reprieve migrate up` on it"
            )));
        }
        Self::of(url, conn)
    }

    /// The same; or a new file, with this release's schema.
    pub async fn existing_or_new(url: &str) -> Result<Self> {
        let there = match care::existing(url).await? {
            None => false,
            Some(mut conn) => {
                let found = migrate::bare_version(&mut conn).await;
                conn.close().await;
                found? > 0
            }
        };
        if !there {
            let options = OpenOptions::default();
            open::writer(url, &open::connect_options(url, &options)?, &options).await?.close().await;
        }
        Self::existing(url).await
    }

    fn of(url: &str, conn: Conn) -> Result<Self> {
        let connect = open::connect_options(url, &OpenOptions::default())?;
        let file = connect.get_filename();
        let file = file.canonicalize().unwrap_or_else(|_| file.to_owned()).display().to_string();
        Ok(Self { conn, url: url.to_owned(), file })
    }

    /// One transaction; `work` says whether it stands.
    async fn commit(&mut self, done: Result<bool>) -> Result<bool> {
        let end = if matches!(done, Ok(true)) { "COMMIT" } else { "ROLLBACK" };
        let ended = self.conn.script(end).await;
        let done = done?;
        ended.map(|()| done)
    }

    async fn insert(&mut self, table: &Table, rows: &[Row]) -> Result<()> {
        let columns = table.columns().count();
        let mut rest = rows;
        for width in WIDTHS.into_iter().filter(|width| width * columns <= ARGUMENTS) {
            while rest.len() >= width {
                let (now, later) = rest.split_at(width);
                rest = later;
                // Without numbers: SQLite looks a numbered one up in a list of them all.
                let tuple = format!("({})", vec!["?"; columns].join(", "));
                let tuples = vec![tuple; width];
                let text = format!("INSERT INTO {} ({}) VALUES {}", table.name, table.listed(), tuples.join(", "));
                self.conn.run(now.iter().flatten().fold(query(text), bind)).await?;
            }
        }
        Ok(())
    }

    async fn written(&mut self, table: &Table, rows: &[Row], before: u64, after: &Progress) -> Result<bool> {
        self.insert(table, rows).await?;
        let key = after.last.as_ref().map(Key::kept).transpose()?;
        let note = "UPDATE transfer SET last_key = ?, moved = ?, digest = ? WHERE name = ? AND moved = ?";
        let note = sqlx::query(note)
            .bind(key)
            .bind(after.moved.counted())
            .bind(after.moved.to_string())
            .bind(table.name)
            .bind(i64::try_from(before).unwrap_or(i64::MAX));
        Ok(self.conn.run(note).await? == 1)
    }

    async fn noted(&mut self, all: &[Progress]) -> Result<bool> {
        self.conn.script(PROGRESS).await?;
        for one in all {
            let note = "INSERT INTO transfer (name, source, last_key, moved, digest) VALUES (?, ?, NULL, 0, ?)";
            self.conn.run(sqlx::query(note).bind(&one.name).bind(&one.source).bind(one.moved.to_string())).await?;
        }
        Ok(true)
    }

    async fn set(&mut self, numbers: &Numbers) -> Result<bool> {
        let highest = self.conn.number(query(HIGHEST.replace("{}", "?1")).bind(numbers.sequence)).await?;
        let counters = numbers.counters.iter().map(|(name, value)| (name.as_str(), *value));
        for (name, value) in counters.chain([("sequence", highest)]) {
            let set = "INSERT INTO counters (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            self.conn.run(sqlx::query(set).bind(name).bind(value)).await?;
        }
        // No worker's number is used twice: what is kept of a hold may name one.
        self.conn.run(sqlx::query("DELETE FROM sqlite_sequence WHERE name = 'workers'")).await?;
        let set = "INSERT INTO sqlite_sequence (name, seq) VALUES ('workers', ?)";
        self.conn.run(sqlx::query(set).bind(numbers.workers)).await?;
        Ok(true)
    }
}

impl transfer::End for End {
    fn shown(&self) -> &str {
        &self.url
    }

    async fn identity(&mut self) -> Result<String> {
        Ok(format!("sqlite {}", self.file))
    }

    async fn hold(&mut self, how: Hold) -> Result<()> {
        self.conn
            .script(match how {
                Hold::Seen => "BEGIN",
                // The lock that every write takes; nothing is written under it.
                Hold::Still => "BEGIN IMMEDIATE",
            })
            .await
    }

    async fn release(&mut self) -> Result<()> {
        self.conn.script("ROLLBACK").await
    }

    async fn busy(&mut self, now_ms: Option<i64>) -> Result<Busy> {
        let now_ms = now_ms.unwrap_or_else(|| Clock::system().now_ms());
        let text = "SELECT worker_id, ?1 - heartbeat_ms FROM workers
                    WHERE ended_ms IS NULL AND heartbeat_ms + lease_ms > ?1 ORDER BY worker_no";
        let mut busy = Busy::default();
        for row in &self.conn.all(sqlx::query(text).bind(now_ms)).await? {
            busy.workers.push((WorkerId(uuid_at(row, 0)?), at(row, 1)?));
        }
        busy.running = self.conn.number(sqlx::query("SELECT count(*) FROM turns WHERE state = 2")).await?;
        Ok(busy)
    }

    async fn count(&mut self, table: &'static str) -> Result<u64> {
        let count = self.conn.number(query(format!("SELECT count(*) FROM {table}"))).await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    async fn page(&mut self, table: &Table, after: Option<&Key>) -> Result<Vec<Row>> {
        let values = || after.into_iter().flat_map(|key| &key.0);
        let mut limit = ROWS;
        if !table.long.is_empty() {
            let lengths: Vec<String> =
                table.long.split_whitespace().map(|name| format!("coalesce(octet_length(\"{name}\"), 0)")).collect();
            let text = behind(table, &lengths.join(" + "), after, ROWS);
            let found = self.conn.all(values().fold(query(text), bind)).await?;
            let sizes = found.iter().map(|row| at::<i64>(row, 0)).collect::<Result<Vec<i64>>>()?;
            limit = rows_within(BYTES, sizes);
        }
        let text = behind(table, &table.listed(), after, limit);
        let found = self.conn.all(values().fold(query(text), bind)).await?;
        let kinds: Vec<Kind> = table.columns().map(|column| column.kind).collect();
        let row = |row: &SqliteRow| kinds.iter().enumerate().map(|(at, kind)| read(row, at, *kind)).collect();
        found.iter().map(row).collect()
    }

    async fn numbers(&mut self) -> Result<Numbers> {
        let mut numbers = Numbers::default();
        for row in &self.conn.all(sqlx::query("SELECT name, value FROM counters")).await? {
            let (name, value): (String, i64) = (at(row, 0)?, at(row, 1)?);
            if name == "sequence" {
                numbers.sequence = value;
            } else if !OWN_COUNTERS.contains(&name.as_str()) {
                numbers.counters.insert(name, value);
            }
        }
        let workers = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'workers'";
        numbers.workers = self.conn.number(sqlx::query(workers)).await?;
        Ok(numbers)
    }

    async fn progress(&mut self) -> Result<Option<Vec<Progress>>> {
        if !migrate::unfinished(&mut self.conn).await? {
            return Ok(None);
        }
        let rows = self.conn.all(sqlx::query("SELECT name, source, last_key, moved, digest FROM transfer")).await?;
        let mut all = Vec::new();
        for row in &rows {
            let last: Option<String> = at(row, 2)?;
            all.push(Progress {
                name: at(row, 0)?,
                source: at(row, 1)?,
                last: last.as_deref().map(Key::read).transpose()?,
                moved: Sum::read(at(row, 3)?, &at::<String>(row, 4)?)?,
            });
        }
        Ok(Some(all))
    }

    async fn begin(&mut self, all: &[Progress]) -> Result<()> {
        self.conn.script("BEGIN IMMEDIATE").await?;
        let done = self.noted(all).await;
        self.commit(done).await.map(drop)
    }

    async fn write(&mut self, table: &Table, rows: &[Row], before: u64, after: &Progress) -> Result<bool> {
        self.conn.script("BEGIN IMMEDIATE").await?;
        let done = self.written(table, rows, before, after).await;
        self.commit(done).await
    }

    async fn settle(&mut self, numbers: &Numbers) -> Result<()> {
        self.conn.script("BEGIN IMMEDIATE").await?;
        let done = self.set(numbers).await;
        self.commit(done).await.map(drop)
    }

    async fn finish(&mut self) -> Result<()> {
        self.conn.script("DROP TABLE transfer").await
    }

    async fn close(self) {
        self.conn.close().await;
    }
}
