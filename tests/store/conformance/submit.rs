//! Submitting: byte for byte, idempotent, all or nothing.

use super::*;
use reprieve::store::*;

pub async fn what_was_submitted_comes_back_byte_for_byte<H: Harness>(h: &H) {
    let mut new = job("m");
    new.spec = "{\"input\":\"\\u0000 İ 𝄞 \u{0} \\ud800 \u{feff}\r\n\\\"\", \"b\":1.0, \"a\":1e2}".into();
    new.labels = vec![("team".into(), "ünï".into()), ("a".into(), "\"b\"".into())];
    new.priority = -100;
    new.deadline_ms = Some(T0 + 5);
    let first = submit(h, vec![job("m")]).await[0];
    new.retry_of = Some(first);
    let (id, spec) = (new.id, new.spec.clone());
    submit(h, vec![new]).await;
    let row = get(h, id).await;
    assert_eq!(row.spec, spec);
    assert_eq!(row.labels, [("a".into(), "\"b\"".into()), ("team".into(), "ünï".into())]);
    assert_eq!((row.priority, row.deadline_ms, row.retry_of), (-100, Some(T0 + 5), Some(first)));
    assert_eq!((row.state, row.deferred, row.seq, row.executions), (JobState::Queued, false, Some(1), Some(0)));
    assert_eq!(row.lane, lane("default", "", "m"));
    assert_eq!(h.store().job(JobId::fresh()).await.unwrap(), None);
}

pub async fn a_key_is_one_job_per_tenant<H: Harness>(h: &H) {
    let keyed = |tenant: &str, key: &str, digest: &str| {
        let mut new = job("m");
        new.lane.tenant = tenant.into();
        new.idempotency_key = Some(key.into());
        new.digest = digest.into();
        new
    };
    let (one, other) = (keyed("", "k", "1"), keyed("t", "k", "1"));
    let (first, second) = (one.id, other.id);
    let inside = keyed("", "in", "9");
    let again = keyed("", "in", "9");
    let inside_id = inside.id;
    let answers = h.store().submit(vec![one, other, inside, again]).await.unwrap();
    assert_eq!(
        answers,
        [
            Submitted::Accepted(first),
            Submitted::Accepted(second),
            Submitted::Accepted(inside_id),
            Submitted::Duplicate(inside_id)
        ]
    );
    let fresh = job("m");
    let fresh_id = fresh.id;
    let answers =
        h.store().submit(vec![keyed("", "k", "1"), fresh, keyed("", "k", "2"), keyed("t", "k", "1")]).await.unwrap();
    assert_eq!(
        answers,
        [
            Submitted::Duplicate(first),
            Submitted::Accepted(fresh_id),
            Submitted::Conflict(first),
            Submitted::Duplicate(second)
        ]
    );
    assert_eq!(h.store().overview(T0).await.unwrap().ready, 4);
}

pub async fn a_call_is_accepted_whole_or_not_at_all_and_harms_no_other<H: Harness>(h: &H) {
    let twice = job("m");
    let broken = vec![job("m"), twice.clone(), twice];
    let good: Vec<NewJob> = jobs("m", 20);
    let (broken, a, b) = tokio::join!(
        h.store().submit(broken),
        h.store().submit(good[..10].to_vec()),
        h.store().submit(good[10..].to_vec())
    );
    assert!(broken.is_err());
    assert_eq!(a.unwrap().len() + b.unwrap().len(), 20);
    assert_eq!(h.store().overview(T0).await.unwrap().ready, 20);

    let mut unnamed = job("m");
    unnamed.lane.queue = "a\0b".into();
    let refused = h.store().submit(vec![unnamed]).await;
    assert!(matches!(refused, Err(Error::Undecodable { what: "a job", .. })), "{refused:?}");
}

pub async fn many_callers_at_once_are_all_answered_in_kind<H: Harness>(h: &H) {
    let calls = (0..64).map(|n| {
        let new = jobs("m", n % 5);
        let ids: Vec<_> = new.iter().map(|job| Submitted::Accepted(job.id)).collect();
        let store = h.store().clone();
        async move { (store.submit(new).await.unwrap(), ids) }
    });
    for (answers, ids) in futures::future::join_all(calls).await {
        assert_eq!(answers, ids);
    }
    assert_eq!(h.store().overview(T0).await.unwrap().ready, (0..64).map(|n| n % 5).sum::<i64>());
}

pub async fn a_commit_moves_the_changes<H: Harness>(h: &H) {
    let mut changes = h.store().changes();
    changes.mark_unchanged();
    submit(h, jobs("m", 1)).await;
    changes.changed().await.unwrap();
}

pub async fn a_job_is_retried_once<H: Harness>(h: &H) {
    let old = submit(h, jobs("m", 2)).await;
    let retry = |of: JobId| NewJob { retry_of: Some(of), ..job("m") };
    let (first, other) = (retry(old[0]), retry(old[1]));
    let (id, other_id) = (first.id, other.id);
    let answers = h.store().submit(vec![first, retry(old[0]), other]).await.unwrap();
    assert_eq!(answers, [Submitted::Accepted(id), Submitted::Duplicate(id), Submitted::Accepted(other_id)]);
    assert_eq!(h.store().submit(vec![retry(old[0])]).await.unwrap(), [Submitted::Duplicate(id)]);
    // What failed again is retried in its turn.
    let calls = (0..16).map(|_| h.store().submit(vec![retry(id)]));
    let answers: Vec<Submitted> =
        futures::future::join_all(calls).await.into_iter().flat_map(std::result::Result::unwrap).collect();
    let accepted: Vec<JobId> = answers
        .iter()
        .filter_map(|answer| if let Submitted::Accepted(id) = answer { Some(*id) } else { None })
        .collect();
    let [again] = accepted[..] else { panic!("{answers:?}") };
    assert_eq!(answers.iter().filter(|answer| **answer == Submitted::Duplicate(again)).count(), 15);
    let mut retries = h.store().retries(vec![old[1], again, old[0], id]).await.unwrap();
    retries.sort();
    let mut expected = vec![(old[0], id), (old[1], other_id), (id, again)];
    expected.sort();
    assert_eq!(retries, expected);
    assert_eq!(h.store().overview(T0).await.unwrap().ready, 5);
}

pub async fn a_repeated_key_goes_before_a_repeated_retry<H: Harness>(h: &H) {
    let old = submit(h, jobs("m", 1)).await[0];
    let retry = |digest: &str| NewJob {
        retry_of: Some(old),
        idempotency_key: Some("k".into()),
        digest: digest.into(),
        ..job("m")
    };
    let id = submit(h, vec![retry("1")]).await[0];
    let answers = h.store().submit(vec![retry("1"), retry("2")]).await.unwrap();
    assert_eq!(answers, [Submitted::Duplicate(id), Submitted::Conflict(id)]);
    // A key that was answered with another's retry is not taken by it.
    let keyed = NewJob { idempotency_key: Some("free".into()), retry_of: Some(old), ..job("m") };
    let fresh = NewJob { idempotency_key: Some("free".into()), digest: "9".into(), ..job("m") };
    let fresh_id = fresh.id;
    let answers = h.store().submit(vec![keyed, fresh]).await.unwrap();
    assert_eq!(answers, [Submitted::Duplicate(id), Submitted::Accepted(fresh_id)]);
}

pub async fn what_is_taken_over_stands_before_the_first_turn<H: Harness>(h: &H) {
    wide(h, &["m"]).await;
    let row = |seq, kind: &str, body: &str| InboxRow { seq, kind: kind.into(), body: body.into(), at_ms: T0 };
    let carried = vec![
        row(1, "answer", "{\"cut\":null,\"response\":\"one\"}"),
        row(2, "message", "{\"content\":\"\u{0} İ\"}"),
        row(2, "message", "{\"content\":\"second\"}"),
        row(2, "answer", "{}"),
    ];
    let mut new = [job("m"), job("m")];
    new[1].carried.clone_from(&carried);
    new[1].first_seq = 3;
    let ids = submit(h, new.to_vec()).await;
    assert_eq!(get(h, ids[1]).await.seq, Some(3));
    assert_eq!(h.store().history(ids[1]).await.unwrap().inbox, carried);
    let w = worker(h, T0).await;
    let turns = claim(h, w, 10, T0).await;
    let seen: Vec<_> = turns.iter().map(|turn| (turn.job_id, turn.seq, turn.told)).collect();
    assert_eq!(seen, [(ids[0], 1, false), (ids[1], 3, true)]);
    // What stands before the turn was read, and keeps nothing from ending.
    assert_eq!(complete_one(h, ended_unless_told(w, &turns[1], T0)).await, Applied::Done);
    assert_eq!(get(h, ids[1]).await.state, JobState::Succeeded);
}
