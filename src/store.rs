//! The durable state: one seam ([`Store`]), one module per database behind it, and the domain rows.
//!
//! What lives here: every statement of SQL (`sql/<database>/<verb>.sql`), transactions, fences, the arithmetic that must
//! happen inside a transaction (asked of [`crate::admission`], which is pure). What does not: providers, prompts, HTTP,
//! policy. The store knows no provider; a scope is three strings to it.
//!
//! Rules that every implementation keeps, and the conformance suite checks:
//!
//! * An acknowledgement follows the commit, never precedes it.
//! * Every write on behalf of a turn names its fence. One that touches no row is a value ([`Applied::Void`]), not an error.
//! * Instants are UTC Unix milliseconds on the store's clock. Statements take `now_ms` from their caller's request, so
//!   that tests own the clock.
//! * Documents are text and come back byte for byte.

mod care;
mod cursor;
mod database;
mod documents;
mod figures;
mod ledger;
pub mod postgres;
mod resets;
mod rows;
pub mod sqlite;
mod text;
pub mod transfer;
pub use care::{Check, Level, Schema};
pub use database::Database;
pub use postgres::Postgres;
pub use rows::*;
pub use sqlite::Sqlite;

use crate::clock::Clock;
use std::future::Future;
use tokio::sync::watch;

/// Why a statement could not be carried out. `Display` names what a person can do, never a document.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("the database {url} cannot be opened: {why}")]
    Open { url: String, why: String },
    #[error("the database is locked by another process; it was waited for {waited_ms} ms")]
    Locked { waited_ms: u64 },
    #[error(
        "the database file {path} was moved or deleted while it was in use; put it back, or restart to begin another"
    )]
    Gone { path: String },
    #[error("the database is read-only; this user must be able to write the file and its directory")]
    ReadOnly,
    #[error("the disk is full; nothing was written")]
    Full,
    #[error("the database has schema {found}, made by a newer release; this release knows {known}")]
    Newer { found: i64, known: i64 },
    #[error("the database did not answer within {after_ms} ms")]
    TimedOut { after_ms: u64 },
    #[error("the database {url} cannot be reached: {why}")]
    Away { url: String, why: String },
    #[error("the store is closed")]
    Closed,
    #[error("{what} cannot be read: {why}")]
    Undecodable { what: &'static str, why: String },
    #[error("the cursor was not handed out by this list")]
    Cursor,
    #[error("the database refused a statement: {0}")]
    Database(String),
}

pub type Result<T> = std::result::Result<T, Error>;

/// The seam between Reprieve and its databases. Handles are cheap to clone and share one set of connections.
pub trait Store: Clone + Send + Sync + 'static {
    /// The store's clock; all instants are on it.
    fn clock(&self) -> &Clock;

    /// Moves on whenever something may have become claimable, cancelled or lifted, here or (within a tenth of a
    /// second) in another process. A hint: register before asking, and ask again at least once a second.
    fn changes(&self) -> watch::Receiver<u64>;

    // -- Submitting

    /// Accepts jobs, all rows of one call in one transaction, concurrent calls grouped. Answers in the order given.
    fn submit(&self, jobs: Vec<NewJob>) -> impl Future<Output = Result<Vec<Submitted>>> + Send;

    // -- Workers

    /// Makes the worker known and starts its lease.
    fn register_worker(&self, worker: WorkerRow) -> impl Future<Output = Result<()>> + Send;
    /// Renews the lease. [`Applied::Void`]: it has lapsed and was rescued; the worker must stop its sends and begin
    /// again under a new id.
    fn heartbeat(&self, worker: WorkerId, now_ms: i64) -> impl Future<Output = Result<Applied>> + Send;
    /// Ends the lease of a worker that holds no turns any more.
    fn retire_worker(&self, worker: WorkerId, now_ms: i64) -> impl Future<Output = Result<()>> + Send;
    /// Takes the turns of lapsed workers back, at most `limit` of them: each gets a `lost` record and is ready again,
    /// or fails as `worker_lost` (three in a row, or no execution left; [`NewJob::once`] and it had a permit).
    fn rescue(&self, request: Rescue) -> impl Future<Output = Result<Rescued>> + Send;
    /// Turns of this worker that somebody asked to cancel.
    fn cancelled(&self, worker: WorkerId) -> impl Future<Output = Result<Vec<(JobId, Fence)>>> + Send;

    // -- Claim and permits (a send starts with the commit of its permit)

    /// States what is configured of scopes (account-wide and per model). Idempotent; called at process start.
    fn configure_scopes(&self, scopes: Vec<ScopeConfig>) -> impl Future<Output = Result<()>> + Send;
    /// Claims due turns, each with its permit, within what holds and in-flight limits grant.
    fn claim(&self, request: ClaimRequest) -> impl Future<Output = Result<Vec<ClaimedTurn>>> + Send;
    /// Asks for a permit for a turn in hand: for its next send after a wait, or again where the one it has is older
    /// than a second. Never waits.
    fn permit(&self, request: PermitRequest) -> impl Future<Output = Result<Permit>> + Send;
    /// Tells that sends were answered (first frame of a 2xx, or an answer that is no refusal, 401, 403 or 5xx): lifts
    /// the hold that a probe was sent for, and lets the controlled number grow.
    fn answered(&self, answers: Vec<Answer>) -> impl Future<Output = Result<()>> + Send;
    /// Gives claimed turns back unsent, without a record.
    fn give_back(
        &self,
        worker: WorkerId,
        turns: Vec<(JobId, Fence)>,
        now_ms: i64,
    ) -> impl Future<Output = Result<()>> + Send;

    // -- What an execution writes

    /// Records a replaced send, with evidence and hold where it was a refusal, gives its permit back and notes the
    /// wait: one transaction, at receipt.
    fn set_back(&self, setback: Setback) -> impl Future<Output = Result<Applied>> + Send;
    /// Ends executions: record, final send, evidence, hold, and what follows, one transaction for the batch.
    fn complete(&self, completions: Vec<Completion>) -> impl Future<Output = Result<Vec<Applied>>> + Send;
    /// The records and inbox that a job's next request is built from, in order.
    fn history(&self, job: JobId) -> impl Future<Output = Result<History>> + Send;

    // -- By the clock

    /// The next instant at which something becomes due: a backoff, a hold's resume, a deadline, a lease's lapse, a
    /// schedule's firing. Ask with the instant of the claim before: backoffs, resumes and firings at or before `now_ms`
    /// are for whoever asked then. An instant that has passed is a deadline or a lease: `expire` and `rescue` have work.
    fn next_due_ms(&self, now_ms: i64) -> impl Future<Output = Result<Option<i64>>> + Send;
    /// Ends waiting jobs whose deadline has passed, at most `limit`: with the last failure they met, else
    /// `deadline_exceeded`.
    fn expire(&self, now_ms: i64, limit: u32) -> impl Future<Output = Result<u32>> + Send;
    /// Deletes what has outlived its retention, counted from the jobs' ends, in one bounded batch.
    fn prune(&self, request: Prune) -> impl Future<Output = Result<Pruned>> + Send;

    // -- Steering

    /// Cancels jobs: a waiting one ends at once, a running one is asked to stop.
    fn cancel(&self, jobs: Vec<JobId>, now_ms: i64) -> impl Future<Output = Result<Vec<CancelOutcome>>> + Send;
    /// Puts messages into a live job's transcript, before its next turn.
    fn post(&self, messages: NewMessages) -> impl Future<Output = Result<Posted>> + Send;
    /// Moves live jobs, one outcome each, in order; one that is named twice is moved once.
    fn steer(
        &self,
        jobs: Vec<JobId>,
        how: Steer,
        now_ms: i64,
    ) -> impl Future<Output = Result<Vec<SteerOutcome>>> + Send;
    /// Deletes ended jobs with all that is kept of them.
    fn delete(&self, jobs: Vec<JobId>) -> impl Future<Output = Result<Vec<DeleteOutcome>>> + Send;
    /// Stops claims of a queue, or lets them go on (`None`). Returns what stood before; of two pauses the first stands.
    fn pause_queue(&self, queue: String, pause: Option<Pause>) -> impl Future<Output = Result<Option<Pause>>> + Send;
    /// Closes a scope by hand, or dates the hold that stands there anew, to an earlier end or a later one. No permit
    /// older than this lifts it; without an end, only a release does.
    fn close_scope(&self, close: HoldClose) -> impl Future<Output = Result<HoldRow>> + Send;
    /// The jobs that are retries of these: `(old, new)`.
    fn retries(&self, of: Vec<JobId>) -> impl Future<Output = Result<Vec<(JobId, JobId)>>> + Send;
    /// Lifts an open hold. `None`: there is none of that id.
    fn release_hold(&self, release: HoldRelease) -> impl Future<Output = Result<Option<HoldRow>>> + Send;

    // -- Schedules

    /// Adds a schedule; its name is unique.
    fn add_schedule(&self, schedule: NewSchedule) -> impl Future<Output = Result<Scheduled>> + Send;
    /// Removes a schedule; its jobs stay. Whether it was there.
    fn remove_schedule(&self, id: ScheduleId) -> impl Future<Output = Result<bool>> + Send;
    /// Stops a schedule, or lets it go on (`None`) from `next_ms`; one that runs keeps its next instant. Whether it was
    /// there.
    fn pause_schedule(
        &self,
        id: ScheduleId,
        pause: Option<Pause>,
        next_ms: Option<i64>,
    ) -> impl Future<Output = Result<bool>> + Send;
    /// Every schedule by name, with its latest runs.
    fn schedules(&self) -> impl Future<Output = Result<Vec<ScheduleRow>>> + Send;
    /// Schedules whose next instant has come, the most overdue first; without their runs.
    fn due_schedules(&self, now_ms: i64, limit: u32) -> impl Future<Output = Result<Vec<ScheduleRow>>> + Send;
    /// Fires one schedule: its jobs, its runs and its next instant in one transaction, once in the whole fleet. An
    /// instant that has its run already keeps it, and is answered with it.
    fn fire(&self, fire: Fire) -> impl Future<Output = Result<Fired>> + Send;

    // -- Asking

    fn job(&self, id: JobId) -> impl Future<Output = Result<Option<JobRow>>> + Send;
    fn jobs(&self, query: Query) -> impl Future<Output = Result<Page<JobRow>>> + Send;
    /// Ids from `first` to `last`, both included, whose digits (without dashes) end in `end`, lower-case or empty: in
    /// their order, at most `limit`.
    fn job_ids(
        &self,
        first: JobId,
        last: JobId,
        end: String,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<JobId>>> + Send;
    /// Every record of a job in order, with its sends and their evidence.
    fn turns(&self, job: JobId) -> impl Future<Output = Result<Vec<TurnView>>> + Send;
    /// Where a job stands, and all that can keep it there; `None`: there is no such job.
    fn standing(&self, job: JobId, now_ms: i64) -> impl Future<Output = Result<Option<Standing>>> + Send;
    /// The histories of several jobs, in the order given; of an unknown one empty.
    fn histories(&self, jobs: Vec<JobId>) -> impl Future<Output = Result<Vec<History>>> + Send;
    /// Failed executions, newest first; with `include_retried` the replaced sends too.
    fn failures(&self, query: Query) -> impl Future<Output = Result<Page<FailureRow>>> + Send;
    /// Failures counted by one dimension.
    fn failure_counts(&self, query: Query, by: By) -> impl Future<Output = Result<Vec<CountRow>>> + Send;
    /// Refusals with their candidates, newest first.
    fn resets(&self, query: Query) -> impl Future<Output = Result<Page<ResetRow>>> + Send;
    /// One refusal with its candidates; `None`: there is none.
    fn reset(&self, key: SendKey) -> impl Future<Output = Result<Option<ResetRow>>> + Send;
    /// How well each source of each vendor kept its word, the worst first.
    fn reset_accuracy(&self, query: Query) -> impl Future<Output = Result<Vec<AccuracyRow>>> + Send;
    /// What befell a hold, in order.
    fn hold_events(&self, hold: HoldId) -> impl Future<Output = Result<Vec<HoldEventRow>>> + Send;
    /// Every queue that has turns, is paused, or had jobs end within the last hour; by name.
    fn queues(&self, now_ms: i64) -> impl Future<Output = Result<Vec<QueueRow>>> + Send;
    /// Tokens and sends, the most tokens first; by day, the newest first.
    fn usage(&self, query: Query, by: UsageBy) -> impl Future<Output = Result<Vec<UsageRow>>> + Send;
    /// One hold, open or ended; `None`: there is none.
    fn hold(&self, id: HoldId) -> impl Future<Output = Result<Option<HoldRow>>> + Send;
    fn holds(&self, query: Query) -> impl Future<Output = Result<Vec<HoldRow>>> + Send;
    /// Ended jobs in the order they ended; the cursor is resumable.
    fn results(&self, query: Query) -> impl Future<Output = Result<Page<JobRow>>> + Send;
    /// Whether writes are taken now: commits one of no consequence. What a probe of readiness wants to know; that reads
    /// are answered says nothing about a disk that is full.
    fn takes_writes(&self) -> impl Future<Output = Result<()>> + Send;
    /// One line of figures: what is queued (ready or later), running, deferred, and has ever ended.
    fn overview(&self, now_ms: i64) -> impl Future<Output = Result<Overview>> + Send;
    /// Live workers (lease not lapsed).
    fn workers(&self, now_ms: i64) -> impl Future<Output = Result<Vec<WorkerRow>>> + Send;

    /// Flushes what is queued and closes every connection.
    fn close(&self) -> impl Future<Output = ()> + Send;
}
