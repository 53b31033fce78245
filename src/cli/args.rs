//! What can be asked for on the command line.

use super::sim::SimArgs;
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
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The database, over what the configuration says
    #[arg(long, global = true, value_name = "URL")]
    pub database: Option<String>,
    /// One JSON document instead of text; problems as JSON on stderr
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Read captured responses: class, cause, reset and what would be done
    Classify {
        /// A file of JSON values, or `-` for stdin
        #[arg(default_value = "-")]
        file: PathBuf,
        /// The policy that decides: `tiered` or `strict`
        #[arg(long, default_value = "tiered")]
        policy: String,
    },
    /// Look at the configuration
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Run the simulated provider alone, until it is interrupted
    #[command(after_help = "Example: reprieve sim --scenario metered --port 7172")]
    Sim(SimArgs),
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check the configuration, and print every effective value and where it came from
    ///
    /// Secrets are shown as `set` or `missing`, never as themselves.
    #[command(after_help = "Example: reprieve --config reprieve.toml config check")]
    Check,
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
