//! `jobs`: which jobs there are, in what state, and why they wait or how they ended.

use super::filter::Filter;
use super::out::Out;
use super::table::{Align, Table};
use super::trouble::{Exit, Trouble};
use super::words::ending_in_brief;
use crate::api::{shapes, why, words};
use crate::duration;
use crate::store::{JobRow, Page, Store};
use clap::Args;

#[derive(Args, Clone, Debug, Default)]
pub struct JobsArgs {
    /// Only these states, separated by commas (`deferred`: queued behind a hold; `waiting`: queued at all)
    #[arg(long)]
    pub state: Option<String>,
    /// Only jobs with this label; several: with all of them
    #[arg(long, value_name = "KEY=VALUE")]
    pub label: Vec<String>,
    #[command(flatten)]
    pub filter: Filter,
}

pub async fn run<S: Store>(store: &S, args: &JobsArgs, out: &mut Out) -> Result<Exit, Trouble> {
    let now_ms = store.clock().now_ms();
    let query = args.filter.query(&[("state", args.state.as_deref())], &args.label, now_ms)?;
    let page = store.jobs(query).await?;
    if out.json {
        out.document(&shapes::List::of(page, |row| shapes::Job::listed(row, now_ms)))?;
    } else if page.items.is_empty() {
        let asked = args.state.is_some() || !args.label.is_empty() || args.filter.is_given();
        out.line(if asked { "No job matches." } else { "There is no job yet. Submit some: reprieve submit FILE" })?;
    } else {
        for line in table(&page, now_ms).lines(out.width(), out.colours()) {
            out.line(line)?;
        }
        super::words::more(page.next_cursor.as_deref(), out)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn table(page: &Page<JobRow>, now_ms: i64) -> Table {
    let mut table = Table::new(&[
        ("STATE", Align::Left),
        ("JOB", Align::Left),
        ("MODEL", Align::Left),
        ("AGE", Align::Right),
        ("WHY, OR HOW IT ENDED", Align::Flexible),
    ]);
    let ids = words::short_ids(&page.items.iter().map(|job| job.id).collect::<Vec<_>>());
    for (job, id) in page.items.iter().zip(ids) {
        let why =
            why::in_brief(job, now_ms).unwrap_or_else(|| job.error.as_deref().map(ending_in_brief).unwrap_or_default());
        table.row(vec![
            shapes::state(job.state, job.deferred).to_owned(),
            id,
            job.lane.scope.model.clone(),
            duration::format(now_ms.saturating_sub(job.created_ms).max(0)),
            why,
        ]);
    }
    table
}
