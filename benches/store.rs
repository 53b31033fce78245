//! What the store can do without a network: `cargo bench --bench store`. Prints one line of JSON a measurement.
//!
//! The file lies in the directory named by `STORE_BENCH_DIR`, else in the system's temporary one: measure on the disk
//! that you mean. Only figures of one run on one machine are comparable.

use reprieve::clock::Clock;
use reprieve::store::sqlite::OpenOptions;
use reprieve::store::{
    ClaimRequest, ClaimedTurn, Completion, JobId, JobState, LaneKey, NewJob, Next, Outcome, RefusalRow, ScopeConfig,
    ScopeKey, SendRow, Sqlite, Store, TurnRecord, Usage, WorkerId, WorkerRow,
};
use std::time::Instant;

const T0: i64 = 1_790_000_000_000;
/// The turns of one measurement.
const N: usize = 20_000;
const BATCH: usize = 100;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        bulk_submit().await;
        single_submits().await;
        turns().await;
        behind_a_hold().await;
        claims("claim, 100 k ready in 1 lane", 1).await;
        claims("claim, 100 k ready in 1,000 lanes", 1_000).await;
    });
}

struct Bench {
    store: Sqlite,
    _dir: tempfile::TempDir,
}

async fn bench() -> Bench {
    let dir = match std::env::var_os("STORE_BENCH_DIR") {
        Some(place) => tempfile::tempdir_in(place),
        None => tempfile::tempdir(),
    }
    .expect("a directory");
    let url = format!("sqlite://{}", dir.path().join("bench.db").display());
    let store = Sqlite::open(&url, Clock::manual(T0), OpenOptions::default()).await.expect("a store");
    let scopes = ["m", "held"].map(|model| ScopeConfig { scope: scope(model), max_in_flight: Some(1_000_000) });
    store.configure_scopes(scopes.to_vec()).await.expect("scopes");
    Bench { store, _dir: dir }
}

fn scope(model: &str) -> ScopeKey {
    ScopeKey { provider: "api.example.com".into(), account: "main".into(), model: model.into() }
}

/// About 1 KB of JSON.
fn job(model: &str, tenant: &str) -> NewJob {
    NewJob {
        id: JobId::fresh(),
        lane: LaneKey { queue: "default".into(), tenant: tenant.into(), scope: scope(model) },
        entry: "example".into(),
        idempotency_key: None,
        digest: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef".into(),
        spec: format!("{{\"model\":\"{model}\",\"input\":\"{}\"}}", "lorem ipsum ".repeat(80)),
        priority: 0,
        due_ms: None,
        deadline_ms: None,
        labels: Vec::new(),
        retry_of: None,
        carried: Vec::new(),
        first_seq: 1,
        once: false,
        schedule: None,
        created_ms: T0,
    }
}

async fn fill(store: &Sqlite, model: &str, n: usize, lanes: usize) {
    for chunk in (0..n).collect::<Vec<_>>().chunks(1_000) {
        let jobs = chunk.iter().map(|n| job(model, &format!("t{}", n % lanes))).collect();
        store.submit(jobs).await.expect("submitted");
    }
}

async fn worker(store: &Sqlite) -> WorkerId {
    let id = WorkerId::fresh();
    let row = WorkerRow {
        id,
        queues: Vec::new(),
        started_ms: T0,
        heartbeat_ms: T0,
        lease_ms: 1_000_000_000,
        concurrency: 1_000,
    };
    store.register_worker(row).await.expect("registered");
    id
}

fn done(worker: WorkerId, turn: &ClaimedTurn) -> Completion {
    let response = format!("{{\"text\":\"{}\"}}", "x".repeat(580));
    Completion {
        worker,
        job_id: turn.job_id,
        fence: turn.fence,
        now_ms: T0,
        record: TurnRecord {
            seq: turn.seq,
            outcome: Outcome::Completed,
            cut: None,
            started_ms: T0,
            ended_ms: T0,
            attempts: Some(1),
            error: None,
            response: Some(response.clone()),
            usage: Usage { input_tokens: Some(10), output_tokens: Some(20), total_tokens: Some(30) },
            class: None,
            cause: None,
            code: None,
            http_status: Some(200),
            rule: None,
            rules_version: None,
            decision: None,
            resume_at_ms: None,
            skew_ms: None,
            phase: None,
            request_id: Some("req-123".into()),
            provider_code: None,
            provider_type: None,
            finish_reason: Some("stop".into()),
            provider_model: Some("m".into()),
            received_ms: Some(T0),
        },
        send: Some(SendRow {
            n: 1,
            permit_ms: T0,
            started_ms: T0,
            first_byte_ms: Some(T0),
            ended_ms: T0,
            outcome: "answered".into(),
            http_status: Some(200),
            cause: None,
            class: None,
            error: None,
            wait_ms: None,
            wait_source: None,
            tests: None,
            tests_resume_ms: None,
        }),
        evidence: None,
        refusal: None,
        probe: None,
        answered: true,
        next: Next::Final { state: JobState::Succeeded, result: Some(response), error: None },
    }
}

async fn claim(store: &Sqlite, worker: WorkerId, room: usize) -> Vec<ClaimedTurn> {
    let room = u32::try_from(room).expect("a small number");
    store
        .claim(ClaimRequest { worker, queues: Vec::new(), without: Vec::new(), room, now_ms: T0 })
        .await
        .expect("claimed")
}

/// When a measurement began, on the wall and on the processors.
struct Began {
    at: Instant,
    cpu_ms: Option<u64>,
}

impl Began {
    fn now() -> Self {
        Self { at: Instant::now(), cpu_ms: cpu_ms() }
    }
}

/// What this process has used of the processors so far, where the system says so: a busy machine changes the rate, but
/// hardly this.
fn cpu_ms() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name in brackets: state is the third field, user and system time the 14th and 15th, in 1/100 s.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place)?.parse::<u64>().ok();
    Some((ticks(11)? + ticks(12)?) * 10)
}

#[expect(clippy::cast_precision_loss, reason = "counts of a bench")]
fn report(what: &str, n: usize, unit: &str, began: &Began) {
    let seconds = began.at.elapsed().as_secs_f64();
    let rate = n as f64 / seconds;
    let cpu = began.cpu_ms.zip(cpu_ms()).map_or(String::from("null"), |(before_ms, after_ms)| {
        format!("{:.1}", (after_ms - before_ms) as f64 * 1_000.0 / n as f64)
    });
    println!(
        "{{\"what\":\"{what}\",\"n\":{n},\"seconds\":{seconds:.3},\"{unit}_per_second\":{rate:.0},\"cpu_us_each\":{cpu}}}"
    );
}

async fn bulk_submit() {
    let bench = bench().await;
    let began = Began::now();
    fill(&bench.store, "m", 100_000, 1).await;
    report("submit, 1,000 a call", 100_000, "rows", &began);
}

async fn single_submits() {
    let bench = bench().await;
    let began = Began::now();
    let callers = (0..64).map(|_| {
        let store = bench.store.clone();
        tokio::spawn(async move {
            for _ in 0..N / 64 {
                store.submit(vec![job("m", "")]).await.expect("submitted");
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("no panic");
    }
    report("submit, one a call, 64 callers", N / 64 * 64, "rows", &began);
}

/// One batch is completed while the next is claimed, as a worker does.
async fn turns() {
    let bench = bench().await;
    fill(&bench.store, "m", N, 1).await;
    let worker = worker(&bench.store).await;
    let began = Began::now();
    let mut hand = claim(&bench.store, worker, BATCH).await;
    let mut n = 0;
    while !hand.is_empty() {
        let ends: Vec<Completion> = hand.iter().map(|turn| done(worker, turn)).collect();
        let (applied, next) = tokio::join!(bench.store.complete(ends), claim(&bench.store, worker, BATCH));
        n += applied.expect("completed").len();
        hand = next;
    }
    report("claim and complete, batches of 100", n, "turns", &began);
}

async fn behind_a_hold() {
    let bench = bench().await;
    fill(&bench.store, "held", 100_000, 10).await;
    fill(&bench.store, "m", 5_000, 1).await;
    let worker = worker(&bench.store).await;
    let turn = loop {
        let turn = claim(&bench.store, worker, 1).await.remove(0);
        if turn.lane.scope.model == "held" {
            break turn;
        }
    };
    let mut refused = done(worker, &turn);
    refused.answered = false;
    refused.next = Next::Behind;
    refused.refusal = Some(RefusalRow {
        scope: scope("held"),
        cause: "rate_limit".into(),
        kind: None,
        until_ms: T0 + 1_000_000,
        source: "retry-after".into(),
        raw: None,
        barren: 0,
    });
    bench.store.complete(vec![refused]).await.expect("completed");
    let began = Began::now();
    let mut calls = 0;
    let mut n = 0;
    loop {
        let turns = claim(&bench.store, worker, 1).await;
        if turns.is_empty() {
            break;
        }
        calls += 1;
        n += turns.len();
    }
    assert!(n >= 4_900, "{n}");
    report("claim of 1, 100 k behind a hold", calls, "claims", &began);
}

async fn claims(what: &str, lanes: usize) {
    let bench = bench().await;
    fill(&bench.store, "m", 100_000, lanes).await;
    let worker = worker(&bench.store).await;
    let began = Began::now();
    let mut n = 0;
    for _ in 0..200 {
        n += claim(&bench.store, worker, BATCH).await.len();
    }
    assert_eq!(n, 200 * BATCH);
    report(what, n, "turns", &began);
}
