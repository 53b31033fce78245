//! `cancel`: ends waiting jobs at once, and asks the workers of running ones to stop.

use super::find;
use super::out::Out;
use super::trouble::{Exit, Trouble};
use crate::api::shapes;
use crate::store::{CancelOutcome, Store};
use clap::Args;
use serde_json::json;

#[derive(Args, Clone, Debug)]
pub struct CancelArgs {
    /// The jobs: whole ids, or as lists show them
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
}

pub async fn run<S: Store>(store: &S, args: &CancelArgs, out: &mut Out) -> Result<Exit, Trouble> {
    let mut ids = Vec::with_capacity(args.ids.len());
    for text in &args.ids {
        ids.push(find::job_id(store, text).await?);
    }
    let outcomes = store.cancel(ids.clone(), store.clock().now_ms()).await?;
    let mut items = Vec::with_capacity(ids.len());
    let mut exit = Exit::Done;
    for (id, outcome) in ids.iter().zip(outcomes) {
        let (word, sentence) = match outcome {
            CancelOutcome::Cancelled => ("cancelled", "cancelled".to_owned()),
            CancelOutcome::Asked => ("asked", "runs; its worker was asked to stop".to_owned()),
            CancelOutcome::AlreadyFinal(state) => {
                ("already_final", format!("had ended before: {}", shapes::state(state, false)))
            }
            CancelOutcome::Unknown => ("unknown", "there is no such job; `reprieve jobs` lists them".to_owned()),
        };
        if matches!(outcome, CancelOutcome::AlreadyFinal(_) | CancelOutcome::Unknown) {
            exit = Exit::Failed;
        }
        if out.json {
            items.push(json!({"id": id, "outcome": word}));
        } else {
            out.line(format!("{id}  {sentence}"))?;
        }
    }
    if out.json {
        out.document(&json!({"items": items, "next_cursor": null}))?;
    }
    out.flush()?;
    Ok(exit)
}
