//! Where a job is that nothing keeps: it has ended, or it is what nobody should ever see.

use super::reasons::{Known, Reason, ago, counted};
use super::{shapes, words};
use crate::duration;
use crate::failure::ErrorDocument;
use crate::store::JobState;

/// What became of a job, or that nothing explains it.
pub(super) fn ended(known: &Known<'_>) -> Reason {
    let job = known.job;
    let text = match job.state {
        JobState::Succeeded => format!("Succeeded {}{}.", when(known), sent(known)),
        JobState::Failed => format!("Failed {}{}: {}.", when(known), sent(known), error(known)),
        JobState::Cancelled => format!("Cancelled {}{}{}.", when(known), sent(known), phase(known)),
        JobState::Queued | JobState::Running | JobState::RequiresAction | JobState::Unknown => {
            return unexplained(known);
        }
    };
    let text = format!("{text}{}{}", unanswered(known), retried(known));
    Reason {
        who: None,
        waits: false,
        is_live: false,
        ..Reason::new(shapes::state(job.state, false), "", text, "nothing: it has ended")
    }
}

fn unexplained(known: &Known<'_>) -> Reason {
    let job = known.job;
    let at = |at_ms: Option<i64>| at_ms.map_or_else(|| "none".to_owned(), |at_ms| words::instant(at_ms, known.now_ms));
    let hold = job.hold.as_ref().map_or_else(|| "no hold".to_owned(), |hold| format!("hold {}", hold.id));
    let turn = job.seq.map_or_else(|| "no live turn".to_owned(), |seq| format!("turn {seq}"));
    let text = format!(
        "State `{}`, {turn}, due {}, {hold}. This should not be; please report it with `reprieve job {} --json`.",
        shapes::state(job.state, job.deferred),
        at(job.due_ms),
        job.id
    );
    Reason { waits: false, ..Reason::new("unexplained", "operator", text, "nobody knows") }
}

fn when(known: &Known<'_>) -> String {
    let Some(at_ms) = known.job.finished_ms else { return "at an unknown instant".to_owned() };
    let took = duration::format(at_ms.saturating_sub(known.job.created_ms).max(0));
    let at = words::instant(at_ms, known.now_ms);
    format!("at {at} ({} ago), {took} after it was submitted", ago(at_ms, known.now_ms))
}

fn sent(known: &Known<'_>) -> String {
    let count = |n: usize, what: &str| counted(u32::try_from(n).unwrap_or(u32::MAX), what);
    match (known.aside.executions, known.aside.sends) {
        (0, _) => String::new(),
        (executions, sends) => format!(", after {} and {}", count(executions, "execution"), count(sends, "send")),
    }
}

/// The error's own line.
fn error(known: &Known<'_>) -> String {
    let document = known.job.error.as_deref().map(serde_json::from_str::<ErrorDocument>);
    match document {
        Some(Ok(document)) if !document.message.is_empty() => document.message.trim_end_matches('.').to_owned(),
        Some(Ok(document)) => document.code,
        Some(Err(_)) => "its error cannot be read by this release".to_owned(),
        None => "no error was kept".to_owned(),
    }
}

/// Where a cancel struck.
fn phase(known: &Known<'_>) -> String {
    let document = known.job.error.as_deref().and_then(|text| serde_json::from_str::<ErrorDocument>(text).ok());
    let phase = document.and_then(|document| document.phase);
    match phase.as_deref() {
        Some("waiting") => ", while it waited".to_owned(),
        Some("connecting") => ", while it connected".to_owned(),
        Some("sending") => ", while it was being sent".to_owned(),
        Some("streaming") => ", while its answer came".to_owned(),
        Some("in_place_wait") => ", while it waited in place".to_owned(),
        Some(other) => format!(", while in `{other}`"),
        None => String::new(),
    }
}

/// What somebody told it and it never answered: it came while the last turn was under way.
fn unanswered(known: &Known<'_>) -> String {
    match known.aside.unanswered {
        0 => String::new(),
        1 => " 1 message that was put in has no answer.".to_owned(),
        n => format!(" {n} messages that were put in have no answer."),
    }
}

fn retried(known: &Known<'_>) -> String {
    known.aside.retried_by.map_or_else(String::new, |id| format!(" It was retried as job {id}."))
}
