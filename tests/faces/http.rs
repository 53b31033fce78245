//! The API through real sockets: what is answered, what is refused and how, and that an acknowledgement follows its commit.

use crate::served::{body, job, serve, serve_within};
use reprieve::api;
use reprieve::store::Store;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Its status and body; a problem says so in its content type and repeats its status.
pub async fn problem(request: RequestBuilder) -> String {
    let response = request.send().await.unwrap();
    let status = response.status();
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    let body = body(response).await;
    assert_eq!(body["status"], status.as_u16());
    format!("{} {}", status.as_u16(), body)
}

#[tokio::test]
async fn a_job_is_submitted_once_and_found_again() {
    let served = serve().await;
    let first = served.post("/v1/jobs").header("idempotency-key", "k").json(&job("a")).send().await.unwrap();
    assert_eq!(first.status(), StatusCode::CREATED);
    let location = first.headers()["location"].to_str().unwrap().to_owned();
    let first = body(first).await;
    assert_eq!(location, format!("/v1/jobs/{}", first["id"].as_str().unwrap()));
    assert_eq!((&first["state"], &first["result"], &first["spec"]), (&json!("queued"), &Value::Null, &job("a")));

    let again = served.post("/v1/jobs").header("idempotency-key", "k").json(&job("a")).send().await.unwrap();
    assert_eq!(again.status(), StatusCode::OK);
    assert_eq!(body(again).await["id"], first["id"]);
    let other = served.post("/v1/jobs").header("idempotency-key", "k").json(&job("b")).send().await.unwrap();
    assert_eq!(other.status(), StatusCode::CONFLICT);
    assert_eq!(body(other).await["job"], first["id"]);

    assert_eq!(body(served.get(&location).send().await.unwrap()).await["id"], first["id"]);
    let turns = body(served.get(&format!("{location}/turns")).send().await.unwrap()).await;
    assert_eq!(turns, json!({"items": [], "next_cursor": null}));
    // What was submitted comes back digit for digit.
    let exact = r#"{"model":"m","provider":"sim","input":"x","options":{"seed":9007199254740993}}"#;
    let sent = served.post("/v1/jobs").header("content-type", "application/json; charset=utf-8").body(exact);
    assert!(sent.send().await.unwrap().text().await.unwrap().contains(exact));
}

#[tokio::test]
async fn lists_page_by_cursor_and_filter_by_their_parameters() {
    let served = serve().await;
    for n in 0..5 {
        let mut job = job(&n.to_string());
        job["labels"] = json!({"half": if n < 3 { "first" } else { "second" }});
        assert_eq!(served.submit(&job).await.status(), StatusCode::CREATED);
    }
    let mut seen = Vec::new();
    let mut path = "/v1/jobs?limit=2".to_owned();
    loop {
        let page = body(served.get(&path).send().await.unwrap()).await;
        seen.extend(page["items"].as_array().unwrap().iter().map(|job| job["id"].to_string()));
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/jobs?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    let mut sorted = seen.clone();
    sorted.sort_by(|a, b| b.cmp(a));
    sorted.dedup();
    assert_eq!((seen.len(), &sorted), (5, &seen));
    let count =
        async |path: &str| body(served.get(path).send().await.unwrap()).await["items"].as_array().unwrap().len();
    assert_eq!(count("/v1/jobs?label.half=first").await, 3);
    assert_eq!(count("/v1/jobs?state=running,failed").await, 0);
    assert_eq!(count("/v1/jobs?state=waiting&model=m&queue=default&since=1h").await, 5);
}

#[tokio::test]
async fn whatever_is_wrong_is_a_problem_of_a_stable_type() {
    let served = serve().await;
    let typed = |kind: &str| served.post("/v1/jobs").header("content-type", kind);
    let known = "0199c2f4-1b2c-7d3e-8f40-516273849c2e";
    let problems = [
        problem(served.get("/v2/jobs")).await,
        problem(served.client.delete(format!("{}/v1/jobs", served.url))).await,
        problem(typed("text/plain").body("{}")).await,
        problem(served.post("/v1/jobs").body("{}")).await,
        problem(typed("application/json").body("{\"model\": ")).await,
        problem(typed("application/json").body(b"\xff".to_vec())).await,
        problem(served.post("/v1/jobs").json(&json!({"model": "m", "provider": "sim"}))).await,
        problem(served.post("/v1/jobs").json(&json!({"model": "m", "provider": "nobody", "input": "x"}))).await,
        problem(served.post("/v1/jobs").json(&json!({"model": "m", "provider": "keyless", "input": "x"}))).await,
        problem(served.post("/v1/jobs").json(&json!({"model": "m", "provider": "sim", "input": "x", "colour": 1})))
            .await,
        problem(served.post("/v1/jobs").json(&json!({"model": "m", "provider": "sim", "input": "x", "tools": []})))
            .await,
        problem(typed("application/json").body(vec![b' '; reprieve::agent::limits::JOB_BYTES + 1])).await,
        problem(typed("application/json").header("idempotency-key", "\u{e9}").body("{}")).await,
        problem(served.get("/v1/jobs?colour=1")).await,
        problem(served.get("/v1/jobs?state=dead")).await,
        problem(served.get("/v1/jobs?cursor=nonsense")).await,
        problem(served.get("/v1/jobs/7?verbose=1")).await,
        problem(served.get("/v1/jobs/7")).await,
        problem(served.get(&format!("/v1/jobs/{known}"))).await,
        problem(served.get(&format!("/v1/jobs/{known}/turns"))).await,
        problem(served.get("/v1/jobs/%ff")).await,
        problem(served.get("/v1/jobs").header("host", "evil.example")).await,
        problem(served.post("/v1/jobs").header("origin", "https://evil.example").json(&job("x"))).await,
        problem(served.post("/v1/jobs").header("origin", "null").json(&job("x"))).await,
    ];
    insta::assert_snapshot!(problems.join("\n"));
    let refused = served.client.delete(format!("{}/v1/jobs", served.url)).send().await.unwrap();
    let allow = refused.headers()["allow"].to_str().unwrap();
    assert!(allow.contains("GET") && allow.contains("POST"), "{allow}");
    assert_eq!(served.get("/healthz").send().await.unwrap().status(), StatusCode::OK);
    assert_eq!(served.get("/readyz").send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn bulk_answers_every_line_in_order() {
    let served = serve().await;
    let lines = format!("{}\n\n{{\"model\":\n{}\n{}", job("a"), job("b"), job("b"));
    let response = served.bulk(lines.clone()).header("idempotency-key", "run").send().await.unwrap();
    assert_eq!(
        (response.status(), response.headers()["content-type"].to_str().unwrap()),
        (StatusCode::OK, "application/x-ndjson")
    );
    let acks: Vec<Value> =
        response.text().await.unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = acks.iter().map(|ack| ack["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 3, 4, 5]);
    assert_eq!(acks[1]["error"]["type"], "urn:reprieve:problem:malformed");
    assert!([0, 2, 3].iter().all(|at| acks[*at]["duplicate"] == false));
    let again = served.bulk(lines).header("idempotency-key", "run").send().await.unwrap().text().await.unwrap();
    let again: Vec<Value> = again.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!([0, 2, 3].iter().all(|at| again[*at]["duplicate"] == true && again[*at]["id"] == acks[*at]["id"]));
}

/// An acknowledgement comes while the body is still being sent, and what it names is in the store by then.
#[tokio::test]
async fn an_acknowledgement_follows_its_commit_and_waits_for_nothing_else() {
    let served = serve().await;
    let mut socket = TcpStream::connect(served.url.strip_prefix("http://").unwrap()).await.unwrap();
    let head = "POST /v1/jobs/bulk HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n";
    let line = format!("{}\n", job("a"));
    socket.write_all(format!("{head}{:x}\r\n{line}\r\n", line.len()).as_bytes()).await.unwrap();
    let mut heard = String::new();
    let mut buffer = [0; 4_096];
    while !heard.contains("\"duplicate\"") {
        let got = socket.read(&mut buffer).await.unwrap();
        assert!(got > 0, "closed after {heard}");
        heard.push_str(std::str::from_utf8(&buffer[..got]).unwrap());
    }
    let ack: Value = serde_json::from_str(heard.lines().find(|line| line.starts_with('{')).unwrap()).unwrap();
    let id = ack["id"].as_str().unwrap().parse().unwrap();
    assert!(served.store.job(id).await.unwrap().is_some());
}

/// A client that reads nothing before it has sent everything is answered in full.
#[tokio::test]
async fn a_client_that_reads_last_is_answered_in_full() {
    let served = serve().await;
    let count = 20_000;
    let mut text = String::new();
    for n in 0..count {
        text.push_str(&format!("{}\n", job(&n.to_string())));
    }
    let response = served.bulk(text).send().await.unwrap();
    let acks = response.text().await.unwrap();
    assert_eq!(acks.lines().count(), count);
    assert!(acks.lines().all(|ack| ack.contains("\"duplicate\":false")));
}

#[tokio::test]
async fn a_stopped_server_finishes_what_it_answers_and_listens_no_more() {
    let served = serve().await;
    let (send, receive) = tokio::sync::mpsc::channel::<Result<String, std::convert::Infallible>>(4);
    let stream = futures::stream::unfold(receive, |mut receive| async { Some((receive.recv().await?, receive)) });
    let request = served.bulk(reqwest::Body::wrap_stream(stream)).send();
    send.send(Ok(format!("{}\n", job("a")))).await.unwrap();
    let response = request.await.unwrap();
    served.stop.cancel();
    send.send(Ok(format!("{}\n", job("b")))).await.unwrap();
    drop(send);
    assert_eq!(response.text().await.unwrap().lines().count(), 2);
    while Client::new().get(format!("{}/healthz", served.url)).send().await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_client_that_does_not_send_its_request_is_not_waited_for() {
    let waits = api::Waits { head: Duration::from_millis(200), ..api::Waits::default() };
    let served = serve_within(waits).await;
    let address = served.url.strip_prefix("http://").unwrap();
    for sent in ["", "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: "] {
        let mut slow = TcpStream::connect(address).await.unwrap();
        slow.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(20), slow.read_to_end(&mut answer)).await;
        assert!(closed.is_ok(), "after {sent:?} the connection stayed open");
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{sent:?} was answered");
    }
    // Others are served on, and one that is quick on a connection of its own is not hurried.
    assert_eq!(served.get("/healthz").send().await.unwrap().status(), StatusCode::OK);
}

/// A body that is too large is answered, not cut off, and one that does not come is not waited for.
#[tokio::test]
async fn a_body_has_its_size_and_its_time() {
    let waits = api::Waits { body: Duration::from_millis(300), ..api::Waits::default() };
    let served = serve_within(waits).await;
    let too_large = vec![b' '; reprieve::agent::limits::JOB_BYTES + (4 << 20)];
    let patient = serve().await;
    let large = patient.post("/v1/jobs").header("content-type", "application/json").body(too_large);
    assert_eq!(large.send().await.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE);

    let address = served.url.strip_prefix("http://").unwrap();
    let told = |path: &str, more: &str| {
        format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{more}\r\n")
    };
    let ask = async |head: String| {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut heard = vec![0; 4_096];
        let got = tokio::time::timeout(Duration::from_secs(20), socket.read(&mut heard)).await.unwrap().unwrap();
        String::from_utf8_lossy(&heard[..got]).into_owned()
    };
    let slow = ask(told("/v1/jobs", "content-length: 100\r\n")).await;
    assert!(slow.starts_with("HTTP/1.1 408") && slow.contains("urn:reprieve:problem:slow"), "{slow}");
    // Who asks first sends nothing in vain.
    let refused = ask(told("/v1/jobs", "content-length: 99999999\r\nexpect: 100-continue\r\n")).await;
    assert!(refused.starts_with("HTTP/1.1 413"), "{refused}");
}

/// Beyond its connections a server accepts no further ones, and goes on once one has ended.
#[tokio::test]
async fn connections_are_bounded() {
    let served = serve_within(api::Waits { connections: 1, ..api::Waits::default() }).await;
    let address = served.url.strip_prefix("http://").unwrap();
    let ask = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut buffer = [0; 1_024];
    let mut first = TcpStream::connect(address).await.unwrap();
    first.write_all(ask).await.unwrap();
    assert!(first.read(&mut buffer).await.unwrap() > 0);
    let mut second = TcpStream::connect(address).await.unwrap();
    second.write_all(ask).await.unwrap();
    let early = tokio::time::timeout(Duration::from_millis(200), second.read(&mut buffer)).await;
    assert!(early.is_err(), "a second connection was served beside the first");
    drop(first);
    assert!(second.read(&mut buffer).await.unwrap() > 0);
}
