//! What a stream frame or a 2xx body says about failure and finish: which ones are errors, the leaf built from the whole
//! of one, and the finish reason. What genai drops or invents is read here, from the wire.
//!
//! Pure functions over (event name, data); who keeps the frames is [`crate::provider`].

use super::fault::ResponseFault;
use serde_json::{Map, Value};

/// Members that an object may carry and still be nothing but an error message (a Bedrock exception frame, whose name
/// genai does not expose, and flat envelopes of gateways).
const BARE_MEMBERS: [&str; 14] = [
    "message",
    "Message",
    "msg",
    "code",
    "status",
    "status_code",
    "type",
    "param",
    "request_id",
    "requestId",
    "originalStatusCode",
    "originalMessage",
    "__type",
    "details",
];
/// Where a frame's finish reason may stand.
const FINISH_PLACES: [&str; 12] = [
    "/choices/0/finish_reason",
    "/delta/stop_reason",
    "/candidates/0/finishReason",
    "/done_reason",
    "/messageStop/stopReason",
    "/delta/finish_reason",
    "/stop_reason",
    "/stopReason",
    "/finish_reason",
    "/response/incomplete_details/reason",
    "/incomplete_details/reason",
    "/output/choices/0/finish_reason",
];

/// The leaf of a frame that is an error; `None` for every other frame.
#[must_use]
pub fn error(event: Option<&str>, data: &str) -> Option<ResponseFault> {
    match serde_json::from_str::<Value>(data) {
        Ok(value) => is_error(event, &value).then(|| fault(value)),
        Err(_) if is_exception(event) && !data.trim().is_empty() => {
            let body = Some(Value::String(data.to_owned()));
            Some(ResponseFault { status: None, headers: Vec::new(), body, inside_2xx: true })
        }
        Err(_) => None,
    }
}

/// Whether a frame is an error, by its name and its data.
#[must_use]
pub fn is_error(event: Option<&str>, data: &Value) -> bool {
    is_exception(event) || is_error_body(data) || data.as_object().is_some_and(is_bare)
}

/// Whether a 2xx body is an error.
#[must_use]
pub fn is_error_body(body: &Value) -> bool {
    let object = match body {
        Value::Object(object) => object,
        // Gemini and Vertex wrap an error in an array.
        Value::Array(items) => return items.iter().take(8).any(|item| item.is_object() && is_error_body(item)),
        _ => return false,
    };
    let given = |member: &str| object.get(member).is_some_and(|value| !value.is_null());
    let kind = object.get("type").and_then(Value::as_str).unwrap_or_default();
    let finish = body.pointer("/choices/0/finish_reason").and_then(Value::as_str);
    given("error")
        || kind == "error"
        || kind.ends_with(".failed")
        || object.get("object").and_then(Value::as_str) == Some("error")
        || body.pointer("/promptFeedback/blockReason").is_some_and(|reason| !reason.is_null())
        || finish == Some("error")
        || ["/response/error", "/choices/0/error"]
            .iter()
            .any(|place| body.pointer(place).is_some_and(|error| !error.is_null()))
        || is_numbered(body)
}

/// Vendors that answer 200 to everything tell by a number, or by a member of their own.
fn is_numbered(body: &Value) -> bool {
    let counted = ["/base_resp/status_code", "/error_code", "/header/code"]
        .iter()
        .any(|place| body.pointer(place).and_then(Value::as_i64).is_some_and(|code| code != 0));
    let refused = body.get("success") == Some(&Value::Bool(false))
        && body.get("errors").and_then(Value::as_array).is_some_and(|errors| !errors.is_empty());
    counted || refused || body.pointer("/Response/Error").is_some_and(Value::is_object)
}

/// The leaf of a whole frame or body that is known to be an error: its own status, and the headers it lends.
#[must_use]
pub fn fault(body: Value) -> ResponseFault {
    ResponseFault {
        status: status(&body),
        headers: lent_headers(&body),
        body: Some(body).filter(|body| !body.is_null()),
        inside_2xx: true,
    }
}

/// The leaf of a text that is one JSON error envelope, plain or as one SSE line.
pub(super) fn error_in_text(text: &str) -> Option<ResponseFault> {
    let json = sse_line(text).unwrap_or(text);
    let value: Value = serde_json::from_str(json.trim()).ok()?;
    is_error_body(&value).then(|| fault(value))
}

/// The JSON of a text that is one `data:` line, perhaps named and perhaps ended by `[DONE]`.
pub(super) fn sse_line(text: &str) -> Option<&str> {
    let start = text.trim_start();
    if !(start.starts_with("data:") || start.starts_with("event:") || start.starts_with(':')) {
        return None;
    }
    start.lines().find_map(|line| line.strip_prefix("data:")).map(str::trim)
}

/// The finish reason that a frame or a whole answer states: the vendor's own word.
#[must_use]
pub fn finish_reason(data: &Value) -> Option<String> {
    let data = match data {
        Value::Array(items) => items.last()?,
        other => other,
    };
    let object = data.as_object()?;
    for place in FINISH_PLACES {
        if let Some(word) =
            data.pointer(place).and_then(Value::as_str).filter(|word| !word.is_empty() && *word != "null")
        {
            return Some(word.to_owned());
        }
    }
    // A Responses stream ends by an event, a whole Responses object by its status.
    let kind = object.get("type").and_then(Value::as_str);
    if matches!(kind, Some("response.completed" | "response.incomplete")) {
        return kind.and_then(|kind| kind.strip_prefix("response.")).map(str::to_owned);
    }
    if kind == Some("interaction.completed") {
        return data.pointer("/interaction/status").and_then(Value::as_str).map(str::to_owned);
    }
    let whole = object.get("object").and_then(Value::as_str) == Some("response");
    let status = object.get("status").and_then(Value::as_str);
    status
        .filter(|status| whole && matches!(*status, "completed" | "incomplete" | "failed" | "cancelled"))
        .map(str::to_owned)
}

/// Splits captured SSE text, or lines of JSON, into frames of (event name, data). A text of neither is one frame.
#[must_use]
pub fn split(text: &str) -> Vec<(Option<String>, String)> {
    let is_sse = text.lines().any(|line| {
        ["data:", "event:", "id:", "retry:"].iter().any(|field| line.starts_with(field)) || line.starts_with(':')
    });
    if is_sse {
        return split_sse(text);
    }
    if text.trim().is_empty() {
        return Vec::new();
    }
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.len() > 1 && lines.iter().all(|line| line.trim_start().starts_with('{') && line.trim_end().ends_with('}'))
    {
        return lines.into_iter().map(|line| (None, line.to_owned())).collect();
    }
    vec![(None, text.to_owned())]
}

fn split_sse(text: &str) -> Vec<(Option<String>, String)> {
    let mut frames = Vec::new();
    let mut event: Option<String> = None;
    let mut data: Option<String> = None;
    for line in text.lines().chain(std::iter::once("")) {
        if line.is_empty() {
            if let Some(data) = data.take() {
                frames.push((event.take(), data));
            }
            event = None;
        } else if let Some(value) = line.strip_prefix("data:") {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => data = Some(value.to_owned()),
            }
        } else if let Some(value) = line.strip_prefix("event:") {
            event = Some(value.trim().to_owned());
        }
    }
    frames
}

fn is_exception(event: Option<&str>) -> bool {
    event.is_some_and(|event| {
        event == "error" || event.ends_with(".failed") || event.ends_with("Exception") || event.ends_with("exception")
    })
}

/// An object that holds a message, a code or both, and nothing of an answer.
fn is_bare(object: &Map<String, Value>) -> bool {
    let message = ["message", "Message", "msg"].iter().any(|name| object.get(*name).is_some_and(Value::is_string));
    message && object.keys().all(|name| BARE_MEMBERS.contains(&name.as_str()))
}

/// The status that a frame states of itself: only a number, 100..=599.
fn status(body: &Value) -> Option<u16> {
    let body = match body {
        Value::Array(items) if items.len() == 1 => items.first()?,
        other => other,
    };
    let places = [
        "/error/code",
        "/code",
        "/error/status",
        "/status",
        "/status_code",
        "/error/status_code",
        "/response/error/code",
        "/choices/0/error/code",
    ];
    places.iter().find_map(|place| {
        let number = body.pointer(place)?.as_u64()?;
        u16::try_from(number).ok().filter(|status| (100..600).contains(status))
    })
}

/// The headers that a frame carries for its error, lower case, each value of its own.
fn lent_headers(body: &Value) -> Vec<(String, String)> {
    let mut lent = Vec::new();
    for place in ["/headers", "/error/headers"] {
        let Some(headers) = body.pointer(place).and_then(Value::as_object) else { continue };
        for (name, value) in headers {
            let values = match value {
                Value::Array(values) => values.as_slice(),
                one => std::slice::from_ref(one),
            };
            for value in values {
                match value {
                    Value::String(text) => lent.push((name.to_ascii_lowercase(), text.clone())),
                    Value::Number(number) => lent.push((name.to_ascii_lowercase(), number.to_string())),
                    _ => {}
                }
            }
        }
    }
    lent
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_an_error_and_what_only_looks_like_one() {
        let errors = [
            json!({"error": {"message": "x"}}),
            json!({"error": "x"}),
            json!({"type": "error"}),
            json!({"type": "response.failed", "response": {}}),
            json!({"promptFeedback": {"blockReason": "SAFETY"}}),
            json!({"choices": [{"finish_reason": "error"}]}),
            json!({"choices": [{"error": {"code": 502, "message": "x"}}]}),
            json!([{"error": {"code": 429}}]),
            json!({"base_resp": {"status_code": 1008}}),
        ];
        for error in &errors {
            assert!(is_error(None, error), "{error}");
        }
        let fine = [
            json!({"error": null, "choices": [{"finish_reason": "stop"}]}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
            json!({"promptFeedback": {"blockReason": null}}),
            json!({"base_resp": {"status_code": 0}}),
            json!({"message": {"content": "hi"}, "done": false}),
            json!("error"),
        ];
        for frame in &fine {
            assert!(!is_error(None, frame), "{frame}");
        }
        assert!(is_error(Some("throttlingException"), &json!({"message": "slow down"})));
        assert!(is_error(None, &json!({"message": "Too many requests, please wait before trying again."})));
    }

    #[test]
    fn a_frame_states_its_status_by_a_number_only_and_lends_its_headers() {
        let of = |body| fault(body);
        assert_eq!(of(json!({"error": {"code": 429}})).status, Some(429));
        assert_eq!(of(json!({"error": {"code": "429"}})).status, None);
        assert_eq!(of(json!({"error": {"code": 1302}})).status, None);
        let lent = of(json!({"type": "error", "status_code": 429, "headers": {"Retry-After": "7", "a": ["b", 1]}}));
        assert_eq!(lent.status, Some(429));
        let pairs: Vec<_> = lent.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("retry-after", "7"), ("a", "b"), ("a", "1")]);
    }

    #[test]
    fn finish_reasons_of_every_adapter() {
        let cases = [
            (json!({"choices": [{"finish_reason": "length"}]}), Some("length")),
            (json!({"choices": [{"finish_reason": null}]}), None),
            (json!({"delta": {"stop_reason": "max_tokens"}}), Some("max_tokens")),
            (json!({"candidates": [{"finishReason": "MAX_TOKENS"}]}), Some("MAX_TOKENS")),
            (json!({"done": true, "done_reason": "stop"}), Some("stop")),
            (json!({"messageStop": {"stopReason": "end_turn"}}), Some("end_turn")),
            (json!({"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}), Some("COMPLETE")),
            (json!({"type": "response.completed", "response": {}}), Some("completed")),
            (
                json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}}),
                Some("max_output_tokens"),
            ),
            (json!({"object": "response", "status": "completed"}), Some("completed")),
        ];
        for (frame, reason) in cases {
            assert_eq!(finish_reason(&frame).as_deref(), reason, "{frame}");
        }
    }

    #[test]
    fn captured_text_splits_into_frames() {
        let sse = split(": hello\n\nevent: error\ndata: {\"a\":\ndata: 1}\n\ndata: [DONE]\n");
        assert_eq!(sse, [(Some("error".into()), "{\"a\":\n1}".into()), (None, "[DONE]".into())]);
        assert_eq!(split("{\"a\":1}\n{\"b\":2}\n").len(), 2);
        assert_eq!(split("{\n\"a\":1}\n").len(), 1);
        assert!(split(" \n").is_empty());
    }
}
