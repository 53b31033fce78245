//! What a transaction knows of the scopes it touches: in-flight counts, controlled numbers, open holds, and what befalls
//! them. Loaded at its start and written back at its end by each database; the arithmetic between is here, once.
//!
//! Pure: no SQL, no clock. In go rows, instants and draws of the store's sequence; out come changed rows and events.
//! A draw orders permits against holds exactly, where two instants of one millisecond could not.

use super::flow::{self, FlowState};
use super::{Fence, Grant, HoldId, JobId, Probe, RefusalRow, SendKey};
use crate::failure::LimitKind;
use std::collections::BTreeMap;

/// A scope as it stands inside a transaction.
#[derive(Clone, Debug)]
pub(super) struct ScopeState {
    pub scope_id: i64,
    /// The whole account's scope; `None`: this is it.
    pub account_id: Option<i64>,
    pub flow: FlowState,
    pub in_flight: i64,
    pub barren: u32,
    pub changed: bool,
}

/// The turn that has the probe right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub worker_no: i64,
    pub job_id: JobId,
    pub fence: Fence,
    pub since_ms: i64,
}

/// An open hold, or one that this transaction ends.
#[derive(Clone, Debug)]
pub(super) struct HoldState {
    pub id: HoldId,
    pub scope_id: i64,
    pub cause: String,
    pub kind: Option<LimitKind>,
    pub opened_ms: i64,
    /// Permits drawn before this lift nothing, and their refusals are concurrent.
    pub dated_no: i64,
    pub until_ms: Option<i64>,
    pub source: String,
    pub raw: Option<String>,
    pub refusal: Option<SendKey>,
    pub extended: u32,
    pub barren: u32,
    pub probe: Option<Holder>,
    /// When, and how: `answered` or `released`.
    pub ended: Option<(i64, &'static str)>,
    pub changed: bool,
}

/// Something that befell a hold.
#[derive(Clone, Debug)]
pub(super) struct HoldEvent {
    pub hold_id: HoldId,
    pub at_ms: i64,
    pub event: &'static str,
    pub until_ms: Option<i64>,
    pub barren: u32,
    pub key: Option<SendKey>,
    pub by: Option<String>,
    pub reason: Option<String>,
}

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

/// May a send start now?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    /// One, as the probe of a hold whose end has come.
    Probe,
    /// A hold stands until then.
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
    pub events: Vec<HoldEvent>,
}

impl Ledger {
    /// The scope and its account's.
    fn pair(&self, scope_id: i64) -> [Option<i64>; 2] {
        [Some(scope_id), self.scopes.get(&scope_id).and_then(|scope| scope.account_id)]
    }

    pub fn gate(&self, scope_id: i64, now_ms: i64) -> Gate {
        let mut room = i64::MAX;
        let mut due = false;
        let mut closed: Option<Option<i64>> = None;
        let mut probed = false;
        for id in self.pair(scope_id).into_iter().flatten() {
            let Some(scope) = self.scopes.get(&id) else { return Gate::Full };
            let limit = match self.holds.get(&id) {
                None => scope.flow.limit,
                Some(hold) => {
                    match hold.until_ms {
                        None => closed = Some(None),
                        Some(until_ms) if until_ms > now_ms => {
                            closed = match closed {
                                Some(None) => Some(None),
                                Some(Some(other_ms)) => Some(Some(until_ms.max(other_ms))),
                                None => Some(Some(until_ms)),
                            };
                        }
                        Some(_) => {
                            probed |= hold.probe.is_some();
                            due = true;
                        }
                    }
                    // A probe does not wait for sends that were on the wire when the hold opened, but a limit that
                    // the operator set is a limit.
                    scope.flow.max
                }
            };
            if let Some(limit) = limit {
                room = room.min(limit.saturating_sub(scope.in_flight));
            }
        }
        match closed {
            Some(until_ms) => Gate::Closed { until_ms },
            None if probed || room < 1 => Gate::Full,
            None if due => Gate::Probe,
            None => Gate::Open,
        }
    }

    /// How many sends may start now in each scope, its account's room not yet considered: 0 behind a hold, 1 where a
    /// probe is due.
    pub fn rooms(&self, now_ms: i64) -> BTreeMap<i64, i64> {
        let room = |scope: &ScopeState| match self.holds.get(&scope.scope_id) {
            None => scope.flow.limit.map_or(i64::MAX, |limit| limit.saturating_sub(scope.in_flight)),
            Some(hold) if hold.probe.is_some() || hold.until_ms.is_none_or(|until_ms| until_ms > now_ms) => 0,
            Some(_) => scope.flow.max.map_or(1, |max| max.saturating_sub(scope.in_flight).min(1)),
        };
        self.scopes.iter().map(|(id, scope)| (*id, room(scope).max(0))).collect()
    }

    /// Holds whose probe is due, by scope, with the instant since when.
    pub fn due(&self, now_ms: i64) -> Vec<(i64, i64)> {
        self.holds
            .values()
            .filter(|hold| hold.probe.is_none())
            .filter_map(|hold| Some((hold.scope_id, hold.until_ms.filter(|until_ms| *until_ms <= now_ms)?)))
            .collect()
    }

    /// Commits a permit for which [`Ledger::gate`] had room.
    pub fn take(&mut self, turn: InHand, now_ms: i64) -> Grant {
        let mut grant = Grant { permit_ms: now_ms, probe: None, ramping: false, barren: 0 };
        for id in self.pair(turn.scope_id).into_iter().flatten() {
            if let Some(scope) = self.scopes.get_mut(&id) {
                scope.in_flight += 1;
                scope.changed = true;
                grant.ramping |= flow::may_grow(&scope.flow);
                if id == turn.scope_id {
                    grant.barren = scope.barren;
                }
            }
            if let Some(hold) = self.holds.get_mut(&id) {
                hold.probe = Some(Holder {
                    worker_no: turn.worker_no,
                    job_id: turn.job_id,
                    fence: turn.fence,
                    since_ms: now_ms,
                });
                hold.changed = true;
                let resume_ms = hold.until_ms.unwrap_or(now_ms);
                // Of two holds that end together, the later promise is the one this send tests.
                if grant.probe.is_none_or(|other| resume_ms > other.resume_ms) {
                    grant.probe = Some(Probe { hold_id: hold.id, tests: hold.refusal, resume_ms });
                    grant.barren = hold.barren;
                }
                self.events.push(event(hold, now_ms, "probe", None));
            }
        }
        grant
    }

    /// The permit of a turn that has the probe right already; `None`: it has none.
    pub fn probing(&self, turn: InHand, now_ms: i64) -> Option<Grant> {
        if !turn.in_flight {
            return None;
        }
        let mut grant: Option<Grant> = None;
        for id in self.pair(turn.scope_id).into_iter().flatten() {
            let Some(hold) = self.holds.get(&id) else { continue };
            if hold.probe.is_none_or(|holder| holder.job_id != turn.job_id || holder.fence != turn.fence) {
                // Another hold has come over it.
                return None;
            }
            let resume_ms = hold.until_ms.filter(|until_ms| *until_ms <= now_ms)?;
            if grant.and_then(|grant| grant.probe).is_none_or(|other| resume_ms > other.resume_ms) {
                let probe = Probe { hold_id: hold.id, tests: hold.refusal, resume_ms };
                grant = Some(Grant { permit_ms: now_ms, probe: Some(probe), ramping: true, barren: hold.barren });
            }
        }
        grant
    }

    /// The permit of a turn ends: its send is over, or never was.
    pub fn give_back(&mut self, turn: InHand) {
        if !turn.in_flight {
            return;
        }
        for id in self.pair(turn.scope_id).into_iter().flatten() {
            if let Some(scope) = self.scopes.get_mut(&id) {
                scope.in_flight -= 1;
                scope.changed = true;
            }
        }
    }

    /// The probe right goes back, untested; another probe is due at `next_ms`, which never shortens the hold.
    pub fn drop_probe(&mut self, turn: InHand, next_ms: Option<i64>, now_ms: i64) {
        for id in self.pair(turn.scope_id).into_iter().flatten() {
            let Some(hold) = self.holds.get_mut(&id) else { continue };
            if hold.probe.is_none_or(|holder| holder.job_id != turn.job_id || holder.fence != turn.fence) {
                continue;
            }
            hold.probe = None;
            hold.changed = true;
            if let (Some(until_ms), Some(next_ms)) = (hold.until_ms, next_ms) {
                hold.until_ms = Some(until_ms.max(next_ms));
            }
            self.events.push(event(hold, now_ms, "probe_back", None));
        }
    }

    /// The send was answered: what its permit came after is lifted, and the controlled numbers grow.
    pub fn answered(&mut self, turn: InHand, now_ms: i64) {
        for id in self.pair(turn.scope_id).into_iter().flatten() {
            let Some(scope) = self.scopes.get_mut(&id) else { continue };
            if let Some(hold) = self.holds.get(&id) {
                if turn.permit_no <= hold.dated_no {
                    continue;
                }
                scope.barren = 0;
                scope.changed = true;
                self.end(id, now_ms, "answered", "reopened", None);
            }
            if let Some(scope) = self.scopes.get_mut(&id) {
                scope.changed |= flow::answered(&mut scope.flow);
            }
        }
        // A probe that a hold has outlived by being dated again has nothing to say for it.
        self.drop_probe(turn, None, now_ms);
    }

    /// The probe has been silent for long: another send may start; what the silent one brings still counts.
    pub fn silent(&mut self, turn: InHand, now_ms: i64) {
        self.drop_probe(turn, None, now_ms);
    }

    /// A refusal holds its scope. `draw` is a fresh number of the sequence.
    pub fn refused(&mut self, turn: InHand, n: u32, refusal: &RefusalRow, scope_id: i64, draw: i64, now_ms: i64) {
        let key = SendKey { job_id: turn.job_id, fence: turn.fence, n };
        let Some(scope) = self.scopes.get_mut(&scope_id) else { return };
        scope.changed = true;
        if let Some(hold) = self.holds.get_mut(&scope_id) {
            hold.changed = true;
            let later = hold.until_ms.is_some_and(|until_ms| refusal.until_ms > until_ms);
            if later {
                hold.until_ms = Some(refusal.until_ms);
                hold.source.clone_from(&refusal.source);
                hold.raw.clone_from(&refusal.raw);
                hold.refusal = Some(key);
                hold.cause.clone_from(&refusal.cause);
                hold.kind = refusal.kind;
                hold.extended = hold.extended.saturating_add(1);
            }
            if turn.permit_no <= hold.dated_no {
                self.events.push(event(hold, now_ms, "concurrent", Some(key)));
            } else {
                hold.dated_no = draw;
                hold.barren = hold.barren.saturating_add(1);
                scope.barren = hold.barren;
                self.events.push(event(hold, now_ms, "refused_again", Some(key)));
            }
        } else {
            flow::cut(&mut scope.flow, scope.in_flight);
            let hold = HoldState {
                id: HoldId::fresh(),
                scope_id,
                cause: refusal.cause.clone(),
                kind: refusal.kind,
                opened_ms: now_ms,
                dated_no: draw,
                until_ms: Some(refusal.until_ms),
                source: refusal.source.clone(),
                raw: refusal.raw.clone(),
                refusal: Some(key),
                extended: 0,
                barren: scope.barren,
                probe: None,
                ended: None,
                changed: true,
            };
            self.events.push(event(&hold, now_ms, "opened", Some(key)));
            self.holds.insert(scope_id, hold);
        }
        self.drop_probe(turn, None, now_ms);
    }

    /// Somebody lifts a hold.
    pub fn release(&mut self, scope_id: i64, by: String, reason: Option<String>, now_ms: i64) {
        if let Some(scope) = self.scopes.get_mut(&scope_id) {
            scope.barren = 0;
            scope.changed = true;
        }
        self.end(scope_id, now_ms, "released", "released", Some((by, reason)));
    }

    fn end(
        &mut self,
        scope_id: i64,
        now_ms: i64,
        end: &'static str,
        name: &'static str,
        who: Option<(String, Option<String>)>,
    ) {
        let Some(mut hold) = self.holds.remove(&scope_id) else { return };
        hold.ended = Some((now_ms, end));
        hold.probe = None;
        hold.changed = true;
        let mut happened = event(&hold, now_ms, name, None);
        if let Some((by, reason)) = who {
            happened.by = Some(by);
            happened.reason = reason;
        }
        self.events.push(happened);
        self.ended.push(hold);
    }
}

fn event(hold: &HoldState, at_ms: i64, name: &'static str, key: Option<SendKey>) -> HoldEvent {
    HoldEvent {
        hold_id: hold.id,
        at_ms,
        event: name,
        until_ms: hold.until_ms,
        barren: hold.barren,
        key,
        by: None,
        reason: None,
    }
}
