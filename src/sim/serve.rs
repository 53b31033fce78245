//! From a connection to a response: routes, the simulator's own endpoints, and what is no request of any scope. The way
//! of one that is goes through [`super::turn`].

use super::Shared;
use super::ask::{Ask, Dialect, Route};
use super::ledger::{Arrival, LOG_ENTRIES};
use super::naming::Named;
use super::refusal::{About, Kind, Refusal};
use super::turn::Turn;
use super::wire::{Cut, Fate, Reply, Wire};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The longest request that is read.
const MAX_REQUEST_BYTES: usize = 64 << 20;
/// After a failed accept (no descriptors left), before the next.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Serves until stopped; then closes every connection, and returns when all are closed.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
            // Ended ones are let go.
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(connection(stream, Arc::clone(&shared)));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
    drop(listener);
    connections.shutdown().await;
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    // A connection that the peer has closed already shows itself at the first read.
    let _ = stream.set_nodelay(true);
    let fate = Arc::new(Fate::default());
    let io = TokioIo::new(Wire::new(stream, Arc::clone(&fate)));
    let service = service_fn(move |request| handle(Arc::clone(&shared), Arc::clone(&fate), request));
    // A broken connection is the other end's doing, or a fault of ours on purpose.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
}

async fn handle(shared: Arc<Shared>, fate: Arc<Fate>, request: Request<Incoming>) -> Result<Response<Reply>, Cut> {
    let arrival = Arrival { order: shared.next_order(), at_ms: shared.clock.now_ms() };
    let (head, body) = request.into_parts();
    if let Some(own) = head.uri.path().strip_prefix("/_sim/") {
        return Ok(own_endpoint(&shared, own, &head));
    }
    let Some(route) = Route::of(head.uri.path()) else {
        let path = head.uri.path();
        return Ok(plain_error(Dialect::OpenAi, Kind::NotFound, &format!("Unknown request URL: {path}")));
    };
    let dialect = route.dialect;
    if head.method != Method::POST {
        return Ok(plain_error(dialect, Kind::Malformed, "the method must be POST"));
    }
    let Ok(body) = Limited::new(body, MAX_REQUEST_BYTES).collect().await else {
        return Ok(plain_error(dialect, Kind::Malformed, "the body is too long, or broke off"));
    };
    match Ask::read(route, &head, &body.to_bytes()) {
        Ok(ask) => Turn::new(shared, fate, ask, arrival).respond().await,
        Err(problem) => Ok(plain_error(dialect, Kind::Malformed, &problem)),
    }
}

fn own_endpoint(shared: &Arc<Shared>, path: &str, head: &Parts) -> Response<Reply> {
    let now_ms = shared.clock.now_ms();
    let document = match (&head.method, path) {
        (&Method::GET, "stats") => serde_json::to_vec(&shared.core().stats(now_ms)),
        (&Method::POST, "reset") => {
            shared.core().reset(now_ms);
            Ok(b"{}".to_vec())
        }
        (&Method::GET, "log") => {
            let number = |name: &str, default: u64| {
                let mut pairs = head.uri.query().unwrap_or("").split('&').filter_map(|pair| pair.split_once('='));
                pairs.rfind(|(key, _)| *key == name).map_or(Some(default), |(_, value)| value.parse().ok())
            };
            let (Some(since), Some(limit)) = (number("since", 0), number("limit", 1_000)) else {
                return plain_error(Dialect::OpenAi, Kind::Malformed, "`since` and `limit` are whole numbers");
            };
            let limit = usize::try_from(limit).unwrap_or(LOG_ENTRIES);
            serde_json::to_vec(&shared.core().log(since, limit))
        }
        _ => {
            let known = "there are GET /_sim/stats, GET /_sim/log?since=N&limit=N and POST /_sim/reset";
            return plain_error(Dialect::OpenAi, Kind::NotFound, known);
        }
    };
    match document {
        Ok(document) => response(StatusCode::OK, Reply::Plain(Some(document.into())), [(header::CONTENT_TYPE, JSON)]),
        Err(_) => plain_error(Dialect::OpenAi, Kind::ServerError, ""),
    }
}

/// The answer to what is no request of any scope.
fn plain_error(dialect: Dialect, kind: Kind, detail: &str) -> Response<Reply> {
    let about =
        About { kind, dialect, model: "", limit: 0, requested: 0, per_ms: 0, detail, request_id: "req_simulated" };
    let refusal = Refusal::new(about, Named::default());
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
    response(status, Reply::Plain(Some(refusal.body.into())), [(header::CONTENT_TYPE, JSON)])
}

pub(super) fn response(
    status: StatusCode,
    body: Reply,
    headers: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
) -> Response<Reply> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    for (name, value) in headers {
        response.headers_mut().append(name, value);
    }
    response
}
