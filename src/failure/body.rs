//! An error body, normalised: every envelope of the contract opened to a bounded depth, and for everything found the
//! JSON pointer under which it stood on the wire.
//!
//! Nothing is judged here. [`Body::open`] yields documents from the outermost to the innermost; each holds nodes (the
//! objects that may carry an error's members) and the error's own messages.

use super::frame::sse_line;
use super::message;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// How many envelopes are opened, one inside the other.
const MAX_DEPTH: usize = 6;
/// How many documents one body may unfold to.
const MAX_DOCUMENTS: usize = 12;
/// A longer text is not searched for JSON inside it, in bytes.
const MAX_TEXT: usize = 256 * 1024;
/// The objects of a document that may carry an error's members, in the order in which rules look at them.
const NODES: [&str; 18] = [
    "",
    "/error",
    "/error/innererror",
    "/error/provider_specific_fields/innererror",
    "/provider_specific_fields/innererror",
    "/error/metadata",
    "/error/error",
    "/response/error",
    "/response",
    "/choices/0/error",
    "/choices/0/error/metadata",
    "/errors/0",
    "/error/errors/0",
    "/detail",
    "/Response/Error",
    "/base_resp",
    "/header",
    "/output",
];
/// Members that hold an error's sentence, from the vaguest to the error's own.
const MESSAGES: [&str; 9] =
    ["title", "error", "detail", "Message", "status_msg", "errorMessage", "error_msg", "msg", "message"];

/// One document: the body itself, or JSON that stood in a text of the one around it.
pub(super) struct Document<'a> {
    pub value: Cow<'a, Value>,
    /// What precedes a pointer into `value` to make it one into the wire body.
    pub at: String,
}

/// One sentence or more of a vendor's prose, and where it stood.
pub(super) struct Message {
    pub text: String,
    pub at: String,
}

/// A normalised body.
#[derive(Default)]
pub(super) struct Body<'a> {
    /// From the outermost to the innermost.
    pub documents: Vec<Document<'a>>,
    /// From the innermost to the outermost: the first is the error's own.
    pub messages: Vec<Message>,
    /// A page for people: nothing in it is read.
    pub is_html: bool,
}

impl<'a> Body<'a> {
    pub(super) fn open(body: Option<&'a Value>) -> Self {
        let mut out = Self::default();
        match body {
            None => {}
            Some(Value::String(text)) => out.open_text_body(text),
            Some(value) => out.open_value(Cow::Borrowed(value), String::new(), 0),
        }
        out.messages.reverse();
        out
    }

    /// Every node of every document, outermost first, with its pointer on the wire.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (&Map<String, Value>, String)> {
        self.documents.iter().flat_map(|document| {
            NODES.iter().filter_map(|place| {
                let node = document.value.pointer(place)?.as_object()?;
                Some((node, format!("{}{place}", document.at)))
            })
        })
    }

    /// Every `details` array of every document, with its pointer on the wire.
    pub(super) fn details(&self) -> impl Iterator<Item = (&[Value], String)> {
        self.documents.iter().flat_map(|document| {
            ["/error/details", "/details", "/error/error/details"].iter().filter_map(|place| {
                let details = document.value.pointer(place)?.as_array()?;
                Some((details.get(..details.len().min(32))?, format!("{}{place}", document.at)))
            })
        })
    }

    fn open_text_body(&mut self, text: &'a str) {
        if is_html(text) {
            self.is_html = true;
            return;
        }
        // One SSE line is framing, not a text around the body: its pointers stand as they are.
        if let Some(value) = sse_line(text).and_then(parse) {
            self.open_value(Cow::Owned(value), String::new(), 0);
            return;
        }
        self.open_text(text, "text".into(), 0);
    }

    /// A text that may be JSON, hold JSON behind a relay's prefix, or be prose.
    fn open_text(&mut self, text: &str, at: String, depth: usize) {
        if depth > MAX_DEPTH || self.documents.len() >= MAX_DOCUMENTS {
            return;
        }
        if let Some(value) = parse(text.trim()).or_else(|| embedded(text)) {
            // What stands before the inner document is a message, too: a bracketed code may stand there.
            if let Some(prefix) =
                text.find('{').and_then(|end| text.get(..end)).filter(|prefix| !prefix.trim().is_empty())
            {
                self.messages.push(Message { text: message::cap(prefix).to_owned(), at: at.clone() });
            }
            self.open_value(Cow::Owned(value), format!("{at}#"), depth + 1);
            return;
        }
        if !text.trim().is_empty() && !is_html(text) {
            self.messages.push(Message { text: message::cap(text).to_owned(), at });
        }
    }

    fn open_value(&mut self, value: Cow<'a, Value>, at: String, depth: usize) {
        if depth > MAX_DEPTH || self.documents.len() >= MAX_DOCUMENTS {
            return;
        }
        let Some((value, at)) = unwrap_array(value, at) else { return };
        let inner = inner_texts(&value);
        let objects = inner_objects(&value);
        let prefix = at.clone();
        self.documents.push(Document { value, at });
        for (place, text) in inner {
            self.open_text(&text, format!("{prefix}{place}"), depth + 1);
        }
        for (place, object) in objects {
            self.open_value(Cow::Owned(object), format!("{prefix}{place}"), depth + 1);
        }
    }
}

/// The object itself, or the one element around which a vendor put an array.
fn unwrap_array(value: Cow<'_, Value>, at: String) -> Option<(Cow<'_, Value>, String)> {
    let index = match value.as_ref() {
        Value::Object(_) => return Some((value, at)),
        Value::Array(items) if items.len() == 1 => 0,
        Value::Array(items) => items.iter().take(8).position(|item| item.get("error").is_some())?,
        _ => return None,
    };
    let element = match value {
        Cow::Borrowed(value) => Cow::Borrowed(value.get(index)?),
        Cow::Owned(value) => Cow::Owned(value.get(index)?.clone()),
    };
    element.is_object().then(|| (element, format!("{at}/{index}")))
}

/// The texts of a document's nodes that are messages, or bodies of an upstream, in order of nearness to the error.
fn inner_texts(document: &Value) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for place in NODES {
        let Some(node) = document.pointer(place).and_then(Value::as_object) else { continue };
        for member in MESSAGES {
            if let Some(text) = node.get(member).and_then(Value::as_str) {
                out.push((format!("{place}/{member}"), text.to_owned()));
            }
        }
    }
    // FastAPI's validation errors, and a details text beside a message (GitHub Models).
    for place in ["/detail/0/msg", "/error/metadata/raw", "/error/upstream_message"] {
        if let Some(text) = document.pointer(place).and_then(Value::as_str) {
            out.push((place.into(), text.to_owned()));
        }
    }
    out
}

/// Upstream bodies that a relay carries as objects.
fn inner_objects(document: &Value) -> Vec<(String, Value)> {
    ["/error/metadata/raw", "/error/message", "/message", "/error/upstream", "/upstream_error"]
        .iter()
        .filter_map(|place| {
            let object = document.pointer(place)?;
            (object.is_object() || object.is_array()).then(|| ((*place).into(), object.clone()))
        })
        .collect()
}

/// A text that is a JSON object or array.
fn parse(text: &str) -> Option<Value> {
    if !(text.starts_with('{') || text.starts_with('[')) || text.len() > MAX_TEXT {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// The first JSON object that stands in a text and looks like an error; three places are tried, so that the time stays
/// linear.
fn embedded(text: &str) -> Option<Value> {
    if text.len() > MAX_TEXT {
        return None;
    }
    text.match_indices('{').filter(|(at, _)| opens_object(text, *at)).take(3).find_map(|(at, _)| {
        let rest = text.get(at..)?;
        let first = |text: &str| serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok();
        let value = first(rest).or_else(|| first(&python_as_json(rest)))?;
        looks_like_error(&value).then_some(value)
    })
}

fn opens_object(text: &str, at: usize) -> bool {
    text.get(at + 1..).is_some_and(|rest| rest.trim_start().starts_with(['"', '\'']))
}

/// Python's spelling of an object (`{'error': {'message': "it's", 'code': None}}`), as relays log it, turned into JSON.
fn python_as_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    let mut chars = text.chars();
    let end_word = |word: &mut String, out: &mut String| {
        out.push_str(match word.as_str() {
            "None" => "null",
            "True" => "true",
            "False" => "false",
            other => other,
        });
        word.clear();
    };
    while let Some(c) = chars.next() {
        if c.is_ascii_alphabetic() {
            word.push(c);
            continue;
        }
        end_word(&mut word, &mut out);
        if c != '\'' && c != '"' {
            out.push(c);
            continue;
        }
        out.push('"');
        while let Some(inside) = chars.next() {
            match inside {
                _ if inside == c => break,
                '\\' => match chars.next() {
                    Some('\'') => out.push('\''),
                    Some('x') => out.push_str("\\\\x"),
                    Some(escaped) => out.extend(['\\', escaped]),
                    None => {}
                },
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                other => out.push(other),
            }
        }
        out.push('"');
    }
    end_word(&mut word, &mut out);
    out
}

fn looks_like_error(value: &Value) -> bool {
    let Some(object) = value.as_object() else { return false };
    let has = |name: &str| object.get(name).is_some_and(|member| !member.is_null());
    let message = object.get("message").is_some_and(Value::is_string);
    has("error") || (message && ["code", "type", "status", "http_status", "status_code"].iter().any(|name| has(name)))
}

/// A page for people, by its first bytes.
pub(super) fn is_html(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(256).collect::<String>().to_ascii_lowercase();
    start.starts_with("<!doctype html")
        || start.starts_with("<html")
        || start.starts_with("<head")
        || (start.starts_with('<') && start.contains("<html"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(body: &Value) -> Vec<(String, String)> {
        Body::open(Some(body)).messages.into_iter().map(|message| (message.at, message.text)).collect()
    }

    fn first(body: &Value) -> (String, String) {
        found(body).into_iter().next().unwrap_or_default()
    }

    #[test]
    fn every_envelope_leads_to_the_errors_own_message_and_its_place_on_the_wire() {
        let inner = r#"{"error":{"message":"slow","code":"x"}}"#;
        let cases = [
            (json!({"error": {"message": "slow"}}), "/error/message"),
            (json!({"error": "slow"}), "/error"),
            (json!("slow"), "text"),
            (json!({"message": "slow"}), "/message"),
            (json!({"detail": "slow"}), "/detail"),
            (json!([{"error": {"message": "slow"}}]), "/0/error/message"),
            (json!({"errors": [{"message": "slow"}]}), "/errors/0/message"),
            (json!({"response": {"error": {"message": "slow"}}}), "/response/error/message"),
            (json!({"error": {"message": inner}}), "/error/message#/error/message"),
            (json!({"error": {"message": format!("Upstream failed: {inner}, bye")}}), "/error/message#/error/message"),
            (json!({"error": inner}), "/error#/error/message"),
            (json!({"error": {"message": "outer", "metadata": {"raw": inner}}}), "/error/metadata/raw#/error/message"),
            (
                json!({"error": {"message": "outer", "metadata": {"raw": {"error": {"message": "slow"}}}}}),
                "/error/metadata/raw/error/message",
            ),
            (json!({"error": {"message": "outer", "metadata": {"raw": "slow"}}}), "/error/metadata/raw"),
            (json!(format!("data: {inner}\n\n")), "/error/message"),
            (json!(format!("all failed: {inner}")), "text#/error/message"),
            (
                json!({"error": {"message": "Error code: 429 - {'error': {'message': \"slow\", 'code': None, 'x': 'it\\'s'}}"}}),
                "/error/message#/error/message",
            ),
        ];
        for (body, place) in cases {
            assert_eq!(first(&body), (place.to_owned(), "slow".to_owned()), "{body}");
        }
    }

    #[test]
    fn a_page_is_not_read() {
        let body = json!("<!DOCTYPE html><html><body>try again in 5 seconds</body></html>");
        let open = Body::open(Some(&body));
        assert!(open.is_html && open.messages.is_empty() && open.documents.is_empty());
    }

    #[test]
    fn json_in_text_a_hundred_deep_is_opened_to_a_bound() {
        let mut text = r#"{"error":{"message":"core"}}"#.to_owned();
        for _ in 0..8 {
            text = json!({ "error": { "message": text } }).to_string();
        }
        let body: Value = serde_json::from_str(&text).unwrap();
        let open = Body::open(Some(&body));
        assert!(open.documents.len() <= MAX_DOCUMENTS && !open.documents.is_empty());
    }
}
