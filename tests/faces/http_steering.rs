//! What people do over HTTP, through a real socket: what is answered where it can be done, and where it cannot.

use crate::served::{Hand, Served, body, job, redacted, serve_at_now};
use reprieve::store::{JobId, Store};
use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};

async fn status(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::Null))
}

/// A job that has ended: answered, or failed.
async fn ended(served: &Served, answered: bool) -> JobId {
    let id = served.taken(&job("x")).await;
    let hand = Hand::new(&served.store, &[]).await;
    let turn = hand.one().await;
    assert_eq!(turn.job_id, id);
    hand.complete(if answered { hand.answer(&turn) } else { hand.fail(&turn) }).await;
    hand.store.retire_worker(hand.worker, hand.now_ms()).await.unwrap();
    id
}

#[tokio::test]
async fn a_job_is_cancelled_where_it_waits_and_asked_to_stop_where_it_runs() {
    let (served, _clock) = serve_at_now().await;
    let waiting = served.taken(&job("a")).await;
    let cancel = |id: JobId| served.post(&format!("/v1/jobs/{id}/cancel"));
    let (code, said) = status(cancel(waiting)).await;
    assert_eq!((code, &said["state"]), (200, &json!("cancelled")));
    assert_eq!(status(cancel(waiting)).await.0, 200);
    let running = served.taken(&job("b")).await;
    let hand = Hand::new(&served.store, &[]).await;
    let turn = hand.one().await;
    assert_eq!(turn.job_id, running);
    let (code, said) = status(cancel(running)).await;
    assert_eq!((code, &said["state"]), (202, &json!("running")));
    let explained = served.explained(running).await;
    assert_eq!(explained["reason"], "cancelling", "{explained}");
    hand.complete(hand.answer(&turn)).await;
    let (code, said) = status(cancel(running)).await;
    assert_eq!((code, &said["type"]), (409, &json!("urn:reprieve:problem:ended")));
}

#[tokio::test]
async fn a_retry_is_a_new_job_and_the_same_one_each_time() {
    let (served, _clock) = serve_at_now().await;
    let live = served.taken(&job("a")).await;
    let retry = |id: JobId| served.post(&format!("/v1/jobs/{id}/retry"));
    let (code, said) = status(retry(live)).await;
    assert_eq!((code, &said["type"]), (409, &json!("urn:reprieve:problem:not-ended")));
    assert_eq!(status(served.post(&format!("/v1/jobs/{live}/cancel"))).await.0, 200);
    let failed = ended(&served, false).await;
    let (code, first) = status(retry(failed).header("idempotency-key", "again")).await;
    assert_eq!((code, &first["retry_of"], &first["state"]), (201, &json!(failed), &json!("queued")));
    let (code, second) = status(retry(failed)).await;
    assert_eq!((code, &second["id"]), (200, &first["id"]));
    let explained = served.explained(failed).await;
    assert!(explained["text"].as_str().unwrap().contains(first["id"].as_str().unwrap()), "{explained}");
}

#[tokio::test]
async fn messages_join_a_live_job_once() {
    let (served, clock) = serve_at_now().await;
    let id = served.taken(&job("why?")).await;
    let told = |id: JobId, body: Value| served.post(&format!("/v1/jobs/{id}/messages")).json(&body);
    let (code, said) = status(told(id, json!({"input": "in short"})).header("idempotency-key", "k")).await;
    assert_eq!((code, &said), (202, &json!({"seq": 1})));
    let (code, said) = status(told(id, json!({"input": "in short"})).header("idempotency-key", "k")).await;
    assert_eq!((code, &said), (200, &json!({"seq": 1})));
    let mut refused = vec![
        served.shown(told(id, json!({"input": "at length"})).header("idempotency-key", "k")).await,
        served.shown(told(id, json!({"messages": []}))).await,
        served.shown(told(id, json!({"text": "x"}))).await,
        served.shown(told(id, json!({"role": "tool", "content": "x"}))).await,
        served.shown(served.post(&format!("/v1/jobs/{id}/messages")).body("hello")).await,
        served
            .shown(served.post(&format!("/v1/jobs/{id}/messages")).header("content-type", "application/json").body("{"))
            .await,
    ];
    let path = format!("/v1/jobs/{id}/transcript");
    refused.push(served.shown(served.get(&path)).await);
    let raw = json!({"model": "m", "provider": "sim", "raw": {"path": "/v1/x", "body": {}}});
    let raw = served.taken(&raw).await;
    refused.push(served.shown(told(raw, json!({"input": "x"}))).await);
    let mut short = job("once");
    short["max_turns"] = json!(1);
    short["queue"] = json!("short");
    let short = served.taken(&short).await;
    let hand = Hand::new(&served.store, &["short"]).await;
    let turn = hand.claim(8).await.into_iter().find(|turn| turn.job_id == short).unwrap();
    refused.push(served.shown(told(short, json!({"input": "x"}))).await);
    clock.advance_ms(5);
    hand.complete(hand.answer(&turn)).await;
    refused.push(served.shown(told(short, json!({"input": "x"}))).await);
    let nobody = JobId::fresh();
    refused.push(served.shown(told(nobody, json!({"input": "x"}))).await);
    insta::assert_snapshot!(redacted(&refused.join("\n"), &served));
}

#[tokio::test]
async fn jobs_and_queues_are_paused_and_go_on() {
    let (served, _clock) = serve_at_now().await;
    let id = served.taken(&job("a")).await;
    let hand = Hand::new(&served.store, &[]).await;
    let at = |what: &str| served.post(&format!("/v1/jobs/{id}/{what}"));
    let mut said = vec![
        served.shown(at("pause").json(&json!({"reason": "wait for\nthe data"}))).await,
        served.shown(served.get(&format!("/v1/jobs/{id}/explain"))).await,
    ];
    assert!(hand.claim(1).await.is_empty());
    assert_eq!(status(at("resume")).await.0, 200);
    let queue = |name: &str, what: &str| served.post(&format!("/v1/queues/{name}/{what}"));
    said.push(served.shown(queue("default", "pause")).await);
    said.push(served.shown(queue("default", "pause").json(&json!({"reason": "again"}))).await);
    said.push(served.shown(served.get(&format!("/v1/jobs/{id}/explain"))).await);
    said.push(served.shown(served.get("/v1/queues")).await);
    assert!(hand.claim(1).await.is_empty());
    said.push(served.shown(queue("default", "resume")).await);
    assert_eq!(hand.claim(1).await.len(), 1);
    for refused in [
        queue("a%20b", "pause"),
        queue("default", "pause").json(&json!({"because": "x"})),
        queue("default", "pause").json(&json!({"reason": "x".repeat(501)})),
        queue("default", "pause").body("reason=x"),
        queue("default", "stop"),
        served.post(&format!("/v1/jobs/{}/pause", JobId::fresh())),
    ] {
        said.push(served.shown(refused).await);
    }
    insta::assert_snapshot!(redacted(&said.join("\n"), &served));
}

#[tokio::test]
async fn only_what_has_ended_is_deleted() {
    let (served, _clock) = serve_at_now().await;
    let done = ended(&served, true).await;
    let live = served.taken(&job("a")).await;
    let delete = |id: JobId| served.delete(&format!("/v1/jobs/{id}"));
    let (code, said) = status(delete(live)).await;
    assert_eq!((code, &said["type"]), (409, &json!("urn:reprieve:problem:not-ended")));
    assert_eq!(status(delete(done)).await, (204, Value::Null));
    assert_eq!(status(delete(done)).await.0, 404);
    assert_eq!(served.get(&format!("/v1/jobs/{done}/turns")).send().await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_scope_is_closed_by_hand_and_released() {
    let (served, clock) = serve_at_now().await;
    let id = served.taken(&job("a")).await;
    let hand = Hand::new(&served.store, &[]).await;
    let close = |body: Value| served.post("/v1/holds").json(&body);
    let scope = json!({"provider": "127.0.0.1", "account": "sim", "model": "m"});
    let with = |more: Value| {
        let mut scope = scope.clone();
        scope.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        scope
    };
    let mut said = vec![served.shown(close(with(json!({"for": "2h", "reason": "their maintenance"})))).await];
    assert!(hand.claim(1).await.is_empty());
    said.push(served.shown(served.get(&format!("/v1/jobs/{id}/explain"))).await);
    clock.advance_ms(1_000);
    said.push(served.shown(close(with(json!({"reason": "longer"})))).await);
    said.push(served.shown(served.get(&format!("/v1/jobs/{id}/explain"))).await);
    let hold = body(served.get("/v1/holds").send().await.unwrap()).await["items"][0]["id"].as_str().unwrap().to_owned();
    clock.advance_ms(1_000);
    said.push(served.shown(served.delete(&format!("/v1/holds/{hold}?reason=it%20is%20over"))).await);
    assert_eq!(hand.claim(1).await.len(), 1);
    for refused in [
        served.delete(&format!("/v1/holds/{hold}")),
        served.delete(&format!("/v1/holds/{hold}?why=x")),
        close(json!({"provider": "api.example.com", "account": "sim"})),
        close(with(json!({"for": "2h", "until": "2026-12-01T00:00:00Z"}))),
        close(with(json!({"until": "tomorrow"}))),
        close(with(json!({"until": "2026-11-30T14:00:00Z"}))),
        close(with(json!({"for": "soon"}))),
        close(with(json!({"length": "2h"}))),
        close(json!({"provider": "127.0.0.1"})),
    ] {
        said.push(served.shown(refused).await);
    }
    insta::assert_snapshot!(redacted(&said.join("\n"), &served));
}

#[tokio::test]
async fn a_schedule_is_added_once_paused_run_and_removed() {
    let (served, clock) = serve_at_now().await;
    let daily = json!({"name": "digest", "cron": "0 6 * * 1-5", "zone": "UTC", "job": job("sum up")});
    let add = |body: &Value| served.post("/v1/schedules").json(body);
    let at = |what: &str| format!("/v1/schedules/digest{what}");
    let mut said = vec![
        served.shown(add(&daily)).await,
        served.shown(add(&json!({"name": "digest", "cron": "0 7 * * *", "job": job("sum up")}))).await,
        served.shown(add(&json!({"name": "x", "cron": "61 * * * *", "job": job("a")}))).await,
        served.shown(add(&json!({"name": "x", "cron": "* * * * *", "job": {"model": "m"}}))).await,
        served.shown(add(&json!({"name": "x", "cron": "* * * * *", "job": job("a"), "often": true}))).await,
    ];
    assert_eq!(status(add(&daily)).await.0, 200);
    let (code, paused) = status(served.post(&at("/pause")).json(&json!({"reason": "holidays"}))).await;
    assert_eq!((code, &paused["paused"]["reason"], &paused["next_ms"]), (200, &json!("holidays"), &Value::Null));
    clock.advance_ms(86_400_000);
    let (code, resumed) = status(served.post(&at("/resume"))).await;
    assert_eq!((code, &resumed["paused"]), (200, &Value::Null));
    assert_eq!(resumed["next_ms"], resumed["upcoming_ms"][0]);
    said.push(served.shown(served.post(&at("/run"))).await);
    said.push(served.shown(served.get("/v1/schedules")).await);
    assert_eq!(status(served.delete(&at(""))).await, (204, Value::Null));
    said.push(served.shown(served.get(&at(""))).await);
    said.push(served.shown(served.post(&at("/run"))).await);
    insta::assert_snapshot!(redacted(&said.join("\n"), &served));
}

/// What a post says must not be passed over: a parameter or a body where none is taken.
#[tokio::test]
async fn a_post_says_nothing_that_is_not_heard() {
    let (served, _clock) = serve_at_now().await;
    let id = served.taken(&job("a")).await;
    let paths: Vec<String> = ["cancel", "retry", "pause", "resume", "messages"]
        .iter()
        .map(|what| format!("/v1/jobs/{id}/{what}"))
        .chain(
            ["jobs", "jobs/bulk", "holds", "schedules", "queues/q/pause", "queues/q/resume"]
                .map(|p| format!("/v1/{p}")),
        )
        .chain(["pause", "resume", "run"].map(|what| format!("/v1/schedules/s/{what}")))
        .collect();
    for path in &paths {
        let (code, said) = status(served.post(&format!("{path}?dry_run=1"))).await;
        assert_eq!((code, &said["at"]), (400, &json!("dry_run")), "{path}: {said}");
    }
    for path in
        paths.iter().filter(|path| path.ends_with("cancel") || path.ends_with("retry") || path.ends_with("resume"))
    {
        let (code, said) = status(served.post(path).json(&json!({"reason": "unheard"}))).await;
        assert_eq!((code, &said["type"]), (400, &json!("urn:reprieve:problem:malformed")), "{path}: {said}");
        let (code, said) = status(served.post(path).body(vec![b'x'; 3 << 20])).await;
        assert_eq!(code, 413, "{path}: {said}");
    }
    assert_eq!(body(served.get(&format!("/v1/jobs/{id}")).send().await.unwrap()).await["state"], "queued");
    assert_eq!(status(served.post(&format!("/v1/jobs/{id}/cancel")).json(&json!({}))).await.0, 200);
    let (code, said) = status(served.post("/v1/jobs").header("idempotency-key", "k".repeat(300)).json(&job("b"))).await;
    assert_eq!((code, &said["at"]), (422, &json!("/idempotency_key")));
}
