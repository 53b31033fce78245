//! `/v1/queues`: how they stand, and whether they are claimed from.

use super::request::{Pairs, because, no_body, pairs_of};
use super::server::Api;
use super::shapes::{List, Pause, Queue, Stopped};
use super::steering::BY;
use super::{Kind, Problem, parameters};
use crate::agent::limits;
use crate::store::{self, Store};
use axum::Json;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};

/// `GET /v1/queues`.
pub async fn list<S: Store>(State(api): State<Api<S>>, pairs: Pairs) -> Result<Response, Problem> {
    parameters::none(&pairs_of(pairs)?)?;
    let rows = api.store.queues(api.store.clock().now_ms()).await?;
    let items = rows.into_iter().map(Queue::from).collect();
    Ok(Json(List::<Queue> { items, next_cursor: None }).into_response())
}

/// `POST /v1/queues/{queue}/pause`, with a reason or without: nothing further is claimed; what is in hand finishes.
/// A queue that has no jobs yet may be paused before they come.
pub async fn pause<S: Store>(
    State(api): State<Api<S>>,
    Path(queue): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    named(&queue)?;
    let reason = because(request).await?;
    let pause = store::Pause { since_ms: api.store.clock().now_ms(), by: BY.to_owned(), reason };
    let was = api.store.pause_queue(queue.clone(), Some(pause.clone())).await?;
    // One that stands is not begun anew.
    let paused = Pause::from(was.clone().unwrap_or(pause));
    Ok(Json(Stopped { queue, paused: Some(paused), was: was.map(Pause::from) }).into_response())
}

/// `POST /v1/queues/{queue}/resume`.
pub async fn resume<S: Store>(
    State(api): State<Api<S>>,
    Path(queue): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    no_body(request).await?;
    named(&queue)?;
    let was = api.store.pause_queue(queue.clone(), None).await?;
    Ok(Json(Stopped { queue, paused: None, was: was.map(Pause::from) }).into_response())
}

/// What no job can name is no queue.
fn named(queue: &str) -> Result<(), Problem> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    if (1..=limits::NAME_BYTES).contains(&queue.len()) && queue.chars().all(fits) {
        return Ok(());
    }
    let what =
        format!("`{}` names no queue; names have [A-Za-z0-9_.-], at most {}", queue.escape_debug(), limits::NAME_BYTES);
    Err(Problem::new(Kind::NotFound, what))
}
