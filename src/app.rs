//! The composition root: builds everything once, from the configuration, and hands values and handles to the rest.

use crate::agent::Directory;
use crate::clock::{Clock, SkewError};
use crate::config::Config;
use crate::failure::{Rules, RulesError};
use crate::provider::Providers;
use crate::scheduler;
use crate::store::postgres::{self, Notify};
use crate::store::sqlite::{self, Sqlite};
use crate::store::{self, Check, Database, Postgres, Schema, ScopeConfig, ScopeKey, Store};
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
    let url = &config.database;
    let wrong = |error: SkewError| store::Error::Open { url: postgres::shown(url), why: error.to_string() };
    let clock = Clock::of_process().map_err(wrong)?;
    match kind(url) {
        Kind::Sqlite => Sqlite::open(url, clock, sqlite::OpenOptions::default()).await.map(Database::Sqlite),
        Kind::Postgres => Postgres::open(url, clock, postgres_options(config)).await.map(Database::Postgres),
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

/// A database that a queue is moved from or to; a Postgres has the schema that the configuration names.
///
/// # Errors
/// What a URL looks like.
pub fn place(config: &Config, url: &str) -> Result<store::transfer::Place, String> {
    let url = url.to_owned();
    match kind(&url) {
        Kind::Postgres => Ok(store::transfer::Place::Postgres { url, options: postgres_options(config) }),
        Kind::Sqlite if url.starts_with("sqlite:") => Ok(store::transfer::Place::Sqlite { url }),
        Kind::Sqlite => Err("a database is named sqlite://path or postgres://user@host/database".to_owned()),
    }
}

/// Every check of the database that the configuration names. Makes and changes nothing.
pub async fn checks(config: &Config, now_ms: i64) -> Vec<Check> {
    match kind(&config.database) {
        Kind::Sqlite => sqlite::care::checks(&config.database, now_ms).await,
        Kind::Postgres => postgres::care::checks(&config.database, &postgres_options(config), now_ms).await,
    }
}

/// The schema of the database that the configuration names.
///
/// # Errors
/// Why it cannot be looked at.
pub async fn schema(config: &Config) -> store::Result<Schema> {
    match kind(&config.database) {
        Kind::Sqlite => sqlite::care::schema(&config.database).await,
        Kind::Postgres => postgres::migrate::schema(&config.database, &postgres_options(config)).await,
    }
}

/// Brings that database to this release's schema. Returns the schema as it was.
///
/// # Errors
/// Why it cannot be brought there.
pub async fn migrate(config: &Config) -> store::Result<Schema> {
    match kind(&config.database) {
        Kind::Sqlite => sqlite::care::up(&config.database).await,
        Kind::Postgres => postgres::migrate::up(&config.database, &postgres_options(config)).await,
    }
}

/// Where that database is other than this release's migrations make it; empty: nowhere.
///
/// # Errors
/// Why it cannot be looked at.
pub async fn differences(config: &Config) -> store::Result<Vec<String>> {
    match kind(&config.database) {
        Kind::Sqlite => sqlite::care::differences(&config.database).await,
        Kind::Postgres => postgres::migrate::differences(&config.database, &postgres_options(config)).await,
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
                directory: Arc::new(Directory::of(config)),
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
