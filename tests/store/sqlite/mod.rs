//! SQLite: the suite, and what is particular to it.

mod harness;

use harness::fresh;

crate::conformance! {
    super::fresh;
    submit:
        what_was_submitted_comes_back_byte_for_byte,
        a_key_is_one_job_per_tenant,
        a_call_is_accepted_whole_or_not_at_all_and_harms_no_other,
        many_callers_at_once_are_all_answered_in_kind,
        a_commit_moves_the_changes;
    claim:
        a_claim_gives_what_the_worker_needs_and_a_growing_fence,
        priority_orders_and_waiting_ages_by_a_step_a_minute,
        lanes_share_what_there_is,
        a_turn_is_claimed_once_whoever_asks,
        a_worker_takes_only_its_queues,
        what_is_not_due_is_not_claimed_and_is_at_its_instant,
        a_lapsed_or_unknown_worker_claims_nothing,
        no_more_are_in_flight_than_may_be,
        an_unconfigured_scope_starts_at_four_and_grows_by_answers,
        what_is_given_back_unsent_keeps_its_place_and_leaves_no_record;
    complete:
        a_success_is_kept_whole_and_final,
        a_job_goes_on_turn_by_turn,
        a_requeue_waits_for_its_instant_and_counts,
        a_batch_is_of_all_kinds,
        a_turn_asked_to_cancel_is_never_put_back;
    workers:
        a_lapsed_worker_loses_its_turns_and_may_not_come_back,
        three_in_a_row_fail_the_job,
        an_execution_that_ends_breaks_the_row_and_the_last_execution_fails,
        a_cancelled_turn_of_a_lost_worker_ends_cancelled,
        a_retired_worker_is_gone_and_one_with_turns_is_rescued;
}
