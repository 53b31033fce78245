//! Taking turns back from workers whose leases have lapsed.

use super::ends::{Back, End, NewRecord, cancelled, end, in_hand, put_back, records};
use super::ledger;
use crate::store::documents::{lost_error, lost_record};
use crate::store::postgres::conn::sql;
use crate::store::postgres::fault::Res;
use crate::store::postgres::rows::{at, fence_at, job_at};
use crate::store::postgres::tx::Tx;
use crate::store::{Fence, JobId, JobState, Rescue, Rescued, Result, TurnRecord};
use std::collections::BTreeSet;

pub(super) async fn rescue(tx: &mut Tx, request: &Rescue) -> Res<Rescued> {
    let now_ms = request.now_ms;
    let mut rescued = Rescued::default();
    // Their rows stay locked: no claim of theirs comes in between. Those that another process rescues are left to it.
    let rows = tx.all(sql!("rescue_mark").arg(now_ms)).await?;
    let lapsed = rows.iter().map(|row| at(row, 0)).collect::<Result<Vec<i64>>>()?;
    if lapsed.is_empty() {
        return Ok(rescued);
    }
    let mut named: Vec<(JobId, Fence)> = Vec::new();
    for row in tx.all(sql!("rescue_turns").arg(lapsed.clone()).arg(i64::from(request.limit))).await? {
        named.push((job_at(&row, 0)?, fence_at(&row, 1)?));
    }
    let jobs: Vec<JobId> = named.iter().map(|(job, _)| *job).collect();
    let mut known = ledger::lock(tx, &jobs, &BTreeSet::new()).await?;
    // What has ended meanwhile is not there any more.
    let mut found = in_hand(tx, &named).await?;
    let turns: Vec<_> = named.iter().filter_map(|turn| found.remove(turn)).collect();
    let lost: Vec<TurnRecord> =
        turns.iter().map(|turn| lost_record(turn.seq, turn.claimed_ms, now_ms)).collect::<Result<_>>()?;
    let new: Vec<NewRecord<'_>> = turns
        .iter()
        .zip(&lost)
        .map(|(turn, record)| NewRecord { job_id: turn.job_id, fence: turn.fence, record, send: None })
        .collect();
    records(tx, &new).await?;

    let mut backs: Vec<Back> = Vec::new();
    let mut ends: Vec<End> = Vec::new();
    for turn in &turns {
        known.give_back(turn.in_hand());
        known.return_probe(turn.in_hand(), None, now_ms);
        let lost = turn.lost.saturating_add(1);
        let executions = turn.executions.saturating_add(1);
        // A send starts with its permit, so one that waits in place has nothing on the wire and may go back.
        let may_have_been_sent = turn.once && turn.in_flight;
        if turn.cancel_ms.is_some() {
            ends.push(cancelled(turn.job_id, now_ms)?);
        } else if may_have_been_sent || lost >= request.lost_in_a_row || executions >= request.executions {
            rescued.failed += 1;
            ends.push(End {
                job_id: turn.job_id,
                state: JobState::Failed,
                result: None,
                error: Some(lost_error()?),
                at_ms: now_ms,
            });
        } else {
            rescued.requeued += 1;
            backs.push(Back { executions, lost, ..turn.back() });
        }
    }
    ledger::store(tx, &known).await?;
    put_back(tx, &backs).await?;
    end(tx, &ends).await?;
    let gone = tx.run(sql!("rescue_end").arg(lapsed).arg(now_ms)).await?;
    rescued.workers = u32::try_from(gone).unwrap_or(u32::MAX);
    tx.moved = true;
    Ok(rescued)
}
