//! What this worker leaves alone for a while: scopes whose jobs name a provider entry that its configuration lacks
//! (another worker may have it, while a fleet is given a new configuration), and all of them where this machine has run
//! out of files or memory. Neither is a job's fault: their turns go back unsent, and count for nothing.

use crate::store::ScopeKey;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

/// How long a scope is left alone, in milliseconds. Entries of one identity and account share their scopes: some of its
/// jobs may name an entry that is known here.
const SCOPE_MS: i64 = 30_000;
/// How long nothing is claimed once the machine is out of resources, in milliseconds: calls in hand end and free theirs.
const EXHAUSTED_MS: i64 = 1_000;

#[derive(Default)]
pub(super) struct Aside {
    scopes: Mutex<HashMap<ScopeKey, i64>>,
    paused_until_ms: AtomicI64,
}

impl Aside {
    /// Leaves a scope alone. Whether it was not left alone before.
    pub(super) fn leave(&self, scope: &ScopeKey, now_ms: i64) -> bool {
        let mut scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        let before_ms = scopes.insert(scope.clone(), now_ms.saturating_add(SCOPE_MS));
        before_ms.is_none_or(|until_ms| until_ms <= now_ms)
    }

    /// The scopes to claim nothing of.
    pub(super) fn left(&self, now_ms: i64) -> Vec<ScopeKey> {
        let scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        scopes.iter().filter(|(_, until_ms)| **until_ms > now_ms).map(|(scope, _)| scope.clone()).collect()
    }

    /// Claims nothing at all for a moment. Whether it was not so before.
    pub(super) fn pause(&self, now_ms: i64) -> bool {
        let until_ms = now_ms.saturating_add(EXHAUSTED_MS);
        self.paused_until_ms.fetch_max(until_ms, Ordering::AcqRel) <= now_ms
    }

    /// When claims may go on; past, unless they are paused.
    pub(super) fn paused_until_ms(&self) -> i64 {
        self.paused_until_ms.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_left_alone_for_a_while_and_a_pause_is_no_longer_than_its_last_reason() {
        let aside = Aside::default();
        let scope = ScopeKey { provider: "p".into(), account: "a".into(), model: "m".into() };
        assert!(aside.leave(&scope, 1_000));
        assert!(!aside.leave(&scope, 2_000), "said once");
        assert_eq!(aside.left(2_000 + SCOPE_MS - 1), std::slice::from_ref(&scope));
        assert!(aside.left(2_000 + SCOPE_MS).is_empty());
        assert!(aside.leave(&scope, 2_000 + SCOPE_MS));
        assert!(aside.paused_until_ms() <= 0);
        assert!(aside.pause(5_000));
        assert!(!aside.pause(5_500));
        assert_eq!(aside.paused_until_ms(), 5_500 + EXHAUSTED_MS);
    }
}
