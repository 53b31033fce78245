//! The audit: failures by every filter, what became of each reset's word, how well sources keep it, what befell holds,
//! and tokens.

use super::*;
use reprieve::failure::{Candidate, SourceKind, Verdict};
use reprieve::store::*;
use std::collections::BTreeMap;

fn one(word: &str) -> Vec<String> {
    vec![word.to_owned()]
}

pub async fn failures_are_found_and_counted_by_what_they_were<H: Harness>(h: &H) {
    wide(h, &["m", "n"]).await;
    let mut new = [jobs("m", 4), jobs("n", 1)].concat();
    new[1].labels = vec![("team".into(), "a".into())];
    new[4].lane.queue = "night".into();
    let ids = submit(h, new).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 5, T0).await;
    let of = |place: usize| turns.iter().find(|turn| turn.job_id == ids[place]).unwrap();
    let failed = |place: usize, at_ms: i64, http: Option<u16>, phase: Option<&str>, code: &str| {
        let mut end = requeued(w, of(place), T0 + at_ms, T0 + 100);
        end.record.http_status = http;
        end.record.phase = phase.map(Into::into);
        end.record.code = Some(code.into());
        if code == "worker_lost" {
            (end.record.cause, end.record.class, end.record.rule) = (None, None, None);
        }
        end
    };
    h.store().set_back(setback(w, of(0), 1, T0 + 1, T0 + 50)).await.unwrap();
    complete_one(h, success(w, of(0), T0 + 60)).await;
    complete_one(h, failed(1, 2, Some(503), None, "model_incomplete")).await;
    complete_one(h, failed(2, 3, None, Some("connect"), "model_incomplete")).await;
    complete_one(h, failed(3, 4, None, None, "worker_lost")).await;
    complete_one(h, failed(4, 5, Some(503), Some("read"), "model_incomplete")).await;
    // One of the jobs succeeds after all.
    let again = claim(h, w, 9, T0 + 100).await;
    let done = again.iter().find(|turn| turn.job_id == ids[1]).unwrap();
    complete_one(h, success(w, done, T0 + 101)).await;

    let all = Query { include_retried: true, limit: 50, ..Query::default() };
    let found = async |query: Query| {
        let items = h.store().failures(query.clone()).await.unwrap().items;
        let total: i64 = h.store().failure_counts(query, By::Model).await.unwrap().iter().map(|row| row.failed).sum();
        assert_eq!(usize::try_from(total).unwrap(), items.len(), "what is counted is what is listed");
        items.iter().map(|row| ids.iter().position(|id| *id == row.job_id).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(found(all.clone()).await, [4, 3, 2, 1, 0]);
    assert_eq!(found(Query { codes: one("worker_lost"), ..all.clone() }).await, [3]);
    assert_eq!(
        found(Query { causes: one("worker_lost"), ..all.clone() }).await,
        [3],
        "what has no cause goes by its code"
    );
    assert_eq!(found(Query { codes: one("model_incomplete"), ..all.clone() }).await, [4, 2, 1, 0]);
    assert_eq!(found(Query { http: vec![503], ..all.clone() }).await, [4, 1]);
    assert_eq!(found(Query { http: vec![503, 429], ..all.clone() }).await, [4, 1, 0]);
    assert_eq!(found(Query { phases: vec!["connect".into(), "read".into()], ..all.clone() }).await, [4, 2]);
    assert_eq!(found(Query { rules: one("r"), ..all.clone() }).await, [4, 2, 1, 0]);
    assert_eq!(found(Query { rules: one("x"), ..all.clone() }).await, [0; 0]);
    assert_eq!(found(Query { queues: one("night"), ..all.clone() }).await, [4]);
    assert_eq!(found(Query { labels: vec![("team".into(), "a".into())], ..all.clone() }).await, [1]);
    assert_eq!(found(Query { since_ms: Some(T0 + 2), until_ms: Some(T0 + 4), ..all.clone() }).await, [2, 1]);
    let counted = async |by: By| {
        let rows = h.store().failure_counts(all.clone(), by).await.unwrap();
        rows.into_iter().map(|row| (row.value, row.failed, row.recovered)).collect::<Vec<_>>()
    };
    let row = |value: &str, failed: i64, recovered: i64| (value.to_owned(), failed, recovered);
    assert_eq!(counted(By::Http).await, [row("", 2, 0), row("503", 2, 1), row("429", 1, 1)]);
    assert_eq!(counted(By::Code).await, [row("model_incomplete", 4, 2), row("worker_lost", 1, 0)]);
    assert_eq!(counted(By::Queue).await, [row("default", 4, 2), row("night", 1, 0)]);
}

/// One job of a model and queue of its own, refused at `T0` until a second later; the turn that was.
async fn refused<H: Harness>(h: &H, w: WorkerId, model: &str) -> ClaimedTurn {
    wide(h, &[model]).await;
    let mut new = job(model);
    new.lane.queue = model.into();
    submit(h, vec![new]).await;
    let turn = take(h, w, model, T0).await;
    complete_one(h, deferred(w, &turn, T0, T0 + 1_000)).await;
    turn
}

async fn take<H: Harness>(h: &H, worker: WorkerId, queue: &str, now_ms: i64) -> ClaimedTurn {
    let request = ClaimRequest { worker, queues: one(queue), without: Vec::new(), room: 1, now_ms };
    h.store().claim(request).await.unwrap().remove(0)
}

fn key(turn: &ClaimedTurn) -> SendKey {
    SendKey { job_id: turn.job_id, fence: turn.fence, n: 1 }
}

async fn word<H: Harness>(h: &H, turn: &ClaimedTurn) -> ResetRow {
    h.store().reset(key(turn)).await.unwrap().expect("the refusal is there")
}

pub async fn a_word_is_kept_broken_given_up_or_not_tested<H: Harness>(h: &H) {
    let w = worker(h, T0).await;
    // Refused again, with a reset three seconds later than the first.
    let first = refused(h, w, "again").await;
    let hold = open_holds(h).await.remove(0).id;
    let probe = take(h, w, "again", T0 + 1_004).await;
    let mut end = deferred(w, &probe, T0 + 1_100, T0 + 4_000);
    end.record.decision = Some("defer".into());
    complete_one(h, end).await;
    let row = word(h, &first).await;
    assert_eq!((row.word.as_str(), row.again_by_ms, row.lateness_ms), ("refused_again", Some(3_000), Some(4)));
    assert_eq!((row.hold, row.test, row.decision.as_deref()), (Some(hold), Some(key(&probe)), None));
    let row = word(h, &probe).await;
    assert_eq!((row.word.as_str(), row.hold, row.decision.as_deref()), ("not_tested", Some(hold), Some("defer")));
    let last = take(h, w, "again", T0 + 4_000).await;
    complete_one(h, success(w, &last, T0 + 4_100)).await;
    let row = word(h, &probe).await;
    assert_eq!((row.word.as_str(), row.again_by_ms, row.test), ("kept", None, Some(key(&last))));
    assert_eq!(h.store().reset(key(&last)).await.unwrap(), None, "an answer is no refusal");

    // Lifted by hand before its end, and after it.
    for (model, at_ms, expected) in [("early", 999, "released"), ("late", 1_000, "not_tested")] {
        let turn = refused(h, w, model).await;
        let id = open_holds(h).await.iter().find(|hold| hold.scope.model == model).unwrap().id;
        let release = HoldRelease { id, by: "ops".into(), reason: None, now_ms: T0 + at_ms };
        h.store().release_hold(release).await.unwrap();
        assert_eq!(word(h, &turn).await.word, expected);
    }
    // Its job was cancelled while it waited; and, where another waits, that one tests it all the same.
    let turn = refused(h, w, "cancelled").await;
    h.store().cancel(vec![turn.job_id], T0 + 1).await.unwrap();
    assert_eq!(word(h, &turn).await.word, "cancelled");
    let mut other = job("cancelled");
    other.lane.queue = "cancelled".into();
    submit(h, vec![other]).await;
    let probe = take(h, w, "cancelled", T0 + 1_000).await;
    complete_one(h, success(w, &probe, T0 + 1_100)).await;
    assert_eq!(word(h, &turn).await.word, "kept");
    // The send that was to test it was cancelled.
    let turn = refused(h, w, "cut short").await;
    let probe = take(h, w, "cut short", T0 + 1_000).await;
    let mut end = success(w, &probe, T0 + 1_001);
    end.send = Some(send(&probe, 1, "cancelled", T0 + 1_001));
    (end.record.outcome, end.answered) = (Outcome::Cancelled, false);
    end.next = Next::Final { state: JobState::Cancelled, result: None, error: None };
    complete_one(h, end).await;
    let row = word(h, &turn).await;
    assert_eq!((row.word.as_str(), row.test, row.lateness_ms), ("cancelled", None, None));
    // Replaced within its execution: that is what was decided.
    wide(h, &["in place"]).await;
    let mut new = job("in place");
    new.lane.queue = "in place".into();
    submit(h, vec![new]).await;
    let turn = take(h, w, "in place", T0).await;
    h.store().set_back(setback(w, &turn, 1, T0, T0 + 500)).await.unwrap();
    let row = word(h, &turn).await;
    assert_eq!((row.word.as_str(), row.decision.as_deref()), ("not_tested", Some("retry_in_place")));

    let by_word = async |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let mut models = Vec::new();
        let mut query = Query { words, limit: 1, ..Query::default() };
        loop {
            let page = h.store().resets(query.clone()).await.unwrap();
            models.extend(page.items.into_iter().map(|row| row.lane.scope.model));
            let Some(cursor) = page.next_cursor else { break };
            query.cursor = Some(cursor);
        }
        models.sort_unstable();
        models
    };
    assert_eq!(by_word(&["kept"]).await, ["again", "cancelled"]);
    assert_eq!(by_word(&["refused_again"]).await, ["again"]);
    assert_eq!(by_word(&["released", "cancelled"]).await, ["cut short", "early"]);
    assert_eq!(by_word(&["not_tested"]).await, ["in place", "late"]);
    assert_eq!(by_word(&[]).await.len(), 7);
}

/// A generator of numbers below `n`, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn candidate(source: SourceKind, name: &str, verdict: Verdict) -> Candidate {
    Candidate {
        source,
        name: name.into(),
        raw: None,
        at_ms: Some(T0),
        kind: None,
        remaining: None,
        verdict,
        why: "so".into(),
    }
}

/// A refusal read from one of three places, or from none.
fn read_somewhere(dice: &mut Dice, received_ms: i64, resume_at_ms: i64) -> EvidenceRow {
    let mut row = evidence(1, received_ms, resume_at_ms);
    let mut select = |kind: &str, name: &str, candidates: Vec<Candidate>| {
        (row.source_kind, row.source_name) = (Some(kind.into()), Some(name.into()));
        row.candidates = candidates;
    };
    let header = |verdict| candidate(SourceKind::Header, "retry-after", verdict);
    let body = |verdict| candidate(SourceKind::Body, "/error/resets_at", verdict);
    match dice.below(4) {
        0 => select("header", "retry-after", vec![header(Verdict::Selected), body(Verdict::Earlier)]),
        1 => select("body", "/error/resets_at", vec![header(Verdict::Past), body(Verdict::Selected)]),
        2 => select("header", "retry-after", vec![header(Verdict::Selected), header(Verdict::Earlier)]),
        _ => {
            (row.source_kind, row.source_name, row.reset_at_ms) = (None, None, None);
            row.candidates = vec![header(Verdict::Malformed)];
        }
    }
    row
}

/// Refuses, tests, releases and cancels at random, each job in a scope of its own.
async fn history<H: Harness>(h: &H, dice: &mut Dice) {
    let w = worker(h, T0).await;
    for n in 0..60_i64 {
        let name = format!("m{n}");
        let mut new = job(&name);
        new.lane.queue.clone_from(&name);
        new.lane.scope.provider = format!("p{}", dice.below(2));
        submit(h, vec![new]).await;
        let (mut at_ms, mut turn) = (T0 + n, take(h, w, &name, T0 + n).await);
        loop {
            let until_ms = at_ms + 100 + i64::try_from(dice.below(900)).unwrap();
            let mut end = deferred(w, &turn, at_ms, until_ms);
            end.evidence = Some(read_somewhere(dice, at_ms, until_ms));
            complete_one(h, end).await;
            let holds = open_holds(h).await;
            let hold = holds.iter().find(|hold| hold.scope.model == name).unwrap();
            match dice.below(6) {
                0 => break,
                1 => {
                    let release = HoldRelease { id: hold.id, by: "o".into(), reason: None, now_ms: at_ms + 1 };
                    h.store().release_hold(release).await.unwrap();
                    break;
                }
                2 => {
                    h.store().cancel(vec![turn.job_id], at_ms + 1).await.unwrap();
                    break;
                }
                _ => {}
            }
            at_ms = hold.until_ms.unwrap() + i64::try_from(dice.below(40)).unwrap();
            turn = take(h, w, &name, at_ms).await;
            if dice.below(2) == 0 {
                complete_one(h, success(w, &turn, at_ms + 1)).await;
                break;
            }
        }
    }
}

/// The smallest value that `percent` of all do not exceed, counted out.
fn quantile(values: &[i64], percent: usize) -> Option<i64> {
    let reaches = |value: &i64| values.iter().filter(|other| *other <= value).count() * 100 >= percent * values.len();
    values.iter().copied().filter(reaches).min()
}

pub async fn accuracy_adds_up_to_what_is_listed<H: Harness>(h: &H) {
    history(h, &mut Dice(7)).await;
    let every = Query { limit: 1_000, ..Query::default() };
    let total = h.store().resets(every.clone()).await.unwrap().items;
    let words: std::collections::BTreeSet<&str> = total.iter().map(|row| row.word.as_str()).collect();
    assert_eq!(words.len(), 5, "{words:?}");
    for query in [
        every.clone(),
        Query { words: vec!["kept".into(), "released".into()], ..every.clone() },
        Query { sources: one("/error/resets_at"), ..every.clone() },
        Query { verdicts: one("earlier"), ..every.clone() },
        Query { providers: one("p1"), since_ms: Some(T0 + 500), until_ms: Some(T0 + 1_500), ..every.clone() },
    ] {
        let listed = h.store().resets(query.clone()).await.unwrap().items;
        assert!(!listed.is_empty() && (listed.len() < total.len() || query.providers.is_empty()));
        let mut expected: BTreeMap<(String, String, String), Vec<&ResetRow>> = BTreeMap::new();
        let mut offered: BTreeMap<(String, String, String), i64> = BTreeMap::new();
        for row in &listed {
            let of = |kind: &str, name: &str| (kind.to_owned(), name.to_owned(), row.lane.scope.provider.clone());
            let kind = row.evidence.source_kind.as_deref().unwrap_or("curve");
            let name = row.evidence.source_name.as_deref().unwrap_or("curve");
            expected.entry(of(kind, name)).or_default().push(row);
            let mut seen: Vec<_> = row.evidence.candidates.iter().map(|c| of(c.source.as_str(), &c.name)).collect();
            seen.push(of(kind, name));
            seen.sort();
            seen.dedup();
            for source in seen {
                *offered.entry(source).or_default() += 1;
            }
        }
        // Neither a limit nor a page bounds a sum.
        let rows = h.store().reset_accuracy(Query { limit: 1, ..query.clone() }).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.selected).sum::<i64>(), i64::try_from(listed.len()).unwrap());
        assert!(rows.is_sorted_by_key(|row| std::cmp::Reverse(row.refused_again)), "the worst first");
        assert_eq!(rows.len(), offered.len());
        for row in rows {
            let source = (row.source_kind.clone(), row.source_name.clone(), row.provider.clone());
            let of = expected.remove(&source).unwrap_or_default();
            let count = |words: &[&str]| {
                i64::try_from(of.iter().filter(|row| words.contains(&row.word.as_str())).count()).unwrap()
            };
            let again: Vec<i64> = of.iter().filter_map(|row| row.again_by_ms).collect();
            let late: Vec<i64> = of.iter().filter_map(|row| row.lateness_ms).collect();
            assert_eq!(
                row,
                AccuracyRow {
                    source_kind: source.0.clone(),
                    source_name: source.1.clone(),
                    provider: source.2.clone(),
                    offered: offered[&source],
                    selected: i64::try_from(of.len()).unwrap(),
                    kept: count(&["kept"]),
                    refused_again: count(&["refused_again"]),
                    released: count(&["released"]),
                    not_tested: count(&["not_tested", "cancelled"]),
                    again_p50_ms: quantile(&again, 50),
                    again_p95_ms: quantile(&again, 95),
                    lateness_p50_ms: quantile(&late, 50),
                    lateness_p99_ms: quantile(&late, 99),
                    lateness_max_ms: late.iter().max().copied(),
                }
            );
        }
        assert!(expected.is_empty());
    }
}

pub async fn what_befell_a_hold_is_told_in_order<H: Harness>(h: &H) {
    let w = worker(h, T0).await;
    let turn = refused(h, w, "m").await;
    let id = open_holds(h).await.remove(0).id;
    let probe = take(h, w, "m", T0 + 1_000).await;
    complete_one(h, deferred(w, &probe, T0 + 1_100, T0 + 4_000)).await;
    let release = HoldRelease { id, by: "ops".into(), reason: Some("told so".into()), now_ms: T0 + 1_200 };
    h.store().release_hold(release).await.unwrap();
    let events = h.store().hold_events(id).await.unwrap();
    let told: Vec<_> = events.iter().map(|event| (event.at_ms - T0, event.event.as_str(), event.until_ms)).collect();
    assert_eq!(
        told,
        [
            (0, "opened", Some(T0 + 1_000)),
            (1_000, "probe_started", Some(T0 + 1_000)),
            (1_100, "extended", Some(T0 + 4_000)),
            (1_100, "refused_again", Some(T0 + 4_000)),
            (1_200, "released", Some(T0 + 4_000)),
        ]
    );
    assert_eq!((events[0].job, events[0].hold), (Some(turn.job_id), id));
    assert_eq!((events[4].by.as_deref(), events[4].reason.as_deref()), (Some("ops"), Some("told so")));
    assert_eq!(h.store().hold_events(HoldId::fresh()).await.unwrap(), []);
}

const DAY_MS: i64 = 86_400_000;

pub async fn tokens_are_counted_by_what_is_asked<H: Harness>(h: &H) {
    wide(h, &["m", "n"]).await;
    let mut new = [jobs("m", 2), jobs("n", 2)].concat();
    new[0].labels = vec![("team".into(), "a".into())];
    new[2].labels = vec![("team".into(), "b".into()), ("x".into(), "1".into())];
    new[3].lane.tenant = "t".into();
    let ids = submit(h, new).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 4, T0).await;
    let of = |place: usize| turns.iter().find(|turn| turn.job_id == ids[place]).unwrap();
    let used = |mut end: Completion, attempts: u32, usage: [Option<i64>; 3]| {
        end.record.attempts = Some(attempts);
        let [input_tokens, output_tokens, total_tokens] = usage;
        end.record.usage = Usage { input_tokens, output_tokens, total_tokens };
        end
    };
    // The first job takes two executions; the second's total was not told; the third said nothing; the last is a day later.
    complete_one(h, used(requeued(w, of(0), T0 + 1, T0 + 1), 2, [Some(1), None, Some(1)])).await;
    let again = claim(h, w, 1, T0 + 1).await.remove(0);
    complete_one(h, used(success(w, &again, T0 + 2), 1, [Some(10), Some(5), Some(15)])).await;
    complete_one(h, used(success(w, of(1), T0 + 3), 1, [Some(100), Some(50), None])).await;
    complete_one(h, used(success(w, of(2), T0 + 4), 3, [None; 3])).await;
    complete_one(h, used(success(w, of(3), T0 + DAY_MS), 1, [Some(1_000), Some(1), Some(1_001)])).await;

    let row = |value: &str, counts: [i64; 3], tokens: [i64; 3], unreported: i64| UsageRow {
        value: value.into(),
        jobs: counts[0],
        executions: counts[1],
        sends: counts[2],
        input_tokens: tokens[0],
        output_tokens: tokens[1],
        total_tokens: tokens[2],
        unreported,
    };
    let all = Query::default();
    let usage = async |query: &Query, by: UsageBy| h.store().usage(query.clone(), by).await.unwrap();
    assert_eq!(
        usage(&all, UsageBy::Model).await,
        [row("n", [2, 2, 4], [1_000, 1, 1_001], 1), row("m", [2, 3, 4], [111, 55, 166], 0)]
    );
    assert_eq!(
        usage(&all, UsageBy::Label("team".into())).await,
        [row("a", [1, 2, 3], [11, 5, 16], 0), row("b", [1, 1, 3], [0, 0, 0], 1)]
    );
    assert_eq!(usage(&all, UsageBy::Label("nobody's".into())).await, []);
    let days: Vec<_> = usage(&all, UsageBy::Day).await.into_iter().map(|row| (row.value, row.executions)).collect();
    assert_eq!(days.iter().map(|(_, n)| *n).collect::<Vec<_>>(), [1, 4]);
    assert!(days[0].0 > days[1].0 && days[0].0.len() == "2026-01-01".len(), "{days:?}");
    let tenants: Vec<_> = usage(&all, UsageBy::Tenant).await.into_iter().map(|row| (row.value, row.jobs)).collect();
    assert_eq!(tenants, [("t".to_owned(), 1), (String::new(), 3)]);
    let between = Query { since_ms: Some(T0 + 2), until_ms: Some(T0 + 4), ..all.clone() };
    assert_eq!(usage(&between, UsageBy::Queue).await, [row("default", [2, 2, 2], [110, 55, 165], 0)]);
    let labelled = Query { labels: vec![("team".into(), "a".into())], ..all.clone() };
    assert_eq!(usage(&labelled, UsageBy::Account).await, [row("main", [1, 2, 3], [11, 5, 16], 0)]);
    let model = Query { models: one("n"), limit: 1, ..all };
    assert_eq!(usage(&model, UsageBy::Provider).await, [row("api.example.com", [2, 2, 4], [1_000, 1, 1_001], 1)]);
}
