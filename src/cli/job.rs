//! `job ID`: one job whole: its state, why it waits, each turn with its sends and waits, and its transcript.

use super::failures::word;
use super::find;
use super::out::Out;
use super::table::{Align, Table, printable};
use super::trouble::{Exit, Trouble};
use super::words::{ending, next, wrapped};
use crate::agent::Directory;
use crate::api::why::{Explanation, explain_job};
use crate::api::{Kind, said, shapes, words};
use crate::duration;
use crate::store::{EvidenceRow, JobRow, JobState, SendRow, Store, TurnView};
use clap::Args;
use serde::Serialize;

#[derive(Args, Clone, Debug)]
pub struct JobArgs {
    /// The job: its whole id, or as lists show it
    pub id: String,
}

/// The document of `--json`.
#[derive(Serialize)]
struct Whole {
    job: shapes::Job,
    records: Vec<shapes::Record>,
    transcript: Vec<shapes::Entry>,
    explanation: Option<Explanation>,
}

pub async fn run<S: Store>(store: &S, directory: &Directory, args: &JobArgs, out: &mut Out) -> Result<Exit, Trouble> {
    let id = find::job_id(store, &args.id).await?;
    let now_ms = store.clock().now_ms();
    let unknown = || Trouble::new(Kind::NotFound, format!("there is no job {id}; `reprieve jobs` lists them"));
    let mut job = store.job(id).await?.ok_or_else(unknown)?;
    said::fill_in(store, std::slice::from_mut(&mut job)).await?;
    let turns = store.turns(id).await?;
    let history = store.history(id).await?;
    let explanation = explain_job(store, directory, id).await?;
    let transcribed = shapes::transcript(&job.spec, &history);
    if out.json {
        let records = turns.into_iter().map(shapes::Record::from).collect();
        let workers = store.workers(now_ms).await?;
        let job = shapes::Job::whole(job, &workers, now_ms);
        out.document(&Whole { job, records, transcript: transcribed, explanation })?;
    } else {
        head(&job, explanation.as_ref(), now_ms, out)?;
        for turn in &turns {
            record(turn, now_ms, out)?;
        }
        transcript(&transcribed, out)?;
        hint(&job, &turns, out)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// What one would look at, or do, next.
fn hint(job: &JobRow, turns: &[TurnView], out: &mut Out) -> Result<(), Trouble> {
    let id = words::short_id(job.id);
    if job.state == JobState::Failed {
        return next(&format!("retry {id}"), "to let it go on from where it ended", out);
    }
    if turns.iter().any(|turn| !turn.evidence.is_empty()) {
        return next(&format!("resets {id}"), "each refusal, and every clock named in it", out);
    }
    if job.finished_ms.is_none() {
        return next(&format!("explain {id}"), "what it waits for, whole", out);
    }
    Ok(())
}

fn head(job: &JobRow, explanation: Option<&Explanation>, now_ms: i64, out: &mut Out) -> Result<(), Trouble> {
    let state = shapes::state(job.state, job.deferred);
    let mut fields = vec![
        ("model", job.lane.scope.model.clone()),
        ("scope", format!("{} (provider entry {})", words::scope(&job.lane.scope), job.entry)),
        ("queue", job.lane.queue.clone()),
    ];
    if !job.lane.tenant.is_empty() {
        fields.push(("tenant", job.lane.tenant.clone()));
    }
    if job.priority != 0 {
        fields.push(("priority", job.priority.to_string()));
    }
    if !job.labels.is_empty() {
        fields.push(("labels", job.labels.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ")));
    }
    fields.push(("submitted", words::instant_and_distance(job.created_ms, now_ms)));
    if let Some(deadline_ms) = job.deadline_ms.filter(|_| job.finished_ms.is_none()) {
        fields.push(("deadline", words::instant_and_distance(deadline_ms, now_ms)));
    }
    if let Some(finished_ms) = job.finished_ms {
        let took = duration::format(finished_ms.saturating_sub(job.created_ms));
        fields.push(("ended", format!("{}, after {took}", words::instant_and_distance(finished_ms, now_ms))));
    }
    if let Some(retry_of) = job.retry_of {
        fields.push(("retry of", retry_of.to_string()));
    }
    if let Some(seq) = job.seq {
        let counts = [(job.executions, "requeued or lost"), (job.deferrals, "deferred")];
        let counts =
            counts.iter().filter_map(|(count, what)| count.filter(|count| *count > 0).map(|n| format!("{n} {what}")));
        fields.push(("turn", std::iter::once(seq.to_string()).chain(counts).collect::<Vec<_>>().join(", ")));
    }
    if let Some(explanation) = explanation.filter(|_| job.finished_ms.is_none()) {
        fields.push(("why", explanation.text.clone()));
    }
    if let Some(error) = &job.error {
        fields.push(("error", ending(error)));
    }
    out.line(format!("Job {}: {state}", job.id))?;
    for (label, value) in fields {
        for (at, line) in wrapped(&printable(&value), out.width().saturating_sub(12)).iter().enumerate() {
            out.line(format!("  {:<10}{line}", if at == 0 { label } else { "" }))?;
        }
    }
    Ok(())
}

fn record(turn: &TurnView, now_ms: i64, out: &mut Out) -> Result<(), Trouble> {
    let record = &turn.record;
    let mut facts = vec![word(&record.outcome)];
    facts.extend(record.cut.as_ref().map(|cut| format!("cut by {cut}")));
    facts.extend(record.attempts.map(|sends| if sends == 1 { "1 send".to_owned() } else { format!("{sends} sends") }));
    facts.push(format!("took {}", duration::format(record.ended_ms.saturating_sub(record.started_ms))));
    let tokens = (record.usage.input_tokens, record.usage.output_tokens);
    if let (Some(input), Some(output)) = tokens {
        facts.push(format!("{} tokens in, {} out", words::count(input), words::count(output)));
    }
    out.line("")?;
    out.line(format!("Turn {} at {}: {}", record.seq, words::instant(record.started_ms, now_ms), facts.join(", ")))?;
    let mut table = Table::new(&[
        ("", Align::Left),
        ("", Align::Left),
        ("", Align::Right),
        ("", Align::Left),
        ("", Align::Flexible),
    ]);
    for send in &turn.sends {
        table.row(send_cells(send, now_ms));
    }
    for line in table.lines(out.width(), out.colours()).into_iter().skip(1) {
        out.line(line)?;
    }
    for evidence in &turn.evidence {
        for line in wrapped(&evidence_text(evidence, now_ms), out.width().saturating_sub(4)) {
            out.line(format!("    {line}"))?;
        }
    }
    if let Some(error) = &record.error {
        for line in wrapped(&ending(error), out.width().saturating_sub(4)) {
            out.line(format!("    {line}"))?;
        }
    }
    Ok(())
}

fn send_cells(send: &SendRow, now_ms: i64) -> Vec<String> {
    let status = send.http_status.map_or_else(String::new, |status| format!(" {status}"));
    let wait = match (send.wait_ms, &send.wait_source) {
        (Some(wait_ms), Some(source)) => format!("then waits {} ({source})", duration::format(wait_ms)),
        (Some(wait_ms), None) => format!("then waits {}", duration::format(wait_ms)),
        _ => String::new(),
    };
    let late = send.tests_resume_ms.map_or_else(String::new, |resume_ms| {
        format!("the first after a reset, {} late", duration::format(send.started_ms.saturating_sub(resume_ms)))
    });
    vec![
        format!("  send {}", send.n),
        words::instant(send.started_ms, now_ms),
        duration::format(send.ended_ms.saturating_sub(send.started_ms)),
        format!("{}{status}", send.outcome),
        [send.cause.clone().unwrap_or_default(), wait, late]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(", "),
    ]
}

fn evidence_text(evidence: &EvidenceRow, now_ms: i64) -> String {
    let others = evidence.candidates.len().saturating_sub(usize::from(evidence.source_name.is_some()));
    let others = match others {
        0 => String::new(),
        1 => "; 1 other candidate".to_owned(),
        several => format!("; {several} other candidates"),
    };
    match (evidence.reset_at_ms, &evidence.source_name) {
        (Some(reset_at_ms), Some(source)) => {
            let raw = evidence.raw.as_deref().map_or_else(String::new, |raw| format!(": {raw}"));
            let at = words::instant(reset_at_ms, now_ms);
            format!("refusal of send {}: reset {at} named by `{source}{raw}`{others}", evidence.n)
        }
        _ => format!("refusal of send {}: no reset named{others}", evidence.n),
    }
}

/// What was said, in order.
fn transcript(entries: &[shapes::Entry], out: &mut Out) -> Result<(), Trouble> {
    out.line("")?;
    out.line("Transcript")?;
    for entry in entries {
        let mut notes = Vec::new();
        if entry.kind != "input" && entry.kind != "answer" {
            notes.push(entry.kind.replace('_', " "));
        }
        notes.extend(entry.unanswered.then(|| "no answer".to_owned()));
        notes.extend(entry.carried.then(|| "taken over".to_owned()));
        notes.extend(entry.cut.as_ref().map(|cut| format!("cut by {cut}")));
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        out.line(format!("  {}{notes}:", printable(&entry.role)))?;
        let text = entry.text();
        let calls = entry.tool_calls.len();
        let text = if text.is_empty() && calls > 0 { format!("{calls} tool calls") } else { text };
        for line in folded(&text).lines() {
            out.line(format!("    {}", printable(line)))?;
        }
    }
    Ok(())
}

/// What is shown of one message at most, in characters.
const MOST: usize = 4_000;

fn folded(text: &str) -> String {
    match text.char_indices().nth(MOST) {
        Some((at, _)) => {
            let (head, rest) = text.split_at(at);
            format!(
                "{head}\n… {} characters more; `--json` shows them",
                words::count(i64::try_from(rest.chars().count()).unwrap_or(i64::MAX))
            )
        }
        None => text.to_owned(),
    }
}
