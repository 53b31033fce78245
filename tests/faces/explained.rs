//! Every reason why a job is where it is, met in a real store: the function, the API and the command line say the same of
//! it.

use crate::served::{Hand, Served, body, job, refusal, serve_at_now};
use reprieve::agent::Directory;
use reprieve::api::why::{Aside, explain, explain_job};
use reprieve::store::{CancelOutcome, HoldClose, JobId, NewMessages, Pause, Posted, ScopeConfig, Steer, Store};
use serde_json::{Value, json};

/// A sentence without the lengths of time in it: a process looks a moment later than the test does.
fn timeless(text: &str) -> String {
    let mut words = text.split_whitespace().peekable();
    let mut out: Vec<String> = Vec::new();
    while let Some(word) = words.next() {
        let number = word.trim_start_matches('(').parse::<f64>().is_ok();
        let unit = words.peek().map(|next| next.trim_end_matches([')', '.', ',', ';', ':']).to_owned());
        match unit {
            Some(unit) if number && ["ms", "s", "min", "h", "d"].contains(&unit.as_str()) => {
                let end = words.next().unwrap()[unit.len()..].to_owned();
                let begin = if word.starts_with('(') { "(" } else { "" };
                match out.last_mut() {
                    Some(last) if last.ends_with("SOME") => last.push_str(&end),
                    _ => out.push(format!("{begin}SOME{end}")),
                }
            }
            _ => out.push(word.to_owned()),
        }
    }
    out.join(" ")
}

/// Every text of an explanation, without lengths of time.
fn without_lengths(explained: &Value) -> Value {
    match explained {
        Value::String(text) => Value::String(timeless(text)),
        Value::Array(items) => items.iter().map(without_lengths).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), without_lengths(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// The command line, on the same database at the same instant, as text and as a document.
fn commanded(served: &Served, id: JobId, asked: &Value) {
    let id = id.to_string();
    let document = served.commanded(&["explain", &id, "--json"]);
    assert_eq!((document.code, document.err.as_str()), (0, ""), "{document:?}");
    assert_eq!(without_lengths(&document.json()), without_lengths(asked));
    let shown = served.commanded(&["explain", &id]);
    let lines: Vec<&str> = shown.out.lines().collect();
    assert_eq!(lines[0], format!("Job {id}: {}", asked["state"].as_str().unwrap()));
    let (said, text) = (timeless(&lines[1..].join(" ")), timeless(asked["text"].as_str().unwrap()));
    assert!(said.starts_with(&text), "{text}\n{said}");
}

/// What is said of a job, all agreeing: `reason [who]: text`.
async fn said(served: &Served, id: JobId) -> String {
    let over_http = served.explained(id).await;
    let asked = explain_job(&served.store, &served.directory, id).await.unwrap().unwrap();
    assert_eq!(over_http, serde_json::to_value(&asked).unwrap());
    if asked.who.is_some() && asked.reason != "no_key" {
        let standing = served.store.standing(id, served.store.clock().now_ms()).await.unwrap().unwrap();
        let bare = explain(&standing, &Aside::default(), served.store.clock().now_ms());
        assert_eq!((bare.until_ms, bare.hold, bare.state), (asked.until_ms, asked.hold, asked.state.clone()));
    }
    assert!(!asked.text.contains('\n'));
    commanded(served, id, &over_http);
    format!("{} [{}]: {}", asked.reason, asked.who.unwrap_or_default(), asked.text)
}

/// Ids out, so that a snapshot holds it.
fn without_ids(text: &str) -> String {
    text.split(' ')
        .map(|word| {
            let bare = word.trim_end_matches(['.', ',', ';', ':', '`']);
            let rest = &word[bare.len()..];
            match bare {
                id if id.contains('…') => format!("SHORT-ID{rest}"),
                id if id.len() == 36 && id.matches('-').count() == 4 => format!("ID{rest}"),
                _ => word.to_owned(),
            }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

async fn limit(served: &Served, max_in_flight: u32) {
    let scope = served.directory.entries["sim"].scope("m");
    served.store.configure_scopes(vec![ScopeConfig { scope, max_in_flight: Some(max_in_flight) }]).await.unwrap();
}

async fn at(more: &[(&str, Value)], served: &Served) -> JobId {
    let mut spec = job("why?");
    for (name, value) in more {
        spec[*name] = value.clone();
    }
    served.taken(&spec).await
}

struct Said(Vec<String>);

impl Said {
    async fn note(&mut self, pattern: &str, served: &Served, id: JobId) {
        self.0.push(format!("{pattern:<14} {}", without_ids(&said(served, id).await)));
    }
}

#[tokio::test]
async fn what_waits_in_line_and_for_nobody() {
    let (served, clock) = serve_at_now().await;
    limit(&served, 2).await;
    let mut all = Said(Vec::new());
    let first = at(&[], &served).await;
    all.note("14, never", &served, first).await;
    let hand = Hand::new(&served.store, &["default"]).await;
    clock.advance_ms(38_000);
    all.note("1, the next", &served, first).await;
    let turn = hand.one().await;
    clock.advance_ms(41_000);
    all.note("10, on wire", &served, first).await;
    let _second = at(&[], &served).await;
    hand.one().await;
    clock.advance_ms(2_000);
    let third = at(&[("deadline", json!("1h"))], &served).await;
    all.note("3", &served, third).await;
    let later = at(&[("not_before", json!("2026-12-02T06:00:00Z"))], &served).await;
    all.note("11", &served, later).await;
    let early =
        at(&[("not_before", json!("2026-12-02T06:00:00Z")), ("deadline", json!("2026-12-02T07:00:00Z"))], &served)
            .await;
    all.note("11, deadline", &served, early).await;
    let other = at(&[("queue", json!("gpu"))], &served).await;
    let gone = Hand::new(&served.store, &["gpu"]).await;
    served.store.retire_worker(gone.worker, clock.now_ms()).await.unwrap();
    clock.advance_ms(540_000);
    all.note("14", &served, other).await;
    hand.complete(hand.answer(&turn)).await;
    all.note("succeeded", &served, first).await;
    all.note("1", &served, third).await;
    insta::assert_snapshot!(all.0.join("\n"));
}

#[tokio::test]
async fn what_a_provider_keeps() {
    let (served, clock) = serve_at_now().await;
    limit(&served, 8).await;
    let hand = Hand::new(&served.store, &[]).await;
    let mut all = Said(Vec::new());
    let first = at(&[], &served).await;
    let turn = hand.one().await;
    let second = at(&[], &served).await;
    let dated = at(&[("deadline", json!("1m"))], &served).await;
    clock.advance_ms(100);
    hand.complete(hand.refuse(&turn, refusal(&turn, false, clock.now_ms() + 252_000, "retry-after", Some("252"))))
        .await;
    all.note("4, deadline", &served, dated).await;
    served.store.cancel(vec![dated], clock.now_ms()).await.unwrap();
    all.note("4", &served, second).await;
    clock.advance_ms(252_120);
    let probe = hand.one().await;
    let waits = if probe.job_id == first { second } else { first };
    all.note("7", &served, waits).await;
    hand.complete(hand.answer(&probe)).await;
    let held = hand.one().await;
    assert_eq!(held.job_id, waits);
    // As many as the ramp lets go, and one more.
    for _ in 0..3 {
        at(&[], &served).await;
    }
    while hand.claim(1).await.pop().is_some() {}
    let behind = at(&[], &served).await;
    all.note("8", &served, behind).await;
    hand.set_back(&held, refusal(&held, false, clock.now_ms() + 7_000, "retry-after", Some("7"))).await;
    all.note("10", &served, waits).await;
    clock.advance_ms(7_040);
    all.note("10, over", &served, waits).await;
    insta::assert_snapshot!(all.0.join("\n"));
}

#[tokio::test]
async fn what_an_account_keeps() {
    let (served, clock) = serve_at_now().await;
    limit(&served, 8).await;
    let hand = Hand::new(&served.store, &[]).await;
    let mut all = Said(Vec::new());
    let first = at(&[], &served).await;
    let _other = at(&[("model", json!("n"))], &served).await;
    let third = at(&[("model", json!("o"))], &served).await;
    let turn = loop {
        let turn = hand.one().await;
        if turn.job_id == first {
            break turn;
        }
        hand.store.give_back(hand.worker, vec![(turn.job_id, turn.fence)], clock.now_ms()).await.unwrap();
    };
    let until_ms = clock.now_ms() + 67_920_000;
    hand.complete(hand.refuse(&turn, refusal(&turn, true, until_ms, "/error/resets_at", None))).await;
    all.note("5", &served, third).await;
    insta::assert_snapshot!(all.0.join("\n"));
}

#[tokio::test]
async fn what_was_told_too_late_and_what_was_said_before_the_end() {
    let (served, clock) = serve_at_now().await;
    limit(&served, 8).await;
    let hand = Hand::new(&served.store, &[]).await;
    let mut all = Said(Vec::new());
    // Its last turn is under way when the message comes.
    let told = at(&[("max_turns", json!(1))], &served).await;
    let turn = hand.one().await;
    let message = NewMessages {
        job: told,
        key: None,
        messages: vec![json!({"role": "user", "content": "and why not?"}).to_string()],
        last_turn: None,
        now_ms: clock.now_ms(),
    };
    assert_eq!(served.store.post(message).await.unwrap(), Posted::Accepted { seq: 2 });
    hand.complete(hand.answer(&turn)).await;
    all.note("told too late", &served, told).await;
    let transcript = body(served.get(&format!("/v1/jobs/{told}/transcript")).send().await.unwrap()).await;
    let unanswered: Vec<bool> =
        transcript["items"].as_array().unwrap().iter().map(|entry| entry["unanswered"].as_bool().unwrap()).collect();
    assert_eq!(unanswered, [false, false, true], "{transcript}");
    assert!(served.commanded(&["job", &told.to_string()]).out.contains("user (message, no answer):"));
    // Two jobs whose answers were cut and go on later; one meets its deadline first, one is cancelled.
    let (late, dropped) = (at(&[("deadline", json!("1m"))], &served).await, at(&[], &served).await);
    for _ in 0..2 {
        let turn = hand.one().await;
        hand.complete(hand.cut(&turn, "Because the air", clock.now_ms() + 300_000)).await;
    }
    clock.advance_ms(1_000);
    all.note("9, cut", &served, late).await;
    clock.advance_ms(59_000);
    assert_eq!(served.store.expire(clock.now_ms(), 10).await.unwrap(), 1);
    assert_eq!(served.store.cancel(vec![dropped], clock.now_ms()).await.unwrap(), [CancelOutcome::Cancelled]);
    all.note("cut, late", &served, late).await;
    all.note("cut, cancelled", &served, dropped).await;
    insta::assert_snapshot!(all.0.join("\n"));
    // Nothing that was said is lost to whoever reads results.
    let over_http = served.get("/v1/results?state=failed,cancelled").send().await.unwrap().text().await.unwrap();
    let commanded = served.commanded(&["results", "--state", "failed,cancelled"]).out;
    assert_eq!(over_http, commanded);
    let listed = served.commanded(&["results", "--state", "failed,cancelled", "--json"]).json();
    for (id, line) in [late, dropped].into_iter().zip(over_http.lines()) {
        let row: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&row["id"], &row["result"]["text"]), (&json!(id), &json!("Because the air")), "{row}");
        assert_eq!(row["result"]["truncated"], json!(true));
        let whole = body(served.get(&format!("/v1/jobs/{id}")).send().await.unwrap()).await;
        assert_eq!(whole["result"], row["result"]);
        assert_eq!(served.commanded(&["job", &id.to_string(), "--json"]).json()["job"]["result"], row["result"]);
        assert!(listed["items"].as_array().unwrap().iter().any(|item| item["result"] == row["result"]));
    }
}

#[tokio::test]
async fn what_we_and_people_keep() {
    let (served, clock) = serve_at_now().await;
    limit(&served, 8).await;
    let hand = Hand::new(&served.store, &["default"]).await;
    let mut all = Said(Vec::new());
    let first = at(&[], &served).await;
    let turn = hand.one().await;
    clock.advance_ms(100);
    hand.complete(hand.requeue(&turn, clock.now_ms() + 30_000)).await;
    all.note("9", &served, first).await;
    let pause = |by: &str, reason: Option<&str>| Pause {
        since_ms: clock.now_ms(),
        by: by.to_owned(),
        reason: reason.map(str::to_owned),
    };
    served.store.steer(vec![first], Steer::Pause(pause("api", Some("wait"))), clock.now_ms()).await.unwrap();
    all.note("13, the job", &served, first).await;
    let second = at(&[("deadline", json!("1h"))], &served).await;
    served.store.pause_queue("default".into(), Some(pause("ops-1", None))).await.unwrap();
    all.note("13", &served, second).await;
    all.note("13, twice", &served, first).await;
    served.store.pause_queue("default".into(), None).await.unwrap();
    let close = |until_ms: Option<i64>| HoldClose {
        scope: served.directory.entries["sim"].scope("m"),
        until_ms,
        by: "command line".into(),
        reason: Some("their maintenance".into()),
        now_ms: clock.now_ms(),
    };
    served.store.close_scope(close(Some(clock.now_ms() + 600_000))).await.unwrap();
    all.note("4, by hand", &served, second).await;
    served.store.close_scope(close(None)).await.unwrap();
    all.note("6, by hand", &served, second).await;
    served.store.cancel(vec![second], clock.now_ms()).await.unwrap();
    all.note("cancelled", &served, second).await;
    insta::assert_snapshot!(all.0.join("\n"));
}

#[tokio::test]
async fn a_provider_without_a_key_is_named() {
    let (served, clock) = serve_at_now().await;
    Hand::new(&served.store, &[]).await;
    let id = at(&[], &served).await;
    // Elsewhere the same entry has no key.
    let mut directory: Directory = (*served.directory).clone();
    directory.entries.get_mut("sim").unwrap().missing_key = Some("SIM_KEY".to_owned());
    let asked = explain_job(&served.store, &directory, id).await.unwrap().unwrap();
    assert_eq!((asked.reason.as_str(), asked.also.len()), ("no_key", 1));
    assert!(asked.text.starts_with("Provider entry `sim` has no key here: set SIM_KEY"), "{}", asked.text);
    clock.advance_ms(1);
    assert!(explain_job(&served.store, &directory, JobId::fresh()).await.unwrap().is_none());
}
