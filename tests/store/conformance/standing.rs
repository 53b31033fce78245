//! Where one job stands, what queues hold, and several jobs' histories at once.

use super::*;
use reprieve::store::*;

async fn standing<H: Harness>(h: &H, job: JobId, now_ms: i64) -> Standing {
    h.store().standing(job, now_ms).await.unwrap().expect("the job is there")
}

pub async fn a_job_in_line_knows_who_is_before_it<H: Harness>(h: &H) {
    h.store().configure_scopes(vec![ScopeConfig { scope: scope("m"), max_in_flight: Some(2) }]).await.unwrap();
    let mut new = jobs("m", 5);
    new[4].priority = 1;
    let ids = submit(h, new).await;
    let w = worker(h, T0 - 5).await;
    let turns = claim(h, w, 9, T0 + 1).await;
    let running: Vec<JobId> = turns.iter().map(|turn| turn.job_id).collect();
    assert_eq!(running, [ids[4], ids[0]], "the one of higher priority goes first");

    let third = standing(h, ids[3], T0 + 2).await;
    assert_eq!((third.ahead, third.ahead_in_scope, third.behind_hold), (2, 0, 0));
    assert_eq!(third.job.state, JobState::Queued);
    let full = ScopeStanding { in_flight: 2, limit: Some(2), max_in_flight: Some(2), oldest_ms: Some(T0 + 1) };
    assert_eq!(third.model, full);
    assert_eq!((third.account.in_flight, third.account.max_in_flight), (2, None));
    assert_eq!((third.workers, third.worker_seen_ms), (1, Some(T0 - 5)));
    assert_eq!((third.last_failure, third.in_hand), (None, None));
    assert_eq!(standing(h, ids[1], T0 + 2).await.ahead, 0);

    // Nobody takes it once the lease has lapsed; who did is not forgotten.
    let lapsed = standing(h, ids[1], T0 + LEASE_MS).await;
    assert_eq!((lapsed.workers, lapsed.worker_seen_ms), (0, Some(T0 - 5)));
    let mut other = job("m");
    other.lane.queue = "q".into();
    let elsewhere = submit(h, vec![other]).await[0];
    let row = WorkerRow {
        id: WorkerId::fresh(),
        queues: vec!["q".into(), "r".into()],
        started_ms: T0,
        heartbeat_ms: T0,
        lease_ms: LEASE_MS,
        concurrency: 1,
    };
    h.store().register_worker(row).await.unwrap();
    assert_eq!(standing(h, elsewhere, T0 + 2).await.workers, 2);
    assert_eq!(standing(h, ids[1], T0 + 2).await.workers, 1);
    assert!(h.store().standing(JobId::fresh(), T0).await.unwrap().is_none());
    complete_one(h, success(w, &turns[0], T0 + 3)).await;
    let ended = standing(h, ids[4], T0 + 4).await;
    assert_eq!((ended.job.state, ended.ahead, ended.in_hand), (JobState::Succeeded, 0, None));
}

pub async fn a_held_job_knows_who_is_before_it_in_other_lanes<H: Harness>(h: &H) {
    wide(h, &["m", "n"]).await;
    let mut new = [jobs("m", 4), jobs("n", 1)].concat();
    for (n, job) in new.iter_mut().enumerate() {
        job.created_ms = T0 + i64::try_from(n).unwrap();
        job.lane.queue = format!("q{}", n % 2);
    }
    let ids = submit(h, new).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 1, T0 + 10).await;
    assert_eq!(turns[0].job_id, ids[0]);
    let mut end = deferred(w, &turns[0], T0 + 11, T0 + 900);
    end.record.code = Some("model_incomplete".into());
    complete_one(h, end).await;

    let last = standing(h, ids[3], T0 + 12).await;
    assert_eq!((last.ahead, last.ahead_in_scope, last.behind_hold), (1, 3, 4));
    assert!(last.job.deferred);
    let first = standing(h, ids[0], T0 + 12).await;
    assert_eq!((first.ahead, first.ahead_in_scope, first.behind_hold), (0, 0, 4));
    let failure = LastFailure {
        ended_ms: T0 + 11,
        outcome: "deferred".into(),
        class: Some("rate_limit".into()),
        cause: Some("rate_limit".into()),
        code: Some("model_incomplete".into()),
        http_status: Some(429),
    };
    assert_eq!(first.last_failure, Some(failure.clone()));
    assert_eq!(first.fails_with, Some(failure));
    let open = standing(h, ids[4], T0 + 12).await;
    assert_eq!((open.ahead_in_scope, open.behind_hold, open.job.deferred), (0, 0, false));

    // A hold of the whole account counts the turns of all its models.
    let turn = claim(h, w, 1, T0 + 13).await.remove(0);
    assert_eq!(turn.job_id, ids[4]);
    let mut end = deferred(w, &turn, T0 + 14, T0 + 5_000);
    end.refusal = Some(refusal(turn.lane.scope.of_account(), T0 + 5_000, 0));
    complete_one(h, end).await;
    let last = standing(h, ids[4], T0 + 15).await;
    assert_eq!((last.ahead, last.ahead_in_scope, last.behind_hold), (0, 4, 5));
    assert_eq!(last.job.hold.map(|hold| hold.scope.model), Some(String::new()));
}

pub async fn a_job_in_hand_says_what_it_waits_for<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let ids = submit(h, jobs("m", 2)).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 2, T0 + 1).await;
    let turn = turns.iter().find(|turn| turn.job_id == ids[0]).unwrap();
    let hand = InHandStanding {
        claimed_ms: T0 + 1,
        replaced: 0,
        wait_source: None,
        wait_raw: None,
        wait_ms: None,
        outcome: None,
        cancel_asked: false,
    };
    assert_eq!(standing(h, ids[0], T0 + 2).await.in_hand, Some(hand.clone()));
    h.store().set_back(setback(w, turn, 1, T0 + 2, T0 + 9)).await.unwrap();
    let named = InHandStanding {
        replaced: 1,
        wait_source: Some("retry-after".into()),
        wait_raw: Some("7".into()),
        wait_ms: Some(7),
        outcome: Some("refused".into()),
        ..hand
    };
    let now = standing(h, ids[0], T0 + 3).await;
    assert_eq!((now.in_hand, now.job.wait_until_ms), (Some(named.clone()), Some(T0 + 9)));
    assert_eq!(now.model.in_flight, 1, "who waits in place has given its permit back");
    // Our own curve is longer than what was named: nothing was read of it.
    let mut curve = setback(w, turn, 2, T0 + 10, T0 + 50);
    curve.send.wait_source = Some("curve".into());
    h.store().set_back(curve).await.unwrap();
    h.store().cancel(vec![ids[0]], T0 + 11).await.unwrap();
    let now = standing(h, ids[0], T0 + 12).await;
    let ours = InHandStanding {
        replaced: 2,
        wait_source: Some("curve".into()),
        wait_raw: None,
        wait_ms: Some(40),
        cancel_asked: true,
        ..named
    };
    assert_eq!(now.in_hand, Some(ours));
}

pub async fn queues_say_what_they_hold<H: Harness>(h: &H) {
    wide(h, &["m", "n"]).await;
    let mut new = [jobs("m", 4), jobs("n", 2), jobs("m", 2), jobs("m", 1)].concat();
    for (n, job) in new.iter_mut().enumerate() {
        job.created_ms = T0 - i64::try_from(n).unwrap();
        job.lane.queue = if n < 6 { "a" } else { "b" }.into();
    }
    new[2].priority = -1;
    new[7].due_ms = Some(T0 + 500);
    new[8].lane.queue = "c".into();
    let ids = submit(h, new).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 9, T0).await;
    let of = |place: usize| turns.iter().find(|turn| turn.job_id == ids[place]).unwrap();
    let back = [1, 2].map(|place| (of(place).job_id, of(place).fence));
    h.store().give_back(w, back.to_vec(), T0).await.unwrap();
    let lost = failed_record(of(3), Outcome::Failed, "transport", T0 + 2);
    let end = Next::Final { state: JobState::Failed, result: None, error: Some(error("transport")) };
    complete_one(h, success(w, of(0), T0 + 1)).await;
    complete_one(h, Completion { record: lost, next: end, ..success(w, of(3), T0 + 2) }).await;
    complete_one(h, success(w, of(8), T0 + 3)).await;
    for place in [4, 5] {
        complete_one(h, deferred(w, of(place), T0 + 4, T0 + 9_000)).await;
    }
    let empty = QueueRow {
        queue: String::new(),
        paused: None,
        ready: 0,
        oldest_ms: None,
        running: 0,
        deferred: 0,
        later: 0,
        paused_jobs: 0,
        requires_action: 0,
        succeeded_1h: 0,
        failed_1h: 0,
        workers: 1,
    };
    let full = QueueRow {
        queue: "a".into(),
        ready: 2,
        // Behind the hold; the one of low priority is not the last of the line for that.
        oldest_ms: Some(T0 - 5),
        deferred: 2,
        succeeded_1h: 1,
        failed_1h: 1,
        ..empty.clone()
    };
    let small = QueueRow { queue: "b".into(), running: 1, later: 1, ..empty.clone() };
    let idle = QueueRow { queue: "c".into(), succeeded_1h: 1, ..empty };
    assert_eq!(h.store().queues(T0 + 5).await.unwrap(), [full.clone(), small.clone(), idle]);
    // An hour on, what ended counts no more, and a queue that has nothing else is not there.
    let full = QueueRow { succeeded_1h: 0, failed_1h: 0, workers: 0, ..full };
    let small = QueueRow { workers: 0, ..small };
    assert_eq!(h.store().queues(T0 + 3_600_004).await.unwrap(), [full, small]);
}

pub async fn histories_come_in_the_order_asked_for<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let ids = submit(h, jobs("m", 3)).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 3, T0).await;
    let of = |id: JobId| turns.iter().find(|turn| turn.job_id == id).unwrap();
    let mut end = success(w, of(ids[0]), T0 + 1);
    end.record.outcome = Outcome::Truncated;
    end.record.cut = Some("stalled".into());
    let row = InboxRow { seq: 2, kind: "continuation".into(), body: "{\"go\":\"on\"}".into(), at_ms: T0 + 1 };
    end.next = Next::Turn { due_ms: None, repairs: 1, inbox: vec![row.clone()] };
    complete_one(h, end).await;
    let again = claim(h, w, 1, T0 + 2).await.remove(0);
    complete_one(h, success(w, &again, T0 + 3)).await;
    complete_one(h, success(w, of(ids[1]), T0 + 4)).await;

    let asked = vec![ids[1], JobId::fresh(), ids[0], ids[2], ids[1]];
    let histories = h.store().histories(asked.clone()).await.unwrap();
    let hello = |seq: u32, cut: Option<&str>| (seq, cut.map(str::to_owned), "{\"text\":\"hello\"}".to_owned());
    let responses: Vec<_> = histories.iter().map(|history| history.responses.clone()).collect();
    let once = vec![hello(1, None)];
    assert_eq!(responses, [once.clone(), vec![], vec![hello(1, Some("stalled")), hello(2, None)], vec![], once]);
    assert_eq!(histories[2].inbox, [row]);
    for (id, history) in asked.into_iter().zip(histories) {
        let alone = h.store().history(id).await.unwrap();
        assert_eq!((history.responses, history.inbox), (alone.responses, alone.inbox));
    }
    assert!(h.store().histories(Vec::new()).await.unwrap().is_empty());
}
