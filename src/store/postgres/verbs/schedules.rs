//! Schedules: added, removed, paused, and fired. What a firing submits goes in by the same way as any job.

use super::submit::{check, put_in};
use crate::store::postgres::conn::sql;
use crate::store::postgres::fault::{Fault, Res};
use crate::store::postgres::rows::{at, job_opt};
use crate::store::postgres::tx::Tx;
use crate::store::text::{catch_up, overlap};
use crate::store::{Fire, Fired, Firing, FiringKind, JobId, NewJob, NewSchedule, Overlap, Pause, Result, RunRow};
use crate::store::{ScheduleId, Scheduled, Submitted};
use sqlx::postgres::PgRow;
use std::collections::HashMap;

pub(super) async fn add(tx: &mut Tx, new: &NewSchedule) -> Res<Scheduled> {
    let stmt = sql!("schedule_insert")
        .arg(new.id.0)
        .arg(new.name.as_str())
        .arg(new.cron.as_str())
        .arg(new.zone.as_str())
        .arg(new.spec.as_str())
        .arg(catch_up(new.catch_up))
        .arg(overlap(new.overlap))
        .arg(new.next_ms)
        .arg(new.created_ms);
    if tx.run(stmt).await? == 1 {
        tx.moved = true;
        return Ok(Scheduled::Added(new.id));
    }
    // Where it is removed at this very moment, it is added anew.
    let row = tx.optional(sql!("schedule_named").arg(new.name.as_str())).await?.ok_or(Fault::Raced)?;
    let id = ScheduleId(at(&row, 0)?);
    let stands = (1..=5).map(|column| at(&row, column)).collect::<Result<Vec<String>>>()?;
    let same = stands == [&*new.cron, &*new.zone, &*new.spec, catch_up(new.catch_up), overlap(new.overlap)];
    Ok(if same { Scheduled::Unchanged(id) } else { Scheduled::Conflict(id) })
}

pub(super) async fn remove(tx: &mut Tx, id: ScheduleId) -> Res<bool> {
    Ok(tx.run(sql!("schedule_delete").arg(id.0)).await? == 1)
}

pub(super) async fn pause(tx: &mut Tx, id: ScheduleId, pause: Option<&Pause>, next_ms: Option<i64>) -> Res<bool> {
    let stmt = match pause {
        Some(pause) => {
            let stmt = sql!("schedule_pause").arg(id.0).arg(pause.since_ms);
            stmt.arg(pause.by.as_str()).arg(pause.reason.as_deref())
        }
        None => sql!("schedule_resume").arg(id.0).arg(next_ms),
    };
    tx.moved = true;
    Ok(tx.run(stmt).await? == 1)
}

/// Locks the schedule, before anything else: of several who fire one instant the first does, and the others see it.
pub(super) async fn fire(tx: &mut Tx, fire: &Fire) -> Res<Fired> {
    let id = fire.schedule;
    let Some(row) = tx.optional(sql!("fire_schedule").arg(id.0)).await? else {
        return Ok(Fired::Void);
    };
    let paused = at::<Option<i64>>(&row, 1)?.is_some();
    if fire.expected_next_ms.is_some() && (paused || at::<Option<i64>>(&row, 0)? != fire.expected_next_ms) {
        return Ok(Fired::Void);
    }
    let skips = at::<String>(&row, 2)? == overlap(Overlap::Skip);
    if fire.next_ms.is_some_and(|next_ms| fire.expected_next_ms.is_some_and(|expected_ms| next_ms < expected_ms)) {
        tx.run(sql!("fire_forget").arg(id.0).arg(fire.now_ms)).await?;
    }
    let mut runs = Vec::with_capacity(fire.firings.len());
    let mut ready = HashMap::new();
    for firing in &fire.firings {
        runs.push(run(tx, fire, firing, skips, &mut ready).await?);
    }
    if fire.expected_next_ms.is_some() {
        tx.run(sql!("fire_next").arg(id.0).arg(fire.next_ms)).await?;
    }
    tx.run(sql!("fire_prune").arg(id.0)).await?;
    // Lanes last: no job goes in with one locked.
    tx.ready(&ready).await?;
    tx.moved = true;
    Ok(Fired::Done(runs))
}

/// One nominal instant. One that has its run already (somebody ran the schedule by hand in that very millisecond) keeps
/// it: an instant is one run.
async fn run(tx: &mut Tx, fire: &Fire, firing: &Firing, skips: bool, ready: &mut HashMap<i64, i64>) -> Res<RunRow> {
    let (id, nominal_ms) = (fire.schedule.0, firing.nominal_ms);
    if let Some(row) = tx.optional(sql!("fire_run").arg(id).arg(nominal_ms)).await? {
        return Ok(run_of(&row)?);
    }
    let (outcome, job, error) = match &firing.what {
        FiringKind::Missed => ("skipped_missed", None, None),
        FiringKind::Refused(why) => ("refused", None, Some(why.clone())),
        FiringKind::Submit(_) if skips && lives(tx, fire.schedule).await? => ("skipped_overlap", None, None),
        FiringKind::Submit(job) => match submit(tx, fire.schedule, job, ready).await? {
            Ok(id) if fire.expected_next_ms.is_none() => ("by_hand", Some(id), None),
            Ok(id) => ("submitted", Some(id), None),
            Err(why) => ("refused", None, Some(why)),
        },
    };
    let insert = sql!("fire_run_insert")
        .arg(id)
        .arg(nominal_ms)
        .arg(fire.now_ms)
        .arg(outcome)
        .arg(job.map(|id: JobId| id.0))
        .arg(error.as_deref());
    tx.run(insert).await?;
    Ok(run_of(&tx.one(sql!("fire_run").arg(id).arg(nominal_ms)).await?)?)
}

async fn lives(tx: &mut Tx, id: ScheduleId) -> Res<bool> {
    Ok(at(&tx.one(sql!("fire_live").arg(id.0)).await?, 0)?)
}

/// The job of a firing, or why there is none. A repeated key answers with the job that has it.
async fn submit(
    tx: &mut Tx,
    id: ScheduleId,
    job: &NewJob,
    ready: &mut HashMap<i64, i64>,
) -> Res<std::result::Result<JobId, String>> {
    if let Err(error) = check(job) {
        // It would be so at every instant, and must not keep the schedule from its next one.
        return Ok(Err(error.to_string()));
    }
    let job = NewJob { schedule: Some(id), ..job.clone() };
    Ok(match put_in(tx, &[&job], ready).await?.first() {
        Some(Submitted::Accepted(id) | Submitted::Duplicate(id)) => Ok(*id),
        Some(Submitted::Conflict(id)) => {
            Err(format!("its idempotency key belongs to job {id}, which has another spec"))
        }
        None => Err("it was not accepted".to_owned()),
    })
}

/// The columns of `fire_run`.
fn run_of(row: &PgRow) -> Result<RunRow> {
    let ended: Option<String> = at(row, 6)?;
    let turn: Option<i64> = at(row, 7)?;
    let live = turn.map(|state| if state == 2 { "running" } else { "queued" });
    Ok(RunRow {
        nominal_ms: at(row, 1)?,
        fired_ms: at(row, 2)?,
        outcome: at(row, 3)?,
        job: job_opt(row, 4)?,
        job_state: ended.or_else(|| live.map(str::to_owned)),
        error: at(row, 5)?,
    })
}
