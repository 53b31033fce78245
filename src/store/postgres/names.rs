//! The numbers of lanes and scopes by their names, made where there are none: in short transactions of their own, before
//! the one that needs them, so that nothing waits for a name with other locks in hand.

use super::conn::sql;
use super::fault::{Fault, Res};
use super::rows::{at, int};
use super::tx::{Db, Tx};
use crate::admission::Flow;
use crate::store::{LaneKey, ScopeKey};
use std::collections::{BTreeMap, BTreeSet};

/// Learns the lanes named, with their scopes.
pub(super) async fn lanes<'a>(db: &Db, keys: impl Iterator<Item = &'a LaneKey>) -> Res<()> {
    db.cache.meet(db.pool.generation());
    let unknown: BTreeSet<&LaneKey> = keys.filter(|key| db.cache.lane(key).is_none()).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let mut wanted: BTreeMap<(i64, &str, &str), &LaneKey> = BTreeMap::new();
    for key in unknown {
        wanted.insert((scope(db, &key.scope).await?, &key.queue, &key.tenant), key);
    }
    find(db, &mut wanted).await?;
    if wanted.is_empty() {
        return Ok(());
    }
    let mut tx = db.write().await?;
    // In the order of their names, so that two who make the same lanes do not wait for each other in a circle.
    let (scopes, queues, tenants) = columns(&wanted);
    match tx.run(sql!("lanes_insert").arg(scopes).arg(queues).arg(tenants)).await {
        Ok(_) => tx.commit().await?,
        Err(fault) => {
            tx.roll_back().await;
            return Err(fault);
        }
    }
    find(db, &mut wanted).await?;
    if wanted.is_empty() { Ok(()) } else { Err(Fault::Raced) }
}

fn columns<'a>(wanted: &BTreeMap<(i64, &'a str, &'a str), &LaneKey>) -> (Vec<i64>, Vec<&'a str>, Vec<&'a str>) {
    let mut columns = (Vec::new(), Vec::new(), Vec::new());
    for (scope_id, queue, tenant) in wanted.keys() {
        columns.0.push(*scope_id);
        columns.1.push(*queue);
        columns.2.push(*tenant);
    }
    columns
}

/// Learns those that are there, and takes them off the list.
async fn find(db: &Db, wanted: &mut BTreeMap<(i64, &str, &str), &LaneKey>) -> Res<()> {
    let places: Vec<(i64, &str, &str)> = wanted.keys().copied().collect();
    let (scopes, queues, tenants) = columns(wanted);
    let mut tx = db.read().await?;
    let found = tx.all(sql!("lanes_find").arg(scopes).arg(queues).arg(tenants)).await;
    for row in tx.end(found).await? {
        let place: usize = int::<usize>(&row, 1)? - 1;
        if let Some(key) = places.get(place).and_then(|place| wanted.remove(place)) {
            db.cache.learn_lane(key.clone(), at(&row, 0)?);
        }
    }
    Ok(())
}

/// The scope of a key; with it the account's.
pub(super) async fn scope(db: &Db, key: &ScopeKey) -> Res<i64> {
    db.cache.meet(db.pool.generation());
    if let Some(scope_id) = db.cache.scope(key) {
        return Ok(scope_id);
    }
    let mut tx = db.read().await?;
    let found = scope_id(&mut tx, key).await;
    let scope_id = match tx.end(found).await? {
        Some(scope_id) => scope_id,
        None => make(db, key).await?,
    };
    db.cache.learn_scope(key.clone(), scope_id);
    Ok(scope_id)
}

async fn scope_id(tx: &mut Tx, key: &ScopeKey) -> Res<Option<i64>> {
    let named = sql!("scope_id").arg(key.provider.as_str()).arg(key.account.as_str()).arg(key.model.as_str());
    Ok(tx.optional(named).await?.map(|row| at(&row, 0)).transpose()?)
}

async fn make(db: &Db, key: &ScopeKey) -> Res<i64> {
    let mut tx = db.write().await?;
    match insert(&mut tx, key).await {
        Ok(scope_id) => {
            tx.commit().await?;
            Ok(scope_id)
        }
        Err(fault) => {
            tx.roll_back().await;
            Err(fault)
        }
    }
}

/// A model's controlled number starts at what the account may have in flight. The account's row is locked meanwhile, so
/// that its limit does not change unseen; the limit itself is stated by configuration only.
async fn insert(tx: &mut Tx, key: &ScopeKey) -> Res<i64> {
    let account = key.of_account();
    let flow = Flow::of_account(None);
    insert_one(tx, &account, None, flow).await?;
    if !key.model.is_empty() {
        let named = sql!("scope_lock").arg(account.provider.as_str()).arg(account.account.as_str());
        let row = tx.one(named).await?;
        insert_one(tx, key, Some(at(&row, 0)?), Flow::of_model(at(&row, 1)?)).await?;
    }
    scope_id(tx, key).await?.ok_or(Fault::Raced)
}

async fn insert_one(tx: &mut Tx, key: &ScopeKey, account_id: Option<i64>, flow: Flow) -> Res<()> {
    let row = sql!("scope_insert")
        .arg(key.provider.as_str())
        .arg(key.account.as_str())
        .arg(key.model.as_str())
        .arg(account_id)
        .arg(flow.limit);
    tx.run(row).await?;
    Ok(())
}
