//! Sends that the simulator counted as early, one by one: whether a permit was given that should not have been.
//!
//! The simulator cannot know what its clients know. A refusal that was answered to a process killed before it could
//! commit is known to nobody; a send whose permit was committed before the refusal was is on the wire. Both are counted
//! apart, and bounded; what is neither is a fault.

use crate::facts::{Facts, Heard, Record};
use crate::faults::Fault;
use reprieve::sim::{LogEntry, Outcome};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// From the receipt of a refusal to its commit, and from a permit to its send, on a busy machine.
const MARGIN_MS: i64 = 1_000;
/// The longest reset that the scenario names, with a margin.
const LONGEST_MS: i64 = 3_500;

#[derive(Debug, Default)]
pub struct Early {
    /// A refusal stood that nobody who lives has heard.
    pub unheard: u64,
    /// The refusal was on its way to whoever wrote it down, or its commit was.
    pub on_the_wire: u64,
    /// The latest of their permits, counted from the receipt of the refusal.
    pub latest_ms: i64,
    /// The database was away between the refusal and its commit.
    pub away: u64,
    /// By an execution that was lost, after its first send: when that was permitted is known to nobody.
    pub by_the_lost: u64,
    /// Neither.
    pub faults: Vec<String>,
    /// Refusals that were written down nowhere: answered to a process that did not live to commit them.
    pub unheard_refusals: u64,
}

/// The digest by which the simulator tells questions apart.
pub fn digest(question: &str) -> String {
    Sha256::digest(question.as_bytes()).iter().take(8).fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").unwrap();
        digits
    })
}

/// The jobs that ask each question.
pub fn askers(facts: &Facts, question: impl Fn(usize) -> String) -> HashMap<String, Vec<&str>> {
    let mut askers: HashMap<String, Vec<&str>> = HashMap::new();
    for (id, job) in &facts.jobs {
        askers.entry(digest(&question(job.n))).or_default().push(id);
    }
    askers
}

pub fn classify(
    facts: &Facts,
    askers: &HashMap<String, Vec<&str>>,
    entries: &BTreeMap<u64, LogEntry>,
    faults: &[Fault],
    lease_ms: i64,
) -> Early {
    let mut heard_of: HashMap<&str, Vec<&Heard>> = HashMap::new();
    for heard in &facts.heard {
        heard_of.entry(&heard.job).or_default().push(heard);
    }
    // Refusals that no evidence of their job follows.
    let mut unheard: Vec<&LogEntry> = Vec::new();
    for entry in entries.values().filter(|entry| entry.outcome == Outcome::Refused) {
        let jobs = askers.get(&entry.question).map_or(&[][..], Vec::as_slice);
        let mut evidence = jobs.iter().flat_map(|job| heard_of.get(job).map_or(&[][..], Vec::as_slice));
        if !evidence.any(|heard| (entry.at_ms - 50..entry.at_ms + 15_000).contains(&heard.received_ms)) {
            unheard.push(entry);
        }
    }
    let mut sorted = Early { unheard_refusals: unheard.len() as u64, ..Early::default() };
    for entry in entries.values().filter(|entry| entry.early || entry.doomed) {
        let in_scope = facts.heard.iter().filter(|heard| {
            let same = heard.account || format!("m-{}", facts.model(&heard.job)) == entry.model;
            same && heard.received_ms <= entry.at_ms + MARGIN_MS && heard.resume_ms > entry.at_ms
        });
        // From the answer's leaving to its receipt nobody can know of it.
        let known_ms = in_scope.map(|heard| heard.received_ms).min();
        if known_ms.is_some_and(|known_ms| known_ms > entry.at_ms) {
            sorted.on_the_wire += 1;
            continue;
        }
        let Some(known_ms) = known_ms else {
            let explains = |refusal: &&&LogEntry| {
                let before_ms = entry.at_ms - refusal.at_ms;
                (0..LONGEST_MS).contains(&before_ms)
                    && (refusal.model == entry.model || refusal.by.as_deref() == Some("plan"))
            };
            if unheard.iter().any(|refusal| explains(&refusal)) {
                sorted.unheard += 1;
            } else {
                sorted.faults.push(format!("no refusal explains {entry:?}"));
            }
            continue;
        };
        let Some((permit_ms, number)) = permit(facts, askers, entry) else {
            sorted.by_the_lost += 1;
            continue;
        };
        let away = faults
            .iter()
            .any(|fault| fault.kind.hits_all() && fault.overlaps(known_ms - lease_ms - 2_000, permit_ms + MARGIN_MS));
        // Where the number of the permit is known, nothing is left to margins: it was drawn after the hold's, or before.
        let held = |number: i64| facts.holds.iter().any(|hold| hold.refuses(&entry.model, number, permit_ms));
        let in_order = number.is_some_and(|number| !held(number));
        if in_order || (number.is_none() && permit_ms <= known_ms + MARGIN_MS) {
            sorted.on_the_wire += 1;
            sorted.latest_ms = sorted.latest_ms.max(permit_ms - known_ms);
        } else if away {
            sorted.away += 1;
        } else {
            sorted
                .faults
                .push(format!("permitted at {permit_ms}, {} ms after its refusal: {entry:?}", permit_ms - known_ms));
        }
    }
    sorted
}

/// When the send that arrived as `entry` was permitted, by the ledger: of a lost execution only its claim is known, which
/// permits its first send. With it the permit's number, where that is known.
fn permit(facts: &Facts, askers: &HashMap<String, Vec<&str>>, entry: &LogEntry) -> Option<(i64, Option<i64>)> {
    let jobs = askers.get(&entry.question)?;
    let near = |started_ms: i64| (started_ms - 20..started_ms + 2_500).contains(&entry.at_ms);
    let sends = facts.sends.iter().filter(|send| jobs.contains(&send.job.as_str()) && near(send.started_ms));
    let sent = sends.max_by_key(|send| send.started_ms);
    let sent = sent.map(|send| (send.permit_ms, (send.n == 1).then_some(send.fence)));
    let of_lost = |record: &&Record| record.outcome == "lost" && jobs.contains(&record.job.as_str());
    let claims = facts.records.iter().filter(of_lost).filter(|record| near(record.started_ms));
    sent.or_else(|| claims.map(|record| (record.started_ms, Some(record.fence))).max())
}
