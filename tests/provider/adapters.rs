//! Every adapter of genai: a refusal is that refusal, and an end is the end that the wire says, however it is framed.

use crate::rig::{Mode, PATIENT, chat, provider, send};
use crate::wire::{Act, JSON, LAST_CHUNK, Server, chunk, response};
use genai::adapter::AdapterKind;
use reprieve::failure::{Ending, Fault};
use reprieve::provider::{Call, Provider};
use serde_json::{Value, json};

/// A name that every adapter takes.
const MODEL: &str = "gemini-x";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Sse,
    Lines,
    Amazon,
}

/// One protocol's frames: a piece of text, and the finish.
struct Protocol {
    framing: Framing,
    text: Vec<Value>,
    finish: Vec<Value>,
    word: &'static str,
}

fn protocol(kind: AdapterKind) -> Protocol {
    let (framing, text, finish, word) = match kind {
        AdapterKind::Anthropic | AdapterKind::MiniMax => (
            Framing::Sse,
            vec![json!({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}})],
            vec![
                json!({"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}),
                json!({"type":"message_stop"}),
            ],
            "end_turn",
        ),
        AdapterKind::Gemini | AdapterKind::Vertex => (
            Framing::Sse,
            vec![json!({"candidates":[{"content":{"parts":[{"text":"Hel"}]}}]})],
            vec![json!({"candidates":[{"finishReason":"STOP"}]})],
            "STOP",
        ),
        AdapterKind::GeminiIx => (
            Framing::Sse,
            vec![
                json!({"event_type":"interaction.status_update","status":"in_progress"}),
                json!({"event_type":"step.delta","index":0,"delta":{"type":"text","text":"Hel"}}),
            ],
            vec![json!({"event_type":"interaction.completed","interaction":{"id":"i","status":"completed"}})],
            "completed",
        ),
        AdapterKind::OpenAIResp => (
            Framing::Sse,
            vec![
                json!({"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":"Hel"}),
            ],
            vec![
                json!({"type":"response.completed","response":{"id":"r","object":"response","created_at":1,"model":"m",
                "status":"completed","output":[]}}),
            ],
            "completed",
        ),
        AdapterKind::Ollama | AdapterKind::OllamaCloud => (
            Framing::Lines,
            vec![json!({"message":{"role":"assistant","content":"Hel"},"done":false})],
            vec![json!({"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"})],
            "stop",
        ),
        AdapterKind::Cohere => (
            Framing::Lines,
            vec![json!({"is_finished":false,"event_type":"text-generation","text":"Hel"})],
            vec![json!({"is_finished":true,"event_type":"stream-end","finish_reason":"COMPLETE"})],
            "COMPLETE",
        ),
        AdapterKind::BedrockApi => (
            Framing::Amazon,
            vec![json!({":event":"contentBlockDelta","delta":{"text":"Hel"}})],
            vec![json!({":event":"messageStop","stopReason":"end_turn"}), json!({":event":"metadata"})],
            "end_turn",
        ),
        _ => (
            Framing::Sse,
            vec![json!({"choices":[{"index":0,"delta":{"content":"Hel"}}]})],
            vec![json!({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})],
            "stop",
        ),
    };
    Protocol { framing, text, finish, word }
}

fn framed(framing: Framing, frame: &Value) -> Vec<u8> {
    match framing {
        Framing::Sse => {
            let event = frame.get("type").and_then(Value::as_str).map(|kind| format!("event: {kind}\n"));
            format!("{}data: {frame}\n\n", event.unwrap_or_default()).into_bytes()
        }
        Framing::Lines => format!("{frame}\n").into_bytes(),
        Framing::Amazon => amazon(frame),
    }
}

/// One message of Amazon's event stream; `:event` names it, and one without a name is an exception.
fn amazon(frame: &Value) -> Vec<u8> {
    let header = |name: &str, value: &str| {
        let mut bytes = vec![u8::try_from(name.len()).unwrap()];
        bytes.extend(name.as_bytes());
        bytes.push(7);
        bytes.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        bytes.extend(value.as_bytes());
        bytes
    };
    let headers = match frame.get(":event").and_then(Value::as_str) {
        Some(event) => [header(":message-type", "event"), header(":event-type", event)].concat(),
        None => [header(":message-type", "exception"), header(":exception-type", "throttlingException")].concat(),
    };
    let payload = frame.to_string().into_bytes();
    let length = |n: usize| u32::try_from(n).unwrap().to_be_bytes();
    let mut bytes = [length(16 + headers.len() + payload.len()), length(headers.len())].concat();
    bytes.extend(crc32(&bytes).to_be_bytes());
    bytes.extend(headers);
    bytes.extend(payload);
    bytes.extend(crc32(&bytes).to_be_bytes());
    bytes
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { 0xEDB8_8320 ^ (crc >> 1) } else { crc >> 1 })
    })
}

/// Frames in chunks, then whatever else, on a connection that serves one call.
fn stream(framing: Framing, frames: &[&Value], rest: &[u8]) -> Act {
    let mut bytes =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
            .to_vec();
    for frame in frames {
        bytes.extend(chunk(framed(framing, frame)));
    }
    if !rest.is_empty() {
        bytes.extend(chunk(rest));
    }
    bytes.extend(LAST_CHUNK);
    Act::Send(bytes)
}

const CLOSE: (&str, &str) = ("connection", "close");

fn call(mode: Mode) -> Call {
    Call::Chat(chat(MODEL, mode == Mode::Streamed))
}

/// One provider meets one answer after the other, each on a connection of its own.
async fn meet(kind: AdapterKind, answers: Vec<Act>) -> (Provider, Server) {
    let server = Server::start(answers.into_iter().map(|act| vec![Act::Request, act]).collect()).await;
    (provider(kind.as_lower_str(), server.url("/v1/"), PATIENT), server)
}

#[tokio::test]
async fn a_refusal_is_read_alike_through_every_adapter() {
    let error = json!({"error":{"code":429,"type":"rate_limit_error","message":"m"}});
    let refused = || response("429 Too Many Requests", &[JSON, ("retry-after", "7"), CLOSE], error.to_string());
    for kind in AdapterKind::all() {
        // Amazon's error comes by a message of its own kind, whose name is not exposed.
        let in_stream = stream(protocol(*kind).framing, &[&error], b"");
        let envelope = response("200 OK", &[JSON, CLOSE], error.to_string());
        let modes = [Mode::Streamed, Mode::Plain, Mode::Plain, Mode::Streamed];
        let (provider, _server) = meet(*kind, vec![refused(), refused(), envelope, in_stream]).await;
        for mode in modes {
            let told = send(&provider, &call(mode)).await;
            let Err(broken) = &told.outcome else { panic!("{kind} {mode:?}: {told:?}") };
            let Ending::Fault(Fault::Response(response)) = &broken.ending else { panic!("{kind} {mode:?}: {told:?}") };
            assert_eq!(response.status, Some(429), "{kind} {mode:?}");
            assert_eq!(response.body.as_ref(), Some(&error), "{kind} {mode:?}");
            assert_eq!((told.answered, told.heard.sends), (0, 1), "{kind} {mode:?}");
        }
    }
}

#[tokio::test]
async fn an_end_is_a_finish_only_where_the_wire_says_so() {
    for kind in AdapterKind::all() {
        let Protocol { framing, text, finish, word } = protocol(*kind);
        let text: Vec<&Value> = text.iter().collect();
        let whole: Vec<&Value> = text.iter().copied().chain(&finish).collect();
        // Cut inside a frame, the stream says no more than without that frame.
        let again = framed(framing, text.last().unwrap());
        let cut = &again[..again.len() * 2 / 3];
        let answers = vec![stream(framing, &text, b""), stream(framing, &text, cut), stream(framing, &whole, b"")];
        let (provider, _server) = meet(*kind, answers).await;
        for expected in ["incomplete", "incomplete", "complete"] {
            let told = send(&provider, &call(Mode::Streamed)).await;
            assert_eq!(told.ending(), expected, "{kind}: {told:?}");
            assert_eq!(told.heard.text, "Hel", "{kind}");
            assert_eq!((told.answered, told.heard.sends), (1, 1), "{kind}");
            assert_eq!(told.heard.finish_reason.as_deref(), (expected == "complete").then_some(word), "{kind}");
        }
    }
}

#[tokio::test]
async fn no_cut_loses_or_doubles_text_through_any_protocol() {
    // One adapter for each way to read a stream.
    let kinds = [
        AdapterKind::Anthropic,
        AdapterKind::Gemini,
        AdapterKind::GeminiIx,
        AdapterKind::OpenAIResp,
        AdapterKind::Ollama,
        AdapterKind::Cohere,
        AdapterKind::BedrockApi,
    ];
    for kind in kinds {
        let Protocol { framing, text, finish, word } = protocol(kind);
        let texts = ["10 €", "日本", " 🦀"].map(|piece| {
            text.iter().map(|frame| serde_json::from_str(&frame.to_string().replace("Hel", piece)).unwrap()).collect()
        });
        let frames: Vec<Value> = texts.into_iter().flat_map(|frames: Vec<Value>| frames).chain(finish).collect();
        let whole: Vec<u8> = frames.iter().flat_map(|frame| framed(framing, frame)).collect();
        let cuts: Vec<usize> = (0..whole.len()).step_by(5).chain([whole.len()]).collect();
        let answers = cuts.iter().map(|cut| stream(framing, &[], &whole[..*cut])).collect();
        let (provider, _server) = meet(kind, answers).await;
        let mut endings = (0, 0);
        for cut in cuts {
            let told = send(&provider, &call(Mode::Streamed)).await;
            let heard = told.heard.text.as_str();
            assert!(["", "10 €", "10 €日本", "10 €日本 🦀"].contains(&heard), "{kind} at {cut}: {heard}");
            match told.heard.finish_reason.as_deref() {
                None => endings.0 += 1,
                Some(finish) => {
                    assert_eq!((finish, heard), (word, "10 €日本 🦀"), "{kind} at {cut}");
                    endings.1 += 1;
                }
            }
            let expected = if told.heard.finish_reason.is_some() { "complete" } else { "incomplete" };
            assert_eq!(told.ending(), expected, "{kind} at {cut}: {told:?}");
        }
        assert!(endings.0 > 10 && endings.1 > 0, "{kind}: {endings:?}");
    }
}

#[tokio::test]
async fn a_frame_of_geminis_with_nothing_but_a_token_count_breaks_nothing() {
    let Protocol { framing, text, finish, .. } = protocol(AdapterKind::Gemini);
    let count = json!({"usageMetadata":{"promptTokenCount":3},"modelVersion":"gemini-served"});
    let frames: Vec<&Value> = [&count].into_iter().chain(&text).chain([&count]).chain(&finish).collect();
    let (provider, _server) = meet(AdapterKind::Gemini, vec![stream(framing, &frames, b"")]).await;
    let told = send(&provider, &call(Mode::Streamed)).await;
    assert_eq!((told.ending().as_str(), told.heard.text.as_str()), ("complete", "Hel"));
}

#[tokio::test]
async fn an_unreadable_stream_is_asked_for_again_through_every_adapter_with_events() {
    for kind in AdapterKind::all() {
        if protocol(*kind).framing != Framing::Sse {
            continue;
        }
        let refused = response("429 Too Many Requests", &[JSON, CLOSE], "{}");
        let (provider, _server) = meet(*kind, vec![stream(Framing::Sse, &[], b""), refused]).await;
        let mut asked = chat(MODEL, true);
        asked.may_ask_again = true;
        let told = send(&provider, &Call::Chat(asked)).await;
        assert_eq!((told.ending().as_str(), told.heard.sends), ("response 429", 2), "{kind}: {told:?}");
    }
}
