//! The power fails: of the log, what was synced when the last acknowledgement was given is there; of what was written
//! behind it, any part may be, or other bytes in its place.

use super::harness::open;
use crate::conformance::*;
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use reprieve::store::sqlite::OpenOptions;
use reprieve::store::*;
use std::path::Path;

/// What had been acknowledged at one instant, and what the files were then and a moment later.
struct Moment {
    submitted: Vec<JobId>,
    completed: Vec<JobId>,
    main: Vec<u8>,
    /// Its first `synced` bytes are synced.
    log: Vec<u8>,
    synced: usize,
}

fn read(path: &Path, suffix: &str) -> Vec<u8> {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    std::fs::read(name).unwrap_or_default()
}

async fn submit_and_complete(store: &Sqlite, worker: WorkerId, n: usize) -> (Vec<JobId>, Vec<JobId>) {
    let new = jobs("m", n);
    let submitted = new.iter().map(|job| job.id).collect();
    store.submit(new).await.unwrap();
    let room = u32::try_from(n).unwrap();
    let turns =
        store.claim(ClaimRequest { worker, queues: vec![], without: Vec::new(), room, now_ms: T0 }).await.unwrap();
    let ends: Vec<Completion> = turns.iter().map(|turn| success(worker, turn, T0)).collect();
    let completed = turns.iter().map(|turn| turn.job_id).collect();
    assert!(store.complete(ends).await.unwrap().iter().all(|applied| *applied == Applied::Done));
    (submitted, completed)
}

/// Rounds of work, each followed by a look at the files: at the acknowledgement, and with more behind it that nobody was
/// told of.
async fn moments(path: &Path, rounds: usize) -> Vec<Moment> {
    let store = open(path, OpenOptions::default()).await.unwrap();
    store.configure_scopes(vec![ScopeConfig { scope: scope("m"), max_in_flight: Some(1_000) }]).await.unwrap();
    let worker = WorkerId::fresh();
    let row =
        WorkerRow { id: worker, queues: vec![], started_ms: T0, heartbeat_ms: T0, lease_ms: LEASE_MS, concurrency: 9 };
    store.register_worker(row).await.unwrap();
    let (mut submitted, mut completed) = (Vec::new(), Vec::new());
    let mut moments = Vec::new();
    for round in 0..rounds {
        let (new, done) = submit_and_complete(&store, worker, 1 + round % 7).await;
        submitted.extend(new);
        completed.extend(done);
        let synced = read(path, "-wal").len();
        let (main, before) = (read(path, ""), read(path, "-wal"));
        // The next round's work, of which nothing counts as acknowledged here.
        let behind = submit_and_complete(&store, worker, 3).await;
        let log = read(path, "-wal");
        // Where the log began anew meanwhile it is no longer that log with something behind it.
        let log = if log.starts_with(&before) { log } else { before };
        moments.push(Moment { submitted: submitted.clone(), completed: completed.clone(), main, log, synced });
        submitted.extend(behind.0);
        completed.extend(behind.1);
    }
    store.close().await;
    moments
}

/// Starts from the files as a power cut left them, and looks for everything that was acknowledged.
async fn survives(moment: &Moment, log: &[u8], what: &str) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    std::fs::write(&path, &moment.main).unwrap();
    std::fs::write(dir.path().join("store.db-wal"), log).unwrap();
    let store = open(&path, OpenOptions::default()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    for id in &moment.submitted {
        let row = store.job(*id).await.unwrap().unwrap_or_else(|| panic!("{what}: an acknowledged job is lost"));
        assert!(!moment.completed.contains(id) || row.state == JobState::Succeeded, "{what}: {row:?}");
    }
    // And it works on.
    submit_one_more(&store).await;
    store.close().await;
}

async fn submit_one_more(store: &Sqlite) {
    assert!(matches!(store.submit(jobs("m", 1)).await.unwrap()[..], [Submitted::Accepted(_)]));
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_power_cut_at_any_byte_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let moments = moments(&dir.path().join("store.db"), 8).await;
    let seed: u64 = rand::rng().random();
    let mut dice = StdRng::seed_from_u64(seed);
    for (n, moment) in moments.iter().enumerate() {
        for _ in 0..4 {
            let cut = dice.random_range(moment.synced..=moment.log.len());
            let what = format!("seed {seed}, moment {n}, cut at {cut} of {}", moment.log.len());
            survives(moment, &moment.log[..cut], &what).await;
            // Blocks behind the cut may hold anything.
            let mut torn = moment.log.clone();
            dice.fill_bytes(&mut torn[cut..]);
            survives(moment, &torn, &format!("{what}, other bytes behind it")).await;
        }
    }
}

/// The test above can fail: cut before the last acknowledgement, something acknowledged is missing.
#[tokio::test]
async fn a_cut_before_the_last_acknowledgement_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let moments = moments(&dir.path().join("store.db"), 3).await;
    let moment = moments.last().unwrap();
    let lost = tempfile::tempdir().unwrap();
    let path = lost.path().join("store.db");
    std::fs::write(&path, &moment.main).unwrap();
    std::fs::write(lost.path().join("store.db-wal"), &moment.log[..moment.synced / 2]).unwrap();
    let store = open(&path, OpenOptions::default()).await.unwrap();
    let mut missing = 0;
    for id in &moment.submitted {
        missing += usize::from(store.job(*id).await.unwrap().is_none());
    }
    assert!(missing > 0);
}
