//! Figures out of what a database counted: queues as they are, who takes them, claims of the last minute. Pure: in go
//! the rows that a database found, out come those that are shown, alike whatever the database.

use super::{QueueRow, WorkerRow};
use std::collections::BTreeMap;

pub(super) const HOUR_MS: i64 = 3_600_000;

/// How many ends are counted.
pub(super) const ENDS: i64 = 100_000;

/// Turns of each lane that are looked at for the one that waits longest. Those that rank first have waited longest but for
/// their priorities, and a lane may hold a million.
pub(super) const OLDEST: i64 = 20;

/// How far turns are counted.
pub(super) const COUNTED: i64 = 10_000;

/// No execution has more tokens; a figure beyond it is a fault of whoever reported it, and would drown every sum.
pub(super) const TOKENS: i64 = 1_000_000_000_000;

const MINUTE_MS: i64 = 60_000;

/// Claims of the last whole minute, of a lane that keeps those of its latest one (its number is `minute`) and those of the
/// one before that.
pub(super) fn claims_last_minute(now_ms: i64, minute: i64, claims: u32, claims_before: u32) -> u32 {
    match now_ms.div_euclid(MINUTE_MS).checked_sub(minute) {
        Some(0) => claims_before,
        Some(1) => claims,
        _ => 0,
    }
}

/// A worker that is, or was.
pub(super) struct Known {
    pub worker: WorkerRow,
    pub ended: bool,
}

impl Known {
    fn takes(&self, queue: &str) -> bool {
        self.worker.queues.is_empty() || self.worker.queues.iter().any(|taken| taken == queue)
    }

    fn lives(&self, now_ms: i64) -> bool {
        let WorkerRow { heartbeat_ms, lease_ms, .. } = self.worker;
        !self.ended && heartbeat_ms.saturating_add(lease_ms) > now_ms
    }
}

/// How many live workers take a queue, and when one that does or did was last heard of.
pub(super) fn takers(known: &[Known], queue: &str, now_ms: i64) -> (u32, Option<i64>) {
    let takers = || known.iter().filter(|worker| worker.takes(queue));
    let live = takers().filter(|worker| worker.lives(now_ms)).count();
    let seen_ms = takers().map(|known| known.worker.heartbeat_ms).max();
    (u32::try_from(live).unwrap_or(u32::MAX), seen_ms)
}

/// Queues by name, as they are found.
#[derive(Debug, Default)]
pub(super) struct Queues(BTreeMap<String, QueueRow>);

impl Queues {
    /// `n` turns or jobs of a kind, and when the longest waiting of them became ready.
    pub fn count(&mut self, name: String, kind: &str, n: i64, oldest_ms: Option<i64>) {
        let queue = self.named(name);
        match kind {
            "ready" => queue.ready = n,
            "deferred" => queue.deferred = n,
            "running" => queue.running = n,
            "later" => queue.later = n,
            "paused" => queue.paused_jobs = n,
            "succeeded" => queue.succeeded_1h = n,
            "failed" => queue.failed_1h = n,
            // It is shown because of them, and has no column for them.
            _ => {}
        }
        queue.oldest_ms = [queue.oldest_ms, oldest_ms].into_iter().flatten().min();
    }

    pub fn named(&mut self, name: String) -> &mut QueueRow {
        self.0.entry(name).or_insert_with_key(|name| QueueRow {
            queue: name.clone(),
            paused: None,
            ready: 0,
            oldest_ms: None,
            running: 0,
            deferred: 0,
            later: 0,
            paused_jobs: 0,
            requires_action: 0,
            succeeded_1h: 0,
            failed_1h: 0,
            workers: 0,
        })
    }

    /// All of them, each with how many live workers take it.
    pub fn rows(self, known: &[Known], now_ms: i64) -> Vec<QueueRow> {
        let mut rows: Vec<QueueRow> = self.0.into_values().collect();
        for row in &mut rows {
            row.workers = i64::from(takers(known, &row.queue, now_ms).0);
        }
        rows
    }
}
