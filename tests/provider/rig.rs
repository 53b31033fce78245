//! What every test needs: a provider that points at a scripted server, and a call with everything it told.

use reprieve::clock::Clock;
use reprieve::config::{self, Key, Timeouts};
use reprieve::failure::{Ending, Fault};
use reprieve::provider::{Answer, Broken, Call, ChatCall, ChatParams, Heard, Message, Progress, Provider, RawCall};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Long enough that no test meets them unless it wants to.
pub const PATIENT: Timeouts = Timeouts { connect_ms: 20_000, headers_ms: 20_000, read_ms: 20_000 };
pub const MODEL: &str = "some-model";
pub const KEY: &str = "key-canary-5b1f";

/// How a call is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Streamed,
    Plain,
    Raw,
}

pub const MODES: [Mode; 3] = [Mode::Streamed, Mode::Plain, Mode::Raw];

pub fn entry(adapter: &str, endpoint: String, timeouts: Timeouts) -> config::Provider {
    config::Provider {
        name: "main".into(),
        adapter: adapter.into(),
        endpoint,
        key: Key::Value(KEY.into()),
        identity: None,
        account: None,
        policy: "tiered".into(),
        redact_vendor_messages: true,
        timeouts,
        max_in_flight: None,
        models: BTreeMap::new(),
    }
}

pub fn provider(adapter: &str, endpoint: String, timeouts: Timeouts) -> Provider {
    Provider::new(&entry(adapter, endpoint, timeouts), 4).unwrap()
}

pub fn chat(model: &str, stream: bool) -> ChatCall {
    ChatCall {
        model: model.into(),
        system: None,
        messages: vec![Message { role: "user".into(), content: "Say something.".into() }],
        options: ChatParams::default(),
        stream,
        may_ask_again: false,
    }
}

pub fn call(mode: Mode) -> Call {
    match mode {
        Mode::Streamed => Call::Chat(chat(MODEL, true)),
        Mode::Plain => Call::Chat(chat(MODEL, false)),
        Mode::Raw => {
            Call::Raw(RawCall { model: MODEL.into(), path: "/v1/embeddings".into(), body: r#"{"input":"x"}"#.into() })
        }
    }
}

/// Everything that came of a call.
#[derive(Debug)]
pub struct Told {
    pub outcome: Result<Answer, Broken>,
    pub heard: Heard,
    /// Whether the provider was said to have answered, and how often.
    pub answered: u32,
    /// The text as it was told, piece by piece.
    pub pieces: Vec<String>,
}

pub async fn send(provider: &Provider, call: &Call) -> Told {
    send_watched(provider, call, |_| {}).await
}

pub async fn send_watched(provider: &Provider, call: &Call, mut watch: impl FnMut(&Progress<'_>) + Send) -> Told {
    let clock = Clock::system();
    let mut heard = Heard::default();
    let said = Arc::new(Mutex::new((0, Vec::new())));
    let mut tell = |progress: Progress<'_>| {
        watch(&progress);
        let mut said = said.lock().unwrap();
        match progress {
            Progress::Answered => said.0 += 1,
            Progress::Text(text) => said.1.push(text.to_owned()),
        }
    };
    let outcome = provider.send(call, &clock, &mut heard, &mut tell).await.map_err(|broken| *broken);
    let (answered, pieces) = said.lock().unwrap().clone();
    assert_eq!(pieces.concat(), heard.text, "what was told is what was heard");
    Told { outcome, heard, answered, pieces }
}

impl Told {
    /// How the call ended, in one line.
    pub fn ending(&self) -> String {
        match &self.outcome {
            Ok(_) => "complete".into(),
            Err(broken) => ending(&broken.ending),
        }
    }

    pub fn answer(&self) -> &Answer {
        self.outcome.as_ref().unwrap()
    }
}

pub fn ending(ending: &Ending) -> String {
    match ending {
        Ending::Fault(Fault::Response(response)) => match response.status {
            Some(status) => format!("response {status}"),
            None => "response".into(),
        },
        Ending::Fault(Fault::Transport(transport)) => match transport.phase {
            Some(phase) => format!("transport {}", serde_json::to_value(phase).unwrap().as_str().unwrap()),
            None => "transport".into(),
        },
        Ending::Fault(Fault::Terminal(_)) => "terminal".into(),
        Ending::Incomplete => "incomplete".into(),
        Ending::Finish { reason } => format!("finish {reason}"),
        Ending::Deadline => "deadline".into(),
        Ending::Cancelled { .. } => "cancelled".into(),
    }
}

/// One frame of an OpenAI-like stream with a piece of text.
pub fn delta(text: &str) -> String {
    format!("data: {}", serde_json::json!({"model":"served-model","choices":[{"index":0,"delta":{"content":text}}]}))
}

/// One frame with a finish reason.
pub fn finish(reason: &str) -> String {
    format!("data: {}", serde_json::json!({"choices":[{"index":0,"delta":{},"finish_reason":reason}]}))
}

/// A whole OpenAI-like answer.
pub fn answer_body(text: &str) -> String {
    serde_json::json!({
        "id": "a", "object": "chat.completion", "model": "served-model",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    })
    .to_string()
}
