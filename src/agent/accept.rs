//! From a submitted text to a job that the store can take: the spec validated, its provider found among the configured
//! ones, its instants fixed.

use super::{JobSpec, SpecError, limits, next_call};
use crate::config::{Config, Key, Provider};
use crate::recovery::{Delivery, Policy};
use crate::store::{History, JobId, LaneKey, NewJob, ScopeKey};
use crate::{duration, provider};
use std::collections::BTreeMap;

/// What acceptance must know of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    /// By entry name.
    pub entries: BTreeMap<String, Entry>,
    /// The recovery policies by name: what may be asked for, and the numbers that an explanation counts by.
    pub policies: BTreeMap<String, Policy>,
}

/// A provider entry, as far as acceptance goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The scope of the whole account.
    pub account: ScopeKey,
    /// genai's adapter, by its lower-case name.
    pub adapter: String,
    /// The variable that should have held its key; `None`: it has one, or needs none.
    pub missing_key: Option<String>,
    /// The recovery policy of jobs that name none.
    pub policy: String,
}

impl Directory {
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let entries = config.providers.iter().map(|(name, provider)| (name.clone(), Entry::of(provider))).collect();
        Self { entries, policies: config.policies.clone() }
    }

    fn find<'a>(&'a self, name: Option<&'a str>) -> Result<(&'a str, &'a Entry), SpecError> {
        let known = || self.entries.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let problem = match name {
            Some(name) => match self.entries.get_key_value(name) {
                Some((name, entry)) => return Ok((name, entry)),
                None => format!("`{name}` is not configured; configured are: {}", known()),
            },
            None => match (self.entries.iter().next(), self.entries.len()) {
                (Some((name, entry)), 1) => return Ok((name, entry)),
                _ => format!("is missing, and there is not exactly one to choose; configured are: {}", known()),
            },
        };
        let problem = if self.entries.is_empty() {
            "none is configured; add a section [providers.NAME] to the configuration".to_owned()
        } else {
            problem
        };
        Err(SpecError::new("/provider", problem))
    }
}

impl Entry {
    #[must_use]
    pub fn of(provider: &Provider) -> Self {
        let host = || {
            let url = reqwest::Url::parse(&provider.endpoint).ok();
            url.and_then(|url| url.host_str().map(str::to_ascii_lowercase)).unwrap_or_default()
        };
        let account = ScopeKey {
            provider: provider.identity.clone().unwrap_or_else(host),
            account: provider.account.clone().unwrap_or_else(|| provider.name.clone()),
            model: String::new(),
        };
        let missing_key = match &provider.key {
            Key::Missing(variable) => Some(variable.clone()),
            Key::None | Key::Value(_) | Key::File(_) => None,
        };
        Self { account, adapter: provider.adapter.clone(), missing_key, policy: provider.policy.clone() }
    }

    /// The scope of one of its models.
    #[must_use]
    pub fn scope(&self, model: &str) -> ScopeKey {
        ScopeKey { model: model.to_owned(), ..self.account.clone() }
    }
}

/// Reads a submitted job and makes it ready for the store. `key` is an idempotency key that was given beside the job.
///
/// # Errors
/// The first thing that is wrong, by its place in the job.
pub fn accept(text: &str, directory: &Directory, now_ms: i64, key: Option<String>) -> Result<NewJob, SpecError> {
    let (mut job, spec) = by_entry(text, directory, now_ms, None)?;
    job.idempotency_key = match (key, spec.idempotency_key) {
        (Some(beside), Some(within)) if beside != within => {
            return Err(SpecError::new("/idempotency_key", "is another than the one given beside the job"));
        }
        (beside, within) => beside.or(within),
    };
    // One that was given beside the job is held to what one within it is held to.
    let wrong = |key: &String| key.len() > limits::KEY_BYTES || key.chars().any(char::is_control);
    if job.idempotency_key.as_ref().is_some_and(wrong) {
        let problem = format!("must have at most {} bytes and no control characters", limits::KEY_BYTES);
        return Err(SpecError::new("/idempotency_key", problem));
    }
    Ok(job)
}

/// The same without a key; `entry` is the provider entry of a job that names none.
pub(super) fn by_entry(
    text: &str,
    directory: &Directory,
    now_ms: i64,
    entry: Option<&str>,
) -> Result<(NewJob, JobSpec), SpecError> {
    let (spec, digest) = JobSpec::parse_with_digest(text)?;
    let (entry, found) = directory.find(spec.provider.as_deref().or(entry))?;
    if let Some(variable) = &found.missing_key {
        let problem = format!("`{entry}` has no key and cannot send: set {variable}, then start again");
        return Err(SpecError::new("/provider", problem));
    }
    // What the adapter could not send as it stands is refused here, not at its first turn.
    provider::check_call(&found.adapter, &next_call(&spec, &History::default()))
        .map_err(|error| SpecError::new(error.at, error.problem))?;
    if let Some(policy) = spec.policy.as_ref().filter(|policy| !directory.policies.contains_key(*policy)) {
        let known = directory.policies.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        return Err(SpecError::new("/policy", format!("`{policy}` is unknown; known are: {known}")));
    }
    let deadline_ms = spec.deadline.map(|when| when.at_ms(now_ms));
    if let Some(past_ms) = deadline_ms.map(|deadline_ms| now_ms.saturating_sub(deadline_ms)).filter(|ms| *ms >= 0) {
        return Err(SpecError::new("/deadline", format!("passed {} ago", duration::format(past_ms))));
    }
    let due_ms = spec.not_before.map(|when| when.at_ms(now_ms)).filter(|due_ms| *due_ms > now_ms);
    if let (Some(due_ms), Some(deadline_ms)) = (due_ms, deadline_ms)
        && due_ms >= deadline_ms
    {
        return Err(SpecError::new("/not_before", "is at or past the deadline: the job could never run"));
    }
    let lane = LaneKey {
        queue: spec.queue.clone(),
        tenant: spec.tenant.clone().unwrap_or_default(),
        scope: found.scope(&spec.model),
    };
    let job = NewJob {
        id: JobId::fresh(),
        lane,
        entry: entry.to_owned(),
        idempotency_key: None,
        digest,
        spec: text.to_owned(),
        priority: spec.priority,
        due_ms,
        deadline_ms,
        labels: spec.labels.clone(),
        retry_of: None,
        carried: Vec::new(),
        first_seq: 1,
        once: spec.delivery == Delivery::AtMostOnce,
        schedule: None,
        created_ms: now_ms,
    };
    Ok((job, spec))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Timeouts;

    const NOW_MS: i64 = 1_790_000_000_000;

    fn provider(name: &str, key: Key) -> Provider {
        Provider {
            name: name.to_owned(),
            adapter: "openai".to_owned(),
            endpoint: "https://API.Example.com:8443/v1/".to_owned(),
            key,
            identity: None,
            account: None,
            policy: "tiered".to_owned(),
            redact_vendor_messages: true,
            timeouts: Timeouts { connect_ms: 1, headers_ms: 1, read_ms: 1 },
            max_in_flight: None,
            models: BTreeMap::new(),
        }
    }

    fn directory(providers: &[Provider]) -> Directory {
        let entries = providers.iter().map(|provider| (provider.name.clone(), Entry::of(provider))).collect();
        Directory {
            entries,
            policies: [Policy::tiered(), Policy::strict()].map(|policy| (policy.name.clone(), policy)).into(),
        }
    }

    fn said(text: &str, directory: &Directory) -> String {
        accept(text, directory, NOW_MS, None).unwrap_err().to_string()
    }

    #[test]
    fn a_job_is_made_ready_for_the_store() {
        let one = directory(&[Provider { account: Some("main".into()), ..provider("openai", Key::None) }]);
        let text = r#"{"model":"m","input":"x","tenant":"t","queue":"q","priority":7,"deadline":"1h","not_before":"5m",
            "labels":{"k":"v"},"idempotency_key":"own"}"#;
        let job = accept(text, &one, NOW_MS, None).unwrap();
        let scope = ScopeKey { provider: "api.example.com".into(), account: "main".into(), model: "m".into() };
        assert_eq!(job.lane, LaneKey { queue: "q".into(), tenant: "t".into(), scope });
        assert_eq!((job.entry.as_str(), job.priority, job.spec.as_str()), ("openai", 7, text));
        assert_eq!((job.due_ms, job.deadline_ms), (Some(NOW_MS + 300_000), Some(NOW_MS + 3_600_000)));
        assert_eq!((job.idempotency_key.as_deref(), job.created_ms), (Some("own"), NOW_MS));
        assert_eq!(accept(text, &one, NOW_MS, Some("own".into())).unwrap().idempotency_key.as_deref(), Some("own"));
        let clash = accept(text, &one, NOW_MS, Some("other".into())).unwrap_err();
        assert_eq!(clash.at, "/idempotency_key");
        let keyless = r#"{"model":"m","input":"x"}"#;
        let beside = |key: String| accept(keyless, &one, NOW_MS, Some(key)).map(|_| ()).map_err(|error| error.at);
        assert_eq!(beside("k".repeat(limits::KEY_BYTES)), Ok(()));
        assert_eq!(beside("k".repeat(limits::KEY_BYTES + 1)), Err("/idempotency_key".to_owned()));
        assert_eq!(beside("a\0".to_owned()), Err("/idempotency_key".to_owned()));
    }

    #[test]
    fn the_configured_identity_and_the_entrys_own_name_make_the_scope() {
        let named = Entry::of(&Provider { identity: Some("eu.api".into()), ..provider("mine", Key::None) });
        assert_eq!((named.account.provider.as_str(), named.account.account.as_str()), ("eu.api", "mine"));
    }

    #[test]
    fn acceptance_and_the_provider_agree_on_a_scope() {
        let plain = provider("mine", Key::None);
        let named = Provider { identity: Some("eu".into()), account: Some("main".into()), ..plain.clone() };
        for entry in [plain, named] {
            let sends_as = crate::provider::Provider::new(&entry, 1).unwrap().scope("m");
            assert_eq!(Entry::of(&entry).scope("m"), sends_as);
        }
    }

    #[test]
    fn what_the_adapter_cannot_send_is_refused_by_its_place() {
        let cohere = directory(&[Provider { adapter: "cohere".into(), ..provider("a", Key::None) }]);
        let text = r#"{"model":"m","input":"x","options":{"seed":4}}"#;
        assert!(said(text, &cohere).starts_with("/options/seed: has no effect with this adapter"));
    }

    #[test]
    fn what_cannot_run_is_refused_with_a_reason() {
        let none = directory(&[]);
        let two = directory(&[provider("a", Key::None), provider("b", Key::Missing("B_KEY".into()))]);
        let job = |members: &str| format!(r#"{{"model":"m","input":"x","provider":"a"{members}}}"#);
        assert!(accept(&job(""), &two, NOW_MS, None).is_ok());
        for (text, directory, expected) in [
            (job(""), &none, "/provider: none is configured; add a section [providers.NAME] to the configuration"),
            (
                r#"{"model":"m","input":"x"}"#.into(),
                &two,
                "/provider: is missing, and there is not exactly one to choose; configured are: a, b",
            ),
            (
                r#"{"model":"m","input":"x","provider":"c"}"#.into(),
                &two,
                "/provider: `c` is not configured; configured are: a, b",
            ),
            (
                r#"{"model":"m","input":"x","provider":"b"}"#.into(),
                &two,
                "/provider: `b` has no key and cannot send: set B_KEY, then start again",
            ),
            (job(r#","policy":"lax""#), &two, "/policy: `lax` is unknown; known are: strict, tiered"),
            (job(r#","deadline":"2026-01-01T00:00:00Z""#), &two, "/deadline: passed 263 d 14 h ago"),
            (
                job(r#","deadline":"1h","not_before":"1h""#),
                &two,
                "/not_before: is at or past the deadline: the job could never run",
            ),
        ] {
            assert_eq!(said(&text, directory), expected);
        }
    }

    #[test]
    fn a_job_whose_beginning_has_passed_is_due_at_once() {
        let one = directory(&[provider("a", Key::None)]);
        let text = r#"{"model":"m","input":"x","not_before":"2026-01-01T00:00:00Z"}"#;
        assert_eq!(accept(text, &one, NOW_MS, None).unwrap().due_ms, None);
    }
}
