//! The ledger's way in and out of SQLite.

use crate::admission::{Flow, Hold};
use crate::store::ledger::{Happened, HoldState, Holder, Ledger, ScopeState};
use crate::store::sqlite::text;
use crate::store::sqlite::tx::{Tx, at, blob, hold_at, int, int_opt, json, sql, uuid_opt};
use crate::store::{Fence, JobId, Result, SendKey};
use sqlx::sqlite::SqliteRow;
use std::collections::BTreeSet;

/// The scopes named, their accounts', and what is open on them.
pub(super) async fn load(tx: &mut Tx<'_>, scope_ids: &BTreeSet<i64>) -> Result<Ledger> {
    let mut ledger = Ledger::default();
    if scope_ids.is_empty() {
        return Ok(ledger);
    }
    for row in tx.conn.all(sqlx::query(sql!("ledger_scopes")).bind(json(scope_ids)?)).await? {
        let scope = scope_of(&row)?;
        ledger.scopes.insert(scope.scope_id, scope);
    }
    let ids: Vec<i64> = ledger.scopes.keys().copied().collect();
    for row in tx.conn.all(sqlx::query(sql!("ledger_holds")).bind(json(&ids)?)).await? {
        let hold = hold_of(&row)?;
        ledger.holds.insert(hold.scope_id, hold);
    }
    Ok(ledger)
}

fn scope_of(row: &SqliteRow) -> Result<ScopeState> {
    Ok(ScopeState {
        scope_id: at(row, 0)?,
        account_id: at(row, 1)?,
        flow: Flow { max: at(row, 2)?, limit: at(row, 3)?, threshold: at(row, 4)?, answered: at(row, 5)? },
        in_flight: at(row, 6)?,
        barren: int(row, 7)?,
        changed: false,
    })
}

/// The first 18 columns of a hold, in the table's order.
fn hold_of(row: &SqliteRow) -> Result<HoldState> {
    let refusal = match (uuid_opt(row, 9)?, at::<Option<i64>>(row, 10)?, int_opt(row, 11)?) {
        (Some(job), Some(fence), Some(n)) => Some(SendKey { job_id: JobId(job), fence: Fence(fence), n }),
        _ => None,
    };
    let probe = match (at::<Option<i64>>(row, 14)?, uuid_opt(row, 15)?, at::<Option<i64>>(row, 16)?) {
        (Some(worker_no), Some(job), Some(fence)) => {
            Some(Holder { worker_no, job_id: JobId(job), fence: Fence(fence) })
        }
        _ => None,
    };
    let kind: Option<&str> = at(row, 3)?;
    Ok(HoldState {
        id: hold_at(row, 0)?,
        scope_id: at(row, 1)?,
        hold: Hold { until_ms: at(row, 6)?, dated_no: at(row, 5)?, barren: int(row, 13)?, probe },
        cause: at(row, 2)?,
        kind: kind.and_then(text::limit_kind_of),
        opened_ms: at(row, 4)?,
        source: at(row, 7)?,
        raw: at(row, 8)?,
        refusal,
        extended: int(row, 12)?,
        probe_since_ms: at(row, 17)?,
        ended: None,
        changed: false,
    })
}

/// Writes back what changed.
pub(super) async fn store(tx: &mut Tx<'_>, ledger: &Ledger) -> Result<()> {
    let scopes: Vec<_> = ledger
        .scopes
        .values()
        .filter(|s| s.changed)
        .map(|s| (s.scope_id, s.in_flight, s.barren, s.flow.limit, s.flow.threshold, s.flow.answered))
        .collect();
    if !scopes.is_empty() {
        tx.conn.run(sqlx::query(sql!("ledger_scopes_store")).bind(json(&scopes)?)).await?;
    }
    // The ended ones first: a scope has one open hold.
    for hold in ledger.ended.iter().chain(ledger.holds.values().filter(|h| h.changed)) {
        store_hold(tx, hold).await?;
    }
    tx.write(sql!("ledger_events"), &ledger.events, |query, event: &Happened| {
        query
            .bind(blob(event.hold_id.0))
            .bind(event.at_ms)
            .bind(event.event)
            .bind(event.until_ms)
            .bind(i64::from(event.barren))
            .bind(event.key.map(|k| blob(k.job_id.0)))
            .bind(event.key.map(|k| k.fence.0))
            .bind(event.key.map(|k| i64::from(k.n)))
            .bind(event.by.clone())
            .bind(event.reason.clone())
    })
    .await?;
    Ok(())
}

async fn store_hold(tx: &mut Tx<'_>, hold: &HoldState) -> Result<()> {
    let query = sqlx::query(sql!("ledger_hold_store"))
        .bind(blob(hold.id.0))
        .bind(hold.scope_id)
        .bind(hold.cause.clone())
        .bind(hold.kind.map(text::limit_kind))
        .bind(hold.opened_ms)
        .bind(hold.hold.dated_no)
        .bind(hold.hold.until_ms)
        .bind(hold.source.clone())
        .bind(hold.raw.clone())
        .bind(hold.refusal.map(|k| blob(k.job_id.0)))
        .bind(hold.refusal.map(|k| k.fence.0))
        .bind(hold.refusal.map(|k| i64::from(k.n)))
        .bind(i64::from(hold.extended))
        .bind(i64::from(hold.hold.barren))
        .bind(hold.hold.probe.map(|p| p.worker_no))
        .bind(hold.hold.probe.map(|p| blob(p.job_id.0)))
        .bind(hold.hold.probe.map(|p| p.fence.0))
        .bind(hold.probe_since_ms)
        .bind(hold.ended.map(|(at_ms, _)| at_ms))
        .bind(hold.ended.map(|(_, end)| end));
    tx.conn.run(query).await?;
    Ok(())
}
