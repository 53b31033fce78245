//! What every store must do. Functions over a [`Harness`]; `suite!` names them all, and each database runs it.

pub mod audit;
mod build;
pub mod by_hand;
pub mod claim;
pub mod complete;
mod contradictions;
pub mod holds;
pub mod lists;
pub mod messages;
pub mod schedules;
pub mod sequences;
pub mod standing;
pub mod steer;
pub mod submit;
pub mod workers;

pub use build::*;
pub use contradictions::CONTRADICTIONS;

use reprieve::store::Store;
use std::future::Future;

/// A fresh database on a clock that the test owns.
pub trait Harness: Sized + Send {
    type S: Store;
    fn store(&self) -> &Self::S;
    /// Writes as a newer release would: past this release's checks, in words that it does not know.
    fn write_as_newer(&self, statement: &'static str) -> impl Future<Output = ()> + Send;
    /// What the database's rows contradict each other in: counters against the rows they count, at most one record an
    /// execution, at most one open hold a scope. Empty: nothing.
    fn contradictions(&self) -> impl Future<Output = Vec<String>> + Send;
}

/// Runs the suite on one database. `$open` is an async function that opens a fresh [`Harness`].
#[macro_export]
macro_rules! conformance {
    ($open:path; $($module:ident: $($test:ident),+ $(,)?;)+) => {
        $(mod $module {
            $(#[tokio::test]
            async fn $test() {
                let harness = $open().await;
                $crate::conformance::$module::$test(&harness).await;
                assert_eq!($crate::conformance::Harness::contradictions(&harness).await, Vec::<String>::new());
            })+
        })+
    };
}

/// The suite itself: every test's name, once for all databases.
#[macro_export]
macro_rules! suite {
    ($open:path) => {
        $crate::conformance! {
            $open;
            submit:
                what_was_submitted_comes_back_byte_for_byte,
                a_key_is_one_job_per_tenant,
                a_call_is_accepted_whole_or_not_at_all_and_harms_no_other,
                many_callers_at_once_are_all_answered_in_kind,
                a_commit_moves_the_changes,
                a_repeated_key_goes_before_a_repeated_retry,
                what_is_taken_over_stands_before_the_first_turn,
                a_job_is_retried_once;
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
                what_is_given_back_unsent_keeps_its_place_and_leaves_no_record,
                a_scope_that_a_worker_leaves_alone_is_left_to_others,
                a_paused_queue_gives_nothing_and_goes_on_where_it_was,
                the_probe_is_of_a_queue_that_runs,
                claims_are_counted_by_the_minute;
            complete:
                a_success_is_kept_whole_and_final,
                a_job_goes_on_turn_by_turn,
                a_requeue_waits_for_its_instant_and_counts,
                a_batch_is_of_all_kinds,
                a_turn_asked_to_cancel_is_never_put_back,
                a_job_that_was_told_something_goes_on,
                a_continuation_is_read_alone_and_messages_once_the_answer_is_whole;
            messages:
                messages_are_read_by_the_next_turn_in_the_order_posted,
                a_posting_under_a_key_is_done_once,
                nobody_reads_what_comes_too_late;
            holds:
                a_refusal_closes_its_scope_until_its_instant,
                an_allowance_closes_the_whole_account,
                one_probe_goes_and_its_answer_opens_a_ramp,
                a_refused_probe_dates_the_hold_again_and_is_barren,
                what_was_on_the_wire_extends_and_proves_nothing,
                the_longest_waiting_turn_in_hand_probes_first,
                a_turn_in_hand_that_does_not_ask_is_waited_for_a_second,
                a_probe_that_comes_to_nothing_gives_the_right_back,
                a_silent_probe_makes_room_for_one_more,
                a_permit_asked_for_again_is_checked_again,
                a_replaced_send_is_kept_once_with_its_evidence,
                a_release_lifts_at_once;
            by_hand:
                a_scope_is_closed_until_its_instant_and_left_by_one_probe,
                a_scope_closed_without_an_end_waits_for_a_release,
                a_probe_on_its_way_lifts_no_hold_that_was_dated_over_it,
                a_hold_is_dated_anew_by_hand_both_ways;
            lists:
                jobs_are_listed_newest_first_a_page_at_a_time,
                results_come_in_the_order_of_ending_and_a_cursor_misses_none,
                a_foreign_cursor_is_refused,
                failures_are_listed_and_counted,
                a_reset_kept_its_word_or_not,
                a_word_of_a_newer_release_is_shown_as_unknown_and_hides_no_neighbour,
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
                a_waiting_job_ends_at_once_and_a_final_one_never_again,
                a_deadline_ends_a_waiting_job_with_the_last_failure_it_met,
                a_turn_past_its_deadline_is_not_claimed,
                a_worker_that_went_is_no_failure_that_a_job_met,
                retention_counts_from_the_end_and_goes_in_batches,
                a_paused_job_waits_until_it_is_let_go_on,
                a_turn_paused_in_hand_finishes_and_goes_back_paused,
                a_requeue_ends_a_backoff_and_nothing_else,
                another_priority_is_another_place_in_line,
                an_ended_job_is_deleted_with_all_that_is_kept_of_it;
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
                a_lapsed_worker_loses_its_turns_and_may_not_come_back,
                three_in_a_row_fail_the_job,
                an_execution_that_ends_breaks_the_row_and_the_last_execution_fails,
                a_cancelled_turn_of_a_lost_worker_ends_cancelled,
                a_turn_that_may_be_sent_once_is_not_put_back_once_it_may_have_been,
                a_retired_worker_is_gone_and_one_with_turns_is_rescued,
                a_worker_that_is_no_more_is_remembered_for_a_day;
        }
    };
}
