//! The ways in which an execution ends, each one guarded write.

use super::Shared;
use super::execution::Execution;
use super::hand::LiveEvent;
use super::ledger::{self, Span};
use crate::agent::{self, Step};
use crate::failure::{CancelPoint, Ending, ErrorDocument, Failure, codes};
use crate::provider::{Answer, Heard};
use crate::recovery::{Decision, Delivery};
use crate::store::{
    ClaimedTurn, Completion, EvidenceRow, JobState, Next, Outcome, RefusalRow, SendRow, Store, TurnRecord,
};

/// What is written of the send that ends an execution or is replaced.
pub(super) struct Written {
    pub send: SendRow,
    pub evidence: Option<EvidenceRow>,
    pub refusal: Option<RefusalRow>,
    pub answered: bool,
}

impl<S: Store> Execution<S> {
    pub(super) async fn end_completed(&mut self, answer: &Answer, span: &Span, told: bool) {
        let account = self.account(span.ended_ms);
        let record = ledger::completed(&account, answer, agent::response::of_answer(answer));
        let next = self.step(&agent::Ended::Completed(answer), span.ended_ms);
        self.report_answer(span);
        self.slot.tell(LiveEvent::TurnEnded);
        let written = Written { send: ledger::answered_send(span), evidence: None, refusal: None, answered: !told };
        self.end(record, next, Some(written)).await;
    }

    pub(super) async fn end_cancelled(&mut self, at: CancelPoint, heard: Option<&Heard>, span: Option<&Span>) {
        let now_ms = self.shared.clock.now_ms();
        let receipt = self.receipt(now_ms, 0);
        let failure = Failure::read(&Ending::Cancelled { at }, &receipt, &self.shared.settings.rules);
        let account = self.account(now_ms);
        let text = heard.map_or("", |heard| heard.text.as_str());
        let mut record = ledger::failed(&account, Outcome::Cancelled, &failure, Decision::Stop);
        record.response = agent::response::of_partial(text);
        let next = Next::Final {
            state: JobState::Cancelled,
            result: agent::response::partial_result(&self.plan.history, text),
            error: ledger::json(&failure.document()),
        };
        let written = span.map(|span| Written {
            send: ledger::failed_send(span, &failure),
            evidence: None,
            refusal: None,
            answered: false,
        });
        self.end(record, next, written).await;
    }

    /// The call was cut by us. What may be sent twice is sent again; what may not fails, its text kept.
    pub(super) async fn end_drained(&mut self, heard: &Heard, span: &Span, told: bool) {
        let error = ErrorDocument::own(codes::WORKER_DRAINED, "the worker was stopped before the call ended");
        let account = self.account(span.ended_ms);
        let (record, next) = match self.plan.spec.delivery {
            Delivery::AtLeastOnce => {
                let next = Next::Again { due_ms: span.ended_ms, counts: false };
                (ledger::own(&account, Outcome::Requeued, &error), next)
            }
            Delivery::AtMostOnce => {
                let mut record = ledger::own(&account, Outcome::Failed, &error);
                record.response = agent::response::of_partial(&heard.text);
                let result = agent::response::partial_result(&self.plan.history, &heard.text);
                (record, Next::Final { state: JobState::Failed, result, error: ledger::json(&error) })
            }
        };
        let written = Written {
            send: ledger::cut_send(span),
            evidence: None,
            refusal: None,
            answered: !told && span.first_byte_ms.is_some(),
        };
        self.end(record, next, Some(written)).await;
    }

    /// The drain's time was over before the next send began: back it goes, whatever its delivery.
    pub(super) async fn end_unsent(&mut self) {
        match self.last.take() {
            None => give_back(&self.shared, &self.turn).await,
            // Sends that were replaced before are on record, so this execution needs an end of its own.
            Some(failure) => {
                let now_ms = self.shared.clock.now_ms();
                self.put_back(&failure, now_ms, None).await;
            }
        }
    }

    /// This machine could not even open a connection: nothing was sent, and it is nobody's fault but ours.
    pub(super) async fn end_exhausted(&mut self, ending: &Ending, span: &Span) {
        if self.shared.aside.pause(span.ended_ms) {
            tracing::warn!("this machine is out of files or memory; turns go back unsent and claims pause");
        }
        if span.n == 1 {
            return give_back(&self.shared, &self.turn).await;
        }
        // Sends that were replaced before are on record, so this execution needs an end of its own.
        let failure = self.read(ending, span);
        let written =
            Written { send: ledger::failed_send(span, &failure), evidence: None, refusal: None, answered: false };
        self.put_back(&failure, self.shared.aside.paused_until_ms(), Some(written)).await;
    }

    /// The deadline passed while nothing was on the wire: the last failure met stands, else our own code.
    pub(super) async fn end_overdue(&mut self, last: Option<&Failure>) {
        let account = self.account(self.shared.clock.now_ms());
        let (record, error) = if let Some(failure) = last {
            let document = failure.document();
            (ledger::failed(&account, Outcome::Failed, failure, Decision::Fail), document)
        } else {
            let document = ErrorDocument::own(codes::DEADLINE_EXCEEDED, "the job's deadline passed");
            (ledger::own(&account, Outcome::Failed, &document), document)
        };
        let result = agent::response::partial_result(&self.plan.history, "");
        self.end(record, Next::Final { state: JobState::Failed, result, error: ledger::json(&error) }, None).await;
    }

    pub(super) async fn end(&self, record: TurnRecord, next: Next, written: Option<Written>) {
        let mut completion = completion(&self.shared, &self.turn, record, next);
        completion.probe = self.grant.probe.map(|probe| probe.hold_id);
        if let Some(written) = written {
            completion.send = Some(written.send);
            completion.evidence = written.evidence;
            completion.refusal = written.refusal;
            completion.answered = written.answered;
        }
        hand_over(&self.shared, completion).await;
    }

    pub(super) fn step(&self, ended: &agent::Ended<'_>, now_ms: i64) -> Next {
        match agent::next_step(&self.plan.spec, &self.plan.history, ended, self.turn.seq, self.turn.repairs, now_ms) {
            Step::Final { state, result, error } => Next::Final { state, result, error },
            Step::FinalUnlessTold { result } => Next::FinalUnlessTold { result },
            Step::Turn { due_ms, repairs, inbox } => Next::Turn { due_ms, repairs, inbox },
        }
    }
}

pub(super) fn completion<S: Store>(
    shared: &Shared<S>,
    turn: &ClaimedTurn,
    record: TurnRecord,
    next: Next,
) -> Completion {
    Completion {
        worker: shared.id,
        job_id: turn.job_id,
        fence: turn.fence,
        now_ms: shared.clock.now_ms(),
        record,
        send: None,
        evidence: None,
        refusal: None,
        probe: turn.grant.probe.map(|probe| probe.hold_id),
        answered: false,
        next,
    }
}

pub(super) async fn hand_over<S: Store>(shared: &Shared<S>, completion: Completion) {
    if shared.completions.send(completion).await.is_err() && !shared.lost.is_cancelled() {
        tracing::error!("the end of an execution could not be handed over; the turn will be rescued");
    }
}

pub(super) async fn give_back<S: Store>(shared: &Shared<S>, turn: &ClaimedTurn) {
    loop {
        let now_ms = shared.clock.now_ms();
        match shared.store.give_back(shared.id, vec![(turn.job_id, turn.fence)], now_ms).await {
            Ok(()) => return,
            Err(error) => {
                if shared.store_is_away("a turn could not be given back", &error).await.is_none() {
                    return;
                }
            }
        }
    }
}
