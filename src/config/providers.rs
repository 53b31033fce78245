//! Provider entries: the wire, the credential, whose allowance it is, and how long to wait.

use super::origin::{Origin, nearest};
use super::read::{Findings, Read, Section};
use super::schema::{beside, shown, shown_ms};
use super::tree::Value;
use super::{Key, Model, Provider, Timeouts};
use crate::recovery::Policy;
use genai::adapter::AdapterKind;
use serde_json::json;
use std::collections::BTreeMap;

/// The timeouts of a provider that states none (the contract, §6).
pub(super) const TIMEOUTS: Timeouts = Timeouts { connect_ms: 10_000, headers_ms: 180_000, read_ms: 600_000 };
const MAX_TIMEOUT_MS: i64 = 86_400_000;
/// More than any account is known to take at once.
const MAX_IN_FLIGHT: u32 = 1_000_000;
const GRAMMAR: &str = "write 1 to 128 characters of A-Z a-z 0-9 _ . : / -";

/// The adapters there are, by the names that `adapter` takes.
#[must_use]
pub fn adapters() -> Vec<&'static str> {
    AdapterKind::all().iter().map(AdapterKind::as_lower_str).collect()
}

pub(super) fn read(
    section: Section<'_>,
    policies: &BTreeMap<String, Policy>,
    environment: &dyn Fn(&str) -> Option<String>,
    findings: &mut Findings,
) -> BTreeMap<String, Provider> {
    let mut providers = BTreeMap::new();
    // By the scope key of the whole account: the entry that stated its limits first.
    let mut accounts: BTreeMap<(String, String), String> = BTreeMap::new();
    for (name, section) in section.named(findings) {
        let (origin, path) = (section.origin.clone(), section.path.clone());
        if !is_entry_name(&name) {
            let what = "no name for a provider entry; write 1 to 64 characters of A-Z a-z 0-9 _ . -";
            findings.problem(&origin, &path, what);
        }
        let provider = provider(&name, section, policies, environment, findings);
        let scope = (
            provider.identity.clone().or_else(|| host(&provider.endpoint)).unwrap_or_default(),
            provider.account.clone().unwrap_or_else(|| name.clone()),
        );
        match accounts.get(&scope).and_then(|first: &String| providers.get(first)) {
            Some(first) => {
                if let Some(what) = differs(first, &provider) {
                    findings.problem(&origin, &path, what);
                }
            }
            None => {
                accounts.insert(scope, name.clone());
            }
        }
        providers.insert(name, provider);
    }
    providers
}

fn provider(
    name: &str,
    mut section: Section<'_>,
    policies: &BTreeMap<String, Policy>,
    environment: &dyn Fn(&str) -> Option<String>,
    findings: &mut Findings,
) -> Provider {
    let adapter = adapter(&mut section, findings);
    let endpoint = endpoint(&mut section, findings);
    let key = api_key(&mut section, environment, findings);
    let identity = opaque(&mut section, "identity", findings);
    let account = opaque(&mut section, "account", findings);
    let policy = policy(&mut section, policies, findings);
    let redact = section.boolean("redact_vendor_messages", findings);
    let redact = redact.unwrap_or(Read { value: true, origin: Origin::Default });
    findings.setting(&redact.origin, &section.key("redact_vendor_messages"), json!(redact.value));
    let timeouts = timeouts(section.section("timeouts", findings), TIMEOUTS, findings);
    let max_in_flight = limits(section.section("limits", findings), findings);
    let models = section
        .section("models", findings)
        .named(findings)
        .into_iter()
        .map(|(model, mut section)| {
            if model.is_empty() {
                findings.problem(&section.origin, &section.path, "an empty model name; write the name as jobs say it");
            }
            let own = section.section("timeouts", findings);
            let own = own.is_there().then_some(own);
            let model_row = Model {
                timeouts: own.map(|own| self::timeouts(own, timeouts, findings)),
                max_in_flight: limits(section.section("limits", findings), findings),
            };
            section.finish(&["policy", "on_quota", "price"], findings);
            (model, model_row)
        })
        .collect();
    section.finish(&["on_quota", "on_auth", "proxy", "headers", "api_version"], findings);
    Provider {
        name: name.to_owned(),
        adapter,
        endpoint,
        key,
        identity,
        account,
        policy,
        redact_vendor_messages: redact.value,
        timeouts,
        max_in_flight,
        models,
    }
}

fn adapter(section: &mut Section<'_>, findings: &mut Findings) -> String {
    let Some(read) = section.text("adapter", "write the name of an adapter", findings) else {
        missing(section, "adapter", "write the wire protocol, for instance adapter = \"openai\"", findings);
        return String::new();
    };
    let known = adapters();
    if !known.contains(&read.value.as_str()) {
        let near = nearest(&read.value, known.iter().copied())
            .map_or_else(String::new, |near| format!(" (did you mean \"{near}\"?)"));
        let what = format!("`{}` is no adapter{near}; write one of {}", read.value.escape_debug(), known.join(", "));
        findings.problem(&read.origin, &section.key("adapter"), what);
    }
    findings.setting(&read.origin, &section.key("adapter"), json!(read.value));
    read.value
}

fn endpoint(section: &mut Section<'_>, findings: &mut Findings) -> String {
    const WANT: &str = "write an http:// or https:// URL, for instance \"https://api.openai.com/v1/\"";
    let Some(read) = section.text("endpoint", WANT, findings) else {
        missing(section, "endpoint", WANT, findings);
        return String::new();
    };
    let key = section.key("endpoint");
    match checked_endpoint(&read.value) {
        Ok(endpoint) => {
            findings.setting(&read.origin, &key, json!(endpoint));
            endpoint
        }
        Err(why) => {
            findings.problem(&read.origin, &key, format!("{why}; {WANT}"));
            String::new()
        }
    }
}

/// An endpoint as it is used: paths are joined to it, so it ends in a slash. What is wrong is not repeated, since it may
/// hold a credential.
fn checked_endpoint(text: &str) -> Result<String, String> {
    let url = reqwest::Url::parse(text).map_err(|error| format!("this is no URL ({error})"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("{}: is not spoken here", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("credentials do not belong in an endpoint (that is `api_key`)".into());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("an endpoint has no `?` and no `#`".into());
    }
    Ok(if text.ends_with('/') { text.to_owned() } else { format!("{text}/") })
}

/// The endpoint's host, lower case, no port.
fn host(endpoint: &str) -> Option<String> {
    reqwest::Url::parse(endpoint).ok()?.host_str().map(str::to_ascii_lowercase)
}

/// `"${VARIABLE}"`, `{ file = "…" }`, or the value itself. The value is repeated nowhere.
fn api_key(section: &mut Section<'_>, environment: &dyn Fn(&str) -> Option<String>, findings: &mut Findings) -> Key {
    const WANT: &str = "write \"${VARIABLE}\" or { file = \"path\" }";
    let path = section.key("api_key");
    let read = section.read("api_key", WANT, findings, |value| match value {
        Value::Text(text) | Value::Raw(text) => secret_text(text),
        Value::Table(table) => match table.0.as_slice() {
            [entry] if entry.key == "file" => super::read::text(&entry.node.value).map(Secret::File),
            _ => Err("a secret's table has the one key `file`".into()),
        },
        other => Err(format!("{} is no secret", other.kind())),
    });
    let Some(Read { value, origin }) = read else {
        return Key::None;
    };
    let (key, state) = match value {
        Secret::Variable(name) => match environment(&name).map(|text| text.trim().to_owned()) {
            Some(text) if !text.is_empty() => {
                if !fits_header(&text) {
                    let what = format!("{name} holds a character that no HTTP header can carry; {WANT}");
                    findings.problem(&origin, &path, what);
                }
                (Key::Value(text), "set")
            }
            _ => (Key::Missing(name), "missing"),
        },
        Secret::Value(text) => (Key::Value(text), "set"),
        Secret::File(text) => {
            let file = beside(&origin, &text);
            let state = if file.is_file() { "set" } else { "missing" };
            (Key::File(file), state)
        }
    };
    findings.setting(&origin, &path, json!(state));
    key
}

enum Secret {
    Variable(String),
    File(String),
    Value(String),
}

fn secret_text(text: &str) -> Result<Secret, String> {
    if let Some(name) = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
        let fits = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        return if fits { Ok(Secret::Variable(name.to_owned())) } else { Err("no name of a variable".into()) };
    }
    if text.contains("${") {
        return Err("`${…}` stands for a whole secret, not for a part of one".into());
    }
    let text = text.trim();
    if text.is_empty() {
        return Err("an empty secret (a provider that takes none has no `api_key`)".into());
    }
    if !fits_header(text) {
        return Err("the secret holds a character that no HTTP header can carry".into());
    }
    Ok(Secret::Value(text.to_owned()))
}

fn fits_header(text: &str) -> bool {
    text.bytes().all(|b| (b' '..=b'~').contains(&b))
}

fn opaque(section: &mut Section<'_>, key: &'static str, findings: &mut Findings) -> Option<String> {
    let read = section.text(key, GRAMMAR, findings)?;
    if !fits_grammar(&read.value) {
        let what = format!("`{}` does not fit; {GRAMMAR}", read.value.escape_debug());
        findings.problem(&read.origin, &section.key(key), what);
    }
    findings.setting(&read.origin, &section.key(key), json!(read.value));
    Some(read.value)
}

/// The grammar of identities (the contract, §7).
fn fits_grammar(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'/' | b'-'))
}

/// What a job can say in `provider` (the table of limits).
fn is_entry_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

fn policy(section: &mut Section<'_>, policies: &BTreeMap<String, Policy>, findings: &mut Findings) -> String {
    let known: Vec<&str> = policies.keys().map(String::as_str).collect();
    let want = format!("write one of {}", known.join(", "));
    let read = section.text("policy", &want, findings);
    let read = read.unwrap_or(Read { value: "tiered".to_owned(), origin: Origin::Default });
    if !policies.contains_key(&read.value) {
        let what = format!("there is no policy `{}`; {want}", read.value.escape_debug());
        findings.problem(&read.origin, &section.key("policy"), what);
    }
    findings.setting(&read.origin, &section.key("policy"), json!(read.value));
    read.value
}

fn timeouts(mut section: Section<'_>, unless_said: Timeouts, findings: &mut Findings) -> Timeouts {
    let mut one = |key: &'static str, default_ms: i64| {
        let read = section.duration_ms(key, 1..=MAX_TIMEOUT_MS, findings);
        let read = read.unwrap_or(Read { value: default_ms, origin: Origin::Default });
        shown_ms(&section, key, Some(read), findings).unwrap_or(default_ms)
    };
    let timeouts = Timeouts {
        connect_ms: one("connect", unless_said.connect_ms),
        headers_ms: one("headers", unless_said.headers_ms),
        read_ms: one("read", unless_said.read_ms),
    };
    section.finish(&[], findings);
    timeouts
}

fn limits(mut section: Section<'_>, findings: &mut Findings) -> Option<u32> {
    let read = section.integer("max_in_flight", 1..=MAX_IN_FLIGHT, findings);
    let max_in_flight = shown(&section, "max_in_flight", read, findings);
    section.finish(
        &[
            "requests_per_minute",
            "tokens_per_minute",
            "requests_per_hour",
            "tokens_per_hour",
            "requests_per_day",
            "tokens_per_day",
            "burst",
        ],
        findings,
    );
    max_in_flight
}

fn missing(section: &Section<'_>, key: &str, want: &str, findings: &mut Findings) {
    // A value that was there and wrong has its own problem already.
    if !section.has(key) {
        findings.problem(&section.origin, &section.key(key), format!("missing; {want}"));
    }
}

/// Entries with equal identity and account are one scope: in which limit two of them differ.
fn differs(first: &Provider, second: &Provider) -> Option<String> {
    let shown = |limit: Option<u32>| limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
    let say = |of: &str, mine: Option<u32>, other: Option<u32>| {
        format!(
            "identity and account are those of `{}`, so both share one account, but max_in_flight{of} is {} here and \
             {} there; write the same in both, or give one another `account`",
            first.name,
            shown(mine),
            shown(other)
        )
    };
    if first.max_in_flight != second.max_in_flight {
        return Some(say("", second.max_in_flight, first.max_in_flight));
    }
    let limit = |provider: &Provider, model: &str| provider.models.get(model).and_then(|model| model.max_in_flight);
    first
        .models
        .keys()
        .chain(second.models.keys())
        .find(|model| limit(first, model) != limit(second, model))
        .map(|model| say(&format!(" of model {model:?}"), limit(second, model), limit(first, model)))
}
