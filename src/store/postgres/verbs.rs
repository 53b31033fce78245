//! The verbs that write: one request a verb of the seam, one module a family of verbs.

mod answers;
pub(super) mod claim;
mod complete;
mod due;
mod ends;
mod ledger;
mod rescue;
mod steer;
mod submit;
mod workers;

use super::conn::sql;
use super::fault::Res;
use super::names;
use super::tx::{Db, Tx};
use crate::store::{
    Answer, Applied, CancelOutcome, ClaimRequest, ClaimedTurn, Completion, Error, Fence, HoldId, HoldRelease, JobId,
    NewJob, Permit, PermitRequest, Prune, Pruned, Rescue, Rescued, ScopeConfig, Setback, Submitted, WorkerId,
    WorkerRow,
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
    Prune(Prune),
    Cancel(Vec<JobId>, i64),
    Release(HoldRelease),
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
    Released(Option<HoldId>),
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

    pub fn completions(&self) -> &[Completion] {
        if let Self::Complete(ends) = self { ends } else { &[] }
    }
}

/// Learns the names that the requests will need.
pub(super) async fn prepare(db: &Db, requests: &[&Request]) -> Res<()> {
    names::lanes(db, requests.iter().flat_map(|request| request.jobs()).map(|job| &job.lane)).await?;
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
        Request::Prune(request) => Output::Pruned(due::prune(tx, request).await?),
        Request::Cancel(jobs, now_ms) => Output::Cancelled(steer::cancel(tx, jobs, *now_ms).await?),
        Request::Touch => {
            // A count that nobody reads.
            tx.run(sql!("touch")).await?;
            Output::Nothing
        }
        Request::Release(release) => Output::Released(steer::release(tx, release).await?),
    })
}
