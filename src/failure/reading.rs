//! The one reading of a failure: class, cause, limit, resume instant, and where each came from.

use super::{CancelPoint, Candidate, Limit, Phase};
use serde::{Deserialize, Serialize};

/// For people and for code that branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    RateLimit,
    Quota,
    Authentication,
    ContentFiltered,
    ContextWindowExceeded,
    InvalidRequest,
    Timeout,
    Unavailable,
    ProviderError,
}

impl Class {
    /// The stored word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit",
            Self::Quota => "quota",
            Self::Authentication => "authentication",
            Self::ContentFiltered => "content_filtered",
            Self::ContextWindowExceeded => "context_window_exceeded",
            Self::InvalidRequest => "invalid_request",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::ProviderError => "provider_error",
        }
    }
}

/// The wire vocabulary of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    RateLimit,
    UsageLimit,
    ContextLimit,
    OutputLimit,
    ProviderError,
    Transport,
    Incomplete,
    Deadline,
    Cancelled,
}

impl Cause {
    /// The stored word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit",
            Self::UsageLimit => "usage_limit",
            Self::ContextLimit => "context_limit",
            Self::OutputLimit => "output_limit",
            Self::ProviderError => "provider_error",
            Self::Transport => "transport",
            Self::Incomplete => "incomplete",
            Self::Deadline => "deadline",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a spent allowance needs: somebody's payment, or the turn of its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allowance {
    Purse,
    Window,
}

/// Whom a refusal concerns: the whole account, or one model of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    Account,
    Model,
}

/// What must be known of a call, besides how it ended, to read its failure.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// When the answer or error was received, on the store's clock.
    pub received_ms: i64,
    /// How long the send took, from its start to `received_ms`; part of the clock-skew rule.
    pub send_took_ms: i64,
    /// The configured identity, else the endpoint's host (lower case, no port). A host-specific rule matches on it.
    pub provider: String,
    /// Only a configured opaque identity.
    pub account: Option<String>,
    /// The exact model requested.
    pub model: String,
    /// Sends of this execution so far, this one included; `None`: not known.
    pub attempts: Option<u32>,
    /// Whether the vendor's sentence is kept out of the message (the default).
    pub redact_vendor_messages: bool,
}

/// One failure, read once. Everything that shows, stores or acts on it uses these values and reads nothing again.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    pub class: Class,
    pub cause: Cause,
    pub retryable: bool,
    pub http_status: Option<u16>,
    pub phase: Option<Phase>,
    /// A transport's or terminal fault's short detail.
    pub detail: Option<String>,
    pub provider_code: Option<String>,
    pub provider_type: Option<String>,
    pub request_id: Option<String>,
    pub finish_reason: Option<String>,
    /// Only a numeric integral `retry-after` in 0..=30.
    pub retry_after_secs: Option<u64>,
    /// Where the response carried a `retry-after` that was malformed, an HTTP-date or above 30: `strict` waits no longer.
    pub retry_after_stops_strict: bool,
    pub attempts: Option<u32>,
    /// Of a `quota` only.
    pub allowance: Option<Allowance>,
    /// A spent window of one day, whose refusals are asked again at most hourly.
    pub per_day: bool,
    /// On `rate_limit` and `usage_limit` only.
    pub limit: Option<Limit>,
    /// When to go on, on our clock; also of a 5xx that named a wait. `None`: nothing named an instant.
    pub resume_at_ms: Option<i64>,
    /// How far our clock is ahead of the provider's where absolute resets were shifted by it; 0 when not.
    pub skew_ms: i64,
    /// Every candidate, the selected one included, in a stable order.
    pub evidence: Vec<Candidate>,
    /// Whom it holds, if it holds anybody.
    pub reach: Reach,
    /// A 401, or a 403 that concerns the key and neither the model nor a page of HTML.
    pub concerns_key: bool,
    /// It refused more in flight than it takes: backoff, and admission lowers what is in flight.
    pub concurrency: bool,
    /// It came inside a 2xx: the provider had taken the call up, whatever status the frame or body states of itself.
    pub inside_2xx: bool,
    /// Where a cancel struck.
    pub cancelled_at: Option<CancelPoint>,
    /// The rule that decided, and the version of the rules.
    pub rule: Option<String>,
    pub rules_version: u32,
    pub received_ms: i64,
    /// The vendor's own sentence, at most 500 characters; only where redaction is switched off.
    pub vendor_message: Option<String>,
}
