//! What was counted, as documents.

use super::super::ledger::{Counts, LimitStats, Log, LogEntry, RuleStats, ScopeStats, Stats};
use super::{By, Core};

/// The version of the stats and log documents.
const SCHEMA_VERSION: u32 = 1;

impl Core {
    pub(in crate::sim) fn stats(&self, now_ms: i64) -> Stats {
        let mut totals = Counts::default();
        for scope in &self.scopes {
            totals.add(&scope.counts);
        }
        let scopes = self.scopes.iter().map(|scope| ScopeStats {
            key: self.keys[scope.key].label.to_string(),
            model: scope.model.to_string(),
            counts: scope.counts,
        });
        let limits = self.scenario.limits.iter().zip(&self.limits);
        let rules = self.scenario.rules.iter().zip(&self.rules);
        Stats {
            schema_version: SCHEMA_VERSION,
            scenario: self.scenario.name.clone(),
            seed: self.scenario.seed,
            started_ms: self.started_ms,
            now_ms,
            totals,
            scopes: scopes.collect(),
            limits: limits
                .map(|(limit, state)| LimitStats { name: limit.name.clone(), refused: state.refused })
                .collect(),
            rules: rules
                .map(|(rule, state)| RuleStats { name: rule.name.clone(), seen: state.seen, taken: state.taken })
                .collect(),
        }
    }

    pub(in crate::sim) fn log(&self, since: u64, limit: usize) -> Log {
        let (kept, lost) = self.log.after(since, limit);
        let entries: Vec<_> = kept
            .map(|(n, entry)| {
                let scope = &self.scopes[entry.scope];
                LogEntry {
                    n,
                    at_ms: entry.at_ms,
                    key: self.keys[scope.key].label.to_string(),
                    model: scope.model.to_string(),
                    question: format!("{:016x}", entry.question),
                    outcome: entry.outcome,
                    status: entry.status,
                    early: entry.judged.early,
                    doomed: entry.judged.doomed,
                    concurrent: entry.concurrent,
                    by: entry.by.map(|by| match by {
                        By::Rule(nth) => self.scenario.rules[nth].name.clone(),
                        By::Limit(nth) => self.scenario.limits[nth].name.clone(),
                    }),
                }
            })
            .collect();
        let next_since = entries.last().map_or_else(|| since.min(self.log.last()), |entry| entry.n);
        Log { schema_version: SCHEMA_VERSION, entries, next_since, lost }
    }
}
