//! Jobs, one or a page of them. Which statement answers depends on what is asked: each walks an index that holds little
//! else than what is wanted.

use super::columns::{bytes, job as job_at, lane, number, number_opt, pause, text, text_opt, uuid, whole, whole_opt};
use super::state::open_holds;
use super::{cut, fetch};
use crate::store::sqlite::conn::{Conn, Query as Bound};
use crate::store::sqlite::cursor::{self, List};
use crate::store::sqlite::text as words;
use crate::store::sqlite::tx::{blob, hex, json, sql, uuid_at};
use crate::store::{Error, HoldRow, JobId, JobRow, JobState, Page, Query, Result, ScheduleId};
use sqlx::sqlite::SqliteRow;
use std::fmt::Write;
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

pub(in crate::store::sqlite) async fn job(conn: &mut Conn, id: JobId) -> Result<Option<JobRow>> {
    let rows = conn.all(sqlx::query(sql!("job")).bind(blob(id.0))).await?;
    Ok(decode(conn, &rows).await?.pop())
}

/// By their first digits and their last ones.
pub(in crate::store::sqlite) async fn job_ids(
    conn: &mut Conn,
    (first, last): (JobId, JobId),
    end: &str,
    limit: u32,
) -> Result<Vec<JobId>> {
    let bound = sqlx::query(sql!("job_ids")).bind(blob(first.0)).bind(blob(last.0)).bind(end).bind(limit);
    conn.all(bound).await?.iter().map(|row| uuid_at(row, 0).map(JobId)).collect()
}

/// Newest id first; with `by_end` ended jobs only, the latest end first.
pub(in crate::store::sqlite) async fn jobs(conn: &mut Conn, query: &Query) -> Result<Page<JobRow>> {
    if query.by_end {
        return by_end(conn, query).await;
    }
    let below = below(query)?;
    let bound = match walk(conn, query).await? {
        Walk::Nowhere => return Ok(Page { items: Vec::new(), next_cursor: None }),
        Walk::Scheduled(id) => filtered(sqlx::query(sql!("jobs_scheduled")).bind(below), query)?.bind(blob(id.0)),
        Walk::Labelled((key, value)) => {
            filtered(sqlx::query(sql!("jobs_labelled")).bind(below), query)?.bind(key.as_str()).bind(value.as_str())
        }
        Walk::Live => filtered(sqlx::query(sql!("jobs_live")).bind(below), query)?,
        Walk::Failed => filtered(sqlx::query(sql!("jobs_failed")).bind(below), query)?,
        Walk::All => filtered(sqlx::query(sql!("jobs")).bind(below), query)?,
    };
    let mut rows = conn.all(bound).await?;
    let more = cut(&mut rows, query);
    let last = rows.last().map(|row| cursor::encode(List::Jobs, &[digits(&bytes(row, 0))]));
    Ok(Page { items: decode(conn, &rows).await?, next_cursor: last.filter(|_| more) })
}

/// The id that a page stays below: its cursor's, or the one after the highest that is asked for.
fn below(query: &Query) -> Result<Vec<u8>> {
    let frozen = query.to_id.map(|id| blob(Uuid::from_u128(id.0.as_u128().saturating_add(1))));
    let place = query.cursor.as_deref().map(|given| {
        let place = cursor::decode(List::Jobs, given, 1)?;
        place.first().and_then(|digits| read_digits(digits)).ok_or(Error::Cursor)
    });
    let end = || blob(Uuid::max());
    Ok(match (place.transpose()?, frozen) {
        (Some(place), Some(frozen)) => place.min(frozen),
        (one, other) => one.or(other).unwrap_or_else(end),
    })
}

/// The bytes as they are stored, so that a damaged id has its place, too.
fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn read_digits(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

async fn walk<'q>(conn: &mut Conn, query: &'q Query) -> Result<Walk<'q>> {
    // Only a live job waits for something, and only an ended one ended with an error.
    let live = !query.whys.is_empty() || only(query, &LIVE);
    let ended = by_error(query) || only(query, &UNSUCCESSFUL);
    if live && ended {
        return Ok(Walk::Nowhere);
    }
    if let Some(schedule) = query.schedule {
        return Ok(Walk::Scheduled(schedule));
    }
    if let Some((label, count)) = rarest(conn, query).await?
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
async fn rarest<'q>(conn: &mut Conn, query: &'q Query) -> Result<Option<(&'q (String, String), i64)>> {
    let mut rarest = None;
    for label in &query.labels {
        let bound = sqlx::query(sql!("label_count")).bind(label.0.as_str()).bind(label.1.as_str()).bind(RARE);
        let count = conn.number(bound).await?;
        if rarest.is_none_or(|(_, least)| count < least) {
            rarest = Some((label, count));
        }
    }
    Ok(rarest)
}

/// The index has the jobs whose records are gone apart from the others, so both are asked and put in one order.
async fn by_end(conn: &mut Conn, query: &Query) -> Result<Page<JobRow>> {
    let cursor = query.cursor.as_deref().map(|given| cursor::decode_numbers(List::JobsByEnd, given)).transpose()?;
    if !query.whys.is_empty() || only(query, &LIVE) {
        return Ok(Page { items: Vec::new(), next_cursor: None });
    }
    let place: [i64; 2] = cursor.unwrap_or([i64::MAX; 2]);
    let [before_ms, before_no] = query.until_ms.map_or(place, |until_ms| place.min([until_ms, i64::MIN]));
    let mut rows = Vec::new();
    for pruned in [0_i64, 1] {
        // Its place is of two numbers, and stands behind the filters.
        let bound = filtered(sqlx::query(sql!("jobs_by_end")).bind(None::<i64>), query)?
            .bind(before_ms)
            .bind(before_no)
            .bind(pruned)
            .bind(query.schedule.map(|id| blob(id.0)))
            .bind(query.to_id.map(|id| blob(id.0)));
        rows.extend(conn.all(bound).await?);
    }
    rows.sort_by_key(|row| std::cmp::Reverse(end_of(row)));
    let more = cut(&mut rows, query);
    let last = rows.last().map(|row| {
        let (finished_ms, ended_no) = end_of(row);
        cursor::encode(List::JobsByEnd, &[finished_ms.to_string(), ended_no.to_string()])
    });
    Ok(Page { items: decode(conn, &rows).await?, next_cursor: last.filter(|_| more) })
}

/// When it ended, and its place in the order of endings.
fn end_of(row: &SqliteRow) -> (i64, i64) {
    (whole(row, 14), whole(row, 24))
}

/// The cursor stands also where there is no further page yet: whoever follows asks again with it.
pub(in crate::store::sqlite) async fn results(conn: &mut Conn, query: &Query) -> Result<Page<JobRow>> {
    let [after] = match &query.cursor {
        None => [0],
        Some(given) => cursor::decode_numbers(List::Results, given)?,
    };
    let mut rows = conn.all(filtered(sqlx::query(sql!("results")).bind(after), query)?).await?;
    cut(&mut rows, query);
    let place = rows.last().map_or(after, |row| end_of(row).1);
    Ok(Page {
        next_cursor: Some(cursor::encode(List::Results, &[place.to_string()])),
        items: decode(conn, &rows).await?,
    })
}

/// Binds what lists of jobs filter by, ?2 to ?17.
fn filtered<'q>(bound: Bound<'q>, query: &Query) -> Result<Bound<'q>> {
    Ok(bound
        .bind(json(&query.queues)?)
        .bind(json(&query.tenants)?)
        .bind(json(&query.providers)?)
        .bind(json(&query.accounts)?)
        .bind(json(&query.models)?)
        .bind(query.since_ms)
        .bind(query.until_ms)
        .bind(json(&query.states)?)
        .bind(json(&query.labels)?)
        .bind(fetch(query))
        .bind(json(&query.whys)?)
        .bind(query.now_ms)
        .bind(json(&query.causes)?)
        .bind(json(&query.classes)?)
        .bind(json(&query.codes)?)
        .bind(json(&query.http)?))
}

async fn decode(conn: &mut Conn, rows: &[SqliteRow]) -> Result<Vec<JobRow>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let holds = open_holds(conn).await?;
    let mut jobs: Vec<JobRow> = rows.iter().map(|row| job_of(row, &holds)).collect();
    let ids: Vec<String> = jobs.iter().map(|job| hex(job.id.0)).collect();
    for row in conn.all(sqlx::query(sql!("labels")).bind(json(&ids)?)).await? {
        if let Some(job) = jobs.get_mut(number::<usize>(&row, 0)) {
            job.labels.push((text(&row, 1), text(&row, 2)));
        }
    }
    Ok(jobs)
}

fn job_of(row: &SqliteRow, holds: &[(i64, HoldRow)]) -> JobRow {
    let state = match text_opt(row, 1) {
        Some(word) => words::state_of(&word),
        None if whole_opt(row, 2) == Some(2) => JobState::Running,
        None => JobState::Queued,
    };
    let live = matches!(state, JobState::Queued | JobState::Running);
    let scopes = [whole_opt(row, 22), whole_opt(row, 23)];
    // Of two holds the one that keeps it longest.
    let hold = holds
        .iter()
        .filter(|(scope_id, _)| live && scopes.contains(&Some(*scope_id)))
        .max_by_key(|(_, hold)| hold.until_ms.unwrap_or(i64::MAX))
        .map(|(_, hold)| hold.clone());
    let wait_until_ms = whole_opt(row, 21);
    JobRow {
        id: job_at(row, 0),
        state,
        deferred: state == JobState::Queued && hold.is_some(),
        lane: lane(row, 3),
        entry: text(row, 8),
        priority: number(row, 9),
        labels: Vec::new(),
        spec: text(row, 10),
        result: text_opt(row, 11),
        error: text_opt(row, 12),
        created_ms: whole(row, 13),
        finished_ms: whole_opt(row, 14),
        deadline_ms: whole_opt(row, 15),
        retry_of: uuid(row, 16).map(JobId),
        seq: number_opt(row, 17),
        due_ms: whole_opt(row, 18),
        executions: number_opt(row, 19),
        deferrals: number_opt(row, 20),
        wait_until_ms,
        // A running turn whose send is on the wire is kept by nothing.
        hold: hold.filter(|_| state == JobState::Queued || wait_until_ms.is_some()),
        paused: pause(row, 25).filter(|_| live),
        queue_paused: pause(row, 28).filter(|_| live),
        schedule: uuid(row, 31).map(ScheduleId),
    }
}
