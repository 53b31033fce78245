//! Successful answers in the three dialects, whole and in frames.
//!
//! Written by hand rather than through a document tree: whole answers are the hot path of benchmarks.

use super::ask::Dialect;
use super::text;
use std::fmt::Write as _;

/// One answer, before it is put into a dialect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer<'a> {
    pub dialect: Dialect,
    /// Distinguishes one response from the next.
    pub id: u64,
    pub model: &'a str,
    pub text: &'a str,
    /// The vendor's own word.
    pub finish: &'a str,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub created_s: i64,
    pub usage_frame: bool,
}

/// Why a text ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    Stop,
    Length,
}

impl Finish {
    pub(super) fn word(self, dialect: Dialect) -> &'static str {
        match (self, dialect) {
            (Self::Stop, Dialect::OpenAi) => "stop",
            (Self::Stop, Dialect::Anthropic) => "end_turn",
            (Self::Stop, Dialect::Gemini) => "STOP",
            (Self::Length, Dialect::OpenAi) => "length",
            (Self::Length, Dialect::Anthropic) => "max_tokens",
            (Self::Length, Dialect::Gemini) => "MAX_TOKENS",
        }
    }
}

/// An answer in frames: what precedes the text, the text, and what says that it is whole.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub head: Vec<String>,
    pub text: Vec<String>,
    pub tail: Vec<String>,
}

fn quoted(text: &str) -> String {
    // A string cannot fail to be JSON.
    serde_json::to_string(text).unwrap_or_default()
}

impl Answer<'_> {
    /// The body of an answer that is not streamed.
    pub(super) fn whole(&self) -> String {
        let Self { id, prompt_tokens, completion_tokens, created_s, .. } = *self;
        let total_tokens = prompt_tokens.saturating_add(completion_tokens);
        let (model, text, finish) = (quoted(self.model), quoted(self.text), quoted(self.finish));
        match self.dialect {
            Dialect::OpenAi => format!(
                r#"{{"id":"chatcmpl-{id:016x}","object":"chat.completion","created":{created_s},"model":{model},"choices":[{{"index":0,"message":{{"role":"assistant","content":{text},"refusal":null}},"logprobs":null,"finish_reason":{finish}}}],"usage":{{"prompt_tokens":{prompt_tokens},"completion_tokens":{completion_tokens},"total_tokens":{total_tokens}}},"system_fingerprint":"fp_simulated"}}"#
            ),
            Dialect::Anthropic => format!(
                r#"{{"id":"msg_{id:016x}","type":"message","role":"assistant","model":{model},"content":[{{"type":"text","text":{text}}}],"stop_reason":{finish},"stop_sequence":null,"usage":{{"input_tokens":{prompt_tokens},"output_tokens":{completion_tokens}}}}}"#
            ),
            Dialect::Gemini => format!(
                r#"{{"candidates":[{{"content":{{"parts":[{{"text":{text}}}],"role":"model"}},"finishReason":{finish},"index":0}}],"usageMetadata":{{"promptTokenCount":{prompt_tokens},"candidatesTokenCount":{completion_tokens},"totalTokenCount":{total_tokens}}},"modelVersion":{model},"responseId":"{id:016x}"}}"#
            ),
        }
    }

    /// The frames of a streamed answer, the text in chunks of about `chunk_chars`.
    pub(super) fn frames(&self, chunk_chars: usize) -> Frames {
        let mut frames = Frames { head: self.head(), text: Vec::new(), tail: self.tail() };
        let mut rest = self.text;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(text::seam(rest, chunk_chars));
            frames.text.push(self.text_frame(chunk));
            rest = after;
        }
        frames
    }

    /// One frame of text.
    pub(super) fn text_frame(&self, chunk: &str) -> String {
        let chunk = quoted(chunk);
        match self.dialect {
            Dialect::OpenAi => self.openai(&format!(r#"{{"content":{chunk}}}"#), "null"),
            Dialect::Anthropic => anthropic_frame(
                "content_block_delta",
                &format!(r#""index":0,"delta":{{"type":"text_delta","text":{chunk}}}"#),
            ),
            Dialect::Gemini => self.gemini(&chunk, None),
        }
    }

    fn head(&self) -> Vec<String> {
        match self.dialect {
            Dialect::OpenAi => vec![self.openai(r#"{"role":"assistant","content":"","refusal":null}"#, "null")],
            Dialect::Anthropic => vec![
                anthropic_frame(
                    "message_start",
                    &format!(
                        r#""message":{{"id":"msg_{:016x}","type":"message","role":"assistant","model":{},"content":[],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":{},"output_tokens":1}}}}"#,
                        self.id,
                        quoted(self.model),
                        self.prompt_tokens
                    ),
                ),
                anthropic_frame("content_block_start", r#""index":0,"content_block":{"type":"text","text":""}"#),
                "event: ping\ndata: {\"type\":\"ping\"}\n\n".to_owned(),
            ],
            Dialect::Gemini => Vec::new(),
        }
    }

    fn tail(&self) -> Vec<String> {
        match self.dialect {
            Dialect::OpenAi => {
                let mut tail = vec![self.openai("{}", &quoted(self.finish))];
                if self.usage_frame {
                    tail.push(self.openai_usage());
                }
                tail.push("data: [DONE]\n\n".to_owned());
                tail
            }
            Dialect::Anthropic => vec![
                anthropic_frame("content_block_stop", r#""index":0"#),
                anthropic_frame(
                    "message_delta",
                    &format!(
                        r#""delta":{{"stop_reason":{},"stop_sequence":null}},"usage":{{"output_tokens":{}}}"#,
                        quoted(self.finish),
                        self.completion_tokens
                    ),
                ),
                "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n".to_owned(),
            ],
            Dialect::Gemini => vec![self.gemini("\"\"", Some(self.finish))],
        }
    }

    fn openai(&self, delta: &str, finish: &str) -> String {
        format!(
            "data: {{\"id\":\"chatcmpl-{:016x}\",\"object\":\"chat.completion.chunk\",\"created\":{},\"model\":{},\
             \"choices\":[{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\"finish_reason\":{finish}}}]}}\n\n",
            self.id,
            self.created_s,
            quoted(self.model)
        )
    }

    fn openai_usage(&self) -> String {
        format!(
            "data: {{\"id\":\"chatcmpl-{:016x}\",\"object\":\"chat.completion.chunk\",\"created\":{},\"model\":{},\
             \"choices\":[],\"usage\":{{\"prompt_tokens\":{},\"completion_tokens\":{},\"total_tokens\":{}}}}}\n\n",
            self.id,
            self.created_s,
            quoted(self.model),
            self.prompt_tokens,
            self.completion_tokens,
            self.prompt_tokens.saturating_add(self.completion_tokens)
        )
    }

    fn gemini(&self, chunk: &str, finish: Option<&str>) -> String {
        let finish = finish.map(|finish| format!(r#""finishReason":{},"#, quoted(finish))).unwrap_or_default();
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":{chunk}}}],\"role\":\"model\"}},{finish}\
             \"index\":0}}],\"usageMetadata\":{{\"promptTokenCount\":{},\"candidatesTokenCount\":{},\
             \"totalTokenCount\":{}}},\"modelVersion\":{},\"responseId\":\"{:016x}\"}}\r\n\r\n",
            self.prompt_tokens,
            self.completion_tokens,
            self.prompt_tokens.saturating_add(self.completion_tokens),
            quoted(self.model),
            self.id
        )
    }
}

fn anthropic_frame(event: &str, members: &str) -> String {
    format!("event: {event}\ndata: {{\"type\":\"{event}\",{members}}}\n\n")
}

/// An error inside a stream.
pub(super) fn error_frame(dialect: Dialect, body: &str) -> String {
    match dialect {
        Dialect::OpenAi => format!("data: {body}\n\n"),
        Dialect::Anthropic => format!("event: error\ndata: {body}\n\n"),
        Dialect::Gemini => format!("data: {body}\r\n\r\n"),
    }
}

/// An embeddings answer: small vectors that depend on the seed and the place alone.
pub(super) fn embeddings(model: &str, inputs: usize, prompt_tokens: u64, seed: u64) -> String {
    let mut body = String::from(r#"{"object":"list","data":["#);
    for index in 0..inputs {
        let separator = if index == 0 { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(body, r#"{separator}{{"object":"embedding","index":{index},"embedding":["#);
        let mut draw = text::hash(&[&seed.to_le_bytes(), &index.to_le_bytes()]);
        for place in 0..8 {
            draw = text::mix(draw);
            let separator = if place == 0 { "" } else { "," };
            let _ = write!(body, "{separator}0.{:06}", draw % 1_000_000);
        }
        body.push_str("]}");
    }
    let _ = write!(
        body,
        r#"],"model":{},"usage":{{"prompt_tokens":{prompt_tokens},"total_tokens":{prompt_tokens}}}}}"#,
        quoted(model)
    );
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_body_and_frame_is_json() {
        for dialect in [Dialect::OpenAi, Dialect::Anthropic, Dialect::Gemini] {
            let answer = Answer {
                dialect,
                id: 7,
                model: "a \"quoted\" model",
                text: "Größe 東京 und mehr davon",
                finish: Finish::Stop.word(dialect),
                prompt_tokens: 3,
                completion_tokens: 6,
                created_s: 1_790_000_000,
                usage_frame: true,
            };
            let whole: serde_json::Value = serde_json::from_str(&answer.whole()).unwrap();
            assert!(whole.to_string().contains("東京"));
            let frames = answer.frames(8);
            assert!(frames.text.len() > 2);
            for frame in frames.head.iter().chain(&frames.text).chain(&frames.tail) {
                let data = frame.trim_end().rsplit_once("data: ").unwrap().1;
                assert!(data == "[DONE]" || serde_json::from_str::<serde_json::Value>(data).is_ok(), "{data}");
            }
        }
        let vectors: serde_json::Value = serde_json::from_str(&embeddings("m", 2, 5, 1)).unwrap();
        assert_eq!(vectors["data"][1]["embedding"].as_array().unwrap().len(), 8);
    }
}
