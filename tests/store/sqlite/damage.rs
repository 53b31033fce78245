//! Rows that cannot be decoded: a damaged file. Postgres checks its texts at the door, so this is of SQLite alone.

use super::harness::{SqliteHarness, fresh};
use crate::conformance::*;
use reprieve::store::*;
use sqlx::Connection;

/// Bytes that are no text where texts stand, and numbers that no column's type has room for.
async fn damage(h: &SqliteHarness) {
    let mut conn = sqlx::SqliteConnection::connect(&format!("sqlite://{}", h.path().display())).await.unwrap();
    sqlx::query("PRAGMA ignore_check_constraints = ON").execute(&mut conn).await.unwrap();
    for statement in [
        "UPDATE jobs SET spec = CAST(x'ff' AS TEXT), error = CAST(x'7bff' AS TEXT), priority = 99999999999",
        "UPDATE turns SET executions = -7, deferrals = 99999999999",
        "UPDATE turn_records SET cause = CAST(x'ff' AS TEXT), response = CAST(x'ff' AS TEXT), http_status = -4",
        "UPDATE reset_evidence SET candidates = CAST(x'5bff' AS TEXT), raw = CAST(x'ff' AS TEXT), rules_version = -1",
        "UPDATE holds SET source = CAST(x'ff' AS TEXT), extended = -1",
        "UPDATE hold_events SET event = CAST(x'ff' AS TEXT)",
        "INSERT INTO labels (key, value, job_id) SELECT 'k', CAST(x'ff' AS TEXT), job_id FROM jobs",
    ] {
        sqlx::query(statement).execute(&mut conn).await.unwrap();
    }
}

fn page(limit: u32) -> Query {
    Query { limit, ..Query::default() }
}

#[tokio::test]
async fn a_damaged_row_is_shown_as_far_as_it_can_be_read() {
    let h = &fresh().await;
    wide(h, &["m"]).await;
    let ids = submit(h, jobs("m", 3)).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 1, T0).await;
    assert_eq!(turns[0].job_id, ids[0]);
    complete_one(h, deferred(w, &turns[0], T0 + 1, T0 + 9)).await;
    damage(h).await;

    let listed = h.store().jobs(Query { now_ms: T0 + 2, ..page(10) }).await.unwrap().items;
    let seen: Vec<_> = listed.iter().map(|job| (job.id, job.spec.is_empty())).collect();
    assert_eq!(seen, [(ids[2], true), (ids[1], true), (ids[0], true)]);
    assert_eq!(listed[0].lane, lane("default", "", "m"));
    let failures = h.store().failures(page(10)).await.unwrap().items;
    assert_eq!((failures.len(), failures[0].job_id, failures[0].cause.as_deref()), (1, ids[0], Some("")));
    assert_eq!(
        h.store().failures(Query { codes: vec!["model_incomplete".into()], ..page(10) }).await.unwrap().items.len(),
        1
    );
    let resets = h.store().resets(Query { verdicts: vec!["selected".into()], ..page(10) }).await.unwrap().items;
    assert_eq!(resets.len(), 0, "what cannot be read has no verdict");
    let resets = h.store().resets(page(10)).await.unwrap().items;
    assert_eq!((resets.len(), resets[0].evidence.candidates.len(), resets[0].evidence.skew_ms), (1, 0, 0));
    assert_eq!(h.store().reset_accuracy(page(0)).await.unwrap()[0].selected, 1);
    let holds = h.store().holds(page(10)).await.unwrap();
    assert_eq!((holds.len(), holds[0].source.as_str(), holds[0].scope.clone()), (1, "", scope("m")));
    let turns = h.store().turns(ids[0]).await.unwrap();
    assert_eq!((turns.len(), turns[0].sends.len(), turns[0].record.outcome), (1, 1, Outcome::Deferred));
}
