//! `explain ID`: why a job is where it is: who decides, until when, where that was read, and what happens then.

use super::find;
use super::out::Out;
use super::table::printable;
use super::trouble::{Exit, Trouble};
use super::words::{next, wrapped};
use crate::agent::Directory;
use crate::api::Kind;
use crate::api::why::{Explanation, explain_job};
use crate::api::words;
use crate::store::Store;
use clap::Args;

#[derive(Args, Clone, Debug)]
pub struct ExplainArgs {
    /// The job: its whole id, or as lists show it
    pub id: String,
}

pub async fn run<S: Store>(
    store: &S,
    directory: &Directory,
    args: &ExplainArgs,
    out: &mut Out,
) -> Result<Exit, Trouble> {
    let id = find::job_id(store, &args.id).await?;
    let unknown = || Trouble::new(Kind::NotFound, format!("there is no job {id}; `reprieve jobs` lists them"));
    let explanation = explain_job(store, directory, id).await?.ok_or_else(unknown)?;
    if out.json {
        out.document(&explanation)?;
    } else {
        show(&explanation, out)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn show(explanation: &Explanation, out: &mut Out) -> Result<(), Trouble> {
    out.line(format!("Job {}: {}", explanation.job_id, explanation.state))?;
    for line in wrapped(&printable(&explanation.text), out.width().saturating_sub(2)) {
        out.line(format!("  {line}"))?;
    }
    // Both forms of the instant: the sentence has the short one.
    if let Some(until_ms) = explanation.until_ms {
        out.line(format!("  until {}", words::exact(until_ms)))?;
    }
    hint(explanation, out)
}

/// What one would look at, or do, next.
fn hint(explanation: &Explanation, out: &mut Out) -> Result<(), Trouble> {
    if let Some(refusal) = explanation.refusal {
        let which = format!("resets {}", super::resets::refusal::name(refusal));
        return next(&which, "the refusal, and every clock named in it", out);
    }
    if let Some(hold) = explanation.hold {
        return next(&format!("holds {hold}"), "all that befell it", out);
    }
    let id = words::short_id(explanation.job_id);
    match (explanation.reason.as_str(), explanation.state.as_str()) {
        ("no_worker", _) => next("worker", "takes turns until it is stopped", out),
        ("no_key", _) => next("doctor", "where the key should be", out),
        ("queue_paused", _) => next("queues", "who paused it, and resuming it", out),
        ("paused", _) => next(&format!("resume {id}"), "to let it go on", out),
        (_, "failed" | "cancelled") => next(&format!("retry {id}"), "to let it go on from where it ended", out),
        _ => next(&format!("job {id}"), "its turns, sends and transcript", out),
    }
}
