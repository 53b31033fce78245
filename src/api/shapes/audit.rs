//! Who named a clock, and whether it told the truth: rows of the audit, one refusal whole, and the accuracy of sources.

use super::{Evidence, Hold, Scope, Source};
use crate::failure::{Candidate, LimitKind};
use crate::store::{self, Fence, HoldId, JobId, SendKey};
use serde::{Deserialize, Serialize};

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
    /// What was decided: `retry_in_place`, `defer`, `requeue`, `commit_partial`, `fail` or `stop`.
    pub decision: Option<String>,
    /// The hold that it opened or dated.
    pub hold: Option<HoldId>,
    /// The first send after the resume instant, and when it started.
    pub test: Option<SendKey>,
    pub tested_ms: Option<i64>,
    /// Its start minus the resume instant.
    pub lateness_ms: Option<i64>,
    /// `kept`, `refused_again`, `released`, `cancelled` or `not_tested`.
    pub word: String,
    /// Refused again: the reset named then, minus this one.
    pub again_by_ms: Option<i64>,
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
            decision: row.decision,
            hold: row.hold,
            test: row.test,
            tested_ms: row.tested_ms,
            lateness_ms: row.lateness_ms,
            word: row.word,
            again_by_ms: row.again_by_ms,
        }
    }
}

/// One refusal, whole: what was heard, what was selected and why, what was decided, and what came of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// The verdict in one sentence.
    pub text: String,
    pub job_id: JobId,
    pub fence: Fence,
    /// The send that was refused.
    pub n: u32,
    pub queue: String,
    pub tenant: Option<String>,
    pub scope: Scope,
    pub received_ms: i64,
    pub cause: String,
    pub kind: Option<LimitKind>,
    pub rule: Option<String>,
    pub rules_version: u32,
    /// Every candidate for a reset, the selected one first.
    pub candidates: Vec<Heard>,
    /// Where the reset was read; null: none was named.
    pub source: Option<Source>,
    pub raw: Option<String>,
    pub reset_at_ms: Option<i64>,
    pub skew_ms: i64,
    /// `reset_at_ms` on our clock.
    pub resume_at_ms: Option<i64>,
    /// How the one came from the other, in one line.
    pub arithmetic: String,
    pub decision: Option<String>,
    /// The hold that it opened or dated, as it stands or ended.
    pub hold: Option<Hold>,
    /// The first send after the resume instant; null: there was none yet.
    pub tested: Option<Tested>,
    /// `kept`, `refused_again`, `released`, `cancelled` or `not_tested`.
    pub word: String,
    /// Refused again: the reset named then, minus this one.
    pub again_by_ms: Option<i64>,
}

/// A candidate, and how far from the receipt it named its reset.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heard {
    pub candidate: Candidate,
    /// `at_ms` minus the receipt.
    pub delta_ms: Option<i64>,
}

/// The first send after a resume instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tested {
    pub send: Option<SendKey>,
    pub at_ms: i64,
    /// Its start minus the resume instant; negative only after a release.
    pub lateness_ms: Option<i64>,
    /// `answered`, `refused`, `failed`, `cut` or `cancelled`; null: its record is gone.
    pub outcome: Option<String>,
    pub http_status: Option<u16>,
}

/// How well one source of one vendor keeps its word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accuracy {
    /// `header`, `body`, or `curve` where no reset was named.
    pub source_kind: String,
    pub source_name: String,
    pub provider: String,
    /// Refusals in which it was a candidate, and in which it was the selected one.
    pub offered: i64,
    pub selected: i64,
    pub kept: i64,
    pub refused_again: i64,
    pub released: i64,
    pub not_tested: i64,
    /// Refused again: by how much the next reset was later.
    pub again_p50_ms: Option<i64>,
    pub again_p95_ms: Option<i64>,
    /// Our own lateness after the resume instant.
    pub lateness_p50_ms: Option<i64>,
    pub lateness_p99_ms: Option<i64>,
    pub lateness_max_ms: Option<i64>,
}

impl From<store::AccuracyRow> for Accuracy {
    fn from(row: store::AccuracyRow) -> Self {
        Self {
            source_kind: row.source_kind,
            source_name: row.source_name,
            provider: row.provider,
            offered: row.offered,
            selected: row.selected,
            kept: row.kept,
            refused_again: row.refused_again,
            released: row.released,
            not_tested: row.not_tested,
            again_p50_ms: row.again_p50_ms,
            again_p95_ms: row.again_p95_ms,
            lateness_p50_ms: row.lateness_p50_ms,
            lateness_p99_ms: row.lateness_p99_ms,
            lateness_max_ms: row.lateness_max_ms,
        }
    }
}
