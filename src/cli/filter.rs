//! The filters that lists and acts take, and how they become a query: the same names and values as over HTTP.

use super::trouble::Trouble;
use crate::agent::{Directory, Entry};
use crate::api::parameters;
use crate::store::{Query, ScopeKey};
use clap::Args;

/// What a flag is called over HTTP, and its value.
pub type Pair<'a> = (&'a str, Option<&'a str>);

/// Filters of every list.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Filters")]
pub struct Filter {
    /// Only what is newer: how long ago (24h), a date or an instant, UTC
    #[arg(long, value_name = "AGO|DATE")]
    pub since: Option<String>,
    /// Only what is older, written likewise
    #[arg(long, value_name = "AGO|DATE")]
    pub until: Option<String>,
    /// Only these queues, separated by commas
    #[arg(long)]
    pub queue: Option<String>,
    /// Only these tenants, separated by commas
    #[arg(long)]
    pub tenant: Option<String>,
    /// Only these providers: their identities, as scopes show them
    #[arg(long)]
    pub provider: Option<String>,
    /// Only these accounts, as scopes show them
    #[arg(long)]
    pub account: Option<String>,
    /// Only these models
    #[arg(long)]
    pub model: Option<String>,
}

impl Filter {
    #[must_use]
    pub fn pairs(&self) -> Vec<Pair<'_>> {
        vec![
            ("since", self.since.as_deref()),
            ("until", self.until.as_deref()),
            ("queue", self.queue.as_deref()),
            ("tenant", self.tenant.as_deref()),
            ("provider", self.provider.as_deref()),
            ("account", self.account.as_deref()),
            ("model", self.model.as_deref()),
        ]
    }
}

/// Which page of a list.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Paging")]
pub struct Paging {
    /// At most so many rows, 1 to 1000 [default: 50]
    #[arg(long, value_name = "N")]
    pub limit: Option<String>,
    /// Goes on where the page before ended
    #[arg(long)]
    pub cursor: Option<String>,
}

impl Paging {
    #[must_use]
    pub fn pairs(&self) -> Vec<Pair<'_>> {
        vec![("limit", self.limit.as_deref()), ("cursor", self.cursor.as_deref())]
    }
}

/// Filters of jobs: of their list, and of what is done to them.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Filters")]
pub struct JobFilter {
    /// Only these states, separated by commas (`deferred`: queued behind a hold; `waiting`: queued at all)
    #[arg(long)]
    pub state: Option<String>,
    /// Only what waits for this: `hold`, `parked`, `probe`, `backoff`, `not_before`, `in_place`, `line`,
    /// `paused`
    #[arg(long)]
    pub why: Option<String>,
    /// Only what this schedule submitted, by its id
    #[arg(long, value_name = "ID")]
    pub schedule: Option<String>,
    /// Only with this label; several: with all of them
    #[arg(long, value_name = "KEY=VALUE")]
    pub label: Vec<String>,
    /// What --since and --until are of: created or ended [default: created]
    #[arg(long, value_name = "WHICH")]
    pub time: Option<String>,
    #[command(flatten)]
    pub filter: Filter,
}

impl JobFilter {
    #[must_use]
    pub fn pairs(&self) -> Vec<Pair<'_>> {
        let own = [
            ("state", self.state.as_deref()),
            ("why", self.why.as_deref()),
            ("schedule", self.schedule.as_deref()),
            ("time", self.time.as_deref()),
        ];
        own.into_iter().chain(self.filter.pairs()).collect()
    }

    /// Whether anything is left out by them.
    #[must_use]
    pub fn is_given(&self) -> bool {
        !self.label.is_empty() || self.pairs().iter().any(|(_, value)| value.is_some())
    }
}

/// Entries of the configuration among providers that a filter names, where it means their identities: for each what it
/// should have been. Nothing where an identity is called so, too.
#[must_use]
pub fn entries_among(providers: &str, directory: &Directory) -> Vec<String> {
    let is_identity = |name: &str| directory.entries.values().any(|entry| entry.account.provider == name);
    let entry = |name: &str| Some((name.to_owned(), directory.entries.get(name)?)).filter(|_| !is_identity(name));
    let said = |(name, entry): (String, &Entry)| {
        let ScopeKey { provider, account, .. } = &entry.account;
        format!("`{name}` is an entry of the configuration; its scope is --provider {provider} --account {account}")
    };
    providers.split(',').filter_map(|name| entry(name.trim())).map(said).collect()
}

/// The query of flags.
///
/// # Errors
/// A value that is none, by its flag, with what is allowed.
pub fn query(pairs: &[Pair<'_>], labels: &[String], now_ms: i64) -> Result<Query, Trouble> {
    let mut given: Vec<(String, String)> =
        pairs.iter().filter_map(|(name, value)| value.map(|value| ((*name).to_owned(), value.to_owned()))).collect();
    for label in labels {
        let (key, value) = label.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
            Trouble::usage(format!("`{}` is no label; write --label KEY=VALUE", label.escape_debug()))
        })?;
        given.push((format!("label.{key}"), value.to_owned()));
    }
    // The flags that exist are clap's to know: every name that comes through here is taken.
    let names: Vec<&str> = given.iter().map(|(name, _)| name.as_str()).chain(["label.KEY"]).collect();
    parameters::query(&given, &names, now_ms).map_err(|problem| Trouble::from(problem).in_flags())
}
