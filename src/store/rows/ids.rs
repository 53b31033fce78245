//! What rows are named by.

use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A fresh UUID v7.
            #[must_use]
            pub fn fresh() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

id!(JobId);
id!(
    /// Random per process start: a restarted process is another worker.
    WorkerId
);
id!(HoldId);
id!(ScheduleId);

/// A number from one database-wide sequence; the higher one wins, and a stale one writes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(pub i64);

/// What allowances, rates and concurrency belong to. `model` is empty for the whole account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ScopeKey {
    /// The configured identity, else the endpoint's host.
    pub provider: String,
    /// The configured account, else the provider entry's own name.
    pub account: String,
    pub model: String,
}

impl ScopeKey {
    /// The scope of the whole account.
    #[must_use]
    pub fn of_account(&self) -> Self {
        Self { provider: self.provider.clone(), account: self.account.clone(), model: String::new() }
    }
}

impl fmt::Display for ScopeKey {
    /// `provider/account/model`, or `provider/account` for the whole account.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.account)?;
        if self.model.is_empty() { Ok(()) } else { write!(f, "/{}", self.model) }
    }
}

/// A line of turns that share an admission fate.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LaneKey {
    pub queue: String,
    /// Empty: no tenant.
    pub tenant: String,
    pub scope: ScopeKey,
}

/// One send of one execution of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SendKey {
    pub job_id: JobId,
    pub fence: Fence,
    /// From 1 within its execution.
    pub n: u32,
}
