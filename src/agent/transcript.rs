//! A job's transcript: its input, then turn by turn what was put before it and what it said, the answers that it took
//! over from the job it retries included. Nobody else reads the order out of a [`History`].
//!
//! An answer may come in pieces, each cut one followed by its continuation. A message that comes in while an answer is
//! unfinished is read once that answer is whole: put between two pieces it would be answered in the middle of it, and
//! the pieces would no longer make one text.

use super::response::Response;
use crate::provider::Message;
use crate::store::{History, InboxRow};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;

/// The inbox row that asks to go on from a cut.
pub(super) const CONTINUATION: &str = "continuation";
/// The inbox row that is another job's answer: `{"cut":…,"response":…}`.
pub(super) const ANSWER: &str = "answer";

/// One answer, or one piece of one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece<'a> {
    /// The turn that said it.
    pub seq: u32,
    /// `output_limit` or `stalled`; `None`: it is complete.
    pub cut: Option<Cow<'a, str>>,
    /// The response document.
    pub response: &'a str,
    /// It was cut, and the turn after it was asked to go on.
    pub goes_on: bool,
}

/// What an inbox row of the kind [`ANSWER`] holds.
#[derive(Deserialize)]
struct Carried<'a> {
    #[serde(borrow)]
    cut: Option<Cow<'a, str>>,
    #[serde(borrow)]
    response: &'a RawValue,
}

impl Piece<'_> {
    /// Its text. A response that cannot be read says nothing, and hides none of its neighbours.
    pub(super) fn text(&self) -> String {
        Response::read(self.response).map(|response| response.text).unwrap_or_default()
    }
}

/// Every answer in order: those taken over, then the job's own.
pub(super) fn pieces(history: &History) -> Vec<Piece<'_>> {
    let asked: HashSet<u32> = history.inbox.iter().filter(|row| row.kind == CONTINUATION).map(|row| row.seq).collect();
    let piece = |seq: u32, cut: Option<Cow<'_, str>>| cut.is_some() && asked.contains(&seq.saturating_add(1));
    let carried = history.inbox.iter().filter(|row| row.kind == ANSWER).filter_map(|row| {
        // One that cannot be read is left out like any other row that cannot.
        let Carried { cut, response } = serde_json::from_str(&row.body).ok()?;
        Some(Piece { seq: row.seq, goes_on: piece(row.seq, cut.clone()), cut, response: response.get() })
    });
    let own = history.responses.iter().map(|(seq, cut, response)| {
        let cut = cut.as_deref().map(Cow::Borrowed);
        Piece { seq: *seq, goes_on: piece(*seq, cut.clone()), cut, response }
    });
    carried.chain(own).collect()
}

/// What joined from outside or was put in by us, answers left out, in order.
fn rows(history: &History) -> impl Iterator<Item = &InboxRow> {
    history.inbox.iter().filter(|row| row.kind != ANSWER)
}

/// What the next turn is sent. An empty answer is left out: several providers refuse one, and it says nothing.
pub(super) fn messages(input: &[Message], history: &History) -> Vec<Message> {
    read(input, history).0
}

/// Whether a message waits for the end of the answer that the next turn goes on with.
pub(super) fn holds_back(history: &History) -> bool {
    read(&[], history).1
}

fn read(input: &[Message], history: &History) -> (Vec<Message>, bool) {
    let mut messages = input.to_vec();
    let mut rows = rows(history).peekable();
    let mut held = Vec::new();
    let mut unfinished = false;
    for piece in pieces(history) {
        while let Some(row) = rows.next_if(|row| row.seq <= piece.seq) {
            put(row, unfinished, &mut messages, &mut held);
        }
        let text = piece.text();
        if !text.is_empty() {
            messages.push(Message { role: "assistant".to_owned(), content: Value::String(text) });
        }
        unfinished = piece.goes_on;
        if !unfinished {
            messages.append(&mut held);
        }
    }
    for row in rows {
        put(row, unfinished, &mut messages, &mut held);
    }
    (messages, !held.is_empty())
}

/// An inbox row is a message as it was put in; one that cannot be read is left out.
fn put(row: &InboxRow, unfinished: bool, messages: &mut Vec<Message>, held: &mut Vec<Message>) {
    let into = if unfinished && row.kind != CONTINUATION { held } else { messages };
    into.extend(serde_json::from_str::<Message>(&row.body));
}

/// The last answer, its pieces joined byte for byte, and whether its end is missing. `None`: nothing has been said.
pub(super) fn latest(history: &History) -> Option<(String, bool)> {
    let pieces = pieces(history);
    let (last, before) = pieces.split_last()?;
    let first = before.iter().rposition(|piece| !piece.goes_on).map_or(0, |whole| whole + 1);
    Some((pieces.iter().skip(first).map(Piece::text).collect(), last.cut.is_some()))
}

/// The text of the last answer as far as it goes: its pieces, joined byte for byte. Empty where the next turn begins
/// another one.
pub(super) fn begun(history: &History) -> String {
    let pieces = pieces(history);
    let first = pieces.iter().rposition(|piece| !piece.goes_on).map_or(0, |whole| whole + 1);
    pieces.iter().skip(first).map(Piece::text).collect()
}

#[cfg(test)]
mod tests;
