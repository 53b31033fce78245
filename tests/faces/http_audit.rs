//! Every route that tells what there is, through a real socket: one history, and each body of it.

use crate::served::{Hand, job, redacted, refusal, serve_at_now};
use reprieve::store::{Query, ScopeConfig, Store};
use serde_json::json;

#[tokio::test]
async fn every_route_shows_the_same_history() {
    let (served, clock) = serve_at_now().await;
    let mut first = job("why?");
    first["labels"] = json!({"team": "a"});
    first["tenant"] = json!("acme");
    let first = served.taken(&first).await;
    clock.advance_ms(10);
    let second = served.taken(&job("and?")).await;
    let raw = json!({"model": "e", "provider": "sim", "queue": "gpu", "raw": {"path": "/v1/embeddings", "body": {"n": 9_007_199_254_740_993_i64}}});
    let raw = served.taken(&raw).await;
    let scopes = ["m", "e"]
        .map(|model| ScopeConfig { scope: served.directory.entries["sim"].scope(model), max_in_flight: Some(8) });
    served.store.configure_scopes(scopes.into()).await.unwrap();

    let hand = Hand::new(&served.store, &["default"]).await;
    let mut turn = hand.one().await;
    let mut behind = Vec::new();
    while turn.job_id != first {
        behind.push(turn);
        turn = hand.one().await;
    }
    clock.advance_ms(200);
    hand.complete(hand.refuse(&turn, refusal(&turn, false, clock.now_ms() + 52_000, "retry-after", Some("52")))).await;
    for other in behind {
        hand.store.give_back(hand.worker, vec![(other.job_id, other.fence)], clock.now_ms()).await.unwrap();
    }
    let hold = served.store.holds(Query::default()).await.unwrap()[0].id;
    let refused = format!("/v1/resets/{first}/{}/1", turn.fence.0);

    let mut said = Vec::new();
    for path in [
        "/v1/jobs".to_owned(),
        format!("/v1/jobs/{first}"),
        format!("/v1/jobs/{first}/turns"),
        format!("/v1/jobs/{first}/explain"),
        format!("/v1/jobs/{raw}/explain"),
        format!("/v1/jobs/{raw}/transcript"),
        "/v1/failures?cause=rate_limit".to_owned(),
        "/v1/failures/summary?by=http".to_owned(),
        "/v1/resets".to_owned(),
        refused.clone(),
        "/v1/holds".to_owned(),
        format!("/v1/holds/{hold}"),
        "/v1/queues".to_owned(),
    ] {
        said.push(served.shown(served.get(&path)).await);
    }
    // The reset comes, its probe is answered, and what was promised is told to be kept.
    clock.advance_ms(52_018);
    let probe = hand.one().await;
    clock.advance_ms(300);
    hand.complete(hand.answer(&probe)).await;
    let next = if probe.job_id == first { second } else { first };
    let last = hand.one().await;
    assert_eq!(last.job_id, next);
    hand.complete(hand.fail(&last)).await;
    for path in [
        format!("/v1/jobs/{}/transcript", probe.job_id),
        format!("/v1/jobs/{}/explain", probe.job_id),
        format!("/v1/jobs/{}/explain", last.job_id),
        refused,
        "/v1/resets/accuracy".to_owned(),
        format!("/v1/holds/{hold}"),
        "/v1/results".to_owned(),
        "/v1/usage?by=model".to_owned(),
        "/v1/usage?by=label.team".to_owned(),
        "/v1/failures/summary".to_owned(),
    ] {
        said.push(served.shown(served.get(&path)).await);
    }
    insta::assert_snapshot!(redacted(&said.join("\n"), &served));
}

#[tokio::test]
async fn what_is_not_there_and_not_taken_is_said_by_name() {
    let (served, _) = serve_at_now().await;
    let known = "0199c2f4-1b2c-7d3e-8f40-516273849c2e";
    let mut said = Vec::new();
    for path in [
        format!("/v1/jobs/{known}/explain"),
        format!("/v1/jobs/{known}/transcript"),
        "/v1/jobs/7/explain".to_owned(),
        format!("/v1/resets/{known}/1/1"),
        format!("/v1/resets/{known}/x/1"),
        format!("/v1/holds/{known}"),
        "/v1/jobs?source=retry-after".to_owned(),
        "/v1/failures?http=7".to_owned(),
        "/v1/failures?cursor=nonsense".to_owned(),
        "/v1/failures/summary?by=day".to_owned(),
        "/v1/failures/summary?cursor=x".to_owned(),
        "/v1/resets?word=broken".to_owned(),
        "/v1/resets?cursor=nonsense".to_owned(),
        "/v1/resets/accuracy?by=source".to_owned(),
        "/v1/holds?cursor=x".to_owned(),
        "/v1/queues?queue=a".to_owned(),
        "/v1/usage?by=label.".to_owned(),
        "/v1/results?follow=1".to_owned(),
        "/v1/results?cursor=nonsense".to_owned(),
        "/v1/jobs?sort=id".to_owned(),
    ] {
        said.push(served.shown(served.get(&path)).await);
    }
    said.push(served.shown(served.post("/v1/failures").json(&json!({}))).await);
    said.push(served.shown(served.delete("/v1/queues")).await);
    insta::assert_snapshot!(said.join("\n"));
}
