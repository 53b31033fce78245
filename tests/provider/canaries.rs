//! Prompts, answers and credentials reach no log and no error, whatever filter is asked for.

use crate::rig::{self, KEY, MODES, Mode, PATIENT, answer_body, chat, delta, finish, provider, send};
use crate::wire::{Act, JSON, Server, response, sse};
use reprieve::provider::{Call, RawCall};
use reprieve::telemetry::{self, Format};
use std::process::Command;

const PROMPT: &str = "prompt-canary-9c2e";
const ANSWER: &str = "answer-canary-77d0";
const REFUSAL: &str = "refusal-canary-31aa";

const FILTER: &str = "CANARY_TEST_FILTER";
const FORMAT: &str = "CANARY_TEST_FORMAT";

fn canary_call(mode: Mode) -> Call {
    match mode {
        Mode::Raw => Call::Raw(RawCall {
            model: rig::MODEL.into(),
            path: "/v1/embeddings".into(),
            body: format!(r#"{{"input":"{PROMPT}"}}"#),
        }),
        Mode::Streamed | Mode::Plain => {
            let mut asked = chat(rig::MODEL, mode == Mode::Streamed);
            asked.messages[0].content = PROMPT.into();
            Call::Chat(asked)
        }
    }
}

/// Calls that answer, refuse and break, in every mode.
fn traffic() -> Vec<rig::Told> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut told = Vec::new();
        for mode in MODES {
            let frames = [delta(ANSWER), finish("stop"), "data: [DONE]".to_owned()];
            let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
            let whole = match mode {
                Mode::Streamed => sse(&frames),
                Mode::Plain | Mode::Raw => response("200 OK", &[JSON], answer_body(ANSWER)),
            };
            let error = format!(r#"{{"error":{{"message":"{REFUSAL}"}}}}"#);
            let broken = format!("event: error\ndata: {{{REFUSAL}}}");
            let odd = response("200 OK", &[("content-type", "text/html")], REFUSAL);
            for act in [whole, response("429 Too Many Requests", &[JSON], &error), sse(&[&broken]), odd] {
                let server = Server::start(vec![vec![Act::Request, act]]).await;
                told.push(send(&provider("openai", server.url("/v1/"), PATIENT), &canary_call(mode)).await);
            }
            told.push(
                send(&provider("openai", format!("http://127.0.0.1:1/{REFUSAL}/"), PATIENT), &canary_call(mode)).await,
            );
        }
        tracing::info!("the traffic is over");
        told
    })
}

/// What a process with this log setting writes while the traffic runs. Another process, because a log is a process's
/// own: beside other tests nothing could be told from its silence.
fn log_of(filter: &str, format: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "canaries::in_a_process_of_its_own", "--ignored", "--nocapture"])
        .envs([(FILTER, filter), (FORMAT, format)])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat()
}

#[test]
#[ignore = "run by the test of the log, in a process of its own"]
fn in_a_process_of_its_own() {
    let (Ok(filter), Ok(format)) = (std::env::var(FILTER), std::env::var(FORMAT)) else { return };
    match format.as_str() {
        "text" => telemetry::init(&filter, Format::Text).unwrap(),
        "json" => telemetry::init(&filter, Format::Json).unwrap(),
        _ => tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).init(),
    }
    assert_eq!(traffic().len(), 15);
}

#[test]
fn no_canary_reaches_the_log_at_any_level() {
    for format in ["text", "json"] {
        for filter in ["trace", "trace,genai=trace,hyper=trace,reqwest=trace,h2=trace,sqlx=trace", "genai=trace"] {
            let text = log_of(filter, format);
            for canary in [PROMPT, ANSWER, REFUSAL, KEY] {
                assert!(!text.contains(canary), "{filter}: {canary}");
            }
            assert_eq!(text.contains("the traffic is over"), filter != "genai=trace", "{filter}: {text}");
        }
    }
    // That the proof is one: without the rule the same traffic spills.
    let open = log_of("", "open");
    assert!(open.contains(ANSWER) && open.contains(REFUSAL), "genai logs bodies no more: is the rule still needed?");
}

#[test]
fn no_canary_reaches_an_error_outside_the_response_itself() {
    use reprieve::failure::{Ending, Fault};
    let mut seen = 0;
    for told in traffic() {
        let Err(broken) = &told.outcome else { continue };
        let words = match &broken.ending {
            Ending::Fault(Fault::Transport(transport)) => transport.detail.clone(),
            Ending::Fault(Fault::Terminal(terminal)) => terminal.reason.clone(),
            _ => continue,
        };
        seen += 1;
        for canary in [PROMPT, ANSWER, REFUSAL, KEY, "127.0.0.1", "http"] {
            assert!(!words.contains(canary), "{words}");
        }
    }
    assert!(seen >= 4, "{seen}");
}
