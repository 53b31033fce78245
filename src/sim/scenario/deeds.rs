//! What a rule of a scenario file does, as written.

use super::values::{Span, Status};
use super::{At, Deed, Framing, Kind};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRespond {
    status: Status,
    #[serde(default)]
    headers: BTreeMap<String, OneOrMany>,
    #[serde(default)]
    body: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl RawRespond {
    pub(super) fn deed(self) -> Result<Deed, String> {
        let mut headers = Vec::new();
        for (name, values) in self.headers {
            let values = match values {
                OneOrMany::One(value) => vec![value],
                OneOrMany::Many(values) => values,
            };
            let parsed: http::HeaderName =
                name.parse().map_err(|_| format!("`{name}` is no header that HTTP can carry"))?;
            for value in values {
                headers.push((parsed.clone(), header_value(&value)?));
            }
        }
        Ok(Deed::Respond { status: self.status.0, headers, body: self.body.into() })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAt {
    after_bytes: Option<u64>,
    after_chunks: Option<u64>,
}

impl RawAt {
    pub(super) fn at(self) -> Result<At, String> {
        match (self.after_bytes, self.after_chunks) {
            (None, None) => Ok(At::Head),
            (Some(bytes), None) => Ok(At::Bytes(bytes)),
            (None, Some(chunks)) => Ok(At::Chunks(chunks)),
            (Some(_), Some(_)) => Err("it is after bytes or after chunks, not both".into()),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStall {
    after_bytes: Option<u64>,
    after_chunks: Option<u64>,
    #[serde(rename = "for")]
    lasts: Option<Span>,
}

impl RawStall {
    pub(super) fn deed(self) -> Result<Deed, String> {
        let at = RawAt { after_bytes: self.after_bytes, after_chunks: self.after_chunks }.at()?;
        Ok(Deed::Stall { at, for_ms: self.lasts.map(|span| span.0) })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTruncate {
    after_bytes: Option<u64>,
    after_chunks: Option<u64>,
    #[serde(default)]
    framing: Framing,
}

impl RawTruncate {
    pub(super) fn deed(self) -> Result<Deed, String> {
        match (RawAt { after_bytes: self.after_bytes, after_chunks: self.after_chunks }).at()? {
            At::Head => Err("`truncate` needs `after_bytes` or `after_chunks`".into()),
            at => Ok(Deed::Truncate { at, how: self.framing }),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAfter {
    pub after_chunks: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawErrorFrame {
    #[serde(default)]
    after_chunks: u64,
    kind: Option<Kind>,
    body: Option<String>,
}

impl RawErrorFrame {
    pub(super) fn deed(self) -> Result<Deed, String> {
        if self.kind.is_some() == self.body.is_some() {
            return Err("`error_frame` takes a `kind` or a `body`".into());
        }
        let kind = self.kind.unwrap_or(Kind::Overloaded);
        Ok(Deed::ErrorFrame { after_chunks: self.after_chunks, kind, body: self.body })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAnswer {
    chars: Option<NonZeroUsize>,
    max_tokens: Option<NonZeroU64>,
    finish: Option<String>,
    content_type: Option<String>,
}

impl RawAnswer {
    pub(super) fn deed(self) -> Result<Deed, String> {
        let content_type = self.content_type.as_deref().map(header_value).transpose()?;
        let (chars, max_tokens) = (self.chars.map(NonZeroUsize::get), self.max_tokens.map(NonZeroU64::get));
        Ok(Deed::Answer { chars, max_tokens, finish: self.finish, content_type })
    }
}

fn header_value(text: &str) -> Result<http::HeaderValue, String> {
    // Header values outside ASCII are on real wires, too.
    http::HeaderValue::from_bytes(text.as_bytes())
        .map_err(|_| format!("`{text}` is no header value that HTTP can carry"))
}
