//! What is kept of executions: records, sends, evidence, and what joins the transcript.

use super::SendKey;
use crate::failure::{Candidate, LimitKind};
use serde::{Deserialize, Serialize};

/// One send as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendRow {
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
    /// The failure's error document, where it failed and was replaced.
    pub error: Option<String>,
    /// The wait after it, and whose it was: a source's name, or `curve`.
    pub wait_ms: Option<i64>,
    pub wait_source: Option<String>,
    /// Of the first send after a reset: the refusal that named it, and the instant promised.
    pub tests: Option<SendKey>,
    pub tests_resume_ms: Option<i64>,
}

/// The evidence of one refusal (or of a 5xx that named a wait).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceRow {
    pub n: u32,
    pub received_ms: i64,
    /// As named; null: no reset was named.
    pub reset_at_ms: Option<i64>,
    pub resume_at_ms: Option<i64>,
    pub skew_ms: i64,
    pub source_kind: Option<String>,
    pub source_name: Option<String>,
    pub raw: Option<String>,
    pub limit_kind: Option<LimitKind>,
    pub cause: String,
    pub rule: Option<String>,
    pub rules_version: u32,
    pub candidates: Vec<Candidate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    Queued,
    Running,
    RequiresAction,
    Succeeded,
    Failed,
    Cancelled,
    /// A word that a newer release wrote. It is read, and never written.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Completed,
    Truncated,
    Deferred,
    Requeued,
    Failed,
    Cancelled,
    Lost,
    /// A word that a newer release wrote. It is read, and never written.
    Unknown,
}

/// Tokens as the provider reported them; what it did not report is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
    pub total_tokens: Option<i64>,
}

/// The immutable record of one execution that sent something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    pub seq: u32,
    pub outcome: Outcome,
    /// `output_limit` or `stalled`, of a truncated one.
    pub cut: Option<String>,
    pub started_ms: i64,
    pub ended_ms: i64,
    /// Sends of this execution; `None`: not known.
    pub attempts: Option<u32>,
    /// The error document (JSON text).
    pub error: Option<String>,
    /// The response document (JSON text): see `agent::response`.
    pub response: Option<String>,
    pub usage: Usage,
    pub class: Option<String>,
    pub cause: Option<String>,
    pub code: Option<String>,
    pub http_status: Option<u16>,
    pub rule: Option<String>,
    pub rules_version: Option<u32>,
    /// `retry_in_place`, `defer`, `requeue`, `commit_partial`, `fail` or `stop`.
    pub decision: Option<String>,
    pub resume_at_ms: Option<i64>,
    pub skew_ms: Option<i64>,
    pub phase: Option<String>,
    pub request_id: Option<String>,
    pub provider_code: Option<String>,
    pub provider_type: Option<String>,
    pub finish_reason: Option<String>,
    /// The model as the provider named it.
    pub provider_model: Option<String>,
    pub received_ms: Option<i64>,
}

/// What joins the transcript besides the input and the responses: continuation prompts, follow-ups, tool results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InboxRow {
    /// The turn before which it is read.
    pub seq: u32,
    /// `continuation`, `message`, `tool_result`, or `answer` (taken over: `{"cut":…,"response":…}`).
    pub kind: String,
    /// JSON text.
    pub body: String,
    pub at_ms: i64,
}

/// What a job's next request is built from, besides its spec.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// `(seq, cut, response)` of its completed and truncated records, in order.
    pub responses: Vec<(u32, Option<String>, String)>,
    pub inbox: Vec<InboxRow>,
}

// -- By the clock
