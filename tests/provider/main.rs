//! The model boundary on real sockets: what each fault becomes, what a cut leaves, what goes out and comes back.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what a test needs and does not get ends it")]

mod adapters;
mod answers;
mod canaries;
mod continuity;
mod faults;
mod names;
mod rig;
mod table;
mod wire;
