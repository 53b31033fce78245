//! `--dry-run`: what an act would do, in words and figures.

use super::out::Out;
use super::table::{Align, Table, printable};
use super::trouble::{Exit, Trouble};
use super::words::wrapped;
use crate::api::acts::{Act, Preview};
use crate::api::words;

/// Shows it; nothing is done.
pub fn show(preview: &Preview, act: &Act, out: &mut Out) -> Result<Exit, Trouble> {
    if out.json {
        out.document(preview)?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    let matched = if preview.more { "more than 10,000".to_owned() } else { words::count(preview.count) };
    let of = if preview.more { " of the first 10,000" } else { "" };
    told(&format!("{}: {}", act.verb(), preview.filter), out)?;
    let states: Vec<String> = preview.states.iter().map(|(state, n)| format!("{} {state}", words::count(*n))).collect();
    let states = if states.is_empty() { String::new() } else { format!(": {}", states.join(", ")) };
    out.line(format!("{matched} match{of}{states}"))?;
    let mut said = vec![format!("{} will be {}", words::count(preview.can), done(act))];
    for refusals in &preview.cannot {
        said.push(format!("{} cannot: {}", words::count(refusals.count), refusals.why));
    }
    for id in &preview.unknown {
        said.push(format!("there is no job {id}"));
    }
    told(&said.join(", "), out)?;
    if !preview.samples.is_empty() {
        let mut table = Table::new(&[("", Align::Left), ("", Align::Left), ("", Align::Left), ("", Align::Flexible)]);
        let ids = words::short_ids(&preview.samples.iter().map(|job| job.id).collect::<Vec<_>>());
        for (job, id) in preview.samples.iter().zip(ids) {
            let labels = job.labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ");
            let model = job.scope.model.clone().unwrap_or_default();
            table.row(vec![format!("  {}", job.state), id, model, labels]);
        }
        for line in table.lines(out.width(), out.colours()).into_iter().skip(1) {
            out.line(line)?;
        }
        let shown = i64::try_from(preview.samples.len()).unwrap_or(i64::MAX);
        if preview.can > shown {
            out.line(format!("  … and {} more", words::count(preview.can - shown)))?;
        }
    }
    told(&format!("What follows: {}.", preview.consequence), out)?;
    out.line("Nothing was done yet; the same without --dry-run does it.")?;
    out.flush()?;
    Ok(Exit::Done)
}

/// A sentence in as many lines as it takes.
fn told(text: &str, out: &mut Out) -> Result<(), Trouble> {
    for line in wrapped(&printable(text), out.width()) {
        out.line(line)?;
    }
    Ok(())
}

fn done(act: &Act) -> String {
    match act {
        Act::Cancel => "cancelled".to_owned(),
        Act::Retry => "retried".to_owned(),
        Act::Delete => "deleted".to_owned(),
        Act::Pause(_) => "paused".to_owned(),
        Act::Resume => "resumed".to_owned(),
        Act::Requeue => "requeued".to_owned(),
        Act::Reprioritise(priority) => format!("given priority {priority}"),
    }
}
