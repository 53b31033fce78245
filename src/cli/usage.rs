//! `usage`: tokens and sends, by what one likes.

use super::filter::{self, Filter};
use super::out::Out;
use super::table::{Align, Table};
use super::trouble::{Exit, Trouble};
use super::words::next;
use crate::api::{parameters, shapes, words};
use crate::store::{Store, UsageBy, UsageRow};
use clap::Args;

#[derive(Args, Clone, Debug)]
pub struct UsageArgs {
    /// model, tenant, queue, provider, account, day (UTC), or label.KEY
    #[arg(long, default_value = "model", value_name = "WHAT")]
    pub by: String,
    /// Only jobs with this label; several: with all of them
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Filters")]
    pub label: Vec<String>,
    #[command(flatten)]
    pub filter: Filter,
    /// At most so many rows, 1 to 1000 [default: 50]
    #[arg(long, value_name = "N", help_heading = "Paging")]
    pub limit: Option<String>,
}

pub async fn run<S: Store>(store: &S, args: &UsageArgs, out: &mut Out) -> Result<Exit, Trouble> {
    let now_ms = store.clock().now_ms();
    let by = parameters::usage_by(&args.by).map_err(|problem| Trouble::from(problem).in_flags())?;
    let pairs = [args.filter.pairs(), vec![("limit", args.limit.as_deref())]].concat();
    let rows = store.usage(filter::query(&pairs, &args.label, now_ms)?, by.clone()).await?;
    if out.json {
        let items: Vec<_> = rows.into_iter().map(shapes::Usage::from).collect();
        out.document(&shapes::List { items, next_cursor: None })?;
    } else if rows.is_empty() {
        out.line("No execution matches; nothing was used.")?;
    } else {
        for line in table(&by, &rows).lines(out.width(), out.colours()) {
            out.line(line)?;
        }
        let unreported: i64 = rows.iter().map(|row| row.unreported).sum();
        if unreported > 0 {
            let executions = if unreported == 1 { "execution" } else { "executions" };
            let n = words::count(unreported);
            out.line(format!("Of {n} {executions} the provider reported no tokens; they count as 0."))?;
        }
        match by {
            UsageBy::Day => next("usage --by model", "of which model", out)?,
            _ => next("usage --by day", "day by day", out)?,
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn table(by: &UsageBy, rows: &[UsageRow]) -> Table {
    let mut table = Table::new(&[
        (head(by), Align::Flexible),
        ("JOBS", Align::Right),
        ("SENDS", Align::Right),
        ("TOKENS IN", Align::Right),
        ("TOKENS OUT", Align::Right),
        ("ALL", Align::Right),
    ]);
    for row in rows {
        table.row(vec![
            if row.value.is_empty() { "—".to_owned() } else { row.value.clone() },
            words::count(row.jobs),
            words::count(row.sends),
            words::count(row.input_tokens),
            words::count(row.output_tokens),
            words::count(row.total_tokens),
        ]);
    }
    table
}

fn head(by: &UsageBy) -> &'static str {
    match by {
        UsageBy::Model => "MODEL",
        UsageBy::Tenant => "TENANT",
        UsageBy::Queue => "QUEUE",
        UsageBy::Provider => "PROVIDER",
        UsageBy::Account => "ACCOUNT",
        UsageBy::Day => "DAY",
        UsageBy::Label(_) => "VALUE",
    }
}
