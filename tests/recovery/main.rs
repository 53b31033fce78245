//! The decision function against its table and its invariants.

mod properties;
mod sample;
mod table;
