//! What happens to a turn in hand between its claim and its end: permits, answers, setbacks, giving back unsent.

use super::claim::first_in_hand;
use super::ends::{Back, End, Running, cancelled, end, evidence, in_hand, put_back};
use super::ledger;
use crate::store::ledger::Gate;
use crate::store::postgres::conn::sql;
use crate::store::postgres::fault::{Fault, Res};
use crate::store::postgres::tx::Tx;
use crate::store::{Answer, Applied, Fence, JobId, Permit, PermitRequest, SendRow, Setback};
use std::collections::BTreeSet;

/// One fresh number, for a scope that is locked.
async fn draw(tx: &mut Tx) -> Res<i64> {
    tx.draw(1).await?.pop().ok_or(Fault::Raced)
}

pub(super) async fn permit(tx: &mut Tx, request: &PermitRequest) -> Res<Permit> {
    let PermitRequest { job_id, fence, now_ms } = *request;
    let mut known = ledger::lock(tx, &[job_id], &BTreeSet::new()).await?;
    let Some(running) = in_hand(tx, &[(job_id, fence)]).await?.remove(&(job_id, fence)) else {
        return Ok(Permit::Void);
    };
    if running.cancel_ms.is_some() {
        return Ok(Permit::Cancelled);
    }
    let mut turn = running.in_hand();
    if let Some(grant) = known.probing(turn, now_ms) {
        // It has the right and its permit, only an old one.
        turn.permit_no = draw(tx).await?;
        note_permit(tx, job_id, fence, turn.permit_no).await?;
        return Ok(Permit::Granted(grant));
    }
    known.give_back(turn);
    // A probe right that has outlived its moment (the hold was extended, or the account closed over it) goes back.
    known.return_probe(turn, None, now_ms);
    let gate = known.gate(running.scope_id, now_ms);
    let first = match gate {
        Gate::Probe => first_in_hand(tx, &known, now_ms).await?.into_values().all(|first| first == (job_id, fence)),
        _ => true,
    };
    let refused = match gate {
        Gate::Open | Gate::Probe if first => {
            turn.permit_no = draw(tx).await?;
            let grant = known.take(turn, now_ms);
            note_permit(tx, job_id, fence, turn.permit_no).await?;
            ledger::store(tx, &known).await?;
            return Ok(Permit::Granted(grant));
        }
        Gate::Closed { until_ms } => Permit::Closed { until_ms },
        Gate::Open | Gate::Probe | Gate::Full => Permit::Full,
    };
    if running.in_flight || running.parked_ms.is_none() {
        park(tx, job_id, fence, now_ms, now_ms).await?;
        ledger::store(tx, &known).await?;
        tx.moved |= running.in_flight;
    }
    Ok(refused)
}

async fn note_permit(tx: &mut Tx, job_id: JobId, fence: Fence, permit_no: i64) -> Res<()> {
    tx.run(sql!("turn_permit").arg(job_id.0).arg(fence.0).arg(permit_no)).await?;
    Ok(())
}

async fn park(tx: &mut Tx, job_id: JobId, fence: Fence, now_ms: i64, until_ms: i64) -> Res<()> {
    tx.run(sql!("turn_park").arg(job_id.0).arg(fence.0).arg(now_ms).arg(until_ms)).await?;
    Ok(())
}

pub(super) async fn answered(tx: &mut Tx, answers: &[Answer]) -> Res<()> {
    let jobs: Vec<JobId> = answers.iter().map(|answer| answer.job_id).collect();
    let turns: Vec<(JobId, Fence)> = answers.iter().map(|answer| (answer.job_id, answer.fence)).collect();
    let mut known = ledger::lock(tx, &jobs, &BTreeSet::new()).await?;
    let found = in_hand(tx, &turns).await?;
    for answer in answers {
        let Some(running) = found.get(&(answer.job_id, answer.fence)) else { continue };
        if answer.silent {
            // Another send may start; what the silent one brings still counts.
            known.return_probe(running.in_hand(), None, answer.now_ms);
        } else {
            known.answered(running.in_hand(), answer.now_ms);
        }
        tx.moved = true;
    }
    ledger::store(tx, &known).await
}

/// Unsent, so nothing is recorded and it keeps its place; one that somebody asked to cancel ends instead.
pub(super) async fn give_back(tx: &mut Tx, turns: &[(JobId, Fence)], now_ms: i64) -> Res<()> {
    let jobs: Vec<JobId> = turns.iter().map(|(job, _)| *job).collect();
    let mut known = ledger::lock(tx, &jobs, &BTreeSet::new()).await?;
    let mut found = in_hand(tx, turns).await?;
    let mut backs: Vec<Back> = Vec::new();
    let mut ends: Vec<End> = Vec::new();
    for turn in turns {
        let Some(running) = found.remove(turn) else { continue };
        known.give_back(running.in_hand());
        known.return_probe(running.in_hand(), None, now_ms);
        if running.cancel_ms.is_some() {
            ends.push(cancelled(running.job_id, now_ms)?);
        } else {
            backs.push(Back { lost: running.lost, ..running.back() });
        }
    }
    ledger::store(tx, &known).await?;
    put_back(tx, &backs).await?;
    end(tx, &ends).await
}

pub(super) async fn set_back(tx: &mut Tx, setback: &Setback) -> Res<Applied> {
    let Setback { job_id, fence, now_ms, .. } = *setback;
    let mut scopes = BTreeSet::new();
    let mut refused = None;
    if let Some(refusal) = &setback.refusal {
        let scope_id = tx.db.cache.scope(&refusal.scope).ok_or(Fault::Raced)?;
        scopes.insert(scope_id);
        refused = Some((refusal, scope_id));
    }
    let mut known = ledger::lock(tx, &[job_id], &scopes).await?;
    let Some(running) = in_hand(tx, &[(job_id, fence)]).await?.remove(&(job_id, fence)) else {
        return Ok(Applied::Void);
    };
    if !insert_send(tx, &running, &setback.send).await? {
        // Told before; its effects stand.
        return Ok(Applied::Done);
    }
    if let Some(row) = &setback.evidence {
        evidence(tx, job_id, fence, row).await?;
    }
    let turn = running.in_hand();
    known.give_back(turn);
    if let Some((refusal, scope_id)) = refused {
        let draw = draw(tx).await?;
        known.refused(turn, setback.send.n, refusal, scope_id, draw, now_ms);
    }
    // What is left of a probe right: the send failed without being refused, and another probe waits a while.
    known.return_probe(turn, Some(setback.wait_until_ms), now_ms);
    ledger::store(tx, &known).await?;
    park(tx, job_id, fence, now_ms, setback.wait_until_ms).await?;
    tx.moved = true;
    Ok(Applied::Done)
}

/// `false`: it is there already.
async fn insert_send(tx: &mut Tx, running: &Running, send: &SendRow) -> Res<bool> {
    let stmt = sql!("send_insert")
        .arg(running.job_id.0)
        .arg(running.fence.0)
        .arg(i64::from(send.n))
        .arg(i64::from(running.seq))
        .arg(send.permit_ms)
        .arg(send.started_ms)
        .arg(send.first_byte_ms)
        .arg(send.ended_ms)
        .arg(send.outcome.as_str())
        .arg(send.http_status.map(i64::from))
        .arg(send.cause.as_deref())
        .arg(send.class.as_deref())
        .arg(send.error.as_deref())
        .arg(send.wait_ms)
        .arg(send.wait_source.as_deref())
        .arg(send.tests.map(|k| k.job_id.0))
        .arg(send.tests.map(|k| k.fence.0))
        .arg(send.tests.map(|k| i64::from(k.n)))
        .arg(send.tests_resume_ms);
    Ok(tx.run(stmt).await? == 1)
}
