//! The command line: one file per command, rendering only.
//!
//! Arguments come in through `args`; what a command finds goes out through [`out::Out`], what went wrong through
//! [`trouble::Trouble`]. Nothing here decides anything about jobs, failures or holds: that is asked of the store and of
//! the modules that own it.

mod args;
mod config_check;
mod out;
mod sim;
mod trouble;

use args::{Cli, Command, ConfigCommand};
use clap::Parser;
use out::Out;
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
    let exit = match run(&cli, &mut out) {
        Ok(exit) => exit,
        Err(trouble) => trouble.tell(cli.json),
    };
    ExitCode::from(exit.code())
}

fn run(cli: &Cli, out: &mut Out) -> Result<Exit, Trouble> {
    match &cli.command {
        Command::Config { command: ConfigCommand::Check } => config_check::run(cli, out),
        Command::Sim(args) => sim::run(args, out),
    }
}
