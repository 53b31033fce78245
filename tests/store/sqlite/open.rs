//! Opening: what is refused and how it is said; several openers at once; a disk that is full.

use super::harness::open;
use crate::conformance::*;
use reprieve::clock::Clock;
use reprieve::store::sqlite::OpenOptions;
use reprieve::store::*;
use sqlx::{Connection, Executor, SqliteConnection};
use std::path::Path;
use std::time::{Duration, Instant};

async fn refused(url: &str) -> Error {
    Sqlite::open(url, Clock::manual(T0), OpenOptions { busy_ms: 50, ..OpenOptions::default() }).await.unwrap_err()
}

fn url(path: &Path) -> String {
    format!("sqlite://{}", path.display())
}

async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnection::connect(&format!("sqlite://{}?mode=rwc", path.display())).await.unwrap()
}

#[tokio::test]
async fn what_is_no_file_of_ours_is_refused_with_what_would_be_right() {
    let dir = tempfile::tempdir().unwrap();
    let garbage = dir.path().join("garbage");
    std::fs::write(&garbage, "this is no database, but it is longer than a header".repeat(100)).unwrap();
    let foreign = dir.path().join("foreign");
    raw(&foreign).await.execute("CREATE TABLE t (a)").await.unwrap();
    let place = url(dir.path());
    for (given, said) in [
        ("sqlite::memory:".to_owned(), "a database in memory is lost with the process"),
        ("sqlite://x?mode=memory".to_owned(), "a database in memory is lost with the process"),
        ("postgres://h/d".to_owned(), "a SQLite database is named sqlite://path"),
        ("sqlite://".to_owned(), "the URL names no file"),
        (place.clone(), "it is a directory; name a file in it"),
        (format!("{place}/none/x.db"), "does not exist"),
        (url(&garbage), "the file is no SQLite database"),
        (url(&foreign), "the file is a SQLite database of something else"),
    ] {
        let error = refused(&given).await;
        let Error::Open { url, why } = &error else { panic!("{given}: {error:?}") };
        assert!(*url == given && why.contains(said), "{error}");
    }
}

#[tokio::test]
async fn a_newer_schema_a_locked_and_a_read_only_file_have_names() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    open(&path, OpenOptions::default()).await.unwrap().close().await;

    let read_only = refused(&format!("{}?mode=ro", url(&path))).await;
    assert!(matches!(read_only, Error::ReadOnly), "{read_only:?}");

    let store = open(&path, OpenOptions { busy_ms: 50, ..OpenOptions::default() }).await.unwrap();
    let mut other = raw(&path).await;
    other.execute("BEGIN EXCLUSIVE").await.unwrap();
    let locked = store.submit(jobs("m", 1)).await.unwrap_err();
    assert!(matches!(locked, Error::Locked { waited_ms: 50 }), "{locked:?}");
    other.execute("COMMIT").await.unwrap();
    store.submit(jobs("m", 1)).await.unwrap();
    store.close().await;
    assert!(matches!(store.submit(jobs("m", 1)).await, Err(Error::Closed)));
    assert!(matches!(store.overview(T0).await, Err(Error::Closed)));

    other.execute("PRAGMA user_version = 99").await.unwrap();
    let newer = refused(&url(&path)).await;
    assert!(matches!(newer, Error::Newer { found: 99, known: 2 }), "{newer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_may_make_one_file_at_once_and_see_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let opens = (0..8).map(|_| {
        let path = path.clone();
        tokio::spawn(async move { open(&path, OpenOptions::default()).await })
    });
    let mut stores = Vec::new();
    for store in opens.collect::<Vec<_>>() {
        stores.push(store.await.unwrap().unwrap());
    }
    let (one, other) = (&stores[0], &stores[7]);
    let mut changes = other.changes();
    // What the openings themselves moved comes first.
    tokio::time::timeout(std::time::Duration::from_secs(5), async {
        let submitted = one.submit(jobs("m", 3)).await.unwrap();
        assert_eq!(submitted.len(), 3);
        while other.overview(T0).await.unwrap().ready < 3 {
            changes.changed().await.unwrap();
        }
    })
    .await
    .unwrap();
    changes.mark_unchanged();
    one.submit(jobs("m", 1)).await.unwrap();
    tokio::time::timeout(std::time::Duration::from_secs(5), changes.changed()).await.unwrap().unwrap();
    let calls = stores.iter().flat_map(|store| (0..5).map(|_| store.submit(jobs("m", 7))));
    for answers in futures::future::join_all(calls).await {
        assert_eq!(answers.unwrap().len(), 7);
    }
    assert_eq!(one.overview(T0).await.unwrap().ready, 4 + 8 * 5 * 7);
}

/// A neighbour that takes the lock again soon after it has let it go keeps nobody out for long: a lease of three seconds is
/// renewed beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_is_free_for_moments_only_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let store = open(&path, OpenOptions::default()).await.unwrap();
    let mut neighbour = raw(&path).await;
    let hogging = tokio::spawn(async move {
        loop {
            neighbour.execute("BEGIN IMMEDIATE").await.unwrap();
            tokio::time::sleep(Duration::from_millis(40)).await;
            neighbour.execute("COMMIT").await.unwrap();
            tokio::time::sleep(Duration::from_millis(4)).await;
        }
    });
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        let asked = Instant::now();
        store.takes_writes().await.unwrap();
        slowest = slowest.max(asked.elapsed());
    }
    hogging.abort();
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
}

#[tokio::test]
async fn a_full_disk_acknowledges_nothing_and_is_got_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let store = open(&path, OpenOptions { max_bytes: Some(1 << 20), ..OpenOptions::default() }).await.unwrap();
    let big = || {
        let mut new = job("m");
        new.spec = "x".repeat(20_000);
        new
    };
    let mut accepted = Vec::new();
    let error = loop {
        // Several at once: what fails, fails for those that did not fit.
        let calls = (0..4).map(|_| store.submit(vec![big()]));
        let answers = futures::future::join_all(calls).await;
        let mut failed = None;
        for answer in answers {
            match answer {
                Ok(answers) => accepted.extend(answers),
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            break error;
        }
    };
    assert!(matches!(error, Error::Full), "{error:?}");
    assert!(accepted.len() > 20, "{}", accepted.len());
    assert_eq!(store.overview(T0).await.unwrap().ready, i64::try_from(accepted.len()).unwrap());

    // Room again: the same writer goes on.
    let ids: Vec<JobId> = accepted
        .iter()
        .map(|answer| match answer {
            Submitted::Accepted(id) => *id,
            other => panic!("{other:?}"),
        })
        .take(5)
        .collect();
    let other = open(&path, OpenOptions::default()).await.unwrap();
    assert_eq!(other.cancel(ids, T0).await.unwrap(), [CancelOutcome::Cancelled; 5]);
    let prune = Prune { records_before_ms: T0 + 1, jobs_before_ms: T0 + 1, limit: 10 };
    assert_eq!(other.prune(prune).await.unwrap().jobs, 5);
    store.submit(vec![big()]).await.unwrap();
}

#[tokio::test]
async fn a_statement_that_takes_too_long_ends() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let filler = open(&path, OpenOptions::default()).await.unwrap();
    filler.submit(jobs("m", 3_000)).await.unwrap();
    let store = open(&path, OpenOptions { statement_ms: 0, ..OpenOptions::default() }).await.unwrap();
    let slow = store.jobs(Query { tenants: vec!["nobody".into()], limit: 10, ..Query::default() }).await;
    assert!(matches!(slow, Err(Error::TimedOut { after_ms: 0 })), "{slow:?}");
    let slow = store.submit(jobs("m", 3_000)).await;
    assert!(matches!(slow, Err(Error::TimedOut { .. })), "{slow:?}");
    assert_eq!(filler.overview(T0).await.unwrap().ready, 3_000);
}
