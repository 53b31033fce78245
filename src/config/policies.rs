//! `[recovery.*]`: the numbers of the policies, laid over those of the contract and validated by their owner.

use super::origin::Origin;
use super::read::{Findings, Read, Section};
use crate::duration;
use crate::recovery::{InPlace, Numbers, Policy, Tier};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;

const DAY_MS: i64 = 86_400_000;
/// More than any policy can want; what makes sense together is the policy's own to say.
const MAX_COUNT: u32 = 1_000_000;

pub(super) fn read(mut section: Section<'_>, findings: &mut Findings) -> BTreeMap<String, Policy> {
    let policies = [
        policy(section.section("tiered", findings), &Policy::tiered(), findings),
        policy(section.section("strict", findings), &Policy::strict(), findings),
    ];
    section.finish(&[], findings);
    policies.into_iter().map(|policy| (policy.name.clone(), policy)).collect()
}

fn policy(section: Section<'_>, contract: &Policy, findings: &mut Findings) -> Policy {
    let (origin, path) = (section.origin.clone(), section.path.clone());
    let mut reader = Reader { origins: BTreeMap::new(), findings };
    let numbers = numbers(section, contract.numbers(), &mut reader);
    let origins = reader.origins;
    match Policy::try_new(contract.name.clone(), numbers) {
        Ok(policy) => policy,
        Err(wrong) => {
            let key = format!("{path}.{}", wrong.field);
            findings.problem(origins.get(&key).unwrap_or(&origin), &key, wrong.problem);
            contract.clone()
        }
    }
}

/// Reads number by number and remembers where each stood, for what its owner has to say about it.
struct Reader<'f> {
    origins: BTreeMap<String, Origin>,
    findings: &'f mut Findings,
}

impl Reader<'_> {
    /// Notes a value that was read, or else the contract's.
    fn note<T: Serialize>(
        &mut self,
        key: String,
        read: Option<Read<T>>,
        contract: T,
        shown: impl Fn(&T) -> serde_json::Value,
    ) -> T {
        let read = read.unwrap_or(Read { value: contract, origin: Origin::Default });
        self.findings.setting(&read.origin, &key, shown(&read.value));
        self.origins.insert(key, read.origin);
        read.value
    }

    fn count(&mut self, section: &mut Section<'_>, key: &'static str, contract: u32) -> u32 {
        let read = section.integer(key, 0..=MAX_COUNT, self.findings);
        self.note(section.key(key), read, contract, |value| json!(value))
    }

    fn wait_ms(&mut self, section: &mut Section<'_>, key: &'static str, contract_ms: i64) -> i64 {
        let read = section.duration_ms(key, 0..=3_650 * DAY_MS, self.findings);
        self.note(section.key(key), read, contract_ms, |ms| json!(duration::write(*ms)))
    }

    fn truth(&mut self, section: &mut Section<'_>, key: &'static str, contract: bool) -> bool {
        let read = section.boolean(key, self.findings);
        self.note(section.key(key), read, contract, |value| json!(value))
    }

    fn statuses(&mut self, section: &mut Section<'_>, key: &'static str, contract: &[u16]) -> Vec<u16> {
        let read = section.statuses(key, self.findings);
        self.note(section.key(key), read, contract.to_vec(), |value| json!(value))
    }

    fn tier(&mut self, mut section: Section<'_>, contract: Tier) -> Tier {
        let tier = Tier {
            limit: self.count(&mut section, "limit", contract.limit),
            base_ms: self.wait_ms(&mut section, "base", contract.base_ms),
            ceiling_ms: self.wait_ms(&mut section, "ceiling", contract.ceiling_ms),
        };
        section.finish(&["jitter"], self.findings);
        tier
    }

    fn in_place(&mut self, mut section: Section<'_>, contract: &InPlace) -> InPlace {
        let statuses = self.statuses(&mut section, "statuses", &contract.statuses);
        let waits = section.waits_ms("waits", self.findings);
        let waits_ms = self.note(section.key("waits"), waits, contract.waits_ms.clone(), |waits| {
            json!(waits.iter().map(|ms| duration::write(*ms)).collect::<Vec<_>>())
        });
        let stopped_by_retry_after =
            self.truth(&mut section, "stopped_by_retry_after", contract.stopped_by_retry_after);
        section.finish(&[], self.findings);
        InPlace { statuses, waits_ms, stopped_by_retry_after }
    }
}

fn numbers(mut section: Section<'_>, contract: &Numbers, reader: &mut Reader<'_>) -> Numbers {
    let transient = section.section("transient", reader.findings);
    let refusal = section.section("refusal", reader.findings);
    let requeue = section.section("requeue", reader.findings);
    let in_place = section.section("in_place", reader.findings);
    let numbers = Numbers {
        transient: reader.tier(transient, contract.transient),
        refusal: reader.tier(refusal, contract.refusal),
        requeue: reader.tier(requeue, contract.requeue),
        barren_steps: reader.count(&mut section, "barren_steps", contract.barren_steps),
        per_day_ceiling_ms: reader.wait_ms(&mut section, "per_day_ceiling", contract.per_day_ceiling_ms),
        near_ms: reader.wait_ms(&mut section, "near", contract.near_ms),
        max_deferrals: reader.count(&mut section, "max_deferrals", contract.max_deferrals),
        max_wait_ms: reader.wait_ms(&mut section, "max_wait", contract.max_wait_ms),
        repairs: reader.count(&mut section, "repairs", contract.repairs),
        jitter_share: {
            let read = section.share("jitter_share", reader.findings);
            reader.note(section.key("jitter_share"), read, contract.jitter_share, |value| json!(value))
        },
        in_place: reader.in_place(in_place, &contract.in_place),
        requeue_after_tier: reader.truth(&mut section, "requeue_after_tier", contract.requeue_after_tier),
        commit_partials: reader.truth(&mut section, "commit_partials", contract.commit_partials),
        ask_again_without_stream: reader.truth(
            &mut section,
            "ask_again_without_stream",
            contract.ask_again_without_stream,
        ),
        unsent_statuses: reader.statuses(&mut section, "unsent_statuses", &contract.unsent_statuses),
    };
    section.finish(&[], reader.findings);
    numbers
}
