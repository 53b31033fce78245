//! How processes learn of each other's commits: hints, given after the commit, so that they hold up nothing, and at most
//! some dozens a second, however much is committed. Whoever waits for one asks again within a second anyway.

use super::conn::sql;
use super::fault::{Fault, Res};
use super::open::Notify;
use super::rows::at;
use super::tx::Db;
use sqlx::postgres::{PgListener, PgPoolOptions};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Between two hints of one process.
const GAP: Duration = Duration::from_millis(20);
/// Between two questions where nothing can be heard.
const POLL: Duration = Duration::from_millis(80);
/// Before a lost listener is tried again.
const AGAIN: Duration = Duration::from_millis(500);

/// This process's commits, and what it heard of others'.
#[derive(Clone, Debug)]
pub(super) struct Changes {
    count: watch::Sender<u64>,
    to_tell: Arc<tokio::sync::Notify>,
    /// Who this process is to the others.
    own: Arc<str>,
}

impl Changes {
    pub fn new() -> Self {
        Self { count: watch::Sender::new(0), to_tell: Arc::default(), own: Uuid::new_v4().simple().to_string().into() }
    }

    pub fn watch(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    /// Something was committed here that others may wait for.
    pub fn moved(&self) {
        self.heard();
        self.to_tell.notify_one();
    }

    fn heard(&self) {
        self.count.send_modify(|count| *count += 1);
    }

    /// Tells and hears until `stop`.
    pub fn run(&self, db: &Db, stop: &CancellationToken) {
        let (changes, told, token) = (self.clone(), db.clone(), stop.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = token.cancelled() => {}
                () = changes.tell(&told) => {}
            }
        });
        let (changes, heard, token) = (self.clone(), db.clone(), stop.clone());
        tokio::spawn(async move {
            match heard.pool.options().notify {
                Notify::Listen => tokio::select! {
                    () = token.cancelled() => {}
                    () = changes.listen(&heard) => {}
                },
                Notify::Poll => tokio::select! {
                    () = token.cancelled() => {}
                    () = changes.poll(&heard) => {}
                },
            }
        });
    }

    async fn tell(&self, db: &Db) {
        loop {
            self.to_tell.notified().await;
            if let Err(fault) = self.tell_once(db).await {
                tracing::debug!(?fault, "other processes could not be told of a commit");
            }
            tokio::time::sleep(GAP).await;
        }
    }

    async fn tell_once(&self, db: &Db) -> Res<()> {
        let options = db.pool.options();
        match options.notify {
            Notify::Listen => {
                let mut tx = db.read().await?;
                let told = tx.optional(sql!("notify").arg(options.channel().as_str()).arg(&*self.own)).await;
                tx.end(told).await?;
                Ok(())
            }
            Notify::Poll => {
                let mut tx = db.write().await?;
                match tx.run(sql!("changes_bump")).await {
                    Ok(_) => tx.commit().await,
                    Err(fault) => {
                        tx.roll_back().await;
                        Err(fault)
                    }
                }
            }
        }
    }

    async fn listen(&self, db: &Db) {
        // One connection, which the listener makes anew when it is lost.
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .min_connections(0)
            .max_lifetime(None)
            .idle_timeout(None)
            .connect_lazy_with(db.pool.connect_options().clone());
        loop {
            if let Err(error) = self.listen_once(&pool, &db.pool.options().channel()).await {
                let fault = Fault::Sql(error);
                tracing::debug!(?fault, "the listener was lost");
            }
            // What was told meanwhile was not heard.
            self.heard();
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn listen_once(&self, pool: &sqlx::PgPool, channel: &str) -> Result<(), sqlx::Error> {
        let mut listener = PgListener::connect_with(pool).await?;
        listener.eager_reconnect(false);
        listener.listen(channel).await?;
        self.heard();
        while let Some(notification) = listener.try_recv().await? {
            if notification.payload() != &*self.own {
                self.heard();
            }
        }
        Ok(())
    }

    async fn poll(&self, db: &Db) {
        let mut seen = None;
        loop {
            match poll_once(db).await {
                Ok(count) if seen == Some(count) => {}
                Ok(count) => {
                    seen = Some(count);
                    self.heard();
                }
                Err(fault) => tracing::debug!(?fault, "other processes' commits cannot be seen now"),
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

async fn poll_once(db: &Db) -> Res<i64> {
    let mut tx = db.read().await?;
    let count = tx.number(sql!("changes")).await;
    tx.end(count).await
}

/// The database's clock: a lower bound of what it shows when the answer is here, taken from the quickest of some answers,
/// so that an instant that has come by it has come at the database too. With it the half of that round trip.
pub(super) async fn clock_offset_ms(db: &Db, read_ms: impl Fn() -> i64) -> Res<(i64, i64)> {
    let mut best: Option<(Duration, i64)> = None;
    for _ in 0..5 {
        let mut tx = db.read().await?;
        let asked = std::time::Instant::now();
        let shown = tx.one(sql!("clock")).await;
        let (took, here_ms) = (asked.elapsed(), read_ms());
        let shown = match shown {
            Ok(row) => Ok(at::<i64>(&row, 0)?),
            Err(fault) => Err(fault),
        };
        let shown_ms = tx.end(shown).await?;
        if best.is_none_or(|(quickest, _)| took < quickest) {
            best = Some((took, shown_ms - here_ms));
        }
    }
    let (took, offset_ms) = best.unwrap_or_default();
    Ok((offset_ms, i64::try_from(took.as_millis()).unwrap_or(i64::MAX) / 2))
}
