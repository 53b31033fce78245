//! Holds by hand: opened, dated anew, and left as any other.

use super::*;
use reprieve::store::*;

async fn close<H: Harness>(h: &H, model: &str, until_ms: Option<i64>, now_ms: i64) -> HoldRow {
    let reason = Some("maintenance".to_owned());
    h.store().close_scope(HoldClose { scope: scope(model), until_ms, by: "ops".into(), reason, now_ms }).await.unwrap()
}

/// What befell a hold: event, end, by whom, why.
async fn events<H: Harness>(h: &H, hold: &HoldRow) -> Vec<(String, Option<i64>, Option<String>, Option<String>)> {
    let rows = h.store().hold_events(hold.id).await.unwrap();
    rows.into_iter().map(|row| (row.event, row.until_ms, row.by, row.reason)).collect()
}

pub async fn a_scope_is_closed_until_its_instant_and_left_by_one_probe<H: Harness>(h: &H) {
    // Nobody has sent there yet.
    let hold = close(h, "m", Some(T0 + 5_000), T0).await;
    assert_eq!((hold.scope.clone(), hold.opened_ms, hold.until_ms), (scope("m"), T0, Some(T0 + 5_000)));
    assert_eq!((hold.cause.as_str(), hold.source.as_str()), ("manual", "operator"));
    assert_eq!((hold.kind, hold.raw.clone(), hold.refusal, hold.probe), (None, None, None, None));
    submit(h, [jobs("m", 5), jobs("n", 1)].concat()).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 10, T0 + 4_999).await;
    assert_eq!(turns.iter().map(|turn| turn.lane.scope.model.as_str()).collect::<Vec<_>>(), ["n"]);
    assert_eq!(h.store().next_due_ms(T0 + 4_999).await.unwrap(), Some(T0 + 5_000));
    let turns = claim(h, w, 10, T0 + 5_000).await;
    let [probe] = turns.as_slice() else { panic!("{turns:?}") };
    let right = Probe { hold_id: hold.id, tests: None, resume_ms: T0 + 5_000 };
    assert_eq!(probe.grant.probe, Some(right));
    complete_one(h, success(w, probe, T0 + 5_100)).await;
    assert!(open_holds(h).await.is_empty());
    let mut ramp = Vec::new();
    for round in 1..3 {
        let turns = claim(h, w, 10, T0 + 5_100 + round).await;
        ramp.push(turns.len());
        h.store().complete(turns.iter().map(|turn| success(w, turn, T0 + 5_200)).collect()).await.unwrap();
    }
    assert_eq!(ramp, [2, 2], "as after any hold, it does not all go at once");
}

pub async fn a_scope_closed_without_an_end_waits_for_a_release<H: Harness>(h: &H) {
    let ids = submit(h, jobs("m", 3)).await;
    let w = worker(h, T0).await;
    let hand = claim(h, w, 1, T0).await.remove(0);
    let hold = close(h, "", None, T0 + 1).await;
    assert_eq!((hold.scope.clone(), hold.until_ms), (scope(""), None));
    assert_eq!(permit(h, &hand, T0 + 2).await, Permit::Closed { until_ms: None });
    // What was on the wire ends as it does: an answer lifts nothing, and a refusal gives it no end.
    complete_one(h, success(w, &hand, T0 + 3)).await;
    let now_ms = T0 + 1_000_000_000;
    let live = worker(h, now_ms).await;
    assert!(claim(h, live, 10, now_ms).await.is_empty());
    assert_eq!(open_holds(h).await[0].until_ms, None);
    let release = HoldRelease { id: hold.id, by: "ops".into(), reason: None, now_ms };
    let ended = h.store().release_hold(release).await.unwrap().unwrap();
    assert_eq!((ended.end.as_deref(), ended.waiting), (Some("released"), 0), "nothing waits behind what has ended");
    assert_eq!(h.store().hold(hold.id).await.unwrap().unwrap().waiting, 0);
    assert_eq!(claim(h, live, 10, now_ms).await[0].job_id, ids[1]);
}

pub async fn a_hold_is_dated_anew_by_hand_both_ways<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    submit(h, jobs("m", 4)).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 2, T0).await;
    complete_one(h, deferred(w, &turns[0], T0 + 1, T0 + 60_000)).await;
    let opened = open_holds(h).await.remove(0);
    let longer = close(h, "m", Some(T0 + 90_000), T0 + 2).await;
    assert_eq!((longer.id, longer.until_ms, longer.opened_ms), (opened.id, Some(T0 + 90_000), T0 + 1));
    assert_eq!((longer.cause.as_str(), longer.source.as_str(), longer.refusal), ("manual", "operator", None));
    let shorter = close(h, "m", Some(T0 + 1_000), T0 + 3).await;
    assert_eq!((shorter.id, shorter.until_ms), (opened.id, Some(T0 + 1_000)));
    // A refusal after it extends, and never shortens.
    complete_one(h, deferred(w, &turns[1], T0 + 4, T0 + 2_000)).await;
    let extended = open_holds(h).await.remove(0);
    assert_eq!((extended.until_ms, extended.cause.as_str(), extended.barren), (Some(T0 + 2_000), "rate_limit", 0));
    assert!(extended.refusal.is_some());
    close(h, "m", Some(T0 + 5_000), T0 + 5).await;
    assert!(claim(h, w, 9, T0 + 4_999).await.is_empty());
    let probe = claim(h, w, 9, T0 + 5_000).await.remove(0);
    complete_one(h, deferred(w, &probe, T0 + 5_001, T0 + 4_000)).await;
    let refused = open_holds(h).await.remove(0);
    assert_eq!((refused.until_ms, refused.barren), (Some(T0 + 5_000), 1));
    let by_hand = |until_ms| ("closed_by_hand".into(), Some(until_ms), Some("ops".into()), Some("maintenance".into()));
    let event = |event: &str, until_ms| (event.into(), Some(until_ms), None, None);
    let expected = [
        event("opened", T0 + 60_000),
        by_hand(T0 + 90_000),
        by_hand(T0 + 1_000),
        event("extended", T0 + 2_000),
        event("concurrent_refusal", T0 + 2_000),
        by_hand(T0 + 5_000),
        event("probe_started", T0 + 5_000),
        event("refused_again", T0 + 5_000),
    ];
    assert_eq!(events(h, &opened).await, expected);
}

pub async fn a_probe_on_its_way_lifts_no_hold_that_was_dated_over_it<H: Harness>(h: &H) {
    submit(h, jobs("m", 3)).await;
    let w = worker(h, T0).await;
    close(h, "m", Some(T0 + 10), T0).await;
    let probe = claim(h, w, 3, T0 + 10).await.remove(0);
    close(h, "m", Some(T0 + 20), T0 + 11).await;
    // Its end comes while the probe is out: there is one.
    assert!(claim(h, w, 3, T0 + 25).await.is_empty());
    complete_one(h, success(w, &probe, T0 + 26)).await;
    assert_eq!(open_holds(h).await.len(), 1);
    let next = claim(h, w, 3, T0 + 26).await;
    assert_eq!(next.len(), 1);
    complete_one(h, success(w, &next[0], T0 + 27)).await;
    assert!(open_holds(h).await.is_empty());
}
