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
