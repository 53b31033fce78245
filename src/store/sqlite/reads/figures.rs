//! Figures: queues as they are, and tokens as they were reported.

use super::columns::{pause, text, whole, whole_opt};
use super::standing::known_workers;
use super::{PAGE, size};
use crate::store::figures::{ENDS, HOUR_MS, OLDEST, Queues, TOKENS};
use crate::store::sqlite::conn::Conn;
use crate::store::sqlite::tx::{json, sql};
use crate::store::{Query, QueueRow, Result, UsageBy, UsageRow};
use sqlx::sqlite::SqliteRow;

pub(in crate::store::sqlite) async fn queues(conn: &mut Conn, now_ms: i64) -> Result<Vec<QueueRow>> {
    conn.begin_read().await?;
    let rows = queue_rows(conn, now_ms).await;
    conn.end_read().await;
    rows
}

async fn queue_rows(conn: &mut Conn, now_ms: i64) -> Result<Vec<QueueRow>> {
    let mut queues = Queues::default();
    let bound = sqlx::query(sql!("queues")).bind(now_ms.saturating_sub(HOUR_MS)).bind(ENDS).bind(OLDEST);
    for row in conn.all(bound).await? {
        queues.count(text(&row, 0), &text(&row, 1), whole(&row, 2), whole_opt(&row, 3));
    }
    for row in conn.all(sqlx::query(sql!("queues_paused"))).await? {
        queues.named(text(&row, 0)).paused = pause(&row, 1);
    }
    Ok(queues.rows(&known_workers(conn).await?, now_ms))
}

pub(in crate::store::sqlite) async fn usage(conn: &mut Conn, query: &Query, by: &UsageBy) -> Result<Vec<UsageRow>> {
    let (by, label) = match by {
        UsageBy::Model => ("model", None),
        UsageBy::Tenant => ("tenant", None),
        UsageBy::Queue => ("queue", None),
        UsageBy::Provider => ("provider", None),
        UsageBy::Account => ("account", None),
        UsageBy::Day => ("day", None),
        UsageBy::Label(key) => ("label", Some(key.as_str())),
    };
    let limit = if query.limit == 0 { PAGE } else { size(query) };
    let bound = sqlx::query(sql!("usage"))
        .bind(by)
        .bind(query.since_ms.unwrap_or(i64::MIN))
        .bind(query.until_ms.unwrap_or(i64::MAX))
        .bind(json(&query.queues)?)
        .bind(json(&query.tenants)?)
        .bind(json(&query.providers)?)
        .bind(json(&query.accounts)?)
        .bind(json(&query.models)?)
        .bind(json(&query.labels)?)
        .bind(label)
        .bind(i64::from(limit))
        .bind(TOKENS);
    let rows = conn.all(bound).await?;
    let usage = |row: &SqliteRow| UsageRow {
        value: text(row, 0),
        jobs: whole(row, 1),
        executions: whole(row, 2),
        sends: whole(row, 3),
        input_tokens: whole(row, 4),
        output_tokens: whole(row, 5),
        total_tokens: whole(row, 6),
        unreported: whole(row, 7),
    };
    Ok(rows.iter().map(usage).collect())
}
