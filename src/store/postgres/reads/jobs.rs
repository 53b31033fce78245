//! Jobs: one, a list, and the ended ones in the order in which they ended.

use super::state::open_holds;
use super::{cut, fetch, of_labels, of_lanes};
use crate::store::cursor::{self, List};
use crate::store::postgres::conn::{Stmt, sql};
use crate::store::postgres::fault::Res;
use crate::store::postgres::rows::{at, int, int_opt, job_at, job_opt};
use crate::store::postgres::tx::Tx;
use crate::store::text;
use crate::store::{Error, HoldRow, JobId, JobRow, JobState, LaneKey, Page, Query, Result, ScopeKey};
use sqlx::postgres::PgRow;
use std::str::FromStr;
use uuid::Uuid;

/// States that only a live job is in.
const LIVE: [&str; 5] = ["queued", "running", "deferred", "waiting", "requires_action"];

pub(in crate::store::postgres) async fn job(tx: &mut Tx, id: JobId) -> Res<Option<JobRow>> {
    let rows = tx.all(sql!("job").arg(id.0)).await?;
    Ok(decode(tx, &rows).await?.pop().map(|(row, _)| row))
}

/// By their first digits and their last ones.
pub(in crate::store::postgres) async fn job_ids(
    tx: &mut Tx,
    (first, last): (JobId, JobId),
    end: &str,
    limit: u32,
) -> Res<Vec<JobId>> {
    let rows = tx.all(sql!("job_ids").arg(first.0).arg(last.0).arg(end).arg(i64::from(limit))).await?;
    Ok(rows.iter().map(|row| job_at(row, 0)).collect::<Result<_>>()?)
}

pub(in crate::store::postgres) async fn jobs(tx: &mut Tx, query: &Query) -> Res<Page<JobRow>> {
    let below = match &query.cursor {
        None => Uuid::max(),
        Some(given) => {
            let place = cursor::decode(List::Jobs, given, 1)?;
            place.first().and_then(|id| Uuid::from_str(id).ok()).ok_or(Error::Cursor)?
        }
    };
    let live = !query.states.is_empty() && query.states.iter().all(|state| LIVE.contains(&state.as_str()));
    let stmt = if live { sql!("jobs_live") } else { sql!("jobs") };
    let mut rows = tx.all(filtered(stmt.arg(below), query)).await?;
    let more = cut(&mut rows, query);
    let items: Vec<JobRow> = decode(tx, &rows).await?.into_iter().map(|(row, _)| row).collect();
    let last = items.last().map(|job| cursor::encode(List::Jobs, &[job.id.0.simple().to_string()]));
    Ok(Page { next_cursor: last.filter(|_| more), items })
}

/// The cursor stands also where there is no further page yet: whoever follows asks again with it.
pub(in crate::store::postgres) async fn results(tx: &mut Tx, query: &Query) -> Res<Page<JobRow>> {
    let [after] = match &query.cursor {
        None => [0],
        Some(given) => cursor::decode_numbers(List::Results, given)?,
    };
    let mut rows = tx.all(filtered(sql!("results").arg(after), query)).await?;
    cut(&mut rows, query);
    let decoded = decode(tx, &rows).await?;
    let place = decoded.last().and_then(|(_, ended_no)| *ended_no).unwrap_or(after);
    Ok(Page {
        next_cursor: Some(cursor::encode(List::Results, &[place.to_string()])),
        items: decoded.into_iter().map(|(row, _)| row).collect(),
    })
}

/// What `jobs`, `jobs_live` and `results` filter by.
fn filtered(stmt: Stmt, query: &Query) -> Stmt {
    let stmt = of_lanes(stmt, query).arg(query.since_ms).arg(query.until_ms).arg(query.states.as_slice());
    of_labels(stmt, query).arg(fetch(query))
}

/// Rows with their places in the order of endings.
async fn decode(tx: &mut Tx, rows: &[PgRow]) -> Res<Vec<(JobRow, Option<i64>)>> {
    let mut jobs = Vec::with_capacity(rows.len());
    if rows.is_empty() {
        return Ok(jobs);
    }
    let holds = open_holds(tx).await?;
    for row in rows {
        jobs.push((job_of(row, &holds)?, at(row, 24)?));
    }
    let ids: Vec<Uuid> = jobs.iter().map(|(job, _)| job.id.0).collect();
    for row in tx.all(sql!("labels").arg(ids)).await? {
        let place: usize = int::<usize>(&row, 0)? - 1;
        if let Some((job, _)) = jobs.get_mut(place) {
            job.labels.push((at(&row, 1)?, at(&row, 2)?));
        }
    }
    Ok(jobs)
}

fn job_of(row: &PgRow, holds: &[(i64, HoldRow)]) -> Result<JobRow> {
    let ended: Option<String> = at(row, 1)?;
    let turn: Option<i64> = at(row, 2)?;
    let state = match ended {
        Some(word) => text::state_of(&word),
        None if turn == Some(2) => JobState::Running,
        None => JobState::Queued,
    };
    let scopes: [Option<i64>; 2] = [at(row, 22)?, at(row, 23)?];
    // Of two holds the one that keeps it longest.
    let hold = match state {
        JobState::Queued | JobState::Running => holds
            .iter()
            .filter(|(scope_id, _)| scopes.contains(&Some(*scope_id)))
            .max_by_key(|(_, hold)| hold.until_ms.unwrap_or(i64::MAX))
            .map(|(_, hold)| hold.clone()),
        _ => None,
    };
    let wait_until_ms: Option<i64> = at(row, 21)?;
    Ok(JobRow {
        id: job_at(row, 0)?,
        state,
        deferred: state == JobState::Queued && hold.is_some(),
        lane: LaneKey {
            queue: at(row, 3)?,
            tenant: at(row, 4)?,
            scope: ScopeKey { provider: at(row, 5)?, account: at(row, 6)?, model: at(row, 7)? },
        },
        entry: at(row, 8)?,
        priority: int(row, 9)?,
        labels: Vec::new(),
        spec: at(row, 10)?,
        result: at(row, 11)?,
        error: at(row, 12)?,
        created_ms: at(row, 13)?,
        finished_ms: at(row, 14)?,
        deadline_ms: at(row, 15)?,
        retry_of: job_opt(row, 16)?,
        seq: int_opt(row, 17)?,
        due_ms: at(row, 18)?,
        executions: int_opt(row, 19)?,
        deferrals: int_opt(row, 20)?,
        wait_until_ms,
        // A running turn whose send is on the wire is kept by nothing.
        hold: hold.filter(|_| state == JobState::Queued || wait_until_ms.is_some()),
        paused: None,
        queue_paused: None,
        schedule: None,
    })
}
