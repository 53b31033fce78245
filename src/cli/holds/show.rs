//! Holds, for people.

use super::super::out::Out;
use super::super::table::{Align, Table};
use super::super::trouble::Trouble;
use super::super::words::next;
use super::document;
use crate::api::{shapes, words};
use crate::store::{HoldEventRow, HoldRow};

/// A list of holds, each with where it was read; `asked`: some were left out by filters.
pub fn list(holds: Vec<HoldRow>, asked: bool, now_ms: i64, out: &mut Out) -> Result<(), Trouble> {
    if out.json {
        out.document(&document(holds))?;
    } else if holds.is_empty() {
        out.line(if asked { "No hold matches." } else { "No scope is closed. Nothing waits for a provider's clock." })?;
    } else {
        for hold in &holds {
            head(hold, now_ms, out)?;
        }
        if let Some(hold) = holds.iter().find(|hold| hold.refusal.is_some()).or(holds.first()) {
            next(&format!("holds {}", hold.id), "all that befell it", out)?;
        }
    }
    out.flush()
}

/// A hold that was closed by hand this moment, and how it is lifted.
pub fn closed(hold: HoldRow, now_ms: i64, out: &mut Out) -> Result<(), Trouble> {
    if out.json {
        out.document(&document(vec![hold]))?;
        return out.flush();
    }
    head(&hold, now_ms, out)?;
    let turns = match hold.waiting {
        1 => "1 turn waits".to_owned(),
        several => format!("{} turns wait", words::count(several)),
    };
    out.line(format!("Closed; {turns} behind it."))?;
    next(&format!("holds release {}", hold.id), "to lift it", out)?;
    out.flush()
}

/// One hold with its events.
pub fn one(hold: HoldRow, events: Vec<HoldEventRow>, now_ms: i64, out: &mut Out) -> Result<(), Trouble> {
    if out.json {
        out.document(&shapes::Hold::whole(hold, events))?;
        return out.flush();
    }
    head(&hold, now_ms, out)?;
    if !events.is_empty() {
        let mut table = Table::new(&[
            ("AT", Align::Left),
            ("WHAT", Align::Left),
            ("UNTIL", Align::Left),
            ("WHO", Align::Left),
            ("WHY", Align::Flexible),
        ]);
        for event in &events {
            let who = event.job.map(|job| format!("job {}", words::short_id(job))).or_else(|| event.by.clone());
            table.row(vec![
                words::instant(event.at_ms, now_ms),
                event.event.replace('_', " "),
                event.until_ms.map_or_else(|| "—".to_owned(), |until_ms| words::instant(until_ms, now_ms)),
                who.unwrap_or_else(|| "—".to_owned()),
                event.reason.clone().unwrap_or_default(),
            ]);
        }
        out.line("")?;
        for line in table.lines(out.width(), out.colours()) {
            out.line(line)?;
        }
    }
    if let Some(met) = hold.refusal {
        let which = format!("resets {}", super::super::resets::refusal::name(met));
        next(&which, "the refusal it was read from", out)?;
    }
    out.flush()
}

fn head(hold: &HoldRow, now_ms: i64, out: &mut Out) -> Result<(), Trouble> {
    let until = match (hold.ended_ms, hold.until_ms) {
        (Some(ended_ms), _) => {
            let how = hold.end.as_deref().unwrap_or("unknown");
            format!("ended {}: {how}", words::instant_and_distance(ended_ms, now_ms))
        }
        (None, Some(until_ms)) => format!("until {}", words::instant_and_distance(until_ms, now_ms)),
        (None, None) => "until somebody lifts it".to_owned(),
    };
    out.line(format!("{}  {until}", words::scope(&hold.scope)))?;
    let mut table = Table::new(&[("", Align::Left), ("", Align::Flexible)]);
    for (label, value) in fields(hold, now_ms) {
        table.row(vec![format!("  {label}"), value]);
    }
    for line in table.lines(out.width(), out.colours()).into_iter().skip(1) {
        out.line(line)?;
    }
    Ok(())
}

fn fields(hold: &HoldRow, now_ms: i64) -> Vec<(&'static str, String)> {
    let kind = hold.kind.map_or_else(String::new, |kind| format!(" ({})", kind.as_str()));
    let raw = hold.raw.as_deref().map_or_else(String::new, |raw| format!(": {raw}"));
    let times = |count: u32| if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let mut fields = vec![
        ("hold", hold.id.to_string()),
        ("why", format!("{}{kind}", hold.cause)),
        ("read from", format!("{}{raw}", hold.source)),
        ("opened", words::instant_and_distance(hold.opened_ms, now_ms)),
    ];
    if hold.extended > 0 {
        fields.push(("extended", times(hold.extended)));
    }
    if hold.barren > 0 {
        fields.push(("refused", format!("{} at or after the instant promised", times(hold.barren))));
    }
    let turns = if hold.waiting == 1 { "turn" } else { "turns" };
    fields.push(("waiting", format!("{} {turns}", words::count(hold.waiting))));
    if let Some(job) = hold.probe {
        fields.push(("probe", format!("job {}", words::short_id(job))));
    }
    fields
}
