//! `[recovery.*]`: the numbers of the policies.

use super::read::{Findings, Section};
use super::schema::{shown, shown_ms};
use crate::recovery::Policy;
use std::collections::BTreeMap;

pub(super) fn read(mut section: Section<'_>, findings: &mut Findings) -> BTreeMap<String, Policy> {
    let mut policies = BTreeMap::new();
    let mut tiered = section.section("tiered", findings);
    for tier in ["transient", "refusal", "requeue"] {
        let mut tier = tiered.section(tier, findings);
        let limit = tier.integer("limit", 1..=1_000, findings);
        shown(&tier, "limit", limit, findings);
        let base = tier.duration_ms("base", 1..=86_400_000, findings);
        shown_ms(&tier, "base", base, findings);
        let ceiling = tier.duration_ms("ceiling", 1..=86_400_000, findings);
        shown_ms(&tier, "ceiling", ceiling, findings);
        tier.finish(&["jitter"], findings);
    }
    outer(&mut tiered, findings);
    tiered.finish(&[], findings);
    let mut strict = section.section("strict", findings);
    outer(&mut strict, findings);
    strict.finish(&[], findings);
    section.finish(&[], findings);
    for name in ["tiered", "strict"] {
        policies.insert(name.to_owned(), Policy { name: name.to_owned() });
    }
    policies
}

fn outer(section: &mut Section<'_>, findings: &mut Findings) {
    let deferrals = section.integer("max_deferrals", 1..=1_000_000, findings);
    shown(section, "max_deferrals", deferrals, findings);
    let wait = section.duration_ms("max_wait", 1_000..=400 * 86_400_000, findings);
    shown_ms(section, "max_wait", wait, findings);
}
