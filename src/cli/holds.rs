//! `holds`: what is closed, until when and who said so; one hold with its events; and closing and lifting by hand.

mod by_hand;
mod show;

use super::filter::{self, Pair};
use super::out::Out;
use super::trouble::{Exit, Trouble};
use crate::agent::Directory;
use crate::api::{Kind, parameters, shapes};
use crate::store::{HoldId, HoldRow, Query, Store};
use clap::{Args, Subcommand};

#[derive(Args, Clone, Debug, Default)]
#[command(args_conflicts_with_subcommands = true)]
pub struct HoldsArgs {
    #[command(subcommand)]
    pub command: Option<HoldsCommand>,
    /// One hold with all that befell it, by its whole id
    #[arg(value_name = "ID", value_parser = hold_id)]
    pub id: Option<HoldId>,
    /// Also holds that have ended
    #[arg(long, alias = "all")]
    pub include_ended: bool,
    #[command(flatten)]
    pub filter: ScopeFilter,
    /// At most so many, 1 to 1000 [default: 50]
    #[arg(long, value_name = "N", help_heading = "Paging")]
    pub limit: Option<String>,
}

/// Which scopes, and when.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Filters")]
pub struct ScopeFilter {
    /// Only what was opened later: how long ago (24h), a date or an instant, UTC
    #[arg(long, value_name = "AGO|DATE")]
    pub since: Option<String>,
    /// Only what was opened earlier, written likewise
    #[arg(long, value_name = "AGO|DATE")]
    pub until: Option<String>,
    /// Only these providers: their identities, as scopes show them
    #[arg(long)]
    pub provider: Option<String>,
    /// Only these accounts, as scopes show them
    #[arg(long)]
    pub account: Option<String>,
    /// Only these models
    #[arg(long)]
    pub model: Option<String>,
}

#[derive(Subcommand, Clone, Debug)]
pub enum HoldsCommand {
    /// Close a scope: none of its turns is sent until then, whatever its provider says
    ///
    /// Until --until or --for; without either until somebody releases it. A scope that is closed already is dated anew.
    #[command(
        after_help = "Examples: reprieve holds close --provider api.openai.com --account main \\\n            --for 2h --reason \"bill unpaid\"\n          reprieve holds close --provider api.openai.com --model gpt-4o"
    )]
    Close(by_hand::CloseArgs),
    /// Lift holds before their time: one probe goes at once, the rest follow if it is answered
    #[command(
        after_help = "Examples: reprieve holds release 0199c2f4-1b2c-7d3e-8f40-516273849c2e\n          reprieve holds release --provider api.openai.com --reason paid"
    )]
    Release(by_hand::ReleaseArgs),
}

impl HoldsArgs {
    /// What `--provider` filters by; closing takes one of the configuration and says itself what would be right.
    #[must_use]
    pub fn providers(&self) -> Option<&str> {
        match &self.command {
            None => self.filter.provider.as_deref(),
            Some(HoldsCommand::Release(release)) => release.provider.as_deref(),
            Some(HoldsCommand::Close(_)) => None,
        }
    }
}

fn hold_id(text: &str) -> Result<HoldId, String> {
    text.parse().map_err(|_| "no id of a hold; write it whole, as `reprieve holds` shows it".to_owned())
}

pub async fn run<S: Store>(store: &S, directory: &Directory, args: &HoldsArgs, out: &mut Out) -> Result<Exit, Trouble> {
    match &args.command {
        Some(HoldsCommand::Close(close)) => return by_hand::close(store, directory, close, out).await,
        Some(HoldsCommand::Release(release)) => return by_hand::release(store, release, out).await,
        None => {}
    }
    if let Some(id) = args.id {
        return one(store, id, out).await;
    }
    let now_ms = store.clock().now_ms();
    let filter = &args.filter;
    let pairs: [Pair<'_>; 6] = [
        ("since", filter.since.as_deref()),
        ("until", filter.until.as_deref()),
        ("provider", filter.provider.as_deref()),
        ("account", filter.account.as_deref()),
        ("model", filter.model.as_deref()),
        ("limit", args.limit.as_deref()),
    ];
    let query = Query { include_ended: args.include_ended, ..filter::query(&pairs, &[], now_ms)? };
    let asked = pairs.iter().any(|(name, value)| *name != "limit" && value.is_some());
    show::list(store.holds(query).await?, asked, now_ms, out)?;
    Ok(Exit::Done)
}

async fn one<S: Store>(store: &S, id: HoldId, out: &mut Out) -> Result<Exit, Trouble> {
    let now_ms = store.clock().now_ms();
    let hold = find(store, id).await?;
    let hold = hold.ok_or_else(|| {
        Trouble::new(Kind::NotFound, format!("there is no hold {id}; `reprieve holds --include-ended` lists them"))
    })?;
    let events = store.hold_events(id).await?;
    show::one(hold, events, now_ms, out)?;
    Ok(Exit::Done)
}

/// A hold by its id, among the open ones, else among the newest that have ended.
async fn find<S: Store>(store: &S, id: HoldId) -> Result<Option<HoldRow>, Trouble> {
    for include_ended in [false, true] {
        let now_ms = store.clock().now_ms();
        let query = Query { include_ended, limit: parameters::MAX_LIMIT, now_ms, ..Query::default() };
        if let Some(hold) = store.holds(query).await?.into_iter().find(|hold| hold.id == id) {
            return Ok(Some(hold));
        }
    }
    Ok(None)
}

/// The document of holds.
fn document(holds: Vec<HoldRow>) -> shapes::List<shapes::Hold> {
    shapes::List { items: holds.into_iter().map(shapes::Hold::from).collect(), next_cursor: None }
}
