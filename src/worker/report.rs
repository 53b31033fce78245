//! The one event per send, written in one place with stable names; prompts and answers never.

use super::execution::Execution;
use super::ledger::Span;
use crate::failure::Failure;
use crate::recovery::Decision;
use crate::store::Store;

impl<S: Store> Execution<S> {
    /// The one event per failed send.
    pub(super) fn report(&self, failure: &Failure, decision: Decision, span: &Span) {
        tracing::info!(
            job.id = %self.turn.job_id,
            turn.seq = self.turn.seq,
            send.n = span.n,
            scope = %self.turn.lane.scope,
            cause = failure.cause.as_str(),
            class = failure.class.as_str(),
            http_status = failure.http_status,
            took_ms = span.ended_ms - span.started_ms,
            decision = decision.as_str(),
            "the send failed"
        );
    }

    pub(super) fn report_answer(&self, span: &Span) {
        tracing::debug!(
            job.id = %self.turn.job_id,
            turn.seq = self.turn.seq,
            send.n = span.n,
            scope = %self.turn.lane.scope,
            took_ms = span.ended_ms - span.started_ms,
            "the send was answered"
        );
    }
}
