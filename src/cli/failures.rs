//! `failures`: what failed, how often, and why.

use super::filter::Filter;
use super::out::Out;
use super::table::{Align, Table};
use super::trouble::{Exit, Trouble};
use super::words::{ending_in_brief, more};
use crate::api::{shapes, words};
use crate::store::{By, Store};
use clap::{Args, ValueEnum};

#[derive(Args, Clone, Debug, Default)]
pub struct FailuresArgs {
    /// Only these causes, separated by commas
    #[arg(long)]
    pub cause: Option<String>,
    /// Only these classes, separated by commas
    #[arg(long)]
    pub class: Option<String>,
    /// Counts instead of a list
    #[arg(long, value_enum)]
    pub by: Option<Dimension>,
    /// Also sends that failed and were replaced within their execution
    #[arg(long)]
    pub include_retried: bool,
    #[command(flatten)]
    pub filter: Filter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dimension {
    Cause,
    Class,
    Model,
    Provider,
    Account,
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
            Self::Hour => By::Hour,
        }
    }
}

pub async fn run<S: Store>(store: &S, args: &FailuresArgs, out: &mut Out) -> Result<Exit, Trouble> {
    let now_ms = store.clock().now_ms();
    let retried = args.include_retried.then_some("1");
    let own = [("cause", args.cause.as_deref()), ("class", args.class.as_deref()), ("include_retried", retried)];
    let query = args.filter.query(&own, &[], now_ms)?;
    if let Some(dimension) = args.by {
        let counts = store.failure_counts(query, dimension.by()).await?;
        if out.json {
            let items: Vec<_> = counts.into_iter().map(shapes::Count::from).collect();
            out.document(&shapes::List { items, next_cursor: None })?;
        } else if counts.is_empty() {
            out.line(NOTHING)?;
        } else {
            let mut table = Table::new(&[
                (dimension.head(), Align::Flexible),
                ("FAILED", Align::Right),
                ("FIRST", Align::Left),
                ("LAST", Align::Left),
            ]);
            for count in counts {
                table.row(vec![
                    count.value,
                    words::count(count.failed),
                    words::instant(count.first_ms, now_ms),
                    words::instant(count.last_ms, now_ms),
                ]);
            }
            for line in table.lines(out.width(), out.colours()) {
                out.line(line)?;
            }
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
        let mut table = Table::new(&[
            ("OUTCOME", Align::Left),
            ("ENDED", Align::Left),
            ("JOB", Align::Left),
            ("CAUSE", Align::Left),
            ("WHAT", Align::Flexible),
        ]);
        let ids = words::short_ids(&page.items.iter().map(|row| row.job_id).collect::<Vec<_>>());
        for (row, id) in page.items.iter().zip(ids) {
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
        more(page.next_cursor.as_deref(), out)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

const NOTHING: &str = "No failure matches.";

/// The stored word of a state, outcome or kind.
pub(super) fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "unknown".to_owned(),
    }
}
