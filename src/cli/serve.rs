//! `serve` and `worker`: the processes that stay.

use super::out::Out;
use super::service::{Running, Work, log, of_app};
use super::trouble::{Exit, Trouble};
use crate::agent::Directory;
use crate::api::{self, Kind};
use crate::app::Service;
use crate::config::Config;
use crate::store::Store;
use clap::Args;
use serde_json::json;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What a process that stays logs unless told otherwise; the scheduler's own start is of no interest.
const LOGGED: &str = "info,tokio_cron_scheduler=warn";

#[derive(Args, Clone, Debug, Default)]
pub struct ServeArgs {
    /// Only the API and the duties of the clock: turns are left to `reprieve worker`
    #[arg(long)]
    pub no_worker: bool,
}

#[derive(Args, Clone, Debug, Default)]
pub struct WorkerArgs {
    /// The queues to take turns from, over worker.queues
    #[arg(long, value_delimiter = ',', value_name = "A,B", value_parser = queue)]
    pub queues: Vec<String>,
    /// Turns in hand at once, over worker.concurrency
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub concurrency: Option<u32>,
}

/// A queue's name, or `*`; a worker of a queue that cannot be would wait for ever.
fn queue(text: &str) -> Result<String, String> {
    if text == "*" {
        return Ok(text.to_owned());
    }
    queue_name(text).map_err(|why| format!("{why}, or * for all"))
}

/// A queue's name.
///
/// # Errors
/// What would be one.
pub(super) fn queue_name(text: &str) -> Result<String, String> {
    let named = crate::agent::limits::NAME_BYTES >= text.len()
        && !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
    let wrong = || "no name of a queue; write 1 to 64 characters of A-Z a-z 0-9 _ . -".to_owned();
    named.then(|| text.to_owned()).ok_or_else(wrong)
}

pub async fn serve<S: Store>(store: S, config: &Config, args: &ServeArgs, out: &mut Out) -> Result<Exit, Trouble> {
    log(LOGGED, out.json)?;
    let listener = api::bind(&config.server).await?;
    let service = Service::build(config, store.clone(), None).await.map_err(|error| of_app(&error))?;
    let bound = listener.local_addr()?;
    let url = format!("http://{bound}");
    if out.json {
        out.json_line(&json!({"url": url}))?;
    } else {
        out.line(format!("reprieve serves {url}"))?;
    }
    out.flush()?;
    let api =
        api::Api { store, directory: Arc::new(Directory::of(config)), hosts: Arc::new(config.server.hosts.clone()) };
    let stop = CancellationToken::new();
    let http = tokio::spawn(api::serve(listener, api, api::Waits::default(), stop.clone()));
    let mut running = Running::start(&service, if args.no_worker { Work::Nothing } else { Work::Turns });
    running.until_asked().await;
    stop.cancel();
    let served = http.await.map_err(|_| Trouble::new(Kind::Internal, "the HTTP server broke; its log says where"))?;
    running.end().await?;
    served?;
    service.store.close().await;
    Ok(Exit::Done)
}

pub async fn worker<S: Store>(store: S, config: &Config, args: &WorkerArgs, out: &mut Out) -> Result<Exit, Trouble> {
    log(LOGGED, out.json)?;
    let mut config = config.clone();
    if let Some(concurrency) = args.concurrency {
        config.worker.concurrency = concurrency;
    }
    if !args.queues.is_empty() {
        let all = args.queues.iter().any(|queue| queue == "*");
        config.worker.queues = if all { Vec::new() } else { args.queues.clone() };
    }
    let service = Service::build(&config, store, None).await.map_err(|error| of_app(&error))?;
    if out.json {
        out.json_line(&json!({"queues": config.worker.queues, "concurrency": config.worker.concurrency}))?;
    } else {
        let queues = &config.worker.queues;
        let queues = if queues.is_empty() { "all queues".to_owned() } else { queues.join(", ") };
        out.line(format!("a worker takes turns of {queues}, {} at once", config.worker.concurrency))?;
    }
    out.flush()?;
    let mut running = Running::start(&service, Work::Turns);
    running.until_asked().await;
    running.end().await?;
    service.store.close().await;
    Ok(Exit::Done)
}
