//! Accepting jobs.

use crate::store::postgres::conn::sql;
use crate::store::postgres::fault::{Fault, Res};
use crate::store::postgres::rows::{at, int, job_at};
use crate::store::postgres::tx::Tx;
use crate::store::text::rank_ms;
use crate::store::{Error, InboxRow, JobId, NewJob, Result, Submitted};
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// A job that is really new, in its lane.
struct Accepted<'a> {
    job: &'a NewJob,
    lane_id: i64,
}

pub(in crate::store::postgres) async fn submit(tx: &mut Tx, jobs: &[&NewJob]) -> Res<Vec<Submitted>> {
    let mut ready = HashMap::new();
    let answers = put_in(tx, jobs, &mut ready).await?;
    tx.ready(&ready).await?;
    Ok(answers)
}

/// Accepts jobs, and leaves it to the caller to count the claimable ones to their lanes: lanes are locked last.
pub(super) async fn put_in(tx: &mut Tx, jobs: &[&NewJob], ready: &mut HashMap<i64, i64>) -> Res<Vec<Submitted>> {
    let mut known = known_keys(tx, jobs).await?;
    let mut retried = known_retries(tx, jobs).await?;
    let mut answers = Vec::with_capacity(jobs.len());
    let mut accepted = Vec::with_capacity(jobs.len());
    let mut ids = HashSet::with_capacity(jobs.len());
    for job in jobs {
        check(job)?;
        if let Some(key) = &job.idempotency_key {
            let place = (job.lane.tenant.clone(), key.clone());
            if let Some((id, digest)) = known.get(&place) {
                let same = *digest == job.digest;
                answers.push(match (same, *id == job.id) {
                    // The very same submission: what became of it was not heard the first time.
                    (true, true) if !ids.contains(id) => Submitted::Accepted(*id),
                    (true, _) => Submitted::Duplicate(*id),
                    (false, _) => Submitted::Conflict(*id),
                });
                continue;
            }
        }
        if let Some(of) = job.retry_of {
            if let Some(id) = retried.get(&of) {
                let again = *id == job.id && !ids.contains(id);
                answers.push(if again { Submitted::Accepted(*id) } else { Submitted::Duplicate(*id) });
                continue;
            }
            retried.insert(of, job.id);
        }
        if let Some(key) = &job.idempotency_key {
            known.insert((job.lane.tenant.clone(), key.clone()), (job.id, job.digest.clone()));
        }
        if !ids.insert(job.id) {
            return Err(Error::Database("a job of this id is there already".into()).into());
        }
        let lane_id = tx.db.cache.lane(&job.lane).ok_or(Fault::Raced)?;
        accepted.push(Accepted { job, lane_id });
        answers.push(Submitted::Accepted(job.id));
    }
    let new = insert(tx, accepted).await?;
    write(tx, &new).await?;
    for new in new.iter().filter(|new| !waits(new.job)) {
        *ready.entry(new.lane_id).or_default() += 1;
    }
    tx.moved |= !new.is_empty();
    Ok(answers)
}

/// Its time has not come.
fn waits(job: &NewJob) -> bool {
    job.due_ms.is_some_and(|due_ms| due_ms > job.created_ms)
}

/// Names hold no NUL on any database.
pub(super) fn check(job: &NewJob) -> Result<()> {
    let scope = &job.lane.scope;
    let names =
        [&job.lane.queue, &job.lane.tenant, &scope.provider, &scope.account, &scope.model, &job.entry, &job.digest];
    let labels = job.labels.iter().flat_map(|(key, value)| [key, value]);
    if names.into_iter().chain(job.idempotency_key.as_ref()).chain(labels).any(|name| name.contains('\0')) {
        return Err(Error::Undecodable { what: "a job", why: "a name, key or label holds a NUL".into() });
    }
    Ok(())
}

type Known = HashMap<(String, String), (JobId, String)>;

async fn known_keys(tx: &mut Tx, jobs: &[&NewJob]) -> Res<Known> {
    let places: Vec<(&str, &str)> =
        jobs.iter().filter_map(|job| Some((job.lane.tenant.as_str(), job.idempotency_key.as_deref()?))).collect();
    let mut known = Known::new();
    if places.is_empty() {
        return Ok(known);
    }
    let (tenants, keys): (Vec<&str>, Vec<&str>) = places.iter().copied().unzip();
    for row in tx.all(sql!("submit_keys").arg(tenants).arg(keys)).await? {
        let place: usize = int::<usize>(&row, 0)? - 1;
        if let Some((tenant, key)) = places.get(place) {
            known.insert(((*tenant).to_owned(), (*key).to_owned()), (job_at(&row, 1)?, at(&row, 2)?));
        }
    }
    Ok(known)
}

/// Retries that stand already: a job is retried once, and what failed again is retried in its turn.
async fn known_retries(tx: &mut Tx, jobs: &[&NewJob]) -> Res<HashMap<JobId, JobId>> {
    let of: Vec<Uuid> = jobs.iter().filter_map(|job| Some(job.retry_of?.0)).collect();
    let mut known = HashMap::new();
    if of.is_empty() {
        return Ok(known);
    }
    for row in tx.all(sql!("retries").arg(of)).await? {
        known.insert(job_at(&row, 0)?, job_at(&row, 1)?);
    }
    Ok(known)
}

/// Inserts the jobs; those that were not there yet. One whose id is there is the same submission again, or an error; a key,
/// or a retry, that somebody else was faster with is looked at anew.
async fn insert<'a>(tx: &mut Tx, mut accepted: Vec<Accepted<'a>>) -> Res<Vec<Accepted<'a>>> {
    if accepted.is_empty() {
        return Ok(accepted);
    }
    // In one order for everybody, so that two who submit the same keys do not wait for each other in a circle.
    accepted.sort_by(|a, b| {
        let place = |new: &Accepted<'a>| (&new.job.lane.tenant, &new.job.idempotency_key, new.job.retry_of, new.job.id);
        place(a).cmp(&place(b))
    });
    let stmt = sql!("submit_jobs")
        .arg(accepted.iter().map(|new| new.job.id.0).collect::<Vec<Uuid>>())
        .arg(accepted.iter().map(|new| new.lane_id).collect::<Vec<i64>>())
        .arg(accepted.iter().map(|new| new.job.entry.as_str()).collect::<Vec<&str>>())
        .arg(
            accepted
                .iter()
                .map(|new| new.job.idempotency_key.as_ref().map(|_| new.job.lane.tenant.as_str()))
                .collect::<Vec<Option<&str>>>(),
        )
        .arg(accepted.iter().map(|new| new.job.idempotency_key.as_deref()).collect::<Vec<Option<&str>>>())
        .arg(accepted.iter().map(|new| new.job.digest.as_str()).collect::<Vec<&str>>())
        .arg(accepted.iter().map(|new| new.job.spec.as_str()).collect::<Vec<&str>>())
        .arg(accepted.iter().map(|new| i64::from(new.job.priority)).collect::<Vec<i64>>())
        .arg(accepted.iter().map(|new| new.job.created_ms).collect::<Vec<i64>>())
        .arg(accepted.iter().map(|new| new.job.deadline_ms).collect::<Vec<Option<i64>>>())
        .arg(accepted.iter().map(|new| new.job.retry_of.map(|id| id.0)).collect::<Vec<Option<Uuid>>>())
        .arg(accepted.iter().map(|new| new.job.schedule.map(|id| id.0)).collect::<Vec<Option<Uuid>>>());
    let mut inserted = HashSet::with_capacity(accepted.len());
    for row in tx.all(stmt).await? {
        inserted.insert(job_at(&row, 0)?);
    }
    let (new, there): (Vec<_>, Vec<_>) = accepted.into_iter().partition(|new| inserted.contains(&new.job.id));
    if !there.is_empty() {
        again(tx, &there).await?;
    }
    Ok(new)
}

/// Jobs that were not inserted: every one of them must be there as it was submitted.
async fn again(tx: &mut Tx, there: &[Accepted<'_>]) -> Res<()> {
    let ids: Vec<Uuid> = there.iter().map(|new| new.job.id.0).collect();
    let mut digests: HashMap<JobId, String> = HashMap::new();
    for row in tx.all(sql!("submit_again").arg(ids)).await? {
        digests.insert(job_at(&row, 0)?, at(&row, 1)?);
    }
    for new in there {
        match digests.get(&new.job.id) {
            Some(digest) if *digest == new.job.digest => {}
            Some(_) => return Err(Error::Database("a job of this id is there already".into()).into()),
            None => return Err(Fault::Raced),
        }
    }
    Ok(())
}

async fn write(tx: &mut Tx, new: &[Accepted<'_>]) -> Res<()> {
    if new.is_empty() {
        return Ok(());
    }
    let due = |new: &Accepted<'_>| new.job.due_ms.filter(|_| waits(new.job));
    let rank = |new: &Accepted<'_>| rank_ms(due(new).unwrap_or(new.job.created_ms), i64::from(new.job.priority));
    let told = |new: &Accepted<'_>| i64::from(!new.job.carried.is_empty());
    let stmt = sql!("submit_turns")
        .arg(new.iter().map(|new| new.job.id.0).collect::<Vec<Uuid>>())
        .arg(new.iter().map(|new| new.lane_id).collect::<Vec<i64>>())
        .arg(new.iter().map(|new| i64::from(due(new).is_some())).collect::<Vec<i64>>())
        .arg(new.iter().map(|new| i64::from(new.job.priority)).collect::<Vec<i64>>())
        .arg(new.iter().map(rank).collect::<Vec<i64>>())
        .arg(new.iter().map(due).collect::<Vec<Option<i64>>>())
        .arg(new.iter().map(|new| new.job.deadline_ms).collect::<Vec<Option<i64>>>())
        .arg(new.iter().map(|new| i64::from(new.job.first_seq.max(1))).collect::<Vec<i64>>())
        .arg(new.iter().map(told).collect::<Vec<i64>>())
        .arg(new.iter().map(|new| i64::from(new.job.once)).collect::<Vec<i64>>());
    tx.run(stmt).await?;
    carried(tx, new).await?;
    let labels: Vec<(JobId, &(String, String))> =
        new.iter().flat_map(|new| new.job.labels.iter().map(|label| (new.job.id, label))).collect();
    if labels.is_empty() {
        return Ok(());
    }
    let stmt = sql!("submit_labels")
        .arg(labels.iter().map(|(id, _)| id.0).collect::<Vec<Uuid>>())
        .arg(labels.iter().map(|(_, (key, _))| key.as_str()).collect::<Vec<&str>>())
        .arg(labels.iter().map(|(_, (_, value))| value.as_str()).collect::<Vec<&str>>());
    tx.run(stmt).await?;
    Ok(())
}

/// What jobs take over, numbered from 1 within each turn, in the order given.
async fn carried(tx: &mut Tx, new: &[Accepted<'_>]) -> Res<()> {
    let mut rows: Vec<(JobId, i64, &InboxRow)> = Vec::new();
    for new in new {
        let mut next: HashMap<u32, i64> = HashMap::new();
        for row in &new.job.carried {
            let n = next.entry(row.seq).or_default();
            *n += 1;
            rows.push((new.job.id, *n, row));
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    let stmt = sql!("submit_inbox")
        .arg(rows.iter().map(|(id, ..)| id.0).collect::<Vec<Uuid>>())
        .arg(rows.iter().map(|(_, _, row)| i64::from(row.seq)).collect::<Vec<i64>>())
        .arg(rows.iter().map(|(_, n, _)| *n).collect::<Vec<i64>>())
        .arg(rows.iter().map(|(_, _, row)| row.kind.as_str()).collect::<Vec<&str>>())
        .arg(rows.iter().map(|(_, _, row)| row.body.as_str()).collect::<Vec<&str>>())
        .arg(rows.iter().map(|(_, _, row)| row.at_ms).collect::<Vec<i64>>());
    tx.run(stmt).await?;
    Ok(())
}
