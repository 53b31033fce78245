//! Taking turns back from workers whose leases have lapsed.

use super::answers::cancelled;
use super::ends::{Back, End, NewRecord, Running, end, own_error, put_back, records, running_of};
use super::ledger;
use crate::failure::codes;
use crate::store::sqlite::tx::{Tx, at, json, sql};
use crate::store::{JobState, Outcome, Rescue, Rescued, Result, TurnRecord, Usage};

pub(super) async fn rescue(tx: &mut Tx<'_>, request: &Rescue) -> Result<Rescued> {
    let now_ms = request.now_ms;
    let mut lapsed: Vec<i64> = Vec::new();
    for row in tx.conn.all(sqlx::query(sql!("rescue_workers")).bind(now_ms)).await? {
        lapsed.push(at(&row, 0)?);
    }
    let mut rescued = Rescued::default();
    if lapsed.is_empty() {
        return Ok(rescued);
    }
    let lapsed = json(&lapsed)?;
    tx.conn.run(sqlx::query(sql!("rescue_mark")).bind(lapsed.clone()).bind(now_ms)).await?;
    let mut turns = Vec::new();
    let query = sqlx::query(sql!("rescue_turns")).bind(lapsed.clone()).bind(i64::from(request.limit));
    for row in tx.conn.all(query).await? {
        turns.push(running_of(&row)?);
    }
    let lost: Vec<TurnRecord> = turns.iter().map(|turn| record(turn, now_ms)).collect::<Result<_>>()?;
    let new: Vec<NewRecord<'_>> = turns
        .iter()
        .zip(&lost)
        .map(|(turn, record)| NewRecord { job_id: turn.job_id, fence: turn.fence, record, send: None })
        .collect();
    records(tx, &new).await?;

    let mut known = ledger::load(tx, &turns.iter().map(|turn| turn.scope_id).collect()).await?;
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
            ends.push(cancelled(turn, now_ms)?);
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
    let gone = tx.conn.run(sqlx::query(sql!("rescue_end")).bind(lapsed).bind(now_ms)).await?;
    rescued.workers = u32::try_from(gone).unwrap_or(u32::MAX);
    tx.moved = true;
    Ok(rescued)
}

fn lost_error() -> Result<String> {
    own_error(codes::WORKER_LOST, "the worker's lease lapsed while it held the turn", true)
}

/// Nothing is known of what a lost worker sent.
fn record(turn: &Running, now_ms: i64) -> Result<TurnRecord> {
    Ok(TurnRecord {
        seq: turn.seq,
        outcome: Outcome::Lost,
        cut: None,
        started_ms: turn.claimed_ms,
        ended_ms: now_ms,
        attempts: None,
        error: Some(lost_error()?),
        response: None,
        usage: Usage::default(),
        class: None,
        cause: None,
        code: Some(codes::WORKER_LOST.into()),
        http_status: None,
        rule: None,
        rules_version: None,
        decision: None,
        resume_at_ms: None,
        skew_ms: None,
        phase: None,
        request_id: None,
        provider_code: None,
        provider_type: None,
        finish_reason: None,
        provider_model: None,
        received_ms: None,
    })
}
