//! What stands now: holds, workers, figures, the next instant.

use super::columns::{self, number, number_opt, send_key, text, text_opt, uuid, whole, whole_opt};
use super::fetch;
use crate::failure::LimitKind;
use crate::store::sqlite::conn::Conn;
use crate::store::sqlite::text as words;
use crate::store::sqlite::tx::{at, blob, fence_at, job_at, json, sql};
use crate::store::{Fence, HoldEventRow, HoldId, HoldRow, JobId, Overview, Query, Result, WorkerId, WorkerRow};
use sqlx::sqlite::SqliteRow;

pub(in crate::store::sqlite) async fn cancelled(conn: &mut Conn, worker: WorkerId) -> Result<Vec<(JobId, Fence)>> {
    let rows = conn.all(sqlx::query(sql!("cancelled")).bind(blob(worker.0))).await?;
    rows.iter().map(|row| Ok((job_at(row, 0)?, fence_at(row, 1)?))).collect()
}

pub(in crate::store::sqlite) async fn next_due_ms(conn: &mut Conn, now_ms: i64) -> Result<Option<i64>> {
    at(&conn.one(sqlx::query(sql!("next_due")).bind(now_ms)).await?, 0)
}

pub(in crate::store::sqlite) async fn workers(conn: &mut Conn, now_ms: i64) -> Result<Vec<WorkerRow>> {
    let rows = conn.all(sqlx::query(sql!("workers")).bind(now_ms)).await?;
    Ok(rows.iter().map(worker_of).collect())
}

/// The columns of `workers`. Queues that cannot be read are none that anybody has, rather than all.
pub(super) fn worker_of(row: &SqliteRow) -> WorkerRow {
    let queues: Vec<String> = serde_json::from_str(&text(row, 1)).unwrap_or_else(|error| {
        tracing::warn!(%error, "a worker's queues cannot be read");
        vec![String::new()]
    });
    WorkerRow {
        id: WorkerId(uuid(row, 0).unwrap_or_default()),
        queues,
        started_ms: whole(row, 2),
        heartbeat_ms: whole(row, 3),
        lease_ms: whole(row, 4),
        concurrency: number(row, 5),
    }
}

pub(in crate::store::sqlite) async fn overview(conn: &mut Conn) -> Result<Overview> {
    let row = conn.one(sqlx::query(sql!("overview"))).await?;
    Ok(Overview {
        ready: at::<i64>(&row, 0)? + at::<i64>(&row, 3)?,
        running: at(&row, 1)?,
        deferred: at(&row, 2)?,
        succeeded: at(&row, 4)?,
        failed: at(&row, 5)?,
        cancelled: at(&row, 6)?,
        holds: at(&row, 7)?,
        next_resume_ms: at(&row, 8)?,
    })
}

pub(in crate::store::sqlite) async fn hold(conn: &mut Conn, id: HoldId) -> Result<Option<HoldRow>> {
    let row = conn.optional(sqlx::query(sql!("hold")).bind(blob(id.0))).await?;
    Ok(row.map(|row| hold_of(&row).1))
}

pub(in crate::store::sqlite) async fn holds(conn: &mut Conn, query: &Query) -> Result<Vec<HoldRow>> {
    Ok(list(conn, query).await?.into_iter().map(|(_, hold)| hold).collect())
}

/// Every open hold, with its scope's number; there are few.
pub(super) async fn open_holds(conn: &mut Conn) -> Result<Vec<(i64, HoldRow)>> {
    list(conn, &Query { limit: super::PAGE, ..Query::default() }).await
}

async fn list(conn: &mut Conn, query: &Query) -> Result<Vec<(i64, HoldRow)>> {
    let bound = sqlx::query(sql!("holds"))
        .bind(i64::from(query.include_ended))
        .bind(json(&query.providers)?)
        .bind(json(&query.accounts)?)
        .bind(json(&query.models)?)
        .bind(query.since_ms)
        .bind(query.until_ms)
        .bind(fetch(query) - 1);
    Ok(conn.all(bound).await?.iter().map(hold_of).collect())
}

fn hold_of(row: &SqliteRow) -> (i64, HoldRow) {
    let hold = HoldRow {
        id: columns::hold(row, 0),
        scope: columns::scope(row, 1),
        cause: text(row, 4),
        kind: kind(row, 5),
        opened_ms: whole(row, 6),
        until_ms: whole_opt(row, 7),
        source: text(row, 8),
        raw: text_opt(row, 9),
        refusal: send_key(row, 10),
        refusal_status: number_opt(row, 20),
        extended: number(row, 13),
        barren: number(row, 14),
        probe: uuid(row, 15).map(JobId),
        ended_ms: whole_opt(row, 16),
        end: text_opt(row, 17),
        waiting: whole(row, 18),
    };
    (whole(row, 19), hold)
}

/// A kind that a newer release wrote is unknown here.
pub(super) fn kind(row: &SqliteRow, index: usize) -> Option<LimitKind> {
    text_opt(row, index).as_deref().and_then(words::limit_kind_of)
}

/// What befell a hold, in order.
pub(in crate::store::sqlite) async fn hold_events(conn: &mut Conn, hold: HoldId) -> Result<Vec<HoldEventRow>> {
    let rows = conn.all(sqlx::query(sql!("hold_events")).bind(blob(hold.0))).await?;
    let event = |row: &SqliteRow| HoldEventRow {
        hold,
        at_ms: whole(row, 0),
        event: text(row, 1),
        until_ms: whole_opt(row, 2),
        job: uuid(row, 3).map(JobId),
        by: text_opt(row, 4),
        reason: text_opt(row, 5),
    };
    Ok(rows.iter().map(event).collect())
}
