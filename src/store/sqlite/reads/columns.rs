//! Columns of rows that are shown. One that cannot be decoded (a damaged file, a newer release's word) reads as empty and
//! is logged, so that it hides neither the rest of its row nor its neighbours. What a worker acts upon is not read here.

use crate::store::sqlite::tx::at;
use crate::store::{Fence, HoldId, JobId, LaneKey, Pause, Result, ScopeKey, SendKey};
use sqlx::sqlite::SqliteRow;
use uuid::Uuid;

fn or<T>(read: Result<T>, index: usize, empty: T) -> T {
    read.unwrap_or_else(|error| {
        tracing::warn!(%error, column = index, "a damaged column was read as empty");
        empty
    })
}

pub(super) fn text(row: &SqliteRow, index: usize) -> String {
    or(at(row, index), index, String::new())
}

pub(super) fn text_opt(row: &SqliteRow, index: usize) -> Option<String> {
    or(at(row, index), index, Some(String::new()))
}

pub(super) fn whole(row: &SqliteRow, index: usize) -> i64 {
    or(at(row, index), index, 0)
}

pub(super) fn whole_opt(row: &SqliteRow, index: usize) -> Option<i64> {
    or(at(row, index), index, None)
}

/// A number of a narrower type; one that is out of its range reads as `None`.
fn narrow<T: TryFrom<i64>>(wide: i64, index: usize) -> Option<T> {
    let read = T::try_from(wide).ok();
    if read.is_none() {
        tracing::warn!(column = index, "a number out of range was read as empty");
    }
    read
}

pub(super) fn number<T: TryFrom<i64> + Default>(row: &SqliteRow, index: usize) -> T {
    narrow(whole(row, index), index).unwrap_or_default()
}

pub(super) fn number_opt<T: TryFrom<i64>>(row: &SqliteRow, index: usize) -> Option<T> {
    whole_opt(row, index).and_then(|wide| narrow(wide, index))
}

/// The bytes of an id, whatever their number.
pub(super) fn bytes(row: &SqliteRow, index: usize) -> Vec<u8> {
    or(at(row, index), index, Vec::new())
}

pub(super) fn uuid(row: &SqliteRow, index: usize) -> Option<Uuid> {
    let bytes: Option<&[u8]> = or(at(row, index), index, None);
    bytes.and_then(|bytes| {
        let read = Uuid::from_slice(bytes).ok();
        if read.is_none() {
            tracing::warn!(column = index, "a damaged id was read as empty");
        }
        read
    })
}

pub(super) fn job(row: &SqliteRow, index: usize) -> JobId {
    JobId(uuid(row, index).unwrap_or_default())
}

pub(super) fn hold(row: &SqliteRow, index: usize) -> HoldId {
    HoldId(uuid(row, index).unwrap_or_default())
}

/// Three columns from `first` on: job, fence, n.
pub(super) fn send_key(row: &SqliteRow, first: usize) -> Option<SendKey> {
    let job_id = JobId(uuid(row, first)?);
    Some(SendKey { job_id, fence: Fence(whole_opt(row, first + 1)?), n: number_opt(row, first + 2)? })
}

/// Three columns from `first` on: since when, by whom, why.
pub(super) fn pause(row: &SqliteRow, first: usize) -> Option<Pause> {
    let since_ms = whole_opt(row, first)?;
    Some(Pause { since_ms, by: text_opt(row, first + 1).unwrap_or_default(), reason: text_opt(row, first + 2) })
}

/// Five columns from `first` on: queue, tenant, provider, account, model.
pub(super) fn lane(row: &SqliteRow, first: usize) -> LaneKey {
    LaneKey { queue: text(row, first), tenant: text(row, first + 1), scope: scope(row, first + 2) }
}

/// Three columns from `first` on: provider, account, model.
pub(super) fn scope(row: &SqliteRow, first: usize) -> ScopeKey {
    ScopeKey { provider: text(row, first), account: text(row, first + 1), model: text(row, first + 2) }
}
