//! Which rule decides: the facts of a response, the rules that match them, and the order between those.
//!
//! Code rules first (of all that match, the lowest rank stands; an operator's beats all), then templates, then the status.

use super::template::fold;
use super::{HeaderTest, Rule, Rules};
use crate::failure::body::Body;
use crate::failure::message::{bracketed, litellm_classes, sentences, stripped, suffixed};
use crate::failure::{Allowance, Class, LimitKind};
use serde_json::{Map, Value};

/// How many sentences of a response are compared with templates.
const MAX_SENTENCES: usize = 96;
/// The longest value that is compared with codes, in bytes.
const MAX_CODE: usize = 128;

/// What rules are matched against.
pub(in crate::failure) struct Case<'a> {
    pub status: Option<u16>,
    /// Lower-case names.
    pub headers: &'a [(String, String)],
    pub body: &'a Body<'a>,
    /// The configured identity or host.
    pub provider: &'a str,
}

/// The rule that decided, and what it and its like say of the limit.
#[derive(Clone, Copy)]
pub(in crate::failure) struct Decided<'a> {
    pub rule: &'a Rule,
    pub kind: Option<LimitKind>,
    pub zone: Option<&'a jiff::tz::TimeZone>,
}

/// A value at one of the places at which rules look.
pub(in crate::failure) struct Fact {
    pub field: &'static str,
    /// In lower case.
    pub value: String,
}

impl Rules {
    /// The rule that decides a case; `None`: the status does.
    pub(in crate::failure) fn decide(&self, case: &Case<'_>) -> Option<Decided<'_>> {
        let facts = facts(case);
        let code = self.by_code_or_header(case, &facts);
        let template = self.by_template(case, &facts);
        let key = |rule: &Rule| (!rule.operators, rank(rule));
        let rule = match (code, template) {
            // On a tie the sentence says more than the code.
            (Some(code), Some(template)) if key(template) > key(code) => code,
            (code, template) => template.or(code)?,
        };
        // What the deciding rule leaves open, the other one of the same class may say.
        let both = [Some(rule), code, template].into_iter().flatten().filter(|other| other.class == rule.class);
        Some(Decided {
            rule,
            kind: both.clone().find_map(|rule| rule.kind),
            zone: both.clone().find_map(|rule| rule.zone.as_ref()),
        })
    }

    fn by_code_or_header(&self, case: &Case<'_>, facts: &[Fact]) -> Option<&Rule> {
        let coded = facts.iter().flat_map(|fact| {
            let hits = self.by_code.get(&fact.value).into_iter().flatten().filter_map(|index| self.all.get(*index));
            hits.filter(|rule| rule.fields.is_empty() || rule.fields.iter().any(|field| field == fact.field))
        });
        let headed = self.by_header.iter().filter_map(|index| self.all.get(*index));
        coded.chain(headed).filter(|rule| rule.applies(case, facts)).min_by_key(|rule| (!rule.operators, rank(rule)))
    }

    fn by_template(&self, case: &Case<'_>, facts: &[Fact]) -> Option<&Rule> {
        let folded: Vec<String> = case
            .body
            .messages
            .iter()
            .flat_map(|message| stripped(&message.text))
            .flat_map(|text| std::iter::once(text.trim_end_matches(['.', '!', '?', '。'])).chain(sentences(text)))
            .take(MAX_SENTENCES)
            .map(fold)
            .collect();
        let mut hits: Vec<usize> = folded.iter().flat_map(|sentence| self.matching(sentence)).collect();
        // Of equal rank the rule that stands first decides, whichever sentence it matched.
        hits.sort_unstable();
        hits.dedup();
        hits.into_iter()
            .filter_map(|index| self.all.get(index))
            .filter(|rule| rule.applies(case, facts) && rule.may_speak(case.status))
            .min_by_key(|rule| (!rule.operators, rank(rule)))
    }

    /// The indices of the rules that have a template for a folded sentence.
    fn matching<'a>(&'a self, sentence: &'a str) -> impl Iterator<Item = usize> + 'a {
        let found = move |(rule, template): (usize, usize)| {
            let template = self.all.get(rule)?.templates.get(template)?;
            template.matches(sentence).then_some(rule)
        };
        self.by_start.of(sentence).filter_map(found)
    }
}

impl Rule {
    fn applies(&self, case: &Case<'_>, facts: &[Fact]) -> bool {
        (self.statuses.is_empty() || case.status.is_some_and(|status| self.statuses.contains(&status)))
            && !(self.statusless && case.status.is_some())
            && self.host.as_deref().is_none_or(|host| is_host(case.provider, host))
            && self.header.as_ref().is_none_or(|test| test.holds(case.headers))
            && !self.unless.iter().any(|field| facts.iter().any(|fact| fact.field == field))
    }

    /// A sentence never turns a terminal status into a retry in place; into a quota it may.
    fn may_speak(&self, status: Option<u16>) -> bool {
        let terminal = status.is_some_and(|status| !by_status(Some(status)).retryable);
        let retried = matches!(self.class, Class::RateLimit | Class::Unavailable | Class::Timeout);
        self.operators || !(terminal && retried)
    }
}

impl HeaderTest {
    fn holds(&self, headers: &[(String, String)]) -> bool {
        headers.iter().filter(|(name, _)| *name == self.name).any(|(_, value)| {
            let value = value.trim().to_ascii_lowercase();
            self.equals.as_ref().is_none_or(|equals| *equals == value)
                && self.ends_with.as_ref().is_none_or(|end| value.ends_with(end.as_str()))
        })
    }
}

fn is_host(provider: &str, host: &str) -> bool {
    let provider = provider.to_ascii_lowercase();
    provider == host || provider.strip_suffix(host).is_some_and(|before| before.ends_with('.'))
}

/// Terminal classes and a purse, then a window, then load, then a rate: the lowest decides.
fn rank(rule: &Rule) -> u8 {
    match (rule.class, rule.allowance) {
        (Class::Quota, Some(Allowance::Window)) => 1,
        (Class::Unavailable | Class::Timeout, _) => 2,
        (Class::RateLimit, _) => 3,
        _ => 0,
    }
}

/// What a status means where no rule speaks.
pub(in crate::failure) struct ByStatus {
    pub class: Class,
    pub retryable: bool,
}

pub(in crate::failure) fn by_status(status: Option<u16>) -> ByStatus {
    let (class, retryable) = match status {
        Some(429) => (Class::RateLimit, true),
        Some(402) => (Class::Quota, false),
        Some(401 | 403) => (Class::Authentication, false),
        Some(300..=399 | 400 | 404..=406 | 410 | 411 | 413..=417 | 421..=424 | 426 | 428 | 431 | 451) => {
            (Class::InvalidRequest, false)
        }
        Some(408) => (Class::Timeout, true),
        Some(498 | 500 | 502..=504 | 520..=526 | 529) => (Class::Unavailable, true),
        Some(500..=599) => (Class::ProviderError, true),
        _ => (Class::ProviderError, false),
    };
    ByStatus { class, retryable }
}

/// Every value at the places where rules look, in the contract's order.
pub(in crate::failure) fn facts(case: &Case<'_>) -> Vec<Fact> {
    let mut facts = Facts { found: Vec::new(), status: case.status };
    for (node, at) in case.body.nodes() {
        facts.of_node(node, &at);
    }
    for document in &case.body.documents {
        facts.of_document(&document.value);
    }
    for (details, _) in case.body.details() {
        facts.of_details(details);
    }
    for (name, value) in case.headers {
        match name.as_str() {
            "x-amzn-errortype" => facts.push("aws_type", value.split(':').next().unwrap_or_default()),
            ":exception-type" | "x-amzn-exception-type" => facts.push("exception", value),
            "x-codex-rate-limit-reached-type" => facts.push("code", value),
            _ => {}
        }
    }
    for message in &case.body.messages {
        if let Some(code) = stripped(&message.text).into_iter().find_map(bracketed) {
            facts.push("code", code);
        }
        for class in litellm_classes(&message.text) {
            facts.push("code", class);
        }
        if let Some(code) = suffixed(&message.text) {
            facts.push("suffix", code);
        }
    }
    facts.found
}

struct Facts {
    found: Vec<Fact>,
    status: Option<u16>,
}

impl Facts {
    fn push(&mut self, field: &'static str, value: &str) {
        let value = value.trim();
        if !value.is_empty() && value.len() <= MAX_CODE && self.found.len() < 128 {
            self.found.push(Fact { field, value: value.to_ascii_lowercase() });
        }
    }

    /// A code; a number that repeats a status says nothing.
    fn push_code(&mut self, field: &'static str, value: &Value) {
        match value {
            Value::String(text) if text.parse::<u16>().is_ok_and(|number| self.repeats(number)) => {}
            Value::String(text) => self.push(field, text),
            Value::Number(number)
                if number.as_u64().is_some_and(|n| u16::try_from(n).is_ok_and(|n| self.repeats(n))) => {}
            Value::Number(number) => self.push(field, &number.to_string()),
            _ => {}
        }
    }

    fn repeats(&self, number: u16) -> bool {
        self.status == Some(number) || (100..600).contains(&number)
    }

    fn of_node(&mut self, node: &Map<String, Value>, at: &str) {
        let pairs: [(&str, &'static str); 14] = [
            ("code", if at.ends_with("innererror") { "innererror" } else { "code" }),
            ("Code", "code"),
            ("error_code", "error_code"),
            ("errorCode", "error_code"),
            ("status_code", if at.ends_with("base_resp") { "base_resp" } else { "code" }),
            ("type", "type"),
            ("error_type", "error_type"),
            ("errorType", "error_type"),
            ("status", "status"),
            ("reason", "reason"),
            ("__type", "aws_type"),
            ("name", "type"),
            ("error", "code"),
            ("rate_limit_reached_type", "code"),
        ];
        for (member, field) in pairs {
            if let Some(value) = node.get(member) {
                match value {
                    // `com.amazon.coral.service#ThrottlingException`
                    Value::String(text) if field == "aws_type" => {
                        self.push(field, text.rsplit('#').next().unwrap_or(text));
                    }
                    value => self.push_code(field, value),
                }
            }
        }
    }

    fn of_document(&mut self, document: &Value) {
        for place in ["/error/metadata/error_type", "/choices/0/error/metadata/error_type"] {
            if let Some(kind) = document.pointer(place).and_then(Value::as_str) {
                self.push("error_type", kind);
            }
        }
        if document.pointer("/error/metadata/reasons").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
            self.push("moderation", "reasons");
        }
        if document.pointer("/promptFeedback/blockReason").is_some_and(|reason| !reason.is_null()) {
            self.push("block_reason", "any");
        }
    }

    fn of_details(&mut self, details: &[Value]) {
        for detail in details {
            let kind = detail.get("@type").and_then(Value::as_str).unwrap_or_default();
            if kind.ends_with("google.rpc.ErrorInfo") || kind.is_empty() {
                for member in ["reason", "code"] {
                    if let Some(value) = detail.get(member) {
                        self.push_code("reason", value);
                    }
                }
            }
            if kind.ends_with("google.rpc.RetryInfo") {
                self.push("retry_info", "any");
            }
            let violations = detail.get("violations").and_then(Value::as_array);
            for violation in violations.into_iter().flatten().take(16) {
                if let Some(id) = violation.get("quotaId").and_then(Value::as_str) {
                    for words in quota_words(id) {
                        self.push("quota_id", &words);
                    }
                }
                match violation.get("quotaValue") {
                    Some(Value::String(text)) => self.push("quota_value", text),
                    Some(Value::Number(number)) => self.push("quota_value", &number.to_string()),
                    _ => {}
                }
            }
        }
    }
}

/// The words of a `quotaId` (`GenerateRequestsPerDayPer…`) that rules know: single ones, and `Per` with what follows it.
pub(in crate::failure) fn quota_words(id: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for c in id.chars().take(256) {
        match words.last_mut() {
            Some(word) if !c.is_ascii_uppercase() && c.is_ascii_alphanumeric() => word.push(c),
            _ if c.is_ascii_alphanumeric() => words.push(c.to_string()),
            _ => words.push(String::new()),
        }
    }
    let pairs: Vec<String> = words
        .windows(2)
        .filter_map(|pair| match pair {
            [per, unit] if per == "Per" => Some(format!("Per{unit}")),
            _ => None,
        })
        .collect();
    words.retain(|word| word.len() > 2);
    words.extend(pairs);
    words.truncate(24);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_id_is_read_by_its_words() {
        let words = quota_words("GenerateRequestsPerDayPerProjectPerModel-FreeTier");
        for word in ["Requests", "PerDay", "PerModel", "Free", "Tier"] {
            assert!(words.iter().any(|found| found == word), "{word}: {words:?}");
        }
        assert!(!words.iter().any(|found| found == "PerMinute"));
    }

    #[test]
    fn looking_templates_up_by_their_start_finds_what_asking_all_of_them_finds() {
        let rules = Rules::embedded();
        let templates =
            || rules.all.iter().enumerate().flat_map(|(at, rule)| rule.templates.iter().map(move |t| (at, t)));
        let sentences = templates().map(|(_, template)| template.example());
        let mut asked = 0;
        for sentence in sentences.chain([String::new(), "a".into(), "该令".into(), "you".into(), "quot".into()]) {
            let mut found: Vec<usize> = rules.matching(&sentence).collect();
            found.sort_unstable();
            let all: Vec<usize> = templates().filter(|(_, t)| t.matches(&sentence)).map(|(at, _)| at).collect();
            assert_eq!(found, all, "{sentence}");
            asked += usize::from(!all.is_empty());
        }
        assert!(asked > 500);
    }

    #[test]
    fn the_table_of_statuses() {
        for (status, class, retryable) in [
            (Some(500), Class::Unavailable, true),
            (Some(501), Class::ProviderError, true),
            (Some(418), Class::ProviderError, false),
            (Some(409), Class::ProviderError, false),
            (Some(302), Class::InvalidRequest, false),
            (Some(529), Class::Unavailable, true),
            (Some(402), Class::Quota, false),
            (None, Class::ProviderError, false),
        ] {
            let read = by_status(status);
            assert_eq!((read.class, read.retryable), (class, retryable), "{status:?}");
        }
    }
}
