//! The JSON that jobs, records and holds are shown as, by the command line and over HTTP alike. `docs/SHAPES.md` gives an
//! example of each, and a test reads the examples as these types.
//!
//! Instants are UTC Unix milliseconds (`*_ms`). What is not known is null. Documents that were stored as text (specs,
//! results, errors) stand as the JSON they are, digit for digit; one that is no JSON stands as a string.

use super::why::{self, Why};
use crate::failure::{Candidate, LimitKind};
use crate::store::{self, Fence, HoldId, JobId, JobState, Outcome, ScopeKey, SendKey, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A page of a list.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List<T> {
    pub items: Vec<T>,
    /// Asks for the next page; null: this is the last.
    pub next_cursor: Option<String>,
}

impl<T> List<T> {
    #[must_use]
    pub fn of<R>(page: store::Page<R>, shape: impl FnMut(R) -> T) -> Self {
        Self { items: page.items.into_iter().map(shape).collect(), next_cursor: page.next_cursor }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    pub provider: String,
    pub account: String,
    /// Null: the whole account.
    pub model: Option<String>,
}

impl From<ScopeKey> for Scope {
    fn from(scope: ScopeKey) -> Self {
        Self { provider: scope.provider, account: scope.account, model: Some(scope.model).filter(|m| !m.is_empty()) }
    }
}

/// A job. `spec` and `result` are left out of lists of jobs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    pub id: JobId,
    /// As shown: `deferred` is queued behind a hold.
    pub state: String,
    pub queue: String,
    pub tenant: Option<String>,
    pub priority: i16,
    /// The provider entry that sends it.
    pub provider: String,
    pub scope: Scope,
    pub labels: BTreeMap<String, String>,
    pub created_ms: i64,
    pub finished_ms: Option<i64>,
    pub deadline_ms: Option<i64>,
    pub retry_of: Option<JobId>,
    /// Its live turn; null once it has ended.
    pub turn: Option<Turn>,
    /// What it waits for; null where it does not wait.
    pub waits: Option<Why>,
    pub error: Option<Box<RawValue>>,
    /// Null until it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<Box<RawValue>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// From 1.
    pub seq: u32,
    /// Not before this (a backoff, `not_before`); null: at once, holds permitting.
    pub due_ms: Option<i64>,
    /// Lost and requeued so far.
    pub executions: u32,
    /// Put back behind a hold so far.
    pub deferrals: u32,
}

impl Job {
    /// A row of a list.
    #[must_use]
    pub fn listed(row: store::JobRow, now_ms: i64) -> Self {
        let waits = why::why(&row, now_ms);
        Self {
            id: row.id,
            state: state(row.state, row.deferred).to_owned(),
            queue: row.lane.queue,
            tenant: Some(row.lane.tenant).filter(|tenant| !tenant.is_empty()),
            priority: row.priority,
            provider: row.entry,
            scope: row.lane.scope.into(),
            labels: row.labels.into_iter().collect(),
            created_ms: row.created_ms,
            finished_ms: row.finished_ms,
            deadline_ms: row.deadline_ms,
            retry_of: row.retry_of,
            turn: row.seq.map(|seq| Turn {
                seq,
                due_ms: row.due_ms,
                executions: row.executions.unwrap_or(0),
                deferrals: row.deferrals.unwrap_or(0),
            }),
            waits,
            error: row.error.map(document),
            result: None,
            spec: None,
        }
    }

    /// With its result: a row of `results`.
    #[must_use]
    pub fn ended(mut row: store::JobRow, now_ms: i64) -> Self {
        let result = Some(row.result.take().map_or_else(|| RawValue::NULL.to_owned(), document));
        Self { result, ..Self::listed(row, now_ms) }
    }

    /// One job, whole.
    #[must_use]
    pub fn whole(mut row: store::JobRow, workers: &[store::WorkerRow], now_ms: i64) -> Self {
        let waits = why::why_among(&row, workers, now_ms);
        let spec = Some(document(std::mem::take(&mut row.spec)));
        Self { waits, spec, ..Self::ended(row, now_ms) }
    }
}

/// The state as shown.
#[must_use]
pub fn state(state: JobState, deferred: bool) -> &'static str {
    match state {
        JobState::Queued if deferred => "deferred",
        JobState::Queued => "queued",
        JobState::Running => "running",
        JobState::RequiresAction => "requires_action",
        JobState::Succeeded => "succeeded",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
        JobState::Unknown => "unknown",
    }
}

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
    pub first_ms: i64,
    pub last_ms: i64,
}

impl From<store::CountRow> for Count {
    fn from(row: store::CountRow) -> Self {
        Self { value: row.value, failed: row.failed, first_ms: row.first_ms, last_ms: row.last_ms }
    }
}

/// A scope that is closed, or was.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    pub id: HoldId,
    pub scope: Scope,
    pub cause: String,
    pub kind: Option<LimitKind>,
    pub opened_ms: i64,
    /// Null: until somebody lifts it.
    pub until_ms: Option<i64>,
    /// Where `until_ms` was read, or `curve`.
    pub source: String,
    pub raw: Option<String>,
    /// The refusal that `until_ms` was read from.
    pub refusal: Option<SendKey>,
    pub extended: u32,
    /// Consecutive refusals at or after the instants that were promised.
    pub barren: u32,
    /// The job whose turn probes it now.
    pub probe: Option<JobId>,
    pub ended_ms: Option<i64>,
    pub end: Option<String>,
    /// Turns that wait behind it, counted up to 10,000.
    pub waiting: i64,
}

impl From<store::HoldRow> for Hold {
    fn from(row: store::HoldRow) -> Self {
        Self {
            id: row.id,
            scope: row.scope.into(),
            cause: row.cause,
            kind: row.kind,
            opened_ms: row.opened_ms,
            until_ms: row.until_ms,
            source: row.source,
            raw: row.raw,
            refusal: row.refusal,
            extended: row.extended,
            barren: row.barren,
            probe: row.probe,
            ended_ms: row.ended_ms,
            end: row.end,
            waiting: row.waiting,
        }
    }
}

/// A refusal with its candidates, and whether the provider kept its word.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reset {
    pub job_id: JobId,
    pub fence: Fence,
    pub queue: String,
    pub tenant: Option<String>,
    pub scope: Scope,
    pub evidence: Evidence,
    /// The first send after the resume instant.
    pub tested_ms: Option<i64>,
    /// Its start minus the resume instant.
    pub lateness_ms: Option<i64>,
    /// `kept`, `refused_again`, `released` or `not_tested`.
    pub word: String,
}

impl From<store::ResetRow> for Reset {
    fn from(row: store::ResetRow) -> Self {
        Self {
            job_id: row.key.job_id,
            fence: row.key.fence,
            queue: row.lane.queue,
            tenant: Some(row.lane.tenant).filter(|tenant| !tenant.is_empty()),
            scope: row.lane.scope.into(),
            evidence: row.evidence.into(),
            tested_ms: row.tested_ms,
            lateness_ms: row.lateness_ms,
            word: row.word,
        }
    }
}

/// A line of a bulk submission that was accepted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ack {
    /// From 1.
    pub line: u64,
    pub id: JobId,
    /// The same job had been accepted before.
    pub duplicate: bool,
}

/// A stored document as the JSON it is; what is no JSON stands as a string.
fn document(text: String) -> Box<RawValue> {
    if serde_json::from_str::<&RawValue>(&text).is_err() {
        return serde_json::value::to_raw_value(&text).unwrap_or_else(|_| RawValue::NULL.to_owned());
    }
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A member that is there, null included: only an absent one is `None`.
fn present<'de, D: serde::Deserializer<'de>>(member: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(member).map(Some)
}
