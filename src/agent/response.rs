//! The two documents an execution leaves: the *response document* of a record (what one turn said), and the *result
//! document* of a job (what came of it all). Both are JSON text, written here and read here.
//!
//! Response: `{"text", "finish_reason", "tool_calls", "reasoning"?, "usage", "raw"?}`.
//! Result: `{"text", "finish_reason", "truncated", "turns", "usage", "tool_calls"?, "raw"?}`.
//! `turns` and `usage` count the job's own turns: what a retry took over was counted by the job that had it.
//! `raw` is `{"status", "content_type", "body", "encoding"?}`: the body verbatim where it is UTF-8, else base64 with
//! `"encoding": "base64"`. Readers tolerate members that a newer release wrote.

use crate::provider::{Answer, RawAnswer};
use crate::store::{History, Usage};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What one turn said.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Response {
    pub text: String,
    /// The vendor's own word; `None` for a partial and for a raw turn.
    pub finish_reason: Option<String>,
    pub tool_calls: Vec<Value>,
    pub reasoning: Option<String>,
    pub usage: Usage,
    pub raw: Option<RawResponse>,
}

/// A provider's response to a raw turn, verbatim.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RawResponse {
    pub status: u16,
    pub content_type: Option<String>,
    pub body: String,
    #[serde(default)]
    pub encoding: Option<Encoding>,
}

/// How the bytes of a body that is no UTF-8 are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    Base64,
}

/// A stored response that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("a stored response cannot be read: {0}")]
pub struct Unreadable(String);

impl Response {
    /// # Errors
    /// The document is no response document.
    pub fn read(document: &str) -> Result<Self, Unreadable> {
        // The place alone: the document is prose of users and models.
        serde_json::from_str(document)
            .map_err(|error| Unreadable(format!("line {}, column {}", error.line(), error.column())))
    }

    #[must_use]
    pub fn to_document(&self) -> String {
        let mut document = Map::new();
        document.insert("text".into(), self.text.clone().into());
        document.insert("finish_reason".into(), self.finish_reason.clone().into());
        document.insert("tool_calls".into(), Value::Array(self.tool_calls.clone()));
        if let Some(reasoning) = &self.reasoning {
            document.insert("reasoning".into(), reasoning.clone().into());
        }
        document.insert("usage".into(), usage_json(&self.usage));
        if let Some(raw) = &self.raw {
            document.insert("raw".into(), raw.to_json());
        }
        Value::Object(document).to_string()
    }
}

impl From<&Answer> for Response {
    fn from(answer: &Answer) -> Self {
        Self {
            text: answer.text.clone(),
            finish_reason: answer.finish_reason.clone(),
            tool_calls: answer.tool_calls.clone(),
            reasoning: answer.reasoning.clone(),
            usage: answer.usage,
            raw: answer.raw.as_ref().map(RawResponse::from),
        }
    }
}

impl RawResponse {
    /// The body's bytes as they came.
    ///
    /// # Errors
    /// It is said to be base64 and is not.
    pub fn bytes(&self) -> Result<Bytes, Unreadable> {
        match self.encoding {
            None => Ok(Bytes::copy_from_slice(self.body.as_bytes())),
            Some(Encoding::Base64) => {
                STANDARD.decode(&self.body).map(Bytes::from).map_err(|_| Unreadable("its body is no base64".to_owned()))
            }
        }
    }

    fn to_json(&self) -> Value {
        let mut raw = Map::new();
        raw.insert("status".into(), self.status.into());
        raw.insert("content_type".into(), self.content_type.clone().into());
        raw.insert("body".into(), self.body.clone().into());
        match self.encoding {
            None => {}
            Some(Encoding::Base64) => {
                raw.insert("encoding".into(), "base64".into());
            }
        }
        Value::Object(raw)
    }
}

impl From<&RawAnswer> for RawResponse {
    fn from(answer: &RawAnswer) -> Self {
        let (body, encoding) = match std::str::from_utf8(&answer.body) {
            Ok(text) => (text.to_owned(), None),
            Err(_) => (STANDARD.encode(&answer.body), Some(Encoding::Base64)),
        };
        Self { status: answer.status, content_type: answer.content_type.clone(), body, encoding }
    }
}

/// The response document of a completed answer.
#[must_use]
pub fn of_answer(answer: &Answer) -> String {
    Response::from(answer).to_document()
}

/// The response document of a cut answer: its text alone (contract §6: tool calls and unfinished reasoning are dropped).
/// `None`: it had said nothing.
#[must_use]
pub fn of_partial(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| Response { text: text.to_owned(), ..Response::default() }.to_document())
}

/// The result document of a job whose last turn completed.
pub(super) fn result(history: &History, answer: &Answer, text: &str) -> String {
    let response = Response::from(answer);
    let mut document = result_members(history, &answer.usage, text, answer.finish_reason.as_deref(), false);
    if !response.tool_calls.is_empty() {
        document.insert("tool_calls".into(), Value::Array(response.tool_calls));
    }
    if let Some(raw) = &response.raw {
        document.insert("raw".into(), raw.to_json());
    }
    Value::Object(document).to_string()
}

/// The result document of a job that ends with a cut answer: accepted as it stands, or all there is of one that failed
/// or was cancelled. `None`: nothing has been said.
#[must_use]
pub fn partial_result(history: &History, text: &str) -> Option<String> {
    let text = super::job_text(history, text);
    if text.is_empty() {
        return None;
    }
    Some(Value::Object(result_members(history, &Usage::default(), &text, None, true)).to_string())
}

/// The result document of a job that ends at a turn that was not sent: its last answer, as it stands. `None`: nothing has
/// been said.
pub(super) fn last_result(history: &History) -> Option<String> {
    let (text, truncated) = super::transcript::latest(history)?;
    let mut members = result_members(history, &Usage::default(), &text, None, truncated);
    members.insert("turns".into(), history.responses.len().into());
    Some(Value::Object(members).to_string())
}

fn result_members(
    history: &History,
    last: &Usage,
    text: &str,
    finish_reason: Option<&str>,
    truncated: bool,
) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("text".into(), text.into());
    members.insert("finish_reason".into(), finish_reason.into());
    members.insert("truncated".into(), truncated.into());
    members.insert("turns".into(), (history.responses.len() + 1).into());
    members.insert("usage".into(), usage_json(&total(history, last)));
    members
}

/// Tokens of all the job's answers. A figure that one of them lacks (a cut answer has none) is not known of the whole.
fn total(history: &History, last: &Usage) -> Usage {
    let add = |one: Option<i64>, other: Option<i64>| one?.checked_add(other?);
    history.responses.iter().fold(*last, |sum, (_, _, document)| {
        let usage = Response::read(document).map(|response| response.usage).unwrap_or_default();
        Usage {
            input_tokens: add(sum.input_tokens, usage.input_tokens),
            output_tokens: add(sum.output_tokens, usage.output_tokens),
            total_tokens: add(sum.total_tokens, usage.total_tokens),
        }
    })
}

fn usage_json(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn answer(text: &str, body: Option<&[u8]>) -> Answer {
        Answer {
            text: text.to_owned(),
            reasoning: None,
            tool_calls: Vec::new(),
            finish_reason: Some("stop".to_owned()),
            usage: Usage { input_tokens: Some(3), output_tokens: Some(4), total_tokens: Some(7) },
            provider_model: None,
            request_id: None,
            raw: body.map(|body| RawAnswer {
                status: 200,
                content_type: Some("application/json".to_owned()),
                body: Bytes::copy_from_slice(body),
            }),
        }
    }

    #[test]
    fn the_documents_are_as_documented() {
        let said = Answer { reasoning: Some("hm".into()), tool_calls: vec![json!({"id": 1})], ..answer("hi", None) };
        let usage = r#""usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7}"#;
        assert_eq!(
            of_answer(&said),
            format!(r#"{{"text":"hi","finish_reason":"stop","tool_calls":[{{"id":1}}],"reasoning":"hm",{usage}}}"#)
        );
        assert_eq!(
            of_answer(&answer("", Some(b"{\"a\" :1}"))),
            format!(
                r#"{{"text":"","finish_reason":"stop","tool_calls":[],{usage},"raw":{{"status":200,"content_type":"application/json","body":"{{\"a\" :1}}"}}}}"#
            )
        );
        let history = History { responses: vec![(1, None, of_answer(&said))], inbox: Vec::new() };
        assert_eq!(
            result(&history, &answer("bye", None), "bye"),
            r#"{"text":"bye","finish_reason":"stop","truncated":false,"turns":2,"usage":{"input_tokens":6,"output_tokens":8,"total_tokens":14}}"#
        );
        assert_eq!(of_partial(""), None);
        assert_eq!(
            partial_result(&History::default(), "half").as_deref(),
            Some(
                r#"{"text":"half","finish_reason":null,"truncated":true,"turns":1,"usage":{"input_tokens":null,"output_tokens":null,"total_tokens":null}}"#
            )
        );
        assert_eq!(partial_result(&History::default(), ""), None);
    }

    #[test]
    fn a_newer_releases_response_is_read_and_a_broken_one_is_said_to_be() {
        let newer = r#"{"text":"x","mood":"good","usage":{"input_tokens":1,"cached":2}}"#;
        let read = Response::read(newer).unwrap();
        assert_eq!((read.text.as_str(), read.usage.input_tokens), ("x", Some(1)));
        let error = Response::read("{\"text\": secret}").unwrap_err().to_string();
        assert!(error.contains("line 1") && !error.contains("secret"), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_is_read_back(
            text in any::<String>(), reasoning in any::<Option<String>>(), finish in any::<Option<String>>(),
            body in any::<Option<Vec<u8>>>(), tokens in any::<Option<i64>>(), tool in any::<Option<String>>(),
        ) {
            let said = Answer {
                reasoning,
                finish_reason: finish,
                tool_calls: tool.into_iter().map(|tool| json!({"name": tool})).collect(),
                usage: Usage { output_tokens: tokens, ..Usage::default() },
                ..answer(&text, body.as_deref())
            };
            let read = Response::read(&of_answer(&said)).unwrap();
            prop_assert_eq!(&read, &Response::from(&said));
            prop_assert_eq!(&read.text, &text);
            let bytes = read.raw.map(|raw| raw.bytes().unwrap().to_vec());
            prop_assert_eq!(bytes, body);
        }
    }
}
