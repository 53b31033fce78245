//! From our chat call to genai's request and options. What cannot be sent as it was submitted is refused here, by its
//! place in the call: nothing is dropped on the way, and nothing is accepted without effect.

use super::adapter::{Adapter, NamePlace, Wire};
use super::{ChatCall, ChatParams, Message};
use genai::chat::{
    Binary, ChatMessage, ChatOptions, ChatRequest, ChatResponseFormat, ContentPart, JsonSpec, MessageContent,
    ReasoningEffort, ToolChoice,
};
use serde_json::{Map, Value, json};

/// What is wrong with a call: the member, as a JSON pointer into the job, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {problem}")]
pub struct CallError {
    pub at: String,
    pub problem: String,
}

impl CallError {
    fn new(at: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { at: at.into(), problem: problem.into() }
    }
}

/// Members of a request that the call itself writes: `extra_body` must not replace them.
const OURS: [&str; 8] =
    ["model", "stream", "stream_options", "messages", "input", "contents", "system", "systemInstruction"];

/// What genai is asked to send.
pub(super) struct Prepared {
    pub request: ChatRequest,
    pub options: ChatOptions,
}

/// Puts a call into genai's words.
pub(super) fn prepare(call: &ChatCall, adapter: Adapter) -> Result<Prepared, CallError> {
    adapter.check_model(&call.model)?;
    if call.messages.is_empty() {
        return Err(CallError::new("/messages", "must not be empty"));
    }
    let mut request = ChatRequest::default();
    request.system.clone_from(&call.system);
    for (index, one) in call.messages.iter().enumerate() {
        request.messages.push(message(one, &format!("/messages/{index}"), adapter.wire)?);
    }
    Ok(Prepared { request, options: options(call, adapter)? })
}

fn message(message: &Message, at: &str, wire: Wire) -> Result<ChatMessage, CallError> {
    let content = content(&message.content, &format!("{at}/content"), wire)?;
    match message.role.as_str() {
        "system" => Ok(ChatMessage::system(content)),
        "user" => Ok(ChatMessage::user(content)),
        "assistant" => Ok(ChatMessage::assistant(content)),
        "tool" => Err(CallError::new(format!("{at}/role"), "`tool` is not supported by this release")),
        _ => Err(CallError::new(format!("{at}/role"), "must be `system`, `user` or `assistant`")),
    }
}

fn content(content: &Value, at: &str, wire: Wire) -> Result<MessageContent, CallError> {
    match content {
        Value::String(text) => Ok(MessageContent::from_text(text.clone())),
        Value::Array(parts) => {
            let parts = parts.iter().enumerate().map(|(index, one)| part(one, &format!("{at}/{index}"), wire));
            Ok(MessageContent::from_parts(parts.collect::<Result<Vec<_>, _>>()?))
        }
        _ => Err(CallError::new(at, "must be a text or an array of parts")),
    }
}

fn part(part: &Value, at: &str, wire: Wire) -> Result<ContentPart, CallError> {
    let text_at = |pointer: &str| part.pointer(pointer).and_then(Value::as_str);
    match part.get("type").and_then(Value::as_str) {
        Some("text") => match text_at("/text") {
            Some(text) => Ok(ContentPart::Text(text.to_owned())),
            None => Err(CallError::new(format!("{at}/text"), "must be a text")),
        },
        Some("image_url") => {
            let url = text_at("/image_url/url")
                .ok_or_else(|| CallError::new(format!("{at}/image_url/url"), "must be a text"))?;
            image(url, wire).map_err(|problem| CallError::new(format!("{at}/image_url/url"), problem))
        }
        _ => Err(CallError::new(format!("{at}/type"), "must be `text` or `image_url`")),
    }
}

fn image(url: &str, wire: Wire) -> Result<ContentPart, &'static str> {
    let inline = matches!(wire, Wire::OpenAi | Wire::Responses | Wire::Anthropic | Wire::Gemini | Wire::Vertex);
    if let Some(data) = url.strip_prefix("data:") {
        let Some((content_type, base64)) = data.split_once(";base64,") else {
            return Err("must be `data:TYPE;base64,…`, or an https address");
        };
        if !content_type.starts_with("image/") {
            return Err("must be of an `image/…` type");
        }
        if !inline {
            return Err("images are not supported with this adapter");
        }
        return Ok(ContentPart::Binary(Binary::from_base64(content_type, base64, None)));
    }
    // genai drops an address on the other protocols without a word.
    if matches!(wire, Wire::OpenAi | Wire::Responses) && (url.starts_with("https://") || url.starts_with("http://")) {
        return Ok(ContentPart::Binary(Binary::from_url("image/*", url, None)));
    }
    Err("must be `data:TYPE;base64,…` with this adapter")
}

fn options(call: &ChatCall, adapter: Adapter) -> Result<ChatOptions, CallError> {
    let params = &call.options;
    refuse_without_effect(params, &call.model, adapter)?;
    let mut options = ChatOptions {
        temperature: params.temperature,
        top_p: params.top_p,
        max_tokens: params.max_tokens,
        seed: params.seed,
        stop_sequences: stop(params.stop.as_ref())?,
        capture_usage: Some(true),
        capture_tool_calls: Some(true),
        // Not `capture_reasoning_content`: it changes what is asked of the model. Reasoning is gathered from chunks.
        ..ChatOptions::default()
    };
    options.reasoning_effort = match &params.reasoning_effort {
        Some(word) => Some(word.parse().map_err(|_| {
            CallError::new(
                "/options/reasoning_effort",
                "must be none, minimal, low, medium, high, xhigh, max or a number",
            )
        })?),
        // A stated effort of zero adds nothing to the request, and keeps the name whole.
        None => adapter.cuts_in_url(&call.model).then_some(ReasoningEffort::Zero),
    };
    options.tool_choice = params.tool_choice.as_ref().map(tool_choice).transpose()?;

    let mut extra = params.extra_body.clone().unwrap_or_default();
    if let Some(name) = OURS.iter().find(|name| extra.contains_key(**name)) {
        return Err(CallError::new(format!("/options/extra_body/{name}"), "is written by the job itself: remove it"));
    }
    if let Some(format) = &params.response_format {
        if adapter.wire == Wire::OpenAi {
            // Verbatim: genai would rewrite the schema and drop `strict`.
            extra.insert("response_format".into(), format.clone());
        } else {
            options.response_format = response_format(format, adapter.wire)?;
        }
    }
    if adapter.name_place(&call.model) == NamePlace::Body {
        extra.insert("model".into(), json!(call.model));
    }
    options.extra_body = (!extra.is_empty()).then_some(Value::Object(extra));
    Ok(options)
}

/// Refuses what genai would leave out on this adapter.
fn refuse_without_effect(params: &ChatParams, model: &str, adapter: Adapter) -> Result<(), CallError> {
    let wire = adapter.wire;
    let bare = matches!(wire, Wire::Cohere | Wire::Ollama | Wire::Bedrock)
        || (wire == Wire::OpenAi && adapter.name_place(model) == NamePlace::BodyAsIs)
        || (wire == Wire::Vertex && model.starts_with("claude"));
    let dropped = [
        ("extra_body", params.extra_body.as_ref().is_some_and(|extra| !extra.is_empty()) && bare),
        ("seed", params.seed.is_some() && matches!(wire, Wire::Cohere | Wire::Anthropic | Wire::Bedrock)),
        ("reasoning_effort", params.reasoning_effort.is_some() && wire == Wire::Cohere),
        ("response_format", params.response_format.is_some() && matches!(wire, Wire::Cohere | Wire::Bedrock)),
        ("tool_choice", params.tool_choice.is_some() && matches!(wire, Wire::Cohere | Wire::Ollama)),
    ];
    match dropped.iter().find(|(_, dropped)| *dropped) {
        Some((name, _)) => {
            Err(CallError::new(format!("/options/{name}"), "has no effect with this adapter: remove it"))
        }
        None => Ok(()),
    }
}

fn stop(stop: Option<&Value>) -> Result<Vec<String>, CallError> {
    let wrong = || CallError::new("/options/stop", "must be a text or an array of texts");
    match stop {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text.clone()]),
        Some(Value::Array(texts)) => {
            texts.iter().map(|text| text.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

fn tool_choice(choice: &Value) -> Result<ToolChoice, CallError> {
    let name = || choice.pointer("/function/name").or_else(|| choice.get("name")).and_then(Value::as_str);
    match choice.as_str() {
        Some("auto") => Ok(ToolChoice::Auto),
        Some("none") => Ok(ToolChoice::None),
        Some("required") => Ok(ToolChoice::Required),
        Some(_) => Err(CallError::new("/options/tool_choice", "must be auto, none, required or a named function")),
        None => name().map(ToolChoice::tool).ok_or_else(|| {
            CallError::new("/options/tool_choice", r#"must be {"type":"function","function":{"name":…}}"#)
        }),
    }
}

fn response_format(format: &Value, wire: Wire) -> Result<Option<ChatResponseFormat>, CallError> {
    let at = "/options/response_format";
    match format.get("type").and_then(Value::as_str) {
        Some("text") => Ok(None),
        Some("json_object") if wire != Wire::Anthropic => Ok(Some(ChatResponseFormat::JsonMode)),
        Some("json_schema") if wire != Wire::Ollama => {
            let inner = format.get("json_schema").and_then(Value::as_object).unwrap_or(&NO_MEMBERS);
            let (Some(name), Some(schema)) = (inner.get("name").and_then(Value::as_str), inner.get("schema")) else {
                return Err(CallError::new(format!("{at}/json_schema"), "must have a `name` and a `schema`"));
            };
            Ok(Some(ChatResponseFormat::JsonSpec(JsonSpec::new(name, schema.clone()))))
        }
        Some("json_object" | "json_schema") => {
            Err(CallError::new(format!("{at}/type"), "has no effect with this adapter"))
        }
        _ => Err(CallError::new(format!("{at}/type"), "must be `text`, `json_object` or `json_schema`")),
    }
}

static NO_MEMBERS: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
