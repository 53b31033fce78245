//! What people do to jobs, queues and holds.

use super::ends::{End, cancelled_error, end};
use super::{ledger, submit};
use crate::store::sqlite::schedules::pause_of;
use crate::store::sqlite::text;
use crate::store::sqlite::tx::{Tx, at, blob, hex, int, json, sql};
use crate::store::{
    CancelOutcome, DeleteOutcome, HoldClose, HoldId, HoldRelease, JobId, JobState, Pause, Result, Steer, SteerOutcome,
};
use std::collections::{HashMap, HashSet};

pub(super) async fn cancel(tx: &mut Tx<'_>, jobs: &[JobId], now_ms: i64) -> Result<Vec<CancelOutcome>> {
    let ids: Vec<String> = jobs.iter().map(|id| hex(id.0)).collect();
    let mut outcomes = vec![CancelOutcome::Unknown; jobs.len()];
    let mut asked: Vec<String> = Vec::new();
    let mut ends: Vec<End> = Vec::new();
    let mut ended: HashSet<JobId> = HashSet::new();
    let mut ready: HashMap<i64, i64> = HashMap::new();
    for row in tx.conn.all(sqlx::query(sql!("cancel_jobs")).bind(json(&ids)?)).await? {
        let index: usize = int(&row, 0)?;
        let (Some(id), Some(outcome)) = (jobs.get(index), outcomes.get_mut(index)) else { continue };
        let state: Option<&str> = at(&row, 2)?;
        let turn: Option<i64> = at(&row, 3)?;
        *outcome = match (state.map(text::state_of), turn) {
            (Some(state), _) => CancelOutcome::AlreadyFinal(state),
            (None, Some(2)) => {
                asked.push(hex(id.0));
                CancelOutcome::Asked
            }
            (None, _) if !ended.insert(*id) => CancelOutcome::AlreadyFinal(JobState::Cancelled),
            (None, turn) => {
                if turn == Some(0) && at::<Option<i64>>(&row, 5)?.is_none() {
                    *ready.entry(at(&row, 4)?).or_default() -= 1;
                }
                ends.push(End {
                    job_id: *id,
                    state: JobState::Cancelled,
                    result: None,
                    error: Some(cancelled_error()?),
                    at_ms: now_ms,
                });
                CancelOutcome::Cancelled
            }
        };
    }
    if !asked.is_empty() {
        tx.conn.run(sqlx::query(sql!("turns_cancel")).bind(json(&asked)?).bind(now_ms)).await?;
        tx.moved = true;
    }
    tx.ready(&ready).await?;
    end(tx, &ends).await?;
    Ok(outcomes)
}

/// What of a job's turn decides how it can be moved.
struct Moved {
    job: JobId,
    lane_id: i64,
    /// 0 ready, 1 later, 2 running.
    state: i64,
    paused: bool,
    priority: i64,
    executions: i64,
}

/// Moves live jobs. A job that the list names twice is moved once: the second time it is so already.
pub(super) async fn steer(tx: &mut Tx<'_>, jobs: &[JobId], how: &Steer, now_ms: i64) -> Result<Vec<SteerOutcome>> {
    let ids: Vec<String> = jobs.iter().map(|id| hex(id.0)).collect();
    let mut outcomes = vec![SteerOutcome::Unknown; jobs.len()];
    let mut seen: HashSet<JobId> = HashSet::new();
    let mut moved: Vec<Moved> = Vec::new();
    for row in tx.conn.all(sqlx::query(sql!("steer_jobs")).bind(json(&ids)?)).await? {
        let index: usize = int(&row, 0)?;
        let (Some(job), Some(outcome)) = (jobs.get(index), outcomes.get_mut(index)) else { continue };
        *outcome = match (at::<Option<&str>>(&row, 1)?, at::<Option<i64>>(&row, 2)?) {
            (Some(ended), _) => SteerOutcome::AlreadyFinal(text::state_of(ended)),
            (None, None) => SteerOutcome::Unchanged,
            (None, Some(state)) => {
                let turn = Moved {
                    job: *job,
                    lane_id: at(&row, 3)?,
                    state,
                    paused: at::<Option<i64>>(&row, 4)?.is_some(),
                    priority: at(&row, 5)?,
                    executions: at(&row, 6)?,
                };
                if moves(&turn, how) && seen.insert(*job) {
                    moved.push(turn);
                    SteerOutcome::Done
                } else {
                    SteerOutcome::Unchanged
                }
            }
        };
    }
    if !moved.is_empty() {
        write(tx, &moved, how, now_ms).await?;
        tx.moved = true;
    }
    Ok(outcomes)
}

fn moves(turn: &Moved, how: &Steer) -> bool {
    match how {
        Steer::Pause(_) => !turn.paused,
        Steer::Resume => turn.paused,
        // A wait without an execution behind it is `not_before`, or one that a reset named.
        Steer::Requeue => turn.state == 1 && turn.executions > 0,
        Steer::Reprioritise(priority) => turn.priority != i64::from(*priority),
    }
}

async fn write(tx: &mut Tx<'_>, moved: &[Moved], how: &Steer, now_ms: i64) -> Result<()> {
    let ids: Vec<String> = moved.iter().map(|turn| hex(turn.job.0)).collect();
    let ids = json(&ids)?;
    let mut ready: HashMap<i64, i64> = HashMap::new();
    for turn in moved {
        let by = match how {
            Steer::Pause(_) if turn.state == 0 => -1,
            Steer::Resume if turn.state == 0 => 1,
            Steer::Requeue if !turn.paused => 1,
            Steer::Pause(_) | Steer::Resume | Steer::Requeue | Steer::Reprioritise(_) => 0,
        };
        *ready.entry(turn.lane_id).or_default() += by;
    }
    match how {
        Steer::Pause(pause) => {
            let query = sqlx::query(sql!("steer_pause")).bind(ids).bind(pause.since_ms);
            tx.conn.run(query.bind(pause.by.clone()).bind(pause.reason.clone())).await?;
        }
        Steer::Resume => {
            let query = sqlx::query(sql!("steer_pause")).bind(ids).bind(None::<i64>);
            tx.conn.run(query.bind(None::<String>).bind(None::<String>)).await?;
        }
        Steer::Requeue => {
            tx.conn.run(sqlx::query(sql!("steer_requeue")).bind(ids).bind(now_ms)).await?;
        }
        Steer::Reprioritise(priority) => {
            for text in [sql!("steer_priority_turns"), sql!("steer_priority_jobs")] {
                tx.conn.run(sqlx::query(text).bind(ids.clone()).bind(i64::from(*priority))).await?;
            }
        }
    }
    tx.ready(&ready).await
}

/// Deletes ended jobs with all that is kept of them. Holds that their refusals opened stay, and so do the counts of what
/// has ever ended.
pub(super) async fn delete(tx: &mut Tx<'_>, jobs: &[JobId]) -> Result<Vec<DeleteOutcome>> {
    let ids: Vec<String> = jobs.iter().map(|id| hex(id.0)).collect();
    let mut outcomes = vec![DeleteOutcome::Unknown; jobs.len()];
    let mut gone: HashSet<JobId> = HashSet::new();
    for row in tx.conn.all(sqlx::query(sql!("steer_jobs")).bind(json(&ids)?)).await? {
        let index: usize = int(&row, 0)?;
        let (Some(job), Some(outcome)) = (jobs.get(index), outcomes.get_mut(index)) else { continue };
        *outcome = match (at::<Option<&str>>(&row, 1)?, at::<Option<i64>>(&row, 2)?) {
            (Some(_), _) if gone.insert(*job) => DeleteOutcome::Deleted,
            (Some(_), _) => DeleteOutcome::Unknown,
            (None, Some(2)) => DeleteOutcome::NotFinal(JobState::Running),
            (None, _) => DeleteOutcome::NotFinal(JobState::Queued),
        };
    }
    if !gone.is_empty() {
        let ids: Vec<String> = gone.iter().map(|id| hex(id.0)).collect();
        tx.conn.run(sqlx::query(sql!("prune_jobs")).bind(json(&ids)?)).await?;
    }
    Ok(outcomes)
}

/// Stops claims of a queue, or lets them go on; answers what stood before. Of two pauses the first stands.
pub(super) async fn pause_queue(tx: &mut Tx<'_>, queue: &str, pause: Option<&Pause>) -> Result<Option<Pause>> {
    let row = tx.conn.optional(sqlx::query(sql!("queue_paused")).bind(queue.to_owned())).await?;
    let before = row.map(|row| pause_of(&row, 0)).transpose()?.flatten();
    match pause {
        Some(pause) => {
            let query = sqlx::query(sql!("queue_pause")).bind(queue.to_owned()).bind(pause.since_ms);
            tx.conn.run(query.bind(pause.by.clone()).bind(pause.reason.clone())).await?;
        }
        None => {
            tx.conn.run(sqlx::query(sql!("queue_resume")).bind(queue.to_owned())).await?;
        }
    }
    tx.moved = true;
    Ok(before)
}

pub(super) async fn release(tx: &mut Tx<'_>, release: &HoldRelease) -> Result<Option<HoldId>> {
    let Some(row) = tx.conn.optional(sqlx::query(sql!("hold_scope")).bind(blob(release.id.0))).await? else {
        return Ok(None);
    };
    let scope_id: i64 = at(&row, 0)?;
    let mut known = ledger::load(tx, &[scope_id].into()).await?;
    known.release(scope_id, release.by.clone(), release.reason.clone(), release.now_ms);
    ledger::store(tx, &known).await?;
    tx.moved = true;
    Ok(Some(release.id))
}

/// Closes a scope, which is made where nobody has sent in it yet.
pub(super) async fn close(tx: &mut Tx<'_>, close: &HoldClose) -> Result<HoldId> {
    let scope_id = submit::scope(tx, &close.scope).await?;
    let draw = tx.draw("sequence", 1).await?;
    let mut known = ledger::load(tx, &[scope_id].into()).await?;
    let id = known.close(scope_id, close, draw);
    ledger::store(tx, &known).await?;
    tx.moved = true;
    Ok(id)
}
