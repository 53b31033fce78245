//! Candidates for a reset: where each was read, what it said, and whether it stands.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    Header,
    Body,
}

impl SourceKind {
    /// The stored word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Body => "body",
        }
    }
}

/// Where a reset was read: a lower-case header name, a JSON pointer into the body as it stood on the wire (two joined
/// by `#` where JSON stood in text), or `text` for a plain-text body.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Source {
    pub kind: SourceKind,
    pub name: String,
}

/// What a refusal counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    Requests,
    Tokens,
    MonthlyUsage,
}

impl LimitKind {
    /// The stored word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::MonthlyUsage => "monthly_usage",
        }
    }
}

/// What became of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Selected,
    /// It stands, but ends before the selected one.
    Earlier,
    NotExhausted,
    OtherKind,
    Malformed,
    Past,
    Implausible,
}

impl Verdict {
    /// The stored word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Selected => "selected",
            Self::Earlier => "earlier",
            Self::NotExhausted => "not_exhausted",
            Self::OtherKind => "other_kind",
            Self::Malformed => "malformed",
            Self::Past => "past",
            Self::Implausible => "implausible",
        }
    }
}

/// One candidate for a reset, kept beside the record whatever became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    pub source: SourceKind,
    pub name: String,
    /// The value as received, at most 64 characters, kept only where it fits the grammar of a number, duration or date.
    pub raw: Option<String>,
    /// The instant named, in UTC Unix milliseconds, on the clock of whoever named it.
    pub at_ms: Option<i64>,
    pub kind: Option<LimitKind>,
    /// The matching remaining figure, where the window states one.
    pub remaining: Option<String>,
    pub verdict: Verdict,
    /// Why, in one short phrase of our own.
    pub why: String,
}
