//! One execution: a claimed turn, its sends, its waits in place, and its one end.

use super::ends::{Written, completion, give_back, hand_over};
use super::hand::{LiveEvent, Slot};
use super::ledger::{self, Account, Span};
use super::plan::{Plan, Unplanned};
use super::wait::Waited;
use super::{STORE_AWAY_MS, Shared};
use crate::agent;
use crate::failure::{CancelPoint, Ending, Failure, Fault, Phase, Receipt, Transport};
use crate::provider::{Answer, Broken, Call, Heard, Progress};
use crate::recovery::{Decision, Situation, Spoken, Then, recover};
use crate::store::{
    Answer as Told, Applied, ClaimedTurn, Grant, JobState, Next, Outcome, Permit, Setback, Store, TurnRecord, Usage,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A permit older than this is asked for again before its send starts, in milliseconds.
const PERMIT_KEEPS_MS: i64 = 1_000;
/// After this long without an answer a probe that does not stream lets one more send go, in milliseconds.
const SILENT_PROBE_MS: i64 = 10_000;

pub(super) struct Execution<S: Store> {
    pub(super) shared: Arc<Shared<S>>,
    pub(super) turn: ClaimedTurn,
    pub(super) slot: Slot,
    pub(super) plan: Plan,
    pub(super) started_ms: i64,
    /// Sends so far.
    sends: u32,
    pub(super) grant: Grant,
    /// The last failure met in this execution, replaced ones included.
    pub(super) last: Option<Failure>,
}

/// How a send ended.
enum SendEnd {
    Answered(Box<Answer>),
    Broken(Box<Broken>),
    Cancelled,
    /// The job's deadline.
    Deadline,
    /// The turn's own timeout.
    TurnTimeout,
    /// The drain's time is over.
    Drained,
    /// The lease is lost: nothing may be written.
    Lost,
}

/// Runs one claimed turn to the end of its execution.
pub(super) async fn run<S: Store>(shared: Arc<Shared<S>>, turn: ClaimedTurn, slot: Slot) {
    let started_ms = shared.clock.now_ms();
    let plan = match Plan::of(&shared, &turn).await {
        Ok(plan) => plan,
        Err(Unplanned::StoreAway) => return give_back(&shared, &turn).await,
        Err(Unplanned::NotHere) => {
            // Before it goes back: what is given back is claimed again at once.
            if shared.aside.leave(&turn.lane.scope, started_ms) {
                tracing::warn!(
                    entry = turn.entry,
                    scope = %turn.lane.scope,
                    "no such provider is configured on this worker; its jobs are left to other workers"
                );
            }
            return give_back(&shared, &turn).await;
        }
        Err(Unplanned::Failed(error, result)) => {
            let account = Account { seq: turn.seq, started_ms, ended_ms: shared.clock.now_ms(), sends: 0 };
            let error = *error;
            let next = Next::Final { state: JobState::Failed, result, error: ledger::json(&error) };
            let record = ledger::own(&account, Outcome::Failed, &error);
            return hand_over(&shared, completion(&shared, &turn, record, next)).await;
        }
    };
    let grant = turn.grant;
    Execution { shared, turn, slot, plan, started_ms, sends: 0, grant, last: None }.drive().await;
}

impl<S: Store> Execution<S> {
    async fn drive(mut self) {
        if self.is_overdue() {
            return self.end_overdue(None).await;
        }
        if self.permit_is_stale() {
            match self.ask_permit().await {
                Some(Permit::Granted(grant)) => self.grant = grant,
                Some(Permit::Void) | None => return,
                Some(Permit::Cancelled) => return self.end_cancelled(CancelPoint::Waiting, None, None).await,
                // Nothing was sent: back it goes, without a record.
                Some(Permit::Closed { .. } | Permit::Full) => return give_back(&self.shared, &self.turn).await,
            }
        }
        loop {
            if self.shared.over.is_cancelled() {
                return self.end_unsent().await;
            }
            let mut heard = Heard::default();
            let grant = self.grant;
            let sent_ms = self.shared.clock.now_ms();
            let (end, told) = self.send(&mut heard, sent_ms).await;
            self.sends += heard.sends.max(1);
            let span = Span {
                n: self.sends,
                grant,
                started_ms: sent_ms,
                ended_ms: self.shared.clock.now_ms(),
                first_byte_ms: heard.first_byte_ms,
            };
            let broken = match end {
                SendEnd::Lost => return,
                SendEnd::Answered(answer) => return self.end_completed(&answer, &span, told).await,
                SendEnd::Cancelled => {
                    let at = if heard.first_byte_ms.is_some() { CancelPoint::Streaming } else { CancelPoint::Sending };
                    return self.end_cancelled(at, Some(&heard), Some(&span)).await;
                }
                SendEnd::Drained => return self.end_drained(&heard, &span, told).await,
                SendEnd::Deadline => broken_by(Ending::Deadline),
                SendEnd::TurnTimeout => broken_by(turn_timeout()),
                SendEnd::Broken(broken) => *broken,
            };
            if broken.ending.is_exhaustion() {
                return self.end_exhausted(&broken.ending, &span).await;
            }
            let Some(next) = self.after_failure(&broken, &heard, &span, told).await else { return };
            self.grant = next;
        }
    }

    fn permit_is_stale(&self) -> bool {
        let now_ms = self.shared.clock.now_ms();
        now_ms - self.grant.permit_ms > PERMIT_KEEPS_MS
            || self.shared.closed.overtook(&self.grant, &self.turn.lane.scope, now_ms)
    }

    /// One send, and every way in which it can be cut. The second value: whether its answer has been told.
    async fn send(&mut self, heard: &mut Heard, sent_ms: i64) -> (SendEnd, bool) {
        let shared = &self.shared;
        let told = AtomicBool::new(false);
        let tells = self.grant.probe.is_some() || self.grant.ramping;
        let (job_id, fence, grant) = (self.turn.job_id, self.turn.fence, self.grant);
        let tell = |silent: bool| {
            if tells && !told.swap(true, Ordering::Relaxed) {
                let now_ms = shared.clock.now_ms();
                let probe = grant.probe.map(|probe| probe.hold_id);
                if shared.answers.send(Told { job_id, fence, probe, silent, now_ms }).is_err() {
                    tracing::debug!("the answer is told by its completion instead");
                }
            }
        };
        let streams = matches!(&self.plan.call, Call::Chat(chat) if chat.stream);
        let silent_ms = if grant.probe.is_some() && !streams { sent_ms + SILENT_PROBE_MS } else { i64::MAX };
        let mut progress = |progress: Progress<'_>| match progress {
            Progress::Answered => tell(false),
            Progress::Text(text) => self.slot.tell(LiveEvent::Text(text)),
        };
        let deadline_ms = self.turn.deadline_ms.unwrap_or(i64::MAX);
        let timeout_ms = self.timeout_at_ms().unwrap_or(i64::MAX);
        let mut sending = std::pin::pin!(self.plan.provider.send(&self.plan.call, &shared.clock, heard, &mut progress));
        let mut is_silent = false;
        let end = loop {
            tokio::select! {
                biased;
                () = shared.lost.cancelled() => break SendEnd::Lost,
                () = self.slot.cancel.cancelled() => break SendEnd::Cancelled,
                result = &mut sending => break match result {
                    Ok(answer) => SendEnd::Answered(Box::new(answer)),
                    Err(broken) => SendEnd::Broken(broken),
                },
                () = shared.over.cancelled() => break SendEnd::Drained,
                _ = shared.clock.sleep_until(deadline_ms), if deadline_ms <= timeout_ms => break SendEnd::Deadline,
                _ = shared.clock.sleep_until(timeout_ms), if timeout_ms < deadline_ms => break SendEnd::TurnTimeout,
                _ = shared.clock.sleep_until(silent_ms), if silent_ms < i64::MAX && !is_silent => {
                    is_silent = true;
                    tell(true);
                }
            }
        };
        (end, told.load(Ordering::Relaxed))
    }

    /// Reads a failure, decides, and carries the decision out. `Some`: the permit of the next send.
    async fn after_failure(&mut self, broken: &Broken, heard: &Heard, span: &Span, told: bool) -> Option<Grant> {
        let failure = self.read(&broken.ending, span);
        let jitter = rand::random::<f64>();
        // A probe's refusal is one more in a row; the first refusal of an open scope starts the count.
        let barren = self.grant.barren.saturating_add(u32::from(self.grant.probe.is_some()));
        let situation = self.situation(heard, span.ended_ms, barren, jitter);
        let decision = recover(&failure, &situation, &self.plan.policy);
        let refusal = ledger::refusal(&failure, &self.turn.lane.scope, &situation, &self.plan.policy);
        if let Some(row) = &refusal {
            self.shared.closed.note(&row.scope, span.ended_ms, row.until_ms);
        }
        let answered = !told && ledger::opens(heard, Some(&failure));
        let written = Written {
            send: ledger::failed_send(span, &failure),
            evidence: ledger::evidence(&failure, span.n),
            refusal,
            answered,
        };
        self.report(&failure, decision, span);
        let next = match decision {
            Decision::RetryInPlace { wait_ms } => {
                return self.retry_in_place(failure, wait_ms, span, written).await;
            }
            Decision::Defer { until_ms } => {
                self.slot.tell(LiveEvent::Deferred { summary: &failure.summary(), until_ms });
                let record = ledger::failed(&self.account(span.ended_ms), Outcome::Deferred, &failure, decision);
                (record, Next::Behind)
            }
            Decision::Requeue { until_ms } => {
                let record = ledger::failed(&self.account(span.ended_ms), Outcome::Requeued, &failure, decision);
                (record, Next::Again { due_ms: until_ms, counts: true })
            }
            Decision::CommitPartial { then } => self.commit_partial(&failure, heard, decision, then, span.ended_ms),
            Decision::Fail | Decision::Stop => {
                let outcome = if decision == Decision::Stop { Outcome::Cancelled } else { Outcome::Failed };
                let mut record = ledger::failed(&self.account(span.ended_ms), outcome, &failure, decision);
                record.response = agent::response::of_partial(&heard.text);
                let state = if decision == Decision::Stop { JobState::Cancelled } else { JobState::Failed };
                let result = agent::response::partial_result(&self.plan.history, &heard.text);
                (record, Next::Final { state, result, error: ledger::json(&failure.document()) })
            }
        };
        let (mut record, next) = next;
        record.usage = broken.usage;
        record.provider_model.clone_from(&broken.provider_model);
        self.end(record, next, Some(written)).await;
        None
    }

    fn commit_partial(
        &self,
        failure: &Failure,
        heard: &Heard,
        decision: Decision,
        then: Then,
        ended_ms: i64,
    ) -> (TurnRecord, Next) {
        let cut = if failure.cause == crate::failure::Cause::OutputLimit { "output_limit" } else { "stalled" };
        let mut record = ledger::failed(&self.account(ended_ms), Outcome::Truncated, failure, decision);
        record.cut = Some(cut.into());
        record.response = agent::response::of_partial(&heard.text);
        let ended = agent::Ended::Truncated { text: &heard.text, cut, then };
        (record, self.step(&ended, ended_ms))
    }

    /// Records the replaced send, lends the slot, waits, and asks for the next permit.
    async fn retry_in_place(
        &mut self,
        failure: Failure,
        wait_ms: i64,
        span: &Span,
        mut written: Written,
    ) -> Option<Grant> {
        let decided_until_ms = span.ended_ms.saturating_add(wait_ms);
        let until_ms = written.refusal.as_ref().map_or(decided_until_ms, |row| row.until_ms.max(decided_until_ms));
        if self.shared.stopping() || !self.slot.lend() {
            self.put_back(&failure, until_ms, Some(written)).await;
            return None;
        }
        written.send.wait_ms = Some(until_ms - span.ended_ms);
        written.send.wait_source =
            Some(written.refusal.as_ref().map_or_else(|| "curve".into(), |row| row.source.clone()));
        written.send.error = ledger::json(&failure.document());
        self.slot.tell(LiveEvent::Retry { summary: &failure.summary(), wait_ms });
        let setback = Setback {
            worker: self.shared.id,
            job_id: self.turn.job_id,
            fence: self.turn.fence,
            now_ms: span.ended_ms,
            send: written.send,
            evidence: written.evidence,
            refusal: written.refusal,
            probe: self.grant.probe.map(|probe| probe.hold_id),
            wait_until_ms: until_ms,
        };
        if self.insist_set_back(setback).await? == Applied::Void {
            return None;
        }
        let waited = self.wait_in_place(until_ms).await;
        self.slot.resume();
        match waited {
            Waited::Go(grant) => {
                self.last = Some(failure);
                return Some(grant);
            }
            Waited::PutBack => self.put_back(&failure, until_ms, None).await,
            Waited::Cancelled => {
                self.last = Some(failure);
                self.end_cancelled(CancelPoint::InPlaceWait, None, None).await;
            }
            Waited::Deadline => self.end_overdue(Some(&failure)).await,
            Waited::Void => {}
        }
        None
    }

    /// Ends this execution and puts the turn back: behind its hold after a refusal, else until its wait is over.
    pub(super) async fn put_back(&mut self, failure: &Failure, until_ms: i64, written: Option<Written>) {
        let account = self.account(self.shared.clock.now_ms());
        let (outcome, decision, next) = if ledger::is_refusal(failure) {
            (Outcome::Deferred, Decision::Defer { until_ms }, Next::Behind)
        } else {
            let next = Next::Again { due_ms: until_ms, counts: false };
            (Outcome::Requeued, Decision::Requeue { until_ms }, next)
        };
        self.slot.tell(LiveEvent::Deferred { summary: &failure.summary(), until_ms });
        let record = ledger::failed(&account, outcome, failure, decision);
        self.end(record, next, written).await;
    }

    pub(super) fn read(&self, ending: &Ending, span: &Span) -> Failure {
        let receipt = self.receipt(span.ended_ms, span.ended_ms - span.started_ms);
        Failure::read(ending, &receipt, &self.shared.settings.rules)
    }

    pub(super) fn receipt(&self, received_ms: i64, send_took_ms: i64) -> Receipt {
        Receipt {
            received_ms,
            send_took_ms,
            provider: self.turn.lane.scope.provider.clone(),
            account: self.plan.provider.account().map(ToOwned::to_owned),
            model: self.turn.lane.scope.model.clone(),
            attempts: Some(self.sends),
            redact_vendor_messages: self.plan.redact_vendor_messages,
        }
    }

    pub(super) fn situation(&self, heard: &Heard, now_ms: i64, barren: u32, jitter: f64) -> Situation {
        let spec = &self.plan.spec;
        Situation {
            now_ms,
            sends: self.sends,
            executions: self.turn.executions,
            barren,
            turn_left_ms: self.timeout_at_ms().map(|at_ms| (at_ms - now_ms).max(0)),
            deadline_ms: self.turn.deadline_ms,
            spoken: if matches!(self.plan.call, Call::Raw(_)) { Spoken::Nothing } else { heard.spoken() },
            repairs: self.turn.repairs,
            deferrals: self.turn.deferrals,
            waiting_since_ms: self.turn.waiting_since_ms,
            delivery: spec.delivery,
            structured_output: spec.is_structured(),
            on_truncated: spec.on_truncated(),
            jitter,
        }
    }

    pub(super) fn account(&self, ended_ms: i64) -> Account {
        Account { seq: self.turn.seq, started_ms: self.started_ms, ended_ms, sends: self.sends }
    }

    pub(super) fn timeout_at_ms(&self) -> Option<i64> {
        self.plan.spec.turn_timeout_ms.map(|timeout_ms| self.started_ms.saturating_add(timeout_ms))
    }

    pub(super) fn is_overdue(&self) -> bool {
        self.turn.deadline_ms.is_some_and(|deadline_ms| deadline_ms <= self.shared.clock.now_ms())
    }

    async fn insist_set_back(&self, setback: Setback) -> Option<Applied> {
        loop {
            match self.shared.store.set_back(setback.clone()).await {
                Ok(applied) => return Some(applied),
                Err(error) => self.shared.store_is_away("a failed send could not be recorded", &error).await?,
            }
        }
    }
}

impl<S: Store> Shared<S> {
    /// Waits a moment for a database that is away. `None`: the lease is lost, and with it the turn.
    pub(super) async fn store_is_away(&self, what: &str, error: &crate::store::Error) -> Option<()> {
        tracing::warn!(%error, "{what}");
        let now_ms = self.clock.now_ms();
        tokio::select! {
            _ = self.clock.nap_until(now_ms + STORE_AWAY_MS, now_ms) => Some(()),
            () = self.lost.cancelled() => None,
        }
    }
}

/// A turn's own timeout is a wait of ours that ran out, retryable like any other; the job's deadline is not.
fn turn_timeout() -> Ending {
    let detail = "the turn's timeout ran out".to_owned();
    Ending::Fault(Fault::Transport(Transport { phase: Some(Phase::Read), detail }))
}

fn broken_by(ending: Ending) -> Broken {
    Broken { ending, usage: Usage::default(), provider_model: None }
}
