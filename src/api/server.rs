//! The listener, the routes, and what holds for every request: a known `Host`, problem documents for everything that goes
//! wrong, a body that is bounded, and an end that lets answers finish.

use super::{Kind, Problem, bulk, history, holds, jobs, queues, request, resets, schedules, steering};
use crate::agent::Directory;
use crate::config;
use crate::store::Store;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// After a failed accept (no descriptors left), before the next.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long a server waits for its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// For a request's whole head, counted from when one may begin: a client that sends half of one, or none, would hold
    /// a connection for ever. An idle connection is closed after it, too.
    pub head: Duration,
    /// For the whole body of a request, and for the next piece of one that is read as it comes (bulk).
    pub body: Duration,
    /// For the end of what is being answered, once asked to stop.
    pub grace: Duration,
    /// Connections at once; further ones wait to be accepted. Each takes a file descriptor, of which the database and
    /// the providers need some, too.
    pub connections: usize,
}

/// Connections at once where nothing else is said: half of what a process may have open by default on most systems.
pub const CONNECTIONS: usize = 512;

impl Default for Waits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(30),
            body: Duration::from_secs(120),
            grace: Duration::from_secs(5),
            connections: CONNECTIONS,
        }
    }
}

/// What the routes work with.
#[derive(Clone)]
pub struct Api<S: Store> {
    pub store: S,
    /// Which provider entries and policies there are, for what is submitted.
    pub directory: Arc<Directory>,
    /// Names that `Host` may carry besides the bound address and `localhost`; lower case.
    pub hosts: Arc<Vec<String>>,
}

/// Listens on the configured address.
///
/// # Errors
/// When it is no loopback address, or not to be had.
pub async fn bind(server: &config::Server) -> Result<TcpListener, Problem> {
    if !server.bind.ip().is_loopback() {
        return Err(Problem::new(Kind::Configuration, config::not_loopback(server.bind)).at("server.bind"));
    }
    TcpListener::bind(server.bind).await.map_err(|error| {
        let bind = server.bind;
        let what = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                format!("{bind} is in use by another process; stop it, or set server.bind to a free port")
            }
            std::io::ErrorKind::PermissionDenied => {
                format!("{bind} may not be listened on; set server.bind to a port from 1024 on")
            }
            _ => format!("{bind} cannot be listened on ({error}); set server.bind to an address of this machine"),
        };
        Problem::new(Kind::Unreachable, what)
    })
}

/// Serves until `stop`; answers that have begun are finished, as far as [`Waits::grace`] lasts.
///
/// # Errors
/// When the listener's address is not to be had.
pub async fn serve<S: Store>(
    listener: TcpListener,
    api: Api<S>,
    waits: Waits,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let routes = router(api, listener.local_addr()?).layer(Extension(waits));
    let app = TowerToHyperService::new(routes);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept(), if connections.len() < waits.connections => accepted,
            // Ended ones are let go.
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(connection(stream, app.clone(), waits.head, stop.clone()));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(waits.grace, ended).await.is_err() {
        tracing::warn!("connections that were still open are closed; what they were not told was not acknowledged");
        connections.shutdown().await;
    }
    Ok(())
}

/// One connection, until its client or `stop` ends it. `axum::serve` knows no limit to a head's arrival.
async fn connection(stream: TcpStream, app: TowerToHyperService<Router>, head: Duration, stop: CancellationToken) {
    // A connection that the client has closed already shows itself at the first read.
    let _ = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(head);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), app));
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        // What the client did: it left, was too slow, or spoke no HTTP.
        tracing::debug!(timeout = error.is_timeout(), "a connection broke off");
    }
}

/// The routes. `bound` is where they are served, one of the names that `Host` may carry.
pub fn router<S: Store>(api: Api<S>, bound: SocketAddr) -> Router {
    let hosts = Hosts { bound, named: Arc::clone(&api.hosts) };
    let routes = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz::<S>))
        .route("/v1/jobs", post(jobs::submit::<S>).get(jobs::list::<S>))
        .route("/v1/jobs/bulk", post(bulk::submit::<S>))
        .route("/v1/jobs/{id}", get(jobs::one::<S>).delete(steering::delete::<S>))
        .route("/v1/jobs/{id}/turns", get(jobs::turns::<S>))
        .route("/v1/jobs/{id}/transcript", get(jobs::transcript::<S>))
        .route("/v1/jobs/{id}/explain", get(jobs::explain::<S>))
        .route("/v1/jobs/{id}/cancel", post(steering::cancel::<S>))
        .route("/v1/jobs/{id}/retry", post(steering::retry::<S>))
        .route("/v1/jobs/{id}/messages", post(steering::tell::<S>))
        .route("/v1/jobs/{id}/pause", post(steering::pause::<S>))
        .route("/v1/jobs/{id}/resume", post(steering::resume::<S>))
        .route("/v1/failures", get(history::failures::<S>))
        .route("/v1/failures/summary", get(history::summary::<S>))
        .route("/v1/results", get(history::results::<S>))
        .route("/v1/usage", get(history::usage::<S>))
        .route("/v1/resets", get(resets::list::<S>))
        .route("/v1/resets/accuracy", get(resets::accuracy::<S>))
        .route("/v1/resets/{job}/{fence}/{n}", get(resets::one::<S>))
        .route("/v1/holds", get(holds::list::<S>).post(holds::close::<S>))
        .route("/v1/holds/{id}", get(holds::one::<S>).delete(holds::release::<S>))
        .route("/v1/queues", get(queues::list::<S>))
        .route("/v1/queues/{queue}/pause", post(queues::pause::<S>))
        .route("/v1/queues/{queue}/resume", post(queues::resume::<S>))
        .route("/v1/schedules", get(schedules::list::<S>).post(schedules::add::<S>))
        .route("/v1/schedules/{name}", get(schedules::one::<S>).delete(schedules::remove::<S>))
        .route("/v1/schedules/{name}/pause", post(schedules::pause::<S>))
        .route("/v1/schedules/{name}/resume", post(schedules::resume::<S>))
        .route("/v1/schedules/{name}/run", post(schedules::run::<S>))
        .route_layer(middleware::from_fn(request::no_parameters))
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .with_state(api);
    // Around the whole of it: what a route allows is known only behind it.
    Router::new().fallback_service(routes).layer(middleware::from_fn_with_state(hosts, checked))
}

async fn healthz() -> Response {
    Json(json!({"status": "ok"})).into_response()
}

/// Ready: the database takes writes, so that a job would be.
async fn readyz<S: Store>(State(api): State<Api<S>>) -> Result<Response, Problem> {
    api.store.takes_writes().await?;
    Ok(Json(json!({"status": "ready"})).into_response())
}

async fn not_found(request: Request) -> Problem {
    let path = request.uri().path().escape_debug().to_string();
    Problem::new(Kind::NotFound, format!("there is no {path}; jobs are at /v1/jobs"))
}

async fn not_allowed(request: Request) -> Problem {
    let (method, path) = (request.method(), request.uri().path().escape_debug());
    Problem::new(Kind::Method, format!("{method} is not taken at {path}"))
}

/// The names that are served. An open server on loopback is reachable from web pages by DNS rebinding: a page's own
/// name resolves to this machine, but its requests carry that name.
#[derive(Clone)]
struct Hosts {
    bound: SocketAddr,
    named: Arc<Vec<String>>,
}

impl Hosts {
    fn serves(&self, host: &str) -> bool {
        let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
        let name = name.map_or(host, |(name, _)| name).to_ascii_lowercase();
        let ip = match self.bound {
            SocketAddr::V4(address) => address.ip().to_string(),
            SocketAddr::V6(address) => format!("[{}]", address.ip()),
        };
        name == "localhost" || name == ip || self.named.contains(&name)
    }
}

async fn checked(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    let named = request.headers().get(header::HOST).and_then(|host| host.to_str().ok().map(str::to_owned));
    let host = named.or_else(|| request.uri().authority().map(ToString::to_string)).unwrap_or_default();
    let asked = format!("{} is not taken at {}", request.method(), request.uri().path().escape_debug());
    let mut response = if !hosts.serves(&host) {
        let what = format!("`{}` is not served here; add it to server.hosts if it should be", host.escape_debug());
        Problem::new(Kind::Host, what).into_response()
    } else if let Some(origin) = foreign(&hosts, &request) {
        let what = format!("a page of `{}` may not change anything here", origin.escape_debug());
        Problem::new(Kind::Origin, what).into_response()
    } else {
        next.run(request).await
    };
    // The router knows what is allowed only once nothing else fitted.
    let allow = response.headers().get(header::ALLOW).and_then(|allow| allow.to_str().ok()).map(str::to_owned);
    if let (StatusCode::METHOD_NOT_ALLOWED, Some(allow)) = (response.status(), allow) {
        let what = format!("{asked}; allowed are {}", allow.replace(',', ", "));
        response = Problem { allow: Some(allow), ..Problem::new(Kind::Method, what) }.into_response();
    }
    // What axum itself refuses (a path that is no UTF-8) is plain text.
    if response.status() == StatusCode::BAD_REQUEST && !is_problem(&response) {
        response = Problem::new(Kind::Malformed, "the request's path or query cannot be read").into_response();
    }
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The origin of a request that would change something and that a page of another site makes: browsers name it in each.
/// Much of what can be asked for here needs no body, and so no permission of ours for a browser to ask for it.
fn foreign(hosts: &Hosts, request: &Request) -> Option<String> {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    let origin = request.headers().get(header::ORIGIN)?.to_str().unwrap_or("?");
    let host = origin.split_once("://").map_or("", |(_, host)| host);
    (!hosts.serves(host)).then(|| origin.to_owned())
}

fn is_problem(response: &Response) -> bool {
    response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/problem+json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_configured_names_are_served() {
        let hosts = Hosts {
            bound: SocketAddr::from(([127, 0, 0, 1], 7171)),
            named: Arc::new(vec!["reprieve.internal".to_owned()]),
        };
        for host in ["127.0.0.1:7171", "127.0.0.1", "localhost:7171", "LOCALHOST", "reprieve.internal:80"] {
            assert!(hosts.serves(host), "{host}");
        }
        for host in ["", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:7171", "[::1]", "127.0.0.2"]
        {
            assert!(!hosts.serves(host), "{host}");
        }
        let six = Hosts { bound: "[::1]:7171".parse().unwrap(), named: Arc::default() };
        assert!(six.serves("[::1]:7171") && six.serves("[::1]") && !six.serves("::1"));
    }
}
