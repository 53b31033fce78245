//! The schema's versions: brought up by command, once, whoever begins; refused where they do not fit.

use super::cluster::shared;
use super::harness::{connect, options, schema};
use crate::conformance::T0;
use reprieve::clock::Clock;
use reprieve::store::postgres::{Notify, OpenOptions, care, migrate};
use reprieve::store::{Error, Level, Postgres};
use sqlx::Executor;

async fn refused(url: &str, options: OpenOptions) -> Error {
    Postgres::open(url, Clock::manual(T0), options).await.unwrap_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_begins_at_once_does_it_once() {
    let (url, schema) = (shared().url(), schema());
    let before = migrate::schema(&url, &options(&schema)).await.unwrap();
    assert!(before.found.is_none() && before.pending.len() >= 2, "{before:?}");
    let ups = (0..6).map(|_| {
        let (url, schema) = (url.clone(), schema.clone());
        tokio::spawn(async move { migrate::up(&url, &options(&schema)).await.unwrap().pending.len() })
    });
    let mut applied = 0;
    for up in futures::future::join_all(ups).await {
        applied += up.unwrap();
    }
    assert_eq!(applied, before.pending.len());
    let after = migrate::schema(&url, &options(&schema)).await.unwrap();
    assert_eq!((after.found, after.pending), (Some(before.known), vec![]));
    migrate::verify(&url, &options(&schema)).await.unwrap();
    assert_eq!(migrate::differences(&url, &options(&schema)).await.unwrap(), Vec::<String>::new());
    let mut conn = connect(&url, &schema).await;
    conn.execute("DROP INDEX turns_ready").await.unwrap();
    let differences = migrate::differences(&url, &options(&schema)).await.unwrap();
    assert!(matches!(differences.as_slice(), [one] if one.starts_with("missing: index")), "{differences:?}");
    // Its server has autovacuum off, which is bad for it, and said to be so.
    let checks = care::checks(&url, &options(&schema), T0).await;
    let bad: Vec<&str> =
        checks.iter().filter(|check| check.level != Level::Ok).map(|check| check.name.as_str()).collect();
    assert_eq!(bad, ["vacuum"], "{checks:?}");
    // The same where nothing outlives a transaction.
    let polling = OpenOptions { notify: Notify::Poll, ..options(&schema) };
    assert_eq!(care::checks(&url, &polling, T0).await, checks);
}

#[tokio::test]
async fn what_does_not_fit_is_refused_with_what_would_be_right() {
    let (url, schema) = (shared().url(), schema());
    let missing = refused(&url, options(&schema)).await;
    assert!(matches!(&missing, Error::Open { why, .. } if why.contains("run `reprieve migrate up`")), "{missing:?}");
    migrate::up(&url, &options(&schema)).await.unwrap();
    let known = migrate::schema(&url, &options(&schema)).await.unwrap().known;

    let mut conn = connect(&url, &schema).await;
    conn.execute("INSERT INTO schema_migrations VALUES (99, 'of a newer release', 'x', 0)").await.unwrap();
    let newer = refused(&url, options(&schema)).await;
    assert!(matches!(newer, Error::Newer { found: 99, known: knows } if knows == known), "{newer:?}");
    let newer = migrate::up(&url, &options(&schema)).await.unwrap_err();
    assert!(matches!(newer, Error::Newer { found: 99, .. }), "{newer:?}");

    conn.execute("DELETE FROM schema_migrations WHERE version > 1").await.unwrap();
    let older = refused(&url, options(&schema)).await;
    assert!(matches!(&older, Error::Open { why, .. } if why.contains("has version 1")), "{older:?}");
    conn.execute("UPDATE schema_migrations SET checksum = 'x'").await.unwrap();
    let other = refused(&url, options(&schema)).await;
    assert!(matches!(&other, Error::Open { why, .. } if why.contains("step 1 is not this release's")), "{other:?}");
}

#[tokio::test]
async fn what_cannot_be_reached_is_said_to_be_so_without_the_password() {
    for (url, said) in [
        ("postgres://u:secret@127.0.0.1:1/d", "cannot be reached"),
        ("postgres://u:secret@h:port/d", "the URL is not understood"),
        ("mysql://u:secret@h/d", "is named postgres://user@host:5432/database"),
        ("postgres://u:secret@localhost/d?host=/nowhere", "cannot be reached"),
    ] {
        let told = refused(url, options("x")).await.to_string();
        assert!(told.contains(said) && !told.contains("secret"), "{told}");
    }
    let told = refused(&shared().url(), options("Not-A-Schema")).await.to_string();
    assert!(told.contains("its schema cannot be"), "{told}");
}
