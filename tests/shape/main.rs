//! The shape of the package: which way dependencies point, and what may stand where.

mod layers;
