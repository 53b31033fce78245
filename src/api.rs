//! The HTTP face: routes over the store, problem documents, and the JSON shapes that the command line shares.
//!
//! Requests come in, are checked whole, and are carried out against the store; nothing here touches a worker, a provider
//! or a credential: faces and workers meet in the store.

pub mod acts;
pub mod audit;
pub mod bulk;
mod history;
pub mod holds;
mod jobs;
pub mod lines;
pub mod parameters;
mod problem;
mod queues;
mod request;
mod resets;
pub mod said;
pub mod schedules;
mod server;
pub mod shapes;
mod steering;
pub mod why;
pub mod words;

pub use jobs::conflict;
pub use problem::{Kind, Problem};
pub use server::{Api, Waits, bind, router, serve};
