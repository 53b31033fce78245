//! What the database says, past the store's own seam: the same questions of both databases.

use crate::contradictions::CONTRADICTIONS;
use sqlx::{AssertSqlSafe, Connection, Row};
use std::time::Duration;

/// A server that does not answer is away.
const PATIENCE: Duration = Duration::from_secs(5);

/// A row whose columns were all cast to text; null is empty.
pub type Texts = Vec<String>;

/// Which database, and where.
#[derive(Clone, Debug)]
pub enum Ledger {
    Sqlite(String),
    Postgres(String),
}

pub type Res<T> = Result<T, sqlx::Error>;

impl Ledger {
    /// A statement in which `{id:x}` is the id in column `x` as 32 hexadecimal digits, and every column a text.
    fn dialect(&self, query: &str) -> String {
        let mut text = String::new();
        let mut rest = query;
        while let Some((before, after)) = rest.split_once("{id:") {
            let (column, after) = after.split_once('}').unwrap();
            text += before;
            text += &match self {
                Self::Sqlite(_) => format!("lower(hex({column}))"),
                Self::Postgres(_) => format!("replace(CAST({column} AS TEXT), '-', '')"),
            };
            rest = after;
        }
        text + rest
    }

    /// All rows of one query.
    pub async fn rows(&self, query: &str) -> Res<Vec<Texts>> {
        Ok(self.in_one_snapshot(&[query.to_owned()]).await?.remove(0))
    }

    /// All rows of each query, read at one instant.
    pub async fn in_one_snapshot(&self, queries: &[String]) -> Res<Vec<Vec<Texts>>> {
        let mut answers = Vec::new();
        match self {
            Self::Sqlite(url) => {
                let mut conn = sqlx::SqliteConnection::connect(url).await?;
                sqlx::query("BEGIN").execute(&mut conn).await?;
                for query in queries {
                    let rows = sqlx::query(AssertSqlSafe(self.dialect(query))).fetch_all(&mut conn).await?;
                    let text = |row: &sqlx::sqlite::SqliteRow, n| row.get::<Option<String>, _>(n).unwrap_or_default();
                    answers.push(rows.iter().map(|row| (0..row.len()).map(|n| text(row, n)).collect()).collect());
                }
                sqlx::query("COMMIT").execute(&mut conn).await?;
                conn.close().await?;
            }
            Self::Postgres(url) => {
                let mut conn = tokio::time::timeout(PATIENCE, sqlx::PgConnection::connect(url))
                    .await
                    .map_err(|_| sqlx::Error::PoolTimedOut)??;
                let begin = "SET search_path TO reprieve; BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
                sqlx::raw_sql(begin).execute(&mut conn).await?;
                for query in queries {
                    let rows = sqlx::query(AssertSqlSafe(self.dialect(query))).fetch_all(&mut conn).await?;
                    let text = |row: &sqlx::postgres::PgRow, n| row.get::<Option<String>, _>(n).unwrap_or_default();
                    answers.push(rows.iter().map(|row| (0..row.len()).map(|n| text(row, n)).collect()).collect());
                }
                sqlx::query("COMMIT").execute(&mut conn).await?;
                conn.close().await?;
            }
        }
        Ok(answers)
    }

    /// Everything in which the database contradicts itself, and damage of the file.
    pub async fn contradictions(&self) -> Res<Vec<String>> {
        let mut queries: Vec<String> = CONTRADICTIONS.iter().map(|query| (*query).to_owned()).collect();
        match self {
            // Its foreign keys it checks itself.
            Self::Postgres(_) => queries.retain(|query| !query.contains("pragma_")),
            Self::Sqlite(_) => queries.push("SELECT * FROM pragma_quick_check WHERE quick_check <> 'ok'".to_owned()),
        }
        Ok(self.in_one_snapshot(&queries).await?.into_iter().flatten().flatten().collect())
    }

    /// Turns in hand: job, fence, worker id.
    pub async fn in_hand(&self) -> Res<Vec<Texts>> {
        self.rows(
            "SELECT {id:t.job_id}, CAST(t.fence AS TEXT), {id:w.worker_id}
             FROM turns AS t JOIN workers AS w ON w.worker_no = t.worker_no WHERE t.state = 2",
        )
        .await
    }

    /// Live jobs, and ended ones.
    pub async fn left(&self) -> Res<(i64, i64)> {
        let counts = [
            "SELECT CAST(count(*) AS TEXT) FROM turns",
            "SELECT CAST(count(*) AS TEXT) FROM jobs WHERE state IS NOT NULL",
        ];
        let answers = self.in_one_snapshot(&counts.map(str::to_owned)).await?;
        Ok((answers[0][0][0].parse().unwrap(), answers[1][0][0].parse().unwrap()))
    }
}
