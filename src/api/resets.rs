//! `/v1/resets`: who named a clock, and whether it told the truth.

use super::request::{Pairs, pairs_of};
use super::server::Api;
use super::shapes::{Accuracy, List, Reset};
use super::{Kind, Problem, audit, parameters};
use crate::store::{Fence, SendKey, Store};
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};

/// `GET /v1/resets`.
pub async fn list<S: Store>(State(api): State<Api<S>>, pairs: Pairs) -> Result<Response, Problem> {
    let query = parameters::query(&pairs_of(pairs)?, &parameters::RESETS, api.store.clock().now_ms())?;
    let page = api.store.resets(query).await?;
    Ok(Json(List::of(page, Reset::from)).into_response())
}

/// `GET /v1/resets/accuracy`.
pub async fn accuracy<S: Store>(State(api): State<Api<S>>, pairs: Pairs) -> Result<Response, Problem> {
    let query = parameters::query(&pairs_of(pairs)?, &parameters::ACCURACY, api.store.clock().now_ms())?;
    let items = api.store.reset_accuracy(query).await?.into_iter().map(Accuracy::from).collect();
    Ok(Json(List::<Accuracy> { items, next_cursor: None }).into_response())
}

/// `GET /v1/resets/{job}/{fence}/{n}`: one refusal, whole.
pub async fn one<S: Store>(
    State(api): State<Api<S>>,
    Path((job, fence, n)): Path<(String, String, String)>,
    pairs: Pairs,
) -> Result<Response, Problem> {
    parameters::none(&pairs_of(pairs)?)?;
    let named = format!("{job}/{fence}/{n}");
    let unknown = || {
        let what = format!("there is no refusal {}; GET /v1/resets lists them", named.escape_debug());
        Problem::new(Kind::NotFound, what)
    };
    let (Ok(job_id), Ok(fence), Ok(n)) = (job.parse(), fence.parse().map(Fence), n.parse()) else {
        return Err(unknown());
    };
    let told = audit::refusal_of(&api.store, SendKey { job_id, fence, n }).await?;
    Ok(Json(told.ok_or_else(unknown)?).into_response())
}
