//! The command line: one file per command, rendering only.
//!
//! Arguments come in through `args`; what a command finds goes out through [`out::Out`], what went wrong through
//! [`trouble::Trouble`]. Nothing here decides anything about jobs, failures or holds: that is asked of the store and of
//! the modules that own it.

mod act;
mod args;
pub mod classify;
mod completions;
mod config_check;
mod demo;
mod doctor;
mod explain;
mod failures;
mod filter;
mod find;
mod holds;
mod input;
mod job;
mod jobs;
mod message;
mod migrate;
mod out;
mod preview;
mod queues;
mod resets;
mod results;
mod run;
mod schedules;
mod serve;
mod service;
mod sim;
mod submit;
mod table;
mod transfer;
mod trouble;
mod usage;
mod wait;
mod words;

use crate::agent::Directory;
use crate::api::acts::Act;
use crate::config::Config;
use crate::store::Store;
use args::{Cli, Command, ConfigCommand, Stored};
use clap::Parser;
use out::Out;
use std::io::Write;
use std::process::ExitCode;
use trouble::{Exit, Trouble};

/// Runs the command that the process was given.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return trouble::of_arguments(&error),
    };
    let mut out = Out::new(cli.json);
    let exit = match command(&cli, &mut out) {
        Ok(exit) => exit,
        Err(trouble) => trouble.in_flags().tell(cli.json),
    };
    ExitCode::from(exit.code())
}

fn command(cli: &Cli, out: &mut Out) -> Result<Exit, Trouble> {
    match &cli.command {
        Command::Classify(args) => classify::command(args, cli),
        Command::Config { command: ConfigCommand::Check } => config_check::run(cli, out),
        Command::Sim(args) => sim::run(args, out),
        Command::Demo(args) => runtime()?.block_on(demo::run(args, out)),
        Command::Doctor(args) => runtime()?.block_on(doctor::run(args, cli, out)),
        Command::Migrate(args) => runtime()?.block_on(migrate::run(args, cli, out)),
        Command::Move(args) => runtime()?.block_on(transfer::run(args, cli, out)),
        Command::Completions(args) => completions::run(args, out),
        Command::Stored(stored) => runtime()?.block_on(on_store(stored, cli, out)),
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

/// Commands that work on the database.
async fn on_store(command: &Stored, cli: &Cli, out: &mut Out) -> Result<Exit, Trouble> {
    let config = cli.load()?.config;
    let named = |trouble: Trouble| trouble.of_database(&config.database);
    let store = crate::app::open_store(&config).await.map_err(|error| named(error.into()))?;
    let outcome = with_store(command, store.clone(), &config, out).await;
    // However it ended: whoever closes last folds the log into the file, so that the one file is the whole database.
    store.close().await;
    outcome.map_err(named)
}

async fn with_store<S: Store>(command: &Stored, store: S, config: &Config, out: &mut Out) -> Result<Exit, Trouble> {
    let directory = || Directory::of(config);
    if !out.json {
        for note in filter::entries_among(command.providers().unwrap_or_default(), &directory()) {
            writeln!(std::io::stderr().lock(), "note: {note}")?;
        }
    }
    match command {
        Stored::Serve(args) => serve::serve(store, config, args, out).await,
        Stored::Worker(args) => serve::worker(store, config, args, out).await,
        Stored::Submit(args) => submit::run(store, config, args, out).await,
        Stored::Run(args) => run::run(store, config, args, out).await,
        Stored::Results(args) => results::run(&store, args, out).await,
        Stored::Jobs(args) => jobs::run(&store, args, out).await,
        Stored::Job(args) => job::run(&store, &directory(), args, out).await,
        Stored::Failures(args) => failures::run(&store, args, out).await,
        Stored::Resets(args) => resets::run(&store, args, out).await,
        Stored::Holds(args) => holds::run(&store, &directory(), args, out).await,
        Stored::Usage(args) => usage::run(&store, args, out).await,
        Stored::Schedules(args) => schedules::run(&store, &directory(), args, out).await,
        Stored::Queues(args) => queues::run(&store, args, out).await,
        Stored::Cancel(which) => act::run(&store, &directory(), Act::Cancel, which, &[], out).await,
        Stored::Retry(args) => act::run(&store, &directory(), Act::Retry, &args.which, &args.own(), out).await,
        Stored::Message(args) => message::run(&store, &directory(), args, out).await,
        Stored::Explain(args) => explain::run(&store, &directory(), args, out).await,
        Stored::Delete(args) => act::run(&store, &directory(), Act::Delete, &args.which, &args.own(), out).await,
        Stored::Requeue(which) => act::run(&store, &directory(), Act::Requeue, which, &[], out).await,
        Stored::Resume(which) => act::run(&store, &directory(), Act::Resume, which, &[], out).await,
        Stored::Reprioritise(args) => {
            act::run(&store, &directory(), Act::Reprioritise(args.priority), &args.which, &[], out).await
        }
        Stored::Pause(args) => {
            act::run(&store, &directory(), Act::Pause(args.reason.clone()), &args.which, &[], out).await
        }
    }
}
