//! What an act would do, before it is done: how many, in which states, which of them it cannot touch, and a few of them.

use super::{Act, Frozen, Order, consequence, in_words};
use crate::api::shapes;
use crate::store::{JobId, JobRow, Result, Store};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};

/// Jobs that are counted exactly.
const COUNTED: i64 = 10_000;
/// Jobs that are shown.
const SAMPLES: usize = 5;
const PAGE: u32 = 500;
const RETRIED: &str = "retried before";

/// What an act would do.
#[derive(Debug, Serialize)]
pub struct Preview {
    /// The verb.
    pub act: &'static str,
    /// Which jobs, in words.
    pub filter: String,
    /// How many it matches; with `more` there are more, which were not counted.
    pub count: i64,
    pub more: bool,
    /// Of those counted, how many it would be done to.
    pub can: i64,
    /// How many it cannot be done to, by reason.
    pub cannot: Vec<Refusals>,
    /// Of those counted, by state as shown.
    pub states: BTreeMap<&'static str, i64>,
    /// Ids that name no job.
    pub unknown: Vec<JobId>,
    pub consequence: &'static str,
    /// Some of those it would be done to, as lists show them.
    pub samples: Vec<shapes::Job>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusals {
    pub why: &'static str,
    pub count: i64,
}

impl Preview {
    fn new(act: &Act, filter: String) -> Self {
        Self {
            act: act.verb(),
            filter,
            count: 0,
            more: false,
            can: 0,
            cannot: Vec::new(),
            states: BTreeMap::new(),
            unknown: Vec::new(),
            consequence: consequence(act),
            samples: Vec::new(),
        }
    }

    /// Whether an act on so many wants to be confirmed.
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.more || self.count > super::CONFIRM
    }

    fn add(&mut self, job: JobRow, can: std::result::Result<(), &'static str>, now_ms: i64) {
        self.count += 1;
        *self.states.entry(shapes::state(job.state, job.deferred)).or_default() += 1;
        match can {
            Ok(()) => {
                self.can += 1;
                if self.samples.len() < SAMPLES {
                    self.samples.push(shapes::Job::listed(job, now_ms));
                }
            }
            Err(why) => match self.cannot.iter_mut().find(|known| known.why == why) {
                Some(known) => known.count += 1,
                None => self.cannot.push(Refusals { why, count: 1 }),
            },
        }
    }
}

impl Order<'_> {
    /// What it would do to the jobs of a frozen filter.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn preview<S: Store>(&self, store: &S, frozen: &Frozen) -> Result<Preview> {
        let now_ms = store.clock().now_ms();
        let mut preview = Preview::new(&self.act, in_words(&frozen.query, now_ms));
        let mut walk = frozen.walk(PAGE);
        while let Some(jobs) = walk.next(store).await? {
            let retried = self.retried_before(store, jobs.iter().map(|job| job.id).collect()).await?;
            for job in jobs {
                if preview.count >= COUNTED {
                    preview.more = true;
                    return Ok(preview);
                }
                let can = if retried.contains(&job.id) { Err(RETRIED) } else { self.act.can(&job, now_ms) };
                preview.add(job, can, now_ms);
            }
        }
        Ok(preview)
    }

    /// What it would do to these jobs.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn preview_of<S: Store>(&self, store: &S, ids: &[JobId]) -> Result<Preview> {
        let now_ms = store.clock().now_ms();
        let named =
            if ids.len() == 1 { "1 job by its id".to_owned() } else { format!("{} jobs by their ids", ids.len()) };
        let mut preview = Preview::new(&self.act, named);
        let retried = self.retried_before(store, ids.to_vec()).await?;
        for id in ids {
            match store.job(*id).await? {
                Some(job) => {
                    let can = if retried.contains(id) { Err(RETRIED) } else { self.act.can(&job, now_ms) };
                    preview.add(job, can, now_ms);
                }
                None => preview.unknown.push(*id),
            }
        }
        Ok(preview)
    }

    /// Which of them a retry would find retried before.
    async fn retried_before<S: Store>(&self, store: &S, ids: Vec<JobId>) -> Result<HashSet<JobId>> {
        match self.act {
            Act::Retry => Ok(store.retries(ids).await?.into_iter().map(|(old, _)| old).collect()),
            Act::Cancel | Act::Delete | Act::Pause(_) | Act::Resume | Act::Requeue | Act::Reprioritise(_) => {
                Ok(HashSet::new())
            }
        }
    }
}
