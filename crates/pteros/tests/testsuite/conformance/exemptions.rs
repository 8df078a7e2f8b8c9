//! Exemptions: test cases that a transport does not run, by reason, and the groups that
//! several transports exempt.

/// Reasons, each with the names of its test cases.
pub type Exemptions = &'static [(&'static str, &'static [&'static str])];

/// Of coherent sets, and of the order of a group.
pub const COHERENT: &[&str] = &[
    "a_coherent_set_is_visible_at_its_end_as_a_whole",
    "a_dropped_subscription_does_not_block_its_group",
    "a_filtered_set_of_instances_is_complete_with_flow_control",
    "a_full_history_drops_the_oldest_group_set_on_all_topics",
    "a_full_history_drops_the_oldest_set_as_a_whole",
    "a_group_set_is_complete_on_all_its_topics",
    "a_group_shows_views_of_whole_sets",
    "a_late_joiner_gets_whole_sets_or_none",
    "a_nested_coherent_set_ends_with_the_outer_one",
    "a_publisher_dropped_within_a_set_leaves_at_its_end",
    "a_reader_matched_within_a_set_gets_the_next_one",
    "a_set_incomplete_on_one_topic_is_dropped_on_all",
    "a_set_is_visible_on_all_topics_and_an_access_is_frozen",
    "a_set_that_exceeds_the_history_is_dropped_whole_and_counted",
    "a_silent_publisher_of_an_ordered_group_delays_no_reader",
    "a_slow_keep_all_group_blocks_its_publishers_and_gets_every_set",
    "a_slow_keep_all_reader_blocks_coherent_writers_and_gets_every_set",
    "an_ordered_group_yields_samples_in_publishing_order_across_topics",
    "coherent_sets_respect_ownership_per_instance",
    "expired_samples_in_a_full_group_make_room",
    "filtered_samples_do_not_make_a_set_incomplete",
    "group_callbacks_run_in_order_and_see_complete_sets",
    "instances_end_within_sets",
    "invalid_group_operations_are_errors",
    "kept_coherent_sets_are_filtered_for_late_joiners",
    "readers_without_coherent_access_get_samples_as_they_arrive",
    "samples_that_expire_before_an_access_make_room",
    "subscriptions_created_before_the_first_access_begin_together",
    "the_order_of_a_group_holds_across_its_publishers",
];

/// Of flow controllers and the latency budget.
pub const PACED: &[&str] = &[
    "a_latency_budget_may_begin_and_end",
    "an_asynchronous_publisher_keeps_the_flow_controllers_rate_and_loses_nothing",
    "an_expired_message_is_not_sent",
    "keep_last_sends_the_newest_when_the_flow_controller_is_too_slow",
];

/// Of content filters that a writer applies.
pub const FILTERED_BY_WRITERS: &[&str] = &["filtered_out_samples_are_not_sent"];

/// Whether a test case is exempt.
pub fn is_exempt(exemptions: Exemptions, name: &str) -> bool {
    names(exemptions).any(|exempt| exempt == name)
}

/// The test cases that are exempt.
pub fn names(exemptions: Exemptions) -> impl Iterator<Item = &'static str> {
    exemptions
        .iter()
        .flat_map(|(_, names)| names.iter().copied())
}
