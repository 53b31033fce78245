//! Waiting for jobs: results as they end, by the store alone, with a worker in this process where no other takes the queue.

use super::out::Out;
use super::service::{Running, Signals, Work, is_served, log, of_app};
use super::trouble::{Exit, Trouble};
use crate::api::{Kind, said, shapes};
use crate::app::Service;
use crate::config::Config;
use crate::store::{JobId, JobRow, JobState, Query, Store};
use std::collections::HashSet;
use std::io::Write;
use std::time::Duration;

/// The safety net under every wake-up.
const POLL: Duration = Duration::from_secs(1);
const PAGE: u32 = 500;

/// What is said when a signal ends the waiting.
pub(super) const INTERRUPTED: &str =
    "interrupted; what has not ended stays queued, and `reprieve results` shows what comes of it";

/// Jobs that are waited for.
pub struct Waiting {
    ids: HashSet<JobId>,
    /// Of those, the ones that had been submitted before.
    repeated: Vec<JobId>,
    since_ms: i64,
}

impl Waiting {
    /// Begins before the first job is submitted, so that no end is missed.
    pub fn begin<S: Store>(store: &S) -> Self {
        Self { ids: HashSet::new(), repeated: Vec::new(), since_ms: store.clock().now_ms() }
    }

    pub fn add(&mut self, id: JobId) {
        self.ids.insert(id);
    }

    /// A job that had been submitted before, and may have ended before.
    pub fn add_repeated(&mut self, id: JobId) {
        if self.ids.insert(id) {
            self.repeated.push(id);
        }
    }

    /// Prints each result as its job ends; failed if any did not succeed.
    pub async fn finish<S: Store>(
        mut self,
        store: S,
        config: &Config,
        queues: &[String],
        out: &mut Out,
    ) -> Result<Exit, Trouble> {
        let running = start_if_needed(&store, config, queues, None).await?;
        let mut asked = Signals::new();
        let waited = tokio::select! {
            waited = self.follow(&store, out) => waited,
            () = asked.next() => Err(Trouble::new(Kind::Internal, INTERRUPTED)),
        };
        if let Some(running) = running {
            running.end().await?;
        }
        store.close().await;
        waited
    }

    async fn follow<S: Store>(&mut self, store: &S, out: &mut Out) -> Result<Exit, Trouble> {
        let mut exit = Exit::Done;
        let mut changes = store.changes();
        self.ended_before(store, &mut exit, out).await?;
        let mut query = Query { since_ms: Some(self.since_ms), limit: PAGE, ..Query::default() };
        while !self.ids.is_empty() {
            changes.borrow_and_update();
            query.now_ms = store.clock().now_ms();
            let page = store.results(query.clone()).await?;
            let full = page.items.len() >= PAGE as usize;
            let mut ended: Vec<JobRow> = page.items.into_iter().filter(|job| self.ids.remove(&job.id)).collect();
            said::fill_in(store, &mut ended).await?;
            for job in ended {
                print(job, query.now_ms, &mut exit, out)?;
            }
            if page.next_cursor.is_some() {
                query.cursor = page.next_cursor;
            }
            if !full && !self.ids.is_empty() {
                // Either wakes us; the store is asked again in any case.
                let _ = tokio::time::timeout(POLL, changes.changed()).await;
            }
        }
        Ok(exit)
    }

    async fn ended_before<S: Store>(&mut self, store: &S, exit: &mut Exit, out: &mut Out) -> Result<(), Trouble> {
        for id in std::mem::take(&mut self.repeated) {
            let job = store.job(id).await?;
            if let Some(mut job) = job.filter(|job| job.finished_ms.is_some_and(|ended_ms| ended_ms < self.since_ms)) {
                said::fill_in(store, std::slice::from_mut(&mut job)).await?;
                self.ids.remove(&id);
                print(job, store.clock().now_ms(), exit, out)?;
            }
        }
        Ok(())
    }
}

fn print(job: JobRow, now_ms: i64, exit: &mut Exit, out: &mut Out) -> Result<(), Trouble> {
    if job.state != JobState::Succeeded {
        *exit = Exit::Failed;
    }
    out.json_line(&shapes::Job::ended(job, now_ms))?;
    out.flush()
}

/// Starts a worker in this process if no live one takes all of the queues, and says so.
pub async fn start_if_needed<S: Store>(
    store: &S,
    config: &Config,
    queues: &[String],
    live: Option<crate::worker::Live>,
) -> Result<Option<Running>, Trouble> {
    let mut unserved = Vec::new();
    for queue in queues {
        if !is_served(store, queue).await? {
            unserved.push(queue.clone());
        }
    }
    if unserved.is_empty() {
        return Ok(None);
    }
    writeln!(
        std::io::stderr().lock(),
        "no live worker takes queue {}; this process works until its jobs have ended",
        unserved.join(", ")
    )?;
    log("error", false)?;
    let mut config = config.clone();
    config.worker.queues = unserved;
    let service = Service::build(&config, store.clone(), live).await.map_err(|error| of_app(&error))?;
    Ok(Some(Running::start(&service, Work::Turns)))
}
