//! Leases: renewing, lapsing, being rescued.

use super::*;
use reprieve::store::*;

pub fn rescue(now_ms: i64) -> Rescue {
    Rescue { now_ms, limit: 100, lost_in_a_row: 3, executions: 8 }
}

pub async fn a_lapsed_worker_loses_its_turns_and_may_not_come_back<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let ids = submit(h, jobs("m", 3)).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 2, T0).await;
    assert_eq!(h.store().rescue(rescue(T0 + LEASE_MS - 1)).await.unwrap(), Rescued::default());
    assert_eq!(h.store().next_due_ms(T0).await.unwrap(), Some(T0 + LEASE_MS));
    assert_eq!(h.store().workers(T0 + LEASE_MS - 1).await.unwrap().len(), 1);
    assert!(h.store().workers(T0 + LEASE_MS).await.unwrap().is_empty());
    // A page at a time.
    let page = Rescue { limit: 1, ..rescue(T0 + LEASE_MS) };
    assert_eq!(h.store().rescue(page).await.unwrap(), Rescued { workers: 0, requeued: 1, failed: 0 });
    assert_eq!(h.store().heartbeat(w, T0 + LEASE_MS).await.unwrap(), Applied::Void);
    assert_eq!(h.store().rescue(page).await.unwrap(), Rescued { workers: 1, requeued: 1, failed: 0 });
    assert_eq!(h.store().rescue(page).await.unwrap(), Rescued::default());
    assert_eq!(h.store().heartbeat(w, T0 + LEASE_MS).await.unwrap(), Applied::Void);
    assert_eq!(complete_one(h, success(w, &turns[0], T0 + LEASE_MS)).await, Applied::Void);
    let view = h.store().turns(ids[0]).await.unwrap().remove(0);
    assert_eq!((view.record.outcome, view.record.attempts, view.record.seq), (Outcome::Lost, None, 1));
    assert_eq!((view.fence, view.record.code.as_deref()), (turns[0].fence, Some("worker_lost")));
    let w = worker(h, T0 + LEASE_MS).await;
    let again = claim(h, w, 10, T0 + LEASE_MS).await;
    assert_eq!(
        again.iter().map(|turn| (turn.job_id, turn.executions)).collect::<Vec<_>>(),
        [(ids[0], 1), (ids[1], 1), (ids[2], 0)]
    );
}

pub async fn three_in_a_row_fail_the_job<H: Harness>(h: &H) {
    let id = submit(h, jobs("m", 1)).await[0];
    let mut now_ms = T0;
    for round in 1..=3 {
        let w = worker(h, now_ms).await;
        assert_eq!(claim(h, w, 1, now_ms).await.len(), 1, "round {round}");
        now_ms += LEASE_MS;
        let rescued = h.store().rescue(rescue(now_ms)).await.unwrap();
        assert_eq!((rescued.requeued, rescued.failed), if round < 3 { (1, 0) } else { (0, 1) });
    }
    let row = get(h, id).await;
    assert_eq!(row.state, JobState::Failed);
    assert!(row.error.unwrap().contains("\"worker_lost\""));
    assert_eq!(h.store().turns(id).await.unwrap().len(), 3);
}

pub async fn an_execution_that_ends_breaks_the_row_and_the_last_execution_fails<H: Harness>(h: &H) {
    let id = submit(h, jobs("m", 1)).await[0];
    let mut now_ms = T0;
    for round in 1..=4 {
        let w = worker(h, now_ms).await;
        let turn = claim(h, w, 1, now_ms).await.remove(0);
        if round == 2 {
            complete_one(h, requeued(w, &turn, now_ms, now_ms)).await;
            h.store().retire_worker(w, now_ms).await.unwrap();
            continue;
        }
        now_ms += LEASE_MS;
        let rescued = h.store().rescue(Rescue { executions: 4, ..rescue(now_ms) }).await.unwrap();
        assert_eq!((rescued.requeued, rescued.failed), if round < 4 { (1, 0) } else { (0, 1) }, "round {round}");
    }
    assert_eq!(get(h, id).await.state, JobState::Failed);
}

pub async fn a_cancelled_turn_of_a_lost_worker_ends_cancelled<H: Harness>(h: &H) {
    let id = submit(h, jobs("m", 1)).await[0];
    let w = worker(h, T0).await;
    claim(h, w, 1, T0).await;
    h.store().cancel(vec![id], T0).await.unwrap();
    h.store().rescue(rescue(T0 + LEASE_MS)).await.unwrap();
    assert_eq!(get(h, id).await.state, JobState::Cancelled);
    assert_eq!(h.store().turns(id).await.unwrap().len(), 1);
}

/// The permit is the durable intent to send.
pub async fn a_turn_that_may_be_sent_once_is_not_put_back_once_it_may_have_been<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let mut new = jobs("m", 6);
    for job in &mut new[..5] {
        job.once = true;
    }
    let ids = submit(h, new).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 6, T0).await;
    let faulted = |n: usize| Setback { refusal: None, evidence: None, ..setback(w, &turns[n], 1, T0 + 1, T0 + 9) };
    // 0 sends; 1 waits in place; 2 waited and sends again; 3 is asked to stop; 4 was given back unsent; 5 may be sent twice.
    for n in [1, 2] {
        assert_eq!(h.store().set_back(faulted(n)).await.unwrap(), Applied::Done);
    }
    assert!(matches!(permit(h, &turns[2], T0 + 9).await, Permit::Granted(_)));
    h.store().cancel(vec![ids[3]], T0 + 9).await.unwrap();
    h.store().give_back(w, vec![(ids[4], turns[4].fence)], T0 + 9).await.unwrap();
    let rescued = h.store().rescue(rescue(T0 + LEASE_MS)).await.unwrap();
    assert_eq!(rescued, Rescued { workers: 1, requeued: 2, failed: 2 });
    for n in [0, 2] {
        let row = get(h, ids[n]).await;
        assert_eq!((row.state, row.finished_ms), (JobState::Failed, Some(T0 + LEASE_MS)));
        assert!(row.error.unwrap().contains("\"worker_lost\""));
        assert_eq!(complete_one(h, success(w, &turns[n], T0 + LEASE_MS)).await, Applied::Void);
        assert_eq!(permit(h, &turns[n], T0 + LEASE_MS).await, Permit::Void);
    }
    assert_eq!(get(h, ids[3]).await.state, JobState::Cancelled);
    for (n, lost) in [1, 1, 1, 1, 0, 1].into_iter().enumerate() {
        let records = h.store().turns(ids[n]).await.unwrap();
        assert_eq!(records.iter().filter(|view| view.record.outcome == Outcome::Lost).count(), lost, "{n}");
        assert_eq!(records.len(), lost, "{n}");
    }
    let w = worker(h, T0 + LEASE_MS).await;
    let mut again = claim(h, w, 6, T0 + LEASE_MS).await;
    again.sort_by_key(|turn| ids.iter().position(|id| *id == turn.job_id));
    let executions: Vec<_> = again.iter().map(|turn| (turn.job_id, turn.executions)).collect();
    assert_eq!(executions, [(ids[1], 1), (ids[4], 0), (ids[5], 1)]);
    // What went back is still of a job that may be sent once; and so is its next turn.
    complete_one(h, cut(w, &again[0], T0 + LEASE_MS)).await;
    assert_eq!(claim(h, w, 6, T0 + LEASE_MS).await.len(), 1);
    let rescued = h.store().rescue(rescue(T0 + 2 * LEASE_MS)).await.unwrap();
    assert_eq!(rescued, Rescued { workers: 1, requeued: 1, failed: 2 });
}

pub async fn a_retired_worker_is_gone_and_one_with_turns_is_rescued<H: Harness>(h: &H) {
    submit(h, jobs("m", 1)).await;
    let (idle, busy) = (worker(h, T0).await, worker(h, T0).await);
    assert_eq!(claim(h, busy, 1, T0).await.len(), 1);
    h.store().retire_worker(idle, T0).await.unwrap();
    h.store().retire_worker(busy, T0).await.unwrap();
    assert!(h.store().workers(T0).await.unwrap().is_empty());
    assert_eq!(h.store().heartbeat(idle, T0).await.unwrap(), Applied::Void);
    assert_eq!(h.store().rescue(rescue(T0)).await.unwrap(), Rescued { workers: 1, requeued: 1, failed: 0 });
}

pub async fn a_worker_that_is_no_more_is_remembered_for_a_day<H: Harness>(h: &H) {
    const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
    let id = submit(h, jobs("m", 1)).await[0];
    let seen = async |now_ms: i64| {
        let standing = h.store().standing(id, now_ms).await.unwrap().unwrap();
        (standing.workers, standing.worker_seen_ms)
    };
    assert_eq!(seen(T0).await, (0, None));
    // One that lapses was seen at its last heartbeat, whenever it is found to have lapsed.
    let lapses = worker(h, T0).await;
    h.store().heartbeat(lapses, T0 + 5_000).await.unwrap();
    assert_eq!(claim(h, lapses, 1, T0 + 5_000).await.len(), 1);
    assert_eq!(seen(T0 + 6_000).await, (1, Some(T0 + 5_000)));
    let found_ms = T0 + 5_000 + LEASE_MS;
    assert_eq!(h.store().rescue(rescue(found_ms)).await.unwrap(), Rescued { workers: 1, requeued: 1, failed: 0 });
    assert_eq!(seen(found_ms).await, (0, Some(T0 + 5_000)));
    assert_eq!(h.store().rescue(rescue(found_ms + 1)).await.unwrap(), Rescued::default(), "it is rescued from once");
    assert_eq!(h.store().next_due_ms(found_ms).await.unwrap(), None, "nobody wakes for it again");
    assert_eq!(h.store().heartbeat(lapses, found_ms).await.unwrap(), Applied::Void);
    let back = WorkerRow {
        id: lapses,
        queues: vec![],
        started_ms: T0,
        heartbeat_ms: found_ms,
        lease_ms: LEASE_MS,
        concurrency: 1,
    };
    h.store().register_worker(back).await.unwrap();
    assert!(claim(h, lapses, 1, found_ms).await.is_empty(), "nor does it come back under its id");
    // One that retires was there until then.
    let retires = worker(h, found_ms).await;
    h.store().retire_worker(retires, found_ms + 9).await.unwrap();
    h.store().retire_worker(retires, found_ms + 99).await.unwrap();
    assert_eq!(seen(found_ms + 10).await, (0, Some(found_ms + 9)));
    assert!(h.store().workers(found_ms + 10).await.unwrap().is_empty());
    let prune = Prune { records_before_ms: T0, jobs_before_ms: T0, limit: 10 };
    h.store().clock().set_ms(found_ms + 9 + DAY_MS);
    h.store().prune(prune).await.unwrap();
    assert_eq!(seen(found_ms + 10).await, (0, Some(found_ms + 9)));
    h.store().clock().set_ms(found_ms + 10 + DAY_MS);
    h.store().prune(prune).await.unwrap();
    assert_eq!(seen(found_ms + 10).await, (0, None));
}
