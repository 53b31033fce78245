//! Workers' leases, and what is configured of scopes.

use super::ledger;
use super::submit::scope;
use crate::admission::Flow;
use crate::store::sqlite::tx::{Tx, at, blob, json, sql};
use crate::store::{Applied, Result, ScopeConfig, WorkerId, WorkerRow};
use std::collections::BTreeSet;

pub(super) async fn register(tx: &mut Tx<'_>, worker: &WorkerRow) -> Result<()> {
    let query = sqlx::query(sql!("worker_register"))
        .bind(blob(worker.id.0))
        .bind(json(&worker.queues)?)
        .bind(worker.started_ms)
        .bind(worker.heartbeat_ms)
        .bind(worker.lease_ms)
        .bind(i64::from(worker.concurrency));
    tx.conn.run(query).await?;
    Ok(())
}

pub(super) async fn heartbeat(tx: &mut Tx<'_>, worker: WorkerId, now_ms: i64) -> Result<Applied> {
    let changed = tx.conn.run(sqlx::query(sql!("worker_heartbeat")).bind(blob(worker.0)).bind(now_ms)).await?;
    Ok(if changed == 1 { Applied::Done } else { Applied::Void })
}

/// One that still holds turns, against its word, is left to be rescued, and may not renew.
pub(super) async fn retire(tx: &mut Tx<'_>, worker: WorkerId, now_ms: i64) -> Result<()> {
    let bound = |text| sqlx::query(text).bind(blob(worker.0)).bind(now_ms);
    if tx.conn.run(bound(sql!("worker_retire"))).await? == 0 {
        tx.conn.run(bound(sql!("worker_lapse"))).await?;
    }
    tx.moved = true;
    Ok(())
}

/// The number of a worker whose lease stands.
pub(super) async fn live(tx: &mut Tx<'_>, worker: WorkerId, now_ms: i64) -> Result<Option<i64>> {
    let row = tx.conn.optional(sqlx::query(sql!("worker_live")).bind(blob(worker.0)).bind(now_ms)).await?;
    row.map(|row| at(&row, 0)).transpose()
}

/// Accounts first, because a model without a limit of its own starts at its account's. What a number has learned is kept
/// where nothing changed, and a number that a refusal has cut is not lifted by a restart.
pub(super) async fn configure(tx: &mut Tx<'_>, scopes: &[ScopeConfig]) -> Result<()> {
    let mut ordered: Vec<&ScopeConfig> = scopes.iter().collect();
    ordered.sort_by_key(|config| !config.scope.model.is_empty());
    for config in ordered {
        let scope_id = scope(tx, &config.scope).await?;
        let max = config.max_in_flight.map(i64::from);
        let known = ledger::load(tx, &[scope_id].into()).await?;
        let Some(state) = known.scopes.get(&scope_id) else { continue };
        let of_account = state.account_id.and_then(|id| known.scopes.get(&id)).and_then(|account| account.flow.max);
        let mut flow = state.flow;
        flow.configure(max);
        if state.account_id.is_some() && state.flow.max != max {
            flow = restart(flow, of_account);
        }
        store_flow(tx, scope_id, &flow).await?;
        if state.account_id.is_none() && state.flow.max != max {
            restart_models(tx, scope_id, max).await?;
        }
    }
    tx.moved = true;
    Ok(())
}

/// Where a model's number starts, if no refusal has cut it: at its own limit, else at its account's.
fn restart(flow: Flow, of_account: Option<i64>) -> Flow {
    if flow.threshold.is_some() {
        return flow;
    }
    Flow { max: flow.max, ..Flow::of_model(flow.max.or(of_account)) }
}

/// The account's limit changed, and with it where its models start.
async fn restart_models(tx: &mut Tx<'_>, account_id: i64, max: Option<i64>) -> Result<()> {
    let mut ids = BTreeSet::new();
    for row in &tx.conn.all(sqlx::query(sql!("scope_models")).bind(account_id)).await? {
        ids.insert(at::<i64>(row, 0)?);
    }
    for (id, state) in ledger::load(tx, &ids).await?.scopes {
        if ids.contains(&id) && state.flow.max.is_none() {
            store_flow(tx, id, &restart(state.flow, max)).await?;
        }
    }
    Ok(())
}

async fn store_flow(tx: &mut Tx<'_>, scope_id: i64, flow: &Flow) -> Result<()> {
    let query = sqlx::query(sql!("scope_configure"))
        .bind(scope_id)
        .bind(flow.max)
        .bind(flow.limit)
        .bind(flow.threshold)
        .bind(flow.answered);
    tx.conn.run(query).await?;
    Ok(())
}
