//! Why a job waits: who decides, until when, where that was read, and what happens then. One function feeds the command
//! line and the API, so that both say the same.

use super::words;
use crate::duration;
use crate::store::{HoldId, HoldRow, JobId, JobRow, JobState, SendKey, WorkerRow};
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
    /// `no_worker`, `no_key` or `client`.
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

/// Why it waits; `None`: it runs, or has ended.
#[must_use]
pub fn why(job: &JobRow, now_ms: i64) -> Option<Why> {
    match job.state {
        JobState::Queued => Some(queued(job, now_ms)),
        JobState::Running => job.wait_until_ms.filter(|until_ms| *until_ms > now_ms).map(|until_ms| Why {
            reason: "in_place".to_owned(),
            who: "reprieve".to_owned(),
            until_ms: Some(until_ms),
            source: None,
            text: format!("running: it sends again at {}", words::instant_and_distance(until_ms, now_ms)),
        }),
        JobState::RequiresAction => Some(Why {
            reason: "client".to_owned(),
            who: "client".to_owned(),
            until_ms: None,
            source: None,
            text: "its tool calls need results from its client; nothing runs until they are posted".to_owned(),
        }),
        JobState::Succeeded | JobState::Failed | JobState::Cancelled | JobState::Unknown => None,
    }
}

/// The same for one cell of a list, the instant first: what stands in the columns beside it is not said again.
#[must_use]
pub fn in_brief(job: &JobRow, now_ms: i64) -> Option<String> {
    let why = why(job, now_ms)?;
    Some(match (why.reason.as_str(), why.until_ms, why.source.as_ref().map(|read| read.name.as_str())) {
        ("hold", Some(until_ms), source) => {
            let source = match source {
                Some("curve") | None => "our own curve",
                Some(source) => source.rsplit('/').next().unwrap_or(source),
            };
            format!("until {}: {source}", words::instant_and_distance(until_ms, now_ms))
        }
        ("probe", ..) if job.hold.as_ref().is_some_and(|hold| hold.probe.is_some()) => {
            "behind the probe that is in flight".to_owned()
        }
        ("probe", ..) => "its hold has ended: one probe goes first".to_owned(),
        ("parked", ..) => "closed, and no reset was named; see `reprieve holds`".to_owned(),
        _ => why.text,
    })
}

/// The same of one job, where the live workers are known: one that nobody takes says so.
#[must_use]
pub fn why_among(job: &JobRow, workers: &[WorkerRow], now_ms: i64) -> Option<Why> {
    let queue = &job.lane.queue;
    let taken = workers.iter().any(|worker| worker.queues.is_empty() || worker.queues.contains(queue));
    why(job, now_ms).map(|why| {
        if taken || why.reason != "line" {
            return why;
        }
        let text = format!("no live worker takes queue `{queue}`; start one: `reprieve worker`");
        Why { reason: "no_worker".to_owned(), text, ..why }
    })
}

fn queued(job: &JobRow, now_ms: i64) -> Why {
    let due_ms = job.due_ms.filter(|due_ms| *due_ms > now_ms);
    // If both keep it, the one that ends last leads.
    let hold =
        job.hold.as_ref().filter(|hold| hold.until_ms.is_none_or(|until_ms| due_ms.is_none_or(|due| due <= until_ms)));
    if let Some(hold) = hold {
        return held(hold, now_ms);
    }
    let Some(due_ms) = due_ms else {
        let since = duration::format(now_ms.saturating_sub(job.created_ms).max(0));
        let text =
            format!("ready, submitted {since} ago; it goes when a worker of queue `{}` has room", job.lane.queue);
        return Why { reason: "line".to_owned(), who: "worker".to_owned(), until_ms: None, source: None, text };
    };
    let at = words::instant_and_distance(due_ms, now_ms);
    let executions = job.executions.unwrap_or(0);
    let (reason, source, text) = if executions > 0 {
        let text = format!("failed {executions} executions; our own backoff, no provider's clock: next at {at}");
        ("backoff", Some(read_from("curve", None)), text)
    } else {
        ("not_before", None, format!("not before {at}"))
    };
    let who = if executions > 0 { "reprieve" } else { "submitter" };
    Why { reason: reason.to_owned(), who: who.to_owned(), until_ms: Some(due_ms), source, text }
}

fn held(hold: &HoldRow, now_ms: i64) -> Why {
    let scope = words::scope(&hold.scope);
    let allowance = hold.scope.model.is_empty();
    let (reason, text) = match hold.until_ms {
        None => (
            "parked",
            format!(
                "`{scope}` is closed and no reset was named: parked since {}; lifted by `reprieve holds release {}`",
                words::instant(hold.opened_ms, now_ms),
                hold.id
            ),
        ),
        Some(until_ms) if until_ms <= now_ms => {
            let ago = duration::format(now_ms.saturating_sub(until_ms));
            let probe = if hold.probe.is_some() { "its probe is in flight" } else { "one probe goes first" };
            ("probe", format!("the hold of `{scope}` ended {ago} ago; {probe}"))
        }
        Some(until_ms) => {
            let at = words::instant_and_distance(until_ms, now_ms);
            let what = if allowance { "the allowance of " } else { "" };
            let state = if allowance { "is spent" } else { "is closed" };
            let refusal = hold.refusal.map_or_else(
                || "a refusal".to_owned(),
                |met| format!("the refusal met by job {}, send {}", words::short_id(met.job_id), met.n),
            );
            let source = match (hold.source.as_str(), &hold.raw) {
                ("curve", _) => format!("our own curve, since {refusal} named no reset"),
                (source, Some(raw)) => format!("read from `{source}: {raw}` of {refusal}"),
                (source, None) => format!("read from `{source}` of {refusal}"),
            };
            ("hold", format!("{what}`{scope}` {state} until {at}: {source}; one probe goes first"))
        }
    };
    let source = read_from(&hold.source, hold.raw.as_deref());
    let who = match (source.kind.as_str(), hold.until_ms) {
        ("header" | "body", Some(_)) => "provider",
        (_, Some(_)) => "reprieve",
        (_, None) => "operator",
    };
    Why { reason: reason.to_owned(), who: who.to_owned(), until_ms: hold.until_ms, source: Some(source), text }
}

/// A source's name tells what it is: a pointer, the body's text, our own curve, or else a header.
fn read_from(name: &str, raw: Option<&str>) -> ReadFrom {
    let kind = match name {
        "curve" => "curve",
        "text" => "body",
        pointer if pointer.starts_with('/') || pointer.contains('#') => "body",
        _ => "header",
    };
    ReadFrom { kind: kind.to_owned(), name: name.to_owned(), raw: raw.map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Fence, HoldId, JobId, LaneKey, ScopeKey, SendKey, WorkerId};

    const NOW_MS: i64 = 1_796_047_385_000;

    fn scope(model: &str) -> ScopeKey {
        ScopeKey { provider: "api.example.com".into(), account: "main".into(), model: model.into() }
    }

    fn job() -> JobRow {
        JobRow {
            id: JobId(uuid::Uuid::nil()),
            state: JobState::Queued,
            deferred: false,
            lane: LaneKey { queue: "default".into(), tenant: String::new(), scope: scope("m") },
            entry: "e".into(),
            priority: 0,
            labels: Vec::new(),
            spec: "{}".into(),
            result: None,
            error: None,
            created_ms: NOW_MS - 38_000,
            finished_ms: None,
            deadline_ms: None,
            retry_of: None,
            seq: Some(1),
            due_ms: None,
            executions: Some(0),
            deferrals: Some(0),
            wait_until_ms: None,
            hold: None,
            paused: None,
            queue_paused: None,
            schedule: None,
        }
    }

    fn hold(model: &str, until_ms: Option<i64>) -> HoldRow {
        HoldRow {
            id: HoldId(uuid::Uuid::nil()),
            scope: scope(model),
            cause: "rate_limit".into(),
            kind: None,
            opened_ms: NOW_MS - 60_000,
            until_ms,
            source: "retry-after".into(),
            raw: Some("52".into()),
            refusal: Some(SendKey { job_id: JobId(uuid::Uuid::nil()), fence: Fence(3), n: 2 }),
            extended: 0,
            barren: 0,
            probe: None,
            ended_ms: None,
            end: None,
            waiting: 1,
        }
    }

    #[test]
    fn every_pattern_says_who_decides_until_when_and_what_then() {
        let soon = NOW_MS + 252_000;
        let cases = [
            job(),
            JobRow { due_ms: Some(soon), ..job() },
            JobRow { due_ms: Some(soon), executions: Some(3), ..job() },
            JobRow { hold: Some(hold("m", Some(soon))), ..job() },
            JobRow { hold: Some(HoldRow { source: "curve".into(), ..hold("m", Some(soon)) }), ..job() },
            JobRow { hold: Some(hold("", Some(NOW_MS + 67_920_000))), ..job() },
            JobRow { hold: Some(hold("", None)), ..job() },
            JobRow { hold: Some(hold("m", Some(NOW_MS - 120))), ..job() },
            JobRow { hold: Some(hold("m", Some(soon))), due_ms: Some(soon + 1_000), ..job() },
            JobRow { state: JobState::Running, wait_until_ms: Some(NOW_MS + 7_000), ..job() },
            JobRow { state: JobState::RequiresAction, ..job() },
        ];
        let said: Vec<String> = cases
            .iter()
            .map(|job| why(job, NOW_MS).unwrap())
            .map(|why| format!("{}: {}", why.reason, why.text))
            .collect();
        insta::assert_snapshot!(said.join("\n"));
        let worker = |queues: &[&str]| WorkerRow {
            id: WorkerId(uuid::Uuid::nil()),
            queues: queues.iter().map(|queue| (*queue).to_owned()).collect(),
            started_ms: 0,
            heartbeat_ms: 0,
            lease_ms: 1,
            concurrency: 1,
        };
        let among = |workers: &[WorkerRow]| why_among(&job(), workers, NOW_MS).unwrap().reason;
        assert_eq!(among(&[]), "no_worker");
        assert_eq!(among(&[worker(&["other"])]), "no_worker");
        assert_eq!([among(&[worker(&["default"])]), among(&[worker(&[])])], ["line", "line"]);
        assert_eq!(why(&JobRow { state: JobState::Running, ..job() }, NOW_MS), None);
        assert_eq!(why(&JobRow { state: JobState::Failed, ..job() }, NOW_MS), None);
    }
}
