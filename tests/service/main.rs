//! The main job end to end: a real database, the simulated provider on real sockets, a worker and a scheduler.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what a test needs and does not get ends it")]

mod bench;
mod cases;
mod continuity;
#[path = "../store/conformance/contradictions.rs"]
mod contradictions;
mod elsewhere;
mod followups;
mod hardships;
mod kill;
mod once;
mod process;
mod schedules;
mod steering;
