//! Anything at all may arrive as status, headers and body. Nothing panics, the time stays linear, every string that is
//! kept fits its grammar, and what a vendor sent stands in none of them.

use crate::{RULES, read, receipt};
use proptest::prelude::*;
use reprieve::failure::{Candidate, Ending, Failure, Fault, Phase, Receipt, ResponseFault, Transport, frame};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Never part of any grammar: it has a character that none allows, and is looked for whole and in part.
pub const CANARY: &str = "CANARY~prompt~42";

fn word(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

fn identity(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.:/-".contains(&b))
}

fn printable(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
}

/// A name: a header's in lower case, a pointer, or `text`.
fn place(text: &str) -> bool {
    !text.is_empty() && text.len() <= 256 && text.bytes().all(|b| b.is_ascii_graphic())
}

pub fn check(failure: &Failure) -> Result<(), String> {
    let ensure = |ok: bool, what: &str| if ok { Ok(()) } else { Err(format!("{what}: {failure:?}")) };
    for text in [&failure.provider_code, &failure.provider_type, &failure.request_id, &failure.finish_reason] {
        ensure(text.as_deref().is_none_or(word), "a word")?;
    }
    ensure(failure.detail.as_deref().is_none_or(|text| printable(text) && text.len() <= 120), "the detail")?;
    ensure(failure.rule.as_deref().is_none_or(word), "the rule")?;
    ensure(failure.vendor_message.is_none(), "a redacted message")?;
    for Candidate { name, raw, remaining, why, verdict, at_ms, .. } in &failure.evidence {
        ensure(place(name), "a name")?;
        ensure(raw.as_deref().is_none_or(|raw| raw.chars().count() <= 64), "a raw value")?;
        ensure(
            remaining.as_deref().is_none_or(|left| left.bytes().all(|b| b.is_ascii_digit() || b"+-.e".contains(&b))),
            "what remains",
        )?;
        ensure(!why.is_empty() && why.len() <= 120 && printable(why), "a reason")?;
        ensure(at_ms.is_some() || *verdict != reprieve::failure::Verdict::Selected, "a selected instant")?;
    }
    if let Some(limit) = &failure.limit {
        for text in [&limit.identity.provider, &limit.identity.account, &limit.identity.model] {
            ensure(text.as_deref().is_none_or(identity), "an identity")?;
        }
        ensure(limit.reset_at_ms.is_some() == limit.reset_source.is_some(), "reset and source")?;
    }
    ensure(failure.retry_after_secs.is_none_or(|secs| secs <= 30), "retry_after_secs")?;
    let document = failure.document();
    ensure(printable(&document.message), "the message")?;
    let kept = format!("{}{:?}{}", serde_json::to_string(&document).unwrap(), failure.evidence, failure.summary());
    ensure(!kept.contains("CANARY") && !kept.contains("~prompt~"), "the canary")?;
    let fields: Vec<String> = failure.fields().into_iter().map(|(_, value)| value).collect();
    ensure(!fields.join(" ").contains("CANARY"), "the canary in a field")
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just(format!("try again in 5s {CANARY} \u{130}\0 at 2026-10-01 00:00 {CANARY}")),
        Just(format!("resets at 3pm ({CANARY})")),
        Just(CANARY.to_owned()),
        "[0-9]{1,80}",
        "[0-9.smhd: -]{0,24}",
        (0_usize..70).prop_map(|n| "9".repeat(n)),
    ]
}

fn body() -> impl Strategy<Value = Value> {
    let member = prop::sample::select(vec![
        "error",
        "message",
        "code",
        "type",
        "status",
        "reason",
        "details",
        "metadata",
        "raw",
        "headers",
        "errors",
        "response",
        "detail",
        "retry_after",
        "reset_at_ms",
        "resets_at",
        "retryDelay",
        "@type",
        "violations",
        "quotaId",
        "request_id",
        "retry-after",
        "x-ratelimit-reset",
        "choices",
        "promptFeedback",
        "blockReason",
        "base_resp",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        text().prop_map(Value::from),
        Just(json!("type.googleapis.com/google.rpc.RetryInfo")),
        Just(json!("google.rpc.ErrorInfo")),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((member.clone(), inner.clone()), 0..6)
                .prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
            // JSON as text.
            inner.prop_map(|value| Value::String(value.to_string())),
        ]
    })
}

fn headers() -> impl Strategy<Value = Vec<(String, String)>> {
    let name = prop_oneof![
        prop::sample::select(vec![
            "retry-after",
            "retry-after-ms",
            "x-ratelimit-reset",
            "x-ratelimit-remaining",
            "x-ratelimit-reset-tokens",
            "x-ratelimit-remaining-tokens",
            "anthropic-ratelimit-unified-reset",
            "anthropic-ratelimit-unified-5h-status",
            "anthropic-ratelimit-unified-5h-reset",
            "x-codex-primary-reset-at",
            "x-codex-primary-used-percent",
            "date",
            "age",
            "x-request-id",
            "cf-ray",
            "x-amzn-errortype",
            ":exception-type",
            "x-ratelimit-type",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    prop::collection::vec((name, text()), 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anything_is_read(status in prop::option::of(any::<u16>()), headers in headers(), body in prop::option::of(body())) {
        let failure = read(status, &headers, body);
        if let Err(what) = check(&failure) {
            prop_assert!(false, "{}", what);
        }
    }

    #[test]
    fn any_text_is_a_frame_or_none(event in prop::option::of(text()), data in prop_oneof![text(), body().prop_map(|b| b.to_string())]) {
        if let Some(fault) = frame::error(event.as_deref(), &data) {
            let failure = crate::read_fault(Fault::Response(fault));
            if let Err(what) = check(&failure) {
                prop_assert!(false, "{}", what);
            }
        }
        let _ = frame::split(&data);
    }

    #[test]
    fn any_receipt_is_taken(received_ms in any::<i64>(), took in any::<i64>(), name in any::<String>(), wait in text()) {
        let receipt = Receipt {
            received_ms,
            send_took_ms: took,
            provider: name.clone(),
            account: Some(name.clone()),
            model: name,
            ..receipt()
        };
        let response = ResponseFault {
            status: Some(429),
            headers: vec![("retry-after".into(), wait.clone()), ("date".into(), wait.clone())],
            body: Some(json!({"error": {"message": wait, "resets_at": received_ms}})),
            inside_2xx: false,
        };
        let failure = Failure::read(&Ending::Fault(Fault::Response(response)), &receipt, &RULES);
        if let Err(what) = check(&failure) {
            prop_assert!(false, "{}", what);
        }
    }
}

#[test]
fn a_finish_reason_and_a_detail_are_kept_only_in_their_grammar() {
    let ending = Ending::Finish { reason: format!("length {CANARY}") };
    check(&Failure::read(&ending, &receipt(), &RULES)).unwrap();
    let detail = "reset\u{0}\u{202e} by https://user:secret@host/path peer".to_owned();
    let ending = Ending::Fault(Fault::Transport(Transport { phase: Some(Phase::Read), detail }));
    let failure = Failure::read(&ending, &receipt(), &RULES);
    check(&failure).unwrap();
    assert_eq!(failure.detail.as_deref(), Some("reset by peer"));
}

#[test]
fn a_vendors_sentence_is_shown_only_where_that_is_allowed_and_only_in_the_message() {
    let body = json!({"error": {"message": format!("Slow down.\n{CANARY} {}", "x".repeat(900))}});
    let open = Receipt { redact_vendor_messages: false, ..receipt() };
    let of = |body: Value| {
        let response = ResponseFault { status: Some(429), headers: Vec::new(), body: Some(body), inside_2xx: false };
        Failure::read(&Ending::Fault(Fault::Response(response)), &open, &RULES)
    };
    let failure = of(body);
    let document = failure.document();
    assert!(document.message.contains(CANARY) && document.message.len() < 700);
    assert!(!serde_json::to_string(&document.model_failure).unwrap().contains("CANARY"));
    assert!(!failure.summary().contains("CANARY"));
    let page = of(json!(format!("<!doctype html><html>{CANARY}</html>")));
    assert!(page.document().message.ends_with("message=an HTML page"));
}

#[test]
fn the_time_is_linear_in_what_was_sent() {
    let bodies: [fn(usize) -> Value; 8] = [
        |n| json!("9".repeat(n)),
        |n| json!({"error": {"message": "try again in ".repeat(n / 13)}}),
        |n| json!({"error": {"message": "{\"".repeat(n / 2)}}),
        |n| json!({"error": {"message": "a. ".repeat(n / 3)}}),
        |n| json!({"error": {"message": "{'".repeat(n / 2)}}),
        |n| json!({"error": {"details": vec![json!({"@type": "google.rpc.RetryInfo", "retryDelay": "5s"}); n / 60]}}),
        |n| json!("data: {".repeat(n / 7)),
        |n| json!({"error": {"message": "\u{130}".repeat(n / 2), "code": "x".repeat(n)}}),
    ];
    for (index, body) in bodies.iter().enumerate() {
        let small = body(100_000);
        let large = body(1_600_000);
        let took = |body: &Value| {
            let body = Some(body.clone());
            let start = Instant::now();
            let failure = read(Some(429), &[("retry-after".into(), "9".repeat(1_000_000))], body);
            check(&failure).unwrap();
            start.elapsed()
        };
        let base = took(&small).max(Duration::from_millis(10));
        let grown = took(&large);
        // Sixteen times the input: well below the 256 times of quadratic work.
        assert!(grown < base * 80, "body {index}: {base:?} became {grown:?}");
    }
}

#[test]
fn json_in_text_a_hundred_deep_ends() {
    let mut value = json!({"error": {"message": "core", "code": "rate_limit_exceeded"}});
    for _ in 0..12 {
        value = json!({"error": {"message": value.to_string()}});
    }
    check(&read(Some(429), &[], Some(value))).unwrap();
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let mut value = json!(deep);
    for _ in 0..100 {
        value = json!([value]);
    }
    check(&read(Some(429), &[], Some(value))).unwrap();
}
