//! The model boundary: genai chat turns, raw HTTP turns, streams, and one client of ours per provider entry.
//!
//! In comes a [`Call`]; out comes an [`Answer`] or a [`Broken`], and whatever was heard until then stands in [`Heard`],
//! which outlives a call that is dropped half-way. One call is one send (two where a stream could not be read, counted in
//! [`Heard::sends`]): nothing here retries, waits for a reset or decides anything ([`crate::recovery`] does), and nothing
//! here knows of jobs or the store. Prompts, answers and credentials pass through and are never logged.

mod adapter;
pub mod capture;
mod chat;
mod client;
mod content;
mod entry;
mod key;
mod raw;
mod request;
mod sink;

pub use chat::MAX_ANSWER_TEXT;
pub use entry::{Provider, ProviderError, Providers, check_call, check_model};
pub use key::{KeyGap, key_gap};
pub use raw::{MAX_ERROR_BODY, MAX_RAW_RESPONSE, raw_path};
pub use request::CallError;

use crate::failure::{Ending, Fault, Phase, Terminal, Transport};
use crate::recovery::Spoken;
use crate::store::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::future::Future;

/// One request to a provider.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one is built per turn, and most are chats")]
pub enum Call {
    Chat(ChatCall),
    Raw(RawCall),
}

#[derive(Clone, Debug)]
pub struct ChatCall {
    /// Goes out verbatim.
    pub model: String,
    pub system: Option<String>,
    pub messages: Vec<Message>,
    pub options: ChatParams,
    /// A streamed call, or one that waits for the whole answer.
    pub stream: bool,
    /// Whether a streamed 2xx without one non-empty frame may be sent once more with `stream: false`, so that its body
    /// can be read; not under `at_most_once` or `strict`.
    pub may_ask_again: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// Text, or the provider-neutral parts as submitted.
    pub content: Value,
}

/// What a job may set of a chat call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChatParams {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub max_tokens: Option<u32>,
    pub stop: Option<Value>,
    pub seed: Option<u64>,
    pub response_format: Option<Value>,
    pub reasoning_effort: Option<String>,
    pub tool_choice: Option<Value>,
    pub extra_body: Option<serde_json::Map<String, Value>>,
}

#[derive(Clone, Debug)]
pub struct RawCall {
    pub model: String,
    /// A plain relative path, checked at submission (`raw_path`).
    pub path: String,
    /// Goes out byte for byte.
    pub body: String,
}

/// What has been heard of an answer so far. Filled while the call runs, so that a call that is dropped leaves it.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// Sends that went out: 1, or 2 where an unreadable stream was asked for once more without streaming.
    pub sends: u32,
    /// When the first byte of a 2xx's content (comments count) was heard; of an answer in one piece, when it was read.
    pub first_byte_ms: Option<i64>,
    /// Answer text, chunk by chunk.
    pub text: String,
    pub tool_call: bool,
    pub finish_reason: Option<String>,
}

impl Heard {
    #[must_use]
    pub fn spoken(&self) -> Spoken {
        if self.tool_call {
            Spoken::ToolCall
        } else if self.text.is_empty() {
            Spoken::Nothing
        } else {
            Spoken::Text
        }
    }
}

/// Told while a call runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress<'a> {
    /// The provider answered: the first frame of a 2xx arrived and is no error, or an answer in one piece was read that
    /// is none. Not told at a head alone, since a refusal may stand in a 2xx and must lift no hold.
    Answered,
    Text(&'a str),
}

/// A completed answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub text: String,
    pub reasoning: Option<String>,
    pub tool_calls: Vec<Value>,
    /// The vendor's own word; `None` for raw turns.
    pub finish_reason: Option<String>,
    pub usage: Usage,
    pub provider_model: Option<String>,
    pub request_id: Option<String>,
    /// Of a raw turn: the response verbatim.
    pub raw: Option<RawAnswer>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RawAnswer {
    pub status: u16,
    pub content_type: Option<String>,
    pub body: bytes::Bytes,
}

/// A call that did not complete. What had been heard is in [`Heard`].
#[derive(Clone, Debug)]
pub struct Broken {
    pub ending: Ending,
    pub usage: Usage,
    pub provider_model: Option<String>,
}

impl From<Ending> for Box<Broken> {
    fn from(ending: Ending) -> Self {
        Box::new(Broken { ending, usage: Usage::default(), provider_model: None })
    }
}

/// A call that cannot be made, or whose answer no retry would make readable.
fn terminal(reason: impl Into<String>) -> Ending {
    Ending::Fault(terminal_fault(reason))
}

fn terminal_fault(reason: impl Into<String>) -> Fault {
    Fault::Terminal(Terminal { reason: reason.into() })
}

/// Bounds the whole wait for an answer that comes in one piece.
async fn within<T, E: From<Ending>>(read_ms: i64, answer: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    match tokio::time::timeout(client::millis(read_ms), answer).await {
        Ok(outcome) => outcome,
        Err(_) => Err(E::from(Ending::Fault(Fault::Transport(Transport {
            phase: Some(Phase::Read),
            detail: "no whole answer came within the read timeout".into(),
        })))),
    }
}
