//! The ends of executions: record, final send, evidence, hold, and what follows, all in one transaction.

use super::ends::{Back, End, NewRecord, Running, cancelled, end, evidence, in_hand, inbox, put_back, records};
use super::inbox::{defer, unread};
use super::ledger;
use crate::store::ledger::Ledger;
use crate::store::postgres::fault::{Fault, Res};
use crate::store::postgres::tx::Tx;
use crate::store::text::rank_ms;
use crate::store::{Applied, Completion, Fence, JobId, JobState, Next};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The kind of what asks the model to go on from a cut.
const CONTINUATION: &str = "continuation";

pub(in crate::store::postgres) async fn complete(tx: &mut Tx, batch: &[&Completion]) -> Res<Vec<Applied>> {
    let turns: Vec<(JobId, Fence)> = batch.iter().map(|c| (c.job_id, c.fence)).collect();
    let jobs: Vec<JobId> = batch.iter().map(|c| c.job_id).collect();
    let mut scopes: BTreeSet<i64> = BTreeSet::new();
    for refusal in batch.iter().filter_map(|c| c.refusal.as_ref()) {
        scopes.insert(tx.db.cache.scope(&refusal.scope).ok_or(Fault::Raced)?);
    }
    let mut known = ledger::lock(tx, &jobs, &scopes).await?;
    let mut found = in_hand(tx, &turns).await?;
    // A fence ends once: of two completions under one, the first stands.
    let standing: Vec<(&Completion, Running)> =
        batch.iter().filter_map(|c| Some((*c, found.remove(&(c.job_id, c.fence))?))).collect();
    let mut applied = Vec::with_capacity(batch.len());
    let mut rest = standing.iter().peekable();
    for completion in batch {
        let stands = rest.next_if(|(next, _)| std::ptr::eq(*next, *completion)).is_some();
        applied.push(if stands { Applied::Done } else { Applied::Void });
    }
    if standing.len() < batch.len() {
        tracing::warn!(stale = batch.len() - standing.len(), "ends of executions whose fences no longer stand");
    }
    if standing.is_empty() {
        return Ok(applied);
    }
    let new: Vec<NewRecord<'_>> = standing
        .iter()
        .map(|(c, _)| NewRecord { job_id: c.job_id, fence: c.fence, record: &c.record, send: c.send.as_ref() })
        .collect();
    records(tx, &new).await?;
    admit(tx, &mut known, &standing).await?;

    let told = told(tx, &standing).await?;
    let mut backs: Vec<Back> = Vec::new();
    let mut ends: Vec<End> = Vec::new();
    for (completion, running) in &standing {
        if let Some(row) = &completion.evidence {
            evidence(tx, completion.job_id, completion.fence, row).await?;
        }
        follow(tx, completion, running, told.contains(&completion.job_id), &mut backs, &mut ends).await?;
    }
    put_back(tx, &backs).await?;
    end(tx, &ends).await?;
    tx.moved = true;
    Ok(applied)
}

/// What the ends mean to scopes and holds.
async fn admit(tx: &mut Tx, known: &mut Ledger, standing: &[(&Completion, Running)]) -> Res<()> {
    let refusals: Vec<(JobId, i64)> =
        standing.iter().filter_map(|(c, _)| Some((c.job_id, tx.db.cache.scope(&c.refusal.as_ref()?.scope)?))).collect();
    // The scopes are locked: the draws come after every permit that was committed in them.
    let draws = tx.draw(refusals.len()).await?;
    let refused: HashMap<JobId, (i64, i64)> =
        refusals.into_iter().zip(draws).map(|((job, scope_id), draw)| (job, (scope_id, draw))).collect();
    // Answers first, while all that was in flight counts: used room is what a number grows by.
    for (completion, running) in standing {
        if completion.answered && completion.refusal.is_none() {
            known.answered(running.in_hand(), completion.now_ms);
        }
    }
    for (completion, running) in standing {
        settle(known, completion, running, refused.get(&completion.job_id).copied());
    }
    ledger::store(tx, known).await
}

fn settle(known: &mut Ledger, completion: &Completion, running: &Running, refused: Option<(i64, i64)>) {
    let turn = running.in_hand();
    let now_ms = completion.now_ms;
    known.give_back(turn);
    if let (Some(refusal), Some((scope_id, draw))) = (&completion.refusal, refused) {
        let n = completion.send.as_ref().map_or(0, |send| send.n);
        known.refused(turn, n, refusal, scope_id, draw, now_ms);
    }
    // A probe that was neither refused nor answered proved nothing; where it is to wait, so is the next one.
    let next_ms = match completion.next {
        Next::Again { due_ms, counts: true } => Some(due_ms),
        Next::Again { .. } | Next::Behind | Next::Turn { .. } | Next::Final { .. } | Next::FinalUnlessTold { .. } => {
            None
        }
    };
    known.return_probe(turn, next_ms, now_ms);
}

/// Jobs that would end but have a message to read first. What waits for a turn that now goes on from a cut is moved
/// behind it. A statement for each of the two, and none for a batch of which no turn was told anything: whoever posts
/// locks the turn, so what is told here is all there is.
async fn told(tx: &mut Tx, standing: &[(&Completion, Running)]) -> Res<HashSet<JobId>> {
    let mut asked: Vec<(JobId, u32)> = Vec::new();
    let mut cut: Vec<(JobId, u32)> = Vec::new();
    for (completion, running) in standing.iter().filter(|(_, running)| running.told) {
        match &completion.next {
            Next::FinalUnlessTold { .. } => asked.push((completion.job_id, running.seq)),
            Next::Turn { inbox, .. } if inbox.iter().any(|row| row.kind == CONTINUATION) => {
                cut.push((completion.job_id, running.seq.saturating_add(1)));
            }
            Next::Behind | Next::Again { .. } | Next::Turn { .. } | Next::Final { .. } => {}
        }
    }
    defer(tx, &cut).await?;
    unread(tx, &asked).await
}

async fn follow(
    tx: &mut Tx,
    completion: &Completion,
    running: &Running,
    told: bool,
    backs: &mut Vec<Back>,
    ends: &mut Vec<End>,
) -> Res<()> {
    let now_ms = completion.now_ms;
    let job_id = completion.job_id;
    let back = match &completion.next {
        Next::Final { state, result, error } => {
            ends.push(End { job_id, state: *state, result: result.clone(), error: error.clone(), at_ms: now_ms });
            return Ok(());
        }
        Next::FinalUnlessTold { result } if !told => {
            let state = JobState::Succeeded;
            ends.push(End { job_id, state, result: result.clone(), error: None, at_ms: now_ms });
            return Ok(());
        }
        // Somebody asked to cancel, and was told that it would stop: it goes on in no way.
        _ if running.cancel_ms.is_some() => {
            ends.push(cancelled(job_id, now_ms)?);
            return Ok(());
        }
        // The hold alone keeps it, so it keeps its place in line.
        Next::Behind => Back {
            deferrals: running.deferrals.saturating_add(1),
            waiting_since_ms: Some(running.waiting_since_ms.unwrap_or(now_ms)),
            ..running.back()
        },
        Next::Again { due_ms, counts } => Back {
            due_ms: Some(*due_ms).filter(|due_ms| *due_ms > now_ms),
            rank_ms: rank_ms((*due_ms).max(now_ms), running.priority),
            executions: running.executions.saturating_add(u32::from(*counts)),
            waiting_since_ms: None,
            ..running.back()
        },
        Next::Turn { due_ms, repairs, inbox: rows } => {
            inbox(tx, job_id, rows).await?;
            next_turn(running, due_ms.filter(|due_ms| *due_ms > now_ms), *repairs, now_ms)
        }
        // Told: the answer is read together with what came in meanwhile.
        Next::FinalUnlessTold { .. } => next_turn(running, None, 0, now_ms),
    };
    backs.push(back);
    Ok(())
}

/// The turn after this one.
fn next_turn(running: &Running, due_ms: Option<i64>, repairs: u32, now_ms: i64) -> Back {
    Back {
        due_ms,
        rank_ms: rank_ms(due_ms.unwrap_or(now_ms), running.priority),
        seq: running.seq.saturating_add(1),
        executions: 0,
        deferrals: 0,
        repairs,
        waiting_since_ms: None,
        ..running.back()
    }
}
