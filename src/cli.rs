//! The command line: one file per command, rendering only.
//!
//! Arguments come in through `args`; what a command finds goes out through [`out::Out`], what went wrong through
//! [`trouble::Trouble`]. Nothing here decides anything about jobs, failures or holds: that is asked of the store and of
//! the modules that own it.

mod args;
pub mod classify;
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
        Command::Classify { file, policy } => captured(file, policy),
        Command::Config { command: ConfigCommand::Check } => config_check::run(cli, out),
        Command::Sim(args) => sim::run(args, out),
    }
}

/// `classify` needs no configuration file.
fn captured(file: &std::path::Path, policy: &str) -> Result<Exit, Trouble> {
    let policy = match policy {
        "tiered" => crate::recovery::Policy::tiered(),
        "strict" => crate::recovery::Policy::strict(),
        _ => return Err(Trouble::usage("--policy is `tiered` or `strict`")),
    };
    let rules = crate::failure::Rules::embedded();
    let now_ms = crate::clock::Clock::system().now_ms();
    let out = std::io::BufWriter::new(std::io::stdout().lock());
    let all_good = if file == std::path::Path::new("-") {
        classify::run(std::io::stdin().lock(), out, &rules, &policy, now_ms)?
    } else {
        let opened = std::fs::File::open(file)
            .map_err(|error| Trouble::usage(format!("{} cannot be read: {error}", file.display())))?;
        classify::run(std::io::BufReader::new(opened), out, &rules, &policy, now_ms)?
    };
    Ok(if all_good { Exit::Done } else { Exit::Misused })
}
