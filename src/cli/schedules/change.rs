//! Adding, removing, stopping and firing schedules by hand.

use super::super::act::BY;
use super::super::input::Input;
use super::super::out::Out;
use super::super::trouble::Trouble;
use super::super::words::next;
use super::{AddArgs, CatchUpWord, OverlapWord, find, show};
use crate::agent::{Directory, SpecError};
use crate::api::lines::Line;
use crate::api::{Kind, Problem, words};
use crate::scheduler::schedules;
use crate::store::{Fired, Pause, Scheduled, Store};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

/// What is handed over of a schedule: the same document as over HTTP.
#[derive(Serialize)]
struct Body<'a> {
    name: &'a str,
    cron: &'a str,
    zone: &'a str,
    job: &'a RawValue,
    catch_up: &'static str,
    overlap: &'static str,
}

pub async fn add<S: Store>(store: &S, directory: &Directory, args: &AddArgs, out: &mut Out) -> Result<(), Trouble> {
    let now_ms = store.clock().now_ms();
    let (file, text) = job(args)?;
    let job: &RawValue = serde_json::from_str(text.trim())
        .map_err(|error| Trouble::new(Kind::Malformed, format!("{file}: is no valid JSON ({error}); write one job")))?;
    let body = Body {
        name: &args.name,
        cron: &args.cron,
        zone: &args.zone,
        job,
        catch_up: match args.catch_up {
            CatchUpWord::None => "none",
            CatchUpWord::Last => "last",
            CatchUpWord::All => "all",
        },
        overlap: match args.overlap {
            OverlapWord::Skip => "skip",
            OverlapWord::Queue => "queue",
        },
    };
    let body = serde_json::to_string(&body).map_err(std::io::Error::from)?;
    let new = schedules::accept(&body, directory, now_ms).map_err(|error| in_flags(error, &file))?;
    let added = store.add_schedule(new).await?;
    let was = match added {
        Scheduled::Added(_) => "added",
        Scheduled::Unchanged(_) => "is so already",
        Scheduled::Conflict(_) => {
            let name = &args.name;
            let what = format!(
                "another schedule is called {name}; choose another name, or `reprieve schedules rm {name}` first"
            );
            return Err(Problem::new(Kind::Exists, what).at("NAME").into());
        }
    };
    let row = find(store, &args.name).await?;
    if out.json {
        return out.document(&show::shape(row, now_ms));
    }
    show::head(&row, now_ms, out)?;
    out.line(format!("It {}.", if was == "added" { "was added" } else { was }))?;
    next(&format!("schedules run {}", args.name), "to submit its job now, for a try", out)
}

/// The file's name and its text.
fn job(args: &AddArgs) -> Result<(String, String), Trouble> {
    let mut input = Input::open(&args.file)?;
    let name = input.name.clone();
    match input.whole()? {
        Line::Text { text, .. } => Ok((name, text)),
        Line::NoText { .. } => Err(Trouble::usage(format!("{name} is no UTF-8 text; write one job (JSON)"))),
        Line::TooLong { .. } => {
            Err(Trouble::usage(format!("{name} is larger than a job may be; write one job (JSON)")))
        }
    }
}

fn in_flags(error: SpecError, file: &str) -> Trouble {
    let mut problem = Problem::from(error);
    problem.kind = Kind::InvalidSchedule;
    let at = problem.at.take().unwrap_or_default();
    let at = match at.as_str() {
        "/name" => "NAME".to_owned(),
        "/cron" | "/zone" | "/overlap" => at.replacen('/', "--", 1),
        "/catch_up" => "--catch-up".to_owned(),
        _ => format!("{file}: {}", at.strip_prefix("/job").unwrap_or(&at)),
    };
    problem.at(at).into()
}

pub async fn remove<S: Store>(store: &S, name: &str, out: &mut Out) -> Result<(), Trouble> {
    let row = find(store, name).await?;
    let removed = store.remove_schedule(row.id).await?;
    if out.json {
        return out.document(&json!({"id": row.id, "name": row.name, "removed": removed}));
    }
    out.line(format!("{} is removed; its jobs stay", row.name))
}

pub async fn pause<S: Store>(store: &S, name: &str, reason: Option<String>, out: &mut Out) -> Result<(), Trouble> {
    let now_ms = store.clock().now_ms();
    let row = find(store, name).await?;
    let pause = Pause { since_ms: now_ms, by: BY.to_owned(), reason };
    store.pause_schedule(row.id, Some(pause), row.next_ms).await?;
    if out.json {
        return out.document(&show::shape(find(store, name).await?, now_ms));
    }
    out.line(format!("{} is paused; what it submitted goes on", row.name))?;
    next(&format!("schedules resume {}", row.name), "to let it fire again", out)
}

pub async fn resume<S: Store>(store: &S, name: &str, out: &mut Out) -> Result<(), Trouble> {
    let now_ms = store.clock().now_ms();
    let row = find(store, name).await?;
    let next_ms = schedules::next_ms(&row, now_ms);
    store.pause_schedule(row.id, None, next_ms).await?;
    if out.json {
        return out.document(&show::shape(find(store, name).await?, now_ms));
    }
    match next_ms {
        Some(at_ms) => out.line(format!("{} fires next at {}", row.name, words::instant_and_distance(at_ms, now_ms))),
        None => out.line(format!("{} goes on, and its pattern names no instant any more", row.name)),
    }
}

pub async fn fire<S: Store>(store: &S, directory: &Directory, name: &str, out: &mut Out) -> Result<(), Trouble> {
    let row = find(store, name).await?;
    let fire = schedules::by_hand(&row, directory, store.clock().now_ms()).map_err(|error| {
        let mut problem = Problem::from(error);
        let at = problem.at.take().unwrap_or_default();
        problem.at(format!("the job of {}: {at}", row.name))
    })?;
    let runs = match store.fire(fire).await? {
        Fired::Done(runs) => runs,
        Fired::Void => {
            let what = format!("{name} was changed meanwhile; `reprieve schedules {name}` shows it");
            return Err(Trouble::new(Kind::Conflict, what));
        }
    };
    let run = runs.into_iter().next();
    let job = run.as_ref().and_then(|run| run.job);
    if out.json {
        return out.document(&run.map(crate::api::shapes::Run::from));
    }
    if let Some(job) = job {
        out.line(format!("{name} submitted {job}"))?;
        return next(&format!("explain {}", words::short_id(job)), "where it is", out);
    }
    let why = run.map_or_else(|| "unknown".to_owned(), |run| run.outcome.replace('_', " "));
    out.line(format!("{name} submitted nothing: {why}"))?;
    next(&format!("schedules {name}"), "its latest runs", out)
}
