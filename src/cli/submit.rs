//! `submit`: jobs from a file. Checked whole before the first is submitted; then committed group by group, in constant
//! memory.

use super::input::Input;
use super::out::Out;
use super::trouble::{Exit, Trouble};
use super::wait;
use crate::agent::Directory;
use crate::api::bulk::{GROUP, GROUP_BYTES, checked};
use crate::api::{Kind, Problem, conflict, shapes, words};
use crate::config::Config;
use crate::store::{JobId, NewJob, Store, Submitted};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeSet;
use std::path::PathBuf;

#[derive(Args, Clone, Debug, Default)]
pub struct SubmitArgs {
    /// A job (JSON) or many (one JSON object a line); - is stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Wait for the jobs and print each result as it ends, one JSON object a line
    #[arg(long)]
    pub wait: bool,
    /// Makes the submission repeatable: line n gets the idempotency key KEY:n
    #[arg(long)]
    pub key: Option<String>,
    /// Submit the good lines where some are not
    #[arg(long)]
    pub partial: bool,
}

/// Mistakes shown of one file at most.
const SHOWN: usize = 20;

pub async fn run<S: Store>(store: S, config: &Config, args: &SubmitArgs, out: &mut Out) -> Result<Exit, Trouble> {
    let directory = Directory::of(config);
    let mut input = Input::open(&args.file)?;
    let wrong = check(&mut input, &directory, args.key.as_deref(), store.clock().now_ms())?;
    if wrong.lines > 0 {
        if !args.partial {
            return Err(wrong.refused());
        }
        wrong.told(out.json);
    }
    let mut done = Done { failed: wrong.lines > 0, ..Done::default() };
    // Before the first job can end.
    let mut waiting = args.wait.then(|| wait::Waiting::begin(&store));
    let listed = out.json && !args.wait;
    if listed {
        out.piece("{\"items\":[")?;
    }
    submit(&store, &directory, &mut input, args, &mut done, waiting.as_mut(), listed.then_some(&mut *out)).await?;
    if listed {
        out.line("],\"next_cursor\":null}")?;
    } else if !args.wait {
        out.line(done.said())?;
    }
    out.flush()?;
    if let Some(waiting) = waiting {
        let queues: Vec<String> = done.queues.into_iter().collect();
        let exit = waiting.finish(store, config, &queues, out).await?;
        return Ok(if done.failed { Exit::Failed } else { exit });
    }
    Ok(if done.failed { Exit::Failed } else { Exit::Done })
}

/// The mistakes of a file: how many lines are wrong, and the first of them.
#[derive(Default)]
struct Wrong {
    lines: u64,
    first: Vec<String>,
    kind: Option<Kind>,
}

impl Wrong {
    fn add(&mut self, name: &str, line: u64, problem: &Problem) {
        self.lines += 1;
        self.kind.get_or_insert(problem.kind);
        if self.first.len() < SHOWN {
            self.first.push(at(name, line, problem));
        }
    }

    fn text(&self, end: &str) -> String {
        let mut lines = self.first.clone();
        let more = self.lines.saturating_sub(self.first.len() as u64);
        if more > 0 {
            lines.push(format!("and {} lines more", words::count(i64::try_from(more).unwrap_or(i64::MAX))));
        }
        lines.push(end.to_owned());
        lines.join("\n")
    }

    fn refused(&self) -> Trouble {
        let end = "nothing was submitted; correct it, or submit the good lines with --partial";
        Trouble::new(self.kind.unwrap_or(Kind::InvalidJob), self.text(end))
    }

    fn told(&self, json: bool) {
        // The exit code of the whole run follows from what was submitted.
        let _ =
            Trouble::new(self.kind.unwrap_or(Kind::InvalidJob), self.text("the other lines are submitted")).tell(json);
    }
}

/// `FILE:3: /model: …`.
fn at(name: &str, line: u64, problem: &Problem) -> String {
    let (line, member) = match problem.at.as_deref().map(|at| (at, within(at))) {
        None => (line, String::new()),
        // One object that spans lines: the line within it is the file's.
        Some((_, Some((within, column)))) => (line + within.saturating_sub(1), format!("column {column}: ")),
        Some((member, None)) => (line, format!("{member}: ")),
    };
    format!("{name}:{line}: {member}{}", problem.detail)
}

/// Where JSON broke: `line 2, column 16`.
fn within(at: &str) -> Option<(u64, u64)> {
    let (line, column) = at.strip_prefix("line ")?.split_once(", column ")?;
    Some((line.parse().ok()?, column.parse().ok()?))
}

/// Reads it through without submitting anything.
fn check(input: &mut Input, directory: &Directory, key: Option<&str>, now_ms: i64) -> Result<Wrong, Trouble> {
    let bar = bar(input.bytes, "checking");
    let mut wrong = Wrong::default();
    let mut lines = 0_u64;
    let name = input.name.clone();
    input.each(|line, read| {
        let (number, job) = checked(line, directory, key, now_ms);
        if let Err(problem) = job {
            wrong.add(&name, number, &problem);
        }
        lines += 1;
        bar.set_position(read);
        Ok(())
    })?;
    bar.finish_and_clear();
    if lines == 0 {
        return Err(Trouble::usage(format!("{name} holds no job; write one JSON object, or one a line")));
    }
    Ok(wrong)
}

/// What was submitted.
#[derive(Default)]
struct Done {
    jobs: i64,
    duplicates: i64,
    failed: bool,
    only: Option<JobId>,
    queues: BTreeSet<String>,
}

impl Done {
    fn said(&self) -> String {
        let new = self.jobs - self.duplicates;
        match (self.jobs, self.only) {
            (1, Some(id)) if self.duplicates == 1 => format!("{id} (had been submitted before)"),
            (1, Some(id)) => id.to_string(),
            (jobs, _) if self.duplicates == 0 => format!("{} jobs submitted", words::count(jobs)),
            _ => format!(
                "{} new jobs submitted; {} had been submitted before",
                words::count(new),
                words::count(self.duplicates)
            ),
        }
    }
}

async fn submit<S: Store>(
    store: &S,
    directory: &Directory,
    input: &mut Input,
    args: &SubmitArgs,
    done: &mut Done,
    mut waiting: Option<&mut wait::Waiting>,
    mut listed: Option<&mut Out>,
) -> Result<(), Trouble> {
    let bar = bar(input.bytes, "submitting");
    let name = input.name.clone();
    let mut group: Vec<(u64, NewJob)> = Vec::new();
    let mut bytes = 0;
    let mut pieces = input.pieces()?;
    loop {
        let piece = pieces.next()?;
        let ended = piece.is_none();
        let (lines, read) = piece.unwrap_or_default();
        let mut lines = lines.into_iter().peekable();
        loop {
            if group.len() >= GROUP || bytes >= GROUP_BYTES || (ended && !group.is_empty()) {
                let answers = commit(store, std::mem::take(&mut group), &name, done).await?;
                bytes = 0;
                for (line, id, duplicate) in answers {
                    match waiting.as_deref_mut() {
                        Some(waiting) if duplicate => waiting.add_repeated(id),
                        Some(waiting) => waiting.add(id),
                        None => {}
                    }
                    if let Some(out) = listed.as_deref_mut() {
                        if done.jobs > 0 {
                            out.text(",")?;
                        }
                        out.json_text(&shapes::Ack { line, id, duplicate })?;
                    }
                    done.jobs += 1;
                    done.duplicates += i64::from(duplicate);
                    done.only = Some(id);
                }
                if let Some(out) = listed.as_deref_mut() {
                    // Whoever reads along hears of a commit when it has happened.
                    out.flush()?;
                }
            }
            let Some(line) = lines.next() else { break };
            let (number, job) = checked(line, directory, args.key.as_deref(), store.clock().now_ms());
            match job {
                Ok(job) => {
                    bytes += job.spec.len();
                    if !done.queues.contains(&job.lane.queue) {
                        done.queues.insert(job.lane.queue.clone());
                    }
                    group.push((number, job));
                }
                // It was told already, unless it went bad since (a deadline that has passed).
                Err(problem) if !args.partial => {
                    done.failed = true;
                    return Err(Trouble::new(problem.kind, at(&name, number, &problem)));
                }
                Err(_) => {}
            }
        }
        bar.set_position(read);
        if ended {
            break;
        }
    }
    bar.finish_and_clear();
    Ok(())
}

/// One call of the store; conflicts are told and left out.
async fn commit<S: Store>(
    store: &S,
    group: Vec<(u64, NewJob)>,
    name: &str,
    done: &mut Done,
) -> Result<Vec<(u64, JobId, bool)>, Trouble> {
    let (lines, jobs): (Vec<u64>, Vec<NewJob>) = group.into_iter().unzip();
    let mut accepted = Vec::with_capacity(lines.len());
    for (line, answer) in lines.into_iter().zip(store.submit(jobs).await?) {
        match answer {
            Submitted::Accepted(id) => accepted.push((line, id, false)),
            Submitted::Duplicate(id) => accepted.push((line, id, true)),
            Submitted::Conflict(id) => {
                done.failed = true;
                let problem = conflict(id);
                let _ = Trouble::new(Kind::Conflict, format!("{} (job {id})", at(name, line, &problem))).tell(false);
            }
        }
    }
    Ok(accepted)
}

/// A bar on stderr; nothing where that is no terminal.
fn bar(bytes: u64, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr_with_hz(8));
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes}") {
        bar.set_style(style);
    }
    bar.with_message(what)
}
