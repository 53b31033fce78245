//! What happens to a turn in hand between its claim and its end: permits, answers, setbacks, giving back unsent.

use super::claim::first_in_hand;
use super::ends::{Back, End, Running, cancelled_error, end, evidence, in_hand, put_back};
use super::{ledger, submit};
use crate::store::ledger::Gate;
use crate::store::sqlite::tx::{Tx, blob, sql};
use crate::store::{Answer, Applied, Fence, JobId, JobState, Permit, PermitRequest, Result, SendRow, Setback};

pub(super) async fn permit(tx: &mut Tx<'_>, request: &PermitRequest) -> Result<Permit> {
    let PermitRequest { job_id, fence, now_ms } = *request;
    let Some(running) = in_hand(tx, &[(job_id, fence)]).await?.remove(&(job_id, fence)) else {
        return Ok(Permit::Void);
    };
    if running.cancel_ms.is_some() {
        return Ok(Permit::Cancelled);
    }
    let mut ledger = ledger::load(tx, &[running.scope_id].into()).await?;
    let mut turn = running.in_hand();
    if let Some(grant) = ledger.probing(turn, now_ms) {
        // It has the right and its permit, only an old one.
        turn.permit_no = tx.draw("sequence", 1).await?;
        note_permit(tx, job_id, fence, turn.permit_no).await?;
        return Ok(Permit::Granted(grant));
    }
    ledger.give_back(turn);
    // A probe right that has outlived its moment (the hold was extended, or the account closed over it) goes back.
    ledger.return_probe(turn, None, now_ms);
    let gate = ledger.gate(running.scope_id, now_ms);
    let first = match gate {
        Gate::Probe => first_in_hand(tx, &ledger, now_ms).await?.into_values().all(|first| first == (job_id, fence)),
        _ => true,
    };
    let refused = match gate {
        Gate::Open | Gate::Probe if first => {
            turn.permit_no = tx.draw("sequence", 1).await?;
            let grant = ledger.take(turn, now_ms);
            note_permit(tx, job_id, fence, turn.permit_no).await?;
            ledger::store(tx, &ledger).await?;
            return Ok(Permit::Granted(grant));
        }
        Gate::Closed { until_ms } => Permit::Closed { until_ms },
        Gate::Open | Gate::Probe | Gate::Full => Permit::Full,
    };
    if running.in_flight || running.parked_ms.is_none() {
        park(tx, job_id, fence, now_ms, now_ms).await?;
        ledger::store(tx, &ledger).await?;
        tx.moved |= running.in_flight;
    }
    Ok(refused)
}

async fn note_permit(tx: &mut Tx<'_>, job_id: JobId, fence: Fence, permit_no: i64) -> Result<()> {
    tx.conn.run(sqlx::query(sql!("turn_permit")).bind(blob(job_id.0)).bind(fence.0).bind(permit_no)).await?;
    Ok(())
}

async fn park(tx: &mut Tx<'_>, job_id: JobId, fence: Fence, now_ms: i64, until_ms: i64) -> Result<()> {
    let query = sqlx::query(sql!("turn_park")).bind(blob(job_id.0)).bind(fence.0).bind(now_ms).bind(until_ms);
    tx.conn.run(query).await?;
    Ok(())
}

pub(super) async fn answered(tx: &mut Tx<'_>, answers: &[Answer]) -> Result<()> {
    let turns: Vec<(JobId, Fence)> = answers.iter().map(|answer| (answer.job_id, answer.fence)).collect();
    let found = in_hand(tx, &turns).await?;
    let mut ledger = ledger::load(tx, &found.values().map(|running| running.scope_id).collect()).await?;
    for answer in answers {
        let Some(running) = found.get(&(answer.job_id, answer.fence)) else { continue };
        if answer.silent {
            // Another send may start; what the silent one brings still counts.
            ledger.return_probe(running.in_hand(), None, answer.now_ms);
        } else {
            ledger.answered(running.in_hand(), answer.now_ms);
        }
        tx.moved = true;
    }
    ledger::store(tx, &ledger).await
}

/// Unsent, so nothing is recorded and it keeps its place; one that somebody asked to cancel ends instead.
pub(super) async fn give_back(tx: &mut Tx<'_>, turns: &[(JobId, Fence)], now_ms: i64) -> Result<()> {
    let mut found = in_hand(tx, turns).await?;
    let mut ledger = ledger::load(tx, &found.values().map(|running| running.scope_id).collect()).await?;
    let mut backs: Vec<Back> = Vec::new();
    let mut ends: Vec<End> = Vec::new();
    for turn in turns {
        let Some(running) = found.remove(turn) else { continue };
        ledger.give_back(running.in_hand());
        ledger.return_probe(running.in_hand(), None, now_ms);
        if running.cancel_ms.is_some() {
            ends.push(cancelled(&running, now_ms)?);
        } else {
            backs.push(Back { lost: running.lost, ..running.back() });
        }
    }
    ledger::store(tx, &ledger).await?;
    put_back(tx, &backs).await?;
    end(tx, &ends).await
}

pub(super) fn cancelled(running: &Running, now_ms: i64) -> Result<End> {
    Ok(End {
        job_id: running.job_id,
        state: JobState::Cancelled,
        result: None,
        error: Some(cancelled_error()?),
        at_ms: now_ms,
    })
}

pub(super) async fn set_back(tx: &mut Tx<'_>, setback: &Setback) -> Result<Applied> {
    let Setback { job_id, fence, now_ms, .. } = *setback;
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
    let mut scopes: std::collections::BTreeSet<i64> = [running.scope_id].into();
    let mut refused = None;
    if let Some(refusal) = &setback.refusal {
        let scope_id = submit::scope(tx, &refusal.scope).await?;
        scopes.insert(scope_id);
        refused = Some((refusal, scope_id, tx.draw("sequence", 1).await?));
    }
    let mut ledger = ledger::load(tx, &scopes).await?;
    let turn = running.in_hand();
    ledger.give_back(turn);
    if let Some((refusal, scope_id, draw)) = refused {
        ledger.refused(turn, setback.send.n, refusal, scope_id, draw, now_ms);
    }
    // What is left of a probe right: the send failed without being refused, and another probe waits a while.
    ledger.return_probe(turn, Some(setback.wait_until_ms), now_ms);
    ledger::store(tx, &ledger).await?;
    park(tx, job_id, fence, now_ms, setback.wait_until_ms).await?;
    tx.moved = true;
    Ok(Applied::Done)
}

/// `false`: it is there already.
async fn insert_send(tx: &mut Tx<'_>, running: &Running, send: &SendRow) -> Result<bool> {
    let query = sqlx::query(sql!("send_insert"))
        .bind(blob(running.job_id.0))
        .bind(running.fence.0)
        .bind(i64::from(send.n))
        .bind(i64::from(running.seq))
        .bind(send.permit_ms)
        .bind(send.started_ms)
        .bind(send.first_byte_ms)
        .bind(send.ended_ms)
        .bind(send.outcome.clone())
        .bind(send.http_status.map(i64::from))
        .bind(send.cause.clone())
        .bind(send.class.clone())
        .bind(send.error.clone())
        .bind(send.wait_ms)
        .bind(send.wait_source.clone())
        .bind(send.tests.map(|k| blob(k.job_id.0)))
        .bind(send.tests.map(|k| k.fence.0))
        .bind(send.tests.map(|k| i64::from(k.n)))
        .bind(send.tests_resume_ms);
    Ok(tx.conn.run(query).await? == 1)
}
