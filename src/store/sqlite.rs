//! The store on SQLite: one file, one writer, a few read connections, no server.
//!
//! What lives here: the connections, group commit ([`writer`]), the verbs ([`verbs`]) and the lists ([`reads`]). What must
//! not: arithmetic of holds, flows and grants, which every database shares (`store::{ledger, flow, grants}`). Requests
//! come in over the seam [`Store`] and go to the writer over a channel; answers come back after the commit. Reads never
//! wait for the writer.
//!
//! Durability: WAL with `synchronous = FULL`, so that what was acknowledged survives the loss of power. Several processes
//! may open one file: each writes in transactions that take the lock at once (`BEGIN IMMEDIATE`), and sees the others'
//! commits within `poll_ms`.

pub mod care;
mod conn;
mod error;
mod migrate;
mod open;
mod place;
mod readers;
mod reads;
mod schedules;
pub(super) mod transfer;
mod tx;
mod verbs;
mod writer;

pub use open::OpenOptions;

use super::{
    AccuracyRow, Answer, Applied, By, CancelOutcome, ClaimRequest, ClaimedTurn, Completion, CountRow, DeleteOutcome,
    Error, FailureRow, Fence, Fire, Fired, History, HoldClose, HoldEventRow, HoldId, HoldRelease, HoldRow, JobId,
    JobRow, NewJob, NewMessages, NewSchedule, Overview, Page, Pause, Permit, PermitRequest, Posted, Prune, Pruned,
    Query, QueueRow, Rescue, Rescued, ResetRow, Result, ScheduleId, ScheduleRow, Scheduled, ScopeConfig, SendKey,
    Setback, Standing, Steer, SteerOutcome, Store, Submitted, TurnView, UsageBy, UsageRow, WorkerId, WorkerRow,
};
use super::{cursor, text};
use crate::clock::Clock;
use place::Place;
use readers::Readers;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use verbs::{Output, Request};
use writer::{Command, Writer};

/// How many commands may wait for the writer before their callers wait to send them.
const QUEUE: usize = 4_096;

/// A handle to one database file; cheap to clone.
#[derive(Clone, Debug)]
pub struct Sqlite(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Clock,
    commands: Mutex<Option<mpsc::Sender<Command>>>,
    changes: watch::Receiver<u64>,
    readers: Readers,
    /// Answers when the writer has ended.
    writer: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Sqlite {
    /// Opens the file that `url` names (`sqlite://path`), makes it where there is none, and brings its schema up to date.
    ///
    /// # Errors
    /// [`Error::Open`] where the URL or the file is not usable (a directory, another program's database, a damaged file,
    /// a database in memory), [`Error::ReadOnly`], [`Error::Locked`], [`Error::Newer`], [`Error::Full`].
    pub async fn open(url: &str, clock: Clock, options: OpenOptions) -> Result<Self> {
        let connect = open::connect_options(url, &options)?;
        let conn = open::writer(url, &connect, &options).await?;
        let place = Place::of(connect.get_filename());
        let mut readers = Vec::new();
        for _ in 0..options.readers.max(1) {
            readers.push(open::reader(url, &connect, &options).await?);
        }
        let (commands, queue) = mpsc::channel(QUEUE);
        let (changed, changes) = watch::channel(0);
        let poll = Duration::from_millis(options.poll_ms.max(1));
        let writer = Writer::new(conn, place.clone(), queue, changed, options.group.max(1), poll);
        let writer = apart(writer).map_err(|error| Error::Open { url: url.to_owned(), why: error.to_string() })?;
        Ok(Self(Arc::new(Inner {
            clock,
            commands: Mutex::new(Some(commands)),
            changes,
            readers: Readers::new(readers, place),
            writer: Mutex::new(Some(writer)),
        })))
    }

    async fn ask(&self, request: Request) -> Result<Output> {
        let commands = self.0.commands.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or(Error::Closed)?;
        let (reply, answer) = oneshot::channel();
        commands.send(Command { request, reply }).await.map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }
}

/// Runs the writer on a thread and a runtime of its own: a transaction is some dozen steps, and each would wait its turn
/// behind every task that the callers' runtime has to run.
fn apart(writer: Writer) -> std::io::Result<oneshot::Receiver<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let (ended, end) = oneshot::channel();
    std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || {
        runtime.block_on(writer.run());
        // Nobody may be waiting for it.
        let _ = ended.send(());
    })?;
    Ok(end)
}

/// The writer answers each request in kind; anything else is a fault of this module.
fn unexpected<T>(output: &Output) -> Result<T> {
    Err(Error::Database(format!("the writer answered {output:?}")))
}

macro_rules! expect {
    ($self:ident, $request:expr, $pattern:pat => $value:expr) => {
        match $self.ask($request).await? {
            $pattern => Ok($value),
            other => unexpected(&other),
        }
    };
}

impl Store for Sqlite {
    fn clock(&self) -> &Clock {
        &self.0.clock
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.clone()
    }

    async fn submit(&self, jobs: Vec<NewJob>) -> Result<Vec<Submitted>> {
        expect!(self, Request::Submit(jobs), Output::Submitted(answers) => answers)
    }

    async fn register_worker(&self, worker: WorkerRow) -> Result<()> {
        expect!(self, Request::Register(worker), Output::Nothing => ())
    }

    async fn heartbeat(&self, worker: WorkerId, now_ms: i64) -> Result<Applied> {
        expect!(self, Request::Heartbeat(worker, now_ms), Output::Applied(applied) => applied)
    }

    async fn retire_worker(&self, worker: WorkerId, now_ms: i64) -> Result<()> {
        expect!(self, Request::Retire(worker, now_ms), Output::Nothing => ())
    }

    async fn rescue(&self, request: Rescue) -> Result<Rescued> {
        expect!(self, Request::Rescue(request), Output::Rescued(rescued) => rescued)
    }

    async fn cancelled(&self, worker: WorkerId) -> Result<Vec<(JobId, Fence)>> {
        reads::cancelled(self.0.readers.take().await?.conn()?, worker).await
    }

    async fn configure_scopes(&self, scopes: Vec<ScopeConfig>) -> Result<()> {
        expect!(self, Request::Configure(scopes), Output::Nothing => ())
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<ClaimedTurn>> {
        expect!(self, Request::Claim(request), Output::Claimed(turns) => turns)
    }

    async fn permit(&self, request: PermitRequest) -> Result<Permit> {
        expect!(self, Request::Permit(request), Output::Permit(permit) => permit)
    }

    async fn answered(&self, answers: Vec<Answer>) -> Result<()> {
        expect!(self, Request::Answered(answers), Output::Nothing => ())
    }

    async fn give_back(&self, _worker: WorkerId, turns: Vec<(JobId, Fence)>, now_ms: i64) -> Result<()> {
        expect!(self, Request::GiveBack(turns, now_ms), Output::Nothing => ())
    }

    async fn set_back(&self, setback: Setback) -> Result<Applied> {
        expect!(self, Request::SetBack(Box::new(setback)), Output::Applied(applied) => applied)
    }

    async fn complete(&self, completions: Vec<Completion>) -> Result<Vec<Applied>> {
        expect!(self, Request::Complete(completions), Output::Completed(applied) => applied)
    }

    async fn history(&self, job: JobId) -> Result<History> {
        reads::history(self.0.readers.take().await?.conn()?, job).await
    }

    async fn next_due_ms(&self, now_ms: i64) -> Result<Option<i64>> {
        reads::next_due_ms(self.0.readers.take().await?.conn()?, now_ms).await
    }

    async fn expire(&self, now_ms: i64, limit: u32) -> Result<u32> {
        expect!(self, Request::Expire(now_ms, limit), Output::Count(count) => count)
    }

    async fn prune(&self, request: Prune) -> Result<Pruned> {
        let now_ms = self.0.clock.now_ms();
        expect!(self, Request::Prune(request, now_ms), Output::Pruned(pruned) => pruned)
    }

    async fn cancel(&self, jobs: Vec<JobId>, now_ms: i64) -> Result<Vec<CancelOutcome>> {
        expect!(self, Request::Cancel(jobs, now_ms), Output::Cancelled(outcomes) => outcomes)
    }

    async fn post(&self, messages: NewMessages) -> Result<Posted> {
        expect!(self, Request::Post(messages), Output::Posted(posted) => posted)
    }

    async fn steer(&self, jobs: Vec<JobId>, how: Steer, now_ms: i64) -> Result<Vec<SteerOutcome>> {
        expect!(self, Request::Steer(jobs, how, now_ms), Output::Steered(outcomes) => outcomes)
    }

    async fn delete(&self, jobs: Vec<JobId>) -> Result<Vec<DeleteOutcome>> {
        expect!(self, Request::Delete(jobs), Output::Deleted(outcomes) => outcomes)
    }

    async fn pause_queue(&self, queue: String, pause: Option<Pause>) -> Result<Option<Pause>> {
        expect!(self, Request::PauseQueue(queue, pause), Output::QueuePaused(before) => before)
    }

    async fn close_scope(&self, close: HoldClose) -> Result<HoldRow> {
        let id = expect!(self, Request::Close(close), Output::Closed(id) => id)?;
        let row = reads::hold(self.0.readers.take().await?.conn()?, id).await?;
        row.ok_or_else(|| Error::Database("a hold was deleted as it was closed".into()))
    }

    async fn retries(&self, of: Vec<JobId>) -> Result<Vec<(JobId, JobId)>> {
        schedules::retries(self.0.readers.take().await?.conn()?, &of).await
    }

    async fn add_schedule(&self, schedule: NewSchedule) -> Result<Scheduled> {
        expect!(self, Request::AddSchedule(schedule), Output::Scheduled(scheduled) => scheduled)
    }

    async fn remove_schedule(&self, id: ScheduleId) -> Result<bool> {
        expect!(self, Request::RemoveSchedule(id), Output::Found(found) => found)
    }

    async fn pause_schedule(&self, id: ScheduleId, pause: Option<Pause>, next_ms: Option<i64>) -> Result<bool> {
        expect!(self, Request::PauseSchedule(id, pause, next_ms), Output::Found(found) => found)
    }

    async fn schedules(&self) -> Result<Vec<ScheduleRow>> {
        schedules::list(self.0.readers.take().await?.conn()?).await
    }

    async fn due_schedules(&self, now_ms: i64, limit: u32) -> Result<Vec<ScheduleRow>> {
        schedules::due(self.0.readers.take().await?.conn()?, now_ms, limit).await
    }

    async fn fire(&self, fire: Fire) -> Result<Fired> {
        expect!(self, Request::Fire(fire), Output::Fired(fired) => fired)
    }

    async fn standing(&self, job: JobId, now_ms: i64) -> Result<Option<Standing>> {
        reads::standing(self.0.readers.take().await?.conn()?, job, now_ms).await
    }

    async fn histories(&self, jobs: Vec<JobId>) -> Result<Vec<History>> {
        reads::histories(self.0.readers.take().await?.conn()?, &jobs).await
    }

    async fn reset(&self, key: SendKey) -> Result<Option<ResetRow>> {
        reads::reset(self.0.readers.take().await?.conn()?, key).await
    }

    async fn reset_accuracy(&self, query: Query) -> Result<Vec<AccuracyRow>> {
        reads::reset_accuracy(self.0.readers.take().await?.conn()?, &query).await
    }

    async fn hold_events(&self, hold: HoldId) -> Result<Vec<HoldEventRow>> {
        reads::hold_events(self.0.readers.take().await?.conn()?, hold).await
    }

    async fn queues(&self, now_ms: i64) -> Result<Vec<QueueRow>> {
        reads::queues(self.0.readers.take().await?.conn()?, now_ms).await
    }

    async fn usage(&self, query: Query, by: UsageBy) -> Result<Vec<UsageRow>> {
        reads::usage(self.0.readers.take().await?.conn()?, &query, &by).await
    }

    async fn release_hold(&self, release: HoldRelease) -> Result<Option<HoldRow>> {
        match self.ask(Request::Release(release)).await? {
            Output::Released(Some(id)) => reads::hold(self.0.readers.take().await?.conn()?, id).await,
            Output::Released(None) => Ok(None),
            other => unexpected(&other),
        }
    }

    async fn job(&self, id: JobId) -> Result<Option<JobRow>> {
        reads::job(self.0.readers.take().await?.conn()?, id).await
    }

    async fn jobs(&self, query: Query) -> Result<Page<JobRow>> {
        reads::jobs(self.0.readers.take().await?.conn()?, &query).await
    }

    async fn job_ids(&self, first: JobId, last: JobId, end: String, limit: u32) -> Result<Vec<JobId>> {
        reads::job_ids(self.0.readers.take().await?.conn()?, (first, last), &end, limit).await
    }

    async fn turns(&self, job: JobId) -> Result<Vec<TurnView>> {
        reads::turns(self.0.readers.take().await?.conn()?, job).await
    }

    async fn failures(&self, query: Query) -> Result<Page<FailureRow>> {
        reads::failures(self.0.readers.take().await?.conn()?, &query).await
    }

    async fn failure_counts(&self, query: Query, by: By) -> Result<Vec<CountRow>> {
        reads::failure_counts(self.0.readers.take().await?.conn()?, &query, by).await
    }

    async fn resets(&self, query: Query) -> Result<Page<ResetRow>> {
        reads::resets(self.0.readers.take().await?.conn()?, &query).await
    }

    async fn hold(&self, id: HoldId) -> Result<Option<HoldRow>> {
        reads::hold(self.0.readers.take().await?.conn()?, id).await
    }

    async fn holds(&self, query: Query) -> Result<Vec<HoldRow>> {
        reads::holds(self.0.readers.take().await?.conn()?, &query).await
    }

    async fn results(&self, query: Query) -> Result<Page<JobRow>> {
        reads::results(self.0.readers.take().await?.conn()?, &query).await
    }

    async fn takes_writes(&self) -> Result<()> {
        expect!(self, Request::Touch, Output::Nothing => ())
    }

    async fn overview(&self, _now_ms: i64) -> Result<Overview> {
        reads::overview(self.0.readers.take().await?.conn()?).await
    }

    async fn workers(&self, now_ms: i64) -> Result<Vec<WorkerRow>> {
        reads::workers(self.0.readers.take().await?.conn()?, now_ms).await
    }

    async fn close(&self) {
        // Without a sender the writer commits what is queued, and ends.
        self.0.commands.lock().unwrap_or_else(PoisonError::into_inner).take();
        let writer = self.0.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer
            && writer.await.is_err()
        {
            tracing::error!("the writer did not end well");
        }
        self.0.readers.close().await;
    }
}
