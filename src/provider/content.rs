//! What a frame of a stream, or the whole body of a 2xx, says about its call: text, tokens, the model that answered.
//!
//! genai drops much of it (usage without a final event, the model of a streamed answer, the text of a frame with
//! `"error": null`), so it is read from the wire. Pure; whether a frame is an error, and its finish reason, are read by
//! the failure module.

use crate::store::Usage;
use serde_json::Value;

/// The model as the provider names it.
pub(super) fn model(frame: &Value) -> Option<&str> {
    ["/model", "/modelVersion", "/message/model", "/response/model", "/interaction/model"]
        .iter()
        .find_map(|at| frame.pointer(at)?.as_str())
        .filter(|name| !name.is_empty())
}

/// The tokens that a frame or body reports.
pub(super) fn usage(frame: &Value) -> Usage {
    let places = [
        "/usage",
        "/usageMetadata",
        "/message/usage",
        "/response/usage",
        "/interaction/usage",
        "/x_groq/usage",
        "/meta/tokens",
        "/response/meta/tokens",
        "",
    ];
    places.iter().map(|at| counts(frame, at)).find(|usage| *usage != Usage::default()).unwrap_or_default()
}

/// `later` over `earlier`, figure by figure; a total that nobody states is the sum.
pub(super) fn merge(earlier: Usage, later: Usage) -> Usage {
    let input_tokens = later.input_tokens.or(earlier.input_tokens);
    let output_tokens = later.output_tokens.or(earlier.output_tokens);
    let sum = || Some(input_tokens?.saturating_add(output_tokens?));
    Usage { input_tokens, output_tokens, total_tokens: later.total_tokens.or_else(sum).or(earlier.total_tokens) }
}

fn counts(frame: &Value, at: &str) -> Usage {
    let Some(object) = frame.pointer(at).and_then(Value::as_object) else { return Usage::default() };
    let one = |names: &[&str]| names.iter().find_map(|name| object.get(*name)?.as_i64());
    let of_input = if at.is_empty() {
        // Ollama's figures stand at the root of the last line.
        one(&["prompt_eval_count"])
    } else {
        one(&["prompt_tokens", "input_tokens", "promptTokenCount", "inputTokens", "total_input_tokens"])
    };
    // Anthropic counts what it read from and wrote to its cache apart.
    let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"]
        .iter()
        .filter_map(|name| object.get(*name)?.as_i64())
        .fold(0, i64::saturating_add);
    let of_output = if at.is_empty() {
        one(&["eval_count"])
    } else {
        one(&["completion_tokens", "output_tokens", "candidatesTokenCount", "outputTokens", "total_output_tokens"])
    };
    // Gemini counts thoughts apart.
    let thoughts = object.get("thoughtsTokenCount").and_then(Value::as_i64).unwrap_or(0);
    Usage {
        input_tokens: of_input.map(|tokens| tokens.saturating_add(cached)),
        output_tokens: of_output.map(|tokens| tokens.saturating_add(thoughts)),
        total_tokens: if at.is_empty() { None } else { one(&["total_tokens", "totalTokenCount", "totalTokens"]) },
    }
}

/// The answer text that a frame of a stream carries.
pub(super) fn delta_text(frame: &Value) -> Option<String> {
    if let Some(content) = frame.pointer("/choices/0/delta/content") {
        return match content {
            Value::String(text) => Some(text.clone()),
            Value::Array(chunks) => Some(texts(chunks, |chunk| chunk.get("type") == Some(&Value::from("text")))),
            _ => None,
        };
    }
    if let Some(Value::Array(parts)) = frame.pointer("/candidates/0/content/parts") {
        return Some(texts(parts, |part| part.get("thought") != Some(&Value::Bool(true))));
    }
    let by_type = match frame.get("type").and_then(Value::as_str) {
        Some("response.output_text.delta") => frame.get("delta"),
        Some("content_block_delta") => frame.pointer("/delta/text"),
        _ => frame.pointer("/message/content"),
    };
    by_type.and_then(Value::as_str).map(str::to_owned)
}

/// The reasoning that a frame of a stream carries.
pub(super) fn delta_reasoning(frame: &Value) -> Option<&str> {
    ["/choices/0/delta/reasoning_content", "/choices/0/delta/reasoning", "/delta/thinking", "/message/thinking"]
        .iter()
        .find_map(|at| frame.pointer(at)?.as_str())
}

/// The answer text of a whole body, byte for byte, where it stands in one known place. genai trims some of them.
pub(super) fn body_text(body: &Value) -> Option<String> {
    match body.pointer("/choices/0/message/content") {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Array(chunks)) => Some(texts(chunks, |chunk| chunk.get("type") == Some(&Value::from("text")))),
        _ => None,
    }
}

/// The fragments of tool calls in an OpenAI-like frame: index, id, name, arguments.
pub(super) fn tool_deltas(frame: &Value) -> Vec<(u64, Option<&str>, Option<&str>, &str)> {
    let Some(calls) = frame.pointer("/choices/0/delta/tool_calls").and_then(Value::as_array) else {
        return Vec::new();
    };
    calls
        .iter()
        .filter_map(|call| {
            let index = call.get("index")?.as_u64()?;
            let id = call.get("id").and_then(Value::as_str);
            let name = call.pointer("/function/name").and_then(Value::as_str);
            let arguments = call.pointer("/function/arguments").and_then(Value::as_str).unwrap_or("");
            Some((index, id, name, arguments))
        })
        .collect()
}

fn texts(parts: &[Value], wanted: impl Fn(&Value) -> bool) -> String {
    parts.iter().filter(|part| wanted(part)).filter_map(|part| part.get("text")?.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tokens_are_read_in_every_vendors_place() {
        let of = |input, output, total| Usage { input_tokens: input, output_tokens: output, total_tokens: total };
        let cases = [
            (
                json!({"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}),
                of(Some(3), Some(4), Some(7)),
            ),
            (
                json!({"message":{"usage":{"input_tokens":3,"cache_read_input_tokens":10,"output_tokens":1}}}),
                of(Some(13), Some(1), None),
            ),
            (
                json!({"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4,"thoughtsTokenCount":5}}),
                of(Some(3), Some(9), None),
            ),
            (json!({"done":true,"prompt_eval_count":8,"eval_count":2}), of(Some(8), Some(2), None)),
            (
                json!({"type":"response.completed","response":{"usage":{"input_tokens":1,"output_tokens":2}}}),
                of(Some(1), Some(2), None),
            ),
            (json!({"usage":null}), Usage::default()),
        ];
        for (frame, expected) in cases {
            assert_eq!(usage(&frame), expected, "{frame}");
        }
    }

    #[test]
    fn a_later_figure_replaces_an_earlier_one_and_a_missing_total_is_the_sum() {
        let start = Usage { input_tokens: Some(5), output_tokens: Some(1), total_tokens: None };
        let end = Usage { input_tokens: None, output_tokens: Some(9), total_tokens: None };
        assert_eq!(merge(start, end), Usage { input_tokens: Some(5), output_tokens: Some(9), total_tokens: Some(14) });
    }

    #[test]
    fn text_is_found_in_each_kind_of_frame() {
        let cases = [
            (json!({"choices":[{"delta":{"content":" a"}}]}), Some(" a")),
            (
                json!({"choices":[{"delta":{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"b"}]}}]}),
                Some("b"),
            ),
            (json!({"candidates":[{"content":{"parts":[{"text":"t","thought":true},{"text":"c"}]}}]}), Some("c")),
            (json!({"type":"content_block_delta","delta":{"type":"text_delta","text":"d"}}), Some("d")),
            (json!({"type":"response.output_text.delta","delta":"e"}), Some("e")),
            (json!({"message":{"content":"f"}}), Some("f")),
            (json!({"choices":[]}), None),
        ];
        for (frame, expected) in cases {
            assert_eq!(delta_text(&frame).as_deref(), expected, "{frame}");
        }
    }
}
