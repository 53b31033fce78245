//! `run`: one prompt, its text as it comes, and an exit by its outcome.

use super::input::prompt;
use super::out::Out;
use super::service::Signals;
use super::table::printable;
use super::trouble::{Exit, Trouble};
use super::wait::{INTERRUPTED, start_if_needed};
use super::words::{ending, next};
use crate::agent::{Directory, SpecError, accept};
use crate::api::{Kind, Problem, said, shapes, why, words};
use crate::config::Config;
use crate::duration;
use crate::store::{JobId, JobRow, JobState, Store, Submitted};
use crate::worker::{Live, LiveEvent};
use clap::Args;
use serde_json::{Map, Value};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

#[derive(Args, Clone, Debug, Default)]
pub struct RunArgs {
    /// What is asked; - reads it from stdin
    pub prompt: String,
    /// The model, as its provider calls it
    #[arg(long)]
    pub model: String,
    /// The provider entry of the configuration; may be left out where there is one
    #[arg(long)]
    pub provider: Option<String>,
    /// Leave the job queued and exit 1 where it would have to wait longer than this
    #[arg(long, value_name = "DURATION", value_parser = max_wait)]
    pub max_wait: Option<i64>,
}

fn max_wait(text: &str) -> Result<i64, String> {
    duration::parse_ms(text).map_err(|why| format!("it {why}"))
}

/// The safety net under every wake-up.
const POLL: Duration = Duration::from_secs(1);

/// What a worker in this process tells.
enum Heard {
    Text(String),
    Note(String),
}

pub async fn run<S: Store>(store: S, config: &Config, args: &RunArgs, out: &mut Out) -> Result<Exit, Trouble> {
    let prompt = prompt(&args.prompt, "PROMPT")?;
    let job = accept(&spec(&prompt, args), &Directory::of(config), store.clock().now_ms(), None).map_err(in_flags)?;
    let (id, queue) = (job.id, job.lane.queue.clone());
    let (live, mut heard) = listener(id);
    let live = (!out.json).then_some(live);
    let running = start_if_needed(&store, config, &[queue], live).await?;
    match store.submit(vec![job]).await?.first() {
        Some(Submitted::Accepted(_)) => {}
        _ => return Err(Trouble::new(Kind::Internal, "the database took the job and did not answer")),
    }
    let mut asked = Signals::new();
    let outcome = tokio::select! {
        outcome = follow(&store, id, args, &mut heard, out) => outcome,
        () = asked.next() => Err(Trouble::new(Kind::Internal, format!("{INTERRUPTED} (job {id})"))),
    };
    if let Some(running) = running {
        running.end().await?;
    }
    store.close().await;
    outcome
}

/// What is wrong with the job, in the words of the command line.
fn in_flags(error: SpecError) -> Problem {
    let problem = Problem::from(error);
    match problem.at.as_deref() {
        Some("/provider") => problem.at("--provider"),
        Some("/model") => problem.at("--model"),
        Some("/input") => problem.at("PROMPT"),
        _ => problem,
    }
}

/// The job of a prompt.
fn spec(prompt: &str, args: &RunArgs) -> String {
    let mut spec = Map::new();
    spec.insert("model".into(), args.model.clone().into());
    if let Some(provider) = &args.provider {
        spec.insert("provider".into(), provider.clone().into());
    }
    spec.insert("input".into(), prompt.into());
    Value::Object(spec).to_string()
}

fn listener(job: JobId) -> (Live, mpsc::UnboundedReceiver<Heard>) {
    let (tell, heard) = mpsc::unbounded_channel();
    let live: Live = Arc::new(move |of: JobId, event: LiveEvent<'_>| {
        if of != job {
            return;
        }
        let said = match event {
            LiveEvent::Text(text) => Heard::Text(text.to_owned()),
            LiveEvent::Retry { summary, wait_ms } => {
                Heard::Note(format!("{summary}; it is sent again in {}", duration::format(wait_ms)))
            }
            LiveEvent::Deferred { .. } | LiveEvent::TurnEnded => return,
        };
        // Nobody listens any more once the job has ended.
        let _ = tell.send(said);
    });
    (live, heard)
}

async fn follow<S: Store>(
    store: &S,
    id: JobId,
    args: &RunArgs,
    heard: &mut mpsc::UnboundedReceiver<Heard>,
    out: &mut Out,
) -> Result<Exit, Trouble> {
    let mut changes = store.changes();
    let mut shown = String::new();
    let mut told_why = None;
    loop {
        changes.borrow_and_update();
        let now_ms = store.clock().now_ms();
        let Some(mut job) = store.job(id).await? else {
            return Err(Trouble::new(Kind::NotFound, format!("job {id} was deleted while it was waited for")));
        };
        // What was said before the job's state was read comes first.
        while let Ok(said) = heard.try_recv() {
            show(said, &mut shown, out)?;
        }
        if job.finished_ms.is_some() {
            said::fill_in(store, std::slice::from_mut(&mut job)).await?;
            return end(job, &shown, now_ms, out);
        }
        if let Some(why) = why::why(&job, now_ms).filter(|why| why.reason != "line") {
            let too_long = match (args.max_wait, why.until_ms) {
                (Some(max_ms), Some(until_ms)) => until_ms.saturating_sub(now_ms) > max_ms,
                // A probe or a permit is a matter of moments; what else has no end may take for ever.
                (Some(_), None) => !matches!(why.reason.as_str(), "probe" | "in_place"),
                (None, _) => false,
            };
            if told_why.as_ref() != Some(&(why.reason.clone(), why.until_ms)) {
                told_why = Some((why.reason.clone(), why.until_ms));
                writeln!(std::io::stderr().lock(), "{}", printable(&why.text))?;
            }
            if too_long {
                return left(id, why.until_ms, now_ms, out);
            }
        }
        tokio::select! {
            // Nothing is told where another process works.
            Some(said) = heard.recv() => show(said, &mut shown, out)?,
            // Either wakes us; the store is asked again in any case.
            _ = tokio::time::timeout(POLL, changes.changed()) => {}
        }
    }
}

fn show(said: Heard, shown: &mut String, out: &mut Out) -> Result<(), Trouble> {
    match said {
        Heard::Text(text) => {
            out.piece(&text)?;
            shown.push_str(&text);
        }
        Heard::Note(note) => {
            // The text so far is void: what comes next begins anew.
            if !shown.is_empty() {
                out.line("")?;
                out.flush()?;
                shown.clear();
            }
            writeln!(std::io::stderr().lock(), "{}", printable(&note))?;
        }
    }
    Ok(())
}

/// The wait is longer than was allowed.
fn left(id: JobId, until_ms: Option<i64>, now_ms: i64, out: &mut Out) -> Result<Exit, Trouble> {
    if out.json {
        out.document(&serde_json::json!({"id": id, "state": "queued", "until_ms": until_ms}))?;
    } else {
        let until = until_ms.map_or_else(
            || "until somebody lifts its hold".to_owned(),
            |until_ms| format!("until {}", words::instant_and_distance(until_ms, now_ms)),
        );
        out.line(format!("{id} waits {until}; it stays queued"))?;
        next(&format!("explain {id}"), "who said so", out)?;
    }
    out.flush()?;
    Ok(Exit::Failed)
}

fn end(job: JobRow, shown: &str, now_ms: i64, out: &mut Out) -> Result<Exit, Trouble> {
    let exit = if job.state == JobState::Succeeded { Exit::Done } else { Exit::Failed };
    if out.json {
        out.document(&shapes::Job::ended(job, now_ms))?;
        out.flush()?;
        return Ok(exit);
    }
    let text = job.result.as_deref().map(text_of).unwrap_or_default();
    // What streamed here is the end of it; all of it where nothing did, or where it began elsewhere.
    if shown.is_empty() || !text.ends_with(shown) {
        out.piece(&text)?;
    }
    if !text.is_empty() || !shown.is_empty() {
        out.line("")?;
    }
    out.flush()?;
    if exit == Exit::Failed {
        let why = job.error.as_deref().map_or_else(|| shapes::state(job.state, false).to_owned(), ending);
        writeln!(std::io::stderr().lock(), "error: {why} (job {})", job.id)?;
    }
    Ok(exit)
}

/// The text of a result document (see `agent::response`).
fn text_of(result: &str) -> String {
    let document: Value = serde_json::from_str(result).unwrap_or_default();
    document.get("text").and_then(Value::as_str).unwrap_or_default().to_owned()
}
