//! Figures: queues as they are, and tokens as they were reported.

use super::standing::known_workers;
use super::{PAGE, of_labels, of_lanes, size};
use crate::store::figures::{ENDS, HOUR_MS, OLDEST, Queues, TOKENS};
use crate::store::postgres::conn::sql;
use crate::store::postgres::fault::Res;
use crate::store::postgres::rows::{at, pause_opt};
use crate::store::postgres::tx::Tx;
use crate::store::{Query, QueueRow, UsageBy, UsageRow};

/// Of one moment, in a snapshot.
pub(in crate::store::postgres) async fn queues(tx: &mut Tx, now_ms: i64) -> Res<Vec<QueueRow>> {
    let mut queues = Queues::default();
    let stmt = sql!("queues").arg(now_ms.saturating_sub(HOUR_MS)).arg(ENDS).arg(OLDEST);
    for row in tx.all(stmt).await? {
        queues.count(at(&row, 0)?, &at::<String>(&row, 1)?, at(&row, 2)?, at(&row, 3)?);
    }
    for row in tx.all(sql!("queues_paused")).await? {
        queues.named(at(&row, 0)?).paused = pause_opt(&row, 1)?;
    }
    Ok(queues.rows(&known_workers(tx).await?, now_ms))
}

pub(in crate::store::postgres) async fn usage(tx: &mut Tx, query: &Query, by: &UsageBy) -> Res<Vec<UsageRow>> {
    let (by, label) = match by {
        UsageBy::Model => ("model", None),
        UsageBy::Tenant => ("tenant", None),
        UsageBy::Queue => ("queue", None),
        UsageBy::Provider => ("provider", None),
        UsageBy::Account => ("account", None),
        UsageBy::Day => ("day", None),
        UsageBy::Label(key) => ("label", Some(key.as_str())),
    };
    let limit = if query.limit == 0 { PAGE } else { size(query) };
    let stmt = sql!("usage").arg(by).arg(query.since_ms.unwrap_or(i64::MIN)).arg(query.until_ms.unwrap_or(i64::MAX));
    let stmt = of_labels(of_lanes(stmt, query), query).arg(label).arg(i64::from(limit)).arg(TOKENS);
    let mut usage = Vec::new();
    for row in tx.all(stmt).await? {
        usage.push(UsageRow {
            value: at(&row, 0)?,
            jobs: at(&row, 1)?,
            executions: at(&row, 2)?,
            sends: at(&row, 3)?,
            input_tokens: at(&row, 4)?,
            output_tokens: at(&row, 5)?,
            total_tokens: at(&row, 6)?,
            unreported: at(&row, 7)?,
        });
    }
    Ok(usage)
}
