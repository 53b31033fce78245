//! Running what executes turns inside this process: for `serve` and `worker`, and for commands that wait for jobs that
//! nobody else would run.

use super::trouble::Trouble;
use crate::api::{Kind, Problem};
use crate::app::{self, Service};
use crate::store::Store;
use crate::telemetry::{self, Format};
use crate::worker::Stop;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A worker and the duties of the clock, running.
pub struct Running {
    pub stop: Stop,
    duties: CancellationToken,
    work: Option<JoinHandle<()>>,
    schedule: JoinHandle<Result<(), app::Error>>,
}

/// Whether turns are executed, besides the duties of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Turns,
    Nothing,
}

impl Running {
    pub fn start<S: Store>(service: &Service<S>, work: Work) -> Self {
        service.store.clock().tell_if_wrong();
        let (stop, duties) = (Stop::default(), CancellationToken::new());
        let work = (work == Work::Turns).then(|| {
            let (service, stop) = (service.clone(), stop.clone());
            tokio::spawn(async move { service.work(stop).await })
        });
        let schedule = {
            let (service, duties) = (service.clone(), duties.clone());
            tokio::spawn(async move { service.schedule(duties).await })
        };
        Self { stop, duties, work, schedule }
    }

    /// Waits until a signal asks to stop: the first to drain, a second to stop at once.
    pub async fn until_asked(&mut self) {
        let mut asked = Signals::new();
        asked.next().await;
        self.stop.drain.cancel();
        tracing::info!("asked to stop: turns in hand are finished; a second signal stops at once");
        let now = self.stop.now.clone();
        if let Some(work) = &mut self.work {
            tokio::select! {
                _ = &mut *work => {}
                () = asked.next() => {
                    now.cancel();
                    // Its end is reported by `end`.
                    let _ = (&mut *work).await;
                }
            }
            self.work = None;
        }
    }

    /// Stops at once what still runs: turns in hand go back to the queue.
    pub async fn end(self) -> Result<(), Trouble> {
        self.stop.drain.cancel();
        self.stop.now.cancel();
        if let Some(work) = self.work {
            joined(work.await)?;
        }
        self.duties.cancel();
        joined(self.schedule.await)?.map_err(|error| of_app(&error))
    }
}

fn joined<T>(ended: Result<T, tokio::task::JoinError>) -> Result<T, Trouble> {
    ended.map_err(|_| Trouble::new(Kind::Internal, "a part of the process broke; its log says where"))
}

/// Why the parts cannot be put together, as a problem.
#[must_use]
pub fn of_app(error: &app::Error) -> Trouble {
    let kind = match error {
        app::Error::Store(_) => Kind::Store,
        app::Error::Rules(_) => Kind::Configuration,
        app::Error::Scheduler(_) => Kind::Internal,
    };
    Problem::new(kind, error.to_string()).into()
}

/// The variable that sets what is logged.
const LOG: &str = "REPRIEVE_LOG";

/// Sets up the log on stderr for a process that executes turns: `unless_said`, or what the variable says.
///
/// # Errors
/// When the variable holds no filter.
pub fn log(unless_said: &str, json: bool) -> Result<(), Trouble> {
    let filter = std::env::var(LOG).unwrap_or_else(|_| unless_said.to_owned());
    let format = if json { Format::Json } else { Format::Text };
    telemetry::init(&filter, format).map_err(|error| Trouble::new(Kind::Configuration, format!("{LOG}: {error}")))
}

/// SIGINT and SIGTERM, from when it is made: one that comes before [`Signals::next`] is waited for is not lost, and does
/// not end the process.
pub struct Signals {
    #[cfg(unix)]
    both: Option<(tokio::signal::unix::Signal, tokio::signal::unix::Signal)>,
}

impl Signals {
    pub fn new() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            // Where they cannot be had, the interrupt alone is asked for, below.
            let both = signal(SignalKind::interrupt()).and_then(|int| Ok((int, signal(SignalKind::terminate())?)));
            Self { both: both.ok() }
        }
        #[cfg(not(unix))]
        Self {}
    }

    pub async fn next(&mut self) {
        #[cfg(unix)]
        if let Some((interrupt, terminate)) = &mut self.both {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            return;
        }
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// Whether a live worker takes turns of this queue.
///
/// # Errors
/// When the store does not say.
pub async fn is_served<S: Store>(store: &S, queue: &str) -> Result<bool, Trouble> {
    let workers = store.workers(store.clock().now_ms()).await?;
    Ok(workers.iter().any(|worker| worker.queues.is_empty() || worker.queues.iter().any(|taken| taken == queue)))
}
