//! What went wrong: from an error to a leaf, from a leaf to a class and a cause, the resets it names with the evidence
//! for each, and the versioned record that is kept (`docs/ARCHITECTURE.md`, "One failure, one reading").
//!
//! Pure: no clock, no I/O, no randomness. What is needed of those is passed in ([`Receipt`]). Nothing here decides what
//! to do about a failure; that is [`crate::recovery`].

mod evidence;
mod fault;
mod reading;
mod record;

pub use evidence::{Candidate, LimitKind, Source, SourceKind, Verdict};
pub use fault::{CancelPoint, Ending, Fault, Phase, ResponseFault, Terminal, Transport};
pub use reading::{Allowance, Cause, Class, Failure, Reach, Receipt};
pub use record::{ErrorDocument, Identity, Limit, ModelFailure, ResetSource};
