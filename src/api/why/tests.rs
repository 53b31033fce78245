//! Every pattern once, and that any standing is explained in one line.

use super::*;
use crate::store::{Fence, HoldRow, InHandStanding, LaneKey, LastFailure, Pause, ScopeKey, ScopeStanding, WorkerId};
use proptest::prelude::*;

const NOW_MS: i64 = 1_796_047_385_000;
const SOON: i64 = NOW_MS + 252_000;

fn id() -> JobId {
    "0199c2f4-1b2c-7d3e-8f40-516273849c2e".parse().unwrap()
}

fn scope(model: &str) -> ScopeKey {
    ScopeKey { provider: "api.example.com".into(), account: "main".into(), model: model.into() }
}

fn job() -> JobRow {
    JobRow {
        id: id(),
        state: JobState::Queued,
        deferred: false,
        lane: LaneKey { queue: "nightly".into(), tenant: String::new(), scope: scope("m") },
        entry: "openai".into(),
        priority: 0,
        labels: Vec::new(),
        spec: "{}".into(),
        result: None,
        error: None,
        created_ms: NOW_MS - 38_000,
        finished_ms: None,
        deadline_ms: None,
        retry_of: None,
        seq: Some(1),
        due_ms: None,
        executions: Some(0),
        deferrals: Some(0),
        wait_until_ms: None,
        hold: None,
        paused: None,
        queue_paused: None,
        schedule: None,
    }
}

fn hold(model: &str, until_ms: Option<i64>) -> HoldRow {
    HoldRow {
        id: HoldId(uuid::Uuid::nil()),
        scope: scope(model),
        cause: "rate_limit".into(),
        kind: None,
        opened_ms: NOW_MS - 3_185_000,
        until_ms,
        source: "retry-after".into(),
        raw: Some("52".into()),
        refusal: Some(SendKey { job_id: id(), fence: Fence(3), n: 2 }),
        refusal_status: Some(429),
        extended: 0,
        barren: 0,
        probe: None,
        ended_ms: None,
        end: None,
        waiting: 8_310,
    }
}

fn pause(by: &str, reason: Option<&str>) -> Pause {
    Pause { since_ms: NOW_MS - 10_985_000, by: by.into(), reason: reason.map(str::to_owned) }
}

fn standing(job: JobRow) -> Standing {
    Standing {
        job,
        ahead: 12,
        ahead_in_scope: 41,
        behind_hold: 8_310,
        claims_last_minute: 180,
        model: ScopeStanding::default(),
        account: ScopeStanding::default(),
        workers: 1,
        worker_seen_ms: Some(NOW_MS - 540_000),
        last_failure: None,
        fails_with: None,
        in_hand: None,
    }
}

fn refused() -> LastFailure {
    LastFailure {
        ended_ms: NOW_MS - 20_000,
        outcome: "requeued".into(),
        class: Some("unavailable".into()),
        cause: Some("provider_error".into()),
        code: None,
        http_status: Some(503),
    }
}

fn held(hold: HoldRow) -> JobRow {
    JobRow { deferred: true, hold: Some(hold), ..job() }
}

fn running(wait_until_ms: Option<i64>) -> JobRow {
    JobRow { state: JobState::Running, wait_until_ms, ..job() }
}

fn in_hand(replaced: u32) -> InHandStanding {
    InHandStanding {
        claimed_ms: NOW_MS - 41_000,
        replaced,
        wait_source: Some("retry-after".into()),
        wait_raw: Some("7".into()),
        wait_ms: Some(7_000),
        outcome: Some("refused".into()),
        cancel_asked: false,
    }
}

fn ended(state: JobState, error: Option<&str>) -> JobRow {
    JobRow { state, seq: None, finished_ms: Some(NOW_MS - 18_000), error: error.map(str::to_owned), ..job() }
}

fn full(in_flight: u32, limit: u32, max: u32) -> ScopeStanding {
    ScopeStanding { in_flight, limit: Some(limit), max_in_flight: Some(max), oldest_ms: Some(NOW_MS - 41_000) }
}

/// A hold closed by hand, and what says so.
fn by_hand(until_ms: Option<i64>) -> (HoldRow, HoldEventRow) {
    let hold = HoldRow { source: "operator".into(), raw: None, refusal: None, ..hold("m", until_ms) };
    let event = HoldEventRow {
        hold: hold.id,
        at_ms: hold.opened_ms,
        event: "closed_by_hand".into(),
        until_ms,
        job: None,
        by: Some("ops-1".into()),
        reason: Some("their maintenance".into()),
    };
    (hold, event)
}

#[test]
fn every_pattern_says_who_decides_until_when_read_from_where_and_what_then() {
    let text = |standing: Standing| {
        let policy = Some(Policy::tiered());
        let explained = explain(&standing, &Aside { policy, ..Aside::default() }, NOW_MS);
        format!("{} [{}]: {}", explained.reason, explained.who.unwrap_or_default(), explained.text)
    };
    let aside = |standing: Standing, aside: Aside| {
        let explained = explain(&standing, &aside, NOW_MS);
        format!("{} [{}]: {}", explained.reason, explained.who.unwrap_or_default(), explained.text)
    };
    let (hand, event) = by_hand(Some(SOON));
    let (endless, endless_event) = by_hand(None);
    let told = |event: HoldEventRow| Aside { hold_events: vec![event], ..Aside::default() };
    let counted = Aside { executions: 3, sends: 7, ..Aside::default() };
    let error = r#"{"code":"model_incomplete","message":"model_error: model returned HTTP 503; attempts=3","class":"unavailable","retryable":true}"#;
    let cancel = r#"{"code":"model_cancelled","message":"model_error: cancelled","class":"provider_error","retryable":false,"phase":"waiting"}"#;
    let said = [
        ("1", text(standing(job()))),
        ("1, the next", text(Standing { ahead: 0, claims_last_minute: 7, ..standing(job()) })),
        ("1, idle", text(Standing { ahead: 1, claims_last_minute: 0, ..standing(job()) })),
        ("3", text(Standing { model: full(32, 32, 32), ..standing(job()) })),
        ("3, of the account", text(Standing { account: full(5, 4, 4), ..standing(job()) })),
        ("4", text(standing(held(hold("m", Some(SOON)))))),
        ("4, the next", text(Standing { ahead_in_scope: 0, ..standing(held(hold("m", Some(SOON)))) })),
        ("4, our curve", text(standing(held(HoldRow { source: "curve".into(), raw: None, ..hold("m", Some(SOON)) })))),
        ("4, its send is gone", text(standing(held(HoldRow { refusal_status: None, ..hold("m", Some(SOON)) })))),
        ("4, by hand", aside(standing(held(hand)), told(event))),
        (
            "5",
            text(standing(held(HoldRow {
                source: "/error/resets_at".into(),
                raw: None,
                ..hold("", Some(NOW_MS + 67_920_000))
            }))),
        ),
        ("6", text(standing(held(hold("", None))))),
        ("6, by hand", aside(standing(held(endless)), told(endless_event))),
        ("7", text(standing(held(HoldRow { probe: Some(id()), ..hold("m", Some(NOW_MS - 120)) })))),
        ("7, due", text(standing(held(hold("m", Some(NOW_MS - 120)))))),
        ("8", text(Standing { model: full(3, 3, 8), ..standing(job()) })),
        (
            "9",
            text(Standing {
                last_failure: Some(refused()),
                ..standing(JobRow { executions: Some(3), due_ms: Some(SOON), ..job() })
            }),
        ),
        (
            "9, of a policy that is not here",
            aside(
                Standing {
                    last_failure: Some(refused()),
                    ..standing(JobRow { executions: Some(3), due_ms: Some(SOON), ..job() })
                },
                Aside::default(),
            ),
        ),
        (
            "9, drained",
            text(Standing {
                last_failure: Some(LastFailure {
                    http_status: None,
                    class: None,
                    cause: None,
                    code: Some("worker_drained".into()),
                    ..refused()
                }),
                ..standing(JobRow { due_ms: Some(SOON), ..job() })
            }),
        ),
        ("9, cut", text(standing(JobRow { seq: Some(2), due_ms: Some(SOON), ..job() }))),
        ("10", text(Standing { in_hand: Some(in_hand(2)), ..standing(running(Some(NOW_MS + 7_000))) })),
        (
            "10, our curve",
            text(Standing {
                in_hand: Some(InHandStanding { wait_source: Some("curve".into()), wait_raw: None, ..in_hand(2) }),
                ..standing(running(Some(NOW_MS + 7_000)))
            }),
        ),
        (
            "10, a fault",
            text(Standing {
                in_hand: Some(InHandStanding {
                    wait_source: Some("curve".into()),
                    wait_raw: None,
                    outcome: Some("failed".into()),
                    ..in_hand(2)
                }),
                ..standing(running(Some(NOW_MS + 7_000)))
            }),
        ),
        ("10, over", text(Standing { in_hand: Some(in_hand(2)), ..standing(running(Some(NOW_MS - 40))) })),
        ("10, on the wire", text(Standing { in_hand: Some(in_hand(0)), ..standing(running(None)) })),
        (
            "10, cancelling",
            text(Standing {
                in_hand: Some(InHandStanding { cancel_asked: true, ..in_hand(0) }),
                ..standing(running(None))
            }),
        ),
        ("11", text(standing(JobRow { due_ms: Some(NOW_MS + 144_000_000), ..job() }))),
        ("13", text(standing(JobRow { queue_paused: Some(pause("ops-1", None)), ..job() }))),
        ("13, the job", text(standing(JobRow { paused: Some(pause("api", Some("wait for\nthe data"))), ..job() }))),
        ("14", text(Standing { workers: 0, ..standing(job()) })),
        ("14, never seen", text(Standing { workers: 0, worker_seen_ms: None, ..standing(job()) })),
        ("15", aside(standing(job()), Aside { missing_key: Some("OPENAI_API_KEY".into()), ..Aside::default() })),
        ("15, nowhere", aside(standing(job()), Aside { no_provider: true, ..Aside::default() })),
        ("16", text(standing(JobRow { seq: None, due_ms: Some(NOW_MS - 245_000), ..job() }))),
        ("16, newer", text(standing(JobRow { state: JobState::Unknown, ..job() }))),
        (
            "several",
            text(Standing {
                workers: 0,
                ..standing(JobRow {
                    due_ms: Some(SOON + 1_000),
                    queue_paused: Some(pause("command line", None)),
                    ..held(hold("m", Some(SOON)))
                })
            }),
        ),
        ("deadline", text(standing(JobRow { deadline_ms: Some(SOON - 1_000), ..held(hold("m", Some(SOON))) }))),
        (
            "deadline, met",
            text(Standing {
                fails_with: Some(refused()),
                ..standing(JobRow { deadline_ms: Some(SOON), queue_paused: Some(pause("ops-1", None)), ..job() })
            }),
        ),
        ("deadline, later", text(standing(JobRow { deadline_ms: Some(SOON + 1_000), ..held(hold("m", Some(SOON))) }))),
        ("succeeded", aside(standing(ended(JobState::Succeeded, None)), counted.clone())),
        ("failed", aside(standing(ended(JobState::Failed, Some(error))), Aside { retried_by: Some(id()), ..counted })),
        (
            "failed, told too late",
            aside(standing(ended(JobState::Failed, Some(error))), Aside { unanswered: 1, ..Aside::default() }),
        ),
        ("failed, pruned", text(standing(ended(JobState::Failed, Some(error))))),
        ("cancelled", text(standing(ended(JobState::Cancelled, Some(cancel))))),
    ];
    let said: Vec<String> = said.iter().map(|(pattern, text)| format!("{pattern:<32} {text}")).collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn a_row_of_a_list_says_the_same_with_less() {
    let rows = [
        job(),
        held(hold("m", Some(SOON))),
        held(hold("", Some(SOON))),
        held(hold("", None)),
        held(HoldRow { source: "curve".into(), ..hold("m", Some(SOON)) }),
        held(hold("m", Some(NOW_MS - 120))),
        JobRow { executions: Some(3), due_ms: Some(SOON), ..job() },
        JobRow { due_ms: Some(SOON), ..job() },
        JobRow { queue_paused: Some(pause("ops-1", None)), ..job() },
        running(Some(NOW_MS + 7_000)),
        JobRow { state: JobState::RequiresAction, ..job() },
    ];
    let said: Vec<String> = rows
        .iter()
        .map(|row| format!("{}\n  {}", why(row, NOW_MS).unwrap().text, in_brief(row, NOW_MS).unwrap()))
        .collect();
    insta::assert_snapshot!(said.join("\n"));
    for row in [running(None), ended(JobState::Succeeded, None), ended(JobState::Failed, None)] {
        assert_eq!(why(&row, NOW_MS), None);
    }
}

#[test]
fn a_job_that_nobody_takes_says_so() {
    let worker = |queues: &[&str]| WorkerRow {
        id: WorkerId(uuid::Uuid::nil()),
        queues: queues.iter().map(|queue| (*queue).to_owned()).collect(),
        started_ms: 0,
        heartbeat_ms: 0,
        lease_ms: 1,
        concurrency: 1,
    };
    let among = |workers: &[WorkerRow]| why_among(&job(), workers, NOW_MS).unwrap().reason;
    assert_eq!([among(&[]), among(&[worker(&["other"])])], ["no_worker", "no_worker"]);
    assert_eq!([among(&[worker(&["nightly"])]), among(&[worker(&[])])], ["line", "line"]);
}

fn instants() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![
        Just(None),
        Just(Some(i64::MAX)),
        Just(Some(i64::MIN)),
        (-400_000_000i64..400_000_000).prop_map(|ms| Some(NOW_MS + ms))
    ]
}

prop_compose! {
    fn any_hold()(
        until_ms in instants(), model in prop::bool::ANY, probe in prop::bool::ANY, refused in prop::bool::ANY,
        source in prop::sample::select(vec!["curve", "retry-after", "/error/resets_at", "text", "operator"]), raw in any::<Option<String>>(),
    ) -> HoldRow {
        let hold = hold(if model { "m" } else { "" }, until_ms);
        HoldRow { source: source.to_owned(), raw, probe: probe.then(id), refusal: hold.refusal.filter(|_| refused), ..hold }
    }
}

prop_compose! {
    fn any_job()(
        state in prop::sample::select(vec![
            JobState::Queued, JobState::Queued, JobState::Queued, JobState::Running, JobState::RequiresAction, JobState::Succeeded,
            JobState::Failed, JobState::Cancelled, JobState::Unknown,
        ]),
        due_ms in instants(), wait_until_ms in instants(), deadline_ms in instants(), finished_ms in instants(),
        hold in prop::option::of(any_hold()), error in any::<Option<String>>(), by in any::<String>(), reason in any::<Option<String>>(),
        pauses in (prop::bool::ANY, prop::bool::ANY), counts in (any::<Option<u32>>(), any::<Option<u32>>(), any::<Option<u32>>()),
    ) -> JobRow {
        let pause = Pause { since_ms: NOW_MS, by, reason };
        JobRow {
            state, due_ms, wait_until_ms, deadline_ms, finished_ms, hold, error,
            paused: pauses.0.then(|| pause.clone()),
            queue_paused: pauses.1.then_some(pause),
            seq: counts.0,
            executions: counts.1,
            deferrals: counts.2,
            ..job()
        }
    }
}

prop_compose! {
    fn any_standing()(
        job in any_job(), places in any::<(u32, u32, u32, u32, u32)>(), flow in any::<(u32, Option<u32>, Option<u32>)>(),
        oldest_ms in instants(), seen_ms in instants(), failed in prop::bool::ANY, hand in prop::option::of(any::<(u32, Option<String>, Option<i64>, bool)>()),
    ) -> Standing {
        let flow = ScopeStanding { in_flight: flow.0, limit: flow.1, max_in_flight: flow.2, oldest_ms };
        Standing {
            ahead: places.0,
            ahead_in_scope: places.1,
            behind_hold: places.2,
            claims_last_minute: places.3,
            workers: places.4 % 2,
            model: flow.clone(),
            account: flow,
            worker_seen_ms: seen_ms,
            last_failure: failed.then(refused),
            fails_with: failed.then(refused),
            in_hand: hand.map(|(replaced, wait_raw, wait_ms, cancel_asked)| InHandStanding {
                replaced, wait_raw, wait_ms, cancel_asked, ..in_hand(0)
            }),
            ..standing(job)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_there_is_is_explained_in_one_line_that_names_the_instant(standing in any_standing()) {
        let said = explain(&standing, &Aside::default(), NOW_MS);
        prop_assert!(!said.text.trim().is_empty() && !said.next.is_empty() && !said.reason.is_empty());
        prop_assert!(!said.text.chars().any(|letter| letter.is_control() || letter == '\u{2028}'), "{}", said.text);
        if let Some(until_ms) = said.until_ms {
            prop_assert!(said.text.contains(&words::instant(until_ms, NOW_MS)), "{}", said.text);
        }
        for why in &said.also {
            prop_assert!(said.text.contains(&why.text), "{}", said.text);
            // The one that ends last leads.
            if let (Some(lead), Some(other)) = (said.until_ms, why.until_ms) {
                prop_assert!(lead >= other, "{}", said.text);
            }
        }
        // A row of a list has the same sentence, or a shorter one of the same kind.
        if let Some(short) = why(&standing.job, NOW_MS) {
            prop_assert!(!short.text.trim().is_empty());
            prop_assert!(in_brief(&standing.job, NOW_MS).is_some_and(|cell| !cell.is_empty()));
        }
    }
}
