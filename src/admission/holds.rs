//! A hold's life: opened by a refusal, dated again by later ones, tested by one probe at a time, lifted by an answer or
//! by somebody's hand. Never shortened by a refusal.
//!
//! Draws of the store's sequence order permits against refusals exactly, where two instants of one millisecond could
//! not: what was on the wire when a hold was dated neither lifts it nor counts as a refusal of its probe.

use super::Flow;

/// An open hold. `P` names the holder of the probe right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold<P> {
    /// The resume instant. `None`: parked, until somebody lifts it.
    pub until_ms: Option<i64>,
    /// The draw of the refusal that dated it last.
    pub dated_no: i64,
    /// Consecutive refusals at or after a resume instant.
    pub barren: u32,
    pub probe: Option<P>,
}

/// What a hold says to who wants to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It stands until then; `None`: until it is lifted.
    Closed { until_ms: Option<i64> },
    /// Its instant has come, and somebody probes it.
    Probed,
    /// Its instant has come: one may probe it.
    Due,
}

/// What befell a hold, by the name it is stored under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldEvent {
    Opened,
    /// A refusal moved its end.
    Extended,
    /// Its probe was refused.
    RefusedAgain,
    ProbeStarted,
    /// The probe right came back untested.
    ProbeReturned,
    /// An answer lifted it.
    Reopened,
    Released,
    /// Somebody dated it.
    ClosedByHand,
}

impl HoldEvent {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Extended => "extended",
            Self::RefusedAgain => "refused_again",
            Self::ProbeStarted => "probe_started",
            Self::ProbeReturned => "probe_returned",
            Self::Reopened => "reopened",
            Self::Released => "released",
            Self::ClosedByHand => "closed_by_hand",
        }
    }
}

impl<P: Copy + PartialEq> Hold<P> {
    /// A refusal opens a hold. `barren` is the scope's; `draw` is fresh.
    #[must_use]
    pub fn open(until_ms: Option<i64>, barren: u32, draw: i64) -> (Self, HoldEvent) {
        (Self { until_ms, dated_no: draw, barren, probe: None }, HoldEvent::Opened)
    }

    #[must_use]
    pub fn standing(&self, now_ms: i64) -> Standing {
        match self.until_ms {
            Some(until_ms) if until_ms <= now_ms => {
                if self.probe.is_some() {
                    Standing::Probed
                } else {
                    Standing::Due
                }
            }
            until_ms => Standing::Closed { until_ms },
        }
    }

    /// How many sends may start: none while it stands or is probed, else one. The probe does not wait for what was on
    /// the wire when the hold opened, but a limit that the operator set is a limit.
    #[must_use]
    pub fn room(&self, flow: &Flow, in_flight: i64, now_ms: i64) -> i64 {
        match self.standing(now_ms) {
            Standing::Closed { .. } | Standing::Probed => 0,
            Standing::Due => flow.max.map_or(1, |max| max.saturating_sub(in_flight).clamp(0, 1)),
        }
    }

    /// Gives the probe right to `who`; `None`: it is not to be had.
    pub fn start_probe(&mut self, who: P, now_ms: i64) -> Option<HoldEvent> {
        match self.standing(now_ms) {
            Standing::Due => {
                self.probe = Some(who);
                Some(HoldEvent::ProbeStarted)
            }
            Standing::Closed { .. } | Standing::Probed => None,
        }
    }

    /// The probe right comes back untested (a fault, a cancel, a drain, a lapsed lease, a long silence); the next probe is
    /// due at `next_ms`, which never shortens the hold.
    pub fn return_probe(&mut self, who: P, next_ms: Option<i64>) -> Option<HoldEvent> {
        if self.probe != Some(who) {
            return None;
        }
        self.probe = None;
        if let (Some(until_ms), Some(next_ms)) = (self.until_ms, next_ms) {
            self.until_ms = Some(until_ms.max(next_ms));
        }
        Some(HoldEvent::ProbeReturned)
    }

    /// Another refusal in the scope, of a send whose permit was drawn as `permit_no`. One that was on the wire when the
    /// hold was dated may move its end, but says nothing about its probe.
    pub fn refused(&mut self, who: P, permit_no: i64, until_ms: Option<i64>, draw: i64) -> Vec<HoldEvent> {
        let mut events = Vec::new();
        // Parked lasts longer than any instant.
        let later = match (self.until_ms, until_ms) {
            (Some(old_ms), Some(new_ms)) => new_ms > old_ms,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if later {
            self.until_ms = until_ms;
            events.push(HoldEvent::Extended);
        }
        if permit_no > self.dated_no {
            self.dated_no = draw;
            self.barren = self.barren.saturating_add(1);
            events.push(HoldEvent::RefusedAgain);
        }
        // Whoever was refused probes no more.
        if self.probe == Some(who) {
            self.probe = None;
        }
        events
    }

    /// Whether an answer to a send whose permit was drawn as `permit_no` lifts it ([`HoldEvent::Reopened`]): only one
    /// that was permitted after the refusal.
    #[must_use]
    pub fn is_lifted_by(&self, permit_no: i64) -> bool {
        permit_no > self.dated_no
    }

    /// Somebody dates it by hand, to an earlier end or a later one, or to none. What was permitted before `draw`, its
    /// probe included, lifts nothing; a probe that is out keeps its right until it is back, so that there is one.
    pub fn close(&mut self, until_ms: Option<i64>, draw: i64) -> HoldEvent {
        self.until_ms = until_ms;
        self.dated_no = draw;
        HoldEvent::ClosedByHand
    }

    /// A parked scope may be probed once (a changed key, a process start): what its probe meets decides.
    pub fn unpark(&mut self, now_ms: i64) -> Option<HoldEvent> {
        match self.until_ms {
            None => {
                self.until_ms = Some(now_ms);
                Some(HoldEvent::Released)
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hold_is_probed_once_at_its_instant() {
        let (mut hold, event) = Hold::open(Some(100), 0, 5);
        assert_eq!(event.as_str(), "opened");
        assert_eq!(hold.start_probe('a', 99), None);
        assert_eq!(hold.start_probe('a', 100), Some(HoldEvent::ProbeStarted));
        assert_eq!((hold.start_probe('b', 100), hold.standing(100)), (None, Standing::Probed));
        assert_eq!(hold.return_probe('b', Some(500)), None);
        assert_eq!(hold.return_probe('a', Some(50)), Some(HoldEvent::ProbeReturned));
        assert_eq!((hold.until_ms, hold.standing(100)), (Some(100), Standing::Due));
        hold.start_probe('b', 100);
        hold.return_probe('b', Some(850));
        assert_eq!(hold.standing(849), Standing::Closed { until_ms: Some(850) });
    }

    #[test]
    fn what_was_on_the_wire_says_nothing_about_the_probe() {
        let (mut hold, _) = Hold::open(Some(100), 0, 5);
        assert_eq!(hold.refused('a', 4, Some(90), 6), []);
        assert_eq!(hold.refused('a', 4, Some(120), 7), [HoldEvent::Extended]);
        assert_eq!((hold.barren, hold.dated_no, hold.until_ms), (0, 5, Some(120)));
        assert!(!hold.is_lifted_by(5) && hold.is_lifted_by(6));
        hold.start_probe('b', 120);
        assert_eq!(hold.refused('b', 8, Some(110), 9), [HoldEvent::RefusedAgain]);
        assert_eq!((hold.barren, hold.dated_no, hold.until_ms, hold.probe), (1, 9, Some(120), None));
        assert!(!hold.is_lifted_by(8));
    }

    #[test]
    fn a_parked_scope_waits_for_a_hand() {
        let (mut hold, _) = Hold::open(None, 0, 1);
        assert_eq!(hold.standing(i64::MAX), Standing::Closed { until_ms: None });
        assert_eq!(hold.refused('a', 0, Some(500), 2), []);
        assert_eq!(hold.unpark(40), Some(HoldEvent::Released));
        assert_eq!((hold.standing(40), hold.unpark(41)), (Standing::Due, None));
    }

    #[test]
    fn a_probe_obeys_the_operators_limit_alone() {
        let (hold, _) = Hold::<char>::open(Some(10), 0, 1);
        let cut = Flow { limit: Some(1), ..Flow::of_model(None) };
        assert_eq!((hold.room(&cut, 3, 9), hold.room(&cut, 3, 10)), (0, 1));
        assert_eq!(hold.room(&Flow::of_model(Some(3)), 3, 10), 0);
    }

    /// What may happen to a scope, in any order. Numbers choose among what is in flight, and name waits.
    #[derive(Clone, Debug)]
    enum Happens {
        Permit,
        Answer(usize),
        Refusal(usize, i64),
        Fault(usize, i64),
        Killed(usize),
        Silent,
        /// Clocks may step back a little.
        Time(i64),
        Release,
        /// By hand, so many milliseconds from now; `None`: without an end.
        Close(Option<i64>),
    }

    fn happens() -> impl Strategy<Value = Happens> {
        prop_oneof![
            6 => Just(Happens::Permit),
            2 => any::<usize>().prop_map(Happens::Answer),
            // A wrong clock may name a resume in the past.
            4 => (any::<usize>(), -600_000..600_000_i64).prop_map(|(which, wait_ms)| Happens::Refusal(which, wait_ms)),
            2 => (any::<usize>(), 0..8_000_i64).prop_map(|(which, wait_ms)| Happens::Fault(which, wait_ms)),
            1 => any::<usize>().prop_map(Happens::Killed),
            1 => Just(Happens::Silent),
            4 => (-60_000..120_000_i64).prop_map(Happens::Time),
            1 => Just(Happens::Release),
            1 => proptest::option::of(-1_000..300_000_i64).prop_map(Happens::Close),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        /// Contract §10, 1 and 2.
        #[test]
        fn no_permit_between_a_refusal_and_its_resume_and_one_probe_at_a_time(
            story in prop::collection::vec(happens(), 1..120),
        ) {
            let (mut now_ms, mut draw) = (1_000_000_i64, 0_i64);
            let mut hold: Option<Hold<i64>> = None;
            let mut flow = Flow::of_model(Some(4));
            // Permits on the wire, by draw; who probes what; the latest promise that nobody lifted.
            let mut wire: Vec<i64> = Vec::new();
            let mut promised_ms = i64::MIN;
            let mut probing: Option<i64> = None;
            for event in story {
                let until_before = hold.as_ref().and_then(|hold| hold.until_ms);
                let parked_before = hold.as_ref().is_some_and(|hold| hold.until_ms.is_none());
                let (mut lifted, mut by_hand) = (false, false);
                let in_flight = i64::try_from(wire.len()).unwrap();
                let take = |wire: &mut Vec<i64>, which: usize| (!wire.is_empty()).then(|| wire.swap_remove(which % wire.len()));
                match event {
                    Happens::Permit => {
                        let room = match &hold {
                            None => flow.room(in_flight).unwrap_or(1),
                            Some(hold) => hold.room(&flow, in_flight, now_ms),
                        };
                        if room > 0 {
                            draw += 1;
                            prop_assert!(now_ms >= promised_ms, "a permit at {} before {}", now_ms, promised_ms);
                            if let Some(hold) = &mut hold {
                                prop_assert_eq!(probing, None, "two probes");
                                prop_assert_eq!(hold.start_probe(draw, now_ms), Some(HoldEvent::ProbeStarted));
                                probing = Some(draw);
                            }
                            wire.push(draw);
                        }
                    }
                    Happens::Answer(which) => if let Some(permit) = take(&mut wire, which) {
                        if hold.as_ref().is_some_and(|hold| hold.is_lifted_by(permit)) {
                            prop_assert!(until_before.is_some(), "a hold without an end was lifted by an answer");
                            hold = None;
                            lifted = true;
                            promised_ms = i64::MIN;
                            probing = None;
                        }
                        flow.answered(in_flight);
                    },
                    Happens::Refusal(which, wait_ms) => if let Some(permit) = take(&mut wire, which) {
                        draw += 1;
                        let until_ms = now_ms + wait_ms.max(0);
                        match &mut hold {
                            None => {
                                flow.cut(in_flight);
                                hold = Some(Hold::open(Some(until_ms), 0, draw).0);
                            }
                            Some(hold) => {
                                let barren = hold.barren;
                                let events = hold.refused(permit, permit, Some(until_ms), draw);
                                let again = events.contains(&HoldEvent::RefusedAgain);
                                prop_assert_eq!(hold.barren, barren + u32::from(again));
                            }
                        }
                        promised_ms = promised_ms.max(until_ms);
                        probing = probing.filter(|who| *who != permit);
                    },
                    Happens::Fault(which, wait_ms) => if let Some(permit) = take(&mut wire, which) {
                        let back = hold.as_mut().and_then(|hold| hold.return_probe(permit, Some(now_ms + wait_ms)));
                        if back.is_some() {
                            probing = None;
                        }
                    },
                    Happens::Killed(which) => {
                        let back = take(&mut wire, which).zip(hold.as_mut()).and_then(|(permit, hold)| hold.return_probe(permit, None));
                        probing = probing.filter(|_| back.is_none());
                    }
                    Happens::Silent => if let (Some(hold), Some(who)) = (&mut hold, probing) {
                        prop_assert_eq!(hold.return_probe(who, None), Some(HoldEvent::ProbeReturned));
                        probing = None;
                    },
                    Happens::Time(by_ms) => now_ms += by_ms,
                    Happens::Close(wait_ms) => {
                        draw += 1;
                        let until_ms = wait_ms.map(|wait_ms| now_ms + wait_ms);
                        let hold = hold.get_or_insert_with(|| Hold::open(until_ms, 0, draw).0);
                        prop_assert_eq!(hold.close(until_ms, draw), HoldEvent::ClosedByHand);
                        // Its word goes beyond what was promised before, both ways.
                        promised_ms = until_ms.unwrap_or(i64::MAX);
                        by_hand = true;
                    }
                    Happens::Release => {
                        lifted = hold.take().is_some();
                        promised_ms = i64::MIN;
                        probing = None;
                    }
                }
                let until_after = hold.as_ref().and_then(|hold| hold.until_ms);
                if parked_before && !lifted && !by_hand {
                    prop_assert!(hold.as_ref().is_some_and(|hold| hold.until_ms.is_none()), "a hold without an end got one");
                } else if !lifted && !by_hand && until_before.is_some() {
                    prop_assert!(until_after >= until_before, "{until_before:?} fell to {until_after:?}");
                }
                prop_assert_eq!(hold.as_ref().and_then(|hold| hold.probe), probing);
                prop_assert!(flow.limit.is_some_and(|limit| (1..=4).contains(&limit)));
            }
            // From any state with a finite hold: all workers die, time passes, and a probe may go.
            if let Some(mut hold) = hold {
                for permit in wire.drain(..) {
                    hold.return_probe(permit, None);
                }
                if let Some(who) = probing {
                    hold.return_probe(who, None);
                }
                let room = hold.room(&flow, 0, hold.until_ms.unwrap_or(i64::MAX));
                prop_assert_eq!(room, i64::from(hold.until_ms.is_some()));
            }
        }
    }
}
