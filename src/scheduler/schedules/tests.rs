use super::*;
use crate::agent::Entry;
use crate::store::{Overlap, ScheduleId, ScopeKey};
use serde_json::{Value, json};

/// Monday 2026-11-30T09:00:00Z.
const NOW_MS: i64 = 1_796_029_200_000;
const MINUTE_MS: i64 = 60_000;

fn directory() -> Directory {
    let account = ScopeKey { provider: "p".into(), account: "a".into(), model: String::new() };
    let entry = Entry { account, adapter: "openai".into(), missing_key: None, policy: "tiered".into() };
    Directory { entries: [("e".to_owned(), entry)].into(), ..Directory::default() }
}

fn body(members: &Value) -> String {
    let mut body = json!({"name": "nightly", "cron": "30 2 * * *", "job": {"model": "m", "input": "x"}});
    for (name, value) in members.as_object().unwrap() {
        body[name] = value.clone();
    }
    body.to_string()
}

#[test]
fn a_schedule_is_read_with_its_defaults_and_its_job_byte_for_byte() {
    let text = r#"{"name":"nightly","cron":"30 2 * * MON-FRI", "job" : {"model":"m",  "input":"x", "deadline":"2h"} }"#;
    let new = accept(text, &directory(), NOW_MS).unwrap();
    assert_eq!((new.name.as_str(), new.cron.as_str(), new.zone.as_str()), ("nightly", "30 2 * * MON-FRI", "UTC"));
    assert_eq!(new.spec, r#"{"model":"m",  "input":"x", "deadline":"2h"}"#);
    assert_eq!((new.catch_up, new.overlap, new.created_ms), (CatchUp::Last, Overlap::Skip, NOW_MS));
    assert_eq!(new.next_ms, Some(NOW_MS + 17 * 60 * MINUTE_MS + 30 * MINUTE_MS));
    let new =
        accept(&body(&json!({"zone": "asia/kolkata", "catch_up": "all", "overlap": "queue"})), &directory(), NOW_MS);
    let new = new.unwrap();
    assert_eq!((new.zone.as_str(), new.catch_up, new.overlap), ("Asia/Kolkata", CatchUp::All, Overlap::Queue));
    assert_eq!(new.next_ms, Some(NOW_MS + 12 * 60 * MINUTE_MS));
}

#[test]
fn what_is_wrong_with_a_schedule_is_named_by_its_place() {
    for (members, expected) in [
        (json!({"name": null}), "/name: is missing: name the schedule"),
        (json!({"name": "a b"}), "/name: may have letters, digits and `_.-` only"),
        (json!({"cron": null}), "/cron: is missing: say when"),
        (json!({"cron": "0 25 * * *"}), "/cron: is not understood in its hour field: `25`"),
        (json!({"zone": "Mars"}), "/zone: is not known; name it as the IANA database does"),
        (json!({"catch_up": "some"}), "/catch_up: must be one of: none, last, all"),
        (json!({"overlap": "wait"}), "/overlap: must be one of: skip, queue"),
        (json!({"jobs": []}), "/jobs: is unknown; known here: name, cron, zone, job, catch_up, overlap"),
        (json!({"job": null}), "/job: is missing"),
        (json!({"job": "x"}), "/job: must be an object"),
        (json!({"job": {"model": "m"}}), "/job/input: is missing"),
        (json!({"job": {"model": "m", "input": "x", "provider": "gone"}}), "/job/provider: `gone` is not configured"),
        (json!({"job": {"model": "m", "input": "x", "idempotency_key": "k"}}), "/job/idempotency_key: would make one"),
        (json!({"job": {"model": "m", "input": "x", "not_before": "5m"}}), "/job/not_before: the schedule itself"),
        (
            json!({"job": {"model": "m", "input": "x", "deadline": "2030-01-01T00:00:00Z"}}),
            "/job/deadline: must be a duration",
        ),
    ] {
        let said = accept(&body(&members), &directory(), NOW_MS).unwrap_err().to_string();
        assert!(said.starts_with(expected), "{members}: {said}");
    }
    assert!(accept("{", &directory(), NOW_MS).unwrap_err().problem.contains("no valid JSON"));
}

fn row(cron: &str, catch_up: CatchUp, next_ms: i64) -> ScheduleRow {
    ScheduleRow {
        id: ScheduleId::fresh(),
        name: "s".into(),
        cron: cron.into(),
        zone: "UTC".into(),
        spec: r#"{"model":"m","input":"x","labels":{"k":"v"},"deadline":"1h"}"#.into(),
        catch_up,
        overlap: Overlap::Skip,
        paused: None,
        next_ms: Some(next_ms),
        created_ms: 0,
        runs: Vec::new(),
    }
}

/// What is fired at which instants, in minutes before now.
fn fired(row: &ScheduleRow) -> Vec<(i64, &'static str)> {
    let fire = due_now(row, &directory(), NOW_MS).unwrap();
    let what = |firing: &Firing| match &firing.what {
        FiringKind::Submit(_) => "submit",
        FiringKind::Missed => "missed",
        FiringKind::Refused(_) => "refused",
    };
    fire.firings.iter().map(|firing| ((NOW_MS - firing.nominal_ms) / MINUTE_MS, what(firing))).collect()
}

#[test]
fn an_instant_that_is_due_now_fires_whatever_was_missed() {
    let due = row("0 * * * *", CatchUp::None, NOW_MS);
    let fire = due_now(&due, &directory(), NOW_MS + 20).unwrap();
    assert_eq!(
        (fire.expected_next_ms, fire.next_ms, fire.now_ms),
        (Some(NOW_MS), Some(NOW_MS + 60 * MINUTE_MS), NOW_MS + 20)
    );
    let [Firing { nominal_ms: NOW_MS, what: FiringKind::Submit(job) }] = fire.firings.as_slice() else { panic!("one") };
    assert_eq!((job.schedule, job.due_ms, job.created_ms), (Some(due.id), None, NOW_MS + 20));
    assert_eq!((job.deadline_ms, &job.labels), (Some(NOW_MS + 20 + 60 * MINUTE_MS), &vec![("k".into(), "v".into())]));
    assert!(due_now(&row("0 * * * *", CatchUp::All, NOW_MS + 1), &directory(), NOW_MS).is_none());
    for catch_up in [CatchUp::None, CatchUp::Last] {
        assert_eq!(
            fired(&row("0 * * * *", catch_up, NOW_MS - 120 * MINUTE_MS)),
            [(120, "missed"), (60, "missed"), (0, "submit")]
        );
    }
}

#[test]
fn missed_instants_are_caught_up_with_as_the_schedule_says() {
    let missed = |catch_up| fired(&row("30 * * * *", catch_up, NOW_MS - 150 * MINUTE_MS));
    assert_eq!(missed(CatchUp::None), [(150, "missed"), (90, "missed"), (30, "missed")]);
    assert_eq!(missed(CatchUp::Last), [(150, "missed"), (90, "missed"), (30, "submit")]);
    assert_eq!(missed(CatchUp::All), [(150, "submit"), (90, "submit"), (30, "submit")]);
    // Late by no more than the tolerance is not missed.
    assert_eq!(fired(&row("59 8 * * *", CatchUp::None, NOW_MS - MINUTE_MS)), [(1, "submit")]);
    // Each job is one of its own.
    let fire = due_now(&row("30 * * * *", CatchUp::All, NOW_MS - 150 * MINUTE_MS), &directory(), NOW_MS).unwrap();
    let ids: std::collections::HashSet<JobId> = fire
        .firings
        .iter()
        .map(|firing| match &firing.what {
            FiringKind::Submit(job) => job.id,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids.len(), 3);
}

#[test]
fn what_is_too_much_to_catch_up_with_is_passed_over_with_one_row() {
    let every_second = |catch_up, since_ms| fired(&ScheduleRow { ..row("* * * * * *", catch_up, NOW_MS - since_ms) });
    let count = |fired: &[(i64, &str)], what: &str| fired.iter().filter(|(_, did)| *did == what).count();
    let day = every_second(CatchUp::All, 1_440 * MINUTE_MS);
    assert_eq!((count(&day, "submit"), count(&day, "missed")), (MISSED_MOST + 61, 1));
    assert_eq!(day[MISSED_MOST], (1, "missed"), "the latest that was missed");
    let none = every_second(CatchUp::None, 1_440 * MINUTE_MS);
    assert_eq!((count(&none, "submit"), count(&none, "missed")), (61, MISSED_MOST + 1));
    // A year behind and nothing due now: the last one.
    let monthly = fired(&row("*/5 0 1 * *", CatchUp::Last, NOW_MS - 10_000 * 1_440 * MINUTE_MS));
    assert_eq!((monthly.len(), count(&monthly, "submit")), (MISSED_MOST + 1, 1));
    assert_eq!(monthly[MISSED_MOST], (29 * 1_440 + 8 * 60 + 5, "submit"));
    // Large specs are caught up with fewer at once.
    let text = "x".repeat(4 << 20);
    let large = ScheduleRow {
        spec: format!(r#"{{"model":"m","input":"{text}"}}"#),
        ..row("30 * * * *", CatchUp::All, NOW_MS - 6_030 * MINUTE_MS)
    };
    assert_eq!(count(&fired(&large), "submit"), 7);
}

#[test]
fn what_is_not_acceptable_any_more_is_refused_with_its_reason() {
    let gone = ScheduleRow {
        spec: r#"{"model":"m","input":"x","provider":"gone"}"#.into(),
        ..row("30 * * * *", CatchUp::Last, NOW_MS - 90 * MINUTE_MS)
    };
    assert_eq!(fired(&gone), [(90, "missed"), (30, "refused")]);
    let fire = due_now(&gone, &directory(), NOW_MS).unwrap();
    assert_eq!(fire.next_ms, Some(NOW_MS + 30 * MINUTE_MS), "it goes on");
    assert!(matches!(&fire.firings[1].what, FiringKind::Refused(why) if why.contains("`gone` is not configured")));
    assert!(by_hand(&gone, &directory(), NOW_MS).is_err());
    // A calendar that cannot be read fires nothing more.
    let broken = ScheduleRow { zone: "Mars".into(), ..row("@daily", CatchUp::Last, NOW_MS) };
    let fire = due_now(&broken, &directory(), NOW_MS).unwrap();
    assert_eq!((fire.next_ms, fire.firings.len()), (None, 1));
    assert_eq!(next_ms(&broken, NOW_MS), None);
}

#[test]
fn by_hand_fires_now_and_moves_no_instant() {
    let later = row("30 * * * *", CatchUp::Last, NOW_MS + 30 * MINUTE_MS);
    let fire = by_hand(&later, &directory(), NOW_MS).unwrap();
    assert_eq!((fire.expected_next_ms, fire.next_ms, fire.firings[0].nominal_ms), (None, later.next_ms, NOW_MS));
    assert_eq!(next_ms(&later, NOW_MS), later.next_ms);
}
