//! What joins transcripts from outside: messages that somebody posts, and what waits for a turn that goes on.

use super::ends::inbox_row;
use crate::store::sqlite::text;
use crate::store::sqlite::tx::{Tx, at, blob, hex, int, json, sql};
use crate::store::{InboxRow, JobId, JobState, NewMessages, Posted, Result};
use std::collections::HashSet;

/// What is posted, and what [`unread`] looks for.
const MESSAGE: &str = "message";

pub(super) async fn post(tx: &mut Tx<'_>, new: &NewMessages) -> Result<Posted> {
    let Some(row) = tx.conn.optional(sqlx::query(sql!("post_job")).bind(blob(new.job.0))).await? else {
        return Ok(Posted::Unknown);
    };
    // A repeated posting is answered as it was, whatever became of the job since.
    if let Some(posted) = posted_before(tx, new).await? {
        return Ok(posted);
    }
    if let Some(state) = at::<Option<&str>>(&row, 0)? {
        return Ok(Posted::AlreadyFinal(text::state_of(state)));
    }
    // Asked to cancel it goes on in no way, so nobody would read them.
    if at::<Option<i64>>(&row, 3)?.is_some() {
        return Ok(Posted::AlreadyFinal(JobState::Cancelled));
    }
    let (running, seq): (bool, u32) = (at::<i64>(&row, 1)? == 2, int(&row, 2)?);
    // A turn that goes on from a cut reads its continuation alone: messages wait for the whole answer. And what is posted
    // later is read no earlier than what waits already.
    let behind: bool = at(&row, 4)?;
    let seq = if running || behind { seq.saturating_add(1) } else { seq };
    if new.last_turn.is_some_and(|last| seq > last) {
        return Ok(Posted::NoTurnLeft);
    }
    for body in &new.messages {
        let row = InboxRow { seq, kind: MESSAGE.to_owned(), body: body.clone(), at_ms: new.now_ms };
        inbox_row(tx, new.job, &row, new.key.clone()).await?;
    }
    if !new.messages.is_empty() {
        tx.conn.run(sqlx::query(sql!("turn_told")).bind(blob(new.job.0))).await?;
    }
    Ok(Posted::Accepted { seq })
}

/// What stands under the key already; `None`: nothing does.
async fn posted_before(tx: &mut Tx<'_>, new: &NewMessages) -> Result<Option<Posted>> {
    let Some(key) = &new.key else { return Ok(None) };
    let rows = tx.conn.all(sqlx::query(sql!("inbox_posted")).bind(blob(new.job.0)).bind(key.clone())).await?;
    let Some(first) = rows.first() else { return Ok(None) };
    let seq = int(first, 0)?;
    let bodies: Vec<&str> = rows.iter().map(|row| at(row, 1)).collect::<Result<_>>()?;
    let same = bodies.iter().eq(new.messages.iter());
    Ok(Some(if same { Posted::Duplicate { seq } } else { Posted::Conflict }))
}

/// Which of these jobs have a message that the turn named has not read. One statement; none where nothing is asked.
pub(super) async fn unread(tx: &mut Tx<'_>, turns: &[(JobId, u32)]) -> Result<HashSet<JobId>> {
    let mut found = HashSet::new();
    if turns.is_empty() {
        return Ok(found);
    }
    for row in tx.conn.all(sqlx::query(sql!("inbox_waiting")).bind(places(turns)?)).await? {
        let index: usize = int(&row, 0)?;
        found.extend(turns.get(index).map(|(job, _)| *job));
    }
    Ok(found)
}

/// Moves messages that wait at a turn behind it. One statement; none where nothing is asked.
pub(super) async fn defer(tx: &mut Tx<'_>, turns: &[(JobId, u32)]) -> Result<()> {
    if !turns.is_empty() {
        tx.conn.run(sqlx::query(sql!("inbox_defer")).bind(places(turns)?)).await?;
    }
    Ok(())
}

fn places(turns: &[(JobId, u32)]) -> Result<String> {
    let list: Vec<(String, u32)> = turns.iter().map(|(job, seq)| (hex(job.0), *seq)).collect();
    json(&list)
}
