//! Several processes at once on one schema: nobody waits in a circle, nothing is done twice, every list is whole.

use super::harness::{PgHarness, fresh, fresh_polling, options};
use crate::conformance::*;
use rand::RngExt;
use reprieve::clock::Clock;
use reprieve::store::postgres::{Notify, OpenOptions};
use reprieve::store::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

const STORES: usize = 4;
const ROUNDS: usize = 60;
const MODELS: [&str; 3] = ["a", "b", "c"];

async fn another(h: &PgHarness) -> Postgres {
    Postgres::open(&h.url, Clock::manual(T0), options(&h.schema)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_that_do_all_there_is_to_do_never_wait_in_a_circle() {
    let h = Arc::new(fresh().await);
    wide(&*h, &MODELS).await;
    let clock = Arc::new(AtomicI64::new(T0));
    let over = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn(follow(another(&h).await, Arc::clone(&over)));
    let mut running = Vec::new();
    for n in 0..STORES {
        running.push(tokio::spawn(hammer(another(&h).await, n, Arc::clone(&clock))));
    }
    for one in running {
        one.await.unwrap();
    }
    over.store(true, Ordering::Relaxed);
    let seen = reader.await.unwrap();
    let distinct: BTreeSet<_> = seen.iter().map(|id| id.0).collect();
    assert_eq!(distinct.len(), seen.len(), "a result came twice");
    let mut conn = h.connect().await;
    let ended: Vec<uuid::Uuid> =
        sqlx::query_scalar("SELECT job_id FROM jobs WHERE ended_no IS NOT NULL").fetch_all(&mut conn).await.unwrap();
    assert!(ended.len() > ROUNDS, "{} have ended", ended.len());
    assert!(ended.iter().all(|id| distinct.contains(id)), "a result was passed over");
    assert_eq!(h.contradictions().await, Vec::<String>::new());
    let deadlocks: i64 =
        sqlx::query_scalar("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
            .fetch_one(&mut conn)
            .await
            .unwrap();
    assert_eq!(deadlocks, 0);
}

/// What waits for a contended scope, with every connection there is and its worker's row in its hand, keeps no lease from
/// being renewed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_renewed_while_every_claim_waits_for_a_scope() {
    let h = fresh().await;
    h.store().submit(jobs("m", 9)).await.unwrap();
    let worker = register(h.store(), T0).await;
    let mut other = h.connect().await;
    let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut other).await.unwrap();
    sqlx::raw_sql("BEGIN; SELECT * FROM scopes FOR UPDATE").execute(&mut other).await.unwrap();
    let claims: Vec<_> = (0..8)
        .map(|_| {
            let store = h.store().clone();
            let request = ClaimRequest { worker, queues: Vec::new(), without: Vec::new(), room: 1, now_ms: T0 };
            tokio::spawn(async move { store.claim(request).await })
        })
        .collect();
    let mut watcher = h.connect().await;
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
    while sqlx::query_scalar::<_, i64>(waits).bind(pid).fetch_one(&mut watcher).await.unwrap() == 0 {}
    for n in 1..=3 {
        let renewed = tokio::time::timeout(Duration::from_secs(2), h.store().heartbeat(worker, T0 + n)).await;
        assert!(matches!(renewed, Ok(Ok(Applied::Done))), "{renewed:?}");
    }
    sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    let mut claimed = 0;
    for claim in claims {
        claimed += claim.await.unwrap().unwrap().len();
    }
    assert!(claimed > 0);
}

/// Follows the results until all have ended; every id in the order seen.
async fn follow(store: Postgres, over: Arc<AtomicBool>) -> Vec<JobId> {
    let mut seen = Vec::new();
    let mut query = Query { limit: 7, ..Query::default() };
    loop {
        let last = over.load(Ordering::Relaxed);
        let page = store.results(query.clone()).await.unwrap();
        query.cursor = page.next_cursor;
        let none = page.items.is_empty();
        seen.extend(page.items.into_iter().map(|job| job.id));
        if last && none {
            store.close().await;
            return seen;
        }
    }
}

async fn hammer(store: Postgres, n: usize, clock: Arc<AtomicI64>) {
    let mut id = register(&store, clock.load(Ordering::Relaxed)).await;
    // The same name everywhere: one of them adds it.
    let schedule = schedule(clock.load(Ordering::Relaxed));
    let schedule = match store.add_schedule(schedule.clone()).await.unwrap() {
        Scheduled::Added(id) | Scheduled::Unchanged(id) => id,
        Scheduled::Conflict(_) => panic!("another one has its name"),
    };
    let mut before: Vec<JobId> = Vec::new();
    for round in 0..ROUNDS {
        let now_ms = clock.fetch_add(50, Ordering::Relaxed);
        // The same keys everywhere, in another order.
        let mut new: Vec<NewJob> = (0..6)
            .map(|k| NewJob {
                idempotency_key: (k % 2 == 0).then(|| format!("{round}-{k}")),
                created_ms: now_ms,
                ..job(MODELS[(k + n) % 3])
            })
            .collect();
        if n.is_multiple_of(2) {
            new.reverse();
        }
        let ids: Vec<JobId> = new.iter().map(|job| job.id).collect();
        let (submitted, claimed) = tokio::join!(
            store.submit(new),
            store.claim(ClaimRequest { worker: id, queues: Vec::new(), without: Vec::new(), room: 9, now_ms })
        );
        submitted.unwrap();
        let ends: Vec<Completion> = claimed.unwrap().iter().map(|turn| end(id, turn, now_ms)).collect();
        let (first, second) = ends.split_at(ends.len() / 2);
        let cancels = ids.iter().rev().take(2).copied().collect();
        let (one, other, cancelled, due) = tokio::join!(
            store.complete(first.to_vec()),
            store.complete(second.to_vec()),
            store.cancel(cancels, now_ms),
            store.expire(now_ms, 10)
        );
        one.unwrap();
        other.unwrap();
        cancelled.unwrap();
        due.unwrap();
        let rescue = Rescue { now_ms, limit: 10, lost_in_a_row: 30, executions: 80 };
        let scopes = MODELS.map(|model| ScopeConfig { scope: scope(model), max_in_flight: Some(1_000) }).to_vec();
        let (rescued, configured, beaten) =
            tokio::join!(store.rescue(rescue), store.configure_scopes(scopes), store.heartbeat(id, now_ms));
        rescued.unwrap();
        configured.unwrap();
        if beaten.unwrap() == Applied::Void || round % 20 == 19 {
            // It leaves what it holds to be rescued.
            store.retire_worker(id, now_ms).await.unwrap();
            id = register(&store, now_ms).await;
        }
        Box::pin(meddle(&store, n, round, now_ms, &ids, &before)).await;
        store.fire(firing(schedule, round, n, now_ms)).await.unwrap();
        before = ids;
        for hold in store.holds(Query::default()).await.unwrap().into_iter().take(1) {
            let release = HoldRelease { id: hold.id, by: "test".into(), reason: None, now_ms };
            store.release_hold(release).await.unwrap();
        }
    }
    store.retire_worker(id, clock.load(Ordering::Relaxed)).await.unwrap();
    store.close().await;
}

/// What people do, to the jobs of this round and of the one before (which others may have keyed, claimed or ended).
async fn meddle(store: &Postgres, n: usize, round: usize, now_ms: i64, ids: &[JobId], before: &[JobId]) {
    let mut all = [ids, before].concat();
    if n.is_multiple_of(2) {
        all.reverse();
    }
    let how = match rand::rng().random_range(0..4) {
        0 => Steer::Pause(pause()),
        1 => Steer::Requeue,
        2 => Steer::Reprioritise(rand::rng().random_range(-100..=100)),
        _ => Steer::Resume,
    };
    let told = all[round % all.len()];
    let messages = |key: &str| NewMessages {
        job: told,
        key: Some(key.to_owned()),
        messages: vec!["{}".into(), "[]".into()],
        last_turn: None,
        now_ms,
    };
    // Everybody retries the same two, in another order.
    let mut retried: Vec<NewJob> = RETRIED
        .iter()
        .map(|of| NewJob { retry_of: Some(retried(*of, round)), created_ms: now_ms, ..job(MODELS[(*of + n) % 3]) })
        .collect();
    if n.is_multiple_of(2) {
        retried.reverse();
    }
    let (steered, once, again, retried, gone) = tokio::join!(
        store.steer(all.clone(), how, now_ms),
        store.post(messages("a")),
        store.post(messages("a")),
        store.submit(retried),
        store.delete(before.iter().copied().take(1).collect())
    );
    steered.unwrap();
    assert_posted(once.unwrap(), again.unwrap());
    assert!(retried.unwrap().iter().all(|answer| !matches!(answer, Submitted::Conflict(_))));
    gone.unwrap();
    store.pause_queue("default".into(), (round % 9 == 3).then(pause)).await.unwrap();
    if round % 10 == 7 {
        let until_ms = Some(now_ms + 40);
        let close = HoldClose { scope: scope(MODELS[n % 3]), until_ms, by: "test".into(), reason: None, now_ms };
        store.close_scope(close).await.unwrap();
    }
    let prune = Prune { records_before_ms: now_ms - 500, jobs_before_ms: T0, limit: 10 };
    store.prune(prune).await.unwrap();
}

const RETRIED: [usize; 2] = [1, 2];

/// A job that is the same for everybody who retries it in a round.
fn retried(of: usize, round: usize) -> JobId {
    JobId(format!("00000000-0000-0000-{of:04}-{round:012}").parse().unwrap())
}

fn assert_posted(once: Posted, again: Posted) {
    let accepted = [once, again].iter().filter(|posted| matches!(posted, Posted::Accepted { .. })).count();
    assert!(accepted <= 1 && once != Posted::Conflict && again != Posted::Conflict, "{once:?}, {again:?}");
}

fn schedule(now_ms: i64) -> NewSchedule {
    NewSchedule {
        id: ScheduleId::fresh(),
        name: "all".into(),
        cron: "* * * * *".into(),
        zone: "UTC".into(),
        spec: "{}".into(),
        catch_up: CatchUp::Last,
        overlap: Overlap::Queue,
        next_ms: None,
        created_ms: now_ms,
    }
}

/// Two instants, which everybody fires by hand.
fn firing(schedule: ScheduleId, round: usize, n: usize, now_ms: i64) -> Fire {
    let firings = (0..2)
        .map(|k| Firing {
            nominal_ms: i64::try_from(2 * round + k).unwrap(),
            what: FiringKind::Submit(Box::new(NewJob { created_ms: now_ms, ..job(MODELS[(k + n) % 3]) })),
        })
        .collect();
    Fire { schedule, expected_next_ms: None, next_ms: None, firings, now_ms }
}

async fn register(store: &Postgres, now_ms: i64) -> WorkerId {
    let id = WorkerId::fresh();
    let row =
        WorkerRow { id, queues: vec![], started_ms: now_ms, heartbeat_ms: now_ms, lease_ms: 2_000, concurrency: 9 };
    store.register_worker(row).await.unwrap();
    id
}

fn end(id: WorkerId, turn: &ClaimedTurn, now_ms: i64) -> Completion {
    match rand::rng().random_range(0..5) {
        0 => {
            let mut refused = deferred(id, turn, now_ms, now_ms + 100);
            if rand::rng().random_bool(0.3) {
                refused.refusal = Some(refusal(scope(""), now_ms + 100, turn.grant.barren));
            }
            refused
        }
        1 => requeued(id, turn, now_ms, now_ms + 80),
        _ => success(id, turn, now_ms),
    }
}

#[tokio::test]
async fn what_one_process_commits_moves_the_others() {
    for (h, notify) in [(fresh().await, Notify::Listen), (fresh_polling().await, Notify::Poll)] {
        let options = OpenOptions { notify, ..options(&h.schema) };
        let other = Postgres::open(&h.url, Clock::manual(T0), options).await.unwrap();
        let mut changes = other.changes();
        // A hint may come of the other's own start; the one that counts comes after the commit.
        loop {
            submit(&h, jobs("m", 1)).await;
            let heard = tokio::time::timeout(std::time::Duration::from_secs(5), changes.changed()).await;
            heard.expect("nothing was heard of a commit").unwrap();
            if other.overview(T0).await.unwrap().ready >= 3 {
                break;
            }
        }
        other.close().await;
    }
}

/// A clock that is wrong by minutes does not count: the database's does.
#[tokio::test]
async fn the_clock_is_the_databases() {
    let h = fresh().await;
    let wrong = Postgres::open(&h.url, Clock::shifted(600_000), options(&h.schema)).await.unwrap();
    let mut conn = h.connect().await;
    let text = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let here_ms = wrong.clock().now_ms();
    let there_ms: i64 = sqlx::query_scalar(text).fetch_one(&mut conn).await.unwrap();
    assert!(here_ms <= there_ms && there_ms - here_ms < 5_000, "{here_ms} and {there_ms}");
    wrong.close().await;
}
