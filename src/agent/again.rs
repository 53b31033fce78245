//! A retry: a final job once more, as a new job that takes over what has been said.

use super::step::{self, OUTPUT_LIMIT};
use super::transcript::{ANSWER, CONTINUATION, Piece, pieces};
use super::{Body, Directory, JobSpec, SpecError, accept};
use crate::failure::{ErrorDocument, codes};
use crate::recovery::OnTruncated;
use crate::store::{History, InboxRow, JobRow, JobState, NewJob};
use serde::Serialize;
use serde_json::value::RawValue;

/// The body of an inbox row that is another job's answer.
#[derive(Serialize)]
struct Answered<'a> {
    cut: Option<&'a str>,
    response: &'a RawValue,
}

/// Makes a new job of one that has ended: the same spec byte for byte, for the same provider entry, with what had been
/// said before it ended ([`NewJob::carried`]), so that it goes on from its last good turn; a cut answer is continued. Of
/// a succeeded job the last answer is left out, so that it is asked again. A raw job takes nothing over.
///
/// The new job has no idempotency key (it would name the old one), and the old job's labels, priority, tenant, queue and
/// schedule: it stands in for it, also where a schedule asks whether an earlier job lives. A `deadline` or `not_before`
/// that is a duration counts from now.
///
/// # Errors
/// The job has not ended, or its spec is not acceptable (any more): an absolute deadline that has passed, a provider
/// that is no longer configured, …
pub fn again(job: &JobRow, history: &History, directory: &Directory, now_ms: i64) -> Result<NewJob, SpecError> {
    let succeeded = match job.state {
        JobState::Succeeded => true,
        JobState::Failed | JobState::Cancelled => false,
        JobState::Queued | JobState::Running | JobState::RequiresAction | JobState::Unknown => {
            return Err(SpecError::new("/state", "the job has not ended; only an ended job can be retried"));
        }
    };
    let (mut new, spec) = accept::by_entry(&job.spec, directory, now_ms, Some(&job.entry))?;
    new.idempotency_key = None;
    new.retry_of = Some(job.id);
    new.priority = job.priority;
    new.labels.clone_from(&job.labels);
    new.schedule = job.schedule;
    if matches!(spec.body, Body::Chat { .. }) {
        new.carried = carried(history, succeeded, unasked(job, &spec), now_ms);
        new.first_seq = new.carried.last().map_or(1, |row| row.seq.saturating_add(1));
    }
    Ok(new)
}

/// The transcript so far as inbox rows, in order; of one turn what it was told stands before what it said.
fn carried(history: &History, succeeded: bool, unasked: impl Fn(&str) -> bool, now_ms: i64) -> Vec<InboxRow> {
    let mut kept = pieces(history);
    let mut asked_again = 0..0;
    if succeeded && let Some(last) = kept.pop() {
        let before = kept.iter().rev().take_while(|piece| piece.goes_on).count();
        let first = kept.split_off(kept.len() - before).first().map_or(last.seq, |piece| piece.seq);
        // The prompts between its pieces go with them.
        asked_again = first.saturating_add(1)..last.seq.saturating_add(1);
    }
    let mut rows: Vec<InboxRow> = history
        .inbox
        .iter()
        .filter(|row| row.kind != ANSWER && !(row.kind == CONTINUATION && asked_again.contains(&row.seq)))
        .cloned()
        .collect();
    if let Some(Piece { seq, cut: Some(cut), goes_on: false, .. }) = kept.last()
        && !succeeded
        && unasked(cut)
    {
        rows.push(step::continuation(cut, seq.saturating_add(1), now_ms));
    }
    rows.extend(kept.iter().map(|piece| answer(piece, now_ms)));
    // Stable: rows of one turn keep their order, and answers were put behind them.
    rows.sort_by_key(|row| row.seq);
    rows
}

/// Whether a cut last answer (by what cut it) is one that nobody was asked to go on with any more, and not one that was
/// accepted as it stood: its job had had all of its turns, or was cancelled as the cut was written.
fn unasked(job: &JobRow, spec: &JobSpec) -> impl Fn(&str) -> bool {
    let code = job.error.as_deref().and_then(|error| serde_json::from_str::<ErrorDocument>(error).ok());
    let had_all = code.is_some_and(|error| matches!(error.code.as_str(), codes::TURN_LIMIT | codes::TRANSCRIPT_LIMIT));
    let cancelled = job.state == JobState::Cancelled;
    let accepts = spec.on_truncated() != OnTruncated::Continue;
    move |cut| had_all || cancelled && !(accepts && cut == OUTPUT_LIMIT)
}

fn answer(piece: &Piece<'_>, now_ms: i64) -> InboxRow {
    // A response that is no JSON says nothing here as it did there.
    let response = serde_json::from_str(piece.response).unwrap_or(RawValue::NULL);
    let body = Answered { cut: piece.cut.as_deref(), response };
    // Texts and verbatim JSON always serialise.
    let body = serde_json::to_string(&body).unwrap_or_default();
    InboxRow { seq: piece.seq, kind: ANSWER.to_owned(), body, at_ms: now_ms }
}

/// The turns that a job has left behind the present one (the waiting or the running one): answers that it took over
/// count for nothing.
#[must_use]
pub fn turns_left(spec: &JobSpec, history: &History) -> u32 {
    let had = u32::try_from(history.responses.len()).unwrap_or(u32::MAX).saturating_add(1);
    match spec.body {
        Body::Chat { .. } => spec.max_turns.saturating_sub(had),
        Body::Raw { .. } => 0,
    }
}

#[cfg(test)]
mod tests;
