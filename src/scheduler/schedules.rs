//! Jobs that are submitted by the calendar: what a schedule may be, which of its instants are to be fired now, and the
//! duty that fires them.
//!
//! An instant that is met more than [`TOLERANCE_MS`] late was missed: nobody could fire. What is done about those is the
//! schedule's `catch_up`; one that is due now always fires. The store fires each instant once, however many processes
//! run this duty.

mod submitted;

pub use submitted::accept;

use super::calendar::Calendar;
use crate::agent::{self, Directory, SpecError};
use crate::store::{CatchUp, Fire, Fired, Firing, FiringKind, JobId, NewJob, ScheduleRow, Store};
use std::iter::successors;

/// An instant that is met later than this was missed, in milliseconds.
pub const TOLERANCE_MS: i64 = 60_000;
/// The most missed instants of one schedule that are written down, or caught up with, at once. What lies beyond them is
/// passed over with one row, at the latest of them.
pub const MISSED_MOST: usize = 1_000;
/// The most bytes of specs that catching up submits at once: the jobs of a large spec are fewer.
const CATCH_UP_BYTES: usize = 32 << 20;
/// The most schedules that are read at once.
const BATCH: u32 = 100;

/// What one run of the duty did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub submitted: u32,
    /// Missed, skipped or refused.
    pub passed_over: u32,
}

/// Fires every schedule that is due; idempotent. `None`: the database was away, or would not take a firing.
pub(super) async fn run_once<S: Store>(store: &S, directory: &Directory, now_ms: i64) -> Option<Counts> {
    let mut counts = Counts::default();
    loop {
        let due = match store.due_schedules(now_ms, BATCH).await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(%error, "due schedules could not be read");
                return None;
            }
        };
        let (found, mut failed) = (due.len(), false);
        for schedule in due {
            let Some(fire) = due_now(&schedule, directory, now_ms) else { continue };
            match store.fire(fire).await {
                Ok(Fired::Done(runs)) => {
                    for run in runs {
                        let submitted = run.job.is_some();
                        counts.submitted += u32::from(submitted);
                        counts.passed_over += u32::from(!submitted);
                        tracing::info!(
                            schedule.id = %schedule.id,
                            outcome = run.outcome,
                            late_ms = now_ms - run.nominal_ms,
                            "a schedule fired"
                        );
                    }
                }
                // Another process was faster, or it was paused or removed meanwhile.
                Ok(Fired::Void) => {}
                Err(error) => {
                    tracing::warn!(schedule.id = %schedule.id, %error, "a schedule could not be fired");
                    failed = true;
                }
            }
        }
        if failed {
            return None;
        }
        if found < usize::try_from(BATCH).unwrap_or(usize::MAX) {
            return Some(counts);
        }
    }
}

/// Takes back what a clock that was ahead did to schedules: their next instants lie where it showed them, and until then
/// nothing would fire. Each goes on with its next instant from now. Idempotent; for when a process starts, and when its
/// clock has stepped back. `None`: the database was away.
pub(super) async fn rearm<S: Store>(store: &S, now_ms: i64) -> Option<u32> {
    let away = |error: crate::store::Error| tracing::warn!(%error, "schedules could not be looked at again");
    let mut rearmed = 0;
    for schedule in store.schedules().await.map_err(away).ok()? {
        let stands_ms = schedule.next_ms.filter(|next_ms| *next_ms > now_ms && schedule.paused.is_none());
        let (Some(stands_ms), Some(next_ms)) = (stands_ms, next_ms(&schedule, now_ms)) else { continue };
        if next_ms >= stands_ms {
            continue;
        }
        let fire = Fire {
            schedule: schedule.id,
            expected_next_ms: Some(stands_ms),
            next_ms: Some(next_ms),
            firings: Vec::new(),
            now_ms,
        };
        // Void: another process was faster.
        if let Fired::Done(_) = store.fire(fire).await.map_err(away).ok()? {
            rearmed += 1;
            tracing::warn!(schedule.id = %schedule.id, "a schedule's next instant was set by a clock that was ahead");
        }
    }
    Some(rearmed)
}

/// When a schedule fires next, counted from now: what it goes on with after a pause. `None`: never, or its calendar
/// cannot be read.
#[must_use]
pub fn next_ms(schedule: &ScheduleRow, now_ms: i64) -> Option<i64> {
    Calendar::parse(&schedule.cron, &schedule.zone).ok()?.next_after(now_ms)
}

/// One firing by hand, beside the calendar.
///
/// # Errors
/// The stored job is not acceptable any more.
pub fn by_hand(schedule: &ScheduleRow, directory: &Directory, now_ms: i64) -> Result<Fire, SpecError> {
    let job = job(schedule, directory, now_ms)?;
    let firings = vec![Firing { nominal_ms: now_ms, what: FiringKind::Submit(Box::new(job)) }];
    Ok(Fire { schedule: schedule.id, expected_next_ms: None, next_ms: schedule.next_ms, firings, now_ms })
}

/// What is to be fired of a schedule now; `None`: nothing is due.
fn due_now(schedule: &ScheduleRow, directory: &Directory, now_ms: i64) -> Option<Fire> {
    let first_ms = schedule.next_ms.filter(|next_ms| *next_ms <= now_ms)?;
    let fire =
        |next_ms, firings| Fire { schedule: schedule.id, expected_next_ms: Some(first_ms), next_ms, firings, now_ms };
    let calendar = match Calendar::parse(&schedule.cron, &schedule.zone) {
        Ok(calendar) => calendar,
        // It stops here, and says why; whoever resumes it has made it readable.
        Err(error) => {
            let what = FiringKind::Refused(error.to_string());
            return Some(fire(None, vec![Firing { nominal_ms: first_ms, what }]));
        }
    };
    let most = MISSED_MOST.min((CATCH_UP_BYTES / schedule.spec.len().max(1)).max(1));
    let instants = Instants::of(&calendar, first_ms, now_ms, most);
    let fires = instants.fires(schedule.catch_up);
    let job = job(schedule, directory, now_ms);
    let firings = instants.all().map(|nominal_ms| {
        let what = match &job {
            _ if !fires(nominal_ms) => FiringKind::Missed,
            Ok(job) => FiringKind::Submit(Box::new(NewJob { id: JobId::fresh(), ..job.clone() })),
            Err(error) => FiringKind::Refused(error.to_string()),
        };
        Firing { nominal_ms, what }
    });
    Some(fire(calendar.next_after(now_ms), firings.collect()))
}

/// The job of a schedule, as it is submitted at one instant. Its labels are its submitter's alone; what fired it stands
/// in [`NewJob::schedule`].
fn job(schedule: &ScheduleRow, directory: &Directory, now_ms: i64) -> Result<NewJob, SpecError> {
    let job = agent::accept(&schedule.spec, directory, now_ms, None)?;
    Ok(NewJob { schedule: Some(schedule.id), idempotency_key: None, ..job })
}

/// The instants of a schedule since its last firing.
#[derive(Debug, PartialEq, Eq)]
struct Instants {
    /// The first of the missed ones.
    missed: Vec<i64>,
    /// The latest of those that were too many.
    beyond: Option<i64>,
    on_time: Vec<i64>,
}

impl Instants {
    /// From `first_ms`, which the store holds for its next one, to now.
    fn of(calendar: &Calendar, first_ms: i64, now_ms: i64, most: usize) -> Self {
        let missed_until_ms = now_ms.saturating_sub(TOLERANCE_MS).saturating_sub(1);
        let from = |at_ms: Option<i64>, until_ms: i64| {
            successors(at_ms, |at_ms| calendar.next_after(*at_ms)).take_while(move |at_ms| *at_ms <= until_ms)
        };
        let missed: Vec<i64> = from(Some(first_ms), missed_until_ms).take(most).collect();
        let beyond = missed.last().and_then(|last_ms| calendar.last_within(*last_ms, missed_until_ms));
        let on_time = match missed.last() {
            None => from(Some(first_ms), now_ms).collect(),
            Some(_) => from(calendar.next_after(missed_until_ms), now_ms).collect(),
        };
        Self { missed, beyond, on_time }
    }

    fn all(&self) -> impl Iterator<Item = i64> {
        self.missed.iter().chain(&self.beyond).chain(&self.on_time).copied()
    }

    /// Which of them fire.
    fn fires(&self, catch_up: CatchUp) -> impl Fn(i64) -> bool {
        let last_missed = self.beyond.or(self.missed.last().copied());
        let on_time_from = self.on_time.first().copied();
        let beyond = self.beyond;
        move |at_ms: i64| {
            let is_on_time = on_time_from.is_some_and(|from_ms| at_ms >= from_ms);
            is_on_time
                || match catch_up {
                    CatchUp::None => false,
                    // One that is due now is the last of all.
                    CatchUp::Last => on_time_from.is_none() && Some(at_ms) == last_missed,
                    CatchUp::All => Some(at_ms) != beyond,
                }
        }
    }
}

#[cfg(test)]
mod tests;
