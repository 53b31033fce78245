//! The main job end to end: a real database, the simulated provider on real sockets, a worker and a scheduler.

mod bench;
mod cases;
mod continuity;
#[path = "../store/sqlite/contradictions.rs"]
mod contradictions;
mod hardships;
mod kill;
mod process;
mod steering;
