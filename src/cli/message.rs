//! `message ID TEXT`: a follow-up to a live job, read before its next turn.

use super::find;
use super::input::prompt;
use super::out::Out;
use super::trouble::{Exit, Trouble};
use super::words::next;
use crate::agent::{Directory, SpecError, check_messages, messages, no_turn_left};
use crate::api::{Kind, Problem, shapes, words};
use crate::store::{NewMessages, Posted, Store};
use clap::Args;
use serde_json::json;

#[derive(Args, Clone, Debug)]
pub struct MessageArgs {
    /// The job: its whole id, or as lists show it
    pub id: String,
    /// What it is told; - reads it from stdin
    pub text: String,
    /// Makes the posting repeatable: the same key tells the job once
    #[arg(long)]
    pub key: Option<String>,
}

pub async fn run<S: Store>(
    store: &S,
    directory: &Directory,
    args: &MessageArgs,
    out: &mut Out,
) -> Result<Exit, Trouble> {
    let text = prompt(&args.text, "TEXT")?;
    let job = find::job_id(store, &args.id).await?;
    let unknown = || Trouble::new(Kind::NotFound, format!("there is no job {job}; `reprieve jobs` lists them"));
    let row = store.job(job).await?.ok_or_else(unknown)?;
    let messages = messages(&json!({"input": text}).to_string()).map_err(in_arguments)?;
    let last_turn = if row.finished_ms.is_none() {
        Some(check_messages(&row, &store.history(job).await?, &messages, directory).map_err(in_arguments)?)
    } else {
        None
    };
    let now_ms = store.clock().now_ms();
    let posted = store.post(NewMessages { job, key: args.key.clone(), messages, last_turn, now_ms }).await?;
    let (seq, before) = match posted {
        Posted::Accepted { seq } => (seq, false),
        Posted::Duplicate { seq } => (seq, true),
        Posted::Conflict => {
            let what = "the key was used for another message; use another key, or send the same message";
            return Err(Problem::new(Kind::Conflict, what).at("--key").into());
        }
        Posted::AlreadyFinal(state) => {
            let state = shapes::state(state, false);
            let id = words::short_id(job);
            let what =
                format!("job {job} has ended ({state}) and reads nothing any more; `reprieve retry {id}` goes on");
            return Err(Trouble::new(Kind::Ended, what));
        }
        Posted::NoTurnLeft => return Err(in_arguments(no_turn_left())),
        Posted::Unknown => return Err(unknown()),
    };
    if out.json {
        out.document(&shapes::Told { seq })?;
    } else if before {
        out.line(format!("had been told before; it is read before turn {seq}"))?;
    } else {
        out.line(format!("told; it is read before turn {seq}"))?;
        next(&format!("job {}", words::short_id(job)), "its transcript", out)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn in_arguments(error: SpecError) -> Trouble {
    let problem = Problem::from(error);
    match problem.at.as_deref() {
        Some("/input") => problem.at("TEXT").into(),
        _ => problem.into(),
    }
}
