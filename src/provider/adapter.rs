//! What differs between adapters, as far as this project must know it: how each authenticates a raw turn, where the
//! model's name stands, and what genai would do to that name.
//!
//! The model's name goes out verbatim. genai cuts a name that ends in an effort word (`mistral-medium`, `qwen-max`),
//! splits one at `::`, and decorates some; where the name stands in the request's body it is put back through
//! `extra_body`, which genai merges last, and where it stands in the URL the cut is switched off or the name refused.
//! `tests/provider` pins every adapter.

use super::CallError;
use genai::adapter::AdapterKind;

/// Words at a name's end, after a dash, that genai takes for a reasoning effort.
const EFFORT_WORDS: [&str; 8] = ["zero", "none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The longest model name that is sent, in bytes.
const MAX_MODEL_NAME: usize = 256;

/// The version of Anthropic's API that genai speaks; raw turns speak the same.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The protocol behind an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    OpenAi,
    Responses,
    Anthropic,
    Gemini,
    GeminiInteractions,
    Vertex,
    Ollama,
    Cohere,
    Bedrock,
}

/// An adapter of genai by its configured name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Adapter {
    pub kind: AdapterKind,
    pub wire: Wire,
}

impl Adapter {
    /// `None`: genai has no adapter of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        let kind = AdapterKind::from_lower_str(name)?;
        Some(Self { kind, wire: wire(kind) })
    }

    /// The names that a configuration may use.
    pub fn names() -> Vec<&'static str> {
        AdapterKind::all().iter().map(AdapterKind::as_lower_str).collect()
    }

    /// The header that carries a key on a raw turn, and further headers that go with it.
    pub fn raw_headers(self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        match self.wire {
            Wire::Anthropic => {
                headers.extend(key.map(|key| ("x-api-key", key.to_owned())));
                headers.push(("anthropic-version", ANTHROPIC_VERSION.to_owned()));
            }
            Wire::Gemini | Wire::GeminiInteractions => {
                headers.extend(key.map(|key| ("x-goog-api-key", key.to_owned())));
            }
            Wire::OpenAi | Wire::Responses | Wire::Vertex | Wire::Ollama | Wire::Cohere | Wire::Bedrock => {
                headers.extend(key.map(|key| ("authorization", format!("Bearer {key}"))));
            }
        }
        headers
    }

    /// Where the model's name stands in a request for `model`.
    pub fn name_place(self, model: &str) -> NamePlace {
        match self.wire {
            // This gateway's second protocol is built without `extra_body`, and without a cut.
            Wire::OpenAi if self.kind == AdapterKind::OpenCodeGo && is_minimax(model) => NamePlace::BodyAsIs,
            Wire::OpenAi | Wire::Responses | Wire::Anthropic | Wire::GeminiInteractions => NamePlace::Body,
            Wire::Ollama | Wire::Cohere => NamePlace::BodyAsIs,
            Wire::Gemini | Wire::Vertex | Wire::Bedrock => NamePlace::Url,
        }
    }

    /// The name to hand to genai so that `model` goes out verbatim.
    pub fn genai_name(self, model: &str) -> String {
        match self.name_place(model) {
            NamePlace::Body => {
                // What genai reads from the name's beginning still holds; nothing at its end is an effort word.
                let name = model.replace("::", ":");
                if ends_in_effort(&name) { format!("{name}-") } else { name }
            }
            NamePlace::BodyAsIs | NamePlace::Url => model.to_owned(),
        }
    }

    /// Whether `model` can go out verbatim through this adapter.
    pub fn check_model(self, model: &str) -> Result<(), CallError> {
        let refuse = |problem: String| Err(CallError { at: "/model".into(), problem });
        if model.is_empty() || model.len() > MAX_MODEL_NAME {
            return refuse(format!("must be 1 to {MAX_MODEL_NAME} bytes long"));
        }
        if model.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return refuse("must not contain white space or control characters".into());
        }
        let place = self.name_place(model);
        if place != NamePlace::Body && model.contains("::") {
            return refuse("must not contain `::` with this adapter, which would cut it there".into());
        }
        if place == NamePlace::Url {
            let plain = model.chars().all(|c| c.is_ascii_alphanumeric() || "._:/@-".contains(c));
            if !plain || model.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
                return refuse("stands in the URL with this adapter: only letters, digits and `._:/@-`".into());
            }
        }
        if self.wire == Wire::Vertex && !(model.starts_with("gemini") || model.starts_with("claude")) {
            return refuse("must begin with `gemini` or `claude` with this adapter".into());
        }
        if self.wire == Wire::Vertex && model.starts_with("claude") && ends_in_effort(model) {
            return refuse("must not end in an effort word with this adapter, which would cut it there".into());
        }
        Ok(())
    }

    /// Whether a name in the URL would be cut unless an effort is stated.
    pub fn cuts_in_url(self, model: &str) -> bool {
        self.name_place(model) == NamePlace::Url && ends_in_effort(model)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamePlace {
    /// In the body, where `extra_body` has the last word.
    Body,
    /// In the body of an adapter that knows no `extra_body`, and cuts nothing.
    BodyAsIs,
    Url,
}

fn is_minimax(model: &str) -> bool {
    model.to_lowercase().starts_with("minimax-")
}

fn ends_in_effort(model: &str) -> bool {
    model.rsplit_once('-').is_some_and(|(_, last)| EFFORT_WORDS.contains(&last))
}

/// Every adapter by name and no wildcard: one that a new release of genai brings must be looked at first.
fn wire(kind: AdapterKind) -> Wire {
    match kind {
        AdapterKind::OpenAI
        | AdapterKind::Fireworks
        | AdapterKind::Together
        | AdapterKind::Groq
        | AdapterKind::Aihubmix
        | AdapterKind::Kimi
        | AdapterKind::Mimo
        | AdapterKind::Moonshot
        | AdapterKind::Nebius
        | AdapterKind::Xai
        | AdapterKind::DeepSeek
        | AdapterKind::Mistral
        | AdapterKind::Zai
        | AdapterKind::BigModel
        | AdapterKind::Aliyun
        | AdapterKind::QwenCloud
        | AdapterKind::Baidu
        | AdapterKind::Omlx
        | AdapterKind::GithubCopilot
        | AdapterKind::OpenCodeGo
        | AdapterKind::OpenRouter
        | AdapterKind::AtlasCloud
        | AdapterKind::Requesty
        | AdapterKind::ApiRoute
        | AdapterKind::Heabsy
        | AdapterKind::Runcrate
        | AdapterKind::CloudGpu
        | AdapterKind::Custom(_) => Wire::OpenAi,
        AdapterKind::OpenAIResp => Wire::Responses,
        AdapterKind::Anthropic | AdapterKind::MiniMax => Wire::Anthropic,
        AdapterKind::Gemini => Wire::Gemini,
        AdapterKind::GeminiIx => Wire::GeminiInteractions,
        AdapterKind::Vertex => Wire::Vertex,
        AdapterKind::Ollama | AdapterKind::OllamaCloud => Wire::Ollama,
        AdapterKind::Cohere => Wire::Cohere,
        AdapterKind::BedrockApi => Wire::Bedrock,
    }
}
