//! Another transport: test cases over the simulator's transport instead of RTPS, and the
//! exemptions with their reasons.

use crate::conformance::exemptions::{self, Exemptions};
use crate::conformance::harness::{Harness, TestTransport};

const COHERENT: &str = "the transport marks no coherent sets and no order of a group; it refuses such \
                        endpoints";
const PACED: &str = "flow controllers and the latency budget pace RTPS datagrams";
const BY_INSTANCE: &str = "the transport holds back a writer, not one of its instances";
const AT_THE_READER: &str = "content filters act at the reader only";

/// Test cases that run over RTPS only.
pub const EXEMPT: Exemptions = &[
    (COHERENT, exemptions::COHERENT),
    (
        COHERENT,
        &[
            "a_group_changes_partition_as_a_whole",
            "incompatible_qos_names_the_policy_on_both_ends_for_every_policy",
        ],
    ),
    (PACED, exemptions::PACED),
    (
        BY_INSTANCE,
        &[
            "an_instance_without_room_blocks_only_its_own_samples",
            "an_unpublished_sample_creates_no_instance",
        ],
    ),
    (AT_THE_READER, exemptions::FILTERED_BY_WRITERS),
];

/// Runs a test case over the transport, unless it is exempt.
pub fn run(name: &str, test_case: impl Fn(&Harness)) {
    if !exemptions::is_exempt(EXEMPT, name) {
        test_case(&Harness::new(TestTransport::SimulatedSamples));
    }
}
