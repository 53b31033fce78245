//! The decision function against its table and its invariants.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what a test needs and does not get ends it")]

mod properties;
mod sample;
mod table;
