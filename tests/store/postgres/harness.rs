//! A schema of its own for every test.

use super::cluster::shared;
use crate::conformance::{CONTRADICTIONS, Harness, T0};
use reprieve::clock::Clock;
use reprieve::store::Postgres;
use reprieve::store::postgres::{Notify, OpenOptions, migrate};
use sqlx::{Connection, Executor, PgConnection};
use std::sync::atomic::{AtomicU32, Ordering};

pub struct PgHarness {
    pub store: Postgres,
    pub url: String,
    pub schema: String,
}

/// A schema name that nobody had before.
pub fn schema() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

pub fn options(schema: &str) -> OpenOptions {
    OpenOptions { schema: schema.to_owned(), pool: 4, ..OpenOptions::default() }
}

pub async fn fresh() -> PgHarness {
    fresh_with(Notify::Listen).await
}

/// As a transaction pooler would have it.
pub async fn fresh_polling() -> PgHarness {
    fresh_with(Notify::Poll).await
}

async fn fresh_with(notify: Notify) -> PgHarness {
    let (url, schema) = (shared().url(), schema());
    migrate::up(&url, &options(&schema)).await.unwrap();
    let options = OpenOptions { notify, ..options(&schema) };
    let store = Postgres::open(&url, Clock::manual(T0), options).await.unwrap();
    PgHarness { store, url, schema }
}

/// A connection past the store.
pub async fn connect(url: &str, schema: &str) -> PgConnection {
    let mut conn = PgConnection::connect(url).await.unwrap();
    conn.execute(sqlx::AssertSqlSafe(format!("SET search_path = {schema}"))).await.unwrap();
    conn
}

impl PgHarness {
    pub async fn connect(&self) -> PgConnection {
        connect(&self.url, &self.schema).await
    }
}

impl Harness for PgHarness {
    type S = Postgres;

    fn store(&self) -> &Postgres {
        &self.store
    }

    async fn write_as_newer(&self, statement: &'static str) {
        let mut conn = self.connect().await;
        conn.execute("ALTER TABLE jobs DROP CONSTRAINT IF EXISTS jobs_state").await.unwrap();
        let wrote = sqlx::query(statement).execute(&mut conn).await.unwrap();
        assert_eq!(wrote.rows_affected(), 1, "{statement}");
    }

    async fn contradictions(&self) -> Vec<String> {
        let mut conn = self.connect().await;
        let mut all = Vec::new();
        for query in CONTRADICTIONS {
            all.extend(sqlx::query_scalar::<_, String>(*query).fetch_all(&mut conn).await.unwrap());
        }
        all
    }
}
