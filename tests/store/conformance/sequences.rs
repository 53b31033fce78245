//! Any sequence of commands leaves a state that agrees with itself (contract §10.1, 10.2, 10.7).
//!
//! A model follows along that knows only what a caller can know, and all of it exactly:
//!
//! * which turns are in which hand, under which fence, and whether they have a permit; which were taken back, so that
//!   whatever their old owner writes must be void;
//! * whose lease stands, has lapsed or was ended, and so whom a rescue takes turns from, and what becomes of each of them;
//! * which jobs have ended, how, and why they may have: nothing ends by itself, and nothing final changes;
//! * which jobs are paused, due later, past their deadline, asked to stop, told something, or sent at most once;
//! * until when each scope is closed, that every refusal closes its own, and what may lift a hold.
//!
//! `tests/store/broken.rs` breaks a sound store in one way after another; the model notices each of them.

mod world;

use super::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use reprieve::store::*;

const MODELS: [&str; 2] = ["a", "b"];

/// One step; the numbers choose among what there is.
#[derive(Clone, Debug)]
enum Op {
    Submit { model: usize, n: usize, due_in_ms: Option<i64>, deadline_in_ms: Option<i64>, once: bool },
    Retry(usize),
    Claim { worker: usize, room: u32 },
    Permit(usize),
    SetBack { turn: usize, refused: bool, wait_ms: i64, account: bool },
    Answered { turn: usize, silent: bool },
    Complete { turn: usize, how: How },
    Stale(usize),
    GiveBack(usize),
    Cancel(usize),
    Delete(usize),
    Release(usize),
    Close { model: usize, wait_ms: Option<i64> },
    Steer { job: usize, how: Steer },
    PauseQueue(bool),
    Post { job: usize, key: u8 },
    Heartbeat(usize),
    Replace(usize),
    Retire(usize),
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
        4 => (0..2_usize, 1..5_usize, maybe(), maybe(), proptest::bool::weighted(0.3)).prop_map(
            |(model, n, due_in_ms, deadline_in_ms, once)| Op::Submit { model, n, due_in_ms, deadline_in_ms, once }
        ),
        1 => any::<usize>().prop_map(Op::Retry),
        8 => (0..2_usize, 1..6_u32).prop_map(|(worker, room)| Op::Claim { worker, room }),
        5 => any::<usize>().prop_map(Op::Permit),
        4 => (any::<usize>(), any::<bool>(), wait(), any::<bool>())
            .prop_map(|(turn, refused, wait_ms, account)| Op::SetBack { turn, refused, wait_ms, account }),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(turn, silent)| Op::Answered { turn, silent }),
        8 => (any::<usize>(), how).prop_map(|(turn, how)| Op::Complete { turn, how }),
        2 => any::<usize>().prop_map(Op::Stale),
        1 => any::<usize>().prop_map(Op::GiveBack),
        2 => any::<usize>().prop_map(Op::Cancel),
        1 => any::<usize>().prop_map(Op::Delete),
        1 => any::<usize>().prop_map(Op::Release),
        1 => (0..3_usize, proptest::option::weighted(0.8, -500..3_000_i64))
            .prop_map(|(model, wait_ms)| Op::Close { model, wait_ms }),
        4 => (any::<usize>(), steer).prop_map(|(job, how)| Op::Steer { job, how }),
        1 => proptest::bool::weighted(0.3).prop_map(Op::PauseQueue),
        3 => (any::<usize>(), any::<u8>()).prop_map(|(job, key)| Op::Post { job, key }),
        2 => (0..2_usize).prop_map(Op::Heartbeat),
        1 => (0..2_usize).prop_map(Op::Replace),
        1 => (0..2_usize).prop_map(Op::Retire),
        6 => prop_oneof![0..1_500_i64, 20_000..35_000_i64].prop_map(Op::Pass),
        2 => Just(Op::Expire),
        2 => Just(Op::Rescue),
    ]
}

/// Runs `cases` sequences, each on a fresh store of `open`.
pub fn run<H: Harness>(cases: u32, open: impl AsyncFn() -> H) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    if let Err(error) = outcome(TestRunner::new(config), open) {
        panic!("{error}");
    }
}

/// The same sequences every time: whether the model finds nothing wrong in `cases` of them. Nothing is made shorter.
pub fn run_seeded<H: Harness>(cases: u32, seed: u8, open: impl AsyncFn() -> H) -> std::result::Result<(), String> {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    outcome(TestRunner::new_with_rng(config, rng), open)
}

fn outcome<H: Harness>(mut runner: TestRunner, open: impl AsyncFn() -> H) -> std::result::Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = runner.run(&proptest::collection::vec(op(), 1..120), |ops| {
        runtime.block_on(async {
            let h = open().await;
            world::sequence(&h, ops).await
        })
    });
    result.map_err(|error| error.to_string())
}
