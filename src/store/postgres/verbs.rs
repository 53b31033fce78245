//! The verbs that write: one request a verb of the seam, one module a family of verbs.

mod answers;
pub(super) mod claim;
mod complete;
mod due;
mod ends;
mod inbox;
mod ledger;
mod rescue;
mod schedules;
mod steer;
mod submit;
mod workers;

use super::conn::sql;
use super::fault::Res;
use super::names;
use super::tx::{Db, Tx};
use crate::store::{
    Answer, Applied, CancelOutcome, ClaimRequest, ClaimedTurn, Completion, DeleteOutcome, Error, Fence, Fire, Fired,
    FiringKind, HoldClose, HoldId, HoldRelease, JobId, NewJob, NewMessages, NewSchedule, Pause, Permit, PermitRequest,
    Posted, Prune, Pruned, Rescue, Rescued, ScheduleId, Scheduled, ScopeConfig, Setback, Steer, SteerOutcome,
    Submitted, WorkerId, WorkerRow,
};
pub(super) use complete::complete;
pub(super) use submit::submit;

#[derive(Debug)]
pub(super) enum Request {
    Submit(Vec<NewJob>),
    Register(WorkerRow),
    Heartbeat(WorkerId, i64),
    Retire(WorkerId, i64),
    Rescue(Rescue),
    Configure(Vec<ScopeConfig>),
    Claim(ClaimRequest),
    Permit(PermitRequest),
    Answered(Vec<Answer>),
    GiveBack(Vec<(JobId, Fence)>, i64),
    SetBack(Box<Setback>),
    Complete(Vec<Completion>),
    Expire(i64, u32),
    /// With the store's clock: workers that are no more are kept for a day.
    Prune(Prune, i64),
    Cancel(Vec<JobId>, i64),
    Post(NewMessages),
    Steer(Vec<JobId>, Steer, i64),
    Delete(Vec<JobId>),
    PauseQueue(String, Option<Pause>),
    Close(HoldClose),
    Release(HoldRelease),
    AddSchedule(NewSchedule),
    RemoveSchedule(ScheduleId),
    PauseSchedule(ScheduleId, Option<Pause>, Option<i64>),
    Fire(Fire),
    Touch,
}

/// What comes back, by verb.
#[derive(Debug)]
pub(super) enum Output {
    Nothing,
    Submitted(Vec<Submitted>),
    Applied(Applied),
    Rescued(Rescued),
    Claimed(Vec<ClaimedTurn>),
    Permit(Permit),
    Completed(Vec<Applied>),
    Count(u32),
    Pruned(Pruned),
    Cancelled(Vec<CancelOutcome>),
    Posted(Posted),
    Steered(Vec<SteerOutcome>),
    Deleted(Vec<DeleteOutcome>),
    QueuePaused(Option<Pause>),
    Closed(HoldId),
    Released(Option<HoldId>),
    Scheduled(Scheduled),
    Found(bool),
    Fired(Fired),
}

impl Request {
    /// How many rows it brings.
    pub fn rows(&self) -> usize {
        match self {
            Self::Submit(jobs) => jobs.len(),
            Self::Complete(ends) => ends.len(),
            _ => 1,
        }
    }

    pub fn jobs(&self) -> &[NewJob] {
        if let Self::Submit(jobs) = self { jobs } else { &[] }
    }

    /// The jobs that a firing may submit; those with impossible names are refused later, and need no lane.
    fn fired(&self) -> impl Iterator<Item = &NewJob> {
        let firings = if let Self::Fire(fire) = self { fire.firings.as_slice() } else { &[] };
        let jobs = firings.iter().filter_map(|firing| match &firing.what {
            FiringKind::Submit(job) => Some(&**job),
            FiringKind::Missed | FiringKind::Refused(_) => None,
        });
        jobs.filter(|job| submit::check(job).is_ok())
    }

    pub fn completions(&self) -> &[Completion] {
        if let Self::Complete(ends) = self { ends } else { &[] }
    }
}

/// Learns the names that the requests will need.
pub(super) async fn prepare(db: &Db, requests: &[&Request]) -> Res<()> {
    names::lanes(db, requests.iter().flat_map(|request| request.jobs()).map(|job| &job.lane)).await?;
    names::lanes(db, requests.iter().flat_map(|request| request.fired()).map(|job| &job.lane)).await?;
    for request in requests {
        match request {
            Request::SetBack(setback) => {
                if let Some(refusal) = &setback.refusal {
                    names::scope(db, &refusal.scope).await?;
                }
            }
            Request::Complete(ends) => {
                for refusal in ends.iter().filter_map(|end| end.refusal.as_ref()) {
                    names::scope(db, &refusal.scope).await?;
                }
            }
            Request::Configure(scopes) => {
                for config in scopes {
                    names::scope(db, &config.scope.of_account()).await?;
                    names::scope(db, &config.scope).await?;
                }
            }
            Request::Close(close) => {
                names::scope(db, &close.scope).await?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// One request in its transaction; [`claim::claim`] makes its own.
pub(super) async fn run(tx: &mut Tx, request: &Request) -> Res<Output> {
    Ok(match request {
        Request::Submit(jobs) => Output::Submitted(submit(tx, &jobs.iter().collect::<Vec<_>>()).await?),
        Request::Register(worker) => {
            workers::register(tx, worker).await?;
            Output::Nothing
        }
        Request::Heartbeat(worker, now_ms) => Output::Applied(workers::heartbeat(tx, *worker, *now_ms).await?),
        Request::Retire(worker, now_ms) => {
            workers::retire(tx, *worker, *now_ms).await?;
            Output::Nothing
        }
        Request::Rescue(request) => Output::Rescued(rescue::rescue(tx, request).await?),
        Request::Configure(scopes) => {
            workers::configure(tx, scopes).await?;
            Output::Nothing
        }
        Request::Claim(_) => return Err(Error::Database("a claim makes its own transactions".into()).into()),
        Request::Permit(request) => Output::Permit(answers::permit(tx, request).await?),
        Request::Answered(answers) => {
            answers::answered(tx, answers).await?;
            Output::Nothing
        }
        Request::GiveBack(turns, now_ms) => {
            answers::give_back(tx, turns, *now_ms).await?;
            Output::Nothing
        }
        Request::SetBack(setback) => Output::Applied(answers::set_back(tx, setback).await?),
        Request::Complete(ends) => Output::Completed(complete(tx, &ends.iter().collect::<Vec<_>>()).await?),
        Request::Expire(now_ms, limit) => Output::Count(due::expire(tx, *now_ms, *limit).await?),
        Request::Prune(request, now_ms) => Output::Pruned(due::prune(tx, request, *now_ms).await?),
        Request::Cancel(jobs, now_ms) => Output::Cancelled(steer::cancel(tx, jobs, *now_ms).await?),
        Request::Touch => {
            // A count that nobody reads.
            tx.run(sql!("touch")).await?;
            Output::Nothing
        }
        Request::Post(messages) => Output::Posted(inbox::post(tx, messages).await?),
        Request::Steer(jobs, how, now_ms) => Output::Steered(steer::steer(tx, jobs, how, *now_ms).await?),
        Request::Delete(jobs) => Output::Deleted(steer::delete(tx, jobs).await?),
        Request::PauseQueue(queue, pause) => Output::QueuePaused(steer::pause_queue(tx, queue, pause.as_ref()).await?),
        Request::Close(close) => Output::Closed(steer::close(tx, close).await?),
        Request::AddSchedule(schedule) => Output::Scheduled(schedules::add(tx, schedule).await?),
        Request::RemoveSchedule(id) => Output::Found(schedules::remove(tx, *id).await?),
        Request::PauseSchedule(id, pause, next_ms) => {
            Output::Found(schedules::pause(tx, *id, pause.as_ref(), *next_ms).await?)
        }
        Request::Fire(fire) => Output::Fired(schedules::fire(tx, fire).await?),
        Request::Release(release) => Output::Released(steer::release(tx, release).await?),
    })
}
