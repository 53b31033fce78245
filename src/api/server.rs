//! The listener, the routes, and what holds for every request: a known `Host`, problem documents for everything that goes
//! wrong, a body that is bounded, and an end that lets answers finish.

use super::{Kind, Problem, bulk, jobs};
use crate::agent::Directory;
use crate::config;
use crate::store::Store;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long an end waits for connections: a client that sends half a request would hold the process for ever.
const GRACE: Duration = Duration::from_secs(5);

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

/// Serves until `stop`; answers that have begun are finished, as far as [`GRACE`] lasts.
///
/// # Errors
/// When the listener breaks.
pub async fn serve<S: Store>(listener: TcpListener, api: Api<S>, stop: CancellationToken) -> std::io::Result<()> {
    let bound = listener.local_addr()?;
    let asked = stop.clone();
    let serving = axum::serve(listener, router(api, bound)).with_graceful_shutdown(asked.cancelled_owned());
    tokio::select! {
        served = serving.into_future() => served,
        () = async {
            stop.cancelled().await;
            tokio::time::sleep(GRACE).await;
        } => {
            tracing::warn!("connections that were still open are closed; what they were not told was not acknowledged");
            Ok(())
        }
    }
}

/// The routes. `bound` is where they are served, one of the names that `Host` may carry.
pub fn router<S: Store>(api: Api<S>, bound: SocketAddr) -> Router {
    let hosts = Hosts { bound, named: Arc::clone(&api.hosts) };
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz::<S>))
        .route("/v1/jobs", post(jobs::submit::<S>).get(jobs::list::<S>))
        .route("/v1/jobs/bulk", post(bulk::submit::<S>))
        .route("/v1/jobs/{id}", get(jobs::one::<S>))
        .route("/v1/jobs/{id}/turns", get(jobs::turns::<S>))
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(middleware::from_fn_with_state(hosts, checked))
        .with_state(api)
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
    Problem::new(Kind::Method, format!("{method} is not taken at {path}; the header allow says what is"))
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
    let mut response = if hosts.serves(&host) {
        next.run(request).await
    } else {
        let what = format!("`{}` is not served here; add it to server.hosts if it should be", host.escape_debug());
        Problem::new(Kind::Host, what).into_response()
    };
    // What axum itself refuses (a path that is no UTF-8) is plain text.
    if response.status() == StatusCode::BAD_REQUEST && !is_problem(&response) {
        response = Problem::new(Kind::Malformed, "the request's path or query cannot be read").into_response();
    }
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
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
