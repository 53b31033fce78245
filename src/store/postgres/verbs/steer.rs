//! What people do to jobs and holds.

use super::ends::{End, cancelled, end};
use super::ledger;
use crate::store::postgres::conn::sql;
use crate::store::postgres::fault::Res;
use crate::store::postgres::rows::{at, job_at};
use crate::store::postgres::tx::Tx;
use crate::store::text;
use crate::store::{CancelOutcome, HoldId, HoldRelease, JobId, JobState};
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

pub(super) async fn cancel(tx: &mut Tx, jobs: &[JobId], now_ms: i64) -> Res<Vec<CancelOutcome>> {
    let ids: Vec<Uuid> = jobs.iter().map(|id| id.0).collect();
    // Turns first, under lock: what has none then has ended, and its end is visible to the next statement.
    let mut live: HashMap<JobId, (i64, i64)> = HashMap::new();
    for row in tx.all(sql!("turns_lock").arg(ids.clone())).await? {
        live.insert(job_at(&row, 0)?, (at(&row, 1)?, at(&row, 2)?));
    }
    let mut ended: HashMap<JobId, JobState> = HashMap::new();
    for row in tx.all(sql!("jobs_state").arg(ids)).await? {
        ended.insert(job_at(&row, 0)?, text::state_of(&at::<String>(&row, 1)?));
    }
    let mut outcomes = Vec::with_capacity(jobs.len());
    let mut asked: Vec<Uuid> = Vec::new();
    let mut ends: Vec<End> = Vec::new();
    let mut ending: HashSet<JobId> = HashSet::new();
    let mut ready: HashMap<i64, i64> = HashMap::new();
    for id in jobs {
        outcomes.push(match (ended.get(id), live.get(id)) {
            (Some(state), _) => CancelOutcome::AlreadyFinal(*state),
            (None, None) => CancelOutcome::Unknown,
            (None, Some((2, _))) => {
                asked.push(id.0);
                CancelOutcome::Asked
            }
            (None, _) if !ending.insert(*id) => CancelOutcome::AlreadyFinal(JobState::Cancelled),
            (None, Some((state, lane_id))) => {
                if *state == 0 {
                    *ready.entry(*lane_id).or_default() -= 1;
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
