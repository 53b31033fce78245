//! What people do to jobs, queues and holds.

use super::ends::{End, cancelled, end};
use super::{due, ledger};
use crate::store::postgres::conn::sql;
use crate::store::postgres::fault::{Fault, Res};
use crate::store::postgres::rows::{at, job_at, pause_opt};
use crate::store::postgres::tx::Tx;
use crate::store::text;
use crate::store::{
    CancelOutcome, DeleteOutcome, HoldClose, HoldId, HoldRelease, JobId, JobState, Pause, Steer, SteerOutcome,
};
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// What of a job's turn decides how it can be moved.
#[derive(Clone, Copy, Debug)]
struct Live {
    job: JobId,
    /// 0 ready, 1 later, 2 running.
    state: i64,
    lane_id: i64,
    paused: bool,
    priority: i64,
    executions: i64,
}

/// Where jobs stand: every one that there is lives, or has ended.
struct Stand {
    live: HashMap<JobId, Live>,
    ended: HashMap<JobId, JobState>,
}

/// Locks the jobs' turns. Turns first: what has none then has ended, and its end is visible to the next statement.
async fn stand(tx: &mut Tx, jobs: &[JobId]) -> Res<Stand> {
    let ids: Vec<Uuid> = jobs.iter().map(|id| id.0).collect();
    let mut live = HashMap::new();
    for row in tx.all(sql!("turns_lock").arg(ids.clone())).await? {
        let job = job_at(&row, 0)?;
        let turn = Live {
            job,
            state: at(&row, 1)?,
            lane_id: at(&row, 2)?,
            paused: at::<Option<i64>>(&row, 3)?.is_some(),
            priority: at(&row, 4)?,
            executions: at(&row, 5)?,
        };
        live.insert(job, turn);
    }
    Ok(Stand { live, ended: ended(tx, ids).await? })
}

pub(super) async fn ended(tx: &mut Tx, ids: Vec<Uuid>) -> Res<HashMap<JobId, JobState>> {
    let mut ended = HashMap::new();
    for row in tx.all(sql!("jobs_state").arg(ids)).await? {
        ended.insert(job_at(&row, 0)?, text::state_of(&at::<String>(&row, 1)?));
    }
    Ok(ended)
}

pub(super) async fn cancel(tx: &mut Tx, jobs: &[JobId], now_ms: i64) -> Res<Vec<CancelOutcome>> {
    let Stand { live, ended } = stand(tx, jobs).await?;
    let mut outcomes = Vec::with_capacity(jobs.len());
    let mut asked: Vec<Uuid> = Vec::new();
    let mut ends: Vec<End> = Vec::new();
    let mut ending: HashSet<JobId> = HashSet::new();
    let mut ready: HashMap<i64, i64> = HashMap::new();
    for id in jobs {
        outcomes.push(match (ended.get(id), live.get(id)) {
            (Some(state), _) => CancelOutcome::AlreadyFinal(*state),
            (None, None) => CancelOutcome::Unknown,
            (None, Some(turn)) if turn.state == 2 => {
                asked.push(id.0);
                CancelOutcome::Asked
            }
            (None, _) if !ending.insert(*id) => CancelOutcome::AlreadyFinal(JobState::Cancelled),
            (None, Some(turn)) => {
                if turn.state == 0 && !turn.paused {
                    *ready.entry(turn.lane_id).or_default() -= 1;
                }
                ends.push(cancelled(*id, now_ms)?);
                CancelOutcome::Cancelled
            }
        });
    }
    if !asked.is_empty() {
        tx.run(sql!("turns_cancel").arg(asked).arg(now_ms)).await?;
        tx.moved = true;
    }
    tx.ready(&ready).await?;
    end(tx, &ends).await?;
    Ok(outcomes)
}

/// Moves live jobs. A job that the list names twice is moved once: the second time it is so already.
pub(super) async fn steer(tx: &mut Tx, jobs: &[JobId], how: &Steer, now_ms: i64) -> Res<Vec<SteerOutcome>> {
    let Stand { live, ended } = stand(tx, jobs).await?;
    let mut outcomes = Vec::with_capacity(jobs.len());
    let mut seen: HashSet<JobId> = HashSet::new();
    let mut moved: Vec<Live> = Vec::new();
    for id in jobs {
        outcomes.push(match (ended.get(id), live.get(id)) {
            (Some(state), _) => SteerOutcome::AlreadyFinal(*state),
            (None, None) => SteerOutcome::Unknown,
            (None, Some(turn)) if moves(turn, how) && seen.insert(*id) => {
                moved.push(*turn);
                SteerOutcome::Done
            }
            (None, Some(_)) => SteerOutcome::Unchanged,
        });
    }
    if !moved.is_empty() {
        write(tx, &moved, how, now_ms).await?;
        tx.moved = true;
    }
    Ok(outcomes)
}

fn moves(turn: &Live, how: &Steer) -> bool {
    match how {
        Steer::Pause(_) => !turn.paused,
        Steer::Resume => turn.paused,
        // A wait without an execution behind it is `not_before`, or one that a reset named.
        Steer::Requeue => turn.state == 1 && turn.executions > 0,
        Steer::Reprioritise(priority) => turn.priority != i64::from(*priority),
    }
}

async fn write(tx: &mut Tx, moved: &[Live], how: &Steer, now_ms: i64) -> Res<()> {
    let ids: Vec<Uuid> = moved.iter().map(|turn| turn.job.0).collect();
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
            let stmt = sql!("steer_pause").arg(ids).arg(pause.since_ms);
            tx.run(stmt.arg(pause.by.as_str()).arg(pause.reason.as_deref())).await?;
        }
        Steer::Resume => {
            let stmt = sql!("steer_pause").arg(ids).arg(None::<i64>);
            tx.run(stmt.arg(None::<&str>).arg(None::<&str>)).await?;
        }
        Steer::Requeue => {
            tx.run(sql!("steer_requeue").arg(ids).arg(now_ms)).await?;
        }
        Steer::Reprioritise(priority) => {
            for stmt in [sql!("steer_priority_turns"), sql!("steer_priority_jobs")] {
                tx.run(stmt.arg(ids.clone()).arg(i64::from(*priority))).await?;
            }
        }
    }
    tx.ready(&ready).await
}

/// Deletes ended jobs with all that is kept of them. Holds that their refusals opened stay, and so do the counts of what
/// has ever ended.
pub(super) async fn delete(tx: &mut Tx, jobs: &[JobId]) -> Res<Vec<DeleteOutcome>> {
    let ids: Vec<Uuid> = jobs.iter().map(|id| id.0).collect();
    // Turns first: what ends in between is seen as ended.
    let mut live: HashMap<JobId, i64> = HashMap::new();
    for row in tx.all(sql!("turns_state").arg(ids.clone())).await? {
        live.insert(job_at(&row, 0)?, at(&row, 1)?);
    }
    let mut gone: Vec<Uuid> = Vec::new();
    for row in tx.all(sql!("delete_lock").arg(ids)).await? {
        gone.push(job_at(&row, 0)?.0);
    }
    let mut left: HashSet<Uuid> = gone.iter().copied().collect();
    let ended = left.clone();
    let outcomes = jobs
        .iter()
        .map(|id| match live.get(id) {
            _ if left.remove(&id.0) => DeleteOutcome::Deleted,
            _ if ended.contains(&id.0) => DeleteOutcome::Unknown,
            Some(2) => DeleteOutcome::NotFinal(JobState::Running),
            Some(_) => DeleteOutcome::NotFinal(JobState::Queued),
            None => DeleteOutcome::Unknown,
        })
        .collect();
    if !gone.is_empty() {
        due::delete(tx, gone).await?;
    }
    Ok(outcomes)
}

/// Stops claims of a queue, or lets them go on; answers what stood before. Of two pauses the first stands.
pub(super) async fn pause_queue(tx: &mut Tx, queue: &str, pause: Option<&Pause>) -> Res<Option<Pause>> {
    tx.moved = true;
    let row = match pause {
        None => tx.optional(sql!("queue_resume").arg(queue)).await?,
        Some(pause) => {
            let stmt = sql!("queue_pause").arg(queue).arg(pause.since_ms).arg(pause.by.as_str());
            if tx.run(stmt.arg(pause.reason.as_deref())).await? == 1 {
                return Ok(None);
            }
            // Where somebody lets it go on at this very moment, it is paused anew.
            Some(tx.optional(sql!("queue_paused").arg(queue)).await?.ok_or(Fault::Raced)?)
        }
    };
    Ok(row.map(|row| pause_opt(&row, 0)).transpose()?.flatten())
}

/// Closes a scope, whose name is known.
pub(super) async fn close(tx: &mut Tx, close: &HoldClose) -> Res<HoldId> {
    let scope_id = tx.db.cache.scope(&close.scope).ok_or(Fault::Raced)?;
    let mut known = ledger::lock(tx, &[], &[scope_id].into()).await?;
    let draw = tx.draw(1).await?.pop().ok_or(Fault::Raced)?;
    let id = known.close(scope_id, close, draw);
    ledger::store(tx, &known).await?;
    tx.moved = true;
    Ok(id)
}

pub(super) async fn release(tx: &mut Tx, release: &HoldRelease) -> Res<Option<HoldId>> {
    let Some(row) = tx.optional(sql!("hold_scope").arg(release.id.0)).await? else {
        return Ok(None);
    };
    let scope_id: i64 = at(&row, 0)?;
    let mut known = ledger::lock(tx, &[], &[scope_id].into()).await?;
    // Somebody may have been faster.
    if known.holds.get(&scope_id).is_none_or(|hold| hold.id != release.id) {
        return Ok(None);
    }
    known.release(scope_id, release.by.clone(), release.reason.clone(), release.now_ms);
    ledger::store(tx, &known).await?;
    tx.moved = true;
    Ok(Some(release.id))
}
