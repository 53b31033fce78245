//! The shape of the package: which way dependencies point, and what may stand where.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what a test needs and does not get ends it")]

mod docs;
mod failures;
mod layers;
mod logging;
mod operations;
mod pages;
mod states;
