//! What became of the word that a refusal gave, and how well each source of each vendor keeps it: the one place that says
//! so, whatever the database. Pure: in go the facts that a database found, out come rows.
//!
//! The word of a reset is
//!
//! * `kept`: the first send that tested it was answered, or broke off in the answer;
//! * `refused_again`: that send was refused;
//! * `released`: nothing tested it, because somebody lifted the hold that it opened or dated before that hold's own end;
//! * `cancelled`: nothing tested it, and the job that it refused, or the send that was to test it, was cancelled;
//! * `not_tested`: nothing has tested it. So it stays where a later refusal dated the hold anew: what goes then tests
//!   that one.
//!
//! A word is what is known now: another job's probe may yet test a reset whose own job was cancelled.

use super::{AccuracyRow, HoldId, JobState, ResetRow, SendKey};
use crate::failure::Candidate;
use std::collections::{BTreeMap, BTreeSet};

/// The first send that tested a reset.
#[derive(Clone, Debug)]
pub(super) struct Test {
    pub key: SendKey,
    pub started_ms: i64,
    /// The resume instant that it was sent for; `None`: the reset's own.
    pub promised_ms: Option<i64>,
    /// `answered`, `refused`, `cut` or, where none of those tested it, `cancelled`.
    pub outcome: String,
    /// The reset that it was refused with, as named.
    pub reset_at_ms: Option<i64>,
}

/// The hold that a refusal opened or dated.
#[derive(Clone, Debug)]
pub(super) struct Closed {
    pub hold: HoldId,
    /// `None`: until somebody lifts it.
    pub until_ms: Option<i64>,
    /// How and when it ended.
    pub ended: Option<(String, i64)>,
}

/// What is known of a reset besides its evidence.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// As named.
    pub reset_at_ms: Option<i64>,
    pub resume_at_ms: Option<i64>,
    pub test: Option<Test>,
    /// Where nothing tested it, at least.
    pub closed: Option<Closed>,
    /// The state that its job ended in; where nothing tested it, at least.
    pub job: Option<JobState>,
}

/// What became of a word.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub word: &'static str,
    pub tested_ms: Option<i64>,
    pub lateness_ms: Option<i64>,
    pub again_by_ms: Option<i64>,
    pub test: Option<SendKey>,
}

impl Facts {
    pub fn judge(&self) -> Judged {
        let test = self.test.as_ref().filter(|test| test.outcome != "cancelled");
        let Some(test) = test else {
            let cancelled = self.test.is_some() || self.job == Some(JobState::Cancelled);
            let word = if self.closed.as_ref().is_some_and(released_early) {
                "released"
            } else if cancelled {
                "cancelled"
            } else {
                "not_tested"
            };
            return Judged { word, tested_ms: None, lateness_ms: None, again_by_ms: None, test: None };
        };
        let promised_ms = test.promised_ms.or(self.resume_at_ms);
        let again = test.outcome == "refused";
        let named = test.reset_at_ms.zip(self.reset_at_ms).filter(|_| again);
        Judged {
            word: if again { "refused_again" } else { "kept" },
            tested_ms: Some(test.started_ms),
            lateness_ms: promised_ms.map(|promised_ms| test.started_ms.saturating_sub(promised_ms)),
            again_by_ms: named.map(|(then_ms, before_ms)| then_ms.saturating_sub(before_ms)),
            test: Some(test.key),
        }
    }
}

impl ResetRow {
    /// Says what became of its word.
    pub(super) fn judged(mut self, facts: &Facts) -> Self {
        let judged = facts.judge();
        judged.word.clone_into(&mut self.word);
        self.tested_ms = judged.tested_ms;
        self.lateness_ms = judged.lateness_ms;
        self.again_by_ms = judged.again_by_ms;
        self.test = judged.test;
        self.hold = facts.closed.as_ref().map(|closed| closed.hold);
        self
    }
}

fn released_early(closed: &Closed) -> bool {
    let ended = closed.ended.as_ref();
    ended.is_some_and(|(how, at_ms)| how == "released" && closed.until_ms.is_none_or(|until_ms| *at_ms < until_ms))
}

/// Kind and name of a source, and the provider that it was read from.
type Source = (String, String, String);

/// What a refusal without a named reset was waited for by.
const CURVE: &str = "curve";

/// Adds resets up by source.
#[derive(Debug, Default)]
pub(super) struct Accuracy {
    tallies: BTreeMap<Source, Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    offered: i64,
    selected: i64,
    kept: i64,
    refused_again: i64,
    released: i64,
    not_tested: i64,
    again_ms: Vec<i64>,
    lateness_ms: Vec<i64>,
}

impl Accuracy {
    /// Every reset is one selected of one source (kind and name), or of the curve: the rows' sums are the list's.
    pub fn add(&mut self, provider: &str, selected: Option<(&str, &str)>, candidates: &[Candidate], judged: &Judged) {
        let of = |kind: &str, name: &str| (kind.to_owned(), name.to_owned(), provider.to_owned());
        let (kind, name) = selected.unwrap_or((CURVE, CURVE));
        let mut offered: BTreeSet<(&str, &str)> =
            candidates.iter().map(|one| (one.source.as_str(), one.name.as_str())).collect();
        // Also where its candidates cannot be read.
        offered.insert((kind, name));
        for (kind, name) in offered {
            self.tallies.entry(of(kind, name)).or_default().offered += 1;
        }
        let tally = self.tallies.entry(of(kind, name)).or_default();
        tally.selected += 1;
        match judged.word {
            "kept" => tally.kept += 1,
            "refused_again" => tally.refused_again += 1,
            "released" => tally.released += 1,
            _ => tally.not_tested += 1,
        }
        tally.again_ms.extend(judged.again_by_ms);
        tally.lateness_ms.extend(judged.lateness_ms);
    }

    /// The worst first: by how often it was refused again, then by how often it was relied on.
    pub fn rows(self) -> Vec<AccuracyRow> {
        let mut rows: Vec<AccuracyRow> = self.tallies.into_iter().map(|(source, tally)| tally.row(source)).collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.refused_again, row.selected)));
        rows
    }
}

impl Tally {
    fn row(mut self, (source_kind, source_name, provider): Source) -> AccuracyRow {
        self.again_ms.sort_unstable();
        self.lateness_ms.sort_unstable();
        AccuracyRow {
            source_kind,
            source_name,
            provider,
            offered: self.offered,
            selected: self.selected,
            kept: self.kept,
            refused_again: self.refused_again,
            released: self.released,
            not_tested: self.not_tested,
            again_p50_ms: nearest_rank(&self.again_ms, 50),
            again_p95_ms: nearest_rank(&self.again_ms, 95),
            lateness_p50_ms: nearest_rank(&self.lateness_ms, 50),
            lateness_p99_ms: nearest_rank(&self.lateness_ms, 99),
            lateness_max_ms: self.lateness_ms.last().copied(),
        }
    }
}

/// The smallest value that at least `percent` of them do not exceed.
fn nearest_rank(sorted: &[i64], percent: usize) -> Option<i64> {
    let rank = sorted.len().saturating_mul(percent).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::nearest_rank;

    #[test]
    fn a_quantile_is_a_value_that_was_seen() {
        assert_eq!(nearest_rank(&[], 50), None);
        assert_eq!(nearest_rank(&[7], 50), Some(7));
        assert_eq!(nearest_rank(&[1, 2, 3, 4], 50), Some(2));
        assert_eq!(nearest_rank(&[1, 2, 3, 4, 5], 50), Some(3));
        let hundred: Vec<i64> = (1..=100).collect();
        assert_eq!(nearest_rank(&hundred, 95), Some(95));
        assert_eq!(nearest_rank(&hundred, 99), Some(99));
    }
}
