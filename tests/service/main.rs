//! The main job end to end: a real database, the simulated provider on real sockets, a worker and a scheduler.

mod bench;
mod cases;
mod continuity;
mod kill;
mod steering;
