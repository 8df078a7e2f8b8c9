//! Another wire: test cases over the simulator's wire instead of RTPS, and the
//! exemptions with their reasons.

use crate::harness::{Harness, TestTransport};

const COHERENT: &str = "the wire marks no coherent sets and no order of a group; it refuses such \
                        endpoints";
const PACED: &str = "flow controllers and the latency budget pace RTPS datagrams";
const BY_INSTANCE: &str = "the wire holds back a writer, not one of its instances";
const AT_THE_READER: &str = "content filters act at the reader only";

/// Test cases that run over RTPS only.
pub const EXEMPT: &[(&str, &str)] = &[
    ("a_coherent_set_is_visible_at_its_end_as_a_whole", COHERENT),
    ("a_dropped_subscription_does_not_block_its_group", COHERENT),
    (
        "a_full_history_drops_the_oldest_group_set_on_all_topics",
        COHERENT,
    ),
    ("a_full_history_drops_the_oldest_set_as_a_whole", COHERENT),
    ("a_group_set_is_complete_on_all_its_topics", COHERENT),
    ("a_group_shows_views_of_whole_sets", COHERENT),
    ("a_group_changes_partition_as_a_whole", COHERENT),
    ("a_late_joiner_gets_whole_sets_or_none", COHERENT),
    ("a_nested_coherent_set_ends_with_the_outer_one", COHERENT),
    (
        "a_publisher_dropped_within_a_set_leaves_at_its_end",
        COHERENT,
    ),
    ("a_reader_matched_within_a_set_gets_the_next_one", COHERENT),
    ("a_set_incomplete_on_one_topic_is_dropped_on_all", COHERENT),
    (
        "a_set_is_visible_on_all_topics_and_an_access_is_frozen",
        COHERENT,
    ),
    (
        "a_set_that_exceeds_the_history_is_dropped_whole_and_counted",
        COHERENT,
    ),
    (
        "a_silent_publisher_of_an_ordered_group_delays_no_reader",
        COHERENT,
    ),
    (
        "a_slow_keep_all_group_blocks_its_publishers_and_gets_every_set",
        COHERENT,
    ),
    (
        "a_slow_keep_all_reader_blocks_coherent_writers_and_gets_every_set",
        COHERENT,
    ),
    (
        "an_ordered_group_yields_samples_in_publishing_order_across_topics",
        COHERENT,
    ),
    ("coherent_sets_respect_ownership_per_instance", COHERENT),
    ("expired_samples_in_a_full_group_make_room", COHERENT),
    ("filtered_samples_do_not_make_a_set_incomplete", COHERENT),
    (
        "group_callbacks_run_in_order_and_see_complete_sets",
        COHERENT,
    ),
    ("instances_end_within_sets", COHERENT),
    (
        "incompatible_qos_names_the_policy_on_both_ends_for_every_policy",
        COHERENT,
    ),
    ("invalid_group_operations_are_errors", COHERENT),
    ("kept_coherent_sets_are_filtered_for_late_joiners", COHERENT),
    (
        "readers_without_coherent_access_get_samples_as_they_arrive",
        COHERENT,
    ),
    ("samples_that_expire_before_an_access_make_room", COHERENT),
    (
        "subscriptions_created_before_the_first_access_begin_together",
        COHERENT,
    ),
    ("the_order_of_a_group_holds_across_its_publishers", COHERENT),
    (
        "a_filtered_set_of_instances_is_complete_with_flow_control",
        COHERENT,
    ),
    (
        "an_asynchronous_publisher_keeps_the_flow_controllers_rate_and_loses_nothing",
        PACED,
    ),
    ("an_expired_message_is_not_sent", PACED),
    (
        "keep_last_sends_the_newest_when_the_flow_controller_is_too_slow",
        PACED,
    ),
    ("a_latency_budget_may_begin_and_end", PACED),
    (
        "an_instance_without_room_blocks_only_its_own_samples",
        BY_INSTANCE,
    ),
    ("an_unpublished_sample_creates_no_instance", BY_INSTANCE),
    ("filtered_out_samples_are_not_sent", AT_THE_READER),
];

/// Runs a test case over the wire, unless it is exempt.
pub fn run(name: &str, test_case: impl Fn(&Harness)) {
    if EXEMPT.iter().all(|(exempt, _)| *exempt != name) {
        test_case(&Harness::new(TestTransport::SimulatedWire));
    }
}
