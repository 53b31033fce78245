//! Who may send now: holds and their probes, how many sends may be in flight, fair shares between lanes. The arithmetic
//! alone: in go numbers, out come numbers.
//!
//! Pure. The state lives in the store, which asks here inside its transactions ([`crate::store`]); nothing here knows of
//! rows, SQL, clocks or providers. Instants and draws of the store's sequence are passed in. The rules are contract §8.

mod flow;
mod grants;
mod holds;

pub use flow::{Flow, START};
pub use grants::{Lane, grants};
pub use holds::{Hold, HoldEvent, Standing};
