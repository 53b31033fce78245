//! Scopes that this process has seen refused: known here at receipt, before any other worker can read it.
//!
//! The store decides who may send; this only makes turns whose permit is older than a refusal ask it again, instead of
//! sending what could only be refused.

use crate::store::{Grant, ScopeKey};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

#[derive(Default)]
pub(super) struct Closed {
    scopes: Mutex<HashMap<ScopeKey, Refused>>,
}

struct Refused {
    at_ms: i64,
    until_ms: i64,
}

impl Closed {
    pub(super) fn note(&self, scope: &ScopeKey, at_ms: i64, until_ms: i64) {
        let mut scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        scopes.retain(|_, refused| refused.until_ms > at_ms);
        let refused = scopes.entry(scope.clone()).or_insert(Refused { at_ms, until_ms });
        refused.at_ms = refused.at_ms.max(at_ms);
        refused.until_ms = refused.until_ms.max(until_ms);
    }

    /// Whether a permit was overtaken by a refusal of its scope or account.
    pub(super) fn overtook(&self, grant: &Grant, scope: &ScopeKey, now_ms: i64) -> bool {
        let scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        !scopes.is_empty()
            && [scope, &scope.of_account()]
                .iter()
                .filter_map(|scope| scopes.get(*scope))
                .any(|refused| grant.permit_ms <= refused.at_ms && now_ms < refused.until_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_older_permits_are_overtaken_and_only_while_the_refusal_stands() {
        let closed = Closed::default();
        let scope = ScopeKey { provider: "p".into(), account: "a".into(), model: "m".into() };
        let other = ScopeKey { model: "other".into(), ..scope.clone() };
        let grant = |permit_ms| Grant { permit_ms, probe: None, ramping: false, barren: 0 };
        closed.note(&scope, 1_000, 5_000);
        assert!(closed.overtook(&grant(1_000), &scope, 1_001));
        assert!(!closed.overtook(&grant(1_001), &scope, 1_001));
        assert!(!closed.overtook(&grant(1_000), &scope, 5_000));
        assert!(!closed.overtook(&grant(1_000), &other, 1_001));
        closed.note(&scope.of_account(), 2_000, 3_000);
        assert!(closed.overtook(&grant(2_000), &other, 2_500));
        closed.note(&scope, 2_500, 2_600);
        assert!(closed.overtook(&grant(2_500), &scope, 4_999), "a later refusal shortens nothing");
    }
}
