//! A job's next step: its spec, its transcript from records and inbox, continuation after cuts, the repair budget.
//!
//! Pure: values in, values out. No store, no clock, no network; the worker carries out what is decided here.
//!
//! ```text
//! text of a job ── accept ──> NewJob            (submitters: API, CLI)
//! its spec      ── JobSpec::parse ──> JobSpec   (worker)
//! an ended job  ── again ──> NewJob
//! a follow-up   ── messages, check_messages ──> messages as they are stored
//! JobSpec + History ── next_call ──> Call ── … ── Ended ── next_step ──> Step
//! ```

pub mod accept;
mod again;
mod digest;
pub mod limits;
mod messages;
pub(crate) mod read;
pub mod response;
mod spec;
mod step;
mod transcript;

pub use accept::{Directory, Entry, accept};
pub use again::{again, turns_left};
pub use messages::{check_messages, messages, no_turn_left, takes_messages};
pub use spec::{Body, JobSpec, SpecError, Truncation, When};
pub use step::{Ended, Step, job_text, next_call, next_step, transcript, turn_refused};
