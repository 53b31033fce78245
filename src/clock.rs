//! The one reader of the wall clock.
//!
//! Instants are UTC Unix milliseconds (`i64`, named `*_ms`). Everything that waits for an instant waits here, so that
//! two rules hold everywhere: no sleep exceeds one second without reading the clock again, and a clock that steps back
//! by at most a minute stands still instead (a larger step is taken over, logged, and re-arms every timer, because
//! every waiting future reads the clock again within a second).
//!
//! Tests own time through [`Clock::manual`]; drills give a process a wrong clock through the environment
//! ([`Clock::of_process`]).

use crate::duration::{self, Malformed};
use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// The longest uninterrupted sleep, in milliseconds.
pub const MAX_NAP_MS: i64 = 1_000;
/// The largest step back that is bridged by standing still, in milliseconds.
pub const STAND_STILL_MS: i64 = 60_000;

/// A test aid: how far this process's clock is off, a duration that may have a leading `-` (`1h`, `-1h`). The drills give
/// one worker a wrong clock with it; nobody else has a use for it.
pub const SKEW_VARIABLE: &str = "REPRIEVE_CLOCK_SKEW";

/// What is wrong with the value of [`SKEW_VARIABLE`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{SKEW_VARIABLE} {0}; a leading - is allowed; unset it outside of drills")]
pub struct SkewError(Malformed);

/// A cheap handle to the process's only clock.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Source>);

#[derive(Debug)]
enum Source {
    /// The system's clock, shifted by `shift_ms` (0 but in tests of wrong clocks), corrected by `offset_ms`, and never
    /// stepping back a little.
    System {
        high_water_ms: AtomicI64,
        shift_ms: i64,
        /// What is added to be on another clock: the database's.
        offset_ms: AtomicI64,
    },
    Manual {
        now: watch::Sender<i64>,
    },
}

impl Clock {
    /// The system's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::shifted(0)
    }

    /// The system's clock, `shift_ms` off: how tests and drills give a process a wrong clock.
    #[must_use]
    pub fn shifted(shift_ms: i64) -> Self {
        let (high_water_ms, offset_ms) = (AtomicI64::new(i64::MIN), AtomicI64::new(0));
        Self(Arc::new(Source::System { high_water_ms, shift_ms, offset_ms }))
    }

    /// The clock that a process goes by: the system's, off by what [`SKEW_VARIABLE`] says.
    ///
    /// # Errors
    /// When the variable holds no duration.
    pub fn of_process() -> Result<Self, SkewError> {
        skew_ms(std::env::var_os(SKEW_VARIABLE).as_deref()).map(Self::shifted)
    }

    /// Says in the log that this clock is wrong on purpose, if it is: nobody is to find that out from the records.
    pub fn tell_if_wrong(&self) {
        if let Source::System { shift_ms, .. } = &*self.0
            && *shift_ms != 0
        {
            tracing::warn!(shift_ms, "the clock is wrong on purpose, by REPRIEVE_CLOCK_SKEW");
        }
    }

    /// A clock that moves only by [`Clock::advance_ms`] and [`Clock::set_ms`].
    #[must_use]
    pub fn manual(start_ms: i64) -> Self {
        Self(Arc::new(Source::Manual { now: watch::Sender::new(start_ms) }))
    }

    /// Now, in UTC Unix milliseconds.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        match &*self.0 {
            Source::System { high_water_ms, shift_ms, offset_ms } => {
                let read_ms = read_ms(*shift_ms).saturating_add(offset_ms.load(Ordering::Relaxed));
                settle(high_water_ms, read_ms)
            }
            Source::Manual { now } => *now.borrow(),
        }
    }

    /// What the system's clock shows, uncorrected; `None`: a test owns this clock, and nothing corrects it.
    #[must_use]
    pub fn uncorrected_ms(&self) -> Option<i64> {
        match &*self.0 {
            Source::System { shift_ms, .. } => Some(read_ms(*shift_ms)),
            Source::Manual { .. } => None,
        }
    }

    /// Puts the clock `offset_ms` from the system's, to be on another's: the late edge of what was measured, so that an
    /// instant that has come here has come there.
    pub fn correct(&self, offset_ms: i64) {
        if let Source::System { offset_ms: stands, .. } = &*self.0 {
            stands.store(offset_ms, Ordering::Relaxed);
        }
    }

    /// Waits until the clock shows `at_ms` or later; returns the instant read.
    pub async fn sleep_until(&self, at_ms: i64) -> i64 {
        match &*self.0 {
            Source::System { .. } => loop {
                let now_ms = self.now_ms();
                if now_ms >= at_ms {
                    return now_ms;
                }
                let nap_ms = at_ms.saturating_sub(now_ms).min(MAX_NAP_MS);
                tokio::time::sleep(Duration::from_millis(u64::try_from(nap_ms).unwrap_or(0))).await;
            },
            Source::Manual { now } => {
                let mut seen = now.subscribe();
                // The guard is let go before anything is awaited again: it is not `Send`.
                let reached_ms = seen.wait_for(|now_ms| *now_ms >= at_ms).await.map(|now_ms| *now_ms);
                match reached_ms {
                    Ok(now_ms) => now_ms,
                    // Cannot be: the sender lives in `self`.
                    Err(_) => std::future::pending().await,
                }
            }
        }
    }

    /// Waits until the clock shows `at_ms` or later, or an instant before `looked_ms`, when it was read last: it has stepped
    /// back then. For whoever looks again at what it waits for: a poll of a second that began before a step of a day is not
    /// to last a day. Returns the instant read.
    pub async fn nap_until(&self, at_ms: i64, looked_ms: i64) -> i64 {
        match &*self.0 {
            Source::System { .. } => loop {
                let now_ms = self.now_ms();
                if now_ms >= at_ms || now_ms < looked_ms {
                    return now_ms;
                }
                let nap_ms = at_ms.saturating_sub(now_ms).min(MAX_NAP_MS);
                tokio::time::sleep(Duration::from_millis(u64::try_from(nap_ms).unwrap_or(0))).await;
            },
            Source::Manual { now } => {
                let mut seen = now.subscribe();
                let over = |now_ms: &i64| *now_ms >= at_ms || *now_ms < looked_ms;
                let reached_ms = seen.wait_for(over).await.map(|now_ms| *now_ms);
                match reached_ms {
                    Ok(now_ms) => now_ms,
                    // Cannot be: the sender lives in `self`.
                    Err(_) => std::future::pending().await,
                }
            }
        }
    }

    /// Moves a manual clock; does nothing to the system's.
    pub fn advance_ms(&self, by_ms: i64) {
        if let Source::Manual { now } = &*self.0 {
            now.send_modify(|now_ms| *now_ms = now_ms.saturating_add(by_ms));
        }
    }

    /// Sets a manual clock, backwards too; does nothing to the system's.
    pub fn set_ms(&self, at_ms: i64) {
        if let Source::Manual { now } = &*self.0 {
            now.send_replace(at_ms);
        }
    }
}

fn read_ms(shift_ms: i64) -> i64 {
    jiff::Timestamp::now().as_millisecond().saturating_add(shift_ms)
}

fn skew_ms(value: Option<&OsStr>) -> Result<i64, SkewError> {
    let Some(value) = value else { return Ok(0) };
    let text = value.to_str().ok_or(SkewError(Malformed::Grammar))?;
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    Ok(sign * duration::parse_ms(digits).map_err(SkewError)?)
}

/// The reading to report when the clock showed `read_ms` and the latest instant reported is `high_water_ms`.
fn settle(high_water_ms: &AtomicI64, read_ms: i64) -> i64 {
    let before_ms = high_water_ms.fetch_max(read_ms, Ordering::Relaxed);
    if before_ms == i64::MIN || read_ms >= before_ms {
        return read_ms;
    }
    let back_ms = before_ms - read_ms;
    if back_ms <= STAND_STILL_MS {
        return before_ms;
    }
    // Whoever loses this race reads the already lowered mark, and stands at most at its own reading.
    if high_water_ms.compare_exchange(before_ms, read_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        tracing::warn!(back_ms, "the clock stepped back; every timer reads it again");
    }
    read_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_step_back_stands_still_and_a_large_one_is_taken_over() {
        let mark = AtomicI64::new(i64::MIN);
        assert_eq!(settle(&mark, 1_000_000), 1_000_000);
        assert_eq!(settle(&mark, 1_000_500), 1_000_500);
        assert_eq!(settle(&mark, 1_000_500 - STAND_STILL_MS), 1_000_500);
        assert_eq!(settle(&mark, 1_000_500 - STAND_STILL_MS - 1), 940_499);
        assert_eq!(settle(&mark, 940_500), 940_500);
    }

    #[test]
    fn a_corrected_clock_is_on_the_other_and_a_tests_own_is_not_corrected() {
        let wrong = Clock::shifted(600_000);
        let read_ms = wrong.uncorrected_ms().unwrap();
        wrong.correct(-600_000);
        assert!((read_ms - 600_000..read_ms - 590_000).contains(&wrong.now_ms()));
        let manual = Clock::manual(7);
        manual.correct(5);
        assert_eq!((manual.uncorrected_ms(), manual.now_ms()), (None, 7));
    }

    #[test]
    fn a_wrong_clock_is_a_signed_duration() {
        let skew = |text: &str| skew_ms(Some(OsStr::new(text)));
        assert_eq!(skew_ms(None), Ok(0));
        assert_eq!((skew("1h"), skew("-1h30m")), (Ok(3_600_000), Ok(-5_400_000)));
        assert_eq!(
            skew("3600").unwrap_err().to_string(),
            "REPRIEVE_CLOCK_SKEW has a number without a unit; write digits with ms, s, m, h or d, such as `1h30m`; \
             a leading - is allowed; unset it outside of drills"
        );
    }

    /// A poll looks again where the clock steps back; an instant is waited for as the clock shows it.
    #[tokio::test]
    async fn a_nap_ends_where_the_clock_steps_back() {
        let (manual, system) = (Clock::manual(STAND_STILL_MS * 9), Clock::system());
        for clock in [manual.clone(), system.clone()] {
            let looked_ms = clock.now_ms();
            let at_ms = looked_ms + 3_600_000;
            let nap = tokio::spawn({
                let clock = clock.clone();
                async move { clock.nap_until(at_ms, looked_ms).await }
            });
            let sleep = tokio::spawn({
                let clock = clock.clone();
                async move { clock.sleep_until(at_ms).await }
            });
            tokio::task::yield_now().await;
            clock.correct(-3 * STAND_STILL_MS);
            clock.advance_ms(-3 * STAND_STILL_MS);
            assert!(nap.await.unwrap() < looked_ms);
            assert!(!sleep.is_finished());
            sleep.abort();
        }
    }

    #[tokio::test]
    async fn a_manual_clock_wakes_its_sleepers_at_the_instant_and_not_before() {
        let clock = Clock::manual(10);
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep_until(30).await }
        });
        clock.advance_ms(19);
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance_ms(1);
        assert_eq!(sleeper.await.unwrap(), 30);
    }
}
