//! Columns as values. Texts come back as they were given; numbers of any width as 64 bits.

use super::escape;
use crate::store::{Error, Fence, HoldId, JobId, Pause, Result, SendKey, WorkerId};
use sqlx::postgres::PgRow;
use sqlx::{Column as _, Row, TypeInfo, ValueRef};
use uuid::Uuid;

/// What a column can be read as.
pub(super) trait Column: Sized {
    fn read(row: &PgRow, index: usize) -> std::result::Result<Self, sqlx::Error>;
}

impl Column for i64 {
    fn read(row: &PgRow, index: usize) -> std::result::Result<Self, sqlx::Error> {
        match row.try_column_type(index)? {
            Width::Two => row.try_get::<i16, _>(index).map(Self::from),
            Width::Four => row.try_get::<i32, _>(index).map(Self::from),
            Width::Eight => row.try_get(index),
        }
    }
}

enum Width {
    Two,
    Four,
    Eight,
}

trait Widths {
    fn try_column_type(&self, index: usize) -> std::result::Result<Width, sqlx::Error>;
}

impl Widths for PgRow {
    fn try_column_type(&self, index: usize) -> std::result::Result<Width, sqlx::Error> {
        Ok(match self.try_column(index)?.type_info().name() {
            "INT2" => Width::Two,
            "INT4" => Width::Four,
            _ => Width::Eight,
        })
    }
}

impl Column for bool {
    fn read(row: &PgRow, index: usize) -> std::result::Result<Self, sqlx::Error> {
        row.try_get(index)
    }
}

impl Column for Uuid {
    fn read(row: &PgRow, index: usize) -> std::result::Result<Self, sqlx::Error> {
        row.try_get(index)
    }
}

impl Column for String {
    fn read(row: &PgRow, index: usize) -> std::result::Result<Self, sqlx::Error> {
        row.try_get(index).map(escape::give)
    }
}

impl Column for Vec<i64> {
    fn read(row: &PgRow, index: usize) -> std::result::Result<Self, sqlx::Error> {
        row.try_get(index)
    }
}

impl<T: Column> Column for Option<T> {
    fn read(row: &PgRow, index: usize) -> std::result::Result<Self, sqlx::Error> {
        if row.try_get_raw(index)?.is_null() { Ok(None) } else { T::read(row, index).map(Some) }
    }
}

/// A column.
pub(super) fn at<T: Column>(row: &PgRow, index: usize) -> Result<T> {
    T::read(row, index).map_err(|e| Error::Undecodable { what: "a column", why: e.to_string() })
}

pub(super) fn job_at(row: &PgRow, index: usize) -> Result<JobId> {
    at(row, index).map(JobId)
}

pub(super) fn job_opt(row: &PgRow, index: usize) -> Result<Option<JobId>> {
    Ok(at::<Option<Uuid>>(row, index)?.map(JobId))
}

pub(super) fn hold_at(row: &PgRow, index: usize) -> Result<HoldId> {
    at(row, index).map(HoldId)
}

pub(super) fn worker_at(row: &PgRow, index: usize) -> Result<WorkerId> {
    at(row, index).map(WorkerId)
}

pub(super) fn fence_at(row: &PgRow, index: usize) -> Result<Fence> {
    at(row, index).map(Fence)
}

/// Three columns that name a send; all of them, or none.
pub(super) fn key_opt(row: &PgRow, index: usize) -> Result<Option<SendKey>> {
    let (job, fence, n) = (job_opt(row, index)?, at::<Option<i64>>(row, index + 1)?, int_opt(row, index + 2)?);
    Ok(match (job, fence, n) {
        (Some(job_id), Some(fence), Some(n)) => Some(SendKey { job_id, fence: Fence(fence), n }),
        _ => None,
    })
}

/// A pause in three columns: since when, by whom, why.
pub(super) fn pause_opt(row: &PgRow, first: usize) -> Result<Option<Pause>> {
    let Some(since_ms) = at(row, first)? else { return Ok(None) };
    let by = at::<Option<String>>(row, first + 1)?.unwrap_or_default();
    Ok(Some(Pause { since_ms, by, reason: at(row, first + 2)? }))
}

/// An integer column that fits a narrower type.
pub(super) fn int<T: TryFrom<i64>>(row: &PgRow, index: usize) -> Result<T> {
    narrow(at(row, index)?)
}

pub(super) fn int_opt<T: TryFrom<i64>>(row: &PgRow, index: usize) -> Result<Option<T>> {
    at::<Option<i64>>(row, index)?.map(narrow).transpose()
}

fn narrow<T: TryFrom<i64>>(wide: i64) -> Result<T> {
    T::try_from(wide).map_err(|_| Error::Undecodable { what: "a number", why: format!("{wide} is out of range") })
}

/// A counter of a turn. One that is out of range reads as the nearest that is in it: a damaged row must stop neither the
/// batch that it stands in nor the rescue of others, and a job whose counter is at its end fails by it.
pub(super) fn counter(row: &PgRow, index: usize) -> Result<u32> {
    let wide: i64 = at(row, index)?;
    Ok(u32::try_from(wide.max(0)).unwrap_or(u32::MAX))
}
