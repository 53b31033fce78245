//! The store: one conformance suite, generic over the seam and run on every database, and what is particular to each.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what a test needs and does not get ends it")]

mod broken;
mod conformance;
mod postgres;
mod sqlite;
