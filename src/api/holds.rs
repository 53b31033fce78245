//! `/v1/holds`: what is closed; closing and releasing by hand.

use super::request::{Pairs, members, pairs_of, reason};
use super::server::Api;
use super::shapes::{CloseHold, Hold, List};
use super::steering::BY;
use super::{Kind, Problem, parameters};
use crate::agent::{Directory, limits};
use crate::duration;
use crate::store::{HoldClose, HoldId, HoldRelease, HoldRow, ScopeKey, Store};
use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// `GET /v1/holds`: the open ones, unless the ended are asked for, too.
pub async fn list<S: Store>(State(api): State<Api<S>>, pairs: Pairs) -> Result<Response, Problem> {
    let query = parameters::query(&pairs_of(pairs)?, &parameters::HOLDS, api.store.clock().now_ms())?;
    let items = api.store.holds(query).await?.into_iter().map(Hold::from).collect();
    Ok(Json(List::<Hold> { items, next_cursor: None }).into_response())
}

/// `GET /v1/holds/{id}`: with what befell it.
pub async fn one<S: Store>(
    State(api): State<Api<S>>,
    Path(id): Path<String>,
    pairs: Pairs,
) -> Result<Response, Problem> {
    parameters::none(&pairs_of(pairs)?)?;
    let row = api.store.hold(hold_id(&id)?).await?.ok_or_else(|| unknown(&id))?;
    whole(&api, row, StatusCode::OK).await
}

/// `POST /v1/holds`: closes a scope by hand; 201 and the new hold, 200 and the one that stood there, dated anew.
pub async fn close<S: Store>(State(api): State<Api<S>>, request: Request) -> Result<Response, Problem> {
    let asked: CloseHold = members(request).await?;
    let now_ms = api.store.clock().now_ms();
    let close = closing(asked, &api.directory, BY, now_ms)?;
    let row = api.store.close_scope(close).await?;
    let status = if row.opened_ms == now_ms { StatusCode::CREATED } else { StatusCode::OK };
    whole(&api, row, status).await
}

/// Checks what is to be closed, and until when.
///
/// # Errors
/// A scope of no configured entry, an end that is no instant or no longer ahead.
pub fn closing(asked: CloseHold, directory: &Directory, by: &str, now_ms: i64) -> Result<HoldClose, Problem> {
    let invalid = |at: &str, what: String| Problem::new(Kind::Invalid, what).at(at);
    let model = asked.model.unwrap_or_default();
    let scope = ScopeKey { provider: asked.provider, account: asked.account, model };
    if !directory.entries.values().any(|entry| entry.account == scope.of_account()) {
        let known: Vec<String> = directory.entries.values().map(|entry| entry.account.to_string()).collect();
        let known =
            if known.is_empty() { "none is configured".to_owned() } else { format!("known are {}", known.join(", ")) };
        return Err(invalid("/account", format!("no provider entry has this provider and account; {known}")));
    }
    if scope.model.len() > limits::MODEL_BYTES || scope.model.chars().any(char::is_control) {
        return Err(invalid(
            "/model",
            format!("a model has at most {} bytes and no control characters", limits::MODEL_BYTES),
        ));
    }
    let until_ms = match (asked.until, asked.lasting) {
        (Some(_), Some(_)) => return Err(invalid("/for", "stands beside `until`: give one of them".to_owned())),
        (None, None) => None,
        (Some(until), None) => {
            let at = until.parse::<jiff::Timestamp>().map_err(|_| {
                invalid("/until", format!("`{}` is no instant; write 2026-11-30T14:03:05Z", until.escape_debug()))
            })?;
            Some(at.as_millisecond())
        }
        (None, Some(lasting)) => {
            let ms = duration::parse_ms(&lasting).map_err(|why| invalid("/for", format!("it {why}")))?;
            Some(now_ms.saturating_add(ms))
        }
    };
    if let Some(until_ms) = until_ms
        && !(1..=limits::AHEAD_MS).contains(&until_ms.saturating_sub(now_ms))
    {
        let most = duration::format(limits::AHEAD_MS);
        return Err(invalid("/until", format!("the end must lie ahead, at most {most}; leave it out for no end")));
    }
    let reason = reason(asked.reason, "/reason")?;
    Ok(HoldClose { scope, until_ms, by: by.to_owned(), reason, now_ms })
}

/// `DELETE /v1/holds/{id}?reason=`: lifts it before its date.
pub async fn release<S: Store>(
    State(api): State<Api<S>>,
    Path(id): Path<String>,
    pairs: Pairs,
) -> Result<Response, Problem> {
    let pairs = pairs_of(pairs)?;
    if let Some((name, _)) = pairs.iter().find(|(name, _)| name != "reason") {
        let what = format!("the parameter `{}` is unknown; allowed are reason", name.escape_debug());
        return Err(Problem::new(Kind::Parameter, what).at(name.as_str()));
    }
    let reason = reason(parameters::said(&pairs, "reason").map(str::to_owned), "reason")?;
    let now_ms = api.store.clock().now_ms();
    let release = HoldRelease { id: hold_id(&id)?, by: BY.to_owned(), reason, now_ms };
    let row = api.store.release_hold(release).await?.ok_or_else(|| unknown(&id))?;
    whole(&api, row, StatusCode::OK).await
}

async fn whole<S: Store>(api: &Api<S>, row: HoldRow, status: StatusCode) -> Result<Response, Problem> {
    let events = api.store.hold_events(row.id).await?;
    Ok((status, Json(Hold::whole(row, events))).into_response())
}

fn hold_id(text: &str) -> Result<HoldId, Problem> {
    text.parse().map_err(|_| unknown(text))
}

fn unknown(id: &str) -> Problem {
    let what = format!("there is no hold {}; GET /v1/holds lists the open ones", id.escape_debug());
    Problem::new(Kind::NotFound, what)
}
