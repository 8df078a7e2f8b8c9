//! Lossy network: test cases over a simulated network that loses, duplicates and
//! reorders datagrams, and the exemptions with their reasons.

use crate::conformance::exemptions::{self, Exemptions};
use crate::conformance::harness::{Harness, TestTransport};

/// Seeds of the networks.
const SEEDS: std::ops::Range<u64> = 1..4;

const LOSS: &str = "its messages are best effort, or its last ones are of a publisher that is \
                    gone: what is lost stays lost";
const OVERWRITTEN: &str = "what KEEP_LAST overwrites before it is repaired never arrives, or \
                           arrives between two looks";
const OVERTAKEN: &str = "word of a match, or of its end, is overtaken by what is published: a \
                         volatile reader counts from the first heartbeat that it hears";
const BATCHED: &str = "counts what one datagram brings to several";

/// Test cases that run over all other transports only.
pub const EXEMPT: Exemptions = &[
    (
        LOSS,
        &[
            "a_best_effort_writer_never_waits",
            "time_based_filter_applies_to_best_effort",
            "each_instance_has_its_own_time_filter",
            "an_asynchronous_publisher_disposes_of_its_instances_when_it_is_gone",
            "a_publisher_dropped_within_a_set_leaves_at_its_end",
            "a_dropped_publisher_sends_its_batch",
        ],
    ),
    (
        OVERWRITTEN,
        &[
            "a_group_without_group_access_has_independent_subscriptions",
            "keep_last_keeps_the_last_of_each_instance",
            "a_full_history_drops_the_oldest_set_as_a_whole",
        ],
    ),
    (
        OVERTAKEN,
        &[
            "a_keep_last_writer_never_waits",
            "a_reader_that_enters_a_partition_gets_kept_samples",
            "a_publisher_that_changes_partition_is_unmatched_until_the_reader_follows",
        ],
    ),
    (
        BATCHED,
        &[
            "only_samples_that_pass_the_filter_are_received",
            "small_messages_share_datagrams_within_the_latency_budget",
        ],
    ),
];

/// Runs a test case over each lossy network, unless it is exempt.
pub fn run(name: &str, test_case: impl Fn(&Harness)) {
    if exemptions::is_exempt(EXEMPT, name) {
        return;
    }
    for seed in SEEDS {
        test_case(&Harness::new(TestTransport::SimulatedLossy(seed)));
    }
}
