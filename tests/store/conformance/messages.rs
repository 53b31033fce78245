//! Posting: where messages stand, that a posting is repeatable, and when it is too late.

use super::*;
use reprieve::store::*;

fn row(seq: u32, body: &str) -> (u32, String, String) {
    (seq, "message".to_owned(), body.to_owned())
}

pub async fn messages_are_read_by_the_next_turn_in_the_order_posted<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let ids = submit(h, jobs("m", 2)).await;
    let text = "{\"role\":\"user\",\"content\":\"\\u0000 İ 𝄞\"}";
    assert_eq!(post(h, ids[0], None, &[text, "2"]).await, Posted::Accepted { seq: 1 });
    assert_eq!(post(h, ids[0], None, &["3"]).await, Posted::Accepted { seq: 1 });
    assert_eq!(inbox(h, ids[0]).await, [row(1, text), row(1, "2"), row(1, "3")]);
    let w = worker(h, T0 + 9).await;
    let turns = claim(h, w, 2, T0 + 9).await;
    // It kept its place in line.
    let seen: Vec<_> = turns.iter().map(|turn| (turn.job_id, turn.told)).collect();
    assert_eq!(seen, [(ids[0], true), (ids[1], false)]);
    assert_eq!(post(h, ids[0], None, &["4"]).await, Posted::Accepted { seq: 2 });
    // Put back, it is sent as it was; nothing overtakes what waits already.
    complete_one(h, requeued(w, &turns[0], T0 + 10, T0 + 20)).await;
    assert_eq!(post(h, ids[0], None, &["5"]).await, Posted::Accepted { seq: 2 });
    let again = claim(h, w, 1, T0 + 20).await.remove(0);
    assert_eq!((again.seq, again.executions, again.told), (1, 1, true));
    complete_one(h, ended_unless_told(w, &again, T0 + 21)).await;
    assert_eq!(claim(h, w, 1, T0 + 21).await[0].seq, 2);
    let expected = [row(1, text), row(1, "2"), row(1, "3"), row(2, "4"), row(2, "5")];
    assert_eq!(inbox(h, ids[0]).await, expected);
    assert_eq!(post(h, ids[0], None, &[]).await, Posted::Accepted { seq: 3 });
}

pub async fn a_posting_under_a_key_is_done_once<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let ids = submit(h, jobs("m", 2)).await;
    assert_eq!(post(h, ids[0], Some("k"), &["1", "2"]).await, Posted::Accepted { seq: 1 });
    assert_eq!(post(h, ids[0], Some("k"), &["1", "2"]).await, Posted::Duplicate { seq: 1 });
    for other in [&["1"][..], &["2", "1"], &["1", "2", "3"], &[]] {
        assert_eq!(post(h, ids[0], Some("k"), other).await, Posted::Conflict, "{other:?}");
    }
    assert_eq!(post(h, ids[1], Some("k"), &["3"]).await, Posted::Accepted { seq: 1 }, "a key is its job's");
    assert_eq!(inbox(h, ids[0]).await, [row(1, "1"), row(1, "2")]);
    let calls = (0..8).map(|_| post(h, ids[1], Some("many"), &["4"]));
    let answers = futures::future::join_all(calls).await;
    assert_eq!(answers.iter().filter(|posted| **posted == Posted::Accepted { seq: 1 }).count(), 1);
    assert_eq!(inbox(h, ids[1]).await, [row(1, "3"), row(1, "4")]);
    let w = worker(h, T0).await;
    let turn = claim(h, w, 1, T0).await.remove(0);
    complete_one(h, success(w, &turn, T0)).await;
    // Who repeats it learns what became of it, whatever became of the job.
    assert_eq!(post(h, ids[0], Some("k"), &["1", "2"]).await, Posted::Duplicate { seq: 1 });
    assert_eq!(post(h, ids[0], Some("new"), &["1"]).await, Posted::AlreadyFinal(JobState::Succeeded));
}

pub async fn nobody_reads_what_comes_too_late<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let ids = submit(h, jobs("m", 2)).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 2, T0).await;
    complete_one(h, success(w, &turns[0], T0)).await;
    h.store().cancel(vec![ids[1]], T0).await.unwrap();
    assert_eq!(post(h, ids[0], None, &["1"]).await, Posted::AlreadyFinal(JobState::Succeeded));
    assert_eq!(post(h, ids[1], None, &["1"]).await, Posted::AlreadyFinal(JobState::Cancelled), "it is to stop");
    assert_eq!(post(h, JobId::fresh(), None, &["1"]).await, Posted::Unknown);
    for id in ids {
        assert!(inbox(h, id).await.is_empty());
    }
    // The last turn that it may have: the waiting one still reads, the running one no longer.
    let id = submit(h, jobs("m", 1)).await[0];
    let until = |last| {
        let new = NewMessages { job: id, key: None, messages: vec!["1".into()], last_turn: Some(last), now_ms: T0 };
        async move { h.store().post(new).await.unwrap() }
    };
    assert_eq!(until(1).await, Posted::Accepted { seq: 1 });
    claim(h, w, 1, T0).await;
    assert_eq!(until(1).await, Posted::NoTurnLeft);
    assert_eq!(inbox(h, id).await.len(), 1);
    assert_eq!(until(2).await, Posted::Accepted { seq: 2 });
}
