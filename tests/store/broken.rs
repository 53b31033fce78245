//! Stores that are wrong in one thing: each a sound one behind a wrapper that does that one thing wrongly. The model of
//! `conformance/sequences.rs` must notice every one of them, and nothing of the wrapper itself.

use crate::conformance::{Harness, sequences};
use reprieve::clock::Clock;
use reprieve::store::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// Ends and setbacks are written under the turn's present fence, whatever fence they name.
    LetsStaleWritesThrough,
    /// What another holds is claimed, too.
    ClaimsOutOfAnothersHand,
    /// A permit is given while a hold stands.
    SendsIntoHolds,
    /// A refusal lifts what it should close.
    LiftsHoldsOnRefusal,
    /// A lease is over twenty seconds early.
    RescuesTheLiving,
    /// A cancel is acknowledged, and forgotten.
    ForgetsCancels,
    /// A job that may be sent once is put back though it may have been sent.
    ForgetsOnce,
    /// The last of several jobs is acknowledged, and not kept.
    LosesJobs,
    /// Deadlines pass ten seconds early.
    ExpiresEarly,
    /// What is paused goes on.
    ForgetsPauses,
    /// What is given back keeps its place in the hand.
    KeepsWhatIsGivenBack,
}

/// Sequences that a broken store is given to show itself.
const CASES: u32 = 48;
const SEED: u8 = 7;

#[derive(Clone)]
struct Broken<S> {
    inner: S,
    wrong: Wrong,
    /// The latest claim of each job.
    claimed: Arc<Mutex<BTreeMap<JobId, ClaimedTurn>>>,
}

impl<S: Store> Broken<S> {
    fn latest(&self, job: JobId) -> Option<ClaimedTurn> {
        self.claimed.lock().unwrap().get(&job).cloned()
    }

    fn fence(&self, job: JobId, given: Fence) -> Fence {
        let stands = self.wrong == Wrong::LetsStaleWritesThrough;
        if stands { self.latest(job).map_or(given, |turn| turn.fence) } else { given }
    }

    async fn lift(&self, refusal: &RefusalRow, now_ms: i64) -> Result<()> {
        for hold in self.inner.holds(Query::default()).await? {
            if hold.scope == refusal.scope {
                let release = HoldRelease { id: hold.id, by: "nobody".into(), reason: None, now_ms };
                self.inner.release_hold(release).await?;
            }
        }
        Ok(())
    }
}

macro_rules! delegate {
    ($($verb:ident($($name:ident: $type:ty),*) -> $answer:ty;)+) => {
        $(async fn $verb(&self, $($name: $type),*) -> $answer {
            self.inner.$verb($($name),*).await
        })+
    };
}

impl<S: Store> Store for Broken<S> {
    fn clock(&self) -> &Clock {
        self.inner.clock()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes()
    }

    async fn submit(&self, mut jobs: Vec<NewJob>) -> Result<Vec<Submitted>> {
        let answers = jobs.iter().map(|job| Submitted::Accepted(job.id)).collect();
        match self.wrong {
            Wrong::ForgetsOnce => jobs.iter_mut().for_each(|job| job.once = false),
            Wrong::LosesJobs if jobs.len() > 1 => {
                jobs.pop();
                self.inner.submit(jobs).await?;
                return Ok(answers);
            }
            _ => {}
        }
        self.inner.submit(jobs).await
    }

    async fn rescue(&self, mut request: Rescue) -> Result<Rescued> {
        if self.wrong == Wrong::RescuesTheLiving {
            request.now_ms += 20_000;
        }
        self.inner.rescue(request).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<ClaimedTurn>> {
        let room = request.room as usize;
        let mut turns = self.inner.claim(request).await?;
        if self.wrong == Wrong::ClaimsOutOfAnothersHand && turns.len() < room {
            let known: Vec<ClaimedTurn> = self.claimed.lock().unwrap().values().cloned().collect();
            for turn in known {
                let running = self.inner.job(turn.job_id).await?.is_some_and(|job| job.state == JobState::Running);
                if running && !turns.iter().any(|other| other.job_id == turn.job_id) {
                    turns.push(turn);
                    break;
                }
            }
        }
        self.claimed.lock().unwrap().extend(turns.iter().map(|turn| (turn.job_id, turn.clone())));
        Ok(turns)
    }

    async fn permit(&self, request: PermitRequest) -> Result<Permit> {
        match self.inner.permit(request).await? {
            Permit::Closed { .. } if self.wrong == Wrong::SendsIntoHolds => {
                Ok(Permit::Granted(Grant { permit_ms: request.now_ms, probe: None, ramping: false, barren: 0 }))
            }
            permit => Ok(permit),
        }
    }

    async fn give_back(&self, worker: WorkerId, turns: Vec<(JobId, Fence)>, now_ms: i64) -> Result<()> {
        if self.wrong == Wrong::KeepsWhatIsGivenBack {
            return Ok(());
        }
        self.inner.give_back(worker, turns, now_ms).await
    }

    async fn set_back(&self, mut setback: Setback) -> Result<Applied> {
        setback.fence = self.fence(setback.job_id, setback.fence);
        let (refusal, now_ms) = (setback.refusal.clone(), setback.now_ms);
        let applied = self.inner.set_back(setback).await?;
        if let (Some(refusal), Wrong::LiftsHoldsOnRefusal) = (refusal, self.wrong) {
            self.lift(&refusal, now_ms).await?;
        }
        Ok(applied)
    }

    async fn complete(&self, mut completions: Vec<Completion>) -> Result<Vec<Applied>> {
        for completion in &mut completions {
            completion.fence = self.fence(completion.job_id, completion.fence);
        }
        let refusals: Vec<_> = completions.iter().filter_map(|end| Some((end.refusal.clone()?, end.now_ms))).collect();
        let applied = self.inner.complete(completions).await?;
        if self.wrong == Wrong::LiftsHoldsOnRefusal {
            for (refusal, now_ms) in refusals {
                self.lift(&refusal, now_ms).await?;
            }
        }
        Ok(applied)
    }

    async fn expire(&self, now_ms: i64, limit: u32) -> Result<u32> {
        let early_ms = if self.wrong == Wrong::ExpiresEarly { 10_000 } else { 0 };
        self.inner.expire(now_ms + early_ms, limit).await
    }

    async fn cancel(&self, jobs: Vec<JobId>, now_ms: i64) -> Result<Vec<CancelOutcome>> {
        if self.wrong != Wrong::ForgetsCancels {
            return self.inner.cancel(jobs, now_ms).await;
        }
        let mut outcomes = Vec::new();
        for id in jobs {
            outcomes.push(match self.inner.job(id).await?.map(|job| job.state) {
                None => CancelOutcome::Unknown,
                Some(JobState::Running) => CancelOutcome::Asked,
                Some(JobState::Queued) => CancelOutcome::Cancelled,
                Some(state) => CancelOutcome::AlreadyFinal(state),
            });
        }
        Ok(outcomes)
    }

    async fn steer(&self, jobs: Vec<JobId>, how: Steer, now_ms: i64) -> Result<Vec<SteerOutcome>> {
        let forgets = self.wrong == Wrong::ForgetsPauses && matches!(how, Steer::Pause(_));
        let outcomes = self.inner.steer(jobs.clone(), how, now_ms).await?;
        if forgets {
            self.inner.steer(jobs, Steer::Resume, now_ms).await?;
        }
        Ok(outcomes)
    }

    delegate! {
        register_worker(worker: WorkerRow) -> Result<()>;
        heartbeat(worker: WorkerId, now_ms: i64) -> Result<Applied>;
        retire_worker(worker: WorkerId, now_ms: i64) -> Result<()>;
        cancelled(worker: WorkerId) -> Result<Vec<(JobId, Fence)>>;
        configure_scopes(scopes: Vec<ScopeConfig>) -> Result<()>;
        answered(answers: Vec<Answer>) -> Result<()>;
        history(job: JobId) -> Result<History>;
        next_due_ms(now_ms: i64) -> Result<Option<i64>>;
        prune(request: Prune) -> Result<Pruned>;
        post(messages: NewMessages) -> Result<Posted>;
        delete(jobs: Vec<JobId>) -> Result<Vec<DeleteOutcome>>;
        pause_queue(queue: String, pause: Option<Pause>) -> Result<Option<Pause>>;
        close_scope(close: HoldClose) -> Result<HoldRow>;
        retries(of: Vec<JobId>) -> Result<Vec<(JobId, JobId)>>;
        release_hold(release: HoldRelease) -> Result<Option<HoldRow>>;
        add_schedule(schedule: NewSchedule) -> Result<Scheduled>;
        remove_schedule(id: ScheduleId) -> Result<bool>;
        pause_schedule(id: ScheduleId, pause: Option<Pause>, next_ms: Option<i64>) -> Result<bool>;
        schedules() -> Result<Vec<ScheduleRow>>;
        due_schedules(now_ms: i64, limit: u32) -> Result<Vec<ScheduleRow>>;
        fire(fire: Fire) -> Result<Fired>;
        job(id: JobId) -> Result<Option<JobRow>>;
        jobs(query: Query) -> Result<Page<JobRow>>;
        job_ids(first: JobId, last: JobId, end: String, limit: u32) -> Result<Vec<JobId>>;
        turns(job: JobId) -> Result<Vec<TurnView>>;
        standing(job: JobId, now_ms: i64) -> Result<Option<Standing>>;
        histories(jobs: Vec<JobId>) -> Result<Vec<History>>;
        failures(query: Query) -> Result<Page<FailureRow>>;
        failure_counts(query: Query, by: By) -> Result<Vec<CountRow>>;
        resets(query: Query) -> Result<Page<ResetRow>>;
        reset(key: SendKey) -> Result<Option<ResetRow>>;
        reset_accuracy(query: Query) -> Result<Vec<AccuracyRow>>;
        hold_events(hold: HoldId) -> Result<Vec<HoldEventRow>>;
        queues(now_ms: i64) -> Result<Vec<QueueRow>>;
        usage(query: Query, by: UsageBy) -> Result<Vec<UsageRow>>;
        hold(id: HoldId) -> Result<Option<HoldRow>>;
        holds(query: Query) -> Result<Vec<HoldRow>>;
        results(query: Query) -> Result<Page<JobRow>>;
        takes_writes() -> Result<()>;
        overview(now_ms: i64) -> Result<Overview>;
        workers(now_ms: i64) -> Result<Vec<WorkerRow>>;
        close() -> ();
    }
}

/// A harness whose store is wrong in one thing.
struct BrokenHarness<H: Harness> {
    sound: H,
    store: Broken<H::S>,
}

impl<H: Harness + Sync> Harness for BrokenHarness<H> {
    type S = Broken<H::S>;

    fn store(&self) -> &Self::S {
        &self.store
    }

    async fn write_as_newer(&self, statement: &'static str) {
        self.sound.write_as_newer(statement).await;
    }

    async fn contradictions(&self) -> Vec<String> {
        self.sound.contradictions().await
    }
}

/// What the model says of a store that is wrong so, over the same sequences every time.
fn verdict(wrong: Wrong) -> std::result::Result<(), String> {
    sequences::run_seeded(CASES, SEED, async || {
        let sound = crate::sqlite::fresh().await;
        let store = Broken { inner: sound.store().clone(), wrong, claimed: Arc::default() };
        BrokenHarness { sound, store }
    })
}

/// `why`: the words of whatever may notice it first.
#[track_caller]
fn noticed(wrong: Wrong, why: &[&str]) {
    let said = verdict(wrong).expect_err("nobody noticed");
    assert!(why.iter().any(|why| said.contains(why)), "{wrong:?} was noticed by something else: {said}");
}

#[test]
fn a_sound_store_behind_the_wrapper_is_sound() {
    assert_eq!(verdict(Wrong::Nothing), Ok(()));
}

#[test]
fn stale_writes_are_noticed() {
    noticed(Wrong::LetsStaleWritesThrough, &["stale"]);
}

#[test]
fn a_turn_claimed_out_of_anothers_hand_is_noticed() {
    noticed(Wrong::ClaimsOutOfAnothersHand, &["claimed out of another's hand"]);
}

#[test]
fn a_send_into_a_hold_is_noticed() {
    noticed(Wrong::SendsIntoHolds, &["sent into"]);
}

#[test]
fn a_hold_that_a_refusal_lifts_is_noticed() {
    noticed(Wrong::LiftsHoldsOnRefusal, &["a refusal closed nothing"]);
}

#[test]
fn a_rescue_from_the_living_is_noticed() {
    noticed(Wrong::RescuesTheLiving, &["taken from one whose lease stands", "a lease that stands"]);
}

#[test]
fn a_forgotten_cancel_is_noticed() {
    noticed(Wrong::ForgetsCancels, &["did not end", "is not told to stop"]);
}

#[test]
fn what_is_sent_again_though_it_may_be_sent_once_is_noticed() {
    noticed(Wrong::ForgetsOnce, &["what became of them"]);
}

#[test]
fn a_lost_job_is_noticed() {
    noticed(Wrong::LosesJobs, &["a job is nowhere"]);
}

#[test]
fn a_deadline_that_passes_early_is_noticed() {
    noticed(Wrong::ExpiresEarly, &["that are overdue"]);
}

#[test]
fn a_forgotten_pause_is_noticed() {
    noticed(Wrong::ForgetsPauses, &["claimed though paused", "a job is nowhere, or twice"]);
}

#[test]
fn what_is_not_given_back_is_noticed() {
    noticed(Wrong::KeepsWhatIsGivenBack, &["turns in hand", "did not end"]);
}
