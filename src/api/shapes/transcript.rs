//! A job's transcript: what was put in and what was said, in order, each with the turn that it belongs to.
//!
//! It is read from the spec, the records and the inbox as they are stored, so that what a newer release accepted is shown
//! too, and digit for digit.

use super::document;
use crate::agent::response::Response;
use crate::store::{History, InboxRow};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashSet;

/// One message of a transcript.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The turn that said it, or the first that read it.
    pub seq: u32,
    /// `input`, `answer`, `message` (a follow-up), `continuation` (put in by us after a cut), `tool_result`.
    pub kind: String,
    /// Taken over from the job that this one retries.
    pub carried: bool,
    /// A follow-up that no answer comes after: it waits for its turn, or the job ended before one could read it.
    pub unanswered: bool,
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// A text, or the parts of a message; of a raw job the body sent, and the response as it was stored.
    pub content: Box<RawValue>,
    /// Of an answer that was cut: `output_limit` or `stalled`. The next one goes on from where it ends.
    pub cut: Option<String>,
    pub finish_reason: Option<String>,
    pub tool_calls: Vec<Value>,
    /// When it was put in; null of inputs and answers.
    pub at_ms: Option<i64>,
}

impl Entry {
    fn new(seq: u32, kind: &str, role: &str, content: Box<RawValue>) -> Self {
        Self {
            seq,
            kind: kind.to_owned(),
            carried: false,
            unanswered: false,
            role: role.to_owned(),
            content,
            cut: None,
            finish_reason: None,
            tool_calls: Vec::new(),
            at_ms: None,
        }
    }

    /// Its content for people: a text as it is, anything else as JSON.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::from_str::<String>(self.content.get()).unwrap_or_else(|_| self.content.get().to_owned())
    }
}

/// What a job was given and said, in the order in which its next turn reads it: each answer behind what was put in before
/// it, and a message that came in while an answer was unfinished behind the end of that answer.
#[must_use]
pub fn transcript(spec: &str, history: &History) -> Vec<Entry> {
    let mut entries = input(spec);
    let continued: HashSet<u32> = of_kind(history, CONTINUATION).map(|row| row.seq).collect();
    let last_carried = of_kind(history, ANSWER).map(|row| row.seq).max();
    let mut rows = history.inbox.iter().filter(|row| row.kind != ANSWER).map(|row| {
        let carried = last_carried.is_some_and(|last| row.seq <= last);
        Entry { carried, ..put_in(row) }
    });
    let carried = of_kind(history, ANSWER).map(|row| Entry { carried: true, ..taken_over(row) });
    let own = history.responses.iter().map(|(seq, cut, response)| answer(*seq, cut.clone(), response));
    let (mut waiting, mut held, mut unfinished) = (rows.next(), Vec::new(), false);
    for said in carried.chain(own) {
        while let Some(row) = waiting.take_if(|row| row.seq <= said.seq) {
            let into = if unfinished && row.kind != CONTINUATION { &mut held } else { &mut entries };
            into.push(row);
            waiting = rows.next();
        }
        unfinished = said.cut.is_some() && continued.contains(&said.seq.saturating_add(1));
        entries.push(said);
        if !unfinished {
            entries.append(&mut held);
        }
    }
    let (now, later): (Vec<Entry>, Vec<Entry>) =
        waiting.into_iter().chain(rows).partition(|row| !unfinished || row.kind == CONTINUATION);
    entries.extend(now);
    entries.extend(held);
    entries.extend(later);
    let answered = entries.iter().rposition(|entry| entry.kind == ANSWER).map_or(0, |last| last + 1);
    for entry in entries.iter_mut().skip(answered) {
        entry.unanswered = entry.kind == MESSAGE;
    }
    entries
}

/// Kinds of inbox rows that stand elsewhere than where they came in.
const CONTINUATION: &str = "continuation";
const ANSWER: &str = "answer";
const MESSAGE: &str = "message";

fn of_kind<'a>(history: &'a History, kind: &'a str) -> impl Iterator<Item = &'a InboxRow> {
    history.inbox.iter().filter(move |row| row.kind == kind)
}

/// A spec, as far as it is part of the transcript.
#[derive(Deserialize)]
struct Spec<'a> {
    #[serde(borrow, default)]
    system: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    messages: Option<Vec<Message<'a>>>,
    #[serde(borrow, default)]
    raw: Option<Raw<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    role: String,
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow)]
    body: &'a RawValue,
}

fn input(spec: &str) -> Vec<Entry> {
    let Ok(spec) = serde_json::from_str::<Spec<'_>>(spec) else { return Vec::new() };
    let entry = |role: &str, content: &RawValue| Entry::new(1, "input", role, content.to_owned());
    let system = spec.system.map(|text| entry("system", text));
    let input = spec.input.map(|text| entry("user", text));
    let messages = spec.messages.unwrap_or_default();
    let raw = spec.raw.map(|raw| entry("user", raw.body));
    let messages = messages.iter().map(|message| entry(&message.role, message.content));
    system.into_iter().chain(input).chain(messages).chain(raw).collect()
}

/// What was taken over of an answer.
#[derive(Deserialize)]
struct TakenOver {
    #[serde(default)]
    cut: Option<String>,
    response: Box<RawValue>,
}

fn taken_over(row: &InboxRow) -> Entry {
    let Ok(TakenOver { cut, response }) = serde_json::from_str(&row.body) else { return put_in(row) };
    Entry { at_ms: Some(row.at_ms), ..answer(row.seq, cut, response.get()) }
}

fn put_in(row: &InboxRow) -> Entry {
    let (role, content) = match serde_json::from_str::<Message<'_>>(&row.body) {
        Ok(message) => (message.role, message.content.to_owned()),
        Err(_) => ("user".to_owned(), document(row.body.clone())),
    };
    Entry { at_ms: Some(row.at_ms), ..Entry::new(row.seq, &row.kind, &role, content) }
}

/// An answer's text; of a raw turn the response as it was stored. One that cannot be read is shown as it is stored.
fn answer(seq: u32, cut: Option<String>, stored: &str) -> Entry {
    #[derive(Deserialize)]
    struct Stored<'a> {
        #[serde(borrow, default)]
        raw: Option<&'a RawValue>,
    }
    let whole = || document(stored.to_owned());
    let Ok(response) = Response::read(stored) else {
        return Entry { cut, ..Entry::new(seq, "answer", "assistant", whole()) };
    };
    let raw = serde_json::from_str::<Stored<'_>>(stored).ok().and_then(|stored| stored.raw).map(ToOwned::to_owned);
    let content = raw.unwrap_or_else(|| serde_json::value::to_raw_value(&response.text).unwrap_or_else(|_| whole()));
    let finish_reason = response.finish_reason;
    Entry { cut, finish_reason, tool_calls: response.tool_calls, ..Entry::new(seq, "answer", "assistant", content) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seq: u32, kind: &str, body: &str) -> InboxRow {
        InboxRow { seq, kind: kind.into(), body: body.into(), at_ms: 7 }
    }

    fn told(entries: &[Entry]) -> Vec<String> {
        entries
            .iter()
            .map(|entry| {
                let carried = if entry.carried { " carried" } else { "" };
                format!("{} {}{carried} {}: {}", entry.seq, entry.kind, entry.role, entry.text())
            })
            .collect()
    }

    #[test]
    fn everything_stands_in_the_order_in_which_a_model_reads_it() {
        let spec = r#"{"model":"m","system":"s","messages":[{"role":"user","content":[{"n":9007199254740993}]}]}"#;
        let history = History {
            responses: vec![
                (2, Some("stalled".into()), r#"{"text":"half"}"#.into()),
                (3, None, r#"{"text":" done","finish_reason":"stop"}"#.into()),
            ],
            inbox: vec![
                row(1, "answer", r#"{"cut":null,"response":{"text":"before"}}"#),
                row(2, "message", r#"{"role":"user","content":"more"}"#),
                row(3, "message", r#"{"role":"user","content":"in the middle of an answer"}"#),
                row(3, "continuation", r#"{"role":"user","content":"go on"}"#),
                row(4, "message", "nonsense"),
            ],
        };
        let entries = transcript(spec, &history);
        insta::assert_snapshot!(told(&entries).join("\n"), @r#"
        1 input system: s
        1 input user: [{"n":9007199254740993}]
        1 answer carried assistant: before
        2 message user: more
        2 answer assistant: half
        3 continuation user: go on
        3 answer assistant:  done
        3 message user: in the middle of an answer
        4 message user: nonsense
        "#);
        assert_eq!((entries[4].cut.as_deref(), entries[6].finish_reason.as_deref()), (Some("stalled"), Some("stop")));
    }

    #[test]
    fn a_raw_job_shows_what_was_sent_and_what_came_back() {
        let spec = r#"{"model":"m","raw":{"path":"/v1/x","body":{"a" : 1}}}"#;
        let stored = r#"{"text":"","raw":{"status":200,"content_type":null,"body":"{}"}}"#;
        let history = History { responses: vec![(1, None, stored.into()), (2, None, "{".into())], inbox: Vec::new() };
        assert_eq!(
            told(&transcript(spec, &history)),
            [
                "1 input user: {\"a\" : 1}",
                "1 answer assistant: {\"status\":200,\"content_type\":null,\"body\":\"{}\"}",
                "2 answer assistant: {",
            ]
        );
        assert!(transcript("no spec", &History::default()).is_empty());
    }
}
