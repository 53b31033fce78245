//! What can be asked: reads on their own connections, each list paged by a place that no later row can come before.

mod columns;
mod failures;
mod figures;
mod jobs;
mod resets;
mod standing;
mod state;
mod turns;

pub(super) use failures::{failure_counts, failures};
pub(super) use figures::{queues, usage};
pub(super) use jobs::{job, job_ids, jobs, results};
pub(super) use resets::{reset, reset_accuracy, resets};
pub(super) use standing::standing;
pub(super) use state::{cancelled, hold, hold_events, holds, next_due_ms, overview, workers};
pub(super) use turns::{histories, history, turns};

use super::cursor::{self, List};
use crate::store::{Query, Result};

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

/// Before which place, by an instant, a fence and a number, a page begins; without a cursor and an end, before nothing.
fn before(list: List, query: &Query) -> Result<[i64; 3]> {
    let place = query.cursor.as_deref().map_or(Ok([i64::MAX; 3]), |given| cursor::decode_numbers(list, given))?;
    Ok(query.until_ms.map_or(place, |until_ms| place.min([until_ms, i64::MIN, i64::MIN])))
}
