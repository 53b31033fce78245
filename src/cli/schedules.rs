//! `schedules`: jobs that are submitted by the calendar: what there is, one with its runs, and changing them.

mod change;
mod show;

use super::out::Out;
use super::trouble::{Exit, Trouble};
use crate::agent::Directory;
use crate::api::Kind;
use crate::store::{ScheduleRow, Store};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Args, Clone, Debug, Default)]
#[command(args_conflicts_with_subcommands = true)]
pub struct SchedulesArgs {
    #[command(subcommand)]
    pub command: Option<SchedulesCommand>,
    /// One schedule with its latest runs, by its name or id
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

#[derive(Subcommand, Clone, Debug)]
pub enum SchedulesCommand {
    /// Add a schedule: a job that is submitted at every instant that a cron pattern names
    ///
    /// The pattern has 5 fields (minute, hour, day of month, month, day of week), or 6 with seconds first, and is read in
    /// --zone. A time that clocks skip fires at the first instant after the gap, one that they show twice fires once.
    #[command(
        after_help = "Examples: reprieve schedules add nightly --cron \"30 2 * * MON-FRI\" \\\n            --zone Europe/Berlin job.json\n          echo '{\"model\":\"m\",\"input\":\"hello\"}' | \\\n            reprieve schedules add hourly --cron @hourly -"
    )]
    Add(AddArgs),
    /// Remove a schedule; the jobs that it submitted stay
    #[command(after_help = "Example: reprieve schedules rm nightly")]
    Rm(Named),
    /// Stop a schedule from firing; what it submitted goes on
    #[command(after_help = "Example: reprieve schedules pause nightly --reason holidays")]
    Pause {
        #[command(flatten)]
        named: Named,
        /// Why; kept until it is resumed
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Let a schedule fire again, from its next instant on
    #[command(after_help = "Example: reprieve schedules resume nightly")]
    Resume(Named),
    /// Submit its job now, beside the calendar
    #[command(after_help = "Example: reprieve schedules run nightly")]
    Run(Named),
}

#[derive(Args, Clone, Debug)]
pub struct Named {
    /// The schedule, by its name or id
    #[arg(value_name = "NAME")]
    pub name: String,
}

#[derive(Args, Clone, Debug)]
pub struct AddArgs {
    /// What it is called; no other schedule may have the name
    pub name: String,
    /// When: minute, hour, day of month, month, day of week; seconds may stand first; or @hourly, @daily, @weekly,
    /// @monthly, @yearly
    #[arg(long, value_name = "PATTERN")]
    pub cron: String,
    /// The zone that the pattern is read in, by its IANA name
    #[arg(long, default_value = "UTC")]
    pub zone: String,
    /// Of instants that passed while nobody could fire: none, the last one, or all are caught up with
    #[arg(long, value_enum, default_value = "last", value_name = "WHICH")]
    pub catch_up: CatchUpWord,
    /// Where an earlier job of it still lives: skip the instant, or queue another job
    #[arg(long, value_enum, default_value = "skip", value_name = "WHAT")]
    pub overlap: OverlapWord,
    /// The job to submit (JSON); - is stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CatchUpWord {
    None,
    Last,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OverlapWord {
    Skip,
    Queue,
}

pub async fn run<S: Store>(
    store: &S,
    directory: &Directory,
    args: &SchedulesArgs,
    out: &mut Out,
) -> Result<Exit, Trouble> {
    let now_ms = store.clock().now_ms();
    match &args.command {
        Some(SchedulesCommand::Add(add)) => change::add(store, directory, add, out).await?,
        Some(SchedulesCommand::Rm(named)) => change::remove(store, &named.name, out).await?,
        Some(SchedulesCommand::Pause { named, reason }) => {
            change::pause(store, &named.name, reason.clone(), out).await?;
        }
        Some(SchedulesCommand::Resume(named)) => change::resume(store, &named.name, out).await?,
        Some(SchedulesCommand::Run(named)) => change::fire(store, directory, &named.name, out).await?,
        None => match &args.name {
            Some(name) => show::one(find(store, name).await?, now_ms, out)?,
            None => show::list(store.schedules().await?, now_ms, out)?,
        },
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// A schedule by its name, or its id.
async fn find<S: Store>(store: &S, name: &str) -> Result<ScheduleRow, Trouble> {
    let all = store.schedules().await?;
    let known: Vec<String> = all.iter().map(|schedule| schedule.name.clone()).collect();
    let by_name = all.iter().position(|schedule| schedule.name == name);
    let at = by_name.or_else(|| all.iter().position(|schedule| schedule.id.to_string() == name));
    at.and_then(|at| all.into_iter().nth(at)).ok_or_else(|| {
        let name = name.escape_debug();
        let there =
            if known.is_empty() { "there is none yet".to_owned() } else { format!("there are {}", known.join(", ")) };
        Trouble::new(Kind::NotFound, format!("there is no schedule `{name}`; {there}"))
    })
}
