//! `completions SHELL`: a script that teaches a shell these commands.

use super::args::Cli;
use super::out::Out;
use super::trouble::{Exit, Trouble};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

#[derive(Args, Clone, Debug)]
pub struct CompletionsArgs {
    /// The shell that will read it
    #[arg(value_enum)]
    pub shell: Shell,
}

pub fn run(args: &CompletionsArgs, out: &mut Out) -> Result<Exit, Trouble> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "reprieve", &mut script);
    out.text(&String::from_utf8_lossy(&script))?;
    out.flush()?;
    Ok(Exit::Done)
}
