//! The chaos drill: the promises of durability and admission under violence, on the binary itself.
//!
//! A fleet of `reprieve worker` processes and one `reprieve serve --no-worker`, submitters that remember what was
//! acknowledged to them, and a metered simulator in a process of its own. While jobs come, processes are killed and
//! frozen, the database's disk is filled, and so on, by a plan drawn from a seed; then everything is let finish, and the
//! verdict is computed from the database and from what the simulator counted. The short form is an ordinary test;
//! `scripts/chaos` runs the long one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what a test needs and does not get ends it")]

#[path = "../store/conformance/contradictions.rs"]
mod contradictions;
mod dice;
mod disk;
mod drill;
mod early;
mod facts;
mod faults;
mod fleet;
mod ledger;
mod netns;
mod place;
mod postgres;
mod provider;
mod proxy;
mod submit;
mod table;
mod verdict;
mod watch;

use drill::Drill;
use place::Place;

/// The machine's clock, which everything here goes by.
fn now_ms() -> i64 {
    reprieve::clock::Clock::system().now_ms()
}

/// One drill at a time: each is a fleet.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_its_promises_under_violence() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let drill = Drill::asked_for(1_500);
    drill::run(Place::sqlite(drill.megabytes()), drill).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_keeps_its_promises_under_violence() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let drill = Drill::asked_for(1_000);
    drill::run(Place::postgres(drill.megabytes() * 2).await, drill).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_cut_off_from_its_database_and_healed_loses_and_doubles_nothing() {
    let _turn = ONE_AT_A_TIME.lock().await;
    match netns::Namespaces::make() {
        Ok(namespaces) => netns::run(&namespaces).await,
        Err(why) => println!("NOT RUN: two network namespaces: {why}"),
    }
}
