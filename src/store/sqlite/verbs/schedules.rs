//! Schedules: added, removed, paused, and fired. What a firing submits goes in by the same way as any job.

use super::submit::{check, submit};
use crate::store::sqlite::schedules::run_of;
use crate::store::sqlite::text::{catch_up, overlap};
use crate::store::sqlite::tx::{Tx, at, blob, sql, uuid_at};
use crate::store::{Fire, Fired, Firing, FiringKind, JobId, NewJob, NewSchedule, Overlap, Pause, Result, RunRow};
use crate::store::{ScheduleId, Scheduled, Submitted};

pub(super) async fn add(tx: &mut Tx<'_>, new: &NewSchedule) -> Result<Scheduled> {
    if let Some(row) = tx.conn.optional(sqlx::query(sql!("schedule_named")).bind(new.name.clone())).await? {
        let id = ScheduleId(uuid_at(&row, 0)?);
        let stands: [&str; 5] = [at(&row, 1)?, at(&row, 2)?, at(&row, 3)?, at(&row, 4)?, at(&row, 5)?];
        let same = stands == [&*new.cron, &*new.zone, &*new.spec, catch_up(new.catch_up), overlap(new.overlap)];
        return Ok(if same { Scheduled::Unchanged(id) } else { Scheduled::Conflict(id) });
    }
    let query = sqlx::query(sql!("schedule_insert"))
        .bind(blob(new.id.0))
        .bind(new.name.clone())
        .bind(new.cron.clone())
        .bind(new.zone.clone())
        .bind(new.spec.clone())
        .bind(catch_up(new.catch_up))
        .bind(overlap(new.overlap))
        .bind(new.next_ms)
        .bind(new.created_ms);
    tx.conn.run(query).await?;
    tx.moved = true;
    Ok(Scheduled::Added(new.id))
}

pub(super) async fn remove(tx: &mut Tx<'_>, id: ScheduleId) -> Result<bool> {
    Ok(tx.conn.run(sqlx::query(sql!("schedule_delete")).bind(blob(id.0))).await? == 1)
}

pub(super) async fn pause(
    tx: &mut Tx<'_>,
    id: ScheduleId,
    pause: Option<&Pause>,
    next_ms: Option<i64>,
) -> Result<bool> {
    let query = match pause {
        Some(pause) => sqlx::query(sql!("schedule_pause"))
            .bind(blob(id.0))
            .bind(pause.since_ms)
            .bind(pause.by.clone())
            .bind(pause.reason.clone()),
        None => sqlx::query(sql!("schedule_resume")).bind(blob(id.0)).bind(next_ms),
    };
    tx.moved = true;
    Ok(tx.conn.run(query).await? == 1)
}

pub(super) async fn fire(tx: &mut Tx<'_>, fire: &Fire) -> Result<Fired> {
    let id = fire.schedule;
    let Some(row) = tx.conn.optional(sqlx::query(sql!("fire_schedule")).bind(blob(id.0))).await? else {
        return Ok(Fired::Void);
    };
    let paused = at::<Option<i64>>(&row, 1)?.is_some();
    if fire.expected_next_ms.is_some() && (paused || at::<Option<i64>>(&row, 0)? != fire.expected_next_ms) {
        return Ok(Fired::Void);
    }
    let skips = at::<&str>(&row, 2)? == overlap(Overlap::Skip);
    if fire.next_ms.is_some_and(|next_ms| fire.expected_next_ms.is_some_and(|expected_ms| next_ms < expected_ms)) {
        tx.conn.run(sqlx::query(sql!("fire_forget")).bind(blob(id.0)).bind(fire.now_ms)).await?;
    }
    let mut runs = Vec::with_capacity(fire.firings.len());
    for firing in &fire.firings {
        runs.push(run(tx, fire, firing, skips).await?);
    }
    if fire.expected_next_ms.is_some() {
        tx.conn.run(sqlx::query(sql!("fire_next")).bind(blob(id.0)).bind(fire.next_ms)).await?;
    }
    tx.conn.run(sqlx::query(sql!("fire_prune")).bind(blob(id.0))).await?;
    tx.moved = true;
    Ok(Fired::Done(runs))
}

/// One nominal instant. One that has its run already (somebody ran the schedule by hand in that very millisecond) keeps
/// it: an instant is one run.
async fn run(tx: &mut Tx<'_>, fire: &Fire, firing: &Firing, skips: bool) -> Result<RunRow> {
    let bound = |text| sqlx::query(text).bind(blob(fire.schedule.0)).bind(firing.nominal_ms);
    if let Some(row) = tx.conn.optional(bound(sql!("fire_run"))).await? {
        return Ok(run_of(&row)?.1);
    }
    let (outcome, job, error) = match &firing.what {
        FiringKind::Missed => ("skipped_missed", None, None),
        FiringKind::Refused(why) => ("refused", None, Some(why.clone())),
        FiringKind::Submit(_) if skips && lives(tx, fire.schedule).await? => ("skipped_overlap", None, None),
        FiringKind::Submit(job) => match put_in(tx, fire.schedule, job).await? {
            Ok(id) if fire.expected_next_ms.is_none() => ("by_hand", Some(id), None),
            Ok(id) => ("submitted", Some(id), None),
            Err(why) => ("refused", None, Some(why)),
        },
    };
    let insert = bound(sql!("fire_run_insert"))
        .bind(fire.now_ms)
        .bind(outcome)
        .bind(job.map(|id: JobId| blob(id.0)))
        .bind(error);
    tx.conn.run(insert).await?;
    let row = tx.conn.one(bound(sql!("fire_run"))).await?;
    Ok(run_of(&row)?.1)
}

async fn lives(tx: &mut Tx<'_>, id: ScheduleId) -> Result<bool> {
    Ok(tx.conn.optional(sqlx::query(sql!("fire_live")).bind(blob(id.0))).await?.is_some())
}

/// The job of a firing, or why there is none. A repeated key answers with the job that has it.
async fn put_in(tx: &mut Tx<'_>, id: ScheduleId, job: &NewJob) -> Result<std::result::Result<JobId, String>> {
    if let Err(error) = check(job) {
        // It would be so at every instant, and must not keep the schedule from its next one.
        return Ok(Err(error.to_string()));
    }
    let job = NewJob { schedule: Some(id), ..job.clone() };
    Ok(match submit(tx, &[&job]).await?.first() {
        Some(Submitted::Accepted(id) | Submitted::Duplicate(id)) => Ok(*id),
        Some(Submitted::Conflict(id)) => {
            Err(format!("its idempotency key belongs to job {id}, which has another spec"))
        }
        None => Err("it was not accepted".to_owned()),
    })
}
