//! What happened: failures and their counts, results in the order in which they came, tokens used.

use super::request::{Pairs, pairs_of};
use super::server::Api;
use super::shapes::{Count, Failure, Job, List, Usage};
use super::{Problem, parameters, said};
use crate::store::{By, Store, UsageBy};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};

/// Where results go on: the value of `?cursor=` of the next request, also where there are no more yet.
const NEXT_CURSOR: HeaderName = HeaderName::from_static("reprieve-next-cursor");

/// `GET /v1/failures`.
pub async fn failures<S: Store>(State(api): State<Api<S>>, pairs: Pairs) -> Result<Response, Problem> {
    let query = parameters::query(&pairs_of(pairs)?, &parameters::FAILURES, api.store.clock().now_ms())?;
    let page = api.store.failures(query).await?;
    Ok(Json(List::of(page, Failure::from)).into_response())
}

/// `GET /v1/failures/summary?by=`: by cause unless said otherwise.
pub async fn summary<S: Store>(State(api): State<Api<S>>, pairs: Pairs) -> Result<Response, Problem> {
    let pairs = pairs_of(pairs)?;
    let query = parameters::query(&pairs, &parameters::FAILURE_COUNTS, api.store.clock().now_ms())?;
    let by = parameters::said(&pairs, "by").map_or(Ok(By::Cause), parameters::failures_by)?;
    let items = api.store.failure_counts(query, by).await?.into_iter().map(Count::from).collect();
    Ok(Json(List::<Count> { items, next_cursor: None }).into_response())
}

/// `GET /v1/usage?by=`: by model unless said otherwise.
pub async fn usage<S: Store>(State(api): State<Api<S>>, pairs: Pairs) -> Result<Response, Problem> {
    let pairs = pairs_of(pairs)?;
    let query = parameters::query(&pairs, &parameters::USAGE, api.store.clock().now_ms())?;
    let by = parameters::said(&pairs, "by").map_or(Ok(UsageBy::Model), parameters::usage_by)?;
    let items = api.store.usage(query, by).await?.into_iter().map(Usage::from).collect();
    Ok(Json(List::<Usage> { items, next_cursor: None }).into_response())
}

/// `GET /v1/results`: ended jobs, one a line, in the order in which they ended.
pub async fn results<S: Store>(State(api): State<Api<S>>, pairs: Pairs) -> Result<Response, Problem> {
    let now_ms = api.store.clock().now_ms();
    let query = parameters::query(&pairs_of(pairs)?, &parameters::RESULTS, now_ms)?;
    let mut page = api.store.results(query).await?;
    said::fill_in(&api.store, &mut page.items).await?;
    let mut lines = String::new();
    for row in page.items {
        // A shape of ours always serialises.
        lines.push_str(&serde_json::to_string(&Job::ended(row, now_ms)).unwrap_or_default());
        lines.push('\n');
    }
    let mut response = ([(header::CONTENT_TYPE, "application/x-ndjson")], lines).into_response();
    if let Some(cursor) = page.next_cursor.and_then(|cursor| HeaderValue::try_from(cursor).ok()) {
        response.headers_mut().insert(NEXT_CURSOR, cursor);
    }
    Ok(response)
}
