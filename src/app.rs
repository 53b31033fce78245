//! The composition root: builds everything once, from the configuration, and hands values and handles to the rest.

use crate::clock::Clock;
use crate::config::Config;
use crate::failure::{Rules, RulesError};
use crate::provider::Providers;
use crate::scheduler;
use crate::store::postgres::{self, Notify};
use crate::store::{self, Database, Migration, Postgres, ScopeConfig, ScopeKey, Sqlite, Store, sqlite};
use crate::worker;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why the parts could not be put together.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Rules(#[from] RulesError),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("the scheduler cannot start: {0}")]
    Scheduler(String),
}

/// The rules in force: the embedded ones under the operator's.
///
/// # Errors
/// What is wrong with the operator's rule file, by its line.
pub fn rules(config: &Config) -> Result<Rules, RulesError> {
    match &config.rules {
        Some((text, origin)) => Rules::with_overlay(text, origin),
        None => Ok(Rules::embedded()),
    }
}

/// Opens the database that the configuration names. A new SQLite file is made on first use; a Postgres must have its
/// schema ([`migrate_up`]).
///
/// # Errors
/// Why it cannot be opened.
pub async fn open_store(config: &Config) -> store::Result<Database> {
    let (url, clock) = (&config.database, Clock::system());
    match kind(url) {
        Kind::Sqlite => Sqlite::open(url, clock, sqlite::OpenOptions::default()).await.map(Database::Sqlite),
        Kind::Postgres => Postgres::open(url, clock, postgres_options(config)).await.map(Database::Postgres),
    }
}

/// The steps of the database's schema that this release knows, and which the database has.
///
/// # Errors
/// Why they cannot be read; a schema of a newer release.
pub async fn migrate_status(config: &Config) -> store::Result<Vec<Migration>> {
    match kind(&config.database) {
        Kind::Sqlite => sqlite::migrate::status(&config.database).await,
        Kind::Postgres => postgres::migrate::status(&config.database, &postgres_options(config)).await,
    }
}

/// Brings the database's schema up to date; the steps that were applied now.
///
/// # Errors
/// Why a step could not be applied; those before it stand.
pub async fn migrate_up(config: &Config) -> store::Result<Vec<Migration>> {
    match kind(&config.database) {
        Kind::Sqlite => sqlite::migrate::up(&config.database).await,
        Kind::Postgres => postgres::migrate::up(&config.database, &postgres_options(config)).await,
    }
}

enum Kind {
    Sqlite,
    Postgres,
}

fn kind(url: &str) -> Kind {
    if url.starts_with("postgres://") || url.starts_with("postgresql://") { Kind::Postgres } else { Kind::Sqlite }
}

fn postgres_options(config: &Config) -> postgres::OpenOptions {
    let settings = &config.postgres;
    postgres::OpenOptions {
        schema: settings.schema.clone(),
        notify: if settings.poll { Notify::Poll } else { Notify::Listen },
        pool: settings.pool,
        statement_ms: u64::try_from(settings.statement_timeout_ms).unwrap_or(u64::MAX),
        ..postgres::OpenOptions::default()
    }
}

/// What a process that executes turns is made of.
#[derive(Clone)]
pub struct Service<S: Store> {
    pub store: S,
    worker: worker::Settings,
    scheduler: scheduler::Settings,
}

impl<S: Store> Service<S> {
    /// Builds the parts and states the configured scopes to the store.
    ///
    /// # Errors
    /// The first part that cannot be built.
    pub async fn build(config: &Config, store: S, live: Option<worker::Live>) -> Result<Self, Error> {
        let providers = Providers::build(config);
        store.configure_scopes(scopes(config, &providers)).await?;
        let tiered = config.policies.get("tiered").cloned().unwrap_or_else(crate::recovery::Policy::tiered);
        Ok(Self {
            store,
            worker: worker::Settings {
                concurrency: config.worker.concurrency,
                queues: config.worker.queues.clone(),
                lease_ms: config.worker.lease_ms,
                drain_ms: config.worker.drain_ms,
                policies: Arc::new(config.policies.clone()),
                providers: Arc::new(providers),
                entries: Arc::new(entries(config)),
                rules: Arc::new(rules(config)?),
                live,
            },
            scheduler: scheduler::Settings {
                requeue: tiered,
                retention: scheduler::retention::Keep {
                    records_ms: config.retention.records_ms,
                    jobs_ms: config.retention.jobs_ms,
                },
            },
        })
    }

    /// Runs a worker until it is told to stop and has drained.
    pub async fn work(&self, stop: worker::Stop) {
        worker::run(self.store.clone(), self.worker.clone(), stop).await;
    }

    /// Runs the duties of the clock until told to stop.
    ///
    /// # Errors
    /// When the scheduler cannot start.
    pub async fn schedule(&self, stop: tokio_util::sync::CancellationToken) -> Result<(), Error> {
        scheduler::run(self.store.clone(), self.scheduler.clone(), stop)
            .await
            .map_err(|error| Error::Scheduler(error.to_string()))
    }
}

fn entries(config: &Config) -> BTreeMap<String, worker::EntrySettings> {
    let settings = |entry: &crate::config::Provider| worker::EntrySettings {
        policy: entry.policy.clone(),
        redact_vendor_messages: entry.redact_vendor_messages,
    };
    config.providers.iter().map(|(name, entry)| (name.clone(), settings(entry))).collect()
}

/// What the configuration says of scopes: an account's `max_in_flight`, and each named model's.
fn scopes(config: &Config, providers: &Providers) -> Vec<ScopeConfig> {
    let mut scopes: Vec<ScopeConfig> = Vec::new();
    for (name, entry) in &config.providers {
        let Some(provider) = providers.get(name) else { continue };
        let mut state = |scope: ScopeKey, max_in_flight: Option<u32>| {
            // Entries with equal identity and account are one scope; the configuration made sure they say the same.
            if !scopes.iter().any(|known| known.scope == scope) {
                scopes.push(ScopeConfig { scope, max_in_flight });
            }
        };
        state(provider.scope("").of_account(), entry.max_in_flight);
        for (model, settings) in &entry.models {
            state(provider.scope(model), settings.max_in_flight);
        }
    }
    scopes
}
