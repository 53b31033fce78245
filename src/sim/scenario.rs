//! What a simulated provider does: how it answers, what it meters, and which faults it plays to whom and when.
//!
//! A scenario is a TOML file (`docs/SIMULATOR.md`); what is wrong with one is named by its line. Here are the checked
//! shapes; [`raw`] reads the file. Nothing here knows of sockets or clocks.

mod deeds;
mod raw;
mod values;

use super::ask::Dialect;
use super::naming::Naming;
use super::refusal::Kind;
use std::fmt;

/// A checked scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: String,
    pub seed: u64,
    /// How long after a refusal was answered requests still count as `concurrent`: they may have been on the wire.
    pub grace_ms: i64,
    pub(super) answer: Manner,
    pub(super) limits: Vec<Limit>,
    pub(super) rules: Vec<Rule>,
}

/// What is wrong with a scenario, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    #[error("{origin}:{line}: {problem}")]
    Invalid { origin: String, line: usize, problem: String },
    #[error("there is no built-in scenario `{name}`; there are: calm, demo, metered")]
    Unknown { name: String },
}

impl Scenario {
    /// Reads a scenario; `origin` is the file's name, for errors.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        raw::parse(text, origin)
    }

    /// One of the scenarios that come with the program: `calm`, `metered`, `demo`.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn builtin(name: &str) -> Result<Self, ScenarioError> {
        let text = match name {
            "calm" => include_str!("../../config/scenarios/calm.toml"),
            "metered" => include_str!("../../config/scenarios/metered.toml"),
            "demo" => include_str!("../../config/scenarios/demo.toml"),
            _ => return Err(ScenarioError::Unknown { name: name.to_owned() }),
        };
        Self::parse(text, &format!("config/scenarios/{name}.toml"))
    }

    /// The same scenario with another seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
}

/// How an answer is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    pub chars: usize,
    /// Characters of one streamed chunk, about.
    pub chunk_chars: usize,
    /// Before the head.
    pub latency_ms: i64,
    /// Before each chunk of text.
    pub chunk_latency_ms: i64,
    /// How far the `Date` header is off.
    pub date_skew_ms: i64,
}

/// Whom a limit or a rule concerns; an empty list is everybody.
#[derive(Clone, Debug, Default)]
pub(super) struct Who {
    pub models: Vec<Pattern>,
    pub keys: Vec<Pattern>,
}

impl Who {
    pub(super) fn concerns(&self, key: &str, model: &str) -> bool {
        let any =
            |patterns: &[Pattern], name: &str| patterns.is_empty() || patterns.iter().any(|one| one.matches(name));
        any(&self.models, model) && any(&self.keys, key)
    }
}

/// A name, or a beginning and an end around one `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    start: String,
    /// `None`: the whole name is `start`.
    end: Option<String>,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        match text.split_once('*') {
            None => Self { start: text.to_owned(), end: None },
            Some((start, end)) => Self { start: start.to_owned(), end: Some(end.to_owned()) },
        }
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        match &self.end {
            None => name == self.start,
            Some(end) => {
                name.len() >= self.start.len() + end.len()
                    && name.starts_with(&self.start)
                    && name.ends_with(end.as_str())
            }
        }
    }
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Count {
    Requests,
    Tokens,
    InFlight,
}

/// Whom a limit counts together, and whom a refusal closes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reach {
    #[default]
    KeyModel,
    Key,
}

/// Where the windows of a fixed window begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Anchor {
    /// With the first request after the last window's end.
    #[default]
    First,
    /// With the start of the simulator (or its reset), and every `per` from there.
    Start,
    /// At the whole multiples of `per` since the epoch, as minutes and UTC days are.
    Clock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Refilled continuously, up to `burst`.
    Bucket {
        burst: u64,
    },
    Window {
        anchor: Anchor,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Limit {
    pub name: String,
    pub who: Who,
    pub count: Count,
    pub size: u64,
    pub per_ms: i64,
    pub shape: Shape,
    pub reach: Reach,
    pub refuse: Refuse,
}

/// How a refusal is put.
#[derive(Clone, Debug)]
pub(super) struct Refuse {
    pub kind: Kind,
    pub status: Option<u16>,
    /// `None`: the dialect of the request.
    pub dialect: Option<Dialect>,
    /// `None`: as the vendor names it.
    pub naming: Option<Vec<Naming>>,
    /// How far the named reset is off from the true one; later where positive.
    pub named_off_ms: i64,
}

#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub name: String,
    pub who: Who,
    pub dialect: Option<Dialect>,
    pub stream: Option<bool>,
    /// Words in the first user message.
    pub contains: Option<String>,
    pub pick: Pick,
    /// In 0..=1, drawn from the seed, the rule and the ordinal.
    pub probability: Option<f64>,
    /// Where `from` and `until` are counted from.
    pub since: Since,
    pub from_ms: i64,
    pub until_ms: Option<i64>,
    pub deed: Deed,
    pub latency_ms: Option<i64>,
    pub chunk_latency_ms: Option<i64>,
    pub date_skew_ms: Option<i64>,
}

/// Where a rule's time begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Since {
    /// The start of the simulator, or its reset.
    #[default]
    Start,
    /// The first request that the rule would concern at any time.
    First,
}

/// Which of the requests that reach a rule it takes; ordinals start at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    All,
    Nth(u64),
    First(u64),
    Every(u64),
}

impl Pick {
    pub(super) fn takes(self, ordinal: u64) -> bool {
        match self {
            Self::All => true,
            Self::Nth(nth) => ordinal == nth,
            Self::First(first) => ordinal <= first,
            Self::Every(every) => ordinal.is_multiple_of(every),
        }
    }
}

/// What a rule does.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    /// With a reset, everything in reach is refused until then.
    Refuse { refuse: Refuse, reset_in_ms: Option<i64>, closes: Option<Reach> },
    /// Verbatim.
    Respond { status: u16, headers: Vec<(http::HeaderName, http::HeaderValue)>, body: bytes::Bytes },
    /// The connection is reset.
    Drop { at: At },
    /// Nothing more comes, for a time or for ever.
    Stall { at: At, for_ms: Option<i64> },
    /// The connection is closed before the body's end.
    Truncate { at: At, how: Framing },
    /// The stream ends in good order, but without a finish.
    End { after_chunks: u64 },
    /// An error inside the answer.
    ErrorFrame { after_chunks: u64, kind: Kind, body: Option<String> },
    /// Bytes that are no UTF-8.
    Garble { after_chunks: u64 },
    Answer {
        chars: Option<usize>,
        max_tokens: Option<u64>,
        finish: Option<String>,
        content_type: Option<http::HeaderValue>,
    },
}

/// How far an answer gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// Not even the head.
    Head,
    /// Bytes of the body.
    Bytes(u64),
    /// Chunks of text.
    Chunks(u64),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Framing {
    #[default]
    Chunked,
    ContentLength,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything_between_a_beginning_and_an_end() {
        assert!(Pattern::new("m").matches("m") && !Pattern::new("m").matches("mm"));
        assert!(Pattern::new("demo-*").matches("demo-") && !Pattern::new("demo-*").matches("demo"));
        assert!(Pattern::new("*-x").matches("a-x") && !Pattern::new("ab*ba").matches("aba"));
    }

    #[test]
    fn ordinals_pick() {
        let taken = |pick: Pick| (1..=6).filter(|ordinal| pick.takes(*ordinal)).collect::<Vec<_>>();
        assert_eq!(taken(Pick::Nth(3)), [3]);
        assert_eq!(taken(Pick::First(2)), [1, 2]);
        assert_eq!(taken(Pick::Every(3)), [3, 6]);
        assert_eq!(taken(Pick::All).len(), 6);
    }

    #[test]
    fn the_built_in_scenarios_are_sound() {
        for name in ["calm", "metered", "demo"] {
            assert_eq!(Scenario::builtin(name).map(|scenario| scenario.name), Ok(name.to_owned()));
        }
        assert!(matches!(Scenario::builtin("nope"), Err(ScenarioError::Unknown { .. })));
    }
}
