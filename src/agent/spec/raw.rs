//! The part of a spec that goes to the provider as it is: a path under the provider's endpoint, and a body that is kept
//! and sent byte for byte.

use super::super::limits;
use super::super::read::{Members, text};
use super::{Body, SpecError};
use crate::provider;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The one part of the text that is needed as it was written.
#[derive(Deserialize)]
struct Verbatim<'a> {
    #[serde(borrow)]
    raw: VerbatimRaw<'a>,
}

#[derive(Deserialize)]
struct VerbatimRaw<'a> {
    #[serde(borrow)]
    body: &'a RawValue,
}

pub(super) fn read(job: &mut Members, model: Option<String>, whole: &str) -> Result<(String, Body), SpecError> {
    for name in ["input", "messages", "system", "options", "stream", "max_turns"] {
        if job.has(name) {
            return Err(SpecError::new(
                job.place(name),
                "has no effect beside `raw`, whose body says it all: remove it",
            ));
        }
    }
    if let Some((value, at)) = job.take("on_truncated") {
        return Err(match value.as_str() {
            Some("accept" | "fail" | "continue") => {
                SpecError::new(at, "has no effect beside `raw`, whose answer is kept as it comes: remove it")
            }
            _ => SpecError::new(at, "must be one of: continue, accept, fail"),
        });
    }
    let (raw, at) = job.take("raw").ok_or_else(|| SpecError::new("/raw", "is missing"))?;
    let mut raw = Members::of(raw, at)?;
    raw.check(&["path", "body"], &[])?;
    let path = raw
        .take_with("path", |value, at| text(value, at, limits::RAW_PATH_BYTES))?
        .ok_or_else(|| SpecError::new(raw.place("path"), "is missing: give a path such as `/v1/embeddings`"))?;
    check_path(&path).map_err(|problem| SpecError::new(raw.place("path"), problem))?;
    let body = raw.take("body").ok_or_else(|| SpecError::new(raw.place("body"), "is missing"))?.0;
    let model = model_of(model, &body)?;
    // The text was read once already, as a tree: only the slice is wanted here.
    let verbatim: Verbatim<'_> = serde_json::from_str(whole)
        .map_err(|error| SpecError::new("/raw/body", format!("cannot be kept as it stands: {error}")))?;
    Ok((model, Body::Raw { path, body: verbatim.raw.body.get().to_owned() }))
}

/// Limits and holds belong to a model, so a raw job has one, too: the spec's, else the body's. They may not differ.
fn model_of(given: Option<String>, body: &Value) -> Result<String, SpecError> {
    let in_body = body.get("model").and_then(Value::as_str).filter(|model| !model.is_empty());
    match (given, in_body) {
        (Some(given), Some(in_body)) if given != in_body => {
            Err(SpecError::new("/model", "is another than `/raw/body/model`: they must be equal"))
        }
        (Some(given), _) => Ok(given),
        (None, Some(in_body)) => super::line(Value::String(in_body.to_owned()), "/raw/body/model", limits::MODEL_BYTES),
        (None, None) => Err(SpecError::new("/model", "is missing: name the model here or in the body")),
    }
}

/// A plain path below the endpoint, so that no job sends the provider's key anywhere else.
fn check_path(path: &str) -> Result<(), String> {
    provider::raw_path(path).map_err(|error| error.problem)?;
    // Behind a leading slash, too: a client that strips it before it joins would read a scheme.
    let first = path.trim_start_matches('/').split(['/', '?']).next().unwrap_or_default();
    if first.contains(':') {
        return Err("must be a path below the provider's endpoint, without a scheme or host".to_owned());
    }
    Ok(())
}
