//! Whatever is killed and whenever: what was acknowledged is there.

use super::harness::open;
use crate::conformance::*;
use rand::RngExt;
use reprieve::store::sqlite::OpenOptions;
use reprieve::store::*;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Rounds of a child, more than it lives to see.
const ROUNDS: u32 = 1_000_000;
/// Names the database to the child.
const VARIABLE: &str = "REPRIEVE_TEST_KILLED";

/// Runs in a process of its own, until it is killed: submits and completes, and says what was acknowledged.
#[test]
#[ignore = "the other half of `what_was_acknowledged_survives_a_kill`, which starts it"]
fn child() {
    let Some(path) = std::env::var_os(VARIABLE) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = open(Path::new(&path), OpenOptions::default()).await.unwrap();
        let say = |what: &str, id: JobId| writeln!(std::io::stdout(), "{what} {id}").unwrap();
        let configs = vec![ScopeConfig { scope: scope("m"), max_in_flight: Some(1_000) }];
        store.configure_scopes(configs).await.unwrap();
        let submits = async {
            for _ in 0..ROUNDS {
                let calls = (1..5).map(|n| store.submit(jobs("m", n)));
                for answer in futures::future::join_all(calls).await.into_iter().flatten().flatten() {
                    if let Submitted::Accepted(id) = answer {
                        say("submitted", id);
                    }
                }
            }
        };
        let completes = async {
            let worker = WorkerId::fresh();
            let row = WorkerRow {
                id: worker,
                queues: vec![],
                started_ms: T0,
                heartbeat_ms: T0,
                lease_ms: LEASE_MS,
                concurrency: 9,
            };
            store.register_worker(row).await.unwrap();
            for _ in 0..ROUNDS {
                let request = ClaimRequest { worker, queues: vec![], without: Vec::new(), room: 9, now_ms: T0 };
                let turns = store.claim(request).await.unwrap();
                let ends = turns.iter().map(|turn| success(worker, turn, T0)).collect();
                let applied = store.complete(ends).await.unwrap();
                for (turn, applied) in turns.iter().zip(applied) {
                    assert_eq!(applied, Applied::Done);
                    say("completed", turn.job_id);
                }
            }
        };
        tokio::join!(submits, completes);
    });
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let mut said: BTreeMap<JobId, bool> = BTreeMap::new();
    for _ in 0..8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sqlite::durability::child", "--ignored", "--nocapture"])
            .env(VARIABLE, &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let reader = std::thread::spawn(move || {
            out.lines().map_while(std::io::Result::ok).filter(|line| line.contains('-')).collect::<Vec<_>>()
        });
        let life = Duration::from_millis(rand::rng().random_range(20..120));
        std::thread::sleep(life);
        child.kill().unwrap();
        child.wait().unwrap();
        for line in reader.join().unwrap() {
            // The last line may be cut.
            let Some((what, id)) = line.split_once(' ') else { continue };
            let Ok(id) = id.parse::<JobId>() else { continue };
            *said.entry(id).or_default() |= what == "completed";
        }
    }
    assert!(!said.is_empty(), "no child lived long enough to be acknowledged anything");
    let store = open(&path, OpenOptions::default()).await.unwrap();
    for (id, completed) in said {
        let row = store.job(id).await.unwrap().expect("an acknowledged job is there");
        assert!(!completed || row.state == JobState::Succeeded, "{row:?}");
        assert_eq!(store.turns(id).await.unwrap().len(), usize::from(row.state == JobState::Succeeded));
    }
}

/// SQLite itself goes on writing into a file that has no name any more.
#[tokio::test]
async fn nothing_is_acknowledged_into_a_file_that_was_moved_or_deleted() {
    for moved in ["store.db", "store.db-wal"] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(&dir.path().join("store.db"), OpenOptions::default()).await.unwrap();
        store.submit(jobs("m", 2)).await.unwrap();
        let (here, there) = (dir.path().join(moved), dir.path().join("elsewhere"));
        std::fs::rename(&here, &there).unwrap();
        let new = jobs("m", 1);
        let id = new[0].id;
        assert!(matches!(store.submit(new).await, Err(Error::Gone { .. })), "{moved}");
        assert!(matches!(store.job(id).await, Err(Error::Gone { .. })), "{moved}");
        // Another file in its place does not do.
        std::fs::write(&here, "").unwrap();
        assert!(matches!(store.overview(T0).await, Err(Error::Gone { .. })), "{moved}");
        std::fs::rename(&there, &here).unwrap();
        store.submit(jobs("m", 1)).await.unwrap();
        assert_eq!(store.overview(T0).await.unwrap().ready, 3);
        store.close().await;
    }
}

/// Damage done from outside stops its own job, and nobody else's.
#[tokio::test]
async fn a_damaged_row_stops_neither_a_claim_nor_the_rescue_of_others() {
    use sqlx::Connection;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let store = open(&path, OpenOptions::default()).await.unwrap();
    let new = jobs("m", 3);
    let ids: Vec<JobId> = new.iter().map(|job| job.id).collect();
    store.submit(new).await.unwrap();
    let mut outside = sqlx::SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    for (damage, id) in [
        ("UPDATE jobs SET spec = CAST(x'22ff22' AS TEXT) WHERE job_id = ?1", ids[0]),
        ("UPDATE turns SET executions = 9000000000 WHERE job_id = ?1", ids[1]),
    ] {
        sqlx::query(damage).bind(id.0.as_bytes().as_slice()).execute(&mut outside).await.unwrap();
    }
    let worker = WorkerId::fresh();
    let row =
        WorkerRow { id: worker, queues: vec![], started_ms: T0, heartbeat_ms: T0, lease_ms: LEASE_MS, concurrency: 9 };
    store.register_worker(row).await.unwrap();
    let turns =
        store.claim(ClaimRequest { worker, queues: vec![], without: Vec::new(), room: 9, now_ms: T0 }).await.unwrap();
    assert_eq!(turns.len(), 3);
    let of = |id: JobId| turns.iter().find(|turn| turn.job_id == id).unwrap();
    assert_eq!((of(ids[0]).spec.as_str(), of(ids[1]).executions), ("", u32::MAX));
    let request = Rescue { now_ms: T0 + LEASE_MS, limit: 9, lost_in_a_row: 3, executions: 8 };
    let rescued = store.rescue(request).await.unwrap();
    assert_eq!((rescued.workers, rescued.requeued, rescued.failed), (1, 2, 1));
    assert_eq!(store.job(ids[1]).await.unwrap().unwrap().state, JobState::Failed);
    store.close().await;
}
