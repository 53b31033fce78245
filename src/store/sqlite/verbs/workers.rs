//! Workers' leases, and what is configured of scopes.

use super::ledger;
use super::submit::scope;
use crate::store::flow::START;
use crate::store::sqlite::tx::{Tx, at, blob, json, sql};
use crate::store::{Applied, Result, ScopeConfig, WorkerId, WorkerRow};

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
pub(super) async fn retire(tx: &mut Tx<'_>, worker: WorkerId, _now_ms: i64) -> Result<()> {
    if tx.conn.run(sqlx::query(sql!("worker_retire")).bind(blob(worker.0))).await? == 0 {
        tx.conn.run(sqlx::query(sql!("worker_lapse")).bind(blob(worker.0))).await?;
    }
    tx.moved = true;
    Ok(())
}

/// The number of a worker whose lease stands.
pub(super) async fn live(tx: &mut Tx<'_>, worker: WorkerId, now_ms: i64) -> Result<Option<i64>> {
    let row = tx.conn.optional(sqlx::query(sql!("worker_live")).bind(blob(worker.0)).bind(now_ms)).await?;
    row.map(|row| at(&row, 0)).transpose()
}

/// Accounts first, because a model without a limit of its own starts at its account's. A number that a refusal has cut
/// is not lifted by a restart.
pub(super) async fn configure(tx: &mut Tx<'_>, scopes: &[ScopeConfig]) -> Result<()> {
    let mut ordered: Vec<&ScopeConfig> = scopes.iter().collect();
    ordered.sort_by_key(|config| !config.scope.model.is_empty());
    for config in ordered {
        let scope_id = scope(tx, &config.scope).await?;
        let known = ledger::load(tx, &[scope_id].into()).await?;
        let Some(state) = known.scopes.get(&scope_id) else { continue };
        let max = config.max_in_flight.map(i64::from);
        let inherited = state.account_id.and_then(|id| known.scopes.get(&id)).and_then(|account| account.flow.max);
        let mut flow = state.flow;
        let cut = flow.threshold.is_some();
        let start = match state.account_id {
            Some(_) => Some(max.or(inherited).unwrap_or(START)),
            None => max,
        };
        if !cut && (flow.max != max || flow.limit.is_none()) {
            flow.limit = start;
            flow.answered = 0;
        }
        flow.max = max;
        if let (Some(limit), Some(max)) = (flow.limit, max) {
            flow.limit = Some(limit.min(max));
        }
        let was = state.flow.max;
        store_flow(tx, scope_id, &flow).await?;
        if state.account_id.is_none() && was != max {
            restart_models(tx, scope_id, max).await?;
        }
    }
    tx.moved = true;
    Ok(())
}

async fn store_flow(tx: &mut Tx<'_>, scope_id: i64, flow: &crate::store::flow::FlowState) -> Result<()> {
    let query = sqlx::query(sql!("scope_configure"))
        .bind(scope_id)
        .bind(flow.max)
        .bind(flow.limit)
        .bind(flow.threshold)
        .bind(flow.answered);
    tx.conn.run(query).await?;
    Ok(())
}

/// The account's limit changed: models that start at it, and were not cut since, start again.
async fn restart_models(tx: &mut Tx<'_>, account_id: i64, max: Option<i64>) -> Result<()> {
    let rows = tx.conn.all(sqlx::query(sql!("scope_models")).bind(account_id)).await?;
    let mut ids = std::collections::BTreeSet::new();
    for row in &rows {
        ids.insert(at::<i64>(row, 0)?);
    }
    let known = ledger::load(tx, &ids).await?;
    for id in ids {
        let Some(state) = known.scopes.get(&id) else { continue };
        if state.flow.max.is_none() && state.flow.threshold.is_none() {
            let mut flow = state.flow;
            flow.limit = Some(max.unwrap_or(START));
            flow.answered = 0;
            store_flow(tx, id, &flow).await?;
        }
    }
    Ok(())
}
