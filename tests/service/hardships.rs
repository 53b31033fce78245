//! What goes wrong around the service: a database that is away, providers that lie, hostile content.

use crate::bench::Bench;
use crate::kill::{SHORT_LEASE, consistent, ended, outcomes, spec, submit};
use crate::process::{Place, until};
use reprieve::clock::Clock;
use reprieve::store::{CancelOutcome, JobId, JobState, Outcome, Store};
use serde_json::json;
use sqlx::Connection;

#[tokio::test]
async fn answers_that_came_while_the_database_was_away_past_the_lease_are_kept() {
    let place = Place::new("[answer]\nlatency = \"500ms\"\n", SHORT_LEASE).await;
    let store = place.store().await;
    let service = place.start(&["serve"]).await;
    let ids = submit(&place, &store, (0..3).map(|_| spec("m")).collect()).await;
    until("the calls", || async { (place.sim.stats().totals.received == 3).then_some(()) }).await;
    let mut other = sqlx::SqliteConnection::connect(&place.config.database).await.unwrap();
    sqlx::query("BEGIN EXCLUSIVE").execute(&mut other).await.unwrap();
    until("the answers", || async { (place.sim.stats().totals.completed == 3).then_some(()) }).await;
    // Longer than anybody waits for the lock, too: every duty has met it.
    service.logs("the lease ran out").await;
    service.logs("overdue jobs could not be ended").await;
    sqlx::query("COMMIT").execute(&mut other).await.unwrap();
    for id in ids {
        assert_eq!(ended(&store, id).await.state, JobState::Succeeded);
        assert_eq!(outcomes(&store.turns(id).await.unwrap()), [Outcome::Completed]);
    }
    assert_eq!(place.sim.stats().totals.received, 3, "an answer was thrown away and asked for again");
    service.stop().await;
    consistent(&place).await;
}

/// A provider that names a reset too early three times in a row, one that names it late, one that never names any: each is
/// taken at its word, and nobody fails for it.
#[tokio::test]
async fn providers_that_lie_about_their_resets_are_taken_at_their_word_and_fail_nobody() {
    let rule = |model: &str, first: u32, refuse: &str| {
        format!(
            "[[rules]]\nname = \"{model}\"\nmodels = [\"{model}\"]\nfirst = {first}\n\
             refuse = {{ kind = \"rate_limit_requests\", closes = \"nothing\", {refuse} }}\n"
        )
    };
    let scenario = rule("early", 3, "reset_in = \"1500ms\", named_off = \"-1200ms\"")
        + &rule("late", 1, "reset_in = \"100ms\", named_off = \"2s\"")
        + &rule("never", 2, "reset_in = \"100ms\", reset = []")
        + &rule("past", 2, "reset_in = \"100ms\", named_off = \"-10m\"");
    let bench = Bench::start(&scenario, "").await;
    let mut ids = Vec::new();
    for model in ["early", "late", "never", "past"] {
        ids.push((model, bench.submit(json!({"model": model})).await));
    }
    for (model, id) in ids {
        bench.succeeded(id).await;
        let turns = bench.turns(id).await;
        let refusals: Vec<_> = turns.iter().flat_map(|turn| &turn.evidence).collect();
        assert_eq!(refusals.len(), if model == "early" { 3 } else { 1 + usize::from(model != "late") }, "{model}");
        let sends: Vec<_> = turns.iter().flat_map(|turn| &turn.sends).collect();
        for (refusal, next) in refusals.iter().zip(&sends[1..]) {
            assert_eq!(refusal.resume_at_ms.is_some(), matches!(model, "early" | "late"), "{model}: {refusal:?}");
            assert!(next.started_ms >= refusal.resume_at_ms.unwrap_or(refusal.received_ms + 600), "{model}");
        }
    }
    assert_eq!(bench.sim.stats().totals.early, 0);
}

/// A provider whose clock is wrong, with resets on that clock: never earlier than meant, and where ours is ahead, moved.
#[tokio::test]
async fn a_provider_whose_clock_is_wrong_is_never_asked_early() {
    let rule = |model: &str, skew: &str| {
        format!(
            "[[rules]]\nname = \"{model}\"\nmodels = [\"{model}\"]\nfirst = 1\ndate_skew = \"{skew}\"\n\
             refuse = {{ kind = \"rate_limit_requests\", reset_in = \"2s\", reset = [\"x-ratelimit-reset-rfc3339\"] }}\n"
        )
    };
    let bench = Bench::start(&(rule("behind", "-90s") + &rule("ahead", "90s")), "").await;
    let behind = bench.submit(json!({"model": "behind"})).await;
    let ahead = bench.submit(json!({"model": "ahead"})).await;
    bench.succeeded(behind).await;
    let turns = bench.turns(behind).await;
    let evidence = &turns[0].evidence[0];
    assert!((89_000..=91_100).contains(&evidence.skew_ms), "{evidence:?}");
    assert_eq!(evidence.resume_at_ms.unwrap() - evidence.skew_ms, evidence.reset_at_ms.unwrap());
    // What a clock ahead of ours names is waited for as it stands.
    let job = bench.until(ahead, |job| job.deferrals == Some(1)).await;
    let evidence = bench.turns(ahead).await[0].evidence[0].clone();
    assert_eq!((evidence.skew_ms, evidence.resume_at_ms), (0, evidence.reset_at_ms));
    assert!(job.hold.unwrap().until_ms.unwrap() - evidence.received_ms > 85_000);
    assert_eq!(bench.sim.stats().totals.early, 0);
}

#[tokio::test]
async fn a_clock_that_leaps_back_or_past_a_lease_sends_nothing_early_and_loses_nothing() {
    const START_MS: i64 = 1_790_000_000_000;
    let scenario = "[[rules]]\nname = \"spent\"\nmodels = [\"m\"]\nfirst = 1\n\
        refuse = { kind = \"rate_limit_requests\", reset_in = \"10m\" }\n";
    let clock = Clock::manual(START_MS);
    let bench = Bench::start_at(scenario, "", clock.clone()).await;
    let id = bench.submit(json!({})).await;
    let job = bench.until(id, |job| job.deferrals == Some(1)).await;
    let until_ms = job.hold.unwrap().until_ms.unwrap();
    // Each leap is over when a job of an open scope has ended after it.
    for leap_to_ms in [START_MS - 300_000, START_MS + 1_000, until_ms - 1] {
        clock.set_ms(leap_to_ms);
        let other = bench.submit(json!({"model": "open"})).await;
        bench.succeeded(other).await;
        assert_eq!(bench.sim.stats().scopes.iter().find(|scope| scope.model == "m").unwrap().counts.received, 1);
    }
    clock.set_ms(until_ms);
    bench.succeeded(id).await;
    let turns = bench.turns(id).await;
    assert_eq!(outcomes(&turns), [Outcome::Deferred, Outcome::Completed]);
    assert!(turns[1].sends[0].started_ms >= until_ms);
    let counts = bench.sim.stats().totals;
    assert_eq!((counts.early, counts.doomed), (0, 0));
}

/// Wherever a call stands still, a cancel ends it.
#[tokio::test]
async fn a_cancel_ends_a_call_that_stands_still_in_any_phase() {
    // The listener's queue is full: a connection to it is never made.
    let full = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = full.local_addr().unwrap();
    let socket = socket2::SockRef::from(&full);
    socket.listen(0).unwrap();
    let fills: Vec<socket2::Socket> = (0..3)
        .map(|_| {
            let fill = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
            fill.set_nonblocking(true).unwrap();
            // It is under way, or there is no more room: either fills the queue.
            let _ = fill.connect(&address.into());
            fill
        })
        .collect();
    let scenario = "[[rules]]\nname = \"head\"\nmodels = [\"head\"]\nlatency = \"1h\"\nanswer = {}\n\
        [[rules]]\nname = \"body\"\nmodels = [\"body\"]\nstall = {}\n\
        [[rules]]\nname = \"middle\"\nmodels = [\"middle\"]\nstall = { after_chunks = 2 }\n";
    let more = format!("[providers.unreached]\nadapter = \"openai\"\nendpoint = \"http://{address}/v1/\"\n");
    let bench = Bench::start(scenario, &more).await;
    for (provider, model) in [("unreached", "m"), ("sim", "head"), ("sim", "body"), ("sim", "middle")] {
        for stream in [true, false] {
            let received = bench.sim.stats().totals.received;
            let id = bench.submit(json!({"provider": provider, "model": model, "stream": stream})).await;
            if provider == "sim" {
                until("the call", || async { (bench.sim.stats().totals.received > received).then_some(()) }).await;
            } else {
                bench.until(id, |job| job.state == JobState::Running).await;
            }
            let asked_ms = bench.now_ms();
            assert_eq!(bench.store.cancel(vec![id], asked_ms).await.unwrap(), [CancelOutcome::Asked]);
            let job = bench.ended(id).await;
            assert_eq!(job.state, JobState::Cancelled, "{provider} {model}");
            assert!(job.finished_ms.unwrap() - asked_ms < 2_000, "{provider} {model} {stream}");
        }
    }
    drop(fills);
}

/// Neither the key nor a prompt gets where it does not belong, whatever is logged and however calls end.
#[tokio::test]
async fn the_key_and_the_prompt_stay_where_they_belong() {
    const KEY: &str = "sim-canary-4711";
    const PROMPT: &str = "canary-of-a-prompt-0815";
    let scenario = "[answer]\nchars = 60\n\
        [[rules]]\nname = \"drops\"\nmodels = [\"drops\"]\nfirst = 1\ndrop = { after_chunks = 1 }\n\
        [[rules]]\nname = \"key\"\nmodels = [\"key\"]\nrefuse = { kind = \"bad_key\" }\n\
        [[rules]]\nname = \"echo\"\nmodels = [\"echo\"]\nrespond = { status = 400, headers = { x-echo = \"canary-of-a-prompt-0815\" }, \
          body = '{\"error\":{\"message\":\"canary-of-a-prompt-0815 sim-canary-4711\",\"type\":\"invalid_request_error\"}}' }\n\
        [[rules]]\nname = \"wait\"\nmodels = [\"wait\"]\nfirst = 1\nrefuse = { kind = \"rate_limit_requests\", reset_in = \"300ms\" }\n";
    let place = Place::new(scenario, "").await;
    std::fs::write(place.dir.path().join("key"), KEY).unwrap();
    let store = place.store().await;
    let service = place.spawn(&["serve"], &[("REPRIEVE_LOG", "trace")]);
    service.says_first().await;
    let http = reqwest::Client::new();
    let mut answers = String::new();
    for model in ["plain", "drops", "key", "echo", "wait"] {
        for stream in [true, false] {
            let spec = json!({"model": model, "provider": "sim", "input": PROMPT, "stream": stream});
            let sent = http.post(format!("{}/v1/jobs", service.url())).json(&spec).send().await.unwrap();
            let id: JobId = sent.json::<serde_json::Value>().await.unwrap()["id"].as_str().unwrap().parse().unwrap();
            ended(&store, id).await;
            let turns = http.get(format!("{}/v1/jobs/{id}/turns", service.url())).send().await.unwrap();
            answers += &turns.text().await.unwrap();
        }
    }
    let log = service.stop().await;
    store.close().await;
    assert!(log.contains("the send failed"), "{log}");
    let database = std::fs::read(place.dir.path().join("reprieve.db")).unwrap();
    let holds = |bytes: &[u8], word: &str| bytes.windows(word.len()).any(|window| window == word.as_bytes());
    assert!(holds(&database, PROMPT), "the spec is kept");
    assert!(!holds(&database, KEY));
    for (what, text) in [("the log", &log), ("the turns", &answers)] {
        assert!(!text.contains(PROMPT) && !text.contains(KEY), "{what}: {text}");
    }
    let mut conn = sqlx::SqliteConnection::connect(&place.config.database).await.unwrap();
    for query in [
        "SELECT count(*) FROM turn_records WHERE error LIKE '%canary%'",
        "SELECT count(*) FROM sends WHERE error LIKE '%canary%'",
        "SELECT count(*) FROM reset_evidence WHERE candidates LIKE '%canary%'",
        "SELECT count(*) FROM jobs WHERE error LIKE '%canary%'",
    ] {
        let found: i64 = sqlx::query_scalar(query).fetch_one(&mut conn).await.unwrap();
        assert_eq!(found, 0, "{query}");
    }
}

/// What was submitted and what was answered come back byte for byte.
#[tokio::test]
async fn hostile_content_is_kept_byte_for_byte_and_what_cannot_be_kept_is_refused() {
    let scenario = r#"
[[rules]]
name = "text"
models = ["text"]
respond = { status = 200, headers = { content-type = "application/json" }, body = '{"a":"x\u0000</script>",  "n":9007199254740993, "f":1.0,"twice":1,"twice":2}' }
[[rules]]
name = "bytes"
models = ["bytes"]
garble = { after_chunks = 0 }
"#;
    let place = Place::new(scenario, "").await;
    let store = place.store().await;
    let service = place.start(&["serve"]).await;
    let http = reqwest::Client::new();
    let submit = |body: Vec<u8>| {
        let request = http.post(format!("{}/v1/jobs", service.url())).header("content-type", "application/json");
        request.body(body).send()
    };
    let input = r#""</script> 9007199254740993 \u2028\ud83d\ude00 İ \\u0000 \"""#;
    let raw = |model: &str| {
        format!(
            "{{\"model\":\"{model}\",  \"messages\":[{{\"role\":\"user\",\"content\":{input}}}],\"z\":9007199254740993, \"f\":1.0}}"
        )
    };
    for model in ["text", "bytes"] {
        let body = raw(model);
        let spec = format!(
            "{{\"model\":\"{model}\",\"provider\":\"sim\",\"labels\":{{\"k\":{input}}},\
             \"raw\":{{\"path\":\"chat/completions\",\"body\":{body}}}}}"
        );
        let answer = submit(spec.into_bytes()).await.unwrap().text().await.unwrap();
        let id = serde_json::from_str::<serde_json::Value>(&answer).unwrap()["id"].as_str().unwrap().parse().unwrap();
        let job = ended(&store, id).await;
        assert_eq!(job.state, JobState::Succeeded, "{:?}", job.error);
        assert!(job.spec.contains(&body), "{}", job.spec);
        assert_eq!(job.labels[0].1, serde_json::from_str::<String>(input).unwrap());
        let shown = http.get(format!("{}/v1/jobs/{id}", service.url())).send().await.unwrap().text().await.unwrap();
        assert!(shown.contains(&body), "{shown}");
        let result: serde_json::Value = serde_json::from_str(job.result.as_deref().unwrap()).unwrap();
        if model == "text" {
            let was = "{\"a\":\"x\\u0000</script>\",  \"n\":9007199254740993, \"f\":1.0,\"twice\":1,\"twice\":2}";
            assert_eq!(result["raw"]["body"], was);
        } else {
            assert_eq!(result["raw"]["encoding"], "base64", "{result}");
        }
    }
    let refused: [(&[u8], u16); 5] = [
        (b"{\"model\":\"m\",\"provider\":\"sim\",\"input\":\"\xff\"}", 400),
        (b"{\"model\":\"m\",\"provider\":\"sim\",\"input\":\"\\u0000\"}", 400),
        (b"{\"model\":\"m\",\"provider\":\"sim\",\"input\":\"\\ud800\"}", 400),
        (b"{\"model\":\"m\",\"model\":\"n\",\"provider\":\"sim\",\"input\":\"i\"}", 400),
        (&[b'['; 10_000], 400),
    ];
    for (body, status) in refused {
        assert_eq!(submit(body.to_vec()).await.unwrap().status().as_u16(), status);
    }
    service.stop().await;
    consistent(&place).await;
}

/// An end that the database refuses for what it is holds up no other.
#[tokio::test]
async fn an_end_that_is_refused_holds_up_no_other() {
    let scenario = "[[rules]]\nname = \"quick\"\nmodels = [\"quick\"]\nlatency = \"300ms\"\nanswer = {}\n\
        [[rules]]\nname = \"slow\"\nmodels = [\"slow\"]\nlatency = \"900ms\"\nanswer = {}\n";
    let bench = Bench::start(scenario, "").await;
    let (quick, slow) = (bench.submit(json!({"model": "quick"})).await, bench.submit(json!({"model": "slow"})).await);
    until("the calls", || async { (bench.sim.stats().totals.received == 2).then_some(()) }).await;
    // Damage from outside: the job has ended already, says its row.
    let mut outside = sqlx::SqliteConnection::connect(&bench.config.database).await.unwrap();
    let damage = "UPDATE jobs SET state = 'succeeded', finished_ms = 1, ended_no = 0 WHERE job_id = ?1";
    sqlx::query(damage).bind(quick.0.as_bytes().as_slice()).execute(&mut outside).await.unwrap();
    bench.succeeded(slow).await;
    assert!(bench.turns(quick).await.is_empty(), "what was refused left a trace");
}

#[tokio::test]
async fn a_service_whose_database_takes_no_writes_is_not_ready() {
    let place = Place::new("", "").await;
    let service = place.start(&["serve", "--no-worker"]).await;
    let ready = || async { reqwest::get(format!("{}/readyz", service.url())).await.unwrap() };
    assert_eq!(ready().await.status(), 200);
    let mut other = sqlx::SqliteConnection::connect(&place.config.database).await.unwrap();
    sqlx::query("BEGIN EXCLUSIVE").execute(&mut other).await.unwrap();
    let answer = ready().await;
    assert_eq!(answer.status(), 503);
    assert!(answer.text().await.unwrap().contains("locked by another process"));
    sqlx::query("COMMIT").execute(&mut other).await.unwrap();
    assert_eq!(ready().await.status(), 200);
    service.stop().await;
}
