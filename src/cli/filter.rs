//! The filters that every list takes, and how they become a query: the same names and values as over HTTP.

use super::trouble::Trouble;
use crate::api::parameters;
use crate::store::Query;
use clap::Args;

/// Filters of every list.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Filters")]
pub struct Filter {
    /// Only what is newer: how long ago (24h), a date or an instant, UTC
    #[arg(long, value_name = "AGO|DATE")]
    pub since: Option<String>,
    /// Only this queue
    #[arg(long)]
    pub queue: Option<String>,
    /// Only this provider: its identity, as scopes show it
    #[arg(long)]
    pub provider: Option<String>,
    /// Only this account, as scopes show it
    #[arg(long)]
    pub account: Option<String>,
    /// Only this model
    #[arg(long)]
    pub model: Option<String>,
    /// At most so many rows (1 to 1000)
    #[arg(long, value_name = "N")]
    pub limit: Option<String>,
    /// Goes on where the page before ended
    #[arg(long)]
    pub cursor: Option<String>,
}

impl Filter {
    /// Whether anything is left out by them.
    #[must_use]
    pub fn is_given(&self) -> bool {
        [&self.since, &self.queue, &self.provider, &self.account, &self.model, &self.cursor]
            .iter()
            .any(|value| value.is_some())
    }

    /// The query of these filters and a list's own.
    ///
    /// # Errors
    /// A value that is none, with what is allowed.
    pub fn query(&self, own: &[(&str, Option<&str>)], labels: &[String], now_ms: i64) -> Result<Query, Trouble> {
        let shared = [
            ("since", self.since.as_deref()),
            ("queue", self.queue.as_deref()),
            ("provider", self.provider.as_deref()),
            ("account", self.account.as_deref()),
            ("model", self.model.as_deref()),
            ("limit", self.limit.as_deref()),
            ("cursor", self.cursor.as_deref()),
        ];
        let mut pairs: Vec<(String, String)> = shared
            .iter()
            .chain(own)
            .filter_map(|(name, value)| value.map(|value| ((*name).to_owned(), value.to_owned())))
            .collect();
        for label in labels {
            let (key, value) = label.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
                Trouble::usage(format!("`{}` is no label; write --label KEY=VALUE", label.escape_debug()))
            })?;
            pairs.push((format!("label.{key}"), value.to_owned()));
        }
        // The flags that exist are clap's to know: every name that comes through here is taken.
        let names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).chain(["label.KEY"]).collect();
        parameters::query(&pairs, &names, now_ms).map_err(|mut problem| {
            problem.at = problem.at.map(|name| format!("--{}", name.replace('_', "-")));
            problem.into()
        })
    }
}
