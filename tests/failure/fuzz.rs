//! Random bytes against `classify` and the reset grammars: a short form for the gate, a long one by
//! `REPRIEVE_FUZZ_CASES` (`scripts/fuzz`). A failing case is a seed.

use crate::arbitrary::{CANARY, check};
use crate::{NOW_MS, RULES, read};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use reprieve::failure::capture::CaptureInput;
use reprieve::provider::capture::classify;
use reprieve::recovery::Policy;
use serde_json::{Value, json};
use std::time::Instant;

/// What the gate runs.
const SHORT: u64 = 4_000;

/// Pieces that the readers know, put together in ways that nobody intended.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "'",
    "\\",
    "\n",
    "\0",
    "\u{130}",
    " ",
    "-",
    ".",
    "e",
    "0",
    "9",
    "17",
    "1790000000",
    "1790000000000",
    "99999999999999999999",
    "s",
    "ms",
    "m",
    "h",
    "d",
    "1d2h",
    "6m0s",
    "2026-10-01",
    "T00:00:00Z",
    "T00:00:00+00:00",
    "at 00:00 UTC",
    "3pm",
    "Tue, 01 Sep 2026 12:00:45 GMT",
    "try again in ",
    "retry after ",
    "resets at ",
    "wait ",
    "resets ",
    "error",
    "message",
    "code",
    "type",
    "status",
    "details",
    "reason",
    "retryDelay",
    "quotaId",
    "PerDay",
    "google.rpc.RetryInfo",
    "google.rpc.QuotaFailure",
    "@type",
    "violations",
    "metadata",
    "raw",
    "headers",
    "data: ",
    "event: error\n",
    "null",
    "true",
    "429",
    "insufficient_quota",
    "rate_limit_exceeded",
    "usage_limit_reached",
    "retry_after",
    "reset_at_ms",
    "resets_in_seconds",
    "litellm.RateLimitError: ",
    " - ",
    "Limit 0, Used 1, Requested 2",
    "Rate limit reached for x on tokens per min (TPM): ",
    "秒",
    "重置",
    "(1008)",
    "<html>",
    "choices",
    "finish_reason",
    "length",
    "{\"error\":{\"message\":\"",
    "\",\"code\":\"",
    "\"}}",
    CANARY,
];
const NAMES: &[&str] = &[
    "retry-after",
    "retry-after-ms",
    "x-ratelimit-reset",
    "x-ratelimit-remaining",
    "x-ratelimit-reset-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-tokens-day",
    "anthropic-ratelimit-unified-reset",
    "anthropic-ratelimit-unified-status",
    "anthropic-ratelimit-unified-5h-reset",
    "anthropic-ratelimit-unified-5h-status",
    "anthropic-ratelimit-tokens-reset",
    "x-codex-primary-reset-at",
    "x-codex-primary-used-percent",
    "date",
    "age",
    "x-request-id",
    "x-amzn-errortype",
    ":exception-type",
    "x-ratelimit-type",
];

fn pick<'a>(rng: &mut SmallRng, of: &[&'a str]) -> &'a str {
    of[rng.random_range(0..of.len())]
}

fn text(rng: &mut SmallRng, most: usize) -> String {
    let mut out = String::new();
    for _ in 0..rng.random_range(0..=most) {
        if rng.random_range(0..8) == 0 {
            out.push(char::from(rng.random::<u8>()));
        } else {
            out.push_str(pick(rng, PIECES));
        }
    }
    out
}

fn value(rng: &mut SmallRng, depth: u32) -> Value {
    match rng.random_range(0..if depth == 0 { 5 } else { 9 }) {
        0 => Value::Null,
        1 => json!(rng.random::<i64>()),
        2 => json!(rng.random_range(-10.0..2e12)),
        3 | 4 => Value::String(text(rng, 6)),
        5 => (0..rng.random_range(0..3)).map(|_| value(rng, depth - 1)).collect(),
        6 => Value::String(value(rng, depth - 1).to_string()),
        _ => (0..rng.random_range(0..5)).map(|_| (pick(rng, PIECES).to_owned(), value(rng, depth - 1))).collect(),
    }
}

fn one(seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let headers: Vec<(String, String)> =
        (0..rng.random_range(0..5)).map(|_| (pick(&mut rng, NAMES).to_owned(), text(&mut rng, 4))).collect();
    let status = rng.random_range(100..600_u16);
    if rng.random::<bool>() {
        let body = value(&mut rng, 4);
        check(&read(Some(status), &headers, Some(body))).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        return;
    }
    let body = if rng.random::<bool>() { text(&mut rng, 24) } else { value(&mut rng, 4).to_string() };
    let names: serde_json::Map<String, Value> = headers.into_iter().map(|(name, text)| (name, json!(text))).collect();
    let transport = pick(&mut rng, &["http", "sse_frame"]);
    let input = json!({"transport": transport, "http_status": status, "headers": names, "body": body,
        "received_at_ms": NOW_MS, "provider": "p", "model": "m", "spoken": rng.random::<bool>()});
    let input = CaptureInput::parse(&input).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    let reading = classify(&input, &RULES, &Policy::tiered(), NOW_MS);
    let line = serde_json::to_string(&reading).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    assert!(!line.contains("CANARY"), "seed {seed}: {line}");
}

#[test]
fn random_inputs_are_read() {
    let cases = std::env::var("REPRIEVE_FUZZ_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(SHORT);
    let first = std::env::var("REPRIEVE_FUZZ_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0_u64);
    let threads = u64::try_from(std::thread::available_parallelism().map_or(1, usize::from)).unwrap_or(1);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let mut seed = first + thread;
                while seed < first + cases {
                    one(seed);
                    seed += threads;
                }
            });
        }
    });
    println!("{cases} random inputs from seed {first} in {:.1?}", start.elapsed());
}
