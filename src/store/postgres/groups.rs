//! Group commit: single submissions, and single ends of executions, that come in while a transaction of their kind is
//! under way go together into the next, because a commit costs the same whatever is in it. Answers follow the commit.

use super::Core;
use super::fault::Res;
use super::tx::Tries;
use super::verbs::{self, Output, Request};
use crate::store::{Completion, Error, NewJob, Result};
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

/// How many commands may wait before their callers wait to send them.
const QUEUE: usize = 4_096;
/// How many rows one group may carry beyond its first command.
const ROWS: usize = 4_000;

/// A request and whom to tell.
pub(super) struct Command {
    pub request: Request,
    pub reply: oneshot::Sender<Result<Output>>,
}

/// Where commands of one kind go; at most `at_once` groups are under way.
pub(super) fn start(core: &Arc<Core>, at_once: usize) -> (mpsc::Sender<Command>, JoinHandle<()>) {
    let (commands, queue) = mpsc::channel(QUEUE);
    let gathering = gather(Arc::clone(core), queue, at_once);
    (commands, tokio::spawn(gathering))
}

async fn gather(core: Arc<Core>, mut queue: mpsc::Receiver<Command>, at_once: usize) {
    let slots = Arc::new(Semaphore::new(at_once));
    let most = core.db.pool.options().group.max(1);
    loop {
        // First a place, then what has come in until there was one.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { break };
        let Some(first) = queue.recv().await else { break };
        let mut rows = first.request.rows();
        let mut group = vec![first];
        while group.len() < most && rows < ROWS {
            let Ok(next) = queue.try_recv() else { break };
            rows += next.request.rows();
            group.push(next);
        }
        let core = Arc::clone(&core);
        tokio::spawn(async move {
            commit(&core, group).await;
            drop(slot);
        });
    }
    // Whoever closes waits for the last of them.
    let all = u32::try_from(at_once).unwrap_or(u32::MAX);
    if slots.acquire_many(all).await.is_err() {
        tracing::error!("a group's places were closed under it");
    }
}

async fn commit(core: &Core, group: Vec<Command>) {
    let (requests, replies): (Vec<Request>, Vec<_>) =
        group.into_iter().map(|command| (command.request, command.reply)).unzip();
    let outputs = match together(core, &requests).await {
        Ok(outputs) => outputs.into_iter().map(Ok).collect(),
        Err(error) => alone(core, &requests, error).await,
    };
    for (reply, output) in replies.into_iter().zip(outputs) {
        // Whoever asked may have gone; the commit stands.
        let _ = reply.send(output);
    }
}

/// One that fails harms no other: each runs again by itself. Where the database is away, none would fare better.
async fn alone(core: &Core, requests: &[Request], error: Error) -> Vec<Result<Output>> {
    let away = matches!(error, Error::Away { .. } | Error::Closed | Error::Full | Error::ReadOnly);
    if away || requests.len() == 1 {
        return requests.iter().map(|_| Err(error.clone())).collect();
    }
    let mut outputs = Vec::with_capacity(requests.len());
    for request in requests {
        outputs.push(core.write(request).await);
    }
    outputs
}

async fn together(core: &Core, requests: &[Request]) -> Result<Vec<Output>> {
    let mut tries = Tries::new(&core.db);
    loop {
        match attempt(core, requests).await {
            Ok(outputs) => return Ok(outputs),
            Err(fault) => tries.again(fault).await?,
        }
    }
}

async fn attempt(core: &Core, requests: &[Request]) -> Res<Vec<Output>> {
    verbs::prepare(&core.db, &requests.iter().collect::<Vec<_>>()).await?;
    let mut tx = core.db.write().await?;
    let outputs = match merged(&mut tx, requests).await {
        Ok(outputs) => outputs,
        Err(fault) => {
            tx.roll_back().await;
            return Err(fault);
        }
    };
    let moved = tx.moved;
    tx.commit().await?;
    if moved {
        core.changes.moved();
    }
    Ok(outputs)
}

/// Requests of one kind as one; the answers dealt out again.
async fn merged(tx: &mut super::tx::Tx, requests: &[Request]) -> Res<Vec<Output>> {
    let jobs: Vec<&NewJob> = requests.iter().flat_map(Request::jobs).collect();
    let ends: Vec<&Completion> = requests.iter().flat_map(Request::completions).collect();
    let mut submitted = if jobs.is_empty() { Vec::new() } else { verbs::submit(tx, &jobs).await? }.into_iter();
    let mut completed = if ends.is_empty() { Vec::new() } else { verbs::complete(tx, &ends).await? }.into_iter();
    let deal = |request: &Request| match request {
        Request::Complete(ends) => Output::Completed(completed.by_ref().take(ends.len()).collect()),
        other => Output::Submitted(submitted.by_ref().take(other.rows()).collect()),
    };
    Ok(requests.iter().map(deal).collect())
}
