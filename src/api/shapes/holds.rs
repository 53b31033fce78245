//! What is closed, what befell it, and what closes it by hand.

use super::Scope;
use crate::failure::LimitKind;
use crate::store::{self, HoldId, JobId, SendKey};
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
    /// What that refusal was answered with; null: not over HTTP, or its send is kept no longer.
    pub refusal_status: Option<u16>,
    pub extended: u32,
    /// Consecutive refusals at or after the instants that were promised.
    pub barren: u32,
    /// The job whose turn probes it now.
    pub probe: Option<JobId>,
    pub ended_ms: Option<i64>,
    pub end: Option<String>,
    /// Turns that wait behind it, counted up to 10,000.
    pub waiting: i64,
    /// What befell it, in order; of one hold only, left out of lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<HoldEvent>>,
}

impl Hold {
    /// One hold, whole.
    #[must_use]
    pub fn whole(row: store::HoldRow, events: Vec<store::HoldEventRow>) -> Self {
        Self { events: Some(events.into_iter().map(HoldEvent::from).collect()), ..Self::from(row) }
    }
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
            refusal_status: row.refusal_status,
            extended: row.extended,
            barren: row.barren,
            probe: row.probe,
            ended_ms: row.ended_ms,
            end: row.end,
            waiting: row.waiting,
            events: None,
        }
    }
}

/// Something that befell a hold.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldEvent {
    pub at_ms: i64,
    /// `opened`, `extended`, `refused_again`, `concurrent_refusal`, `probe_started`, `probe_returned`, `reopened`,
    /// `released` or `closed_by_hand`.
    pub event: String,
    pub until_ms: Option<i64>,
    /// Whose turn it was.
    pub job: Option<JobId>,
    /// Who did it by hand, and why.
    pub by: Option<String>,
    pub reason: Option<String>,
}

impl From<store::HoldEventRow> for HoldEvent {
    fn from(row: store::HoldEventRow) -> Self {
        Self {
            at_ms: row.at_ms,
            event: row.event,
            until_ms: row.until_ms,
            job: row.job,
            by: row.by,
            reason: row.reason,
        }
    }
}

/// What closes a scope by hand: `POST /v1/holds`. `until` or `for`, or neither: until somebody releases it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloseHold {
    /// As scopes show it.
    pub provider: String,
    pub account: String,
    /// Left out or null: the whole account.
    #[serde(default)]
    pub model: Option<String>,
    /// RFC 3339.
    #[serde(default)]
    pub until: Option<String>,
    /// A duration, such as `2h`.
    #[serde(default, rename = "for")]
    pub lasting: Option<String>,
    #[serde(default)]
    pub reason: Option<String>,
}
