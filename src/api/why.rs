//! Why a job is where it is: who decides, until when, where that was read, and what happens then. One path feeds the
//! command line, the API and the rows of lists, so that all say the same: a row only knows less.
//!
//! Rows and figures come in, sentences go out; [`explain_job`] alone asks the store. Nothing here decides anything.

mod ended;
mod reasons;
#[cfg(test)]
mod tests;

use super::{shapes, words};
use crate::agent::Directory;
use crate::recovery::Policy;
use crate::store::{self, HoldEventRow, HoldId, JobId, JobRow, JobState, SendKey, Standing, Store, WorkerRow};
use reasons::{Known, Reason};
use serde::{Deserialize, Serialize};

/// Where an instant was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadFrom {
    /// `header`, `body`, `curve` (our own) or `operator` (by hand).
    pub kind: String,
    /// A header's name, a pointer into the body, or the kind again.
    pub name: String,
    /// The value as received.
    pub raw: Option<String>,
}

/// One reason why a job waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Why {
    /// `hold`, `parked`, `probe`, `ramp`, `full`, `backoff`, `not_before`, `in_place`, `line`, `paused`, `queue_paused`,
    /// `no_worker`, `no_key`, `no_provider` or `client`.
    pub reason: String,
    /// Who decides when it ends: `provider`, `reprieve`, `submitter`, `operator`, `client` or `worker`.
    pub who: String,
    /// When that ends; null: nobody knows.
    pub until_ms: Option<i64>,
    /// Where `until_ms` was read; null: it was not read anywhere.
    pub source: Option<ReadFrom>,
    /// One line.
    pub text: String,
}

/// Why a job is where it is, whole: `GET /v1/jobs/{id}/explain`, `reprieve explain ID --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explanation {
    pub job_id: JobId,
    /// As shown: `deferred` is queued behind a hold.
    pub state: String,
    /// Of [`Why`], or `running`, `cancelling`, `succeeded`, `failed`, `cancelled`, `unexplained`.
    pub reason: String,
    /// Who decides what comes next; null: nothing does.
    pub who: Option<String>,
    pub until_ms: Option<i64>,
    pub source: Option<ReadFrom>,
    /// The refusal that `until_ms` was read from.
    pub refusal: Option<SendKey>,
    /// Its place in line; null where it stands in none.
    pub place: Option<Place>,
    /// The hold that keeps it.
    pub hold: Option<HoldId>,
    /// What happens then.
    pub next: String,
    /// What else keeps it; that which ends last stands above.
    pub also: Vec<Why>,
    pub deadline: Option<Deadline>,
    /// All of it, in one line.
    pub text: String,
}

/// A place in line. Counts end at 10,000.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Turns of its lane before it.
    pub ahead: u32,
    /// Turns of its scope before it, of all lanes.
    pub in_scope: u32,
    /// Turns behind its hold, itself among them; 0 without one.
    pub behind_hold: u32,
    /// What its lane sends, over the last whole minute.
    pub rate_per_s: f64,
}

/// A job's deadline, and what it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deadline {
    pub at_ms: i64,
    /// It comes before what the job waits for.
    pub comes_first: bool,
    /// What happens at it.
    pub then: String,
}

/// What an explanation takes from elsewhere than where the job stands.
#[derive(Clone, Debug, Default)]
pub struct Aside {
    /// The variable that should have held the key of its provider entry, where this process has none.
    pub missing_key: Option<String>,
    /// This process has no such provider entry at all.
    pub no_provider: bool,
    /// The recovery policy it goes by, where this process has it.
    pub policy: Option<Policy>,
    /// What befell its hold, in order.
    pub hold_events: Vec<HoldEventRow>,
    /// Of a job that has ended: its executions and sends, as far as their records are kept.
    pub executions: usize,
    pub sends: usize,
    /// Of a job that has ended: messages that came in too late for an answer.
    pub unanswered: usize,
    /// The job that retries it.
    pub retried_by: Option<JobId>,
}

/// Why it waits; `None`: it sends, or has ended.
#[must_use]
pub fn why(job: &JobRow, now_ms: i64) -> Option<Why> {
    leading(&Known { job, now_ms, standing: None, takers: None, aside: &Aside::default() })
}

/// The same of one job, where the live workers are known: one that nobody takes says so.
#[must_use]
pub fn why_among(job: &JobRow, workers: &[WorkerRow], now_ms: i64) -> Option<Why> {
    let queue = &job.lane.queue;
    let takers = workers.iter().filter(|worker| worker.queues.is_empty() || worker.queues.contains(queue)).count();
    let takers = Some(u32::try_from(takers).unwrap_or(u32::MAX));
    leading(&Known { job, now_ms, standing: None, takers, aside: &Aside::default() })
}

fn leading(known: &Known<'_>) -> Option<Why> {
    reasons::all(known).into_iter().next().filter(|reason| reason.waits).map(Why::from)
}

/// The same for one cell of a list, the instant first: what stands in the columns beside it is not said again.
#[must_use]
pub fn in_brief(job: &JobRow, now_ms: i64) -> Option<String> {
    let why = why(job, now_ms)?;
    let source = why.source.as_ref().map(|read| match read.kind.as_str() {
        "curve" => "our own curve",
        "operator" => "closed by hand",
        _ => read.name.rsplit('/').next().unwrap_or(&read.name),
    });
    Some(match (why.reason.as_str(), why.until_ms) {
        ("hold", Some(until_ms)) => {
            let at = words::instant_and_distance(until_ms, now_ms);
            format!("until {at}: {}", source.unwrap_or("our own curve"))
        }
        ("probe", _) if job.hold.as_ref().is_some_and(|hold| hold.probe.is_some()) => {
            "behind the probe that is in flight".to_owned()
        }
        ("probe", _) => "its hold has ended: one probe goes first".to_owned(),
        ("parked", _) if source == Some("closed by hand") => "closed by hand; see `reprieve holds`".to_owned(),
        ("parked", _) => "closed, and no reset was named; see `reprieve holds`".to_owned(),
        _ => why.text.trim_end_matches('.').to_owned(),
    })
}

/// Why a job is where it is. Never empty, always one line; of several reasons the one that ends last leads.
#[must_use]
pub fn explain(standing: &Standing, aside: &Aside, now_ms: i64) -> Explanation {
    let job = &standing.job;
    let known = Known { job, now_ms, standing: Some(standing), takers: Some(standing.workers), aside };
    let mut reasons = reasons::all(&known).into_iter();
    let lead = reasons.next().unwrap_or_else(|| ended::ended(&known));
    let also: Vec<Reason> = reasons.collect();
    let deadline = deadline(&known, &lead);
    let mut text = lead.text.clone();
    if !also.is_empty() {
        let others: Vec<&str> = also.iter().map(|reason| reason.text.as_str()).collect();
        text = format!("{text} Also: {}", others.join(" "));
    }
    if let Some(deadline) = deadline.as_ref().filter(|deadline| deadline.comes_first) {
        let at = words::instant(deadline.at_ms, now_ms);
        text = format!("{text} Its deadline, {at}, comes first: it will then {}.", deadline.then);
    }
    let in_line = matches!(job.state, JobState::Queued) && job.seq.is_some();
    Explanation {
        job_id: job.id,
        state: shapes::state(job.state, job.deferred).to_owned(),
        reason: lead.word.to_owned(),
        who: lead.who.map(str::to_owned),
        until_ms: lead.until_ms,
        source: lead.source,
        refusal: lead.refusal,
        place: in_line.then(|| Place {
            ahead: standing.ahead,
            in_scope: standing.ahead_in_scope,
            behind_hold: standing.behind_hold,
            rate_per_s: f64::from(standing.claims_last_minute) / 60.0,
        }),
        hold: lead.hold,
        next: one_line(&lead.next),
        also: also.into_iter().map(Why::from).collect(),
        deadline,
        text: one_line(&text),
    }
}

/// The same, asked of the store. `None`: there is no such job.
///
/// # Errors
/// When the database does not serve.
pub async fn explain_job<S: Store>(store: &S, directory: &Directory, id: JobId) -> store::Result<Option<Explanation>> {
    let now_ms = store.clock().now_ms();
    let Some(standing) = store.standing(id, now_ms).await? else { return Ok(None) };
    let job = &standing.job;
    let mut aside = Aside {
        missing_key: directory.entries.get(&job.entry).and_then(|entry| entry.missing_key.clone()),
        no_provider: !directory.entries.contains_key(&job.entry),
        policy: policy(directory, job),
        ..Aside::default()
    };
    if let Some(hold) = &job.hold {
        aside.hold_events = store.hold_events(hold.id).await?;
    }
    if matches!(job.state, JobState::Succeeded | JobState::Failed | JobState::Cancelled) {
        let turns = store.turns(id).await?;
        aside.executions = turns.len();
        let attempts = |attempts: Option<u32>| attempts.and_then(|sends| usize::try_from(sends).ok()).unwrap_or(0);
        aside.sends = turns.iter().map(|turn| attempts(turn.record.attempts).max(turn.sends.len())).sum();
        let history = store.history(id).await?;
        aside.unanswered = shapes::transcript(&job.spec, &history).iter().filter(|entry| entry.unanswered).count();
        aside.retried_by = store.retries(vec![id]).await?.into_iter().map(|(_, new)| new).next();
    }
    Ok(Some(explain(&standing, &aside, now_ms)))
}

/// The policy that a worker goes by with this job: its own, else its provider entry's.
fn policy(directory: &Directory, job: &JobRow) -> Option<Policy> {
    #[derive(Deserialize)]
    struct Spec {
        #[serde(default)]
        policy: Option<String>,
    }
    // A spec that a newer release took may have more to it, or less.
    let own = serde_json::from_str::<Spec>(&job.spec).map_or(None, |spec| spec.policy);
    let name = own.or_else(|| directory.entries.get(&job.entry).map(|entry| entry.policy.clone()))?;
    directory.policies.get(&name).cloned()
}

/// What the deadline of a live job does, and whether it does so before what the job waits for. What happens at it is
/// what [`Store::expire`] does to a waiting job and the decision function to one in hand.
fn deadline(known: &Known<'_>, lead: &Reason) -> Option<Deadline> {
    let at_ms = known.job.deadline_ms.filter(|_| lead.is_live)?;
    let comes_first = match lead.until_ms {
        Some(until_ms) => until_ms >= at_ms,
        None => lead.is_endless,
    };
    let met = known.standing.and_then(|standing| standing.fails_with.as_ref()).map(reasons::met);
    let then = match (known.job.state, met) {
        (JobState::Running, _) => "be cut off and fail".to_owned(),
        (_, Some(met)) => format!("fail with the failure it met last ({met})"),
        (_, None) => "fail as `deadline_exceeded`".to_owned(),
    };
    Some(Deadline { at_ms, comes_first, then })
}

impl From<Reason> for Why {
    fn from(reason: Reason) -> Self {
        Self {
            reason: reason.word.to_owned(),
            who: reason.who.unwrap_or("reprieve").to_owned(),
            until_ms: reason.until_ms,
            source: reason.source,
            text: one_line(&reason.text),
        }
    }
}

/// What people wrote (reasons, names) may hold anything: a sentence is one line all the same.
fn one_line(text: &str) -> String {
    let blank = |letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}');
    text.chars().map(|letter| if blank(letter) { ' ' } else { letter }).collect()
}
