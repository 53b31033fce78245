//! What crosses the wire of one streamed call, kept beside what genai makes of it: the first error frame, finish
//! reasons, tokens, and the last frame's content for the one case in which genai drops it.

use super::content;
use crate::failure::frame;
use crate::store::Usage;
use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// States of an answer that stand where a finish reason would, and say the opposite.
pub(super) const UNDER_WAY: [&str; 2] = ["in_progress", "queued"];

/// Installed in genai, read by the call. Both run on one task, so the lock is never waited for.
#[derive(Clone, Debug, Default)]
pub(super) struct Sink(Arc<Mutex<Seen>>);

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Anything at all, comments included: bytes of a 2xx arrived.
    pub any: bool,
    /// Frames with content.
    pub frames: u64,
    /// The first error frame, whole.
    pub error: Option<Value>,
    /// The latest finish reason, in the vendor's own word.
    pub finish: Option<String>,
    pub usage: Usage,
    pub provider_model: Option<String>,
    /// The latest frame, where it is JSON.
    pub last: Option<Value>,
    /// Tool calls put together from OpenAI-like frames, by their index.
    tools: BTreeMap<u64, Tool>,
}

#[derive(Debug, Default)]
struct Tool {
    id: Option<String>,
    name: Option<String>,
    arguments: String,
}

impl Sink {
    /// Looks at, or takes from, what was seen.
    pub fn with<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        // A panic while the lock was held leaves a value that is still whole enough to report a failure from.
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ChatFrameSink for Sink {
    fn on_frame(&self, _ctx: &FrameCtx, raw: RawFrameRef<'_>) {
        self.with(|seen| seen.take_in(raw.event, raw.data));
    }
}

impl Seen {
    fn take_in(&mut self, event: Option<&str>, data: &str) {
        self.any = true;
        if data.trim().is_empty() {
            return;
        }
        self.frames += 1;
        self.last = None;
        if data == "[DONE]" {
            return;
        }
        let value = match serde_json::from_str(data) {
            Ok(value) => value,
            // A frame that says it is an error and is no JSON still is one.
            Err(_) if frame::is_error(event, &Value::Null) => Value::String(data.to_owned()),
            Err(_) => return,
        };
        if self.error.is_none() && frame::is_error(event, &value) {
            self.error = Some(value.clone());
        }
        if let Some(word) = frame::finish_reason(&value).filter(|word| !UNDER_WAY.contains(&word.as_str())) {
            self.finish = Some(word);
        }
        self.usage = content::merge(self.usage, content::usage(&value));
        if self.provider_model.is_none() {
            self.provider_model = content::model(&value).map(str::to_owned);
        }
        for (index, id, name, arguments) in content::tool_deltas(&value) {
            let tool = self.tools.entry(index).or_default();
            tool.id = tool.id.take().or_else(|| id.map(str::to_owned));
            tool.name = tool.name.take().or_else(|| name.map(str::to_owned));
            tool.arguments.push_str(arguments);
        }
        self.last = Some(value);
    }

    /// The tool calls put together from OpenAI-like frames.
    pub fn tool_calls(&self) -> Vec<Value> {
        self.tools
            .iter()
            .map(|(index, tool)| {
                let arguments = serde_json::from_str(&tool.arguments).unwrap_or_else(|_| json!(tool.arguments));
                let id = tool.id.clone().unwrap_or_else(|| format!("call_{index}"));
                json!({ "id": id, "name": tool.name, "arguments": arguments })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_life_but_no_frames() {
        let mut seen = Seen::default();
        seen.take_in(None, "");
        assert!(seen.any);
        assert_eq!(seen.frames, 0);
        seen.take_in(None, "[DONE]");
        assert_eq!(seen.frames, 1);
    }

    #[test]
    fn the_first_error_frame_is_kept_whole() {
        let mut seen = Seen::default();
        seen.take_in(None, r#"{"error":null,"choices":[{"delta":{"content":"a"}}]}"#);
        assert_eq!(seen.error, None);
        seen.take_in(None, r#"{"error":{"code":429},"id":"x"}"#);
        seen.take_in(None, r#"{"error":{"code":500}}"#);
        assert_eq!(seen.error, Some(json!({"error":{"code":429},"id":"x"})));
        let mut seen = Seen::default();
        seen.take_in(Some("error"), "upstream went away");
        assert_eq!(seen.error, Some(json!("upstream went away")));
    }

    #[test]
    fn tool_calls_are_put_together_by_index() {
        let mut seen = Seen::default();
        seen.take_in(
            None,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\""}}]}}]}"#,
        );
        seen.take_in(None, r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}"#);
        assert_eq!(seen.tool_calls(), vec![json!({"id":"c1","name":"f","arguments":{"a":1}})]);
    }
}
