//! `reprieve classify`: captured responses in, the contract's reading out, one compact line each.

use super::args::Cli;
use super::trouble::{Exit, Trouble};
use crate::api::Kind;
use crate::app;
use crate::clock::Clock;
use crate::failure::Rules;
use crate::failure::capture::{CaptureInput, Values};
use crate::provider::capture;
use crate::recovery::Policy;
use clap::Args;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;

#[derive(Args, Clone, Debug)]
pub struct ClassifyArgs {
    /// A file of JSON values; - is stdin
    #[arg(default_value = "-", value_name = "FILE")]
    pub file: PathBuf,
    /// The policy that decides: tiered or strict
    #[arg(long, default_value = "tiered")]
    pub policy: String,
}

/// What `reprieve classify` does with its arguments.
pub(super) fn command(args: &ClassifyArgs, cli: &Cli) -> Result<Exit, Trouble> {
    let (rules, policies) = readings(cli)?;
    let Some(policy) = policies.get(&args.policy) else {
        let known = policies.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let what = format!("there is no policy `{}`; write one of {known}", args.policy.escape_debug());
        return Err(Trouble::usage(what));
    };
    let now_ms = Clock::system().now_ms();
    let out = io::BufWriter::new(io::stdout().lock());
    let all_good = if args.file.as_os_str() == "-" {
        run(io::stdin().lock(), out, &rules, policy, now_ms)?
    } else {
        let file = File::open(&args.file).map_err(|error| {
            let name = args.file.display();
            Trouble::usage(format!(
                "{name} cannot be read ({error}); name a file of captured responses, or - for stdin"
            ))
        })?;
        run(io::BufReader::new(file), out, &rules, policy, now_ms)?
    };
    Ok(if all_good { Exit::Done } else { Exit::Misused })
}

/// The embedded rules and the contract's policies, or those of a configuration that was asked for.
fn readings(cli: &Cli) -> Result<(Rules, BTreeMap<String, Policy>), Trouble> {
    if cli.config.is_some() {
        let config = cli.load()?.config;
        let rules = app::rules(&config).map_err(|error| Trouble::new(Kind::Configuration, error.to_string()))?;
        return Ok((rules, config.policies));
    }
    let policies = [Policy::tiered(), Policy::strict()].map(|policy| (policy.name.clone(), policy));
    Ok((Rules::embedded(), policies.into_iter().collect()))
}

/// Reads a stream of JSON values and answers each on a line of its own, a bad one with `{"error":…}`. `now_ms` stands in
/// for a receipt that is not given. Returns whether all were good.
///
/// # Errors
/// When the input cannot be read or the output not written.
pub fn run(input: impl BufRead, mut out: impl Write, rules: &Rules, policy: &Policy, now_ms: i64) -> io::Result<bool> {
    let mut all_good = true;
    for value in Values::new(input) {
        match value?.and_then(|value| CaptureInput::parse(&value)) {
            Ok(captured) => serde_json::to_writer(&mut out, &capture::classify(&captured, rules, policy, now_ms))?,
            Err(why) => {
                all_good = false;
                serde_json::to_writer(&mut out, &json!({ "error": why }))?;
            }
        }
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(all_good)
}
