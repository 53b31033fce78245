//! Limits at work: continuous buckets, fixed windows and calls in flight. Arithmetic on integers; no clock of its own.

use super::scenario::{Anchor, Count, Limit, Shape};

/// What one limit has counted for one scope.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    /// In units of one `per_ms`-th of what is counted, so that a millisecond's refill is a whole number.
    Bucket {
        level: i128,
        read_ms: i64,
    },
    Window {
        starts_ms: i64,
        used: u64,
    },
    InFlight {
        now: u64,
    },
}

/// Why a limit refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It would be taken at this instant, if nothing else came.
    Until(i64),
    /// It is larger than the whole limit.
    Never,
    /// When others end.
    Crowded,
}

impl Meter {
    pub(super) fn new(limit: &Limit, started_ms: i64, now_ms: i64) -> Self {
        let state = match (limit.count, limit.shape) {
            (Count::InFlight, _) => State::InFlight { now: 0 },
            (_, Shape::Bucket { burst }) => {
                State::Bucket { level: i128::from(burst) * i128::from(limit.per_ms), read_ms: now_ms }
            }
            (_, Shape::Window { anchor }) => {
                State::Window { starts_ms: window_start(limit, anchor, started_ms, now_ms), used: 0 }
            }
        };
        Self { state }
    }

    /// Whether `cost` can be had now; nothing is taken.
    pub(super) fn check(&mut self, limit: &Limit, cost: u64, started_ms: i64, now_ms: i64) -> Result<(), Refused> {
        match (&mut self.state, limit.shape) {
            (State::InFlight { now }, _) if *now < limit.size => Ok(()),
            (State::InFlight { .. }, _) => Err(Refused::Crowded),
            (State::Bucket { level, read_ms }, Shape::Bucket { burst }) => {
                let per_ms = i128::from(limit.per_ms);
                let rate = i128::from(limit.size);
                let capacity = i128::from(burst) * per_ms;
                let elapsed_ms = i128::from((now_ms - *read_ms).max(0));
                *level = (*level + rate * elapsed_ms).min(capacity);
                *read_ms = now_ms.max(*read_ms);
                let wanted = i128::from(cost) * per_ms;
                if wanted > capacity {
                    return Err(Refused::Never);
                }
                let missing = wanted - *level;
                if missing <= 0 {
                    return Ok(());
                }
                let wait_ms = (missing + rate - 1) / rate;
                Err(Refused::Until(now_ms.saturating_add(i64::try_from(wait_ms).unwrap_or(i64::MAX))))
            }
            (State::Window { starts_ms, used }, Shape::Window { anchor }) => {
                if now_ms >= starts_ms.saturating_add(limit.per_ms) {
                    *starts_ms = window_start(limit, anchor, started_ms, now_ms);
                    *used = 0;
                }
                if cost > limit.size {
                    return Err(Refused::Never);
                }
                if used.saturating_add(cost) <= limit.size {
                    return Ok(());
                }
                Err(Refused::Until(starts_ms.saturating_add(limit.per_ms)))
            }
            // A meter is made from the limit it is asked about.
            (State::Bucket { .. } | State::Window { .. }, _) => Ok(()),
        }
    }

    /// Takes what [`Meter::check`] allowed.
    pub(super) fn take(&mut self, limit: &Limit, cost: u64) {
        match &mut self.state {
            State::Bucket { level, .. } => *level -= i128::from(cost) * i128::from(limit.per_ms),
            State::Window { used, .. } => *used = used.saturating_add(cost),
            State::InFlight { now } => *now += 1,
        }
    }

    /// A call has ended.
    pub(super) fn leave(&mut self) {
        if let State::InFlight { now } = &mut self.state {
            *now = now.saturating_sub(1);
        }
    }
}

fn window_start(limit: &Limit, anchor: Anchor, started_ms: i64, now_ms: i64) -> i64 {
    let origin_ms = match anchor {
        Anchor::First => return now_ms,
        Anchor::Start => started_ms,
        Anchor::Clock => 0,
    };
    now_ms - (now_ms - origin_ms).rem_euclid(limit.per_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Scenario;

    fn limit(text: &str) -> Limit {
        let text = format!("name = \"t\"\n[[limits]]\nname = \"l\"\n{text}");
        Scenario::parse(&text, "t.toml").unwrap().limits.remove(0)
    }

    fn admit(meter: &mut Meter, limit: &Limit, cost: u64, now_ms: i64) -> Result<(), Refused> {
        meter.check(limit, cost, 0, now_ms)?;
        meter.take(limit, cost);
        Ok(())
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_the_rate_to_the_millisecond() {
        let limit = limit("count = \"requests\"\nlimit = 600\nper = \"1m\"\nburst = 2");
        let mut meter = Meter::new(&limit, 0, 1_000);
        assert_eq!(admit(&mut meter, &limit, 1, 1_000), Ok(()));
        assert_eq!(admit(&mut meter, &limit, 1, 1_000), Ok(()));
        assert_eq!(admit(&mut meter, &limit, 1, 1_001), Err(Refused::Until(1_100)));
        assert_eq!(admit(&mut meter, &limit, 1, 1_099), Err(Refused::Until(1_100)));
        assert_eq!(admit(&mut meter, &limit, 1, 1_100), Ok(()));
        assert_eq!(admit(&mut meter, &limit, 3, 9_000), Err(Refused::Never));
    }

    #[test]
    fn windows_begin_where_their_anchor_says() {
        let mut ends = Vec::new();
        for anchor in ["first", "start", "clock"] {
            let limit = limit(&format!(
                "count = \"tokens\"\nlimit = 10\nper = \"1s\"\nshape = \"window\"\nanchor = \"{anchor}\""
            ));
            let mut meter = Meter::new(&limit, 300, 5_550);
            assert_eq!(meter.check(&limit, 10, 300, 5_550), Ok(()));
            meter.take(&limit, 10);
            ends.push(meter.check(&limit, 1, 300, 5_600));
            assert_eq!(meter.check(&limit, 11, 300, 5_600), Err(Refused::Never));
            assert_eq!(meter.check(&limit, 10, 300, 6_550), Ok(()));
        }
        assert_eq!(ends, [6_550, 6_300, 6_000].map(|at_ms| Err(Refused::Until(at_ms))));
    }

    #[test]
    fn in_flight_counts_what_has_not_ended() {
        let limit = limit("count = \"in_flight\"\nlimit = 1");
        let mut meter = Meter::new(&limit, 0, 0);
        assert_eq!(admit(&mut meter, &limit, 1, 0), Ok(()));
        assert_eq!(admit(&mut meter, &limit, 1, 0), Err(Refused::Crowded));
        meter.leave();
        assert_eq!(admit(&mut meter, &limit, 1, 0), Ok(()));
    }
}
