//! Conformance: what holds for a publisher and a subscription holds for every
//! transport.
//!
//! Each test case runs intra-process (with and without shared values), over UDP,
//! through shared memory, and in simulated time over a perfect network and several
//! lossy ones, over a second transport instead of RTPS, and, with the feature `zenoh`, over
//! Zenoh. `lossy_network.rs`, `other_transport.rs` and `over_zenoh.rs` list the test cases
//! that are exempt.
#![allow(clippy::disallowed_methods, reason = "ends that block are threads")]

mod back_pressure;
mod coherent;
mod content_filter;
mod dds_names;
mod durability;
mod events;
mod exemptions;
mod flow_control;
mod harness;
mod in_place;
mod instance_policies;
mod instances;
mod lossy_network;
mod other_transport;
#[cfg(feature = "zenoh")]
mod over_zenoh;
mod policies;
mod policy_combinations;
mod representation;
mod samples;
mod serialize_only;
mod services;
mod set_qos;
mod subscription_groups;
mod undecodable;

use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::thread;

use exemptions::Exemptions;
use harness::{Harness, TestTransport};

type TestCase = fn(&Harness);

macro_rules! on_every_transport {
    ($($module:ident::$test_case:ident),* $(,)?) => {
        /// Names and functions.
        const TEST_CASES: &[(&str, TestCase)] =
            &[$((stringify!($test_case), $module::$test_case)),*];

        $(
        mod $test_case {
            use super::*;

            #[test]
            fn intra_process() {
                $module::$test_case(&Harness::new(TestTransport::IntraProcess));
            }

            #[test]
            fn intra_process_serialized() {
                $module::$test_case(&Harness::serialize_only());
            }

            #[test]
            fn over_udp() {
                $module::$test_case(&Harness::new(TestTransport::Udp));
            }

            #[test]
            fn over_shared_memory() {
                $module::$test_case(&Harness::new(TestTransport::SharedMemory));
            }

            #[test]
            fn in_simulated_time() {
                $module::$test_case(&Harness::new(TestTransport::Simulated));
            }

            #[test]
            fn over_another_transport() {
                other_transport::run(stringify!($test_case), $module::$test_case);
            }

            #[cfg(feature = "zenoh")]
            #[test]
            fn over_zenoh() {
                crate::conformance::over_zenoh::run(stringify!($test_case), $module::$test_case);
            }

            #[test]
            fn over_a_lossy_network() {
                lossy_network::run(stringify!($test_case), $module::$test_case);
            }
        }
    )*};
}

on_every_transport!(
    durability::a_restarted_publisher_sends_stored_samples_before_new_ones,
    durability::a_reader_does_not_get_stored_samples_twice,
    durability::readers_get_samples_according_to_their_durability,
    durability::durability_service_limits_the_store,
    durability::expired_samples_in_the_store_are_not_sent,
    durability::a_full_store_reports_an_event_and_live_traffic_continues,
    durability::instances_outlive_their_publisher_until_they_are_disposed_of,
    durability::a_store_in_use_or_of_another_type_is_a_clear_error,
    events::matches_are_counted_up_and_down,
    events::incompatible_qos_names_the_policy_on_both_ends,
    events::a_type_mismatch_is_reported_on_both_ends,
    events::partitions_separate_endpoints_without_an_event,
    events::a_missed_deadline_is_counted_on_both_ends,
    events::a_manual_writer_loses_and_regains_liveliness,
    events::a_writer_that_never_asserts_loses_liveliness,
    events::manual_by_participant_one_writer_asserts_all,
    events::automatic_liveliness_lasts_as_long_as_the_process,
    services::every_call_gets_the_response_to_its_request,
    services::each_client_gets_its_own_responses,
    services::the_first_response_of_a_server_just_started_is_not_lost,
    services::a_call_without_a_server_fails_with_no_server,
    services::a_response_may_be_sent_later_and_from_any_thread,
    services::a_response_after_its_call_ended_is_counted,
    services::a_call_fails_when_its_server_leaves,
    services::the_first_response_of_two_servers_counts,
    services::the_executor_runs_the_response_callback,
    services::a_call_is_a_future_that_the_executor_completes,
    samples::sample_info_has_publisher_and_timestamps,
    samples::keep_last_keeps_the_last,
    samples::a_late_joiner_gets_the_last_samples_in_order,
    samples::a_volatile_late_joiner_gets_only_new_samples,
    samples::a_late_joiner_gets_kept_samples_in_its_delivery_form,
    samples::an_expired_sample_is_not_delivered,
    samples::an_expired_sample_is_not_kept_for_late_joiners,
    content_filter::only_samples_that_pass_the_filter_are_received,
    content_filter::filtered_out_samples_are_not_sent,
    content_filter::a_filter_may_change_and_end,
    content_filter::a_late_joiner_gets_the_last_samples_that_pass,
    content_filter::a_filtered_reader_does_not_block_writers,
    content_filter::a_filtered_out_sample_does_not_meet_the_deadline,
    content_filter::an_invalid_filter_is_refused_with_its_position,
    content_filter::a_dynamic_subscription_filters_too,
    back_pressure::a_slow_reader_gets_every_keep_all_sample,
    back_pressure::a_blocked_writer_continues_once_a_late_joiner_has_caught_up,
    back_pressure::a_writer_blocks_at_most_max_blocking_time,
    back_pressure::a_best_effort_writer_never_waits,
    back_pressure::a_keep_last_writer_never_waits,
    flow_control::an_asynchronous_publisher_keeps_the_flow_controllers_rate_and_loses_nothing,
    flow_control::an_asynchronous_keep_all_publisher_blocks_until_it_may_send,
    flow_control::keep_last_sends_the_newest_when_the_flow_controller_is_too_slow,
    flow_control::an_expired_message_is_not_sent,
    flow_control::a_flow_controller_that_does_not_exist_is_named,
    flow_control::a_flush_ends_the_latency_budget,
    flow_control::waiting_for_acknowledgements_ends_the_latency_budget,
    flow_control::a_dropped_publisher_sends_its_batch,
    flow_control::small_messages_share_datagrams_within_the_latency_budget,
    policies::the_strongest_publisher_owns_the_topic_while_it_is_matched,
    policies::an_owner_without_liveliness_is_replaced_by_the_next,
    policies::an_owner_that_misses_its_deadline_is_replaced_by_the_next,
    policies::samples_are_taken_in_the_order_of_their_source_times,
    policies::source_times_never_run_back_at_one_publisher,
    policies::time_based_filter_keeps_the_separation_and_delivers_the_last,
    policies::time_based_filter_applies_to_best_effort,
    policies::resource_limits_of_a_keyless_topic_block_writers,
    policies::user_topic_and_group_data_are_in_the_graph,
    instances::an_instance_is_disposed_of_and_comes_back,
    instances::invalid_instance_operations_are_refused,
    instances::instance_ends_are_queued_in_order_with_samples,
    instances::an_instance_that_is_unregistered_is_disposed_of_too,
    instances::an_instance_ends_when_the_last_of_its_writers_leaves_it,
    instances::a_dropped_publisher_disposes_of_its_instances,
    instances::a_publisher_dropped_without_disposing_leaves_no_writers,
    instances::an_asynchronous_publisher_disposes_of_its_instances_when_it_is_gone,
    instances::take_skips_instance_ends,
    instances::a_keep_all_queue_is_bounded,
    instance_policies::keep_last_keeps_the_last_of_each_instance,
    instance_policies::an_instance_without_room_blocks_only_its_own_samples,
    instance_policies::a_subscription_rejects_instances_beyond_its_limit,
    instance_policies::a_publisher_writes_no_more_instances_than_its_limit,
    instance_policies::an_unpublished_sample_creates_no_instance,
    instance_policies::each_instance_has_its_own_deadline,
    instance_policies::each_instance_has_its_own_time_filter,
    instance_policies::the_last_sample_of_an_instance_passes_the_time_filter_before_its_end,
    instance_policies::each_instance_has_its_own_owner,
    instance_policies::each_instance_has_its_own_order_by_source,
    instance_policies::a_late_joiner_gets_instances_and_disposes_but_no_unregisters,
    instance_policies::untaken_samples_of_a_disposed_instance_are_purged,
    instance_policies::purging_makes_room,
    instance_policies::untaken_samples_of_an_instance_without_writers_are_purged,
    instance_policies::a_writer_that_loses_liveliness_ends_its_instances_until_it_returns,
    instance_policies::dynamic_and_raw_endpoints_use_the_key,
    policies::incompatible_qos_names_the_policy_on_both_ends_for_every_policy,
    coherent::a_coherent_set_is_visible_at_its_end_as_a_whole,
    coherent::a_nested_coherent_set_ends_with_the_outer_one,
    coherent::a_group_set_is_complete_on_all_its_topics,
    coherent::readers_without_coherent_access_get_samples_as_they_arrive,
    coherent::a_set_that_exceeds_the_history_is_dropped_whole_and_counted,
    coherent::a_full_history_drops_the_oldest_set_as_a_whole,
    coherent::a_late_joiner_gets_whole_sets_or_none,
    coherent::a_reader_matched_within_a_set_gets_the_next_one,
    coherent::a_publisher_dropped_within_a_set_leaves_at_its_end,
    coherent::a_slow_keep_all_reader_blocks_coherent_writers_and_gets_every_set,
    coherent::invalid_group_operations_are_errors,
    dds_names::a_topic_may_have_a_plain_dds_name,
    representation::samples_are_written_as_the_profile_says,
    representation::appendable_types_are_delimited,
    representation::a_subscription_may_take_one_version_only,
    coherent::the_order_of_a_group_holds_across_its_publishers,
    coherent::a_silent_publisher_of_an_ordered_group_delays_no_reader,
    subscription_groups::a_set_is_visible_on_all_topics_and_an_access_is_frozen,
    subscription_groups::a_set_incomplete_on_one_topic_is_dropped_on_all,
    subscription_groups::a_full_history_drops_the_oldest_group_set_on_all_topics,
    subscription_groups::an_ordered_group_yields_samples_in_publishing_order_across_topics,
    subscription_groups::group_callbacks_run_in_order_and_see_complete_sets,
    subscription_groups::subscriptions_created_before_the_first_access_begin_together,
    subscription_groups::a_dropped_subscription_does_not_block_its_group,
    subscription_groups::a_slow_keep_all_group_blocks_its_publishers_and_gets_every_set,
    subscription_groups::expired_samples_in_a_full_group_make_room,
    subscription_groups::samples_that_expire_before_an_access_make_room,
    subscription_groups::filtered_samples_do_not_make_a_set_incomplete,
    subscription_groups::instances_end_within_sets,
    subscription_groups::a_group_without_group_access_has_independent_subscriptions,
    set_qos::a_publisher_that_changes_partition_is_unmatched_until_the_reader_follows,
    set_qos::a_reader_that_enters_a_partition_gets_kept_samples,
    set_qos::a_policy_that_becomes_incompatible_is_reported_on_both_ends,
    set_qos::a_deadline_may_begin_change_and_end,
    set_qos::a_deadline_that_begins_holds_for_each_instance,
    set_qos::a_strength_that_changes_changes_the_owner,
    set_qos::changed_user_topic_and_group_data_are_in_the_graph,
    set_qos::a_lifespan_holds_from_the_next_sample_on,
    set_qos::a_time_filter_may_begin_and_end,
    set_qos::a_latency_budget_may_begin_and_end,
    set_qos::reader_data_lifecycle_may_change,
    set_qos::immutable_policies_are_named_and_nothing_changes,
    set_qos::a_group_changes_partition_as_a_whole,
    undecodable::a_message_that_does_not_decode_is_dropped_and_counted,
    undecodable::undecodable_messages_are_counted_in_the_graph,
    undecodable::every_form_of_subscription_survives_what_does_not_decode,
    undecodable::bounds_and_booleans_are_judged_on_arrival,
    events::another_version_of_the_type_is_reported_on_both_ends,
    events::a_subscription_that_never_decodes_takes_any_version,
    in_place::a_view_shows_what_a_copy_has,
    in_place::loaned_messages_reach_views_and_typed_subscriptions,
    in_place::a_message_of_fixed_layout_is_written_where_it_is_read,
    in_place::wide_numbers_and_messages_are_borrowed_where_aligned,
    in_place::fields_behind_the_loaned_sequence_are_sent_too,
    in_place::a_loan_is_kept_for_late_joiners,
    in_place::a_kept_view_is_not_overwritten_by_later_messages,
    in_place::a_loan_may_be_dropped_and_may_outlive_its_publisher,
    in_place::an_invalid_loan_is_a_clear_error,
    in_place::a_callback_reads_in_place,
    in_place::loans_and_views_keep_to_the_representation_of_the_profile,
    in_place::a_group_shows_views_of_whole_sets,
    policy_combinations::a_raw_reader_without_key_reader_gets_no_instance_ends,
    policy_combinations::a_filtered_set_of_instances_is_complete_with_flow_control,
    policy_combinations::a_filtered_out_message_needs_no_room,
    policy_combinations::stored_instances_are_filtered_for_late_joiners,
    policy_combinations::coherent_sets_respect_ownership_per_instance,
    policy_combinations::a_dynamic_publisher_of_xcdr2_is_filtered_by_instance,
    policy_combinations::a_batch_of_instances_keeps_its_order_under_a_time_filter,
    policy_combinations::kept_coherent_sets_are_filtered_for_late_joiners,
);

/// Each exemption names a test case, once and with a reason.
#[test]
fn exemptions_name_test_cases() {
    for exempt in [
        lossy_network::EXEMPT,
        other_transport::EXEMPT,
        #[cfg(feature = "zenoh")]
        over_zenoh::EXEMPT,
    ] {
        assert!(exempt.iter().all(|(reason, _)| !reason.is_empty()));
        let mut before = BTreeSet::new();
        for name in exemptions::names(exempt) {
            assert!(test_case(name).is_some(), "{name} is no test case");
            assert!(before.insert(name), "{name} twice");
        }
    }
}

fn test_case(name: &str) -> Option<TestCase> {
    let mut all = TEST_CASES.iter();
    all.find(|(known, _)| *known == name).map(|(_, run)| *run)
}

/// Runs the exempt test cases, so many at a time. Returns those that pass: their
/// exemption is stale.
fn passing(exempt: Exemptions, transport: TestTransport, at_once: usize) -> Vec<&'static str> {
    let left = Mutex::new(exemptions::names(exempt));
    let passed = Mutex::new(Vec::new());
    let work = || {
        loop {
            let next = left.lock().unwrap().next();
            let Some(name) = next else { return };
            let run = test_case(name).unwrap();
            let outcome = catch_unwind(|| run(&Harness::new(transport)));
            if outcome.is_ok() {
                passed.lock().unwrap().push(name);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(work);
        }
    });
    passed.into_inner().unwrap()
}

#[test]
fn no_exemption_of_the_other_transport_is_stale() {
    let passed = passing(other_transport::EXEMPT, TestTransport::SimulatedSamples, 2);
    assert!(passed.is_empty(), "{passed:?}");
}

#[cfg(feature = "zenoh")]
#[test]
#[ignore = "waits for what does not come"]
fn no_exemption_of_zenoh_is_stale() {
    let passed = passing(over_zenoh::EXEMPT, TestTransport::Zenoh, 16);
    assert!(passed.is_empty(), "{passed:?}");
}
