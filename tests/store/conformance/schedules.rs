//! Schedules: one name one schedule, one instant one run, whoever fires and however often.

use super::*;
use reprieve::store::*;

const MINUTE_MS: i64 = 60_000;

fn schedule(name: &str, overlap: Overlap) -> NewSchedule {
    NewSchedule {
        id: ScheduleId::fresh(),
        name: name.into(),
        cron: "* * * * *".into(),
        zone: "Europe/Berlin".into(),
        spec: "{\"model\":\"m\"}".into(),
        catch_up: CatchUp::Last,
        overlap,
        next_ms: Some(T0 + MINUTE_MS),
        created_ms: T0,
    }
}

async fn add<H: Harness>(h: &H, new: NewSchedule) -> ScheduleId {
    let id = new.id;
    assert_eq!(h.store().add_schedule(new).await.unwrap(), Scheduled::Added(id));
    id
}

/// The firing of one minute by the clock.
fn fire(schedule: ScheduleId, minute: i64, what: FiringKind) -> Fire {
    let nominal_ms = T0 + minute * MINUTE_MS;
    Fire {
        schedule,
        expected_next_ms: Some(nominal_ms),
        next_ms: Some(nominal_ms + MINUTE_MS),
        firings: vec![Firing { nominal_ms, what }],
        now_ms: nominal_ms + 7,
    }
}

fn job_of(model: &str) -> FiringKind {
    FiringKind::Submit(Box::new(job(model)))
}

async fn fired<H: Harness>(h: &H, fire: Fire) -> Vec<RunRow> {
    match h.store().fire(fire).await.unwrap() {
        Fired::Done(runs) => runs,
        Fired::Void => panic!("nothing was fired"),
    }
}

async fn read<H: Harness>(h: &H, id: ScheduleId) -> ScheduleRow {
    h.store().schedules().await.unwrap().into_iter().find(|row| row.id == id).unwrap()
}

pub async fn a_name_is_one_schedule<H: Harness>(h: &H) {
    let new = schedule("nightly", Overlap::Queue);
    let id = add(h, new.clone()).await;
    let again = NewSchedule { id: ScheduleId::fresh(), next_ms: Some(T0 + 9), created_ms: T0 + 5, ..new.clone() };
    assert_eq!(h.store().add_schedule(again.clone()).await.unwrap(), Scheduled::Unchanged(id));
    let changes: [fn(&mut NewSchedule); 5] = [
        |new| new.cron = "0 * * * *".into(),
        |new| new.zone = "UTC".into(),
        |new| new.spec = "{}".into(),
        |new| new.catch_up = CatchUp::All,
        |new| new.overlap = Overlap::Skip,
    ];
    for change in changes {
        let mut other = again.clone();
        change(&mut other);
        assert_eq!(h.store().add_schedule(other).await.unwrap(), Scheduled::Conflict(id));
    }
    let other = add(h, schedule("early", Overlap::Skip)).await;
    let rows = h.store().schedules().await.unwrap();
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [other, id], "by name");
    let expected = ScheduleRow {
        id,
        name: "nightly".into(),
        cron: new.cron,
        zone: new.zone,
        spec: new.spec,
        catch_up: CatchUp::Last,
        overlap: Overlap::Queue,
        paused: None,
        next_ms: Some(T0 + MINUTE_MS),
        created_ms: T0,
        runs: vec![],
    };
    assert_eq!(rows[1], expected);
    let run = fired(h, fire(id, 1, job_of("m"))).await.remove(0);
    assert!(h.store().remove_schedule(id).await.unwrap());
    assert!(!h.store().remove_schedule(id).await.unwrap());
    assert_eq!(get(h, run.job.unwrap()).await.state, JobState::Queued, "its jobs stay");
    assert_eq!(h.store().fire(fire(id, 2, job_of("m"))).await.unwrap(), Fired::Void);
    add(h, schedule("nightly", Overlap::Skip)).await;
}

pub async fn what_is_due_is_due_in_order_and_what_is_paused_is_not<H: Harness>(h: &H) {
    let mut ids = Vec::new();
    for (name, next_ms) in [("a", Some(T0 + 300)), ("b", Some(T0 + 100)), ("c", Some(T0 + 200)), ("d", None)] {
        ids.push(add(h, NewSchedule { next_ms, ..schedule(name, Overlap::Queue) }).await);
    }
    let due = async |now_ms, limit| {
        let rows = h.store().due_schedules(now_ms, limit).await.unwrap();
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(h.store().next_due_ms(T0).await.unwrap(), Some(T0 + 100));
    assert!(due(T0 + 99, 10).await.is_empty());
    assert_eq!(due(T0 + 300, 10).await, [ids[1], ids[2], ids[0]]);
    assert_eq!(due(T0 + 300, 2).await, [ids[1], ids[2]]);
    // What has passed is for who fires; others wake for what comes.
    assert_eq!(h.store().next_due_ms(T0 + 100).await.unwrap(), Some(T0 + 200));
    assert!(h.store().pause_schedule(ids[1], Some(pause()), None).await.unwrap());
    let other = Pause { by: "another".into(), ..pause() };
    assert!(h.store().pause_schedule(ids[1], Some(other), None).await.unwrap());
    assert!(!h.store().pause_schedule(ScheduleId::fresh(), Some(pause()), None).await.unwrap());
    assert_eq!(read(h, ids[1]).await.paused, Some(pause()), "the first stands");
    assert_eq!(due(T0 + 300, 10).await, [ids[2], ids[0]]);
    assert_eq!(h.store().next_due_ms(T0).await.unwrap(), Some(T0 + 200));
    let expected = Fire { expected_next_ms: Some(T0 + 100), ..fire(ids[1], 1, job_of("m")) };
    assert_eq!(h.store().fire(expected).await.unwrap(), Fired::Void, "it is paused");
    assert!(h.store().pause_schedule(ids[1], None, Some(T0 + 250)).await.unwrap());
    assert_eq!((read(h, ids[1]).await.paused, read(h, ids[1]).await.next_ms), (None, Some(T0 + 250)));
    assert_eq!(due(T0 + 300, 10).await, [ids[2], ids[1], ids[0]]);
    // One that runs keeps its next instant, whoever lets it go on.
    assert!(h.store().pause_schedule(ids[2], None, Some(T0 + 900)).await.unwrap());
    assert_eq!(read(h, ids[2]).await.next_ms, Some(T0 + 200));
    assert!(!h.store().pause_schedule(ScheduleId::fresh(), None, None).await.unwrap());
}

pub async fn what_a_clock_that_was_ahead_passed_over_is_taken_back<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let id = add(h, schedule("s", Overlap::Queue)).await;
    let done = fired(h, fire(id, 1, job_of("m"))).await[0].job;
    let ahead = Firing { nominal_ms: T0 + 3 * MINUTE_MS, what: job_of("m") };
    let missed = Firing { nominal_ms: T0 + 2 * MINUTE_MS, what: FiringKind::Missed };
    let next_ms = Some(T0 + 4 * MINUTE_MS);
    let leap = Fire { firings: vec![missed, ahead], next_ms, ..fire(id, 2, FiringKind::Missed) };
    let kept = fired(h, leap).await[1].job;
    let back = |expected_ms| Fire {
        expected_next_ms: Some(expected_ms),
        next_ms: Some(T0 + 2 * MINUTE_MS),
        firings: Vec::new(),
        ..fire(id, 1, FiringKind::Missed)
    };
    assert_eq!(h.store().fire(back(T0 + 9 * MINUTE_MS)).await.unwrap(), Fired::Void);
    assert!(fired(h, back(T0 + 4 * MINUTE_MS)).await.is_empty());
    let row = read(h, id).await;
    let jobs: Vec<_> = row.runs.iter().map(|run| run.job).collect();
    assert_eq!((row.next_ms, jobs), (Some(T0 + 2 * MINUTE_MS), vec![kept, done]));
    // What was passed over fires at its time; what has its job keeps it.
    assert_eq!(fired(h, fire(id, 2, job_of("m"))).await[0].outcome, "submitted");
    assert_eq!(fired(h, fire(id, 3, job_of("m"))).await[0].job, kept);
}

pub async fn an_instant_is_fired_once_whoever_tries<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let id = add(h, schedule("s", Overlap::Queue)).await;
    let calls = (0..16).map(|_| h.store().fire(fire(id, 1, job_of("m"))));
    let answers: Vec<Fired> =
        futures::future::join_all(calls).await.into_iter().map(std::result::Result::unwrap).collect();
    let runs: Vec<&RunRow> =
        answers.iter().filter_map(|fired| if let Fired::Done(runs) = fired { runs.first() } else { None }).collect();
    let [run] = runs[..] else { panic!("{answers:?}") };
    let expected = RunRow {
        nominal_ms: T0 + MINUTE_MS,
        fired_ms: T0 + MINUTE_MS + 7,
        outcome: "submitted".into(),
        job: run.job,
        job_state: Some("queued".into()),
        error: None,
    };
    assert_eq!(*run, expected);
    assert_eq!(read(h, id).await.next_ms, Some(T0 + 2 * MINUTE_MS));
    assert_eq!(h.store().overview(T0).await.unwrap().ready, 1);
    let now_ms = T0 + MINUTE_MS;
    let w = worker(h, now_ms).await;
    let turn = claim(h, w, 9, now_ms).await.remove(0);
    assert_eq!(Some(turn.job_id), run.job);
    assert_eq!(read(h, id).await.runs[0].job_state.as_deref(), Some("running"));
    complete_one(h, success(w, &turn, now_ms)).await;
    assert_eq!(read(h, id).await.runs[0].job_state.as_deref(), Some("succeeded"));
    assert_eq!(h.store().delete(vec![turn.job_id]).await.unwrap(), [DeleteOutcome::Deleted]);
    let runs = read(h, id).await.runs;
    assert_eq!((runs[0].job, runs[0].job_state.clone()), (Some(turn.job_id), None), "the run remembers its job");
}

pub async fn instants_are_run_in_order_each_with_what_came_of_it<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    for (name, overlap, second) in [("skip", Overlap::Skip, "skipped_overlap"), ("queue", Overlap::Queue, "submitted")]
    {
        let id = add(h, schedule(name, overlap)).await;
        let what = [
            FiringKind::Missed,
            job_of("m"),
            job_of("m"),
            FiringKind::Refused("the model is gone".into()),
            job_of("m"),
        ];
        let firings: Vec<Firing> =
            (1..).zip(what).map(|(n, what)| Firing { nominal_ms: T0 + n * MINUTE_MS, what }).collect();
        let all = Fire {
            schedule: id,
            expected_next_ms: Some(T0 + MINUTE_MS),
            next_ms: None,
            firings,
            now_ms: T0 + 9 * MINUTE_MS,
        };
        let runs = fired(h, all).await;
        let outcomes: Vec<&str> = runs.iter().map(|run| run.outcome.as_str()).collect();
        assert_eq!(outcomes, ["skipped_missed", "submitted", second, "refused", second]);
        assert_eq!(runs[3].error.as_deref(), Some("the model is gone"));
        assert!(runs.iter().all(|run| run.job.is_some() == (run.outcome == "submitted")));
        let row = read(h, id).await;
        assert_eq!(row.next_ms, None, "its expression names no further one");
        assert_eq!(row.runs, runs.into_iter().rev().collect::<Vec<_>>(), "newest first");
    }
    // Once its job has ended, the next one goes.
    let id = add(h, schedule("again", Overlap::Skip)).await;
    let first = fired(h, fire(id, 1, job_of("m"))).await.remove(0).job.unwrap();
    assert_eq!(fired(h, fire(id, 2, job_of("m"))).await[0].outcome, "skipped_overlap");
    // A paused job lives as well.
    steer(h, &[first], Steer::Pause(pause()), T0).await;
    assert_eq!(fired(h, fire(id, 3, job_of("m"))).await[0].outcome, "skipped_overlap");
    h.store().cancel(vec![first], T0).await.unwrap();
    assert_eq!(fired(h, fire(id, 4, job_of("m"))).await[0].outcome, "submitted");
}

pub async fn a_run_by_hand_moves_nothing_and_takes_its_instant<H: Harness>(h: &H) {
    let id = add(h, schedule("s", Overlap::Queue)).await;
    h.store().pause_schedule(id, Some(pause()), None).await.unwrap();
    let by_hand = |nominal_ms, what| Fire {
        schedule: id,
        expected_next_ms: None,
        next_ms: Some(T0 + 999 * MINUTE_MS),
        firings: vec![Firing { nominal_ms, what }],
        now_ms: nominal_ms,
    };
    let run = fired(h, by_hand(T0 + 5, job_of("m"))).await.remove(0);
    assert_eq!((run.outcome.as_str(), run.nominal_ms, run.job_state.as_deref()), ("by_hand", T0 + 5, Some("queued")));
    let row = read(h, id).await;
    assert_eq!((row.next_ms, row.paused, row.runs.len()), (Some(T0 + MINUTE_MS), Some(pause()), 1));
    h.store().pause_schedule(id, None, Some(T0 + MINUTE_MS)).await.unwrap();
    // In the very millisecond of a nominal instant: the instant has its run, and the schedule goes on.
    let early = fired(h, by_hand(T0 + MINUTE_MS, job_of("m"))).await;
    let nominal = fired(h, fire(id, 1, job_of("m"))).await;
    assert_eq!(early, nominal);
    assert_eq!(fired(h, by_hand(T0 + MINUTE_MS, job_of("m"))).await, early);
    assert_eq!(read(h, id).await.next_ms, Some(T0 + 2 * MINUTE_MS));
    assert_eq!(h.store().overview(T0).await.unwrap().ready, 2);
    let nobody = Fire { schedule: ScheduleId::fresh(), ..by_hand(T0, job_of("m")) };
    assert_eq!(h.store().fire(nobody).await.unwrap(), Fired::Void);
}

pub async fn a_fired_job_goes_in_as_any_other<H: Harness>(h: &H) {
    let keyed = |digest: &str| {
        let new = NewJob { idempotency_key: Some("k".into()), digest: digest.into(), ..job("m") };
        (new.id, FiringKind::Submit(Box::new(new)))
    };
    let id = add(h, schedule("s", Overlap::Queue)).await;
    let (first, what) = keyed("1");
    assert_eq!(fired(h, fire(id, 1, what)).await[0].job, Some(first));
    let run = fired(h, fire(id, 2, keyed("1").1)).await.remove(0);
    assert_eq!((run.outcome.as_str(), run.job), ("submitted", Some(first)), "the same key is the same job");
    let run = fired(h, fire(id, 3, keyed("2").1)).await.remove(0);
    assert_eq!((run.outcome.as_str(), run.job), ("refused", None));
    assert!(run.error.unwrap().contains(&first.to_string()));
    let broken = FiringKind::Submit(Box::new(NewJob { entry: "a\0b".into(), ..job("m") }));
    assert_eq!(fired(h, fire(id, 4, broken)).await[0].outcome, "refused");
    assert_eq!(read(h, id).await.next_ms, Some(T0 + 5 * MINUTE_MS));
    assert_eq!(h.store().overview(T0).await.unwrap().ready, 1);
}

pub async fn the_last_runs_are_kept<H: Harness>(h: &H) {
    let id = add(h, schedule("s", Overlap::Queue)).await;
    let other = add(h, schedule("other", Overlap::Queue)).await;
    fired(h, fire(other, 1, FiringKind::Missed)).await;
    let many = |from: i64, to: i64| Fire {
        firings: (from..to).map(|n| Firing { nominal_ms: T0 + n * MINUTE_MS, what: FiringKind::Missed }).collect(),
        next_ms: Some(T0 + to * MINUTE_MS),
        ..fire(id, from, FiringKind::Missed)
    };
    fired(h, many(1, 100)).await;
    assert_eq!(fired(h, many(100, 130)).await.len(), 30);
    let runs = read(h, id).await.runs;
    let expected: Vec<i64> = (110..130).rev().map(|n| T0 + n * MINUTE_MS).collect();
    assert_eq!(runs.iter().map(|run| run.nominal_ms).collect::<Vec<_>>(), expected);
    assert_eq!(read(h, other).await.runs.len(), 1);
    // A run that is forgotten may be run again; one that is kept may not.
    let late = |n: i64| Fire {
        expected_next_ms: None,
        firings: vec![Firing { nominal_ms: T0 + n * MINUTE_MS, what: FiringKind::Refused("late".into()) }],
        ..many(1, 2)
    };
    assert_eq!(fired(h, late(30)).await[0].outcome, "skipped_missed");
    assert_eq!(fired(h, late(29)).await[0].outcome, "refused");
}
