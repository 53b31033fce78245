//! How long one refusal takes to read: every line of the collection of real failures, from its leaf to the reading.
//!
//! `cargo bench --bench classify`

use reprieve::failure::capture::CaptureInput;
use reprieve::failure::{Ending, Failure, Receipt, Rules};
use reprieve::provider::capture;
use std::hint::black_box;
use std::time::{Duration, Instant};

const CORPUS: &str = include_str!("../tests/corpus/failures.jsonl");
const ENOUGH: Duration = Duration::from_secs(2);

fn main() {
    let start = Instant::now();
    let rules = Rules::embedded();
    println!("rules: {} in {:.1?}", rules.len(), start.elapsed());
    let mut read: Vec<(String, Ending, Receipt)> = Vec::new();
    for line in CORPUS.lines() {
        let Ok(row) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let Ok(input) = CaptureInput::parse(&row["input"]) else { continue };
        let Some(ending) = capture::ending(&input) else { continue };
        let receipt = Receipt {
            received_ms: input.received_at_ms.unwrap_or(0),
            send_took_ms: 0,
            provider: input.provider,
            account: input.account,
            model: input.model,
            attempts: input.attempts,
            redact_vendor_messages: true,
        };
        read.push((row["id"].as_str().unwrap_or_default().to_owned(), ending, receipt));
    }
    let start = Instant::now();
    let mut rounds = 0_u32;
    while start.elapsed() < ENOUGH {
        for (_, ending, receipt) in &read {
            black_box(Failure::read(black_box(ending), receipt, &rules));
        }
        rounds += 1;
    }
    let each = start.elapsed() / (rounds * u32::try_from(read.len()).unwrap_or(1));
    println!("classify: {each:?} a refusal, mean of {} refusals x {rounds}", read.len());
    let mut slowest = (Duration::ZERO, "");
    for (id, ending, receipt) in &read {
        let start = Instant::now();
        for _ in 0..100 {
            black_box(Failure::read(black_box(ending), receipt, &rules));
        }
        slowest = slowest.max((start.elapsed() / 100, id));
    }
    println!("slowest: {:?} ({})", slowest.0, slowest.1);
}
