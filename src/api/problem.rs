//! What went wrong, as a face says it: RFC 9457 over HTTP, the same document on the command line's stderr with `--json`.
//!
//! `type` is stable and what code branches on; `title` is the same for every problem of a type; `detail` says what is
//! wrong this time and what would be right. No prompt, credential or provider prose stands in any of them.

use crate::agent::SpecError;
use crate::config::ConfigError;
use crate::store;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// The kinds of problems there are. The stable `type` is `urn:reprieve:problem:` and the slug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The request is no JSON, or not what the route takes.
    Malformed,
    /// A job whose spec is wrong.
    InvalidJob,
    /// A query parameter that is unknown, or whose value is.
    Parameter,
    /// A provider that is not configured, or has no key.
    Provider,
    NotFound,
    Method,
    Conflict,
    /// The job has ended, and what was asked for is of live ones.
    Ended,
    /// The job has not ended, and what was asked for is of ended ones.
    NotEnded,
    /// A live job that reads no further messages.
    NoMessages,
    /// Another thing has this name.
    Exists,
    TooLarge,
    MediaType,
    Host,
    /// A page of another site that would change something.
    Origin,
    /// The request's body did not arrive in time.
    Slow,
    /// A request whose members are known and whose values cannot be.
    Invalid,
    /// A schedule that is wrong.
    InvalidSchedule,
    /// The database cannot be reached, or refuses.
    Store,
    /// The command line was misused.
    Usage,
    Configuration,
    /// An address or service that is not to be had.
    Unreachable,
    Internal,
}

impl Kind {
    #[must_use]
    pub fn slug(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::InvalidJob => "invalid-job",
            Self::Parameter => "parameter",
            Self::Provider => "provider",
            Self::NotFound => "not-found",
            Self::Method => "method",
            Self::Conflict => "conflict",
            Self::Ended => "ended",
            Self::NotEnded => "not-ended",
            Self::NoMessages => "no-messages",
            Self::Exists => "exists",
            Self::Slow => "slow",
            Self::Invalid => "invalid",
            Self::InvalidSchedule => "invalid-schedule",
            Self::TooLarge => "too-large",
            Self::MediaType => "media-type",
            Self::Host => "host",
            Self::Origin => "origin",
            Self::Store => "store",
            Self::Usage => "usage",
            Self::Configuration => "configuration",
            Self::Unreachable => "unreachable",
            Self::Internal => "internal",
        }
    }

    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Malformed => "The request cannot be read",
            Self::InvalidJob => "The job is not valid",
            Self::Parameter => "A parameter is not valid",
            Self::Provider => "The provider cannot take jobs",
            Self::NotFound => "There is no such thing",
            Self::Method => "The method is not allowed here",
            Self::Conflict => "The idempotency key was used for something else",
            Self::Ended => "The job has ended",
            Self::NotEnded => "The job has not ended",
            Self::NoMessages => "The job takes no messages",
            Self::Exists => "The name is taken",
            Self::Slow => "The request did not arrive in time",
            Self::Invalid => "The request is not valid",
            Self::InvalidSchedule => "The schedule is not valid",
            Self::TooLarge => "The request is too large",
            Self::MediaType => "The content type is not taken here",
            Self::Host => "The host is not served here",
            Self::Origin => "Another site may not change anything here",
            Self::Store => "The database does not serve",
            Self::Usage => "The command line is not valid",
            Self::Configuration => "The configuration is not valid",
            Self::Unreachable => "Not reachable",
            Self::Internal => "Something went wrong inside",
        }
    }

    /// Only the command line says it: there is no HTTP status to it.
    fn is_local(self) -> bool {
        matches!(self, Self::Usage | Self::Configuration | Self::Unreachable)
    }

    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::Malformed | Self::Parameter | Self::Usage => StatusCode::BAD_REQUEST,
            Self::InvalidJob | Self::Provider | Self::Invalid | Self::InvalidSchedule => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Conflict | Self::Ended | Self::NotEnded | Self::NoMessages | Self::Exists => StatusCode::CONFLICT,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Origin => StatusCode::FORBIDDEN,
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Store | Self::Unreachable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Configuration | Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// One problem document.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub kind: Kind,
    pub detail: String,
    /// Where in the request, file or document it stands: a JSON pointer, a parameter's name, `FILE:LINE`.
    pub at: Option<String>,
    /// Of a conflict: the job that holds the key.
    pub job: Option<String>,
    /// Of a method that is not allowed: what is.
    pub allow: Option<String>,
}

/// As it goes out.
#[derive(Serialize)]
struct Document<'a> {
    r#type: String,
    title: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a str>,
}

impl Problem {
    #[must_use]
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), at: None, job: None, allow: None }
    }

    #[must_use]
    pub fn at(mut self, at: impl Into<String>) -> Self {
        self.at = Some(at.into());
        self
    }

    /// The RFC 9457 document.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let document = Document {
            r#type: format!("urn:reprieve:problem:{}", self.kind.slug()),
            title: self.kind.title(),
            status: (!self.kind.is_local()).then(|| self.kind.status().as_u16()),
            detail: &self.detail,
            at: self.at.as_deref(),
            job: self.job.as_deref(),
        };
        serde_json::to_value(document).unwrap_or_default()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = self.to_json().to_string();
        let mut response = (self.kind.status(), body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(allow) = self.allow.and_then(|allow| HeaderValue::try_from(allow).ok()) {
            headers.insert(header::ALLOW, allow);
        }
        response
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        let kind = match &error {
            store::Error::Cursor => {
                return Self::new(Kind::Parameter, error.to_string()).at("cursor");
            }
            store::Error::Undecodable { .. } => Kind::Internal,
            store::Error::Open { .. }
            | store::Error::Locked { .. }
            | store::Error::Gone { .. }
            | store::Error::ReadOnly
            | store::Error::Full
            | store::Error::Newer { .. }
            | store::Error::TimedOut { .. }
            | store::Error::Away { .. }
            | store::Error::Closed
            | store::Error::Database(_) => Kind::Store,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<SpecError> for Problem {
    fn from(error: SpecError) -> Self {
        let kind = match error.at.as_str() {
            "/provider" => Kind::Provider,
            at if at.starts_with("line ") => Kind::Malformed,
            _ => Kind::InvalidJob,
        };
        Self::new(kind, error.problem).at(error.at)
    }
}

impl From<ConfigError> for Problem {
    fn from(error: ConfigError) -> Self {
        Self::new(Kind::Configuration, error.to_string())
    }
}
