//! One refusal whole: every clock that was named in it, which was taken and why, and what came of it.

use super::super::find;
use super::super::out::Out;
use super::super::table::printable;
use super::super::trouble::{Exit, Trouble};
use super::super::words::{next, wrapped};
use crate::api::audit::refusal_of;
use crate::api::shapes::{Heard, Refusal, Tested};
use crate::api::{Kind, shapes, words};
use crate::duration;
use crate::store::{Fence, HoldEventRow, JobId, ScopeKey, SendKey, Store, TurnView};

/// Shows the refusals that `which` names: of a job, or one of them.
pub async fn run<S: Store>(store: &S, which: &str, out: &mut Out) -> Result<Exit, Trouble> {
    let (job, send) = parsed(which)?;
    let job_id = find::job_id(store, job).await?;
    let keys = match send {
        Some((fence, n)) => vec![SendKey { job_id, fence, n }],
        None => of_job(store, job_id).await?,
    };
    let mut told = Vec::new();
    for key in keys {
        told.extend(refusal_of(store, key).await?);
    }
    if told.is_empty() {
        let what = match send {
            Some(_) => format!("there is no refusal {which}; `reprieve resets {job_id}` shows those of its job"),
            None => format!("job {job_id} met no refusal; `reprieve resets` lists them"),
        };
        return Err(Trouble::new(Kind::NotFound, what));
    }
    if out.json {
        match (send, told.pop()) {
            (Some(_), Some(one)) => out.document(&one)?,
            (_, last) => {
                told.extend(last);
                out.document(&shapes::List { items: told, next_cursor: None })?;
            }
        }
    } else {
        let now_ms = store.clock().now_ms();
        for (at, refusal) in told.iter().enumerate() {
            if at > 0 {
                out.line("")?;
            }
            let events = match &refusal.hold {
                Some(hold) => store.hold_events(hold.id).await?,
                None => Vec::new(),
            };
            show(refusal, &events, now_ms, out)?;
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
fn show(refusal: &Refusal, events: &[HoldEventRow], now_ms: i64, out: &mut Out) -> Result<(), Trouble> {
    out.line(format!("Refusal of job {}, execution {}, send {}", refusal.job_id, refusal.fence.0, refusal.n))?;
    for line in wrapped(&printable(&refusal.text), out.width().saturating_sub(2)) {
        out.line(format!("  {line}"))?;
    }
    out.line("")?;
    let width = out.width().saturating_sub(15);
    for (label, value) in fields(refusal, events, now_ms) {
        for (at, line) in wrapped(&printable(&value), width).iter().enumerate() {
            out.line(format!("  {:<13}{line}", if at == 0 { label } else { "" }))?;
        }
    }
    if refusal.candidates.is_empty() {
        out.line("  Nothing in it could be read as a clock.")?;
    } else {
        candidates(&refusal.candidates, out)?;
    }
    match &refusal.hold {
        Some(hold) => next(&format!("holds {}", hold.id), "all that befell it", out),
        None => next(&format!("job {}", words::short_id(refusal.job_id)), "the whole job", out),
    }
}

fn fields(refusal: &Refusal, events: &[HoldEventRow], now_ms: i64) -> Vec<(&'static str, String)> {
    let kind = refusal.kind.map_or_else(String::new, |kind| format!(" of {}", kind.as_str().replace('_', " ")));
    let rule = refusal.rule.as_deref().unwrap_or("none: by its status");
    let scope = ScopeKey {
        provider: refusal.scope.provider.clone(),
        account: refusal.scope.account.clone(),
        model: refusal.scope.model.clone().unwrap_or_default(),
    };
    let mut fields = vec![
        ("scope", words::scope(&scope)),
        ("why", format!("{}{kind}; rule {rule}, version {}", refusal.cause, refusal.rules_version)),
    ];
    if let Some(source) = &refusal.source {
        let raw = refusal.raw.as_deref().map_or_else(String::new, |raw| format!(": {raw}"));
        fields.push(("named by", format!("{} `{}{raw}`", source.kind, source.name)));
    }
    fields.push(("clocks", refusal.arithmetic.clone()));
    if let Some(decision) = &refusal.decision {
        fields.push(("decided", decision.replace('_', " ")));
    }
    if let Some(hold) = &refusal.hold {
        let steps: Vec<String> = events
            .iter()
            .filter(|event| event.event != "probe_started" && event.event != "probe_returned")
            .map(|event| format!("{} {}", event.event.replace('_', " "), words::instant(event.at_ms, now_ms)))
            .collect();
        let steps = if steps.is_empty() { String::new() } else { format!(": {}", steps.join(", ")) };
        fields.push(("hold", format!("{}{steps}", hold.id)));
    }
    fields.push(("first send", refusal.tested.as_ref().map_or_else(|| "none yet after it".to_owned(), tested)));
    fields
}

/// The first send after the resume instant, and what it was answered.
fn tested(tested: &Tested) -> String {
    let late = tested.lateness_ms.map_or_else(String::new, |late_ms| match late_ms {
        ..0 => format!(", {} before the reset, after a release", duration::format(late_ms.saturating_neg())),
        _ => format!(", {} late", duration::format(late_ms)),
    });
    let send = tested.send.map_or_else(String::new, |send| {
        format!(": job {}, execution {}, send {}", words::short_id(send.job_id), send.fence.0, send.n)
    });
    let outcome = tested.outcome.as_deref().map_or_else(String::new, |outcome| {
        let status = tested.http_status.map_or_else(String::new, |status| format!(" {status}"));
        format!(", {outcome}{status}")
    });
    format!("{}{late}{send}{outcome}", words::exact(tested.at_ms))
}

/// Each on two lines: what it said, and what was made of it. The selected one stands first.
fn candidates(all: &[Heard], out: &mut Out) -> Result<(), Trouble> {
    out.line("  Candidates")?;
    let width = out.width().saturating_sub(19);
    for Heard { candidate, delta_ms } in all {
        let raw = candidate.raw.as_deref().map_or_else(String::new, |raw| format!(": {raw}"));
        let read = delta_ms.map_or_else(String::new, |delta_ms| {
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
