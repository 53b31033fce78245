//! A job's records with their sends and evidence, and what its next request is built from.

use super::state::kind_at;
use crate::failure::Candidate;
use crate::store::postgres::conn::sql;
use crate::store::postgres::fault::Res;
use crate::store::postgres::rows::{at, fence_at, int, int_opt, key_opt};
use crate::store::postgres::tx::Tx;
use crate::store::text;
use crate::store::{EvidenceRow, Fence, History, InboxRow, JobId, Result, SendRow, TurnRecord, TurnView, Usage};
use sqlx::postgres::PgRow;
use uuid::Uuid;

/// Jobs whose histories one statement reads.
const BATCH: usize = 100;

pub(in crate::store::postgres) async fn history(tx: &mut Tx, job: JobId) -> Res<History> {
    let mut history = History::default();
    for row in tx.all(sql!("history_records").arg(job.0)).await? {
        history.responses.push((int(&row, 0)?, at(&row, 1)?, at(&row, 2)?));
    }
    for row in tx.all(sql!("history_inbox").arg(job.0)).await? {
        history.inbox.push(InboxRow {
            seq: int(&row, 0)?,
            kind: at(&row, 1)?,
            body: at(&row, 2)?,
            at_ms: at(&row, 3)?,
        });
    }
    Ok(history)
}

/// Several jobs' histories, in the order given. One that cannot be read fails them all: a request built from half a
/// transcript would be worse.
pub(in crate::store::postgres) async fn histories(tx: &mut Tx, jobs: &[JobId]) -> Res<Vec<History>> {
    let mut all = vec![History::default(); jobs.len()];
    for (jobs, histories) in jobs.chunks(BATCH).zip(all.chunks_mut(BATCH)) {
        let ids: Vec<Uuid> = jobs.iter().map(|id| id.0).collect();
        for row in tx.all(sql!("histories_records").arg(ids.clone())).await? {
            if let Some(history) = histories.get_mut(int::<usize>(&row, 0)? - 1) {
                history.responses.push((int(&row, 1)?, at(&row, 2)?, at(&row, 3)?));
            }
        }
        for row in tx.all(sql!("histories_inbox").arg(ids)).await? {
            if let Some(history) = histories.get_mut(int::<usize>(&row, 0)? - 1) {
                history.inbox.push(InboxRow {
                    seq: int(&row, 1)?,
                    kind: at(&row, 2)?,
                    body: at(&row, 3)?,
                    at_ms: at(&row, 4)?,
                });
            }
        }
    }
    Ok(all)
}

/// Replaced sends of the execution that runs now stand beside no record yet, and are not shown here.
pub(in crate::store::postgres) async fn turns(tx: &mut Tx, job: JobId) -> Res<Vec<TurnView>> {
    let mut views: Vec<TurnView> = Vec::new();
    for row in tx.all(sql!("turn_records").arg(job.0)).await? {
        views.push(TurnView {
            fence: fence_at(&row, 0)?,
            record: record_of(&row)?,
            sends: Vec::new(),
            evidence: Vec::new(),
        });
    }
    let place = |views: &[TurnView], fence: Fence| views.binary_search_by_key(&fence, |view| view.fence).ok();
    for row in tx.all(sql!("turn_sends").arg(job.0)).await? {
        if let Some(view) = place(&views, fence_at(&row, 0)?).and_then(|index| views.get_mut(index)) {
            view.sends.push(send_of(&row)?);
        }
    }
    for row in tx.all(sql!("turn_evidence").arg(job.0)).await? {
        if let Some(view) = place(&views, fence_at(&row, 0)?).and_then(|index| views.get_mut(index)) {
            view.evidence.push(evidence_columns(&row, int(&row, 1)?, 2)?);
        }
    }
    Ok(views)
}

fn record_of(row: &PgRow) -> Result<TurnRecord> {
    Ok(TurnRecord {
        seq: int(row, 1)?,
        outcome: text::outcome_of(&at::<String>(row, 2)?),
        cut: at(row, 3)?,
        started_ms: at(row, 4)?,
        ended_ms: at(row, 5)?,
        attempts: int_opt(row, 6)?,
        error: at(row, 7)?,
        response: at(row, 8)?,
        usage: Usage { input_tokens: at(row, 9)?, output_tokens: at(row, 10)?, total_tokens: at(row, 11)? },
        class: at(row, 12)?,
        cause: at(row, 13)?,
        code: at(row, 14)?,
        http_status: int_opt(row, 15)?,
        rule: at(row, 16)?,
        rules_version: int_opt(row, 17)?,
        decision: at(row, 18)?,
        resume_at_ms: at(row, 19)?,
        skew_ms: at(row, 20)?,
        phase: at(row, 21)?,
        request_id: at(row, 22)?,
        provider_code: at(row, 23)?,
        provider_type: at(row, 24)?,
        finish_reason: at(row, 25)?,
        provider_model: at(row, 26)?,
        received_ms: at(row, 27)?,
    })
}

fn send_of(row: &PgRow) -> Result<SendRow> {
    Ok(SendRow {
        n: int(row, 1)?,
        permit_ms: at(row, 2)?,
        started_ms: at(row, 3)?,
        first_byte_ms: at(row, 4)?,
        ended_ms: at(row, 5)?,
        outcome: at(row, 6)?,
        http_status: int_opt(row, 7)?,
        cause: at(row, 8)?,
        class: at(row, 9)?,
        error: at(row, 10)?,
        wait_ms: at(row, 11)?,
        wait_source: at(row, 12)?,
        tests: key_opt(row, 13)?,
        tests_resume_ms: at(row, 16)?,
    })
}

/// Twelve columns from `first` on.
pub(super) fn evidence_columns(row: &PgRow, n: u32, first: usize) -> Result<EvidenceRow> {
    Ok(EvidenceRow {
        n,
        received_ms: at(row, first)?,
        reset_at_ms: at(row, first + 1)?,
        resume_at_ms: at(row, first + 2)?,
        skew_ms: at(row, first + 3)?,
        source_kind: at(row, first + 4)?,
        source_name: at(row, first + 5)?,
        raw: at(row, first + 6)?,
        limit_kind: kind_at(row, first + 7)?,
        cause: at(row, first + 8)?,
        rule: at(row, first + 9)?,
        rules_version: int(row, first + 10)?,
        candidates: candidates(&at::<String>(row, first + 11)?),
    })
}

/// What this release cannot read of them is left out, and hides no other.
pub(super) fn candidates(document: &str) -> Vec<Candidate> {
    let all: Vec<serde_json::Value> = serde_json::from_str(document).unwrap_or_else(|error| {
        tracing::warn!(%error, "candidates of a reset cannot be read");
        Vec::new()
    });
    all.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect()
}
