//! Documents that the store itself writes: of jobs that end without a word from their worker.

use super::{Error, Outcome, Result, TurnRecord, Usage};
use crate::failure::{CancelPoint, ErrorDocument, codes};

fn text(document: &ErrorDocument) -> Result<String> {
    serde_json::to_string(document).map_err(|e| Error::Undecodable { what: "an error document", why: e.to_string() })
}

/// The error of a job that somebody cancelled while it waited, or that could not be told so by its worker.
pub(super) fn cancelled_error() -> Result<String> {
    text(&ErrorDocument::cancelled(CancelPoint::Waiting))
}

/// The error of a job whose deadline passed before anything was tried.
pub(super) fn deadline_error() -> Result<String> {
    own_error(codes::DEADLINE_EXCEEDED, "the job's deadline passed while it waited", false)
}

/// The error of a turn whose worker is gone.
pub(super) fn lost_error() -> Result<String> {
    own_error(codes::WORKER_LOST, "the worker's lease lapsed while it held the turn", true)
}

/// An error of our own: no class, no `model_failure` (contract §7).
fn own_error(code: &str, message: &str, retryable: bool) -> Result<String> {
    text(&ErrorDocument { retryable, ..ErrorDocument::own(code, message) })
}

/// The record of an execution whose worker is gone: nothing is known of what it sent.
pub(super) fn lost_record(seq: u32, started_ms: i64, ended_ms: i64) -> Result<TurnRecord> {
    Ok(TurnRecord {
        seq,
        outcome: Outcome::Lost,
        cut: None,
        started_ms,
        ended_ms,
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
