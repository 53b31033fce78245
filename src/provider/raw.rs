//! A raw turn: a body goes out byte for byte, the response comes back byte for byte, over the entry's own client.
//!
//! A non-2xx, an error inside a 2xx and a broken connection become the same leaves as on a chat turn.

use super::{Answer, CallError, Heard, Progress, Provider, RawAnswer, RawCall, content};
use crate::clock::Clock;
use crate::failure::{Ending, Fault, ResponseFault, frame};
use crate::store::Usage;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderMap, StatusCode};
use serde_json::Value;

/// The largest response of a raw turn, in bytes; a larger one is not kept.
pub const MAX_RAW_RESPONSE: usize = 64 * 1024 * 1024;
/// How much of an error's body is read, in bytes; what follows says nothing more about it.
pub const MAX_ERROR_BODY: usize = 1024 * 1024;

/// Headers that may carry a request's id, the first fitting of which stands.
const REQUEST_ID_HEADERS: [&str; 6] =
    ["x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "x-ms-request-id", "cf-ray"];

/// Whether a path is a plain relative one: no scheme, no host, nothing that climbs or hides.
///
/// # Errors
/// What would be right.
pub fn raw_path(path: &str) -> Result<(), CallError> {
    let wrong = |problem: &str| Err(CallError { at: "/raw/path".into(), problem: problem.into() });
    let (place, _query) = path.split_once('?').unwrap_or((path, ""));
    let lower = path.to_ascii_lowercase();
    if place.is_empty() || path.starts_with("//") {
        return wrong("must be a path such as `/v1/embeddings`");
    }
    if path.contains('\\')
        || path.contains('#')
        || lower.contains("%2e")
        || lower.contains("%2f")
        || lower.contains("%5c")
    {
        return wrong("must not contain `\\`, `#`, or an encoded dot or slash");
    }
    if !path.bytes().all(|byte| (0x21..=0x7e).contains(&byte)) {
        return wrong("must be printable ASCII without spaces");
    }
    if place.contains(':') && !place.starts_with('/') {
        return wrong("must not name a scheme or a host");
    }
    if place.split('/').any(|part| part == "." || part == "..") {
        return wrong("must not contain `.` or `..`");
    }
    Ok(())
}

impl Provider {
    pub(super) async fn send_raw(
        &self,
        call: &RawCall,
        clock: &Clock,
        heard: &mut Heard,
        tell: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<Answer, Ending> {
        let request = self.raw_request(call)?;
        heard.sends = 1;
        let read_ms = self.timeouts(&call.model).read_ms;
        let answer = super::within(read_ms, raw_answer(request, clock, heard)).await?;
        tell(Progress::Answered);
        Ok(answer)
    }

    fn raw_request(&self, call: &RawCall) -> Result<reqwest::RequestBuilder, Ending> {
        raw_path(&call.path).map_err(|error| super::terminal(error.to_string()))?;
        let key = self.key().map_err(|gap| gap.ending())?;
        let endpoint = self.endpoint();
        let mut url = endpoint.join(&call.path).map_err(|_| super::terminal("the path does not join the endpoint"))?;
        if url.origin() != endpoint.origin() {
            return Err(super::terminal("the path leaves the endpoint's host"));
        }
        if url.query().is_none() {
            url.set_query(endpoint.query());
        }
        let mut request = self.http(&call.model)?.post(url).header(CONTENT_TYPE, "application/json");
        for (name, value) in self.adapter().raw_headers(key.as_deref()) {
            request = request.header(HeaderName::from_static(name), value);
        }
        Ok(request.body(call.body.clone()))
    }
}

async fn raw_answer(request: reqwest::RequestBuilder, clock: &Clock, heard: &mut Heard) -> Result<Answer, Ending> {
    let of_reqwest = |error: reqwest::Error| Ending::Fault(Fault::of_reqwest(&error));
    let response = request.send().await.map_err(of_reqwest)?;
    heard.first_byte_ms = Some(clock.now_ms());
    let (status, headers) = (response.status(), response.headers().clone());
    if !status.is_success() {
        // A refusal whose body breaks off still is that refusal.
        let body = read_up_to(response, MAX_ERROR_BODY).await.ok().map(|(body, _)| body);
        let text = String::from_utf8_lossy(body.as_deref().unwrap_or_default());
        return Err(Ending::Fault(Fault::of_response(status.as_u16(), &text, &headers)));
    }
    let (body, whole) = read_up_to(response, MAX_RAW_RESPONSE).await.map_err(of_reqwest)?;
    if !whole {
        return Err(super::terminal(format!("the response exceeds {MAX_RAW_RESPONSE} bytes")));
    }
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let said = read_body(&body, content_type.as_deref());
    if let Some(error) = said.iter().find_map(Said::error) {
        return Err(Ending::Fault(inside_2xx(error, status, &headers)));
    }
    let values = || said.iter().filter_map(Said::value);
    let usage = values().fold(Usage::default(), |usage, value| content::merge(usage, content::usage(value)));
    Ok(Answer {
        text: String::new(),
        reasoning: None,
        tool_calls: Vec::new(),
        finish_reason: None,
        usage,
        provider_model: values().find_map(content::model).map(str::to_owned),
        request_id: request_id(&headers),
        raw: Some(RawAnswer { status: status.as_u16(), content_type, body }),
    })
}

/// The body as far as `limit`, and whether that is all of it.
async fn read_up_to(mut response: reqwest::Response, limit: usize) -> Result<(Bytes, bool), reqwest::Error> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await? {
        let room = limit - body.len();
        if chunk.len() > room {
            body.extend_from_slice(&chunk[..room]);
            return Ok((body.freeze(), false));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((body.freeze(), true))
}

/// One thing that a 2xx says: its whole document, or a frame of its event stream.
enum Said {
    Document(Value),
    Frame { event: Option<String>, data: String, value: Option<Value> },
}

impl Said {
    fn error(&self) -> Option<ResponseFault> {
        match self {
            Self::Document(value) => frame::is_error_body(value).then(|| frame::fault(value.clone())),
            Self::Frame { event, data, .. } => frame::error(event.as_deref(), data),
        }
    }

    fn value(&self) -> Option<&Value> {
        match self {
            Self::Document(value) => Some(value),
            Self::Frame { value, .. } => value.as_ref(),
        }
    }
}

fn read_body(body: &[u8], content_type: Option<&str>) -> Vec<Said> {
    if !content_type.is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return serde_json::from_slice(body).map(|value| vec![Said::Document(value)]).unwrap_or_default();
    }
    frame::split(&String::from_utf8_lossy(body))
        .into_iter()
        .map(|(event, data)| Said::Frame { value: serde_json::from_str(&data).ok(), event, data })
        .collect()
}

/// An error inside a 2xx: the status it states itself, and the response's own headers before those that its body lends.
fn inside_2xx(error: ResponseFault, status: StatusCode, headers: &HeaderMap) -> Fault {
    match Fault::of_response(status.as_u16(), "", headers) {
        Fault::Response(outer) => {
            Fault::Response(ResponseFault { headers: [outer.headers, error.headers].concat(), ..error })
        }
        Fault::Transport(_) | Fault::Terminal(_) => Fault::Response(error),
    }
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    let fits = |id: &str| {
        (1..=128).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
    };
    REQUEST_ID_HEADERS
        .iter()
        .find_map(|name| headers.get(*name)?.to_str().ok().filter(|id| fits(id)).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Phase, Transport};

    /// A machine without a file left says so before anything is sent.
    #[tokio::test]
    async fn a_connection_that_this_machine_had_no_file_for_is_told_from_a_refused_one() {
        struct Resolves(i32);
        impl reqwest::dns::Resolve for Resolves {
            fn resolve(&self, _: reqwest::dns::Name) -> reqwest::dns::Resolving {
                let error = std::io::Error::from_raw_os_error(self.0);
                Box::pin(std::future::ready(Err(error.into())))
            }
        }
        for (number, exhausted) in [(24, true), (23, true), (12, true), (111, false)] {
            let client = reqwest::Client::builder().dns_resolver(std::sync::Arc::new(Resolves(number))).build();
            let error = client.unwrap().get("http://nowhere.example/").send().await.unwrap_err();
            let fault = Fault::of_reqwest(&error);
            assert!(matches!(&fault, Fault::Transport(Transport { phase: Some(Phase::Connect), .. })), "{fault:?}");
            assert_eq!(Ending::Fault(fault).is_exhaustion(), exhausted, "{number}");
        }
    }

    #[test]
    fn only_a_plain_relative_path_is_taken() {
        for good in ["/v1/embeddings", "embeddings", "v1/a?b=c:d", "/v1/models/gemini:embedContent"] {
            assert_eq!(raw_path(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "//evil/x",
            "https://evil/",
            "http:x",
            "/a/../b",
            "..",
            "/%2e%2e/x",
            "/a\\b",
            "/a b",
            "/a#b",
            "/a%2Fb",
            "?x",
        ] {
            assert!(raw_path(bad).is_err(), "{bad}");
        }
    }
}
