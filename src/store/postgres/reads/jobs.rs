//! Jobs, one or a page of them. Which statement answers depends on what is asked: each walks an index that holds little
//! else than what is wanted.

use super::state::open_holds;
use super::{cut, fetch, lane_at, numbers, of_labels, of_lanes};
use crate::store::cursor::{self, List};
use crate::store::postgres::conn::{Stmt, sql};
use crate::store::postgres::fault::Res;
use crate::store::postgres::rows::{at, int, int_opt, job_at, job_opt, pause_opt};
use crate::store::postgres::tx::Tx;
use crate::store::text;
use crate::store::{Error, HoldRow, JobId, JobRow, JobState, Page, Query, Result, ScheduleId};
use sqlx::postgres::PgRow;
use std::str::FromStr;
use uuid::Uuid;

/// States that only a live job is in.
const LIVE: [&str; 5] = ["queued", "running", "deferred", "waiting", "requires_action"];

/// States that a job ended in without success: `jobs_failed` holds them.
const UNSUCCESSFUL: [&str; 2] = ["failed", "cancelled"];

/// A label that fewer jobs carry than this is where a search for it begins; of a more common one it is not known whether
/// something else would lead there sooner.
const RARE: i64 = 10_000;

/// What a list of jobs is found by, the most telling first.
enum Walk<'q> {
    /// Nothing can be found: what is asked for excludes itself.
    Nowhere,
    Scheduled(ScheduleId),
    Labelled(&'q (String, String)),
    Live,
    Failed,
    All,
}

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

/// Newest id first; with `by_end` ended jobs only, the latest end first.
pub(in crate::store::postgres) async fn jobs(tx: &mut Tx, query: &Query) -> Res<Page<JobRow>> {
    if query.by_end {
        return by_end(tx, query).await;
    }
    let below = below(query)?;
    let stmt = match walk(tx, query).await? {
        Walk::Nowhere => return Ok(Page { items: Vec::new(), next_cursor: None }),
        Walk::Scheduled(id) => {
            of_whys(of_errors(filtered(sql!("jobs_scheduled").arg(below), query), query), query).arg(id.0)
        }
        Walk::Labelled((key, value)) => {
            let stmt = of_errors(filtered(sql!("jobs_labelled").arg(below), query), query);
            of_whys(stmt, query).arg(key.as_str()).arg(value.as_str())
        }
        Walk::Live => of_whys(filtered(sql!("jobs_live").arg(below), query), query),
        Walk::Failed => of_errors(filtered(sql!("jobs_failed").arg(below), query), query),
        Walk::All => filtered(sql!("jobs").arg(below), query),
    };
    let mut rows = tx.all(stmt).await?;
    let more = cut(&mut rows, query);
    let items: Vec<JobRow> = decode(tx, &rows).await?.into_iter().map(|(row, _)| row).collect();
    let last = items.last().map(|job| cursor::encode(List::Jobs, &[job.id.0.simple().to_string()]));
    Ok(Page { next_cursor: last.filter(|_| more), items })
}

/// The id that a page stays below: its cursor's, or the one after the highest that is asked for.
fn below(query: &Query) -> Result<Uuid> {
    let frozen = query.to_id.map(|id| Uuid::from_u128(id.0.as_u128().saturating_add(1)));
    let place = query.cursor.as_deref().map(|given| {
        let place = cursor::decode(List::Jobs, given, 1)?;
        place.first().and_then(|id| Uuid::from_str(id).ok()).ok_or(Error::Cursor)
    });
    Ok(match (place.transpose()?, frozen) {
        (Some(place), Some(frozen)) => place.min(frozen),
        (one, other) => one.or(other).unwrap_or_else(Uuid::max),
    })
}

async fn walk<'q>(tx: &mut Tx, query: &'q Query) -> Res<Walk<'q>> {
    // Only a live job waits for something, and only an ended one ended with an error.
    let live = !query.whys.is_empty() || only(query, &LIVE);
    let ended = by_error(query) || only(query, &UNSUCCESSFUL);
    if live && ended {
        return Ok(Walk::Nowhere);
    }
    if let Some(schedule) = query.schedule {
        return Ok(Walk::Scheduled(schedule));
    }
    if let Some((label, count)) = rarest(tx, query).await?
        && (count < RARE || !(live || ended))
    {
        return Ok(Walk::Labelled(label));
    }
    Ok(if live {
        Walk::Live
    } else if ended {
        Walk::Failed
    } else {
        Walk::All
    })
}

fn only(query: &Query, states: &[&str]) -> bool {
    !query.states.is_empty() && query.states.iter().all(|state| states.contains(&state.as_str()))
}

fn by_error(query: &Query) -> bool {
    !(query.causes.is_empty() && query.classes.is_empty() && query.codes.is_empty() && query.http.is_empty())
}

/// The label asked for that the fewest jobs carry, and how many do, counted to [`RARE`].
async fn rarest<'q>(tx: &mut Tx, query: &'q Query) -> Res<Option<(&'q (String, String), i64)>> {
    let mut rarest = None;
    for label in &query.labels {
        let count = tx.number(sql!("label_count").arg(label.0.as_str()).arg(label.1.as_str()).arg(RARE)).await?;
        if rarest.is_none_or(|(_, least)| count < least) {
            rarest = Some((label, count));
        }
    }
    Ok(rarest)
}

/// The index has the jobs whose records are gone apart from the others, so both are asked and put in one order.
async fn by_end(tx: &mut Tx, query: &Query) -> Res<Page<JobRow>> {
    let cursor = query.cursor.as_deref().map(|given| cursor::decode_numbers(List::JobsByEnd, given)).transpose()?;
    if !query.whys.is_empty() || only(query, &LIVE) {
        return Ok(Page { items: Vec::new(), next_cursor: None });
    }
    let [before_ms, before_no] = cursor.unwrap_or([i64::MAX; 2]);
    let mut rows = Vec::new();
    for pruned in [0_i64, 1] {
        let stmt = of_errors(filtered(sql!("jobs_by_end").arg(before_ms), query), query)
            .arg(before_no)
            .arg(pruned)
            .arg(query.schedule.map(|id| id.0))
            .arg(query.to_id.map(|id| id.0));
        for row in tx.all(stmt).await? {
            rows.push((end_of(&row)?, row));
        }
    }
    rows.sort_by_key(|(end, _)| std::cmp::Reverse(*end));
    let more = cut(&mut rows, query);
    let last = rows.last().map(|((finished_ms, ended_no), _)| {
        cursor::encode(List::JobsByEnd, &[finished_ms.to_string(), ended_no.to_string()])
    });
    let rows: Vec<PgRow> = rows.into_iter().map(|(_, row)| row).collect();
    let items = decode(tx, &rows).await?.into_iter().map(|(row, _)| row).collect();
    Ok(Page { items, next_cursor: last.filter(|_| more) })
}

/// When it ended, and its place in the order of endings.
fn end_of(row: &PgRow) -> Result<(i64, i64)> {
    Ok((at(row, 14)?, at(row, 24)?))
}

/// The cursor stands also where there is no further page yet: whoever follows asks again with it.
pub(in crate::store::postgres) async fn results(tx: &mut Tx, query: &Query) -> Res<Page<JobRow>> {
    let [after] = match &query.cursor {
        None => [0],
        Some(given) => cursor::decode_numbers(List::Results, given)?,
    };
    let mut rows = tx.all(of_errors(filtered(sql!("results").arg(after), query), query)).await?;
    cut(&mut rows, query);
    let decoded = decode(tx, &rows).await?;
    let place = decoded.last().and_then(|(_, ended_no)| *ended_no).unwrap_or(after);
    Ok(Page {
        next_cursor: Some(cursor::encode(List::Results, &[place.to_string()])),
        items: decoded.into_iter().map(|(row, _)| row).collect(),
    })
}

/// What every list of jobs filters by, `$2` to `$12`.
fn filtered(stmt: Stmt, query: &Query) -> Stmt {
    let stmt = of_lanes(stmt, query).arg(query.since_ms).arg(query.until_ms).arg(query.states.as_slice());
    of_labels(stmt, query).arg(fetch(query))
}

/// Four lists, of what jobs ended with: causes, classes, codes, HTTP statuses.
fn of_errors(stmt: Stmt, query: &Query) -> Stmt {
    stmt.arg(query.causes.as_slice())
        .arg(query.classes.as_slice())
        .arg(query.codes.as_slice())
        .arg(numbers(&query.http))
}

/// What jobs wait for, and now.
fn of_whys(stmt: Stmt, query: &Query) -> Stmt {
    stmt.arg(query.whys.as_slice()).arg(query.now_ms)
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
    let live = matches!(state, JobState::Queued | JobState::Running);
    let scopes: [Option<i64>; 2] = [at(row, 22)?, at(row, 23)?];
    // Of two holds the one that keeps it longest.
    let hold = holds
        .iter()
        .filter(|(scope_id, _)| live && scopes.contains(&Some(*scope_id)))
        .max_by_key(|(_, hold)| hold.until_ms.unwrap_or(i64::MAX))
        .map(|(_, hold)| hold.clone());
    let wait_until_ms: Option<i64> = at(row, 21)?;
    Ok(JobRow {
        id: job_at(row, 0)?,
        state,
        deferred: state == JobState::Queued && hold.is_some(),
        lane: lane_at(row, 3)?,
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
        paused: pause_opt(row, 25)?.filter(|_| live),
        queue_paused: pause_opt(row, 28)?.filter(|_| live),
        schedule: at::<Option<Uuid>>(row, 31)?.map(ScheduleId),
    })
}
