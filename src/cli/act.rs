//! What is done to jobs: `cancel`, `retry`, `delete`, `requeue`, `reprioritise`, `pause`, `resume`; by ids, or by a filter
//! that is frozen at its start. Shown first with `--dry-run`; a filter that means many asks before it acts.

use super::filter::{self, JobFilter, Pair};
use super::find;
use super::out::Out;
use super::preview;
use super::trouble::{Exit, Trouble};
use crate::agent::Directory;
use crate::api::acts::{Act, Acted, CHUNK, Frozen, Order, Outcome};
use crate::api::words;
use crate::store::{JobId, Store};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal, Write};

/// Which jobs: ids, or filters.
#[derive(Args, Clone, Debug, Default)]
pub struct Which {
    /// The jobs: whole ids, or as lists show them; or else filters
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Every job that it can be done to
    #[arg(long)]
    pub all: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask, however many jobs a filter means
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub jobs: JobFilter,
}

/// Which ended jobs: also by what they ended with.
#[derive(Args, Clone, Debug, Default)]
pub struct EndedArgs {
    /// Only what failed for these causes, separated by commas
    #[arg(long, help_heading = "Filters")]
    pub cause: Option<String>,
    /// Only what failed in these classes, separated by commas
    #[arg(long, help_heading = "Filters")]
    pub class: Option<String>,
    /// Only what failed with these codes of ours, separated by commas
    #[arg(long, help_heading = "Filters")]
    pub code: Option<String>,
    /// Only what failed with these HTTP statuses, separated by commas
    #[arg(long, help_heading = "Filters")]
    pub http: Option<String>,
    #[command(flatten)]
    pub which: Which,
}

impl EndedArgs {
    /// The filters that only ended jobs know.
    #[must_use]
    pub fn own(&self) -> Vec<Pair<'_>> {
        vec![
            ("cause", self.cause.as_deref()),
            ("class", self.class.as_deref()),
            ("code", self.code.as_deref()),
            ("http", self.http.as_deref()),
        ]
    }
}

/// Which jobs, and a priority.
#[derive(Args, Clone, Debug, Default)]
pub struct ReprioritiseArgs {
    /// -100 to 100: the higher one goes first within its queue and tenant; one step is worth a minute of waiting
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(i16).range(-100..=100))]
    pub priority: i16,
    #[command(flatten)]
    pub which: Which,
}

/// Which jobs, and why.
#[derive(Args, Clone, Debug, Default)]
pub struct PauseArgs {
    /// Why; kept with the jobs until they are resumed
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    #[command(flatten)]
    pub which: Which,
}

/// Who acts, as it is kept.
pub const BY: &str = "command line";

pub async fn run<S: Store>(
    store: &S,
    directory: &Directory,
    act: Act,
    which: &Which,
    own: &[Pair<'_>],
    out: &mut Out,
) -> Result<Exit, Trouble> {
    let order = Order { act, by: BY.to_owned(), directory };
    let filters = [own, &which.jobs.pairs()].concat();
    let filtered = which.all || !which.jobs.label.is_empty() || filters.iter().any(|(_, value)| value.is_some());
    match (which.ids.is_empty(), filtered) {
        (false, false) => by_ids(store, &order, which, out).await,
        (true, true) => by_filter(store, &order, which, &filters, out).await,
        (false, true) => Err(Trouble::usage("ids and filters exclude each other; write one or the other")),
        (true, false) => Err(Trouble::usage(format!(
            "which jobs? Write ids (`reprieve jobs` lists them), filters such as --queue nightly, or --all; \
             --dry-run shows what `{}` would do",
            order.act.verb()
        ))),
    }
}

async fn by_ids<S: Store>(store: &S, order: &Order<'_>, which: &Which, out: &mut Out) -> Result<Exit, Trouble> {
    let mut ids: Vec<JobId> = Vec::with_capacity(which.ids.len());
    for text in &which.ids {
        let id = find::job_id(store, text).await?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    if which.dry_run {
        return preview::show(&order.preview_of(store, &ids).await?, &order.act, out);
    }
    let mut told = Told::begin(out)?;
    for chunk in ids.chunks(CHUNK as usize) {
        told.add(&order.carry_out(store, chunk).await?, true, out)?;
    }
    told.end(out)
}

async fn by_filter<S: Store>(
    store: &S,
    order: &Order<'_>,
    which: &Which,
    filters: &[Pair<'_>],
    out: &mut Out,
) -> Result<Exit, Trouble> {
    let query = filter::query(filters, &which.jobs.label, store.clock().now_ms())?;
    let Some(frozen) = Frozen::of(store, query, &order.act).await? else {
        return nothing(order, out);
    };
    let preview = order.preview(store, &frozen).await?;
    if preview.count == 0 {
        return nothing(order, out);
    }
    if which.dry_run {
        return preview::show(&preview, &order.act, out);
    }
    if preview.is_large() && !which.yes {
        let many = if preview.more { "more than 10,000".to_owned() } else { words::count(preview.count) };
        let terminal = io::stdin().is_terminal() && io::stderr().is_terminal() && !out.json;
        if !terminal {
            return Err(Trouble::usage(format!(
                "this means {many} jobs; look at them with --dry-run, then write the same with --yes"
            )));
        }
        preview::show(&preview, &order.act, out)?;
        if !asked(&format!("{} {many} jobs?", capital(order.act.verb())))? {
            return Err(Trouble::usage("nothing was done"));
        }
    }
    let bar = bar(preview.count, preview.more, order.act.verb());
    let mut told = Told::begin(out)?;
    let mut walk = frozen.walk(CHUNK);
    while let Some(jobs) = walk.next(store).await? {
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        told.add(&order.carry_out(store, &ids).await?, false, out)?;
        bar.inc(ids.len() as u64);
    }
    bar.finish_and_clear();
    told.sum(out)?;
    told.end(out)
}

fn nothing(order: &Order<'_>, out: &mut Out) -> Result<Exit, Trouble> {
    if out.json {
        out.document(&serde_json::json!({"items": [], "next_cursor": null}))?;
    } else {
        out.line(format!("No job matches; there is nothing to {}.", order.act.verb()))?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Asks on the terminal; only a yes is one.
pub(super) fn asked(question: &str) -> Result<bool, Trouble> {
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A bar on stderr; nothing where that is no terminal.
fn bar(jobs: i64, more: bool, what: &'static str) -> ProgressBar {
    let length = (!more).then(|| u64::try_from(jobs).unwrap_or(0));
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr_with_hz(8));
    let form = if more { "{msg} {human_pos} jobs" } else { "{msg} {wide_bar} {human_pos}/{human_len} jobs" };
    if let Ok(style) = ProgressStyle::with_template(form) {
        bar.set_style(style);
    }
    bar.with_message(what)
}

/// What is told of an act while it goes on: with `--json` one document, streamed.
struct Told {
    items: u64,
    exit: Exit,
    /// By outcome.
    counts: BTreeMap<&'static str, i64>,
}

impl Told {
    fn begin(out: &mut Out) -> Result<Self, Trouble> {
        if out.json {
            out.text("{\"items\":[")?;
        }
        Ok(Self { items: 0, exit: Exit::Done, counts: BTreeMap::new() })
    }

    fn add(&mut self, acted: &[Acted], each: bool, out: &mut Out) -> Result<(), Trouble> {
        for one in acted {
            // Of a filter's jobs one may have ended meanwhile: that is no failure of what was asked for.
            if !one.outcome.is_met() && (each || matches!(one.outcome, Outcome::Refused(_))) {
                self.exit = Exit::Failed;
            }
            *self.counts.entry(one.outcome.word()).or_default() += 1;
            if out.json {
                out.text(if self.items > 0 { "," } else { "" })?;
                out.json_text(one)?;
            } else if each {
                out.line(format!("{}  {}", one.id, one.outcome.sentence()))?;
            } else if let Outcome::Refused(why) = &one.outcome {
                writeln!(io::stderr().lock(), "{}  cannot go on: {why}", one.id)?;
            }
            self.items += 1;
        }
        out.flush()
    }

    /// One line for all.
    fn sum(&self, out: &mut Out) -> Result<(), Trouble> {
        if out.json {
            return Ok(());
        }
        let count = |word: &str| self.counts.get(word).copied().unwrap_or(0);
        let mut parts = Vec::new();
        let known = [
            ("asked", "asked to stop"),
            ("retried_before", "had been retried before"),
            ("unchanged", "were so already"),
            ("already_final", "had ended before"),
            ("not_final", "had not ended"),
            ("unknown", "were gone"),
            ("refused", "refused"),
        ];
        for (word, jobs) in &self.counts {
            if !known.iter().any(|(known, _)| known == word) {
                parts.push(format!("{} {word}", words::count(*jobs)));
            }
        }
        for (word, said) in known {
            if count(word) > 0 {
                parts.push(format!("{} {said}", words::count(count(word))));
            }
        }
        out.line(format!("{}.", parts.join("; ")))
    }

    fn end(self, out: &mut Out) -> Result<Exit, Trouble> {
        if out.json {
            out.line("],\"next_cursor\":null}")?;
        }
        out.flush()?;
        Ok(self.exit)
    }
}
