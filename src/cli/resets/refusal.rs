//! One refusal whole: every clock that was named in it, which was taken and why, and what came of it.

use super::super::find;
use super::super::out::Out;
use super::super::table::printable;
use super::super::trouble::{Exit, Trouble};
use super::super::words::{next, wrapped};
use crate::api::{Kind, shapes, words};
use crate::duration;
use crate::failure::{Candidate, Verdict};
use crate::store::{Fence, HoldEventRow, JobId, ResetRow, SendKey, Store, TurnView};

/// Shows the refusals that `which` names: of a job, or one of them.
pub async fn run<S: Store>(store: &S, which: &str, out: &mut Out) -> Result<Exit, Trouble> {
    let (job, send) = parsed(which)?;
    let job_id = find::job_id(store, job).await?;
    let now_ms = store.clock().now_ms();
    let keys = match send {
        Some((fence, n)) => vec![SendKey { job_id, fence, n }],
        None => of_job(store, job_id).await?,
    };
    let mut rows = Vec::new();
    for key in keys {
        rows.extend(store.reset(key).await?);
    }
    if rows.is_empty() {
        let what = match send {
            Some(_) => format!("there is no refusal {which}; `reprieve resets {job_id}` shows those of its job"),
            None => format!("job {job_id} met no refusal; `reprieve resets` lists them"),
        };
        return Err(Trouble::new(Kind::NotFound, what));
    }
    if out.json {
        let mut items: Vec<shapes::Reset> = rows.into_iter().map(shapes::Reset::from).collect();
        match (send, items.pop()) {
            (Some(_), Some(one)) => out.document(&one)?,
            (_, last) => {
                items.extend(last);
                out.document(&shapes::List { items, next_cursor: None })?;
            }
        }
    } else {
        for (at, row) in rows.iter().enumerate() {
            if at > 0 {
                out.line("")?;
            }
            let events = match row.hold {
                Some(hold) => store.hold_events(hold).await?,
                None => Vec::new(),
            };
            show(row, &events, now_ms, out)?;
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// What a refusal is called: its job, the fence of the execution, the send.
#[must_use]
pub fn name(key: SendKey) -> String {
    format!("{}/{}/{}", words::short_id(key.job_id), key.fence.0, key.n)
}

/// `JOB` or `JOB/FENCE/N`.
fn parsed(which: &str) -> Result<(&str, Option<(Fence, u32)>), Trouble> {
    let Some((job, send)) = which.split_once('/') else { return Ok((which, None)) };
    let numbers = send.split_once('/').and_then(|(fence, n)| Some((Fence(fence.parse().ok()?), n.parse().ok()?)));
    numbers.map(|numbers| (job, Some(numbers))).ok_or_else(|| {
        let which = which.escape_debug();
        Trouble::usage(format!("`{which}` names no refusal; write JOB, or JOB/FENCE/N with two whole numbers"))
    })
}

async fn of_job<S: Store>(store: &S, job_id: JobId) -> Result<Vec<SendKey>, Trouble> {
    let turns = store.turns(job_id).await?;
    let keys = |turn: &TurnView| {
        let fence = turn.fence;
        turn.evidence.iter().map(|evidence| SendKey { job_id, fence, n: evidence.n }).collect::<Vec<_>>()
    };
    Ok(turns.iter().flat_map(keys).collect())
}

/// Shows it. `events` are those of the hold that it opened or dated.
fn show(row: &ResetRow, events: &[HoldEventRow], now_ms: i64, out: &mut Out) -> Result<(), Trouble> {
    let key = row.key;
    out.line(format!("Refusal of job {}, execution {}, send {}", key.job_id, key.fence.0, key.n))?;
    let width = out.width().saturating_sub(15);
    for (label, value) in fields(row, events, now_ms) {
        for (at, line) in wrapped(&printable(&value), width).iter().enumerate() {
            out.line(format!("  {:<13}{line}", if at == 0 { label } else { "" }))?;
        }
    }
    if row.evidence.candidates.is_empty() {
        out.line("  Nothing in it could be read as a clock.")?;
    } else {
        candidates(row, out)?;
    }
    match row.hold {
        Some(hold) => next(&format!("holds {hold}"), "all that befell it", out),
        None => next(&format!("job {}", words::short_id(key.job_id)), "the whole job", out),
    }
}

/// An instant of a page of its own: whole, and how far it is.
fn at(at_ms: i64, now_ms: i64) -> String {
    let distance_ms = at_ms.saturating_sub(now_ms);
    let distance = duration::format(distance_ms.saturating_abs());
    let exact = words::exact(at_ms);
    if distance_ms >= 0 { format!("{exact} (in {distance})") } else { format!("{exact} ({distance} ago)") }
}

fn fields(row: &ResetRow, events: &[HoldEventRow], now_ms: i64) -> Vec<(&'static str, String)> {
    let evidence = &row.evidence;
    let kind = evidence.limit_kind.map_or_else(String::new, |kind| format!(" of {}", kind.as_str().replace('_', " ")));
    let rule = evidence.rule.as_deref().unwrap_or("none: by its status");
    let mut fields = vec![
        ("scope", words::scope(&row.lane.scope)),
        ("refused", at(evidence.received_ms, now_ms)),
        ("why", format!("{}{kind}; rule {rule}, version {}", evidence.cause, evidence.rules_version)),
    ];
    match (evidence.reset_at_ms, &evidence.source_name) {
        (Some(reset_at_ms), Some(source)) => {
            let kind = evidence.source_kind.as_deref().unwrap_or("header");
            let raw = evidence.raw.as_deref().map_or_else(String::new, |raw| format!(": {raw}"));
            let wait = duration::format(reset_at_ms.saturating_sub(evidence.received_ms));
            fields.push(("reset", format!("{}, {wait} after the refusal", words::exact(reset_at_ms))));
            fields.push(("named by", format!("{kind} `{source}{raw}`")));
        }
        _ => fields.push(("reset", "none was named; our own curve decides".to_owned())),
    }
    if let (Some(reset_at_ms), Some(resume_at_ms)) = (evidence.reset_at_ms, evidence.resume_at_ms) {
        fields.push(("on our clock", arithmetic(reset_at_ms, evidence.skew_ms, resume_at_ms)));
    }
    if let Some(decision) = &row.decision {
        fields.push(("decided", decision.replace('_', " ")));
    }
    if let Some(hold) = row.hold {
        let steps: Vec<String> = events
            .iter()
            .filter(|event| event.event != "probe_started" && event.event != "probe_returned")
            .map(|event| format!("{} {}", event.event.replace('_', " "), words::instant(event.at_ms, now_ms)))
            .collect();
        fields
            .push(("hold", if steps.is_empty() { hold.to_string() } else { format!("{hold}: {}", steps.join(", ")) }));
    }
    match row.tested_ms {
        Some(tested_ms) => {
            let late = row.lateness_ms.map_or_else(String::new, |late_ms| {
                if late_ms < 0 {
                    format!(", {} before the reset, after a release", duration::format(-late_ms))
                } else {
                    format!(", {} late", duration::format(late_ms))
                }
            });
            let send = row.test.map_or_else(String::new, |send| {
                format!(": job {}, execution {}, send {}", words::short_id(send.job_id), send.fence.0, send.n)
            });
            fields.push(("first send", format!("{}{late}{send}", words::exact(tested_ms))));
        }
        None => fields.push(("first send", "none yet after the reset".to_owned())),
    }
    fields.push(("word", word(row)));
    fields
}

/// How the instant on our clock came from the one that was named.
fn arithmetic(reset_at_ms: i64, skew_ms: i64, resume_at_ms: i64) -> String {
    if skew_ms == 0 && resume_at_ms == reset_at_ms {
        return "the same: no difference between the clocks was counted".to_owned();
    }
    let sign = if skew_ms < 0 { "−" } else { "+" };
    let skew = duration::format(skew_ms.saturating_abs());
    format!(
        "{}: named {} {sign} {skew} that the clocks differ by",
        words::exact(resume_at_ms),
        words::exact(reset_at_ms)
    )
}

fn word(row: &ResetRow) -> String {
    match (row.word.as_str(), row.again_by_ms) {
        ("kept", _) => "kept: the first send after it was not refused".to_owned(),
        ("refused_again", Some(by_ms)) => {
            format!("refused again; the reset named then is {} later", duration::format(by_ms))
        }
        ("refused_again", None) => "refused again, and no reset was named then".to_owned(),
        ("released", _) => "not put to the test: its hold was released before".to_owned(),
        ("cancelled", _) => "not put to the test: its job was cancelled".to_owned(),
        ("not_tested", _) => "not put to the test yet".to_owned(),
        (other, _) => other.replace('_', " "),
    }
}

/// Each on two lines: what it said, and what was made of it.
fn candidates(row: &ResetRow, out: &mut Out) -> Result<(), Trouble> {
    let received_ms = row.evidence.received_ms;
    let mut all: Vec<&Candidate> = row.evidence.candidates.iter().collect();
    all.sort_by_key(|candidate| candidate.verdict != Verdict::Selected);
    out.line("  Candidates")?;
    let width = out.width().saturating_sub(19);
    for candidate in all {
        let raw = candidate.raw.as_deref().map_or_else(String::new, |raw| format!(": {raw}"));
        let read = candidate.at_ms.map_or_else(String::new, |at_ms| {
            let delta_ms = at_ms.saturating_sub(received_ms);
            let sign = if delta_ms < 0 { "−" } else { "+" };
            format!(" ({sign}{})", duration::format(delta_ms.saturating_abs()))
        });
        let kind = candidate.kind.map(|kind| format!("counts {}", kind.as_str().replace('_', " ")));
        let left = candidate.remaining.as_deref().map(|left| format!("{left} left"));
        let why = std::iter::once(candidate.why.clone()).chain(kind).chain(left).collect::<Vec<_>>().join("; ");
        let named = wrapped(&printable(&format!("{}{raw}{read}", candidate.name)), width);
        let lines = named.into_iter().chain(wrapped(&printable(&why), width));
        for (at, line) in lines.enumerate() {
            out.line(format!("    {:<15}{line}", if at == 0 { candidate.verdict.as_str() } else { "" }))?;
        }
    }
    Ok(())
}
