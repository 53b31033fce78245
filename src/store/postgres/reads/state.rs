//! What stands now: holds, workers, figures, the next instant.

use super::fetch;
use crate::failure::LimitKind;
use crate::store::postgres::conn::sql;
use crate::store::postgres::fault::Res;
use crate::store::postgres::rows::{at, fence_at, hold_at, int, int_opt, job_at, job_opt, key_opt, worker_at};
use crate::store::postgres::tx::Tx;
use crate::store::text;
use crate::store::{
    Error, Fence, HoldEventRow, HoldId, HoldRow, JobId, Overview, Query, Result, ScopeKey, WorkerId, WorkerRow,
};
use sqlx::postgres::PgRow;

pub(in crate::store::postgres) async fn cancelled(tx: &mut Tx, worker: WorkerId) -> Res<Vec<(JobId, Fence)>> {
    let rows = tx.all(sql!("cancelled").arg(worker.0)).await?;
    rows.iter().map(|row| Ok((job_at(row, 0)?, fence_at(row, 1)?))).collect()
}

pub(in crate::store::postgres) async fn next_due_ms(tx: &mut Tx, now_ms: i64) -> Res<Option<i64>> {
    Ok(at(&tx.one(sql!("next_due").arg(now_ms)).await?, 0)?)
}

pub(in crate::store::postgres) async fn workers(tx: &mut Tx, now_ms: i64) -> Res<Vec<WorkerRow>> {
    let rows = tx.all(sql!("workers").arg(now_ms)).await?;
    Ok(rows.iter().map(worker_of).collect::<Result<_>>()?)
}

/// The columns of `workers` and `workers_known`.
pub(super) fn worker_of(row: &PgRow) -> Result<WorkerRow> {
    let queues: String = at(row, 1)?;
    Ok(WorkerRow {
        id: worker_at(row, 0)?,
        queues: serde_json::from_str(&queues)
            .map_err(|e| Error::Undecodable { what: "a worker's queues", why: e.to_string() })?,
        started_ms: at(row, 2)?,
        heartbeat_ms: at(row, 3)?,
        lease_ms: at(row, 4)?,
        concurrency: int(row, 5)?,
    })
}

pub(in crate::store::postgres) async fn overview(tx: &mut Tx) -> Res<Overview> {
    let row = tx.one(sql!("overview")).await?;
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

pub(in crate::store::postgres) async fn hold(tx: &mut Tx, id: HoldId) -> Res<Option<HoldRow>> {
    let row = tx.optional(sql!("hold").arg(id.0)).await?;
    Ok(row.map(|row| hold_of(&row).map(|(_, hold)| hold)).transpose()?)
}

pub(in crate::store::postgres) async fn holds(tx: &mut Tx, query: &Query) -> Res<Vec<HoldRow>> {
    Ok(list(tx, query).await?.into_iter().map(|(_, hold)| hold).collect())
}

/// Every open hold, with its scope's number; there are few.
pub(super) async fn open_holds(tx: &mut Tx) -> Res<Vec<(i64, HoldRow)>> {
    list(tx, &Query { limit: super::PAGE, ..Query::default() }).await
}

async fn list(tx: &mut Tx, query: &Query) -> Res<Vec<(i64, HoldRow)>> {
    let stmt = sql!("holds")
        .arg(query.include_ended)
        .arg(query.providers.as_slice())
        .arg(query.accounts.as_slice())
        .arg(query.models.as_slice())
        .arg(query.since_ms)
        .arg(query.until_ms)
        .arg(fetch(query) - 1);
    let rows = tx.all(stmt).await?;
    Ok(rows.iter().map(hold_of).collect::<Result<_>>()?)
}

fn hold_of(row: &PgRow) -> Result<(i64, HoldRow)> {
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
            refusal: key_opt(row, 10)?,
            refusal_status: int_opt(row, 20)?,
            extended: int(row, 13)?,
            barren: int(row, 14)?,
            probe: job_opt(row, 15)?,
            ended_ms: at(row, 16)?,
            end: at(row, 17)?,
            waiting: at(row, 18)?,
        },
    ))
}

/// A kind that a newer release wrote is unknown here.
pub(super) fn kind_at(row: &PgRow, index: usize) -> Result<Option<LimitKind>> {
    Ok(at::<Option<String>>(row, index)?.as_deref().and_then(text::limit_kind_of))
}

/// What befell a hold, in order.
pub(in crate::store::postgres) async fn hold_events(tx: &mut Tx, hold: HoldId) -> Res<Vec<HoldEventRow>> {
    let mut events = Vec::new();
    for row in tx.all(sql!("hold_events").arg(hold.0)).await? {
        events.push(HoldEventRow {
            hold,
            at_ms: at(&row, 0)?,
            event: at(&row, 1)?,
            until_ms: at(&row, 2)?,
            job: job_opt(&row, 3)?,
            by: at(&row, 4)?,
            reason: at(&row, 5)?,
        });
    }
    Ok(events)
}
