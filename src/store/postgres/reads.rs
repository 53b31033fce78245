//! What can be asked: each list paged by a place that no later row can come before.

mod audit;
mod jobs;
mod state;
mod turns;

pub(super) use audit::{failure_counts, failures, resets};
pub(super) use jobs::{job, job_ids, jobs, results};
pub(super) use state::{cancelled, hold, holds, next_due_ms, overview, workers};
pub(super) use turns::{history, turns};

use super::conn::Stmt;
use crate::store::Query;

/// The most rows that one page may have.
const PAGE: u32 = 1_000;

/// The rows of a page where its size was left open.
const DEFAULT: u32 = 100;

/// The rows of a page.
fn size(query: &Query) -> u32 {
    if query.limit == 0 { DEFAULT } else { query.limit.min(PAGE) }
}

/// One more than the page, to know whether there is another.
fn fetch(query: &Query) -> i64 {
    i64::from(size(query)) + 1
}

/// Cuts the surplus row off, and says whether there was one.
fn cut<T>(rows: &mut Vec<T>, query: &Query) -> bool {
    let size = usize::try_from(size(query)).unwrap_or(usize::MAX);
    let more = rows.len() > size;
    rows.truncate(size);
    more
}

/// Five lists: queues, tenants, providers, accounts, models.
fn of_lanes(stmt: Stmt, query: &Query) -> Stmt {
    stmt.arg(query.queues.as_slice())
        .arg(query.tenants.as_slice())
        .arg(query.providers.as_slice())
        .arg(query.accounts.as_slice())
        .arg(query.models.as_slice())
}

/// Two lists: keys and values.
fn of_labels(stmt: Stmt, query: &Query) -> Stmt {
    let (keys, values): (Vec<&str>, Vec<&str>) =
        query.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).unzip();
    stmt.arg(keys).arg(values)
}
