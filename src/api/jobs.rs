//! `/v1/jobs`: submitting one, listing them, one whole, and its turns.

use super::parameters;
use super::server::Api;
use super::shapes::{Job, List, Record};
use super::{Kind, Problem};
use crate::agent::{accept, limits};
use crate::store::{JobId, NewJob, Store, Submitted};
use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// The header that makes a submission repeatable.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// `POST /v1/jobs`: 201 and the job, 200 and the earlier one for a repeated key, 409 for the same key with another job.
pub async fn submit<S: Store>(State(api): State<Api<S>>, request: Request) -> Result<Response, Problem> {
    media(request.headers(), &["application/json"])?;
    let key = key(request.headers())?;
    let text = text(request.into_body(), limits::JOB_BYTES).await?;
    let now_ms = api.store.clock().now_ms();
    let job = accept(&text, &api.directory, now_ms, key)?;
    let (id, status) = match submit_one(&api.store, job).await? {
        Submitted::Accepted(id) => (id, StatusCode::CREATED),
        Submitted::Duplicate(id) => (id, StatusCode::OK),
        Submitted::Conflict(id) => return Err(conflict(id)),
    };
    let row = api.store.job(id).await?.ok_or_else(|| unknown(&id.to_string()))?;
    let workers = api.store.workers(now_ms).await?;
    let mut response = (status, Json(Job::whole(row, &workers, now_ms))).into_response();
    if let Ok(location) = HeaderValue::try_from(format!("/v1/jobs/{id}")) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

async fn submit_one<S: Store>(store: &S, job: NewJob) -> Result<Submitted, Problem> {
    let answers = store.submit(vec![job]).await?;
    answers.first().copied().ok_or_else(|| Problem::new(Kind::Internal, "the database took a job and did not answer"))
}

/// The same key with another job.
#[must_use]
pub fn conflict(id: JobId) -> Problem {
    let what = "the key was used for another job; use another key, or submit the same job";
    Problem { job: Some(id.to_string()), ..Problem::new(Kind::Conflict, what) }
}

/// `GET /v1/jobs`.
pub async fn list<S: Store>(
    State(api): State<Api<S>>,
    pairs: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Response, Problem> {
    let now_ms = api.store.clock().now_ms();
    let query = parameters::query(&pairs_of(pairs)?, &parameters::JOBS, now_ms)?;
    let page = api.store.jobs(query).await?;
    Ok(Json(List::of(page, |row| Job::listed(row, now_ms))).into_response())
}

/// `GET /v1/jobs/{id}`.
pub async fn one<S: Store>(
    State(api): State<Api<S>>,
    Path(id): Path<String>,
    pairs: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Response, Problem> {
    let now_ms = api.store.clock().now_ms();
    parameters::query(&pairs_of(pairs)?, &[], now_ms)?;
    let row = api.store.job(job_id(&id)?).await?.ok_or_else(|| unknown(&id))?;
    let workers = api.store.workers(now_ms).await?;
    Ok(Json(Job::whole(row, &workers, now_ms)).into_response())
}

/// `GET /v1/jobs/{id}/turns`: every record in order, with its sends and their evidence.
pub async fn turns<S: Store>(
    State(api): State<Api<S>>,
    Path(id): Path<String>,
    pairs: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Response, Problem> {
    parameters::query(&pairs_of(pairs)?, &[], api.store.clock().now_ms())?;
    let job = job_id(&id)?;
    if api.store.job(job).await?.is_none() {
        return Err(unknown(&id));
    }
    let items = api.store.turns(job).await?.into_iter().map(Record::from).collect();
    Ok(Json(List::<Record> { items, next_cursor: None }).into_response())
}

fn pairs_of(pairs: Result<Query<Vec<(String, String)>>, QueryRejection>) -> Result<Vec<(String, String)>, Problem> {
    pairs.map(|Query(pairs)| pairs).map_err(|_| Problem::new(Kind::Parameter, "the query is no list of NAME=VALUE"))
}

fn job_id(text: &str) -> Result<JobId, Problem> {
    text.parse().map_err(|_| unknown(text))
}

fn unknown(id: &str) -> Problem {
    Problem::new(Kind::NotFound, format!("there is no job {}; GET /v1/jobs lists them", id.escape_debug()))
}

/// Checks the content type. A page of another site can post plain text and forms, but no JSON, without asking first.
///
/// # Errors
/// When it is none of `taken`.
pub(super) fn media(headers: &HeaderMap, taken: &[&str]) -> Result<(), Problem> {
    let said = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if taken.contains(&kind.as_str()) {
        return Ok(());
    }
    let said = if said.is_empty() { "no content type".to_owned() } else { format!("`{}`", said.escape_debug()) };
    Err(Problem::new(Kind::MediaType, format!("{said} is not taken here; send {}", taken.join(" or "))))
}

/// The idempotency key beside the job.
///
/// # Errors
/// When it is no text.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(key) if !key.is_empty() => Ok(Some(key.to_owned())),
        _ => Err(Problem::new(Kind::Malformed, "the key is no printable ASCII").at("Idempotency-Key")),
    }
}

async fn text(body: Body, most: usize) -> Result<String, Problem> {
    let bytes = axum::body::to_bytes(body, most).await.map_err(|error| {
        let mut source: Option<&dyn std::error::Error> = Some(&error);
        while let Some(cause) = source {
            if cause.is::<http_body_util::LengthLimitError>() {
                return Problem::new(Kind::TooLarge, format!("a job may have {most} bytes, and this is longer"));
            }
            source = cause.source();
        }
        Problem::new(Kind::Malformed, "the body broke off")
    })?;
    String::from_utf8(bytes.into()).map_err(|_| Problem::new(Kind::Malformed, "the body is no UTF-8"))
}
