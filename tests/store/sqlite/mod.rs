//! SQLite: the suite, and what is particular to it.

mod damage;
mod durability;
mod harness;
mod large;
mod open;
mod power;
mod statements;

pub(crate) use harness::fresh;

crate::suite!(super::fresh);

/// What Postgres is still to learn.
mod first {
    use super::fresh;
    crate::conformance! {
        super::fresh;
        submit:
            a_job_is_retried_once;
        claim:
            claims_are_counted_by_the_minute;
        by_hand:
            a_hold_is_dated_anew_by_hand_both_ways;
        lists:
            jobs_are_found_by_what_they_wait_for,
            jobs_are_found_by_what_they_ended_with,
            ended_jobs_are_listed_by_their_end,
            labels_find_their_jobs_among_others,
            a_frozen_filter_leaves_out_what_is_submitted_later,
            what_is_paused_is_found_and_shown,
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
        schedules:
            a_name_is_one_schedule,
            what_is_due_is_due_in_order_and_what_is_paused_is_not,
            an_instant_is_fired_once_whoever_tries,
            what_a_clock_that_was_ahead_passed_over_is_taken_back,
            instants_are_run_in_order_each_with_what_came_of_it,
            a_run_by_hand_moves_nothing_and_takes_its_instant,
            a_fired_job_goes_in_as_any_other,
            the_last_runs_are_kept;
        workers:
            a_worker_that_is_no_more_is_remembered_for_a_day;
    }
}

#[test]
fn any_sequence_of_commands_leaves_a_state_that_agrees_with_itself() {
    crate::conformance::sequences::run(48, fresh);
}
