//! Schedules as they are read: lists on the readers' connections, and the columns that the verbs share.

use super::conn::Conn;
use super::tx::{at, hex, int, job_at, json, sql, uuid_at, uuid_opt};
use crate::store::{CatchUp, JobId, Overlap, Pause, Result, RunRow, ScheduleId, ScheduleRow};
use sqlx::sqlite::SqliteRow;
use std::collections::HashMap;

/// Every schedule by name, with its latest runs.
pub(super) async fn list(conn: &mut Conn) -> Result<Vec<ScheduleRow>> {
    let mut rows = read(&conn.all(sqlx::query(sql!("schedules"))).await?)?;
    let mut runs: HashMap<ScheduleId, Vec<RunRow>> = HashMap::new();
    for row in &conn.all(sqlx::query(sql!("schedule_runs"))).await? {
        let (id, run) = run_of(row)?;
        runs.entry(id).or_default().push(run);
    }
    for row in &mut rows {
        row.runs = runs.remove(&row.id).unwrap_or_default();
    }
    Ok(rows)
}

pub(super) async fn due(conn: &mut Conn, now_ms: i64, limit: u32) -> Result<Vec<ScheduleRow>> {
    read(&conn.all(sqlx::query(sql!("schedules_due")).bind(now_ms).bind(i64::from(limit))).await?)
}

/// A schedule in words that a newer release wrote is nothing that this one could fire, and hides no other.
fn read(rows: &[SqliteRow]) -> Result<Vec<ScheduleRow>> {
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

fn schedule_of(row: &SqliteRow) -> Result<Option<ScheduleRow>> {
    let catch_up = match at::<&str>(row, 5)? {
        "none" => CatchUp::None,
        "last" => CatchUp::Last,
        "all" => CatchUp::All,
        _ => return Ok(None),
    };
    let overlap = match at::<&str>(row, 6)? {
        "skip" => Overlap::Skip,
        "queue" => Overlap::Queue,
        _ => return Ok(None),
    };
    Ok(Some(ScheduleRow {
        id: ScheduleId(uuid_at(row, 0)?),
        name: at(row, 1)?,
        cron: at(row, 2)?,
        zone: at(row, 3)?,
        spec: at(row, 4)?,
        catch_up,
        overlap,
        paused: pause_of(row, 7)?,
        next_ms: at(row, 10)?,
        created_ms: at(row, 11)?,
        runs: Vec::new(),
    }))
}

/// A pause in three columns: since when, by whom, why.
pub(super) fn pause_of(row: &SqliteRow, first: usize) -> Result<Option<Pause>> {
    let Some(since_ms) = at::<Option<i64>>(row, first)? else { return Ok(None) };
    Ok(Some(Pause {
        since_ms,
        by: at::<Option<String>>(row, first + 1)?.unwrap_or_default(),
        reason: at(row, first + 2)?,
    }))
}

/// The columns of `schedule_runs` and `fire_run`.
pub(super) fn run_of(row: &SqliteRow) -> Result<(ScheduleId, RunRow)> {
    let ended: Option<&str> = at(row, 6)?;
    let turn: Option<i64> = at(row, 7)?;
    let live = turn.map(|state| if state == 2 { "running" } else { "queued" });
    let run = RunRow {
        nominal_ms: at(row, 1)?,
        fired_ms: at(row, 2)?,
        outcome: at(row, 3)?,
        job: uuid_opt(row, 4)?.map(JobId),
        job_state: ended.or(live).map(str::to_owned),
        error: at(row, 5)?,
    };
    Ok((ScheduleId(uuid_at(row, 0)?), run))
}

/// The jobs that are retries of these.
pub(super) async fn retries(conn: &mut Conn, of: &[JobId]) -> Result<Vec<(JobId, JobId)>> {
    let ids: Vec<String> = of.iter().map(|id| hex(id.0)).collect();
    let mut found = Vec::new();
    for row in conn.all(sqlx::query(sql!("retries")).bind(json(&ids)?)).await? {
        let index: usize = int(&row, 0)?;
        if let Some(old) = of.get(index) {
            found.push((*old, job_at(&row, 1)?));
        }
    }
    Ok(found)
}
