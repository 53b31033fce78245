//! Claiming: order, shares, limits, leases, time.

use super::*;
use reprieve::store::*;
use std::collections::BTreeMap;

pub async fn a_claim_gives_what_the_worker_needs_and_a_growing_fence<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let mut new = job("m");
    new.deadline_ms = Some(T0 + 60_000);
    let spec = new.spec.clone();
    let id = submit(h, vec![new]).await[0];
    let w = worker(h, T0).await;
    assert!(claim(h, w, 0, T0).await.is_empty());
    let turns = claim(h, w, 10, T0 + 5).await;
    let [turn] = turns.as_slice() else { panic!("{turns:?}") };
    assert_eq!((turn.job_id, turn.seq, turn.spec.as_str(), turn.entry.as_str()), (id, 1, spec.as_str(), "example"));
    assert_eq!((turn.created_ms, turn.deadline_ms), (T0, Some(T0 + 60_000)));
    assert_eq!(turn.lane, lane("default", "", "m"));
    assert_eq!(turn.grant, Grant { permit_ms: T0 + 5, probe: None, ramping: false, barren: 0 });
    assert!(claim(h, w, 10, T0 + 5).await.is_empty());
    assert_eq!(get(h, id).await.state, JobState::Running);
    submit(h, vec![job("m")]).await;
    assert!(claim(h, w, 10, T0 + 5).await[0].fence > turn.fence);
}

pub async fn priority_orders_and_waiting_ages_by_a_step_a_minute<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let at = |priority: i16, created_ms: i64| {
        let mut new = job("m");
        new.priority = priority;
        new.created_ms = created_ms;
        new
    };
    let new = vec![at(0, T0 + 119_999), at(1, T0 + 120_000), at(-1, T0), at(2, T0 + 240_001), at(0, T0 + 120_000)];
    let ids = submit(h, new).await;
    let w = worker(h, T0 + 240_001).await;
    let order: Vec<JobId> = claim(h, w, 10, T0 + 240_001).await.iter().map(|turn| turn.job_id).collect();
    // Ranks: T0+119,999 · T0+60,000 · T0+60,000 · T0+120,001 · T0+120,000; equal ranks by id.
    assert_eq!(order, [ids[1], ids[2], ids[0], ids[4], ids[3]]);
}

pub async fn lanes_share_what_there_is<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    for (tenant, n) in [("a", 50), ("b", 50), ("c", 1)] {
        let mut new = jobs("m", n);
        for job in &mut new {
            job.lane.tenant = tenant.into();
        }
        submit(h, new).await;
    }
    let w = worker(h, T0).await;
    let mut served = BTreeMap::new();
    for _ in 0..7 {
        for turn in claim(h, w, 3, T0).await {
            *served.entry(turn.lane.tenant).or_insert(0) += 1;
        }
    }
    assert_eq!(served, BTreeMap::from([("a".into(), 10), ("b".into(), 10), ("c".into(), 1)]));
}

pub async fn a_turn_is_claimed_once_whoever_asks<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let mut ids = submit(h, jobs("m", 100)).await;
    let workers = [worker(h, T0).await, worker(h, T0).await, worker(h, T0).await];
    let claims = futures::future::join_all((0..30).map(|n| claim(h, workers[n % 3], 7, T0))).await;
    let mut claimed: Vec<JobId> = claims.iter().flatten().map(|turn| turn.job_id).collect();
    claimed.sort();
    ids.sort();
    assert_eq!(claimed, ids);
}

pub async fn a_worker_takes_only_its_queues<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let mut other = job("m");
    other.lane.queue = "other".into();
    let ids = submit(h, vec![job("m"), other]).await;
    let w = worker(h, T0).await;
    let request = |queues: &[&str]| ClaimRequest {
        worker: w,
        queues: queues.iter().map(|queue| (*queue).to_owned()).collect(),
        without: Vec::new(),
        room: 10,
        now_ms: T0,
    };
    assert!(h.store().claim(request(&["none"])).await.unwrap().is_empty());
    let taken = h.store().claim(request(&["none", "other"])).await.unwrap();
    assert_eq!(taken.iter().map(|turn| turn.job_id).collect::<Vec<_>>(), [ids[1]]);
}

pub async fn a_scope_that_a_worker_leaves_alone_is_left_to_others<H: Harness>(h: &H) {
    wide(h, &["m", "n"]).await;
    let ids = submit(h, vec![job("m"), job("n")]).await;
    let w = worker(h, T0).await;
    let request = |without| ClaimRequest { worker: w, queues: Vec::new(), without, room: 10, now_ms: T0 };
    let taken = h.store().claim(request(vec![job("m").lane.scope])).await.unwrap();
    assert_eq!(taken.iter().map(|turn| turn.job_id).collect::<Vec<_>>(), [ids[1]]);
    let taken = h.store().claim(request(Vec::new())).await.unwrap();
    assert_eq!(taken.iter().map(|turn| turn.job_id).collect::<Vec<_>>(), [ids[0]]);
}

pub async fn what_is_not_due_is_not_claimed_and_is_at_its_instant<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let mut later = job("m");
    later.due_ms = Some(T0 + 1_000);
    let mut past = job("m");
    past.due_ms = Some(T0);
    let ids = submit(h, vec![later, past]).await;
    let w = worker(h, T0).await;
    let taken = claim(h, w, 10, T0 + 999).await;
    assert_eq!(taken.iter().map(|turn| turn.job_id).collect::<Vec<_>>(), [ids[1]]);
    assert_eq!(get(h, ids[0]).await.due_ms, Some(T0 + 1_000));
    assert_eq!(h.store().next_due_ms(T0 + 999).await.unwrap(), Some(T0 + 1_000));
    assert_eq!(claim(h, w, 10, T0 + 1_000).await[0].job_id, ids[0]);
}

pub async fn a_lapsed_or_unknown_worker_claims_nothing<H: Harness>(h: &H) {
    submit(h, jobs("m", 1)).await;
    let w = worker(h, T0).await;
    assert!(claim(h, WorkerId::fresh(), 1, T0).await.is_empty());
    assert!(claim(h, w, 1, T0 + LEASE_MS).await.is_empty());
    assert_eq!(h.store().heartbeat(w, T0 + LEASE_MS).await.unwrap(), Applied::Done);
    assert_eq!(claim(h, w, 1, T0 + LEASE_MS).await.len(), 1);
}

pub async fn no_more_are_in_flight_than_may_be<H: Harness>(h: &H) {
    let configs = vec![
        ScopeConfig { scope: scope(""), max_in_flight: Some(5) },
        ScopeConfig { scope: scope("a"), max_in_flight: Some(3) },
        ScopeConfig { scope: scope("b"), max_in_flight: None },
    ];
    h.store().configure_scopes(configs.clone()).await.unwrap();
    h.store().configure_scopes(configs).await.unwrap();
    submit(h, [jobs("a", 10), jobs("b", 10)].concat()).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 64, T0).await;
    let of = |turns: &[ClaimedTurn], model: &str| turns.iter().filter(|turn| turn.lane.scope.model == model).count();
    assert_eq!((of(&turns, "a"), of(&turns, "b")), (3, 2));
    let of_a = turns.iter().find(|turn| turn.lane.scope.model == "a").unwrap();
    complete_one(h, success(w, of_a, T0)).await;
    assert_eq!(claim(h, w, 64, T0).await.len(), 1);
}

pub async fn an_unconfigured_scope_starts_at_four_and_grows_by_answers<H: Harness>(h: &H) {
    submit(h, jobs("m", 30)).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 64, T0).await;
    assert_eq!(turns.len(), 4);
    assert!(turns.iter().all(|turn| turn.grant.ramping));
    let done = turns.iter().map(|turn| success(w, turn, T0 + 1)).collect();
    h.store().complete(done).await.unwrap();
    // A process that starts meanwhile states the same, and takes nothing away.
    h.store().configure_scopes(vec![ScopeConfig { scope: scope("m"), max_in_flight: None }]).await.unwrap();
    assert_eq!(claim(h, w, 64, T0 + 1).await.len(), 5);
}

pub async fn what_is_given_back_unsent_keeps_its_place_and_leaves_no_record<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let ids = submit(h, jobs("m", 3)).await;
    let w = worker(h, T0).await;
    let turn = claim(h, w, 1, T0).await.remove(0);
    h.store()
        .give_back(w, vec![(turn.job_id, turn.fence), (turn.job_id, Fence(turn.fence.0 + 9))], T0 + 9)
        .await
        .unwrap();
    let again = claim(h, w, 1, T0 + 10).await.remove(0);
    assert_eq!((again.job_id, again.executions), (ids[0], 0));
    assert!(again.fence > turn.fence);
    assert_eq!(complete_one(h, success(w, &turn, T0 + 11)).await, Applied::Void);
    assert!(h.store().turns(turn.job_id).await.unwrap().is_empty());
}

pub async fn a_paused_queue_gives_nothing_and_goes_on_where_it_was<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let mut new = jobs("m", 4);
    for (n, job) in new.iter_mut().enumerate() {
        job.lane.queue = if n < 3 { "slow" } else { "other" }.into();
    }
    let ids = submit(h, new).await;
    let w = worker(h, T0).await;
    let request = |queues: &[&str], room| ClaimRequest {
        worker: w,
        queues: queues.iter().map(|queue| (*queue).to_owned()).collect(),
        without: Vec::new(),
        room,
        now_ms: T0,
    };
    let hand = h.store().claim(request(&["slow"], 1)).await.unwrap();
    assert_eq!(h.store().pause_queue("slow".into(), Some(pause())).await.unwrap(), None);
    let later = Pause { by: "another".into(), ..pause() };
    assert_eq!(h.store().pause_queue("slow".into(), Some(later)).await.unwrap(), Some(pause()), "the first stands");
    assert!(h.store().claim(request(&["slow"], 10)).await.unwrap().is_empty());
    let others = claim(h, w, 10, T0).await;
    assert_eq!(others.iter().map(|turn| turn.job_id).collect::<Vec<_>>(), [ids[3]]);
    // What is in hand finishes, what waits can be cancelled, and what comes in waits.
    assert_eq!(complete_one(h, success(w, &hand[0], T0)).await, Applied::Done);
    assert_eq!(h.store().cancel(vec![ids[1]], T0).await.unwrap(), [CancelOutcome::Cancelled]);
    assert_eq!(h.store().pause_queue("slow".into(), None).await.unwrap(), Some(pause()));
    assert_eq!(h.store().pause_queue("slow".into(), None).await.unwrap(), None);
    let turns = claim(h, w, 10, T0).await;
    assert_eq!(turns.iter().map(|turn| turn.job_id).collect::<Vec<_>>(), [ids[2]]);
}

pub async fn the_probe_is_of_a_queue_that_runs<H: Harness>(h: &H) {
    let mut new = jobs("m", 3);
    new[0].lane.queue = "paused".into();
    new[1].lane.queue = "paused".into();
    let ids = submit(h, new).await;
    let w = worker(h, T0).await;
    let close = HoldClose { scope: scope("m"), until_ms: Some(T0 + 10), by: "ops".into(), reason: None, now_ms: T0 };
    h.store().close_scope(close).await.unwrap();
    h.store().pause_queue("paused".into(), Some(pause())).await.unwrap();
    let turns = claim(h, w, 10, T0 + 10).await;
    assert_eq!(turns.iter().map(|turn| turn.job_id).collect::<Vec<_>>(), [ids[2]]);
    assert!(turns[0].grant.probe.is_some());
}

pub async fn claims_are_counted_by_the_minute<H: Harness>(h: &H) {
    wide(h, &["m", "n"]).await;
    let ids = submit(h, [jobs("m", 20), jobs("n", 1)].concat()).await;
    let (waiting, other) = (ids[19], ids[20]);
    let minute_ms = T0.div_euclid(60_000) * 60_000;
    let counted =
        async |id: JobId, now_ms: i64| h.store().standing(id, now_ms).await.unwrap().unwrap().claims_last_minute;
    let take = async |n: u32, now_ms: i64| {
        let request =
            ClaimRequest { worker: worker(h, now_ms).await, queues: vec![], without: Vec::new(), room: n, now_ms };
        h.store().claim(request).await.unwrap().iter().filter(|turn| turn.lane.scope.model == "m").count()
    };
    assert_eq!(take(2, minute_ms + 1).await, 1, "each lane gives one");
    assert_eq!(take(2, minute_ms + 59_999).await, 2);
    assert_eq!(counted(waiting, minute_ms + 59_999).await, 0, "the minute is not over");
    assert_eq!(counted(waiting, minute_ms + 60_000).await, 3);
    assert_eq!(take(4, minute_ms + 60_000).await, 4);
    // A claim that was a little late over the minute's end takes nothing away.
    assert_eq!(take(1, minute_ms + 59_999).await, 1);
    assert_eq!(counted(waiting, minute_ms + 119_999).await, 3);
    assert_eq!(counted(waiting, minute_ms + 120_000).await, 5);
    assert_eq!(counted(other, minute_ms + 60_000).await, 1, "a lane's own");
    assert_eq!(counted(waiting, minute_ms + 180_000).await, 0);
    // After a minute without a claim the one before it is not the one before.
    assert_eq!(take(1, minute_ms + 240_000).await, 1);
    assert_eq!(counted(waiting, minute_ms + 240_000).await, 0);
    assert_eq!(counted(waiting, minute_ms + 300_000).await, 1);
}
