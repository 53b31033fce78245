//! A streamed answer cut at any byte: nothing lost, nothing doubled, and complete exactly if its finish was heard.

use crate::rig::{self, Mode, PATIENT, call, delta, finish, provider, send};
use crate::wire::{Act, SSE_HEAD, SSE_HEAD_TO_EOF, Server, chunk};
use rand::{RngExt, SeedableRng};

const CUTS: usize = 1_000;

/// Pieces with characters of every length, so that cuts fall inside some.
fn pieces() -> Vec<String> {
    [
        "The ",
        "umbrella ",
        "☂",
        " costs ",
        "10 €",
        " in ",
        "Zürich",
        " — ",
        "日本語",
        " ",
        "🦀🦀",
        "\n\n",
        "\"quoted\"",
        " end.",
    ]
    .map(str::to_owned)
    .to_vec()
}

struct Cut {
    at: usize,
    /// Whether the body ends properly at the cut, or the connection breaks inside it.
    clean: bool,
    script: Vec<Act>,
}

#[tokio::test]
async fn a_thousand_cuts() {
    let pieces = pieces();
    let mut frames: Vec<String> = pieces.iter().map(|piece| delta(piece)).collect();
    // What follows the finish reason is part of the cuts, too.
    frames.extend([
        finish("stop"),
        "data: {\"choices\":[],\"usage\":{\"total_tokens\":9}}".into(),
        "data: [DONE]".into(),
    ]);
    let whole: Vec<u8> = frames.iter().flat_map(|frame| format!("{frame}\n\n").into_bytes()).collect();

    let mut random = rand::rngs::StdRng::seed_from_u64(20_260);
    let cuts: Vec<Cut> = (0..CUTS)
        .map(|n| {
            let at = random.random_range(0..=whole.len());
            let (clean, split) = (n % 2 == 0, random.random_range(0..=at));
            // The body comes in two writes, split anywhere.
            let parts = [&whole[..split], &whole[split..at]];
            let mut script = vec![Act::Request];
            if clean {
                script.push(Act::Send(SSE_HEAD_TO_EOF.to_vec()));
                script.extend(parts.map(|part| Act::Send(part.to_vec())));
            } else {
                script.push(Act::Send(SSE_HEAD.to_vec()));
                let filled = parts.iter().filter(|part| !part.is_empty());
                script.extend(filled.map(|part| Act::Send(chunk(part))));
            }
            Cut { at, clean, script }
        })
        .collect();

    // One after the other: no connection outlives its cut, so the next call takes the next script.
    let server = Server::start(cuts.iter().map(|cut| cut.script.clone()).collect()).await;
    let provider = provider("openai", server.url("/v1/"), PATIENT);
    let mut results: Vec<(usize, bool, rig::Told)> = Vec::new();
    for cut in &cuts {
        results.push((cut.at, cut.clean, send(&provider, &call(Mode::Streamed)).await));
    }

    let (mut complete, mut broken) = (0, 0);
    for (at, clean, told) in &results {
        let (at, clean) = (*at, *clean);
        // What a reader that counts whole frames only would have heard. At a proper end the last frame needs no blank
        // line after it.
        let heard_frames = frames
            .iter()
            .scan(0, |begins, frame| {
                let ends = *begins + frame.len() + if clean { 0 } else { 2 };
                *begins += frame.len() + 2;
                Some(ends)
            })
            .take_while(|ends| *ends <= at)
            .count();
        let expected = pieces[..heard_frames.min(pieces.len())].concat();
        assert_eq!(told.heard.text, expected, "cut at {at}, clean: {clean}");
        let finished = heard_frames > pieces.len();
        assert_eq!(told.heard.finish_reason.is_some(), finished, "cut at {at}, clean: {clean}");
        match told.ending().as_str() {
            "complete" if finished => complete += 1,
            "incomplete" if !finished && clean => broken += 1,
            "transport" if !finished && !clean => broken += 1,
            other => panic!("cut at {at}, clean: {clean}: {other}"),
        }
    }
    assert!(complete > 20 && broken > 500, "{complete} complete, {broken} broken: the cuts miss a side");
}
