//! `move`: a stopped queue from one database to another, and the comparison of both.

use super::args::Cli;
use super::out::Out;
use super::table::{Align, Table};
use super::trouble::{Exit, Trouble};
use crate::api::Kind;
use crate::api::words::count;
use crate::app;
use crate::store::transfer::{self, Compared, Doing, Ending, Report, Step};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use std::time::Instant;

#[derive(Args, Clone, Debug)]
pub struct MoveArgs {
    /// The database that the queue is in; nothing is written to it
    #[arg(long, value_name = "URL")]
    pub from: String,
    /// The database that it goes to: a new SQLite file, an empty Postgres, or what an earlier run has begun to fill
    #[arg(long, value_name = "URL")]
    pub to: String,
}

pub async fn run(args: &MoveArgs, cli: &Cli, out: &mut Out) -> Result<Exit, Trouble> {
    if cli.database.is_some() {
        return Err(Trouble::misused("--database", "a move names both databases: --from and --to"));
    }
    let config = cli.load()?.config;
    let place = |flag, url: &str| app::place(&config, url).map_err(|why| Trouble::parameter(flag, why));
    let (from, to) = (place("from", &args.from)?, place("to", &args.to)?);
    let started = Instant::now();
    let bar = bar();
    let told = |step: Step| {
        bar.set_length(step.of.max(1));
        bar.set_position(step.rows);
        bar.set_prefix(match step.what {
            Doing::Moving => "moving",
            Doing::Comparing => "comparing",
        });
        bar.set_message(step.table);
    };
    let moved = transfer::run(&from, &to, None, &told).await;
    bar.finish_and_clear();
    let report = moved.map_err(|error| match error {
        transfer::Error::Store { url, error } => Trouble::from(error).of_database(&url),
        transfer::Error::Refused(why) => Trouble::new(Kind::Conflict, why),
    })?;
    let (from, to) = (from.shown(), to.shown());
    if out.json {
        let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        out.document(&json!({
            "from": from,
            "to": to,
            "outcome": word(report.outcome),
            "resumed": report.resumed,
            "tables": report.tables.iter().map(shape).collect::<Vec<_>>(),
            "drawn": {"from": report.drawn.0, "to": report.drawn.1},
            "elapsed_ms": elapsed_ms,
        }))?;
    } else {
        show(&report, &from, &to, out)?;
    }
    out.flush()?;
    Ok(if report.outcome == Ending::Differs { Exit::Failed } else { Exit::Done })
}

fn word(outcome: Ending) -> &'static str {
    match outcome {
        Ending::Moved => "moved",
        Ending::AlreadyThere => "already_there",
        Ending::Differs => "differs",
    }
}

fn shape(table: &Compared) -> Value {
    json!({
        "name": table.name,
        "rows": {"from": table.source.rows, "to": table.target.rows},
        "digest": {"from": table.source.to_string(), "to": table.target.to_string()},
        "changed": table.changed,
        "equal": table.equal(),
    })
}

/// Digits of a digest that are shown.
const DIGITS: usize = 16;

fn show(report: &Report, from: &str, to: &str, out: &mut Out) -> Result<(), Trouble> {
    let columns = [
        ("TABLE", Align::Left),
        ("ROWS", Align::Right),
        ("DIGEST", Align::Left),
        ("THERE", Align::Right),
        ("DIGEST", Align::Left),
        ("", Align::Left),
    ];
    let rows = |rows: u64| count(i64::try_from(rows).unwrap_or(i64::MAX));
    let short = |sum: transfer::Sum| sum.to_string().chars().take(DIGITS).collect::<String>();
    let mut table = Table::new(&columns);
    for one in &report.tables {
        let said = match (one.equal(), one.changed) {
            (true, _) => "equal",
            (false, true) => "changed",
            (false, false) => "differs",
        };
        table.row(vec![
            one.name.to_owned(),
            rows(one.source.rows),
            short(one.source),
            rows(one.target.rows),
            short(one.target),
            said.to_owned(),
        ]);
    }
    for line in table.lines(out.width(), out.colours()) {
        out.line(line)?;
    }
    let all = report.tables.iter().map(|one| one.source.rows).sum();
    match report.outcome {
        Ending::Moved => {
            out.line(format!("{} rows of {from} are in {to}, and equal. Nothing was written to {from}.", rows(all)))?;
            out.line(format!("Set `database` to {to} everywhere and start; start nothing on {from} any more:"))?;
            out.line("whatever ran there would be sent, and paid for, a second time.")
        }
        Ending::AlreadyThere => {
            out.line(format!("{} rows of {from} had been moved to {to} before, and are equal.", rows(all)))
        }
        Ending::Differs => {
            out.line(format!("{to} is not what {from} is, and stays closed to everything but this command."))?;
            if report.tables.iter().any(|one| one.changed) {
                out.line(format!(
                    "{from} was changed during the move, or between two runs of it: stop all that works on it."
                ))?;
            }
            out.line("Begin again with an empty database: a new SQLite file, or a schema dropped and made again.")
        }
    }
}

/// On a terminal only.
fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(8));
    // The template is a constant.
    if let Ok(style) = ProgressStyle::with_template("{prefix} {msg:14} {bar:30} {human_pos}/{human_len} {elapsed}") {
        bar.set_style(style);
    }
    bar
}
