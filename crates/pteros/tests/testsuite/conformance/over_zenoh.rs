//! Zenoh: test cases between two clients of a router, and the exemptions with their
//! reasons. `cargo xtask test --all` runs them, or
//! `cargo test -p pteros --features zenoh --test testsuite over_zenoh`.

use std::net::TcpListener;

use pteros::config::ZenohSettings;
use pteros_runtime::transport::OpenTransport;
use pteros_zenoh::Router;

use crate::conformance::exemptions::{self, Exemptions};
use crate::conformance::harness::{Harness, TestTransport};

const COHERENT: &str = "Zenoh has no coherent sets and no order of a group: such endpoints stay within their \
                        process";
const KEYED: &str = "Zenoh has no instances: keyed topics stay within their process";
const OWNER: &str = "Zenoh has no exclusive ownership: such endpoints stay within their process";
const STORED: &str = "TRANSIENT and PERSISTENT publishers stay within their process";
const PARTITION: &str = "Zenoh has no partitions: such endpoints stay within their process";
const MANUAL: &str =
    "nothing on Zenoh asserts manual liveliness: such subscriptions stay within their process";
const NAME: &str = "Zenoh has no names without the conventions of ROS";
const QOS: &str = "endpoints match whatever their QoS: Zenoh delivers by key alone";
const FIXED: &str =
    "a token says the QoS with which an endpoint was created, and no content filter";
const ACKS: &str =
    "Zenoh has no acknowledgements: a queue that is full at the reader stops no writer";
const PACED: &str = "flow controllers and the latency budget pace RTPS datagrams";
const HASH: &str = "a raw subscription that names no type hash has another key";
const COUNTS: &str = "a token is written once, and no count follows it";
const CACHE: &str = "the cache of Zenoh's publisher, which answers late joiners, knows no lifespan";
const AT_THE_READER: &str = "content filters act at the reader only";

/// Test cases that do not hold over Zenoh.
pub const EXEMPT: Exemptions = &[
    (
        KEYED,
        &[
            "an_asynchronous_publisher_disposes_of_its_instances_when_it_is_gone",
            "a_batch_of_instances_keeps_its_order_under_a_time_filter",
            "a_deadline_that_begins_holds_for_each_instance",
            "a_dropped_publisher_disposes_of_its_instances",
            "a_dynamic_publisher_of_xcdr2_is_filtered_by_instance",
            "a_keep_all_queue_is_bounded",
            "a_late_joiner_gets_instances_and_disposes_but_no_unregisters",
            "a_publisher_dropped_without_disposing_leaves_no_writers",
            "a_raw_reader_without_key_reader_gets_no_instance_ends",
            "a_subscription_rejects_instances_beyond_its_limit",
            "a_writer_that_loses_liveliness_ends_its_instances_until_it_returns",
            "an_instance_ends_when_the_last_of_its_writers_leaves_it",
            "an_instance_is_disposed_of_and_comes_back",
            "an_instance_that_is_unregistered_is_disposed_of_too",
            "an_instance_without_room_blocks_only_its_own_samples",
            "an_unpublished_sample_creates_no_instance",
            "dynamic_and_raw_endpoints_use_the_key",
            "each_instance_has_its_own_deadline",
            "each_instance_has_its_own_order_by_source",
            "each_instance_has_its_own_owner",
            "each_instance_has_its_own_time_filter",
            "instance_ends_are_queued_in_order_with_samples",
            "keep_last_keeps_the_last_of_each_instance",
            "purging_makes_room",
            "reader_data_lifecycle_may_change",
            "take_skips_instance_ends",
            "the_last_sample_of_an_instance_passes_the_time_filter_before_its_end",
            "untaken_samples_of_a_disposed_instance_are_purged",
            "untaken_samples_of_an_instance_without_writers_are_purged",
        ],
    ),
    (
        ACKS,
        &[
            "a_writer_blocks_at_most_max_blocking_time",
            "resource_limits_of_a_keyless_topic_block_writers",
        ],
    ),
    (COUNTS, &["undecodable_messages_are_counted_in_the_graph"]),
    (CACHE, &["an_expired_sample_is_not_kept_for_late_joiners"]),
    (COHERENT, exemptions::COHERENT),
    (
        FIXED,
        &[
            "a_deadline_may_begin_change_and_end",
            "a_filter_may_change_and_end",
            "a_lifespan_holds_from_the_next_sample_on",
            "changed_user_topic_and_group_data_are_in_the_graph",
        ],
    ),
    (
        HASH,
        &[
            "a_subscription_that_never_decodes_takes_any_version",
            "a_late_joiner_gets_kept_samples_in_its_delivery_form",
            "appendable_types_are_delimited",
            "samples_are_written_as_the_profile_says",
        ],
    ),
    (
        MANUAL,
        &[
            "a_manual_writer_loses_and_regains_liveliness",
            "a_writer_that_never_asserts_loses_liveliness",
            "manual_by_participant_one_writer_asserts_all",
        ],
    ),
    (NAME, &["a_topic_may_have_a_plain_dds_name"]),
    (
        OWNER,
        &[
            "a_strength_that_changes_changes_the_owner",
            "an_owner_that_misses_its_deadline_is_replaced_by_the_next",
            "an_owner_without_liveliness_is_replaced_by_the_next",
            "the_strongest_publisher_owns_the_topic_while_it_is_matched",
        ],
    ),
    (PACED, exemptions::PACED),
    (
        PARTITION,
        &[
            "a_group_changes_partition_as_a_whole",
            "a_publisher_that_changes_partition_is_unmatched_until_the_reader_follows",
            "a_reader_that_enters_a_partition_gets_kept_samples",
            "partitions_separate_endpoints_without_an_event",
            "user_topic_and_group_data_are_in_the_graph",
        ],
    ),
    (
        QOS,
        &[
            "a_policy_that_becomes_incompatible_is_reported_on_both_ends",
            "a_subscription_may_take_one_version_only",
            "incompatible_qos_names_the_policy_on_both_ends",
            "incompatible_qos_names_the_policy_on_both_ends_for_every_policy",
        ],
    ),
    (AT_THE_READER, exemptions::FILTERED_BY_WRITERS),
    (
        STORED,
        &[
            "a_full_store_reports_an_event_and_live_traffic_continues",
            "a_reader_does_not_get_stored_samples_twice",
            "a_restarted_publisher_sends_stored_samples_before_new_ones",
            "durability_service_limits_the_store",
            "expired_samples_in_the_store_are_not_sent",
            "instances_outlive_their_publisher_until_they_are_disposed_of",
            "readers_get_samples_according_to_their_durability",
            "stored_instances_are_filtered_for_late_joiners",
        ],
    ),
];

/// A router at a port of its own, and what opens a session that reaches others through
/// it alone.
pub fn router() -> (Router, OpenTransport) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoints = format!("[\"tcp/{}\"]", free.local_addr().unwrap());
    drop(free);
    let settings = |overrides: &[(&str, &str)]| ZenohSettings {
        overrides: overrides
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        router_check_attempts: Some(20),
        ..ZenohSettings::default()
    };
    let router = Router::start(&settings(&[("listen/endpoints", &endpoints)])).unwrap();
    let session = settings(&[
        ("mode", "\"client\""),
        ("connect/endpoints", &endpoints),
        ("listen/endpoints", "[]"),
    ]);
    (router, pteros_zenoh::transport(session))
}

/// Runs a test case over Zenoh, unless it is exempt.
pub fn run(name: &str, test_case: impl Fn(&Harness)) {
    if !exemptions::is_exempt(EXEMPT, name) {
        test_case(&Harness::new(TestTransport::Zenoh));
    }
}
