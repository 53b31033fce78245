//! What is kept of a failure: `model_failure` v1 and the error document around it, with readers that tolerate what a
//! newer release wrote.

use super::{LimitKind, SourceKind};
use serde::{Deserialize, Serialize};

/// `Job.error` and `TurnRecord.error`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorDocument {
    pub code: String,
    pub message: String,
    pub class: Option<String>,
    pub retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_failure: Option<ModelFailure>,
}

/// The persisted record, version 1. What is unknown is omitted, never zero or null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelFailure {
    pub schema_version: u32,
    pub cause: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_secs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

/// What ran out, when it resets, and where that was read. All five members are always present.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    pub schema_version: u32,
    pub kind: Option<LimitKind>,
    /// As named, in UTC Unix milliseconds.
    pub reset_at_ms: Option<i64>,
    /// Null exactly when `reset_at_ms` is.
    pub reset_source: Option<ResetSource>,
    pub identity: Identity,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetSource {
    pub kind: SourceKind,
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub provider: Option<String>,
    pub account: Option<String>,
    pub model: Option<String>,
}
