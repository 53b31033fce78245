//! Lists: filters, pages that neither skip nor repeat, the audit of failures and resets.

use super::*;
use reprieve::store::*;

fn page(limit: u32) -> Query {
    Query { limit, ..Query::default() }
}

pub async fn jobs_are_listed_newest_first_a_page_at_a_time<H: Harness>(h: &H) {
    wide(h, &["m", "n"]).await;
    let mut new = [jobs("m", 5), jobs("n", 2)].concat();
    new[1].lane.tenant = "t".into();
    new[2].lane.queue = "q".into();
    new[3].labels = vec![("a".into(), "1".into()), ("b".into(), "2".into())];
    new[4].created_ms = T0 + 100;
    let ids = submit(h, new).await;
    let mut seen = Vec::new();
    let mut query = page(3);
    loop {
        let got = h.store().jobs(query.clone()).await.unwrap();
        seen.extend(got.items.iter().map(|job| job.id));
        let Some(cursor) = got.next_cursor else { break };
        query.cursor = Some(cursor);
    }
    assert_eq!(seen, ids.iter().rev().copied().collect::<Vec<_>>());

    let mut sorted = ids.clone();
    sorted.sort_unstable();
    let (first, last) = (sorted[1], sorted[5]);
    let between = async |end: &str, limit| h.store().job_ids(first, last, end.to_owned(), limit).await.unwrap();
    assert_eq!(between("", 50).await, sorted[1..=5]);
    assert_eq!(between("", 2).await, sorted[1..=2]);
    let digits = |id: JobId| id.0.simple().to_string();
    assert_eq!(between(&digits(sorted[3])[20..], 50).await, [sorted[3]]);
    assert_eq!(between(&digits(sorted[0])[20..], 50).await, [], "it lies before the first");

    let w = worker(h, T0).await;
    let request = ClaimRequest { worker: w, queues: vec!["q".into()], without: Vec::new(), room: 1, now_ms: T0 };
    let running = h.store().claim(request).await.unwrap().remove(0);
    let turns = claim(h, w, 10, T0).await;
    for turn in &turns {
        match turn.lane.scope.model.as_str() {
            "n" => complete_one(h, deferred(w, turn, T0, T0 + 9_000)).await,
            _ if turn.job_id == ids[0] => complete_one(h, success(w, turn, T0)).await,
            _ => complete_one(h, requeued(w, turn, T0, T0 + 9_000)).await,
        };
    }
    let by = async |query: Query| {
        let found = h.store().jobs(query).await.unwrap().items;
        let mut places: Vec<usize> = found.iter().map(|job| ids.iter().position(|id| *id == job.id).unwrap()).collect();
        places.sort_unstable();
        places
    };
    let states = |states: &[&str]| Query { states: states.iter().map(|s| (*s).to_owned()).collect(), ..page(50) };
    assert_eq!(running.job_id, ids[2]);
    assert_eq!(by(states(&["running"])).await, [2]);
    assert_eq!(by(states(&["queued"])).await, [1, 3, 4, 5, 6]);
    assert_eq!(by(states(&["waiting"])).await, [1, 3, 4, 5, 6]);
    assert_eq!(by(states(&["deferred"])).await, [5, 6]);
    assert_eq!(by(states(&["deferred", "succeeded"])).await, [0, 5, 6]);
    assert_eq!(by(states(&["failed"])).await, [0; 0]);
    assert_eq!(by(Query { tenants: vec!["t".into()], ..page(50) }).await, [1]);
    assert_eq!(by(Query { queues: vec!["q".into()], ..page(50) }).await, [2]);
    assert_eq!(by(Query { models: vec!["n".into()], ..page(50) }).await, [5, 6]);
    assert_eq!(by(Query { providers: vec!["else".into()], ..page(50) }).await, [0; 0]);
    assert_eq!(by(Query { since_ms: Some(T0 + 1), ..page(50) }).await, [4]);
    let labels = |labels: &[(&str, &str)]| Query {
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ..page(50)
    };
    assert_eq!(by(labels(&[("a", "1")])).await, [3]);
    assert_eq!(by(labels(&[("a", "1"), ("b", "2")])).await, [3]);
    assert_eq!(by(labels(&[("a", "1"), ("b", "1")])).await, [0; 0]);
}

pub async fn results_come_in_the_order_of_ending_and_a_cursor_misses_none<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    submit(h, jobs("m", 6)).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 6, T0).await;
    let order = [3, 0, 5, 1, 4, 2];
    let mut query = page(2);
    let mut seen = Vec::new();
    for (n, place) in order.iter().enumerate() {
        // Their instants say nothing about the order.
        complete_one(h, success(w, &turns[*place], T0 + 100 - i64::try_from(n).unwrap())).await;
        if n % 2 == 0 {
            let got = h.store().results(query.clone()).await.unwrap();
            seen.extend(got.items.iter().map(|job| job.id));
            query.cursor = got.next_cursor;
        }
    }
    for _ in 0..2 {
        let got = h.store().results(query.clone()).await.unwrap();
        seen.extend(got.items.iter().map(|job| job.id));
        query.cursor = got.next_cursor;
    }
    assert_eq!(seen, order.map(|place| turns[place].job_id));
    assert!(h.store().results(query).await.unwrap().items.is_empty());
}

pub async fn a_foreign_cursor_is_refused<H: Harness>(h: &H) {
    submit(h, jobs("m", 3)).await;
    let cursor = h.store().jobs(page(1)).await.unwrap().next_cursor;
    assert!(cursor.is_some());
    for cursor in [cursor, Some("x".into()), Some(String::new())] {
        let query = Query { cursor, ..page(1) };
        assert!(matches!(h.store().results(query.clone()).await, Err(Error::Cursor)));
        assert!(matches!(h.store().failures(query.clone()).await, Err(Error::Cursor)));
        assert!(matches!(h.store().resets(query).await, Err(Error::Cursor)));
    }
}

pub async fn failures_are_listed_and_counted<H: Harness>(h: &H) {
    wide(h, &["m", "n"]).await;
    let ids = submit(h, [jobs("m", 3), jobs("n", 1)].concat()).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 4, T0).await;
    let of = |place: usize| turns.iter().find(|turn| turn.job_id == ids[place]).unwrap();
    complete_one(h, success(w, of(0), T0 + 1)).await;
    h.store().set_back(setback(w, of(1), 1, T0 + 2, T0 + 9)).await.unwrap();
    complete_one(h, requeued(w, of(2), T0 + 3, T0 + 3)).await;
    complete_one(h, deferred(w, of(3), T0 + 3_600_000, T0 + 9)).await;
    let mut all = page(50);
    all.include_retried = true;
    let list = h.store().failures(all.clone()).await.unwrap().items;
    let seen: Vec<_> = list.iter().map(|f| (f.job_id, f.n, f.outcome, f.cause.as_deref(), f.ended_ms)).collect();
    assert_eq!(
        seen,
        [
            (ids[3], None, Some(Outcome::Deferred), Some("rate_limit"), T0 + 3_600_000),
            (ids[2], None, Some(Outcome::Requeued), Some("provider_error"), T0 + 3),
            (ids[1], Some(1), None, Some("rate_limit"), T0 + 2),
        ]
    );
    assert_eq!(list[0].error, Some(error("rate_limit")));
    assert_eq!(list[0].lane, lane("default", "", "n"));
    let mut paged = Vec::new();
    let mut query = Query { limit: 1, ..all.clone() };
    loop {
        let got = h.store().failures(query.clone()).await.unwrap();
        paged.extend(got.items);
        let Some(cursor) = got.next_cursor else { break };
        query.cursor = Some(cursor);
    }
    assert_eq!(paged, list);
    assert_eq!(h.store().failures(page(50)).await.unwrap().items.len(), 2);
    let caused = Query { causes: vec!["provider_error".into()], ..all.clone() };
    assert_eq!(h.store().failures(caused).await.unwrap().items.len(), 1);
    let count = async |query: Query, by: By| {
        let counts = h.store().failure_counts(query, by).await.unwrap();
        counts.into_iter().map(|row| (row.value, row.failed)).collect::<Vec<_>>()
    };
    assert_eq!(count(all.clone(), By::Cause).await, [("rate_limit".into(), 2), ("provider_error".into(), 1)]);
    assert_eq!(count(page(0), By::Cause).await, [("provider_error".into(), 1), ("rate_limit".into(), 1)]);
    assert_eq!(count(all.clone(), By::Model).await, [("m".into(), 2), ("n".into(), 1)]);
    let hours = count(all.clone(), By::Hour).await;
    assert_eq!(hours.iter().map(|(_, n)| *n).collect::<Vec<_>>(), [2, 1]);
    assert!(hours[0].0 < hours[1].0 && hours[0].0.ends_with(":00:00Z"), "{hours:?}");
    let since = Query { since_ms: Some(T0 + 4), ..all };
    assert_eq!(count(since, By::Account).await, [("main".into(), 1)]);
}

/// One turn that is refused at `T0` and tested by `outcome`, if at all; the word on its reset.
async fn word<H: Harness>(h: &H, model: &str, outcome: Option<&str>) -> ResetRow {
    wide(h, &[model]).await;
    submit(h, jobs(model, 1)).await;
    let w = worker(h, T0).await;
    let turn = claim(h, w, 1, T0).await.remove(0);
    assert_eq!(turn.lane.scope.model, model);
    complete_one(h, deferred(w, &turn, T0, T0 + 1_000)).await;
    if let Some(outcome) = outcome {
        let probe = claim(h, w, 1, T0 + 1_007).await.remove(0);
        let mut done = success(w, &probe, T0 + 1_100);
        done.send = Some(send(&probe, 1, outcome, T0 + 1_100));
        done.answered = outcome == "answered";
        complete_one(h, done).await;
    } else {
        let id = open_holds(h).await.iter().find(|hold| hold.scope.model == model).unwrap().id;
        if model == "released" {
            let release = HoldRelease { id, by: "ops".into(), reason: None, now_ms: T0 };
            h.store().release_hold(release).await.unwrap();
        }
    }
    let query = Query { models: vec![model.into()], ..page(10) };
    h.store().resets(query).await.unwrap().items.remove(0)
}

pub async fn a_reset_kept_its_word_or_not<H: Harness>(h: &H) {
    let kept = word(h, "kept", Some("answered")).await;
    assert_eq!((kept.word.as_str(), kept.tested_ms, kept.lateness_ms), ("kept", Some(T0 + 1_007), Some(7)));
    assert_eq!(kept.evidence, evidence(1, T0, T0 + 1_000));
    assert_eq!(word(h, "again", Some("refused")).await.word, "refused_again");
    let failed = word(h, "failed", Some("failed")).await;
    assert_eq!((failed.word.as_str(), failed.lateness_ms), ("not_tested", None));
    assert_eq!(word(h, "released", None).await.word, "released");
    assert_eq!(word(h, "waiting", None).await.word, "not_tested");
    let by = async |query: Query| h.store().resets(query).await.unwrap().items.len();
    assert_eq!(by(page(50)).await, 5);
    assert_eq!(by(Query { sources: vec!["retry-after".into()], ..page(50) }).await, 5);
    assert_eq!(by(Query { sources: vec!["x".into()], ..page(50) }).await, 0);
    assert_eq!(by(Query { verdicts: vec!["selected".into()], ..page(50) }).await, 5);
    assert_eq!(by(Query { verdicts: vec!["past".into()], ..page(50) }).await, 0);
    let first = h.store().resets(page(4)).await.unwrap();
    let rest = Query { cursor: first.next_cursor, ..page(4) };
    assert_eq!(by(rest).await, 1);
}

pub async fn a_word_of_a_newer_release_is_shown_as_unknown_and_hides_no_neighbour<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let ids = submit(h, jobs("m", 2)).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 2, T0).await;
    let of = |id: JobId| turns.iter().find(|turn| turn.job_id == id).unwrap();
    complete_one(h, requeued(w, of(ids[0]), T0, T0 + 1)).await;
    complete_one(h, success(w, of(ids[1]), T0)).await;
    let again = claim(h, w, 1, T0 + 1).await.remove(0);
    complete_one(h, deferred(w, &again, T0 + 1, T0 + 9)).await;
    h.write_as_newer("UPDATE turn_records SET outcome = 'delegated' WHERE outcome = 'requeued'").await;
    h.write_as_newer("UPDATE jobs SET state = 'archived' WHERE state = 'succeeded'").await;
    h.write_as_newer("UPDATE reset_evidence SET candidates = '{\"of\": \"another shape\"}'").await;

    let views = h.store().turns(ids[0]).await.unwrap();
    let outcomes: Vec<_> = views.iter().map(|view| view.record.outcome).collect();
    assert_eq!(outcomes, [Outcome::Unknown, Outcome::Deferred]);
    assert_eq!(views[0].record.cause.as_deref(), Some("provider_error"), "what can be read of the row is shown");
    assert_eq!((views[1].evidence.len(), views[1].evidence[0].candidates.len()), (1, 0));
    let listed = h.store().jobs(page(10)).await.unwrap().items;
    let states: Vec<_> = listed.iter().map(|job| job.state).collect();
    assert_eq!(states, [JobState::Unknown, JobState::Queued]);
    assert_eq!(get(h, ids[1]).await.state, JobState::Unknown);
    let failures = h.store().failures(Query { include_retried: true, ..page(10) }).await.unwrap().items;
    let failed: Vec<_> = failures.iter().map(|row| row.outcome).collect();
    assert_eq!(failed, [Some(Outcome::Deferred), Some(Outcome::Unknown)]);
    assert_eq!(h.store().resets(page(10)).await.unwrap().items.len(), 1);
    // It has ended, whatever that is called: nothing cancels it again.
    let cancelled = h.store().cancel(vec![ids[1]], T0 + 2).await.unwrap();
    assert_eq!(cancelled, [CancelOutcome::AlreadyFinal(JobState::Unknown)]);
}

/// Places in `ids` of the jobs that a query finds, in order, a page of `limit` at a time.
async fn places<H: Harness>(h: &H, ids: &[JobId], mut query: Query, limit: u32) -> Vec<usize> {
    query.limit = limit;
    let mut places = Vec::new();
    loop {
        let got = h.store().jobs(query.clone()).await.unwrap();
        places.extend(got.items.iter().map(|job| ids.iter().position(|id| *id == job.id).unwrap()));
        let Some(cursor) = got.next_cursor else { return places };
        query.cursor = Some(cursor);
    }
}

fn whys(whys: &[&str], now_ms: i64) -> Query {
    Query { whys: whys.iter().map(|why| (*why).to_owned()).collect(), now_ms, ..Query::default() }
}

pub async fn jobs_are_found_by_what_they_wait_for<H: Harness>(h: &H) {
    wide(h, &["held", "open", "later"]).await;
    let mut new = [jobs("held", 2), jobs("open", 3), jobs("later", 1)].concat();
    new[5].due_ms = Some(T0 + 500);
    let ids = submit(h, new).await;
    let w = worker(h, T0).await;
    // Of the held scope one waits behind its own refusal and one in place; of the open one, one waits for its backoff, one
    // is being sent and one comes after both.
    let turns = claim(h, w, 5, T0).await;
    let of = |place: usize| turns.iter().find(|turn| turn.job_id == ids[place]).unwrap();
    complete_one(h, deferred(w, of(0), T0, T0 + 9_000)).await;
    h.store().set_back(setback(w, of(1), 1, T0 + 1, T0 + 9_000)).await.unwrap();
    complete_one(h, requeued(w, of(2), T0, T0 + 5_000)).await;
    h.store().give_back(w, vec![(of(4).job_id, of(4).fence)], T0).await.unwrap();

    let at = T0 + 2;
    let found = async |words: &[&str], now_ms: i64| places(h, &ids, whys(words, now_ms), 2).await;
    assert_eq!(found(&["hold"], at).await, [0]);
    assert_eq!(found(&["probe"], at).await, [0; 0]);
    assert_eq!(found(&["parked"], at).await, [0; 0]);
    assert_eq!(found(&["hold"], T0 + 9_000).await, [0; 0]);
    assert_eq!(found(&["probe"], T0 + 9_000).await, [0]);
    assert_eq!(found(&["backoff"], at).await, [2]);
    assert_eq!(found(&["not_before"], at).await, [5]);
    assert_eq!(found(&["in_place"], at).await, [1]);
    assert_eq!(found(&["in_place"], T0 + 9_000).await, [0; 0]);
    assert_eq!(found(&["line"], at).await, [4]);
    assert_eq!(found(&["paused"], at).await, [0; 0]);
    assert_eq!(found(&["line", "hold", "in_place", "backoff"], at).await, [4, 2, 1, 0]);
    let both = Query { states: vec!["running".into()], ..whys(&["in_place", "line"], at) };
    assert_eq!(places(h, &ids, both, 9).await, [1]);
    let ended = Query { states: vec!["failed".into()], ..whys(&["line"], at) };
    assert_eq!(places(h, &ids, ended, 9).await, [0; 0]);
    let by_end = Query { by_end: true, ..whys(&["line"], at) };
    assert_eq!(places(h, &ids, by_end, 9).await, [0; 0]);
}

/// An end with an error document as the failure's reading writes it.
fn failing(w: WorkerId, turn: &ClaimedTurn, now_ms: i64, state: JobState, error: &str) -> Completion {
    Completion {
        record: failed_record(turn, Outcome::Failed, "provider_error", now_ms),
        answered: false,
        next: Next::Final { state, result: None, error: Some(error.to_owned()) },
        ..success(w, turn, now_ms)
    }
}

const REFUSED: &str = r#"{"code":"model_incomplete","message":"m","class":"quota","retryable":false,
    "model_failure":{"schema_version":1,"cause":"usage_limit","http_status":429}}"#;
const DROPPED: &str = r#"{"code":"model_incomplete","message":"m\u0000","class":"unavailable","retryable":true,
    "model_failure":{"schema_version":1,"cause":"transport"}}"#;
const LOST: &str = r#"{"code":"worker_lost","message":"m","class":null,"retryable":true}"#;
const CANCELLED: &str = r#"{"code":"model_cancelled","message":"m","class":"provider_error","retryable":false,
    "model_failure":{"schema_version":1,"cause":"cancelled"}}"#;

pub async fn jobs_are_found_by_what_they_ended_with<H: Harness>(h: &H) {
    wide(h, &["m", "n"]).await;
    let ids = submit(h, [jobs("m", 7), jobs("n", 1)].concat()).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 8, T0).await;
    let of = |place: usize| turns.iter().find(|turn| turn.job_id == ids[place]).unwrap();
    for (place, state, error) in [
        (0, JobState::Failed, REFUSED),
        (1, JobState::Failed, DROPPED),
        (2, JobState::Failed, LOST),
        (3, JobState::Failed, "no document at all"),
        (4, JobState::Cancelled, CANCELLED),
        (7, JobState::Failed, DROPPED),
    ] {
        complete_one(h, failing(w, of(place), T0 + 1, state, error)).await;
    }
    complete_one(h, success(w, of(5), T0 + 2)).await;
    // A failure that is tried again ends no job.
    complete_one(h, requeued(w, of(6), T0 + 2, T0 + 9)).await;

    let one = |word: &str| vec![word.to_owned()];
    for (query, expected) in [
        (Query { causes: one("transport"), ..page(0) }, vec![7, 1]),
        (Query { causes: vec!["transport".into(), "usage_limit".into()], ..page(0) }, vec![7, 1, 0]),
        (Query { causes: one("provider_error"), ..page(0) }, vec![]),
        (Query { causes: one("worker_lost"), ..page(0) }, vec![2]),
        (Query { causes: one("cancelled"), ..page(0) }, vec![4]),
        (Query { causes: one("cancelled"), states: one("failed"), ..page(0) }, vec![]),
        (Query { causes: one("transport"), states: one("running"), ..page(0) }, vec![]),
        (Query { causes: one("transport"), models: one("n"), ..page(0) }, vec![7]),
        (Query { classes: one("quota"), ..page(0) }, vec![0]),
        (Query { codes: one("model_incomplete"), ..page(0) }, vec![7, 1, 0]),
        (Query { http: vec![429, 503], ..page(0) }, vec![0]),
        (Query { states: one("failed"), ..page(0) }, vec![7, 3, 2, 1, 0]),
        (Query { states: vec!["failed".into(), "cancelled".into()], ..page(0) }, vec![7, 4, 3, 2, 1, 0]),
        (Query { causes: one("transport"), whys: one("line"), ..page(0) }, vec![]),
    ] {
        assert_eq!(places(h, &ids, query.clone(), 2).await, expected, "{query:?}");
    }
    let by_end = Query { causes: one("transport"), by_end: true, ..page(0) };
    let mut found = places(h, &ids, by_end, 1).await;
    found.sort_unstable();
    assert_eq!(found, [1, 7]);
    let results = h.store().results(Query { classes: one("unavailable"), ..page(9) }).await.unwrap();
    assert_eq!(results.items.len(), 2);
}

pub async fn ended_jobs_are_listed_by_their_end<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let ids = submit(h, jobs("m", 7)).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 6, T0).await;
    let of = |place: usize| turns.iter().find(|turn| turn.job_id == ids[place]).unwrap();
    // Two end at one instant: the one that ended last comes first.
    for (place, at_ms) in [(3, 10), (0, 20), (5, 20), (1, 30), (4, 40)] {
        let end = match place {
            0 | 4 => failing(w, of(place), T0 + at_ms, JobState::Failed, LOST),
            _ => success(w, of(place), T0 + at_ms),
        };
        complete_one(h, end).await;
    }
    let by_end = Query { by_end: true, ..Query::default() };
    for limit in [1, 2, 50] {
        assert_eq!(places(h, &ids, by_end.clone(), limit).await, [4, 1, 5, 0, 3]);
    }
    let failed = Query { states: vec!["failed".into()], ..by_end.clone() };
    assert_eq!(places(h, &ids, failed, 1).await, [4, 0]);
    let between = Query { since_ms: Some(T0 + 20), until_ms: Some(T0 + 40), ..by_end.clone() };
    assert_eq!(places(h, &ids, between, 1).await, [1, 5, 0]);
    let frozen = Query { to_id: Some(ids[3]), ..by_end.clone() };
    assert_eq!(places(h, &ids, frozen, 2).await, [1, 0, 3]);
    let running = Query { states: vec!["running".into()], ..by_end.clone() };
    assert_eq!(places(h, &ids, running, 2).await, [0; 0]);
    // Those whose records are gone stand among the others.
    let prune = Prune { records_before_ms: T0 + 25, jobs_before_ms: 0, limit: 100 };
    assert_eq!(h.store().prune(prune).await.unwrap().records, 3);
    for limit in [1, 2, 50] {
        assert_eq!(places(h, &ids, by_end.clone(), limit).await, [4, 1, 5, 0, 3]);
    }
    // A cursor of the other order is another list's.
    let cursor = h.store().jobs(Query { limit: 1, ..by_end }).await.unwrap().next_cursor;
    assert!(cursor.is_some());
    assert!(matches!(h.store().jobs(Query { cursor, ..page(1) }).await, Err(Error::Cursor)));
}

pub async fn labels_find_their_jobs_among_others<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let mut new = jobs("m", 12);
    for (n, job) in new.iter_mut().enumerate() {
        job.labels = vec![("all".into(), "1".into()), ("third".into(), (n % 3).to_string())];
    }
    let ids = submit(h, new).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 4, T0).await;
    complete_one(h, success(w, &turns[0], T0 + 1)).await;
    complete_one(h, failing(w, &turns[3], T0 + 2, JobState::Failed, DROPPED)).await;
    let labelled = |third: &str| Query {
        labels: vec![("all".into(), "1".into()), ("third".into(), third.into())],
        now_ms: T0,
        ..Query::default()
    };
    assert_eq!(places(h, &ids, labelled("0"), 2).await, [9, 6, 3, 0]);
    assert_eq!(places(h, &ids, labelled("1"), 3).await, [10, 7, 4, 1]);
    assert_eq!(places(h, &ids, labelled("3"), 3).await, [0; 0]);
    let of = |state: &str| Query { states: vec![state.into()], ..labelled("0") };
    assert_eq!(places(h, &ids, of("queued"), 1).await, [9, 6]);
    assert_eq!(places(h, &ids, of("succeeded"), 1).await, [0]);
    assert_eq!(places(h, &ids, Query { causes: vec!["transport".into()], ..labelled("0") }, 1).await, [3]);
    assert_eq!(places(h, &ids, Query { whys: vec!["line".into()], ..labelled("0") }, 1).await, [9, 6]);
    assert_eq!(places(h, &ids, Query { by_end: true, ..labelled("0") }, 1).await, [3, 0]);
    assert_eq!(places(h, &ids, Query { to_id: Some(ids[6]), ..labelled("0") }, 2).await, [6, 3, 0]);
}

pub async fn a_frozen_filter_leaves_out_what_is_submitted_later<H: Harness>(h: &H) {
    let ids = submit(h, jobs("m", 5)).await;
    let frozen = Query { to_id: Some(ids[4]), until_ms: Some(T0 + 1), ..Query::default() };
    assert_eq!(places(h, &ids, frozen.clone(), 2).await, [4, 3, 2, 1, 0]);
    let later = submit(h, jobs("m", 3)).await;
    let all = [ids.clone(), later].concat();
    assert_eq!(places(h, &all, frozen.clone(), 2).await, [4, 3, 2, 1, 0]);
    let part = Query { to_id: Some(ids[2]), states: vec!["queued".into()], ..frozen };
    assert_eq!(places(h, &all, part, 2).await, [2, 1, 0]);
}

pub async fn what_is_paused_is_found_and_shown<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let mut new = jobs("m", 5);
    new[3].lane.queue = "night".into();
    let ids = submit(h, new).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 1, T0).await;
    assert_eq!(turns[0].job_id, ids[0]);
    let pause = |by: &str| Pause { since_ms: T0 + 1, by: by.into(), reason: Some("so".into()) };
    h.store().steer(vec![ids[0], ids[1]], Steer::Pause(pause("one")), T0 + 1).await.unwrap();
    h.store().pause_queue("night".into(), Some(pause("all"))).await.unwrap();
    h.store().pause_queue("empty".into(), Some(pause("none"))).await.unwrap();

    assert_eq!(places(h, &ids, whys(&["paused"], T0), 2).await, [3, 1, 0], "a job in hand stops after it");
    assert_eq!(places(h, &ids, whys(&["line"], T0), 2).await, [4, 2]);
    let jobs = h.store().jobs(page(9)).await.unwrap().items;
    let shown: Vec<_> = jobs.iter().rev().map(|job| (job.paused.clone(), job.queue_paused.clone())).collect();
    let job = (Some(pause("one")), None);
    let none = (None, None);
    assert_eq!(shown, [job.clone(), job, none.clone(), (None, Some(pause("all"))), none]);

    let queues = h.store().queues(T0 + 2).await.unwrap();
    let told: Vec<_> = queues.iter().map(|q| (q.queue.as_str(), q.ready, q.running, q.paused_jobs)).collect();
    assert_eq!(told, [("default", 2, 1, 2), ("empty", 0, 0, 0), ("night", 1, 0, 0)]);
    let paused: Vec<_> = queues.iter().map(|q| q.paused.clone()).collect();
    assert_eq!(paused, [None, Some(pause("none")), Some(pause("all"))]);
    // Neither is before the last in line.
    let last = h.store().standing(ids[4], T0 + 2).await.unwrap().unwrap();
    assert_eq!((last.ahead, last.claims_last_minute), (1, 0));
    let later = h.store().standing(ids[4], T0 + 60_000).await.unwrap().unwrap();
    assert_eq!(later.claims_last_minute, 1);
}

pub async fn a_schedule_finds_its_jobs<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let schedules = [ScheduleId::fresh(), ScheduleId::fresh()];
    let mut new = jobs("m", 6);
    for (n, job) in new.iter_mut().enumerate().skip(1) {
        job.schedule = Some(schedules[n % 2]);
    }
    let ids = submit(h, new).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 3, T0).await;
    complete_one(h, failing(w, &turns[2], T0 + 1, JobState::Failed, DROPPED)).await;
    let of = |n: usize| Query { schedule: Some(schedules[n]), now_ms: T0, ..Query::default() };
    assert_eq!(places(h, &ids, of(0), 1).await, [4, 2]);
    assert_eq!(places(h, &ids, of(1), 2).await, [5, 3, 1]);
    assert_eq!(places(h, &ids, Query { states: vec!["queued".into()], ..of(0) }, 1).await, [4]);
    assert_eq!(places(h, &ids, Query { causes: vec!["transport".into()], ..of(0) }, 1).await, [2]);
    assert_eq!(places(h, &ids, Query { whys: vec!["line".into()], ..of(1) }, 1).await, [5, 3]);
    assert_eq!(places(h, &ids, Query { by_end: true, ..of(0) }, 1).await, [2]);
    assert_eq!(places(h, &ids, Query { by_end: true, ..of(1) }, 1).await, [0; 0]);
    assert_eq!(get(h, ids[2]).await.schedule, Some(schedules[0]));
    assert_eq!(get(h, ids[0]).await.schedule, None);
}
