//! The resets that a refusal names: every candidate with where it was read, what it said and whether it stands, and the
//! one that is waited for.
//!
//! Readers ([`headers`], [`structure`], [`prose`]) only find; [`judge`] gives verdicts and selects. Nothing here reads a
//! clock: the receipt is passed in.

mod date;
mod grammar;
mod headers;
mod judge;
mod prose;
mod structure;

pub(super) use date::zone_named;
pub(super) use judge::{Judged, Question, judge};

use super::{LimitKind, SourceKind};
use grammar::Value;

/// The value `retry-after` of a response, as the record and `strict` see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RetryAfter {
    /// Only a numeric integral value in 0..=30.
    pub short_secs: Option<u64>,
    /// Malformed, an HTTP date or above 30 s.
    pub stops_strict: bool,
}

/// The longest `retry-after` that is recorded, and that `strict` waits for, in seconds.
const SHORT_SECS: u64 = 30;

impl RetryAfter {
    /// Of repeated headers the longest counts, so that their order changes nothing.
    pub(super) fn of(headers: &[(String, String)]) -> Self {
        let mut out = Self::default();
        for (_, value) in headers.iter().filter(|(name, _)| name == "retry-after") {
            let text = value.trim();
            match text.parse::<u64>() {
                Ok(secs) if secs <= SHORT_SECS => out.short_secs = out.short_secs.max(Some(secs)),
                Ok(_) => out.stops_strict = true,
                Err(_) => match grammar::retry_after(text) {
                    Value::Delta(ms) if ms <= i128::from(SHORT_SECS) * 1_000 => {}
                    Value::Sentinel => {}
                    Value::Delta(_) | Value::At(_) | Value::Malformed => out.stops_strict = true,
                },
            }
        }
        if out.stops_strict {
            out.short_secs = None;
        }
        out
    }
}

/// A candidate as it was found, before any verdict.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    source: SourceKind,
    name: String,
    raw: Option<String>,
    value: Value,
    kind: Option<LimitKind>,
    remaining: Option<String>,
    window: Window,
    /// Less is more telling, where two candidates name the same instant.
    order: u8,
}

/// What is known of the window that a candidate belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    /// No window of its own (`retry-after`, a body's member).
    None,
    /// A bucket of requests or tokens, refilled within the minute or hour.
    Rate,
    /// A window of which nothing more is known: unnamed, a day, a month, a plan's.
    Other,
}

/// What a window's own figures say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Exhausted,
    NotExhausted,
    /// Extra usage beside a plan's window that is the one rejected.
    Beside,
    /// A sum over windows of which one is named as rejected.
    Summed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_retry_after_means_to_the_record_and_to_strict() {
        let of = |values: &[&str]| {
            let headers: Vec<_> = values.iter().map(|value| ("retry-after".to_owned(), (*value).to_owned())).collect();
            let read = RetryAfter::of(&headers);
            (read.short_secs, read.stops_strict)
        };
        assert_eq!(of(&[]), (None, false));
        assert_eq!(of(&["0"]), (Some(0), false));
        assert_eq!(of(&["30"]), (Some(30), false));
        assert_eq!(of(&["31"]), (None, true));
        assert_eq!(of(&["0.5"]), (None, false));
        assert_eq!(of(&["soon"]), (None, true));
        assert_eq!(of(&["Tue, 01 Sep 2026 12:00:45 GMT"]), (None, true));
        assert_eq!(of(&["3", "7"]), of(&["7", "3"]));
    }
}
