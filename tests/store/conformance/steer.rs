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

pub async fn a_worker_that_went_is_no_failure_that_a_job_met<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let deadline_ms = T0 + LEASE_MS + 2_000;
    let mut new = jobs("m", 2);
    for job in &mut new {
        job.deadline_ms = Some(deadline_ms);
    }
    let ids = submit(h, new).await;
    let w = worker(h, T0).await;
    let first = claim(h, w, 1, T0).await.remove(0);
    complete_one(h, deferred(w, &first, T0 + 10, T0 + 1_000)).await;
    // The refused one is the probe, and is lost with its worker; so is the other, which met nothing.
    let probe = claim(h, w, 1, T0 + 1_000).await.remove(0);
    let answer = Answer { job_id: probe.job_id, fence: probe.fence, probe: None, silent: false, now_ms: T0 + 1_001 };
    let answer = Answer { probe: probe.grant.probe.map(|probe| probe.hold_id), ..answer };
    h.store().answered(vec![answer]).await.unwrap();
    let other = claim(h, w, 1, T0 + 1_002).await.remove(0);
    assert_eq!((probe.job_id, other.job_id), (first.job_id, ids.into_iter().find(|id| *id != first.job_id).unwrap()));
    assert_eq!(h.store().rescue(super::workers::rescue(T0 + LEASE_MS)).await.unwrap().requeued, 2);
    assert_eq!(h.store().expire(deadline_ms, 10).await.unwrap(), 2);
    assert_eq!(get(h, probe.job_id).await.error, Some(error("rate_limit")));
    let unmet = get(h, other.job_id).await.error.unwrap();
    assert!(unmet.contains("\"deadline_exceeded\"") && !unmet.contains("model_failure"), "{unmet}");
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

pub async fn a_paused_job_waits_until_it_is_let_go_on<H: Harness>(h: &H) {
    use SteerOutcome::{AlreadyFinal, Done, Unchanged, Unknown};
    wide(h, &["m"]).await;
    let mut new = jobs("m", 5);
    new[1].due_ms = Some(T0 + 1_000);
    new[2].deadline_ms = Some(T0 + 2_000);
    let ids = submit(h, new).await;
    let unknown = JobId::fresh();
    let asked = [ids[0], ids[1], ids[2], ids[3], unknown, ids[0]];
    let outcomes = steer(h, &asked, Steer::Pause(pause()), T0).await;
    assert_eq!(outcomes, [Done, Done, Done, Done, Unknown, Unchanged]);
    assert_eq!(h.contradictions().await, Vec::<String>::new());
    // Nobody wakes for what only paused turns wait for, but their deadlines run.
    assert_eq!(h.store().next_due_ms(T0).await.unwrap(), Some(T0 + 2_000));
    let w = worker(h, T0 + 1_500).await;
    let turns = claim(h, w, 10, T0 + 1_500).await;
    assert_eq!(turns.iter().map(|turn| turn.job_id).collect::<Vec<_>>(), [ids[4]]);
    assert_eq!(h.store().expire(T0 + 2_000, 10).await.unwrap(), 1);
    assert_eq!(get(h, ids[2]).await.state, JobState::Failed);
    assert_eq!(h.store().cancel(vec![ids[3]], T0 + 2_000).await.unwrap(), [CancelOutcome::Cancelled]);
    let resumed = steer(h, &ids, Steer::Resume, T0 + 2_000).await;
    let (failed, cancelled) = (AlreadyFinal(JobState::Failed), AlreadyFinal(JobState::Cancelled));
    assert_eq!(resumed, [Done, Done, failed, cancelled, Unchanged]);
    assert_eq!(h.contradictions().await, Vec::<String>::new());
    let turns = claim(h, w, 10, T0 + 2_000).await;
    let mut seen: Vec<JobId> = turns.iter().map(|turn| turn.job_id).collect();
    seen.sort();
    let mut expected = vec![ids[0], ids[1]];
    expected.sort();
    assert_eq!(seen, expected);
}

pub async fn a_turn_paused_in_hand_finishes_and_goes_back_paused<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let ids = submit(h, jobs("m", 6)).await;
    let (w, lost) = (worker(h, T0).await, worker(h, T0 - 10).await);
    let turns = claim(h, w, 5, T0).await;
    assert_eq!(claim(h, lost, 1, T0).await.len(), 1);
    assert_eq!(steer(h, &ids, Steer::Pause(pause()), T0).await, [SteerOutcome::Done; 6]);
    assert_eq!(get(h, ids[0]).await.state, JobState::Running);
    let next_turn =
        Completion { next: Next::Turn { due_ms: None, repairs: 0, inbox: vec![] }, ..success(w, &turns[2], T0 + 1) };
    let ends = vec![
        deferred(w, &turns[0], T0 + 1, T0 + 2),
        requeued(w, &turns[1], T0 + 1, T0 + 2),
        next_turn,
        success(w, &turns[3], T0 + 1),
    ];
    assert_eq!(h.store().complete(ends).await.unwrap(), [Applied::Done; 4]);
    h.store().give_back(w, vec![(turns[4].job_id, turns[4].fence)], T0 + 1).await.unwrap();
    assert_eq!(h.store().rescue(super::workers::rescue(T0 - 10 + LEASE_MS)).await.unwrap().requeued, 1);
    assert_eq!(h.contradictions().await, Vec::<String>::new());
    let now_ms = T0 + LEASE_MS;
    let live = worker(h, now_ms).await;
    assert!(claim(h, live, 10, now_ms).await.is_empty());
    let outcomes = steer(h, &ids, Steer::Resume, now_ms).await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == SteerOutcome::Done).count(), 5);
    // One probe for the hold that the first one's refusal opened.
    let probe = claim(h, live, 10, now_ms).await.remove(0);
    complete_one(h, success(live, &probe, now_ms)).await;
    assert_eq!(h.contradictions().await, Vec::<String>::new());
}

pub async fn a_requeue_ends_a_backoff_and_nothing_else<H: Harness>(h: &H) {
    use SteerOutcome::{Done, Unchanged};
    wide(h, &["m"]).await;
    let mut new = jobs("m", 4);
    new[2].due_ms = Some(T0 + 60_000);
    let ids = submit(h, new).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 3, T0).await;
    assert_eq!(turns.len(), 3);
    for turn in &turns[..2] {
        complete_one(h, requeued(w, turn, T0 + 1, T0 + 20_000)).await;
    }
    steer(h, &[ids[1]], Steer::Pause(pause()), T0 + 1).await;
    let asked = [ids[0], ids[1], ids[2], ids[3], ids[0]];
    assert_eq!(steer(h, &asked, Steer::Requeue, T0 + 2).await, [Done, Done, Unchanged, Unchanged, Unchanged]);
    assert_eq!(h.contradictions().await, Vec::<String>::new());
    // Its place is that of one that became ready now.
    let younger = submit(h, vec![NewJob { created_ms: T0 + 3, ..job("m") }]).await;
    let turns = claim(h, w, 10, T0 + 3).await;
    let seen: Vec<_> = turns.iter().map(|turn| (turn.job_id, turn.executions)).collect();
    assert_eq!(seen, [(ids[0], 1), (younger[0], 0)]);
    // The paused one waits for no clock any more, only to be let go on.
    steer(h, &[ids[1]], Steer::Resume, T0 + 4).await;
    assert_eq!(claim(h, w, 10, T0 + 4).await[0].job_id, ids[1]);
}

pub async fn another_priority_is_another_place_in_line<H: Harness>(h: &H) {
    use SteerOutcome::{Done, Unchanged};
    wide(h, &["m"]).await;
    let ids = submit(h, jobs("m", 4)).await;
    let w = worker(h, T0).await;
    let hand = claim(h, w, 1, T0).await.remove(0);
    assert_eq!(hand.job_id, ids[0]);
    let asked = [ids[2], ids[0], ids[2]];
    assert_eq!(steer(h, &asked, Steer::Reprioritise(5), T0).await, [Done, Done, Unchanged]);
    assert_eq!(steer(h, &[ids[1]], Steer::Reprioritise(-1), T0).await, [Done]);
    assert_eq!(steer(h, &[ids[3]], Steer::Reprioritise(0), T0).await, [Unchanged]);
    assert_eq!((get(h, ids[2]).await.priority, get(h, ids[1]).await.priority), (5, -1));
    // A running one takes it along; five steps are five minutes.
    let next =
        Completion { next: Next::Turn { due_ms: None, repairs: 0, inbox: vec![] }, ..success(w, &hand, T0 + 300_000) };
    h.store().heartbeat(w, T0 + 300_000).await.unwrap();
    complete_one(h, next).await;
    submit(h, vec![NewJob { created_ms: T0 + 60_001, ..job("m") }]).await;
    let turns = claim(h, w, 10, T0 + 300_000).await;
    let order: Vec<JobId> = turns.iter().map(|turn| turn.job_id).collect();
    assert_eq!(order[..4], [ids[2], ids[0], ids[3], ids[1]]);
}

pub async fn an_ended_job_is_deleted_with_all_that_is_kept_of_it<H: Harness>(h: &H) {
    use DeleteOutcome::{Deleted, NotFinal, Unknown};
    wide(h, &["m"]).await;
    let mut new = jobs("m", 3);
    new[0].idempotency_key = Some("k".into());
    new[0].labels = vec![("a".into(), "b".into())];
    let ids = submit(h, new).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 2, T0).await;
    post(h, ids[0], None, &["1"]).await;
    h.store().set_back(setback(w, &turns[0], 1, T0, T0 + 1)).await.unwrap();
    let Permit::Granted(grant) = permit(h, &turns[0], T0 + 1).await else { panic!("no permit") };
    let turn = ClaimedTurn { grant, ..turns[0].clone() };
    let mut end = success(w, &turn, T0 + 2);
    end.send = end.send.map(|send| SendRow { n: 2, ..send });
    complete_one(h, end).await;
    let holds = h.store().holds(Query { include_ended: true, ..Query::default() }).await.unwrap();
    assert_eq!(holds.len(), 1);
    let unknown = JobId::fresh();
    let asked = vec![ids[0], ids[1], ids[2], unknown, ids[0]];
    let outcomes = h.store().delete(asked).await.unwrap();
    let expected = [Deleted, NotFinal(JobState::Running), NotFinal(JobState::Queued), Unknown, Unknown];
    assert_eq!(outcomes, expected);
    assert_eq!(h.store().job(ids[0]).await.unwrap(), None);
    assert!(h.store().turns(ids[0]).await.unwrap().is_empty() && inbox(h, ids[0]).await.is_empty());
    assert!(h.store().resets(Query::default()).await.unwrap().items.is_empty());
    // The hold stays; what its refusal was answered with went with the send.
    let left = HoldRow { refusal_status: None, ..holds[0].clone() };
    assert_eq!(h.store().holds(Query { include_ended: true, ..Query::default() }).await.unwrap(), [left]);
    assert_eq!(h.store().overview(T0).await.unwrap().succeeded, 1, "what has ever ended");
    submit(h, vec![NewJob { idempotency_key: Some("k".into()), digest: "other".into(), ..job("m") }]).await;
}
