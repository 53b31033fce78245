//! SQLite: the suite, and what is particular to it.

mod damage;
mod durability;
mod harness;
mod open;
mod power;
mod statements;

use harness::fresh;

crate::suite!(super::fresh);

/// What Postgres is still to learn.
mod first {
    use super::fresh;
    crate::conformance! {
        super::fresh;
        lists:
            jobs_are_found_by_what_they_wait_for,
            jobs_are_found_by_what_they_ended_with,
            ended_jobs_are_listed_by_their_end,
            labels_find_their_jobs_among_others,
            a_frozen_filter_leaves_out_what_is_submitted_later;
    }
}

#[test]
fn any_sequence_of_commands_leaves_a_state_that_agrees_with_itself() {
    crate::conformance::sequences::run(48, fresh);
}
