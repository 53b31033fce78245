//! What the simulator counts and remembers: outcomes per scope, what came too early, and the latest requests.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How many requests the log remembers.
pub(super) const LOG_ENTRIES: usize = 10_000;
/// How many answered refusals of one scope are told apart.
const MAX_ANSWERED: usize = 64;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Not ended yet.
    InFlight,
    /// Answered in full.
    Completed,
    /// Refused: a rate or an allowance.
    Refused,
    /// Another error response, or one that a scenario gives verbatim.
    Failed,
    /// The connection was reset.
    Dropped,
    /// The answer stalled, broke off, or held an error.
    Faulted,
    /// The client went away first.
    Abandoned,
}

/// Figures of one scope, or of all together. `received` is the sum of `in_flight` and the six ends after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub received: u64,
    pub in_flight: u64,
    pub completed: u64,
    pub refused: u64,
    pub failed: u64,
    pub dropped: u64,
    pub faulted: u64,
    pub abandoned: u64,
    /// Arrived before a reset that an already answered refusal of the scope had named.
    pub early: u64,
    /// Arrived after a refusal of the scope was answered and before its true reset, named or not.
    pub doomed: u64,
    /// Refused, but on its way already when the scope's refusal was answered.
    pub concurrent: u64,
    /// Tokens of the prompts received.
    pub received_tokens: u64,
    /// Tokens of the answers sent, broken ones as far as they got.
    pub sent_tokens: u64,
}

impl Counts {
    pub(super) fn end(&mut self, outcome: Outcome) {
        self.in_flight = self.in_flight.saturating_sub(1);
        *match outcome {
            Outcome::InFlight => &mut self.in_flight,
            Outcome::Completed => &mut self.completed,
            Outcome::Refused => &mut self.refused,
            Outcome::Failed => &mut self.failed,
            Outcome::Dropped => &mut self.dropped,
            Outcome::Faulted => &mut self.faulted,
            Outcome::Abandoned => &mut self.abandoned,
        } += 1;
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.in_flight += other.in_flight;
        self.completed += other.completed;
        self.refused += other.refused;
        self.failed += other.failed;
        self.dropped += other.dropped;
        self.faulted += other.faulted;
        self.abandoned += other.abandoned;
        self.early += other.early;
        self.doomed += other.doomed;
        self.concurrent += other.concurrent;
        self.received_tokens += other.received_tokens;
        self.sent_tokens += other.sent_tokens;
    }
}

/// `GET /_sim/stats`; the schema is in `docs/SIMULATOR.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    pub schema_version: u32,
    pub scenario: String,
    pub seed: u64,
    /// Of the start or the latest reset.
    pub started_ms: i64,
    pub now_ms: i64,
    #[serde(flatten)]
    pub totals: Counts,
    /// In order of first appearance.
    pub scopes: Vec<ScopeStats>,
    pub limits: Vec<LimitStats>,
    pub rules: Vec<RuleStats>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScopeStats {
    /// The key where it begins with `sim-`, else a digest of it: other keys may be somebody's secret.
    pub key: String,
    pub model: String,
    #[serde(flatten)]
    pub counts: Counts,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitStats {
    pub name: String,
    pub refused: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleStats {
    pub name: String,
    /// Requests it concerned.
    pub seen: u64,
    /// Requests it took.
    pub taken: u64,
}

/// One request in `GET /_sim/log`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Counts from 1 since the start or the latest reset.
    pub n: u64,
    /// When its head arrived.
    pub at_ms: i64,
    pub key: String,
    pub model: String,
    /// The first 16 hexadecimal digits of the SHA-256 of the first user message: tells which requests asked the same,
    /// and keeps no prompt.
    pub question: String,
    pub outcome: Outcome,
    /// `None` where the connection was reset before a head.
    pub status: Option<u16>,
    pub early: bool,
    pub doomed: bool,
    pub concurrent: bool,
    /// The rule or limit that decided.
    pub by: Option<String>,
}

/// `GET /_sim/log`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Log {
    pub schema_version: u32,
    pub entries: Vec<LogEntry>,
    /// What to ask `since` next.
    pub next_since: u64,
    /// Entries after `since` that the log no longer remembers.
    pub lost: u64,
}

/// A bounded line of the latest values, counted from 1.
#[derive(Debug)]
pub(super) struct Ring<T> {
    values: VecDeque<T>,
    /// The ordinal of the first value kept.
    first: u64,
}

impl<T> Ring<T> {
    pub(super) fn new() -> Self {
        Self { values: VecDeque::new(), first: 1 }
    }

    /// Adds a value and returns its ordinal.
    pub(super) fn push(&mut self, value: T) -> u64 {
        if self.values.len() == LOG_ENTRIES {
            self.values.pop_front();
            self.first += 1;
        }
        self.values.push_back(value);
        self.last()
    }

    pub(super) fn last(&self) -> u64 {
        self.first + self.values.len() as u64 - 1
    }

    pub(super) fn get_mut(&mut self, ordinal: u64) -> Option<&mut T> {
        let index = ordinal.checked_sub(self.first)?;
        self.values.get_mut(usize::try_from(index).ok()?)
    }

    /// At most `limit` values after `since`, with their ordinals, and how many of those were forgotten.
    pub(super) fn after(&self, since: u64, limit: usize) -> (impl Iterator<Item = (u64, &T)>, u64) {
        let lost = (self.first - 1).saturating_sub(since);
        let skip = usize::try_from((since + 1).saturating_sub(self.first)).unwrap_or(usize::MAX);
        let kept = (self.first..).zip(&self.values).skip(skip).take(limit);
        (kept, lost)
    }
}

/// The instant a request's head arrived, in time and in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub order: u64,
    pub at_ms: i64,
}

/// A refusal that names or has a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shut {
    pub named_ms: Option<i64>,
    pub true_ms: Option<i64>,
}

impl Shut {
    fn until_ms(self) -> Option<i64> {
        self.named_ms.max(self.true_ms)
    }
}

/// What a request is, seen from the refusals before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Judged {
    pub early: bool,
    pub doomed: bool,
    /// A refusal stands, but could not be known yet.
    pub unknowing: bool,
}

/// The refusals of one scope: which were answered when, and until when they stand.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    answered: VecDeque<(Arrival, Shut)>,
    decided_until_ms: Option<i64>,
}

impl Refusals {
    /// A refusal was decided, and is on its way to the client.
    pub(super) fn decided(&mut self, shut: Shut) {
        self.decided_until_ms = self.decided_until_ms.max(shut.until_ms());
    }

    /// A refusal has left.
    pub(super) fn answered(&mut self, at: Arrival, shut: Shut) {
        self.answered.retain(|(_, old)| old.until_ms() > Some(at.at_ms));
        let covered = self.answered.iter().any(|(_, old)| old.named_ms >= shut.named_ms && old.true_ms >= shut.true_ms);
        if covered || shut.until_ms() <= Some(at.at_ms) {
            return;
        }
        if self.answered.len() == MAX_ANSWERED {
            self.answered.pop_back();
        }
        self.answered.push_back((at, shut));
    }

    /// Judges an arrival; refusals answered less than `grace_ms` before it may not have been known to its sender.
    pub(super) fn judge(&self, arrival: Arrival, grace_ms: i64) -> Judged {
        let now_ms = Some(arrival.at_ms);
        let mut judged = Judged { unknowing: self.decided_until_ms > now_ms, ..Judged::default() };
        for (at, shut) in &self.answered {
            if at.order < arrival.order && at.at_ms + grace_ms <= arrival.at_ms {
                judged.early |= shut.named_ms > now_ms;
                judged.doomed |= shut.true_ms > now_ms;
            }
        }
        judged.unknowing &= !judged.early && !judged.doomed;
        judged
    }
}

impl Judged {
    pub(super) fn or(self, other: Self) -> Self {
        let (early, doomed) = (self.early || other.early, self.doomed || other.doomed);
        Self { early, doomed, unknowing: (self.unknowing || other.unknowing) && !early && !doomed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(order: u64, at_ms: i64) -> Arrival {
        Arrival { order, at_ms }
    }

    fn judge(refusals: &Refusals, order: u64, at_ms: i64, grace_ms: i64) -> (bool, bool, bool) {
        let judged = refusals.judge(arrival(order, at_ms), grace_ms);
        (judged.early, judged.doomed, judged.unknowing)
    }

    #[test]
    fn what_was_on_its_way_when_the_refusal_left_is_neither_early_nor_doomed() {
        let mut refusals = Refusals::default();
        let shut = Shut { named_ms: Some(200), true_ms: Some(150) };
        refusals.decided(shut);
        assert_eq!(judge(&refusals, 1, 100, 0), (false, false, true));
        refusals.answered(arrival(2, 100), shut);
        assert_eq!(judge(&refusals, 1, 100, 0), (false, false, true), "it arrived before");
        assert_eq!(judge(&refusals, 3, 100, 0), (true, true, false));
        assert_eq!(judge(&refusals, 3, 120, 50), (false, false, true), "within the grace");
        assert_eq!(judge(&refusals, 3, 150, 50), (true, false, false), "past the true reset, not the named one");
        assert_eq!(judge(&refusals, 3, 200, 0), (false, false, false));
    }

    #[test]
    fn a_later_refusal_counts_from_its_own_answer() {
        let mut refusals = Refusals::default();
        for (order, at_ms, until_ms) in [(1, 50, 100), (2, 95, 200)] {
            let shut = Shut { named_ms: Some(until_ms), true_ms: Some(until_ms) };
            refusals.decided(shut);
            refusals.answered(arrival(order, at_ms), shut);
        }
        assert_eq!(judge(&refusals, 3, 110, 50), (false, false, true));
        assert_eq!(judge(&refusals, 3, 145, 50), (true, true, false));
    }

    #[test]
    fn the_log_forgets_its_oldest_and_says_how_many() {
        let mut ring = Ring::new();
        for value in 1..=LOG_ENTRIES as u64 + 3 {
            assert_eq!(ring.push(value), value);
        }
        let (entries, lost) = ring.after(1, 2);
        assert_eq!(entries.map(|(n, value)| (n, *value)).collect::<Vec<_>>(), [(4, 4), (5, 5)]);
        assert_eq!(lost, 2);
        assert_eq!(ring.after(LOG_ENTRIES as u64 + 3, 10).0.count(), 0);
        assert!(ring.get_mut(3).is_none());
        assert_eq!(ring.get_mut(4), Some(&mut 4));
    }
}
