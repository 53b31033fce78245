//! A job's next step: its spec, its transcript from records and inbox, continuation after cuts, the repair budget.
//!
//! Pure: values in, values out. No store, no clock, no network; the worker carries out what is decided here.

mod spec;
mod step;

pub use spec::{JobSpec, SpecError, Truncation};
pub use step::{Ended, Step, next_call, next_step};
