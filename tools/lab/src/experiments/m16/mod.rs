//! M16: one publisher of a string at 10 Hz, 256 B to 4 MB, SCHED_FIFO and mlockall;
//! latency from the publish call to the callback (Maruyama et al. 2016, 3).

pub mod breakdown;
pub mod bridge;
pub mod capability;
pub mod footprint;
pub mod latency;
pub mod policies;
pub mod subscribers;
pub mod throughput;

use crate::testbed::implementation::{OF_RCLCPP, ROS1};

use crate::experiment::Scope;
use crate::flow::Flow;
use crate::measurement::{Configuration, Extent};

/// Publish rate of the paper.
const RATE: u64 = 10;

/// Implementations between processes, hosts and within a process. Those of rclcpp take
/// part if they are named.
pub const IMPLEMENTATIONS: [&str; 7] = [
    "pteros",
    "cyclone",
    "fastdds",
    ROS1,
    OF_RCLCPP[0],
    OF_RCLCPP[1],
    OF_RCLCPP[2],
];

/// Payload bytes. Those of the paper are powers of two from 256 B to 4 MB.
pub fn sizes(extent: Extent) -> Vec<u64> {
    match extent {
        Extent::Smoke => vec![256],
        Extent::Quick => vec![256, 64 << 10, 1 << 20],
        Extent::Full => (8..=22).map(|power| 1 << power).collect(),
    }
}

/// A flow with the policies of tables 3 and 5, by name.
pub fn flow(policies: &str, size: u64, extent: Extent) -> Flow {
    let (is_reliable, depth) = match policies {
        "best-effort" => (false, Some(1)),
        "1-depth" => (true, Some(1)),
        "10-depth" => (true, Some(10)),
        "100-depth" => (true, Some(100)),
        _ => (true, None),
    };
    Flow {
        is_intra: false,
        is_serialized: false,
        is_text: true,
        size,
        count: extent.choose(3, 8, 100),
        warmup: 0,
        rate: extent.choose(100, RATE, RATE),
        is_reliable,
        is_transient_local: is_reliable,
        depth,
        deadline_ms: 100,
        subscribers: 1,
        waits_for_match: true,
        is_real_time: true,
        is_loaned: false,
    }
}

/// The members of `names` that take part and have these policies. ROS 1 has none;
/// it is reliable.
pub fn among(scope: &Scope, names: &[&'static str], policies: &str) -> Vec<&'static str> {
    let mut all = scope.among(names);
    all.retain(|name| *name != ROS1 || policies == "reliable");
    all
}

/// A configuration with these parameters.
pub fn configuration(
    case: Vec<(&'static str, String)>,
    implementation: &'static str,
    flow: &Flow,
) -> Configuration {
    Configuration {
        case,
        implementation,
        seconds: flow.seconds(),
    }
}
