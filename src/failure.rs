//! What went wrong: from an error to a leaf, from a leaf to a class and a cause, the resets it names with the evidence
//! for each, and the versioned record that is kept (`docs/ARCHITECTURE.md`, "One failure, one reading").
//!
//! In comes an [`Ending`] (of a `genai::Error`, a frame or a body: [`Fault::of`], [`frame`]) with its [`Receipt`] and the
//! [`Rules`] in force; out goes one [`Failure`], from which every record, message and decision is made. Recovery is read
//! from typed structure, never from a `Display` string.
//!
//! Pure: no clock, no I/O, no randomness. What is needed of those is passed in ([`Receipt`]). Nothing here decides what
//! to do about a failure; that is [`crate::recovery`].

mod body;
pub mod capture;
pub mod codes;
mod evidence;
mod fault;
pub mod frame;
mod message;
mod read;
mod reading;
mod record;
mod render;
mod resets;
mod rules;
mod walk;

pub use evidence::{Candidate, LimitKind, Source, SourceKind, Verdict};
pub use fault::{CancelPoint, Ending, Fault, Phase, ResponseFault, Terminal, Transport, is_out_of_resources};
pub use read::{Finish, finish};
pub use reading::{Allowance, Cause, Class, Failure, Reach, Receipt};
pub use record::{ErrorDocument, Identity, Limit, ModelFailure, ResetSource};
pub use rules::{Rules, RulesError};
