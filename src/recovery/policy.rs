//! A policy: every number that recovery goes by, validated once, so that no policy can exist that waits a negative
//! time or retries for ever in place.
//!
//! `tiered` and `strict` are two sets of numbers over one table (`decide.rs`); nothing branches on a policy's name.

use super::Delivery;

/// One tier of retries: how many, and how long between them: `base · 2ⁿ⁻¹`, at most `ceiling`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Sends of one execution (in place), or executions of one turn (requeue): the last one that is made.
    pub limit: u32,
    pub base_ms: i64,
    pub ceiling_ms: i64,
}

impl Tier {
    /// The curve before attempt `n + 1`, where `n` (from 1) have failed.
    #[must_use]
    pub fn wait_ms(&self, n: u32) -> i64 {
        doubled(self.base_ms, n.saturating_sub(1)).min(self.ceiling_ms)
    }
}

/// `base · 2^steps` without overflow.
pub(super) fn doubled(base_ms: i64, steps: u32) -> i64 {
    1_i64.checked_shl(steps).filter(|factor| *factor > 0).map_or(i64::MAX, |factor| base_ms.saturating_mul(factor))
}

/// Which refusals are retried in place at all, and what is waited at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InPlace {
    /// Only responses with one of these HTTP statuses; empty: any rate refusal.
    pub statuses: Vec<u16>,
    /// The least wait after the first, second, … refused send; the last stands for all later ones. Empty: the curve
    /// alone.
    pub waits_ms: Vec<i64>,
    /// Whether a `retry-after` that is malformed, an HTTP-date or above 30 ends it.
    pub stopped_by_retry_after: bool,
}

/// What a policy is made of. Plain values: [`Policy::try_new`] says whether they make sense together.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    /// In place after a 5xx, transport fault, timeout or broken stream; `limit` counts sends.
    pub transient: Tier,
    /// In place after a rate refusal; `limit` counts sends.
    pub refusal: Tier,
    /// Durable; `limit` counts executions. Its base and ceiling are also the refusal curve's second stretch.
    pub requeue: Tier,
    /// For how many barren refusals the refusal curve keeps to `refusal`'s base and ceiling before it goes on along
    /// `requeue`'s.
    pub barren_steps: u32,
    /// The refusal curve's ceiling for a window of one day.
    pub per_day_ceiling_ms: i64,
    /// Longer waits are never spent in place.
    pub near_ms: i64,
    /// The refusals that one turn may be put back for.
    pub max_deferrals: u32,
    /// How long one turn may be put back for refusals, all told; a reset beyond it fails at once.
    pub max_wait_ms: i64,
    /// Consecutive commits of a partial answer.
    pub repairs: u32,
    /// By what share at most jitter lengthens our own curves, 0.0..=1.0.
    pub jitter_share: f64,
    pub in_place: InPlace,
    /// Whether a rate refusal that used up its tier without a named reset waits along the requeue curve at least.
    pub requeue_after_tier: bool,
    /// Whether a partial answer is committed and continued. If not, nothing that has spoken is tried again, and a cap's
    /// `continue` is read as `accept`.
    pub commit_partials: bool,
    /// Whether a streamed 2xx that ended without a frame is asked for once more without streaming, so that it can be read.
    pub ask_again_without_stream: bool,
    /// Statuses after which a send may be repeated under `at_most_once` though it was no refusal.
    pub unsent_statuses: Vec<u16>,
}

/// A validated policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    pub name: String,
    numbers: Numbers,
}

/// A number that makes no sense: the field as the configuration names it, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct InvalidPolicy {
    pub field: &'static str,
    pub problem: String,
}

impl Policy {
    /// The default policy of the contract.
    #[must_use]
    pub fn tiered() -> Self {
        Self { name: "tiered".to_owned(), numbers: tiered() }
    }

    /// The contract's policy for callers who want failures early: only a 429 is retried in place.
    #[must_use]
    pub fn strict() -> Self {
        let numbers = Numbers {
            transient: Tier { limit: 1, ..tiered().transient },
            refusal: Tier { limit: 3, ..tiered().refusal },
            requeue: Tier { limit: 1, ..tiered().requeue },
            in_place: InPlace { statuses: vec![429], waits_ms: vec![1_000, 2_000], stopped_by_retry_after: true },
            requeue_after_tier: false,
            commit_partials: false,
            ask_again_without_stream: false,
            ..tiered()
        };
        Self { name: "strict".to_owned(), numbers }
    }

    /// A policy of one's own numbers, for instance those of [`Policy::tiered`] with some replaced.
    ///
    /// # Errors
    /// The first number that makes no sense, by its field.
    pub fn try_new(name: impl Into<String>, numbers: Numbers) -> Result<Self, InvalidPolicy> {
        check(&numbers)?;
        Ok(Self { name: name.into(), numbers })
    }

    #[must_use]
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// The longest wait that a turn in hand spends in place.
    #[must_use]
    pub fn near_ms(&self) -> i64 {
        self.numbers.near_ms
    }

    /// Whether a streamed 2xx without a frame may be asked for once more, without streaming.
    #[must_use]
    pub fn asks_again_without_stream(&self, delivery: Delivery) -> bool {
        match delivery {
            Delivery::AtLeastOnce => self.numbers.ask_again_without_stream,
            Delivery::AtMostOnce => false,
        }
    }
}

/// The numbers of the failure contract, §5 and §6.
fn tiered() -> Numbers {
    Numbers {
        transient: Tier { limit: 3, base_ms: 750, ceiling_ms: 8_000 },
        refusal: Tier { limit: 6, base_ms: 750, ceiling_ms: 30_000 },
        requeue: Tier { limit: 8, base_ms: 30_000, ceiling_ms: 15 * 60_000 },
        barren_steps: 6,
        per_day_ceiling_ms: 3_600_000,
        near_ms: 30_000,
        max_deferrals: 1_000,
        max_wait_ms: 45 * 86_400_000,
        repairs: 3,
        jitter_share: 0.2,
        in_place: InPlace { statuses: Vec::new(), waits_ms: Vec::new(), stopped_by_retry_after: false },
        requeue_after_tier: true,
        commit_partials: true,
        ask_again_without_stream: true,
        unsent_statuses: vec![503, 529],
    }
}

/// No retry curve waits longer than a year: a number beyond it is a slip of the unit.
const LONGEST_MS: i64 = 366 * 86_400_000;

fn check(n: &Numbers) -> Result<(), InvalidPolicy> {
    check_tier(&n.transient, ["transient.limit", "transient.base", "transient.ceiling"])?;
    check_tier(&n.refusal, ["refusal.limit", "refusal.base", "refusal.ceiling"])?;
    check_tier(&n.requeue, ["requeue.limit", "requeue.base", "requeue.ceiling"])?;
    ensure(n.barren_steps >= 1, "barren_steps", || "must be at least 1".to_owned())?;
    check_wait("per_day_ceiling", n.per_day_ceiling_ms)?;
    ensure(n.per_day_ceiling_ms >= n.requeue.base_ms, "per_day_ceiling", || {
        format!("is below requeue.base ({} ms)", n.requeue.base_ms)
    })?;
    check_wait("near", n.near_ms)?;
    ensure(n.max_deferrals >= 1, "max_deferrals", || "must be at least 1".to_owned())?;
    check_wait("max_wait", n.max_wait_ms)?;
    ensure((0.0..=1.0).contains(&n.jitter_share), "jitter_share", || "must be between 0 and 1".to_owned())?;
    for wait_ms in &n.in_place.waits_ms {
        check_wait("in_place.waits", *wait_ms)?;
    }
    ensure(n.in_place.waits_ms.is_sorted(), "in_place.waits", || "must not become shorter".to_owned())?;
    check_statuses("in_place.statuses", &n.in_place.statuses)?;
    check_statuses("unsent_statuses", &n.unsent_statuses)
}

fn check_tier(tier: &Tier, [limit, base, ceiling]: [&'static str; 3]) -> Result<(), InvalidPolicy> {
    ensure(tier.limit >= 1, limit, || "must be at least 1: the first send is counted".to_owned())?;
    check_wait(base, tier.base_ms)?;
    check_wait(ceiling, tier.ceiling_ms)?;
    ensure(tier.ceiling_ms >= tier.base_ms, ceiling, || format!("is below the base ({} ms)", tier.base_ms))
}

fn check_wait(field: &'static str, wait_ms: i64) -> Result<(), InvalidPolicy> {
    ensure(wait_ms > 0, field, || "must be longer than nothing".to_owned())?;
    ensure(wait_ms <= LONGEST_MS, field, || "must be at most 366d".to_owned())
}

fn check_statuses(field: &'static str, statuses: &[u16]) -> Result<(), InvalidPolicy> {
    match statuses.iter().find(|status| !(300..=599).contains(*status)) {
        Some(status) => Err(InvalidPolicy { field, problem: format!("has {status}; a refusal is 300 to 599") }),
        None => Ok(()),
    }
}

fn ensure(holds: bool, field: &'static str, problem: impl FnOnce() -> String) -> Result<(), InvalidPolicy> {
    if holds { Ok(()) } else { Err(InvalidPolicy { field, problem: problem() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_policies_of_the_contract_are_valid() {
        for policy in [Policy::tiered(), Policy::strict()] {
            assert_eq!(Policy::try_new(policy.name.clone(), policy.numbers().clone()), Ok(policy));
        }
    }

    #[test]
    fn a_number_that_makes_no_sense_is_named() {
        type Spoil = fn(&mut Numbers);
        let spoiled: [(&str, Spoil); 16] = [
            ("transient.limit", |n| n.transient.limit = 0),
            ("transient.base", |n| n.transient.base_ms = 0),
            ("refusal.base", |n| n.refusal.base_ms = -1),
            ("refusal.ceiling", |n| n.refusal.ceiling_ms = 749),
            ("requeue.ceiling", |n| n.requeue.ceiling_ms = i64::MAX),
            ("requeue.limit", |n| n.requeue.limit = 0),
            ("barren_steps", |n| n.barren_steps = 0),
            ("per_day_ceiling", |n| n.per_day_ceiling_ms = 1_000),
            ("near", |n| n.near_ms = 0),
            ("max_deferrals", |n| n.max_deferrals = 0),
            ("max_wait", |n| n.max_wait_ms = -5),
            ("jitter_share", |n| n.jitter_share = f64::NAN),
            ("jitter_share", |n| n.jitter_share = 1.1),
            ("in_place.waits", |n| n.in_place.waits_ms = vec![2_000, 1_000]),
            ("in_place.statuses", |n| n.in_place.statuses = vec![200]),
            ("unsent_statuses", |n| n.unsent_statuses = vec![600]),
        ];
        for (field, spoil) in spoiled {
            let mut numbers = tiered();
            spoil(&mut numbers);
            assert_eq!(Policy::try_new("x", numbers).map_err(|e| e.field), Err(field));
        }
    }

    #[test]
    fn a_curve_doubles_up_to_its_ceiling() {
        let tier = tiered().transient;
        assert_eq!(
            [1, 2, 3, 4, 5, 99, u32::MAX].map(|n| tier.wait_ms(n)),
            [750, 1_500, 3_000, 6_000, 8_000, 8_000, 8_000]
        );
        assert_eq!(tier.wait_ms(0), 750);
    }
}
