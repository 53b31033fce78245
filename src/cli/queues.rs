//! `queues`: what stands in each queue, and stopping one or letting it go on.

use super::act::BY;
use super::out::Out;
use super::table::{Align, Table};
use super::trouble::{Exit, Trouble};
use super::words::{next, wrapped};
use crate::api::{shapes, words};
use crate::duration;
use crate::store::{Pause, QueueRow, Store};
use clap::{Args, Subcommand};
use serde_json::json;

#[derive(Args, Clone, Debug, Default)]
pub struct QueuesArgs {
    #[command(subcommand)]
    pub command: Option<QueuesCommand>,
}

#[derive(Subcommand, Clone, Debug)]
pub enum QueuesCommand {
    /// Start no further turn of a queue; what runs finishes, deadlines run on
    #[command(after_help = "Example: reprieve queues pause nightly --reason \"until the invoice is paid\"")]
    Pause {
        #[command(flatten)]
        queue: QueueName,
        /// Why; kept until the queue is resumed
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Let a queue go on
    #[command(after_help = "Example: reprieve queues resume nightly")]
    Resume {
        #[command(flatten)]
        queue: QueueName,
    },
}

#[derive(Args, Clone, Debug)]
pub struct QueueName {
    /// The queue
    #[arg(value_name = "QUEUE", value_parser = super::serve::queue_name)]
    pub queue: String,
}

pub async fn run<S: Store>(store: &S, args: &QueuesArgs, out: &mut Out) -> Result<Exit, Trouble> {
    match &args.command {
        None => list(store, out).await,
        Some(QueuesCommand::Pause { queue, reason }) => {
            let pause = Pause { since_ms: store.clock().now_ms(), by: BY.to_owned(), reason: reason.clone() };
            set(store, &queue.queue, Some(pause), out).await
        }
        Some(QueuesCommand::Resume { queue }) => set(store, &queue.queue, None, out).await,
    }
}

/// Pauses a queue, or lets it go on (`None`).
async fn set<S: Store>(store: &S, queue: &str, wanted: Option<Pause>, out: &mut Out) -> Result<Exit, Trouble> {
    let now_ms = store.clock().now_ms();
    let before = store.pause_queue(queue.to_owned(), wanted.clone()).await?;
    if out.json {
        let pause = |pause: Option<Pause>| pause.map(shapes::Pause::from);
        out.document(&json!({"queue": queue, "paused": pause(wanted), "before": pause(before)}))?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    let had = before.as_ref().map(|pause| {
        let why = pause.reason.as_deref().map_or_else(String::new, |reason| format!(": {reason}"));
        format!("since {} by {}{why}", words::instant_and_distance(pause.since_ms, now_ms), pause.by)
    });
    let said = match (wanted.is_some(), had) {
        (true, None) => format!("{queue} is paused; what runs finishes"),
        (true, Some(had)) => format!("{queue} is paused; it had been {had}"),
        (false, Some(had)) => format!("{queue} goes on; it had been paused {had}"),
        (false, None) => format!("{queue} was not paused; nothing was changed"),
    };
    for line in wrapped(&said, out.width()) {
        out.line(line)?;
    }
    if wanted.is_some() {
        next(&format!("queues resume {queue}"), "to let it go on", out)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

async fn list<S: Store>(store: &S, out: &mut Out) -> Result<Exit, Trouble> {
    let now_ms = store.clock().now_ms();
    let queues = store.queues(now_ms).await?;
    if out.json {
        let items: Vec<_> = queues.into_iter().map(shapes::Queue::from).collect();
        out.document(&shapes::List { items, next_cursor: None })?;
    } else if queues.is_empty() {
        out.line("No queue has anything, is paused, or had a job end within the last hour.")?;
    } else {
        for line in table(&queues, now_ms).lines(out.width(), out.colours()) {
            out.line(line)?;
        }
        for queue in queues.iter().filter(|queue| queue.workers == 0 && queue.ready + queue.deferred > 0) {
            out.line(format!("No live worker takes {}; start one: reprieve worker --queues {0}", queue.queue))?;
        }
        for (queue, pause) in queues.iter().filter_map(|queue| Some((&queue.queue, queue.paused.as_ref()?))) {
            let why = pause.reason.as_deref().map_or_else(String::new, |reason| format!(": {reason}"));
            let since = words::instant_and_distance(pause.since_ms, now_ms);
            for line in wrapped(&format!("{queue} is paused since {since} by {}{why}", pause.by), out.width()) {
                out.line(line)?;
            }
        }
        if let Some(queue) = queues.iter().find(|queue| queue.ready + queue.deferred + queue.later > 0) {
            next(&format!("jobs --queue {} --state waiting", queue.queue), "what waits there", out)?;
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn table(queues: &[QueueRow], now_ms: i64) -> Table {
    let mut table = Table::new(&[
        ("STATE", Align::Left),
        ("QUEUE", Align::Flexible),
        ("READY", Align::Right),
        ("HELD", Align::Right),
        ("OLDEST", Align::Right),
        ("RUNS", Align::Right),
        ("LATER", Align::Right),
        ("OK 1H", Align::Right),
        ("FAILED 1H", Align::Right),
        ("WORKERS", Align::Right),
    ]);
    for queue in queues {
        let oldest = queue.oldest_ms.map(|since_ms| duration::format(now_ms.saturating_sub(since_ms).max(0)));
        table.row(vec![
            if queue.paused.is_some() { "paused" } else { "open" }.to_owned(),
            queue.queue.clone(),
            words::count(queue.ready),
            words::count(queue.deferred),
            oldest.unwrap_or_else(|| "—".to_owned()),
            words::count(queue.running),
            words::count(queue.later + queue.paused_jobs + queue.requires_action),
            words::count(queue.succeeded_1h),
            words::count(queue.failed_1h),
            words::count(queue.workers),
        ]);
    }
    table
}
