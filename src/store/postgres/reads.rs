//! What can be asked: each list paged by a place that no later row can come before.

mod failures;
mod figures;
mod jobs;
mod resets;
mod schedules;
mod standing;
mod state;
mod turns;

pub(super) use failures::{failure_counts, failures};
pub(super) use figures::{queues, usage};
pub(super) use jobs::{job, job_ids, jobs, results};
pub(super) use resets::{reset, reset_accuracy, resets};
pub(super) use schedules::{due_schedules, retries, schedules};
pub(super) use standing::standing;
pub(super) use state::{cancelled, hold, hold_events, holds, next_due_ms, overview, workers};
pub(super) use turns::{histories, history, turns};

use super::conn::Stmt;
use super::rows::at;
use crate::store::cursor::{self, List};
use crate::store::{LaneKey, Query, Result, ScopeKey};
use sqlx::postgres::PgRow;

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

fn numbers(statuses: &[u16]) -> Vec<i64> {
    statuses.iter().copied().map(i64::from).collect()
}

/// Before which place, by an instant, a fence and a number, a page begins; without a cursor and an end, before nothing.
fn before(list: List, query: &Query) -> Result<[i64; 3]> {
    let place = query.cursor.as_deref().map_or(Ok([i64::MAX; 3]), |given| cursor::decode_numbers(list, given))?;
    Ok(query.until_ms.map_or(place, |until_ms| place.min([until_ms, i64::MIN, i64::MIN])))
}

/// Five columns from `first` on: queue, tenant, provider, account, model.
fn lane_at(row: &PgRow, first: usize) -> Result<LaneKey> {
    let scope = ScopeKey { provider: at(row, first + 2)?, account: at(row, first + 3)?, model: at(row, first + 4)? };
    Ok(LaneKey { queue: at(row, first)?, tenant: at(row, first + 1)?, scope })
}
