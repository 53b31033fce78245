//! The store: one conformance suite, generic over the seam and run on every database, and what is particular to each.

mod conformance;
mod sqlite;
