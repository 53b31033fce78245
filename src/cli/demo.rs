//! `demo`: the tour. A few dozen jobs against the built-in simulator, which refuses, drops, stalls and meters; what
//! happened, live; and at the end the history of failures and the audit of every reset.
//!
//! The same store, worker and provider code as in production, on a database of its own that is deleted at the end.

use super::out::Out;
use super::service::{Running, Signals, Work, of_app};
use super::table::{Align, Table, cut};
use super::trouble::{Exit, Trouble};
use super::words::{ending_in_brief, source_in_brief};
use crate::agent::{Directory, accept};
use crate::api::{self, Kind, words};
use crate::app::{self, Service};
use crate::config::Config;
use crate::duration;
use crate::sim::{Scenario, Sim, SimOptions};
use crate::store::{By, HoldRow, JobId, JobRow, JobState, Outcome, Query, ResetRow, Store, TurnView};
use clap::Args;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[derive(Args, Clone, Debug, Default)]
pub struct DemoArgs {
    /// Keep serving what happened, until interrupted
    #[arg(long)]
    pub keep: bool,
}

/// What is sent: entry, model, how many jobs (see `config/scenarios/demo.toml` for what happens to each).
const JOBS: [(&str, &str, usize); 12] = [
    ("openai", "demo-rate", 8),
    ("openai", "demo-stream", 4),
    ("openai", "demo-silent", 3),
    ("openai", "demo-spell", 3),
    ("openai", "demo-short", 3),
    ("openai", "demo-context", 1),
    ("plan", "demo-plan", 8),
    ("revoked", "demo-any", 2),
    ("anthropic", "demo-tokens", 4),
    ("anthropic", "demo-frames", 3),
    ("gemini", "demo-flash", 6),
    ("gemini", "demo-quick", 3),
];
/// Models whose jobs are meant to fail: a revoked key and a prompt that is too long, which no waiting mends.
const MEANT_TO_FAIL: [&str; 2] = ["demo-any", "demo-context"];
/// What a live line's message may take of 80 columns.
const MESSAGE: usize = 40;
/// Entry, adapter, key, and the path of its API.
const PROVIDERS: [(&str, &str, &str, &str); 5] = [
    ("openai", "openai", "sim-openai", "/v1/"),
    ("plan", "openai", "sim-plan", "/v1/"),
    ("revoked", "openai", "sim-revoked", "/v1/"),
    ("anthropic", "anthropic", "sim-anthropic", "/v1/"),
    ("gemini", "gemini", "sim-gemini", "/v1beta/"),
];
/// The tour ends within this, come what may.
const END_MS: i64 = 58_000;
/// How often the live lines are drawn anew.
const REDRAW: Duration = Duration::from_millis(200);
/// Where to look after the tour.
const NEXT: &str = "\nWhere to look next
  reprieve demo --keep    the same, with its API and database kept
  reprieve sim --help     the simulated provider alone, for jobs of your own
  reprieve --help         every command; README.md has your own provider";
const MOST: u32 = 1_000;

/// The document of `--json`.
#[derive(Debug, Default, Serialize)]
struct Summary {
    jobs: usize,
    succeeded: usize,
    failed: usize,
    turns: usize,
    sends: usize,
    deferrals: usize,
    /// Sent before a reset that was known; always 0.
    early_sends: u64,
    /// Sent where a refusal was certain, and its reset known or not.
    doomed_sends: u64,
    max_resume_lateness_ms: Option<i64>,
    /// Failed sends and executions, those that were recovered included.
    failures_by_cause: BTreeMap<String, i64>,
    elapsed_ms: i64,
}

pub async fn run(args: &DemoArgs, out: &mut Out) -> Result<Exit, Trouble> {
    let scenario = Scenario::builtin("demo").map_err(|error| Trouble::new(Kind::Internal, error.to_string()))?;
    let sim = Sim::start(scenario, SimOptions::default()).await.map_err(|error| {
        Trouble::new(Kind::Unreachable, format!("the simulated provider cannot listen ({})", error.source))
    })?;
    let mut asked = Signals::new();
    let dir = tempfile::tempdir()?;
    let config = configuration(&sim.url(), dir.path())?;
    let store = app::open_store(&config).await?;
    let service = Service::build(&config, store.clone(), None).await.map_err(|error| of_app(&error))?;
    let served = if args.keep { Some(serve(&store, &config).await?) } else { None };
    let mut running = Running::start(&service, Work::Turns);
    let started_ms = store.clock().now_ms();
    let ids = submit(&store, &config).await?;
    if !out.json {
        out.line(format!(
            "{} jobs of {} models go to a simulated provider that refuses and breaks.\n",
            ids.len(),
            JOBS.len()
        ))?;
        out.flush()?;
    }
    let watched = tokio::select! {
        watched = watch(&store, &ids, started_ms) => watched,
        () = asked.next() => {
            Err(Trouble::new(Kind::Internal, "interrupted; nothing of the tour is kept"))
        }
    };
    let jobs = match watched {
        Ok(jobs) => jobs,
        Err(trouble) => {
            running.end().await?;
            store.close().await;
            sim.shutdown().await;
            return Err(trouble);
        }
    };
    let elapsed_ms = store.clock().now_ms().saturating_sub(started_ms);
    let mut turns = Vec::new();
    for id in &ids {
        turns.push(store.turns(*id).await?);
    }
    let resets = store.resets(all(&store)).await?.items;
    let summary = Summary { elapsed_ms, ..summary(&store, &sim, &jobs, &turns).await? };
    if out.json {
        out.document(&summary)?;
    } else {
        tell(&summary, &jobs, &resets, store.clock().now_ms(), out)?;
        if served.is_none() {
            out.line(NEXT)?;
        }
    }
    if let Some((address, stop)) = served {
        if !out.json {
            out.line(format!("\nLook around; Ctrl-C ends it and removes its database:\n  http://{address}/v1/jobs"))?;
            out.line(format!("  reprieve --database {} jobs", config.database))?;
        }
        out.flush()?;
        running.until_asked().await;
        stop.cancel();
    }
    out.flush()?;
    running.end().await?;
    store.close().await;
    sim.shutdown().await;
    let whole = summary.succeeded + summary.failed == summary.jobs && summary.early_sends == 0;
    Ok(if whole { Exit::Done } else { Exit::Failed })
}

/// The tour's own configuration, read as any other.
fn configuration(sim: &str, dir: &Path) -> Result<Config, Trouble> {
    let database = format!("database = \"sqlite://{}\"\n", dir.join("demo.db").display());
    let entries = PROVIDERS.map(|(entry, adapter, key, path)| {
        format!(
            "[providers.{entry}]\nadapter = \"{adapter}\"\nendpoint = \"{sim}{path}\"\napi_key = \"{key}\"\n\
             identity = \"{entry}.sim\"\naccount = \"demo\"\n"
        )
    });
    let text = database + &entries.concat();
    let file = dir.join("demo.toml");
    std::fs::write(&file, text)?;
    Ok(Config::load(Some(&file), &[])?.config)
}

/// Serves the API on the usual address, or a free one where that is taken.
async fn serve<S: Store>(store: &S, config: &Config) -> Result<(std::net::SocketAddr, CancellationToken), Trouble> {
    let listener = if let Ok(listener) = api::bind(&config.server).await {
        listener
    } else {
        let mut server = config.server.clone();
        server.bind.set_port(0);
        api::bind(&server).await?
    };
    let address = listener.local_addr()?;
    let stop = CancellationToken::new();
    let api =
        api::Api { store: store.clone(), directory: Arc::new(Directory::of(config)), hosts: Arc::new(Vec::new()) };
    tokio::spawn(api::serve(listener, api, api::Waits::default(), stop.clone()));
    Ok((address, stop))
}

async fn submit<S: Store>(store: &S, config: &Config) -> Result<Vec<JobId>, Trouble> {
    let directory = Directory::of(config);
    let mut jobs = Vec::new();
    for (provider, model, count) in JOBS {
        for n in 1..=count {
            let spec = serde_json::json!({
                "model": model,
                "provider": provider,
                "input": format!("Tell me something worth waiting for, number {n}."),
                "labels": {"tour": model},
            });
            jobs.push(accept(&spec.to_string(), &directory, store.clock().now_ms(), None)?);
        }
    }
    let ids = jobs.iter().map(|job| job.id).collect();
    store.submit(jobs).await?;
    Ok(ids)
}

/// Shows one line a model until all have ended, or the time is over.
async fn watch<S: Store>(store: &S, ids: &[JobId], started_ms: i64) -> Result<Vec<JobRow>, Trouble> {
    let lines = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
    let style = ProgressStyle::with_template("{prefix:21} {bar:10} {pos:>2}/{len:<2} {wide_msg}");
    let bars: Vec<ProgressBar> = JOBS
        .iter()
        .map(|(provider, model, count)| {
            let bar = lines.add(ProgressBar::new(u64::try_from(*count).unwrap_or(0)));
            if let Ok(style) = &style {
                bar.set_style(style.clone());
            }
            bar.with_prefix(format!("{provider}/{model}"))
        })
        .collect();
    loop {
        let now_ms = store.clock().now_ms();
        let jobs = store.jobs(all(store)).await?.items;
        for ((_, model, _), bar) in JOBS.iter().zip(&bars) {
            let of: Vec<&JobRow> = jobs.iter().filter(|job| job.lane.scope.model == *model).collect();
            let ended = of.iter().filter(|job| job.finished_ms.is_some()).count();
            bar.set_position(u64::try_from(ended).unwrap_or(0));
            bar.set_message(state_of(&of, now_ms));
        }
        let ended = jobs.iter().filter(|job| job.finished_ms.is_some()).count();
        if ended >= ids.len() || now_ms.saturating_sub(started_ms) > END_MS {
            for bar in bars {
                bar.abandon();
            }
            return Ok(jobs);
        }
        // Countdowns go on where nothing changes, and nothing is drawn more often than that.
        tokio::time::sleep(REDRAW).await;
    }
}

/// One scope in a few words.
fn state_of(jobs: &[&JobRow], now_ms: i64) -> String {
    let hold: Option<&HoldRow> = jobs.iter().find_map(|job| job.hold.as_ref());
    let running = jobs.iter().filter(|job| job.state == JobState::Running).count();
    let failed = jobs.iter().filter(|job| job.state == JobState::Failed).count();
    let waiting = jobs.iter().filter(|job| job.finished_ms.is_none()).count();
    match hold {
        Some(hold) => match hold.until_ms.map(|until_ms| until_ms.saturating_sub(now_ms)) {
            Some(left_ms) if left_ms > 0 => closed(left_ms, &hold.source),
            Some(_) => "opening: one probe goes first".to_owned(),
            None => "closed until somebody lifts it".to_owned(),
        },
        None if running > 0 => format!("{running} in flight"),
        None if waiting > 0 => format!("{waiting} waiting"),
        None if failed > 0 && jobs.iter().all(|job| is_meant_to_fail(job)) => format!("{failed} failed, as intended"),
        None if failed > 0 => format!("ended, {failed} failed"),
        None => "all succeeded".to_owned(),
    }
}

/// A hold that counts down, in at most [`MESSAGE`] columns.
fn closed(left_ms: i64, source: &str) -> String {
    cut(&format!("closed for {} ({})", duration::format(left_ms), source_in_brief(source)), MESSAGE)
}

fn is_meant_to_fail(job: &JobRow) -> bool {
    MEANT_TO_FAIL.contains(&job.lane.scope.model.as_str())
}

fn all<S: Store>(store: &S) -> Query {
    Query { limit: MOST, include_retried: true, now_ms: store.clock().now_ms(), ..Query::default() }
}

async fn summary<S: Store>(store: &S, sim: &Sim, jobs: &[JobRow], turns: &[Vec<TurnView>]) -> Result<Summary, Trouble> {
    let count = |state: JobState| jobs.iter().filter(|job| job.state == state).count();
    let views = || turns.iter().flatten();
    let sends = || views().flat_map(|view| &view.sends);
    let totals = sim.stats().totals;
    let failures = store.failure_counts(all(store), By::Cause).await?;
    Ok(Summary {
        jobs: jobs.len(),
        succeeded: count(JobState::Succeeded),
        failed: count(JobState::Failed),
        turns: views().filter(|view| matches!(view.record.outcome, Outcome::Completed | Outcome::Truncated)).count(),
        sends: sends().count(),
        deferrals: views().filter(|view| view.record.outcome == Outcome::Deferred).count(),
        early_sends: totals.early,
        doomed_sends: totals.doomed,
        max_resume_lateness_ms: sends()
            .filter_map(|send| send.tests_resume_ms.map(|resume_ms| send.started_ms.saturating_sub(resume_ms)))
            .max(),
        failures_by_cause: failures.into_iter().map(|row| (row.value, row.failed)).collect(),
        elapsed_ms: 0,
    })
}

fn tell(summary: &Summary, jobs: &[JobRow], resets: &[ResetRow], now_ms: i64, out: &mut Out) -> Result<(), Trouble> {
    let (width, colours) = (out.width(), out.colours());
    let left = summary.jobs.saturating_sub(summary.succeeded + summary.failed);
    let left = if left == 0 { String::new() } else { format!(", {left} not ended") };
    out.line(format!(
        "\n{} jobs: {} succeeded, {} failed{left}, in {}.\n{} turns took {} sends; {} put back to wait.",
        summary.jobs,
        summary.succeeded,
        summary.failed,
        duration::format(summary.elapsed_ms),
        summary.turns,
        summary.sends,
        match summary.deferrals {
            1 => "1 was".to_owned(),
            several => format!("{several} were"),
        },
    ))?;
    let late = summary.max_resume_lateness_ms.map_or_else(|| "none".to_owned(), duration::format);
    out.line(format!(
        "Sends before a known reset: {}. Sends that could only be refused: {}.\n\
             Latest resume after its reset: {late}.",
        summary.early_sends, summary.doomed_sends
    ))?;
    out.line("\nFailures by cause, recovered ones included")?;
    let mut causes = Table::new(&[("CAUSE", Align::Left), ("FAILED", Align::Right)]);
    for (cause, count) in &summary.failures_by_cause {
        causes.row(vec![cause.clone(), words::count(*count)]);
    }
    for line in causes.lines(width, colours) {
        out.line(line)?;
    }
    let failed: Vec<&JobRow> = jobs.iter().filter(|job| job.state == JobState::Failed).collect();
    if !failed.is_empty() {
        let intended = failed.iter().all(|job| is_meant_to_fail(job));
        out.line(if intended {
            "\nJobs that failed, as the tour intends: no waiting mends a revoked key or a\nprompt that is too long, so they end at once"
        } else {
            "\nJobs that failed, and why"
        })?;
        let mut table = Table::new(&[("MODEL", Align::Left), ("WHY", Align::Flexible)]);
        for job in failed {
            let why = job.error.as_deref().map(ending_in_brief).unwrap_or_default();
            table.row(vec![job.lane.scope.model.clone(), why]);
        }
        for line in table.lines(width, colours) {
            out.line(line)?;
        }
    }
    // A wait that a 5xx names is evidence, too, but it closes nothing.
    let resets: Vec<ResetRow> = resets
        .iter()
        .filter(|row| matches!(row.evidence.cause.as_str(), "rate_limit" | "usage_limit"))
        .cloned()
        .collect();
    if !resets.is_empty() {
        out.line("\nResets: what was named, and what became of it")?;
        for line in super::resets::table(&resets, now_ms).lines(width, colours) {
            out.line(line)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn a_live_line_fits_80_columns_and_names_its_source() {
        assert_eq!(closed(4_900, "/error/details/1/retryDelay"), "closed for 4.9 s (retryDelay)");
        for source in ["x-codex-primary-reset-after-seconds", "/a/a-member-whose-name-is-longer-than-any-line-is"] {
            let line = closed(86_399_000, source);
            assert!(21 + 1 + 10 + 1 + 5 + 1 + line.width() < 80, "{line}");
        }
        let widest = JOBS.iter().map(|(entry, model, _)| entry.len() + 1 + model.len()).max();
        assert!(widest <= Some(21), "a prefix is cut: {widest:?}");
    }
}
