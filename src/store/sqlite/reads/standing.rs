//! Where one job stands, and all that can keep it there, as of one instant.

use super::columns::{number, number_opt, text, text_opt, whole, whole_opt};
use super::state::worker_of;
use super::{jobs, state};
use crate::store::figures::{COUNTED, Known, claims_last_minute, takers};
use crate::store::sqlite::conn::Conn;
use crate::store::sqlite::tx::{blob, sql};
use crate::store::{InHandStanding, JobId, JobRow, JobState, LastFailure, Result, ScopeStanding, Standing};
use sqlx::sqlite::SqliteRow;

/// Everything is read in one transaction, so that no two figures are of different instants.
pub(in crate::store::sqlite) async fn standing(conn: &mut Conn, id: JobId, now_ms: i64) -> Result<Option<Standing>> {
    conn.begin_read().await?;
    let standing = of_job(conn, id, now_ms).await;
    conn.end_read().await;
    standing
}

async fn of_job(conn: &mut Conn, id: JobId, now_ms: i64) -> Result<Option<Standing>> {
    let Some(job) = jobs::job(conn, id).await? else { return Ok(None) };
    let held = match &job.hold {
        Some(hold) => state::open_holds(conn).await?.into_iter().find(|(_, open)| open.id == hold.id),
        None => None,
    };
    let bound = sqlx::query(sql!("standing")).bind(blob(id.0)).bind(held.map(|(scope_id, _)| scope_id)).bind(COUNTED);
    let row = conn.optional(bound).await?;
    let (workers, worker_seen_ms) = takers(&known_workers(conn).await?, &job.lane.queue, now_ms);
    let last_failure = conn.optional(sqlx::query(sql!("standing_failure")).bind(blob(id.0))).await?;
    let fails_with = conn.optional(sqlx::query(sql!("standing_fails_with")).bind(blob(id.0))).await?;
    let in_hand = match &row {
        Some(row) if job.state == JobState::Running => Some(in_hand(conn, id, row).await?),
        _ => None,
    };
    let waits = job.state == JobState::Queued;
    let ahead = |index| row.as_ref().filter(|_| waits).map_or(0, |row| number(row, index));
    Ok(Some(Standing {
        ahead: ahead(15),
        ahead_in_scope: ahead(16),
        behind_hold: behind(&job),
        claims_last_minute: row.as_ref().map_or(0, |row| claims(row, now_ms)),
        model: row.as_ref().map(|row| scope(row, 7)).unwrap_or_default(),
        account: row.as_ref().map(|row| scope(row, 11)).unwrap_or_default(),
        workers,
        worker_seen_ms,
        last_failure: last_failure.as_ref().map(failure),
        fails_with: fails_with.as_ref().filter(|row| whole(row, 6) != 0).map(failure),
        in_hand,
        job,
    }))
}

fn behind(job: &JobRow) -> u32 {
    job.hold.as_ref().map_or(0, |hold| u32::try_from(hold.waiting.max(0)).unwrap_or(u32::MAX))
}

/// A lane keeps the claims of its latest minute and of the one before that.
fn claims(row: &SqliteRow, now_ms: i64) -> u32 {
    claims_last_minute(now_ms, whole(row, 4), number(row, 5), number(row, 6))
}

/// Four columns from `first` on.
fn scope(row: &SqliteRow, first: usize) -> ScopeStanding {
    ScopeStanding {
        in_flight: number(row, first),
        limit: number_opt(row, first + 1),
        max_in_flight: number_opt(row, first + 2),
        oldest_ms: whole_opt(row, first + 3),
    }
}

fn failure(row: &SqliteRow) -> LastFailure {
    LastFailure {
        ended_ms: whole(row, 0),
        outcome: text(row, 1),
        class: text_opt(row, 2),
        cause: text_opt(row, 3),
        code: text_opt(row, 4),
        http_status: number_opt(row, 5),
    }
}

async fn in_hand(conn: &mut Conn, id: JobId, turn: &SqliteRow) -> Result<InHandStanding> {
    let bound = sqlx::query(sql!("standing_sends")).bind(blob(id.0)).bind(whole(turn, 1));
    let send = conn.optional(bound).await?;
    let send = send.as_ref();
    let wait_source = send.and_then(|send| text_opt(send, 2));
    // Our own curve was read nowhere, whatever the refusal named.
    let read = wait_source.as_deref().is_some_and(|source| source != "curve");
    Ok(InHandStanding {
        claimed_ms: whole(turn, 2),
        replaced: send.map_or(0, |send| number(send, 0)),
        wait_ms: send.and_then(|send| whole_opt(send, 1)),
        wait_raw: send.filter(|_| read).and_then(|send| text_opt(send, 3)),
        wait_source,
        outcome: send.and_then(|send| text_opt(send, 4)),
        cancel_asked: whole_opt(turn, 3).is_some(),
    })
}

pub(super) async fn known_workers(conn: &mut Conn) -> Result<Vec<Known>> {
    let rows = conn.all(sqlx::query(sql!("workers_known"))).await?;
    let known = |row: &SqliteRow| Known { worker: worker_of(row), ended: whole_opt(row, 6).is_some() };
    Ok(rows.iter().map(known).collect())
}
