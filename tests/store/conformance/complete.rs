//! Completing: what is kept, what follows, and that a stale fence writes nothing.

use super::*;
use reprieve::store::*;

async fn one<H: Harness>(h: &H) -> (WorkerId, ClaimedTurn) {
    wide(h, &["m"]).await;
    submit(h, jobs("m", 1)).await;
    let w = worker(h, T0).await;
    let turn = claim(h, w, 1, T0).await.remove(0);
    (w, turn)
}

pub async fn a_success_is_kept_whole_and_final<H: Harness>(h: &H) {
    let (w, turn) = one(h).await;
    let mut done = success(w, &turn, T0 + 50);
    let result = "{\"text\":\"\\u0000 İ 𝄞\", \"b\": 1, \"a\":2}".to_owned();
    done.next = Next::Final { state: JobState::Succeeded, result: Some(result.clone()), error: None };
    done.record.response = Some(result.clone());
    let (expected, expected_send) = (done.record.clone(), done.send.clone().unwrap());
    assert_eq!(h.store().complete(vec![done.clone(), done.clone()]).await.unwrap(), [Applied::Done, Applied::Void]);
    assert_eq!(complete_one(h, done).await, Applied::Void);
    let row = get(h, turn.job_id).await;
    assert_eq!(
        (row.state, row.finished_ms, row.result, row.error),
        (JobState::Succeeded, Some(T0 + 50), Some(result), None)
    );
    assert_eq!((row.seq, row.executions, row.hold), (None, None, None));
    let views = h.store().turns(turn.job_id).await.unwrap();
    assert_eq!(views, [TurnView { fence: turn.fence, record: expected, sends: vec![expected_send], evidence: vec![] }]);
    let figures = h.store().overview(T0).await.unwrap();
    assert_eq!((figures.ready, figures.running, figures.succeeded), (0, 0, 1));
    assert_eq!(permit(h, &turn, T0 + 51).await, Permit::Void);
    assert_eq!(h.store().set_back(setback(w, &turn, 1, T0 + 51, T0 + 60)).await.unwrap(), Applied::Void);
}

pub async fn a_job_goes_on_turn_by_turn<H: Harness>(h: &H) {
    let (w, turn) = one(h).await;
    let inbox = vec![
        InboxRow { seq: 2, kind: "continuation".into(), body: "\"go on\"".into(), at_ms: T0 + 1 },
        InboxRow { seq: 2, kind: "message".into(), body: "{}".into(), at_ms: T0 + 1 },
    ];
    let mut cut = success(w, &turn, T0 + 1);
    cut.record.outcome = Outcome::Truncated;
    cut.record.cut = Some("output_limit".into());
    cut.record.response = Some("{\"text\":\"one\"}".into());
    cut.next = Next::Turn { due_ms: Some(T0 + 500), repairs: 1, inbox: inbox.clone() };
    assert_eq!(complete_one(h, cut).await, Applied::Done);
    assert!(claim(h, w, 1, T0 + 499).await.is_empty());
    let second = claim(h, w, 1, T0 + 500).await.remove(0);
    assert_eq!((second.seq, second.repairs, second.executions), (2, 1, 0));
    let history = h.store().history(turn.job_id).await.unwrap();
    assert_eq!(history.responses, [(1, Some("output_limit".into()), "{\"text\":\"one\"}".into())]);
    assert_eq!(history.inbox, inbox);
    assert_eq!(complete_one(h, success(w, &second, T0 + 600)).await, Applied::Done);
    let seqs: Vec<u32> = h.store().turns(turn.job_id).await.unwrap().iter().map(|view| view.record.seq).collect();
    assert_eq!(seqs, [1, 2]);
}

pub async fn a_requeue_waits_for_its_instant_and_counts<H: Harness>(h: &H) {
    let (w, turn) = one(h).await;
    complete_one(h, requeued(w, &turn, T0 + 1, T0 + 30_000)).await;
    assert!(claim(h, w, 1, T0 + 29_999).await.is_empty());
    let again = claim(h, w, 1, T0 + 30_000 - 1 + 1).await;
    assert!(again.is_empty(), "its lease has lapsed");
    let w = worker(h, T0 + 30_000).await;
    let again = claim(h, w, 1, T0 + 30_000).await.remove(0);
    assert_eq!((again.executions, again.seq), (1, 1));
    let mut drained = requeued(w, &again, T0 + 30_001, T0 + 30_001);
    drained.next = Next::Again { due_ms: T0 + 30_001, counts: false };
    complete_one(h, drained).await;
    let again = claim(h, w, 1, T0 + 30_001).await.remove(0);
    assert_eq!(again.executions, 1);
}

pub async fn a_batch_is_of_all_kinds<H: Harness>(h: &H) {
    wide(h, &["m", "n"]).await;
    submit(h, [jobs("m", 90), jobs("n", 10)].concat()).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 100, T0).await;
    assert_eq!(turns.len(), 100);
    let batch: Vec<Completion> = turns
        .iter()
        .enumerate()
        .map(|(n, turn)| match (turn.lane.scope.model.as_str(), n % 3) {
            ("n", _) => deferred(w, turn, T0 + 10, T0 + 7_000),
            (_, 0) => requeued(w, turn, T0 + 10, T0 + 5_000),
            (_, 1) => Completion { fence: Fence(turn.fence.0 + 100_000), ..success(w, turn, T0 + 10) },
            _ => success(w, turn, T0 + 10),
        })
        .collect();
    let applied = h.store().complete(batch.clone()).await.unwrap();
    for (completion, applied) in batch.iter().zip(applied) {
        let stale = completion.fence.0 > 100_000;
        assert_eq!(applied, if stale { Applied::Void } else { Applied::Done });
    }
    let holds = open_holds(h).await;
    assert_eq!(holds.len(), 1);
    assert_eq!((holds[0].scope.clone(), holds[0].until_ms, holds[0].waiting), (scope("n"), Some(T0 + 7_000), 10));
}

pub async fn a_turn_asked_to_cancel_is_never_put_back<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    submit(h, jobs("m", 5)).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 5, T0).await;
    let ids: Vec<JobId> = turns.iter().map(|turn| turn.job_id).collect();
    assert_eq!(h.store().cancel(ids.clone(), T0 + 1).await.unwrap(), [CancelOutcome::Asked; 5]);
    let mut asked = h.store().cancelled(w).await.unwrap();
    asked.sort();
    let mut expected: Vec<_> = turns.iter().map(|turn| (turn.job_id, turn.fence)).collect();
    expected.sort();
    assert_eq!(asked, expected);
    assert_eq!(permit(h, &turns[0], T0 + 2).await, Permit::Cancelled);
    let next_turn =
        Completion { next: Next::Turn { due_ms: None, repairs: 0, inbox: vec![] }, ..success(w, &turns[2], T0 + 2) };
    let batch = vec![
        deferred(w, &turns[0], T0 + 2, T0 + 9),
        requeued(w, &turns[1], T0 + 2, T0 + 9),
        next_turn,
        success(w, &turns[3], T0 + 2),
    ];
    assert_eq!(h.store().complete(batch).await.unwrap(), [Applied::Done; 4]);
    h.store().give_back(w, vec![(turns[4].job_id, turns[4].fence)], T0 + 2).await.unwrap();
    for (n, id) in ids.iter().enumerate() {
        let row = get(h, *id).await;
        let state = if n == 3 { JobState::Succeeded } else { JobState::Cancelled };
        assert_eq!(row.state, state, "{n}");
        assert_eq!(h.store().turns(*id).await.unwrap().len(), usize::from(n != 4));
    }
    assert_eq!(h.store().overview(T0 + 2).await.unwrap().ready, 0);
}

pub async fn a_job_that_was_told_something_goes_on<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let ids = submit(h, jobs("m", 5)).await;
    // The first is told before its turn, which reads it.
    post(h, ids[0], None, &["{\"before\":1}"]).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 5, T0).await;
    assert_eq!(post(h, ids[1], None, &["{\"meanwhile\":1}"]).await, Posted::Accepted { seq: 2 });
    assert_eq!(post(h, ids[2], None, &["{\"meanwhile\":2}"]).await, Posted::Accepted { seq: 2 });
    h.store().cancel(vec![ids[2]], T0 + 2).await.unwrap();
    h.store().cancel(vec![ids[4]], T0 + 2).await.unwrap();
    let mut ends: Vec<Completion> = turns.iter().map(|turn| ended_unless_told(w, turn, T0 + 5)).collect();
    let stale = ends[1].clone();
    ends.push(stale);
    let applied = h.store().complete(ends).await.unwrap();
    assert_eq!(applied, [vec![Applied::Done; 5], vec![Applied::Void]].concat());
    let mut seen = Vec::new();
    for id in &ids {
        seen.push(get(h, *id).await.state);
    }
    // One that is to stop goes on in no way; without a word unread its whole answer stands.
    let succeeded = JobState::Succeeded;
    assert_eq!(seen, [succeeded, JobState::Queued, JobState::Cancelled, succeeded, succeeded]);
    assert_eq!(get(h, ids[0]).await.result.as_deref(), Some("{}"));
    let next = claim(h, w, 5, T0 + 5).await;
    let [next] = next.as_slice() else { panic!("{next:?}") };
    assert_eq!((next.job_id, next.seq, next.repairs, next.executions, next.told), (ids[1], 2, 0, 0, true));
    assert_eq!(complete_one(h, ended_unless_told(w, next, T0 + 6)).await, Applied::Done);
    assert_eq!(get(h, ids[1]).await.state, succeeded);
}

pub async fn a_continuation_is_read_alone_and_messages_once_the_answer_is_whole<H: Harness>(h: &H) {
    let (w, first) = one(h).await;
    let id = first.job_id;
    assert_eq!(post(h, id, Some("a"), &["1", "2"]).await, Posted::Accepted { seq: 2 });
    complete_one(h, cut(w, &first, T0 + 2)).await;
    // Waiting to go on: what comes now waits with the others.
    assert_eq!(post(h, id, None, &["3"]).await, Posted::Accepted { seq: 3 });
    let second = claim(h, w, 1, T0 + 2).await.remove(0);
    assert_eq!(post(h, id, None, &["4"]).await, Posted::Accepted { seq: 3 });
    let row = |seq, kind: &str, body: &str| (seq, kind.to_owned(), body.to_owned());
    let go_on = |seq| row(seq, "continuation", "\"go on\"");
    let at = |seq| ["1", "2", "3", "4"].map(|body| row(seq, "message", body)).to_vec();
    assert_eq!(inbox(h, id).await, [vec![go_on(2)], at(3)].concat());
    complete_one(h, cut(w, &second, T0 + 3)).await;
    assert_eq!(inbox(h, id).await, [vec![go_on(2), go_on(3)], at(4)].concat());
    assert_eq!(post(h, id, Some("a"), &["1", "2"]).await, Posted::Duplicate { seq: 4 });
    let third = claim(h, w, 1, T0 + 3).await.remove(0);
    assert_eq!((third.seq, third.repairs), (3, 2));
    // Deferred, it leaves the transcript as it was.
    complete_one(h, deferred(w, &third, T0 + 4, T0 + 5)).await;
    let third = claim(h, w, 1, T0 + 5).await.remove(0);
    complete_one(h, ended_unless_told(w, &third, T0 + 6)).await;
    assert_eq!(get(h, id).await.state, JobState::Queued);
    let last = claim(h, w, 1, T0 + 6).await.remove(0);
    assert_eq!((last.seq, inbox(h, id).await), (4, [vec![go_on(2), go_on(3)], at(4)].concat()));
    complete_one(h, ended_unless_told(w, &last, T0 + 7)).await;
    assert_eq!(get(h, id).await.state, JobState::Succeeded);
}
