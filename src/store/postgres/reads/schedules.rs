//! Schedules as they are read, and the words of their columns.

use crate::store::postgres::conn::sql;
use crate::store::postgres::fault::Res;
use crate::store::postgres::rows::{at, job_at, job_opt, pause_opt};
use crate::store::postgres::tx::Tx;
use crate::store::{CatchUp, JobId, Overlap, Result, RunRow, ScheduleId, ScheduleRow};
use sqlx::postgres::PgRow;
use std::collections::HashMap;
use uuid::Uuid;

/// Every schedule by name, with its latest runs.
pub(in crate::store::postgres) async fn schedules(tx: &mut Tx) -> Res<Vec<ScheduleRow>> {
    let mut rows = read(&tx.all(sql!("schedules")).await?)?;
    let mut runs: HashMap<ScheduleId, Vec<RunRow>> = HashMap::new();
    for row in &tx.all(sql!("schedule_runs")).await? {
        let (id, run) = run_of(row)?;
        runs.entry(id).or_default().push(run);
    }
    for row in &mut rows {
        row.runs = runs.remove(&row.id).unwrap_or_default();
    }
    Ok(rows)
}

pub(in crate::store::postgres) async fn due_schedules(tx: &mut Tx, now_ms: i64, limit: u32) -> Res<Vec<ScheduleRow>> {
    Ok(read(&tx.all(sql!("schedules_due").arg(now_ms).arg(i64::from(limit))).await?)?)
}

/// A schedule in words that a newer release wrote is nothing that this one could fire, and hides no other.
fn read(rows: &[PgRow]) -> Result<Vec<ScheduleRow>> {
    let mut schedules = Vec::with_capacity(rows.len());
    for row in rows {
        if let Some(schedule) = schedule_of(row)? {
            schedules.push(schedule);
        } else {
            tracing::warn!("a schedule of a newer release is left to it");
        }
    }
    Ok(schedules)
}

fn schedule_of(row: &PgRow) -> Result<Option<ScheduleRow>> {
    let catch_up = match at::<String>(row, 5)?.as_str() {
        "none" => CatchUp::None,
        "last" => CatchUp::Last,
        "all" => CatchUp::All,
        _ => return Ok(None),
    };
    let overlap = match at::<String>(row, 6)?.as_str() {
        "skip" => Overlap::Skip,
        "queue" => Overlap::Queue,
        _ => return Ok(None),
    };
    Ok(Some(ScheduleRow {
        id: ScheduleId(at(row, 0)?),
        name: at(row, 1)?,
        cron: at(row, 2)?,
        zone: at(row, 3)?,
        spec: at(row, 4)?,
        catch_up,
        overlap,
        paused: pause_opt(row, 7)?,
        next_ms: at(row, 10)?,
        created_ms: at(row, 11)?,
        runs: Vec::new(),
    }))
}

/// The columns of `schedule_runs`.
fn run_of(row: &PgRow) -> Result<(ScheduleId, RunRow)> {
    let ended: Option<String> = at(row, 6)?;
    let turn: Option<i64> = at(row, 7)?;
    let live = turn.map(|state| if state == 2 { "running" } else { "queued" });
    let run = RunRow {
        nominal_ms: at(row, 1)?,
        fired_ms: at(row, 2)?,
        outcome: at(row, 3)?,
        job: job_opt(row, 4)?,
        job_state: ended.or_else(|| live.map(str::to_owned)),
        error: at(row, 5)?,
    };
    Ok((ScheduleId(at(row, 0)?), run))
}

/// The jobs that are retries of these.
pub(in crate::store::postgres) async fn retries(tx: &mut Tx, of: &[JobId]) -> Res<Vec<(JobId, JobId)>> {
    let ids: Vec<Uuid> = of.iter().map(|id| id.0).collect();
    let rows = tx.all(sql!("retries").arg(ids)).await?;
    rows.iter().map(|row| Ok((job_at(row, 0)?, job_at(row, 1)?))).collect()
}
