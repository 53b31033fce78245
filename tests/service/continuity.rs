//! A job's text is its pieces joined, however often it was cut.

use crate::bench::{Bench, text};
use serde_json::json;

#[tokio::test]
async fn cut_streams_are_continued_and_the_text_is_whole() {
    let calm = Bench::start("[answer]\nchars = 400\n", "").await;
    let id = calm.submit(json!({})).await;
    let whole = text(&calm.succeeded(id).await);
    let cut = "[answer]\nchars = 400\n\
        [[rules]]\nname = \"dropped\"\nevery = 2\ndrop = { after_chunks = 5 }\n";
    let bench = Bench::start(cut, "[recovery.tiered.transient]\nbase = \"10ms\"\n").await;
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(bench.submit(json!({})).await);
    }
    for id in ids {
        assert_eq!(text(&bench.succeeded(id).await), whole);
    }
    assert!(bench.sim.stats().totals.dropped > 0);
}

#[tokio::test]
async fn a_capped_answer_goes_on_where_it_ended_or_stands_as_it_is() {
    let scenario = "[answer]\nchars = 400\n[[rules]]\nname = \"capped\"\nfirst = 2\nanswer = { max_tokens = 30 }\n";
    let calm = Bench::start("[answer]\nchars = 400\n", "").await;
    let id = calm.submit(json!({})).await;
    let whole = text(&calm.succeeded(id).await);
    let bench = Bench::start(scenario, "").await;
    let id = bench.submit(json!({})).await;
    let job = bench.succeeded(id).await;
    assert_eq!(text(&job), whole);
    assert_eq!(bench.turns(id).await.len(), 3);
    let bench = Bench::start(scenario, "").await;
    let id = bench.submit(json!({"on_truncated": "accept"})).await;
    let job = bench.succeeded(id).await;
    assert!(whole.starts_with(&text(&job)) && text(&job) != whole);
}
