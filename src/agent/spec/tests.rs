use super::*;
use proptest::prelude::*;
use serde_json::json;

fn parsed(spec: &Value) -> Result<JobSpec, String> {
    JobSpec::parse(&spec.to_string()).map_err(|error| error.to_string())
}

/// A plain job with some members set.
fn with(members: &Value) -> Result<JobSpec, String> {
    let mut spec = json!({"model": "m", "input": "hello"});
    for (name, value) in members.as_object().unwrap() {
        spec[name] = value.clone();
    }
    parsed(&spec)
}

#[test]
fn a_plain_job_has_the_documented_defaults() {
    let spec = with(&json!({})).unwrap();
    assert_eq!((spec.model.as_str(), spec.queue.as_str(), spec.priority), ("m", "default", 0));
    assert_eq!((spec.stream, spec.max_turns, spec.on_truncated()), (true, 50, OnTruncated::Continue));
    assert!(spec.provider.is_none() && spec.tenant.is_none() && spec.idempotency_key.is_none());
    assert!(spec.deadline.is_none() && spec.not_before.is_none() && spec.turn_timeout_ms.is_none());
    let Body::Chat { system: None, messages, options } = spec.body else { panic!("a chat") };
    assert_eq!(messages, [Message { role: "user".into(), content: json!("hello") }]);
    assert_eq!(*options, ChatParams::default());
}

#[test]
fn every_member_is_read() {
    let spec = parsed(&json!({
        "model": "gpt-4o-mini", "provider": "openai", "system": "be brief", "queue": "nightly", "tenant": "acme/1",
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]}
        ],
        "priority": -100, "idempotency_key": "k-1", "labels": {"run": "7", "who": ""},
        "options": {"temperature": 0, "top_p": 1.0, "max_tokens": 1024, "stop": "END", "seed": 7,
            "response_format": {"type": "json_object"}, "reasoning_effort": "low", "extra_body": {"top_k": 4}},
        "stream": false, "max_turns": 3, "deadline": "2h", "not_before": "2026-12-01T09:00:00+01:00",
        "on_truncated": "fail", "policy": "strict", "delivery": "at_least_once", "turn_timeout": "1h30m"
    }))
    .unwrap();
    assert_eq!((spec.provider.as_deref(), spec.tenant.as_deref()), (Some("openai"), Some("acme/1")));
    assert_eq!((spec.queue.as_str(), spec.priority, spec.stream, spec.max_turns), ("nightly", -100, false, 3));
    assert_eq!(spec.deadline, Some(When::InMs(7_200_000)));
    assert_eq!(spec.not_before, Some(When::AtMs(1_796_112_000_000)));
    assert_eq!(spec.turn_timeout_ms, Some(5_400_000));
    assert_eq!(spec.labels, [("run".to_owned(), "7".to_owned()), ("who".to_owned(), String::new())]);
    assert_eq!((spec.on_truncated(), spec.policy.as_deref()), (OnTruncated::Fail, Some("strict")));
    assert!(spec.is_structured());
    let Body::Chat { system, messages, options } = spec.body else { panic!("a chat") };
    assert_eq!((system.as_deref(), messages.len()), (Some("be brief"), 3));
    assert_eq!((options.max_tokens, options.stop), (Some(1_024), Some(json!(["END"]))));
}

#[test]
fn a_job_may_be_sent_at_most_once_whatever_it_asks() {
    for body in [json!({}), json!({"input": null, "raw": {"path": "v1/embeddings", "body": {"model": "m"}}})] {
        let mut members = body;
        members["delivery"] = json!("at_most_once");
        assert_eq!(with(&members).unwrap().delivery, Delivery::AtMostOnce);
    }
}

#[test]
fn null_is_absent() {
    let spec = with(&json!({
        "messages": null, "raw": null, "tools": null, "webhook": null, "tenant": null, "deadline": null,
        "labels": null, "options": {"max_tokens": null, "tool_choice": null}, "priority": null, "stream": null
    }))
    .unwrap();
    assert_eq!((spec.on_truncated(), spec.stream), (OnTruncated::Continue, true));
}

#[test]
fn what_is_wrong_is_named_by_its_place() {
    for (members, said) in [
        (json!({"modle": "x"}), "/modle: is unknown; known here: model, provider, input,"),
        (json!({"a/b~c": 1}), "/a~1b~0c: is unknown"),
        (json!({"tools": []}), "/tools: is not supported by this release"),
        (json!({"webhook": {"url": "https://x"}}), "/webhook: is not supported by this release"),
        (json!({"max_total_tokens": 9}), "/max_total_tokens: is not supported by this release"),
        (json!({"delivery": "once"}), "/delivery: must be one of: at_least_once, at_most_once"),
        (json!({"model": null}), "/model: is missing"),
        (json!({"model": ""}), "/model: must not be empty"),
        (json!({"model": "a\nb"}), "/model: must not have control characters"),
        (json!({"model": 4}), "/model: must be a text"),
        (json!({"input": null}), "/input: is missing: give `input`, `messages` or `raw`"),
        (json!({"input": ""}), "/input: must not be empty"),
        (json!({"messages": []}), "/messages: stands beside `input`"),
        (json!({"input": null, "messages": []}), "/messages: must not be empty"),
        (json!({"input": null, "messages": [{"role": "user"}]}), "/messages/0/content: is missing"),
        (json!({"input": null, "messages": [{"role": "me", "content": "x"}]}), "/messages/0/role: must be one of"),
        (json!({"input": null, "messages": [{"role": "tool", "content": "x"}]}), "/messages/0/role: `tool` is not"),
        (json!({"input": null, "messages": [{"role": "user", "content": 3}]}), "/messages/0/content: must be a text"),
        (
            json!({"input": null, "messages": [{"role": "user", "content": [{"type": "audio"}]}]}),
            "/messages/0/content/0/type: must be one of: text, image_url",
        ),
        (
            json!({"input": null, "messages": [{"role": "user", "content": "x", "name": "y"}]}),
            "/messages/0/name: is unk",
        ),
        (
            json!({"input": null, "messages": [{"role": "assistant", "content": "x", "tool_calls": []}]}),
            "/messages/0/tool_calls: is not supported",
        ),
        (json!({"queue": "a b"}), "/queue: may have letters, digits and `_.-` only"),
        (json!({"priority": 101}), "/priority: must be a whole number from -100 to 100"),
        (json!({"priority": 1.5}), "/priority: must be a whole number"),
        (json!({"max_turns": 0}), "/max_turns: must be a whole number from 1 to 10000"),
        (json!({"labels": {"k": 1}}), "/labels/k: must be a text"),
        (json!({"labels": {"a b": "x"}}), "/labels: has a key that may have letters"),
        (json!({"labels": ["x"]}), "/labels: must be an object"),
        (json!({"deadline": 3600}), "/deadline: must be a text: a duration"),
        (json!({"deadline": "3600"}), "/deadline: has a number without a unit"),
        (json!({"deadline": "0s"}), "/deadline: must be longer than nothing"),
        (json!({"deadline": "400d"}), "/deadline: is longer than 366d"),
        (json!({"deadline": "2026-13-01T00:00:00Z"}), "/deadline: is no RFC 3339 instant"),
        (json!({"deadline": "2026-12-01T00:00:00"}), "/deadline: is no RFC 3339 instant"),
        (json!({"turn_timeout": "2026-12-01T00:00:00Z"}), "/turn_timeout: is no duration"),
        (json!({"on_truncated": "go on"}), "/on_truncated: must be one of: continue, accept, fail"),
        (json!({"options": {"temprature": 1}}), "/options/temprature: is unknown"),
        (json!({"options": {"tool_choice": "auto"}}), "/options/tool_choice: is not supported by this release"),
        (json!({"options": {"top_p": 2}}), "/options/top_p: must be a number from 0 to 1"),
        (json!({"options": {"max_tokens": 0}}), "/options/max_tokens: must be a whole number from 1"),
        (json!({"options": {"seed": -1}}), "/options/seed: must be a whole number, 0 or more"),
        (json!({"options": {"stop": [1]}}), "/options/stop: must be a text"),
        (json!({"options": {"response_format": "json"}}), "/options/response_format/type: must be one of"),
        (
            json!({"options": {"response_format": {"type": "json_schema"}}}),
            "/options/response_format/json_schema/schema",
        ),
        (json!({"options": {"extra_body": {"model": "x"}}}), "/options/extra_body/model: is written by the job itself"),
        (
            json!({"options": {"max_tokens": 5, "extra_body": {"max_completion_tokens": 6}}}),
            "/options/extra_body/max_completion_tokens: says what the option `max_tokens` says",
        ),
        (json!({"stream": "yes"}), "/stream: must be true or false"),
    ] {
        let error = with(&members).unwrap_err();
        assert!(error.starts_with(said), "{members}: {error}");
    }
}

#[test]
fn broken_json_is_named_by_line_and_column() {
    for (text, said) in [
        ("", "line 1, column 0: is no valid JSON: EOF while parsing a value"),
        ("{\"model\":\"m\",\n \"input\" 3}", "line 2, column 10: is no valid JSON: expected `:`"),
        ("{} {}", "line 1, column 4: is no valid JSON: trailing characters"),
        (
            "{\"model\":\"m\",\"model\":\"n\"}",
            "line 1, column 20: is no valid JSON: `model` stands twice in one object",
        ),
        ("{\"model\":\"a\\u0000\"}", "line 1, column 18: is no valid JSON: a text has a NUL character"),
        ("{\"a\\u0000\":1}", "line 1, column 10: is no valid JSON: a text has a NUL character"),
        ("[]", "/: must be an object"),
    ] {
        assert!(JobSpec::parse(text).unwrap_err().to_string().starts_with(said), "{:?}", JobSpec::parse(text));
    }
    let deep = format!("{{\"model\":\"m\",\"input\":{}1{}}}", "[".repeat(5_000), "]".repeat(5_000));
    assert!(JobSpec::parse(&deep).unwrap_err().problem.contains("recursion limit"));
    let large = format!("{{\"model\":\"m\",\"input\":\"{}\"}}", "x".repeat(limits::JOB_BYTES));
    assert!(JobSpec::parse(&large).unwrap_err().problem.ends_with("at most 8388608 are taken"));
}

#[test]
fn who_caps_an_answer_accepts_the_cut_by_default() {
    for (options, default) in [
        (json!({}), OnTruncated::Continue),
        (json!({"max_tokens": 9}), OnTruncated::Accept),
        (json!({"extra_body": {"max_completion_tokens": 9}}), OnTruncated::Accept),
    ] {
        assert_eq!(with(&json!({"options": options})).unwrap().on_truncated(), default);
    }
}

#[test]
fn a_raw_body_is_kept_byte_for_byte() {
    let body = "{ \"model\":\"e\",\n\t\"input\" : [\"\\u00e9\", 1.0, 1e2, 9007199254740993], \"a\":{} }";
    let text = format!("{{\"raw\": {{\"body\":  {body} , \"path\":\"/v1/embeddings\"}}, \"queue\": \"q\"}}");
    let spec = JobSpec::parse(&text).unwrap();
    assert_eq!((spec.model.as_str(), spec.on_truncated()), ("e", OnTruncated::Accept));
    let Body::Raw { path, body: kept } = spec.body else { panic!("raw") };
    assert_eq!((path.as_str(), kept.as_str()), ("/v1/embeddings", body));
}

#[test]
fn a_raw_job_says_nothing_twice() {
    let raw = |members: Value| {
        let mut spec = json!({"raw": {"path": "/v1/x", "body": {"model": "m"}}});
        for (name, value) in members.as_object().unwrap() {
            spec[name] = value.clone();
        }
        parsed(&spec).map_err(|error| error.split(':').next().unwrap_or_default().to_owned())
    };
    assert!(raw(json!({"model": "m"})).is_ok());
    for (members, at) in [
        (json!({"model": "n"}), "/model"),
        (json!({"input": "x"}), "/input"),
        (json!({"options": {}}), "/options"),
        (json!({"stream": true}), "/stream"),
        (json!({"on_truncated": "continue"}), "/on_truncated"),
        (json!({"raw": {"path": "/x"}}), "/raw/body"),
        (json!({"raw": {"body": {}}}), "/raw/path"),
        (json!({"raw": {"path": "/x", "body": {}}}), "/model"),
        (json!({"raw": {"path": "/x", "body": {"model": "m"}, "method": "GET"}}), "/raw/method"),
    ] {
        assert_eq!(raw(members.clone()).unwrap_err(), at, "{members}");
    }
}

#[test]
fn a_raw_path_stays_below_the_endpoint() {
    let path = |path: &str| parsed(&json!({"model": "m", "raw": {"path": path, "body": {}}}));
    for good in ["/v1/embeddings", "v1/x", "/v1/models/gemini:embed", "/x?api-version=2024-10-21", "/v1/a..b"] {
        assert!(path(good).is_ok(), "{good}");
    }
    for bad in [
        "http://evil.example/x",
        "HTTPS:x",
        "//evil.example/x",
        "/a%2Fb",
        "/../x",
        "/v1/..",
        "/v1/%2e%2e/x",
        "/v1/%2E./x",
        "/v1/./x",
        "\\\\evil\\x",
        "/v1\\x",
        "/a b",
        "/a\tb",
        "/a\r\nHost: x",
        "/é",
        "/x#y",
        "",
        "javascript:1",
    ] {
        assert!(path(bad).unwrap_err().starts_with("/raw/path: "), "{bad}");
    }
}

#[test]
fn the_digest_knows_what_a_job_means_and_not_how_it_is_written() {
    let digest = |text: &str| JobSpec::parse_with_digest(text).unwrap().1;
    let one = digest(r#"{"model":"m","input":"a","labels":{"x":"1","y":"2"}}"#);
    assert_eq!(one.len(), 64);
    assert_eq!(
        one,
        digest("{ \"labels\":{\"y\":\"2\",\"x\":\"1\"},\n\"input\":\"\\u0061\",\"model\":\"m\",\"tenant\":null}")
    );
    assert_eq!(one, digest(r#"{"model":"m","input":"a","labels":{"x":"1","y":"2"},"idempotency_key":"k"}"#));
    assert_ne!(one, digest(r#"{"model":"m","input":"b","labels":{"x":"1","y":"2"}}"#));
    assert_ne!(one, digest(r#"{"model":"m","input":"a","labels":{"x":"2","y":"1"}}"#));
    // Canonical form, then SHA-256: fixed, since stored digests are compared across releases.
    // The digest of {"input":"a","labels":{"x":"1","y":"2"},"model":"m"}.
    let expected = "b7759eae0a5518c43a56fde62a7e804f5cc594edfab01358b4eae27413cc57fe";
    assert_eq!(one, expected);
}

/// JSON that is nearly a job.
fn nearly() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["1h", "continue", "strict", "2026-12-01T00:00:00Z", "/v1/x", "at_least_once"])
            .prop_map(Value::from),
    ];
    let names = KNOWN.into_iter().chain(UNSUPPORTED).chain([
        "path",
        "body",
        "temperature",
        "max_tokens",
        "stop",
        "extra_body",
        "response_format",
        "type",
        "role",
        "content",
    ]);
    let name = prop::sample::select(names.map(str::to_owned).collect::<Vec<_>>());
    leaf.prop_recursive(4, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(name.clone(), inner, 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = JobSpec::parse(&text);
    }

    #[test]
    fn anything_like_a_job_is_read_or_refused_by_its_place(spec in nearly()) {
        if let Err(error) = JobSpec::parse(&spec.to_string()) {
            prop_assert!(error.at.starts_with('/') || error.at.starts_with("line "), "{error}");
            prop_assert!(!error.problem.is_empty());
        }
    }

    #[test]
    fn a_raw_path_that_passes_resolves_below_its_endpoint(path in "[a-zA-Z0-9./:?%#\\\\@ -]{1,24}") {
        let spec = json!({"model": "m", "raw": {"path": path, "body": {}}});
        if JobSpec::parse(&spec.to_string()).is_ok() {
            let base = reqwest::Url::parse("https://api.example.com/base/").unwrap();
            let joined = base.join(path.trim_start_matches('/')).unwrap();
            prop_assert_eq!(joined.host_str(), Some("api.example.com"));
            prop_assert!(joined.as_str().starts_with("https://api.example.com/base/"), "{joined}");
        }
    }

    #[test]
    fn any_raw_body_is_kept_byte_for_byte(body in nearly(), blank in "[ \n\t]{0,3}") {
        prop_assume!(!body.is_null());
        let body = format!("{{\"x\":{blank}{body}}}");
        let text = format!("{{\"model\":\"m\",\"raw\":{{\"path\":\"/x\",\"body\":{blank}{body}{blank}}}}}");
        if let Ok(JobSpec { body: Body::Raw { body: kept, .. }, .. }) = JobSpec::parse(&text) {
            prop_assert_eq!(kept, body);
        }
    }
}
