//! Resets in the members of a body: the known names at its nodes, Google's details, and headers that a relay copied.

use super::grammar::{self, Unit, Value};
use super::headers::Field;
use super::{Found, Window};
use crate::failure::SourceKind;
use crate::failure::body::Body;
use serde_json::Value as Json;

/// The known members, in the order that decides between equal instants.
const MEMBERS: [(&str, Unit); 7] = [
    ("reset_at_ms", Unit::AtMillis),
    ("reset_at", Unit::Seconds),
    ("resets_at", Unit::Seconds),
    ("resets_in_seconds", Unit::Seconds),
    ("retry_after", Unit::Seconds),
    ("retry_after_seconds", Unit::Seconds),
    ("retry_after_ms", Unit::Millis),
];
/// After those: Google's.
const RETRY_INFO: u8 = 10;
const RESET_DELAY: u8 = 11;
const RESET_TIMESTAMP: u8 = 12;

pub(super) fn find(body: &Body<'_>) -> Vec<Found> {
    let mut out = Vec::new();
    for (node, at) in body.nodes() {
        for (order, (member, unit)) in (0_u8..).zip(MEMBERS) {
            if let Some(text) = node.get(member).and_then(text_of) {
                out.push(found(format!("{at}/{member}"), &text, grammar::any(&text, unit), order));
            }
        }
    }
    for (details, at) in body.details() {
        for (index, detail) in details.iter().enumerate() {
            let kind = detail.get("@type").and_then(Json::as_str).unwrap_or_default();
            let is_retry_info = kind.ends_with("google.rpc.RetryInfo");
            if let Some(text) = detail.get("retryDelay").filter(|_| is_retry_info).and_then(text_of) {
                out.push(found(format!("{at}/{index}/retryDelay"), &text, delay(&text), RETRY_INFO));
            }
            if kind.ends_with("google.rpc.ErrorInfo") {
                let member =
                    |name: &str| detail.get("metadata").and_then(|metadata| metadata.get(name)).and_then(text_of);
                if let Some(text) = member("quotaResetDelay") {
                    out.push(found(format!("{at}/{index}/metadata/quotaResetDelay"), &text, delay(&text), RESET_DELAY));
                }
                if let Some(text) = member("quotaResetTimeStamp") {
                    let value = grammar::any(&text, Unit::Seconds);
                    out.push(found(
                        format!("{at}/{index}/metadata/quotaResetTimeStamp"),
                        &text,
                        value,
                        RESET_TIMESTAMP,
                    ));
                }
            }
        }
    }
    out
}

/// The headers that a relay copied into the body, each value of its own: (lower-case name, value, pointer on the wire).
pub(super) fn copied_headers(body: &Body<'_>) -> Vec<(String, String, String)> {
    const PLACE: &str = "/error/metadata/headers";
    let mut out = Vec::new();
    for document in &body.documents {
        let Some(headers) = document.value.pointer(PLACE).and_then(Json::as_object) else { continue };
        for (name, value) in headers.iter().take(64).filter(|(name, _)| is_token(name)) {
            let values = match value {
                Json::Array(values) => values.as_slice(),
                one => std::slice::from_ref(one),
            };
            for text in values.iter().take(8).filter_map(text_of) {
                out.push((name.to_ascii_lowercase(), text, format!("{}{PLACE}/{name}", document.at)));
            }
        }
    }
    out
}

/// The same, as the header reader takes them.
pub(super) fn fields(copied: &[(String, String, String)]) -> Vec<Field<'_>> {
    copied
        .iter()
        .map(|(name, value, at)| Field { name: name.clone(), value, source: SourceKind::Body, at: at.clone() })
        .collect()
}

/// A duration; a bare number is seconds.
fn delay(text: &str) -> Value {
    grammar::duration(text).map_or_else(|| grammar::number(text, Unit::Seconds), Value::Delta)
}

fn found(name: String, text: &str, value: Value, order: u8) -> Found {
    Found {
        source: SourceKind::Body,
        name,
        raw: grammar::raw(text),
        value,
        kind: None,
        remaining: None,
        window: Window::None,
        order,
    }
}

/// A number or a string; nothing else names an instant.
fn text_of(value: &Json) -> Option<String> {
    match value {
        Json::Number(number) => Some(number.to_string()),
        Json::String(text) if text.len() <= 256 => Some(text.clone()),
        Json::String(_) => Some(String::new()),
        _ => None,
    }
}

/// A header's name: what may go into a pointer unescaped.
fn is_token(name: &str) -> bool {
    name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}
