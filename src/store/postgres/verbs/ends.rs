//! What ends or goes on: records, final results, turns put back. Every verb that moves a turn uses these.

use crate::store::documents::cancelled_error;
use crate::store::ledger::InHand;
use crate::store::postgres::conn::sql;
use crate::store::postgres::fault::Res;
use crate::store::postgres::rows::{at, counter, fence_at, job_at};
use crate::store::postgres::tx::Tx;
use crate::store::text;
use crate::store::{Error, EvidenceRow, Fence, InboxRow, JobId, JobState, Result, SendRow, TurnRecord};
use sqlx::postgres::PgRow;
use std::collections::HashMap;
use uuid::Uuid;

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

fn running_of(row: &PgRow) -> Result<Running> {
    Ok(Running {
        job_id: job_at(row, 0)?,
        fence: fence_at(row, 1)?,
        lane_id: at(row, 2)?,
        scope_id: at(row, 3)?,
        worker_no: at(row, 4)?,
        permit_no: at::<Option<i64>>(row, 5)?.unwrap_or(0),
        in_flight: at::<i64>(row, 6)? == 1,
        cancel_ms: at(row, 7)?,
        seq: counter(row, 8)?,
        priority: at(row, 9)?,
        rank_ms: at(row, 10)?,
        executions: counter(row, 11)?,
        deferrals: counter(row, 12)?,
        repairs: counter(row, 13)?,
        lost: counter(row, 14)?,
        waiting_since_ms: at(row, 15)?,
        parked_ms: at(row, 16)?,
        claimed_ms: at::<Option<i64>>(row, 17)?.unwrap_or(0),
        paused: at::<Option<i64>>(row, 18)?.is_some(),
        told: at::<i64>(row, 19)? == 1,
        once: at::<i64>(row, 20)? == 1,
    })
}

/// Locks the turns named that still run under their fences, in the order of their ids; their scopes are locked. A job
/// named twice is there once: the second write of a fence finds nothing.
pub(super) async fn in_hand(tx: &mut Tx, turns: &[(JobId, Fence)]) -> Res<HashMap<(JobId, Fence), Running>> {
    let ids: Vec<Uuid> = turns.iter().map(|(job, _)| job.0).collect();
    let mut found = HashMap::with_capacity(turns.len());
    if ids.is_empty() {
        return Ok(found);
    }
    for row in tx.all(sql!("turns_in_hand").arg(ids)).await? {
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

pub(super) async fn put_back(tx: &mut Tx, turns: &[Back]) -> Res<()> {
    if turns.is_empty() {
        return Ok(());
    }
    let mut ready: HashMap<i64, i64> = HashMap::new();
    for turn in turns.iter().filter(|turn| turn.due_ms.is_none() && !turn.paused) {
        *ready.entry(turn.lane_id).or_default() += 1;
    }
    let numbers = |of: fn(&Back) -> i64| turns.iter().map(of).collect::<Vec<i64>>();
    let stmt = sql!("turns_put_back")
        .arg(turns.iter().map(|t| t.job_id.0).collect::<Vec<Uuid>>())
        .arg(numbers(|t| i64::from(t.due_ms.is_some())))
        .arg(numbers(|t| t.rank_ms))
        .arg(turns.iter().map(|t| t.due_ms).collect::<Vec<Option<i64>>>())
        .arg(numbers(|t| i64::from(t.seq)))
        .arg(numbers(|t| i64::from(t.executions)))
        .arg(numbers(|t| i64::from(t.deferrals)))
        .arg(numbers(|t| i64::from(t.repairs)))
        .arg(numbers(|t| i64::from(t.lost)))
        .arg(turns.iter().map(|t| t.waiting_since_ms).collect::<Vec<Option<i64>>>());
    tx.run(stmt).await?;
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

pub(super) fn cancelled(job_id: JobId, now_ms: i64) -> Result<End> {
    Ok(End { job_id, state: JobState::Cancelled, result: None, error: Some(cancelled_error()?), at_ms: now_ms })
}

/// Ends jobs and deletes their turns, which were waiting or running until now and are locked. Last in its transaction:
/// the order of endings is locked from the draw to the commit.
pub(super) async fn end(tx: &mut Tx, ends: &[End]) -> Res<()> {
    if ends.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = ends.iter().map(|end| end.job_id.0).collect();
    tx.run(sql!("turns_delete").arg(ids.clone())).await?;
    let n = i64::try_from(ends.len()).unwrap_or(i64::MAX);
    let last = tx.number(sql!("draw_ended").arg(n)).await?;
    let stmt = sql!("jobs_end")
        .arg(ids)
        .arg(ends.iter().map(|e| text::state(e.state)).collect::<Vec<&str>>())
        .arg(ends.iter().map(|e| e.result.as_deref()).collect::<Vec<Option<&str>>>())
        .arg(ends.iter().map(|e| e.error.as_deref()).collect::<Vec<Option<&str>>>())
        .arg(ends.iter().map(|e| e.at_ms).collect::<Vec<i64>>())
        .arg((last - n + 1..=last).collect::<Vec<i64>>());
    if usize::try_from(tx.run(stmt).await?) != Ok(ends.len()) {
        return Err(Error::Database("a job that had ended would have ended again".into()).into());
    }
    let mut counts: HashMap<&str, i64> = HashMap::new();
    for end in ends {
        *counts.entry(text::state(end.state)).or_default() += 1;
    }
    let (names, by): (Vec<&str>, Vec<i64>) = counts.into_iter().unzip();
    tx.run(sql!("count_up").arg(names).arg(by)).await?;
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

pub(super) async fn records(tx: &mut Tx, records: &[NewRecord<'_>]) -> Res<()> {
    if records.is_empty() {
        return Ok(());
    }
    // A column of each: of the record, of its final send, and of the refusal that the send tests.
    macro_rules! record {
        ($r:ident => $value:expr) => {
            records
                .iter()
                .map(|new| {
                    let $r = new.record;
                    $value
                })
                .collect::<Vec<_>>()
        };
    }
    macro_rules! send {
        ($s:ident => $value:expr) => {
            records.iter().map(|new| new.send.and_then(|$s| $value)).collect::<Vec<_>>()
        };
    }
    let stmt = sql!("record_insert")
        .arg(records.iter().map(|new| new.job_id.0).collect::<Vec<Uuid>>())
        .arg(records.iter().map(|new| new.fence.0).collect::<Vec<i64>>())
        .arg(record!(r => i64::from(r.seq)))
        .arg(record!(r => text::outcome(r.outcome)))
        .arg(record!(r => r.cut.as_deref()))
        .arg(record!(r => r.started_ms))
        .arg(record!(r => r.ended_ms))
        .arg(record!(r => r.attempts.map(i64::from)))
        .arg(record!(r => r.error.as_deref()))
        .arg(record!(r => r.response.as_deref()))
        .arg(record!(r => r.usage.input_tokens))
        .arg(record!(r => r.usage.output_tokens))
        .arg(record!(r => r.usage.total_tokens))
        .arg(record!(r => r.class.as_deref()))
        .arg(record!(r => r.cause.as_deref()))
        .arg(record!(r => r.code.as_deref()))
        .arg(record!(r => r.http_status.map(i64::from)))
        .arg(record!(r => r.rule.as_deref()))
        .arg(record!(r => r.rules_version.map(i64::from)))
        .arg(record!(r => r.decision.as_deref()))
        .arg(record!(r => r.resume_at_ms))
        .arg(record!(r => r.skew_ms))
        .arg(record!(r => r.phase.as_deref()))
        .arg(record!(r => r.request_id.as_deref()))
        .arg(record!(r => r.provider_code.as_deref()))
        .arg(record!(r => r.provider_type.as_deref()))
        .arg(record!(r => r.finish_reason.as_deref()))
        .arg(record!(r => r.provider_model.as_deref()))
        .arg(record!(r => r.received_ms))
        .arg(send!(s => Some(i64::from(s.n))))
        .arg(send!(s => Some(s.permit_ms)))
        .arg(send!(s => Some(s.started_ms)))
        .arg(send!(s => s.first_byte_ms))
        .arg(send!(s => Some(s.ended_ms)))
        .arg(send!(s => Some(s.outcome.as_str())))
        .arg(send!(s => s.http_status.map(i64::from)))
        .arg(send!(s => s.cause.as_deref()))
        .arg(send!(s => s.class.as_deref()))
        .arg(send!(s => s.error.as_deref()))
        .arg(send!(s => s.wait_ms))
        .arg(send!(s => s.wait_source.as_deref()))
        .arg(send!(s => s.tests.map(|k| k.job_id.0)))
        .arg(send!(s => s.tests.map(|k| k.fence.0)))
        .arg(send!(s => s.tests.map(|k| i64::from(k.n))))
        .arg(send!(s => s.tests_resume_ms));
    tx.run(stmt).await?;
    Ok(())
}

pub(super) async fn evidence(tx: &mut Tx, job_id: JobId, fence: Fence, row: &EvidenceRow) -> Res<()> {
    let candidates = serde_json::to_string(&row.candidates)
        .map_err(|e| Error::Undecodable { what: "the candidates of a reset", why: e.to_string() })?;
    let stmt = sql!("evidence_insert")
        .arg(job_id.0)
        .arg(fence.0)
        .arg(i64::from(row.n))
        .arg(row.received_ms)
        .arg(row.reset_at_ms)
        .arg(row.resume_at_ms)
        .arg(row.skew_ms)
        .arg(row.source_kind.as_deref())
        .arg(row.source_name.as_deref())
        .arg(row.raw.as_deref())
        .arg(row.limit_kind.map(text::limit_kind))
        .arg(row.cause.as_str())
        .arg(row.rule.as_deref())
        .arg(i64::from(row.rules_version))
        .arg(candidates.as_str())
        .arg(row.candidates.iter().map(|one| one.source.as_str()).collect::<Vec<&str>>())
        .arg(row.candidates.iter().map(|one| one.name.as_str()).collect::<Vec<&str>>())
        .arg(row.candidates.iter().map(|one| one.verdict.as_str()).collect::<Vec<&str>>());
    tx.run(stmt).await?;
    Ok(())
}

pub(super) async fn inbox(tx: &mut Tx, job_id: JobId, rows: &[InboxRow]) -> Res<()> {
    for row in rows {
        inbox_row(tx, job_id, row, None).await?;
    }
    Ok(())
}

/// One row of a transcript; `key` makes a posting repeatable.
pub(super) async fn inbox_row(tx: &mut Tx, job_id: JobId, row: &InboxRow, key: Option<&str>) -> Res<()> {
    let stmt = sql!("inbox_insert")
        .arg(job_id.0)
        .arg(i64::from(row.seq))
        .arg(row.kind.as_str())
        .arg(row.body.as_str())
        .arg(row.at_ms)
        .arg(key);
    tx.run(stmt).await?;
    Ok(())
}
