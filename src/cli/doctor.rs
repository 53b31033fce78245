//! `doctor`: everything that a run stands on, checked, one line each with what to do.

use super::args::Cli;
use super::out::Out;
use super::table::Paint;
use super::trouble::{Exit, Trouble};
use crate::app;
use crate::clock::Clock;
use crate::config::Config;
use crate::provider::key_gap;
use crate::store::{Check, Level};
use clap::Args;
use serde_json::json;

#[derive(Args, Clone, Debug, Default)]
pub struct DoctorArgs {}

/// Instants before this are no clock's: 1 January 2025.
const SANE_MS: i64 = 1_735_689_600_000;

pub async fn run(_args: &DoctorArgs, cli: &Cli, out: &mut Out) -> Result<Exit, Trouble> {
    let now_ms = Clock::system().now_ms();
    let mut checks = Vec::new();
    match cli.load() {
        Ok(loaded) => {
            checks.extend(configuration(&loaded.config));
            checks.extend(app::checks(&loaded.config, now_ms).await);
        }
        Err(error) => {
            let lines = error.to_string().lines().collect::<Vec<_>>().join("; ");
            checks.push(Check::fail("configuration", lines, "correct it; `reprieve config check` shows what holds"));
        }
    }
    if now_ms < SANE_MS {
        checks.push(Check::fail("clock", "this machine's clock stands before 2025", "set it (NTP)"));
    }
    let failed = checks.iter().any(|check| check.level == Level::Fail);
    if out.json {
        out.document(&json!({"ok": !failed, "checks": checks}))?;
    } else {
        show(&checks, out)?;
    }
    out.flush()?;
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

/// The configuration, the rules, and every provider's key.
fn configuration(config: &Config) -> Vec<Check> {
    let entries = config.providers.len();
    let mut checks = vec![match entries {
        0 => Check::warn(
            "configuration",
            "names no provider: no job can be submitted",
            "add a section [providers.NAME] to a file, and name it with --config",
        ),
        1 => Check::ok("configuration", "is valid; 1 provider"),
        several => Check::ok("configuration", format!("is valid; {several} providers")),
    }];
    checks.push(match app::rules(config) {
        Ok(_) => Check::ok("rules", "can be read"),
        Err(error) => Check::fail("rules", error.to_string(), "correct the file that [rules] names"),
    });
    for (name, provider) in &config.providers {
        let what = format!("provider {name}");
        checks.push(match key_gap(&provider.key) {
            None => Check::ok(what, "has what it sends with"),
            Some(gap) => Check::fail(
                what,
                gap.to_string(),
                "do that, then start serve or worker again; the other providers go on meanwhile",
            ),
        });
    }
    checks
}

fn show(checks: &[Check], out: &mut Out) -> Result<(), Trouble> {
    let names = checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
    for check in checks {
        let (word, paint) = match check.level {
            Level::Ok => ("ok", Paint::Good),
            Level::Warn => ("warn", Paint::Held),
            Level::Fail => ("fail", Paint::Bad),
        };
        let painted = paint.on(&format!("{word:4}"), out.colours());
        out.line(format!("{painted}  {:names$}  {}", check.name, check.found))?;
        if let Some(todo) = &check.todo {
            out.line(format!("{:width$}→ {todo}", "", width = names + 8))?;
        }
    }
    let count = |level: Level| checks.iter().filter(|check| check.level == level).count();
    match (count(Level::Fail), count(Level::Warn)) {
        (0, 0) => out.line("All is well."),
        (0, warned) => out.line(format!("Nothing failed; {warned} to look at.")),
        (failed, warned) => out.line(format!("{failed} failed, {warned} to look at.")),
    }
}
