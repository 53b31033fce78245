//! The part of a spec that is a conversation: its input or messages, and the options of the call.

use super::super::limits;
use super::super::read::{Members, text, whole};
use super::{Body, SpecError};
use crate::provider::{ChatParams, Message};
use serde_json::{Map, Value, json};

const OPTIONS: [&str; 8] =
    ["temperature", "top_p", "max_tokens", "stop", "seed", "response_format", "reasoning_effort", "extra_body"];
const UNSUPPORTED_OPTIONS: [&str; 1] = ["tool_choice"];

/// What members of `extra_body` would say the same as an option, under any vendor's name for it.
const ALIASES: [(&str, &[&str]); 7] = [
    ("temperature", &["temperature"]),
    ("top_p", &["top_p"]),
    ("max_tokens", &["max_tokens", "max_completion_tokens", "max_output_tokens"]),
    ("stop", &["stop", "stop_sequences"]),
    ("seed", &["seed"]),
    ("response_format", &["response_format"]),
    ("reasoning_effort", &["reasoning_effort"]),
];

/// Members of a request that the job itself writes.
const WRITTEN_BY_JOB: [&str; 8] =
    ["model", "messages", "input", "contents", "system", "systemInstruction", "stream", "stream_options"];

pub(super) fn read(job: &mut Members, model: Option<String>) -> Result<(String, Body), SpecError> {
    let model = model.ok_or_else(|| SpecError::new("/model", "is missing: name the model"))?;
    let messages = match (job.take("input"), job.take("messages")) {
        (Some((value, at)), None) => {
            let input = text(value, &at, limits::JOB_BYTES)?;
            vec![Message { role: "user".to_owned(), content: Value::String(input) }]
        }
        (None, Some((value, at))) => each_message(value, &at, message)?,
        (Some(_), Some(_)) => return Err(SpecError::new("/messages", "stands beside `input`: give one of them")),
        (None, None) => return Err(SpecError::new("/input", "is missing: give `input`, `messages` or `raw`")),
    };
    let system = job.take_with("system", |value, at| text(value, at, limits::JOB_BYTES))?;
    let options = job.take_with("options", options)?.unwrap_or_default();
    Ok((model, Body::Chat { system, messages, options: Box::new(options) }))
}

/// Whether a cap of the job's own may cut the answer.
pub(super) fn is_capped(options: &ChatParams) -> bool {
    options.max_tokens.is_some() || extra_says(options, "max_tokens").is_some()
}

pub(super) fn is_structured(options: &ChatParams) -> bool {
    let format = options.response_format.as_ref().or_else(|| extra_says(options, "response_format"));
    format.is_some_and(|format| format.get("type").and_then(Value::as_str) != Some("text"))
}

fn extra_says<'a>(options: &'a ChatParams, option: &str) -> Option<&'a Value> {
    let extra = options.extra_body.as_ref()?;
    let aliases = ALIASES.iter().find(|(name, _)| *name == option).map(|(_, aliases)| *aliases)?;
    aliases.iter().find_map(|alias| extra.get(*alias)).filter(|value| !value.is_null())
}

/// An array of messages, each read by `read` at its place.
pub(in crate::agent) fn each_message(
    value: Value,
    at: &str,
    read: impl Fn(Value, &str) -> Result<Message, SpecError>,
) -> Result<Vec<Message>, SpecError> {
    let Value::Array(items) = value else { return Err(SpecError::new(at, "must be an array of messages")) };
    if items.is_empty() {
        return Err(SpecError::new(at, "must not be empty"));
    }
    if items.len() > limits::MESSAGES {
        return Err(SpecError::new(
            at,
            format!("has {} messages; at most {} are taken", items.len(), limits::MESSAGES),
        ));
    }
    items.into_iter().enumerate().map(|(index, item)| read(item, &format!("{at}/{index}"))).collect()
}

pub(in crate::agent) fn message(value: Value, at: &str) -> Result<Message, SpecError> {
    let mut members = Members::of(value, at)?;
    members.check(&["role", "content"], &["tool_calls", "tool_call_id"])?;
    let role = members.take("role").and_then(|(role, _)| role.as_str().map(str::to_owned));
    let role = match role.as_deref() {
        Some("tool") => return Err(SpecError::new(format!("{at}/role"), "`tool` is not supported by this release")),
        Some(role @ ("system" | "user" | "assistant")) => role.to_owned(),
        _ => return Err(SpecError::new(format!("{at}/role"), "must be one of: system, user, assistant")),
    };
    let (content, at) = members
        .take("content")
        .ok_or_else(|| SpecError::new(format!("{at}/content"), "is missing: give a text or an array of parts"))?;
    match &content {
        Value::String(_) => {}
        Value::Array(parts) if !parts.is_empty() => {
            for (index, one) in parts.iter().enumerate() {
                part(one, &format!("{at}/{index}"))?;
            }
        }
        _ => return Err(SpecError::new(at, "must be a text or an array of parts")),
    }
    Ok(Message { role, content })
}

fn part(part: &Value, at: &str) -> Result<(), SpecError> {
    let pointer = match part.get("type").and_then(Value::as_str) {
        Some("text") => "/text",
        Some("image_url") => "/image_url/url",
        _ => return Err(SpecError::new(format!("{at}/type"), "must be one of: text, image_url")),
    };
    match part.pointer(pointer) {
        Some(Value::String(_)) => Ok(()),
        _ => Err(SpecError::new(format!("{at}{pointer}"), "must be a text")),
    }
}

fn options(value: Value, at: &str) -> Result<ChatParams, SpecError> {
    let mut given = Members::of(value, at)?;
    given.check(&OPTIONS, &UNSUPPORTED_OPTIONS)?;
    let extra_body = given.take_with("extra_body", |value, at| match value {
        Value::Object(members) => Ok(members),
        _ => Err(SpecError::new(at, "must be an object")),
    })?;
    if let Some(extra) = &extra_body {
        check_extra(extra, &given, &format!("{at}/extra_body"))?;
    }
    Ok(ChatParams {
        temperature: given.read("temperature", |value, at| number(value, at, 0.0, 100.0))?,
        top_p: given.read("top_p", |value, at| number(value, at, 0.0, 1.0))?,
        max_tokens: given.read("max_tokens", |value, at| {
            let number = whole(value, at, 1..=i64::from(u32::MAX))?;
            u32::try_from(number).map_err(|_| SpecError::new(at, "is too large"))
        })?,
        stop: given.take_with("stop", stop)?,
        seed: given.read("seed", |value, at| {
            value.as_u64().ok_or_else(|| SpecError::new(at, "must be a whole number, 0 or more"))
        })?,
        response_format: given.take_with("response_format", response_format)?,
        reasoning_effort: given.take_with("reasoning_effort", |value, at| text(value, at, limits::NAME_BYTES))?,
        tool_choice: None,
        extra_body,
    })
}

/// `extra_body` carries what the options do not cover. What both say, and what the job says itself, is an error: one of
/// the two would be without effect.
fn check_extra(extra: &Map<String, Value>, given: &Members, at: &str) -> Result<(), SpecError> {
    if let Some(name) = WRITTEN_BY_JOB.iter().find(|name| extra.contains_key(**name)) {
        return Err(SpecError::new(format!("{at}/{name}"), "is written by the job itself: remove it"));
    }
    for (option, aliases) in ALIASES {
        if let Some(alias) = aliases.iter().find(|alias| given.has(option) && extra.contains_key(**alias)) {
            let problem = format!("says what the option `{option}` says: give one of them");
            return Err(SpecError::new(format!("{at}/{alias}"), problem));
        }
    }
    Ok(())
}

fn number(value: &Value, at: &str, least: f64, most: f64) -> Result<f64, SpecError> {
    let given = value.as_f64().filter(|number| (least..=most).contains(number));
    given.ok_or_else(|| SpecError::new(at, format!("must be a number from {least} to {most}")))
}

/// One text or several; kept as several.
fn stop(value: Value, at: &str) -> Result<Value, SpecError> {
    let items = match value {
        Value::Array(items) if !items.is_empty() => items,
        one @ Value::String(_) => vec![one],
        _ => return Err(SpecError::new(at, "must be a text or an array of texts")),
    };
    if items.len() > limits::STOPS {
        return Err(SpecError::new(at, format!("has {} texts; at most {} are taken", items.len(), limits::STOPS)));
    }
    let texts = items.into_iter().map(|item| text(item, at, limits::STOP_BYTES));
    Ok(json!(texts.collect::<Result<Vec<_>, _>>()?))
}

fn response_format(value: Value, at: &str) -> Result<Value, SpecError> {
    match value.get("type").and_then(Value::as_str) {
        Some("text" | "json_object") => Ok(value),
        Some("json_schema") if value.pointer("/json_schema/schema").is_some_and(Value::is_object) => Ok(value),
        Some("json_schema") => Err(SpecError::new(format!("{at}/json_schema/schema"), "must be an object")),
        _ => Err(SpecError::new(format!("{at}/type"), "must be one of: text, json_object, json_schema")),
    }
}
