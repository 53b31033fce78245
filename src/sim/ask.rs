//! What a client asks: the three dialects' requests, read into one shape.
//!
//! Reads only what an answer depends on; everything else in a request is ignored, as a provider ignores much of it too.

use super::text::{self, CHARS_PER_TOKEN};
use http::request::Parts;
use serde::de::{self, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// Whose protocol is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    #[serde(rename = "openai")]
    OpenAi,
    Anthropic,
    Gemini,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    Chat,
    Embeddings,
}

/// Where a request goes, read from its path alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub dialect: Dialect,
    pub wants: Wants,
    /// Gemini names model and streaming in the path.
    pub model: Option<String>,
    pub stream: bool,
}

/// One request, as far as an answer depends on it.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub dialect: Dialect,
    pub wants: Wants,
    pub model: String,
    pub key: String,
    pub stream: bool,
    pub max_tokens: Option<u64>,
    /// The first user message: what the whole text is a function of.
    pub question: String,
    /// The last user message, where it is another one than the first.
    pub follow_up: Option<String>,
    /// Everything the assistant has said so far, joined.
    pub said: String,
    pub prompt_tokens: u64,
    /// Whether a stream in `openai` ends with a usage frame.
    pub usage_frame: bool,
    /// How many vectors an embeddings request wants.
    pub inputs: usize,
}

impl Route {
    /// Any prefix will do: `/v1/chat/completions` and `/proxy/v1/chat/completions` are the same to a simulator.
    pub(super) fn of(path: &str) -> Option<Self> {
        let plain = |dialect, wants| Some(Self { dialect, wants, model: None, stream: false });
        if path.ends_with("/chat/completions") {
            return plain(Dialect::OpenAi, Wants::Chat);
        }
        if path.ends_with("/embeddings") {
            return plain(Dialect::OpenAi, Wants::Embeddings);
        }
        if path.ends_with("/messages") {
            return plain(Dialect::Anthropic, Wants::Chat);
        }
        let (model, verb) = path.rsplit_once("/models/")?.1.rsplit_once(':')?;
        let stream = match verb {
            "generateContent" => false,
            "streamGenerateContent" => true,
            _ => return None,
        };
        Some(Self { dialect: Dialect::Gemini, wants: Wants::Chat, model: Some(model.to_owned()), stream })
    }
}

impl Ask {
    /// Reads a request whose body has arrived.
    ///
    /// # Errors
    /// What is wrong with the body, for the `400` that answers it.
    pub(super) fn read(route: Route, head: &Parts, body: &[u8]) -> Result<Self, String> {
        let body: Body = serde_json::from_slice(body).map_err(|error| format!("the body is no request: {error}"))?;
        let Some(model) = route.model.or(body.model) else {
            return Err("you must provide a model parameter".to_owned());
        };
        let mut ask = Self {
            dialect: route.dialect,
            wants: route.wants,
            model,
            key: key_of(head),
            stream: route.stream || body.stream,
            max_tokens: body.max_completion_tokens.or(body.max_tokens).or(body.generation.max_output_tokens),
            question: String::new(),
            follow_up: None,
            said: String::new(),
            prompt_tokens: 0,
            usage_frame: body.stream_options.include_usage,
            inputs: body.input.0.max(1),
        };
        ask.take_messages(body.messages);
        ask.take_messages(body.contents);
        let chars = body.system.0.len() + body.system_instruction.0.len() + body.input.1;
        ask.prompt_tokens += text::tokens(chars);
        Ok(ask)
    }

    fn take_messages(&mut self, messages: Vec<Message>) {
        let mut bytes = 0_usize;
        let mut asked = false;
        for message in messages {
            // Four for the frame around each message, as tokenisers have it.
            bytes = bytes.saturating_add(message.content.0.len() + 4 * CHARS_PER_TOKEN);
            match message.role.as_str() {
                "user" | "" if asked => self.follow_up = Some(message.content.0),
                "user" | "" => {
                    asked = true;
                    self.question = message.content.0;
                }
                "assistant" | "model" => self.said.push_str(&message.content.0),
                _ => {}
            }
        }
        self.prompt_tokens = self.prompt_tokens.saturating_add(text::tokens(bytes));
    }

    /// The text that is still to be said: the whole text of the question, less what the assistant has said of it. Where
    /// that is all of it, or something else, the last user message is a question of its own.
    pub(super) fn text(&self, seed: u64, chars: usize) -> String {
        let whole = text::full(seed, &self.question, chars);
        if self.said.is_empty() {
            return whole;
        }
        match (whole.strip_prefix(&self.said), &self.follow_up) {
            (Some(rest), _) if !rest.is_empty() => rest.to_owned(),
            (_, Some(question)) => text::full(seed, &format!("{}\n{question}", self.said), chars),
            (_, None) => whole,
        }
    }
}

/// The credential, from wherever the three dialects put theirs; empty where there is none.
fn key_of(head: &Parts) -> String {
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let in_query = || head.uri.query().and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("key=")));
    bearer
        .or_else(|| header("x-api-key"))
        .or_else(|| header("x-goog-api-key"))
        .or_else(in_query)
        .unwrap_or("")
        .to_owned()
}

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    max_tokens: Option<u64>,
    #[serde(default)]
    max_completion_tokens: Option<u64>,
    #[serde(default, rename = "generationConfig")]
    generation: Generation,
    #[serde(default)]
    stream_options: StreamOptions,
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    contents: Vec<Message>,
    #[serde(default)]
    system: Content,
    #[serde(default, rename = "systemInstruction")]
    system_instruction: Content,
    #[serde(default)]
    input: Inputs,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Generation {
    #[serde(rename = "maxOutputTokens")]
    max_output_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    role: String,
    /// Gemini says `parts`.
    #[serde(default, alias = "parts")]
    content: Content,
}

/// Text, or parts whose texts are joined; parts of other kinds are nothing to this reader.
#[derive(Default)]
struct Content(String);

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor).map(Self)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_unit<E: de::Error>(self) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<String, A::Error> {
        let mut joined = String::new();
        while let Some(part) = parts.next_element::<Part>()? {
            joined.push_str(&part.text);
        }
        Ok(joined)
    }

    /// Gemini's `systemInstruction` is an object with `parts`.
    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<String, A::Error> {
        let mut joined = String::new();
        while let Some(name) = map.next_key::<String>()? {
            if name == "parts" {
                joined = map.next_value::<Content>()?.0;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(joined)
    }
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: String,
}

/// How many inputs an embeddings request has, and how long they are together.
#[derive(Default)]
struct Inputs(usize, usize);

impl<'de> Deserialize<'de> for Inputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let inputs = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Self(1, text.chars().count()),
            serde_json::Value::Array(texts) => {
                Self(texts.len(), texts.iter().filter_map(|text| text.as_str()).map(|text| text.chars().count()).sum())
            }
            _ => Self(0, 0),
        };
        Ok(inputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str, body: &str) -> Ask {
        let (head, ()) = http::Request::post(path).header("x-api-key", "sim-a").body(()).unwrap().into_parts();
        Ask::read(Route::of(head.uri.path()).unwrap(), &head, body.as_bytes()).unwrap()
    }

    #[test]
    fn the_three_dialects_read_alike() {
        let openai = read(
            "/v1/chat/completions",
            r#"{"model":"m","stream":true,"max_completion_tokens":9,"messages":[{"role":"system","content":"s"},
                {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
                {"role":"assistant","content":"x"},{"role":"user","content":"go on"}]}"#,
        );
        let anthropic = read(
            "/v1/messages",
            r#"{"model":"m","stream":true,"max_tokens":9,"system":"s","messages":[{"role":"user","content":"ab"},
                {"role":"assistant","content":[{"type":"text","text":"x"}]},{"role":"user","content":"go on"}]}"#,
        );
        let gemini = read(
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            r#"{"systemInstruction":{"parts":[{"text":"s"}]},"generationConfig":{"maxOutputTokens":9},
                "contents":[{"role":"user","parts":[{"text":"ab"}]},{"role":"model","parts":[{"text":"x"}]},
                {"role":"user","parts":[{"text":"go on"}]}]}"#,
        );
        for ask in [&openai, &anthropic, &gemini] {
            assert_eq!((ask.model.as_str(), ask.key.as_str(), ask.stream), ("m", "sim-a", true));
            assert_eq!((ask.question.as_str(), ask.said.as_str()), ("ab", "x"));
            assert_eq!(ask.follow_up.as_deref(), Some("go on"));
            assert_eq!(ask.max_tokens, Some(9));
        }
    }

    #[test]
    fn a_continuation_goes_on_where_the_pieces_end_and_a_follow_up_is_answered_anew() {
        let mut ask = read("/v1/messages", r#"{"model":"m","messages":[{"role":"user","content":"q"}]}"#);
        let whole = ask.text(5, 300);
        let cut = text::seam(&whole, 100);
        ask.said = whole[..cut].to_owned();
        ask.follow_up = Some("go on".into());
        assert_eq!(format!("{}{}", ask.said, ask.text(5, 300)), whole);
        ask.said = whole.clone();
        let anew = ask.text(5, 300);
        assert_ne!(anew, whole);
        assert_eq!(anew.chars().count(), 300);
    }
}
