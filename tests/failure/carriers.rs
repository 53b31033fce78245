//! One refusal, however it is carried, is read once: as an HTTP error, inside a stream, in a 2xx envelope, in a relay's
//! `raw` and by a raw turn.

use crate::{NOW_MS, read_fault};
use genai::ModelIden;
use genai::adapter::AdapterKind;
use reprieve::failure::{Ending, Failure, Fault, ResponseFault, frame};
use reprieve::recovery::{Decision, Delivery, OnTruncated, Policy, Situation, Spoken, recover};
use serde_json::{Value, json};

/// What must be equal.
type Outcome = (&'static str, &'static str, Option<&'static str>, Option<i64>, Decision);

fn outcome(failure: &Failure) -> Outcome {
    let situation = Situation {
        now_ms: NOW_MS,
        sends: 1,
        executions: 0,
        barren: 0,
        turn_left_ms: None,
        deadline_ms: None,
        spoken: Spoken::Nothing,
        repairs: 0,
        deferrals: 0,
        waiting_since_ms: None,
        delivery: Delivery::AtLeastOnce,
        structured_output: false,
        on_truncated: OnTruncated::Continue,
        jitter: 0.0,
    };
    let kind = failure.limit.as_ref().and_then(|limit| limit.kind).map(reprieve::failure::LimitKind::as_str);
    let decision = recover(failure, &situation, &Policy::tiered());
    (failure.class.as_str(), failure.cause.as_str(), kind, failure.resume_at_ms, decision)
}

fn iden(adapter: AdapterKind) -> ModelIden {
    ModelIden::new(adapter, "m")
}

/// Every way in which the refusal can arrive.
fn carried(status: u16, headers: &[(String, String)], body: &Value) -> Vec<(&'static str, Fault)> {
    let mut map = http::HeaderMap::new();
    for (name, value) in headers {
        map.append(
            http::HeaderName::from_bytes(name.to_ascii_lowercase().as_bytes()).unwrap(),
            http::HeaderValue::from_str(value).unwrap(),
        );
    }
    let text = body.to_string();
    let code = reqwest::StatusCode::from_u16(status).unwrap();
    let http = |adapter| genai::Error::WebModelCall {
        model_iden: iden(adapter),
        webc_error: genai::webc::Error::ResponseFailedStatus {
            status: code,
            body: text.clone(),
            headers: Box::new(map.clone()),
        },
    };
    let streamed = genai::Error::WebStream {
        model_iden: iden(AdapterKind::Anthropic),
        cause: "elsewhere".into(),
        error: Box::new(genai::Error::HttpError {
            status: code,
            canonical_reason: "x".into(),
            body: text.clone(),
            headers: Box::new(map.clone()),
        }),
    };
    let lent: serde_json::Map<String, Value> = headers.iter().map(|(n, v)| (n.clone(), json!(v))).collect();
    let mut whole = body.clone();
    whole["status_code"] = json!(status);
    whole["headers"] = Value::Object(lent.clone());
    let event = genai::Error::ChatResponse { model_iden: iden(AdapterKind::Gemini), body: whole.clone() };
    let in_frame = frame::error(None, &whole.to_string()).map(Fault::Response).expect("an error frame");
    assert!(frame::is_error_body(&whole));
    let envelope = |raw: Value| {
        json!({"error": {"message": "Provider returned error", "code": status,
            "metadata": {"raw": raw, "headers": lent, "provider_name": "X"}}})
    };
    let relayed = |raw: Value| {
        Fault::Response(ResponseFault {
            status: Some(status),
            headers: Vec::new(),
            body: Some(envelope(raw)),
            inside_2xx: false,
        })
    };
    let prefixed = json!({"error": {"message": format!("Upstream request failed: {text}"), "code": status}});
    let mut all = vec![
        ("http, openai", Fault::of(&http(AdapterKind::OpenAI))),
        ("http, bedrock", Fault::of(&http(AdapterKind::BedrockApi))),
        ("http in a stream", Fault::of(&streamed)),
        ("a frame that genai kept", Fault::of(&event)),
        ("a frame from the wire", in_frame),
        ("a 2xx envelope", Fault::Response(frame::fault(whole))),
        ("a relay's raw object", relayed(body.clone())),
        ("a relay's raw text", relayed(json!(text))),
        ("a raw turn", Fault::of_response(status, &text, &map)),
        ("an array of one", Fault::of_response(status, &json!([body]).to_string(), &map)),
        ("one SSE line", Fault::of_response(status, &format!("data: {text}\n\n"), &map)),
    ];
    if headers.is_empty() {
        all.push(("JSON behind a prefix", Fault::of_response(status, &prefixed.to_string(), &map)));
    }
    all
}

/// Refusals of the collection that came with a status and a JSON body.
fn refusals() -> Vec<(String, u16, Vec<(String, String)>, Value)> {
    include_str!("../corpus/failures.jsonl")
        .lines()
        .filter_map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            let input = &row["input"];
            let status = u16::try_from(input["http_status"].as_u64()?).ok().filter(|status| *status >= 400)?;
            let body: Value = serde_json::from_str(input["body"].as_str()?).ok()?;
            body.get("error").filter(|error| !error.is_null())?;
            // A body that states another status is another refusal.
            let stated = ["/error/code", "/code", "/error/status", "/status"]
                .iter()
                .find_map(|place| body.pointer(place)?.as_u64())
                .filter(|number| (100..600).contains(number));
            if stated.is_some_and(|stated| stated != u64::from(status)) {
                return None;
            }
            // A reset on the provider's clock is shifted by its `Date`, which a relay does not lend.
            let headers: Vec<(String, String)> = input["headers"]
                .as_object()?
                .iter()
                .filter(|(name, _)| !name.eq_ignore_ascii_case("date"))
                .filter_map(|(name, value)| Some((name.to_ascii_lowercase(), value.as_str()?.to_owned())))
                .collect();
            Some((row["id"].as_str()?.to_owned(), status, headers, body))
        })
        .collect()
}

#[test]
fn one_refusal_is_read_the_same_however_it_is_carried() {
    let refusals = refusals();
    assert!(refusals.len() > 60, "{}", refusals.len());
    let mut wrong = Vec::new();
    for (id, status, headers, body) in &refusals {
        let all = carried(*status, headers, body);
        let first = outcome(&read_fault(all[0].1.clone()));
        for (how, fault) in all {
            // A rule that matches a header needs the header itself: a relay that copied it is not the vendor.
            let by_header =
                headers.iter().any(|(name, _)| name.ends_with("unified-status") || name == "x-ratelimit-type");
            if by_header && how.starts_with("a relay") {
                continue;
            }
            let got = outcome(&read_fault(fault));
            if got != first {
                wrong.push(format!("{id}, {how}: {got:?} instead of {first:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_answer_that_only_says_it_failed_is_a_broken_stream_however_it_says_so() {
    let bare = json!({"choices": [{"delta": {"content": ""}, "finish_reason": "error"}]});
    let named = json!({"choices": [{"finish_reason": "error", "error": {"code": 502, "message": "gone"}}]});
    assert!(frame::is_error_body(&bare) && frame::is_error_body(&named));
    let retried = |class| (class, "provider_error", None, None, Decision::RetryInPlace { wait_ms: 750 });
    let of_frame = read_fault(Fault::Response(frame::fault(bare)));
    assert_eq!((outcome(&of_frame), of_frame.finish_reason.as_deref()), (retried("provider_error"), Some("error")));
    // An error that the choice carries says more than its finish.
    let of_choice = read_fault(Fault::Response(frame::fault(named)));
    assert_eq!((outcome(&of_choice), of_choice.finish_reason), (retried("unavailable"), None));
    for word in ["error", "failed", "cancelled", "MALFORMED_FUNCTION_CALL"] {
        let ending = Ending::Finish { reason: word.into() };
        let failure = Failure::read(&ending, &crate::receipt(), &crate::RULES);
        assert_eq!((outcome(&failure), failure.finish_reason.as_deref()), (retried("provider_error"), Some(word)));
    }
    // What a terminal answer says about its finish makes nothing of it retryable.
    let refused = ResponseFault { status: Some(400), ..frame::fault(json!({"choices": [{"finish_reason": "error"}]})) };
    assert_eq!(outcome(&read_fault(Fault::Response(refused))).4, Decision::Fail);
}
