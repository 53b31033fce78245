//! The ledger's way in and out of Postgres.

use crate::admission::{Flow, Hold};
use crate::store::ledger::{Happened, HoldState, Holder, Ledger, ScopeState};
use crate::store::postgres::conn::sql;
use crate::store::postgres::fault::Res;
use crate::store::postgres::rows::{at, hold_at, int, job_opt, key_opt};
use crate::store::postgres::tx::Tx;
use crate::store::text;
use crate::store::{Fence, JobId, Result};
use sqlx::postgres::PgRow;
use std::collections::BTreeSet;
use uuid::Uuid;

/// Locks the scopes named and those of the jobs' turns, with their accounts', in the order of their numbers; then reads
/// what is open on them, in a statement of its own, so that it sees what the holder of the lock before committed.
pub(super) async fn lock(tx: &mut Tx, jobs: &[JobId], scope_ids: &BTreeSet<i64>) -> Res<Ledger> {
    let jobs: Vec<Uuid> = jobs.iter().map(|job| job.0).collect();
    let scopes: Vec<i64> = scope_ids.iter().copied().collect();
    if jobs.is_empty() && scopes.is_empty() {
        return Ok(Ledger::default());
    }
    let rows = tx.all(sql!("ledger_lock").arg(jobs).arg(scopes)).await?;
    with_holds(tx, &rows).await
}

/// As it stands, without a lock: good for nothing but to see whether a lock is worth it.
pub(super) async fn peek(tx: &mut Tx, scope_ids: &BTreeSet<i64>) -> Res<Ledger> {
    if scope_ids.is_empty() {
        return Ok(Ledger::default());
    }
    let scopes: Vec<i64> = scope_ids.iter().copied().collect();
    let rows = tx.all(sql!("ledger_peek").arg(scopes)).await?;
    with_holds(tx, &rows).await
}

async fn with_holds(tx: &mut Tx, rows: &[PgRow]) -> Res<Ledger> {
    let mut ledger = Ledger::default();
    for row in rows {
        let scope = scope_of(row)?;
        ledger.scopes.insert(scope.scope_id, scope);
    }
    let ids: Vec<i64> = ledger.scopes.keys().copied().collect();
    for row in tx.all(sql!("ledger_holds").arg(ids)).await? {
        let hold = hold_of(&row)?;
        ledger.holds.insert(hold.scope_id, hold);
    }
    Ok(ledger)
}

fn scope_of(row: &PgRow) -> Result<ScopeState> {
    Ok(ScopeState {
        scope_id: at(row, 0)?,
        account_id: at(row, 1)?,
        flow: Flow { max: at(row, 2)?, limit: at(row, 3)?, threshold: at(row, 4)?, answered: at(row, 5)? },
        in_flight: at(row, 6)?,
        barren: int(row, 7)?,
        changed: false,
    })
}

fn hold_of(row: &PgRow) -> Result<HoldState> {
    let probe = match (at::<Option<i64>>(row, 14)?, job_opt(row, 15)?, at::<Option<i64>>(row, 16)?) {
        (Some(worker_no), Some(job_id), Some(fence)) => Some(Holder { worker_no, job_id, fence: Fence(fence) }),
        _ => None,
    };
    let kind: Option<String> = at(row, 3)?;
    Ok(HoldState {
        id: hold_at(row, 0)?,
        scope_id: at(row, 1)?,
        hold: Hold { until_ms: at(row, 6)?, dated_no: at(row, 5)?, barren: int(row, 13)?, probe },
        cause: at(row, 2)?,
        kind: kind.as_deref().and_then(text::limit_kind_of),
        opened_ms: at(row, 4)?,
        source: at(row, 7)?,
        raw: at(row, 8)?,
        refusal: key_opt(row, 9)?,
        extended: int(row, 12)?,
        probe_since_ms: at(row, 17)?,
        ended: None,
        changed: false,
    })
}

/// Writes back what changed.
pub(super) async fn store(tx: &mut Tx, ledger: &Ledger) -> Res<()> {
    let changed: Vec<&ScopeState> = ledger.scopes.values().filter(|scope| scope.changed).collect();
    if !changed.is_empty() {
        let stmt = sql!("ledger_scopes_store")
            .arg(changed.iter().map(|s| s.scope_id).collect::<Vec<i64>>())
            .arg(changed.iter().map(|s| s.in_flight).collect::<Vec<i64>>())
            .arg(changed.iter().map(|s| i64::from(s.barren)).collect::<Vec<i64>>())
            .arg(changed.iter().map(|s| s.flow.limit).collect::<Vec<Option<i64>>>())
            .arg(changed.iter().map(|s| s.flow.threshold).collect::<Vec<Option<i64>>>())
            .arg(changed.iter().map(|s| s.flow.answered).collect::<Vec<i64>>());
        tx.run(stmt).await?;
    }
    // The ended ones first: a scope has one open hold.
    for hold in ledger.ended.iter().chain(ledger.holds.values().filter(|hold| hold.changed)) {
        store_hold(tx, hold).await?;
    }
    events(tx, &ledger.events).await
}

async fn events(tx: &mut Tx, events: &[Happened]) -> Res<()> {
    if events.is_empty() {
        return Ok(());
    }
    let stmt = sql!("ledger_events")
        .arg(events.iter().map(|e| e.hold_id.0).collect::<Vec<Uuid>>())
        .arg(events.iter().map(|e| e.at_ms).collect::<Vec<i64>>())
        .arg(events.iter().map(|e| e.event).collect::<Vec<&str>>())
        .arg(events.iter().map(|e| e.until_ms).collect::<Vec<Option<i64>>>())
        .arg(events.iter().map(|e| i64::from(e.barren)).collect::<Vec<i64>>())
        .arg(events.iter().map(|e| e.key.map(|k| k.job_id.0)).collect::<Vec<Option<Uuid>>>())
        .arg(events.iter().map(|e| e.key.map(|k| k.fence.0)).collect::<Vec<Option<i64>>>())
        .arg(events.iter().map(|e| e.key.map(|k| i64::from(k.n))).collect::<Vec<Option<i64>>>())
        .arg(events.iter().map(|e| e.by.as_deref()).collect::<Vec<Option<&str>>>())
        .arg(events.iter().map(|e| e.reason.as_deref()).collect::<Vec<Option<&str>>>());
    tx.run(stmt).await?;
    Ok(())
}

async fn store_hold(tx: &mut Tx, hold: &HoldState) -> Res<()> {
    let stmt = sql!("ledger_hold_store")
        .arg(hold.id.0)
        .arg(hold.scope_id)
        .arg(hold.cause.as_str())
        .arg(hold.kind.map(text::limit_kind))
        .arg(hold.opened_ms)
        .arg(hold.hold.dated_no)
        .arg(hold.hold.until_ms)
        .arg(hold.source.as_str())
        .arg(hold.raw.as_deref())
        .arg(hold.refusal.map(|k| k.job_id.0))
        .arg(hold.refusal.map(|k| k.fence.0))
        .arg(hold.refusal.map(|k| i64::from(k.n)))
        .arg(i64::from(hold.extended))
        .arg(i64::from(hold.hold.barren))
        .arg(hold.hold.probe.map(|p| p.worker_no))
        .arg(hold.hold.probe.map(|p| p.job_id.0))
        .arg(hold.hold.probe.map(|p| p.fence.0))
        .arg(hold.probe_since_ms)
        .arg(hold.ended.map(|(at_ms, _)| at_ms))
        .arg(hold.ended.map(|(_, end)| end));
    tx.run(stmt).await?;
    Ok(())
}
