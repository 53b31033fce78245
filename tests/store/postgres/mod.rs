//! Postgres: the suite, and what is particular to it.

mod away;
mod cluster;
mod harness;
mod migrations;
mod moves;
mod statements;
mod together;

use harness::{fresh, fresh_polling};

/// Reads that SQLite had first.
macro_rules! reads {
    ($open:path) => {
        crate::conformance! {
            $open;
            lists:
                jobs_are_found_by_what_they_wait_for,
                jobs_are_found_by_what_they_ended_with,
                ended_jobs_are_listed_by_their_end,
                labels_find_their_jobs_among_others,
                a_frozen_filter_leaves_out_what_is_submitted_later,
                a_schedule_finds_its_jobs;
            audit:
                failures_are_found_and_counted_by_what_they_were,
                a_word_is_kept_broken_given_up_or_not_tested,
                accuracy_adds_up_to_what_is_listed,
                what_befell_a_hold_is_told_in_order,
                tokens_are_counted_by_what_is_asked;
            standing:
                a_job_in_line_knows_who_is_before_it,
                a_held_job_knows_who_is_before_it_in_other_lanes,
                a_job_in_hand_says_what_it_waits_for,
                queues_say_what_they_hold,
                histories_come_in_the_order_asked_for;
        }
    };
}

mod listening {
    use super::fresh;
    crate::suite!(super::fresh);
    mod reads {
        use crate::postgres::fresh;
        reads!(super::fresh);
    }
}

#[test]
fn any_sequence_of_commands_leaves_a_state_that_agrees_with_itself() {
    crate::conformance::sequences::run(8, fresh);
}

/// The same without anything that outlives a transaction.
mod polling {
    use super::fresh_polling;
    crate::suite!(super::fresh_polling);
    mod reads {
        use crate::postgres::fresh_polling;
        reads!(super::fresh_polling);
    }
}
