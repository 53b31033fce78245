//! What the model knows, how each command changes it, and what must then be true of the store.

use super::super::workers::rescue;
use super::*;
use proptest::test_runner::TestCaseError;
use std::collections::{BTreeMap, BTreeSet};

type Checked<T = ()> = std::result::Result<T, TestCaseError>;

/// A turn in a worker's hand.
#[derive(Clone)]
struct Held {
    worker: WorkerId,
    turn: ClaimedTurn,
    /// Sends that were replaced.
    n: u32,
    /// It has a permit, so that it may have been sent.
    sending: bool,
}

struct World<'h, H> {
    h: &'h H,
    now_ms: i64,
    workers: Vec<WorkerId>,
    /// When each lease was last renewed.
    renewed: BTreeMap<WorkerId, i64>,
    /// They may not renew any more: rescued from, or retired.
    gone: BTreeSet<WorkerId>,
    hand: Vec<Held>,
    /// Turns that were taken back from their owners.
    taken: Vec<Held>,
    fence: i64,
    jobs: Vec<JobId>,
    /// How many jobs there ever were.
    accepted: i64,
    once: BTreeSet<JobId>,
    deadlines: BTreeMap<JobId, i64>,
    /// Not to be claimed before.
    due: BTreeMap<JobId, i64>,
    paused: BTreeSet<JobId>,
    queue_paused: bool,
    /// Lost executions in a row.
    lost: BTreeMap<JobId, u32>,
    retried: BTreeMap<JobId, JobId>,
    finals: BTreeMap<JobId, JobRow>,
    /// How many ever ended, by state.
    ended: BTreeMap<u8, i64>,
    /// Jobs that must end in this step, and as what.
    ending: BTreeMap<JobId, JobState>,
    /// In this step deadlines end jobs.
    expiring: bool,
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

pub(super) async fn sequence<H: Harness>(h: &H, ops: Vec<Op>) -> Checked {
    let workers = vec![worker(h, T0).await, worker(h, T0).await];
    let mut world = World {
        h,
        now_ms: T0,
        renewed: workers.iter().map(|id| (*id, T0)).collect(),
        workers,
        gone: BTreeSet::new(),
        hand: Vec::new(),
        taken: Vec::new(),
        fence: 0,
        jobs: Vec::new(),
        accepted: 0,
        once: BTreeSet::new(),
        deadlines: BTreeMap::new(),
        due: BTreeMap::new(),
        paused: BTreeSet::new(),
        queue_paused: false,
        lost: BTreeMap::new(),
        retried: BTreeMap::new(),
        finals: BTreeMap::new(),
        ended: BTreeMap::new(),
        ending: BTreeMap::new(),
        expiring: false,
        holds: BTreeMap::new(),
        told: BTreeMap::new(),
        cancelled: BTreeSet::new(),
        may_lift: false,
        by_hand: false,
    };
    for op in ops {
        (world.may_lift, world.by_hand, world.expiring) = (false, false, false);
        world.step(op).await?;
        world.look().await?;
    }
    world.finish().await
}

impl<H: Harness> World<'_, H> {
    fn pick(&self, n: usize) -> Option<usize> {
        (!self.hand.is_empty()).then(|| n % self.hand.len())
    }

    fn any_job(&self, n: usize) -> Option<JobId> {
        (!self.jobs.is_empty()).then(|| self.jobs[n % self.jobs.len()])
    }

    fn held(&self, id: JobId) -> Option<&Held> {
        self.hand.iter().find(|held| held.turn.job_id == id)
    }

    fn is_waiting(&self, id: JobId) -> bool {
        !self.finals.contains_key(&id) && self.held(id).is_none()
    }

    /// Its lease is over, whether or not anybody has noticed.
    fn has_lapsed(&self, worker: WorkerId) -> bool {
        self.gone.contains(&worker) || self.renewed[&worker] + LEASE_MS <= self.now_ms
    }

    /// No permit while a hold stands, and of a hold that is due only to one.
    fn permitted(&self, turn: &ClaimedTurn, grant: &Grant) -> Checked {
        for hold in self.holds.values() {
            if hold.scope == turn.lane.scope || hold.scope == turn.lane.scope.of_account() {
                prop_assert!(hold.until_ms.is_some_and(|until_ms| until_ms <= self.now_ms), "sent into {hold:?}");
                prop_assert!(hold.probe.is_none_or(|probe| probe == turn.job_id), "a second probe of {hold:?}");
                prop_assert!(grant.probe.is_some(), "a send beside the probe of {hold:?}");
            }
        }
        Ok(())
    }

    /// What goes on without a place of its own in time.
    fn goes_back(&mut self, id: JobId, due_ms: Option<i64>) {
        self.due.remove(&id);
        self.due.extend(due_ms.map(|due_ms| (id, due_ms)));
    }

    async fn step(&mut self, op: Op) -> Checked {
        let (h, now_ms) = (self.h, self.now_ms);
        match op {
            Op::Submit { model, n, due_in_ms, deadline_in_ms, once } => {
                let mut new = jobs(MODELS[model], n);
                for job in &mut new {
                    job.created_ms = now_ms;
                    job.due_ms = due_in_ms.map(|ms| now_ms + ms);
                    job.deadline_ms = deadline_in_ms.map(|ms| now_ms + ms);
                    job.once = once;
                    self.accept(job);
                }
                submit(h, new).await;
            }
            Op::Retry(n) => {
                let Some(of) = self.any_job(n).filter(|id| self.finals.contains_key(id)) else { return Ok(()) };
                let new = NewJob { retry_of: Some(of), created_ms: now_ms, ..job(MODELS[0]) };
                let answer = h.store().submit(vec![new.clone()]).await.unwrap()[0];
                if let Some(first) = self.retried.get(&of) {
                    prop_assert_eq!(answer, Submitted::Duplicate(*first));
                } else {
                    prop_assert_eq!(answer, Submitted::Accepted(new.id));
                    self.retried.insert(of, new.id);
                    self.accept(&new);
                }
            }
            Op::Claim { worker, room } => self.claim(self.workers[worker], room).await?,
            Op::Permit(n) => {
                let Some(place) = self.pick(n) else { return Ok(()) };
                let turn = self.hand[place].turn.clone();
                let is_asked = self.cancelled.contains(&turn.job_id);
                let answer = permit(h, &turn, now_ms).await;
                prop_assert_eq!(answer == Permit::Cancelled, is_asked, "whether it was asked to stop: {:?}", answer);
                match answer {
                    Permit::Granted(grant) => {
                        self.permitted(&turn, &grant)?;
                        self.hand[place].turn.grant = grant;
                        self.hand[place].sending = true;
                    }
                    Permit::Closed { until_ms } => {
                        prop_assert!(until_ms.is_none_or(|until_ms| until_ms > now_ms));
                        self.hand[place].sending = false;
                    }
                    Permit::Full => self.hand[place].sending = false,
                    Permit::Cancelled => {}
                    Permit::Void => prop_assert!(false, "a turn in hand is nobody's: {turn:?}"),
                }
            }
            Op::SetBack { turn, refused, wait_ms, account } => {
                let Some(place) = self.pick(turn) else { return Ok(()) };
                self.hand[place].n += 1;
                self.hand[place].sending = false;
                let Held { worker, turn, n, .. } = self.hand[place].clone();
                let mut row = setback(worker, &turn, n, now_ms, now_ms + wait_ms);
                match &mut row.refusal {
                    Some(refusal) if refused && account => refusal.scope = refusal.scope.of_account(),
                    _ if refused => {}
                    _ => (row.refusal, row.evidence) = (None, None),
                }
                let refusal = row.refusal.clone();
                prop_assert_eq!(h.store().set_back(row).await.unwrap(), Applied::Done);
                self.closed_by(refusal.as_ref()).await?;
            }
            Op::Answered { turn, silent } => {
                let Some(place) = self.pick(turn) else { return Ok(()) };
                let turn = &self.hand[place].turn;
                let probe = turn.grant.probe.map(|probe| probe.hold_id);
                let answer = Answer { job_id: turn.job_id, fence: turn.fence, probe, silent, now_ms };
                h.store().answered(vec![answer]).await.unwrap();
                self.may_lift = !silent;
            }
            Op::Complete { turn, how } => {
                let Some(place) = self.pick(turn) else { return Ok(()) };
                let held = self.hand.remove(place);
                self.complete(held, how).await?;
            }
            Op::Stale(n) => self.stale(n).await?,
            Op::GiveBack(n) => {
                let Some(place) = self.pick(n) else { return Ok(()) };
                let Held { worker, turn, .. } = self.hand.remove(place);
                h.store().give_back(worker, vec![(turn.job_id, turn.fence)], now_ms).await.unwrap();
                if self.cancelled.contains(&turn.job_id) {
                    self.ending.insert(turn.job_id, JobState::Cancelled);
                } else {
                    self.goes_back(turn.job_id, None);
                }
            }
            Op::Cancel(n) => self.cancel(n).await?,
            Op::Delete(n) => {
                let Some(id) = self.any_job(n) else { return Ok(()) };
                let outcome = h.store().delete(vec![id, JobId::fresh()]).await.unwrap();
                prop_assert_eq!(outcome[1], DeleteOutcome::Unknown);
                if self.finals.remove(&id).is_some() {
                    prop_assert_eq!(outcome[0], DeleteOutcome::Deleted);
                    self.jobs.retain(|job| *job != id);
                    self.paused.remove(&id);
                    self.taken.retain(|held| held.turn.job_id != id);
                    self.retried.retain(|_, retry| *retry != id);
                    prop_assert!(h.store().job(id).await.unwrap().is_none());
                } else {
                    let state = if self.held(id).is_some() { JobState::Running } else { JobState::Queued };
                    prop_assert_eq!(outcome[0], DeleteOutcome::NotFinal(state));
                }
            }
            Op::Release(n) => {
                let ids: Vec<HoldId> = self.holds.keys().copied().collect();
                if !ids.is_empty() {
                    let release = HoldRelease { id: ids[n % ids.len()], by: "ops".into(), reason: None, now_ms };
                    prop_assert!(h.store().release_hold(release.clone()).await.unwrap().is_some());
                    prop_assert!(h.store().release_hold(release).await.unwrap().is_none(), "lifted twice");
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
            Op::Steer { job, how } => self.steer(job, how).await?,
            Op::PauseQueue(paused) => {
                let before = h.store().pause_queue("default".into(), paused.then(pause)).await.unwrap();
                prop_assert_eq!(before.is_some(), self.queue_paused);
                self.queue_paused = paused;
            }
            Op::Post { job, key } => self.post(job, key).await?,
            Op::Heartbeat(n) => {
                let worker = self.workers[n];
                let renewed = h.store().heartbeat(worker, now_ms).await.unwrap();
                prop_assert_eq!(renewed == Applied::Void, self.gone.contains(&worker), "a lease that stands");
                if renewed == Applied::Done {
                    self.renewed.insert(worker, now_ms);
                }
            }
            Op::Replace(n) => self.workers[n] = self.register().await,
            Op::Retire(n) => {
                // One that holds turns, against its word, is to be rescued from.
                let worker = self.workers[n];
                h.store().retire_worker(worker, now_ms).await.unwrap();
                self.gone.insert(worker);
                prop_assert_eq!(h.store().heartbeat(worker, now_ms).await.unwrap(), Applied::Void);
                self.workers[n] = self.register().await;
            }
            Op::Pass(ms) => self.now_ms += ms,
            Op::Expire => self.expire(3).await?,
            Op::Rescue => self.rescue(3).await?,
        }
        Ok(())
    }

    fn accept(&mut self, job: &NewJob) {
        self.jobs.push(job.id);
        self.accepted += 1;
        if job.once {
            self.once.insert(job.id);
        }
        if let Some(deadline_ms) = job.deadline_ms {
            self.deadlines.insert(job.id, deadline_ms);
        }
        self.goes_back(job.id, job.due_ms);
    }

    async fn register(&mut self) -> WorkerId {
        let id = worker(self.h, self.now_ms).await;
        self.renewed.insert(id, self.now_ms);
        id
    }

    async fn claim(&mut self, worker: WorkerId, room: u32) -> Checked {
        let turns = claim(self.h, worker, room, self.now_ms).await;
        let mut probes = BTreeSet::new();
        prop_assert!(turns.len() <= room as usize);
        for turn in turns {
            let id = turn.job_id;
            prop_assert!(self.held(id).is_none(), "claimed out of another's hand: {turn:?}");
            prop_assert!(!self.has_lapsed(worker), "claimed by one whose lease is over");
            prop_assert!(turn.fence.0 > self.fence, "an old fence: {turn:?}");
            prop_assert!(!self.finals.contains_key(&id), "claimed though it has ended: {turn:?}");
            prop_assert!(!self.paused.contains(&id) && !self.queue_paused, "claimed though paused: {turn:?}");
            prop_assert!(self.due.get(&id).is_none_or(|due_ms| *due_ms <= self.now_ms), "claimed before it is due");
            prop_assert!(self.deadlines.get(&id).is_none_or(|at_ms| *at_ms > self.now_ms), "claimed past its deadline");
            self.permitted(&turn, &turn.grant)?;
            if let Some(probe) = turn.grant.probe {
                prop_assert!(probes.insert(probe.hold_id), "two probes in one claim");
            }
            self.hand.push(Held { worker, turn, n: 0, sending: true });
        }
        self.fence = self.hand.iter().map(|held| held.turn.fence.0).max().unwrap_or(0).max(self.fence);
        Ok(())
    }

    async fn complete(&mut self, held: Held, how: How) -> Checked {
        let (h, now_ms) = (self.h, self.now_ms);
        let Held { worker, turn, n, .. } = held;
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
        let refusal = end.refusal.clone();
        let records = h.store().turns(turn.job_id).await.unwrap().len();
        prop_assert_eq!(complete_one(h, end.clone()).await, Applied::Done, "an end in hand was void");
        prop_assert_eq!(complete_one(h, end).await, Applied::Void, "an end was written twice");
        prop_assert_eq!(h.store().turns(turn.job_id).await.unwrap().len() - records, 1);
        self.closed_by(refusal.as_ref()).await?;
        self.follows(&turn, how).await
    }

    /// What a completion is followed by. A job that was told something goes on, and reads it once its answer is whole; one
    /// that was asked to stop does not go on.
    async fn follows(&mut self, turn: &ClaimedTurn, how: How) -> Checked {
        let id = turn.job_id;
        let told = self.told.get(&id).is_some_and(|seq| *seq > turn.seq);
        let end = match how {
            How::Succeed => Some(JobState::Succeeded),
            How::Fail => Some(JobState::Failed),
            How::UnlessTold if !told => Some(JobState::Succeeded),
            How::UnlessTold | How::Cut | How::NextTurn | How::Defer { .. } | How::Requeue { .. } => {
                self.cancelled.contains(&id).then_some(JobState::Cancelled)
            }
        };
        self.lost.remove(&id);
        let row = get(self.h, id).await;
        if let Some(state) = end {
            self.ending.insert(id, state);
            return Ok(());
        }
        prop_assert_eq!(row.state, JobState::Queued);
        self.goes_back(id, if let How::Requeue { ms, .. } = how { Some(self.now_ms + ms) } else { None });
        let seq = match how {
            How::UnlessTold | How::Cut | How::NextTurn => turn.seq + 1,
            How::Succeed | How::Fail | How::Defer { .. } | How::Requeue { .. } => turn.seq,
        };
        prop_assert_eq!(row.seq, Some(seq));
        if told && matches!(how, How::Cut) {
            self.told.insert(id, turn.seq + 2);
        }
        Ok(())
    }

    /// A refusal leaves its scope closed, at least until the instant that it named.
    async fn closed_by(&self, refusal: Option<&RefusalRow>) -> Checked {
        let Some(refusal) = refusal else { return Ok(()) };
        let open = open_holds(self.h).await;
        let until = open.iter().find(|hold| hold.scope == refusal.scope).map(|hold| hold.until_ms);
        let stands = until.is_some_and(|until_ms| until_ms.is_none_or(|until_ms| until_ms >= refusal.until_ms));
        prop_assert!(stands, "a refusal closed nothing: {refusal:?} beside {open:?}");
        Ok(())
    }

    /// Writes under fences that do not stand: of the claim before, or of an owner whose turn was taken back.
    async fn stale(&mut self, n: usize) -> Checked {
        let (h, now_ms) = (self.h, self.now_ms);
        let before = self.pick(n).map(|place| self.hand[place].clone()).map(|mut held| {
            held.turn.fence = Fence(held.turn.fence.0 - 1);
            held
        });
        let taken = (!self.taken.is_empty()).then(|| self.taken[n % self.taken.len()].clone());
        for Held { worker, turn, n, .. } in before.into_iter().chain(taken) {
            let row = get(h, turn.job_id).await;
            let turns = h.store().turns(turn.job_id).await.unwrap();
            prop_assert_eq!(permit(h, &turn, now_ms).await, Permit::Void, "a stale permit");
            let wrote = h.store().set_back(setback(worker, &turn, n + 1, now_ms, now_ms + 1)).await.unwrap();
            prop_assert_eq!(wrote, Applied::Void, "a stale send was recorded");
            prop_assert_eq!(complete_one(h, success(worker, &turn, now_ms)).await, Applied::Void, "a stale end");
            h.store().give_back(worker, vec![(turn.job_id, turn.fence)], now_ms).await.unwrap();
            prop_assert_eq!(get(h, turn.job_id).await, row, "a stale write changed the job");
            prop_assert_eq!(h.store().turns(turn.job_id).await.unwrap(), turns, "a stale write left a record");
        }
        Ok(())
    }

    async fn cancel(&mut self, n: usize) -> Checked {
        let Some(id) = self.any_job(n) else { return Ok(()) };
        let outcomes = self.h.store().cancel(vec![id, JobId::fresh()], self.now_ms).await.unwrap();
        prop_assert_eq!(outcomes[1], CancelOutcome::Unknown);
        if let Some(row) = self.finals.get(&id) {
            prop_assert_eq!(outcomes[0], CancelOutcome::AlreadyFinal(row.state));
            return Ok(());
        }
        self.cancelled.insert(id);
        if let Some(held) = self.held(id) {
            prop_assert_eq!(outcomes[0], CancelOutcome::Asked);
            let asked = self.h.store().cancelled(held.worker).await.unwrap();
            prop_assert!(asked.contains(&(id, held.turn.fence)), "its worker is not told to stop");
        } else {
            prop_assert_eq!(outcomes[0], CancelOutcome::Cancelled);
            self.ending.insert(id, JobState::Cancelled);
        }
        Ok(())
    }

    async fn steer(&mut self, job: usize, how: Steer) -> Checked {
        let Some(id) = self.any_job(job) else { return Ok(()) };
        let outcomes = steer(self.h, &[id, id], how.clone(), self.now_ms).await;
        if let Some(row) = self.finals.get(&id) {
            prop_assert_eq!(outcomes, [SteerOutcome::AlreadyFinal(row.state); 2]);
            return Ok(());
        }
        prop_assert_eq!(outcomes[1], SteerOutcome::Unchanged);
        match how {
            Steer::Pause(_) => {
                prop_assert_eq!(outcomes[0] == SteerOutcome::Done, self.paused.insert(id));
            }
            Steer::Resume => prop_assert_eq!(outcomes[0] == SteerOutcome::Done, self.paused.remove(&id)),
            Steer::Requeue => {
                if outcomes[0] == SteerOutcome::Done {
                    prop_assert!(self.due.remove(&id).is_some(), "it had no backoff to end");
                }
            }
            Steer::Reprioritise(_) => {}
        }
        Ok(())
    }

    async fn post(&mut self, job: usize, key: u8) -> Checked {
        let Some(id) = self.any_job(job) else { return Ok(()) };
        match post(self.h, id, Some(&key.to_string()), &["{}"]).await {
            Posted::Accepted { seq } => {
                let before = self.told.insert(id, seq);
                prop_assert!(before.is_none_or(|before| before <= seq), "it overtook what was posted before");
            }
            Posted::Duplicate { seq } => prop_assert!(self.told.get(&id).is_some_and(|told| seq <= *told)),
            Posted::AlreadyFinal(_) => {
                prop_assert!(self.finals.contains_key(&id) || self.cancelled.contains(&id));
            }
            Posted::Conflict | Posted::NoTurnLeft | Posted::Unknown => prop_assert!(false, "it was not posted"),
        }
        Ok(())
    }

    /// Deadlines end what waits, paused or not, and nothing else.
    async fn expire(&mut self, limit: u32) -> Checked {
        let overdue = |id: &&JobId| self.deadlines.get(id).is_some_and(|at_ms| *at_ms <= self.now_ms);
        let due = self.jobs.iter().filter(overdue).filter(|id| self.is_waiting(**id)).count();
        let ended = self.h.store().expire(self.now_ms, limit).await.unwrap();
        prop_assert_eq!(ended as usize, due.min(limit as usize), "of {} that are overdue", due);
        self.expiring = true;
        Ok(())
    }

    /// Takes turns back from those whose leases are over, and from nobody else.
    async fn rescue(&mut self, limit: u32) -> Checked {
        let h = self.h;
        let lapsed: BTreeSet<WorkerId> =
            self.renewed.keys().copied().filter(|worker| self.has_lapsed(*worker)).collect();
        let to_take = self.hand.iter().filter(|held| lapsed.contains(&held.worker)).count();
        let rescued = h.store().rescue(Rescue { limit, ..rescue(self.now_ms) }).await.unwrap();
        let (mut requeued, mut failed, mut taken) = (0, 0, 0);
        for held in std::mem::take(&mut self.hand) {
            let id = held.turn.job_id;
            let views = h.store().turns(id).await.unwrap();
            let lost = views.iter().any(|view| view.fence == held.turn.fence && view.record.outcome == Outcome::Lost);
            if !lost {
                self.hand.push(held);
                continue;
            }
            prop_assert!(lapsed.contains(&held.worker), "taken from one whose lease stands: {:?}", held.turn);
            taken += 1;
            let in_a_row = self.lost.entry(id).or_default();
            *in_a_row += 1;
            let may_have_been_sent = self.once.contains(&id) && held.sending;
            if self.cancelled.contains(&id) {
                self.ending.insert(id, JobState::Cancelled);
            } else if *in_a_row >= 3 || held.turn.executions + 1 >= 8 || may_have_been_sent {
                failed += 1;
                self.ending.insert(id, JobState::Failed);
            } else {
                requeued += 1;
                self.goes_back(id, None);
            }
            self.taken.push(held);
        }
        prop_assert_eq!(taken, to_take.min(limit as usize), "turns of lapsed workers that were taken back");
        prop_assert_eq!((rescued.requeued, rescued.failed), (requeued, failed), "what became of them");
        self.gone.extend(lapsed);
        Ok(())
    }

    /// What must hold after every step.
    async fn look(&mut self) -> Checked {
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
            match self.finals.get(&row.id) {
                Some(before) => prop_assert_eq!(before, &row, "a final job changed"),
                None => self.ends(row)?,
            }
        }
        prop_assert!(self.ending.is_empty(), "did not end: {:?}", self.ending);
        self.counted().await
    }

    /// A job may end by what was done to it in this step, or by its deadline.
    fn ends(&mut self, row: JobRow) -> Checked {
        if let Some(state) = self.ending.remove(&row.id) {
            prop_assert_eq!(row.state, state, "{:?}", row.id);
        } else {
            let overdue = self.deadlines.get(&row.id).is_some_and(|at_ms| *at_ms <= self.now_ms);
            let by_deadline = self.expiring && overdue && self.held(row.id).is_none();
            prop_assert!(by_deadline && row.state == JobState::Failed, "ended by nothing: {row:?}");
        }
        *self.ended.entry(row.state as u8).or_default() += 1;
        self.finals.insert(row.id, row);
        Ok(())
    }

    /// Every acknowledged job is final, in a hand, or waits.
    async fn counted(&self) -> Checked {
        let figures = self.h.store().overview(self.now_ms).await.unwrap();
        let ended = |state: JobState| self.ended.get(&(state as u8)).copied().unwrap_or(0);
        prop_assert_eq!(figures.succeeded, ended(JobState::Succeeded));
        prop_assert_eq!(figures.failed, ended(JobState::Failed));
        prop_assert_eq!(figures.cancelled, ended(JobState::Cancelled));
        prop_assert_eq!(figures.running, i64::try_from(self.hand.len()).unwrap(), "turns in hand");
        let paused = self.paused.iter().filter(|id| self.is_waiting(**id)).count();
        let waiting = figures.ready + figures.deferred + i64::try_from(paused).unwrap();
        let ended: i64 = self.ended.values().sum();
        prop_assert_eq!(waiting + figures.running + ended, self.accepted, "a job is nowhere, or twice");
        Ok(())
    }

    async fn finish(mut self) -> Checked {
        (self.may_lift, self.by_hand, self.expiring) = (false, false, true);
        prop_assert_eq!(self.h.contradictions().await, Vec::<String>::new());
        // What people stopped goes on.
        steer(self.h, &self.jobs, Steer::Resume, self.now_ms).await;
        self.paused.clear();
        self.h.store().pause_queue("default".into(), None).await.unwrap();
        self.queue_paused = false;
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
        self.rescue(1_000).await?;
        prop_assert!(self.hand.is_empty());
        self.look().await?;
        self.expire(1_000).await?;
        self.look().await?;
        let live = self.register().await;
        let waiting = self.h.store().jobs(states(&["waiting"])).await.unwrap().items;
        let due = |job: &JobRow| job.due_ms.is_none_or(|due_ms| due_ms <= self.now_ms);
        let waiting: BTreeSet<ScopeKey> = waiting.into_iter().filter(due).map(|job| job.lane.scope).collect();
        self.claim(live, 64).await?;
        prop_assert_eq!(self.hand.is_empty(), waiting.is_empty(), "nobody probes for {:?}", waiting);
        self.look().await?;
        for id in &self.jobs {
            let expected = match (self.finals.get(id), self.held(*id)) {
                (Some(row), _) => row.state,
                (None, Some(_)) => JobState::Running,
                (None, None) => JobState::Queued,
            };
            prop_assert_eq!(get(self.h, *id).await.state, expected);
        }
        prop_assert_eq!(self.h.contradictions().await, Vec::<String>::new());
        Ok(())
    }
}

fn states(states: &[&str]) -> Query {
    Query { states: states.iter().map(|state| (*state).to_owned()).collect(), limit: 1_000, ..Query::default() }
}
