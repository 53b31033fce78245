//! `holds`: what is closed, until when and who said so; and lifting it by hand.

use super::filter::Filter;
use super::out::Out;
use super::table::{Align, Table};
use super::trouble::{Exit, Trouble};
use crate::api::{Kind, shapes, words};
use crate::store::{HoldId, HoldRelease, HoldRow, Query, Store};
use clap::{Args, Subcommand};

#[derive(Args, Clone, Debug, Default)]
#[command(args_conflicts_with_subcommands = true)]
pub struct HoldsArgs {
    #[command(subcommand)]
    pub command: Option<HoldsCommand>,
    /// Also holds that have ended
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub filter: Filter,
}

#[derive(Subcommand, Clone, Debug)]
pub enum HoldsCommand {
    /// Lift holds before their time: one probe goes at once, the rest follow if it is answered
    #[command(
        after_help = "Examples: reprieve holds release 0199c2f4-1b2c-7d3e-8f40-516273849c2e\n          reprieve holds release --provider api.openai.com --account main --reason paid"
    )]
    Release(ReleaseArgs),
}

#[derive(Args, Clone, Debug, Default)]
pub struct ReleaseArgs {
    /// The hold, by its whole id
    #[arg(value_parser = hold_id, conflicts_with_all = ["provider", "account", "model"], required_unless_present_any = ["provider", "account", "model"])]
    pub id: Option<HoldId>,
    /// All open holds of this provider
    #[arg(long)]
    pub provider: Option<String>,
    /// All open holds of this account
    #[arg(long)]
    pub account: Option<String>,
    /// All open holds of this model
    #[arg(long)]
    pub model: Option<String>,
    /// Why; kept with the hold
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

fn hold_id(text: &str) -> Result<HoldId, String> {
    text.parse().map_err(|_| "no id of a hold; write it whole, as `reprieve holds` shows it".to_owned())
}

pub async fn run<S: Store>(store: &S, args: &HoldsArgs, out: &mut Out) -> Result<Exit, Trouble> {
    let now_ms = store.clock().now_ms();
    if let Some(HoldsCommand::Release(release)) = &args.command {
        return lift(store, release, out).await;
    }
    let query = Query { include_ended: args.all, ..args.filter.query(&[], &[], now_ms)? };
    let holds = store.holds(query).await?;
    show(holds, now_ms, out)?;
    Ok(Exit::Done)
}

fn show(holds: Vec<HoldRow>, now_ms: i64, out: &mut Out) -> Result<(), Trouble> {
    if out.json {
        let items: Vec<_> = holds.into_iter().map(shapes::Hold::from).collect();
        out.document(&shapes::List { items, next_cursor: None })?;
    } else if holds.is_empty() {
        out.line("No scope is closed. Nothing waits for a provider's clock.")?;
    } else {
        for hold in &holds {
            let until = match (hold.ended_ms, hold.until_ms) {
                (Some(ended_ms), _) => {
                    let how = hold.end.as_deref().unwrap_or("unknown");
                    format!("ended {}: {how}", words::instant_and_distance(ended_ms, now_ms))
                }
                (None, Some(until_ms)) => format!("until {}", words::instant_and_distance(until_ms, now_ms)),
                (None, None) => "until somebody lifts it".to_owned(),
            };
            out.line(format!("{}  {until}", words::scope(&hold.scope)))?;
            let mut table = Table::new(&[("", Align::Left), ("", Align::Flexible)]);
            for (label, value) in fields(hold, now_ms) {
                table.row(vec![format!("  {label}"), value]);
            }
            for line in table.lines(out.width(), out.colours()).into_iter().skip(1) {
                out.line(line)?;
            }
        }
    }
    out.flush()
}

fn fields(hold: &HoldRow, now_ms: i64) -> Vec<(&'static str, String)> {
    let kind = hold.kind.as_ref().map_or_else(String::new, |kind| format!(" ({})", super::failures::word(kind)));
    let raw = hold.raw.as_deref().map_or_else(String::new, |raw| format!(": {raw}"));
    let times = |count: u32| if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let mut fields = vec![
        ("hold", hold.id.to_string()),
        ("why", format!("{}{kind}", hold.cause)),
        ("read from", format!("{}{raw}", hold.source)),
        ("opened", words::instant_and_distance(hold.opened_ms, now_ms)),
    ];
    if hold.extended > 0 {
        fields.push(("extended", times(hold.extended)));
    }
    if hold.barren > 0 {
        fields.push(("refused", format!("{} at or after the instant promised", times(hold.barren))));
    }
    fields.push(("waiting", format!("{} turns", words::count(hold.waiting))));
    if let Some(job) = hold.probe {
        fields.push(("probe", format!("job {}", words::short_id(job))));
    }
    fields
}

async fn lift<S: Store>(store: &S, args: &ReleaseArgs, out: &mut Out) -> Result<Exit, Trouble> {
    let now_ms = store.clock().now_ms();
    let ids = if let Some(id) = args.id {
        vec![id]
    } else {
        let filter = Filter {
            provider: args.provider.clone(),
            account: args.account.clone(),
            model: args.model.clone(),
            limit: Some(crate::api::parameters::MAX_LIMIT.to_string()),
            ..Filter::default()
        };
        store.holds(filter.query(&[], &[], now_ms)?).await?.into_iter().map(|hold| hold.id).collect()
    };
    let mut lifted = Vec::new();
    for id in ids {
        let release = HoldRelease { id, by: "command line".to_owned(), reason: args.reason.clone(), now_ms };
        lifted.extend(store.release_hold(release).await?);
    }
    if lifted.is_empty() {
        return Err(Trouble::new(Kind::NotFound, "no open hold matches; `reprieve holds` lists them"));
    }
    show(lifted, now_ms, out)?;
    Ok(Exit::Done)
}
