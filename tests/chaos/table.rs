//! The one table of a drill.

use crate::early::Early;
use crate::facts::Facts;
use crate::faults::Kind;
use crate::verdict::{Evidence, Losses};
use std::collections::BTreeMap;

pub fn print(facts: &Facts, evidence: &Evidence, losses: &Losses, early: &Early, again: u64) {
    let mut faults: BTreeMap<Kind, usize> = BTreeMap::new();
    for fault in &evidence.faults {
        *faults.entry(fault.kind).or_default() += 1;
    }
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for job in facts.jobs.values() {
        let why = if job.error.is_empty() { String::new() } else { format!(" ({})", job.error) };
        *ends.entry(format!("{}{why}", job.state)).or_default() += 1;
    }
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for record in &facts.records {
        *outcomes.entry(&record.outcome).or_default() += 1;
    }
    let acknowledged: usize = evidence.known.iter().map(|known| known.keyed.len() + known.unkeyed.len()).sum();
    let broken_off: u64 = evidence.known.iter().map(|known| known.broken_off).sum();
    let by_itself = evidence.register.ended_by_itself.lock().unwrap();
    let main: Vec<_> =
        evidence.stats.scopes.iter().filter(|scope| scope.key == "sim-main").map(|scope| scope.counts).collect();
    let sum = |of: fn(&reprieve::sim::Counts) -> u64| main.iter().map(of).sum::<u64>();
    let drill = evidence.drill;
    let line = |what: &str, text: String| println!("{what:>22} | {text}");
    line(
        "drill",
        format!(
            "seed {} · {} workers · faults for {} s · {:.1} s in all",
            drill.seed,
            drill.workers,
            drill.seconds,
            evidence.took.as_secs_f64()
        ),
    );
    for (kind, count) in &faults {
        line("fault", format!("{count} × {}", kind.word()));
    }
    for (kind, why) in &evidence.not_run {
        line("NOT RUN", format!("{}: {why}", kind.word()));
    }
    line(
        "processes",
        format!(
            "{} lives, {} restarts, {} ends by themselves; {} zombies began anew, {} void ends",
            evidence.register.lives(),
            evidence.restarts,
            by_itself.len(),
            evidence.zombies.began_anew,
            evidence.register.void()
        ),
    );
    line(
        "submissions",
        format!(
            "{acknowledged} jobs acknowledged, {} in the database, {broken_off} submissions broken off",
            facts.jobs.len()
        ),
    );
    line("jobs by end", ends.iter().map(|(end, n)| format!("{n} {end}")).collect::<Vec<_>>().join(", "));
    line("executions", outcomes.iter().map(|(outcome, n)| format!("{n} {outcome}")).collect::<Vec<_>>().join(", "));
    line("lost, explained", losses.by.iter().map(|(why, n)| format!("{n} {why}")).collect::<Vec<_>>().join(", "));
    line(
        "lost, unexplained",
        format!("{} ({} of the explained in hands that were not seen)", losses.unexplained.len(), losses.unattributed),
    );
    line(
        "sends",
        format!(
            "{} received: {} completed, {} refused, {} failed, {} dropped, {} faulted, {} abandoned",
            sum(|c| c.received),
            sum(|c| c.completed),
            sum(|c| c.refused),
            sum(|c| c.failed),
            sum(|c| c.dropped),
            sum(|c| c.faulted),
            sum(|c| c.abandoned)
        ),
    );
    line("sent again", format!("{again} answers given in full, and again because their execution was lost"));
    line(
        "early",
        format!(
            "{} by the simulator, {} doomed: {} behind {} refusals that nobody lived to record, {} on the wire (the latest permitted {} ms \
             after the receipt), {} while the \
             database was away, {} by lost executions, {} faults",
            sum(|c| c.early),
            sum(|c| c.doomed),
            early.unheard,
            early.unheard_refusals,
            early.on_the_wire,
            early.latest_ms,
            early.away,
            early.by_the_lost,
            early.faults.len()
        ),
    );
    line("felt", evidence.register.felt());
    line("drained", format!("{:.1} s after the last fault", evidence.drained_in.as_secs_f64()));
    for (name, code, tail) in by_itself.iter().take(3) {
        let last = tail.lines().last().unwrap_or_default();
        line("ended by itself", format!("{name} ({code:?}): {last}"));
    }
}
