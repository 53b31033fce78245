//! From what happened to what is kept of it: the rows of sends, evidence, refusals and records.

use crate::failure::{Class, ErrorDocument, Failure, Reach, Verdict};
use crate::provider::{Answer, Heard};
use crate::recovery::{Decision, Policy, Situation, hold_until, wait_source};
use crate::store::{EvidenceRow, Grant, Outcome, RefusalRow, ScopeKey, SendRow, TurnRecord, Usage};

/// When a send started and ended, and what it was permitted by.
pub(super) struct Span {
    pub n: u32,
    pub grant: Grant,
    pub started_ms: i64,
    pub ended_ms: i64,
    pub first_byte_ms: Option<i64>,
}

/// The row of a send that was answered and completed.
pub(super) fn answered_send(span: &Span) -> SendRow {
    SendRow {
        n: span.n,
        permit_ms: span.grant.permit_ms,
        started_ms: span.started_ms,
        first_byte_ms: span.first_byte_ms,
        ended_ms: span.ended_ms,
        outcome: "answered".into(),
        http_status: None,
        cause: None,
        class: None,
        error: None,
        wait_ms: None,
        wait_source: None,
        tests: span.grant.probe.and_then(|probe| probe.tests),
        tests_resume_ms: span.grant.probe.map(|probe| probe.resume_ms),
    }
}

/// The row of a send that failed.
pub(super) fn failed_send(span: &Span, failure: &Failure) -> SendRow {
    let outcome = if is_refusal(failure) {
        "refused"
    } else if failure.cancelled_at.is_some() {
        "cancelled"
    } else {
        "failed"
    };
    SendRow {
        outcome: outcome.into(),
        http_status: failure.http_status,
        cause: Some(failure.cause.as_str().into()),
        class: Some(failure.class.as_str().into()),
        ..answered_send(span)
    }
}

/// The row of a send that we cut ourselves.
pub(super) fn cut_send(span: &Span) -> SendRow {
    SendRow { outcome: "cut".into(), ..answered_send(span) }
}

/// A refusal in the sense of holds: a rate, or an allowance whose end was named.
pub(super) fn is_refusal(failure: &Failure) -> bool {
    matches!(failure.class, Class::RateLimit | Class::Quota)
}

/// Every candidate of a failure that named or could have named a reset.
pub(super) fn evidence(failure: &Failure, n: u32) -> Option<EvidenceRow> {
    if failure.evidence.is_empty() && !is_refusal(failure) {
        return None;
    }
    let selected = failure.evidence.iter().find(|candidate| candidate.verdict == Verdict::Selected);
    Some(EvidenceRow {
        n,
        received_ms: failure.received_ms,
        reset_at_ms: selected.and_then(|candidate| candidate.at_ms),
        resume_at_ms: failure.resume_at_ms,
        skew_ms: failure.skew_ms,
        source_kind: selected.map(|candidate| candidate.source.as_str().into()),
        source_name: selected.map(|candidate| candidate.name.clone()),
        raw: selected.and_then(|candidate| candidate.raw.clone()),
        limit_kind: failure.limit.as_ref().and_then(|limit| limit.kind),
        cause: failure.cause.as_str().into(),
        rule: failure.rule.clone(),
        rules_version: failure.rules_version,
        candidates: failure.evidence.clone(),
    })
}

/// What a refusal does to its scope; `None`: it holds nobody.
pub(super) fn refusal(
    failure: &Failure,
    scope: &ScopeKey,
    situation: &Situation,
    policy: &Policy,
) -> Option<RefusalRow> {
    let until_ms = hold_until(failure, situation, policy)?;
    let source = wait_source(failure, until_ms);
    let selected = failure.evidence.iter().find(|candidate| candidate.verdict == Verdict::Selected);
    let scope = match failure.reach {
        Reach::Account => scope.of_account(),
        Reach::Model => scope.clone(),
    };
    Some(RefusalRow {
        scope,
        cause: failure.cause.as_str().into(),
        kind: failure.limit.as_ref().and_then(|limit| limit.kind),
        until_ms,
        source: source.into(),
        raw: selected.filter(|candidate| candidate.name == source).and_then(|candidate| candidate.raw.clone()),
        barren: situation.barren,
    })
}

/// How one execution went, for its record.
pub(super) struct Account {
    pub seq: u32,
    pub started_ms: i64,
    pub ended_ms: i64,
    pub sends: u32,
}

/// The record of a completed turn.
pub(super) fn completed(account: &Account, answer: &Answer, response: String) -> TurnRecord {
    TurnRecord {
        attempts: Some(account.sends),
        response: Some(response),
        usage: answer.usage,
        request_id: answer.request_id.clone(),
        finish_reason: answer.finish_reason.clone(),
        provider_model: answer.provider_model.clone(),
        received_ms: Some(account.ended_ms),
        ..bare(account, Outcome::Completed)
    }
}

/// The record of an execution that ended with a failure of the model call.
pub(super) fn failed(account: &Account, outcome: Outcome, failure: &Failure, decision: Decision) -> TurnRecord {
    TurnRecord {
        attempts: Some(account.sends),
        error: json(&failure.document()),
        class: Some(failure.class.as_str().into()),
        cause: Some(failure.cause.as_str().into()),
        code: Some(failure.document().code),
        http_status: failure.http_status,
        rule: failure.rule.clone(),
        rules_version: Some(failure.rules_version),
        decision: Some(decision.as_str().into()),
        resume_at_ms: failure.resume_at_ms,
        skew_ms: Some(failure.skew_ms),
        phase: failure.phase.map(|phase| phase.as_str().into()),
        request_id: failure.request_id.clone(),
        provider_code: failure.provider_code.clone(),
        provider_type: failure.provider_type.clone(),
        finish_reason: failure.finish_reason.clone(),
        received_ms: Some(failure.received_ms),
        ..bare(account, outcome)
    }
}

/// The record of an execution that ended with a code of our own.
pub(super) fn own(account: &Account, outcome: Outcome, error: &ErrorDocument) -> TurnRecord {
    TurnRecord {
        attempts: Some(account.sends),
        error: json(error),
        code: Some(error.code.clone()),
        ..bare(account, outcome)
    }
}

fn bare(account: &Account, outcome: Outcome) -> TurnRecord {
    TurnRecord {
        seq: account.seq,
        outcome,
        cut: None,
        started_ms: account.started_ms,
        ended_ms: account.ended_ms,
        attempts: None,
        error: None,
        response: None,
        usage: Usage::default(),
        class: None,
        cause: None,
        code: None,
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
    }
}

/// A document as the store keeps it. Documents of ours are plain structs: they always serialise.
pub(super) fn json(document: &ErrorDocument) -> Option<String> {
    serde_json::to_string(document).map_err(|error| tracing::error!(%error, "an error document did not serialise")).ok()
}

/// Whether a send's answer opens its scope: a first frame of a 2xx, or an answer that is no refusal, 401, 403 or 5xx.
pub(super) fn opens(heard: &Heard, failure: Option<&Failure>) -> bool {
    let Some(failure) = failure else { return true };
    if is_refusal(failure) {
        return false;
    }
    heard.first_byte_ms.is_some()
        || failure.http_status.is_some_and(|status| (400..500).contains(&status) && !matches!(status, 401 | 403))
}
