//! What vendors' codes and sentences mean: one embedded, versioned rule file, and an operator's beside it.
//!
//! A rule names the vendor, what it matches (codes by equality, or whole sentences), what that means, and a test case of
//! its own. Which of the matching rules decides is in [`matching`]; no rule ever matches a substring of open prose.

mod file;
mod matching;
mod template;

pub use file::RulesError;
pub(super) use matching::{Case, by_status, quota_words};

use super::{Allowance, Class, LimitKind};
use std::collections::HashMap;
use template::{Starts, Template};

/// The embedded rules.
const EMBEDDED: &str = include_str!("rules/rules.toml");

/// The rules in force.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    version: u32,
    all: Vec<Rule>,
    /// By code in lower case: indices into `all`.
    by_code: HashMap<String, Vec<usize>>,
    /// By how their templates begin.
    by_start: Starts,
    /// Those that match by a header alone.
    by_header: Vec<usize>,
}

/// One rule. What is empty is no condition.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub id: String,
    /// Compared without regard to ASCII case.
    codes: Vec<String>,
    templates: Vec<Template>,
    /// Where a code must stand (`code`, `type`, `status`, `reason`, `quota_id`, `suffix`, …); empty: anywhere.
    fields: Vec<String>,
    statuses: Vec<u16>,
    /// Only where neither the response nor the frame states a status.
    statusless: bool,
    host: Option<String>,
    header: Option<HeaderTest>,
    /// Not where the body has a fact of one of these fields.
    unless: Vec<String>,
    pub class: Class,
    pub allowance: Option<Allowance>,
    pub kind: Option<LimitKind>,
    pub per_day: bool,
    pub concurrency: bool,
    pub zone: Option<jiff::tz::TimeZone>,
    /// An operator's rule beats every embedded one.
    operators: bool,
    #[cfg(test)]
    test: Option<file::TestCase>,
}

#[derive(Clone, Debug)]
struct HeaderTest {
    name: String,
    equals: Option<String>,
    ends_with: Option<String>,
}

impl Rules {
    /// The rules that come with this release.
    #[must_use]
    pub fn embedded() -> Self {
        // The file is part of the build and a test reads it: it parses wherever this was compiled and tested.
        let parsed = Self::parse(EMBEDDED, "the embedded rules", false);
        debug_assert!(parsed.is_ok(), "{parsed:?}");
        parsed.unwrap_or_default()
    }

    /// The embedded rules under an operator's, which are asked first. `origin` names the file in errors.
    ///
    /// # Errors
    /// The first thing wrong with the operator's file, by its line.
    pub fn with_overlay(text: &str, origin: &str) -> Result<Self, RulesError> {
        let mut overlay = Self::parse(text, origin, true)?;
        let embedded = Self::embedded();
        overlay.version = embedded.version;
        overlay.all.extend(embedded.all);
        overlay.index();
        Ok(overlay)
    }

    /// The version of the embedded rules.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// How many rules are in force.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn parse(text: &str, origin: &str, operators: bool) -> Result<Self, RulesError> {
        let (version, rules) = file::parse(text, origin, operators)?;
        let mut parsed = Self { version, all: rules, ..Self::default() };
        parsed.index();
        Ok(parsed)
    }

    fn index(&mut self) {
        self.by_code.clear();
        self.by_start = Starts::default();
        self.by_header.clear();
        for (index, rule) in self.all.iter().enumerate() {
            for code in &rule.codes {
                self.by_code.entry(code.clone()).or_default().push(index);
            }
            for (place, template) in rule.templates.iter().enumerate() {
                self.by_start.add(template, (index, place));
            }
            if rule.codes.is_empty() && rule.templates.is_empty() {
                self.by_header.push(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Ending, Failure, Fault, Receipt, ResponseFault};

    fn read(rules: &Rules, status: Option<u16>, headers: &[(String, String)], body: &str) -> Failure {
        let body = crate::failure::walk::body_value(body);
        let response = ResponseFault { status, headers: headers.to_vec(), body, inside_2xx: false };
        let receipt = Receipt {
            received_ms: 1_790_000_000_000,
            send_took_ms: 0,
            provider: "api.example.com".into(),
            account: None,
            model: "m".into(),
            attempts: Some(1),
            redact_vendor_messages: true,
        };
        Failure::read(&Ending::Fault(Fault::Response(response)), &receipt, rules)
    }

    #[test]
    fn every_rule_decides_its_own_case() {
        let rules = Rules::embedded();
        assert!(rules.len() > 100);
        let mut wrong = Vec::new();
        for rule in &rules.all {
            let test = rule.test.as_ref().unwrap();
            let headers: Vec<_> = test.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            let failure = read(&rules, test.status.filter(|status| !(200..300).contains(status)), &headers, &test.body);
            if (failure.rule.as_deref(), failure.class) != (Some(rule.id.as_str()), rule.class) {
                wrong.push(format!("{}: decided by {:?} as {:?}", rule.id, failure.rule, failure.class));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn no_code_means_two_things_under_the_same_conditions() {
        let rules = Rules::embedded();
        for (code, indices) in &rules.by_code {
            let plain: Vec<_> = indices
                .iter()
                .map(|index| &rules.all[*index])
                .filter(|rule| rule.fields.is_empty() && rule.statuses.is_empty() && !rule.statusless)
                .map(|rule| &rule.id)
                .collect();
            assert!(plain.len() <= 1, "`{code}` stands in {plain:?}");
        }
    }

    #[test]
    fn an_operators_rule_is_asked_first_and_a_bad_one_names_its_line() {
        let overlay = r#"
            [[rule]]
            id = "house.coffee"
            vendor = "house"
            codes = ["insufficient_quota"]
            host = "house.example"
            class = "rate_limit"
        "#;
        let rules = Rules::with_overlay(overlay, "house.toml").unwrap();
        let body = r#"{"error":{"code":"insufficient_quota"}}"#;
        assert_eq!(read(&rules, Some(429), &[], body).rule.as_deref(), Some("openai.insufficient_quota"));
        let anywhere = Rules::with_overlay(&overlay.replace("host = \"house.example\"", ""), "house.toml").unwrap();
        assert_eq!(read(&anywhere, Some(429), &[], body).rule.as_deref(), Some("house.coffee"));
        assert_eq!(anywhere.version(), Rules::embedded().version());
        for (text, line, what) in [
            ("[[rule]]\nid = \"a\"\nvendor = \"b\"\nclass = \"rate_limit\"\n", 1, "matches nothing"),
            ("\n[[rule]]\nid = \"a\"\nvendor = \"b\"\ncodes = [\"c\"]\nclass = \"quota\"\n", 2, "needs `allowance`"),
            ("[[rule]]\nid = \"a\"\ncolour = 1\n", 3, "colour"),
            (
                "[[rule]]\nid = \"a\"\nvendor = \"b\"\ntemplates = [\"{x}\"]\nclass = \"rate_limit\"\n",
                1,
                "four letters",
            ),
        ] {
            let error = Rules::with_overlay(text, "house.toml").unwrap_err();
            assert_eq!((error.line, error.origin.as_str()), (line, "house.toml"), "{error}");
            assert!(error.what.contains(what), "{error}");
        }
    }
}
