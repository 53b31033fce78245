//! The one writer: commands come over a channel and are committed in groups, because a commit costs the same whatever is
//! in it. Answers are given after the commit.
//!
//! Within a group submissions are merged into one set of statements, and so are completions; everything else runs by
//! itself, each behind a savepoint, so that one command that fails harms no other. What a failure rolls back as a whole
//! (SQLite does that for a full disk or an interrupted statement) is tried again command by command.

use super::conn::Conn;
use super::place::Place;
use super::tx::{Cache, Tx};
use super::verbs::{self, Output, Request};
use crate::store::{Completion, Error, NewJob, Result};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// A request and whom to tell.
pub(super) struct Command {
    pub request: Request,
    pub reply: oneshot::Sender<Result<Output>>,
}

/// How long the lock is left free between two groups: a little longer than others look for it (`Conn::begin`).
const COURTESY: Duration = Duration::from_millis(3);
/// A process that has committed within this is there.
const COMPANY_KEEPS: Duration = Duration::from_secs(1);
/// How many rows one group may carry beyond its first command.
const GROUP_ROWS: usize = 4_000;

pub(super) struct Writer {
    conn: Conn,
    place: Place,
    cache: Cache,
    commands: mpsc::Receiver<Command>,
    changes: watch::Sender<u64>,
    group: usize,
    poll: Duration,
    /// Moves when another process has committed.
    data_version: i64,
    /// When that was last seen.
    company: Option<Instant>,
}

/// What runs behind one savepoint: the positions of its commands in the group.
enum Unit {
    Submit(Vec<usize>),
    Complete(Vec<usize>),
    One(usize),
}

impl Unit {
    fn members(&self) -> &[usize] {
        match self {
            Self::Submit(members) | Self::Complete(members) => members,
            Self::One(member) => std::slice::from_ref(member),
        }
    }
}

/// Why a transaction as a whole came to nothing.
enum Aborted {
    /// Nothing could be begun or committed.
    All(Error),
    /// One unit's failure took the others with it.
    ByUnit(Error),
}

impl Writer {
    pub fn new(
        conn: Conn,
        place: Place,
        commands: mpsc::Receiver<Command>,
        changes: watch::Sender<u64>,
        group: usize,
        poll: Duration,
    ) -> Self {
        Self { conn, place, cache: Cache::default(), commands, changes, group, poll, data_version: 0, company: None }
    }

    /// Runs until every handle is gone or the store is closed, and what was queued is committed.
    pub async fn run(mut self) {
        let mut tick = tokio::time::interval(self.poll);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _ = tick.tick() => self.look_around().await,
                command = self.commands.recv() => {
                    let Some(first) = command else { break };
                    let group = self.drain(first);
                    self.commit(group).await;
                    self.let_others().await;
                }
            }
        }
        self.conn.close().await;
    }

    /// Leaves the lock free for a moment, where other processes write and more is queued here: they can take it only while
    /// nobody has it, and whoever begins again at once keeps them out.
    async fn let_others(&self) {
        if !self.commands.is_empty() && self.company.is_some_and(|seen| seen.elapsed() < COMPANY_KEEPS) {
            tokio::time::sleep(COURTESY).await;
        }
    }

    /// `data_version` of a connection moves on the commits of all others, and all others are other processes' writers.
    async fn look_around(&mut self) {
        match self.conn.number(sqlx::query("PRAGMA data_version")).await {
            Ok(version) if version == self.data_version => {}
            Ok(version) => {
                self.data_version = version;
                self.company = Some(Instant::now());
                self.changes.send_modify(|count| *count += 1);
            }
            Err(error) => tracing::debug!(%error, "other processes' commits cannot be seen now"),
        }
    }

    fn drain(&mut self, first: Command) -> Vec<Command> {
        let mut rows = first.request.rows();
        let mut group = vec![first];
        while group.len() < self.group && rows < GROUP_ROWS {
            let Ok(next) = self.commands.try_recv() else { break };
            rows += next.request.rows();
            group.push(next);
        }
        group
    }

    async fn commit(&mut self, group: Vec<Command>) {
        let requests: Vec<&Request> = group.iter().map(|command| &command.request).collect();
        let mut outputs: Vec<Option<Result<Output>>> = requests.iter().map(|_| None).collect();
        let mut moved = false;
        match self.transaction(&plan(&requests), &requests, &mut outputs, &mut moved).await {
            Ok(()) => {}
            Err(Aborted::ByUnit(_)) if group.len() > 1 => {
                for member in 0..group.len() {
                    let done = self.transaction(&[Unit::One(member)], &requests, &mut outputs, &mut moved).await;
                    if let Err(Aborted::All(error) | Aborted::ByUnit(error)) = done
                        && let Some(output) = outputs.get_mut(member)
                    {
                        *output = Some(Err(error));
                    }
                }
            }
            Err(Aborted::All(error) | Aborted::ByUnit(error)) => {
                for output in &mut outputs {
                    *output = Some(Err(error.clone()));
                }
            }
        }
        if moved {
            self.changes.send_modify(|count| *count += 1);
        }
        for (command, output) in group.into_iter().zip(outputs) {
            // Whoever asked may have gone; the commit stands.
            let _ = command.reply.send(output.unwrap_or(Err(Error::Closed)));
        }
    }

    async fn transaction(
        &mut self,
        units: &[Unit],
        requests: &[&Request],
        outputs: &mut [Option<Result<Output>>],
        moved: &mut bool,
    ) -> std::result::Result<(), Aborted> {
        self.place.check().map_err(Aborted::All)?;
        self.conn.begin().await.map_err(Aborted::All)?;
        match self.units(units, requests, outputs).await {
            Ok(any) => {
                if let Err(error) = self.conn.run(sqlx::query("COMMIT")).await {
                    self.abandon().await;
                    return Err(Aborted::All(error));
                }
                // Once more before anything is acknowledged: what went into a file without a name is lost.
                if let Err(gone) = self.place.check() {
                    self.cache.forget();
                    return Err(Aborted::All(gone));
                }
                *moved |= any;
                Ok(())
            }
            Err(error) => {
                self.abandon().await;
                Err(Aborted::ByUnit(error))
            }
        }
    }

    /// SQLite may have rolled back by itself, so a refusal to do it again means nothing.
    async fn abandon(&mut self) {
        self.cache.forget();
        if let Err(error) = self.conn.run(sqlx::query("ROLLBACK")).await {
            tracing::debug!(%error, "there was no transaction to roll back");
        }
    }

    /// Every unit in turn; whether anything moved. An error: the transaction is lost.
    async fn units(
        &mut self,
        units: &[Unit],
        requests: &[&Request],
        outputs: &mut [Option<Result<Output>>],
    ) -> Result<bool> {
        if let [unit] = units {
            // A unit by itself needs no savepoint: the transaction is one.
            let mut tx = Tx { conn: &mut self.conn, cache: &mut self.cache, moved: false };
            carry_out(&mut tx, unit, requests, outputs).await?;
            return Ok(tx.moved);
        }
        let mut moved = false;
        for unit in units {
            let Err(error) = self.guarded(unit, requests, outputs, &mut moved).await? else { continue };
            for member in unit.members() {
                // Merged commands, one of which fails, run again each by itself.
                let error = match unit.members() {
                    [_] => error.clone(),
                    _ => match self.guarded(&Unit::One(*member), requests, outputs, &mut moved).await? {
                        Ok(()) => continue,
                        Err(error) => error,
                    },
                };
                if let Some(output) = outputs.get_mut(*member) {
                    *output = Some(Err(error));
                }
            }
        }
        Ok(moved)
    }

    /// One unit behind its savepoint. The outer error: the savepoint is gone, because SQLite rolled everything back, and
    /// nothing more may run in this transaction (a further savepoint would begin one of its own).
    async fn guarded(
        &mut self,
        unit: &Unit,
        requests: &[&Request],
        outputs: &mut [Option<Result<Output>>],
        moved: &mut bool,
    ) -> Result<Result<()>> {
        self.conn.run(sqlx::query("SAVEPOINT unit")).await?;
        let mut tx = Tx { conn: &mut self.conn, cache: &mut self.cache, moved: false };
        let done = carry_out(&mut tx, unit, requests, outputs).await;
        if done.is_ok() {
            *moved |= tx.moved;
        } else {
            self.cache.forget();
            if self.conn.run(sqlx::query("ROLLBACK TO unit")).await.is_err() {
                return done.map(Ok);
            }
        }
        self.conn.run(sqlx::query("RELEASE unit")).await?;
        Ok(done)
    }
}

/// Submissions together, completions together, the rest in the order of arrival. Commands of one group were all sent
/// before any of them was answered, so nobody can tell the order.
fn plan(requests: &[&Request]) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut submits = Vec::new();
    let mut completes = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        match request {
            Request::Submit(_) => submits.push(index),
            Request::Complete(_) => completes.push(index),
            _ => units.push(Unit::One(index)),
        }
    }
    if !completes.is_empty() {
        units.insert(0, Unit::Complete(completes));
    }
    if !submits.is_empty() {
        units.insert(0, Unit::Submit(submits));
    }
    units
}

async fn carry_out(
    tx: &mut Tx<'_>,
    unit: &Unit,
    requests: &[&Request],
    outputs: &mut [Option<Result<Output>>],
) -> Result<()> {
    let members = unit.members();
    match unit {
        Unit::One(member) => {
            let Some(request) = requests.get(*member) else { return Ok(()) };
            let output = verbs::run(tx, request).await?;
            if let Some(slot) = outputs.get_mut(*member) {
                *slot = Some(Ok(output));
            }
        }
        Unit::Submit(_) => {
            let jobs: Vec<&NewJob> = members.iter().filter_map(|m| requests.get(*m)).flat_map(|r| r.jobs()).collect();
            let mut answers = verbs::submit(tx, &jobs).await?.into_iter();
            for member in members {
                let n = requests.get(*member).map_or(0, |r| r.rows());
                if let Some(slot) = outputs.get_mut(*member) {
                    *slot = Some(Ok(Output::Submitted(answers.by_ref().take(n).collect())));
                }
            }
        }
        Unit::Complete(_) => {
            let ends: Vec<&Completion> =
                members.iter().filter_map(|m| requests.get(*m)).flat_map(|r| r.completions()).collect();
            let mut answers = verbs::complete(tx, &ends).await?.into_iter();
            for member in members {
                let n = requests.get(*member).map_or(0, |r| r.rows());
                if let Some(slot) = outputs.get_mut(*member) {
                    *slot = Some(Ok(Output::Completed(answers.by_ref().take(n).collect())));
                }
            }
        }
    }
    Ok(())
}
