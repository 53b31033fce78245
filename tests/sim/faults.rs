//! Scripted faults, byte for byte as a client meets them.

use super::{advancing, ask, client, header, post, question, raw, settled, sim, sim_at};
use futures::StreamExt;
use reprieve::clock::Clock;
use reprieve::sim::{Outcome, Sim};
use serde_json::{Value, json};
use std::io::ErrorKind;

/// A rule that concerns everything.
fn rule(deed: &str) -> String {
    format!("[[rules]]\nname = \"r\"\n{deed}\n")
}

fn chunks(text: &str) -> usize {
    text.matches("\"delta\":{\"content\":\"").count() - text.matches("\"delta\":{\"content\":\"\"").count()
}

#[tokio::test]
async fn a_drop_before_the_head_is_a_reset_without_a_byte() {
    let sim = sim(&rule("drop = {}")).await;
    let (received, error) = raw(&sim, &question("m", false)).await;
    assert_eq!((received.as_str(), error), ("", Some(ErrorKind::ConnectionReset)));
    assert_eq!(settled(&sim).await.dropped, 1);
    assert_eq!(sim.log(0, 10).entries[0].status, None);
    sim.shutdown().await;
}

#[tokio::test]
async fn a_drop_after_chunks_delivers_exactly_those_and_then_resets() {
    let sim = sim(&rule("drop = { after_chunks = 3 }")).await;
    let (received, error) = raw(&sim, &question("m", true)).await;
    assert_eq!((chunks(&received), error), (3, Some(ErrorKind::ConnectionReset)), "{received}");
    let totals = settled(&sim).await;
    assert_eq!((totals.dropped, totals.sent_tokens), (1, 18));
    sim.shutdown().await;
}

#[tokio::test]
async fn a_drop_after_bytes_delivers_exactly_those() {
    let sim = sim(&rule("drop = { after_bytes = 100 }")).await;
    for stream in [true, false] {
        let response = post(&sim, "/v1/chat/completions", "k", &question("m", stream)).await.unwrap();
        let mut body = response.bytes_stream();
        let mut received = 0;
        let failed = loop {
            match body.next().await {
                Some(Ok(bytes)) => received += bytes.len(),
                Some(Err(_)) => break true,
                None => break false,
            }
        };
        assert_eq!((received, failed), (100, true));
    }
    sim.shutdown().await;
}

#[tokio::test]
async fn a_truncated_body_closes_in_order_but_short_of_what_its_framing_promised() {
    let chunked = sim(&rule("truncate = { after_chunks = 2 }")).await;
    let (received, error) = raw(&chunked, &question("m", true)).await;
    assert_eq!((chunks(&received), error), (2, None));
    assert!(received.contains("transfer-encoding: chunked") && !received.ends_with("0\r\n\r\n"));
    assert_eq!(settled(&chunked).await.faulted, 1);
    chunked.shutdown().await;

    let counted = sim(&rule("truncate = { after_bytes = 50, framing = \"content_length\" }")).await;
    let (received, error) = raw(&counted, &question("m", false)).await;
    let (head, body) = received.split_once("\r\n\r\n").unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    assert_eq!((body.len(), error), (50, None));
    assert!(length.parse::<usize>().unwrap() > 300, "{length}");
    counted.shutdown().await;
}

#[tokio::test]
async fn a_stall_before_the_head_lasts_until_the_client_leaves() {
    let sim = sim(&rule("stall = {}")).await;
    let url = format!("{}/v1/chat/completions", sim.url());
    let waiting = tokio::spawn(async move { client().post(url).json(&question("m", false)).send().await });
    while sim.stats().totals.in_flight == 0 {
        tokio::task::yield_now().await;
    }
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert_eq!(settled(&sim).await.faulted, 1);
    sim.shutdown().await;
}

#[tokio::test]
async fn a_stall_inside_the_body_comes_after_what_stands_before_it_and_ends_with_the_simulator() {
    let sim = sim(&rule("stall = { after_chunks = 2 }")).await;
    let response = post(&sim, "/v1/chat/completions", "k", &question("m", true)).await.unwrap();
    let mut body = response.bytes_stream();
    let mut received = String::new();
    while received.matches("\"content\":").count() < 3 {
        received.push_str(std::str::from_utf8(&body.next().await.unwrap().unwrap()).unwrap());
    }
    assert_eq!((chunks(&received), sim.stats().totals.in_flight), (2, 1));
    sim.shutdown().await;
    assert!(body.next().await.is_some_and(|rest| rest.is_err()), "the connection is closed, and the body not whole");
}

#[tokio::test]
async fn waits_go_by_the_simulators_own_clock() {
    let clock = Clock::manual(1_790_000_000_000);
    let text =
        format!("{}latency = \"1s\"\nchunk_latency = \"2s\"", rule("stall = { after_chunks = 1, for = \"1m\" }"));
    let sim = sim_at(&text, clock.clone()).await;
    let mut question = question("m", true);
    question["max_tokens"] = json!(12);
    let body = async {
        let response = post(&sim, "/v1/chat/completions", "k", &question).await.unwrap();
        response.text().await.unwrap()
    };
    let started_ms = clock.now_ms();
    let text = advancing(&clock, || true, body).await;
    assert_eq!(chunks(&text), 2);
    assert!(text.ends_with("data: [DONE]\n\n"));
    assert!(clock.now_ms() - started_ms >= 65_000, "1 s + 2 × 2 s + 1 min");
    assert_eq!(settled(&sim).await.completed, 1);
    sim.shutdown().await;
}

#[tokio::test]
async fn a_silent_end_is_whole_on_the_wire_and_says_no_finish() {
    for (path, dialect) in [("/v1/chat/completions", "openai"), ("/v1/messages", "anthropic")] {
        let sim = sim(&rule("end = { after_chunks = 4 }")).await;
        let response = post(&sim, path, "k", &question("m", true)).await.unwrap();
        let text = response.text().await.unwrap();
        assert!(text.contains("delta") && !text.contains("[DONE]") && !text.contains("message_stop"), "{dialect}");
        assert!(!text.contains("\"finish_reason\":\"") && !text.contains("end_turn"));
        sim.shutdown().await;
    }
}

#[tokio::test]
async fn garbled_text_is_no_utf8_and_the_rest_follows() {
    let sim = sim(&rule("garble = { after_chunks = 1 }")).await;
    for stream in [true, false] {
        let response = post(&sim, "/v1/chat/completions", "k", &question("m", stream)).await.unwrap();
        let bytes = response.bytes().await.unwrap();
        assert!(std::str::from_utf8(&bytes).is_err());
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("\"finish_reason\":\"stop\""), "{text}");
    }
    sim.shutdown().await;
}

#[tokio::test]
async fn an_error_inside_a_2xx_is_put_as_each_vendor_puts_it() {
    let sim = sim(&rule("error_frame = { after_chunks = 2, kind = \"overloaded\" }")).await;
    for (path, telling) in [
        ("/v1/chat/completions", "data: {\"error\":{\"message\":\"The server is currently overloaded"),
        ("/v1/messages", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\""),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", "data: {\"error\":{\"code\":503,"),
    ] {
        let mut asked = question("m", true);
        asked["contents"] = json!([{"role": "user", "parts": [{"text": "q"}]}]);
        let response = post(&sim, path, "k", &asked).await.unwrap();
        assert_eq!(response.status(), 200);
        let text = response.text().await.unwrap();
        let last = text.trim_end().rsplit_once("\n\n").or_else(|| text.trim_end().rsplit_once("\r\n\r\n")).unwrap().1;
        assert!(last.starts_with(telling), "{last}");
    }
    let whole: Value = ask(&sim, "m").await.json().await.unwrap();
    assert_eq!(whole["error"]["code"], "server_is_overloaded");
    assert_eq!(settled(&sim).await.faulted, 4);
    sim.shutdown().await;
}

#[tokio::test]
async fn a_response_is_given_verbatim() {
    let text = r#"
[[rules]]
name = "page"
nth = 1
respond = { status = 200, headers = { content-type = "text/html", x-twice = ["a", "b"] }, body = "<html>no</html>" }
[[rules]]
name = "nothing"
respond = { status = 418 }
"#;
    let sim = sim(text).await;
    let page = ask(&sim, "m").await;
    assert_eq!((page.status().as_u16(), header(&page, "content-type").as_deref()), (200, Some("text/html")));
    assert_eq!(page.headers().get_all("x-twice").iter().count(), 2);
    assert_eq!(page.text().await.unwrap(), "<html>no</html>");
    let nothing = ask(&sim, "m").await;
    assert_eq!((nothing.status().as_u16(), header(&nothing, "content-type")), (418, None));
    assert_eq!(nothing.text().await.unwrap(), "");
    assert_eq!(settled(&sim).await.failed, 2);
    sim.shutdown().await;
}

#[tokio::test]
async fn an_answer_can_carry_another_type_finish_length_or_date() {
    let clock = Clock::manual(1_790_000_000_000);
    let deed = "answer = { chars = 40, max_tokens = 5, finish = \"content_filter\", content_type = \"text/plain\" }";
    let sim = sim_at(&format!("{}date_skew = \"-1h\"", rule(deed)), clock).await;
    let response = ask(&sim, "m").await;
    assert_eq!(header(&response, "content-type").as_deref(), Some("text/plain"));
    assert_eq!(header(&response, "date").as_deref(), Some("Mon, 21 Sep 2026 13:13:20 GMT"));
    let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!(body["choices"][0]["finish_reason"], "content_filter");
    assert!(body["choices"][0]["message"]["content"].as_str().unwrap().chars().count() <= 20);
    sim.shutdown().await;
}

async fn statuses(sim: &Sim, model: &str, times: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..times {
        statuses.push(ask(sim, model).await.status().as_u16());
    }
    statuses
}

#[tokio::test]
async fn the_first_rule_that_takes_a_request_decides_and_each_counts_what_reaches_it() {
    let text = r#"
[[rules]]
name = "second"
models = ["a*"]
nth = 2
respond = { status = 502 }
[[rules]]
name = "every other of the rest"
models = ["a*"]
every = 2
respond = { status = 503 }
"#;
    let sim = sim(text).await;
    assert_eq!(statuses(&sim, "ab", 6).await, [200, 502, 503, 200, 503, 200]);
    assert_eq!(statuses(&sim, "b", 1).await, [200]);
    let rules = sim.stats().rules;
    assert_eq!(rules.iter().map(|rule| (rule.seen, rule.taken)).collect::<Vec<_>>(), [(6, 1), (5, 2)]);
    sim.reset();
    assert_eq!(statuses(&sim, "ab", 2).await, [200, 502], "a reset begins anew");
    sim.shutdown().await;
}

#[tokio::test]
async fn rules_select_by_dialect_stream_key_and_words() {
    let mut text = String::new();
    for (status, when) in [
        (501, "dialect = \"anthropic\""),
        (502, "stream = true"),
        (503, "keys = [\"sim-b\"]"),
        (504, "contains = \"ANVIL\""),
    ] {
        text.push_str(&format!("[[rules]]\nname = \"{status}\"\n{when}\nrespond = {{ status = {status} }}\n"));
    }
    let sim = sim(&text).await;
    let with = |path: &'static str, key: &'static str, body: Value| {
        let sim = &sim;
        async move { post(sim, path, key, &body).await.unwrap().status().as_u16() }
    };
    assert_eq!(with("/v1/messages", "k", question("m", false)).await, 501);
    assert_eq!(with("/v1/chat/completions", "k", question("m", true)).await, 502);
    assert_eq!(with("/v1/chat/completions", "sim-b", question("m", false)).await, 503);
    let anvil = json!({"model": "m", "messages": [{"role": "user", "content": "an ANVIL"}]});
    assert_eq!(with("/v1/chat/completions", "k", anvil).await, 504);
    assert_eq!(with("/v1/chat/completions", "k", question("m", false)).await, 200);
    sim.shutdown().await;
}

#[tokio::test]
async fn a_spell_has_a_beginning_and_an_end() {
    for (since, before) in [("start", 200), ("first", 503)] {
        let clock = Clock::manual(1_000_000);
        let from = if since == "start" { "from = \"2s\"\n" } else { "" };
        let text = rule(&format!("since = \"{since}\"\n{from}until = \"5s\"\nrespond = {{ status = 503 }}"));
        let sim = sim_at(&text, clock.clone()).await;
        clock.advance_ms(1_999);
        assert_eq!(statuses(&sim, "m", 1).await, [before]);
        clock.advance_ms(1);
        assert_eq!(statuses(&sim, "m", 1).await, [503]);
        clock.advance_ms(3_000);
        assert_eq!(statuses(&sim, "m", 1).await, [if since == "start" { 200 } else { 503 }]);
        clock.advance_ms(1_999);
        assert_eq!(statuses(&sim, "m", 1).await, [200]);
        sim.shutdown().await;
    }
}

#[tokio::test]
async fn chance_comes_from_the_seed() {
    let mut runs = Vec::new();
    for seed in [1, 1, 2] {
        let sim = sim(&format!("seed = {seed}\n{}", rule("probability = 0.5\nrespond = { status = 503 }"))).await;
        runs.push(statuses(&sim, "m", 40).await);
        sim.shutdown().await;
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
    let failed = runs[0].iter().filter(|status| **status == 503).count();
    assert!((10..=30).contains(&failed), "{failed} of 40");
}

#[tokio::test]
async fn a_client_that_leaves_early_is_counted_as_that() {
    let clock = Clock::manual(1_000_000);
    let sim = sim_at("[answer]\nlatency = \"1m\"", clock).await;
    let url = format!("{}/v1/chat/completions", sim.url());
    let waiting = tokio::spawn(async move { client().post(url).json(&question("m", false)).send().await });
    while sim.stats().totals.in_flight == 0 {
        tokio::task::yield_now().await;
    }
    waiting.abort();
    assert_eq!(settled(&sim).await.abandoned, 1);
    assert_eq!(sim.log(0, 1).entries[0].outcome, Outcome::Abandoned);
    sim.shutdown().await;
}
