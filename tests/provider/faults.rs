//! Every way a call can break on the wire, in each mode: its leaf and phase, and that what was heard is kept.

use crate::rig::{
    self, MODES, Mode, PATIENT, Told, answer_body, call, chat, delta, finish, provider, send, send_watched,
};
use crate::wire::{Act, JSON, LAST_CHUNK, SSE_HEAD, SSE_HEAD_TO_EOF, Server, chunk, response, send as bytes, sse};
use reprieve::config::Timeouts;
use reprieve::failure::{Ending, Fault};
use reprieve::provider::{Call, MAX_ERROR_BODY, Progress};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Notify;

/// A head that never comes is given up at once.
const NO_HEAD: Timeouts = Timeouts { connect_ms: 20_000, headers_ms: 60, read_ms: 60 };
/// So is a body that never goes on. Its head may take what it takes.
const NO_BODY: Timeouts = Timeouts { connect_ms: 20_000, headers_ms: 20_000, read_ms: 80 };

async fn meet(mode: Mode, script: Vec<Act>, timeouts: Timeouts) -> Told {
    let server = Server::start(vec![script]).await;
    send(&provider("openai", server.url("/v1/"), timeouts), &call(mode)).await
}

/// The same script in every mode, with the endings of the streamed, the plain and the raw call.
async fn in_every_mode(script: Vec<Act>, timeouts: Timeouts, endings: [&str; 3]) {
    for (mode, expected) in MODES.into_iter().zip(endings) {
        let told = meet(mode, script.clone(), timeouts).await;
        assert_eq!(told.ending(), expected, "{mode:?}: {told:?}");
        assert_eq!(told.heard.sends, 1, "{mode:?}");
        assert_eq!(told.answered, 0, "{mode:?}: a failure is no answer");
    }
}

fn detail(told: &Told) -> String {
    match &told.outcome.as_ref().unwrap_err().ending {
        Ending::Fault(Fault::Transport(transport)) => transport.detail.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_a_connect_fault() {
    for mode in MODES {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let told = send(&provider("openai", format!("http://127.0.0.1:{port}/v1/"), PATIENT), &call(mode)).await;
        assert_eq!(told.ending(), "transport connect", "{mode:?}");
        let detail = detail(&told);
        assert!(detail.to_lowercase().contains("refused"), "{mode:?}: {detail}");
        assert!(!detail.contains("http"), "{detail}");
        assert_eq!(told.heard.first_byte_ms, None);
    }
}

#[tokio::test]
async fn a_host_that_takes_no_connection_is_a_connect_timeout() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // Its queue is full before the call comes; nobody ever accepts.
    let mut waiting = Vec::new();
    while let Ok(Ok(stream)) =
        tokio::time::timeout(std::time::Duration::from_millis(100), tokio::net::TcpStream::connect(address)).await
    {
        waiting.push(stream);
    }
    let timeouts = Timeouts { connect_ms: 60, ..PATIENT };
    for mode in MODES {
        let told = send(&provider("openai", format!("http://{address}/v1/"), timeouts), &call(mode)).await;
        assert_eq!(told.ending(), "transport connect", "{mode:?}");
    }
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_a_connect_fault() {
    for mode in MODES {
        let told = send(&provider("openai", "http://nobody.invalid/v1/".into(), PATIENT), &call(mode)).await;
        assert_eq!(told.ending(), "transport connect", "{mode:?}");
    }
}

#[tokio::test]
async fn a_reset_before_the_head_is_a_transport_fault() {
    in_every_mode(vec![Act::Request, Act::Reset], PATIENT, ["transport"; 3]).await;
    in_every_mode(vec![Act::Request], PATIENT, ["transport"; 3]).await;
}

#[tokio::test]
async fn a_head_that_does_not_come_is_a_timeout() {
    in_every_mode(vec![Act::Request, Act::Stall], NO_HEAD, ["transport headers", "transport read", "transport read"])
        .await;
}

#[tokio::test]
async fn a_body_that_stops_coming_is_a_read_timeout() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"choices\":";
    in_every_mode(vec![Act::Request, bytes(head), Act::Stall], NO_BODY, ["transport read"; 3]).await;
}

#[tokio::test]
async fn comments_count_as_life_but_not_as_an_answer() {
    let script = vec![Act::Request, bytes([SSE_HEAD, &chunk(": still here\n\n")].concat()), Act::Stall];
    let told = meet(Mode::Streamed, script, NO_BODY).await;
    assert_eq!(told.ending(), "transport read");
    assert!(told.heard.first_byte_ms.is_some());
    assert_eq!(told.answered, 0);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_a_transport_fault() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"choices\":";
    in_every_mode(vec![Act::Request, bytes(head)], PATIENT, ["transport"; 3]).await;
    let in_a_chunk = [SSE_HEAD, b"40\r\ndata: {\"cho"].concat();
    in_every_mode(vec![Act::Request, bytes(in_a_chunk)], PATIENT, ["transport"; 3]).await;
}

/// A script that says `Hel`, waits until that was heard, and then goes on.
fn after_text(gate: &Arc<Notify>, mut then: Vec<Act>) -> Vec<Act> {
    let first = [SSE_HEAD.to_vec(), chunk(format!("{}\n\n", delta("Hel")))].concat();
    let mut script = vec![Act::Request, Act::Send(first), Act::Gate(Arc::clone(gate))];
    script.append(&mut then);
    script
}

async fn meet_after_text(then: Vec<Act>, timeouts: Timeouts) -> Told {
    let gate = Arc::new(Notify::new());
    let server = Server::start(vec![after_text(&gate, then)]).await;
    send_watched(&provider("openai", server.url("/v1/"), timeouts), &call(Mode::Streamed), |progress| {
        if matches!(progress, Progress::Text(_)) {
            gate.notify_one();
        }
    })
    .await
}

#[tokio::test]
async fn whatever_breaks_a_stream_leaves_the_text_heard_so_far() {
    let frame = |text: &str| Act::Send(chunk(format!("{text}\n\n")));
    let last = || bytes(LAST_CHUNK);
    let cases: Vec<(&str, Vec<Act>, Timeouts, &str)> = vec![
        ("reset", vec![Act::Reset], PATIENT, "transport"),
        ("closed inside the body", vec![], PATIENT, "transport"),
        ("stalled", vec![Act::Stall], NO_BODY, "transport read"),
        ("a silent end", vec![last()], PATIENT, "incomplete"),
        ("an end mark without a finish", vec![frame("data: [DONE]"), last()], PATIENT, "incomplete"),
        ("an end inside a frame", vec![Act::Send(chunk("data: {\"choices\":[{\"del")), last()], PATIENT, "incomplete"),
        ("an end inside a character", vec![Act::Send(chunk(b"data: {\"a\":\"\xc3")), last()], PATIENT, "incomplete"),
        ("a frame that is no JSON", vec![frame("data: {nonsense}"), Act::Stall], PATIENT, "terminal"),
        ("bytes that are no text", vec![Act::Send(chunk(b"data: \xff\xfe\n\n")), Act::Stall], PATIENT, "terminal"),
        (
            "an error frame",
            vec![frame(r#"data: {"error":{"code":429,"message":"m"}}"#), Act::Stall],
            PATIENT,
            "response 429",
        ),
        ("an error frame by its event", vec![frame("event: error\ndata: gone"), Act::Stall], PATIENT, "response"),
        (
            "a finish that is an error",
            vec![frame(r#"data: {"choices":[{"delta":{"content":""},"finish_reason":"error"}]}"#), Act::Stall],
            PATIENT,
            "response",
        ),
        (
            "a failed response",
            vec![frame(r#"data: {"type":"response.failed","response":{}}"#), Act::Stall],
            PATIENT,
            "response",
        ),
        (
            "an array around the error",
            vec![frame(r#"data: [{"error":{"code":503}}]"#), Act::Stall],
            PATIENT,
            "response 503",
        ),
        ("a cap", vec![frame(&finish("length")), last()], PATIENT, "finish length"),
        ("a filter", vec![frame(&finish("content_filter")), last()], PATIENT, "finish content_filter"),
        (
            "a failure word",
            vec![frame(&finish("MALFORMED_FUNCTION_CALL")), last()],
            PATIENT,
            "finish MALFORMED_FUNCTION_CALL",
        ),
    ];
    for (what, then, timeouts, expected) in cases {
        let told = meet_after_text(then, timeouts).await;
        assert_eq!(told.ending(), expected, "{what}: {told:?}");
        assert_eq!(told.heard.text, "Hel", "{what}");
        assert_eq!((told.heard.sends, told.answered), (1, 1), "{what}");
        assert_eq!(told.outcome.unwrap_err().provider_model.as_deref(), Some("served-model"), "{what}");
    }
}

#[tokio::test]
async fn nothing_that_breaks_after_a_finish_takes_the_answer_back() {
    let frame = |text: &str| Act::Send(chunk(format!("{text}\n\n")));
    let cases: Vec<(&str, Vec<Act>)> = vec![
        ("no end mark", vec![frame(&finish("stop")), bytes(LAST_CHUNK)]),
        ("closed inside the body", vec![frame(&finish("stop"))]),
        // Silence, and comments for ever, are waited for only as long as a tail may take.
        ("silence", vec![frame(&finish("stop")), Act::Stall]),
        ("garbage", vec![frame(&finish("stop")), frame("data: {nonsense}"), Act::Stall]),
    ];
    for (what, then) in cases {
        let told = meet_after_text(then, PATIENT).await;
        assert_eq!(told.ending(), "complete", "{what}: {told:?}");
        assert_eq!(told.answer().text, "Hel", "{what}");
        assert_eq!(told.answer().finish_reason.as_deref(), Some("stop"), "{what}");
    }
    let told =
        meet_after_text(vec![frame(&finish("stop")), frame(r#"data: {"error":{"code":500}}"#), Act::Stall], PATIENT)
            .await;
    assert_eq!(told.ending(), "response 500", "an error frame does");
}

#[tokio::test]
async fn a_null_error_is_none_and_its_frames_text_is_kept() {
    let with_null =
        |text: &str| format!("data: {}", serde_json::json!({"error":null,"choices":[{"delta":{"content":text}}]}));
    let frames = [with_null("a"), delta("b"), with_null("c"), finish("stop"), "data: [DONE]".into()];
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let told = meet(Mode::Streamed, vec![Act::Request, sse(&frames)], PATIENT).await;
    assert_eq!(told.answer().text, "abc");
    assert_eq!(told.pieces, ["a", "b", "c"]);

    let mut body: serde_json::Value = serde_json::from_str(&answer_body("abc")).unwrap();
    body["error"] = serde_json::Value::Null;
    for mode in [Mode::Plain, Mode::Raw] {
        let told = meet(mode, vec![Act::Request, response("200 OK", &[JSON], body.to_string())], PATIENT).await;
        assert_eq!(told.ending(), "complete", "{mode:?}");
    }
}

#[tokio::test]
async fn a_refusal_keeps_its_status_headers_and_body() {
    let body = r#"{"error":{"code":"rate_limit_exceeded","type":"requests","message":"m"}}"#;
    let headers = [JSON, ("Retry-After", "7"), ("X-Twice", "1"), ("X-Twice", "2"), ("x-request-id", "req-1")];
    for status in ["429 Too Many Requests", "400 Bad Request", "503 Service Unavailable", "401 Unauthorized"] {
        for mode in MODES {
            let told = meet(mode, vec![Act::Request, response(status, &headers, body)], PATIENT).await;
            assert_eq!(told.ending(), format!("response {}", &status[..3]), "{mode:?}");
            assert_eq!(told.answered, 0);
            let Ending::Fault(Fault::Response(fault)) = told.outcome.unwrap_err().ending else { unreachable!() };
            assert_eq!(fault.body, Some(serde_json::from_str(body).unwrap()), "{mode:?}");
            let values = |name: &str| -> Vec<&str> {
                fault.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
            };
            assert_eq!(values("retry-after"), ["7"], "{mode:?}");
            assert_eq!(values("x-twice"), ["1", "2"], "{mode:?}");
            assert_eq!(values("x-request-id"), ["req-1"], "{mode:?}");
        }
    }
}

#[tokio::test]
async fn a_refusal_whose_body_breaks_off_is_that_refusal_where_genai_lets_it() {
    let head = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\ncontent-length: 500\r\n\r\n{\"error\":";
    // genai reads the body before it tells the status of a call without a stream.
    for (mode, expected) in MODES.into_iter().zip(["response 429", "transport", "response 429"]) {
        let told = meet(mode, vec![Act::Request, bytes(head)], PATIENT).await;
        assert_eq!(told.ending(), expected, "{mode:?}");
        if let Ending::Fault(Fault::Response(fault)) = told.outcome.unwrap_err().ending {
            assert_eq!(fault.body, None, "{mode:?}");
            assert!(fault.headers.contains(&("retry-after".into(), "7".into())), "{mode:?}");
        }
    }
}

#[tokio::test]
async fn an_endless_error_body_is_read_as_far_as_it_may_say_something() {
    let body = "x".repeat(MAX_ERROR_BODY + 500_000);
    let told = meet(Mode::Raw, vec![Act::Request, response("500 Oh", &[], &body)], PATIENT).await;
    let Ending::Fault(Fault::Response(fault)) = told.outcome.unwrap_err().ending else { unreachable!() };
    assert_eq!(fault.body.unwrap().as_str().map(str::len), Some(MAX_ERROR_BODY));
}

#[tokio::test]
async fn a_redirect_is_a_response_and_is_not_followed() {
    for mode in MODES {
        let elsewhere = Server::start(vec![vec![Act::Request]]).await;
        let location = elsewhere.url("/stolen");
        let server =
            Server::start(vec![vec![Act::Request, response("302 Found", &[("location", location.as_str())], "")]])
                .await;
        let told = send(&provider("anthropic", server.url("/v1/"), PATIENT), &call(mode)).await;
        assert_eq!(told.ending(), "response 302", "{mode:?}");
        assert_eq!(elsewhere.requests().len(), 0, "{mode:?}: the key went to another host");
    }
}

#[tokio::test]
async fn an_error_inside_a_2xx_is_that_error() {
    let cases = [
        (r#"{"error":{"code":429,"message":"m"}}"#, "response 429"),
        (r#"{"type":"error","error":{"type":"overloaded_error"}}"#, "response"),
        (r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#, "response"),
        (r#"{"choices":[{"message":{"content":"x"},"finish_reason":"error"}]}"#, "response"),
    ];
    for (body, expected) in cases {
        for mode in [Mode::Plain, Mode::Raw] {
            let told = meet(mode, vec![Act::Request, response("200 OK", &[JSON], body)], PATIENT).await;
            assert_eq!(told.ending(), expected, "{mode:?} {body}");
            assert_eq!(told.answered, 0, "{mode:?}: a refusal is no answer");
        }
        let told =
            meet(Mode::Streamed, vec![Act::Request, sse(&[&format!("data: {body}"), "data: [DONE]"])], PATIENT).await;
        assert_eq!(told.ending(), expected, "streamed {body}");
        assert_eq!(told.answered, 0, "streamed: a refusal is no answer");
    }
}

#[tokio::test]
async fn an_error_inside_a_raw_event_stream_is_that_error() {
    let script = vec![Act::Request, sse(&[&delta("Hel"), r#"data: {"error":{"code":429}}"#])];
    assert_eq!(meet(Mode::Raw, script, PATIENT).await.ending(), "response 429");
}

#[tokio::test]
async fn what_cannot_be_read_is_terminal() {
    let page = "<html><body>Welcome to the proxy</body></html>";
    let html = response("200 OK", &[("content-type", "text/html")], page);
    let wrong_type = response("200 OK", &[("content-type", "text/plain")], answer_body("x"));
    let no_json = response("200 OK", &[JSON], "{\"choices\":");
    for body in [&html, &wrong_type, &no_json] {
        let told = meet(Mode::Plain, vec![Act::Request, body.clone()], PATIENT).await;
        assert_eq!(told.ending(), "terminal", "{told:?}");
        // A raw turn's answer is whatever came.
        assert_eq!(meet(Mode::Raw, vec![Act::Request, body.clone()], PATIENT).await.ending(), "complete");
        assert_eq!(meet(Mode::Streamed, vec![Act::Request, body.clone()], PATIENT).await.ending(), "incomplete");
    }
    // A wrong type around one error envelope is that error.
    let envelope = response("200 OK", &[("content-type", "text/plain")], r#"{"error":{"code":429}}"#);
    assert_eq!(meet(Mode::Plain, vec![Act::Request, envelope], PATIENT).await.ending(), "response 429");
}

#[tokio::test]
async fn an_unreadable_stream_is_asked_for_once_more_without_streaming() {
    let html = || response("200 OK", &[("content-type", "text/html")], "<html></html>");
    let envelope = || response("200 OK", &[JSON], r#"{"error":{"code":429}}"#);
    let whole = || response("200 OK", &[JSON], answer_body("all of it"));
    let silent = || sse(&[]);
    let cases = [
        (html(), html(), "terminal"),
        (envelope(), envelope(), "response 429"),
        (silent(), whole(), "complete"),
        (sse(&[": only a comment"]), whole(), "complete"),
    ];
    for (first, second, expected) in cases {
        let server = Server::start(vec![vec![Act::Request, first, Act::Request, second]]).await;
        let mut asked = chat(rig::MODEL, true);
        asked.may_ask_again = true;
        let told = send(&provider("openai", server.url("/v1/"), PATIENT), &Call::Chat(asked)).await;
        assert_eq!(told.ending(), expected, "{told:?}");
        assert_eq!(told.heard.sends, 2);
        let streams: Vec<bool> = server.requests().iter().map(|r| r.json()["stream"].as_bool().unwrap()).collect();
        assert_eq!(streams, [true, false]);
    }
    // Nor is it asked for again once a frame came, or where it may not.
    let told = meet(Mode::Streamed, vec![Act::Request, silent()], PATIENT).await;
    assert_eq!((told.ending().as_str(), told.heard.sends), ("incomplete", 1));
}

#[tokio::test]
async fn an_answer_without_a_finish_is_incomplete_and_an_unknown_finish_needs_content() {
    let body = |content: &str, finish: serde_json::Value| {
        serde_json::json!({"choices":[{"message":{"content":content},"finish_reason":finish}]}).to_string()
    };
    let cases = [
        (body("x", serde_json::Value::Null), "incomplete"),
        (body("x", "length".into()), "finish length"),
        (body("x", "some_new_word".into()), "complete"),
        (body("", "some_new_word".into()), "incomplete"),
        (body("", "stop".into()), "complete"),
    ];
    for (body, expected) in cases {
        let told = meet(Mode::Plain, vec![Act::Request, response("200 OK", &[JSON], &body)], PATIENT).await;
        assert_eq!(told.ending(), expected, "{body}");
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_what_was_heard() {
    let (gate, gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    gate.notify_one();
    let server = Server::start(vec![after_text(&gate, vec![Act::Gone(Arc::clone(&gone))])]).await;
    let provider = provider("openai", server.url("/v1/"), PATIENT);
    let (call, clock) = (call(Mode::Streamed), reprieve::clock::Clock::system());
    let mut heard = reprieve::provider::Heard::default();
    let spoke = Arc::new(Notify::new());
    let mut tell = |progress: Progress<'_>| {
        if matches!(progress, Progress::Text(_)) {
            spoke.notify_one();
        }
    };
    tokio::select! {
        outcome = provider.send(&call, &clock, &mut heard, &mut tell) => panic!("{outcome:?}"),
        () = spoke.notified() => {}
    }
    // The provider is not left generating for nobody.
    gone.notified().await;
    assert_eq!((heard.text.as_str(), heard.sends), ("Hel", 1));
    assert!(heard.first_byte_ms.is_some());
}

#[tokio::test]
async fn a_models_own_timeouts_stand_before_the_entrys() {
    let server = Server::start(vec![vec![Act::Request, Act::Stall]]).await;
    let mut entry = rig::entry("openai", server.url("/v1/"), PATIENT);
    let model = reprieve::config::Model { max_in_flight: None, timeouts: Some(NO_HEAD) };
    entry.models.insert(rig::MODEL.into(), model);
    let provider = reprieve::provider::Provider::new(&entry, 4).unwrap();
    assert_eq!(send(&provider, &call(Mode::Streamed)).await.ending(), "transport headers");
}

#[tokio::test]
async fn a_missing_key_is_terminal_and_sends_nothing() {
    for mode in MODES {
        let server = Server::start(vec![vec![Act::Request]]).await;
        let mut entry = rig::entry("openai", server.url("/v1/"), PATIENT);
        entry.key = reprieve::config::Key::Missing("SOME_KEY".into());
        let provider = reprieve::provider::Provider::new(&entry, 4).unwrap();
        let told = send(&provider, &call(mode)).await;
        assert_eq!((told.ending().as_str(), told.heard.sends), ("terminal", 0), "{mode:?}");
        assert!(provider.key_gap().unwrap_err().to_string().contains("SOME_KEY"));
        assert_eq!(server.requests().len(), 0);
    }
}

#[tokio::test]
async fn a_stream_to_the_connections_end_may_end_silently() {
    let body = [SSE_HEAD_TO_EOF, delta("Hel").as_bytes(), b"\n\n"].concat();
    let told = meet(Mode::Streamed, vec![Act::Request, bytes(body)], PATIENT).await;
    assert_eq!((told.ending().as_str(), told.heard.text.as_str()), ("incomplete", "Hel"));
}
