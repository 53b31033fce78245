//! The process's log: which events are written, and which never are.
//!
//! genai logs requests, frames and bodies; hyper, h2 and reqwest log headers; sqlx logs statements. Their events and
//! spans are dropped here whatever filter is asked for, so that no prompt, answer or credential reaches a log because
//! somebody looked for a fault with `trace`. Records of the `log` crate are not taken in at all, for the same reason:
//! once bridged they lose the target by which they could be told apart. A test with canaries proves it.

use std::io::{self, IsTerminal as _};
use tracing::{Metadata, Subscriber, subscriber};
use tracing_subscriber::filter::{EnvFilter, FilterExt as _, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::{Registry, fmt};

/// Crates whose events carry prompts, answers, credentials, or statements with their values.
const SILENCED: [&str; 11] = [
    "genai",
    "hyper",
    "hyper_util",
    "hyper_rustls",
    "h2",
    "reqwest",
    "rustls",
    "sqlx",
    "sqlx_core",
    "sqlx_sqlite",
    "sqlx_postgres",
];
/// What of sqlx's events carries none, and tells an operator something: those on its pool of connections.
const HARMLESS: (&str, &str) = ("sqlx", "pool");

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Why the log could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is not of the form `info,reprieve=debug`.
    #[error("the log filter is wrong: write levels like `info` or `warn,reprieve=debug`")]
    Filter,
    #[error("the log is already set up")]
    AlreadySet,
}

/// Sets up the process's log on standard error. `filter`: as in `warn,reprieve=debug`.
///
/// # Errors
/// A filter that cannot be read, or a second call.
pub fn init(filter: &str, format: Format) -> Result<(), TelemetryError> {
    // Not `try_init`, which would bridge the `log` crate as well.
    subscriber::set_global_default(build(filter, format, io::stderr)?).map_err(|_| TelemetryError::AlreadySet)
}

/// The subscriber that [`init`] installs, writing elsewhere.
///
/// # Errors
/// A filter that cannot be read.
pub fn build<W>(filter: &str, format: Format, writer: W) -> Result<Box<dyn Subscriber + Send + Sync>, TelemetryError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let filter =
        EnvFilter::builder().parse(filter).map_err(|_| TelemetryError::Filter)?.and(filter_fn(is_ours_to_write));
    Ok(match format {
        Format::Text => {
            // Colours are for people at a terminal, not for files.
            let layer = fmt::layer().with_ansi(io::stderr().is_terminal()).with_writer(writer);
            Box::new(Registry::default().with(layer.with_filter(filter)))
        }
        Format::Json => Box::new(Registry::default().with(fmt::layer().json().with_writer(writer).with_filter(filter))),
    })
}

/// Whether an event or span may be written at all.
fn is_ours_to_write(metadata: &Metadata<'_>) -> bool {
    let mut path = metadata.target().split("::");
    let (root, part) = (path.next().unwrap_or_default(), path.next().unwrap_or_default());
    !SILENCED.contains(&root) || (root, part) == HARMLESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_makes_no_sense_is_refused() {
        assert!(matches!(build("reprieve=loud", Format::Text, io::sink), Err(TelemetryError::Filter)));
        assert!(build("warn,reprieve=debug", Format::Json, io::sink).is_ok());
    }
}
