//! Schedules, for people and as documents.

use super::super::out::Out;
use super::super::table::{Align, Table};
use super::super::trouble::Trouble;
use super::super::words::{next, wrapped};
use crate::api::{shapes, words};
use crate::duration;
use crate::scheduler::calendar::Calendar;
use crate::store::{CatchUp, Overlap, RunRow, ScheduleRow};

/// Instants of its future that are shown.
const UPCOMING: usize = 3;

/// A schedule as it goes out.
#[must_use]
pub fn shape(row: ScheduleRow, now_ms: i64) -> shapes::Schedule {
    let calendar = Calendar::parse(&row.cron, &row.zone).ok();
    let in_words = calendar.as_ref().map(Calendar::in_words);
    let paused = row.paused.is_some();
    let upcoming = calendar.filter(|_| !paused).map(|calendar| upcoming(&calendar, now_ms)).unwrap_or_default();
    shapes::Schedule::of(row, in_words, upcoming)
}

/// The next instants of a calendar.
#[must_use]
pub fn upcoming(calendar: &Calendar, now_ms: i64) -> Vec<i64> {
    std::iter::successors(calendar.next_after(now_ms), |at_ms| calendar.next_after(*at_ms)).take(UPCOMING).collect()
}

pub fn list(rows: Vec<ScheduleRow>, now_ms: i64, out: &mut Out) -> Result<(), Trouble> {
    if out.json {
        let items = rows.into_iter().map(|row| shape(row, now_ms)).collect();
        return out.document(&shapes::List::<shapes::Schedule> { items, next_cursor: None });
    }
    let Some(first) = rows.first().map(|row| row.name.clone()) else {
        out.line("There is no schedule yet.")?;
        return next("schedules add --help", "how to add one", out);
    };
    let mut table = Table::new(&[
        ("STATE", Align::Left),
        ("NAME", Align::Flexible),
        ("NEXT", Align::Left),
        ("LAST", Align::Left),
        ("WHEN", Align::Flexible),
    ]);
    for row in rows {
        let last = row.runs.first().map_or_else(|| "—".to_owned(), brief);
        let shaped = shape(row, now_ms);
        table.row(vec![
            if shaped.paused.is_some() { "paused" } else { "on" }.to_owned(),
            shaped.name,
            shaped.next_ms.map_or_else(|| "—".to_owned(), |at_ms| words::instant(at_ms, now_ms)),
            last,
            shaped.in_words.unwrap_or(shaped.cron),
        ]);
    }
    for line in table.lines(out.width(), out.colours()) {
        out.line(line)?;
    }
    next(&format!("schedules {first}"), "its next instants and latest runs", out)
}

/// How a run ended, in a word.
fn brief(run: &RunRow) -> String {
    run.job_state.clone().unwrap_or_else(|| run.outcome.replace('_', " "))
}

pub fn one(row: ScheduleRow, now_ms: i64, out: &mut Out) -> Result<(), Trouble> {
    if out.json {
        return out.document(&shape(row, now_ms));
    }
    head(&row, now_ms, out)?;
    if row.runs.is_empty() {
        return out.line("It has not fired yet.");
    }
    let mut table = Table::new(&[
        ("WHAT", Align::Left),
        ("AT", Align::Left),
        ("LATE", Align::Right),
        ("JOB", Align::Left),
        ("WHY", Align::Flexible),
    ]);
    for run in &row.runs {
        table.row(vec![
            brief(run),
            words::instant(run.nominal_ms, now_ms),
            duration::format(run.fired_ms.saturating_sub(run.nominal_ms).max(0)),
            run.job.map_or_else(|| "—".to_owned(), words::short_id),
            run.error.clone().unwrap_or_default(),
        ]);
    }
    out.line("")?;
    for line in table.lines(out.width(), out.colours()) {
        out.line(line)?;
    }
    next(&format!("jobs --schedule {}", row.id), "what it submitted", out)
}

/// Name, words and the next instants.
pub fn head(row: &ScheduleRow, now_ms: i64, out: &mut Out) -> Result<(), Trouble> {
    let shaped = shape(row.clone(), now_ms);
    let mut fields =
        vec![("when", shaped.in_words.unwrap_or_else(|| "this release cannot read its pattern".to_owned()))];
    fields.push(("cron", format!("{} in {}", row.cron, row.zone)));
    for (at, at_ms) in shaped.upcoming_ms.iter().enumerate() {
        let label = if at == 0 { "next" } else { "" };
        fields.push((label, words::instant_and_distance(*at_ms, now_ms)));
    }
    if let Some(pause) = &row.paused {
        let why = pause.reason.as_deref().map_or_else(String::new, |reason| format!(": {reason}"));
        fields.push(("paused", format!("since {} by {}{why}", words::instant(pause.since_ms, now_ms), pause.by)));
    }
    let missed = match row.catch_up {
        CatchUp::None => "instants that nobody could fire at are left out",
        CatchUp::Last => "the last of the instants that nobody could fire at is caught up with",
        CatchUp::All => "instants that nobody could fire at are all caught up with",
    };
    let overlap = match row.overlap {
        Overlap::Skip => "an instant is skipped while an earlier job of it lives",
        Overlap::Queue => "each instant submits a job, whether or not an earlier one lives",
    };
    fields.extend([("missed", missed.to_owned()), ("overlap", overlap.to_owned())]);
    out.line(format!("Schedule {} ({})", row.name, row.id))?;
    for (label, value) in fields {
        for (at, line) in wrapped(&value, out.width().saturating_sub(12)).iter().enumerate() {
            out.line(format!("  {:<10}{line}", if at == 0 { label } else { "" }))?;
        }
    }
    Ok(())
}
