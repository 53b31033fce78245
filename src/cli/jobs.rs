//! `jobs`: which jobs there are, in what state, and why they wait or how they ended.

use super::filter::{self, JobFilter, Paging};
use super::out::Out;
use super::table::{Align, Table};
use super::trouble::{Exit, Trouble};
use super::words::{ending_in_brief, next};
use crate::api::{shapes, why, words};
use crate::duration;
use crate::store::{JobRow, JobState, Page, Store};
use clap::Args;

#[derive(Args, Clone, Debug, Default)]
pub struct JobsArgs {
    #[command(flatten)]
    pub jobs: JobFilter,
    #[command(flatten)]
    pub paging: Paging,
}

pub async fn run<S: Store>(store: &S, args: &JobsArgs, out: &mut Out) -> Result<Exit, Trouble> {
    let now_ms = store.clock().now_ms();
    let pairs = [args.jobs.pairs(), args.paging.pairs()].concat();
    let page = store.jobs(filter::query(&pairs, &args.jobs.label, now_ms)?).await?;
    if out.json {
        out.document(&shapes::List::of(page, |row| shapes::Job::listed(row, now_ms)))?;
    } else if page.items.is_empty() {
        let asked = args.jobs.is_given() || args.paging.cursor.is_some();
        out.line(if asked { "No job matches." } else { "There is no job yet. Submit some: reprieve submit FILE" })?;
    } else {
        for line in table(&page, now_ms).lines(out.width(), out.colours()) {
            out.line(line)?;
        }
        super::words::more(page.next_cursor.as_deref(), out)?;
        hint(&page.items, out)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// The first job that one would ask about.
fn hint(jobs: &[JobRow], out: &mut Out) -> Result<(), Trouble> {
    if let Some(waits) = jobs.iter().find(|job| job.finished_ms.is_none() && job.state != JobState::Running) {
        return next(&format!("explain {}", words::short_id(waits.id)), "why it waits", out);
    }
    if let Some(failed) = jobs.iter().find(|job| job.state == JobState::Failed) {
        return next(&format!("job {}", words::short_id(failed.id)), "what it met", out);
    }
    next("results", "what came of those that ended", out)
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
