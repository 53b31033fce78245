//! What people do to one job: cancel, retry, tell, pause, resume, delete.

use super::jobs::{submit_one, whole};
use super::parameters;
use super::request::{Pairs, because, job_id, key, media, no_body, pairs_of, text, unknown_job};
use super::server::Api;
use super::shapes::{self, Told};
use super::{Kind, Problem};
use crate::agent::{self, limits};
use crate::store::{
    CancelOutcome, DeleteOutcome, JobId, JobState, NewMessages, Pause, Posted, Steer, SteerOutcome, Store, Submitted,
};
use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// Who it was, where there are no tokens to tell.
pub(super) const BY: &str = "api";

/// Something was asked of a job that has ended.
fn ended(state: JobState) -> Problem {
    let what = format!("the job has ended: {}; only a live one can be moved", shapes::state(state, false));
    Problem::new(Kind::Ended, what)
}

fn unanswered() -> Problem {
    Problem::new(Kind::Internal, "the database was asked about a job and did not answer")
}

/// `POST /v1/jobs/{id}/cancel`: 200 where it has ended by that (or had been cancelled before), 202 where its worker was
/// asked to stop, 409 where it had ended otherwise.
pub async fn cancel<S: Store>(
    State(api): State<Api<S>>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    no_body(request).await?;
    let job = job_id(&id)?;
    let outcomes = api.store.cancel(vec![job], api.store.clock().now_ms()).await?;
    match outcomes.first().ok_or_else(unanswered)? {
        CancelOutcome::Cancelled | CancelOutcome::AlreadyFinal(JobState::Cancelled) => {
            whole(&api, job, StatusCode::OK).await
        }
        CancelOutcome::Asked => whole(&api, job, StatusCode::ACCEPTED).await,
        CancelOutcome::AlreadyFinal(state) => Err(ended(*state)),
        CancelOutcome::Unknown => Err(unknown_job(&id)),
    }
}

/// `POST /v1/jobs/{id}/retry`: 201 and the new job, 200 and the same one where it was retried before, 409 where it has
/// not ended. A job is retried once, so that the request is repeatable with or without a key.
pub async fn retry<S: Store>(
    State(api): State<Api<S>>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    key(request.headers())?;
    no_body(request).await?;
    let job = job_id(&id)?;
    let row = api.store.job(job).await?.ok_or_else(|| unknown_job(&id))?;
    if row.finished_ms.is_none() {
        let what = format!("the job is {}; only an ended one is retried", shapes::state(row.state, row.deferred));
        return Err(Problem::new(Kind::NotEnded, what));
    }
    if let Some(new) = retried(&api.store, job).await? {
        return whole(&api, new, StatusCode::OK).await;
    }
    let history = api.store.history(job).await?;
    let new = agent::again(&row, &history, &api.directory, api.store.clock().now_ms())?;
    match submit_one(&api.store, new).await? {
        Submitted::Accepted(id) => whole(&api, id, StatusCode::CREATED).await,
        // Somebody else was faster.
        Submitted::Duplicate(id) | Submitted::Conflict(id) => whole(&api, id, StatusCode::OK).await,
    }
}

async fn retried<S: Store>(store: &S, job: JobId) -> Result<Option<JobId>, Problem> {
    Ok(store.retries(vec![job]).await?.into_iter().map(|(_, new)| new).next())
}

/// `POST /v1/jobs/{id}/messages`: 202 and the turn before which they are read, 200 and the same for a repeated key; 409
/// where the job has ended, is a raw one or runs its last turn, or where the key came with other messages.
pub async fn tell<S: Store>(
    State(api): State<Api<S>>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let job = job_id(&id)?;
    media(request.headers(), &["application/json"])?;
    let key = key(request.headers())?;
    if key.as_ref().is_some_and(|key| key.len() > limits::KEY_BYTES) {
        let what = format!("a key may have {} bytes", limits::KEY_BYTES);
        return Err(Problem::new(Kind::Malformed, what).at("Idempotency-Key"));
    }
    let body = text(request, "a body of messages", limits::JOB_BYTES).await?;
    let wrong = |error: agent::SpecError| Problem { kind: told_kind(&error.at), ..Problem::from(error) };
    let messages = agent::messages(&body).map_err(wrong)?;
    let row = api.store.job(job).await?.ok_or_else(|| unknown_job(&id))?;
    let last_turn = if row.finished_ms.is_none() {
        let history = api.store.history(job).await?;
        Some(agent::check_messages(&row, &history, &messages, &api.directory).map_err(wrong)?)
    } else {
        None
    };
    let now_ms = api.store.clock().now_ms();
    match api.store.post(NewMessages { job, key, messages, last_turn, now_ms }).await? {
        Posted::Accepted { seq } => Ok((StatusCode::ACCEPTED, Json(Told { seq })).into_response()),
        Posted::Duplicate { seq } => Ok((StatusCode::OK, Json(Told { seq })).into_response()),
        Posted::Conflict => {
            let what = "the key was used for other messages; use another key, or post the same messages";
            Err(Problem { job: Some(id), ..Problem::new(Kind::Conflict, what) })
        }
        Posted::AlreadyFinal(state) => {
            let what = format!("the job has ended: {}; retry it, and tell the new one", shapes::state(state, false));
            Err(Problem::new(Kind::Ended, what))
        }
        Posted::NoTurnLeft => Err(wrong(agent::no_turn_left())),
        Posted::Unknown => Err(unknown_job(&id)),
    }
}

/// A job that reads no messages is told so; a body that is wrong, too.
fn told_kind(at: &str) -> Kind {
    match at {
        "/raw" | "/max_turns" => Kind::NoMessages,
        at if at.starts_with("line ") => Kind::Malformed,
        _ => Kind::Invalid,
    }
}

/// `POST /v1/jobs/{id}/pause`, with a reason or without: no further turn starts; what is in hand finishes.
pub async fn pause<S: Store>(
    State(api): State<Api<S>>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let reason = because(request).await?;
    let since_ms = api.store.clock().now_ms();
    steer(&api, &id, Steer::Pause(Pause { since_ms, by: BY.to_owned(), reason })).await
}

/// `POST /v1/jobs/{id}/resume`.
pub async fn resume<S: Store>(
    State(api): State<Api<S>>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    no_body(request).await?;
    steer(&api, &id, Steer::Resume).await
}

async fn steer<S: Store>(api: &Api<S>, id: &str, how: Steer) -> Result<Response, Problem> {
    let job = job_id(id)?;
    let outcomes = api.store.steer(vec![job], how, api.store.clock().now_ms()).await?;
    match outcomes.first().ok_or_else(unanswered)? {
        SteerOutcome::Done | SteerOutcome::Unchanged => whole(api, job, StatusCode::OK).await,
        SteerOutcome::AlreadyFinal(state) => Err(ended(*state)),
        SteerOutcome::Unknown => Err(unknown_job(id)),
    }
}

/// `DELETE /v1/jobs/{id}`: 204 where it is gone with all that was kept of it, 409 where it has not ended.
pub async fn delete<S: Store>(
    State(api): State<Api<S>>,
    Path(id): Path<String>,
    pairs: Pairs,
) -> Result<Response, Problem> {
    parameters::none(&pairs_of(pairs)?)?;
    let outcomes = api.store.delete(vec![job_id(&id)?]).await?;
    match outcomes.first().ok_or_else(unanswered)? {
        DeleteOutcome::Deleted => Ok(StatusCode::NO_CONTENT.into_response()),
        DeleteOutcome::NotFinal(state) => {
            let what = format!("the job is {}; cancel it first", shapes::state(*state, false));
            Err(Problem::new(Kind::NotEnded, what))
        }
        DeleteOutcome::Unknown => Err(unknown_job(&id)),
    }
}
