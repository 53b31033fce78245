//! What can be asked for on the command line.

use super::act::{EndedArgs, PauseArgs, ReprioritiseArgs, Which};
use super::classify::ClassifyArgs;
use super::completions::CompletionsArgs;
use super::demo::DemoArgs;
use super::doctor::DoctorArgs;
use super::explain::ExplainArgs;
use super::failures::FailuresArgs;
use super::holds::HoldsArgs;
use super::job::JobArgs;
use super::jobs::JobsArgs;
use super::message::MessageArgs;
use super::migrate::MigrateArgs;
use super::queues::QueuesArgs;
use super::resets::ResetsArgs;
use super::results::ResultsArgs;
use super::run::RunArgs;
use super::schedules::SchedulesArgs;
use super::serve::{ServeArgs, WorkerArgs};
use super::sim::SimArgs;
use super::submit::SubmitArgs;
use super::transfer::MoveArgs;
use super::usage::UsageArgs;
use crate::config::{Config, Loaded, Overrides};
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// A durable queue and worker service in which long model jobs survive their providers' refusals.
#[derive(Debug, Parser)]
#[command(
    name = "reprieve",
    version,
    max_term_width = 80,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 done, 1 the asked-for thing failed, 2 usage or configuration, 3 not reachable."
)]
pub struct Cli {
    /// A configuration file, over the built-in defaults
    #[arg(long, global = true, value_name = "FILE", help_heading = "Everywhere")]
    pub config: Option<PathBuf>,
    /// The database, over what the configuration says
    #[arg(long, global = true, value_name = "URL", help_heading = "Everywhere")]
    pub database: Option<String>,
    /// One JSON document instead of text; problems as JSON on stderr
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Take the tour: jobs against a simulated provider that refuses, drops and meters
    #[command(after_help = "Example: reprieve demo --keep")]
    Demo(DemoArgs),
    #[command(flatten)]
    Stored(Box<Stored>),
    /// Read captured responses: class, cause, reset, and what would be done
    ///
    /// Needs no configuration; with --config, that file's rules and policies hold. Input is a stream of JSON values
    /// (docs/SHAPES.md has one), output one compact line each, also for a bad one.
    #[command(
        after_help = "Example: echo '{\"http_status\":429,\"headers\":{\"retry-after\":\"7\"}}' | reprieve classify"
    )]
    Classify(ClassifyArgs),
    /// Run the simulated provider alone, until it is interrupted
    #[command(after_help = "Example: reprieve sim --scenario metered --port 7172")]
    Sim(SimArgs),
    /// Check everything that a run stands on: file, schema, integrity, disk, workers, keys, clock
    ///
    /// One line a check: ok, warn or fail, and what to do. Changes nothing. Exits 1 if a check fails.
    #[command(after_help = "Example: reprieve --config reprieve.toml doctor")]
    Doctor(DoctorArgs),
    /// Look at the database's schema, or bring it to this release's
    #[command(after_help = "Example: reprieve migrate status")]
    Migrate(MigrateArgs),
    /// Move a stopped queue, with everything that is kept of it, from one database to another
    ///
    /// Between SQLite and Postgres, either way, or between two of a kind. Stop every `serve` and `worker` on the source
    /// first; it is locked meanwhile, and nothing is written to it. The target is a new SQLite file, or a Postgres on
    /// which `migrate up` was run and nothing else. Broken off at any instant, the same command goes on where it was.
    /// At the end both are read whole and compared; exits 1 if anything differs.
    #[command(after_help = "Example: reprieve move --from sqlite://reprieve.db --to postgres://reprieve@db/reprieve")]
    Move(MoveArgs),
    /// Print a script that completes these commands in a shell
    #[command(
        after_help = "Example: reprieve completions bash > \\\n           ~/.local/share/bash-completion/completions/reprieve"
    )]
    Completions(CompletionsArgs),
    /// Look at the configuration
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
}

/// Commands that work on the database.
#[derive(Debug, Subcommand)]
pub enum Stored {
    /// Serve the API, the duties of the clock, and a worker, in one process
    #[command(after_help = "Example: reprieve --config reprieve.toml serve")]
    Serve(ServeArgs),
    /// Work only: any number of these, each on a database that it reaches
    #[command(after_help = "Example: reprieve worker --queues nightly,default --concurrency 16")]
    Worker(WorkerArgs),
    /// Submit jobs from a file, checked whole before the first is submitted
    #[command(
        after_help = "Examples: reprieve submit jobs.jsonl --key monday --wait\n          echo '{\"model\":\"m\",\"input\":\"hello\"}' | reprieve submit -"
    )]
    Submit(SubmitArgs),
    /// Ask one prompt and print the answer as it comes
    #[command(
        after_help = "Examples: reprieve run \"Why is the sky blue?\" --model gpt-4o-mini --max-wait 5m\n          git diff | reprieve run - --model gpt-4o-mini"
    )]
    Run(RunArgs),
    /// List jobs, newest first: their state, and why they wait or how they ended
    #[command(after_help = "Example: reprieve jobs --state deferred,running --queue nightly")]
    Jobs(JobsArgs),
    /// Show one job whole: why it waits, its turns and sends, its transcript
    #[command(after_help = "Example: reprieve job 0199c2f4…9c2e")]
    Job(JobArgs),
    /// Say why a job is where it is: who decides, until when, and where that was read
    #[command(after_help = "Example: reprieve explain 0199c2f4…9c2e")]
    Explain(ExplainArgs),
    /// Print ended jobs in the order they ended, one JSON object a line
    #[command(
        after_help = "Examples: reprieve results --label run=monday --since 24h\n          reprieve results --follow --cursor ZS4xMg >> results.jsonl"
    )]
    Results(ResultsArgs),
    /// Count tokens and sends, retried ones included
    #[command(
        after_help = "Examples: reprieve usage --by label.team --since 7d\n          reprieve usage --by day --model gpt-4o"
    )]
    Usage(UsageArgs),
    /// List or count what failed, newest first
    #[command(
        after_help = "Examples: reprieve failures --since 24h --by cause\n          reprieve failures --cause rate_limit --include-retried"
    )]
    Failures(FailuresArgs),
    /// List refusals: which reset was named, where it was read, and whether it was kept
    #[command(
        after_help = "Examples: reprieve resets --source retry-after --since 7d\n          reprieve resets 0199c2f4…9c2e"
    )]
    Resets(ResetsArgs),
    /// List what is closed, until when and who said so; close a scope by hand, or lift its hold
    #[command(
        after_help = "Examples: reprieve holds --provider api.openai.com\n          reprieve holds 0199c2f4-1b2c-7d3e-8f40-516273849c2e"
    )]
    Holds(HoldsArgs),
    /// List queues and what stands in them; pause one, or let it go on
    #[command(after_help = "Example: reprieve queues")]
    Queues(QueuesArgs),
    /// List what is submitted by the calendar; add, remove, pause, resume or run a schedule
    #[command(after_help = "Examples: reprieve schedules\n          reprieve schedules nightly")]
    Schedules(SchedulesArgs),
    /// Cancel jobs: waiting ones end at once, running ones are asked to stop
    ///
    /// By ids, or by filters: then every live job that they match, as of now.
    #[command(
        after_help = "Examples: reprieve cancel 0199c2f4…9c2e\n          reprieve cancel --label run=monday --dry-run"
    )]
    Cancel(Which),
    /// Retry ended jobs: each goes on, as a new job, from where it ended
    ///
    /// By ids, or by filters: then every failed job that they match, as of now (--state says others). A job is retried
    /// once; asked again, it says which job it goes on as.
    #[command(
        after_help = "Examples: reprieve retry 0199c2f4…9c2e\n          reprieve retry --cause rate_limit --since 24h --dry-run"
    )]
    Retry(EndedArgs),
    /// Tell a live job something; it is read before its next turn
    ///
    /// A turn that runs already does not read it. A job that has ended reads nothing any more: `retry` goes on with it.
    #[command(
        after_help = "Examples: reprieve message 0199c2f4…9c2e \"Also look at the tests.\"\n          reprieve message 0199c2f4…9c2e - < notes.txt"
    )]
    Message(MessageArgs),
    /// Delete ended jobs and all that is kept of them
    ///
    /// By ids, or by filters: then every ended job that they match, as of now.
    #[command(
        after_help = "Examples: reprieve delete 0199c2f4…9c2e\n          reprieve delete --state succeeded --until 30d --time ended --dry-run"
    )]
    Delete(EndedArgs),
    /// End the backoff of jobs: they go again at once, as far as holds permit
    ///
    /// By ids, or by filters: then every waiting job that they match, as of now. Holds stand, and so does `not_before`.
    #[command(after_help = "Example: reprieve requeue --why backoff --provider api.openai.com --dry-run")]
    Requeue(Which),
    /// Give live jobs another priority
    ///
    /// By ids, or by filters: then every live job that they match, as of now.
    #[command(after_help = "Example: reprieve reprioritise --priority 10 --label run=monday --dry-run")]
    Reprioritise(ReprioritiseArgs),
    /// Pause jobs: no further turn of them starts; what runs finishes, deadlines run on
    ///
    /// By ids, or by filters: then every live job that they match, as of now. `queues pause` pauses what is to come, too.
    #[command(after_help = "Example: reprieve pause --label run=monday --reason \"wrong prompt\" --dry-run")]
    Pause(PauseArgs),
    /// Let paused jobs go on
    ///
    /// By ids, or by filters: then every paused job that they match, as of now.
    #[command(after_help = "Example: reprieve resume --label run=monday")]
    Resume(Which),
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check the configuration, and print every effective value and where it came from
    ///
    /// Secrets are shown as `set` or `missing`, never as themselves.
    #[command(after_help = "Example: reprieve --config reprieve.toml config check")]
    Check,
}

impl Stored {
    /// What `--provider` filters by, where it is given.
    #[must_use]
    pub fn providers(&self) -> Option<&str> {
        let filter = match self {
            Self::Holds(args) => return args.providers(),
            Self::Results(args) => &args.filter,
            Self::Usage(args) => &args.filter,
            Self::Failures(args) => &args.filter,
            Self::Resets(args) => &args.filter,
            Self::Jobs(args) => &args.jobs.filter,
            Self::Cancel(which) | Self::Requeue(which) | Self::Resume(which) => &which.jobs.filter,
            Self::Retry(args) | Self::Delete(args) => &args.which.jobs.filter,
            Self::Reprioritise(args) => &args.which.jobs.filter,
            Self::Pause(args) => &args.which.jobs.filter,
            Self::Serve(_)
            | Self::Worker(_)
            | Self::Submit(_)
            | Self::Run(_)
            | Self::Job(_)
            | Self::Explain(_)
            | Self::Queues(_)
            | Self::Schedules(_)
            | Self::Message(_) => return None,
        };
        filter.provider.as_deref()
    }
}

impl Cli {
    /// The configuration that this command line asks for.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(&self) -> Result<Loaded, crate::config::ConfigError> {
        let environment: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let overrides = Overrides { database: self.database.clone() };
        Config::load_with(self.config.as_deref(), &environment, &overrides)
    }
}
