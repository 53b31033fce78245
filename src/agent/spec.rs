//! A job as submitted, read and validated: every member has an effect or is refused by its place.

pub(super) mod chat;
mod raw;

use super::limits;
use super::read::{Members, flag, line, name, tree, whole, word};
use crate::duration;
use crate::provider::{ChatParams, Message};
use crate::recovery::{Delivery, OnTruncated};
use serde::Deserialize;
use serde_json::Value;

/// A validated job spec (`product.md` §3). What this release does not support was refused by name.
#[derive(Clone, Debug)]
pub struct JobSpec {
    pub model: String,
    /// The provider entry; `None`: the only one configured.
    pub provider: Option<String>,
    pub body: Body,
    pub queue: String,
    pub tenant: Option<String>,
    /// −100..=100.
    pub priority: i16,
    pub idempotency_key: Option<String>,
    pub labels: Vec<(String, String)>,
    pub stream: bool,
    pub max_turns: u32,
    /// From acceptance on, while it waits, too.
    pub deadline: Option<When>,
    pub not_before: Option<When>,
    pub truncation: Truncation,
    /// A recovery policy's name; `None`: the provider entry's.
    pub policy: Option<String>,
    pub delivery: Delivery,
    /// Bounds one execution; `None`: not bounded.
    pub turn_timeout_ms: Option<i64>,
}

#[derive(Clone, Debug)]
pub enum Body {
    Chat {
        system: Option<String>,
        messages: Vec<Message>,
        options: Box<ChatParams>,
    },
    /// `body` is byte for byte what was submitted.
    Raw {
        path: String,
        body: String,
    },
}

impl Body {
    /// The same, with nothing said in it yet.
    pub(super) fn without_messages(self) -> Self {
        match self {
            Self::Chat { system, messages: _, options } => Self::Chat { system, messages: Vec::new(), options },
            raw @ Self::Raw { .. } => raw,
        }
    }
}

/// A duration from acceptance, or an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    InMs(i64),
    AtMs(i64),
}

impl When {
    /// The instant, where the job is accepted at `now_ms`.
    #[must_use]
    pub fn at_ms(self, now_ms: i64) -> i64 {
        match self {
            Self::InMs(in_ms) => now_ms.saturating_add(in_ms),
            Self::AtMs(at_ms) => at_ms,
        }
    }
}

/// What becomes of an answer cut by a cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation(pub OnTruncated);

/// What is wrong with a spec: the member (a JSON pointer, or a line and column for broken JSON) and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Deserialize)]
#[error("{at}: {problem}")]
pub struct SpecError {
    pub at: String,
    pub problem: String,
}

impl SpecError {
    #[must_use]
    pub fn new(at: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { at: at.into(), problem: problem.into() }
    }
}

const KNOWN: [&str; 20] = [
    "model",
    "provider",
    "input",
    "messages",
    "system",
    "raw",
    "options",
    "queue",
    "tenant",
    "priority",
    "idempotency_key",
    "labels",
    "stream",
    "max_turns",
    "deadline",
    "not_before",
    "on_truncated",
    "policy",
    "delivery",
    "turn_timeout",
];
const UNSUPPORTED: [&str; 3] = ["tools", "webhook", "max_total_tokens"];

/// What the configuration takes for the name of a queue, an entry or a policy.
const NAME_MARKS: &str = "_.-";
const TENANT_MARKS: &str = "_.:/@-";

/// The JSON of a spec of a size that is taken.
fn tree_of(text: &str) -> Result<Value, SpecError> {
    if text.len() > limits::JOB_BYTES {
        let problem = format!("the job has {} bytes; at most {} are taken", text.len(), limits::JOB_BYTES);
        return Err(SpecError::new("/", problem));
    }
    tree(text)
}

impl JobSpec {
    /// Reads and validates one job.
    ///
    /// # Errors
    /// The first thing that is wrong, by its place.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        Self::read(tree_of(text)?, text)
    }

    /// The same, with a digest of the canonical spec, its idempotency key left out.
    pub(crate) fn parse_with_digest(text: &str) -> Result<(Self, String), SpecError> {
        let value = tree_of(text)?;
        let digest = super::digest::of(&value);
        Ok((Self::read(value, text)?, digest))
    }

    fn read(value: Value, text: &str) -> Result<Self, SpecError> {
        let mut job = Members::of(value, "")?;
        job.check(&KNOWN, &UNSUPPORTED)?;
        let is_raw = job.has("raw");
        let given_model = job.take_with("model", |value, at| line(value, at, limits::MODEL_BYTES))?;
        let (model, body) =
            if is_raw { raw::read(&mut job, given_model, text)? } else { chat::read(&mut job, given_model)? };
        let stream = job.read("stream", flag)?.unwrap_or(true);
        let max_turns = job.read("max_turns", max_turns)?.unwrap_or(50);
        let named = |value, at: &str| name(value, at, limits::NAME_BYTES, NAME_MARKS);
        Ok(Self {
            model,
            provider: job.take_with("provider", named)?,
            truncation: Truncation(job.read("on_truncated", on_truncated)?.unwrap_or_else(|| by_default(&body))),
            body,
            queue: job.take_with("queue", named)?.unwrap_or_else(|| "default".to_owned()),
            tenant: job.take_with("tenant", |value, at| name(value, at, limits::TENANT_BYTES, TENANT_MARKS))?,
            priority: job.read("priority", priority)?.unwrap_or(0),
            idempotency_key: job.take_with("idempotency_key", |value, at| line(value, at, limits::KEY_BYTES))?,
            labels: job.take_with("labels", labels)?.unwrap_or_default(),
            stream,
            max_turns,
            deadline: job.read("deadline", |value, at| when(value, at, 1))?,
            not_before: job.read("not_before", |value, at| when(value, at, 0))?,
            policy: job.take_with("policy", named)?,
            delivery: job.read("delivery", delivery)?.unwrap_or_default(),
            turn_timeout_ms: job.read("turn_timeout", |value, at| duration_ms(value, at, 1))?,
        })
    }

    #[must_use]
    pub fn on_truncated(&self) -> OnTruncated {
        self.truncation.0
    }

    /// Whether the answer was promised a shape, so that half of it is worth nothing.
    #[must_use]
    pub fn is_structured(&self) -> bool {
        match &self.body {
            Body::Chat { options, .. } => chat::is_structured(options),
            Body::Raw { .. } => false,
        }
    }
}

/// Contract §6: who set a cap knows that it may cut; a raw answer cannot be continued.
fn by_default(body: &Body) -> OnTruncated {
    match body {
        Body::Chat { options, .. } if chat::is_capped(options) => OnTruncated::Accept,
        Body::Chat { .. } => OnTruncated::Continue,
        Body::Raw { .. } => OnTruncated::Accept,
    }
}

fn on_truncated(value: &Value, at: &str) -> Result<OnTruncated, SpecError> {
    let words = [("continue", OnTruncated::Continue), ("accept", OnTruncated::Accept), ("fail", OnTruncated::Fail)];
    word(value, at, &words)
}

fn delivery(value: &Value, at: &str) -> Result<Delivery, SpecError> {
    let words = [("at_least_once", Delivery::AtLeastOnce), ("at_most_once", Delivery::AtMostOnce)];
    word(value, at, &words)
}

fn max_turns(value: &Value, at: &str) -> Result<u32, SpecError> {
    let number = whole(value, at, 1..=i64::from(limits::MAX_TURNS))?;
    u32::try_from(number).map_err(|_| SpecError::new(at, "is too large"))
}

fn priority(value: &Value, at: &str) -> Result<i16, SpecError> {
    let most = i64::from(limits::PRIORITY);
    let number = whole(value, at, -most..=most)?;
    i16::try_from(number).map_err(|_| SpecError::new(at, "is too large"))
}

fn labels(value: Value, at: &str) -> Result<Vec<(String, String)>, SpecError> {
    let Value::Object(members) = value else { return Err(SpecError::new(at, "must be an object of texts")) };
    if members.len() > limits::LABELS {
        return Err(SpecError::new(at, format!("has {} labels; at most {} are taken", members.len(), limits::LABELS)));
    }
    let read = |(key, value): (String, Value)| {
        let key = name(Value::String(key), at, limits::LABEL_KEY_BYTES, NAME_MARKS)
            .map_err(|error| SpecError::new(at, format!("has a key that {}", error.problem)))?;
        let at = format!("{at}/{key}");
        match value {
            Value::String(text) if text.len() <= limits::LABEL_VALUE_BYTES => Ok((key, text)),
            Value::String(_) => {
                Err(SpecError::new(at, format!("must have at most {} bytes", limits::LABEL_VALUE_BYTES)))
            }
            _ => Err(SpecError::new(at, "must be a text")),
        }
    };
    members.into_iter().map(read).collect()
}

fn duration_ms(value: &Value, at: &str, least_ms: i64) -> Result<i64, SpecError> {
    let text = value.as_str().ok_or_else(|| SpecError::new(at, "must be a text such as `1h30m`"))?;
    let ms = duration::parse_ms(text).map_err(|error| SpecError::new(at, error.to_string()))?;
    if ms < least_ms {
        return Err(SpecError::new(at, "must be longer than nothing"));
    }
    if ms > limits::AHEAD_MS {
        return Err(SpecError::new(at, format!("is longer than {}", duration::write(limits::AHEAD_MS))));
    }
    Ok(ms)
}

fn when(value: &Value, at: &str, least_ms: i64) -> Result<When, SpecError> {
    let text = value.as_str().unwrap_or_default();
    // An instant of RFC 3339 has a `T` (or `t`, or a blank) after its date; no duration has any of them.
    if text.contains(['T', 't', ' ']) {
        let instant: jiff::Timestamp = text.parse().map_err(|_| {
            SpecError::new(
                at,
                "is no RFC 3339 instant, such as `2026-12-01T09:00:00Z`, nor a duration, such as `1h30m`",
            )
        })?;
        return Ok(When::AtMs(instant.as_millisecond()));
    }
    match value {
        Value::String(_) => duration_ms(value, at, least_ms).map(When::InMs),
        _ => Err(SpecError::new(at, "must be a text: a duration such as `1h30m`, or an RFC 3339 instant")),
    }
}

#[cfg(test)]
mod tests;
