//! What a transaction knows of the scopes it touches: in-flight counts, controlled numbers, open holds, and what befalls
//! them. Loaded at its start and written back at its end by each database; what happens between is here, once, in terms of
//! [`crate::admission`].
//!
//! Pure: no SQL, no clock. In go rows, instants and draws of the store's sequence; out come changed rows and events.

use super::{Fence, Grant, HoldClose, HoldId, JobId, Probe, RefusalRow, SendKey};
use crate::admission::{Flow, Hold, HoldEvent, Standing};
use crate::failure::LimitKind;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// A scope as it stands inside a transaction.
#[derive(Clone, Debug)]
pub(super) struct ScopeState {
    pub scope_id: i64,
    /// The whole account's scope; `None`: this is it.
    pub account_id: Option<i64>,
    pub flow: Flow,
    pub in_flight: i64,
    pub barren: u32,
    pub changed: bool,
}

/// The turn that has the probe right: a job under a fence, in the hand of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub worker_no: i64,
    pub job_id: JobId,
    pub fence: Fence,
}

/// An open hold, or one that this transaction ends, with where its end was read.
#[derive(Clone, Debug)]
pub(super) struct HoldState {
    pub id: HoldId,
    pub scope_id: i64,
    pub hold: Hold<Holder>,
    pub cause: String,
    pub kind: Option<LimitKind>,
    pub opened_ms: i64,
    pub source: String,
    pub raw: Option<String>,
    pub refusal: Option<SendKey>,
    pub extended: u32,
    pub probe_since_ms: Option<i64>,
    /// When, and how: `answered` or `released`.
    pub ended: Option<(i64, &'static str)>,
    pub changed: bool,
}

/// Something that befell a hold.
#[derive(Clone, Debug)]
pub(super) struct Happened {
    pub hold_id: HoldId,
    pub at_ms: i64,
    pub event: &'static str,
    pub until_ms: Option<i64>,
    pub barren: u32,
    pub key: Option<SendKey>,
    pub by: Option<String>,
    pub reason: Option<String>,
}

/// A refusal of a send that was on the wire when the hold was dated, and that moved nothing: it is counted apart.
const CONCURRENT: &str = "concurrent_refusal";

/// The cause of a hold that somebody dated by hand, and where its end was read.
const MANUAL: &str = "manual";
const OPERATOR: &str = "operator";

/// A turn in a worker's hand, as far as admission is concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct InHand {
    pub scope_id: i64,
    pub worker_no: i64,
    pub job_id: JobId,
    pub fence: Fence,
    /// The draw of its latest permit.
    pub permit_no: i64,
    pub in_flight: bool,
}

impl InHand {
    fn holder(&self) -> Holder {
        Holder { worker_no: self.worker_no, job_id: self.job_id, fence: self.fence }
    }
}

/// May a send start now?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    /// One, as the probe of a hold whose end has come.
    Probe,
    /// A hold stands until then; `None`: until somebody lifts it.
    Closed {
        until_ms: Option<i64>,
    },
    /// A probe is out, or as many are in flight as may be.
    Full,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub scopes: BTreeMap<i64, ScopeState>,
    /// By scope: its open hold.
    pub holds: BTreeMap<i64, HoldState>,
    /// Holds that this transaction ended.
    pub ended: Vec<HoldState>,
    pub events: Vec<Happened>,
}

impl Ledger {
    /// The scope and its account's.
    fn pair(&self, scope_id: i64) -> impl Iterator<Item = i64> + use<> {
        std::iter::once(scope_id).chain(self.scopes.get(&scope_id).and_then(|scope| scope.account_id))
    }

    fn room(&self, scope: &ScopeState, now_ms: i64) -> i64 {
        match self.holds.get(&scope.scope_id) {
            Some(held) => held.hold.room(&scope.flow, scope.in_flight, now_ms),
            None => scope.flow.room(scope.in_flight).unwrap_or(i64::MAX),
        }
    }

    /// How many sends may start now in each scope, its account's room not yet considered.
    pub fn rooms(&self, now_ms: i64) -> BTreeMap<i64, i64> {
        self.scopes.iter().map(|(id, scope)| (*id, self.room(scope, now_ms))).collect()
    }

    pub fn gate(&self, scope_id: i64, now_ms: i64) -> Gate {
        let mut gate = Gate::Open;
        for id in self.pair(scope_id) {
            let Some(scope) = self.scopes.get(&id) else { return Gate::Full };
            let one = match self.holds.get(&id).map(|held| held.hold.standing(now_ms)) {
                Some(Standing::Closed { until_ms }) => Gate::Closed { until_ms },
                _ if self.room(scope, now_ms) < 1 => Gate::Full,
                Some(Standing::Due | Standing::Probed) => Gate::Probe,
                None => Gate::Open,
            };
            gate = stricter(gate, one);
        }
        gate
    }

    /// Holds whose probe is due, by scope, with the instant since when.
    pub fn due(&self, now_ms: i64) -> Vec<(i64, i64)> {
        self.holds
            .values()
            .filter(|held| held.hold.standing(now_ms) == Standing::Due)
            .filter_map(|held| Some((held.scope_id, held.hold.until_ms?)))
            .collect()
    }

    /// Commits a permit for which [`Ledger::gate`] was open, or a probe's.
    pub fn take(&mut self, turn: InHand, now_ms: i64) -> Grant {
        let mut grant = Grant { permit_ms: now_ms, probe: None, ramping: false, barren: 0 };
        for id in self.pair(turn.scope_id) {
            if let Some(scope) = self.scopes.get_mut(&id) {
                scope.in_flight += 1;
                scope.changed = true;
                grant.ramping |= scope.flow.may_grow();
                if id == turn.scope_id {
                    grant.barren = scope.barren;
                }
            }
            if let Some(held) = self.holds.get_mut(&id)
                && let Some(event) = held.hold.start_probe(turn.holder(), now_ms)
            {
                held.probe_since_ms = Some(now_ms);
                held.changed = true;
                later_promise(&mut grant, held);
                self.events.push(happened(held, now_ms, event.as_str(), None));
            }
        }
        grant
    }

    /// The permit of a turn that has the probe right already; `None`: it has none, or something has come over it.
    pub fn probing(&self, turn: InHand, now_ms: i64) -> Option<Grant> {
        if !turn.in_flight {
            return None;
        }
        let mut grant = Grant { permit_ms: now_ms, probe: None, ramping: true, barren: 0 };
        for id in self.pair(turn.scope_id) {
            let Some(held) = self.holds.get(&id) else { continue };
            if held.hold.probe != Some(turn.holder()) || held.hold.standing(now_ms) != Standing::Probed {
                return None;
            }
            later_promise(&mut grant, held);
        }
        grant.probe.map(|_| grant)
    }

    /// The permit of a turn ends: its send is over, or never was.
    pub fn give_back(&mut self, turn: InHand) {
        if !turn.in_flight {
            return;
        }
        for id in self.pair(turn.scope_id) {
            if let Some(scope) = self.scopes.get_mut(&id) {
                scope.in_flight -= 1;
                scope.changed = true;
            }
        }
    }

    /// The probe right goes back, untested; another probe is due at `next_ms`, which never shortens the hold.
    pub fn return_probe(&mut self, turn: InHand, next_ms: Option<i64>, now_ms: i64) {
        for id in self.pair(turn.scope_id) {
            let Some(held) = self.holds.get_mut(&id) else { continue };
            if let Some(event) = held.hold.return_probe(turn.holder(), next_ms) {
                held.probe_since_ms = None;
                held.changed = true;
                self.events.push(happened(held, now_ms, event.as_str(), None));
            }
        }
    }

    /// The send, still in flight, was answered: what its permit came after is lifted, and the controlled numbers grow.
    pub fn answered(&mut self, turn: InHand, now_ms: i64) {
        for id in self.pair(turn.scope_id) {
            let Some(scope) = self.scopes.get_mut(&id) else { continue };
            if let Some(held) = self.holds.get(&id) {
                if !held.hold.is_lifted_by(turn.permit_no) {
                    continue;
                }
                scope.barren = 0;
                scope.changed = true;
                self.end(id, now_ms, "answered", HoldEvent::Reopened, None);
            }
            if let Some(scope) = self.scopes.get_mut(&id) {
                scope.changed |= scope.flow.answered(scope.in_flight);
            }
        }
        // A probe whose hold was dated again meanwhile has nothing to say for it.
        self.return_probe(turn, None, now_ms);
    }

    /// A refusal holds its scope. `n` is the send's number, `draw` a fresh number of the sequence.
    pub fn refused(&mut self, turn: InHand, n: u32, refusal: &RefusalRow, scope_id: i64, draw: i64, now_ms: i64) {
        let key = SendKey { job_id: turn.job_id, fence: turn.fence, n };
        let Some(scope) = self.scopes.get_mut(&scope_id) else { return };
        scope.changed = true;
        if let Some(held) = self.holds.get_mut(&scope_id) {
            held.changed = true;
            let events = held.hold.refused(turn.holder(), turn.permit_no, Some(refusal.until_ms), draw);
            if events.contains(&HoldEvent::Extended) {
                held.dated_by(refusal, key);
                held.extended = held.extended.saturating_add(1);
            }
            if held.hold.probe.is_none() {
                held.probe_since_ms = None;
            }
            scope.barren = scope.barren.max(held.hold.barren);
            for event in &events {
                self.events.push(happened(held, now_ms, event.as_str(), Some(key)));
            }
            if !events.contains(&HoldEvent::RefusedAgain) {
                self.events.push(happened(held, now_ms, CONCURRENT, Some(key)));
            }
        } else {
            scope.flow.cut(scope.in_flight);
            let (hold, event) = Hold::open(Some(refusal.until_ms), scope.barren, draw);
            let mut held = HoldState::opened(scope_id, hold, now_ms);
            held.dated_by(refusal, key);
            self.events.push(happened(&held, now_ms, event.as_str(), Some(key)));
            self.holds.insert(scope_id, held);
        }
        // Where it was the account that refused, the model's hold has not been tested.
        self.return_probe(turn, None, now_ms);
    }

    /// Somebody lifts a hold.
    pub fn release(&mut self, scope_id: i64, by: String, reason: Option<String>, now_ms: i64) {
        if let Some(scope) = self.scopes.get_mut(&scope_id) {
            scope.barren = 0;
            scope.changed = true;
        }
        self.end(scope_id, now_ms, "released", HoldEvent::Released, Some((by, reason)));
    }

    /// Somebody closes a scope until an instant, or (`None`) until it is released. The word of a hand goes beyond what
    /// was read: it shortens and lengthens. No answer on the wire lifts it. A hold opened by hand is left as any: by one
    /// probe, and a ramp.
    pub fn close(&mut self, scope_id: i64, close: &HoldClose, draw: i64) -> HoldId {
        let held = match self.holds.entry(scope_id) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(place) => {
                let mut barren = 0;
                if let Some(scope) = self.scopes.get_mut(&scope_id) {
                    scope.flow.cut(scope.in_flight);
                    scope.changed = true;
                    barren = scope.barren;
                }
                let (hold, _) = Hold::open(close.until_ms, barren, draw);
                place.insert(HoldState::opened(scope_id, hold, close.now_ms))
            }
        };
        let event = held.hold.close(close.until_ms, draw);
        held.changed = true;
        MANUAL.clone_into(&mut held.cause);
        OPERATOR.clone_into(&mut held.source);
        (held.kind, held.raw, held.refusal) = (None, None, None);
        self.events.push(Happened {
            by: Some(close.by.clone()),
            reason: close.reason.clone(),
            ..happened(held, close.now_ms, event.as_str(), None)
        });
        held.id
    }

    fn end(
        &mut self,
        scope_id: i64,
        now_ms: i64,
        end: &'static str,
        event: HoldEvent,
        who: Option<(String, Option<String>)>,
    ) {
        let Some(mut held) = self.holds.remove(&scope_id) else { return };
        held.ended = Some((now_ms, end));
        held.hold.probe = None;
        held.probe_since_ms = None;
        held.changed = true;
        let mut happened = happened(&held, now_ms, event.as_str(), None);
        if let Some((by, reason)) = who {
            happened.by = Some(by);
            happened.reason = reason;
        }
        self.events.push(happened);
        self.ended.push(held);
    }
}

impl HoldState {
    /// As it stands before anybody said where its end was read.
    fn opened(scope_id: i64, hold: Hold<Holder>, now_ms: i64) -> Self {
        Self {
            id: HoldId::fresh(),
            scope_id,
            hold,
            cause: String::new(),
            kind: None,
            opened_ms: now_ms,
            source: String::new(),
            raw: None,
            refusal: None,
            extended: 0,
            probe_since_ms: None,
            ended: None,
            changed: true,
        }
    }

    fn dated_by(&mut self, refusal: &RefusalRow, key: SendKey) {
        self.cause.clone_from(&refusal.cause);
        self.kind = refusal.kind;
        self.source.clone_from(&refusal.source);
        self.raw.clone_from(&refusal.raw);
        self.refusal = Some(key);
    }
}

/// A closed gate says more than a full one, and that more than a probe's; of two closed ones, the later end does.
fn stricter(one: Gate, other: Gate) -> Gate {
    match (one, other) {
        (Gate::Closed { until_ms: a }, Gate::Closed { until_ms: b }) => {
            Gate::Closed { until_ms: a.zip(b).map(|(a, b)| a.max(b)) }
        }
        (closed @ Gate::Closed { .. }, _) | (_, closed @ Gate::Closed { .. }) => closed,
        (Gate::Full, _) | (_, Gate::Full) => Gate::Full,
        (Gate::Probe, _) | (_, Gate::Probe) => Gate::Probe,
        (Gate::Open, Gate::Open) => Gate::Open,
    }
}

/// Of two holds that are probed together, the later promise is the one that the send tests.
fn later_promise(grant: &mut Grant, held: &HoldState) {
    let Some(resume_ms) = held.hold.until_ms else { return };
    if grant.probe.is_none_or(|other| resume_ms > other.resume_ms) {
        grant.probe = Some(Probe { hold_id: held.id, tests: held.refusal, resume_ms });
        grant.barren = held.hold.barren;
    }
}

fn happened(held: &HoldState, at_ms: i64, event: &'static str, key: Option<SendKey>) -> Happened {
    Happened {
        hold_id: held.id,
        at_ms,
        event,
        until_ms: held.hold.until_ms,
        barren: held.hold.barren,
        key,
        by: None,
        reason: None,
    }
}
