//! A captured response, as `reprieve classify` takes it: one JSON object, read strictly enough that a misspelt member is
//! named, and a stream of such values, in which a broken one spoils no neighbour.

use serde_json::{Map, Value};
use std::io::{self, BufRead};

/// How the response arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Http,
    /// The body is one frame's JSON, or captured SSE text.
    SseFrame,
    /// The body is the text with which the connection broke.
    Socket,
}

/// One captured response.
#[derive(Clone, Debug, PartialEq)]
pub struct CaptureInput {
    pub transport: Transport,
    pub http_status: Option<u16>,
    /// In the order given, names as given; a repeated header stands once per value.
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// `None`: now.
    pub received_at_ms: Option<i64>,
    pub provider: String,
    pub account: Option<String>,
    pub model: String,
    pub attempts: Option<u32>,
    pub deadline_ms: Option<i64>,
    pub phase: Option<super::Phase>,
    pub spoken: bool,
    pub cancelled: bool,
}

/// Every member that is read.
const MEMBERS: [&str; 13] = [
    "transport",
    "http_status",
    "headers",
    "body",
    "received_at_ms",
    "provider",
    "account",
    "model",
    "attempts",
    "deadline_ms",
    "phase",
    "spoken",
    "cancelled",
];

impl CaptureInput {
    /// Reads one object.
    ///
    /// # Errors
    /// The member that is wrong, and what would be right.
    pub fn parse(value: &Value) -> Result<Self, String> {
        let object = value.as_object().ok_or("a captured response is a JSON object")?;
        if let Some(unknown) = object.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
            let shown: String = unknown.chars().filter(char::is_ascii_graphic).take(40).collect();
            return Err(format!("`{shown}` is not a member of a captured response; those are {}", MEMBERS.join(", ")));
        }
        let given = |name: &str| object.get(name).filter(|value| !value.is_null());
        let transport = match given("transport").map(Value::as_str) {
            None | Some(Some("http")) => Transport::Http,
            Some(Some("sse_frame")) => Transport::SseFrame,
            Some(Some("socket")) => Transport::Socket,
            Some(_) => return Err("`transport` is `http`, `sse_frame` or `socket`".into()),
        };
        let phase = match given("phase").map(Value::as_str) {
            None => None,
            Some(Some("connect")) => Some(super::Phase::Connect),
            Some(Some("headers")) => Some(super::Phase::Headers),
            Some(Some("read")) => Some(super::Phase::Read),
            Some(_) => return Err("`phase` is `connect`, `headers`, `read` or null".into()),
        };
        let http_status = match given("http_status") {
            None => None,
            Some(status) => Some(
                status
                    .as_u64()
                    .and_then(|status| u16::try_from(status).ok())
                    .filter(|status| (100..1000).contains(status))
                    .ok_or("`http_status` is a number from 100 to 999, or null")?,
            ),
        };
        if transport == Transport::Http && http_status.is_none() && !flag(object, "cancelled")? {
            return Err("`http_status` is needed where `transport` is `http`".into());
        }
        Ok(Self {
            transport,
            http_status,
            headers: headers(given("headers"))?,
            body: match given("body") {
                None => String::new(),
                Some(Value::String(text)) => text.clone(),
                // A body given as JSON is taken as its text.
                Some(json) => json.to_string(),
            },
            received_at_ms: integer(given("received_at_ms"), "received_at_ms")?,
            provider: text(given("provider"), "provider")?.unwrap_or_default(),
            account: text(given("account"), "account")?,
            model: text(given("model"), "model")?.unwrap_or_default(),
            attempts: match integer(given("attempts"), "attempts")? {
                None => None,
                Some(count) => Some(u32::try_from(count).map_err(|_| "`attempts` is a count, or null")?),
            },
            deadline_ms: integer(given("deadline_ms"), "deadline_ms")?,
            phase,
            spoken: flag(object, "spoken")?,
            cancelled: flag(object, "cancelled")?,
        })
    }
}

fn headers(value: Option<&Value>) -> Result<Vec<(String, String)>, String> {
    const SHAPE: &str = "`headers` is an object of strings, or arrays of strings";
    let Some(value) = value else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    for (name, value) in value.as_object().ok_or(SHAPE)? {
        let values = match value {
            Value::Array(values) => values.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            match value {
                Value::String(text) => out.push((name.clone(), text.clone())),
                Value::Number(number) => out.push((name.clone(), number.to_string())),
                Value::Null => {}
                _ => return Err(SHAPE.into()),
            }
        }
    }
    Ok(out)
}

fn integer(value: Option<&Value>, name: &str) -> Result<Option<i64>, String> {
    value.map(|value| value.as_i64().ok_or_else(|| format!("`{name}` is a whole number, or null"))).transpose()
}

fn text(value: Option<&Value>, name: &str) -> Result<Option<String>, String> {
    let owned =
        |value: &Value| value.as_str().map(str::to_owned).ok_or_else(|| format!("`{name}` is a string, or null"));
    value.map(owned).transpose()
}

fn flag(object: &Map<String, Value>, name: &str) -> Result<bool, String> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(format!("`{name}` is true or false")),
    }
}

/// A stream of JSON values, one after the other, on one line or many. A value that breaks off or is no JSON is an
/// error of its own; reading goes on at the next line.
pub struct Values<R> {
    input: R,
    /// Bytes not yet part of an emitted value.
    pending: Vec<u8>,
    scan: Scan,
    ended: bool,
    /// Values read from a line that held several.
    ready: std::collections::VecDeque<Result<Value, String>>,
}

/// How deep in brackets a scan stands. Linear: each byte is looked at once.
#[derive(Clone, Copy, Default)]
struct Scan {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Scan {
    fn over(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
            } else {
                match byte {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
            }
        }
    }

    /// Whether a value may end here.
    fn is_level(self) -> bool {
        self.depth == 0 && !self.in_string
    }
}

impl<R: BufRead> Values<R> {
    pub fn new(input: R) -> Self {
        Self {
            input,
            pending: Vec::new(),
            scan: Scan::default(),
            ended: false,
            ready: std::collections::VecDeque::new(),
        }
    }

    /// Takes in one more line; emits what became whole.
    fn take_line(&mut self, line: &[u8]) {
        // A line that is a whole object by itself ends whatever was left open before it: one cut line of JSONL must not
        // swallow the rest.
        if !self.pending.is_empty() && line.starts_with(b"{") && serde_json::from_slice::<Value>(line).is_ok() {
            self.give_up("the value breaks off");
        }
        if self.pending.is_empty() && line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        self.scan.over(line);
        self.pending.extend_from_slice(line);
        if self.scan.is_level() {
            self.emit();
        }
    }

    fn emit(&mut self) {
        let bytes = std::mem::take(&mut self.pending);
        self.scan = Scan::default();
        let mut values = serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>();
        for value in values.by_ref() {
            let read = value.map_err(|error| format!("no JSON: {}", reason(&error)));
            let failed = read.is_err();
            self.ready.push_back(read);
            if failed {
                break;
            }
        }
    }

    fn give_up(&mut self, why: &str) {
        self.pending.clear();
        self.scan = Scan::default();
        self.ready.push_back(Err(format!("no JSON: {why}")));
    }
}

/// `serde_json`'s reason without what it read.
fn reason(error: &serde_json::Error) -> String {
    match error.classify() {
        serde_json::error::Category::Eof => "the value breaks off".into(),
        serde_json::error::Category::Syntax | serde_json::error::Category::Data | serde_json::error::Category::Io => {
            format!("a syntax error at column {}", error.column())
        }
    }
}

impl<R: BufRead> Iterator for Values<R> {
    type Item = io::Result<Result<Value, String>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(value) = self.ready.pop_front() {
                return Some(Ok(value));
            }
            if self.ended {
                return None;
            }
            let mut line = Vec::new();
            match self.input.read_until(b'\n', &mut line) {
                Ok(0) => {
                    self.ended = true;
                    if !self.pending.is_empty() {
                        self.give_up("the value breaks off");
                    }
                }
                Ok(_) => self.take_line(&line),
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Vec<Result<Value, String>> {
        Values::new(text.as_bytes()).map(Result::unwrap).collect()
    }

    #[test]
    fn values_on_one_line_or_many() {
        let values = read("{\"a\":1}\n\n{\"b\":\n  {\"c\": \"}\\\"\"}\n}\n{\"d\":1} {\"e\":2}\n");
        let good: Vec<_> = values.into_iter().map(Result::unwrap).collect();
        assert_eq!(good, [json!({"a":1}), json!({"b":{"c":"}\""}}), json!({"d":1}), json!({"e":2})]);
    }

    #[test]
    fn a_broken_value_spoils_no_neighbour() {
        for text in ["{\"a\":\n{\"b\":2}\n", "nonsense\n{\"b\":2}\n", "{\"a\":1,}\n{\"b\":2}\n", "\u{fffd}\n{\"b\":2}"]
        {
            let values = read(text);
            assert_eq!(values.len(), 2, "{text}");
            assert!(values[0].is_err(), "{text}");
            assert_eq!(values[1], Ok(json!({"b":2})), "{text}");
        }
        assert!(read("{\"a\":1").pop().unwrap().is_err());
    }

    #[test]
    fn a_capture_names_what_is_wrong_with_it() {
        let wrong = |value: Value| CaptureInput::parse(&value).unwrap_err();
        assert!(wrong(json!({"http_stauts": 1})).contains("http_stauts"));
        assert!(wrong(json!({"http_status": 1000})).contains("http_status"));
        assert!(wrong(json!({})).contains("http_status"));
        assert!(wrong(json!({"http_status": 429, "transport": "pigeon"})).contains("transport"));
        assert!(wrong(json!({"http_status": 429, "headers": {"a": {}}})).contains("headers"));
        assert!(wrong(json!([1])).contains("object"));
        let read =
            CaptureInput::parse(&json!({"http_status": 429, "headers": {"A": ["1", 2]}, "body": {"x": 1}})).unwrap();
        assert_eq!(read.headers, [("A".into(), "1".into()), ("A".into(), "2".into())]);
        assert_eq!(read.body, r#"{"x":1}"#);
    }
}
