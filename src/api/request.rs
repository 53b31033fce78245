//! What every route reads of a request alike: its parameters, its content type, its key, its body.

use super::{Kind, Problem, Waits};
use crate::store::JobId;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The header that makes a request repeatable.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The most bytes of a body that steers something.
pub(super) const STEERING_BYTES: usize = 64 << 10;
/// The most characters of a reason.
const REASON_CHARS: usize = 500;
/// What is still read of a body that is too large, so that its sender reads the answer instead of a broken pipe.
const DRAIN_BYTES: usize = 64 << 20;

/// Parameters as the extractor hands them over.
pub(super) type Pairs = Result<Query<Vec<(String, String)>>, QueryRejection>;

pub(super) fn pairs_of(pairs: Pairs) -> Result<Vec<(String, String)>, Problem> {
    pairs.map(|Query(pairs)| pairs).map_err(|_| Problem::new(Kind::Parameter, "the query is no list of NAME=VALUE"))
}

pub(super) fn job_id(text: &str) -> Result<JobId, Problem> {
    text.parse().map_err(|_| unknown_job(text))
}

pub(super) fn unknown_job(id: &str) -> Problem {
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
    let wrong = if said.is_empty() {
        "the content type is missing".to_owned()
    } else {
        format!("`{}` is not taken here", said.escape_debug())
    };
    Err(Problem::new(Kind::MediaType, format!("{wrong}; send {}", taken.join(" or "))))
}

/// The idempotency key beside the request.
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

/// The body as text, of at most `most` bytes. One that is larger is read on for a while and thrown away; a client that
/// waits to be told to go on (`expect: 100-continue`) is told no before it has sent anything.
///
/// # Errors
/// It is too large, too slow, broken off, or no UTF-8.
pub(super) async fn text(request: Request, what: &str, most: usize) -> Result<String, Problem> {
    let waits = request.extensions().get::<Waits>().copied().unwrap_or_default();
    let headers = request.headers();
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let announced: usize = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    let too_large = || Problem::new(Kind::TooLarge, format!("{what} may have {most} bytes, and this is longer"));
    if announced > most && headers.contains_key(header::EXPECT) {
        return Err(too_large());
    }
    let mut pieces = request.into_body().into_data_stream();
    let (mut bytes, mut seen) = (Vec::new(), 0usize);
    let read = async {
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|_| Problem::new(Kind::Malformed, "the body broke off"))?;
            seen = seen.saturating_add(piece.len());
            if seen <= most {
                bytes.extend_from_slice(&piece);
            } else if seen > most.saturating_add(DRAIN_BYTES) {
                break;
            }
        }
        Ok::<(), Problem>(())
    };
    match tokio::time::timeout(waits.body, read).await {
        Ok(read) => read?,
        Err(_) if seen > most => {}
        Err(_) => {
            let what = format!("the body did not arrive within {} s", waits.body.as_secs_f32());
            return Err(Problem::new(Kind::Slow, what));
        }
    }
    if seen > most {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|_| Problem::new(Kind::Malformed, "the body is no UTF-8"))
}

/// Lets a post pass that has no parameters: none takes any, and what one of them would say must not be passed over.
pub(super) async fn no_parameters(request: Request, next: Next) -> Response {
    if request.method() == Method::POST
        && let Some(said) = request.uri().query().filter(|said| !said.is_empty())
    {
        let name = said.split(['=', '&']).next().unwrap_or_default();
        let what = format!("the parameter `{}` is unknown; none is taken here", name.escape_debug());
        return Problem::new(Kind::Parameter, what).at(name).into_response();
    }
    next.run(request).await
}

/// That a request says nothing in its body where nothing is taken; an empty object says nothing.
///
/// # Errors
/// It does.
pub(super) async fn no_body(request: Request) -> Result<(), Problem> {
    let text = text(request, "the body", STEERING_BYTES).await?;
    match text.trim() {
        "" | "{}" => Ok(()),
        _ => Err(Problem::new(Kind::Malformed, "no body is taken here; leave it out")),
    }
}

/// A small JSON body of known members.
///
/// # Errors
/// It is no JSON, has a member that is unknown, or lacks one.
pub(super) async fn members<T: DeserializeOwned>(request: Request) -> Result<T, Problem> {
    media(request.headers(), &["application/json"])?;
    let text = text(request, "the body", STEERING_BYTES).await?;
    serde_json::from_str(&text).map_err(|error| {
        // serde_json's own message, without the place that it appends: it names the member and what is allowed.
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default().to_owned();
        Problem::new(Kind::Malformed, message).at(format!("line {}, column {}", error.line(), error.column()))
    })
}

/// Why something is steered.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Because {
    #[serde(default)]
    reason: Option<String>,
}

/// The reason in a body that may be left out.
///
/// # Errors
/// Of [`members`], or it is too long.
pub(super) async fn because(request: Request) -> Result<Option<String>, Problem> {
    let said = if request.headers().contains_key(header::CONTENT_TYPE) {
        members::<Because>(request).await?
    } else {
        let text = text(request, "the body", STEERING_BYTES).await?;
        if !text.is_empty() {
            return Err(Problem::new(Kind::MediaType, "the content type is missing; send application/json"));
        }
        Because::default()
    };
    reason(said.reason, "/reason")
}

/// A reason of bearable length.
///
/// # Errors
/// That it is longer.
pub(super) fn reason(said: Option<String>, at: &str) -> Result<Option<String>, Problem> {
    let said = said.filter(|reason| !reason.is_empty());
    if said.as_ref().is_some_and(|reason| reason.chars().count() > REASON_CHARS || reason.contains('\0')) {
        let what = format!("a reason may have {REASON_CHARS} characters, and no NUL");
        return Err(Problem::new(Kind::Invalid, what).at(at));
    }
    Ok(said)
}
