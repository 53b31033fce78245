//! A Postgres schema as one end of a move (`store::transfer`). Its statements are made from the list of tables there; nothing
//! outlives a transaction, so that any pooler will do.

use super::conn::connect;
use super::escape;
use super::fault::{Fault, Res};
use super::migrate;
use super::open::{self, Notify, OpenOptions, shown};
use super::rows::{self, Column as _};
use crate::store::transfer::{
    self, BYTES, Busy, HIGHEST, Hold, Key, Kind, Numbers, OWN_COUNTERS, PROGRESS, Progress, ROWS, Row, Sum, TABLES,
    Table, Value, rows_within,
};
use crate::store::{Error, Result, WorkerId};
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::{Arguments, AssertSqlSafe, Connection, Encode, Postgres, Type};
use std::time::Duration;
use uuid::Uuid;

/// How long one statement may take until the server is taken for lost.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

#[derive(Debug)]
pub(in crate::store) struct End {
    conn: PgConnection,
    url: String,
    options: OpenOptions,
    /// What every transaction begins with.
    settings: String,
    /// A transaction is open.
    held: bool,
}

/// A statement that is made here, with its arguments.
struct Stmt {
    text: String,
    args: PgArguments,
    wrong: Option<String>,
}

fn stmt(text: impl Into<String>) -> Stmt {
    Stmt { text: text.into(), args: PgArguments::default(), wrong: None }
}

impl Stmt {
    fn arg<'t, T: Encode<'t, Postgres> + Type<Postgres>>(mut self, value: T) -> Self {
        if let Err(error) = self.args.add(value) {
            self.wrong = Some(error.to_string());
        }
        self
    }

    fn value(self, value: &Value) -> Self {
        match value {
            Value::Null => self.arg(None::<i64>),
            Value::Id(id) => self.arg(*id),
            Value::Int(number) => self.arg(*number),
            Value::Text(text) => self.arg(&*escape::keep(text)),
        }
    }

    /// One column of many rows.
    fn column(self, rows: &[Row], place: usize, kind: Kind) -> Self {
        let values = || rows.iter().map(|row| row.get(place));
        match kind {
            Kind::Id => self.arg(
                values()
                    .map(|value| if let Some(Value::Id(id)) = value { Some(*id) } else { None })
                    .collect::<Vec<_>>(),
            ),
            Kind::Int => self.arg(
                values().map(|value| if let Some(Value::Int(n)) = value { Some(*n) } else { None }).collect::<Vec<_>>(),
            ),
            Kind::Text => {
                let texts = values().map(|value| match value {
                    Some(Value::Text(text)) => Some(escape::keep(text)),
                    _ => None,
                });
                let kept: Vec<_> = texts.collect();
                self.arg(kept.iter().map(Option::as_deref).collect::<Vec<Option<&str>>>())
            }
        }
    }
}

fn read(row: &PgRow, index: usize, kind: Kind) -> Result<Value> {
    Ok(match kind {
        Kind::Id => rows::at::<Option<Uuid>>(row, index)?.map_or(Value::Null, Value::Id),
        Kind::Int => rows::at::<Option<i64>>(row, index)?.map_or(Value::Null, Value::Int),
        Kind::Text => rows::at::<Option<String>>(row, index)?.map_or(Value::Null, Value::Text),
    })
}

/// What stands behind a key, in order; `what` of it.
fn behind(table: &Table, what: &str, after: Option<&Key>, limit: usize) -> Stmt {
    let keys = table.key_listed();
    let from = after.map_or_else(String::new, |key| {
        let marks: Vec<String> = (1..=key.0.len()).map(|at| format!("${at}")).collect();
        format!("WHERE ({keys}) > ({}) ", marks.join(", "))
    });
    let text = format!("SELECT {what} FROM {} {from}ORDER BY {keys} LIMIT {limit}", table.name);
    after.into_iter().flat_map(|key| &key.0).fold(stmt(text), Stmt::value)
}

/// What lists of resets filter by, out of the candidates' document: each a list as Postgres writes one.
fn candidates(rows: &[Row], table: &Table) -> [Vec<String>; 3] {
    let place = table.columns().position(|column| column.name == "candidates");
    ["source", "name", "verdict"].map(|member| {
        let of_row = |row: &Row| {
            let text = match place.and_then(|place| row.get(place)) {
                Some(Value::Text(text)) => text.as_str(),
                _ => "[]",
            };
            // A document that is none has no candidates to be found by.
            let all: Vec<serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
            let word =
                |one: &serde_json::Value| one.get(member).and_then(|word| word.as_str()).unwrap_or_default().to_owned();
            listed(all.iter().map(word))
        };
        rows.iter().map(of_row).collect()
    })
}

/// `{"a","b\"c"}`.
fn listed(words: impl Iterator<Item = String>) -> String {
    let quoted = words.map(|word| format!("\"{}\"", escape::keep(&word).replace('\\', "\\\\").replace('"', "\\\"")));
    format!("{{{}}}", quoted.collect::<Vec<_>>().join(","))
}

impl End {
    /// A database that has this release's schema.
    pub async fn open(url: &str, options: &OpenOptions) -> Result<Self> {
        let told = |fault: Fault| fault.told(&shown(url), options.waits());
        migrate::verify_bare(url, options).await?;
        let made = open::connect_options(url, options)?.statement_cache_capacity(0);
        let bare = OpenOptions { notify: Notify::Poll, ..options.clone() };
        let conn = connect(&made, &bare).await.map_err(told)?;
        let settings = format!(
            "{} SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0",
            options.settings("LOCAL ")
        );
        Ok(Self { conn, url: shown(url), options: options.clone(), settings, held: false })
    }

    fn told(&self, fault: Fault) -> Error {
        fault.told(&self.url, self.options.waits())
    }

    async fn script(&mut self, text: String) -> Res<Vec<PgRow>> {
        let work = sqlx::raw_sql(AssertSqlSafe(text)).fetch_all(&mut self.conn);
        match tokio::time::timeout(PATIENCE, work).await {
            Ok(done) => done.map_err(Fault::Sql),
            Err(_) => Err(Fault::Silent),
        }
    }

    async fn all(&mut self, stmt: Stmt) -> Res<Vec<PgRow>> {
        if let Some(why) = stmt.wrong {
            return Err(Error::Undecodable { what: "an argument", why }.into());
        }
        let query = sqlx::query_with(AssertSqlSafe(stmt.text), stmt.args).persistent(false);
        match tokio::time::timeout(PATIENCE, query.fetch_all(&mut self.conn)).await {
            Ok(done) => done.map_err(Fault::Sql),
            Err(_) => Err(Fault::Silent),
        }
    }

    async fn run(&mut self, stmt: Stmt) -> Res<u64> {
        if let Some(why) = stmt.wrong {
            return Err(Error::Undecodable { what: "an argument", why }.into());
        }
        let query = sqlx::query_with(AssertSqlSafe(stmt.text), stmt.args).persistent(false);
        match tokio::time::timeout(PATIENCE, query.execute(&mut self.conn)).await {
            Ok(done) => done.map(|done| done.rows_affected()).map_err(Fault::Sql),
            Err(_) => Err(Fault::Silent),
        }
    }

    async fn number(&mut self, stmt: Stmt) -> Res<i64> {
        let rows = self.all(stmt).await?;
        let first = rows.first().map(|row| Option::<i64>::read(row, 0)).transpose().map_err(Fault::Sql)?;
        Ok(first.flatten().unwrap_or(0))
    }

    /// Begins a transaction, where none is held.
    async fn enter(&mut self) -> Res<bool> {
        if self.held {
            return Ok(false);
        }
        self.script(format!("BEGIN; {}", self.settings)).await?;
        Ok(true)
    }

    /// Ends what [`End::enter`] began.
    async fn leave<T>(&mut self, entered: bool, done: Res<T>, stands: bool) -> Res<T> {
        if entered {
            let end = if stands && done.is_ok() { "COMMIT" } else { "ROLLBACK" };
            let ended = self.script(end.to_owned()).await;
            let done = done?;
            ended.map(|_| done)
        } else {
            done
        }
    }

    async fn busy_now(&mut self, now_ms: Option<i64>) -> Res<Busy> {
        let text = "SELECT worker_id, now_ms - heartbeat_ms FROM workers, (SELECT coalesce($1::bigint, \
                    floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now_ms) AS clock
                    WHERE ended_ms IS NULL AND heartbeat_ms + lease_ms > now_ms ORDER BY worker_no";
        let mut busy = Busy::default();
        for row in &self.all(stmt(text).arg(now_ms)).await? {
            busy.workers.push((WorkerId(rows::at(row, 0)?), rows::at(row, 1)?));
        }
        busy.running = self.number(stmt("SELECT count(*) FROM turns WHERE state = 2")).await?;
        Ok(busy)
    }

    async fn page_of(&mut self, table: &Table, after: Option<&Key>) -> Res<Vec<Row>> {
        let mut limit = ROWS;
        if !table.long.is_empty() {
            let length = |name| format!("coalesce(octet_length(\"{name}\"), 0)::bigint");
            let lengths: Vec<String> = table.long.split_whitespace().map(length).collect();
            let found = self.all(behind(table, &lengths.join(" + "), after, ROWS)).await?;
            let sizes = found.iter().map(|row| rows::at(row, 0)).collect::<Result<Vec<i64>>>()?;
            limit = rows_within(BYTES, sizes);
        }
        let found = self.all(behind(table, &table.listed(), after, limit)).await?;
        let kinds: Vec<Kind> = table.columns().map(|column| column.kind).collect();
        let row = |row: &PgRow| kinds.iter().enumerate().map(|(at, kind)| read(row, at, *kind)).collect();
        Ok(found.iter().map(row).collect::<Result<Vec<Row>>>()?)
    }

    async fn numbers_now(&mut self) -> Res<Numbers> {
        let mut numbers = Numbers::default();
        for row in &self.all(stmt("SELECT name, value FROM counters")).await? {
            let (name, value): (String, i64) = (rows::at(row, 0)?, rows::at(row, 1)?);
            if !OWN_COUNTERS.contains(&name.as_str()) {
                numbers.counters.insert(name, value);
            }
        }
        numbers.sequence = self.number(stmt("SELECT pg_sequence_last_value('draws'::regclass)")).await?;
        let workers = "SELECT pg_sequence_last_value(pg_get_serial_sequence('workers', 'worker_no')::regclass)";
        numbers.workers = self.number(stmt(workers)).await?;
        Ok(numbers)
    }

    async fn progress_now(&mut self) -> Res<Option<Vec<Progress>>> {
        let there = format!("SELECT to_regclass('\"{}\".transfer') IS NOT NULL", self.options.schema);
        let rows = self.all(stmt(there)).await?;
        if !rows.first().map(|row| rows::at::<bool>(row, 0)).transpose()?.unwrap_or(false) {
            return Ok(None);
        }
        let mut all = Vec::new();
        for row in &self.all(stmt("SELECT name, source, last_key, moved, digest FROM transfer")).await? {
            let last: Option<String> = rows::at(row, 2)?;
            all.push(Progress {
                name: rows::at(row, 0)?,
                source: rows::at(row, 1)?,
                last: last.as_deref().map(Key::read).transpose()?,
                moved: Sum::read(rows::at(row, 3)?, &rows::at::<String>(row, 4)?)?,
            });
        }
        Ok(Some(all))
    }

    async fn noted(&mut self, all: &[Progress]) -> Res<()> {
        self.script(PROGRESS.to_owned()).await?;
        for one in all {
            let note = "INSERT INTO transfer (name, source, last_key, moved, digest) VALUES ($1, $2, NULL, 0, $3)";
            self.run(stmt(note).arg(&*one.name).arg(&*one.source).arg(one.moved.to_string())).await?;
        }
        Ok(())
    }

    async fn written(&mut self, table: &Table, rows: &[Row], before: u64, after: &Progress) -> Res<bool> {
        let mut places = Vec::new();
        let mut arguments = stmt("");
        for (place, column) in table.columns().enumerate() {
            let kind = match column.kind {
                Kind::Id => "uuid",
                Kind::Int => "bigint",
                Kind::Text => "text",
            };
            places.push(format!("${}::{kind}[]", place + 1));
            arguments = arguments.column(rows, place, column.kind);
        }
        let (mut own, mut taken) = ("", "*".to_owned());
        if table.name == "reset_evidence" {
            own = ", candidate_kinds, candidate_names, candidate_verdicts";
            let mut names: Vec<String> = (1..=places.len() + 3).map(|n| format!("c{n}")).collect();
            for list in candidates(rows, table) {
                places.push(format!("${}::text[]", places.len() + 1));
                arguments = arguments.arg(list);
            }
            let as_lists = names.split_off(names.len() - 3).into_iter().map(|name| format!("{name}::text[]"));
            taken = names.into_iter().chain(as_lists).collect::<Vec<_>>().join(", ");
        }
        let names: Vec<String> = (1..=places.len()).map(|n| format!("c{n}")).collect();
        arguments.text = format!(
            "INSERT INTO {} ({}{own}) OVERRIDING SYSTEM VALUE SELECT {taken} FROM unnest({}) AS rows ({})",
            table.name,
            table.listed(),
            places.join(", "),
            names.join(", ")
        );
        self.run(arguments).await?;
        let key = after.last.as_ref().map(Key::kept).transpose()?;
        let note = stmt("UPDATE transfer SET last_key = $1, moved = $2, digest = $3 WHERE name = $4 AND moved = $5")
            .arg(key)
            .arg(after.moved.counted())
            .arg(after.moved.to_string())
            .arg(table.name)
            .arg(i64::try_from(before).unwrap_or(i64::MAX));
        Ok(self.run(note).await? == 1)
    }

    async fn set(&mut self, numbers: &Numbers) -> Res<()> {
        for (name, value) in &numbers.counters {
            let set = "INSERT INTO counters (name, value) VALUES ($1, $2)
                       ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            self.run(stmt(set).arg(name.as_str()).arg(*value)).await?;
        }
        let highest = self.number(stmt(HIGHEST.replace("{}", "$1::bigint")).arg(numbers.sequence)).await?;
        let drawn = [
            ("'draws'", "$1::bigint"),
            ("pg_get_serial_sequence('scopes', 'scope_id')", "(SELECT max(scope_id) FROM scopes)"),
            ("pg_get_serial_sequence('lanes', 'lane_id')", "(SELECT max(lane_id) FROM lanes)"),
            ("pg_get_serial_sequence('hold_events', 'event_no')", "(SELECT max(event_no) FROM hold_events)"),
        ];
        for (sequence, latest) in drawn {
            let set = format!(
                "SELECT setval({sequence}::regclass, greatest({latest}, pg_sequence_last_value({sequence}::regclass)))
                 WHERE {latest} > 0"
            );
            let set = stmt(set);
            self.all(if sequence == "'draws'" { set.arg(highest) } else { set }).await?;
        }
        // No worker's number is used twice: what is kept of a hold may name one.
        let workers = "pg_get_serial_sequence('workers', 'worker_no')::regclass";
        let set = format!(
            "SELECT setval({workers}, greatest($1::bigint, pg_sequence_last_value({workers}))) WHERE $1::bigint > 0"
        );
        self.all(stmt(set).arg(numbers.workers)).await?;
        Ok(())
    }
}

impl transfer::End for End {
    fn shown(&self) -> &str {
        &self.url
    }

    async fn identity(&mut self) -> Result<String> {
        let text = "SELECT pg_postmaster_start_time()::text || ' ' || d.oid::text FROM pg_database AS d
                    WHERE d.datname = current_database()";
        let found = self.all(stmt(text)).await.map_err(|fault| self.told(fault))?;
        let server: String = found.first().map(|row| rows::at(row, 0)).transpose()?.unwrap_or_default();
        Ok(format!("postgres {server} {}", self.options.schema))
    }

    async fn hold(&mut self, how: Hold) -> Result<()> {
        let names: Vec<&str> = TABLES.iter().map(|table| table.name).chain(["workers", "counters"]).collect();
        // Before the first look, so that what is seen is what is locked.
        let lock = match how {
            Hold::Seen => String::new(),
            Hold::Still => format!("; LOCK TABLE {} IN SHARE MODE", names.join(", ")),
        };
        let begin = format!("BEGIN ISOLATION LEVEL REPEATABLE READ; {}{lock}", self.settings);
        self.script(begin).await.map_err(|fault| self.told(fault))?;
        self.held = true;
        Ok(())
    }

    async fn release(&mut self) -> Result<()> {
        self.held = false;
        self.script("ROLLBACK".to_owned()).await.map(drop).map_err(|fault| self.told(fault))
    }

    async fn busy(&mut self, now_ms: Option<i64>) -> Result<Busy> {
        self.busy_now(now_ms).await.map_err(|fault| self.told(fault))
    }

    async fn count(&mut self, table: &'static str) -> Result<u64> {
        let done = async {
            let entered = self.enter().await?;
            let count = self.number(stmt(format!("SELECT count(*) FROM {table}"))).await;
            self.leave(entered, count, true).await
        };
        let count = done.await.map_err(|fault| self.told(fault))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    async fn page(&mut self, table: &Table, after: Option<&Key>) -> Result<Vec<Row>> {
        let done = async {
            let entered = self.enter().await?;
            let page = self.page_of(table, after).await;
            self.leave(entered, page, true).await
        };
        done.await.map_err(|fault| self.told(fault))
    }

    async fn numbers(&mut self) -> Result<Numbers> {
        let done = async {
            let entered = self.enter().await?;
            let numbers = self.numbers_now().await;
            self.leave(entered, numbers, true).await
        };
        done.await.map_err(|fault| self.told(fault))
    }

    async fn progress(&mut self) -> Result<Option<Vec<Progress>>> {
        let done = async {
            let entered = self.enter().await?;
            let progress = self.progress_now().await;
            self.leave(entered, progress, true).await
        };
        done.await.map_err(|fault| self.told(fault))
    }

    async fn begin(&mut self, all: &[Progress]) -> Result<()> {
        let done = async {
            let entered = self.enter().await?;
            let noted = self.noted(all).await;
            self.leave(entered, noted, true).await
        };
        done.await.map_err(|fault| self.told(fault))
    }

    async fn write(&mut self, table: &Table, rows: &[Row], before: u64, after: &Progress) -> Result<bool> {
        let done = async {
            let entered = self.enter().await?;
            let written = self.written(table, rows, before, after).await;
            let stands = matches!(written, Ok(true));
            self.leave(entered, written, stands).await
        };
        done.await.map_err(|fault| self.told(fault))
    }

    async fn settle(&mut self, numbers: &Numbers) -> Result<()> {
        let done = async {
            let entered = self.enter().await?;
            let set = self.set(numbers).await;
            self.leave(entered, set, true).await
        };
        done.await.map_err(|fault| self.told(fault))
    }

    async fn finish(&mut self) -> Result<()> {
        let done = async {
            let entered = self.enter().await?;
            let dropped = self.script("DROP TABLE transfer".to_owned()).await;
            self.leave(entered, dropped, true).await?;
            // Statistics of what was written in one go; autovacuum would come to it in a minute.
            let entered = self.enter().await?;
            let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
            let analysed = self.script(format!("ANALYZE {}", names.join(", "))).await;
            self.leave(entered, analysed, true).await
        };
        done.await.map(drop).map_err(|fault| self.told(fault))
    }

    async fn close(self) {
        if let Err(error) = self.conn.close().await {
            tracing::debug!(%error, "a database connection did not close cleanly");
        }
    }
}
