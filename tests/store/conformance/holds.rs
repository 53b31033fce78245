//! Refusals close scopes; one probe tests each; an answer lifts them (contract §8, §10.1, §10.2).

use super::*;
use reprieve::store::*;

/// `n` turns of one model in a worker's hand, and as many still ready.
async fn in_hand<H: Harness>(h: &H, n: usize) -> (WorkerId, Vec<ClaimedTurn>) {
    wide(h, &["m"]).await;
    submit(h, jobs("m", 2 * n)).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, u32::try_from(n).unwrap(), T0).await;
    assert_eq!(turns.len(), n);
    (w, turns)
}

async fn hold<H: Harness>(h: &H) -> HoldRow {
    let mut holds = open_holds(h).await;
    assert_eq!(holds.len(), 1, "{holds:?}");
    holds.remove(0)
}

pub async fn a_refusal_closes_its_scope_until_its_instant<H: Harness>(h: &H) {
    let (w, turns) = in_hand(h, 2).await;
    wide(h, &["other"]).await;
    complete_one(h, deferred(w, &turns[0], T0 + 10, T0 + 7_000)).await;
    let held = hold(h).await;
    let key = SendKey { job_id: turns[0].job_id, fence: turns[0].fence, n: 1 };
    assert_eq!((held.scope.clone(), held.until_ms, held.opened_ms), (scope("m"), Some(T0 + 7_000), T0 + 10));
    assert_eq!((held.source.as_str(), held.raw.as_deref(), held.refusal), ("retry-after", Some("7"), Some(key)));
    assert_eq!(held.refusal_status, Some(429), "what the refusal that dated it was answered with");
    assert_eq!((held.barren, held.extended, held.waiting, held.probe), (0, 0, 3, None));
    assert!(claim(h, w, 10, T0 + 6_999).await.is_empty());
    submit(h, jobs("other", 1)).await;
    assert_eq!(claim(h, w, 10, T0 + 6_999).await.len(), 1, "another model of the account goes on");
    assert_eq!(permit(h, &turns[1], T0 + 6_999).await, Permit::Closed { until_ms: Some(T0 + 7_000) });
    assert_eq!(h.store().next_due_ms(T0 + 20).await.unwrap(), Some(T0 + 7_000));
    let row = get(h, turns[0].job_id).await;
    assert_eq!((row.state, row.deferred, row.deferrals, row.executions), (JobState::Queued, true, Some(1), Some(0)));
    assert_eq!(row.hold, Some(hold(h).await));
    let figures = h.store().overview(T0 + 10).await.unwrap();
    assert_eq!((figures.ready, figures.deferred, figures.running, figures.holds), (0, 3, 2, 1));
    assert_eq!(figures.next_resume_ms, Some(T0 + 7_000));
}

pub async fn an_allowance_closes_the_whole_account<H: Harness>(h: &H) {
    let (w, turns) = in_hand(h, 1).await;
    wide(h, &["other"]).await;
    submit(h, jobs("other", 1)).await;
    let mut spent = deferred(w, &turns[0], T0, T0 + 7_000);
    spent.refusal = Some(refusal(scope(""), T0 + 7_000, 0));
    complete_one(h, spent).await;
    assert!(claim(h, w, 10, T0 + 6_999).await.is_empty());
    let probe = claim(h, w, 10, T0 + 7_000).await;
    assert_eq!(probe.len(), 1, "one probe for all its models");
    complete_one(h, success(w, &probe[0], T0 + 7_100)).await;
    assert!(open_holds(h).await.is_empty());
    assert!(!claim(h, w, 10, T0 + 7_100).await.is_empty());
}

pub async fn one_probe_goes_and_its_answer_opens_a_ramp<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    submit(h, jobs("m", 40)).await;
    let w = worker(h, T0).await;
    let first = claim(h, w, 1, T0).await.remove(0);
    complete_one(h, deferred(w, &first, T0, T0 + 5_000)).await;
    let held = hold(h).await;
    let mut probe = claim(h, w, 10, T0 + 5_003).await;
    assert_eq!(probe.len(), 1);
    let probe = probe.remove(0);
    assert_eq!((probe.job_id, probe.deferrals, probe.waiting_since_ms), (first.job_id, 1, Some(T0)));
    let expected = Probe { hold_id: held.id, tests: held.refusal, resume_ms: T0 + 5_000 };
    assert_eq!(probe.grant.probe, Some(expected));
    assert!(probe.grant.ramping);
    assert!(claim(h, w, 10, T0 + 5_003).await.is_empty());
    assert_eq!(hold(h).await.probe, Some(probe.job_id));
    // Asked for again while it has the right: the same.
    let Permit::Granted(again) = permit(h, &probe, T0 + 6_100).await else { panic!() };
    assert_eq!((again.permit_ms, again.probe), (T0 + 6_100, Some(expected)));

    let answer =
        Answer { job_id: probe.job_id, fence: probe.fence, probe: Some(held.id), silent: false, now_ms: T0 + 6_200 };
    h.store().answered(vec![answer]).await.unwrap();
    assert!(open_holds(h).await.is_empty());
    let mut widths = Vec::new();
    let mut out = vec![probe];
    for round in 0..4 {
        let now_ms = T0 + 6_300 + round;
        let more = claim(h, w, 64, now_ms).await;
        out.extend(more);
        widths.push(out.len());
        let answered = round > 0;
        let done = out.drain(..).map(|turn| Completion { answered, ..success(w, &turn, now_ms) }).collect();
        h.store().complete(done).await.unwrap();
    }
    // The probe's answer was told by itself, not with its end.
    assert_eq!(widths, [2, 2, 4, 8]);
    let all = h.store().holds(Query { include_ended: true, ..Query::default() }).await.unwrap();
    assert_eq!((all.len(), all[0].end.as_deref(), all[0].ended_ms), (1, Some("answered"), Some(T0 + 6_200)));
}

pub async fn a_refused_probe_dates_the_hold_again_and_is_barren<H: Harness>(h: &H) {
    let (w, turns) = in_hand(h, 1).await;
    complete_one(h, deferred(w, &turns[0], T0, T0 + 1_000)).await;
    let mut now_ms = T0 + 1_000;
    for barren in 1..=3 {
        let probe = claim(h, w, 10, now_ms).await.remove(0);
        assert_eq!(probe.grant.barren, barren - 1);
        complete_one(h, deferred(w, &probe, now_ms + 10, now_ms + 2_000)).await;
        let held = hold(h).await;
        assert_eq!(
            (held.until_ms, held.barren, held.extended, held.probe),
            (Some(now_ms + 2_000), barren, barren, None)
        );
        assert!(claim(h, w, 10, now_ms + 1_999).await.is_empty());
        now_ms += 2_000;
    }
    let probe = claim(h, w, 10, now_ms).await.remove(0);
    assert_eq!(probe.deferrals, 4);
    complete_one(h, success(w, &probe, now_ms)).await;
    let next = claim(h, w, 1, now_ms).await.remove(0);
    assert_eq!(next.grant.barren, 0, "an answer ends the row");
}

pub async fn what_was_on_the_wire_extends_and_proves_nothing<H: Harness>(h: &H) {
    let (w, turns) = in_hand(h, 5).await;
    complete_one(h, deferred(w, &turns[0], T0, T0 + 1_000)).await;
    // Another refusal of the same moment, shorter: nothing is shortened.
    h.store().set_back(setback(w, &turns[1], 1, T0, T0 + 500)).await.unwrap();
    let held = hold(h).await;
    assert_eq!((held.until_ms, held.extended, held.barren), (Some(T0 + 1_000), 0, 0));
    // A longer one extends.
    h.store().set_back(setback(w, &turns[2], 1, T0, T0 + 1_500)).await.unwrap();
    let held = hold(h).await;
    assert_eq!((held.until_ms, held.extended, held.barren), (Some(T0 + 1_500), 1, 0));
    assert_eq!(held.refusal.unwrap().job_id, turns[2].job_id);
    // An answer to an older permit lifts nothing, told first or with the end.
    let answer = |turn: &ClaimedTurn| Answer {
        job_id: turn.job_id,
        fence: turn.fence,
        probe: None,
        silent: false,
        now_ms: T0 + 20,
    };
    h.store().answered(vec![answer(&turns[3])]).await.unwrap();
    complete_one(h, success(w, &turns[4], T0 + 30)).await;
    assert_eq!(hold(h).await.until_ms, Some(T0 + 1_500));
    // While the probe is out, a straggler's refusal closes the scope again; the probe's answer lifts it all the same.
    let w2 = worker(h, T0 + 2_500).await;
    let probe = claim(h, w2, 1, T0 + 2_500).await.remove(0);
    complete_one(h, deferred(w, &turns[3], T0 + 2_510, T0 + 9_000)).await;
    assert_eq!(permit(h, &turns[1], T0 + 2_600).await, Permit::Closed { until_ms: Some(T0 + 9_000) });
    complete_one(h, success(w2, &probe, T0 + 2_700)).await;
    assert!(open_holds(h).await.is_empty());
}

pub async fn the_longest_waiting_turn_in_hand_probes_first<H: Harness>(h: &H) {
    let (w, turns) = in_hand(h, 3).await;
    h.store().set_back(setback(w, &turns[0], 1, T0 + 5, T0 + 1_000)).await.unwrap();
    h.store().set_back(setback(w, &turns[1], 1, T0 + 4, T0 + 900)).await.unwrap();
    assert_eq!(get(h, turns[1].job_id).await.wait_until_ms, Some(T0 + 900));
    assert!(claim(h, w, 10, T0 + 1_000).await.is_empty(), "turns in hand go first");
    assert_eq!(permit(h, &turns[0], T0 + 1_000).await, Permit::Full, "one that waits longer goes first");
    let Permit::Granted(grant) = permit(h, &turns[1], T0 + 1_001).await else { panic!() };
    assert!(grant.probe.is_some());
    assert_eq!(permit(h, &turns[0], T0 + 1_002).await, Permit::Full);
    // Given back, it is the other's.
    h.store().give_back(w, vec![(turns[1].job_id, turns[1].fence)], T0 + 1_003).await.unwrap();
    assert!(matches!(permit(h, &turns[0], T0 + 1_004).await, Permit::Granted(grant) if grant.probe.is_some()));
}

pub async fn a_turn_in_hand_that_does_not_ask_is_waited_for_a_second<H: Harness>(h: &H) {
    let (w, turns) = in_hand(h, 2).await;
    h.store().set_back(setback(w, &turns[0], 1, T0, T0 + 1_000)).await.unwrap();
    assert!(claim(h, w, 10, T0 + 1_999).await.is_empty());
    assert_eq!(claim(h, w, 10, T0 + 2_000).await.len(), 1);
}

pub async fn a_probe_that_comes_to_nothing_gives_the_right_back<H: Harness>(h: &H) {
    let (w, turns) = in_hand(h, 2).await;
    complete_one(h, deferred(w, &turns[0], T0, T0 + 1_000)).await;
    let mut now_ms = T0 + 1_000;
    // A fault in place: another probe after the transient wait, and the hold is not shortened by it.
    let probe = claim(h, w, 1, now_ms).await.remove(0);
    let mut fault = setback(w, &probe, 1, now_ms + 1, now_ms + 750);
    (fault.refusal, fault.evidence) = (None, None);
    fault.send.outcome = "failed".into();
    h.store().set_back(fault).await.unwrap();
    assert_eq!((hold(h).await.until_ms, hold(h).await.probe), (Some(now_ms + 750), None));
    now_ms += 750;
    // Requeued: the same.
    assert!(matches!(permit(h, &probe, now_ms).await, Permit::Granted(_)));
    complete_one(h, requeued(w, &probe, now_ms, now_ms + 800)).await;
    assert_eq!((hold(h).await.until_ms, hold(h).await.probe), (Some(now_ms + 800), None));
    now_ms += 800;
    // Cancelled, drained, given back: at once.
    let probe = claim(h, w, 1, now_ms).await.remove(0);
    h.store().cancel(vec![probe.job_id], now_ms).await.unwrap();
    h.store().give_back(w, vec![(probe.job_id, probe.fence)], now_ms).await.unwrap();
    // Lost: at the lease's end.
    let probe = claim(h, w, 1, now_ms).await;
    assert_eq!(probe.len(), 1);
    now_ms = T0 + LEASE_MS;
    h.store().rescue(super::workers::rescue(now_ms)).await.unwrap();
    let w = worker(h, now_ms).await;
    let probe = claim(h, w, 10, now_ms).await;
    assert_eq!(probe.len(), 1);
    assert!(probe[0].grant.probe.is_some());
    assert_eq!(hold(h).await.barren, 0);
}

pub async fn a_silent_probe_makes_room_for_one_more<H: Harness>(h: &H) {
    let (w, turns) = in_hand(h, 3).await;
    complete_one(h, deferred(w, &turns[0], T0, T0 + 1_000)).await;
    let silent = claim(h, w, 10, T0 + 1_000).await.remove(0);
    let answer = Answer {
        job_id: silent.job_id,
        fence: silent.fence,
        probe: silent.grant.probe.map(|probe| probe.hold_id),
        silent: true,
        now_ms: T0 + 11_000,
    };
    h.store().answered(vec![answer]).await.unwrap();
    assert_eq!(claim(h, w, 10, T0 + 11_000).await.len(), 1);
    assert!(claim(h, w, 10, T0 + 11_000).await.is_empty());
    complete_one(h, success(w, &silent, T0 + 12_000)).await;
    assert!(open_holds(h).await.is_empty());
}

pub async fn a_permit_asked_for_again_is_checked_again<H: Harness>(h: &H) {
    h.store().configure_scopes(vec![ScopeConfig { scope: scope("m"), max_in_flight: Some(2) }]).await.unwrap();
    submit(h, jobs("m", 3)).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 3, T0).await;
    assert_eq!(turns.len(), 2);
    let Permit::Granted(grant) = permit(h, &turns[0], T0 + 1_500).await else { panic!() };
    assert_eq!((grant.permit_ms, grant.probe), (T0 + 1_500, None));
    // A wait in hand gives its place to others, and finds it taken.
    h.store().set_back(setback_without_refusal(w, &turns[1], T0 + 1_600)).await.unwrap();
    let third = claim(h, w, 3, T0 + 1_600).await;
    assert_eq!(third.len(), 1);
    assert_eq!(permit(h, &turns[1], T0 + 1_700).await, Permit::Full);
    complete_one(h, success(w, &third[0], T0 + 1_800)).await;
    assert!(matches!(permit(h, &turns[1], T0 + 1_900).await, Permit::Granted(_)));
    assert_eq!(permit(h, &third[0], T0 + 1_900).await, Permit::Void);
}

fn setback_without_refusal(w: WorkerId, turn: &ClaimedTurn, now_ms: i64) -> Setback {
    let mut fault = setback(w, turn, 1, now_ms, now_ms + 10);
    (fault.refusal, fault.evidence) = (None, None);
    fault.send.outcome = "failed".into();
    fault
}

pub async fn a_replaced_send_is_kept_once_with_its_evidence<H: Harness>(h: &H) {
    let (w, turns) = in_hand(h, 1).await;
    let first = setback(w, &turns[0], 1, T0, T0 + 1_000);
    assert_eq!(h.store().set_back(first.clone()).await.unwrap(), Applied::Done);
    assert_eq!(h.store().set_back(first.clone()).await.unwrap(), Applied::Done);
    assert_eq!(hold(h).await.barren, 0, "told twice, it happened once");
    let Permit::Granted(grant) = permit(h, &turns[0], T0 + 1_000).await else { panic!() };
    let turn = ClaimedTurn { grant, ..turns[0].clone() };
    let mut done = success(w, &turn, T0 + 1_100);
    let last = send(&turn, 2, "answered", T0 + 1_100);
    done.send = Some(last.clone());
    complete_one(h, done).await;
    let views = h.store().turns(turn.job_id).await.unwrap();
    assert_eq!(views[0].sends, [first.send.clone(), last.clone()]);
    assert_eq!(views[0].evidence, [first.evidence.clone().unwrap()]);
    assert_eq!(last.tests.unwrap().n, 1);
}

pub async fn a_release_lifts_at_once<H: Harness>(h: &H) {
    let (w, turns) = in_hand(h, 2).await;
    complete_one(h, deferred(w, &turns[0], T0, T0 + 1_000_000)).await;
    let id = hold(h).await.id;
    let release = HoldRelease { id, by: "ops".into(), reason: Some("paid".into()), now_ms: T0 + 5 };
    let lifted = h.store().release_hold(release.clone()).await.unwrap().unwrap();
    assert_eq!((lifted.id, lifted.end.as_deref(), lifted.ended_ms), (id, Some("released"), Some(T0 + 5)));
    assert_eq!(h.store().release_hold(release).await.unwrap(), None);
    complete_one(h, success(w, &turns[1], T0 + 6)).await;
    assert!(!claim(h, w, 10, T0 + 6).await.is_empty());
}
