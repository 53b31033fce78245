//! `migrate`: the database's schema beside this release's; bringing it there, and looking whether it is as it should be.

use super::args::Cli;
use super::out::Out;
use super::trouble::{Exit, Trouble, without_credentials};
use super::words::next;
use crate::app;
use crate::store::Schema;
use clap::{Args, Subcommand};
use serde_json::json;

#[derive(Args, Clone, Debug, Default)]
pub struct MigrateArgs {
    #[command(subcommand)]
    pub command: Option<MigrateCommand>,
}

#[derive(Subcommand, Clone, Copy, Debug)]
pub enum MigrateCommand {
    /// Show the schema that the database has, this release's, and what is pending [default]
    #[command(after_help = "Example: reprieve migrate status --json")]
    Status,
    /// Make the database where there is none, and run what is pending
    #[command(after_help = "Example: reprieve --database sqlite://jobs.db migrate up")]
    Up,
    /// Check that every table and index is as this release's migrations make it; exit 1 if not
    #[command(after_help = "Example: reprieve migrate verify")]
    Verify,
}

pub async fn run(args: &MigrateArgs, cli: &Cli, out: &mut Out) -> Result<Exit, Trouble> {
    let config = cli.load()?.config;
    let url = without_credentials(&config.database);
    let named = |error: crate::store::Error| Trouble::from(error).of_database(&config.database);
    match args.command.unwrap_or(MigrateCommand::Status) {
        MigrateCommand::Status => {
            let schema = app::schema(&config).await.map_err(named)?;
            if out.json {
                out.document(&document(&url, &schema))?;
            } else {
                status(&url, &schema, out)?;
            }
        }
        MigrateCommand::Up => {
            let before = app::migrate(&config).await.map_err(named)?;
            let after = app::schema(&config).await.map_err(named)?;
            if out.json {
                out.document(
                    &json!({"database": url, "before": before.found, "found": after.found, "applied": before.pending}),
                )?;
            } else if before.pending.is_empty() {
                out.line(format!("{url} has schema {}, this release's; nothing was pending.", after.known))?;
            } else {
                let from =
                    before.found.map_or_else(|| "made".to_owned(), |found| format!("brought from schema {found}"));
                out.line(format!("{url} was {from} to schema {}: {}", after.known, before.pending.join(", ")))?;
            }
        }
        MigrateCommand::Verify => {
            let schema = app::schema(&config).await.map_err(named)?;
            let differences = app::differences(&config).await.map_err(named)?;
            let good = schema.pending.is_empty() && differences.is_empty();
            if out.json {
                let mut document = document(&url, &schema);
                document["differences"] = json!(differences);
                out.document(&document)?;
            } else if good {
                out.line(format!("{url} has schema {}, and every table and index is as it should be.", schema.known))?;
            } else {
                status(&url, &schema, out)?;
                if schema.pending.is_empty() {
                    for difference in &differences {
                        out.line(format!("  {difference}"))?;
                    }
                    out.line("Something changed it past this program; put back a backup, or undo the change.")?;
                }
            }
            out.flush()?;
            return Ok(if good { Exit::Done } else { Exit::Failed });
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn document(url: &str, schema: &Schema) -> serde_json::Value {
    json!({"database": url, "found": schema.found, "known": schema.known, "pending": schema.pending})
}

fn status(url: &str, schema: &Schema, out: &mut Out) -> Result<(), Trouble> {
    match schema.found {
        None => out.line(format!("{url} is not there yet; this release's schema is {}.", schema.known))?,
        Some(found) => out.line(format!("{url} has schema {found}; this release's is {}.", schema.known))?,
    }
    if schema.pending.is_empty() {
        return out.line("Nothing is pending.");
    }
    out.line(format!("Pending: {}", schema.pending.join(", ")))?;
    next("migrate up", "to run what is pending", out)
}
