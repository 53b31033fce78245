//! What is kept of a failure: `model_failure` v1 and the error document around it, with readers that tolerate what a
//! newer release wrote.
//!
//! A member that this release does not know, or whose shape it does not know, is kept verbatim in `extra` and written
//! back as it was. Only an unreadable required member makes a record undecodable, and an error document keeps even that.

use super::{LimitKind, SourceKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The only version that this release writes.
pub(super) const SCHEMA_VERSION: u32 = 1;

/// `Job.error` and `TurnRecord.error`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorDocument {
    pub code: String,
    pub message: String,
    pub class: Option<String>,
    pub retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_failure: Option<ModelFailure>,
    /// Members of a newer release, and a `model_failure` that this one cannot read.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The persisted record, version 1. What is unknown is omitted, never zero or null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelFailure {
    pub schema_version: u32,
    /// One of [`super::Cause`]'s words, or a newer release's.
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
    /// Members of a newer release, and known ones in a shape that this one does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What ran out, when it resets, and where that was read. All five members are always present.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    pub schema_version: u32,
    pub kind: Option<LimitKind>,
    /// As named, in UTC Unix milliseconds.
    pub reset_at_ms: Option<i64>,
    /// Null exactly when `reset_at_ms` is.
    pub reset_source: Option<ResetSource>,
    pub identity: Identity,
    /// Members of a newer release.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
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

impl ErrorDocument {
    /// A failure of our own, not of the model boundary (`worker_lost`, `worker_drained`, `deadline_exceeded`,
    /// `turn_limit`, `tool_failed`, `request_exceeds_limit`, …): no class, no record.
    #[must_use]
    pub fn own(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            class: None,
            retryable: false,
            phase: None,
            model_failure: None,
            extra: Map::new(),
        }
    }

    /// A cancel that struck where no call was on the wire to be read.
    #[must_use]
    pub fn cancelled(at: super::CancelPoint) -> Self {
        Self {
            class: Some(super::Class::ProviderError.as_str().into()),
            model_failure: Some(ModelFailure {
                schema_version: SCHEMA_VERSION,
                cause: super::Cause::Cancelled.as_str().into(),
                http_status: None,
                retry_after_secs: None,
                provider_code: None,
                provider_type: None,
                provider_request_id: None,
                finish_reason: None,
                attempts: None,
                limit: None,
                extra: Map::new(),
            }),
            ..Self::own(
                super::codes::MODEL_CANCELLED,
                format!("model_error: model call was cancelled; at={}", at.as_str()),
            )
        }
    }

    /// Whether the record stands in the document, but in a shape that this release cannot read.
    #[must_use]
    pub fn has_unreadable_record(&self) -> bool {
        self.model_failure.is_none() && self.extra.get("model_failure").is_some_and(|record| !record.is_null())
    }

    /// The document's cause, as it stands.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        self.model_failure.as_ref().map(|record| record.cause.as_str())
    }
}

impl ModelFailure {
    /// Whether a release wrote it whose version or cause this one does not know.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.schema_version != SCHEMA_VERSION || super::Cause::from_word(&self.cause).is_none()
    }
}

/// Takes members out of an object one by one; whatever is not taken stays as it was.
struct Members(Map<String, Value>);

impl Members {
    /// A required member.
    fn required<T: DeserializeOwned, E: serde::de::Error>(&mut self, name: &'static str) -> Result<T, E> {
        let value = self.0.remove(name).ok_or_else(|| E::missing_field(name))?;
        serde_json::from_value(value).map_err(|error| E::custom(format_args!("`{name}`: {error}")))
    }

    /// An optional member; one of an unknown shape is left where it is.
    fn optional<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        let value = self.0.get(name)?;
        if value.is_null() {
            self.0.remove(name);
            return None;
        }
        let read = T::deserialize(value.clone()).ok()?;
        self.0.remove(name);
        Some(read)
    }
}

impl<'de> Deserialize<'de> for ErrorDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Members(Map::deserialize(deserializer)?);
        Ok(Self {
            code: members.required::<_, D::Error>("code")?,
            message: members.required::<_, D::Error>("message")?,
            retryable: members.required::<_, D::Error>("retryable")?,
            class: members.optional("class"),
            phase: members.optional("phase"),
            model_failure: members.optional("model_failure"),
            extra: members.0,
        })
    }
}

impl<'de> Deserialize<'de> for ModelFailure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Members(Map::deserialize(deserializer)?);
        Ok(Self {
            schema_version: members.required::<_, D::Error>("schema_version")?,
            cause: members.required::<_, D::Error>("cause")?,
            http_status: members.optional("http_status"),
            retry_after_secs: members.optional("retry_after_secs"),
            provider_code: members.optional("provider_code"),
            provider_type: members.optional("provider_type"),
            provider_request_id: members.optional("provider_request_id"),
            finish_reason: members.optional("finish_reason"),
            attempts: members.optional("attempts"),
            limit: members.optional("limit"),
            extra: members.0,
        })
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Members(Map::deserialize(deserializer)?);
        let strict = |present: bool, name: &str| {
            if present { Err(serde::de::Error::custom(format_args!("`{name}` has an unknown shape"))) } else { Ok(()) }
        };
        let schema_version = members.required::<_, D::Error>("schema_version")?;
        let kind = members.optional("kind");
        let reset_at_ms = members.optional("reset_at_ms");
        let reset_source = members.optional("reset_source");
        let identity = members.optional("identity").unwrap_or_default();
        // A known member of an unknown shape makes the whole limit foreign: its record keeps it as it is.
        for name in ["kind", "reset_at_ms", "reset_source", "identity"] {
            strict(members.0.contains_key(name), name)?;
        }
        Ok(Self { schema_version, kind, reset_at_ms, reset_source, identity, extra: members.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_record_of_a_newer_release_survives_a_round_trip() {
        let documents = [
            json!({"code": "model_incomplete", "message": "m", "class": "quota", "retryable": true, "later": [1],
                "model_failure": {"schema_version": 2, "cause": "moon_phase", "http_status": "odd", "new": {"a": 1},
                    "limit": {"schema_version": 2, "kind": "credits", "reset_at_ms": null, "reset_source": null,
                        "identity": {"provider": "p", "account": null, "model": null}}}}),
            json!({"code": "x", "message": "m", "class": null, "retryable": false, "model_failure": {"cause": 7}}),
        ];
        for written in documents {
            let read: ErrorDocument = serde_json::from_value(written.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), written);
        }
    }

    #[test]
    fn unknown_is_said_and_a_limit_without_identity_is_all_null() {
        let known: ModelFailure = serde_json::from_value(json!({"schema_version": 1, "cause": "rate_limit",
            "limit": {"schema_version": 1, "kind": "tokens", "reset_at_ms": 5,
                "reset_source": {"kind": "header", "name": "retry-after"}, "extra": true}}))
        .unwrap();
        assert!(!known.is_unknown());
        let limit = known.limit.unwrap();
        assert_eq!((limit.identity, limit.reset_at_ms), (Identity::default(), Some(5)));
        let unknown: ModelFailure = serde_json::from_value(json!({"schema_version": 1, "cause": "boredom"})).unwrap();
        assert!(unknown.is_unknown());
        let odd: ErrorDocument = serde_json::from_value(
            json!({"code": "x", "message": "m", "class": null, "retryable": false, "model_failure": 7}),
        )
        .unwrap();
        assert!(odd.has_unreadable_record());
    }
}
