//! How failures are read: a collection of real ones, and properties that must hold for any.

mod corpus;
