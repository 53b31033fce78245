//! A refusal on its way from the core to its words.

use super::super::ledger::Shut;
use super::super::meter::Refused;
use super::super::refusal::Kind;
use super::super::scenario::{Limit, Refuse};

/// A refusal to be put into words.
#[derive(Clone, Debug)]
pub(in crate::sim) struct Refusing {
    pub refuse: Refuse,
    pub kind: Kind,
    pub limit: u64,
    pub requested: u64,
    pub per_ms: i64,
    /// When it would be answered again; `None`: no reset is known.
    pub true_ms: Option<i64>,
    /// Where it came from, for latency and skew of a rule.
    pub rule: Option<usize>,
}

impl Refusing {
    /// What the refusal makes known, by its true and its named reset.
    pub(in crate::sim) fn shut(&self) -> Shut {
        let named_ms = match &self.refuse.naming {
            Some(conventions) if conventions.is_empty() => None,
            _ => self.named_ms(),
        };
        Shut { named_ms, true_ms: self.true_ms }
    }

    pub(in crate::sim) fn named_ms(&self) -> Option<i64> {
        self.true_ms.map(|true_ms| true_ms.saturating_add(self.refuse.named_off_ms))
    }
}

pub(super) fn scripted(refuse: &Refuse, rule: usize, true_ms: Option<i64>) -> Refusing {
    // A refusal names its limit, and a limit of 0 means another thing: an allowance that was never there.
    let (limit, requested) = match refuse.kind {
        Kind::RateLimitTokens => (30_000, 900),
        Kind::RequestTooLarge => (30_000, 31_538),
        _ => (60, 1),
    };
    let kind = refuse.kind;
    Refusing { kind, refuse: refuse.clone(), limit, requested, per_ms: 60_000, true_ms, rule: Some(rule) }
}

pub(super) fn metered(limit: &Limit, refused: Refused, requested: u64) -> Refusing {
    let (kind, true_ms) = match refused {
        Refused::Until(at_ms) => (limit.refuse.kind, Some(at_ms)),
        Refused::Crowded => (limit.refuse.kind, None),
        Refused::Never => (Kind::RequestTooLarge, None),
    };
    Refusing {
        refuse: limit.refuse.clone(),
        kind,
        limit: limit.size,
        requested,
        per_ms: limit.per_ms,
        true_ms,
        rule: None,
    }
}
