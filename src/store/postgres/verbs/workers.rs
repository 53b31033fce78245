//! Workers' leases, and what is configured of scopes.

use super::ledger;
use crate::admission::Flow;
use crate::store::postgres::conn::sql;
use crate::store::postgres::fault::{Fault, Res};
use crate::store::postgres::rows::at;
use crate::store::postgres::tx::Tx;
use crate::store::{Applied, Error, ScopeConfig, WorkerId, WorkerRow};
use std::collections::BTreeSet;

pub(super) async fn register(tx: &mut Tx, worker: &WorkerRow) -> Res<()> {
    let queues = serde_json::to_string(&worker.queues)
        .map_err(|e| Error::Undecodable { what: "a worker's queues", why: e.to_string() })?;
    let stmt = sql!("worker_register")
        .arg(worker.id.0)
        .arg(queues.as_str())
        .arg(worker.started_ms)
        .arg(worker.heartbeat_ms)
        .arg(worker.lease_ms)
        .arg(i64::from(worker.concurrency));
    tx.run(stmt).await?;
    Ok(())
}

pub(super) async fn heartbeat(tx: &mut Tx, worker: WorkerId, now_ms: i64) -> Res<Applied> {
    let changed = tx.run(sql!("worker_heartbeat").arg(worker.0).arg(now_ms)).await?;
    Ok(if changed == 1 { Applied::Done } else { Applied::Void })
}

/// One that still holds turns, against its word, is left to be rescued, and may not renew.
pub(super) async fn retire(tx: &mut Tx, worker: WorkerId, now_ms: i64) -> Res<()> {
    // Behind a claim of its own that has not committed yet, so that the next statement sees what it took.
    tx.optional(sql!("worker_lock").arg(worker.0)).await?;
    if tx.run(sql!("worker_retire").arg(worker.0).arg(now_ms)).await? == 0 {
        tx.run(sql!("worker_lapse").arg(worker.0).arg(now_ms)).await?;
    }
    tx.moved = true;
    Ok(())
}

/// Accounts first, because a model without a limit of its own starts at its account's. What a number has learned is kept
/// where nothing changed, and a number that a refusal has cut is not lifted by a restart.
pub(super) async fn configure(tx: &mut Tx, scopes: &[ScopeConfig]) -> Res<()> {
    let named = |config: &ScopeConfig| tx.db.cache.scope(&config.scope).ok_or(Fault::Raced);
    let accounts: BTreeSet<i64> =
        scopes.iter().filter_map(|config| tx.db.cache.scope(&config.scope.of_account())).collect();
    let mut all = scopes.iter().map(named).collect::<Res<BTreeSet<i64>>>()?;
    // Accounts first and then all their models. That is not the order of the numbers, and harms nobody: whoever has a
    // model's lock has its account's, which is taken here.
    ledger::lock(tx, &[], &accounts).await?;
    for row in tx.all(sql!("scope_models").arg(accounts.iter().copied().collect::<Vec<i64>>())).await? {
        all.insert(at(&row, 0)?);
    }
    all.extend(accounts);
    let mut known = ledger::lock(tx, &[], &all).await?;
    let mut ordered: Vec<&ScopeConfig> = scopes.iter().collect();
    ordered.sort_by_key(|config| !config.scope.model.is_empty());
    let mut changed: BTreeSet<i64> = BTreeSet::new();
    for config in ordered {
        let scope_id = tx.db.cache.scope(&config.scope).ok_or(Fault::Raced)?;
        let max = config.max_in_flight.map(i64::from);
        let Some(state) = known.scopes.get(&scope_id).cloned() else { continue };
        let of_account = state.account_id.and_then(|id| known.scopes.get(&id)).and_then(|account| account.flow.max);
        let mut flow = state.flow;
        flow.configure(max);
        if state.account_id.is_some() && state.flow.max != max {
            flow = restart(flow, of_account);
        }
        if let Some(scope) = known.scopes.get_mut(&scope_id) {
            scope.flow = flow;
        }
        changed.insert(scope_id);
        if state.account_id.is_none() && state.flow.max != max {
            // The account's limit changed, and with it where its models start.
            let of_it = |scope: &&mut crate::store::ledger::ScopeState| {
                scope.account_id == Some(scope_id) && scope.flow.max.is_none()
            };
            for model in known.scopes.values_mut().filter(of_it) {
                model.flow = restart(model.flow, max);
                changed.insert(model.scope_id);
            }
        }
    }
    for scope in changed.iter().filter_map(|id| known.scopes.get(id)) {
        let flow = scope.flow;
        let stmt = sql!("scope_configure")
            .arg(scope.scope_id)
            .arg(flow.max)
            .arg(flow.limit)
            .arg(flow.threshold)
            .arg(flow.answered);
        tx.run(stmt).await?;
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
