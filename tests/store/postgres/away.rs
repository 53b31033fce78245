//! The server crashes under load and comes back: what was acknowledged is there, once, and nobody has to restart.

use super::cluster::Cluster;
use super::harness::{PgHarness, options};
use crate::conformance::*;
use reprieve::clock::Clock;
use reprieve::store::postgres::migrate;
use reprieve::store::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How much is acknowledged before the server crashes, and after it is back.
const ENOUGH: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_loses_nothing_that_was_acknowledged() {
    let mut cluster = Cluster::start();
    let url = cluster.url();
    migrate::up(&url, &options("reprieve")).await.unwrap();
    let store = Postgres::open(&url, Clock::manual(T0), options("reprieve")).await.unwrap();
    let h = PgHarness { store: store.clone(), url, schema: "reprieve".into() };
    wide(&h, &["m"]).await;
    let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let submits = (0..4).map(|_| {
        let (store, stop, acknowledged) = (store.clone(), Arc::clone(&stop), Arc::clone(&acknowledged));
        tokio::spawn(async move {
            let mut accepted = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let new = jobs("m", 3);
                let ids: Vec<JobId> = new.iter().map(|job| job.id).collect();
                match store.submit(new).await {
                    Ok(_) => {
                        acknowledged.fetch_add(1, Ordering::Relaxed);
                        accepted.extend(ids);
                    }
                    Err(Error::Away { .. }) => tokio::task::yield_now().await,
                    Err(other) => panic!("{other:?}"),
                }
            }
            accepted
        })
    });
    let submits: Vec<_> = submits.collect();
    let worker = {
        let (store, stop) = (store.clone(), Arc::clone(&stop));
        let id = worker(&h, T0).await;
        tokio::spawn(async move {
            let mut ended = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let request =
                    ClaimRequest { worker: id, queues: Vec::new(), without: Vec::new(), room: 20, now_ms: T0 };
                let Ok(turns) = store.claim(request).await else { continue };
                let ends: Vec<Completion> = turns.iter().map(|turn| success(id, turn, T0)).collect();
                // As a worker does: kept until the database is back.
                loop {
                    match store.complete(ends.clone()).await {
                        Ok(applied) => {
                            // Asked again after an error, the first answer may have been the lost one.
                            assert!(applied.iter().all(|applied| *applied == Applied::Done) || !ended.is_empty());
                            break;
                        }
                        Err(Error::Away { .. }) => tokio::task::yield_now().await,
                        Err(other) => panic!("{other:?}"),
                    }
                }
                ended.extend(turns.iter().map(|turn| turn.job_id));
            }
            ended
        })
    };
    let mut changes = store.changes();
    for _ in 0..2 {
        let from = acknowledged.load(Ordering::Relaxed);
        while acknowledged.load(Ordering::Relaxed) < from + ENOUGH {
            changes.changed().await.unwrap();
        }
        cluster.crash();
        let away = store.overview(T0);
        cluster.restart();
        // Whoever asked meanwhile waited, and was answered.
        away.await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    let mut accepted = Vec::new();
    for submit in submits {
        accepted.extend(submit.await.unwrap());
    }
    let ended = worker.await.unwrap();
    let mut conn = h.connect().await;
    let count = async |conn: &mut sqlx::PgConnection, ids: &[JobId], text: &'static str| {
        let ids: Vec<uuid::Uuid> = ids.iter().map(|id| id.0).collect();
        sqlx::query_scalar::<_, i64>(text).bind(ids).fetch_one(conn).await.unwrap()
    };
    let there = count(&mut conn, &accepted, "SELECT count(*) FROM jobs WHERE job_id = ANY ($1)").await;
    assert_eq!(usize::try_from(there).unwrap(), accepted.len());
    let text = "SELECT count(*) FROM jobs WHERE job_id = ANY ($1) AND state = 'succeeded'";
    assert_eq!(usize::try_from(count(&mut conn, &ended, text).await).unwrap(), ended.len());
    assert_eq!(h.contradictions().await, Vec::<String>::new());
    store.close().await;
    assert!(matches!(store.overview(T0).await, Err(Error::Closed)));
    assert!(matches!(store.submit(jobs("m", 1)).await, Err(Error::Closed)));
}
