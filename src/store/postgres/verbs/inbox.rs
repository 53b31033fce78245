//! What joins transcripts from outside: messages that somebody posts, and what waits for a turn that goes on.

use super::ends::inbox_row;
use super::steer::ended;
use crate::store::postgres::conn::sql;
use crate::store::postgres::fault::Res;
use crate::store::postgres::rows::{at, int, job_at};
use crate::store::postgres::tx::Tx;
use crate::store::{InboxRow, JobId, JobState, NewMessages, Posted, Result};
use std::collections::HashSet;
use uuid::Uuid;

/// What is posted, and what [`unread`] looks for.
const MESSAGE: &str = "message";

/// The turn is locked first: who ends it meanwhile is waited for, and who ends it later reads what is posted here.
pub(super) async fn post(tx: &mut Tx, new: &NewMessages) -> Res<Posted> {
    let turn = tx.optional(sql!("post_turn").arg(new.job.0)).await?;
    let state = match turn {
        Some(_) => None,
        None => match ended(tx, vec![new.job.0]).await?.remove(&new.job) {
            Some(state) => Some(state),
            None => return Ok(Posted::Unknown),
        },
    };
    // A repeated posting is answered as it was, whatever became of the job since.
    if let Some(posted) = posted_before(tx, new).await? {
        return Ok(posted);
    }
    let turn = match (turn, state) {
        (Some(turn), None) => turn,
        (_, Some(state)) => return Ok(Posted::AlreadyFinal(state)),
        (None, None) => return Ok(Posted::Unknown),
    };
    // Asked to cancel it goes on in no way, so nobody would read them.
    if at::<Option<i64>>(&turn, 2)?.is_some() {
        return Ok(Posted::AlreadyFinal(JobState::Cancelled));
    }
    let (running, seq): (bool, u32) = (at::<i64>(&turn, 0)? == 2, int(&turn, 1)?);
    // A turn that goes on from a cut reads its continuation alone: messages wait for the whole answer. And what is posted
    // later is read no earlier than what waits already.
    let behind: bool = at(&tx.one(sql!("post_behind").arg(new.job.0).arg(i64::from(seq))).await?, 0)?;
    let seq = if running || behind { seq.saturating_add(1) } else { seq };
    if new.last_turn.is_some_and(|last| seq > last) {
        return Ok(Posted::NoTurnLeft);
    }
    for body in &new.messages {
        let row = InboxRow { seq, kind: MESSAGE.to_owned(), body: body.clone(), at_ms: new.now_ms };
        inbox_row(tx, new.job, &row, new.key.as_deref()).await?;
    }
    if !new.messages.is_empty() {
        tx.run(sql!("turn_told").arg(new.job.0)).await?;
    }
    Ok(Posted::Accepted { seq })
}

/// What stands under the key already; `None`: nothing does.
async fn posted_before(tx: &mut Tx, new: &NewMessages) -> Res<Option<Posted>> {
    let Some(key) = &new.key else { return Ok(None) };
    let rows = tx.all(sql!("inbox_posted").arg(new.job.0).arg(key.as_str())).await?;
    let Some(first) = rows.first() else { return Ok(None) };
    let seq = int(first, 0)?;
    let bodies: Vec<String> = rows.iter().map(|row| at(row, 1)).collect::<Result<_>>()?;
    Ok(Some(if bodies == new.messages { Posted::Duplicate { seq } } else { Posted::Conflict }))
}

/// Which of these jobs have a message that the turn named has not read. One statement; none where nothing is asked.
pub(super) async fn unread(tx: &mut Tx, turns: &[(JobId, u32)]) -> Res<HashSet<JobId>> {
    if turns.is_empty() {
        return Ok(HashSet::new());
    }
    let (jobs, places) = columns(turns);
    let rows = tx.all(sql!("inbox_waiting").arg(jobs).arg(places)).await?;
    Ok(rows.iter().map(|row| job_at(row, 0)).collect::<Result<_>>()?)
}

/// Moves messages that wait at a turn behind it. One statement; none where nothing is asked.
pub(super) async fn defer(tx: &mut Tx, turns: &[(JobId, u32)]) -> Res<()> {
    if !turns.is_empty() {
        let (jobs, places) = columns(turns);
        tx.run(sql!("inbox_defer").arg(jobs).arg(places)).await?;
    }
    Ok(())
}

fn columns(turns: &[(JobId, u32)]) -> (Vec<Uuid>, Vec<i64>) {
    turns.iter().map(|(job, seq)| (job.0, i64::from(*seq))).unzip()
}
