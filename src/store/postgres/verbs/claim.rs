//! Claim = admission: what is claimed has its permit, in one transaction.
//!
//! A claim looks first, without a lock: what nothing can be taken from (every scope held, or full) is found out at no
//! cost to anybody. Then it locks the scopes that it means to take from, and looks again.

use super::ledger;
use crate::admission::{Lane, grants};
use crate::store::ledger::{InHand, Ledger};
use crate::store::postgres::conn::sql;
use crate::store::postgres::fault::{Fault, Res};
use crate::store::postgres::names;
use crate::store::postgres::rows::{at, counter, fence_at, job_at};
use crate::store::postgres::tx::{Db, Tx};
use crate::store::{ClaimRequest, ClaimedTurn, Fence, Grant, JobId, LaneKey, ScopeKey};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use uuid::Uuid;

/// How many due turns become claimable in one claim at most.
const PROMOTED: i64 = 5_000;
/// For so long after a hold's end a turn in hand goes before one that would have to be claimed.
const IN_HAND_FIRST_MS: i64 = 1_000;

/// The turns, and whether something moved.
pub(in crate::store::postgres) async fn claim(db: &Db, request: &ClaimRequest) -> Res<(Vec<ClaimedTurn>, bool)> {
    for scope in &request.without {
        names::scope(db, scope).await?;
    }
    let mut tx = db.read().await?;
    let looked = look(&mut tx, request).await;
    let Some(due) = tx.end(looked).await? else { return Ok((Vec::new(), false)) };
    let moved = if due { promote(db, request.now_ms).await? } else { false };
    if request.room == 0 {
        return Ok((Vec::new(), moved));
    }
    let mut tx = db.read().await?;
    let wanted = wanted_scopes(&mut tx, request).await;
    let wanted = tx.end(wanted).await?;
    if wanted.is_empty() {
        return Ok((Vec::new(), moved));
    }
    let mut tx = db.write().await?;
    match take(&mut tx, request, wanted).await {
        Ok(turns) => {
            tx.commit().await?;
            Ok((turns, moved))
        }
        Err(fault) => {
            tx.roll_back().await;
            Err(fault)
        }
    }
}

/// Whether the time of some turn has come; `None`: the worker may not claim.
async fn look(tx: &mut Tx, request: &ClaimRequest) -> Res<Option<bool>> {
    let row = tx.one(sql!("claim_look").arg(request.worker.0).arg(request.now_ms)).await?;
    let lives: bool = at(&row, 0)?;
    Ok(if lives { Some(at(&row, 1)?) } else { None })
}

/// Makes turns claimable whose time has come: a transaction of its own, because it touches turns of any scope.
async fn promote(db: &Db, now_ms: i64) -> Res<bool> {
    let mut tx = db.write().await?;
    let promoted = async {
        let mut ready: HashMap<i64, i64> = HashMap::new();
        for row in tx.all(sql!("claim_promote").arg(now_ms).arg(PROMOTED)).await? {
            ready.insert(at(&row, 0)?, at(&row, 1)?);
        }
        tx.ready(&ready).await?;
        Ok(!ready.is_empty())
    };
    match promoted.await {
        Ok(moved) => {
            tx.commit().await?;
            Ok(moved)
        }
        Err(fault) => {
            tx.roll_back().await;
            Err(fault)
        }
    }
}

/// The scopes from which something would be granted now.
async fn wanted_scopes(tx: &mut Tx, request: &ClaimRequest) -> Res<BTreeSet<i64>> {
    let mut active = BTreeSet::new();
    for row in tx.all(sql!("claim_scopes").arg(request.queues.as_slice())).await? {
        active.insert(at::<i64>(&row, 0)?);
    }
    let known = ledger::peek(tx, &active).await?;
    let dealt = deal(tx, &known, active, request).await?;
    Ok(dealt.into_iter().map(|(_, _, line)| line.scope_id).collect())
}

/// What the lanes are granted: each with its share, in the order dealt.
async fn deal(
    tx: &mut Tx,
    known: &Ledger,
    active: BTreeSet<i64>,
    request: &ClaimRequest,
) -> Res<Vec<(i64, u32, Line)>> {
    let mut rooms = known.rooms(request.now_ms);
    for scope_id in first_in_hand(tx, known, request.now_ms).await?.into_keys() {
        rooms.insert(scope_id, 0);
    }
    for scope in &request.without {
        rooms.insert(tx.db.cache.scope(scope).ok_or(Fault::Raced)?, 0);
    }
    let (lanes, mut lines) = lines(tx, known, &rooms, active, request).await?;
    let dealt = grants(lanes, &rooms, request.room);
    Ok(dealt.into_iter().filter_map(|(lane_id, n)| Some((lane_id, n, lines.remove(&lane_id)?))).collect())
}

/// The turns that go before a claim at the holds whose probe is due: by held scope, the longest waiting in hand.
pub(super) async fn first_in_hand(tx: &mut Tx, known: &Ledger, now_ms: i64) -> Res<BTreeMap<i64, (JobId, Fence)>> {
    let mut first = BTreeMap::new();
    let mut due = known.due(now_ms);
    due.retain(|(_, since_ms)| now_ms < since_ms.saturating_add(IN_HAND_FIRST_MS));
    if due.is_empty() {
        return Ok(first);
    }
    for row in tx.all(sql!("parked").arg(now_ms)).await? {
        let (scope_id, account_id): (i64, Option<i64>) = (at(&row, 2)?, at(&row, 3)?);
        for (held, _) in &due {
            if *held == scope_id || Some(*held) == account_id {
                first.entry(*held).or_insert((job_at(&row, 0)?, fence_at(&row, 1)?));
            }
        }
    }
    Ok(first)
}

/// What a lane's turns have in common.
#[derive(Clone, Debug)]
struct Line {
    scope_id: i64,
    key: LaneKey,
}

/// The lanes worth considering: of each scope that has room, those served longest ago.
async fn lines(
    tx: &mut Tx,
    known: &Ledger,
    rooms: &BTreeMap<i64, i64>,
    active: BTreeSet<i64>,
    request: &ClaimRequest,
) -> Res<(Vec<Lane>, HashMap<i64, Line>)> {
    let open = |id: i64| rooms.get(&id).is_some_and(|room| *room > 0);
    let account = |id: i64| known.scopes.get(&id).and_then(|scope| scope.account_id);
    let scopes: Vec<i64> = active.into_iter().filter(|id| open(*id) && account(*id).is_none_or(open)).collect();
    let (mut lanes, mut lines) = (Vec::new(), HashMap::new());
    if scopes.is_empty() {
        return Ok((lanes, lines));
    }
    let stmt = sql!("claim_lanes").arg(scopes).arg(request.queues.as_slice()).arg(i64::from(request.room));
    for row in tx.all(stmt).await? {
        let (scope_id, lane_id): (i64, i64) = (at(&row, 0)?, at(&row, 1)?);
        lanes.push(Lane {
            scope_id,
            account_id: account(scope_id),
            lane_id,
            ready: at(&row, 2)?,
            served: at(&row, 3)?,
        });
        let scope = ScopeKey { provider: at(&row, 6)?, account: at(&row, 7)?, model: at(&row, 8)? };
        let key = LaneKey { queue: at(&row, 4)?, tenant: at(&row, 5)?, scope };
        lines.insert(lane_id, Line { scope_id, key });
    }
    Ok((lanes, lines))
}

/// Takes turns from the scopes, which are locked first: nobody else grants from them meanwhile.
async fn take(tx: &mut Tx, request: &ClaimRequest, scopes: BTreeSet<i64>) -> Res<Vec<ClaimedTurn>> {
    let Some(row) = tx.optional(sql!("worker_live").arg(request.worker.0).arg(request.now_ms)).await? else {
        return Ok(Vec::new());
    };
    let worker_no: i64 = at(&row, 0)?;
    let mut known = ledger::lock(tx, &[], &scopes).await?;
    let dealt = deal(tx, &known, scopes, request).await?;
    if dealt.is_empty() {
        return Ok(Vec::new());
    }
    let mut turns = pick(tx, &dealt, request.now_ms).await?;
    mark(tx, &mut turns, &dealt, worker_no, &mut known, request.now_ms).await?;
    ledger::store(tx, &known).await?;
    Ok(turns.into_iter().map(|taken| taken.turn).collect())
}

/// A turn on its way into a hand.
struct Taken {
    lane_id: i64,
    scope_id: i64,
    rank_ms: i64,
    turn: ClaimedTurn,
}

/// Locks the first turns of each lane, and gives each a fence.
async fn pick(tx: &mut Tx, dealt: &[(i64, u32, Line)], now_ms: i64) -> Res<Vec<Taken>> {
    let lanes: Vec<i64> = dealt.iter().map(|(lane_id, ..)| *lane_id).collect();
    let sizes: Vec<i64> = dealt.iter().map(|(_, n, _)| i64::from(*n)).collect();
    let lines: HashMap<i64, &Line> = dealt.iter().map(|(lane_id, _, line)| (*lane_id, line)).collect();
    let mut taken = Vec::new();
    let mut fences: Vec<i64> = Vec::new();
    for row in tx.all(sql!("claim_take").arg(lanes).arg(sizes).arg(now_ms)).await? {
        let lane_id: i64 = at(&row, 1)?;
        let Some(line) = lines.get(&lane_id) else { continue };
        fences.push(at(&row, 12)?);
        taken.push(Taken {
            lane_id,
            scope_id: line.scope_id,
            rank_ms: at(&row, 2)?,
            turn: ClaimedTurn {
                job_id: job_at(&row, 0)?,
                fence: Fence(0),
                seq: counter(&row, 3)?,
                lane: line.key.clone(),
                entry: at(&row, 8)?,
                spec: at(&row, 9)?,
                created_ms: at(&row, 10)?,
                deadline_ms: at(&row, 11)?,
                executions: counter(&row, 4)?,
                deferrals: counter(&row, 5)?,
                repairs: counter(&row, 6)?,
                told: at::<i64>(&row, 13)? == 1,
                waiting_since_ms: at(&row, 7)?,
                grant: Grant { permit_ms: now_ms, probe: None, ramping: false, barren: 0 },
            },
        });
    }
    taken.sort_by_key(|taken| (taken.rank_ms, taken.turn.job_id));
    fences.sort_unstable();
    for (taken, fence) in taken.iter_mut().zip(fences) {
        taken.turn.fence = Fence(fence);
    }
    Ok(taken)
}

/// Gives permits, and writes all of it.
async fn mark(
    tx: &mut Tx,
    turns: &mut [Taken],
    dealt: &[(i64, u32, Line)],
    worker_no: i64,
    known: &mut Ledger,
    now_ms: i64,
) -> Res<()> {
    let Some(first) = turns.first().map(|taken| taken.turn.fence.0) else { return Ok(()) };
    let mut by_lane: HashMap<i64, i64> = HashMap::new();
    for taken in turns.iter_mut() {
        let turn = InHand {
            scope_id: taken.scope_id,
            worker_no,
            job_id: taken.turn.job_id,
            fence: taken.turn.fence,
            permit_no: taken.turn.fence.0,
            in_flight: true,
        };
        taken.turn.grant = known.take(turn, now_ms);
        *by_lane.entry(taken.lane_id).or_default() += 1;
    }
    let stmt = sql!("claim_mark")
        .arg(turns.iter().map(|taken| taken.turn.job_id.0).collect::<Vec<Uuid>>())
        .arg(turns.iter().map(|taken| taken.turn.fence.0).collect::<Vec<i64>>())
        .arg(worker_no)
        .arg(now_ms);
    if usize::try_from(tx.run(stmt).await?) != Ok(turns.len()) {
        return Err(Fault::Raced);
    }
    // Shares were dealt in turn: whose last turn came late in the dealing is served late the next time.
    let mut order: Vec<(u32, usize, i64)> =
        dealt.iter().enumerate().map(|(place, (lane_id, n, _))| (*n, place, *lane_id)).collect();
    order.sort_unstable();
    let (mut lanes, mut counts, mut served) = (Vec::new(), Vec::new(), Vec::new());
    for (place, (_, _, lane_id)) in (first..).zip(order) {
        if let Some(taken) = by_lane.remove(&lane_id) {
            lanes.push(lane_id);
            counts.push(taken);
            served.push(place);
        }
    }
    let minute = now_ms.div_euclid(60_000);
    tx.run(sql!("lanes_served").arg(lanes).arg(counts).arg(served).arg(minute)).await?;
    Ok(())
}
