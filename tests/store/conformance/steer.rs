//! Cancelling, expiring, pruning.

use super::*;
use reprieve::store::*;

pub async fn a_waiting_job_ends_at_once_and_a_final_one_never_again<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let mut later = job("m");
    later.due_ms = Some(T0 + 1_000);
    let ids = submit(h, vec![job("m"), later, job("m")]).await;
    let w = worker(h, T0).await;
    let unknown = JobId::fresh();
    let asked = vec![ids[0], ids[1], unknown, ids[0]];
    let outcomes = h.store().cancel(asked, T0 + 1).await.unwrap();
    assert_eq!(
        outcomes,
        [
            CancelOutcome::Cancelled,
            CancelOutcome::Cancelled,
            CancelOutcome::Unknown,
            CancelOutcome::AlreadyFinal(JobState::Cancelled)
        ]
    );
    let turns = claim(h, w, 10, T0 + 2_000).await;
    assert_eq!(turns.iter().map(|turn| turn.job_id).collect::<Vec<_>>(), [ids[2]]);
    complete_one(h, success(w, &turns[0], T0 + 2_000)).await;
    assert_eq!(
        h.store().cancel(vec![ids[2]], T0 + 2_001).await.unwrap(),
        [CancelOutcome::AlreadyFinal(JobState::Succeeded)]
    );
    let row = get(h, ids[0]).await;
    assert_eq!((row.state, row.finished_ms), (JobState::Cancelled, Some(T0 + 1)));
    assert!(row.error.unwrap().contains("\"model_cancelled\""));
}

pub async fn a_deadline_ends_a_waiting_job_with_the_last_failure_it_met<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let with_deadline = |due_ms: Option<i64>| {
        let mut new = job("m");
        new.deadline_ms = Some(T0 + 5_000);
        new.due_ms = due_ms;
        new
    };
    let ids = submit(h, vec![with_deadline(None), with_deadline(None), with_deadline(Some(T0 + 9_000))]).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 2, T0).await;
    complete_one(h, deferred(w, &turns[0], T0 + 10, T0 + 60_000)).await;
    assert_eq!(h.store().next_due_ms(T0 + 10).await.unwrap(), Some(T0 + 5_000));
    assert_eq!(h.store().expire(T0 + 4_999, 10).await.unwrap(), 0);
    assert_eq!(h.store().expire(T0 + 5_000, 1).await.unwrap(), 1);
    assert_eq!(h.store().expire(T0 + 5_000, 10).await.unwrap(), 1);
    let row = get(h, ids[0]).await;
    assert_eq!((row.state, row.error), (JobState::Failed, Some(error("rate_limit"))));
    assert_eq!(get(h, ids[1]).await.state, JobState::Running, "a running one is its worker's");
    assert!(get(h, ids[2]).await.error.unwrap().contains("\"deadline_exceeded\""));
}

pub async fn a_turn_past_its_deadline_is_not_claimed<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let mut late = job("m");
    late.deadline_ms = Some(T0 + 5_000);
    let ids = submit(h, vec![late, job("m")]).await;
    let w = worker(h, T0 + 5_000).await;
    let turns = claim(h, w, 10, T0 + 5_000).await;
    assert_eq!(turns.iter().map(|turn| turn.job_id).collect::<Vec<_>>(), [ids[1]]);
    assert_eq!(h.store().expire(T0 + 5_000, 10).await.unwrap(), 1);
    assert!(get(h, ids[0]).await.error.unwrap().contains("\"deadline_exceeded\""));
}

pub async fn retention_counts_from_the_end_and_goes_in_batches<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let mut new = jobs("m", 6);
    new[0].labels = vec![("k".into(), "v".into())];
    new[0].idempotency_key = Some("again".into());
    let ids = submit(h, new.clone()).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 5, T0).await;
    h.store().set_back(setback(w, &turns[0], 1, T0, T0 + 1)).await.unwrap();
    for (n, turn) in turns.iter().enumerate() {
        complete_one(h, success(w, turn, T0 + 100 * i64::try_from(n).unwrap())).await;
    }
    let prune =
        |records_before_ms, jobs_before_ms, limit| h.store().prune(Prune { records_before_ms, jobs_before_ms, limit });
    assert_eq!(prune(T0, T0, 10).await.unwrap(), Pruned::default());
    assert_eq!(prune(T0 + 300, T0, 2).await.unwrap(), Pruned { records: 2, jobs: 0 });
    assert_eq!(prune(T0 + 300, T0, 2).await.unwrap(), Pruned { records: 1, jobs: 0 });
    assert_eq!(prune(T0 + 300, T0, 2).await.unwrap(), Pruned::default());
    assert!(h.store().turns(ids[0]).await.unwrap().is_empty());
    assert_eq!(get(h, ids[0]).await.state, JobState::Succeeded);
    assert_eq!(prune(T0 + 500, T0 + 500, 3).await.unwrap(), Pruned { records: 2, jobs: 3 });
    assert_eq!(prune(T0 + 500, T0 + 500, 3).await.unwrap(), Pruned { records: 0, jobs: 2 });
    assert_eq!(h.store().job(ids[0]).await.unwrap(), None);
    assert_eq!(get(h, ids[5]).await.state, JobState::Queued, "an unfinished job is never pruned");
    // Its key is free again.
    let mut again = job("m");
    again.idempotency_key = Some("again".into());
    submit(h, vec![again]).await;
}
