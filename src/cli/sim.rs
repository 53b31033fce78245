//! `sim`: the simulated provider alone, until it is interrupted.

use super::out::Out;
use super::trouble::{Exit, Trouble};
use crate::api::Kind;
use crate::clock::Clock;
use crate::sim::{Counts, Scenario, ScenarioError, Sim, SimOptions};
use clap::Args;
use std::io::{self, IsTerminal, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How often the line of figures is drawn anew.
const REDRAW: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub struct SimArgs {
    /// A scenario file, or a built-in one: calm, metered, demo
    #[arg(long, value_name = "FILE|NAME", default_value = "calm")]
    scenario: String,
    /// The address to listen on: any but the loopback's lets other machines in
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: IpAddr,
    /// The port; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 7172)]
    port: u16,
    /// The seed, over the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// Serves until SIGINT or SIGTERM; then says what was counted.
///
/// # Errors
/// A scenario that is wrong, by its line; a port that cannot be had.
pub fn run(args: &SimArgs, out: &mut Out) -> Result<Exit, Trouble> {
    let mut scenario = scenario(&args.scenario)?;
    if let Some(seed) = args.seed {
        scenario = scenario.with_seed(seed);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(scenario, SocketAddr::new(args.host, args.port), out))
}

async fn serve(scenario: Scenario, bind: SocketAddr, out: &mut Out) -> Result<Exit, Trouble> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (name, seed) = (scenario.name.clone(), scenario.seed);
    let options = SimOptions { bind: bind.to_string(), clock: Clock::system() };
    let sim = Sim::start(scenario, options).await.map_err(|error| {
        let why = &error.source;
        Trouble::new(Kind::Unreachable, format!("{error}: {why}; --port takes another, 0 a free one"))
    })?;
    let greeting = format!("simulated provider on {} (scenario {name}, seed {seed})", sim.url());
    if out.json {
        // stdout is for the one document at the end.
        let _ = writeln!(io::stderr(), "{greeting}");
    } else {
        out.line(greeting)?;
        out.flush()?;
    }

    let live = io::stderr().is_terminal();
    let mut redraw = tokio::time::interval(REDRAW);
    loop {
        tokio::select! {
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            _ = redraw.tick(), if live => draw(&format!("\r{}\x1b[K", figures(&sim.stats().totals))),
        }
    }
    if live {
        draw("\r\x1b[K");
    }
    let stats = sim.stats();
    sim.shutdown().await;
    if out.json {
        out.document(&stats)?;
    } else {
        out.line(figures(&stats.totals))?;
        for scope in stats.scopes {
            let key = if scope.key.is_empty() { "(no key)" } else { &scope.key };
            out.line(format!("  {key} {}: {}", scope.model, figures(&scope.counts)))?;
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Nobody can be told that stderr is closed.
fn draw(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}

/// What happened at least once, and what should not have.
fn figures(counts: &Counts) -> String {
    let always = [("received", counts.received), ("completed", counts.completed), ("refused", counts.refused)];
    let sometimes = [
        ("failed", counts.failed),
        ("dropped", counts.dropped),
        ("faulted", counts.faulted),
        ("abandoned", counts.abandoned),
        ("in flight", counts.in_flight),
        ("early", counts.early),
        ("doomed", counts.doomed),
        ("concurrent", counts.concurrent),
    ];
    let shown = always.into_iter().chain(sometimes.into_iter().filter(|(_, count)| *count > 0));
    shown.map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// A file where the text looks like one or there is one, else a built-in scenario.
fn scenario(text: &str) -> Result<Scenario, Trouble> {
    let path = Path::new(text);
    let wrong = |error: &ScenarioError| Trouble::new(Kind::Configuration, error.to_string());
    if !path.exists() && !text.contains('/') && path.extension().is_none() {
        return Scenario::builtin(text).map_err(|error| wrong(&error));
    }
    let read = std::fs::read_to_string(path)
        .map_err(|error| Trouble::new(Kind::Configuration, format!("{text}: cannot be read: {error}")))?;
    Scenario::parse(&read, text).map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_name_what_happened() {
        let counts = Counts { received: 9, completed: 6, refused: 2, dropped: 1, ..Counts::default() };
        assert_eq!(figures(&counts), "9 received, 6 completed, 2 refused, 1 dropped");
    }
}
