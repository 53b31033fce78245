//! Accepting jobs.

use crate::admission::Flow;
use crate::store::sqlite::text::rank_ms;
use crate::store::sqlite::tx::{LaneRef, Tx, at, blob, hex, int, job_at, json, sql};
use crate::store::{Error, InboxRow, JobId, LaneKey, NewJob, Result, ScopeKey, Submitted};
use std::collections::HashMap;

/// A job that is really new, in its lane.
struct Accepted<'a> {
    job: &'a NewJob,
    lane_id: i64,
}

pub(in crate::store::sqlite) async fn submit(tx: &mut Tx<'_>, jobs: &[&NewJob]) -> Result<Vec<Submitted>> {
    let mut known = known_keys(tx, jobs).await?;
    let mut retried = known_retries(tx, jobs).await?;
    let mut answers = Vec::with_capacity(jobs.len());
    let mut accepted = Vec::with_capacity(jobs.len());
    let mut ready: HashMap<i64, i64> = HashMap::new();
    for job in jobs {
        check(job)?;
        if let Some(key) = &job.idempotency_key {
            let place = (job.lane.tenant.clone(), key.clone());
            if let Some((id, digest)) = known.get(&place) {
                let same = *digest == job.digest;
                answers.push(if same { Submitted::Duplicate(*id) } else { Submitted::Conflict(*id) });
                continue;
            }
        }
        if let Some(of) = job.retry_of {
            if let Some(id) = retried.get(&of) {
                answers.push(Submitted::Duplicate(*id));
                continue;
            }
            retried.insert(of, job.id);
        }
        if let Some(key) = &job.idempotency_key {
            known.insert((job.lane.tenant.clone(), key.clone()), (job.id, job.digest.clone()));
        }
        let lane = lane(tx, &job.lane).await?;
        if !waits(job) {
            *ready.entry(lane.lane_id).or_default() += 1;
        }
        accepted.push(Accepted { job, lane_id: lane.lane_id });
        answers.push(Submitted::Accepted(job.id));
    }
    write(tx, &accepted).await?;
    tx.ready(&ready).await?;
    tx.moved |= !accepted.is_empty();
    Ok(answers)
}

/// Its time has not come.
fn waits(job: &NewJob) -> bool {
    job.due_ms.is_some_and(|due_ms| due_ms > job.created_ms)
}

/// Names take part in keys and go through JSON, where SQLite ends a text at NUL; documents are bound as they are and
/// keep theirs.
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

async fn known_keys(tx: &mut Tx<'_>, jobs: &[&NewJob]) -> Result<Known> {
    let places: Vec<(&str, &str)> =
        jobs.iter().filter_map(|job| Some((job.lane.tenant.as_str(), job.idempotency_key.as_deref()?))).collect();
    let mut known = Known::new();
    if places.is_empty() {
        return Ok(known);
    }
    for row in tx.conn.all(sqlx::query(sql!("submit_keys")).bind(json(&places)?)).await? {
        let index: usize = int(&row, 0)?;
        if let Some((tenant, key)) = places.get(index) {
            known.insert(((*tenant).to_owned(), (*key).to_owned()), (job_at(&row, 1)?, at(&row, 2)?));
        }
    }
    Ok(known)
}

/// Retries that stand already: a job is retried once, and what failed again is retried in its turn.
async fn known_retries(tx: &mut Tx<'_>, jobs: &[&NewJob]) -> Result<HashMap<JobId, JobId>> {
    let of: Vec<JobId> = jobs.iter().filter_map(|job| job.retry_of).collect();
    let mut known = HashMap::new();
    if of.is_empty() {
        return Ok(known);
    }
    let ids: Vec<String> = of.iter().map(|id| hex(id.0)).collect();
    for row in tx.conn.all(sqlx::query(sql!("retries")).bind(json(&ids)?)).await? {
        let index: usize = int(&row, 0)?;
        if let Some(of) = of.get(index) {
            known.insert(*of, job_at(&row, 1)?);
        }
    }
    Ok(known)
}

async fn write(tx: &mut Tx<'_>, accepted: &[Accepted<'_>]) -> Result<()> {
    tx.write(sql!("submit_jobs"), accepted, |query, new| {
        let job = new.job;
        query
            .bind(blob(job.id.0))
            .bind(new.lane_id)
            .bind(job.entry.clone())
            .bind(job.idempotency_key.as_ref().map(|_| job.lane.tenant.clone()))
            .bind(job.idempotency_key.clone())
            .bind(job.digest.clone())
            .bind(job.spec.clone())
            .bind(i64::from(job.priority))
            .bind(job.created_ms)
            .bind(job.deadline_ms)
            .bind(job.retry_of.map(|id| blob(id.0)))
            .bind(job.schedule.map(|id| blob(id.0)))
    })
    .await?;
    tx.write(sql!("submit_turns"), accepted, |query, new| {
        let job = new.job;
        let due_ms = job.due_ms.filter(|_| waits(job));
        query
            .bind(blob(job.id.0))
            .bind(new.lane_id)
            .bind(i64::from(due_ms.is_some()))
            .bind(i64::from(job.first_seq.max(1)))
            .bind(i64::from(job.priority))
            .bind(rank_ms(due_ms.unwrap_or(job.created_ms), i64::from(job.priority)))
            .bind(due_ms)
            .bind(job.deadline_ms)
            .bind(i64::from(!job.carried.is_empty()))
            .bind(i64::from(job.once))
    })
    .await?;
    let carried: Vec<(JobId, i64, &InboxRow)> = accepted.iter().flat_map(|new| numbered(new.job)).collect();
    tx.write(sql!("submit_inbox"), &carried, |query, (id, n, row)| {
        query
            .bind(blob(id.0))
            .bind(i64::from(row.seq))
            .bind(*n)
            .bind(row.kind.clone())
            .bind(row.body.clone())
            .bind(row.at_ms)
    })
    .await?;
    let labels: Vec<(JobId, &(String, String))> =
        accepted.iter().flat_map(|new| new.job.labels.iter().map(|label| (new.job.id, label))).collect();
    tx.write(sql!("submit_labels"), &labels, |query, (id, (key, value))| {
        query.bind(blob(id.0)).bind(key.clone()).bind(value.clone())
    })
    .await?;
    Ok(())
}

/// What a job takes over, numbered from 1 within each turn, in the order given.
fn numbered(job: &NewJob) -> impl Iterator<Item = (JobId, i64, &InboxRow)> {
    let mut next: HashMap<u32, i64> = HashMap::new();
    job.carried.iter().map(move |row| {
        let n = next.entry(row.seq).or_default();
        *n += 1;
        (job.id, *n, row)
    })
}

/// The lane of a key, made where there is none.
async fn lane(tx: &mut Tx<'_>, key: &LaneKey) -> Result<LaneRef> {
    if let Some(lane) = tx.cache.lanes.get(key) {
        return Ok(*lane);
    }
    let scope_id = scope(tx, &key.scope).await?;
    let bound = |text| sqlx::query(text).bind(scope_id).bind(key.queue.clone()).bind(key.tenant.clone());
    let lane_id = match tx.conn.optional(bound(sql!("lane_id"))).await? {
        Some(row) => at(&row, 0)?,
        None => tx.conn.number(bound(sql!("lane_insert"))).await?,
    };
    let lane = LaneRef { lane_id };
    tx.cache.lanes.insert(key.clone(), lane);
    Ok(lane)
}

/// The scope of a key, made where there is none; with it the account's. A model's controlled number starts at what the
/// account may have in flight, where the model has no limit of its own.
pub(super) async fn scope(tx: &mut Tx<'_>, key: &ScopeKey) -> Result<i64> {
    if let Some(scope_id) = find_scope(tx, key).await? {
        return Ok(scope_id);
    }
    if key.model.is_empty() {
        return insert_scope(tx, key, None, Flow::of_account(None)).await;
    }
    let account = key.of_account();
    let account_id = match find_scope(tx, &account).await? {
        Some(account_id) => account_id,
        None => insert_scope(tx, &account, None, Flow::of_account(None)).await?,
    };
    let known = super::ledger::load(tx, &[account_id].into()).await?;
    let start = known.scopes.get(&account_id).and_then(|scope| scope.flow.max);
    insert_scope(tx, key, Some(account_id), Flow::of_model(start)).await
}

async fn find_scope(tx: &mut Tx<'_>, key: &ScopeKey) -> Result<Option<i64>> {
    let query =
        sqlx::query(sql!("scope_id")).bind(key.provider.clone()).bind(key.account.clone()).bind(key.model.clone());
    tx.conn.optional(query).await?.map(|row| at(&row, 0)).transpose()
}

/// The limit itself is stated by configuration only.
async fn insert_scope(tx: &mut Tx<'_>, key: &ScopeKey, account_id: Option<i64>, flow: Flow) -> Result<i64> {
    let query = sqlx::query(sql!("scope_insert"))
        .bind(key.provider.clone())
        .bind(key.account.clone())
        .bind(key.model.clone())
        .bind(account_id)
        .bind(flow.limit);
    tx.conn.number(query).await
}
