//! Any sequence of commands leaves a state that agrees with itself (contract §10.1, 10.2, 10.7).
//!
//! A model follows along that knows only what a caller can know: which turns are in which hand, which jobs have ended, and
//! until when each scope is closed.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use reprieve::store::*;
use std::collections::{BTreeMap, BTreeSet};

const MODELS: [&str; 2] = ["a", "b"];

/// One step; the numbers choose among what there is.
#[derive(Clone, Debug)]
enum Op {
    Submit { model: usize, n: usize, due_in_ms: Option<i64>, deadline_in_ms: Option<i64> },
    Claim { worker: usize, room: u32 },
    Permit(usize),
    SetBack { turn: usize, refused: bool, wait_ms: i64, account: bool },
    Answered { turn: usize, silent: bool },
    Complete { turn: usize, how: How },
    Stale(usize),
    GiveBack(usize),
    Cancel(usize),
    Release(usize),
    Close { model: usize, wait_ms: Option<i64> },
    Steer { job: usize, how: Steer },
    PauseQueue(bool),
    Post { job: usize, key: u8 },
    Heartbeat(usize),
    Replace(usize),
    Pass(i64),
    Expire,
    Rescue,
}

#[derive(Clone, Copy, Debug)]
enum How {
    Succeed,
    Fail,
    Defer { ms: i64, account: bool },
    Requeue { ms: i64, counts: bool },
    NextTurn,
    Cut,
    UnlessTold,
}

fn op() -> impl Strategy<Value = Op> {
    let wait = || prop_oneof![Just(1_i64), 1..3_000_i64, 20_000..40_000_i64];
    let how = prop_oneof![
        3 => Just(How::Succeed),
        1 => Just(How::Fail),
        3 => (wait(), any::<bool>()).prop_map(|(ms, account)| How::Defer { ms, account }),
        2 => (wait(), any::<bool>()).prop_map(|(ms, counts)| How::Requeue { ms, counts }),
        1 => Just(How::NextTurn),
        1 => Just(How::Cut),
        2 => Just(How::UnlessTold),
    ];
    let steer = prop_oneof![
        2 => Just(Steer::Pause(pause())),
        2 => Just(Steer::Resume),
        1 => Just(Steer::Requeue),
        1 => (-100..=100_i16).prop_map(Steer::Reprioritise),
    ];
    let maybe = || proptest::option::weighted(0.2, 1..20_000_i64);
    prop_oneof![
        4 => (0..2_usize, 1..5_usize, maybe(), maybe())
            .prop_map(|(model, n, due_in_ms, deadline_in_ms)| Op::Submit { model, n, due_in_ms, deadline_in_ms }),
        8 => (0..2_usize, 1..6_u32).prop_map(|(worker, room)| Op::Claim { worker, room }),
        5 => any::<usize>().prop_map(Op::Permit),
        4 => (any::<usize>(), any::<bool>(), wait(), any::<bool>())
            .prop_map(|(turn, refused, wait_ms, account)| Op::SetBack { turn, refused, wait_ms, account }),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(turn, silent)| Op::Answered { turn, silent }),
        8 => (any::<usize>(), how).prop_map(|(turn, how)| Op::Complete { turn, how }),
        1 => any::<usize>().prop_map(Op::Stale),
        1 => any::<usize>().prop_map(Op::GiveBack),
        1 => any::<usize>().prop_map(Op::Cancel),
        1 => any::<usize>().prop_map(Op::Release),
        1 => (0..3_usize, proptest::option::weighted(0.8, -500..3_000_i64))
            .prop_map(|(model, wait_ms)| Op::Close { model, wait_ms }),
        4 => (any::<usize>(), steer).prop_map(|(job, how)| Op::Steer { job, how }),
        1 => proptest::bool::weighted(0.3).prop_map(Op::PauseQueue),
        3 => (any::<usize>(), any::<u8>()).prop_map(|(job, key)| Op::Post { job, key }),
        2 => (0..2_usize).prop_map(Op::Heartbeat),
        1 => (0..2_usize).prop_map(Op::Replace),
        6 => prop_oneof![0..1_500_i64, 20_000..35_000_i64].prop_map(Op::Pass),
        1 => Just(Op::Expire),
        1 => Just(Op::Rescue),
    ]
}

struct World<'h, H> {
    h: &'h H,
    now_ms: i64,
    workers: Vec<WorkerId>,
    hand: Vec<(WorkerId, ClaimedTurn, u32)>,
    jobs: Vec<JobId>,
    finals: BTreeMap<JobId, JobRow>,
    holds: BTreeMap<HoldId, HoldRow>,
    /// The turn that the latest message of a job is read by.
    told: BTreeMap<JobId, u32>,
    /// Asked to stop, or ended by hand.
    cancelled: BTreeSet<JobId>,
    /// This step may lift a hold.
    may_lift: bool,
    /// In this step somebody dates a hold by hand.
    by_hand: bool,
}

/// Runs `cases` sequences, each on a fresh store of `open`.
pub fn run<H: Harness>(cases: u32, open: impl AsyncFn() -> H) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let result = TestRunner::new(config).run(&proptest::collection::vec(op(), 1..120), |ops| {
        runtime.block_on(async {
            let h = open().await;
            sequence(&h, ops).await
        })
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

async fn sequence<H: Harness>(h: &H, ops: Vec<Op>) -> std::result::Result<(), TestCaseError> {
    let workers = vec![worker(h, T0).await, worker(h, T0).await];
    let mut world = World {
        h,
        now_ms: T0,
        workers,
        hand: Vec::new(),
        jobs: Vec::new(),
        finals: BTreeMap::new(),
        holds: BTreeMap::new(),
        told: BTreeMap::new(),
        cancelled: BTreeSet::new(),
        may_lift: false,
        by_hand: false,
    };
    for op in ops {
        (world.may_lift, world.by_hand) = (false, false);
        world.step(op).await?;
        world.look().await?;
    }
    world.finish().await
}

impl<H: Harness> World<'_, H> {
    fn pick(&self, n: usize) -> Option<usize> {
        (!self.hand.is_empty()).then(|| n % self.hand.len())
    }

    /// No permit while a hold stands, and of a hold that is due only to one.
    fn permitted(&self, turn: &ClaimedTurn, grant: &Grant) -> std::result::Result<(), TestCaseError> {
        for hold in self.holds.values() {
            if hold.scope == turn.lane.scope || hold.scope == turn.lane.scope.of_account() {
                prop_assert!(hold.until_ms.is_some_and(|until_ms| until_ms <= self.now_ms), "sent into {hold:?}");
                prop_assert!(hold.probe.is_none_or(|probe| probe == turn.job_id), "a second probe of {hold:?}");
                prop_assert!(grant.probe.is_some(), "a send beside the probe of {hold:?}");
            }
        }
        Ok(())
    }

    async fn step(&mut self, op: Op) -> std::result::Result<(), TestCaseError> {
        let (h, now_ms) = (self.h, self.now_ms);
        match op {
            Op::Submit { model, n, due_in_ms, deadline_in_ms } => {
                let mut new = jobs(MODELS[model], n);
                for job in &mut new {
                    job.created_ms = now_ms;
                    job.due_ms = due_in_ms.map(|ms| now_ms + ms);
                    job.deadline_ms = deadline_in_ms.map(|ms| now_ms + ms);
                }
                self.jobs.extend(submit(h, new).await);
            }
            Op::Claim { worker, room } => {
                let worker = self.workers[worker];
                let turns = claim(h, worker, room, now_ms).await;
                let mut probes = BTreeSet::new();
                for turn in turns {
                    self.permitted(&turn, &turn.grant)?;
                    if let Some(probe) = turn.grant.probe {
                        prop_assert!(probes.insert(probe.hold_id), "two probes in one claim");
                    }
                    prop_assert!(!self.finals.contains_key(&turn.job_id));
                    prop_assert!(self.hand.iter().all(|(_, other, _)| other.fence < turn.fence));
                    self.hand.retain(|(_, other, _)| other.job_id != turn.job_id);
                    self.hand.push((worker, turn, 0));
                }
            }
            Op::Permit(n) => {
                let Some(place) = self.pick(n) else { return Ok(()) };
                let turn = self.hand[place].1.clone();
                match permit(h, &turn, now_ms).await {
                    Permit::Granted(grant) => {
                        self.permitted(&turn, &grant)?;
                        self.hand[place].1.grant = grant;
                    }
                    Permit::Closed { until_ms } => {
                        prop_assert!(until_ms.is_none_or(|until_ms| until_ms > now_ms));
                    }
                    Permit::Full | Permit::Cancelled => {}
                    Permit::Void => drop(self.hand.remove(place)),
                }
            }
            Op::SetBack { turn, refused, wait_ms, account } => {
                let Some(place) = self.pick(turn) else { return Ok(()) };
                self.hand[place].2 += 1;
                let (worker, turn, n) = self.hand[place].clone();
                let mut row = setback(worker, &turn, n, now_ms, now_ms + wait_ms);
                match &mut row.refusal {
                    Some(refusal) if refused && account => refusal.scope = refusal.scope.of_account(),
                    _ if refused => {}
                    _ => (row.refusal, row.evidence) = (None, None),
                }
                h.store().set_back(row).await.unwrap();
            }
            Op::Answered { turn, silent } => {
                let Some(place) = self.pick(turn) else { return Ok(()) };
                let turn = &self.hand[place].1;
                let probe = turn.grant.probe.map(|probe| probe.hold_id);
                let answer = Answer { job_id: turn.job_id, fence: turn.fence, probe, silent, now_ms };
                h.store().answered(vec![answer]).await.unwrap();
                self.may_lift = !silent;
            }
            Op::Complete { turn, how } => {
                let Some(place) = self.pick(turn) else { return Ok(()) };
                let (worker, turn, n) = self.hand.remove(place);
                let mut end = match how {
                    How::Succeed => success(worker, &turn, now_ms),
                    How::Fail => Completion {
                        next: Next::Final { state: JobState::Failed, result: None, error: Some(error("x")) },
                        ..requeued(worker, &turn, now_ms, now_ms)
                    },
                    How::Defer { ms, account } => {
                        let mut end = deferred(worker, &turn, now_ms, now_ms + ms);
                        if let (true, Some(refusal)) = (account, &mut end.refusal) {
                            refusal.scope = refusal.scope.of_account();
                        }
                        end
                    }
                    How::Requeue { ms, counts } => Completion {
                        next: Next::Again { due_ms: now_ms + ms, counts },
                        ..requeued(worker, &turn, now_ms, now_ms + ms)
                    },
                    How::NextTurn => Completion {
                        next: Next::Turn { due_ms: None, repairs: 0, inbox: vec![] },
                        ..success(worker, &turn, now_ms)
                    },
                    How::Cut => cut(worker, &turn, now_ms),
                    How::UnlessTold => ended_unless_told(worker, &turn, now_ms),
                };
                end.send = end.send.map(|send| SendRow { n: n + 1, ..send });
                end.evidence = end.evidence.map(|evidence| EvidenceRow { n: n + 1, ..evidence });
                self.may_lift = end.answered;
                let records = h.store().turns(turn.job_id).await.unwrap().len();
                let applied = complete_one(h, end.clone()).await;
                prop_assert_eq!(complete_one(h, end).await, Applied::Void);
                let more = h.store().turns(turn.job_id).await.unwrap().len() - records;
                prop_assert_eq!(more, usize::from(applied == Applied::Done));
                if applied == Applied::Done {
                    self.told_or_not(&turn, how).await?;
                }
            }
            Op::Stale(n) => {
                let Some(place) = self.pick(n) else { return Ok(()) };
                let (worker, turn, _) = &self.hand[place];
                let stale = ClaimedTurn { fence: Fence(turn.fence.0 - 1), ..turn.clone() };
                prop_assert_eq!(complete_one(h, success(*worker, &stale, now_ms)).await, Applied::Void);
                prop_assert_eq!(permit(h, &stale, now_ms).await, Permit::Void);
            }
            Op::GiveBack(n) => {
                let Some(place) = self.pick(n) else { return Ok(()) };
                let (worker, turn, _) = self.hand.remove(place);
                h.store().give_back(worker, vec![(turn.job_id, turn.fence)], now_ms).await.unwrap();
            }
            Op::Cancel(n) => {
                if !self.jobs.is_empty() {
                    let id = self.jobs[n % self.jobs.len()];
                    let outcome = h.store().cancel(vec![id], now_ms).await.unwrap()[0];
                    prop_assert_eq!(
                        matches!(outcome, CancelOutcome::AlreadyFinal(_)),
                        self.finals.contains_key(&id),
                        "{:?}",
                        outcome
                    );
                    self.cancelled.insert(id);
                }
            }
            Op::Release(n) => {
                let ids: Vec<HoldId> = self.holds.keys().copied().collect();
                if !ids.is_empty() {
                    let release = HoldRelease { id: ids[n % ids.len()], by: "ops".into(), reason: None, now_ms };
                    prop_assert!(h.store().release_hold(release).await.unwrap().is_some());
                    self.may_lift = true;
                }
            }
            Op::Close { model, wait_ms } => {
                let scope = MODELS.get(model).map_or_else(|| scope(""), |model| scope(model));
                let until_ms = wait_ms.map(|ms| now_ms + ms);
                let close = HoldClose { scope: scope.clone(), until_ms, by: "ops".into(), reason: None, now_ms };
                let hold = h.store().close_scope(close).await.unwrap();
                prop_assert_eq!((&hold.scope, hold.until_ms, hold.ended_ms), (&scope, until_ms, None));
                self.by_hand = true;
            }
            Op::Steer { job, how } => {
                if !self.jobs.is_empty() {
                    let id = self.jobs[job % self.jobs.len()];
                    let outcomes = steer(h, &[id, id], how, now_ms).await;
                    let is_final = self.finals.contains_key(&id);
                    prop_assert_eq!(matches!(outcomes[0], SteerOutcome::AlreadyFinal(_)), is_final, "{:?}", outcomes);
                    let second = if is_final { outcomes[0] } else { SteerOutcome::Unchanged };
                    prop_assert_eq!(outcomes[1], second);
                }
            }
            Op::PauseQueue(paused) => {
                h.store().pause_queue("default".into(), paused.then(pause)).await.unwrap();
            }
            Op::Post { job, key } => {
                if !self.jobs.is_empty() {
                    let id = self.jobs[job % self.jobs.len()];
                    match post(h, id, Some(&key.to_string()), &["{}"]).await {
                        Posted::Accepted { seq } => {
                            let before = self.told.insert(id, seq);
                            prop_assert!(
                                before.is_none_or(|before| before <= seq),
                                "it overtook what was posted before"
                            );
                        }
                        Posted::Duplicate { seq } => prop_assert!(self.told.get(&id).is_some_and(|told| seq <= *told)),
                        Posted::AlreadyFinal(_) => {
                            prop_assert!(self.finals.contains_key(&id) || self.cancelled.contains(&id));
                        }
                        other @ (Posted::Conflict | Posted::NoTurnLeft | Posted::Unknown) => {
                            prop_assert!(false, "{other:?}")
                        }
                    }
                }
            }
            Op::Heartbeat(n) => {
                h.store().heartbeat(self.workers[n], now_ms).await.unwrap();
            }
            Op::Replace(n) => self.workers[n] = worker(h, now_ms).await,
            Op::Pass(ms) => self.now_ms += ms,
            Op::Expire => {
                h.store().expire(now_ms, 3).await.unwrap();
            }
            Op::Rescue => {
                h.store().rescue(Rescue { limit: 3, ..super::workers::rescue(now_ms) }).await.unwrap();
            }
        }
        Ok(())
    }

    /// A job that was told something goes on, and reads it once its answer is whole.
    async fn told_or_not(&mut self, turn: &ClaimedTurn, how: How) -> std::result::Result<(), TestCaseError> {
        let row = get(self.h, turn.job_id).await;
        let told = self.told.get(&turn.job_id).is_some_and(|seq| *seq > turn.seq);
        let expected = match how {
            How::Succeed | How::Fail | How::Defer { .. } | How::Requeue { .. } | How::NextTurn => return Ok(()),
            How::UnlessTold if !told => JobState::Succeeded,
            How::UnlessTold | How::Cut if self.cancelled.contains(&turn.job_id) => JobState::Cancelled,
            How::UnlessTold | How::Cut => JobState::Queued,
        };
        prop_assert_eq!(row.state, expected);
        if row.state == JobState::Queued {
            prop_assert_eq!(row.seq, Some(turn.seq + 1));
            if told && matches!(how, How::Cut) {
                self.told.insert(turn.job_id, turn.seq + 2);
            }
        }
        Ok(())
    }

    /// What must hold after every step.
    async fn look(&mut self) -> std::result::Result<(), TestCaseError> {
        let open: BTreeMap<HoldId, HoldRow> =
            open_holds(self.h).await.into_iter().map(|hold| (hold.id, hold)).collect();
        for (id, before) in &self.holds {
            match open.get(id) {
                None => prop_assert!(self.may_lift, "lifted by nothing: {before:?}"),
                Some(_) if self.by_hand => {}
                Some(after) => {
                    let stands = match (before.until_ms, after.until_ms) {
                        (Some(before_ms), Some(after_ms)) => after_ms >= before_ms,
                        (_, None) => true,
                        (None, Some(_)) => false,
                    };
                    prop_assert!(stands, "{before:?} shortened to {after:?}");
                }
            }
        }
        self.holds = open;
        let ended = Query { limit: 1_000, ..Query::default() };
        for row in self.h.store().results(ended).await.unwrap().items {
            let before = self.finals.entry(row.id).or_insert_with(|| row.clone());
            prop_assert_eq!(&*before, &row, "a final job changed");
        }
        Ok(())
    }

    async fn finish(mut self) -> std::result::Result<(), TestCaseError> {
        prop_assert_eq!(self.h.contradictions().await, Vec::<String>::new());
        // What people stopped goes on.
        steer(self.h, &self.jobs, Steer::Resume, self.now_ms).await;
        self.h.store().pause_queue("default".into(), None).await.unwrap();
        for hold in std::mem::take(&mut self.holds).into_values() {
            if hold.until_ms.is_none() {
                let release = HoldRelease { id: hold.id, by: "ops".into(), reason: None, now_ms: self.now_ms };
                self.h.store().release_hold(release).await.unwrap();
            } else {
                self.holds.insert(hold.id, hold);
            }
        }
        prop_assert_eq!(self.h.contradictions().await, Vec::<String>::new());
        // Every worker dies; the next one finds a probe for whatever waits behind a hold, a lease and a second later.
        let last = self.holds.values().filter_map(|hold| hold.until_ms).max().unwrap_or(self.now_ms);
        self.now_ms = last.max(self.now_ms) + LEASE_MS + 1_000;
        while self.h.store().rescue(super::workers::rescue(self.now_ms)).await.unwrap() != Rescued::default() {}
        while self.h.store().expire(self.now_ms, 100).await.unwrap() > 0 {}
        let live = worker(self.h, self.now_ms).await;
        self.may_lift = false;
        self.look().await?;
        let waiting = self.h.store().jobs(states(&["waiting"])).await.unwrap().items;
        let due = |job: &JobRow| job.due_ms.is_none_or(|due_ms| due_ms <= self.now_ms);
        let waiting: BTreeSet<ScopeKey> = waiting.into_iter().filter(due).map(|job| job.lane.scope).collect();
        let turns = claim(self.h, live, 64, self.now_ms).await;
        for turn in &turns {
            self.permitted(turn, &turn.grant)?;
        }
        prop_assert_eq!(turns.is_empty(), waiting.is_empty(), "nobody probes for {:?}", waiting);
        let mut counts = BTreeMap::new();
        for id in &self.jobs {
            *counts.entry(get(self.h, *id).await.state as u8).or_insert(0_i64) += 1;
        }
        let count = |state: JobState| counts.get(&(state as u8)).copied().unwrap_or(0);
        let figures = self.h.store().overview(self.now_ms).await.unwrap();
        prop_assert_eq!(figures.ready + figures.deferred, count(JobState::Queued));
        prop_assert_eq!(figures.running, count(JobState::Running));
        prop_assert_eq!(figures.succeeded, count(JobState::Succeeded));
        prop_assert_eq!(figures.failed, count(JobState::Failed));
        prop_assert_eq!(figures.cancelled, count(JobState::Cancelled));
        prop_assert_eq!(self.h.contradictions().await, Vec::<String>::new());
        Ok(())
    }
}

fn states(states: &[&str]) -> Query {
    Query { states: states.iter().map(|state| (*state).to_owned()).collect(), limit: 1_000, ..Query::default() }
}
