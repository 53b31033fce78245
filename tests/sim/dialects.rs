//! Three dialects, asked through the client library that production uses.

use super::{client, post, question, settled, sim};
use futures::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::{ChatMessage, ChatOptions, ChatRequest, ChatStreamEvent, StopReason, Usage};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, ModelIden, ServiceTarget};
use reprieve::sim::Sim;
use serde_json::{Value, json};

const ADAPTERS: [(AdapterKind, &str); 3] =
    [(AdapterKind::OpenAI, "/v1/"), (AdapterKind::Anthropic, "/v1/"), (AdapterKind::Gemini, "/v1beta/")];

fn target(sim: &Sim, adapter: AdapterKind, base: &str) -> ServiceTarget {
    ServiceTarget {
        endpoint: Endpoint::from_owned(format!("{}{base}", sim.url())),
        auth: AuthData::from_single("sim-test"),
        model: ModelIden::new(adapter, "sim-model"),
    }
}

struct Said {
    text: String,
    finish: Option<StopReason>,
    usage: Usage,
    chunks: usize,
}

async fn whole(target: ServiceTarget, request: ChatRequest, options: &ChatOptions) -> Said {
    let response = Client::new().unwrap().exec_chat(target, request, Some(options)).await.unwrap();
    Said {
        text: response.first_text().unwrap_or_default().to_owned(),
        finish: response.stop_reason.clone(),
        usage: response.usage,
        chunks: 0,
    }
}

async fn streamed(target: ServiceTarget, request: ChatRequest, options: &ChatOptions) -> Said {
    let options = options.clone().with_capture_usage(true);
    let mut stream = Client::new().unwrap().exec_chat_stream(target, request, Some(&options)).await.unwrap().stream;
    let mut said = Said { text: String::new(), finish: None, usage: Usage::default(), chunks: 0 };
    while let Some(event) = stream.next().await {
        match event.unwrap() {
            ChatStreamEvent::Chunk(chunk) => {
                said.text.push_str(&chunk.content);
                said.chunks += 1;
            }
            ChatStreamEvent::End(end) => {
                said.finish = end.captured_stop_reason;
                said.usage = end.captured_usage.unwrap_or_default();
            }
            _ => {}
        }
    }
    said
}

#[tokio::test]
async fn every_dialect_gives_the_same_text_streamed_and_whole_with_usage_and_a_finish() {
    let sim = sim("[answer]\nchars = 300\nchunk_chars = 20").await;
    let options = ChatOptions::default();
    let mut texts = Vec::new();
    for (adapter, base) in ADAPTERS {
        let request = ChatRequest::from_user("What is at the quay?").with_system("Be brief.");
        let one = whole(target(&sim, adapter, base), request.clone(), &options).await;
        let other = streamed(target(&sim, adapter, base), request, &options).await;
        assert_eq!(one.text.chars().count(), 300, "{adapter}");
        assert_eq!(one.text, other.text, "{adapter}");
        assert!(other.chunks >= 15, "{adapter}: {} chunks", other.chunks);
        for said in [&one, &other] {
            assert!(matches!(said.finish, Some(StopReason::Completed(_))), "{adapter}: {:?}", said.finish);
            assert_eq!(said.usage.completion_tokens, Some(75), "{adapter}");
            assert!(said.usage.prompt_tokens.unwrap() > 5, "{adapter}");
        }
        texts.push(one.text);
    }
    assert!(texts.iter().all(|text| *text == texts[0]), "the text is a function of seed and question alone");
    let totals = settled(&sim).await;
    assert_eq!((totals.completed, totals.sent_tokens), (6, 6 * 75));
    sim.shutdown().await;
}

#[tokio::test]
async fn a_cap_is_told_in_the_vendors_word() {
    let sim = sim("[answer]\nchars = 300").await;
    let options = ChatOptions::default().with_max_tokens(10);
    for ((adapter, base), word) in ADAPTERS.into_iter().zip(["length", "max_tokens", "MAX_TOKENS"]) {
        let request = ChatRequest::from_user("What is at the quay?");
        let one = whole(target(&sim, adapter, base), request.clone(), &options).await;
        let other = streamed(target(&sim, adapter, base), request, &options).await;
        for said in [&one, &other] {
            assert_eq!(said.finish, Some(StopReason::MaxTokens(word.to_owned())), "{adapter}");
            assert!((36..=40).contains(&said.text.chars().count()), "{adapter}: {:?}", said.text);
        }
        assert_eq!(one.text, other.text);
    }
    sim.shutdown().await;
}

#[tokio::test]
async fn pieces_cut_by_a_cap_join_to_the_whole_text() {
    let sim = sim("[answer]\nchars = 300").await;
    for (adapter, base) in ADAPTERS {
        let mut request = ChatRequest::from_user("What is at the quay?");
        let full = whole(target(&sim, adapter, base), request.clone(), &ChatOptions::default()).await.text;
        let capped = ChatOptions::default().with_max_tokens(32);
        let mut joined = String::new();
        loop {
            // Whole answers are trimmed by the client: the pieces must not depend on what stands at their ends.
            let piece = whole(target(&sim, adapter, base), request.clone(), &capped).await;
            joined.push_str(&piece.text);
            if matches!(piece.finish, Some(StopReason::Completed(_))) {
                break;
            }
            request = request
                .append_message(ChatMessage::assistant(piece.text))
                .append_message(ChatMessage::user("Go on exactly where you stopped."));
        }
        assert_eq!(joined, full, "{adapter}");
    }
    sim.shutdown().await;
}

#[tokio::test]
async fn embeddings_and_other_prefixes_are_served_and_the_unreadable_is_refused_in_the_dialect_asked() {
    let sim = sim("").await;
    let body = json!({"model": "e", "input": ["a", "b"]});
    let vectors: Value = post(&sim, "/v1/embeddings", "sim-test", &body).await.unwrap().json().await.unwrap();
    assert_eq!(vectors["data"].as_array().unwrap().len(), 2);
    let prefixed = post(&sim, "/some/proxy/v1/chat/completions", "sim-test", &question("m", false)).await.unwrap();
    assert_eq!(prefixed.status(), 200);

    let lost = post(&sim, "/v1/nowhere", "sim-test", &json!({})).await.unwrap();
    assert_eq!(lost.status(), 404);
    let unnamed = post(&sim, "/v1/messages", "sim-test", &json!({"messages": []})).await.unwrap();
    assert_eq!(unnamed.status(), 400);
    let problem: Value = unnamed.json().await.unwrap();
    assert_eq!(problem["error"]["type"], "invalid_request_error");
    let broken = client().post(format!("{}/v1/chat/completions", sim.url())).body("{").send();
    assert_eq!(broken.await.unwrap().status(), 400);
    assert_eq!(settled(&sim).await.received, 2, "what cannot be read belongs to no scope");
    sim.shutdown().await;
}
