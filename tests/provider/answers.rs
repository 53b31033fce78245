//! Whole answers through the three protocols most used: what goes out and what comes back.

use crate::rig::{KEY, MODEL, Mode, PATIENT, answer_body, call, chat, delta, finish, provider, send};
use crate::wire::{Act, JSON, Server, response, sse};
use reprieve::provider::{Call, Message, RawCall};
use reprieve::store::Usage;

fn usage(input: i64, output: i64) -> Usage {
    Usage { input_tokens: Some(input), output_tokens: Some(output), total_tokens: Some(input + output) }
}

const OPENAI_TAIL: &str = r#"data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#;

#[tokio::test]
async fn openai_streamed() {
    let frames = [delta("Hel"), delta("lo ☂"), finish("stop"), OPENAI_TAIL.to_owned(), "data: [DONE]".to_owned()];
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let server = Server::start(vec![vec![Act::Request, sse(&frames)]]).await;
    let told = send(&provider("openai", server.url("/v1/"), PATIENT), &call(Mode::Streamed)).await;
    let answer = told.answer();
    assert_eq!(answer.text, "Hello ☂");
    assert_eq!(answer.finish_reason.as_deref(), Some("stop"));
    assert_eq!(answer.provider_model.as_deref(), Some("served-model"));
    assert_eq!(answer.usage, usage(3, 4));
    assert_eq!((told.answered, told.heard.sends), (1, 1));
    assert_eq!(told.pieces, ["Hel", "lo ☂"]);
    let request = &server.requests()[0];
    assert_eq!(request.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(request.json()["model"], MODEL);
    assert_eq!(request.json()["stream_options"]["include_usage"], true);
}

#[tokio::test]
async fn a_stream_without_its_end_mark_still_reports_its_tokens() {
    let frames = [delta("Hi"), finish("stop"), OPENAI_TAIL.to_owned()];
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let server = Server::start(vec![vec![Act::Request, sse(&frames)]]).await;
    let told = send(&provider("openai", server.url("/v1/"), PATIENT), &call(Mode::Streamed)).await;
    assert_eq!(told.answer().usage, usage(3, 4));
}

#[tokio::test]
async fn openai_plain_keeps_every_byte_of_the_text() {
    let text = "  leading and trailing\n\n";
    let server = Server::start(vec![vec![Act::Request, response("200 OK", &[JSON], answer_body(text))]]).await;
    let told = send(&provider("openai", server.url("/v1/"), PATIENT), &call(Mode::Plain)).await;
    let answer = told.answer();
    assert_eq!(answer.text, text);
    assert_eq!(answer.finish_reason.as_deref(), Some("stop"));
    assert_eq!(answer.provider_model.as_deref(), Some("served-model"));
    assert_eq!(answer.usage, usage(3, 4));
    assert_eq!((told.answered, told.heard.sends), (1, 1));
    assert_eq!(server.requests()[0].json()["stream"], false);
}

#[tokio::test]
async fn anthropic_both_ways() {
    let frames = [
        r#"event: message_start
data: {"type":"message_start","message":{"model":"claude-served","usage":{"input_tokens":3,"output_tokens":1}}}"#,
        "event: ping\ndata: {\"type\":\"ping\"}",
        r#"event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}"#,
        "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}",
        r#"event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}"#,
        "event: message_stop\ndata: {\"type\":\"message_stop\"}",
    ];
    let body = r#"{"model":"claude-served","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn",
        "usage":{"input_tokens":3,"output_tokens":4}}"#;
    for (mode, act) in [(Mode::Streamed, sse(&frames)), (Mode::Plain, response("200 OK", &[JSON], body))] {
        let server = Server::start(vec![vec![Act::Request, act]]).await;
        let told = send(&provider("anthropic", server.url("/v1/"), PATIENT), &call(mode)).await;
        let answer = told.answer();
        assert_eq!(answer.text, "Hello", "{mode:?}");
        assert_eq!(answer.finish_reason.as_deref(), Some("end_turn"), "{mode:?}");
        assert_eq!(answer.provider_model.as_deref(), Some("claude-served"), "{mode:?}");
        assert_eq!(answer.usage, usage(3, 4), "{mode:?}");
        let request = &server.requests()[0];
        assert_eq!(request.line, "POST /v1/messages HTTP/1.1");
        assert_eq!(request.header("x-api-key"), Some(KEY));
    }
}

#[tokio::test]
async fn anthropics_error_event_breaks_its_stream() {
    let frames = [
        r#"event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}"#,
        r#"event: error
data: {"type":"error","error":{"type":"overloaded_error","message":"m"}}"#,
    ];
    let server = Server::start(vec![vec![Act::Request, sse(&frames)]]).await;
    let told = send(&provider("anthropic", server.url("/v1/"), PATIENT), &call(Mode::Streamed)).await;
    assert_eq!((told.ending().as_str(), told.heard.text.as_str()), ("response", "Hel"));
}

#[tokio::test]
async fn gemini_both_ways() {
    let first = r#"{"candidates":[{"content":{"parts":[{"text":"Hel"}]}}],"modelVersion":"gemini-served"}"#;
    let last = r#"{"candidates":[{"content":{"parts":[{"text":"lo"}]},"finishReason":"STOP"}],
        "usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4,"totalTokenCount":7},"modelVersion":"gemini-served"}"#
        .replace('\n', "");
    let body = r#"{"candidates":[{"content":{"parts":[{"text":"Hello"}]},"finishReason":"STOP"}],
        "usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4,"totalTokenCount":7},"modelVersion":"gemini-served"}"#;
    let stream = sse(&[&format!("data: {first}"), &format!("data: {last}")]);
    for (mode, act) in [(Mode::Streamed, stream), (Mode::Plain, response("200 OK", &[JSON], body))] {
        let server = Server::start(vec![vec![Act::Request, act]]).await;
        let told = send(&provider("gemini", server.url("/v1beta/"), PATIENT), &call(mode)).await;
        let answer = told.answer();
        assert_eq!(answer.text, "Hello", "{mode:?}");
        assert_eq!(answer.finish_reason.as_deref(), Some("STOP"), "{mode:?}");
        assert_eq!(answer.provider_model.as_deref(), Some("gemini-served"), "{mode:?}");
        assert_eq!(answer.usage, usage(3, 4), "{mode:?}");
        assert_eq!(server.requests()[0].header("x-goog-api-key"), Some(KEY));
    }
}

#[tokio::test]
async fn geminis_invented_end_and_its_null_error_are_seen_through() {
    let piece =
        |error: &str| format!(r#"data: {{{error}"candidates":[{{"content":{{"parts":[{{"text":"Hel"}}]}}}}]}}"#);
    let server = Server::start(vec![vec![Act::Request, sse(&[&piece(""), &piece("\"error\":null,")])]]).await;
    let told = send(&provider("gemini", server.url("/v1beta/"), PATIENT), &call(Mode::Streamed)).await;
    assert_eq!((told.ending().as_str(), told.heard.text.as_str()), ("incomplete", "HelHel"));
}

#[tokio::test]
async fn the_responses_adapter_ends_as_the_wire_says() {
    let text =
        r#"data: {"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":"Hel"}"#;
    let response = |kind: &str, status: &str, more: &str| {
        format!(
            r#"data: {{"type":"response.{kind}","response":{{"id":"r","object":"response","created_at":1,"model":"served","status":"{status}","output":[]{more}}}}}"#
        )
    };
    let cases = [
        (response("completed", "completed", ""), "complete"),
        (
            response("incomplete", "incomplete", r#","incomplete_details":{"reason":"max_output_tokens"}"#),
            "finish max_output_tokens",
        ),
        (response("failed", "failed", r#","error":{"code":"server_error","message":"m"}"#), "response"),
    ];
    for (last, expected) in cases {
        let server = Server::start(vec![vec![Act::Request, sse(&[text, &last])]]).await;
        let told = send(&provider("openai_resp", server.url("/v1/"), PATIENT), &call(Mode::Streamed)).await;
        assert_eq!((told.ending().as_str(), told.heard.text.as_str()), (expected, "Hel"), "{told:?}");
    }
}

#[tokio::test]
async fn tool_calls_and_reasoning_are_gathered() {
    let frames = [
        r#"data: {"choices":[{"delta":{"reasoning_content":"Hmm."}}]}"#,
        r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\""}}]}}]}"#,
        r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}"#,
        r#"data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        "data: [DONE]",
    ];
    let server = Server::start(vec![vec![Act::Request, sse(&frames)]]).await;
    let told = send(&provider("openai", server.url("/v1/"), PATIENT), &call(Mode::Streamed)).await;
    let answer = told.answer();
    assert_eq!(answer.reasoning.as_deref(), Some("Hmm."));
    assert_eq!(answer.tool_calls, [serde_json::json!({"id":"c1","name":"f","arguments":{"a":1}})]);
    assert!(told.heard.tool_call);
    assert_eq!(told.heard.text, "");
}

#[tokio::test]
async fn a_raw_turn_is_verbatim_both_ways() {
    let body = "{ \"z\": 1,\n  \"a\": [1.0, 2e3] }";
    let reply = "{\n \"model\":\"e\", \"data\": [ 1.50 ], \"usage\":{\"prompt_tokens\":5,\"total_tokens\":5} }";
    let reply_headers = [JSON, ("x-request-id", "req-9"), ("x-other", "1")];
    for (adapter, header, value) in [
        ("openai", "authorization", format!("Bearer {KEY}")),
        ("anthropic", "x-api-key", KEY.to_owned()),
        ("gemini", "x-goog-api-key", KEY.to_owned()),
    ] {
        let server = Server::start(vec![vec![Act::Request, response("201 Created", &reply_headers, reply)]]).await;
        let raw = Call::Raw(RawCall { model: MODEL.into(), path: "/v1/embeddings?x=1".into(), body: body.into() });
        let told = send(&provider(adapter, server.url("/v1/"), PATIENT), &raw).await;
        let answer = told.answer();
        let kept = answer.raw.as_ref().unwrap();
        assert_eq!((kept.status, kept.content_type.as_deref()), (201, Some("application/json")));
        assert_eq!(kept.body, reply.as_bytes());
        assert_eq!(answer.request_id.as_deref(), Some("req-9"));
        assert_eq!(answer.provider_model.as_deref(), Some("e"));
        assert_eq!(answer.usage.input_tokens, Some(5));
        assert_eq!((told.answered, told.heard.sends), (1, 1));
        let request = &server.requests()[0];
        assert_eq!(request.line, "POST /v1/embeddings?x=1 HTTP/1.1");
        assert_eq!(request.body, body.as_bytes());
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header(header), Some(value.as_str()));
        assert_eq!(request.header("anthropic-version").is_some(), adapter == "anthropic");
    }
}

#[tokio::test]
async fn every_option_reaches_the_provider() {
    let server = Server::start(vec![vec![Act::Request, response("200 OK", &[JSON], answer_body("x"))]]).await;
    let mut asked = chat(MODEL, false);
    asked.system = Some("Be brief.".into());
    asked.messages.push(Message { role: "assistant".into(), content: "Yes?".into() });
    asked.messages.push(Message {
        role: "user".into(),
        content: serde_json::json!([
            {"type":"text","text":"What is this?"},
            {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},
        ]),
    });
    let format =
        serde_json::json!({"type":"json_schema","json_schema":{"name":"n","strict":false,"schema":{"type":"object"}}});
    asked.options.temperature = Some(0.5);
    asked.options.top_p = Some(0.25);
    asked.options.max_tokens = Some(7);
    asked.options.seed = Some(11);
    asked.options.stop = Some(serde_json::json!(["a", "b"]));
    asked.options.reasoning_effort = Some("low".into());
    asked.options.tool_choice = Some("none".into());
    asked.options.response_format = Some(format.clone());
    asked.options.extra_body = Some(serde_json::from_str(r#"{"user":"u-1"}"#).unwrap());
    let told = send(&provider("openai", server.url("/v1/"), PATIENT), &Call::Chat(asked)).await;
    assert_eq!(told.ending(), "complete");
    let sent = server.requests()[0].json();
    let expected = serde_json::json!({
        "model": MODEL, "stream": false, "temperature": 0.5, "top_p": 0.25, "max_tokens": 7, "seed": 11,
        "stop": ["a", "b"], "reasoning_effort": "low", "tool_choice": "none", "response_format": format, "user": "u-1",
        "messages": [
            {"role":"system","content":"Be brief."},
            {"role":"user","content":"Say something."},
            {"role":"assistant","content":"Yes?"},
            {"role":"user","content":[
                {"type":"text","text":"What is this?"},
                {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},
            ]},
        ],
    });
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn what_would_be_dropped_is_refused_by_its_place() {
    let server = Server::start(vec![]).await;
    let refused = |adapter: &str, change: &dyn Fn(&mut reprieve::provider::ChatCall)| {
        let mut asked = chat(MODEL, true);
        change(&mut asked);
        provider(adapter, server.url("/"), PATIENT).check(&Call::Chat(asked)).unwrap_err().at
    };
    let extra = |text: &str| Some(serde_json::from_str(text).unwrap());
    assert_eq!(refused("openai", &|c| c.options.extra_body = extra(r#"{"model":"x"}"#)), "/options/extra_body/model");
    assert_eq!(refused("ollama", &|c| c.options.extra_body = extra(r#"{"a":1}"#)), "/options/extra_body");
    assert_eq!(refused("anthropic", &|c| c.options.seed = Some(1)), "/options/seed");
    assert_eq!(refused("openai", &|c| c.options.reasoning_effort = Some("huge".into())), "/options/reasoning_effort");
    assert_eq!(refused("openai", &|c| c.options.stop = Some(1.into())), "/options/stop");
    assert_eq!(refused("openai", &|c| c.messages[0].role = "tool".into()), "/messages/0/role");
    assert_eq!(refused("openai", &|c| c.messages[0].content = 1.into()), "/messages/0/content");
    assert_eq!(refused("openai", &|c| c.messages.clear()), "/messages");
    let image = serde_json::json!([{"type":"image_url","image_url":{"url":"https://h/x.png"}}]);
    assert_eq!(refused("anthropic", &|c| c.messages[0].content = image.clone()), "/messages/0/content/0/image_url/url");
}

#[tokio::test]
async fn a_provider_without_a_key_gets_no_credential() {
    for mode in crate::rig::MODES {
        let server = Server::start(vec![vec![Act::Request, response("200 OK", &[JSON], answer_body("x"))]]).await;
        let mut entry = crate::rig::entry("openai", server.url("/v1/"), PATIENT);
        entry.key = reprieve::config::Key::None;
        send(&reprieve::provider::Provider::new(&entry, 1).unwrap(), &call(mode)).await;
        let request = &server.requests()[0];
        assert_eq!(request.header("authorization"), None, "{mode:?}");
        assert!(request.line.starts_with("POST /v1/"), "{}", request.line);
    }
}

#[tokio::test]
async fn a_rotated_key_is_used_by_the_next_send() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "first-key\n").unwrap();
    let answer = || response("200 OK", &[JSON], answer_body("x"));
    let server = Server::start(vec![vec![Act::Request, answer(), Act::Request, answer()]]).await;
    let mut entry = crate::rig::entry("openai", server.url("/v1/"), PATIENT);
    entry.key = reprieve::config::Key::File(file.path().to_owned());
    let provider = reprieve::provider::Provider::new(&entry, 1).unwrap();
    send(&provider, &call(Mode::Plain)).await;
    std::fs::write(file.path(), "the-second-key\n").unwrap();
    send(&provider, &call(Mode::Plain)).await;
    let keys: Vec<String> = server.requests().iter().map(|r| r.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(keys, ["Bearer first-key", "Bearer the-second-key"]);
}

#[tokio::test]
async fn one_connection_serves_call_after_call() {
    let frames = [delta("x"), finish("stop"), "data: [DONE]".to_owned()];
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let script = vec![
        Act::Request,
        sse(&frames),
        Act::Request,
        response("200 OK", &[JSON], answer_body("y")),
        Act::Request,
        response("200 OK", &[JSON], "{}"),
    ];
    // A second connection would be reset.
    let server = Server::start(vec![script]).await;
    let provider = provider("openai", server.url("/v1/"), PATIENT);
    for mode in crate::rig::MODES {
        assert_eq!(send(&provider, &call(mode)).await.ending(), "complete", "{mode:?}");
    }
}
