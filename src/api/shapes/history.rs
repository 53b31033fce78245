//! What happened: records of executions, their sends and evidence, failures and their counts.

use super::{Scope, document};
use crate::failure::{Candidate, LimitKind};
use crate::store::{self, Fence, JobId, Outcome, SendKey, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One execution of a turn: its record, its sends, and the evidence of its refusals.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    pub fence: Fence,
    pub seq: u32,
    pub outcome: Outcome,
    pub cut: Option<String>,
    pub started_ms: i64,
    pub ended_ms: i64,
    pub attempts: Option<u32>,
    pub class: Option<String>,
    pub cause: Option<String>,
    pub code: Option<String>,
    pub http_status: Option<u16>,
    pub phase: Option<String>,
    pub provider_code: Option<String>,
    pub provider_type: Option<String>,
    pub request_id: Option<String>,
    pub finish_reason: Option<String>,
    pub provider_model: Option<String>,
    pub received_ms: Option<i64>,
    pub rule: Option<String>,
    pub rules_version: Option<u32>,
    pub decision: Option<String>,
    pub resume_at_ms: Option<i64>,
    pub skew_ms: Option<i64>,
    pub usage: Usage,
    pub error: Option<Box<RawValue>>,
    pub response: Option<Box<RawValue>>,
    pub sends: Vec<Send>,
    pub evidence: Vec<Evidence>,
}

impl From<store::TurnView> for Record {
    fn from(view: store::TurnView) -> Self {
        let record = view.record;
        Self {
            fence: view.fence,
            seq: record.seq,
            outcome: record.outcome,
            cut: record.cut,
            started_ms: record.started_ms,
            ended_ms: record.ended_ms,
            attempts: record.attempts,
            class: record.class,
            cause: record.cause,
            code: record.code,
            http_status: record.http_status,
            phase: record.phase,
            provider_code: record.provider_code,
            provider_type: record.provider_type,
            request_id: record.request_id,
            finish_reason: record.finish_reason,
            provider_model: record.provider_model,
            received_ms: record.received_ms,
            rule: record.rule,
            rules_version: record.rules_version,
            decision: record.decision,
            resume_at_ms: record.resume_at_ms,
            skew_ms: record.skew_ms,
            usage: record.usage,
            error: record.error.map(document),
            response: record.response.map(document),
            sends: view.sends.into_iter().map(Send::from).collect(),
            evidence: view.evidence.into_iter().map(Evidence::from).collect(),
        }
    }
}

/// One request to a provider.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// From 1 within its execution.
    pub n: u32,
    pub permit_ms: i64,
    pub started_ms: i64,
    pub first_byte_ms: Option<i64>,
    pub ended_ms: i64,
    /// `answered`, `refused`, `failed`, `cut` or `cancelled`.
    pub outcome: String,
    pub http_status: Option<u16>,
    pub cause: Option<String>,
    pub class: Option<String>,
    pub error: Option<Box<RawValue>>,
    /// The wait after it, and whose it was: where it was read, or `curve`.
    pub wait_ms: Option<i64>,
    pub wait_source: Option<String>,
    /// The refusal whose named reset this send was the first to test.
    pub tests: Option<SendKey>,
    pub tests_resume_ms: Option<i64>,
}

impl From<store::SendRow> for Send {
    fn from(send: store::SendRow) -> Self {
        Self {
            n: send.n,
            permit_ms: send.permit_ms,
            started_ms: send.started_ms,
            first_byte_ms: send.first_byte_ms,
            ended_ms: send.ended_ms,
            outcome: send.outcome,
            http_status: send.http_status,
            cause: send.cause,
            class: send.class,
            error: send.error.map(document),
            wait_ms: send.wait_ms,
            wait_source: send.wait_source,
            tests: send.tests,
            tests_resume_ms: send.tests_resume_ms,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// `header` or `body`.
    pub kind: String,
    /// A header's name, or a JSON pointer into the body.
    pub name: String,
}

/// What one refusal said of its reset, and every candidate that was read in it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The send that was refused.
    pub n: u32,
    pub received_ms: i64,
    /// As named; null: no reset was named.
    pub reset_at_ms: Option<i64>,
    /// The same on our clock.
    pub resume_at_ms: Option<i64>,
    pub skew_ms: i64,
    pub source: Option<Source>,
    pub raw: Option<String>,
    pub kind: Option<LimitKind>,
    pub cause: String,
    pub rule: Option<String>,
    pub rules_version: u32,
    pub candidates: Vec<Candidate>,
}

impl From<store::EvidenceRow> for Evidence {
    fn from(row: store::EvidenceRow) -> Self {
        Self {
            n: row.n,
            received_ms: row.received_ms,
            reset_at_ms: row.reset_at_ms,
            resume_at_ms: row.resume_at_ms,
            skew_ms: row.skew_ms,
            source: row.source_kind.zip(row.source_name).map(|(kind, name)| Source { kind, name }),
            raw: row.raw,
            kind: row.limit_kind,
            cause: row.cause,
            rule: row.rule,
            rules_version: row.rules_version,
            candidates: row.candidates,
        }
    }
}

/// A failed execution, or (with `n`) a failed send that was replaced within its execution.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub job_id: JobId,
    pub fence: Fence,
    pub n: Option<u32>,
    pub seq: u32,
    pub queue: String,
    pub tenant: Option<String>,
    pub scope: Scope,
    pub ended_ms: i64,
    pub outcome: Option<Outcome>,
    pub decision: Option<String>,
    pub class: Option<String>,
    pub cause: Option<String>,
    pub code: Option<String>,
    pub http_status: Option<u16>,
    pub attempts: Option<u32>,
    pub rule: Option<String>,
    pub request_id: Option<String>,
    pub error: Option<Box<RawValue>>,
}

impl From<store::FailureRow> for Failure {
    fn from(row: store::FailureRow) -> Self {
        Self {
            job_id: row.job_id,
            fence: row.fence,
            n: row.n,
            seq: row.seq,
            queue: row.lane.queue,
            tenant: Some(row.lane.tenant).filter(|tenant| !tenant.is_empty()),
            scope: row.lane.scope.into(),
            ended_ms: row.ended_ms,
            outcome: row.outcome,
            decision: row.decision,
            class: row.class,
            cause: row.cause,
            code: row.code,
            http_status: row.http_status,
            attempts: row.attempts,
            rule: row.rule,
            request_id: row.request_id,
            error: row.error.map(document),
        }
    }
}

/// Failures counted by one dimension.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    pub value: String,
    pub failed: i64,
    /// Of these, how many belong to jobs that succeeded later.
    pub recovered: i64,
    pub first_ms: i64,
    pub last_ms: i64,
}

impl From<store::CountRow> for Count {
    fn from(row: store::CountRow) -> Self {
        Self {
            value: row.value,
            failed: row.failed,
            recovered: row.recovered,
            first_ms: row.first_ms,
            last_ms: row.last_ms,
        }
    }
}
