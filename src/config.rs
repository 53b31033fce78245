//! What an operator sets: read from the built-in defaults (`config/reprieve.toml`), a file, and the environment, each
//! value with the place it came from. Everything here is resolved and validated; nothing else reads files or variables.

mod database;
mod load;
mod origin;
mod policies;
mod providers;
mod read;
mod schema;
mod tree;

pub use load::{Loaded, Overrides};
pub use origin::{ConfigError, Origin, Problem};
pub use providers::adapters;
pub use read::Setting;
pub(crate) use schema::not_loopback;

use crate::recovery::Policy;
use std::collections::BTreeMap;
use std::fmt;

/// The effective configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// `sqlite://path` or `postgres://user@host/database`, with its secrets filled in.
    pub database: String,
    pub postgres: Postgres,
    pub server: Server,
    pub worker: Worker,
    /// By name: `tiered`, `strict`.
    pub policies: BTreeMap<String, Policy>,
    pub retention: Retention,
    /// By entry name.
    pub providers: BTreeMap<String, Provider>,
    /// The operator's rule overlay: the text of a rule file, in the format of the embedded one, and where it stands.
    pub rules: Option<(String, String)>,
}

/// What holds where the database is a Postgres.
#[derive(Clone, Debug)]
pub struct Postgres {
    pub schema: String,
    /// Nothing may outlive a transaction, and other processes' commits are asked about.
    pub poll: bool,
    pub pool: u32,
    pub statement_timeout_ms: i64,
}

#[derive(Clone, Debug)]
pub struct Server {
    pub bind: std::net::SocketAddr,
    /// Names that `Host` may carry besides the bound address and `localhost`.
    pub hosts: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Worker {
    pub concurrency: u32,
    /// Empty: all queues (`["*"]` in the file).
    pub queues: Vec<String>,
    pub lease_ms: i64,
    pub drain_ms: i64,
}

#[derive(Clone, Debug)]
pub struct Retention {
    pub records_ms: i64,
    pub jobs_ms: i64,
}

/// A provider entry.
#[derive(Clone, Debug)]
pub struct Provider {
    pub name: String,
    /// genai's adapter, by its lower-case name.
    pub adapter: String,
    pub endpoint: String,
    pub key: Key,
    pub identity: Option<String>,
    pub account: Option<String>,
    /// A name in [`Config::policies`].
    pub policy: String,
    pub redact_vendor_messages: bool,
    pub timeouts: Timeouts,
    /// The account's; `None`: not limited.
    pub max_in_flight: Option<u32>,
    pub models: BTreeMap<String, Model>,
}

#[derive(Clone, Debug, Default)]
pub struct Model {
    pub max_in_flight: Option<u32>,
    pub timeouts: Option<Timeouts>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    pub connect_ms: i64,
    pub headers_ms: i64,
    pub read_ms: i64,
}

/// A provider's credential: where it comes from. Never printed.
#[derive(Clone)]
pub enum Key {
    /// The provider takes none.
    None,
    Value(String),
    /// Read again when the file changes.
    File(std::path::PathBuf),
    /// Named by the configuration, but not there: the entry refuses jobs with a clear error. The variable's name.
    Missing(String),
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Value(_) => "Value(…)",
            Self::File(_) => "File(…)",
            Self::Missing(_) => "Missing(…)",
        })
    }
}
