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
            a_job_is_retried_once,
            a_repeated_key_goes_before_a_repeated_retry,
            what_is_taken_over_stands_before_the_first_turn;
        claim:
            a_scope_that_a_worker_leaves_alone_is_left_to_others,
            a_paused_queue_gives_nothing_and_goes_on_where_it_was,
            the_probe_is_of_a_queue_that_runs,
            claims_are_counted_by_the_minute;
        complete:
            a_job_that_was_told_something_goes_on,
            a_continuation_is_read_alone_and_messages_once_the_answer_is_whole;
        messages:
            messages_are_read_by_the_next_turn_in_the_order_posted,
            a_posting_under_a_key_is_done_once,
            nobody_reads_what_comes_too_late;
        by_hand:
            a_scope_is_closed_until_its_instant_and_left_by_one_probe,
            a_scope_closed_without_an_end_waits_for_a_release,
            a_hold_is_dated_anew_by_hand_both_ways,
            a_probe_on_its_way_lifts_no_hold_that_was_dated_over_it;
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
        steer:
            a_paused_job_waits_until_it_is_let_go_on,
            a_turn_paused_in_hand_finishes_and_goes_back_paused,
            a_requeue_ends_a_backoff_and_nothing_else,
            another_priority_is_another_place_in_line,
            an_ended_job_is_deleted_with_all_that_is_kept_of_it;
        schedules:
            a_name_is_one_schedule,
            what_is_due_is_due_in_order_and_what_is_paused_is_not,
            an_instant_is_fired_once_whoever_tries,
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
