//! Figures: queues as they are, and tokens as they were reported.

use super::columns::{pause, text, whole, whole_opt};
use super::standing::known_workers;
use super::{PAGE, size};
use crate::store::sqlite::conn::Conn;
use crate::store::sqlite::tx::{json, sql};
use crate::store::{Query, QueueRow, Result, UsageBy, UsageRow};
use sqlx::sqlite::SqliteRow;
use std::collections::BTreeMap;

const HOUR_MS: i64 = 3_600_000;

/// How many ends are counted.
const ENDS: i64 = 100_000;

/// Turns of each lane that are looked at for the one that waits longest. Those that rank first have waited longest but for
/// their priorities, and a lane may hold a million.
const OLDEST: i64 = 20;

/// No execution has more tokens; a figure beyond it is a fault of whoever reported it, and would drown every sum.
const TOKENS: i64 = 1_000_000_000_000;

pub(in crate::store::sqlite) async fn queues(conn: &mut Conn, now_ms: i64) -> Result<Vec<QueueRow>> {
    conn.begin_read().await?;
    let rows = queue_rows(conn, now_ms).await;
    conn.end_read().await;
    rows
}

async fn queue_rows(conn: &mut Conn, now_ms: i64) -> Result<Vec<QueueRow>> {
    let mut queues: BTreeMap<String, QueueRow> = BTreeMap::new();
    let bound = sqlx::query(sql!("queues")).bind(now_ms.saturating_sub(HOUR_MS)).bind(ENDS).bind(OLDEST);
    for row in conn.all(bound).await? {
        let queue = at_name(&mut queues, text(&row, 0));
        let n = whole(&row, 2);
        match text(&row, 1).as_str() {
            "ready" => queue.ready = n,
            "deferred" => queue.deferred = n,
            "running" => queue.running = n,
            "later" => queue.later = n,
            "paused" => queue.paused_jobs = n,
            "succeeded" => queue.succeeded_1h = n,
            "failed" => queue.failed_1h = n,
            // It is shown because of them, and has no column for them.
            _ => {}
        }
        queue.oldest_ms = [queue.oldest_ms, whole_opt(&row, 3)].into_iter().flatten().min();
    }
    for row in conn.all(sqlx::query(sql!("queues_paused"))).await? {
        at_name(&mut queues, text(&row, 0)).paused = pause(&row, 1);
    }
    let workers = known_workers(conn).await?;
    for queue in queues.values_mut() {
        let takers = workers.iter().filter(|worker| worker.lives(now_ms) && worker.takes(&queue.queue)).count();
        queue.workers = i64::try_from(takers).unwrap_or(i64::MAX);
    }
    Ok(queues.into_values().collect())
}

fn at_name(queues: &mut BTreeMap<String, QueueRow>, name: String) -> &mut QueueRow {
    queues.entry(name).or_insert_with_key(|name| QueueRow {
        queue: name.clone(),
        paused: None,
        ready: 0,
        oldest_ms: None,
        running: 0,
        deferred: 0,
        later: 0,
        paused_jobs: 0,
        requires_action: 0,
        succeeded_1h: 0,
        failed_1h: 0,
        workers: 0,
    })
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
