//! One table of everything that can break on the wire: fault and mode to leaf, phase, class, cause and decision.

use crate::rig::{MODEL, MODES, Mode, PATIENT, Told, answer_body, call, chat, delta, finish, provider, send_watched};
use crate::wire::{Act, JSON, LAST_CHUNK, SSE_HEAD, Server, chunk, response, send as bytes, sse};
use reprieve::config::Timeouts;
use reprieve::failure::{Failure, Receipt, Rules};
use reprieve::provider::{Call, Progress};
use reprieve::recovery::{Decision, Delivery, OnTruncated, Policy, Situation, recover};
use std::fmt::Write as _;
use std::sync::Arc;
use tokio::sync::Notify;

const NO_HEAD: Timeouts = Timeouts { connect_ms: 20_000, headers_ms: 60, read_ms: 60 };
const NO_BODY: Timeouts = Timeouts { connect_ms: 20_000, headers_ms: 20_000, read_ms: 80 };
const NOW_MS: i64 = 1_790_000_000_000;

/// What the one reading and the one decision make of it, right after the first send.
fn judged(told: &Told) -> String {
    let Err(broken) = &told.outcome else { return "complete".into() };
    let receipt = Receipt {
        received_ms: NOW_MS,
        send_took_ms: 0,
        provider: "api.example.com".into(),
        account: None,
        model: MODEL.into(),
        attempts: Some(told.heard.sends),
        redact_vendor_messages: true,
    };
    let failure = Failure::read(&broken.ending, &receipt, &Rules::embedded());
    let situation = Situation {
        now_ms: NOW_MS,
        sends: told.heard.sends,
        executions: 0,
        barren: 0,
        turn_left_ms: None,
        deadline_ms: None,
        spoken: told.heard.spoken(),
        repairs: 0,
        deferrals: 0,
        waiting_since_ms: None,
        delivery: Delivery::AtLeastOnce,
        structured_output: false,
        on_truncated: OnTruncated::Continue,
        jitter: 0.0,
    };
    let decision = match recover(&failure, &situation, &Policy::tiered()) {
        Decision::RetryInPlace { wait_ms } => format!("retry in {wait_ms} ms"),
        Decision::Defer { until_ms } => format!("defer {} ms", until_ms - NOW_MS),
        Decision::Requeue { until_ms } => format!("requeue {} ms", until_ms - NOW_MS),
        Decision::CommitPartial { .. } => "commit the partial".into(),
        Decision::Fail => "fail".into(),
        Decision::Stop => "stop".into(),
    };
    let word = |value: serde_json::Value| value.as_str().unwrap_or("-").to_owned();
    let (class, cause) = (serde_json::to_value(failure.class).unwrap(), serde_json::to_value(failure.cause).unwrap());
    format!("{} | {} | {} | {decision}", told.ending(), word(class), word(cause))
}

/// How a fault is played to a mode; `None`: it has no meaning there.
type Script = Box<dyn Fn(Mode) -> Option<Vec<Act>>>;

fn same(acts: Vec<Act>) -> Script {
    Box::new(move |_| Some([vec![Act::Request], acts.clone()].concat()))
}

/// After the word `Hel` was heard.
fn after_text(gate: &Arc<Notify>, then: Vec<Act>) -> Script {
    let gate = Arc::clone(gate);
    Box::new(move |mode| {
        let first = [SSE_HEAD.to_vec(), chunk(format!("{}\n\n", delta("Hel")))].concat();
        let begin = vec![Act::Request, Act::Send(first), Act::Gate(Arc::clone(&gate))];
        (mode == Mode::Streamed).then(|| [begin, then.clone()].concat())
    })
}

fn streamed(frames: &[&str]) -> Script {
    let act = sse(frames);
    Box::new(move |mode| (mode == Mode::Streamed).then(|| vec![Act::Request, act.clone()]))
}

/// A whole answer, to the modes that do not stream.
fn unstreamed(act: Act) -> Script {
    Box::new(move |mode| (mode != Mode::Streamed).then(|| vec![Act::Request, act.clone()]))
}

/// A whole answer to a chat turn: a raw turn does not look at how it finished.
fn plain(act: Act) -> Script {
    Box::new(move |mode| (mode == Mode::Plain).then(|| vec![Act::Request, act.clone()]))
}

/// An answer that says of itself how it failed.
fn ending_in(reason: &str) -> Act {
    let choice = serde_json::json!({"index": 0, "message": {"content": ""}, "finish_reason": reason});
    response("200 OK", &[JSON], serde_json::json!({ "choices": [choice] }).to_string())
}

fn faults(gate: &Arc<Notify>) -> Vec<(&'static str, Script, Timeouts)> {
    let frame = |text: &str| Act::Send(chunk(format!("{text}\n\n")));
    let last = || bytes(LAST_CHUNK);
    let half = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"choices\":";
    let refusal = r#"{"error":{"code":429,"message":"m"}}"#;
    let html = || response("200 OK", &[("content-type", "text/html")], "<html></html>");
    vec![
        ("reset before the head", same(vec![Act::Reset]), PATIENT),
        ("closed before the head", same(vec![]), PATIENT),
        ("no head", same(vec![Act::Stall]), NO_HEAD),
        ("reset in the body", same(vec![bytes(half), Act::Reset]), PATIENT),
        ("closed in the body", same(vec![bytes(half)]), PATIENT),
        ("closed in a chunk", same(vec![bytes([SSE_HEAD, b"40\r\ndata: {\"cho"].concat())]), PATIENT),
        ("the body stalls", same(vec![bytes(half), Act::Stall]), NO_BODY),
        ("429", same(vec![response("429 Too Many Requests", &[JSON], refusal)]), PATIENT),
        ("429, retry-after 7", same(vec![response("429 Oh", &[JSON, ("retry-after", "7")], refusal)]), PATIENT),
        ("429, retry-after 90", same(vec![response("429 Oh", &[JSON, ("retry-after", "90")], refusal)]), PATIENT),
        ("400", same(vec![response("400 Bad Request", &[JSON], r#"{"error":{"message":"m"}}"#)]), PATIENT),
        ("401", same(vec![response("401 Unauthorized", &[JSON], r#"{"error":{"message":"m"}}"#)]), PATIENT),
        ("302", same(vec![response("302 Found", &[("location", "http://elsewhere.example/")], "")]), PATIENT),
        ("500, a page", same(vec![response("500 Oh", &[("content-type", "text/html")], "<html></html>")]), PATIENT),
        ("503", same(vec![response("503 Oh", &[], "")]), PATIENT),
        ("200, a page", same(vec![html()]), PATIENT),
        ("200, another type", same(vec![response("200 OK", &[("content-type", "text/plain")], "x")]), PATIENT),
        ("200, no whole JSON", same(vec![response("200 OK", &[JSON], "{\"choices\":")]), PATIENT),
        ("200, an error envelope", same(vec![response("200 OK", &[JSON], refusal)]), PATIENT),
        ("200, an array around it", same(vec![response("200 OK", &[JSON], format!("[{refusal}]"))]), PATIENT),
        ("200, finish `error`", unstreamed(ending_in("error")), PATIENT),
        ("200, finish `MALFORMED_FUNCTION_CALL`", plain(ending_in("MALFORMED_FUNCTION_CALL")), PATIENT),
        (
            "200, an error in its choice",
            unstreamed(response("200 OK", &[JSON], r#"{"choices":[{"error":{"code":502,"message":"m"}}]}"#)),
            PATIENT,
        ),
        ("finish `error` alone", streamed(&[&finish("error")]), PATIENT),
        ("finish `failed` alone", streamed(&[&finish("failed")]), PATIENT),
        ("an error frame first", streamed(&[&format!("data: {refusal}")]), PATIENT),
        ("nothing but an end mark", streamed(&["data: [DONE]"]), PATIENT),
        ("a finish, no end mark", streamed(&[&delta("x"), &finish("stop")]), PATIENT),
        (
            "a null error",
            streamed(&[r#"data: {"error":null,"choices":[{"delta":{"content":"x"}}]}"#, &finish("stop")]),
            PATIENT,
        ),
        ("text, then a reset", after_text(gate, vec![Act::Reset]), PATIENT),
        ("text, then closed", after_text(gate, vec![]), PATIENT),
        ("text, then silence", after_text(gate, vec![Act::Stall]), NO_BODY),
        ("text, then an end", after_text(gate, vec![last()]), PATIENT),
        ("text, then half a frame", after_text(gate, vec![Act::Send(chunk("data: {\"choi")), last()]), PATIENT),
        ("text, then an error frame", after_text(gate, vec![frame(&format!("data: {refusal}"))]), PATIENT),
        ("text, then finish `error`", after_text(gate, vec![frame(&finish("error"))]), PATIENT),
        ("text, then no JSON", after_text(gate, vec![frame("data: {nonsense}")]), PATIENT),
        ("text, then no text", after_text(gate, vec![Act::Send(chunk(b"data: \xff\xfe\n\n"))]), PATIENT),
        ("text, then a cap", after_text(gate, vec![frame(&finish("length")), last()]), PATIENT),
        ("text, then a filter", after_text(gate, vec![frame(&finish("content_filter")), last()]), PATIENT),
    ]
}

#[tokio::test]
async fn the_table_of_faults() {
    let gate = Arc::new(Notify::new());
    let mut table = String::from("fault | mode | leaf | class | cause | decision\n");
    for (what, script, timeouts) in faults(&gate) {
        for mode in MODES {
            let Some(script) = script(mode) else { continue };
            let server = Server::start(vec![script]).await;
            let told = send_watched(&provider("openai", server.url("/v1/"), timeouts), &call(mode), |progress| {
                if matches!(progress, Progress::Text(_)) {
                    gate.notify_one();
                }
            })
            .await;
            writeln!(table, "{what} | {mode:?} | {}", judged(&told)).unwrap();
        }
    }
    // A stream without one frame, asked for once more.
    let page = || response("200 OK", &[("content-type", "text/html")], "<html></html>");
    let refused = || response("200 OK", &[JSON], r#"{"error":{"code":429}}"#);
    let whole = || response("200 OK", &[JSON], answer_body("x"));
    for (what, first, second) in [
        ("a page twice", page(), page()),
        ("an envelope twice", refused(), refused()),
        ("nothing, then all", sse(&[]), whole()),
    ] {
        let server = Server::start(vec![vec![Act::Request, first, Act::Request, second]]).await;
        let mut asked = chat(MODEL, true);
        asked.may_ask_again = true;
        let told = send_watched(&provider("openai", server.url("/v1/"), PATIENT), &Call::Chat(asked), |_| {}).await;
        writeln!(table, "{what} | Streamed, again | {}", judged(&told)).unwrap();
    }
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for mode in MODES {
        let told =
            send_watched(&provider("openai", format!("http://{closed}/v1/"), PATIENT), &call(mode), |_| {}).await;
        writeln!(table, "nobody listens | {mode:?} | {}", judged(&told)).unwrap();
    }
    insta::assert_snapshot!(table);
}
