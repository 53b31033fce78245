//! Reprieve: a durable queue and worker service in which long model jobs survive their providers' refusals.
//!
//! The map of the modules, and which way their dependencies point, is `docs/ARCHITECTURE.md`.

pub mod admission;
pub mod agent;
pub mod api;
pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod duration;
pub mod failure;
pub mod provider;
pub mod recovery;
pub mod scheduler;
pub mod sim;
pub mod store;
pub mod telemetry;
pub mod worker;
