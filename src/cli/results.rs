//! `results`: ended jobs in the order they ended, one JSON object a line; with `--follow` those to come, too.

use super::filter::{self, Filter, Paging};
use super::out::Out;
use super::service::Signals;
use super::trouble::{Exit, Trouble};
use crate::api::{parameters, said, shapes};
use crate::store::{Query, Store};
use clap::Args;
use std::io::Write;
use std::time::Duration;

/// Rows asked for at once.
const PAGE: u32 = 200;
/// States that have results.
const ENDED: [&str; 3] = ["succeeded", "failed", "cancelled"];
/// The safety net under every wake-up.
const POLL: Duration = Duration::from_secs(1);

#[derive(Args, Clone, Debug, Default)]
pub struct ResultsArgs {
    /// Wait for more when all are printed, until interrupted (or until --limit are)
    #[arg(long)]
    pub follow: bool,
    /// Only jobs with this label; several: with all of them
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Filters")]
    pub label: Vec<String>,
    /// Only these states, separated by commas: succeeded, failed, cancelled
    #[arg(long, help_heading = "Filters")]
    pub state: Option<String>,
    #[command(flatten)]
    pub filter: Filter,
    #[command(flatten)]
    pub paging: Paging,
}

pub async fn run<S: Store>(store: &S, args: &ResultsArgs, out: &mut Out) -> Result<Exit, Trouble> {
    let pairs = [vec![("state", args.state.as_deref())], args.filter.pairs(), args.paging.pairs()].concat();
    if let Some(state) = &args.state {
        // A live job has no result: asked for it, one would wait for ever.
        parameters::any_of("state", state, &ENDED).map_err(|problem| Trouble::from(problem).in_flags())?;
    }
    let query = filter::query(&pairs, &args.label, store.clock().now_ms())?;
    if out.json {
        if args.follow {
            return Err(Trouble::usage("--follow prints one object a line without end; leave out --json"));
        }
        let now_ms = query.now_ms;
        let mut page = store.results(query).await?;
        said::fill_in(store, &mut page.items).await?;
        out.document(&shapes::List::of(page, |row| shapes::Job::ended(row, now_ms)))?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    let left = args.paging.limit.is_some().then_some(query.limit);
    let mut lines = Lines { query, left };
    if args.follow {
        let mut asked = Signals::new();
        // A line is printed whole and the cursor then stands behind it, whenever the signal comes.
        tokio::select! {
            followed = lines.follow(store, out) => followed?,
            () = asked.next() => {}
        }
    } else {
        while !lines.print(store, out).await? {}
    }
    if let Some(cursor) = &lines.query.cursor {
        // Not on stdout: every line there is a result. It stands at the end, too: later endings follow it.
        writeln!(std::io::stderr().lock(), "to go on from here: the same with --cursor {cursor}")?;
    }
    Ok(Exit::Done)
}

/// Results on their way out.
struct Lines {
    query: Query,
    /// Rows that may still be printed; `None`: all there are.
    left: Option<u32>,
}

impl Lines {
    /// Prints the next page. Whether that was all for now.
    async fn print<S: Store>(&mut self, store: &S, out: &mut Out) -> Result<bool, Trouble> {
        self.query.limit = self.left.map_or(PAGE, |left| left.min(PAGE));
        let mut page = store.results(self.query.clone()).await?;
        said::fill_in(store, &mut page.items).await?;
        let printed = u32::try_from(page.items.len()).unwrap_or(u32::MAX);
        let now_ms = store.clock().now_ms();
        for row in page.items {
            out.json_line(&shapes::Job::ended(row, now_ms))?;
        }
        out.flush()?;
        if page.next_cursor.is_some() {
            self.query.cursor = page.next_cursor;
        }
        self.left = self.left.map(|left| left.saturating_sub(printed));
        Ok(printed < self.query.limit || self.left == Some(0))
    }

    async fn follow<S: Store>(&mut self, store: &S, out: &mut Out) -> Result<(), Trouble> {
        let mut changes = store.changes();
        while self.left != Some(0) {
            changes.borrow_and_update();
            if self.print(store, out).await? && self.left != Some(0) {
                // Either wakes us; the store is asked again in any case.
                let _ = tokio::time::timeout(POLL, changes.changed()).await;
            }
        }
        Ok(())
    }
}
