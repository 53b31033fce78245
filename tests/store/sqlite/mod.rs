//! SQLite: the suite, and what is particular to it.

mod damage;
mod durability;
pub mod harness;
mod large;
mod open;
mod power;
mod statements;

pub(crate) use harness::fresh;

crate::suite!(super::fresh);

#[test]
fn any_sequence_of_commands_leaves_a_state_that_agrees_with_itself() {
    crate::conformance::sequences::run(48, fresh);
}
