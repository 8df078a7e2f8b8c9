//! What holds for a publisher and a subscription holds whatever the path
//! between them: each story is played within a process, where values are shared and
//! where they are not, over UDP, through shared memory, and in simulated time over a network that is perfect and several that are
//! not (`storms.rs` names the stories that those cannot play).
#![allow(
    clippy::disallowed_methods,
    reason = "two ends that block are two threads"
)]

mod as_bytes;
mod coherent;
mod content_filter;
mod dds_names;
mod durability;
mod events;
mod flow;
mod in_place;
mod instance_policies;
mod instances;
mod mixtures;
mod pace;
mod policies;
mod representation;
mod samples;
mod services;
mod set_qos;
mod stage;
mod storms;
mod subscription_groups;

use stage::{Stage, Way};

macro_rules! on_every_path {
    ($($module:ident::$story:ident),* $(,)?) => {
        /// Their names.
        const STORIES: &[&str] = &[$(stringify!($story)),*];

        $(
        mod $story {
            use super::*;

            #[test]
            fn within_a_process() {
                $module::$story(&Stage::new(Way::Local));
            }

            #[test]
            fn within_a_process_as_bytes() {
                $module::$story(&Stage::as_bytes());
            }

            #[test]
            fn over_udp() {
                $module::$story(&Stage::new(Way::Udp));
            }

            #[test]
            fn through_shared_memory() {
                $module::$story(&Stage::new(Way::SharedMemory));
            }

            #[test]
            fn in_simulated_time() {
                $module::$story(&Stage::new(Way::Sim));
            }

            #[test]
            fn through_a_storm() {
                storms::play(stringify!($story), $module::$story);
            }
        }
    )*};
}

on_every_path!(
    durability::a_restarted_publisher_serves_what_was_stored_before_what_is_new,
    durability::who_had_what_was_stored_does_not_get_it_again,
    durability::readers_get_as_much_as_their_durability_asks_for,
    durability::the_durability_service_says_what_is_stored,
    durability::what_expired_in_the_store_is_not_served,
    durability::a_full_store_tells_and_live_traffic_goes_on,
    durability::instances_outlive_their_publisher_until_they_are_disposed_of,
    durability::a_store_in_use_or_of_another_type_is_a_clear_error,
    events::matches_are_counted_up_and_down,
    events::qos_that_does_not_fit_names_the_policy_on_both_ends,
    events::another_type_is_told_to_both_ends,
    events::partitions_keep_endpoints_apart_in_silence,
    events::a_missed_deadline_is_counted_on_both_ends,
    events::a_silent_manual_writer_is_noticed_and_welcomed_back,
    events::a_writer_never_heard_of_loses_its_lease,
    events::one_writer_manual_by_participant_speaks_for_all,
    events::automatic_liveliness_lasts_as_long_as_the_process,
    services::every_call_gets_the_answer_to_its_request,
    services::each_client_gets_its_own_answers,
    services::the_first_answer_of_a_server_just_started_is_not_lost,
    services::a_call_that_nobody_serves_says_so,
    services::an_answer_may_come_later_and_from_any_thread,
    services::an_answer_that_nobody_waits_for_any_more_is_counted,
    services::a_call_ends_when_its_server_goes_away,
    services::of_two_servers_the_first_to_answer_is_heard,
    services::a_callback_is_handed_its_answer_by_the_executor,
    services::a_call_is_a_future_that_the_executor_completes,
    samples::a_sample_says_where_and_when_it_was_published,
    samples::keep_last_keeps_the_last,
    samples::a_late_joiner_gets_the_last_samples_in_order,
    samples::a_volatile_late_joiner_gets_only_news,
    samples::a_late_joiner_gets_what_was_kept_in_the_form_it_reads,
    samples::an_expired_sample_is_not_handed_over,
    samples::an_expired_sample_is_not_kept_for_late_joiners,
    content_filter::only_what_passes_is_received,
    content_filter::what_nobody_wants_is_not_sent,
    content_filter::a_filter_may_change_and_end,
    content_filter::a_late_joiner_gets_the_last_that_pass,
    content_filter::a_filtered_reader_holds_nobody_up,
    content_filter::what_does_not_pass_does_not_meet_the_deadline,
    content_filter::a_wrong_filter_is_refused_with_its_place,
    content_filter::a_dynamic_subscription_filters_too,
    flow::a_slow_reader_gets_all_that_keep_all_wrote,
    flow::a_writer_goes_on_as_soon_as_a_late_joiner_has_caught_up,
    flow::a_writer_waits_no_longer_than_it_was_told,
    flow::a_best_effort_writer_never_waits,
    flow::a_keep_last_writer_never_waits,
    pace::an_asynchronous_publisher_keeps_its_pace_and_loses_nothing,
    pace::an_asynchronous_keep_all_publisher_waits_for_its_turn,
    pace::the_newest_message_is_sent_where_the_pace_is_too_slow_for_all,
    pace::an_expired_message_is_not_sent,
    pace::a_flow_controller_that_does_not_exist_is_named,
    pace::a_flush_ends_the_latency_budget,
    pace::waiting_for_acknowledgements_ends_the_latency_budget,
    pace::a_publisher_that_goes_holds_nothing_back,
    pace::small_messages_share_datagrams_within_the_latency_budget,
    policies::the_strongest_publisher_is_heard_while_it_is_there,
    policies::a_silent_owner_is_followed_by_the_next,
    policies::an_owner_that_misses_its_deadline_is_followed_by_the_next,
    policies::samples_are_taken_in_the_order_of_their_source_times,
    policies::source_times_never_run_back_at_one_publisher,
    policies::samples_keep_their_distance_and_the_last_arrives,
    policies::best_effort_samples_keep_their_distance,
    policies::limits_of_the_one_instance_hold_writers_back,
    policies::free_data_is_read_in_the_graph,
    instances::an_instance_is_disposed_of_and_comes_back,
    instances::what_an_instance_is_asked_without_reason_is_refused,
    instances::ends_wait_among_the_samples_in_order,
    instances::an_instance_that_is_unregistered_is_disposed_of_too,
    instances::an_instance_ends_when_the_last_of_its_writers_leaves_it,
    instances::a_dropped_publisher_disposes_of_its_instances,
    instances::a_publisher_dropped_without_disposing_leaves_no_writers,
    instances::an_asynchronous_publisher_disposes_of_its_instances_when_it_is_gone,
    instances::take_passes_over_ends,
    instances::a_queue_that_keeps_all_has_an_end,
    instance_policies::keep_last_keeps_the_last_of_each_instance,
    instance_policies::an_instance_without_room_holds_back_its_own_samples_alone,
    instance_policies::a_subscription_rejects_instances_beyond_its_limit,
    instance_policies::a_publisher_writes_no_more_instances_than_its_limit,
    instance_policies::what_was_not_published_is_no_instance,
    instance_policies::each_instance_has_its_own_deadline,
    instance_policies::each_instance_has_its_own_time_filter,
    instance_policies::the_last_sample_of_an_instance_passes_the_time_filter_before_its_end,
    instance_policies::each_instance_has_its_own_owner,
    instance_policies::each_instance_has_its_own_order_by_source,
    instance_policies::a_late_joiner_gets_each_instance_and_what_ended_but_nothing_that_was_left,
    instance_policies::what_was_not_taken_of_a_disposed_instance_is_purged,
    instance_policies::what_is_purged_makes_room,
    instance_policies::what_was_not_taken_of_an_instance_without_writers_is_purged,
    instance_policies::a_silent_writer_leaves_its_instances_and_brings_them_back,
    instance_policies::dynamic_and_raw_ends_know_the_key,
    policies::every_offer_that_falls_short_is_named_to_both_ends,
    coherent::a_set_is_seen_after_its_end_and_then_at_once,
    coherent::a_set_begun_within_another_ends_with_the_outer_one,
    coherent::a_set_of_a_group_is_whole_over_all_its_topics,
    coherent::who_asks_for_no_coherence_gets_samples_as_they_come,
    coherent::a_set_that_the_queue_cannot_hold_is_dropped_whole_and_counted,
    coherent::when_sets_need_room_the_oldest_goes_as_a_whole,
    coherent::a_late_joiner_gets_whole_sets_or_none,
    coherent::who_comes_within_a_set_sees_the_next_one,
    coherent::a_publisher_dropped_within_a_set_leaves_after_it,
    coherent::a_slow_reader_holds_coherent_writers_back_and_gets_every_set,
    coherent::what_a_group_cannot_do_is_said,
    dds_names::a_topic_may_have_the_name_that_dds_gives_it,
    representation::samples_are_written_as_the_profile_says,
    representation::appendable_types_are_delimited,
    representation::a_subscription_may_take_one_version_only,
    coherent::the_order_of_a_group_holds_across_its_publishers,
    coherent::a_silent_publisher_of_an_ordered_group_holds_nobody_up,
    subscription_groups::a_set_is_seen_on_all_topics_and_an_access_shows_nothing_that_comes_later,
    subscription_groups::a_set_spoiled_on_one_topic_is_withheld_on_all,
    subscription_groups::when_sets_of_a_group_need_room_the_oldest_goes_on_all_topics,
    subscription_groups::a_group_yields_what_was_published_in_its_order_over_all_topics,
    subscription_groups::callbacks_of_a_group_run_in_its_order_and_see_sets_whole,
    subscription_groups::subscriptions_made_before_the_first_look_begin_together,
    subscription_groups::a_subscription_that_leaves_a_group_is_missed_by_nobody,
    subscription_groups::a_slow_group_holds_its_publishers_back_and_gets_every_set,
    subscription_groups::what_expires_in_a_full_group_makes_room,
    subscription_groups::what_an_access_finds_expired_makes_room,
    subscription_groups::what_filters_keep_back_of_a_set_does_not_spoil_it,
    subscription_groups::instances_end_within_sets,
    subscription_groups::a_group_of_plain_presentation_is_subscriptions_side_by_side,
    set_qos::who_moves_to_another_partition_is_parted_and_may_be_followed,
    set_qos::who_moves_in_gets_what_is_kept,
    set_qos::a_policy_that_no_longer_fits_is_told_to_both_ends,
    set_qos::a_deadline_may_begin_change_and_end,
    set_qos::a_deadline_that_begins_holds_for_each_instance,
    set_qos::a_strength_that_changes_changes_the_owner,
    set_qos::free_data_that_changes_is_read_in_the_graph,
    set_qos::a_lifespan_holds_from_the_next_sample_on,
    set_qos::a_time_filter_may_begin_and_end,
    set_qos::a_latency_budget_may_begin_and_end,
    set_qos::what_becomes_of_ended_instances_may_change,
    set_qos::what_cannot_change_is_named_and_nothing_changes,
    set_qos::a_group_moves_as_a_whole,
    in_place::a_view_shows_what_a_copy_has,
    in_place::what_is_loaned_reaches_views_and_copies,
    in_place::a_message_of_fixed_layout_is_written_where_it_is_read,
    in_place::wide_numbers_and_messages_are_lent_where_they_are_aligned,
    in_place::fields_behind_the_loaned_sequence_are_sent_too,
    in_place::a_loan_is_kept_for_late_joiners,
    in_place::a_kept_view_is_untouched_by_what_comes_after,
    in_place::a_loan_may_be_dropped_and_may_outlive_its_publisher,
    in_place::a_loan_that_cannot_be_is_a_clear_error,
    in_place::a_callback_reads_in_place,
    in_place::loans_and_views_keep_to_the_representation_of_the_profile,
    in_place::a_group_shows_views_of_whole_sets,
    mixtures::who_reads_no_keys_hears_no_ends,
    mixtures::a_filtered_set_of_instances_is_whole_at_an_asynchronous_pace,
    mixtures::nobody_waits_for_room_where_a_message_is_not_wanted,
    mixtures::stored_instances_are_filtered_for_late_joiners,
    mixtures::the_owner_of_an_instance_is_heard_in_whole_sets,
    mixtures::a_dynamic_publisher_of_xcdr2_is_filtered_by_instance,
    mixtures::a_batch_of_instances_keeps_its_order_under_a_time_filter,
    mixtures::kept_sets_are_filtered_for_late_joiners,
);
