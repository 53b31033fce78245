//! `failures`: what failed, how often, and why.

use super::filter::{self, Filter, Paging};
use super::out::Out;
use super::table::{Align, Table};
use super::trouble::{Exit, Trouble};
use super::words::{ending_in_brief, more, next};
use crate::api::{shapes, words};
use crate::store::{By, CountRow, FailureRow, Outcome, Query, Store};
use clap::{Args, ValueEnum};

#[derive(Args, Clone, Debug, Default)]
pub struct FailuresArgs {
    /// Counts instead of a list
    #[arg(long, value_enum)]
    pub by: Option<Dimension>,
    /// Also sends that failed and were replaced within their execution
    #[arg(long)]
    pub include_retried: bool,
    /// Only these causes, separated by commas
    #[arg(long, help_heading = "Filters")]
    pub cause: Option<String>,
    /// Only these classes, separated by commas
    #[arg(long, help_heading = "Filters")]
    pub class: Option<String>,
    /// Only these codes of ours, separated by commas
    #[arg(long, help_heading = "Filters")]
    pub code: Option<String>,
    /// Only these HTTP statuses, separated by commas
    #[arg(long, help_heading = "Filters")]
    pub http: Option<String>,
    /// Only failures of the transport in these phases: connect, headers, read
    #[arg(long, help_heading = "Filters")]
    pub phase: Option<String>,
    /// Only what these rules classified, by name
    #[arg(long, help_heading = "Filters")]
    pub rule: Option<String>,
    /// Only jobs with this label; several: with all of them
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Filters")]
    pub label: Vec<String>,
    #[command(flatten)]
    pub filter: Filter,
    #[command(flatten)]
    pub paging: Paging,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dimension {
    Cause,
    Class,
    Model,
    Provider,
    Account,
    Http,
    Code,
    Queue,
    Hour,
}

impl Dimension {
    fn head(self) -> &'static str {
        match self {
            Self::Cause => "CAUSE",
            Self::Class => "CLASS",
            Self::Model => "MODEL",
            Self::Provider => "PROVIDER",
            Self::Account => "ACCOUNT",
            Self::Http => "HTTP",
            Self::Code => "CODE",
            Self::Queue => "QUEUE",
            Self::Hour => "HOUR",
        }
    }

    fn by(self) -> By {
        match self {
            Self::Cause => By::Cause,
            Self::Class => By::Class,
            Self::Model => By::Model,
            Self::Provider => By::Provider,
            Self::Account => By::Account,
            Self::Http => By::Http,
            Self::Code => By::Code,
            Self::Queue => By::Queue,
            Self::Hour => By::Hour,
        }
    }

    /// The flag that asks for the failures of one value.
    fn flag(self) -> Option<&'static str> {
        match self {
            Self::Cause => Some("--cause"),
            Self::Class => Some("--class"),
            Self::Model => Some("--model"),
            Self::Provider => Some("--provider"),
            Self::Account => Some("--account"),
            Self::Http => Some("--http"),
            Self::Code => Some("--code"),
            Self::Queue => Some("--queue"),
            Self::Hour => None,
        }
    }
}

impl FailuresArgs {
    fn query(&self, now_ms: i64) -> Result<Query, Trouble> {
        let own = vec![
            ("cause", self.cause.as_deref()),
            ("class", self.class.as_deref()),
            ("code", self.code.as_deref()),
            ("http", self.http.as_deref()),
            ("phase", self.phase.as_deref()),
            ("rule", self.rule.as_deref()),
            ("include_retried", self.include_retried.then_some("1")),
        ];
        let paging = if self.by.is_some() { Vec::new() } else { self.paging.pairs() };
        filter::query(&[own, self.filter.pairs(), paging].concat(), &self.label, now_ms)
    }
}

pub async fn run<S: Store>(store: &S, args: &FailuresArgs, out: &mut Out) -> Result<Exit, Trouble> {
    let now_ms = store.clock().now_ms();
    let query = args.query(now_ms)?;
    if let Some(dimension) = args.by {
        if args.paging.cursor.is_some() || args.paging.limit.is_some() {
            return Err(Trouble::usage("--by counts all that matches; leave out --limit and --cursor"));
        }
        let counts = store.failure_counts(query, dimension.by()).await?;
        if out.json {
            let items: Vec<_> = counts.into_iter().map(shapes::Count::from).collect();
            out.document(&shapes::List { items, next_cursor: None })?;
        } else if counts.is_empty() {
            out.line(NOTHING)?;
        } else {
            show_counts((dimension, args), &counts, now_ms, out)?;
        }
        out.flush()?;
        return Ok(Exit::Done);
    }
    let page = store.failures(query).await?;
    if out.json {
        out.document(&shapes::List::of(page, shapes::Failure::from))?;
    } else if page.items.is_empty() {
        out.line(NOTHING)?;
    } else {
        show(&page.items, now_ms, out)?;
        more(page.next_cursor.as_deref(), out)?;
        hint(&page.items, out)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// What can be done about them: only what has ended can be retried, what was put back goes again by itself.
fn hint(rows: &[FailureRow], out: &mut Out) -> Result<(), Trouble> {
    let ended = rows.iter().find(|row| row.n.is_none() && row.outcome == Some(Outcome::Failed));
    match (ended.map(|row| row.cause.as_deref()), rows.first()) {
        (Some(Some(cause)), _) => next(&format!("retry --cause {cause} --dry-run"), "what could go again", out),
        (None, Some(row)) => next(&format!("job {}", words::short_id(row.job_id)), "what became of it", out),
        _ => next("failures --by cause", "how often each", out),
    }
}

fn show(rows: &[FailureRow], now_ms: i64, out: &mut Out) -> Result<(), Trouble> {
    let mut table = Table::new(&[
        ("OUTCOME", Align::Left),
        ("ENDED", Align::Left),
        ("JOB", Align::Left),
        ("CAUSE", Align::Left),
        ("WHAT", Align::Flexible),
    ]);
    let ids = words::short_ids(&rows.iter().map(|row| row.job_id).collect::<Vec<_>>());
    for (row, id) in rows.iter().zip(ids) {
        let outcome = match (row.n, row.outcome) {
            (Some(_), _) => "retried".to_owned(),
            (None, Some(outcome)) => word(&outcome),
            (None, None) => "unknown".to_owned(),
        };
        table.row(vec![
            outcome,
            words::instant(row.ended_ms, now_ms),
            id,
            row.cause.clone().or_else(|| row.code.clone()).unwrap_or_else(|| "—".to_owned()),
            row.error.as_deref().map_or_else(|| "—".to_owned(), ending_in_brief),
        ]);
    }
    for line in table.lines(out.width(), out.colours()) {
        out.line(line)?;
    }
    Ok(())
}

fn show_counts(
    (dimension, args): (Dimension, &FailuresArgs),
    counts: &[CountRow],
    now_ms: i64,
    out: &mut Out,
) -> Result<(), Trouble> {
    let mut table = Table::new(&[
        (dimension.head(), Align::Flexible),
        ("FAILED", Align::Right),
        ("SHARE", Align::Right),
        ("LATER SUCCEEDED", Align::Right),
        ("FIRST", Align::Left),
        ("LAST", Align::Left),
    ]);
    let all: i64 = counts.iter().map(|count| count.failed).sum();
    for count in counts {
        table.row(vec![
            if count.value.is_empty() { "—".to_owned() } else { count.value.clone() },
            words::count(count.failed),
            share(count.failed, all),
            words::count(count.recovered),
            words::instant(count.first_ms, now_ms),
            words::instant(count.last_ms, now_ms),
        ]);
    }
    for line in table.lines(out.width(), out.colours()) {
        out.line(line)?;
    }
    out.line(if args.include_retried {
        "FAILED counts executions, and the sends that were replaced within them."
    } else {
        "FAILED counts executions, also those after which the job went on."
    })?;
    let first = counts.iter().find(|count| !count.value.is_empty());
    match (dimension.flag(), first) {
        (Some(flag), Some(count)) => next(&format!("failures {flag} {}", count.value), "each of them", out),
        _ => next("failures", "each of them", out),
    }
}

/// A part of a whole in hundredths; what is not nothing is never shown as 0 %.
fn share(part: i64, whole: i64) -> String {
    if part == 0 || whole <= 0 {
        return "0 %".to_owned();
    }
    match part.saturating_mul(100).saturating_add(whole / 2) / whole {
        0 => "< 1 %".to_owned(),
        100 if part < whole => "> 99 %".to_owned(),
        hundredths => format!("{hundredths} %"),
    }
}

const NOTHING: &str = "No failure matches.";

/// The stored word of a state, outcome or kind.
pub(super) fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn no_share_is_more_than_it_says() {
        let said = [(0, 9), (1, 1_000), (1, 3), (2, 3), (999, 1_000), (9, 9)].map(|(part, whole)| share(part, whole));
        assert_eq!(said, ["0 %", "< 1 %", "33 %", "67 %", "> 99 %", "100 %"]);
    }
}
