//! A job's records with their sends and evidence, and what its next request is built from.

use super::columns::{number, number_opt, send_key, text, text_opt, whole, whole_opt};
use super::state::kind;
use crate::failure::Candidate;
use crate::store::sqlite::conn::Conn;
use crate::store::sqlite::text as words;
use crate::store::sqlite::tx::{at, blob, fence_at, hex, int, json, sql};
use crate::store::{EvidenceRow, Fence, History, InboxRow, JobId, Result, SendRow, TurnRecord, TurnView, Usage};
use sqlx::sqlite::SqliteRow;

/// Jobs whose histories one statement reads.
const BATCH: usize = 100;

pub(in crate::store::sqlite) async fn history(conn: &mut Conn, job: JobId) -> Result<History> {
    let mut history = History::default();
    for row in conn.all(sqlx::query(sql!("history_records")).bind(blob(job.0))).await? {
        history.responses.push((int(&row, 0)?, at(&row, 1)?, at(&row, 2)?));
    }
    for row in conn.all(sqlx::query(sql!("history_inbox")).bind(blob(job.0))).await? {
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
pub(in crate::store::sqlite) async fn histories(conn: &mut Conn, jobs: &[JobId]) -> Result<Vec<History>> {
    let mut all = vec![History::default(); jobs.len()];
    for ids in jobs.chunks(BATCH).zip(all.chunks_mut(BATCH)) {
        let (jobs, histories) = ids;
        let ids = json(&jobs.iter().map(|id| hex(id.0)).collect::<Vec<_>>())?;
        for row in conn.all(sqlx::query(sql!("histories_records")).bind(ids.as_str())).await? {
            if let Some(history) = histories.get_mut(int::<usize>(&row, 0)?) {
                history.responses.push((int(&row, 1)?, at(&row, 2)?, at(&row, 3)?));
            }
        }
        for row in conn.all(sqlx::query(sql!("histories_inbox")).bind(ids)).await? {
            if let Some(history) = histories.get_mut(int::<usize>(&row, 0)?) {
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
pub(in crate::store::sqlite) async fn turns(conn: &mut Conn, job: JobId) -> Result<Vec<TurnView>> {
    let mut views: Vec<TurnView> = Vec::new();
    for row in conn.all(sqlx::query(sql!("turn_records")).bind(blob(job.0))).await? {
        views.push(TurnView {
            fence: fence_at(&row, 0)?,
            record: record_of(&row),
            sends: Vec::new(),
            evidence: Vec::new(),
        });
    }
    let place = |views: &[TurnView], fence: Fence| views.binary_search_by_key(&fence, |view| view.fence).ok();
    for row in conn.all(sqlx::query(sql!("turn_sends")).bind(blob(job.0))).await? {
        if let Some(view) = place(&views, fence_at(&row, 0)?).and_then(|index| views.get_mut(index)) {
            view.sends.push(send_of(&row));
        }
    }
    for row in conn.all(sqlx::query(sql!("turn_evidence")).bind(blob(job.0))).await? {
        if let Some(view) = place(&views, fence_at(&row, 0)?).and_then(|index| views.get_mut(index)) {
            view.evidence.push(evidence(&row, 1));
        }
    }
    Ok(views)
}

fn record_of(row: &SqliteRow) -> TurnRecord {
    TurnRecord {
        seq: number(row, 1),
        outcome: words::outcome_of(&text(row, 2)),
        cut: text_opt(row, 3),
        started_ms: whole(row, 4),
        ended_ms: whole(row, 5),
        attempts: number_opt(row, 6),
        error: text_opt(row, 7),
        response: text_opt(row, 8),
        usage: Usage {
            input_tokens: whole_opt(row, 9),
            output_tokens: whole_opt(row, 10),
            total_tokens: whole_opt(row, 11),
        },
        class: text_opt(row, 12),
        cause: text_opt(row, 13),
        code: text_opt(row, 14),
        http_status: number_opt(row, 15),
        rule: text_opt(row, 16),
        rules_version: number_opt(row, 17),
        decision: text_opt(row, 18),
        resume_at_ms: whole_opt(row, 19),
        skew_ms: whole_opt(row, 20),
        phase: text_opt(row, 21),
        request_id: text_opt(row, 22),
        provider_code: text_opt(row, 23),
        provider_type: text_opt(row, 24),
        finish_reason: text_opt(row, 25),
        provider_model: text_opt(row, 26),
        received_ms: whole_opt(row, 27),
    }
}

fn send_of(row: &SqliteRow) -> SendRow {
    SendRow {
        n: number(row, 1),
        permit_ms: whole(row, 2),
        started_ms: whole(row, 3),
        first_byte_ms: whole_opt(row, 4),
        ended_ms: whole(row, 5),
        outcome: text(row, 6),
        http_status: number_opt(row, 7),
        cause: text_opt(row, 8),
        class: text_opt(row, 9),
        error: text_opt(row, 10),
        wait_ms: whole_opt(row, 11),
        wait_source: text_opt(row, 12),
        tests: send_key(row, 13),
        tests_resume_ms: whole_opt(row, 16),
    }
}

/// Thirteen columns from `first` on, the first of them `n`.
pub(super) fn evidence(row: &SqliteRow, first: usize) -> EvidenceRow {
    EvidenceRow {
        n: number(row, first),
        received_ms: whole(row, first + 1),
        reset_at_ms: whole_opt(row, first + 2),
        resume_at_ms: whole_opt(row, first + 3),
        skew_ms: whole(row, first + 4),
        source_kind: text_opt(row, first + 5),
        source_name: text_opt(row, first + 6),
        raw: text_opt(row, first + 7),
        limit_kind: kind(row, first + 8),
        cause: text(row, first + 9),
        rule: text_opt(row, first + 10),
        rules_version: number(row, first + 11),
        candidates: candidates(&text(row, first + 12)),
    }
}

/// What this release cannot read of them is left out, and hides no other.
pub(super) fn candidates(document: &str) -> Vec<Candidate> {
    let all: Vec<serde_json::Value> = serde_json::from_str(document).unwrap_or_else(|error| {
        tracing::warn!(%error, "candidates of a reset cannot be read");
        Vec::new()
    });
    all.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect()
}
