//! A model's name goes out verbatim through every adapter, or is refused before it is sent.

use crate::rig::{PATIENT, chat, provider, send};
use crate::wire::{Act, JSON, Server, response};
use genai::adapter::AdapterKind;
use reprieve::provider::{Call, check_model};

const NAMES: [&str; 12] = [
    "plain-model",
    "mistral-medium",
    "qwen-max",
    "a-none",
    "a-zero",
    "a-minimal",
    "claude-x-high",
    "gemini-x-low",
    "minimax-x-xhigh",
    "vendor/model:free",
    "name::space-low",
    "accounts/fireworks/models/a-max",
];

#[tokio::test]
async fn every_adapter_sends_the_name_verbatim_or_refuses_it() {
    let mut sent = 0;
    let mut refused = Vec::new();
    for kind in AdapterKind::all() {
        let adapter = kind.as_lower_str();
        let exchange = [Act::Request, response("418 I'm a teapot", &[JSON], r#"{"error":{}}"#)];
        let server = Server::start(vec![vec![exchange; 2 * NAMES.len()].concat()]).await;
        let provider = provider(adapter, server.url("/base/"), PATIENT);
        for name in NAMES {
            for stream in [true, false] {
                let call = Call::Chat(chat(name, stream));
                if let Err(error) = provider.check(&call) {
                    assert_eq!(error.at, "/model", "{adapter} {name}: {error}");
                    assert!(check_model(adapter, name).is_err());
                    let told = send(&provider, &call).await;
                    assert_eq!((told.ending().as_str(), told.heard.sends), ("terminal", 0), "{adapter} {name}");
                    refused.push(format!("{adapter} {name}"));
                    continue;
                }
                let told = send(&provider, &call).await;
                assert_eq!(told.ending(), "response 418", "{adapter} {name}: {told:?}");
                let requests = server.requests();
                let request = requests.last().unwrap();
                let path = request.line.split(' ').nth(1).unwrap().replace("%3A", ":").replace("%2F", "/");
                match request.json().get("model").and_then(|model| model.as_str()) {
                    Some(model) => assert_eq!(model, name, "{adapter}, in the body"),
                    None => assert!(
                        path.contains(&format!("/{name}:")) || path.contains(&format!("/{name}/")),
                        "{adapter} {name}: {path}"
                    ),
                }
                let thinks = ["reasoning_effort", "thinking", "reasoning", "think", "output_config"];
                let asked = thinks.iter().find(|member| request.json().get(**member).is_some());
                assert_eq!(asked, None, "{adapter} {name}: the name became an option");
                assert_eq!(request.json().pointer("/generationConfig/thinkingConfig"), None, "{adapter} {name}");
                sent += 1;
            }
        }
    }
    refused.dedup();
    // Those that stand in the URL, or in a body that takes no correction.
    let with_a_colon_pair = refused.iter().filter(|line| line.contains("::")).count();
    assert_eq!(with_a_colon_pair, 6, "{refused:?}");
    let others: Vec<&String> =
        refused.iter().filter(|line| !line.contains("::") && !line.starts_with("vertex ")).collect();
    assert!(others.is_empty(), "{others:?}");
    assert!(sent > 700, "{sent}");
}

#[test]
fn a_name_that_no_request_can_carry_is_refused() {
    for bad in ["", "two words", "line\nbreak", &"x".repeat(300)] {
        assert!(check_model("openai", bad).is_err(), "{bad}");
    }
    for bad in ["a?b", "a#b", "../x", "a//b", "a%2fb", "é"] {
        assert!(check_model("gemini", bad).is_err(), "{bad}");
        assert!(check_model("openai", bad).is_ok(), "{bad}");
    }
    assert!(check_model("no-such-adapter", "m").is_err());
}
