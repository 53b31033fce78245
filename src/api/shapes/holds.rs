//! What is closed, and what became of the resets that were named.

use super::{Evidence, Scope};
use crate::failure::LimitKind;
use crate::store::{self, Fence, HoldId, JobId, SendKey};
use serde::{Deserialize, Serialize};

/// A scope that is closed, or was.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    pub id: HoldId,
    pub scope: Scope,
    pub cause: String,
    pub kind: Option<LimitKind>,
    pub opened_ms: i64,
    /// Null: until somebody lifts it.
    pub until_ms: Option<i64>,
    /// Where `until_ms` was read, or `curve`.
    pub source: String,
    pub raw: Option<String>,
    /// The refusal that `until_ms` was read from.
    pub refusal: Option<SendKey>,
    pub extended: u32,
    /// Consecutive refusals at or after the instants that were promised.
    pub barren: u32,
    /// The job whose turn probes it now.
    pub probe: Option<JobId>,
    pub ended_ms: Option<i64>,
    pub end: Option<String>,
    /// Turns that wait behind it, counted up to 10,000.
    pub waiting: i64,
}

impl From<store::HoldRow> for Hold {
    fn from(row: store::HoldRow) -> Self {
        Self {
            id: row.id,
            scope: row.scope.into(),
            cause: row.cause,
            kind: row.kind,
            opened_ms: row.opened_ms,
            until_ms: row.until_ms,
            source: row.source,
            raw: row.raw,
            refusal: row.refusal,
            extended: row.extended,
            barren: row.barren,
            probe: row.probe,
            ended_ms: row.ended_ms,
            end: row.end,
            waiting: row.waiting,
        }
    }
}

/// A refusal with its candidates, and whether the provider kept its word.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reset {
    pub job_id: JobId,
    pub fence: Fence,
    pub queue: String,
    pub tenant: Option<String>,
    pub scope: Scope,
    pub evidence: Evidence,
    /// The first send after the resume instant.
    pub tested_ms: Option<i64>,
    /// Its start minus the resume instant.
    pub lateness_ms: Option<i64>,
    /// `kept`, `refused_again`, `released` or `not_tested`.
    pub word: String,
}

impl From<store::ResetRow> for Reset {
    fn from(row: store::ResetRow) -> Self {
        Self {
            job_id: row.key.job_id,
            fence: row.key.fence,
            queue: row.lane.queue,
            tenant: Some(row.lane.tenant).filter(|tenant| !tenant.is_empty()),
            scope: row.lane.scope.into(),
            evidence: row.evidence.into(),
            tested_ms: row.tested_ms,
            lateness_ms: row.lateness_ms,
            word: row.word,
        }
    }
}
