//! What stands now: holds, workers, figures, the next instant.

use super::fetch;
use crate::failure::LimitKind;
use crate::store::sqlite::conn::Conn;
use crate::store::sqlite::text;
use crate::store::sqlite::tx::{at, blob, fence_at, hold_at, int, int_opt, job_at, json, sql, uuid_opt, worker_at};
use crate::store::{
    Error, Fence, HoldId, HoldRow, JobId, Overview, Query, Result, ScopeKey, SendKey, WorkerId, WorkerRow,
};
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
    rows.iter()
        .map(|row| {
            let queues: &str = at(row, 1)?;
            Ok(WorkerRow {
                id: worker_at(row, 0)?,
                queues: serde_json::from_str(queues)
                    .map_err(|e| Error::Undecodable { what: "a worker's queues", why: e.to_string() })?,
                started_ms: at(row, 2)?,
                heartbeat_ms: at(row, 3)?,
                lease_ms: at(row, 4)?,
                concurrency: int(row, 5)?,
            })
        })
        .collect()
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
    row.map(|row| hold_of(&row).map(|(_, hold)| hold)).transpose()
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
    conn.all(bound).await?.iter().map(hold_of).collect()
}

fn hold_of(row: &SqliteRow) -> Result<(i64, HoldRow)> {
    let refusal = match (uuid_opt(row, 10)?, at::<Option<i64>>(row, 11)?, int_opt(row, 12)?) {
        (Some(job), Some(fence), Some(n)) => Some(SendKey { job_id: JobId(job), fence: Fence(fence), n }),
        _ => None,
    };
    Ok((
        at(row, 19)?,
        HoldRow {
            id: hold_at(row, 0)?,
            scope: ScopeKey { provider: at(row, 1)?, account: at(row, 2)?, model: at(row, 3)? },
            cause: at(row, 4)?,
            kind: kind_at(row, 5)?,
            opened_ms: at(row, 6)?,
            until_ms: at(row, 7)?,
            source: at(row, 8)?,
            raw: at(row, 9)?,
            refusal,
            extended: int(row, 13)?,
            barren: int(row, 14)?,
            probe: uuid_opt(row, 15)?.map(JobId),
            ended_ms: at(row, 16)?,
            end: at(row, 17)?,
            waiting: at(row, 18)?,
        },
    ))
}

/// A kind that a newer release wrote is unknown here.
pub(super) fn kind_at(row: &SqliteRow, index: usize) -> Result<Option<LimitKind>> {
    Ok(at::<Option<&str>>(row, index)?.and_then(text::limit_kind_of))
}
