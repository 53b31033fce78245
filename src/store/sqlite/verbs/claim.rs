//! Claim = admission: what is claimed has its permit, in one transaction.

use super::{ledger, submit, workers};
use crate::admission::{Lane, grants};
use crate::store::ledger::{InHand, Ledger};
use crate::store::sqlite::tx::{Tx, at, counter, fence_at, hex, job_at, json, sql, text_at};
use crate::store::{ClaimRequest, ClaimedTurn, Fence, Grant, JobId, LaneKey, Result, ScopeKey};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How many due turns become claimable in one claim at most.
const PROMOTED: i64 = 5_000;
/// For so long after a hold's end a turn in hand goes before one that would have to be claimed.
const IN_HAND_FIRST_MS: i64 = 1_000;

pub(super) async fn claim(tx: &mut Tx<'_>, request: &ClaimRequest) -> Result<Vec<ClaimedTurn>> {
    let Some(worker_no) = workers::live(tx, request.worker, request.now_ms).await? else { return Ok(Vec::new()) };
    promote(tx, request.now_ms).await?;
    if request.room == 0 {
        return Ok(Vec::new());
    }
    let queues = json(&request.queues)?;
    let mut active = BTreeSet::new();
    for row in tx.conn.all(sqlx::query(sql!("claim_scopes")).bind(queues.clone())).await? {
        active.insert(at::<i64>(&row, 0)?);
    }
    let mut ledger = ledger::load(tx, &active).await?;
    let mut rooms = ledger.rooms(request.now_ms);
    for scope_id in in_hand_first(tx, &ledger, request.now_ms).await? {
        rooms.insert(scope_id, 0);
    }
    for scope in &request.without {
        rooms.insert(submit::scope(tx, scope).await?, 0);
    }
    let lines = lines(tx, &ledger, &rooms, active, queues, request.room).await?;
    let wanted = grants(lines, &rooms, request.room);
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let mut turns = take(tx, &wanted, request.now_ms).await?;
    mark(tx, &mut turns, &wanted, worker_no, &mut ledger, request.now_ms).await?;
    ledger::store(tx, &ledger).await?;
    Ok(turns.into_iter().map(|taken| taken.turn).collect())
}

/// Makes turns claimable whose time has come.
async fn promote(tx: &mut Tx<'_>, now_ms: i64) -> Result<()> {
    let bound = |text| sqlx::query(text).bind(now_ms).bind(PROMOTED);
    if tx.conn.optional(sqlx::query(sql!("claim_due")).bind(now_ms)).await?.is_none() {
        return Ok(());
    }
    tx.conn.run(bound(sql!("claim_promote_lanes"))).await?;
    tx.conn.run(bound(sql!("claim_promote"))).await?;
    tx.moved = true;
    Ok(())
}

/// The turns that go before a claim at the holds whose probe is due: by held scope, the longest waiting in hand.
pub(super) async fn first_in_hand(
    tx: &mut Tx<'_>,
    ledger: &Ledger,
    now_ms: i64,
) -> Result<BTreeMap<i64, (JobId, Fence)>> {
    let mut first = BTreeMap::new();
    let mut due = ledger.due(now_ms);
    due.retain(|(_, since_ms)| now_ms < since_ms.saturating_add(IN_HAND_FIRST_MS));
    if due.is_empty() {
        return Ok(first);
    }
    for row in tx.conn.all(sqlx::query(sql!("parked")).bind(now_ms)).await? {
        let (scope_id, account_id): (i64, Option<i64>) = (at(&row, 2)?, at(&row, 3)?);
        for (held, _) in &due {
            if *held == scope_id || Some(*held) == account_id {
                first.entry(*held).or_insert((job_at(&row, 0)?, fence_at(&row, 1)?));
            }
        }
    }
    Ok(first)
}

async fn in_hand_first(tx: &mut Tx<'_>, ledger: &Ledger, now_ms: i64) -> Result<Vec<i64>> {
    Ok(first_in_hand(tx, ledger, now_ms).await?.into_keys().collect())
}

/// The lanes worth considering: of each scope that has room, those served longest ago.
async fn lines(
    tx: &mut Tx<'_>,
    ledger: &Ledger,
    rooms: &BTreeMap<i64, i64>,
    active: BTreeSet<i64>,
    queues: String,
    slots: u32,
) -> Result<Vec<Lane>> {
    let open = |id: i64| rooms.get(&id).is_some_and(|room| *room > 0);
    let account = |id: i64| ledger.scopes.get(&id).and_then(|scope| scope.account_id);
    let scopes: Vec<i64> = active.into_iter().filter(|id| open(*id) && account(*id).is_none_or(open)).collect();
    if scopes.is_empty() {
        return Ok(Vec::new());
    }
    let query = sqlx::query(sql!("claim_lanes")).bind(json(&scopes)?).bind(queues).bind(i64::from(slots));
    let mut lines = Vec::new();
    for row in tx.conn.all(query).await? {
        let scope_id = at(&row, 0)?;
        lines.push(Lane {
            scope_id,
            account_id: account(scope_id),
            lane_id: at(&row, 1)?,
            ready: at(&row, 2)?,
            served: at(&row, 3)?,
        });
    }
    Ok(lines)
}

/// A turn on its way into a hand.
struct Taken {
    lane_id: i64,
    scope_id: i64,
    rank_ms: i64,
    turn: ClaimedTurn,
}

/// Reads the first turns of each lane. SQLite takes no limit from a row, so lanes with equal grants go together: with
/// fair shares there are few different ones.
async fn take(tx: &mut Tx<'_>, wanted: &[(i64, u32)], now_ms: i64) -> Result<Vec<Taken>> {
    let mut by_size: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    for (lane_id, n) in wanted {
        by_size.entry(*n).or_default().push(*lane_id);
    }
    let lanes: Vec<i64> = wanted.iter().map(|(lane_id, _)| *lane_id).collect();
    let mut keys: HashMap<i64, (LaneKey, i64)> = HashMap::with_capacity(lanes.len());
    for row in tx.conn.all(sqlx::query(sql!("claim_keys")).bind(json(&lanes)?)).await? {
        let scope = ScopeKey { provider: at(&row, 3)?, account: at(&row, 4)?, model: at(&row, 5)? };
        keys.insert(at(&row, 0)?, (LaneKey { queue: at(&row, 1)?, tenant: at(&row, 2)?, scope }, at(&row, 6)?));
    }
    let mut taken = Vec::new();
    for (n, lanes) in by_size {
        let query = sqlx::query(sql!("claim_take")).bind(json(&lanes)?).bind(i64::from(n)).bind(now_ms);
        for row in tx.conn.all(query).await? {
            let lane_id: i64 = at(&row, 1)?;
            let Some((lane, scope_id)) = keys.get(&lane_id) else { continue };
            taken.push(Taken {
                lane_id,
                scope_id: *scope_id,
                rank_ms: at(&row, 2)?,
                turn: ClaimedTurn {
                    job_id: job_at(&row, 0)?,
                    fence: Fence(0),
                    seq: counter(&row, 3)?,
                    lane: lane.clone(),
                    entry: text_at(&row, 8),
                    spec: text_at(&row, 9),
                    created_ms: at(&row, 10)?,
                    deadline_ms: at(&row, 11)?,
                    executions: counter(&row, 4)?,
                    deferrals: counter(&row, 5)?,
                    repairs: counter(&row, 6)?,
                    told: at::<i64>(&row, 12)? == 1,
                    waiting_since_ms: at(&row, 7)?,
                    grant: Grant { permit_ms: now_ms, probe: None, ramping: false, barren: 0 },
                },
            });
        }
    }
    taken.sort_by_key(|taken| (taken.rank_ms, taken.turn.job_id));
    Ok(taken)
}

/// Gives fences and permits, and writes all of it.
async fn mark(
    tx: &mut Tx<'_>,
    turns: &mut [Taken],
    wanted: &[(i64, u32)],
    worker_no: i64,
    ledger: &mut Ledger,
    now_ms: i64,
) -> Result<()> {
    if turns.is_empty() {
        return Ok(());
    }
    let first = tx.draw("sequence", turns.len()).await?;
    let mut by_lane: HashMap<i64, i64> = HashMap::new();
    for (fence, taken) in (first..).zip(turns.iter_mut()) {
        taken.turn.fence = Fence(fence);
        let turn = InHand {
            scope_id: taken.scope_id,
            worker_no,
            job_id: taken.turn.job_id,
            fence: Fence(fence),
            permit_no: fence,
            in_flight: true,
        };
        taken.turn.grant = ledger.take(turn, now_ms);
        *by_lane.entry(taken.lane_id).or_default() += 1;
    }
    let ids: Vec<String> = turns.iter().map(|taken| hex(taken.turn.job_id.0)).collect();
    tx.conn.run(sqlx::query(sql!("claim_mark")).bind(json(&ids)?).bind(worker_no).bind(first).bind(now_ms)).await?;
    // Shares were dealt in turn: whose last turn came late in the dealing is served late the next time.
    let mut dealt: Vec<(u32, usize, i64)> =
        wanted.iter().enumerate().map(|(place, (lane_id, n))| (*n, place, *lane_id)).collect();
    dealt.sort_unstable();
    let lanes: Vec<(i64, i64, i64)> = (first..)
        .zip(dealt)
        .filter_map(|(served, (_, _, lane_id))| Some((lane_id, by_lane.remove(&lane_id)?, served)))
        .collect();
    tx.conn.run(sqlx::query(sql!("lanes_served")).bind(json(&lanes)?).bind(now_ms.div_euclid(60_000))).await?;
    Ok(())
}
