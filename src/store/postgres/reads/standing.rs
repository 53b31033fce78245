//! Where one job stands, and all that can keep it there, as of one instant.

use super::state::worker_of;
use super::{jobs, state};
use crate::store::figures::{COUNTED, Known, claims_last_minute, takers};
use crate::store::postgres::conn::sql;
use crate::store::postgres::fault::Res;
use crate::store::postgres::rows::{at, int, int_opt};
use crate::store::postgres::tx::Tx;
use crate::store::{InHandStanding, JobId, JobRow, JobState, LastFailure, Result, ScopeStanding, Standing};
use sqlx::postgres::PgRow;

/// In a snapshot, so that no two figures are of different instants.
pub(in crate::store::postgres) async fn standing(tx: &mut Tx, id: JobId, now_ms: i64) -> Res<Option<Standing>> {
    let Some(job) = jobs::job(tx, id).await? else { return Ok(None) };
    let held = match &job.hold {
        Some(hold) => state::open_holds(tx).await?.into_iter().find(|(_, open)| open.id == hold.id),
        None => None,
    };
    let stmt = sql!("standing").arg(id.0).arg(held.map(|(scope_id, _)| scope_id)).arg(COUNTED);
    let row = tx.optional(stmt).await?;
    let (workers, worker_seen_ms) = takers(&known_workers(tx).await?, &job.lane.queue, now_ms);
    let last_failure = tx.optional(sql!("standing_failure").arg(id.0)).await?;
    let fails_with = tx.optional(sql!("standing_fails_with").arg(id.0)).await?;
    let in_hand = match &row {
        Some(row) if job.state == JobState::Running => Some(in_hand(tx, id, row).await?),
        _ => None,
    };
    let mut standing = Standing {
        ahead: 0,
        ahead_in_scope: 0,
        behind_hold: behind(&job),
        claims_last_minute: 0,
        model: ScopeStanding::default(),
        account: ScopeStanding::default(),
        workers,
        worker_seen_ms,
        last_failure: last_failure.as_ref().map(failure).transpose()?,
        fails_with: match &fails_with {
            Some(row) if at::<bool>(row, 6)? => Some(failure(row)?),
            _ => None,
        },
        in_hand,
        job,
    };
    if let Some(row) = &row {
        standing.claims_last_minute = claims_last_minute(now_ms, at(row, 4)?, int(row, 5)?, int(row, 6)?);
        standing.model = scope(row, 7)?;
        standing.account = scope(row, 11)?;
        if standing.job.state == JobState::Queued {
            (standing.ahead, standing.ahead_in_scope) = (int(row, 15)?, int(row, 16)?);
        }
    }
    Ok(Some(standing))
}

fn behind(job: &JobRow) -> u32 {
    job.hold.as_ref().map_or(0, |hold| u32::try_from(hold.waiting.max(0)).unwrap_or(u32::MAX))
}

/// Four columns from `first` on.
fn scope(row: &PgRow, first: usize) -> Result<ScopeStanding> {
    Ok(ScopeStanding {
        in_flight: int(row, first)?,
        limit: int_opt(row, first + 1)?,
        max_in_flight: int_opt(row, first + 2)?,
        oldest_ms: at(row, first + 3)?,
    })
}

fn failure(row: &PgRow) -> Result<LastFailure> {
    Ok(LastFailure {
        ended_ms: at(row, 0)?,
        outcome: at(row, 1)?,
        class: at(row, 2)?,
        cause: at(row, 3)?,
        code: at(row, 4)?,
        http_status: int_opt(row, 5)?,
    })
}

async fn in_hand(tx: &mut Tx, id: JobId, turn: &PgRow) -> Res<InHandStanding> {
    let mut hand = InHandStanding {
        claimed_ms: at::<Option<i64>>(turn, 2)?.unwrap_or_default(),
        replaced: 0,
        wait_source: None,
        wait_raw: None,
        wait_ms: None,
        outcome: None,
        cancel_asked: at::<Option<i64>>(turn, 3)?.is_some(),
    };
    let stmt = sql!("standing_sends").arg(id.0).arg(at::<Option<i64>>(turn, 1)?);
    let Some(send) = tx.optional(stmt).await? else { return Ok(hand) };
    hand.replaced = int(&send, 0)?;
    hand.wait_ms = at(&send, 1)?;
    hand.wait_source = at(&send, 2)?;
    hand.outcome = at(&send, 4)?;
    // Our own curve was read nowhere, whatever the refusal named.
    if hand.wait_source.as_deref().is_some_and(|source| source != "curve") {
        hand.wait_raw = at(&send, 3)?;
    }
    Ok(hand)
}

pub(super) async fn known_workers(tx: &mut Tx) -> Res<Vec<Known>> {
    let rows = tx.all(sql!("workers_known")).await?;
    let known = |row: &PgRow| Ok(Known { worker: worker_of(row)?, ended: at::<Option<i64>>(row, 6)?.is_some() });
    Ok(rows.iter().map(known).collect::<Result<_>>()?)
}
