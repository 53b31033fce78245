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
            lists:
                jobs_are_listed_newest_first_a_page_at_a_time,
                results_come_in_the_order_of_ending_and_a_cursor_misses_none,
                a_foreign_cursor_is_refused,
                failures_are_listed_and_counted,
                a_reset_kept_its_word_or_not,
                a_word_of_a_newer_release_is_shown_as_unknown_and_hides_no_neighbour;
            steer:
                a_waiting_job_ends_at_once_and_a_final_one_never_again,
                a_deadline_ends_a_waiting_job_with_the_last_failure_it_met,
                a_turn_past_its_deadline_is_not_claimed,
                retention_counts_from_the_end_and_goes_in_batches;
            workers:
                a_lapsed_worker_loses_its_turns_and_may_not_come_back,
                three_in_a_row_fail_the_job,
                an_execution_that_ends_breaks_the_row_and_the_last_execution_fails,
                a_cancelled_turn_of_a_lost_worker_ends_cancelled,
                a_turn_that_may_be_sent_once_is_not_put_back_once_it_may_have_been,
                a_retired_worker_is_gone_and_one_with_turns_is_rescued;
        }
    };
}
