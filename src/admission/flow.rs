//! The controlled number of a scope: how many sends may be in flight (contract §8).
//!
//! Ramp after a hold, backoff after a refusal of concurrency, the half-open state after an outage and learned limits are
//! all this one number: it falls to one at once and grows by what was answered, fast up to half of what it had been,
//! then by one per round.

/// Where nothing is configured, the number starts here.
pub const START: i64 = 4;

/// No provider takes more from one scope; a bound for arithmetic's sake.
const MOST: i64 = 1_000_000;

/// The number and its state, as plain columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// The operator's limit, ≥ 1. `None`: none.
    pub max: Option<i64>,
    /// The number, ≥ 1. `None`: not limited (an account without a limit that has not been refused).
    pub limit: Option<i64>,
    /// Below this it doubles per round, from here on it grows by one. `None`: it has never been cut.
    pub threshold: Option<i64>,
    /// Answers of the running round. A round is as many answers as the number allows in flight.
    pub answered: i64,
}

impl Flow {
    /// A model's scope that has never sent.
    #[must_use]
    pub fn of_model(max: Option<i64>) -> Self {
        Self { max, limit: Some(max.unwrap_or(START)), threshold: None, answered: 0 }
    }

    /// An account's scope that has never been refused: it limits nothing that is not configured.
    #[must_use]
    pub fn of_account(max: Option<i64>) -> Self {
        Self { max, limit: max, threshold: None, answered: 0 }
    }

    /// Whether answers could make it grow.
    #[must_use]
    pub fn may_grow(&self) -> bool {
        self.limit.is_some_and(|limit| limit < self.most())
    }

    /// How many more sends may start beside `in_flight`. `None`: any number.
    #[must_use]
    pub fn room(&self, in_flight: i64) -> Option<i64> {
        self.limit.map(|limit| limit.saturating_sub(in_flight).max(0))
    }

    /// One more send was answered, with `in_flight` sends out, this one included; whether anything changed.
    ///
    /// An answer counts only while at least half of the number is used: room that nobody needs proves nothing.
    pub fn answered(&mut self, in_flight: i64) -> bool {
        let Some(limit) = self.limit.filter(|_| self.may_grow()) else { return false };
        if in_flight.saturating_mul(2) < limit {
            return false;
        }
        self.answered += 1;
        if self.answered >= limit {
            self.answered = 0;
            let grown = match self.threshold {
                Some(threshold) if limit < threshold => limit.saturating_mul(2).min(threshold),
                Some(_) | None => limit.saturating_add(1),
            };
            self.limit = Some(grown.min(self.most()));
        }
        true
    }

    /// A refusal opened a hold: one at a time again, and back fast up to half of what it was. Once per hold: refusals of
    /// a scope that is held already say nothing new about it.
    pub fn cut(&mut self, in_flight: i64) {
        let was = self.limit.unwrap_or_else(|| in_flight.max(START));
        self.threshold = Some((was / 2).max(1));
        self.limit = Some(1);
        self.answered = 0;
    }

    /// The operator's limit has changed. What was learned below it is kept.
    pub fn configure(&mut self, max: Option<i64>) {
        let was_at_its_limit = self.limit == self.max;
        let never_cut = self.threshold.is_none();
        self.max = max;
        self.limit = match (self.limit, max) {
            (Some(_), Some(max)) if never_cut && was_at_its_limit => Some(max),
            (Some(limit), Some(max)) => Some(limit.min(max)),
            (None, max) => max,
            (limit @ Some(_), None) => limit,
        };
    }

    fn most(&self) -> i64 {
        self.max.unwrap_or(MOST).min(MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Answers, each with the scope full, until the number has changed `times` times.
    fn grown(flow: &mut Flow, times: usize) -> Vec<i64> {
        let mut seen = Vec::new();
        for _ in 0..1_000 {
            if seen.len() == times {
                break;
            }
            let before = flow.limit;
            flow.answered(before.unwrap());
            if flow.limit != before {
                seen.push(flow.limit.unwrap());
            }
        }
        seen
    }

    #[test]
    fn it_starts_where_configured_else_at_four() {
        assert_eq!(Flow::of_model(Some(32)).limit, Some(32));
        assert_eq!(Flow::of_model(None).limit, Some(4));
        assert_eq!(Flow::of_account(None).room(9_999), None);
        assert_eq!(Flow::of_account(Some(8)).room(6), Some(2));
        assert_eq!(Flow::of_account(Some(8)).room(9), Some(0));
    }

    #[test]
    fn a_refusal_cuts_it_to_one_and_it_ramps_to_half_then_by_one() {
        let mut flow = Flow::of_model(Some(18));
        flow.cut(18);
        assert_eq!((flow.limit, flow.threshold), (Some(1), Some(9)));
        assert_eq!(grown(&mut flow, 8), [2, 4, 8, 9, 10, 11, 12, 13]);
        flow.cut(13);
        assert_eq!(grown(&mut flow, 5), [2, 4, 6, 7, 8]);
    }

    #[test]
    fn a_round_is_as_many_answers_as_it_allows() {
        let mut flow = Flow::of_model(None);
        for _ in 0..3 {
            assert!(flow.answered(4));
        }
        assert_eq!((flow.limit, flow.answered), (Some(4), 3));
        flow.answered(4);
        assert_eq!((flow.limit, flow.answered), (Some(5), 0));
    }

    #[test]
    fn it_does_not_grow_unused_or_beyond_the_operators_limit() {
        let mut flow = Flow::of_model(None);
        assert!((0..99).all(|_| !flow.answered(1)));
        assert_eq!(flow.limit, Some(4));
        let mut full = Flow::of_model(Some(3));
        assert!(!full.may_grow() && !full.answered(3));
        let mut open = Flow::of_account(None);
        assert!(!open.may_grow() && !open.answered(50));
    }

    #[test]
    fn an_unlimited_account_is_cut_from_what_it_had_in_flight() {
        let mut flow = Flow::of_account(None);
        flow.cut(40);
        assert_eq!((flow.limit, flow.threshold), (Some(1), Some(20)));
    }

    #[test]
    fn a_changed_limit_keeps_what_was_learned() {
        let mut fresh = Flow::of_model(Some(8));
        fresh.configure(Some(32));
        assert_eq!(fresh.limit, Some(32));
        let mut learned = Flow::of_model(Some(8));
        learned.cut(8);
        learned.configure(Some(32));
        assert_eq!(learned.limit, Some(1));
        let mut lowered = Flow::of_model(Some(8));
        lowered.configure(Some(2));
        assert_eq!(lowered.limit, Some(2));
        // Half of what it was may be more than what is allowed by now.
        let mut ramping = Flow { limit: Some(2), threshold: Some(9), ..Flow::of_model(Some(3)) };
        assert_eq!(grown(&mut ramping, 1), [3]);
        let mut freed = Flow::of_model(Some(8));
        freed.configure(None);
        assert_eq!((freed.limit, freed.may_grow()), (Some(8), true));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_happens_it_stays_within_one_and_the_limit(
            max in prop::option::of(1..40_i64), account in any::<bool>(),
            steps in prop::collection::vec((0..3_u8, 0..50_i64, prop::option::of(1..40_i64)), 0..200),
        ) {
            let mut flow = if account { Flow::of_account(max) } else { Flow::of_model(max) };
            for (step, in_flight, new_max) in steps {
                let before = flow;
                match step {
                    0 => { flow.answered(in_flight); }
                    1 => flow.cut(in_flight),
                    _ => flow.configure(new_max),
                }
                prop_assert!(flow.limit.is_none_or(|limit| limit >= 1));
                prop_assert!(flow.max.is_none_or(|max| flow.limit.is_some_and(|limit| limit <= max)));
                prop_assert!(flow.threshold.is_none_or(|threshold| threshold >= 1));
                if step == 0 {
                    // An answer never lowers it, and at most doubles it.
                    let (was, is) = (before.limit.unwrap_or(0), flow.limit.unwrap_or(0));
                    prop_assert!(is >= was && is <= (was * 2).max(was + 1));
                }
            }
        }
    }
}
