//! `holds close` and `holds release`.

use super::super::act::{BY, asked};
use super::super::filter::{self, Pair};
use super::super::out::Out;
use super::super::trouble::{Exit, Trouble};
use super::{document, hold_id, show};
use crate::agent::Directory;
use crate::api::{Kind, parameters, words};
use crate::duration;
use crate::store::{HoldClose, HoldId, HoldRelease, HoldRow, Query, ScopeKey, Store};
use clap::Args;
use std::io::{self, IsTerminal};

#[derive(Args, Clone, Debug, Default)]
pub struct CloseArgs {
    /// The provider: its identity, as scopes show it
    #[arg(long)]
    pub provider: String,
    /// The account, as scopes show it; may be left out where the provider has one
    #[arg(long)]
    pub account: Option<String>,
    /// The model; left out: the whole account
    #[arg(long)]
    pub model: Option<String>,
    /// Until this instant: a date or an instant, UTC
    #[arg(long, value_name = "DATE", conflicts_with = "lasting")]
    pub until: Option<String>,
    /// For so long, such as 90m
    #[arg(long = "for", value_name = "DURATION")]
    pub lasting: Option<String>,
    /// Why; kept with the hold
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

#[derive(Args, Clone, Debug, Default)]
pub struct ReleaseArgs {
    /// The hold, by its whole id
    #[arg(value_parser = hold_id, conflicts_with_all = ["provider", "account", "model", "all"])]
    pub id: Option<HoldId>,
    /// Open holds of this provider
    #[arg(long)]
    pub provider: Option<String>,
    /// Open holds of this account
    #[arg(long)]
    pub account: Option<String>,
    /// Open holds of this model
    #[arg(long)]
    pub model: Option<String>,
    /// Lift all that match, without being asked
    #[arg(long)]
    pub all: bool,
    /// Why; kept with the hold
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

pub async fn close<S: Store>(
    store: &S,
    directory: &Directory,
    args: &CloseArgs,
    out: &mut Out,
) -> Result<Exit, Trouble> {
    let now_ms = store.clock().now_ms();
    let scope = ScopeKey { model: args.model.clone().unwrap_or_default(), ..account(directory, args)? };
    let until_ms = until(args, now_ms)?;
    let close = HoldClose { scope, until_ms, by: BY.to_owned(), reason: args.reason.clone(), now_ms };
    let hold = store.close_scope(close).await?;
    show::closed(hold, now_ms, out)?;
    Ok(Exit::Done)
}

/// The account that is meant, among those that are configured: a scope that nobody sends to is a slip of the pen.
fn account(directory: &Directory, args: &CloseArgs) -> Result<ScopeKey, Trouble> {
    let mut known: Vec<&ScopeKey> = directory.entries.values().map(|entry| &entry.account).collect();
    known.sort();
    known.dedup();
    let listed = || {
        let shown: Vec<String> = known.iter().map(|scope| format!("{}/{}", scope.provider, scope.account)).collect();
        if shown.is_empty() { "none is configured".to_owned() } else { format!("configured are {}", shown.join(", ")) }
    };
    if let Some(entry) = directory.entries.get(&args.provider)
        && known.iter().all(|scope| scope.provider != args.provider)
    {
        return Err(Trouble::parameter(
            "--provider",
            format!(
                "`{}` is an entry of the configuration; its scopes are of provider {}",
                args.provider, entry.account.provider
            ),
        ));
    }
    let of_provider: Vec<&&ScopeKey> = known.iter().filter(|scope| scope.provider == args.provider).collect();
    let Some(wanted) = &args.account else {
        return match of_provider.as_slice() {
            [one] => Ok((**one).clone()),
            [] => Err(Trouble::parameter("--provider", format!("no such provider; {}", listed()))),
            _ => {
                Err(Trouble::parameter("--account", format!("is missing, and there is not exactly one; {}", listed())))
            }
        };
    };
    if of_provider.is_empty() {
        return Err(Trouble::parameter("--provider", format!("no such provider; {}", listed())));
    }
    let found = of_provider.into_iter().find(|scope| scope.account == *wanted);
    found
        .map(|scope| (*scope).clone())
        .ok_or_else(|| Trouble::parameter("--account", format!("no such account of that provider; {}", listed())))
}

fn until(args: &CloseArgs, now_ms: i64) -> Result<Option<i64>, Trouble> {
    let at_ms = match (&args.until, &args.lasting) {
        (Some(until), _) if duration::parse_ms(until).is_ok() => {
            return Err(Trouble::parameter("--until", format!("`{until}` is a duration; write --for {until}")));
        }
        (Some(until), _) => {
            let at_ms = parameters::instant("until", until, now_ms).map_err(|_| {
                let until = until.escape_debug();
                let right =
                    "write a date (2026-11-30, UTC) or an instant (2026-11-30T14:03:05Z); --for takes a duration";
                Trouble::parameter("--until", format!("`{until}` is no instant; {right}"))
            })?;
            Some(at_ms)
        }
        (None, Some(lasting)) => {
            let lasting_ms = duration::parse_ms(lasting)
                .map_err(|why| Trouble::parameter("--for", format!("`{}` {why}", lasting.escape_debug())))?;
            if lasting_ms == 0 {
                return Err(Trouble::parameter("--for", "is no time at all; write how long, such as 90m"));
            }
            Some(now_ms.saturating_add(lasting_ms))
        }
        (None, None) => None,
    };
    match at_ms {
        Some(at_ms) if at_ms <= now_ms => {
            let at = words::instant_and_distance(at_ms, now_ms);
            Err(Trouble::parameter("--until", format!("{at} has passed; write an instant that is to come")))
        }
        at_ms => Ok(at_ms),
    }
}

pub async fn release<S: Store>(store: &S, args: &ReleaseArgs, out: &mut Out) -> Result<Exit, Trouble> {
    let now_ms = store.clock().now_ms();
    let named = args.all || [&args.provider, &args.account, &args.model].iter().any(|flag| flag.is_some());
    if args.id.is_none() && !named {
        let what = "which hold? Write its id (`reprieve holds` lists them), --provider, --account or --model, or --all";
        return Err(Trouble::usage(what));
    }
    let ids = match args.id {
        Some(id) => vec![id],
        None => matching(store, args, now_ms, out).await?,
    };
    let mut lifted = Vec::new();
    for id in ids {
        let release = HoldRelease { id, by: BY.to_owned(), reason: args.reason.clone(), now_ms };
        lifted.extend(store.release_hold(release).await?);
    }
    if lifted.is_empty() {
        return Err(Trouble::new(Kind::NotFound, "no open hold matches; `reprieve holds` lists them"));
    }
    if out.json {
        out.document(&document(lifted))?;
    } else {
        for hold in &lifted {
            out.line(said(hold, now_ms))?;
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// What was lifted, and what follows.
fn said(hold: &HoldRow, now_ms: i64) -> String {
    let scope = words::scope(&hold.scope);
    let named = match hold.until_ms {
        Some(until_ms) if until_ms > now_ms => {
            let who = match hold.source.as_str() {
                "curve" => "our own curve had said",
                "operator" => "it had been closed until",
                _ => "its provider had said",
            };
            format!("; {who} {}", words::instant(until_ms, now_ms))
        }
        _ => String::new(),
    };
    let behind = match hold.waiting {
        0 => "nothing waits behind it".to_owned(),
        1 => "one probe goes now".to_owned(),
        turns => format!("one probe goes now, {} turns follow if it is answered", words::count(turns - 1)),
    };
    format!("{scope} is released{named}: {behind}")
}

/// The open holds that are meant; of several only with a yes.
async fn matching<S: Store>(store: &S, args: &ReleaseArgs, now_ms: i64, out: &mut Out) -> Result<Vec<HoldId>, Trouble> {
    let pairs: [Pair<'_>; 3] = [
        ("provider", args.provider.as_deref()),
        ("account", args.account.as_deref()),
        ("model", args.model.as_deref()),
    ];
    let query = Query { limit: parameters::MAX_LIMIT, ..filter::query(&pairs, &[], now_ms)? };
    let holds = store.holds(query).await?;
    if holds.len() > 1 && !args.all {
        let scopes: Vec<String> = holds.iter().map(|hold| words::scope(&hold.scope)).collect();
        let what = format!("{} open holds match: {}", holds.len(), scopes.join(", "));
        if out.json || !io::stdin().is_terminal() {
            return Err(Trouble::usage(format!("{what}; name one by its id, or lift them with --all")));
        }
        if !asked(&format!("{what}. Release them all?"))? {
            return Err(Trouble::usage("nothing was released"));
        }
    }
    Ok(holds.into_iter().map(|hold| hold.id).collect())
}
