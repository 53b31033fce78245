//! The numbers of scopes and lanes, remembered by their names. They never change and never go; what is remembered of a
//! database is forgotten with the connection, because another one (a restored backup) may answer the next.

use crate::store::{LaneKey, ScopeKey};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    generation: u64,
    lanes: HashMap<LaneKey, i64>,
    scopes: HashMap<ScopeKey, i64>,
}

/// Beyond so many names the memory starts anew.
const MOST: usize = 100_000;

impl Cache {
    fn with<T>(&self, look: impl FnOnce(&mut Known) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Forgets what was learned before the connections of `generation`.
    pub fn meet(&self, generation: u64) {
        self.with(|known| {
            if known.generation != generation {
                *known = Known { generation, ..Known::default() };
            }
        });
    }

    pub fn forget(&self) {
        self.with(|known| *known = Known { generation: known.generation, ..Known::default() });
    }

    pub fn lane(&self, key: &LaneKey) -> Option<i64> {
        self.with(|known| known.lanes.get(key).copied())
    }

    pub fn scope(&self, key: &ScopeKey) -> Option<i64> {
        self.with(|known| known.scopes.get(key).copied())
    }

    pub fn learn_lane(&self, key: LaneKey, lane_id: i64) {
        self.with(|known| {
            if known.lanes.len() >= MOST {
                known.lanes.clear();
            }
            known.lanes.insert(key, lane_id);
        });
    }

    pub fn learn_scope(&self, key: ScopeKey, scope_id: i64) {
        self.with(|known| {
            if known.scopes.len() >= MOST {
                known.scopes.clear();
            }
            known.scopes.insert(key, scope_id);
        });
    }
}
