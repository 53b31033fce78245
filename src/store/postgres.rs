//! The store on Postgres (14 and newer): many processes on many machines, several connections each.
//!
//! What lives here: connections ([`conn`]), transactions ([`tx`]), group commit ([`groups`]), the verbs ([`verbs`]) and the
//! lists ([`reads`]). What must not: arithmetic of holds, flows and grants, which every database shares
//! (`store::ledger`, [`crate::admission`]). Requests come in over the seam [`Store`] and run apart from their callers, so
//! that one that goes away cuts nothing short; answers come back after the commit.
//!
//! **Isolation is locks.** Transactions are READ COMMITTED: a statement sees what is committed when it begins, and what it
//! is to rely on is locked first. Locks are taken in one order, so that nobody waits in a circle, and what still does
//! (40P01) is done again:
//!
//! 1. one row of `schedules`, by whoever fires, pauses or removes it;
//! 2. `workers`: a claim shares its worker's row, so that the worker is neither rescued nor retired under it;
//! 3. `scopes`, in the order of their numbers; a scope only with its account, which has the lower number. Whoever gives or
//!    takes permits, opens, dates or lifts holds has them: holds need no locks of their own;
//! 4. `turns`, in the order of their ids; claims, promotions and deadlines skip what others have. Who posts to a job, moves
//!    it or ends it has its turn, so that none of them sees the others' work half done;
//! 5. `lanes`, in the order of their numbers, for their counts;
//! 6. the row `ended` of `counters`, from the draw of a job's place in the order of endings to the commit.
//!
//! Names (scopes, lanes) are made in transactions of their own, before.
//!
//! **What orders what.** Permits and holds are numbered by one sequence, drawn only while the scope is locked: a hold's
//! number is greater than that of every permit that was committed in its scope before it, and smaller than every later
//! one's. The order of endings is drawn under a lock that is held to the commit, so that a reader who has seen a place
//! has seen every lower one. (The other way, places from a sequence and readers who stop at the oldest running transaction,
//! lets any long transaction of the cluster hold the list back.) It serialises the commits of ends, which come in
//! groups; [`verbs::complete`] takes it last.
//!
//! **A lost connection** is replaced. What had not been committed is done again; a commit that was not answered is asked
//! about by its transaction's number ([`tx`]). Submissions carry ids: the same again is the same.
//!
//! **Opening verifies and never migrates** ([`migrate`]).

mod cache;
pub mod care;
mod changes;
mod conn;
mod escape;
mod fault;
mod groups;
pub mod migrate;
mod names;
mod open;
mod reads;
mod rows;
pub(super) mod transfer;
mod tx;
mod verbs;

pub use open::{Notify, OpenOptions, schema_problem, shown};

use super::{
    AccuracyRow, Answer, Applied, By, CancelOutcome, ClaimRequest, ClaimedTurn, Completion, CountRow, DeleteOutcome,
    Error, FailureRow, Fence, Fire, Fired, History, HoldClose, HoldEventRow, HoldId, HoldRelease, HoldRow, JobId,
    JobRow, NewJob, NewMessages, NewSchedule, Overview, Page, Pause, Permit, PermitRequest, Posted, Prune, Pruned,
    Query, QueueRow, Rescue, Rescued, ResetRow, Result, ScheduleId, ScheduleRow, Scheduled, ScopeConfig, SendKey,
    Setback, Standing, Steer, SteerOutcome, Store, Submitted, TurnView, UsageBy, UsageRow, WorkerId, WorkerRow,
};
use crate::clock::Clock;
use cache::Cache;
use changes::Changes;
use conn::Pool;
use fault::Res;
use groups::Command;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tx::{Db, Tries};
use verbs::{Output, Request};

/// Connections for renewals of leases.
const LEASES: u32 = 1;
/// How often the offset to the database's clock is measured anew.
const MEASURE: Duration = Duration::from_secs(30);

/// A handle to one schema of one database; cheap to clone.
#[derive(Clone, Debug)]
pub struct Postgres(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    core: Arc<Core>,
    /// Where submissions and ends are grouped, until the store is closed.
    groups: Mutex<Option<Groups>>,
    _stop: DropGuard,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Groups {
    submits: mpsc::Sender<Command>,
    completes: mpsc::Sender<Command>,
    ends: Vec<JoinHandle<()>>,
}

/// What every task of a store shares.
#[derive(Debug)]
struct Core {
    db: Db,
    /// For renewals of leases alone: everything else may be waiting for locks, with every connection there is.
    leases: Db,
    clock: Clock,
    changes: Changes,
}

impl Core {
    async fn write(&self, request: &Request) -> Result<Output> {
        let mut tries = Tries::new(&self.db);
        loop {
            match self.attempt(request).await {
                Ok(output) => return Ok(output),
                Err(fault) => tries.again(fault).await?,
            }
        }
    }

    async fn attempt(&self, request: &Request) -> Res<Output> {
        if let Request::Claim(claim) = request {
            let (turns, moved) = verbs::claim::claim(&self.db, claim).await?;
            if moved {
                self.changes.moved();
            }
            return Ok(Output::Claimed(turns));
        }
        verbs::prepare(&self.db, &[request]).await?;
        let db = if matches!(request, Request::Heartbeat(..)) { &self.leases } else { &self.db };
        let mut tx = db.write().await?;
        match verbs::run(&mut tx, request).await {
            Ok(output) => {
                let moved = tx.moved;
                tx.commit().await?;
                if moved {
                    self.changes.moved();
                }
                Ok(output)
            }
            Err(fault) => {
                tx.roll_back().await;
                Err(fault)
            }
        }
    }

    async fn measure(&self) -> Res<()> {
        let Some(_) = self.clock.uncorrected_ms() else { return Ok(()) };
        let read_ms = || self.clock.uncorrected_ms().unwrap_or_default();
        let (offset_ms, half_round_ms) = changes::clock_offset_ms(&self.db, read_ms).await?;
        self.clock.correct(offset_ms);
        tracing::debug!(offset_ms, half_round_ms, "the clock is the database's");
        Ok(())
    }

    async fn keep_measuring(&self) {
        loop {
            tokio::time::sleep(MEASURE).await;
            if let Err(fault) = self.measure().await {
                tracing::debug!(?fault, "the database's clock could not be read");
            }
        }
    }
}

impl Postgres {
    /// Opens the database that `url` names (`postgres://user@host/database`), which must have this release's schema. The
    /// system's clock is corrected to the database's; one that a test owns is left alone.
    ///
    /// # Errors
    /// [`Error::Open`] where the URL is not usable, the schema missing or old (`reprieve migrate up`), [`Error::Newer`],
    /// [`Error::Away`] where the database cannot be reached.
    pub async fn open(url: &str, clock: Clock, options: OpenOptions) -> Result<Self> {
        let connect = open::connect_options(url, &options)?;
        migrate::verify(url, &options).await?;
        let pool = Pool::new(connect, options);
        let db = Db { pool, cache: Arc::new(Cache::default()), url: shown(url).into() };
        let leases = Db { pool: db.pool.beside(LEASES), ..db.clone() };
        let core = Arc::new(Core { db, leases, clock, changes: Changes::new() });
        core.measure().await.map_err(|fault| core.db.told(fault))?;
        let stop = CancellationToken::new();
        core.changes.run(&core.db, &stop);
        let (clocked, stopped) = (Arc::clone(&core), stop.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                () = clocked.keep_measuring() => {}
            }
        });
        // Two groups of submissions overlap; ends wait for each other anyway, for their order.
        let (submits, first) = groups::start(&core, 2);
        let (completes, second) = groups::start(&core, 1);
        let groups = Mutex::new(Some(Groups { submits, completes, ends: vec![first, second] }));
        Ok(Self(Arc::new(Inner { core, groups, _stop: stop.clone().drop_guard(), stop })))
    }

    async fn ask(&self, request: Request) -> Result<Output> {
        let core = Arc::clone(&self.0.core);
        apart(async move { core.write(&request).await }).await
    }

    /// Through the groups of its kind.
    async fn grouped(&self, request: Request) -> Result<Output> {
        let commands = {
            let groups = self.0.groups.lock().unwrap_or_else(PoisonError::into_inner);
            let groups = groups.as_ref().ok_or(Error::Closed)?;
            match request {
                Request::Complete(_) => groups.completes.clone(),
                _ => groups.submits.clone(),
            }
        };
        let (reply, answer) = oneshot::channel();
        commands.send(Command { request, reply }).await.map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }
}

/// Runs to its end, whatever becomes of the caller.
async fn apart<T: Send + 'static>(work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    tokio::spawn(work).await.unwrap_or(Err(Error::Closed))
}

/// Each request is answered in kind; anything else is a fault of this module.
fn unexpected<T>(output: &Output) -> Result<T> {
    Err(Error::Database(format!("the store answered {output:?}")))
}

macro_rules! expect {
    ($self:ident.$way:ident, $request:expr, $pattern:pat => $value:expr) => {
        match $self.$way($request).await? {
            $pattern => Ok($value),
            other => unexpected(&other),
        }
    };
}

/// Reads, and again where the connection was lost. `$how`: each statement of its own moment (`read`), or all of one
/// (`snapshot`).
macro_rules! read {
    ($self:ident, |$tx:ident| $read:expr) => {
        read!($self.read, |$tx| $read)
    };
    ($self:ident.$how:ident, |$tx:ident| $read:expr) => {{
        let core = Arc::clone(&$self.0.core);
        apart(async move {
            let mut tries = Tries::new(&core.db);
            loop {
                let outcome = match core.db.$how().await {
                    Ok(mut opened) => {
                        let $tx = &mut opened;
                        let found = $read.await;
                        opened.end(found).await
                    }
                    Err(fault) => Err(fault),
                };
                match outcome {
                    Ok(found) => break Ok(found),
                    Err(fault) => tries.again(fault).await?,
                }
            }
        })
        .await
    }};
}

impl Store for Postgres {
    fn clock(&self) -> &Clock {
        &self.0.core.clock
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.core.changes.watch()
    }

    async fn submit(&self, jobs: Vec<NewJob>) -> Result<Vec<Submitted>> {
        expect!(self.grouped, Request::Submit(jobs), Output::Submitted(answers) => answers)
    }

    async fn register_worker(&self, worker: WorkerRow) -> Result<()> {
        expect!(self.ask, Request::Register(worker), Output::Nothing => ())
    }

    async fn heartbeat(&self, worker: WorkerId, now_ms: i64) -> Result<Applied> {
        expect!(self.ask, Request::Heartbeat(worker, now_ms), Output::Applied(applied) => applied)
    }

    async fn retire_worker(&self, worker: WorkerId, now_ms: i64) -> Result<()> {
        expect!(self.ask, Request::Retire(worker, now_ms), Output::Nothing => ())
    }

    async fn rescue(&self, request: Rescue) -> Result<Rescued> {
        expect!(self.ask, Request::Rescue(request), Output::Rescued(rescued) => rescued)
    }

    async fn cancelled(&self, worker: WorkerId) -> Result<Vec<(JobId, Fence)>> {
        read!(self, |tx| reads::cancelled(tx, worker))
    }

    async fn configure_scopes(&self, scopes: Vec<ScopeConfig>) -> Result<()> {
        expect!(self.ask, Request::Configure(scopes), Output::Nothing => ())
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<ClaimedTurn>> {
        expect!(self.ask, Request::Claim(request), Output::Claimed(turns) => turns)
    }

    async fn permit(&self, request: PermitRequest) -> Result<Permit> {
        expect!(self.ask, Request::Permit(request), Output::Permit(permit) => permit)
    }

    async fn answered(&self, answers: Vec<Answer>) -> Result<()> {
        expect!(self.ask, Request::Answered(answers), Output::Nothing => ())
    }

    async fn give_back(&self, _worker: WorkerId, turns: Vec<(JobId, Fence)>, now_ms: i64) -> Result<()> {
        expect!(self.ask, Request::GiveBack(turns, now_ms), Output::Nothing => ())
    }

    async fn set_back(&self, setback: Setback) -> Result<Applied> {
        expect!(self.ask, Request::SetBack(Box::new(setback)), Output::Applied(applied) => applied)
    }

    async fn complete(&self, completions: Vec<Completion>) -> Result<Vec<Applied>> {
        expect!(self.grouped, Request::Complete(completions), Output::Completed(applied) => applied)
    }

    async fn history(&self, job: JobId) -> Result<History> {
        read!(self, |tx| reads::history(tx, job))
    }

    async fn next_due_ms(&self, now_ms: i64) -> Result<Option<i64>> {
        read!(self, |tx| reads::next_due_ms(tx, now_ms))
    }

    async fn expire(&self, now_ms: i64, limit: u32) -> Result<u32> {
        expect!(self.ask, Request::Expire(now_ms, limit), Output::Count(count) => count)
    }

    async fn prune(&self, request: Prune) -> Result<Pruned> {
        expect!(self.ask, Request::Prune(request, self.0.core.clock.now_ms()), Output::Pruned(pruned) => pruned)
    }

    async fn cancel(&self, jobs: Vec<JobId>, now_ms: i64) -> Result<Vec<CancelOutcome>> {
        expect!(self.ask, Request::Cancel(jobs, now_ms), Output::Cancelled(outcomes) => outcomes)
    }

    async fn post(&self, messages: NewMessages) -> Result<Posted> {
        expect!(self.ask, Request::Post(messages), Output::Posted(posted) => posted)
    }

    async fn steer(&self, jobs: Vec<JobId>, how: Steer, now_ms: i64) -> Result<Vec<SteerOutcome>> {
        expect!(self.ask, Request::Steer(jobs, how, now_ms), Output::Steered(outcomes) => outcomes)
    }

    async fn delete(&self, jobs: Vec<JobId>) -> Result<Vec<DeleteOutcome>> {
        expect!(self.ask, Request::Delete(jobs), Output::Deleted(outcomes) => outcomes)
    }

    async fn pause_queue(&self, queue: String, pause: Option<Pause>) -> Result<Option<Pause>> {
        expect!(self.ask, Request::PauseQueue(queue, pause), Output::QueuePaused(before) => before)
    }

    async fn close_scope(&self, close: HoldClose) -> Result<HoldRow> {
        let id = expect!(self.ask, Request::Close(close), Output::Closed(id) => id)?;
        let row: Option<HoldRow> = read!(self, |tx| reads::hold(tx, id))?;
        row.ok_or_else(|| Error::Database("a hold was deleted as it was closed".into()))
    }

    async fn retries(&self, of: Vec<JobId>) -> Result<Vec<(JobId, JobId)>> {
        read!(self, |tx| reads::retries(tx, &of))
    }

    async fn add_schedule(&self, schedule: NewSchedule) -> Result<Scheduled> {
        expect!(self.ask, Request::AddSchedule(schedule), Output::Scheduled(scheduled) => scheduled)
    }

    async fn remove_schedule(&self, id: ScheduleId) -> Result<bool> {
        expect!(self.ask, Request::RemoveSchedule(id), Output::Found(found) => found)
    }

    async fn pause_schedule(&self, id: ScheduleId, pause: Option<Pause>, next_ms: Option<i64>) -> Result<bool> {
        expect!(self.ask, Request::PauseSchedule(id, pause, next_ms), Output::Found(found) => found)
    }

    async fn schedules(&self) -> Result<Vec<ScheduleRow>> {
        read!(self, |tx| reads::schedules(tx))
    }

    async fn due_schedules(&self, now_ms: i64, limit: u32) -> Result<Vec<ScheduleRow>> {
        read!(self, |tx| reads::due_schedules(tx, now_ms, limit))
    }

    async fn fire(&self, fire: Fire) -> Result<Fired> {
        expect!(self.ask, Request::Fire(fire), Output::Fired(fired) => fired)
    }

    async fn standing(&self, job: JobId, now_ms: i64) -> Result<Option<Standing>> {
        read!(self.snapshot, |tx| reads::standing(tx, job, now_ms))
    }

    async fn histories(&self, jobs: Vec<JobId>) -> Result<Vec<History>> {
        read!(self, |tx| reads::histories(tx, &jobs))
    }

    async fn reset(&self, key: SendKey) -> Result<Option<ResetRow>> {
        read!(self, |tx| reads::reset(tx, key))
    }

    async fn reset_accuracy(&self, query: Query) -> Result<Vec<AccuracyRow>> {
        read!(self, |tx| reads::reset_accuracy(tx, &query))
    }

    async fn hold_events(&self, hold: HoldId) -> Result<Vec<HoldEventRow>> {
        read!(self, |tx| reads::hold_events(tx, hold))
    }

    async fn queues(&self, now_ms: i64) -> Result<Vec<QueueRow>> {
        read!(self.snapshot, |tx| reads::queues(tx, now_ms))
    }

    async fn usage(&self, query: Query, by: UsageBy) -> Result<Vec<UsageRow>> {
        read!(self, |tx| reads::usage(tx, &query, &by))
    }

    async fn release_hold(&self, release: HoldRelease) -> Result<Option<HoldRow>> {
        match self.ask(Request::Release(release)).await? {
            Output::Released(Some(id)) => read!(self, |tx| reads::hold(tx, id)),
            Output::Released(None) => Ok(None),
            other => unexpected(&other),
        }
    }

    async fn job(&self, id: JobId) -> Result<Option<JobRow>> {
        read!(self, |tx| reads::job(tx, id))
    }

    async fn jobs(&self, query: Query) -> Result<Page<JobRow>> {
        read!(self, |tx| reads::jobs(tx, &query))
    }

    async fn job_ids(&self, first: JobId, last: JobId, end: String, limit: u32) -> Result<Vec<JobId>> {
        read!(self, |tx| reads::job_ids(tx, (first, last), &end, limit))
    }

    async fn turns(&self, job: JobId) -> Result<Vec<TurnView>> {
        read!(self, |tx| reads::turns(tx, job))
    }

    async fn failures(&self, query: Query) -> Result<Page<FailureRow>> {
        read!(self, |tx| reads::failures(tx, &query))
    }

    async fn failure_counts(&self, query: Query, by: By) -> Result<Vec<CountRow>> {
        read!(self, |tx| reads::failure_counts(tx, &query, by))
    }

    async fn resets(&self, query: Query) -> Result<Page<ResetRow>> {
        read!(self, |tx| reads::resets(tx, &query))
    }

    async fn hold(&self, id: HoldId) -> Result<Option<HoldRow>> {
        read!(self, |tx| reads::hold(tx, id))
    }

    async fn holds(&self, query: Query) -> Result<Vec<HoldRow>> {
        read!(self, |tx| reads::holds(tx, &query))
    }

    async fn results(&self, query: Query) -> Result<Page<JobRow>> {
        read!(self, |tx| reads::results(tx, &query))
    }

    async fn takes_writes(&self) -> Result<()> {
        expect!(self.ask, Request::Touch, Output::Nothing => ())
    }

    async fn overview(&self, _now_ms: i64) -> Result<Overview> {
        read!(self, |tx| reads::overview(tx))
    }

    async fn workers(&self, now_ms: i64) -> Result<Vec<WorkerRow>> {
        read!(self, |tx| reads::workers(tx, now_ms))
    }

    async fn close(&self) {
        let groups = self.0.groups.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Groups { submits, completes, ends }) = groups {
            // Without a sender the groups commit what is queued, and end.
            drop((submits, completes));
            for end in ends {
                if let Err(error) = end.await {
                    tracing::error!(%error, "a group did not end well");
                }
            }
        }
        self.0.stop.cancel();
        self.0.core.db.pool.close().await;
        self.0.core.leases.pool.close().await;
    }
}
