//! Either database behind the seam, so that what stands above it is compiled once and the choice is one `match`.

use super::{
    AccuracyRow, Answer, Applied, By, CancelOutcome, ClaimRequest, ClaimedTurn, Completion, CountRow, DeleteOutcome,
    FailureRow, Fence, Fire, Fired, History, HoldClose, HoldEventRow, HoldId, HoldRelease, HoldRow, JobId, JobRow,
    NewJob, NewMessages, NewSchedule, Overview, Page, Pause, Permit, PermitRequest, Posted, Postgres, Prune, Pruned,
    Query, QueueRow, Rescue, Rescued, ResetRow, Result, ScheduleId, ScheduleRow, Scheduled, ScopeConfig, SendKey,
    Setback, Sqlite, Standing, Steer, SteerOutcome, Store, Submitted, TurnView, UsageBy, UsageRow, WorkerId, WorkerRow,
};
use crate::clock::Clock;
use tokio::sync::watch;

/// A store whose kind is known when it is opened.
#[derive(Clone, Debug)]
pub enum Database {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

macro_rules! each {
    ($self:ident, $store:ident => $call:expr) => {
        match $self {
            Self::Sqlite($store) => $call,
            Self::Postgres($store) => $call,
        }
    };
}

/// Hands every verb on, by name.
macro_rules! delegate {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)+) => {$(
        async fn $name(&self, $($arg: $type),*) -> $result {
            each!(self, store => store.$name($($arg),*).await)
        }
    )+};
}

impl Store for Database {
    fn clock(&self) -> &Clock {
        each!(self, store => store.clock())
    }

    fn changes(&self) -> watch::Receiver<u64> {
        each!(self, store => store.changes())
    }

    delegate! {
        fn submit(jobs: Vec<NewJob>) -> Result<Vec<Submitted>>;
        fn register_worker(worker: WorkerRow) -> Result<()>;
        fn heartbeat(worker: WorkerId, now_ms: i64) -> Result<Applied>;
        fn retire_worker(worker: WorkerId, now_ms: i64) -> Result<()>;
        fn rescue(request: Rescue) -> Result<Rescued>;
        fn cancelled(worker: WorkerId) -> Result<Vec<(JobId, Fence)>>;
        fn configure_scopes(scopes: Vec<ScopeConfig>) -> Result<()>;
        fn claim(request: ClaimRequest) -> Result<Vec<ClaimedTurn>>;
        fn permit(request: PermitRequest) -> Result<Permit>;
        fn answered(answers: Vec<Answer>) -> Result<()>;
        fn give_back(worker: WorkerId, turns: Vec<(JobId, Fence)>, now_ms: i64) -> Result<()>;
        fn set_back(setback: Setback) -> Result<Applied>;
        fn complete(completions: Vec<Completion>) -> Result<Vec<Applied>>;
        fn history(job: JobId) -> Result<History>;
        fn next_due_ms(now_ms: i64) -> Result<Option<i64>>;
        fn expire(now_ms: i64, limit: u32) -> Result<u32>;
        fn prune(request: Prune) -> Result<Pruned>;
        fn cancel(jobs: Vec<JobId>, now_ms: i64) -> Result<Vec<CancelOutcome>>;
        fn post(messages: NewMessages) -> Result<Posted>;
        fn steer(jobs: Vec<JobId>, how: Steer, now_ms: i64) -> Result<Vec<SteerOutcome>>;
        fn delete(jobs: Vec<JobId>) -> Result<Vec<DeleteOutcome>>;
        fn pause_queue(queue: String, pause: Option<Pause>) -> Result<Option<Pause>>;
        fn close_scope(close: HoldClose) -> Result<HoldRow>;
        fn retries(of: Vec<JobId>) -> Result<Vec<(JobId, JobId)>>;
        fn release_hold(release: HoldRelease) -> Result<Option<HoldRow>>;
        fn add_schedule(schedule: NewSchedule) -> Result<Scheduled>;
        fn remove_schedule(id: ScheduleId) -> Result<bool>;
        fn pause_schedule(id: ScheduleId, pause: Option<Pause>, next_ms: Option<i64>) -> Result<bool>;
        fn schedules() -> Result<Vec<ScheduleRow>>;
        fn due_schedules(now_ms: i64, limit: u32) -> Result<Vec<ScheduleRow>>;
        fn fire(fire: Fire) -> Result<Fired>;
        fn job(id: JobId) -> Result<Option<JobRow>>;
        fn jobs(query: Query) -> Result<Page<JobRow>>;
        fn job_ids(first: JobId, last: JobId, end: String, limit: u32) -> Result<Vec<JobId>>;
        fn turns(job: JobId) -> Result<Vec<TurnView>>;
        fn standing(job: JobId, now_ms: i64) -> Result<Option<Standing>>;
        fn histories(jobs: Vec<JobId>) -> Result<Vec<History>>;
        fn failures(query: Query) -> Result<Page<FailureRow>>;
        fn failure_counts(query: Query, by: By) -> Result<Vec<CountRow>>;
        fn resets(query: Query) -> Result<Page<ResetRow>>;
        fn reset(key: SendKey) -> Result<Option<ResetRow>>;
        fn reset_accuracy(query: Query) -> Result<Vec<AccuracyRow>>;
        fn hold_events(hold: HoldId) -> Result<Vec<HoldEventRow>>;
        fn queues(now_ms: i64) -> Result<Vec<QueueRow>>;
        fn usage(query: Query, by: UsageBy) -> Result<Vec<UsageRow>>;
        fn hold(id: HoldId) -> Result<Option<HoldRow>>;
        fn holds(query: Query) -> Result<Vec<HoldRow>>;
        fn results(query: Query) -> Result<Page<JobRow>>;
        fn takes_writes() -> Result<()>;
        fn overview(now_ms: i64) -> Result<Overview>;
        fn workers(now_ms: i64) -> Result<Vec<WorkerRow>>;
        fn close() -> ();
    }
}
