//! A simulated provider: an HTTP/1.1 server that speaks three dialects, and refuses, meters, drops and stalls as real
//! ones do, by a scenario (`docs/SIMULATOR.md`).
//!
//! Knows nothing of jobs, stores or recovery: it is the other end of the wire, for tests, benchmarks and the tour.
//! Given the same scenario, seed and arrival order it does the same. In come requests; out go answers and faults, and
//! at `/_sim/` what was counted. Prompts and keys are kept nowhere.

mod answer;
mod ask;
mod core;
mod ledger;
mod meter;
mod naming;
mod pieces;
mod refusal;
mod scenario;
mod serve;
mod text;
mod turn;
mod wire;

pub use ask::Dialect;
pub use ledger::{Counts, LimitStats, Log, LogEntry, Outcome, RuleStats, ScopeStats, Stats};
pub use scenario::{Scenario, ScenarioError};

use crate::clock::Clock;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Where it listens, and whose time it obeys.
#[derive(Clone, Debug)]
pub struct SimOptions {
    /// `host:port`; port 0 takes a free one.
    pub bind: String,
    /// The provider's own clock: what its limits, waits and named resets go by.
    pub clock: Clock,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self { bind: "127.0.0.1:0".to_owned(), clock: Clock::system() }
    }
}

/// Why it does not listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {bind}")]
pub struct BindError {
    pub bind: String,
    #[source]
    pub source: std::io::Error,
}

/// A running simulator. Ends with [`Sim::shutdown`], or in the background when dropped.
#[derive(Debug)]
pub struct Sim {
    shared: Arc<Shared>,
    addr: SocketAddr,
    stop: CancellationToken,
    accepting: JoinHandle<()>,
}

/// What the connections share.
#[derive(Debug)]
struct Shared {
    scenario: Arc<Scenario>,
    clock: Clock,
    core: Mutex<core::Core>,
    /// Numbers arrivals and ends in the order in which they happen.
    order: AtomicU64,
}

impl Shared {
    fn core(&self) -> MutexGuard<'_, core::Core> {
        // Counts may be off after a panic elsewhere; a simulator goes on.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_order(&self) -> u64 {
        self.order.fetch_add(1, Ordering::Relaxed)
    }
}

impl Sim {
    /// Listens and serves on the current runtime.
    ///
    /// # Errors
    /// If it cannot listen there.
    pub async fn start(scenario: Scenario, options: SimOptions) -> Result<Self, BindError> {
        let SimOptions { bind, clock } = options;
        let listening = async {
            let listener = TcpListener::bind(&bind).await?;
            let addr = listener.local_addr()?;
            Ok((listener, addr))
        };
        let (listener, addr) = match listening.await {
            Ok(listening) => listening,
            Err(source) => return Err(BindError { bind, source }),
        };
        let scenario = Arc::new(scenario);
        let core = Mutex::new(core::Core::new(Arc::clone(&scenario), clock.now_ms()));
        let shared = Arc::new(Shared { scenario, clock, core, order: AtomicU64::new(0) });
        let stop = CancellationToken::new();
        let accepting = tokio::spawn(serve::accept(listener, Arc::clone(&shared), stop.clone()));
        Ok(Self { shared, addr, stop, accepting })
    }

    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://host:port`, without a trailing slash.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// What `GET /_sim/stats` shows.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.core().stats(self.shared.clock.now_ms())
    }

    /// What `GET /_sim/log` shows: at most `limit` requests after the `since`-th.
    #[must_use]
    pub fn log(&self, since: u64, limit: usize) -> Log {
        self.shared.core().log(since, limit)
    }

    /// What `POST /_sim/reset` does: counts, meters, refusals and rules begin anew, and so does the scenario's time.
    pub fn reset(&self) {
        self.shared.core().reset(self.shared.clock.now_ms());
    }

    /// Stops listening, closes every connection, and waits until all is closed.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        // It cannot be aborted; if it panicked, the connections are closed all the same.
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
