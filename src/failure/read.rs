//! The one reading: an ending and its receipt in, a [`Failure`] out. Pure and total.

use super::body::Body;
use super::fault::{Ending, Fault, ResponseFault, Transport};
use super::frame;
use super::message::cap;
use super::reading::{Allowance, Cause, Class, Failure, Reach, Receipt};
use super::record::{Identity, Limit, ResetSource, SCHEMA_VERSION};
use super::resets::{self, Judged, Question, RetryAfter};
use super::rules::{self, Case, Rules};
use super::walk::CONNECT_TIMED_OUT;
use super::{LimitKind, Phase};
use serde_json::Value;

/// The longest vendor's sentence that is ever shown, in characters.
const VENDOR_CHARS: usize = 500;
/// Where a request's id may stand, the first fitting one counts.
const REQUEST_ID_HEADERS: [&str; 6] =
    ["x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "x-ms-request-id", "cf-ray"];

impl Failure {
    /// Reads how a call ended. Nothing is read again anywhere else.
    #[must_use]
    pub fn read(ending: &Ending, receipt: &Receipt, rules: &Rules) -> Self {
        let blank = |class, cause, retryable| Self::blank(class, cause, retryable, receipt, rules);
        match ending {
            Ending::Fault(Fault::Response(response)) => of_response(response, receipt, rules),
            Ending::Fault(Fault::Transport(transport)) => {
                let class = if ran_out(transport) { Class::Timeout } else { Class::Unavailable };
                Self {
                    phase: transport.phase,
                    detail: Some(super::walk::printable(&transport.detail)),
                    ..blank(class, Cause::Transport, true)
                }
            }
            Ending::Fault(Fault::Terminal(terminal)) => Self {
                detail: Some(terminal.reason.clone()),
                ..blank(Class::ProviderError, Cause::ProviderError, false)
            },
            Ending::Incomplete => blank(Class::ProviderError, Cause::Incomplete, true),
            Ending::Finish { reason } => of_finish(reason, receipt, rules),
            Ending::Deadline => blank(Class::Timeout, Cause::Deadline, false),
            Ending::Cancelled { at } => {
                Self { cancelled_at: Some(*at), ..blank(Class::ProviderError, Cause::Cancelled, false) }
            }
        }
    }

    fn blank(class: Class, cause: Cause, retryable: bool, receipt: &Receipt, rules: &Rules) -> Self {
        Self {
            class,
            cause,
            retryable,
            http_status: None,
            phase: None,
            detail: None,
            provider_code: None,
            provider_type: None,
            request_id: None,
            finish_reason: None,
            retry_after_secs: None,
            retry_after_stops_strict: false,
            attempts: receipt.attempts,
            allowance: None,
            per_day: false,
            limit: None,
            resume_at_ms: None,
            skew_ms: 0,
            evidence: Vec::new(),
            reach: Reach::Model,
            concerns_key: false,
            concurrency: false,
            inside_2xx: false,
            cancelled_at: None,
            rule: None,
            rules_version: rules.version(),
            received_ms: receipt.received_ms,
            vendor_message: None,
        }
    }
}

/// One of our waits ran out. A refused connection and one that timed out share their phase; our own word tells them apart.
fn ran_out(transport: &Transport) -> bool {
    match transport.phase {
        Some(Phase::Headers | Phase::Read) => true,
        Some(Phase::Connect) => transport.detail == CONNECT_TIMED_OUT,
        None => false,
    }
}

/// What a finish reason that is no completion means.
fn of_finish(reason: &str, receipt: &Receipt, rules: &Rules) -> Failure {
    let (class, cause, retryable) = match finish(reason) {
        Finish::Cap => (Class::InvalidRequest, Cause::OutputLimit, false),
        Finish::Context => (Class::ContextWindowExceeded, Cause::ContextLimit, false),
        Finish::Filter => (Class::ContentFiltered, Cause::ProviderError, false),
        // As a broken stream: tried again.
        Finish::Broken | Finish::Complete => (Class::ProviderError, Cause::ProviderError, true),
    };
    Failure { finish_reason: word(reason), ..Failure::blank(class, cause, retryable, receipt, rules) }
}

/// What a vendor's finish reason says of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    Complete,
    /// Cut by the cap on output.
    Cap,
    /// The context window is full.
    Context,
    Filter,
    /// As a broken stream.
    Broken,
}

/// Reads a finish reason; a word without a row completes.
#[must_use]
pub fn finish(reason: &str) -> Finish {
    match reason {
        "length" | "max_tokens" | "MAX_TOKENS" | "model_length" | "max_output_tokens" | "incomplete" => Finish::Cap,
        "model_context_window_exceeded" => Finish::Context,
        "content_filter"
        | "refusal"
        | "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "LANGUAGE"
        | "ERROR_TOXIC"
        | "content_filtered"
        | "guardrail_intervened"
        | "sensitive" => Finish::Filter,
        "error"
        | "failed"
        | "cancelled"
        | "MALFORMED_FUNCTION_CALL"
        | "MALFORMED_RESPONSE"
        | "UNEXPECTED_TOOL_CALL"
        | "ERROR"
        | "TIMEOUT"
        | "network_error"
        | "insufficient_system_resource" => Finish::Broken,
        _ => Finish::Complete,
    }
}

fn of_response(response: &ResponseFault, receipt: &Receipt, rules: &Rules) -> Failure {
    let headers: Vec<(String, String)> =
        response.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
    let body = Body::open(response.body.as_ref());
    let case = Case { status: response.status, headers: &headers, body: &body, provider: &receipt.provider };
    let decided = rules.decide(&case);
    let rule = decided.map(|decided| decided.rule);
    let by_status = rules::by_status(response.status);
    let class = rule.map_or(by_status.class, |rule| rule.class);
    let allowance = match class {
        Class::Quota => Some(rule.and_then(|rule| rule.allowance).unwrap_or(Allowance::Purse)),
        _ => None,
    };
    let window = allowance == Some(Allowance::Window);
    let refused = matches!(class, Class::RateLimit | Class::Quota);
    // A frame whose finish reason alone says that it failed is a broken stream: tried again.
    let broken = response
        .body
        .as_ref()
        .filter(|_| rule.is_none() && response.status.is_none())
        .and_then(frame::finish_reason)
        .filter(|reason| finish(reason) == Finish::Broken);
    let retried = match class {
        Class::RateLimit | Class::Unavailable | Class::Timeout => true,
        Class::ProviderError => rule.is_none() && (by_status.retryable || broken.is_some()),
        _ => false,
    };
    let named = kind_of_body(&body, &headers, &case).or_else(|| decided.and_then(|decided| decided.kind));
    let judged = resets::judge(&Question {
        headers: &headers,
        body: &body,
        received_ms: receipt.received_ms,
        send_took_ms: receipt.send_took_ms,
        kind: named.filter(|_| refused),
        quota: class == Class::Quota,
        waits: retried || window,
        zone: decided.and_then(|decided| decided.zone),
    });
    let retry_after = RetryAfter::of(&headers);
    let limit = refused.then(|| limit(&judged, kind(&judged, named, &body), receipt));
    let of_key = class == Class::Authentication && concerns_key(response.status, &body, &receipt.model);
    let (code, kind_word) = code_and_type(&body, response.status);
    Failure {
        http_status: response.status,
        provider_code: code,
        provider_type: kind_word,
        request_id: request_id(&headers, response.body.as_ref()),
        retry_after_secs: retry_after.short_secs,
        retry_after_stops_strict: retry_after.stops_strict,
        allowance,
        per_day: window && rule.is_some_and(|rule| rule.per_day),
        limit,
        resume_at_ms: judged.resume_at_ms,
        skew_ms: judged.skew_ms,
        reach: if class == Class::Quota || of_key { Reach::Account } else { Reach::Model },
        concerns_key: of_key,
        concurrency: rule.is_some_and(|rule| rule.concurrency),
        inside_2xx: response.inside_2xx,
        rule: Some(rule.map_or_else(
            || response.status.map_or_else(|| "status.none".into(), |status| format!("status.{status}")),
            |rule| rule.id.clone(),
        )),
        vendor_message: if receipt.redact_vendor_messages { None } else { vendor_message(&body) },
        retryable: retried || (window && judged.resume_at_ms.is_some()),
        finish_reason: broken.as_deref().and_then(word),
        evidence: judged.evidence,
        ..Failure::blank(class, cause(class), false, receipt, rules)
    }
}

/// The wire word of a response's class.
fn cause(class: Class) -> Cause {
    match class {
        Class::RateLimit => Cause::RateLimit,
        Class::Quota => Cause::UsageLimit,
        Class::ContextWindowExceeded => Cause::ContextLimit,
        Class::Authentication
        | Class::ContentFiltered
        | Class::InvalidRequest
        | Class::Timeout
        | Class::Unavailable
        | Class::ProviderError => Cause::ProviderError,
    }
}

/// A 401, or a 403 that is neither a page nor about the model: one job's model is not everybody's key.
fn concerns_key(status: Option<u16>, body: &Body<'_>, model: &str) -> bool {
    if status == Some(401) || status.is_none() {
        return !body.is_html;
    }
    let names_model = body.nodes().any(|(node, _)| {
        let says = |member: &str, word: &str| node.get(member).and_then(Value::as_str) == Some(word);
        says("param", "model") || says("code", "model_not_found") || says("code", "model_not_allowed")
    }) || (model.len() > 2 && body.messages.iter().any(|message| message.text.contains(model)));
    !body.is_html && !names_model
}

/// The kind that the body names in a member of its own.
fn kind_of_body(body: &Body<'_>, headers: &[(String, String)], case: &Case<'_>) -> Option<LimitKind> {
    let word = |text: &str| match text.to_ascii_lowercase().as_str() {
        "requests" | "request" => Some(LimitKind::Requests),
        "tokens" | "token" => Some(LimitKind::Tokens),
        "monthly_usage_limit" | "monthly_usage" => Some(LimitKind::MonthlyUsage),
        _ => None,
    };
    let of = |members: &[&str]| {
        body.nodes().find_map(|(node, _)| members.iter().find_map(|name| node.get(*name)?.as_str().and_then(word)))
    };
    let header = || headers.iter().find(|(name, _)| name == "rate_limit_type").and_then(|(_, value)| word(value));
    of(&["limit_kind", "limit_type"]).or_else(|| of(&["type", "code"])).or_else(|| quota_kind(case)).or_else(header)
}

/// The kind of Google's `quotaId`s, where all agree.
fn quota_kind(case: &Case<'_>) -> Option<LimitKind> {
    let mut agreed = None;
    for (details, _) in case.body.details() {
        let violations =
            details.iter().filter_map(|detail| detail.get("violations").and_then(Value::as_array)).flatten();
        for id in violations.filter_map(|violation| violation.get("quotaId").and_then(Value::as_str)).take(16) {
            let words = rules::quota_words(id);
            let has = |word: &str| words.iter().any(|found| found == word);
            let kind = match (has("Requests"), has("Tokens") || has("Token")) {
                (true, false) => LimitKind::Requests,
                (false, true) => LimitKind::Tokens,
                _ => return None,
            };
            if agreed.is_some_and(|before| before != kind) {
                return None;
            }
            agreed = Some(kind);
        }
    }
    agreed
}

/// The first that speaks: the selected window's own name, the body or its rule, the words `monthly usage limit`.
fn kind(judged: &Judged, named: Option<LimitKind>, body: &Body<'_>) -> Option<LimitKind> {
    judged.kind.or(named).or_else(|| {
        let says = |text: &str| text.to_ascii_lowercase().contains("monthly usage limit");
        body.messages.iter().any(|message| says(&message.text)).then_some(LimitKind::MonthlyUsage)
    })
}

fn limit(judged: &Judged, kind: Option<LimitKind>, receipt: &Receipt) -> Limit {
    let fitting = |text: &str| identity_word(text).then(|| text.to_owned());
    Limit {
        schema_version: SCHEMA_VERSION,
        kind,
        reset_at_ms: judged.reset_at_ms,
        reset_source: judged.source.clone().map(|(kind, name)| ResetSource { kind, name }),
        identity: Identity {
            provider: fitting(&receipt.provider),
            account: receipt.account.as_deref().and_then(fitting),
            model: fitting(&receipt.model),
        },
        extra: serde_json::Map::new(),
    }
}

/// `[A-Za-z0-9_.:/-]{1,128}`
fn identity_word(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'/' | b'-'))
}

/// `[A-Za-z0-9_.-]{1,128}`, or nothing: a value is never trimmed into another.
fn word(text: &str) -> Option<String> {
    let fits = (1..=128).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'));
    fits.then(|| text.to_owned())
}

/// The innermost code and type. A number that repeats the status is no code, an envelope's `error` no type.
fn code_and_type(body: &Body<'_>, status: Option<u16>) -> (Option<String>, Option<String>) {
    let repeats =
        |text: &str| text.parse::<u16>().is_ok_and(|number| status == Some(number) || (100..600).contains(&number));
    let text = |value: &Value| match value {
        Value::String(text) => word(text).filter(|text| !repeats(text)),
        Value::Number(number) => word(&number.to_string()).filter(|text| !repeats(text)),
        _ => None,
    };
    let nodes: Vec<_> = body.nodes().collect();
    let of = |members: &[&str]| {
        nodes.iter().rev().find_map(|(node, _)| members.iter().find_map(|name| node.get(*name).and_then(text)))
    };
    let code = of(&["code", "error_code", "Code", "status_code"]);
    let kind = of(&["type", "__type", "error_type"]).filter(|kind| kind != "error" && kind != "None");
    let status_word = || {
        nodes
            .iter()
            .rev()
            .find_map(|(node, _)| node.get("status").and_then(Value::as_str))
            .and_then(word)
            .filter(|t| !repeats(t))
    };
    (code.filter(|code| code != "None"), kind.or_else(status_word))
}

/// Of repeated values the first in order of bytes, so that the order of headers changes nothing.
fn request_id(headers: &[(String, String)], body: Option<&Value>) -> Option<String> {
    let of_header = |name: &&str| {
        let values = headers.iter().filter(|(found, _)| found == name);
        values.filter_map(|(_, value)| word(value.trim())).min()
    };
    let of_body =
        || ["/request_id", "/error/request_id"].iter().find_map(|place| body?.pointer(place)?.as_str().and_then(word));
    REQUEST_ID_HEADERS.iter().find_map(of_header).or_else(of_body)
}

/// The vendor's own sentence, on one line; a page is named rather than spilled.
fn vendor_message(body: &Body<'_>) -> Option<String> {
    if body.is_html {
        return Some("an HTML page".into());
    }
    let text = cap(&body.messages.first()?.text);
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let kept: String = line.chars().filter(|c| !c.is_control()).take(VENDOR_CHARS).collect();
    (!kept.is_empty()).then_some(kept)
}
