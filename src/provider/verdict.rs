//! Until the failure module brings its own: errors in frames, finish reasons, and the walk over genai's errors.

use crate::failure::{Fault, Phase, ResponseFault, Terminal, Transport};
use genai::chat::StopReason;
use serde_json::Value;
use std::error::Error as StdError;

pub(super) fn is_error(event: Option<&str>, frame: &Value) -> bool {
    let frame = match frame {
        Value::Array(items) if items.len() == 1 => &items[0],
        other => other,
    };
    let named = |name: &str| name == "error" || name.ends_with(".failed") || name.ends_with("Exception");
    frame.get("error").is_some_and(|error| !error.is_null())
        || frame.get("type").and_then(Value::as_str).is_some_and(|t| t == "error" || t.ends_with(".failed"))
        || event.is_some_and(named)
        || frame.pointer("/promptFeedback/blockReason").is_some_and(|reason| !reason.is_null())
        || finish(event, frame).as_deref() == Some("error")
}

pub(super) fn finish(event: Option<&str>, frame: &Value) -> Option<String> {
    let word = |at: &str| frame.pointer(at)?.as_str().filter(|word| !word.is_empty()).map(str::to_owned);
    match frame.get("type").and_then(Value::as_str) {
        Some("response.completed" | "response.incomplete") => {
            return word("/response/incomplete_details/reason").or_else(|| word("/response/status"));
        }
        Some("interaction.completed") => return word("/interaction/status"),
        _ => {}
    }
    if event == Some("messageStop") {
        return word("/stopReason");
    }
    if frame.get("object").and_then(Value::as_str) == Some("response") {
        return word("/incomplete_details/reason").or_else(|| word("/status"));
    }
    [
        "/choices/0/finish_reason",
        "/delta/stop_reason",
        "/candidates/0/finishReason",
        "/done_reason",
        "/messageStop/stopReason",
        "/stop_reason",
        "/stopReason",
        "/finish_reason",
    ]
    .iter()
    .find_map(|at| word(at))
}

pub(super) fn completes(reason: &str) -> bool {
    let no_end = matches!(
        reason,
        "length"
            | "max_tokens"
            | "MAX_TOKENS"
            | "model_length"
            | "max_output_tokens"
            | "model_context_window_exceeded"
            | "error"
            | "failed"
            | "cancelled"
            | "MALFORMED_FUNCTION_CALL"
    );
    !no_end && !matches!(StopReason::from(reason.to_owned()), StopReason::ContentFilter(_))
}

pub(super) fn of_frame(frame: Value) -> Fault {
    let status = ["/error/code", "/code", "/error/status", "/status", "/status_code"]
        .iter()
        .find_map(|at| frame.pointer(at)?.as_u64())
        .and_then(|n| u16::try_from(n).ok())
        .filter(|n| (100..=599).contains(n));
    let headers = frame
        .get("headers")
        .and_then(Value::as_object)
        .map(|map| map.iter().filter_map(|(name, v)| Some((name.to_lowercase(), v.as_str()?.to_owned()))).collect())
        .unwrap_or_default();
    Fault::Response(ResponseFault { status, headers, body: Some(frame) })
}

pub(super) fn response(status: u16, headers: &http::HeaderMap, body: Option<&str>) -> ResponseFault {
    ResponseFault {
        status: Some(status),
        headers: headers
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect(),
        body: body.map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))),
    }
}

pub(super) fn terminal(reason: &str) -> Fault {
    Fault::Terminal(Terminal { reason: reason.to_owned() })
}

pub(super) fn of_genai(error: genai::Error) -> Fault {
    use genai::{Error, webc};
    match error {
        Error::HttpError { status, headers, body, .. } => {
            let body = Some(body.as_str()).filter(|body| !body.starts_with("Failed to read error body"));
            Fault::Response(response(status.as_u16(), &headers, body))
        }
        Error::WebModelCall { webc_error, .. } | Error::WebAdapterCall { webc_error, .. } => match webc_error {
            webc::Error::ResponseFailedStatus { status, body, headers } => {
                Fault::Response(response(status.as_u16(), &headers, Some(&body)))
            }
            webc::Error::Reqwest(error) => of_reqwest(&error),
            webc::Error::ResponseFailedNotJson { body, .. } | webc::Error::ResponseFailedInvalidJson { body, .. } => {
                match serde_json::from_str::<Value>(&body) {
                    Ok(value) if is_error(None, &value) => of_frame(value),
                    _ => terminal("the answer is no JSON"),
                }
            }
            webc::Error::JsonValueExt(_) => terminal("the answer has another shape"),
        },
        Error::WebStream { error, .. } => {
            let error = match error.downcast::<genai::Error>() {
                Ok(inner) => return of_genai(*inner),
                Err(error) => error,
            };
            if let Some(timeout) = error.downcast_ref::<webc::StreamTimeout>() {
                let phase = match timeout {
                    webc::StreamTimeout::Headers => Phase::Headers,
                    webc::StreamTimeout::Read => Phase::Read,
                };
                return Fault::Transport(Transport { phase: Some(phase), detail: timeout.to_string() });
            }
            match error.downcast_ref::<reqwest::Error>() {
                Some(error) => of_reqwest(error),
                None => terminal("the stream is corrupt"),
            }
        }
        Error::ChatResponse { body, .. } => of_frame(body),
        _ => terminal("the call could not be made or read"),
    }
}

pub(super) fn of_reqwest(error: &reqwest::Error) -> Fault {
    let transport =
        error.is_connect() || error.is_timeout() || error.is_request() || error.is_body() || error.is_decode();
    if !transport {
        return terminal("the request could not be built");
    }
    let phase = if error.is_connect() {
        Some(Phase::Connect)
    } else if error.is_timeout() && error.is_request() {
        Some(Phase::Headers)
    } else if error.is_timeout() {
        Some(Phase::Read)
    } else {
        None
    };
    let mut deepest: Option<String> = None;
    let mut next: Option<&(dyn StdError + 'static)> = error.source();
    while let Some(source) = next {
        if !source.is::<reqwest::Error>() {
            deepest = Some(source.to_string());
        }
        next = source.source();
    }
    let detail: String =
        deepest.unwrap_or_else(|| "transport failed".into()).chars().filter(|c| !c.is_control()).take(120).collect();
    Fault::Transport(Transport { phase, detail })
}
