//! A provider entry of the configuration, ready to send: its client, its key, its names.

use super::adapter::{Adapter, Wire};
use super::key::{KeyGap, KeySource};
use super::request::{self, CallError, Prepared};
use super::{Answer, Broken, Call, ChatCall, Heard, Progress, client};
use crate::clock::Clock;
use crate::config::{self, Timeouts};
use crate::failure::Ending;
use crate::store::ScopeKey;
use genai::resolver::{AuthData, Endpoint};
use genai::{Headers, ModelIden, ServiceTarget};
use reqwest::Url;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Why an entry cannot be used. No part of an endpoint's credentials is shown.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    #[error("providers.{entry}.adapter: `{adapter}` is no adapter; known are {known}")]
    Adapter { entry: String, adapter: String, known: String },
    #[error("providers.{entry}.endpoint: must be an absolute http or https address with a host")]
    Endpoint { entry: String },
    #[error("providers.{entry}.{member}: must be 1 to 128 of the characters A-Z a-z 0-9 _ . : / -")]
    Identity { entry: String, member: &'static str },
    #[error("providers.{entry}: the HTTP client cannot be built (are the system's certificates readable?)")]
    Client { entry: String },
}

/// A provider entry of the configuration, ready to send. Cheap to clone.
#[derive(Clone)]
pub struct Provider(Arc<Entry>);

struct Entry {
    name: String,
    adapter: Adapter,
    /// With a slash at its path's end, so that joining adds to it.
    endpoint: Url,
    identity: String,
    account: Option<String>,
    key: KeySource,
    timeouts: Timeouts,
    models: BTreeMap<String, Timeouts>,
    /// One client for the entry; a further one only for models that state other timeouts, which belong to a client.
    clients: Vec<(Timeouts, Clients)>,
}

struct Clients {
    http: reqwest::Client,
    genai: genai::Client,
}

impl Provider {
    /// Makes an entry ready. `concurrency`: the worker's, for an entry that limits nothing itself.
    ///
    /// # Errors
    /// The first member that is wrong, and what would be right.
    pub fn new(entry: &config::Provider, concurrency: u32) -> Result<Self, ProviderError> {
        let name = || entry.name.clone();
        let adapter = Adapter::by_name(&entry.adapter).ok_or_else(|| ProviderError::Adapter {
            entry: name(),
            adapter: entry.adapter.clone(),
            known: Adapter::names().join(", "),
        })?;
        let endpoint = endpoint(&entry.endpoint).ok_or_else(|| ProviderError::Endpoint { entry: name() })?;
        let host = endpoint.host_str().unwrap_or_default().to_lowercase();
        for (member, value) in [("identity", &entry.identity), ("account", &entry.account)] {
            if value.as_deref().is_some_and(|value| !is_identity(value)) {
                return Err(ProviderError::Identity { entry: name(), member });
            }
        }
        let models: BTreeMap<String, Timeouts> =
            entry.models.iter().filter_map(|(model, set)| Some((model.clone(), set.timeouts?))).collect();
        let idle = usize::try_from(entry.max_in_flight.unwrap_or(0).max(concurrency)).unwrap_or(usize::MAX);
        let mut clients: Vec<(Timeouts, Clients)> = Vec::new();
        for timeouts in std::iter::once(&entry.timeouts).chain(models.values()) {
            if clients.iter().all(|(known, _)| known != timeouts) {
                let http = client::build(*timeouts, idle).map_err(|_| ProviderError::Client { entry: name() })?;
                let genai = genai::Client::builder()
                    .with_reqwest(http.clone())
                    .build()
                    .map_err(|_| ProviderError::Client { entry: name() })?;
                clients.push((*timeouts, Clients { http, genai }));
            }
        }
        Ok(Self(Arc::new(Entry {
            name: name(),
            adapter,
            endpoint,
            identity: entry.identity.clone().unwrap_or(host),
            account: entry.account.clone(),
            key: KeySource::new(entry.key.clone()),
            timeouts: entry.timeouts,
            models,
            clients,
        })))
    }

    /// The entry's name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The configured identity, else the endpoint's host, lower case and without a port.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.0.identity
    }

    /// The configured account; nothing stands in for a missing one.
    #[must_use]
    pub fn account(&self) -> Option<&str> {
        self.0.account.as_deref()
    }

    /// The scope of a model of this entry.
    #[must_use]
    pub fn scope(&self, model: &str) -> ScopeKey {
        ScopeKey {
            provider: self.0.identity.clone(),
            account: self.0.account.clone().unwrap_or_else(|| self.0.name.clone()),
            model: model.to_owned(),
        }
    }

    /// The waits that hold for a model of this entry.
    #[must_use]
    pub fn timeouts(&self, model: &str) -> Timeouts {
        self.0.models.get(model).copied().unwrap_or(self.0.timeouts)
    }

    /// Whether there is a key to send with, as far as can be known without sending.
    ///
    /// # Errors
    /// What is missing.
    pub fn key_gap(&self) -> Result<(), KeyGap> {
        self.0.key.current().map(|_| ())
    }

    /// Whether a call can be sent exactly as it stands: its model's name, its messages, its options, its path.
    ///
    /// # Errors
    /// The first member that cannot, and what would be right.
    pub fn check(&self, call: &Call) -> Result<(), CallError> {
        check(self.0.adapter, call)
    }

    /// One send. Dropping the future drops the connection's request; what had been heard stays in `heard`.
    ///
    /// # Errors
    /// Whatever kept the call from completing, walked down to its leaf.
    pub async fn send(
        &self,
        call: &Call,
        clock: &Clock,
        heard: &mut Heard,
        tell: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<Answer, Box<Broken>> {
        match call {
            Call::Chat(chat) => self.send_chat(chat, clock, heard, tell).await,
            Call::Raw(raw) => self.send_raw(raw, clock, heard, tell).await.map_err(Box::from),
        }
    }

    pub(super) fn adapter(&self) -> Adapter {
        self.0.adapter
    }

    pub(super) fn endpoint(&self) -> &Url {
        &self.0.endpoint
    }

    pub(super) fn key(&self) -> Result<Option<String>, KeyGap> {
        self.0.key.current()
    }

    pub(super) fn http(&self, model: &str) -> Result<&reqwest::Client, Ending> {
        self.clients(model).map(|clients| &clients.http)
    }

    pub(super) fn genai(&self, model: &str) -> Result<&genai::Client, Ending> {
        self.clients(model).map(|clients| &clients.genai)
    }

    fn clients(&self, model: &str) -> Result<&Clients, Ending> {
        let timeouts = self.timeouts(model);
        let found = self.0.clients.iter().find(|(known, _)| *known == timeouts);
        found.map(|(_, clients)| clients).ok_or_else(|| super::terminal("no client was built for these timeouts"))
    }

    /// What genai is to send, and where.
    pub(super) fn prepare(&self, call: &ChatCall) -> Result<(ServiceTarget, Prepared), Ending> {
        let key = self.key().map_err(|gap| gap.ending())?;
        let prepared = request::prepare(call, self.0.adapter).map_err(|error| super::terminal(error.to_string()))?;
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(self.0.endpoint.as_str()),
            auth: self.auth(key)?,
            model: ModelIden::new(self.0.adapter.kind, self.0.adapter.genai_name(&call.model)),
        };
        Ok((target, prepared))
    }

    fn auth(&self, key: Option<String>) -> Result<AuthData, Ending> {
        use genai::adapter::AdapterKind as Kind;
        let Adapter { kind, wire } = self.0.adapter;
        // These two send to addresses of their own, whatever endpoint they are given.
        let astray = matches!(kind, Kind::Zai | Kind::Baidu);
        // genai insists on a key; a local server that wants none gets no such header.
        let keyless = key.is_none() && wire == Wire::OpenAi && !matches!(kind, Kind::GithubCopilot | Kind::OpenCodeGo);
        if astray || keyless {
            let endpoint = &self.0.endpoint;
            let extended = endpoint.join("chat/completions");
            let mut url = extended.map_err(|_| super::terminal("the endpoint cannot be extended"))?;
            url.set_query(endpoint.query());
            let headers = key.map_or_else(Headers::default, |key| {
                Headers::from(("authorization".to_owned(), format!("Bearer {key}")))
            });
            return Ok(AuthData::RequestOverride { url: url.into(), headers });
        }
        Ok(match key {
            Some(key) => AuthData::Key(key),
            None if kind == Kind::Ollama => AuthData::None,
            None => AuthData::Key(String::new()),
        })
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("name", &self.0.name)
            .field("adapter", &self.0.adapter.kind)
            .field("identity", &self.0.identity)
            .finish_non_exhaustive()
    }
}

/// Every usable entry by its name, and what is wrong with the others.
#[derive(Debug, Default)]
pub struct Providers {
    ready: BTreeMap<String, Provider>,
    broken: BTreeMap<String, ProviderError>,
}

impl Providers {
    /// Makes every entry ready that can be; one that cannot stops no other.
    #[must_use]
    pub fn build(config: &config::Config) -> Self {
        let mut providers = Self::default();
        for (name, entry) in &config.providers {
            match Provider::new(entry, config.worker.concurrency) {
                Ok(provider) => {
                    providers.ready.insert(name.clone(), provider);
                }
                Err(error) => {
                    providers.broken.insert(name.clone(), error);
                }
            }
        }
        providers
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Provider> {
        self.ready.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.ready.values()
    }

    /// The entries that cannot be used, and why.
    pub fn broken(&self) -> impl Iterator<Item = (&str, &ProviderError)> {
        self.broken.iter().map(|(name, error)| (name.as_str(), error))
    }
}

/// Whether a model's name can go out verbatim through an adapter: for a submission that knows no built entry.
///
/// # Errors
/// What would be right.
pub fn check_model(adapter: &str, model: &str) -> Result<(), CallError> {
    let Some(adapter) = Adapter::by_name(adapter) else {
        return Err(CallError { at: "/provider".into(), problem: format!("`{adapter}` is no adapter") });
    };
    adapter.check_model(model)
}

/// As [`Provider::check`], for a submission that knows no built entry.
///
/// # Errors
/// The first member that cannot be sent through this adapter, and what would be right.
pub fn check_call(adapter: &str, call: &Call) -> Result<(), CallError> {
    let Some(adapter) = Adapter::by_name(adapter) else {
        return Err(CallError { at: "/provider".into(), problem: format!("`{adapter}` is no adapter") });
    };
    check(adapter, call)
}

fn check(adapter: Adapter, call: &Call) -> Result<(), CallError> {
    match call {
        Call::Chat(chat) => request::prepare(chat, adapter).map(|_| ()),
        Call::Raw(raw) => super::raw_path(&raw.path),
    }
}

fn endpoint(text: &str) -> Option<Url> {
    let mut url = Url::parse(text).ok()?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) || url.fragment().is_some()
    {
        return None;
    }
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Some(url)
}

fn is_identity(value: &str) -> bool {
    (1..=128).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.:/-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_an_absolute_address_that_can_be_extended() {
        assert_eq!(endpoint("https://h.example/v1").unwrap().as_str(), "https://h.example/v1/");
        assert_eq!(endpoint("https://h.example/a?v=1").unwrap().as_str(), "https://h.example/a/?v=1");
        for bad in ["h.example/v1", "ftp://h/", "https://", "https://h/#x", ""] {
            assert!(endpoint(bad).is_none(), "{bad}");
        }
    }
}
