//! Limits, the resets that refusals name, and who asked too early.

use super::{advancing, ask, header, post, question, settled, sim_at};
use reprieve::clock::Clock;
use reprieve::sim::{Outcome, Sim};
use serde_json::{Value, json};

/// 2026-09-21T14:13:20.250Z: no whole second, so that rounding shows.
const START_MS: i64 = 1_790_000_000_250;

/// Two requests per ten seconds, told as `refuse` says.
fn two_per_ten_seconds(refuse: &str) -> String {
    format!(
        "grace = \"0s\"\n[[limits]]\nname = \"l\"\ncount = \"requests\"\nlimit = 2\nper = \"10s\"\nshape = \"window\"\n\
         {refuse}"
    )
}

async fn started(text: &str) -> (Sim, Clock) {
    let clock = Clock::manual(START_MS);
    (sim_at(text, clock.clone()).await, clock)
}

async fn status(sim: &Sim, model: &str) -> u16 {
    let response = ask(sim, model).await;
    let status = response.status().as_u16();
    // Read to the end: only then has the refusal been answered.
    response.bytes().await.unwrap();
    status
}

fn judged(sim: &Sim) -> (u64, u64, u64) {
    let totals = sim.stats().totals;
    (totals.early, totals.doomed, totals.concurrent)
}

#[tokio::test]
async fn a_window_refuses_until_its_reset_and_counts_who_comes_before() {
    let (sim, clock) = started(&two_per_ten_seconds("refuse = { reset = [\"retry-after-ms\"] }")).await;
    assert_eq!([status(&sim, "m").await, status(&sim, "m").await, status(&sim, "m").await], [200, 200, 429]);
    assert_eq!(judged(&sim), (0, 0, 0), "the first refusal could not be known");
    clock.advance_ms(9_999);
    assert_eq!(status(&sim, "m").await, 429);
    assert_eq!(judged(&sim), (1, 1, 0));
    assert_eq!(status(&sim, "other").await, 200, "another scope");
    clock.advance_ms(1);
    assert_eq!(status(&sim, "m").await, 200);
    assert_eq!(judged(&sim), (1, 1, 0));
    let totals = settled(&sim).await;
    assert_eq!((totals.completed, totals.refused), (4, 2));
    assert_eq!(sim.stats().limits[0].refused, 2);
    sim.shutdown().await;
}

/// Where a refusal names a reset that lies 10 s ahead, and what.
async fn named(path: &str, refuse: &str) -> (reqwest::header::HeaderMap, String) {
    let (sim, _clock) = started(&two_per_ten_seconds(refuse)).await;
    for _ in 0..2 {
        post(&sim, path, "sim-test", &question("m", false)).await.unwrap();
    }
    let refused = post(&sim, path, "sim-test", &question("m", false)).await.unwrap();
    assert_eq!(refused.status(), 429);
    let headers = refused.headers().clone();
    let body = refused.text().await.unwrap();
    sim.shutdown().await;
    (headers, body)
}

#[tokio::test]
async fn each_convention_names_the_reset_in_its_own_place() {
    for (convention, name, value) in [
        ("retry-after", "retry-after", "10"),
        ("retry-after-decimal", "retry-after", "10"),
        ("retry-after-date", "retry-after", "Mon, 21 Sep 2026 14:13:31 GMT"),
        ("retry-after-ms", "retry-after-ms", "10000"),
        ("x-ratelimit", "x-ratelimit-reset-requests", "10s"),
        ("x-ratelimit", "x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset", "x-ratelimit-reset", "10s"),
        ("x-ratelimit-reset-seconds", "x-ratelimit-reset", "10"),
        ("x-ratelimit-reset-epoch", "x-ratelimit-reset", "1790000011"),
        ("x-ratelimit-reset-epoch-ms", "x-ratelimit-reset", "1790000010250"),
        ("x-ratelimit-reset-rfc3339", "x-ratelimit-reset", "2026-09-21T14:13:30.25Z"),
        ("ratelimit-reset", "ratelimit-reset", "10"),
        ("anthropic", "anthropic-ratelimit-requests-reset", "2026-09-21T14:13:31Z"),
        ("anthropic-unified", "anthropic-ratelimit-unified-5h-reset", "1790000011"),
        ("codex", "x-codex-primary-reset-at", "1790000011"),
    ] {
        let (headers, _) = named("/v1/chat/completions", &format!("refuse = {{ reset = [\"{convention}\"] }}")).await;
        assert_eq!(headers.get(name).and_then(|value| value.to_str().ok()), Some(value), "{convention}");
    }
    for (convention, pointer, value) in [
        ("body-resets-at", "/error/resets_at", json!(1_790_000_011)),
        ("body-resets-in-seconds", "/error/resets_in_seconds", json!(10)),
        ("body-reset-at", "/error/reset_at", json!(1_790_000_011)),
        ("body-reset-at-ms", "/error/reset_at_ms", json!(1_790_000_010_250_i64)),
        ("body-retry-after", "/error/retry_after", json!(10)),
        ("body-retry-after-seconds", "/error/retry_after_seconds", json!(10)),
        ("body-retry-after-ms", "/error/retry_after_ms", json!(10_000)),
        ("retry-info", "/error/details/0/retryDelay", json!("10s")),
        ("quota-reset", "/error/details/0/metadata/quotaResetTimeStamp", json!("2026-09-21T14:13:30.25Z")),
    ] {
        let (_, body) = named("/v1/chat/completions", &format!("refuse = {{ reset = [\"{convention}\"] }}")).await;
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body.pointer(pointer), Some(&value), "{convention}");
    }
    let (_, body) = named("/v1/chat/completions", "refuse = { reset = [\"prose\"] }").await;
    assert!(body.contains("Please try again in 10s."), "{body}");
}

#[tokio::test]
async fn without_a_word_each_vendor_names_its_reset_as_usual() {
    let (headers, body) = named("/v1/chat/completions", "").await;
    assert_eq!(headers["retry-after-ms"], "10000");
    assert!(body.contains("rate_limit_exceeded"));
    let (headers, body) = named("/v1/messages", "refuse = { kind = \"plan_window\" }").await;
    assert_eq!(headers["anthropic-ratelimit-unified-status"], "rejected");
    assert_eq!(headers["retry-after"], "10");
    assert!(body.contains("rate_limit_error"));
    let (headers, body) = named("/v1beta/models/m:generateContent", "").await;
    assert!(headers.get("retry-after").is_none() && body.contains("\"retryDelay\":\"10s\""), "{body}");
    let (headers, body) = named("/v1/messages", "refuse = { dialect = \"openai\", reset = [] }").await;
    assert!(headers.get("retry-after").is_none() && body.contains("rate_limit_exceeded"), "{body}");
}

#[tokio::test]
async fn a_named_reset_can_be_off_and_the_true_one_decides() {
    let (sim, clock) =
        started(&two_per_ten_seconds("refuse = { reset = [\"retry-after-ms\"], named_off = \"-4s\" }")).await;
    for _ in 0..3 {
        status(&sim, "m").await;
    }
    clock.advance_ms(6_000);
    assert_eq!(status(&sim, "m").await, 429, "it named an instant 4 s too early");
    assert_eq!(judged(&sim), (0, 1, 0), "who believes a wrong reset is doomed, not early");
    sim.shutdown().await;
}

#[tokio::test]
async fn where_no_reset_is_named_nobody_is_early() {
    let (sim, _clock) = started(&two_per_ten_seconds("refuse = { reset = [] }")).await;
    for _ in 0..4 {
        status(&sim, "m").await;
    }
    assert_eq!(judged(&sim), (0, 1, 0));
    sim.shutdown().await;
}

#[tokio::test]
async fn what_was_on_the_wire_when_a_refusal_left_is_concurrent() {
    let clock = Clock::manual(START_MS);
    let rule = "grace = \"0s\"\n[[rules]]\nname = \"r\"\nfirst = 1\nlatency = \"1s\"\n\
                refuse = { kind = \"rate_limit_requests\", reset_in = \"30s\" }";
    let sim = sim_at(rule, clock.clone()).await;
    let both = async { tokio::join!(status(&sim, "m"), status(&sim, "m")) };
    let statuses = advancing(&clock, || sim.stats().totals.received == 2, both).await;
    assert_eq!(statuses, (429, 429), "a named reset closes the scope");
    assert_eq!(judged(&sim), (0, 0, 1));
    // Its rule delays this one, too.
    assert_eq!(advancing(&clock, || true, status(&sim, "m")).await, 429);
    assert_eq!(judged(&sim), (1, 1, 1));
    sim.shutdown().await;
}

#[tokio::test]
async fn within_the_grace_nobody_can_have_known() {
    let (sim, clock) = started(&two_per_ten_seconds("").replace("0s", "50ms")).await;
    for _ in 0..3 {
        status(&sim, "m").await;
    }
    clock.advance_ms(49);
    status(&sim, "m").await;
    assert_eq!(judged(&sim), (0, 0, 1));
    clock.advance_ms(1);
    status(&sim, "m").await;
    assert_eq!(judged(&sim), (1, 1, 1));
    sim.shutdown().await;
}

#[tokio::test]
async fn a_scope_is_a_key_and_a_model_or_a_key_with_all_its_models() {
    for (scope, other_model) in [("key_model", 200), ("key", 429)] {
        let (sim, _clock) = started(&two_per_ten_seconds(&format!("scope = \"{scope}\""))).await;
        for _ in 0..2 {
            status(&sim, "m").await;
        }
        assert_eq!(status(&sim, "n").await, other_model);
        let other_key = post(&sim, "/v1/chat/completions", "sk-secret", &question("m", false)).await.unwrap();
        assert_eq!(other_key.status(), 200);
        let keys: Vec<_> = sim.stats().scopes.into_iter().map(|scope| scope.key).collect();
        assert_eq!(keys[..2], ["sim-test", "sim-test"]);
        assert!(keys[2].starts_with('#') && !keys[2].contains("secret"), "{keys:?}");
        sim.shutdown().await;
    }
}

#[tokio::test]
async fn tokens_are_metered_and_what_never_fits_is_told_so() {
    let text = "[answer]\nchars = 400\n[[limits]]\nname = \"l\"\ncount = \"tokens\"\nlimit = 250\nper = \"1m\"\n\
                shape = \"window\"";
    let (sim, clock) = started(text).await;
    assert_eq!([status(&sim, "m").await, status(&sim, "m").await], [200, 200]);
    let refused: Value = ask(&sim, "m").await.json().await.unwrap();
    assert_eq!(refused["error"]["type"], "tokens");
    clock.advance_ms(60_000);
    let mut long = question("m", false);
    long["messages"][0]["content"] = "long ".repeat(400).into();
    let never = post(&sim, "/v1/chat/completions", "sim-test", &long).await.unwrap();
    assert_eq!((never.status().as_u16(), header(&never, "retry-after")), (429, None));
    assert!(never.text().await.unwrap().contains("Request too large"));
    assert_eq!(status(&sim, "m").await, 200, "what never fits is not charged");
    sim.shutdown().await;
}

#[tokio::test]
async fn in_flight_is_limited_without_a_reset() {
    let clock = Clock::manual(START_MS);
    let text = "[answer]\nlatency = \"1s\"\n[[limits]]\nname = \"l\"\ncount = \"in_flight\"\nlimit = 1";
    let sim = sim_at(text, clock.clone()).await;
    let second = async {
        while sim.stats().totals.in_flight == 0 {
            tokio::task::yield_now().await;
        }
        ask(&sim, "m").await
    };
    let refused = || sim.stats().totals.refused == 1;
    let (first, crowded) = advancing(&clock, refused, async { tokio::join!(status(&sim, "m"), second) }).await;
    assert_eq!((crowded.status().as_u16(), header(&crowded, "retry-after")), (429, None));
    assert_eq!(first, 200);
    assert_eq!(judged(&sim), (0, 0, 0));
    sim.shutdown().await;
}

#[tokio::test]
async fn a_refusal_tells_the_providers_own_time() {
    let (sim, _clock) = started(
        "[[rules]]\nname = \"r\"\ndate_skew = \"10m\"\n\
         refuse = { kind = \"plan_window\", reset_in = \"5s\", reset = [\"body-reset-at-ms\"] }",
    )
    .await;
    let refused = ask(&sim, "m").await;
    assert_eq!(header(&refused, "date").as_deref(), Some("Mon, 21 Sep 2026 14:23:20 GMT"));
    let body: Value = refused.json().await.unwrap();
    assert_eq!(body["error"]["reset_at_ms"], START_MS + 605_000);
    sim.shutdown().await;
}

#[tokio::test]
async fn a_scripted_refusal_names_a_limit_that_could_be() {
    let (sim, _clock) = started("[[rules]]\nname = \"r\"\nrefuse = { kind = \"rate_limit_requests\" }").await;
    let refused = post(&sim, "/v1beta/models/m:generateContent", "k", &json!({"contents": []})).await.unwrap();
    let body: Value = refused.json().await.unwrap();
    // A quota of 0 would mean that there is no allowance at all.
    assert_eq!(body["error"]["details"][0]["violations"][0]["quotaValue"], "60");
    sim.shutdown().await;
}

#[tokio::test]
async fn a_failing_servers_retry_after_closes_no_scope() {
    let (sim, _clock) = started(
        "grace = \"0s\"\n[[rules]]\nname = \"r\"\nfirst = 1\n\
         refuse = { kind = \"server_error\", reset_in = \"5s\", reset = [\"retry-after\"], closes = \"nothing\" }",
    )
    .await;
    assert_eq!([status(&sim, "m").await, status(&sim, "m").await], [500, 200]);
    assert_eq!(judged(&sim), (0, 0, 0));
    let totals = settled(&sim).await;
    assert_eq!((totals.failed, totals.completed), (1, 1));
    sim.shutdown().await;
}

#[tokio::test]
async fn the_same_arrivals_get_the_same_run() {
    let text = format!(
        "seed = 5\n{}\n[[rules]]\nname = \"chance\"\nprobability = 0.4\nrespond = {{ status = 503 }}",
        two_per_ten_seconds("")
    );
    let mut runs = Vec::new();
    for _ in 0..2 {
        let (sim, clock) = started(&text).await;
        let mut bodies = Vec::new();
        for _ in 0..12 {
            bodies.push(ask(&sim, "m").await.text().await.unwrap());
            clock.advance_ms(2_500);
        }
        settled(&sim).await;
        runs.push((bodies, sim.log(0, 100), sim.stats()));
        sim.shutdown().await;
    }
    assert_eq!(runs[0], runs[1]);
    let outcomes: Vec<_> = runs[0].1.entries.iter().map(|entry| entry.outcome).collect();
    for outcome in [Outcome::Completed, Outcome::Refused, Outcome::Failed] {
        assert!(outcomes.contains(&outcome), "{outcomes:?}");
    }
}
