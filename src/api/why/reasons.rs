//! Each thing that can keep a live job, as a sentence.

use super::{Aside, ReadFrom, words};
use crate::duration;
use crate::recovery::{Numbers, Policy};
use crate::store::{
    HoldEventRow, HoldId, HoldRow, InHandStanding, JobRow, JobState, LastFailure, Pause, ScopeKey, SendKey, Standing,
};

/// What is known of a job. A row of a list knows no standing.
pub(super) struct Known<'a> {
    pub job: &'a JobRow,
    pub now_ms: i64,
    pub standing: Option<&'a Standing>,
    /// Live workers that take its queue; `None`: not known.
    pub takers: Option<u32>,
    pub aside: &'a Aside,
}

/// One thing that keeps a job, or where it is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reason {
    /// As [`super::Why`] has it.
    pub word: &'static str,
    /// Who decides when it ends; `None`: there is nothing to decide.
    pub who: Option<&'static str>,
    pub until_ms: Option<i64>,
    /// Without an end until somebody acts.
    pub is_endless: bool,
    /// It keeps the job from being sent; else it says where the job is.
    pub waits: bool,
    /// The job has not ended.
    pub is_live: bool,
    pub source: Option<ReadFrom>,
    pub refusal: Option<SendKey>,
    pub hold: Option<HoldId>,
    pub next: String,
    /// Whole sentences.
    pub text: String,
}

impl Reason {
    pub fn new(word: &'static str, who: &'static str, text: String, next: impl Into<String>) -> Self {
        Self {
            word,
            who: Some(who),
            until_ms: None,
            is_endless: false,
            waits: true,
            is_live: true,
            source: None,
            refusal: None,
            hold: None,
            next: next.into(),
            text,
        }
    }

    fn endless(self) -> Self {
        Self { is_endless: true, ..self }
    }

    fn until(self, until_ms: i64) -> Self {
        Self { until_ms: Some(until_ms), ..self }
    }

    /// What ends last is greatest: what has no end, then by the instant, then what is over already.
    fn ends(&self) -> (u8, i64) {
        match (self.is_endless, self.until_ms) {
            (true, _) => (2, 0),
            (false, Some(until_ms)) => (1, until_ms),
            (false, None) => (0, 0),
        }
    }
}

/// Everything that keeps a live job, that which ends last first. Empty of a job that has ended.
pub(super) fn all(known: &Known<'_>) -> Vec<Reason> {
    match known.job.state {
        JobState::Queued if known.job.seq.is_some() => queued(known),
        JobState::Running => running(known),
        JobState::RequiresAction => {
            let text = "Its tool calls need results from its client. Nothing runs until they are posted.".to_owned();
            vec![Reason::new("client", "client", text, "the results are read by its next turn").endless()]
        }
        JobState::Queued | JobState::Unknown | JobState::Succeeded | JobState::Failed | JobState::Cancelled => {
            Vec::new()
        }
    }
}

fn queued(known: &Known<'_>) -> Vec<Reason> {
    let job = known.job;
    let mut reasons: Vec<Reason> = Vec::new();
    reasons.extend(job.paused.as_ref().map(|pause| paused(pause, known)));
    reasons.extend(job.queue_paused.as_ref().map(|pause| queue_paused(pause, known)));
    reasons.extend(job.hold.as_ref().map(|hold| held(hold, known)));
    if known.takers == Some(0) {
        reasons.push(no_worker(known));
    }
    let due_ms = job.due_ms.filter(|due_ms| *due_ms > known.now_ms);
    reasons.extend(due_ms.map(|due_ms| later(due_ms, known)));
    // The order above stands between those that have no end.
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.ends()));
    if reasons.is_empty() {
        reasons.push(in_line(known));
    }
    // Known of this process alone: another may have it.
    if known.aside.no_provider {
        let text = format!(
            "Provider entry `{}` is not configured here; workers without it leave its jobs to those that have it.",
            job.entry
        );
        let then = "a worker that has the entry takes it";
        let at = usize::from(reasons.first().is_none_or(|lead| !matches!(lead.word, "line" | "full" | "ramp")));
        reasons.insert(at, Reason::new("no_provider", "operator", text, then).endless());
    }
    // It keeps nothing from being sent, but from being answered.
    if let Some(variable) = &known.aside.missing_key {
        let text = format!(
            "Provider entry `{}` has no key here: set {variable} and start its workers again, or its sends are refused.",
            job.entry
        );
        let reason = Reason::new("no_key", "operator", text, "its sends carry the key").endless();
        let at = usize::from(reasons.first().is_none_or(|lead| !matches!(lead.word, "line" | "full" | "ramp")));
        reasons.insert(at, reason);
    }
    reasons
}

fn paused(pause: &Pause, known: &Known<'_>) -> Reason {
    let text = format!("The job itself {}; no end is set.", stopped(pause, known.now_ms));
    Reason::new("paused", "operator", text, "it stands in line again once somebody resumes it").endless()
}

fn queue_paused(pause: &Pause, known: &Known<'_>) -> Reason {
    let queue = &known.job.lane.queue;
    let text = format!("Queue `{queue}` {}; no end is set.", stopped(pause, known.now_ms));
    let next = format!("its turns are claimed again after `reprieve queues resume {queue}`");
    Reason::new("queue_paused", "operator", text, next).endless()
}

fn stopped(pause: &Pause, now_ms: i64) -> String {
    format!("is paused since {} {}", words::instant(pause.since_ms, now_ms), by(&pause.by, pause.reason.as_deref()))
}

/// Who did something by hand, and why.
fn by(who: &str, reason: Option<&str>) -> String {
    let who = match who {
        "command line" => "by the command line".to_owned(),
        "api" => "by the API".to_owned(),
        token => format!("by token `{token}`"),
    };
    reason.filter(|reason| !reason.is_empty()).map_or_else(|| who.clone(), |reason| format!("{who} ({reason})"))
}

fn no_worker(known: &Known<'_>) -> Reason {
    let queue = &known.job.lane.queue;
    let seen = match known.standing.map(|standing| standing.worker_seen_ms) {
        None => String::new(),
        Some(None) => "; none was seen in the last day".to_owned(),
        Some(Some(seen_ms)) => format!("; the last was seen {} ago", ago(seen_ms, known.now_ms)),
    };
    let text = format!("No live worker takes queue `{queue}`{seen}. Start one: `reprieve worker`.");
    Reason::new("no_worker", "operator", text, "a worker that takes the queue claims it").endless()
}

/// Due later: a backoff of ours, or what its submitter asked for.
fn later(due_ms: i64, known: &Known<'_>) -> Reason {
    let job = known.job;
    let at = words::instant_and_distance(due_ms, known.now_ms);
    let executions = job.executions.unwrap_or(0);
    let failure = known.standing.and_then(|standing| standing.last_failure.as_ref());
    let met = failure.map_or_else(String::new, |failure| format!(" ({})", met(failure)));
    let (reason, who, text) = if executions > 0 {
        let count = match numbers(known) {
            Some(n) => format!("{} of {}", words::count(i64::from(executions)), counted(n.requeue.limit, "execution")),
            None => counted(executions, "execution"),
        };
        let text = format!("Failed {count}{met}. Our own backoff, no provider's clock: next at {at}.");
        ("backoff", "reprieve", text)
    } else if failure.is_some() {
        ("backoff", "reprieve", format!("Put back{met}; that counts as no execution. Next at {at}."))
    } else if job.seq.is_some_and(|seq| seq > 1) && job.retry_of.is_none() {
        let text = format!("Its answer was cut, and goes on not before {at}: that long the provider is not asked.");
        ("backoff", "reprieve", text)
    } else {
        ("not_before", "submitter", format!("Not before {at}, asked by its submitter."))
    };
    let source =
        (reason == "backoff").then(|| ReadFrom { kind: "curve".to_owned(), name: "curve".to_owned(), raw: None });
    Reason { source, ..Reason::new(reason, who, text, "it stands in line").until(due_ms) }
}

/// The numbers that its worker goes by, where they are known here.
fn numbers<'a>(known: &Known<'a>) -> Option<&'a Numbers> {
    known.aside.policy.as_ref().map(Policy::numbers)
}

/// A failure in a word or two.
pub(super) fn met(failure: &LastFailure) -> String {
    match (failure.http_status, &failure.class, &failure.cause, &failure.code) {
        (Some(status), ..) => status.to_string(),
        (None, _, Some(cause), _) if cause == "transport" => "transport".to_owned(),
        (None, Some(class), ..) => class.clone(),
        (None, None, Some(word), _) | (None, None, None, Some(word)) => word.clone(),
        (None, None, None, None) => failure.outcome.clone(),
    }
}

/// Whose word a hold's end is.
enum Word<'a> {
    Provider,
    Ours,
    Hand(Option<&'a HoldEventRow>),
}

fn word_of<'a>(hold: &HoldRow, events: &'a [HoldEventRow]) -> Word<'a> {
    let moved = |event: &&HoldEventRow| {
        ["opened", "extended", "refused_again", "closed_by_hand"].contains(&event.event.as_str())
    };
    let last = events.iter().rev().find(moved).filter(|event| event.event == "closed_by_hand");
    match hold.source.as_str() {
        _ if last.is_some() => Word::Hand(last),
        "curve" => Word::Ours,
        _ if hold.refusal.is_none() => Word::Hand(None),
        _ => Word::Provider,
    }
}

fn held(hold: &HoldRow, known: &Known<'_>) -> Reason {
    let now_ms = known.now_ms;
    let word = word_of(hold, &known.aside.hold_events);
    let source = match word {
        Word::Hand(_) => ReadFrom { kind: "operator".to_owned(), name: "operator".to_owned(), raw: None },
        Word::Provider | Word::Ours => read_from(&hold.source, hold.raw.as_deref()),
    };
    let scope = words::scope(&hold.scope);
    let next = behind(known);
    let reason = match (hold.until_ms, &word) {
        (Some(until_ms), _) if until_ms <= now_ms => {
            let probe = if hold.probe.is_some() { "its probe is in flight" } else { "one probe goes first" };
            let text = format!("The hold of `{scope}` ended {} ago; {probe}.", ago(until_ms, now_ms));
            Reason::new("probe", "provider", text, "the probe's answer opens the scope, or its refusal closes it again")
        }
        (Some(until_ms), Word::Hand(event)) => {
            let at = words::instant_and_distance(until_ms, now_ms);
            let by = event.map_or_else(String::new, |event| format!(" {}", closed_by(event)));
            let text = format!("`{scope}` is closed by hand until {at}{by}. {}.", upper(&next));
            Reason::new("hold", "operator", text, next).until(until_ms)
        }
        (Some(until_ms), word) => {
            let (who, read) = match word {
                Word::Provider => ("provider", read_of(hold)),
                Word::Ours | Word::Hand(_) => {
                    ("reprieve", format!("our own curve, since {} named no reset", refusal(hold)))
                }
            };
            let at = words::instant_and_distance(until_ms, now_ms);
            let text = if hold.scope.model.is_empty() {
                let waiting = waiting(hold, known);
                format!("The plan window of `{scope}` is spent until {at}: {read}. {waiting}; nobody is asked before.")
            } else {
                format!("`{scope}` is closed until {at}: {read}. {}.", upper(&next))
            };
            Reason::new("hold", who, text, next).until(until_ms)
        }
        (None, word) => {
            let since = words::instant(hold.opened_ms, now_ms);
            let release = release(&hold.scope);
            let text = match word {
                Word::Hand(event) => {
                    let by = event.map_or_else(String::new, |event| format!(" {}", closed_by(event)));
                    format!("`{scope}` is closed by hand since {since}{by}; no end is set. Lifted by `{release}`.")
                }
                Word::Provider | Word::Ours => format!(
                    "The quota of `{scope}` is spent and no reset was named: parked since {since}. Lifted by `{release}`."
                ),
            };
            Reason::new("parked", "operator", text, next).endless()
        }
    };
    Reason { source: Some(source), refusal: hold.refusal, hold: Some(hold.id), ..reason }
}

fn closed_by(event: &HoldEventRow) -> String {
    by(event.by.as_deref().unwrap_or("unknown"), event.reason.as_deref())
}

fn release(scope: &ScopeKey) -> String {
    let model = if scope.model.is_empty() { String::new() } else { format!(" --model {}", scope.model) };
    format!("reprieve holds release --provider {} --account {}{model}", scope.provider, scope.account)
}

/// Where a provider's word stood.
fn read_of(hold: &HoldRow) -> String {
    let raw = hold.raw.as_ref().map_or_else(String::new, |raw| format!(": {raw}"));
    format!("`{}{raw}` of {}", hold.source, refusal(hold))
}

fn refusal(hold: &HoldRow) -> String {
    hold.refusal.map_or_else(
        || "a refusal".to_owned(),
        |met| {
            let what = hold.refusal_status.map_or_else(|| "refusal".to_owned(), |status| status.to_string());
            format!("the {what} met by job {}, send {}", words::short_id(met.job_id), met.n)
        },
    )
}

/// What happens at a hold's end, and this turn's place in it.
fn behind(known: &Known<'_>) -> String {
    match known.standing.map(|standing| standing.ahead_in_scope) {
        None => "one probe goes first".to_owned(),
        Some(0) => "one probe goes first; this turn is the next in line for it".to_owned(),
        Some(n) if n >= MOST => {
            format!("one probe goes first; {} turns or more are before this one", words::count(i64::from(MOST)))
        }
        Some(n) => format!("one probe goes first; this turn is {} behind it", ordinal(n)),
    }
}

/// How far places and turns are counted.
const MOST: u32 = 10_000;

fn waiting(hold: &HoldRow, known: &Known<'_>) -> String {
    let waiting = known.standing.map_or(hold.waiting, |standing| i64::from(standing.behind_hold));
    match waiting {
        ..=1 => "This turn waits for it".to_owned(),
        2 => "Both turns of that account wait".to_owned(),
        n if n >= i64::from(MOST) => format!("{} turns of that account or more wait", words::count(n)),
        n => format!("All {} turns of that account wait", words::count(n)),
    }
}

/// Nothing keeps it but those before it.
fn in_line(known: &Known<'_>) -> Reason {
    let job = known.job;
    let since = ready_for(known).map_or_else(|| "Ready".to_owned(), |ms| format!("Ready for {}", duration::format(ms)));
    let Some(standing) = known.standing else {
        let text = format!("{since}; it goes when a worker of queue `{}` has room.", job.lane.queue);
        return Reason::new("line", "worker", text, "a worker claims it");
    };
    for (scope, flow) in [(job.lane.scope.clone(), &standing.model), (job.lane.scope.of_account(), &standing.account)] {
        let Some(limit) = flow.limit.filter(|limit| flow.in_flight >= *limit) else { continue };
        let scope = words::scope(&scope);
        if let Some(max) = flow.max_in_flight.filter(|max| limit < *max) {
            let soon = soon(standing)
                .map_or_else(String::new, |ms| format!(", this turn goes in about {}", duration::format(ms)));
            let text = format!("`{scope}` reopened; ramp {limit} of {max}{soon}.");
            return Reason::new("ramp", "reprieve", text, "each answer lets more sends start");
        }
        let oldest =
            flow.oldest_ms.map_or_else(String::new, |at_ms| format!(" (the oldest runs {})", ago(at_ms, known.now_ms)));
        let text = format!(
            "Ready, but {} of {limit} sends of `{scope}` are in flight; it goes when one ends{oldest}.",
            flow.in_flight
        );
        return Reason::new("full", "reprieve", text, "it goes when a send ends");
    }
    let before = match standing.ahead {
        0 => "no turn of this lane is before it".to_owned(),
        1 => "1 turn of this lane is before it".to_owned(),
        n if n >= MOST => format!("{} turns of this lane or more are before it", words::count(i64::from(n))),
        n => format!("{} turns of this lane are before it", words::count(i64::from(n))),
    };
    let text = format!("{since}; {before}; {}.", rate(standing.claims_last_minute));
    Reason::new("line", "worker", text, "a worker claims it when it has room")
}

fn rate(claims_last_minute: u32) -> String {
    match claims_last_minute {
        0 => "the lane sent nothing over the last minute".to_owned(),
        n if n < 60 => format!("the lane does about {} a minute", counted(n, "send")),
        n => format!("the lane does about {} sends/s", words::count(i64::from(n.saturating_add(30) / 60))),
    }
}

/// When those before it in its lane have gone, at the lane's rate.
fn soon(standing: &Standing) -> Option<i64> {
    let claims = i64::from(standing.claims_last_minute);
    (claims > 0).then(|| (i64::from(standing.ahead) + 1).saturating_mul(60_000) / claims)
}

/// Since when it may be claimed, where that is known: a later turn's beginning is not.
fn ready_for(known: &Known<'_>) -> Option<i64> {
    let job = known.job;
    let failure = known.standing.and_then(|standing| standing.last_failure.as_ref()).map(|failure| failure.ended_ms);
    let first = job.seq.is_none_or(|seq| seq <= 1) || job.retry_of.is_some();
    let put_back = job.executions.unwrap_or(0) > 0 || job.deferrals.unwrap_or(0) > 0;
    let begun = if put_back { failure } else { Some(job.created_ms).filter(|_| first) };
    let since_ms = begun.into_iter().chain(job.due_ms).chain(failure.filter(|_| put_back)).max()?;
    (put_back || first || job.due_ms.is_some()).then(|| known.now_ms.saturating_sub(since_ms).max(0))
}

fn running(known: &Known<'_>) -> Vec<Reason> {
    let (job, now_ms) = (known.job, known.now_ms);
    let in_hand = known.standing.and_then(|standing| standing.in_hand.as_ref());
    let since =
        in_hand.map_or_else(|| "Running".to_owned(), |hand| format!("Running for {}", ago(hand.claimed_ms, now_ms)));
    let mut reasons = Vec::new();
    if in_hand.is_some_and(|hand| hand.cancel_asked) {
        let text = format!("{since}; somebody asked to cancel it, and its worker stops it.");
        let next = "its job ends as cancelled";
        reasons.push(Reason { waits: false, ..Reason::new("cancelling", "worker", text, next) });
    }
    match job.wait_until_ms {
        Some(until_ms) if until_ms > now_ms => reasons.push(in_place(until_ms, in_hand, known)),
        Some(until_ms) => {
            let text = format!(
                "Running: its wait in place ended {} ago; it goes when `{}` has room for a send.",
                ago(until_ms, now_ms),
                words::scope(&job.lane.scope)
            );
            reasons.push(Reason::new("in_place", "reprieve", text, "its next send starts"));
        }
        None if reasons.is_empty() => {
            let send = in_hand.map_or_else(
                || "a send is on the wire".to_owned(),
                |hand| format!("send {} is on the wire", hand.replaced.saturating_add(1)),
            );
            let text = format!("{since}: {send}.");
            reasons
                .push(Reason { waits: false, ..Reason::new("running", "provider", text, "its answer ends the turn") });
        }
        None => {}
    }
    // What is in hand finishes first.
    reasons.extend(job.paused.as_ref().map(|pause| paused(pause, known)));
    reasons.extend(job.queue_paused.as_ref().map(|pause| queue_paused(pause, known)));
    reasons
}

fn in_place(until_ms: i64, in_hand: Option<&InHandStanding>, known: &Known<'_>) -> Reason {
    let at = words::instant_and_distance(until_ms, known.now_ms);
    let wait = in_hand.and_then(|hand| hand.wait_ms).map_or_else(
        || format!("waits in place until {at}"),
        |ms| format!("waits {} in place until {at}", duration::format(ms)),
    );
    let send = in_hand.map_or_else(String::new, |hand| {
        let send = hand.replaced.saturating_add(1);
        let tier = numbers(known).zip(hand.outcome.as_deref()).map(|(n, outcome)| match outcome {
            "refused" => n.refusal.limit,
            _ => n.transient.limit,
        });
        // One past its tier is the policy's of another configuration.
        let of = tier.filter(|limit| send <= *limit).map_or_else(String::new, |limit| format!(" of {limit}"));
        format!(" before send {send}{of}")
    });
    let source = in_hand
        .and_then(|hand| hand.wait_source.as_deref().map(|name| read_from(name, hand.wait_raw.as_deref())))
        .or_else(|| known.job.hold.as_ref().map(|hold| read_from(&hold.source, hold.raw.as_deref())));
    let read = source.as_ref().map_or_else(String::new, |source| match (source.kind.as_str(), &source.raw) {
        ("curve", _) => " (our own curve)".to_owned(),
        (_, Some(raw)) => format!(" (`{}: {raw}`)", source.name),
        (_, None) => format!(" (`{}`)", source.name),
    });
    let who = if source.as_ref().is_some_and(|source| source.kind != "curve") { "provider" } else { "reprieve" };
    let text = format!("Running: {wait}{send}{read}.");
    let hold = known.job.hold.as_ref();
    let reason = Reason::new("in_place", who, text, "its next send starts").until(until_ms);
    Reason { source, refusal: hold.and_then(|hold| hold.refusal), hold: hold.map(|hold| hold.id), ..reason }
}

/// A source's name tells what it is: a pointer, the body's text, our own curve, or else a header.
pub(super) fn read_from(name: &str, raw: Option<&str>) -> ReadFrom {
    let kind = match name {
        "curve" => "curve",
        "text" => "body",
        pointer if pointer.starts_with('/') || pointer.contains('#') => "body",
        _ => "header",
    };
    ReadFrom { kind: kind.to_owned(), name: name.to_owned(), raw: raw.map(str::to_owned) }
}

pub(super) fn ago(at_ms: i64, now_ms: i64) -> String {
    duration::format(now_ms.saturating_sub(at_ms).max(0))
}

/// `1 send`, `2 sends`.
pub(super) fn counted(n: u32, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{} {what}s", words::count(i64::from(n))) }
}

fn ordinal(n: u32) -> String {
    let end = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{}{end}", words::count(i64::from(n)))
}

fn upper(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
