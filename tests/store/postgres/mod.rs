//! Postgres: the suite, and what is particular to it.

mod away;
mod cluster;
mod harness;
mod migrations;
mod statements;
mod together;

use harness::{fresh, fresh_polling};

mod listening {
    use super::fresh;
    crate::suite!(super::fresh);
}

#[test]
fn any_sequence_of_commands_leaves_a_state_that_agrees_with_itself() {
    crate::conformance::sequences::run(8, fresh);
}

/// The same without anything that outlives a transaction.
mod polling {
    use super::fresh_polling;
    crate::suite!(super::fresh_polling);
}
