//! `/v1/jobs`: submitting one, listing them, one whole, its turns, its transcript, and why it is where it is.

use super::parameters;
use super::request::{Pairs, job_id, key, media, pairs_of, text, unknown_job};
use super::server::Api;
use super::shapes::{self, Entry, Job, List, Record};
use super::why::explain_job;
use super::{Kind, Problem, said};
use crate::agent::{accept, limits};
use crate::store::{JobId, NewJob, Store, Submitted};
use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// `POST /v1/jobs`: 201 and the job, 200 and the earlier one for a repeated key, 409 for the same key with another job.
pub async fn submit<S: Store>(State(api): State<Api<S>>, request: Request) -> Result<Response, Problem> {
    media(request.headers(), &["application/json"])?;
    let key = key(request.headers())?;
    let text = text(request, "a job", limits::JOB_BYTES).await?;
    let job = accept(&text, &api.directory, api.store.clock().now_ms(), key)?;
    match submit_one(&api.store, job).await? {
        Submitted::Accepted(id) => whole(&api, id, StatusCode::CREATED).await,
        Submitted::Duplicate(id) => whole(&api, id, StatusCode::OK).await,
        Submitted::Conflict(id) => Err(conflict(id)),
    }
}

pub(super) async fn submit_one<S: Store>(store: &S, job: NewJob) -> Result<Submitted, Problem> {
    let answers = store.submit(vec![job]).await?;
    answers.first().copied().ok_or_else(|| Problem::new(Kind::Internal, "the database took a job and did not answer"))
}

/// One job, whole, as an answer; a new one with where it is to be found.
pub(super) async fn whole<S: Store>(api: &Api<S>, id: JobId, status: StatusCode) -> Result<Response, Problem> {
    let now_ms = api.store.clock().now_ms();
    let mut row = api.store.job(id).await?.ok_or_else(|| unknown_job(&id.to_string()))?;
    said::fill_in(&api.store, std::slice::from_mut(&mut row)).await?;
    let workers = api.store.workers(now_ms).await?;
    let mut response = (status, Json(Job::whole(row, &workers, now_ms))).into_response();
    if status == StatusCode::CREATED
        && let Ok(location) = HeaderValue::try_from(format!("/v1/jobs/{id}"))
    {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// The same key with another job.
#[must_use]
pub fn conflict(id: JobId) -> Problem {
    let what = "the key was used for another job; use another key, or submit the same job";
    Problem { job: Some(id.to_string()), ..Problem::new(Kind::Conflict, what) }
}

/// `GET /v1/jobs`.
pub async fn list<S: Store>(State(api): State<Api<S>>, pairs: Pairs) -> Result<Response, Problem> {
    let now_ms = api.store.clock().now_ms();
    let query = parameters::query(&pairs_of(pairs)?, &parameters::JOBS, now_ms)?;
    let page = api.store.jobs(query).await?;
    Ok(Json(List::of(page, |row| Job::listed(row, now_ms))).into_response())
}

/// `GET /v1/jobs/{id}`.
pub async fn one<S: Store>(
    State(api): State<Api<S>>,
    Path(id): Path<String>,
    pairs: Pairs,
) -> Result<Response, Problem> {
    parameters::none(&pairs_of(pairs)?)?;
    whole(&api, job_id(&id)?, StatusCode::OK).await
}

/// `GET /v1/jobs/{id}/turns`: every record in order, with its sends and their evidence.
pub async fn turns<S: Store>(
    State(api): State<Api<S>>,
    Path(id): Path<String>,
    pairs: Pairs,
) -> Result<Response, Problem> {
    parameters::none(&pairs_of(pairs)?)?;
    let job = job_id(&id)?;
    if api.store.job(job).await?.is_none() {
        return Err(unknown_job(&id));
    }
    let items = api.store.turns(job).await?.into_iter().map(Record::from).collect();
    Ok(Json(List::<Record> { items, next_cursor: None }).into_response())
}

/// `GET /v1/jobs/{id}/transcript`: every message in order.
pub async fn transcript<S: Store>(
    State(api): State<Api<S>>,
    Path(id): Path<String>,
    pairs: Pairs,
) -> Result<Response, Problem> {
    parameters::none(&pairs_of(pairs)?)?;
    let row = api.store.job(job_id(&id)?).await?.ok_or_else(|| unknown_job(&id))?;
    let history = api.store.history(row.id).await?;
    let items = shapes::transcript(&row.spec, &history);
    Ok(Json(List::<Entry> { items, next_cursor: None }).into_response())
}

/// `GET /v1/jobs/{id}/explain`.
pub async fn explain<S: Store>(
    State(api): State<Api<S>>,
    Path(id): Path<String>,
    pairs: Pairs,
) -> Result<Response, Problem> {
    parameters::none(&pairs_of(pairs)?)?;
    let explained = explain_job(&api.store, &api.directory, job_id(&id)?).await?;
    Ok(Json(explained.ok_or_else(|| unknown_job(&id))?).into_response())
}
