//! What the database and the simulator say when all is over, set against what was promised.

use crate::drill::{Drill, LEASE_MS, Zombies};
use crate::early;
use crate::facts::{Facts, Record};
use crate::faults::{Fault, Kind};
use crate::fleet::Register;
use crate::ledger::Ledger;
use crate::place::Place;
use crate::provider::{Heard, client};
use crate::submit::{Acknowledged, question};
use crate::table;
use crate::watch::Seen;
use reprieve::sim::{Outcome, Stats};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// What everybody saw.
pub struct Evidence {
    pub drill: Drill,
    pub known: Vec<Acknowledged>,
    pub seen: Arc<Seen>,
    pub register: Arc<Register>,
    pub faults: Vec<Fault>,
    pub not_run: BTreeMap<Kind, String>,
    pub zombies: Zombies,
    pub restarts: usize,
    pub bad_ends: Vec<String>,
    /// Whole answers to some questions.
    pub answers: HashMap<usize, String>,
    pub stats: Stats,
    pub heard: Heard,
    pub drained_in: Duration,
    pub took: Duration,
}

/// How many answers are compared with what one who is never disturbed is told.
const COMPARED: usize = 60;

/// Asks for the answers to some of a drill's questions, under a key of which nothing is asked.
pub async fn undisturbed(url: &str, seed: u64, jobs: usize) -> HashMap<usize, String> {
    let http = client();
    let mut answers = HashMap::new();
    for n in (0..jobs).step_by((jobs / COMPARED).max(1)) {
        let body = json!({"model": "m-0", "messages": [{"role": "user", "content": question(seed, n)}]});
        let request = http.post(format!("{url}/v1/chat/completions")).bearer_auth("sim-undisturbed").json(&body);
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        answers.insert(n, answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned());
    }
    answers
}

/// Faults found, by the promise that they break.
#[derive(Default)]
struct Broken(BTreeMap<&'static str, Vec<String>>);

impl Broken {
    fn check(&mut self, promise: &'static str, faults: impl IntoIterator<Item = String>) -> usize {
        let faults: Vec<String> = faults.into_iter().collect();
        let count = faults.len();
        self.0.entry(promise).or_default().extend(faults);
        count
    }
}

/// Why executions were lost, and those that nothing explains.
#[derive(Default)]
pub struct Losses {
    pub by: BTreeMap<&'static str, usize>,
    /// Whose hand they were in was never seen; a fault overlaps.
    pub unattributed: usize,
    pub unexplained: Vec<String>,
}

pub async fn give(place: &Place, evidence: Evidence) {
    let facts = Facts::of(&place.ledger).await;
    let askers = early::askers(&facts, |n| question(evidence.drill.seed, n));
    let mut broken = Broken::default();

    acknowledged(&facts, &evidence, &mut broken);
    ends(&facts, &evidence, &mut broken);
    let again = sent_again(&facts, &evidence, &askers, &mut broken);
    let losses = losses(&facts, &evidence, &place.ledger);
    broken.check("lost executions are explained", losses.unexplained.clone());
    let lease_ms = i64::try_from(LEASE_MS).unwrap();
    let early = early::classify(&facts, &askers, &evidence.heard.entries, &evidence.faults, lease_ms);
    broken.check("no permit while a refusal stands", early.faults.clone());
    let lost = facts.records.iter().filter(|record| record.outcome == "lost").count();
    if early.unheard_refusals > lost as u64 {
        let what = format!("{} refusals are recorded nowhere, {lost} executions were lost", early.unheard_refusals);
        broken.check("refusals are recorded", [what]);
    }
    // Each of them lets others ask until one of them is refused, too: a handful in each of the scopes that it closes.
    if early.unheard > early.unheard_refusals * 24 {
        let what = format!("{} early sends by {} unheard refusals", early.unheard, early.unheard_refusals);
        broken.check("no permit while a refusal stands", [what]);
    }
    broken.check("no permit while a hold stands", permitted_while_held(&facts));
    let contradictions = place.ledger.contradictions().await.unwrap();
    broken.check("the store does not contradict itself", contradictions);
    broken.check("… nor while it is under fire", evidence.seen.contradictions.lock().unwrap().clone());
    if facts.by_zombies > 0 {
        broken.check("zombies write nothing", [format!("{} sends under a lost fence", facts.by_zombies)]);
    }
    broken.check("who was frozen past its lease begins anew", evidence.zombies.unnoticed.clone());
    broken.check("nothing panics", evidence.register.panics());
    broken.check("processes end in order", evidence.bad_ends.clone());
    if evidence.heard.forgotten > 0 {
        broken.check("the simulator's log was read whole", [evidence.heard.forgotten.to_string()]);
    }
    table::print(&facts, &evidence, &losses, &early, again);
    let broken: Vec<_> = broken.0.into_iter().filter(|(_, faults)| !faults.is_empty()).collect();
    for (promise, faults) in &broken {
        println!("BROKEN: {promise}: {}", faults.len());
        for fault in faults.iter().take(12) {
            println!("    {fault}");
        }
    }
    assert!(
        broken.is_empty(),
        "seed {}: {:?}",
        evidence.drill.seed,
        broken.iter().map(|(it, _)| it).collect::<Vec<_>>()
    );
}

/// First sends of executions whose permits were drawn after a hold of their scope, and before its end: by the ledger alone.
fn permitted_while_held(facts: &Facts) -> Vec<String> {
    let first = facts.sends.iter().filter(|send| send.n == 1);
    let is_held = |send: &&crate::facts::Send| {
        let model = format!("m-{}", facts.model(&send.job));
        facts.holds.iter().any(|hold| hold.refuses(&model, send.fence, send.permit_ms))
    };
    first.filter(is_held).map(|send| format!("{send:?}")).collect()
}

fn plain(id: &str) -> String {
    id.replace('-', "")
}

fn acknowledged(facts: &Facts, evidence: &Evidence, broken: &mut Broken) {
    let keyed: Vec<&String> = evidence.known.iter().flat_map(|known| known.keyed.values()).collect();
    let unkeyed = evidence.known.iter().flat_map(|known| &known.unkeyed);
    let ids: Vec<String> = keyed.iter().copied().chain(unkeyed).map(|id| plain(id)).collect();
    let distinct: BTreeSet<&String> = ids.iter().collect();
    broken.check("no acknowledged job is lost", ids.iter().filter(|id| !facts.jobs.contains_key(*id)).cloned());
    if distinct.len() < ids.len() {
        broken.check("each acknowledgement names a job of its own", [format!("{} of {}", distinct.len(), ids.len())]);
    }
    broken.check("a key is one job", evidence.known.iter().flat_map(|known| known.contradicted.iter().cloned()));
    if facts.keys != i64::try_from(keyed.len()).unwrap() {
        broken.check(
            "a key is one job",
            [format!("{} jobs have keys, {} keys were acknowledged", facts.keys, keyed.len())],
        );
    }
}

fn ends(facts: &Facts, evidence: &Evidence, broken: &mut Broken) {
    let mut completed: HashMap<&str, u32> = HashMap::new();
    let mut fences: BTreeSet<(&str, i64)> = BTreeSet::new();
    for record in &facts.records {
        if record.outcome == "completed" {
            *completed.entry(&record.job).or_default() += 1;
        }
        if !fences.insert((&record.job, record.fence)) {
            broken.check("one record of an execution", [format!("{record:?}")]);
        }
    }
    let mut by_state: BTreeMap<&str, i64> = BTreeMap::new();
    for (id, job) in &facts.jobs {
        *by_state.entry(&job.state).or_default() += 1;
        let times = completed.get(id.as_str()).copied().unwrap_or(0);
        let right = match job.state.as_str() {
            "succeeded" => times == 1,
            "failed" => times == 0,
            _ => {
                broken.check("every job is final", [format!("{id} is `{}`", job.state)]);
                true
            }
        };
        if !right {
            broken.check("no job is completed twice", [format!("{id} {} has {times} completions", job.state)]);
        }
        if job.state == "succeeded"
            && let Some(answer) = evidence.answers.get(&job.n)
        {
            let result: Value = serde_json::from_str(&job.result).unwrap();
            if result["text"].as_str() != Some(answer) {
                broken.check("the answer is the whole answer", [format!("{id}: {}", job.result)]);
            }
        }
    }
    let counted: BTreeMap<&str, i64> =
        facts.counted.iter().filter(|(_, n)| **n > 0).map(|(state, n)| (state.as_str(), *n)).collect();
    if counted != by_state {
        broken.check("no job ends twice", [format!("counted {counted:?}, there are {by_state:?}")]);
    }
}

/// Answers that the simulator gave in full more often than the ledger has them: each must be an execution that was lost.
/// Returns how many there are.
fn sent_again(facts: &Facts, evidence: &Evidence, askers: &HashMap<String, Vec<&str>>, broken: &mut Broken) -> u64 {
    let mut answered: HashMap<&str, u64> = HashMap::new();
    for entry in evidence.heard.entries.values().filter(|entry| entry.key == "sim-main") {
        if entry.outcome == Outcome::Completed {
            *answered.entry(&entry.question).or_default() += 1;
        }
    }
    let mut completed: HashMap<&str, u64> = HashMap::new();
    let mut lost: HashMap<&str, u64> = HashMap::new();
    for record in &facts.records {
        match record.outcome.as_str() {
            "completed" => *completed.entry(&record.job).or_default() += 1,
            "lost" => *lost.entry(&record.job).or_default() += 1,
            _ => {}
        }
    }
    let mut again = 0;
    for (question, times) in answered {
        let jobs = askers.get(question).map_or(&[][..], Vec::as_slice);
        let sum = |of: &HashMap<&str, u64>| jobs.iter().filter_map(|job| of.get(job)).sum::<u64>();
        let more = times.saturating_sub(sum(&completed));
        again += more;
        if more > sum(&lost) {
            broken.check(
                "nothing is sent again but what was lost",
                [format!("{jobs:?}: {times} answers, {} lost", sum(&lost))],
            );
        }
    }
    again
}

fn losses(facts: &Facts, evidence: &Evidence, ledger: &Ledger) -> Losses {
    let mut losses = Losses::default();
    let mut told: BTreeSet<Option<usize>> = BTreeSet::new();
    let hands = evidence.seen.hands.lock().unwrap();
    for record in facts.records.iter().filter(|record| record.outcome == "lost") {
        let worker = hands.get(&(record.job.clone(), record.fence));
        let life = worker.and_then(|worker| evidence.register.life_of(worker));
        if let Some(why) = why(record, life, &evidence.faults, ledger) {
            *losses.by.entry(why).or_default() += 1;
            losses.unattributed += usize::from(life.is_none());
        } else {
            // Its own words, once.
            let troubles =
                life.filter(|_| told.insert(life)).map_or_else(String::new, |life| evidence.register.troubles(life));
            losses.unexplained.push(format!("{record:?} of life {life:?}{troubles}"));
        }
    }
    losses
}

/// The fault that took an execution's lease away.
fn why(record: &Record, life: Option<usize>, faults: &[Fault], ledger: &Ledger) -> Option<&'static str> {
    let lease_ms = i64::try_from(LEASE_MS).unwrap();
    let overlapping = |more_ms: i64| {
        let (from_ms, until_ms) = (record.started_ms - 1_000 - more_ms, record.ended_ms);
        faults.iter().filter(move |fault| fault.overlaps(from_ms, until_ms))
    };
    let own = overlapping(0).find(|fault| fault.life.is_some() && (fault.life == life || life.is_none()));
    // A lease may lapse in the first moments after the database is back.
    let of_all = || overlapping(lease_ms + 3_000).find(|fault| fault.kind.hits_all());
    if let Some(fault) = own.or_else(of_all) {
        return Some(fault.kind.word());
    }
    // One who is frozen in the middle of a commit keeps the file's lock, and nobody can renew.
    let held = matches!(ledger, Ledger::Sqlite(_)) && overlapping(lease_ms).any(|fault| fault.kind == Kind::Stop);
    held.then_some("another frozen with the file's lock")
}
