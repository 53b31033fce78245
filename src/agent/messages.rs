//! Follow-ups: what joins a live job's transcript from outside.

use super::read::{Members, text, tree};
use super::spec::chat;
use super::{Body, Directory, JobSpec, SpecError, limits, next_call, step};
use crate::provider::{self, Message};
use crate::store::{History, InboxRow, JobRow};
use serde_json::Value;

/// Reads the body of a follow-up, `{"messages":[{role, content}, …]}`, one message, or `{"input":"…"}`, into messages
/// as JSON text, in order. The rules and sizes are those of a job's own messages, but that a follow-up is a user's or a
/// system's: what the model said is not put in its mouth.
///
/// # Errors
/// The first thing that is wrong, by its place.
pub fn messages(body: &str) -> Result<Vec<String>, SpecError> {
    if body.len() > limits::JOB_BYTES {
        let problem = format!("the messages have {} bytes; at most {} are taken", body.len(), limits::JOB_BYTES);
        return Err(SpecError::new("/", problem));
    }
    let mut given = Members::of(tree(body)?, "")?;
    let read = if given.has("role") || given.has("content") {
        given.check(&["role", "content"], &["tool_calls", "tool_call_id"])?;
        vec![follow_up(given.into_value(), "")?]
    } else {
        given.check(&["messages", "input"], &[])?;
        match (given.take("input"), given.take("messages")) {
            (Some((value, at)), None) => {
                let input = text(value, &at, limits::JOB_BYTES)?;
                vec![Message { role: "user".to_owned(), content: Value::String(input) }]
            }
            (None, Some((value, at))) => chat::each_message(value, &at, follow_up)?,
            (Some(_), Some(_)) => return Err(SpecError::new("/messages", "stands beside `input`: give one of them")),
            (None, None) => {
                return Err(SpecError::new(
                    "/messages",
                    "is missing: give `messages`, `input`, or `role` and `content`",
                ));
            }
        }
    };
    // A role and the JSON value that was read always serialise.
    Ok(read.iter().map(|message| serde_json::to_string(message).unwrap_or_default()).collect())
}

fn follow_up(value: Value, at: &str) -> Result<Message, SpecError> {
    match value.get("role").and_then(Value::as_str) {
        Some(role @ ("assistant" | "tool")) => {
            let problem = format!("must be `user` or `system`: a follow-up is no `{role}` message");
            Err(SpecError::new(format!("{at}/role"), problem))
        }
        Some("user" | "system") => chat::message(value, at),
        _ => Err(SpecError::new(format!("{at}/role"), "must be one of: user, system")),
    }
}

/// Whether a job can be told anything: a raw job is one request, written by its submitter.
#[must_use]
pub fn takes_messages(spec: &JobSpec) -> bool {
    match spec.body {
        Body::Chat { .. } => true,
        Body::Raw { .. } => false,
    }
}

/// Whether these messages can join the job: it takes messages, its adapter can send them, they do not make its transcript
/// longer than what is sent. The last turn that the job may have: whether it is still to come when the messages are
/// posted, only the store can tell ([`crate::store::NewMessages::last_turn`]).
///
/// The history is one that was read after the job's row.
///
/// # Errors
/// What keeps them from it, by its place.
pub fn check_messages(
    job: &JobRow,
    history: &History,
    messages: &[String],
    directory: &Directory,
) -> Result<u32, SpecError> {
    let spec = JobSpec::parse(&job.spec)?;
    if !takes_messages(&spec) {
        return Err(SpecError::new("/raw", "the job is one raw request: it cannot be told anything"));
    }
    let bytes = messages.iter().map(String::len).fold(step::bytes(history), usize::saturating_add);
    if bytes > limits::TRANSCRIPT_BYTES {
        let most = limits::TRANSCRIPT_BYTES;
        let problem = format!("would make the job's transcript {bytes} bytes long; at most {most} are sent");
        return Err(SpecError::new("/messages", problem));
    }
    let last_turn = last_turn(&spec, job.seq.unwrap_or(1), history);
    let Some(entry) = directory.entries.get(&job.entry) else { return Ok(last_turn) };
    let row = |body: &String| InboxRow { seq: 1, kind: "message".to_owned(), body: body.clone(), at_ms: 0 };
    let told = History { responses: Vec::new(), inbox: messages.iter().map(row).collect() };
    let bare = JobSpec { body: spec.body.without_messages(), ..spec };
    provider::check_call(&entry.adapter, &next_call(&bare, &told))
        .map_err(|error| SpecError::new(error.at, error.problem))?;
    Ok(last_turn)
}

/// The number of the last turn that a job may have. Turns are numbered on from what a retry took over, one to an answer;
/// `seq` is the turn that the job had before the history was read, which is its first one if nothing was answered since.
fn last_turn(spec: &JobSpec, seq: u32, history: &History) -> u32 {
    let had = u32::try_from(history.responses.len()).unwrap_or(u32::MAX);
    match history.responses.last() {
        Some((last, _, _)) => last.saturating_add(spec.max_turns.saturating_sub(had)),
        None => seq.saturating_add(spec.max_turns.saturating_sub(1)),
    }
}

/// A job that has no turn left to read a message.
#[must_use]
pub fn no_turn_left() -> SpecError {
    SpecError::new("/max_turns", "the job has come to the last of its turns: nothing would answer")
}

#[cfg(test)]
mod tests;
