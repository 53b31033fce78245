//! What ends or goes on: records, final results, turns put back. Every verb that moves a turn uses these.

use crate::failure::{CancelPoint, ErrorDocument};
use crate::store::ledger::InHand;
use crate::store::sqlite::text;
use crate::store::sqlite::tx::{Tx, at, blob, counter, fence_at, hex, job_at, json, sql};
use crate::store::{Error, EvidenceRow, Fence, InboxRow, JobId, JobState, Result, SendRow, TurnRecord};
use sqlx::sqlite::SqliteRow;
use std::collections::HashMap;

/// A running turn.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub job_id: JobId,
    pub fence: Fence,
    pub lane_id: i64,
    pub scope_id: i64,
    pub worker_no: i64,
    pub permit_no: i64,
    pub in_flight: bool,
    pub cancel_ms: Option<i64>,
    pub seq: u32,
    pub priority: i64,
    pub rank_ms: i64,
    pub executions: u32,
    pub deferrals: u32,
    pub repairs: u32,
    pub lost: u32,
    pub waiting_since_ms: Option<i64>,
    pub parked_ms: Option<i64>,
    pub claimed_ms: i64,
    /// Somebody paused it while it ran: it finishes, and goes back paused.
    pub paused: bool,
    /// Something joined its transcript from outside.
    pub told: bool,
    /// `at_most_once`.
    pub once: bool,
}

impl Running {
    pub fn in_hand(&self) -> InHand {
        InHand {
            scope_id: self.scope_id,
            worker_no: self.worker_no,
            job_id: self.job_id,
            fence: self.fence,
            permit_no: self.permit_no,
            in_flight: self.in_flight,
        }
    }

    /// As it goes back to the queue, unless its owner changes something.
    pub fn back(&self) -> Back {
        Back {
            job_id: self.job_id,
            lane_id: self.lane_id,
            due_ms: None,
            rank_ms: self.rank_ms,
            seq: self.seq,
            executions: self.executions,
            deferrals: self.deferrals,
            repairs: self.repairs,
            lost: 0,
            waiting_since_ms: self.waiting_since_ms,
            paused: self.paused,
        }
    }
}

/// The columns of `turns_in_hand` and `rescue_turns`.
pub(super) fn running_of(row: &SqliteRow) -> Result<Running> {
    Ok(Running {
        job_id: job_at(row, 1)?,
        fence: fence_at(row, 2)?,
        lane_id: at(row, 3)?,
        scope_id: at(row, 4)?,
        worker_no: at(row, 5)?,
        permit_no: at::<Option<i64>>(row, 6)?.unwrap_or(0),
        in_flight: at::<i64>(row, 7)? == 1,
        cancel_ms: at(row, 8)?,
        seq: counter(row, 9)?,
        priority: at(row, 10)?,
        rank_ms: at(row, 11)?,
        executions: counter(row, 12)?,
        deferrals: counter(row, 13)?,
        repairs: counter(row, 14)?,
        lost: counter(row, 15)?,
        waiting_since_ms: at(row, 16)?,
        parked_ms: at(row, 17)?,
        claimed_ms: at::<Option<i64>>(row, 18)?.unwrap_or(0),
        paused: at::<Option<i64>>(row, 19)?.is_some(),
        told: at::<i64>(row, 20)? == 1,
        once: at::<i64>(row, 21)? == 1,
    })
}

/// The turns named that still run under their fences, by job. A job named twice is there once: the second write of a
/// fence finds nothing.
pub(super) async fn in_hand(tx: &mut Tx<'_>, turns: &[(JobId, Fence)]) -> Result<HashMap<(JobId, Fence), Running>> {
    let ids: Vec<String> = turns.iter().map(|(job, _)| hex(job.0)).collect();
    let mut found = HashMap::with_capacity(turns.len());
    if ids.is_empty() {
        return Ok(found);
    }
    for row in tx.conn.all(sqlx::query(sql!("turns_in_hand")).bind(json(&ids)?)).await? {
        let running = running_of(&row)?;
        found.insert((running.job_id, running.fence), running);
    }
    Ok(found)
}

/// A turn on its way back to the queue: ready, or later where it is due in the future.
#[derive(Clone, Debug)]
pub(super) struct Back {
    pub job_id: JobId,
    pub lane_id: i64,
    pub due_ms: Option<i64>,
    pub rank_ms: i64,
    pub seq: u32,
    pub executions: u32,
    pub deferrals: u32,
    pub repairs: u32,
    pub lost: u32,
    pub waiting_since_ms: Option<i64>,
    /// Not claimable until somebody lets it go on.
    pub paused: bool,
}

pub(super) async fn put_back(tx: &mut Tx<'_>, turns: &[Back]) -> Result<()> {
    if turns.is_empty() {
        return Ok(());
    }
    let mut ready: HashMap<i64, i64> = HashMap::new();
    let mut rows = Vec::with_capacity(turns.len());
    for turn in turns {
        if turn.due_ms.is_none() && !turn.paused {
            *ready.entry(turn.lane_id).or_default() += 1;
        }
        rows.push((
            hex(turn.job_id.0),
            i64::from(turn.due_ms.is_some()),
            turn.rank_ms,
            turn.due_ms,
            turn.seq,
            turn.executions,
            turn.deferrals,
            turn.repairs,
            turn.lost,
            turn.waiting_since_ms,
        ));
    }
    tx.conn.run(sqlx::query(sql!("turns_put_back")).bind(json(&rows)?)).await?;
    tx.ready(&ready).await?;
    tx.moved = true;
    Ok(())
}

/// A job's end.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub job_id: JobId,
    pub state: JobState,
    pub result: Option<String>,
    pub error: Option<String>,
    pub at_ms: i64,
}

/// Ends jobs and deletes their turns, which were waiting or running until now.
pub(super) async fn end(tx: &mut Tx<'_>, ends: &[End]) -> Result<()> {
    if ends.is_empty() {
        return Ok(());
    }
    let first = tx.draw("ended", ends.len()).await?;
    let numbered: Vec<(i64, &End)> = (first..).zip(ends).collect();
    let changed = tx
        .write(sql!("jobs_end"), &numbered, |query, (ended_no, end)| {
            query
                .bind(blob(end.job_id.0))
                .bind(text::state(end.state))
                .bind(end.result.clone())
                .bind(end.error.clone())
                .bind(end.at_ms)
                .bind(*ended_no)
        })
        .await?;
    if usize::try_from(changed) != Ok(ends.len()) {
        return Err(Error::Database("a job that had ended would have ended again".into()));
    }
    let ids: Vec<String> = ends.iter().map(|end| hex(end.job_id.0)).collect();
    tx.conn.run(sqlx::query(sql!("turns_delete")).bind(json(&ids)?)).await?;
    let mut counts: HashMap<&str, i64> = HashMap::new();
    for end in ends {
        *counts.entry(text::state(end.state)).or_default() += 1;
    }
    let counts: Vec<_> = counts.into_iter().collect();
    tx.conn.run(sqlx::query(sql!("count_up")).bind(json(&counts)?)).await?;
    tx.moved = true;
    Ok(())
}

/// A record with its final send.
pub(super) struct NewRecord<'a> {
    pub job_id: JobId,
    pub fence: Fence,
    pub record: &'a TurnRecord,
    pub send: Option<&'a SendRow>,
}

pub(super) async fn records(tx: &mut Tx<'_>, records: &[NewRecord<'_>]) -> Result<()> {
    tx.write(sql!("record_insert"), records, |query, new| {
        let r = new.record;
        let query = query
            .bind(blob(new.job_id.0))
            .bind(new.fence.0)
            .bind(i64::from(r.seq))
            .bind(text::outcome(r.outcome))
            .bind(r.cut.clone())
            .bind(r.started_ms)
            .bind(r.ended_ms)
            .bind(r.attempts.map(i64::from))
            .bind(r.error.clone())
            .bind(r.response.clone())
            .bind(r.usage.input_tokens)
            .bind(r.usage.output_tokens)
            .bind(r.usage.total_tokens)
            .bind(r.class.clone())
            .bind(r.cause.clone())
            .bind(r.code.clone())
            .bind(r.http_status.map(i64::from))
            .bind(r.rule.clone())
            .bind(r.rules_version.map(i64::from))
            .bind(r.decision.clone())
            .bind(r.resume_at_ms)
            .bind(r.skew_ms)
            .bind(r.phase.clone())
            .bind(r.request_id.clone())
            .bind(r.provider_code.clone())
            .bind(r.provider_type.clone())
            .bind(r.finish_reason.clone())
            .bind(r.provider_model.clone())
            .bind(r.received_ms);
        let s = new.send;
        let tests = s.and_then(|s| s.tests);
        query
            .bind(s.map(|s| i64::from(s.n)))
            .bind(s.map(|s| s.permit_ms))
            .bind(s.map(|s| s.started_ms))
            .bind(s.and_then(|s| s.first_byte_ms))
            .bind(s.map(|s| s.ended_ms))
            .bind(s.map(|s| s.outcome.clone()))
            .bind(s.and_then(|s| s.http_status).map(i64::from))
            .bind(s.and_then(|s| s.cause.clone()))
            .bind(s.and_then(|s| s.class.clone()))
            .bind(s.and_then(|s| s.error.clone()))
            .bind(s.and_then(|s| s.wait_ms))
            .bind(s.and_then(|s| s.wait_source.clone()))
            .bind(tests.map(|k| blob(k.job_id.0)))
            .bind(tests.map(|k| k.fence.0))
            .bind(tests.map(|k| i64::from(k.n)))
            .bind(s.and_then(|s| s.tests_resume_ms))
    })
    .await?;
    Ok(())
}

pub(super) async fn evidence(tx: &mut Tx<'_>, job_id: JobId, fence: Fence, row: &EvidenceRow) -> Result<()> {
    let query = sqlx::query(sql!("evidence_insert"))
        .bind(blob(job_id.0))
        .bind(fence.0)
        .bind(i64::from(row.n))
        .bind(row.received_ms)
        .bind(row.reset_at_ms)
        .bind(row.resume_at_ms)
        .bind(row.skew_ms)
        .bind(row.source_kind.clone())
        .bind(row.source_name.clone())
        .bind(row.raw.clone())
        .bind(row.limit_kind.map(text::limit_kind))
        .bind(row.cause.clone())
        .bind(row.rule.clone())
        .bind(i64::from(row.rules_version))
        .bind(json(&row.candidates)?);
    tx.conn.run(query).await?;
    Ok(())
}

pub(super) async fn inbox(tx: &mut Tx<'_>, job_id: JobId, rows: &[InboxRow]) -> Result<()> {
    for row in rows {
        inbox_row(tx, job_id, row, None).await?;
    }
    Ok(())
}

/// One row of a transcript; `key` makes a posting repeatable.
pub(super) async fn inbox_row(tx: &mut Tx<'_>, job_id: JobId, row: &InboxRow, key: Option<String>) -> Result<()> {
    let query = sqlx::query(sql!("inbox_insert"))
        .bind(blob(job_id.0))
        .bind(i64::from(row.seq))
        .bind(row.kind.clone())
        .bind(row.body.clone())
        .bind(row.at_ms)
        .bind(key);
    tx.conn.run(query).await?;
    Ok(())
}

/// The error of a job that somebody cancelled while it waited, or that could not be told so by its worker.
pub(super) fn cancelled_error() -> Result<String> {
    json(&ErrorDocument::cancelled(CancelPoint::Waiting))
}

/// An error of our own: no class, no `model_failure` (contract §7).
pub(super) fn own_error(code: &str, message: &str, retryable: bool) -> Result<String> {
    json(&ErrorDocument { retryable, ..ErrorDocument::own(code, message) })
}
