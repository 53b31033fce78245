//! `resets`: who named a clock, what was selected and why, and whether the provider kept its word.

mod accuracy;
pub(super) mod refusal;

use super::filter::{self, Filter, Paging};
use super::out::Out;
use super::table::{Align, Table};
use super::trouble::{Exit, Trouble};
use super::words::{more, next, source_in_brief};
use crate::api::{shapes, words};
use crate::duration;
use crate::store::{ResetRow, Store};
use clap::Args;

#[derive(Args, Clone, Debug, Default)]
pub struct ResetsArgs {
    /// The refusals that this job met, whole; or one of them: JOB/EXECUTION/SEND, as other commands name it
    #[arg(value_name = "JOB[/FENCE/N]", conflicts_with = "accuracy")]
    pub which: Option<String>,
    /// The same, by a flag
    #[arg(long, value_name = "ID", conflicts_with_all = ["which", "accuracy"])]
    pub job: Option<String>,
    /// How well each source keeps its word, the worst first
    #[arg(long)]
    pub accuracy: bool,
    /// Only refusals with a candidate of this name: a header, or a pointer into the body
    #[arg(long, value_name = "NAME", help_heading = "Filters")]
    pub source: Option<String>,
    /// Only refusals with a candidate of this verdict: `selected`, `earlier`, `not_exhausted`, `other_kind`,
    /// `malformed`, `past`, `implausible`
    #[arg(long, help_heading = "Filters")]
    pub verdict: Option<String>,
    /// Only what became of it: `kept`, `refused_again`, `released`, `cancelled`, `not_tested`
    #[arg(long, help_heading = "Filters")]
    pub word: Option<String>,
    #[command(flatten)]
    pub filter: Filter,
    #[command(flatten)]
    pub paging: Paging,
}

pub async fn run<S: Store>(store: &S, args: &ResetsArgs, out: &mut Out) -> Result<Exit, Trouble> {
    let now_ms = store.clock().now_ms();
    let own =
        vec![("source", args.source.as_deref()), ("verdict", args.verdict.as_deref()), ("word", args.word.as_deref())];
    if let Some(which) = args.which.as_ref().or(args.job.as_ref()) {
        return refusal::run(store, which, out).await;
    }
    let query = filter::query(&[own, args.filter.pairs(), args.paging.pairs()].concat(), &[], now_ms)?;
    if args.accuracy {
        for (flag, given) in [("--verdict", &args.verdict), ("--word", &args.word), ("--cursor", &args.paging.cursor)] {
            if given.is_some() {
                return Err(Trouble::usage(format!("--accuracy counts whole sources; leave out {flag}")));
            }
        }
        accuracy::show(store.reset_accuracy(query).await?, out)?;
        return Ok(Exit::Done);
    }
    let page = store.resets(query).await?;
    if out.json {
        out.document(&shapes::List::of(page, shapes::Reset::from))?;
    } else if page.items.is_empty() {
        out.line("No provider's refusal matches.")?;
    } else {
        let table = table(&page.items, now_ms);
        for line in table.lines(out.width(), out.colours()) {
            out.line(line)?;
        }
        more(page.next_cursor.as_deref(), out)?;
        if let Some(row) = page.items.first() {
            next(&format!("resets {}", refusal::name(row.key)), "one refusal whole", out)?;
        }
        next("resets --accuracy", "how well each source keeps its word", out)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

pub(super) fn table(rows: &[ResetRow], now_ms: i64) -> Table {
    let mut table = Table::new(&[
        ("WORD", Align::Left),
        ("REFUSED", Align::Left),
        ("WAIT", Align::Right),
        ("LATE", Align::Right),
        ("SOURCE", Align::Name),
        ("SCOPE, PASSED OVER", Align::Flexible),
    ]);
    for row in rows {
        table.row(cells(row, now_ms));
    }
    table
}

fn cells(row: &ResetRow, now_ms: i64) -> Vec<String> {
    let none = || "—".to_owned();
    let evidence = &row.evidence;
    let source = match (&evidence.source_name, &evidence.raw) {
        (Some(name), Some(raw)) => format!("{}: {raw}", source_in_brief(name)),
        (Some(name), None) => source_in_brief(name).to_owned(),
        (None, _) => "none named".to_owned(),
    };
    let over = passed_over(row);
    let scope = words::scope(&row.lane.scope);
    vec![
        row.word.clone(),
        words::instant(evidence.received_ms, now_ms),
        evidence.resume_at_ms.map_or_else(none, |at| duration::format(at.saturating_sub(evidence.received_ms))),
        row.lateness_ms.map_or_else(none, duration::format),
        source,
        if over.is_empty() { scope } else { format!("{scope}; {over}") },
    ]
}

/// The candidates that were not selected, counted by verdict.
fn passed_over(row: &ResetRow) -> String {
    let mut counts: Vec<(String, u32)> = Vec::new();
    for candidate in &row.evidence.candidates {
        let verdict = super::failures::word(&candidate.verdict);
        if verdict == "selected" {
            continue;
        }
        match counts.iter_mut().find(|(known, _)| *known == verdict) {
            Some((_, count)) => *count += 1,
            None => counts.push((verdict, 1)),
        }
    }
    counts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect::<Vec<_>>().join(", ")
}
