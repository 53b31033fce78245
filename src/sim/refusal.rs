//! Errors in the vendors' own words: status, headers and body of each kind in each dialect.
//!
//! The payloads are the vendors'; what is named of a reset comes from [`super::naming`].

use super::ask::Dialect;
use super::naming::Named;
use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What kind of error a provider answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    RateLimitRequests,
    RateLimitTokens,
    /// More in flight than it takes; names no reset.
    Concurrency,
    /// One request larger than a whole token window.
    RequestTooLarge,
    /// A plan's window is spent.
    PlanWindow,
    /// The money is spent.
    InsufficientQuota,
    BadKey,
    Overloaded,
    ServerError,
    /// An HTML page of a proxy.
    BadGateway,
    ContextLength,
    ContentFilter,
    /// Not what a scenario asks for: the answer to a request that cannot be read.
    #[serde(skip)]
    Malformed,
    #[serde(skip)]
    NotFound,
}

impl Kind {
    /// Whether it is a refusal in the contract's sense (a rate or an allowance), and not another error.
    pub(super) fn refuses(self) -> bool {
        match self {
            Self::RateLimitRequests
            | Self::RateLimitTokens
            | Self::Concurrency
            | Self::RequestTooLarge
            | Self::PlanWindow
            | Self::InsufficientQuota => true,
            Self::BadKey
            | Self::Overloaded
            | Self::ServerError
            | Self::BadGateway
            | Self::ContextLength
            | Self::ContentFilter
            | Self::Malformed
            | Self::NotFound => false,
        }
    }
}

/// What an error's words depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct About<'a> {
    pub kind: Kind,
    pub dialect: Dialect,
    pub model: &'a str,
    /// The limit's size and what this request asked of it; 0 where no limit is concerned.
    pub limit: u64,
    pub requested: u64,
    /// The length of the limit's window; vendors name it.
    pub per_ms: i64,
    /// For [`Kind::Malformed`].
    pub detail: &'a str,
    pub request_id: &'a str,
}

impl About<'_> {
    /// How the vendors call the limit's window: a word, its letter, and the word in Google's names.
    fn window(&self) -> (&'static str, &'static str, &'static str) {
        match self.per_ms {
            86_400_000.. => ("day", "D", "PerDay"),
            3_600_000.. => ("hour", "H", "PerHour"),
            _ => ("min", "M", "PerMinute"),
        }
    }
}

/// An error response, ready to be framed.
#[derive(Debug)]
pub(super) struct Refusal {
    pub status: u16,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub content_type: &'static str,
    pub body: String,
}

const HTML: &str = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad \
                    Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n";

impl Refusal {
    pub(super) fn new(about: About<'_>, named: Named) -> Self {
        let Named { headers, members, details, sentence, .. } = named;
        if about.kind == Kind::BadGateway {
            return Self { status: 502, headers, content_type: "text/html", body: HTML.to_owned() };
        }
        let (status, mut body) = match about.dialect {
            Dialect::OpenAi => openai(about),
            Dialect::Anthropic => anthropic(about),
            Dialect::Gemini => gemini(about),
        };
        if let Some(error) = body.get_mut("error").and_then(Value::as_object_mut) {
            enrich(error, members, details, sentence);
        }
        if about.dialect == Dialect::Anthropic {
            body["request_id"] = about.request_id.into();
        }
        Self { status, headers, content_type: "application/json", body: body.to_string() }
    }
}

fn enrich(error: &mut Map<String, Value>, members: Map<String, Value>, details: Vec<Value>, sentence: Option<String>) {
    if let (Some(sentence), Some(Value::String(message))) = (sentence, error.get_mut("message")) {
        message.push(' ');
        message.push_str(&sentence);
    }
    error.extend(members);
    if !details.is_empty()
        && let Value::Array(standing) = error.entry("details").or_insert_with(|| Value::Array(Vec::new()))
    {
        standing.extend(details);
    }
}

fn openai(about: About<'_>) -> (u16, Value) {
    let About { kind, model, limit, requested, detail, .. } = about;
    let (window, letter, _) = about.window();
    let error = |status: u16, message: String, kind: &str, code: Option<&str>| {
        (status, json!({"error": {"message": message, "type": kind, "param": null, "code": code}}))
    };
    match kind {
        Kind::RateLimitRequests => error(
            429,
            format!(
                "Rate limit reached for {model} in organization org-simulated on requests per {window} (RP{letter}): Limit {limit}, \
                 Used {limit}, Requested 1."
            ),
            "requests",
            Some("rate_limit_exceeded"),
        ),
        Kind::RateLimitTokens => error(
            429,
            format!(
                "Rate limit reached for {model} in organization org-simulated on tokens per {window} (TP{letter}): Limit {limit}, \
                 Used {limit}, Requested {requested}."
            ),
            "tokens",
            Some("rate_limit_exceeded"),
        ),
        Kind::Concurrency => error(
            429,
            format!("Too many concurrent requests for {model}: at most {limit} may be in flight."),
            "rate_limit_error",
            Some("concurrency_limit_exceeded"),
        ),
        Kind::RequestTooLarge => error(
            429,
            format!(
                "Request too large for {model} in organization org-simulated on tokens per {window} (TP{letter}): Limit {limit}, \
                 Requested {requested}. The input or output tokens must be reduced in order to run successfully."
            ),
            "tokens",
            Some("rate_limit_exceeded"),
        ),
        Kind::PlanWindow => (
            429,
            json!({"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached",
                "plan_type": "plus"}}),
        ),
        Kind::InsufficientQuota => error(
            429,
            "You exceeded your current quota, please check your plan and billing details.".into(),
            "insufficient_quota",
            Some("insufficient_quota"),
        ),
        Kind::BadKey => error(
            401,
            "Incorrect API key provided: sim-***.".into(),
            "invalid_request_error",
            Some("invalid_api_key"),
        ),
        Kind::Overloaded => error(
            503,
            "The server is currently overloaded with other requests. Sorry about that!".into(),
            "server_error",
            Some("server_is_overloaded"),
        ),
        Kind::ServerError | Kind::BadGateway => {
            error(500, "The server had an error while processing your request. Sorry about that!".into(), "server_error", None)
        }
        Kind::ContextLength => error(
            400,
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please \
             reduce the length of the messages."
                .into(),
            "invalid_request_error",
            Some("context_length_exceeded"),
        ),
        Kind::ContentFilter => error(
            400,
            "Your request was rejected as a result of our safety system.".into(),
            "invalid_request_error",
            Some("content_policy_violation"),
        ),
        Kind::Malformed => error(400, detail.to_owned(), "invalid_request_error", None),
        Kind::NotFound => error(404, detail.to_owned(), "invalid_request_error", Some("unknown_url")),
    }
}

fn anthropic(about: About<'_>) -> (u16, Value) {
    let About { kind, limit, requested, detail, .. } = about;
    let window = match about.window().0 {
        "min" => "minute",
        other => other,
    };
    let error = |status: u16, kind: &str, message: String| {
        (status, json!({"type": "error", "error": {"type": kind, "message": message}}))
    };
    match kind {
        Kind::RateLimitRequests => error(
            429,
            "rate_limit_error",
            format!("This request would exceed your organization's rate limit of {limit} requests per {window}."),
        ),
        Kind::RateLimitTokens => error(
            429,
            "rate_limit_error",
            format!("This request would exceed your organization's rate limit of {limit} input tokens per {window}."),
        ),
        Kind::Concurrency => error(
            429,
            "rate_limit_error",
            "Number of concurrent connections has exceeded your rate limit. Please try again later or contact sales."
                .into(),
        ),
        Kind::RequestTooLarge => error(
            429,
            "rate_limit_error",
            format!(
                "This request of {requested} tokens is larger than your organization's rate limit of {limit} input tokens \
                 per {window}."
            ),
        ),
        Kind::PlanWindow => error(
            429,
            "rate_limit_error",
            "This request would exceed your account's rate limit. Please try again later.".into(),
        ),
        Kind::InsufficientQuota => error(
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or \
             purchase credits."
                .into(),
        ),
        Kind::BadKey => error(401, "authentication_error", "invalid x-api-key".into()),
        Kind::Overloaded => error(529, "overloaded_error", "Overloaded".into()),
        Kind::ServerError | Kind::BadGateway => error(500, "api_error", "Internal server error".into()),
        Kind::ContextLength => {
            error(400, "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum".into())
        }
        Kind::ContentFilter => error(400, "invalid_request_error", "Output blocked by content filtering policy".into()),
        Kind::Malformed => error(400, "invalid_request_error", detail.to_owned()),
        Kind::NotFound => error(404, "not_found_error", detail.to_owned()),
    }
}

fn gemini(about: About<'_>) -> (u16, Value) {
    let About { kind, model, limit, detail, .. } = about;
    let error = |code: u16, status: &str, message: String| {
        (code, json!({"error": {"code": code, "message": message, "status": status}}))
    };
    let quota = |metric: &str, id: &str| {
        let (code, mut body) = error(
            429,
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, please check your plan and billing details.".into(),
        );
        body["error"]["details"] = json!([{
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{
                "quotaMetric": format!("generativelanguage.googleapis.com/{metric}"),
                "quotaId": id,
                "quotaDimensions": {"location": "global", "model": model},
                "quotaValue": limit.to_string(),
            }],
        }]);
        (code, body)
    };
    match kind {
        Kind::RateLimitRequests => quota(
            "generate_content_free_tier_requests",
            &format!("GenerateRequests{}PerProjectPerModel-FreeTier", about.window().2),
        ),
        Kind::RateLimitTokens | Kind::RequestTooLarge => quota(
            "generate_content_free_tier_input_token_count",
            &format!("GenerateContentInputTokensPerModel{}-FreeTier", about.window().2),
        ),
        Kind::Concurrency => {
            error(429, "RESOURCE_EXHAUSTED", "Too many concurrent requests. Please try again later.".into())
        }
        Kind::PlanWindow => error(
            429,
            "RESOURCE_EXHAUSTED",
            "You have exhausted your capacity on this model.".into(),
        ),
        Kind::InsufficientQuota => error(
            429,
            "RESOURCE_EXHAUSTED",
            "Your prepayment credits are depleted. Please go to AI Studio to manage your project and billing.".into(),
        ),
        Kind::BadKey => {
            let (code, mut body) =
                error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.".into());
            body["error"]["details"] = json!([{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "API_KEY_INVALID",
                "domain": "googleapis.com",
                "metadata": {"service": "generativelanguage.googleapis.com"},
            }]);
            (code, body)
        }
        Kind::Overloaded => error(503, "UNAVAILABLE", "The model is overloaded. Please try again later.".into()),
        Kind::ServerError | Kind::BadGateway => error(
            500,
            "INTERNAL",
            "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting"
                .into(),
        ),
        Kind::ContextLength => error(
            400,
            "INVALID_ARGUMENT",
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).".into(),
        ),
        // A refused prompt is a 200 without candidates.
        Kind::ContentFilter => (
            200,
            json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
                "usageMetadata": {"promptTokenCount": 8, "totalTokenCount": 8}, "modelVersion": model}),
        ),
        Kind::Malformed => error(400, "INVALID_ARGUMENT", detail.to_owned()),
        Kind::NotFound => error(404, "NOT_FOUND", detail.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::naming::{Naming, Reset};
    use super::*;

    const KINDS: [Kind; 12] = [
        Kind::RateLimitRequests,
        Kind::RateLimitTokens,
        Kind::Concurrency,
        Kind::RequestTooLarge,
        Kind::PlanWindow,
        Kind::InsufficientQuota,
        Kind::BadKey,
        Kind::Overloaded,
        Kind::ServerError,
        Kind::BadGateway,
        Kind::ContextLength,
        Kind::ContentFilter,
    ];

    fn about(kind: Kind, dialect: Dialect) -> About<'static> {
        About { kind, dialect, model: "m", limit: 600, requested: 7, per_ms: 60_000, detail: "", request_id: "req_sim" }
    }

    #[test]
    fn every_kind_in_every_dialect_is_an_error_of_that_vendor() {
        for dialect in [Dialect::OpenAi, Dialect::Anthropic, Dialect::Gemini] {
            let table: Vec<_> = KINDS
                .iter()
                .map(|kind| {
                    let refusal = Refusal::new(about(*kind, dialect), Named::default());
                    format!("{kind:?} {} {}", refusal.status, refusal.body.replace("\r\n", ""))
                })
                .collect();
            insta::assert_snapshot!(format!("refusals_{dialect}"), table.join("\n"));
        }
    }

    #[test]
    fn a_day_is_called_a_day() {
        for (dialect, word) in
            [(Dialect::OpenAi, "per day (RPD)"), (Dialect::Anthropic, "per day"), (Dialect::Gemini, "PerDay")]
        {
            let about = About { per_ms: 86_400_000, ..about(Kind::RateLimitRequests, dialect) };
            assert!(Refusal::new(about, Named::default()).body.contains(word));
        }
    }

    #[test]
    fn what_is_named_stands_where_the_vendors_put_it() {
        let reset = Reset { now_ms: 1_000, named_ms: 39_500, skew_ms: 0, limit: 5 };
        let named = |naming| Named::new(reset, Kind::RateLimitRequests, naming);
        let body = |dialect, naming| -> Value {
            serde_json::from_str(&Refusal::new(about(Kind::RateLimitRequests, dialect), named(naming)).body).unwrap()
        };
        let gemini = body(Dialect::Gemini, &[Naming::RetryInfo]);
        assert_eq!(gemini["error"]["details"][0]["violations"][0]["quotaValue"], "600");
        assert_eq!(gemini["error"]["details"][1]["retryDelay"], "38.5s");
        let openai = body(Dialect::OpenAi, &[Naming::Prose, Naming::BodyRetryAfter]);
        assert!(openai["error"]["message"].as_str().unwrap().ends_with("Requested 1. Please try again in 38.5s."));
        assert_eq!(openai["error"]["retry_after"], 39);
        assert_eq!(body(Dialect::Anthropic, &[])["request_id"], "req_sim");
    }
}
