//! From a `genai::Error` to one of three leaves. The walk is total: every variant of genai 0.7.2 is listed, so that a
//! new one stops the build instead of being retried on a guess.
//!
//! `genai::Error` has no `source()` and its `Display` can print the request: it is taken apart here and never shown.

use super::fault::{Fault, Phase, ResponseFault, Terminal, Transport, is_out_of_resources};
use super::frame;
use genai::webc::{self, StreamTimeout};
use serde_json::Value;
use std::error::Error as _;

/// What genai puts where a refusal's body could not be read: no body at all.
const NO_BODY: &str = "Failed to read error body";
/// The longest transport detail kept, in characters.
const DETAIL_CHARS: usize = 120;
/// Our own word for a connect wait that ran out, by which it is told from a refused connection.
pub(super) const CONNECT_TIMED_OUT: &str = "connect timed out";

impl Fault {
    /// Walks an error down to its leaf.
    #[must_use]
    pub fn of(error: &genai::Error) -> Self {
        use genai::Error as E;
        match error {
            E::HttpError { status, canonical_reason: _, body, headers } => response(status.as_u16(), body, headers),
            E::WebModelCall { model_iden: _, webc_error } | E::WebAdapterCall { adapter_kind: _, webc_error } => {
                of_webc(webc_error)
            }
            E::WebStream { model_iden: _, cause: _, error } => of_boxed(error.as_ref()),
            E::ChatResponse { model_iden: _, body } => Self::Response(frame::fault(body.clone())),
            E::ChatReqHasNoMessages { .. } => terminal("the request has no messages"),
            E::LastChatMessageIsNotUser { .. } => terminal("the last message is not the user's"),
            E::MessageRoleNotSupported { .. } => terminal("a message role is not supported"),
            E::MessageContentTypeNotSupported { .. } => terminal("a content type is not supported"),
            E::JsonModeWithoutInstruction => terminal("JSON mode needs an instruction"),
            E::VerbosityParsing { .. } => terminal("the verbosity is not known"),
            E::ReasoningParsingError { .. } => terminal("the reasoning effort is not known"),
            E::ServiceTierParsing { .. } => terminal("the service tier is not known"),
            E::PromptCacheRetentionParsing { .. } => terminal("the cache retention is not known"),
            E::NoChatResponse { .. } => terminal("the response holds no answer"),
            E::RequiresApiKey { .. } | E::NoAuthResolver { .. } | E::NoAuthData { .. } => {
                terminal("no credential is configured")
            }
            E::ModelMapperFailed { .. } | E::Resolver { .. } => terminal("the model could not be resolved"),
            E::InvalidJsonResponseElement { .. } | E::ChatResponseGeneration { .. } => {
                terminal("the response breaks the contract")
            }
            E::StreamParse { .. } => terminal("the stream breaks the contract"),
            E::AdapterNotSupported { .. } => terminal("the adapter does not support the feature"),
            E::CacheBreakpointNoEligibleContent { .. } => terminal("a cache breakpoint has no content"),
            E::AdapterKindMismatch { .. } => terminal("the model belongs to another adapter"),
            E::Internal(_) => terminal("the client library failed"),
            E::ClientBuildFail { .. } => terminal("the client could not be built"),
            E::JsonValueExt(_) | E::SerdeJson(_) => terminal("the response breaks the contract"),
        }
    }

    /// The leaf of a transport error: a raw turn's, or one that genai boxed.
    #[must_use]
    pub fn of_reqwest(error: &reqwest::Error) -> Self {
        let retryable =
            error.is_connect() || error.is_timeout() || error.is_request() || error.is_body() || error.is_decode();
        if !retryable || error.is_builder() || error.is_redirect() {
            return terminal("the request could not be sent");
        }
        if error.is_connect() && sources(error).filter_map(|source| source.downcast_ref()).any(is_out_of_resources) {
            return Self::exhausted();
        }
        let phase = if error.is_connect() {
            Some(Phase::Connect)
        } else if error.is_timeout() && error.is_request() {
            Some(Phase::Headers)
        } else if error.is_timeout() {
            Some(Phase::Read)
        } else {
            None
        };
        let detail = if error.is_connect() && error.is_timeout() { CONNECT_TIMED_OUT.into() } else { deepest(error) };
        Self::Transport(Transport { phase, detail })
    }

    /// The leaf of a non-2xx answer, or of a 2xx one known to be an error.
    #[must_use]
    pub fn of_response(status: u16, body: &str, headers: &http::HeaderMap) -> Self {
        response(status, body, headers)
    }
}

fn of_webc(error: &webc::Error) -> Fault {
    match error {
        webc::Error::ResponseFailedStatus { status, body, headers } => response(status.as_u16(), body, headers),
        webc::Error::Reqwest(error) => Fault::of_reqwest(error),
        // A 2xx that is no JSON may still be one error envelope, sent with the wrong type or as one SSE line.
        webc::Error::ResponseFailedNotJson { content_type: _, body }
        | webc::Error::ResponseFailedInvalidJson { body, cause: _ } => match frame::error_in_text(body) {
            Some(fault) => Fault::Response(fault),
            None => terminal("the response is no JSON"),
        },
        webc::Error::JsonValueExt(_) => terminal("the response breaks the contract"),
    }
}

fn of_boxed(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Fault {
    if let Some(error) = error.downcast_ref::<genai::Error>() {
        return Fault::of(error);
    }
    if let Some(timeout) = error.downcast_ref::<StreamTimeout>() {
        let phase = match timeout {
            StreamTimeout::Headers => Phase::Headers,
            StreamTimeout::Read => Phase::Read,
        };
        return Fault::Transport(Transport { phase: Some(phase), detail: printable(&timeout.to_string()) });
    }
    if let Some(error) = error.downcast_ref::<reqwest::Error>() {
        return Fault::of_reqwest(error);
    }
    terminal("the stream is corrupt")
}

fn terminal(reason: &str) -> Fault {
    Fault::Terminal(Terminal { reason: reason.into() })
}

fn response(status: u16, body: &str, headers: &http::HeaderMap) -> Fault {
    let inside_2xx = (200..300).contains(&status);
    Fault::Response(ResponseFault { status: Some(status), headers: plain(headers), body: body_value(body), inside_2xx })
}

/// A body as it stood on the wire: JSON where it is JSON, else its text; `None` where there was none.
pub(super) fn body_value(body: &str) -> Option<Value> {
    if body.trim().is_empty() || body.starts_with(NO_BODY) {
        return None;
    }
    Some(serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned())))
}

/// Header values as text: names are lower case already, bytes beyond ASCII are read as Latin-1.
fn plain(headers: &http::HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| value.as_bytes().iter().copied().map(char::from).collect::<String>();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// The deepest source that is no `reqwest::Error` (whose `Display` holds the URL), made printable.
fn deepest(error: &reqwest::Error) -> String {
    let found = sources(error).filter(|source| !source.is::<reqwest::Error>()).last();
    found.map_or_else(|| "no detail".into(), |source| printable(&source.to_string()))
}

/// What lies under an error, the nearest first.
fn sources(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |source| (*source).source())
}

/// ASCII without control characters and URLs, at most [`DETAIL_CHARS`] long.
pub(super) fn printable(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_ascii_whitespace().filter(|word| !word.contains("://")) {
        if out.len() >= DETAIL_CHARS {
            break;
        }
        let kept: String = word.chars().filter(char::is_ascii_graphic).take(DETAIL_CHARS).collect();
        if !out.is_empty() && !kept.is_empty() {
            out.push(' ');
        }
        out.push_str(&kept);
    }
    out.truncate(DETAIL_CHARS);
    if out.is_empty() { "no detail".into() } else { out.trim_end().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use genai::ModelIden;
    use genai::adapter::AdapterKind;

    fn iden() -> ModelIden {
        ModelIden::new(AdapterKind::OpenAI, "m")
    }

    #[test]
    fn a_stream_error_is_walked_like_the_same_error_alone() {
        let alone = genai::Error::HttpError {
            status: reqwest::StatusCode::TOO_MANY_REQUESTS,
            canonical_reason: "Too Many Requests".into(),
            body: r#"{"error":{"code":"x"}}"#.into(),
            headers: Box::new([(http::header::RETRY_AFTER, http::HeaderValue::from_static("7"))].into_iter().collect()),
        };
        let leaf = Fault::of(&alone);
        let Fault::Response(response) = &leaf else { panic!("a response") };
        assert_eq!((response.status, response.headers.len()), (Some(429), 1));
        let boxed = genai::Error::WebStream { model_iden: iden(), cause: String::new(), error: Box::new(alone) };
        assert_eq!(Fault::of(&boxed), leaf);
    }

    #[test]
    fn a_stream_timeout_is_a_transport_fault_and_corruption_is_not() {
        let timeout =
            genai::Error::WebStream { model_iden: iden(), cause: String::new(), error: Box::new(StreamTimeout::Read) };
        assert!(matches!(Fault::of(&timeout), Fault::Transport(Transport { phase: Some(Phase::Read), .. })));
        let Err(utf8) = String::from_utf8(vec![0xff]) else { panic!("not UTF-8") };
        let corrupt = genai::Error::WebStream { model_iden: iden(), cause: String::new(), error: Box::new(utf8) };
        assert!(matches!(Fault::of(&corrupt), Fault::Terminal(_)));
    }

    #[test]
    fn a_2xx_that_is_no_json_is_a_breach_unless_it_is_an_error_envelope() {
        let of = |body: &str| {
            let webc_error =
                webc::Error::ResponseFailedNotJson { content_type: "text/plain".into(), body: body.to_owned() };
            Fault::of(&genai::Error::WebModelCall { model_iden: iden(), webc_error })
        };
        assert!(matches!(of("<html></html>"), Fault::Terminal(_)));
        assert!(matches!(of(r#"{"error":{"code":429}}"#), Fault::Response(ResponseFault { status: Some(429), .. })));
        assert!(matches!(of(r#"{"error":null}"#), Fault::Terminal(_)));
    }

    #[test]
    fn a_detail_is_printable_and_carries_no_address() {
        assert_eq!(printable("refused \u{7} by https://u:p@h/x now\u{202e}"), "refused by now");
        assert_eq!(printable(&"a".repeat(500)).len(), DETAIL_CHARS);
    }
}
