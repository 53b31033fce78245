//! What a job had said that ended with no worker at hand: at its deadline, cancelled while it waited, lost once too often.
//! The store that ends such a job cannot join texts, so no result was written; its pieces are in its history.
//!
//! Every face that shows results asks here first. Rows go in and come out; nothing is written. A text is told for as long
//! as the job's records are kept.

use crate::agent::response::partial_result;
use crate::store::{self, JobId, JobRow, JobState, Store};

/// Gives ended jobs without a result the text that they had committed, as a worker would have written it.
///
/// # Errors
/// When the database does not serve.
pub async fn fill_in<S: Store>(store: &S, rows: &mut [JobRow]) -> store::Result<()> {
    let mute = |row: &JobRow| row.result.is_none() && matches!(row.state, JobState::Failed | JobState::Cancelled);
    let ids: Vec<JobId> = rows.iter().filter(|row| mute(row)).map(|row| row.id).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let histories = store.histories(ids).await?;
    for (row, history) in rows.iter_mut().filter(|row| mute(row)).zip(histories) {
        row.result = partial_result(&history, "");
    }
    Ok(())
}
