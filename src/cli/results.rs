//! `results`: ended jobs in the order they ended, one JSON object a line.

use super::filter::Filter;
use super::out::Out;
use super::trouble::{Exit, Trouble};
use crate::api::shapes;
use crate::store::Store;
use clap::Args;
use std::io::Write;

/// Rows asked for at once where no limit is said.
const PAGE: u32 = 200;

#[derive(Args, Clone, Debug, Default)]
pub struct ResultsArgs {
    /// Only jobs with this label; several: with all of them
    #[arg(long, value_name = "KEY=VALUE")]
    pub label: Vec<String>,
    /// Only these states, separated by commas: succeeded, failed, cancelled
    #[arg(long)]
    pub state: Option<String>,
    #[command(flatten)]
    pub filter: Filter,
}

pub async fn run<S: Store>(store: &S, args: &ResultsArgs, out: &mut Out) -> Result<Exit, Trouble> {
    let now_ms = store.clock().now_ms();
    let mut query = args.filter.query(&[("state", args.state.as_deref())], &args.label, now_ms)?;
    if out.json {
        let page = store.results(query).await?;
        out.document(&shapes::List::of(page, |row| shapes::Job::ended(row, now_ms)))?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    let whole = args.filter.limit.is_none();
    if whole {
        query.limit = PAGE;
    }
    loop {
        let page = store.results(query.clone()).await?;
        let full = page.items.len() >= usize::try_from(query.limit).unwrap_or(usize::MAX);
        for row in page.items {
            out.json_line(&shapes::Job::ended(row, now_ms))?;
        }
        out.flush()?;
        query.cursor = page.next_cursor;
        if whole && full && query.cursor.is_some() {
            continue;
        }
        if let Some(cursor) = &query.cursor {
            // Not on stdout: every line there is a result. It stands at the end, too: later endings follow it.
            writeln!(std::io::stderr().lock(), "to go on from here: the same with --cursor {cursor}")?;
        }
        break;
    }
    Ok(Exit::Done)
}
