//! A SQLite file of its own for every test.

use crate::conformance::{CONTRADICTIONS, Harness, T0};
use reprieve::clock::Clock;
use reprieve::store::Sqlite;
use reprieve::store::sqlite::OpenOptions;
use sqlx::Connection;
use std::path::PathBuf;
use tempfile::TempDir;

pub struct SqliteHarness {
    store: Sqlite,
    dir: TempDir,
}

pub async fn fresh() -> SqliteHarness {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("store.db"), OpenOptions::default()).await.unwrap();
    SqliteHarness { store, dir }
}

pub async fn open(path: &std::path::Path, options: OpenOptions) -> reprieve::store::Result<Sqlite> {
    Sqlite::open(&format!("sqlite://{}", path.display()), Clock::manual(T0), options).await
}

impl SqliteHarness {
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("store.db")
    }
}

impl Harness for SqliteHarness {
    type S = Sqlite;

    fn store(&self) -> &Sqlite {
        &self.store
    }

    async fn write_as_newer(&self, statement: &'static str) {
        let mut conn = sqlx::SqliteConnection::connect(&format!("sqlite://{}", self.path().display())).await.unwrap();
        sqlx::query("PRAGMA ignore_check_constraints = ON").execute(&mut conn).await.unwrap();
        let wrote = sqlx::query(statement).execute(&mut conn).await.unwrap();
        assert_eq!(wrote.rows_affected(), 1, "{statement}");
    }

    async fn contradictions(&self) -> Vec<String> {
        let mut conn = sqlx::SqliteConnection::connect(&format!("sqlite://{}", self.path().display())).await.unwrap();
        let mut all = Vec::new();
        let foreign_keys = "SELECT 'foreign key of ' || \"table\" FROM pragma_foreign_key_check";
        for query in CONTRADICTIONS.iter().chain([&foreign_keys]) {
            all.extend(sqlx::query_scalar::<_, String>(*query).fetch_all(&mut conn).await.unwrap());
        }
        all
    }
}
