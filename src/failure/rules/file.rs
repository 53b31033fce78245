//! The rule file's format, read strictly: an unknown member, a rule without a test or a template that would match
//! anything is an error that names its line.

use super::template::Template;
use super::{HeaderTest, Rule};
use crate::failure::{Allowance, Class, LimitKind};
use serde::Deserialize;

/// What is wrong with a rule file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}, line {line}: {what}")]
pub struct RulesError {
    /// The file.
    pub origin: String,
    /// From 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub what: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default = "first")]
    version: u32,
    #[serde(default)]
    rule: Vec<toml::Spanned<Entry>>,
}

fn first() -> u32 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    vendor: String,
    #[serde(default)]
    codes: Vec<String>,
    #[serde(default)]
    templates: Vec<String>,
    #[serde(default)]
    fields: Vec<String>,
    #[serde(default)]
    statuses: Vec<u16>,
    #[serde(default)]
    statusless: bool,
    host: Option<String>,
    header: Option<HeaderEntry>,
    #[serde(default)]
    unless: Vec<String>,
    class: Class,
    allowance: Option<Allowance>,
    kind: Option<LimitKind>,
    #[serde(default)]
    per_day: bool,
    #[serde(default)]
    concurrency: bool,
    zone: Option<String>,
    test: Option<TestCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderEntry {
    name: String,
    equals: Option<String>,
    ends_with: Option<String>,
}

/// A rule's own example: what it must decide.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::failure) struct TestCase {
    /// `None`: a frame that states none.
    #[serde(default)]
    #[cfg_attr(not(test), expect(dead_code, reason = "read by the test that runs every rule's case"))]
    pub status: Option<u16>,
    #[serde(default)]
    #[cfg_attr(not(test), expect(dead_code, reason = "read by the test that runs every rule's case"))]
    pub headers: std::collections::BTreeMap<String, String>,
    /// JSON, or plain text.
    #[cfg_attr(not(test), expect(dead_code, reason = "read by the test that runs every rule's case"))]
    pub body: String,
}

/// Fields at which a rule may ask for a code.
pub(super) const FIELDS: [&str; 16] = [
    "code",
    "type",
    "status",
    "reason",
    "error_type",
    "innererror",
    "quota_id",
    "quota_value",
    "retry_info",
    "aws_type",
    "exception",
    "block_reason",
    "suffix",
    "moderation",
    "error_code",
    "base_resp",
];

pub(super) fn parse(text: &str, origin: &str, operators: bool) -> Result<(u32, Vec<Rule>), RulesError> {
    let fault = |at: usize, what: String| RulesError { origin: origin.to_owned(), line: line_of(text, at), what };
    let file: File = toml::from_str(text)
        .map_err(|error| fault(error.span().map_or(0, |span| span.start), error.message().to_owned()))?;
    let mut rules = Vec::with_capacity(file.rule.len());
    for spanned in file.rule {
        let at = spanned.span().start;
        rules.push(rule(spanned.into_inner(), operators).map_err(|what| fault(at, what))?);
    }
    let mut ids: Vec<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
    ids.sort_unstable();
    if let Some(twice) = ids.windows(2).find(|pair| pair.first() == pair.last()).and_then(|pair| pair.first()) {
        return Err(fault(0, format!("the id `{twice}` stands twice; ids are unique")));
    }
    Ok((file.version, rules))
}

fn rule(entry: Entry, operators: bool) -> Result<Rule, String> {
    let id = entry.id;
    let word = |text: &str| !text.is_empty() && text.len() <= 128 && text.bytes().all(is_id_byte);
    if !word(&id) || !word(&entry.vendor) {
        return Err("`id` and `vendor` are words of `[A-Za-z0-9_.-]`, at most 128 long".into());
    }
    if entry.test.is_none() && !operators {
        return Err(format!("the rule `{id}` has no `test`"));
    }
    if entry.codes.is_empty() && entry.templates.is_empty() && entry.header.is_none() {
        return Err(format!("the rule `{id}` matches nothing: give `codes`, `templates` or `header`"));
    }
    if (entry.class == Class::Quota) != entry.allowance.is_some() {
        return Err(format!("the rule `{id}` needs `allowance` exactly if its class is `quota`"));
    }
    if let Some(field) = entry.fields.iter().chain(&entry.unless).find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(format!("`{field}` of rule `{id}` is none of {}", FIELDS.join(", ")));
    }
    let templates =
        entry.templates.iter().map(|text| Template::parse(text).map_err(|what| format!("`{text}`: {what}")));
    let templates = templates.collect::<Result<_, _>>()?;
    let zone = match entry.zone {
        None => None,
        Some(name) => Some(
            crate::failure::resets::zone_named(&name)
                .ok_or_else(|| format!("`{name}` is neither an IANA time zone nor an offset like `+08:00`"))?,
        ),
    };
    let header = entry.header.map(|header| HeaderTest {
        name: header.name.to_ascii_lowercase(),
        equals: header.equals.map(|text| text.to_ascii_lowercase()),
        ends_with: header.ends_with.map(|text| text.to_ascii_lowercase()),
    });
    Ok(Rule {
        id,
        codes: entry.codes.iter().map(|code| code.to_ascii_lowercase()).collect(),
        templates,
        fields: entry.fields,
        statuses: entry.statuses,
        statusless: entry.statusless,
        host: entry.host.map(|host| host.to_ascii_lowercase()),
        header,
        unless: entry.unless,
        class: entry.class,
        allowance: entry.allowance,
        kind: entry.kind,
        per_day: entry.per_day,
        concurrency: entry.concurrency,
        zone,
        operators,
        #[cfg(test)]
        test: entry.test,
    })
}

fn is_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}
