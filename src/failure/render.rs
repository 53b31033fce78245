//! One reading at two widths, a sentence and ordered fields, and the document that is stored. Every face renders these
//! and describes nothing itself.

use super::record::{ErrorDocument, ModelFailure, SCHEMA_VERSION};
use super::{Allowance, Cause, Class, Failure, codes};
use serde_json::Map;
use std::fmt::Write as _;

impl Failure {
    /// The composed line: `model_error: model returned HTTP 429; code=…; type=…; request_id=…; attempts=3`.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut line = format!("model_error: {}", self.headline());
        let mut add = |label: &str, value: Option<&str>| {
            if let Some(value) = value {
                // Writing to a string cannot fail.
                let _ = write!(line, "; {label}={value}");
            }
        };
        add("phase", self.phase.map(super::Phase::as_str));
        add("detail", self.detail.as_deref());
        add("at", self.cancelled_at.map(super::CancelPoint::as_str));
        add("code", self.provider_code.as_deref());
        add("type", self.provider_type.as_deref());
        add("finish_reason", self.finish_reason.as_deref());
        add("request_id", self.request_id.as_deref());
        add("attempts", self.attempts.map(|attempts| attempts.to_string()).as_deref());
        line
    }

    /// What happened, in a few words of our own.
    fn headline(&self) -> String {
        match (self.cause, self.http_status) {
            (Cause::Cancelled, _) => "model call was cancelled".into(),
            (Cause::Deadline, _) => "model call was cut by its deadline".into(),
            (Cause::Incomplete, _) => "model answer ended without a finish reason".into(),
            (Cause::OutputLimit, _) => "model answer was cut by its cap".into(),
            (Cause::Transport, _) => "model call failed".into(),
            (_, Some(status)) => format!("model returned HTTP {status}"),
            (_, None) if self.finish_reason.is_some() => "model answer ended without completing".into(),
            (_, None) if self.detail.is_some() => "model call failed".into(),
            (_, None) => "model returned an error".into(),
        }
    }

    /// Ordered pairs of label and value; what is unknown is absent.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let limit = self.limit.as_ref();
        let pairs: [(&'static str, Option<String>); 21] = [
            ("class", Some(self.class.as_str().into())),
            ("cause", Some(self.cause.as_str().into())),
            ("retryable", Some(self.retryable.to_string())),
            ("http_status", self.http_status.map(|status| status.to_string())),
            ("phase", self.phase.map(|phase| phase.as_str().into())),
            ("detail", self.detail.clone()),
            ("cancelled_at", self.cancelled_at.map(|at| at.as_str().into())),
            ("code", self.provider_code.clone()),
            ("type", self.provider_type.clone()),
            ("finish_reason", self.finish_reason.clone()),
            ("request_id", self.request_id.clone()),
            ("attempts", self.attempts.map(|attempts| attempts.to_string())),
            ("retry_after_secs", self.retry_after_secs.map(|secs| secs.to_string())),
            ("allowance", self.allowance.map(|allowance| allowance.as_str().into())),
            ("limit_kind", limit.and_then(|limit| limit.kind).map(|kind| kind.as_str().into())),
            ("reset_at", limit.and_then(|limit| limit.reset_at_ms).map(instant)),
            (
                "reset_source",
                limit
                    .and_then(|limit| limit.reset_source.as_ref())
                    .map(|source| format!("{} {}", source.kind.as_str(), source.name)),
            ),
            ("resume_at", self.resume_at_ms.map(instant)),
            ("skew_ms", Some(self.skew_ms).filter(|skew_ms| *skew_ms != 0).map(|skew_ms| skew_ms.to_string())),
            ("rule", self.rule.clone()),
            ("rules_version", Some(self.rules_version.to_string())),
        ];
        pairs.into_iter().filter_map(|(label, value)| value.map(|value| (label, value))).collect()
    }

    /// The record that is kept.
    #[must_use]
    pub fn record(&self) -> ModelFailure {
        ModelFailure {
            schema_version: SCHEMA_VERSION,
            cause: self.cause.as_str().into(),
            http_status: self.http_status,
            retry_after_secs: self.retry_after_secs,
            provider_code: self.provider_code.clone(),
            provider_type: self.provider_type.clone(),
            provider_request_id: self.request_id.clone(),
            finish_reason: self.finish_reason.clone(),
            attempts: self.attempts,
            limit: self.limit.clone(),
            extra: Map::new(),
        }
    }

    /// The error document around the record.
    #[must_use]
    pub fn document(&self) -> ErrorDocument {
        let cancelled = self.cause == Cause::Cancelled;
        let mut message = self.summary();
        if let Some(sentence) = &self.vendor_message {
            let _ = write!(message, "; message={sentence}");
        }
        ErrorDocument {
            code: if cancelled { codes::MODEL_CANCELLED } else { codes::MODEL_INCOMPLETE }.into(),
            message,
            class: Some(self.class.as_str().into()),
            retryable: self.retryable,
            phase: self.phase.map(|phase| phase.as_str().into()),
            model_failure: Some(self.record()),
            extra: Map::new(),
        }
    }
}

impl Allowance {
    /// The stored word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Purse => "purse",
            Self::Window => "window",
        }
    }
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 9] = [
        Self::RateLimit,
        Self::UsageLimit,
        Self::ContextLimit,
        Self::OutputLimit,
        Self::ProviderError,
        Self::Transport,
        Self::Incomplete,
        Self::Deadline,
        Self::Cancelled,
    ];

    /// The cause of a stored word; `None`: a newer release's.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.as_str() == word)
    }
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 9] = [
        Self::RateLimit,
        Self::Quota,
        Self::Authentication,
        Self::ContentFiltered,
        Self::ContextWindowExceeded,
        Self::InvalidRequest,
        Self::Timeout,
        Self::Unavailable,
        Self::ProviderError,
    ];

    /// The class of a stored word; `None`: a newer release's.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == word)
    }
}

/// RFC 3339 with milliseconds; an instant out of the calendar's range stays a number.
fn instant(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |at| format!("{at:.3}"))
}
