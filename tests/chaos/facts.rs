//! What the ledger holds when all is over, as values.

use crate::ledger::{Ledger, Texts};
use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Debug)]
pub struct Job {
    pub state: String,
    pub result: String,
    /// The label that says which question it asks.
    pub n: usize,
    /// The code of its error.
    pub error: String,
}

#[derive(Clone, Debug)]
pub struct Record {
    pub job: String,
    pub fence: i64,
    pub outcome: String,
    pub started_ms: i64,
    pub ended_ms: i64,
}

#[derive(Clone, Debug)]
pub struct Send {
    pub job: String,
    /// Of the first send of an execution it is also the number of its permit.
    pub fence: i64,
    pub n: i64,
    pub permit_ms: i64,
    pub started_ms: i64,
}

/// A refusal that somebody heard and wrote down.
#[derive(Clone, Debug)]
pub struct Heard {
    pub job: String,
    pub received_ms: i64,
    pub resume_ms: i64,
    /// It closes the whole account.
    pub account: bool,
}

/// A hold that nothing extended. Holds and permits are numbered by one sequence, in the order of their commits.
#[derive(Clone, Debug)]
pub struct Hold {
    /// Empty: the whole account's.
    pub model: String,
    pub opened_ms: i64,
    pub until_ms: i64,
    /// When it was opened, or dated again, in that order.
    pub number: i64,
    /// After every instant where it stands.
    pub ended_ms: i64,
}

pub struct Facts {
    pub jobs: HashMap<String, Job>,
    pub keys: i64,
    pub records: Vec<Record>,
    pub sends: Vec<Send>,
    pub heard: Vec<Heard>,
    pub holds: Vec<Hold>,
    /// How often jobs were counted as ended, by state.
    pub counted: BTreeMap<String, i64>,
    /// Replaced sends written under a fence after its turn had been taken back.
    pub by_zombies: i64,
}

const JOBS: &str = "SELECT {id:j.job_id}, j.state, j.result, l.value, j.error FROM jobs AS j
     JOIN labels AS l ON l.job_id = j.job_id AND l.key = 'n'";
const KEYS: &str = "SELECT CAST(count(*) AS TEXT) FROM jobs WHERE key IS NOT NULL";
const RECORDS: &str =
    "SELECT {id:job_id}, CAST(fence AS TEXT), outcome, CAST(started_ms AS TEXT), CAST(ended_ms AS TEXT)
     FROM turn_records";
const SENDS: &str = "SELECT {id:job_id}, CAST(fence AS TEXT), CAST(n AS TEXT), CAST(permit_ms AS TEXT),
     CAST(started_ms AS TEXT) FROM all_sends";
const HOLDS: &str = "SELECT s.model, CAST(h.opened_ms AS TEXT), CAST(h.until_ms AS TEXT), CAST(h.dated_no AS TEXT),
     CAST(coalesce(h.ended_ms, 9000000000000) AS TEXT)
     FROM holds AS h JOIN scopes AS s ON s.scope_id = h.scope_id WHERE h.extended = 0 AND h.until_ms IS NOT NULL";
const HEARD: &str = "SELECT {id:job_id}, CAST(received_ms AS TEXT), CAST(coalesce(resume_at_ms, 0) AS TEXT), cause
     FROM reset_evidence WHERE cause IN ('rate_limit', 'usage_limit')";
const COUNTED: &str =
    "SELECT name, CAST(value AS TEXT) FROM counters WHERE name IN ('succeeded', 'failed', 'cancelled')";
const BY_ZOMBIES: &str = "SELECT CAST(count(*) AS TEXT) FROM sends AS s
     JOIN turn_records AS r ON r.job_id = s.job_id AND r.fence = s.fence
     WHERE r.outcome = 'lost' AND s.ended_ms > r.ended_ms";

impl Facts {
    pub async fn of(ledger: &Ledger) -> Self {
        let queries = [JOBS, KEYS, RECORDS, SENDS, HEARD, COUNTED, BY_ZOMBIES, HOLDS].map(str::to_owned);
        let answers: [Vec<Texts>; 8] = ledger.in_one_snapshot(&queries).await.unwrap().try_into().unwrap();
        let [jobs, keys, records, sends, heard, counted, by_zombies, holds] = answers;
        let number = |text: &String| text.parse::<i64>().unwrap();
        Self {
            jobs: jobs.iter().map(|row| (row[0].clone(), Job::of(row))).collect(),
            keys: number(&keys[0][0]),
            records: records
                .iter()
                .map(|row| Record {
                    job: row[0].clone(),
                    fence: number(&row[1]),
                    outcome: row[2].clone(),
                    started_ms: number(&row[3]),
                    ended_ms: number(&row[4]),
                })
                .collect(),
            sends: sends
                .iter()
                .map(|row| Send {
                    job: row[0].clone(),
                    fence: number(&row[1]),
                    n: number(&row[2]),
                    permit_ms: number(&row[3]),
                    started_ms: number(&row[4]),
                })
                .collect(),
            heard: heard
                .iter()
                .map(|row| Heard {
                    job: row[0].clone(),
                    received_ms: number(&row[1]),
                    resume_ms: number(&row[2]),
                    account: row[3] == "usage_limit",
                })
                .collect(),
            holds: holds
                .iter()
                .map(|row| Hold {
                    model: row[0].clone(),
                    opened_ms: number(&row[1]),
                    until_ms: number(&row[2]),
                    number: number(&row[3]),
                    ended_ms: number(&row[4]),
                })
                .collect(),
            counted: counted.iter().map(|row| (row[0].clone(), number(&row[1]))).collect(),
            by_zombies: number(&by_zombies[0][0]),
        }
    }

    /// The model of a job's question: `m-N`.
    pub fn model(&self, job: &str) -> usize {
        self.jobs[job].n % 5
    }
}

impl Hold {
    /// Whether a permit of this number and instant should not have been given.
    pub fn refuses(&self, model: &str, number: i64, permit_ms: i64) -> bool {
        let same = self.model.is_empty() || self.model == model;
        let stands = (self.opened_ms..self.until_ms.min(self.ended_ms)).contains(&permit_ms);
        same && stands && number > self.number
    }
}

impl Job {
    fn of(row: &Texts) -> Self {
        let error: serde_json::Value = serde_json::from_str(&row[4]).unwrap_or_default();
        Self {
            state: row[1].clone(),
            result: row[2].clone(),
            n: row[3].parse().unwrap(),
            error: error["code"].as_str().unwrap_or_default().to_owned(),
        }
    }
}
