//! What people do to jobs and holds.

use super::ends::{End, cancelled_error, end};
use super::ledger;
use crate::store::sqlite::text;
use crate::store::sqlite::tx::{Tx, at, blob, hex, int, json, sql};
use crate::store::{CancelOutcome, HoldId, HoldRelease, JobId, JobState, Result};
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
                if turn == Some(0) {
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
