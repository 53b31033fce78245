//! A captured response on production's path: the error that genai or reqwest would have raised for it is built, walked,
//! read and decided, exactly as a live one is.
//!
//! In comes a [`CaptureInput`], out goes a [`Reading`]. Nothing is sent: the only socket here is a body stream that fails.

use crate::failure::capture::{CaptureInput, Transport};
use crate::failure::{
    CancelPoint, Candidate, Ending, Failure, Fault, Finish, ModelFailure, Receipt, ResponseFault, Rules, finish, frame,
};
use crate::recovery::{Decision, Delivery, OnTruncated, Policy, Situation, Spoken, Then, recover};
use genai::ModelIden;
use genai::adapter::AdapterKind;
use serde::Serialize;
use serde_json::Value;

/// What `reprieve classify` answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reading {
    /// Null where nothing failed.
    pub class: Option<&'static str>,
    pub retryable: Option<bool>,
    pub cause: Option<&'static str>,
    pub summary: Option<String>,
    pub model_failure: Option<ModelFailure>,
    pub recovery: Recovery,
    pub rule: Option<String>,
    pub rules_version: u32,
    pub evidence: Vec<Candidate>,
}

/// What would be done about it, without jitter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// `retry_in_place`, `defer`, `requeue`, `commit_partial`, `fail`, `stop` or `none`.
    pub action: &'static str,
    /// Of a retry in place.
    pub wait_ms: Option<i64>,
    /// Of a deferral or a requeue, and of a continuation that waits.
    pub until_ms: Option<i64>,
}

/// Reads one capture. `now_ms` stands in where the capture does not say when it was received.
#[must_use]
pub fn classify(input: &CaptureInput, rules: &Rules, policy: &Policy, now_ms: i64) -> Reading {
    let received_ms = input.received_at_ms.unwrap_or(now_ms);
    let Some(ending) = ending(input) else {
        return Reading {
            class: None,
            retryable: None,
            cause: None,
            summary: None,
            model_failure: None,
            recovery: Recovery { action: "none", wait_ms: None, until_ms: None },
            rule: None,
            rules_version: rules.version(),
            evidence: Vec::new(),
        };
    };
    let failure = Failure::read(&ending, &receipt(input, received_ms), rules);
    let situation = Situation {
        now_ms: received_ms,
        sends: input.attempts.unwrap_or(1).max(1),
        executions: 0,
        barren: 0,
        turn_left_ms: None,
        deadline_ms: input.deadline_ms,
        spoken: if input.spoken { Spoken::Text } else { Spoken::Nothing },
        repairs: 0,
        deferrals: 0,
        waiting_since_ms: None,
        delivery: Delivery::AtLeastOnce,
        structured_output: false,
        on_truncated: OnTruncated::Continue,
        jitter: 0.0,
    };
    let decision = recover(&failure, &situation, policy);
    Reading {
        class: Some(failure.class.as_str()),
        retryable: Some(failure.retryable),
        cause: Some(failure.cause.as_str()),
        summary: Some(failure.summary()),
        model_failure: Some(failure.record()),
        recovery: recovery(decision),
        rule: failure.rule,
        rules_version: failure.rules_version,
        evidence: failure.evidence,
    }
}

/// What must be known to read the capture.
fn receipt(input: &CaptureInput, received_ms: i64) -> Receipt {
    Receipt {
        received_ms,
        send_took_ms: 0,
        provider: input.provider.clone(),
        account: input.account.clone(),
        model: input.model.clone(),
        attempts: input.attempts,
        redact_vendor_messages: true,
    }
}

fn recovery(decision: Decision) -> Recovery {
    let of = |action, wait_ms, until_ms| Recovery { action, wait_ms, until_ms };
    match decision {
        Decision::RetryInPlace { wait_ms } => of("retry_in_place", Some(wait_ms), None),
        Decision::Defer { until_ms } => of("defer", None, Some(until_ms)),
        Decision::Requeue { until_ms } => of("requeue", None, Some(until_ms)),
        Decision::CommitPartial { then: Then::Continue { not_before_ms } } => of("commit_partial", None, not_before_ms),
        Decision::CommitPartial { then: Then::Accept } => of("commit_partial", None, None),
        Decision::Fail => of("fail", None, None),
        Decision::Stop => of("stop", None, None),
    }
}

/// How the captured call ended; `None`: it completed.
#[must_use]
pub fn ending(input: &CaptureInput) -> Option<Ending> {
    if input.cancelled {
        return Some(Ending::Cancelled { at: CancelPoint::Streaming });
    }
    let ending = match input.transport {
        Transport::Socket if input.body.trim().is_empty() || is_abort(&input.body) => {
            Some(Ending::Cancelled { at: CancelPoint::Streaming })
        }
        Transport::Socket => Some(Ending::Fault(broken_socket(&input.body))),
        Transport::SseFrame => stream(input),
        Transport::Http => match input.http_status {
            Some(200..=299) => body_of_2xx(input),
            status => Some(refused(input, status.unwrap_or_default())),
        },
    };
    match (ending, input.phase) {
        (Some(Ending::Fault(Fault::Transport(transport))), Some(phase)) => {
            Some(Ending::Fault(Fault::Transport(crate::failure::Transport { phase: Some(phase), ..transport })))
        }
        (ending, _) => ending,
    }
}

fn iden() -> ModelIden {
    // The walk looks at neither.
    ModelIden::new(AdapterKind::OpenAI, "captured")
}

/// A non-2xx, as `exec_chat` raises it.
fn refused(input: &CaptureInput, status: u16) -> Ending {
    let (headers, beside) = header_map(&input.headers);
    let Ok(status) = reqwest::StatusCode::from_u16(status) else {
        let response = ResponseFault { status: Some(status), headers: beside, body: None, inside_2xx: false };
        return Ending::Fault(Fault::Response(response));
    };
    let webc_error =
        genai::webc::Error::ResponseFailedStatus { status, body: input.body.clone(), headers: Box::new(headers) };
    Ending::Fault(with_headers(Fault::of(&genai::Error::WebModelCall { model_iden: iden(), webc_error }), beside))
}

/// A 2xx whose body was captured whole.
fn body_of_2xx(input: &CaptureInput) -> Option<Ending> {
    let all = || lower(&input.headers);
    match serde_json::from_str::<Value>(&input.body) {
        Ok(body) if frame::is_error_body(&body) => {
            let error = genai::Error::ChatResponse { model_iden: iden(), body };
            Some(Ending::Fault(with_headers(Fault::of(&error), all())))
        }
        Ok(body) => match frame::finish_reason(&body) {
            Some(reason) => ended(&reason),
            // An answer without a finish reason is none; a body of another kind is complete as it stands.
            None => is_answer(&body).then_some(Ending::Incomplete),
        },
        Err(error) => {
            if frame::split(&input.body).len() > 1
                || frame::split(&input.body).iter().any(|(_, data)| *data != input.body)
            {
                return stream(input);
            }
            let webc_error =
                genai::webc::Error::ResponseFailedInvalidJson { body: input.body.clone(), cause: error.to_string() };
            let fault = Fault::of(&genai::Error::WebModelCall { model_iden: iden(), webc_error });
            Some(Ending::Fault(with_headers(fault, all())))
        }
    }
}

/// Whether a body has the shape of a chat answer.
fn is_answer(body: &Value) -> bool {
    ["choices", "candidates"]
        .iter()
        .any(|member| body.get(*member).is_some_and(|list| list.is_array() || list.is_null()))
}

/// A stream's frames: the first error decides, else the last finish reason, else it is incomplete.
fn stream(input: &CaptureInput) -> Option<Ending> {
    let mut reason = None;
    let stated = input.http_status.filter(|status| !(200..300).contains(status));
    // The name of a Bedrock exception stands in the event's own headers.
    let exception = lower(&input.headers).into_iter().find(|(name, _)| name == ":exception-type").map(|(_, name)| name);
    for (event, data) in frame::split(&input.body) {
        let event = event.or_else(|| exception.clone());
        if let Some(found) = frame::error(event.as_deref(), &data) {
            let error = genai::Error::ChatResponse { model_iden: iden(), body: found.body.unwrap_or(Value::Null) };
            let mut fault = with_headers(Fault::of(&error), lower(&input.headers));
            if let Fault::Response(response) = &mut fault {
                response.status = response.status.or(stated);
            }
            return Some(Ending::Fault(fault));
        }
        if let Some(found) = serde_json::from_str(&data).ok().as_ref().and_then(frame::finish_reason) {
            reason = Some(found);
        }
    }
    match reason {
        Some(reason) => ended(&reason),
        None => Some(Ending::Incomplete),
    }
}

fn ended(reason: &str) -> Option<Ending> {
    (finish(reason) != Finish::Complete).then(|| Ending::Finish { reason: reason.to_owned() })
}

/// Whether a client's own text says that its caller gave the call up. It is all that a capture has of a local fault.
fn is_abort(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let aborted = ["request was aborted", "operation was aborted", "aborterror", "user aborted", "request aborted"];
    !names_timeout(&text) && aborted.iter().any(|words| text.contains(words))
}

/// Whether a client's own text, in lower case, says that a wait of it ran out.
fn names_timeout(text: &str) -> bool {
    ["timed out", "timedout", "timeout"].iter().any(|word| text.contains(word))
}

/// The `reqwest::Error` of a body stream that fails with the captured text, walked.
fn broken_socket(text: &str) -> Fault {
    use std::io::{Error, ErrorKind};
    let kind = if names_timeout(&text.to_ascii_lowercase()) { ErrorKind::TimedOut } else { ErrorKind::Other };
    let failing = futures::stream::iter([Err::<bytes::Bytes, _>(Error::new(kind, text.to_owned()))]);
    let response = http::Response::new(reqwest::Body::wrap_stream(failing));
    match futures::executor::block_on(reqwest::Response::from(response).bytes()) {
        Err(error) => {
            let error = genai::Error::WebStream { model_iden: iden(), cause: String::new(), error: Box::new(error) };
            Fault::of(&error)
        }
        // A stream of one error cannot end well.
        Ok(_) => Fault::Transport(crate::failure::Transport { phase: None, detail: "no detail".into() }),
    }
}

fn with_headers(fault: Fault, more: Vec<(String, String)>) -> Fault {
    match fault {
        Fault::Response(mut response) => {
            response.headers.extend(more);
            Fault::Response(response)
        }
        other => other,
    }
}

fn lower(headers: &[(String, String)]) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect()
}

/// The headers that HTTP can carry, and those that it cannot (`:exception-type`), which are kept beside.
fn header_map(headers: &[(String, String)]) -> (http::HeaderMap, Vec<(String, String)>) {
    let mut map = http::HeaderMap::new();
    let mut beside = Vec::new();
    for (name, value) in headers {
        let parsed = http::HeaderName::from_bytes(name.as_bytes()).ok().zip(http::HeaderValue::from_str(value).ok());
        match parsed {
            // A map refuses to grow beyond some thirty thousand entries.
            Some((name, value)) if map.len() < 1_024 => {
                map.append(name, value);
            }
            _ => beside.push((name.to_ascii_lowercase(), value.clone())),
        }
    }
    (map, beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(transport: Transport, http_status: Option<u16>, body: &str) -> CaptureInput {
        CaptureInput {
            transport,
            http_status,
            headers: Vec::new(),
            body: body.into(),
            received_at_ms: Some(0),
            provider: "p".into(),
            account: None,
            model: "m".into(),
            attempts: Some(1),
            deadline_ms: None,
            phase: None,
            spoken: false,
            cancelled: false,
        }
    }

    #[test]
    fn a_socket_text_becomes_a_real_transport_fault() {
        let Some(Ending::Fault(Fault::Transport(transport))) =
            ending(&input(Transport::Socket, None, "connection reset by peer"))
        else {
            panic!("a transport fault");
        };
        assert_eq!((transport.phase, transport.detail.as_str()), (None, "connection reset by peer"));
        assert!(matches!(ending(&input(Transport::Socket, None, "")), Some(Ending::Cancelled { .. })));
    }

    #[test]
    fn what_completes_is_no_failure() {
        for (transport, body) in [
            (Transport::Http, r#"{"choices":[{"finish_reason":"stop"}]}"#),
            (Transport::Http, r#"{"data":[]}"#),
            (Transport::SseFrame, "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"),
            (Transport::Http, "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"),
        ] {
            assert_eq!(ending(&input(transport, Some(200), body)), None, "{body}");
        }
        for body in ["", "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"] {
            assert_eq!(ending(&input(Transport::SseFrame, Some(200), body)), Some(Ending::Incomplete), "{body}");
        }
        let page = ending(&input(Transport::Http, Some(200), "<html></html>"));
        assert!(matches!(page, Some(Ending::Fault(Fault::Terminal(_)))));
    }
}
