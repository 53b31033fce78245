//! `resets --accuracy`: how well each source of each vendor keeps its word.

use super::super::out::Out;
use super::super::table::{Align, Table};
use super::super::trouble::Trouble;
use super::super::words::{next, source_in_brief};
use crate::api::{shapes, words};
use crate::duration;
use crate::store::AccuracyRow;

pub fn show(rows: Vec<AccuracyRow>, out: &mut Out) -> Result<(), Trouble> {
    if out.json {
        let items: Vec<_> = rows.into_iter().map(shapes::Accuracy::from).collect();
        out.document(&shapes::List { items, next_cursor: None })?;
        return out.flush();
    }
    if rows.is_empty() {
        out.line("No provider's refusal matches.")?;
        return out.flush();
    }
    let mut table = Table::new(&[
        ("SOURCE", Align::Name),
        ("PROVIDER", Align::Name),
        ("SAID", Align::Right),
        ("TAKEN", Align::Right),
        ("KEPT", Align::Right),
        ("AGAIN", Align::Right),
        ("BY", Align::Right),
        ("UNTESTED", Align::Right),
        ("LATE", Align::Right),
    ]);
    let some = |ms: Option<i64>| ms.map_or_else(|| "—".to_owned(), duration::format);
    for row in &rows {
        table.row(vec![
            source_in_brief(&row.source_name).to_owned(),
            row.provider.clone(),
            words::count(row.offered),
            words::count(row.selected),
            words::count(row.kept),
            words::count(row.refused_again),
            some(row.again_p50_ms),
            words::count(row.not_tested + row.released),
            some(row.lateness_max_ms),
        ]);
    }
    for line in table.lines(out.width(), out.colours()) {
        out.line(line)?;
    }
    out.line("SAID: refusals that named it; TAKEN: those that selected it; KEPT: it held.")?;
    out.line("AGAIN: refused again after the instant named, BY so much in the median.")?;
    out.line("LATE: our own lateness at most. --json has more of both.")?;
    match rows.iter().find(|row| row.refused_again > 0) {
        Some(row) => {
            let source = format!("resets --source {} --word refused_again", row.source_name);
            next(&source, "each time it was wrong", out)?;
        }
        None => next("resets", "each refusal", out)?,
    }
    out.flush()
}
