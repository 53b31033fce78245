//! `/v1/schedules`: jobs that are submitted by the calendar.

use super::request::{Pairs, because, media, no_body, pairs_of, text};
use super::server::Api;
use super::shapes::{List, Run, Schedule};
use super::steering::BY;
use super::{Kind, Problem, parameters};
use crate::agent::limits;
use crate::scheduler::calendar::Calendar;
use crate::scheduler::schedules;
use crate::store::{Fired, Pause, ScheduleId, ScheduleRow, Scheduled, Store};
use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use std::iter::successors;

/// Instants ahead that are shown.
const UPCOMING: usize = 3;
/// A schedule's own members, beside its job.
const BESIDE_BYTES: usize = 16 << 10;

/// As it is shown: with its calendar in words and its next instants.
#[must_use]
pub fn shown(row: ScheduleRow, now_ms: i64) -> Schedule {
    let calendar = Calendar::parse(&row.cron, &row.zone).ok();
    let in_words = calendar.as_ref().map(Calendar::in_words);
    let upcoming_ms = match (&calendar, row.next_ms) {
        (Some(calendar), _) if row.paused.is_some() => {
            successors(calendar.next_after(now_ms), |at_ms| calendar.next_after(*at_ms)).take(UPCOMING).collect()
        }
        (Some(calendar), Some(next_ms)) => {
            successors(Some(next_ms), |at_ms| calendar.next_after(*at_ms)).take(UPCOMING).collect()
        }
        (_, next_ms) => next_ms.into_iter().collect(),
    };
    Schedule::of(row, in_words, upcoming_ms)
}

/// `GET /v1/schedules`.
pub async fn list<S: Store>(State(api): State<Api<S>>, pairs: Pairs) -> Result<Response, Problem> {
    parameters::none(&pairs_of(pairs)?)?;
    let now_ms = api.store.clock().now_ms();
    let items = api.store.schedules().await?.into_iter().map(|row| shown(row, now_ms)).collect();
    Ok(Json(List::<Schedule> { items, next_cursor: None }).into_response())
}

/// `POST /v1/schedules`: 201 and the schedule, 200 where the very same stood there, 409 where another has its name.
pub async fn add<S: Store>(State(api): State<Api<S>>, request: Request) -> Result<Response, Problem> {
    media(request.headers(), &["application/json"])?;
    let text = text(request, "a schedule", limits::JOB_BYTES + BESIDE_BYTES).await?;
    let new = schedules::accept(&text, &api.directory, api.store.clock().now_ms()).map_err(|error| {
        let kind = if error.at.starts_with("line ") { Kind::Malformed } else { Kind::InvalidSchedule };
        Problem { kind, ..Problem::from(error) }
    })?;
    let name = new.name.clone();
    let (id, status) = match api.store.add_schedule(new).await? {
        Scheduled::Added(id) => (id, StatusCode::CREATED),
        Scheduled::Unchanged(id) => (id, StatusCode::OK),
        Scheduled::Conflict(_) => {
            let what = format!("another schedule is named `{name}`; remove it first, or take another name");
            return Err(Problem::new(Kind::Exists, what).at("/name"));
        }
    };
    whole(&api, id, status).await
}

/// `GET /v1/schedules/{name}`, by its name or its id.
pub async fn one<S: Store>(
    State(api): State<Api<S>>,
    Path(name): Path<String>,
    pairs: Pairs,
) -> Result<Response, Problem> {
    parameters::none(&pairs_of(pairs)?)?;
    let row = find(&api.store, &name).await?;
    Ok(Json(shown(row, api.store.clock().now_ms())).into_response())
}

/// `DELETE /v1/schedules/{name}`: 204; its jobs stay.
pub async fn remove<S: Store>(
    State(api): State<Api<S>>,
    Path(name): Path<String>,
    pairs: Pairs,
) -> Result<Response, Problem> {
    parameters::none(&pairs_of(pairs)?)?;
    let row = find(&api.store, &name).await?;
    if api.store.remove_schedule(row.id).await? {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(unknown(&name))
    }
}

/// `POST /v1/schedules/{name}/pause`, with a reason or without.
pub async fn pause<S: Store>(
    State(api): State<Api<S>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let reason = because(request).await?;
    let row = find(&api.store, &name).await?;
    if row.paused.is_none() {
        let pause = Pause { since_ms: api.store.clock().now_ms(), by: BY.to_owned(), reason };
        if !api.store.pause_schedule(row.id, Some(pause), None).await? {
            return Err(unknown(&name));
        }
    }
    whole(&api, row.id, StatusCode::OK).await
}

/// `POST /v1/schedules/{name}/resume`: it goes on with its next instant from now; what passed meanwhile is not caught up
/// with.
pub async fn resume<S: Store>(
    State(api): State<Api<S>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    no_body(request).await?;
    let row = find(&api.store, &name).await?;
    if row.paused.is_some() {
        let next_ms = schedules::next_ms(&row, api.store.clock().now_ms());
        if !api.store.pause_schedule(row.id, None, next_ms).await? {
            return Err(unknown(&name));
        }
    }
    whole(&api, row.id, StatusCode::OK).await
}

/// `POST /v1/schedules/{name}/run`: submits its job now, beside the calendar; 201 and what came of it.
pub async fn run<S: Store>(
    State(api): State<Api<S>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    no_body(request).await?;
    let row = find(&api.store, &name).await?;
    let fire = schedules::by_hand(&row, &api.directory, api.store.clock().now_ms())?;
    match api.store.fire(fire).await? {
        Fired::Done(runs) => {
            let run = runs.into_iter().next().map(Run::from);
            let run =
                run.ok_or_else(|| Problem::new(Kind::Internal, "the database fired a schedule and did not answer"))?;
            Ok((StatusCode::CREATED, Json(run)).into_response())
        }
        Fired::Void => Err(unknown(&name)),
    }
}

/// The schedule of this name, or of this id.
async fn find<S: Store>(store: &S, name: &str) -> Result<ScheduleRow, Problem> {
    let id: Option<ScheduleId> = name.parse().ok();
    let rows = store.schedules().await?;
    rows.into_iter().find(|row| row.name == name || Some(row.id) == id).ok_or_else(|| unknown(name))
}

async fn whole<S: Store>(api: &Api<S>, id: ScheduleId, status: StatusCode) -> Result<Response, Problem> {
    let row = find(&api.store, &id.to_string()).await?;
    Ok((status, Json(shown(row, api.store.clock().now_ms()))).into_response())
}

fn unknown(name: &str) -> Problem {
    let what = format!("there is no schedule {}; GET /v1/schedules lists them", name.escape_debug());
    Problem::new(Kind::NotFound, what)
}
