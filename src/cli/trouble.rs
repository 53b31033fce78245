//! How a command ends, and what it says when it ends badly: `error: …` with what would be right, or with `--json` one
//! problem document, on stderr.

use crate::api::{Kind, Problem};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::io::{self, Write};
use std::process::ExitCode;

/// What a command's end means to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done,
    /// The asked-for thing failed.
    Failed,
    /// Usage or configuration.
    Misused,
    /// Something that is needed is not reachable.
    Unreachable,
}

impl Exit {
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Misused => 2,
            Self::Unreachable => 3,
        }
    }
}

/// Why a command could not do what it was asked for.
#[derive(Debug)]
pub enum Trouble {
    Problem(Box<Problem>),
    /// Whoever read stdout has left: no word about it.
    NobodyReads,
}

impl Trouble {
    #[must_use]
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self::Problem(Box::new(Problem::new(kind, detail)))
    }

    #[must_use]
    pub fn usage(detail: impl Into<String>) -> Self {
        Self::new(Kind::Usage, detail)
    }

    /// A flag whose value is none.
    #[must_use]
    pub fn parameter(flag: &str, detail: impl Into<String>) -> Self {
        Self::Problem(Box::new(Problem::new(Kind::Parameter, detail).at(flag)))
    }

    /// An argument that is none.
    #[must_use]
    pub fn misused(argument: &str, detail: impl Into<String>) -> Self {
        Self::Problem(Box::new(Problem::new(Kind::Usage, detail).at(argument)))
    }

    /// A problem of the database, by its name where it does not name itself.
    #[must_use]
    pub fn of_database(self, url: &str) -> Self {
        match self {
            Self::Problem(mut problem) if problem.kind == Kind::Store && problem.at.is_none() => {
                let shown = without_credentials(url);
                let path = url.split_once("://").map_or(url, |(_, path)| path);
                if !problem.detail.contains(path) && !problem.detail.contains(&shown) {
                    problem.at = Some(shown);
                }
                Self::Problem(problem)
            }
            other => other,
        }
    }

    /// A parameter's place in the words of the command line: `--include-retried`, not `include_retried`.
    #[must_use]
    pub fn in_flags(self) -> Self {
        match self {
            Self::Problem(mut problem) if problem.kind == Kind::Parameter => {
                let flag = |name: String| match name.strip_prefix("label.") {
                    Some(_) => "--label".to_owned(),
                    None if name.starts_with("--") => name,
                    None => format!("--{}", name.replace('_', "-")),
                };
                problem.at = problem.at.map(flag);
                Self::Problem(problem)
            }
            other => other,
        }
    }

    /// Says it on stderr, and how to exit.
    #[must_use]
    pub fn tell(&self, json: bool) -> Exit {
        let Self::Problem(problem) = self else {
            return Exit::Done;
        };
        // Nobody can be told that stderr is closed.
        let _ = writeln!(io::stderr().lock(), "{}", shown(problem, json));
        exit_of(problem.kind)
    }
}

fn shown(problem: &Problem, json: bool) -> String {
    if json {
        return problem.to_json().to_string();
    }
    let place = problem.at.as_ref().map_or_else(String::new, |at| format!("{at}: "));
    // Every further line of a list of problems is an error of its own.
    format!("{place}{}", problem.detail).lines().map(|line| format!("error: {line}")).collect::<Vec<_>>().join("\n")
}

fn exit_of(kind: Kind) -> Exit {
    match kind {
        Kind::Malformed
        | Kind::InvalidJob
        | Kind::Parameter
        | Kind::Provider
        | Kind::Method
        | Kind::TooLarge
        | Kind::MediaType
        | Kind::Host
        | Kind::Origin
        | Kind::Slow
        | Kind::Invalid
        | Kind::InvalidSchedule
        | Kind::Usage
        | Kind::Configuration => Exit::Misused,
        Kind::NotFound
        | Kind::Conflict
        | Kind::Ended
        | Kind::NotEnded
        | Kind::NoMessages
        | Kind::Exists
        | Kind::Internal => Exit::Failed,
        Kind::Store | Kind::Unreachable => Exit::Unreachable,
    }
}

impl<T: Into<Problem>> From<T> for Trouble {
    fn from(problem: T) -> Self {
        Self::Problem(Box::new(problem.into()))
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::NobodyReads;
        }
        Self::new(Kind::Internal, format!("writing failed: {error}"))
    }
}

/// A database's URL as it may be shown: user and password stay out.
#[must_use]
pub fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    match rest.split_once('/').unwrap_or((rest, "")).0.rsplit_once('@') {
        Some((credentials, _)) => format!("{scheme}://{}", rest.get(credentials.len() + 1..).unwrap_or_default()),
        None => url.to_owned(),
    }
}

/// What clap has to say: help and version go to stdout, misuse to stderr in our own format.
#[must_use]
pub fn of_arguments(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A reader that has left needs no help.
            let _ = error.print();
            ExitCode::from(Exit::Done.code())
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(Exit::Misused.code())
        }
        _ => {
            // The arguments could not be read, so whether `--json` was meant is read from them as they stand.
            let json = std::env::args_os().any(|argument| argument == "--json");
            ExitCode::from(Trouble::usage(misuse(error)).tell(json).code())
        }
    }
}

/// One line of what is wrong, and one of what would be right.
fn misuse(error: &clap::Error) -> String {
    let whole = error.render().to_string();
    let first = whole.lines().next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first).trim_end_matches(':').to_owned();
    let missing: Vec<&str> = if error.kind() == ErrorKind::MissingRequiredArgument {
        whole.lines().skip(1).take_while(|line| line.starts_with("  ")).map(str::trim).collect()
    } else {
        Vec::new()
    };
    let mut said = first;
    if !missing.is_empty() {
        said = format!("{said}: {}", missing.join(", "));
    }
    // `holds list`, as other tools have it.
    if error.kind() == ErrorKind::InvalidSubcommand || error.kind() == ErrorKind::ValueValidation {
        let was = |kind| matches!(error.get(kind), Some(ContextValue::String(value)) if value == "list");
        if was(ContextKind::InvalidSubcommand) || was(ContextKind::InvalidValue) {
            return format!("{said}; the command without it lists them, and `--help` shows what can be asked for");
        }
    }
    if let Some(ContextValue::Strings(values)) = error.get(ContextKind::ValidValue)
        && !values.is_empty()
    {
        return format!("{said}; write one of {}", values.join(", "));
    }
    for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand] {
        let near = match error.get(kind) {
            Some(ContextValue::Strings(several)) => several.join("` or `"),
            Some(one) => one.to_string(),
            None => continue,
        };
        return format!("{said}; did you mean `{near}`? `--help` shows what can be asked for");
    }
    format!("{said}; `--help` shows what can be asked for")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store;

    fn said(error: store::Error, url: &str) -> String {
        match Trouble::from(error).of_database(url) {
            Trouble::Problem(problem) => shown(&problem, false),
            Trouble::NobodyReads => String::new(),
        }
    }

    #[test]
    fn a_database_is_named_once_and_without_its_password() {
        let url = "sqlite:///srv/r.db";
        let error = said(store::Error::ReadOnly, url);
        assert!(error.starts_with("error: sqlite:///srv/r.db: the database is read-only; "), "{error}");
        let gone = said(store::Error::Gone { path: "/srv/r.db".to_owned() }, url);
        assert!(gone.starts_with("error: the database file /srv/r.db was moved"), "{gone}");
        let locked = said(store::Error::Locked { waited_ms: 5 }, "postgres://me:secret@host:5432/jobs");
        assert!(locked.starts_with("error: postgres://host:5432/jobs: the database is locked"), "{locked}");
        assert_eq!(
            without_credentials("postgres://host/jobs?application_name=a@b"),
            "postgres://host/jobs?application_name=a@b"
        );
    }

    #[test]
    fn a_parameter_is_called_by_its_flag() {
        let named = |name: &str| match Trouble::parameter(name, "x").in_flags() {
            Trouble::Problem(problem) => problem.at.unwrap_or_default(),
            Trouble::NobodyReads => String::new(),
        };
        assert_eq!(
            [named("cursor"), named("include_retried"), named("label.k")],
            ["--cursor", "--include-retried", "--label"]
        );
    }
}
