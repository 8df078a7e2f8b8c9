//! K21: a pipeline of nodes in separate processes, 128 B to 500 KB, 1 to 100 Hz;
//! the 95th percentile from first publish to last callback (Kronauer et al. 2021,
//! 4).

pub mod frequency;
pub mod profile;
pub mod reliability;
pub mod scale;

use crate::testbed::MeasurementFailure;
use crate::testbed::implementation::OF_RCLCPP;

use crate::flow::Flow;
use crate::lab::Lab;
use crate::measurement::{Better, Configuration, Extent, Measurement, Metric, Statistic};
use crate::pipeline::Pipeline;

/// The statistic of the paper.
pub const LATENCY: Metric = Metric::new("latency", "us", Better::Lower, Statistic::P95);

/// Implementations. The paper uses UDP on localhost; shared memory is the default
/// of some stacks.
pub const IMPLEMENTATIONS: [&str; 7] = [
    "pteros",
    "pteros-udp",
    "cyclone",
    "fastdds",
    OF_RCLCPP[0],
    OF_RCLCPP[1],
    OF_RCLCPP[2],
];

/// The paper measures 60 s per configuration.
const FULL_SECONDS: u64 = 60;

/// The pipeline of a configuration.
fn pipeline(extent: Extent, configuration: &Configuration) -> Pipeline {
    let rate = configuration.number("rate").max(1);
    Pipeline {
        nodes: usize::try_from(configuration.number("nodes")).unwrap_or(3),
        flow: Flow {
            is_intra: false,
            is_serialized: false,
            is_text: false,
            is_loaned: false,
            size: configuration.number("size"),
            count: extent.choose(5, rate.clamp(5, 50), rate * FULL_SECONDS),
            // Excludes matching and the first use of memory.
            warmup: extent.choose(1, 3, 5),
            rate,
            is_reliable: configuration.get("qos") == "reliable",
            is_transient_local: false,
            depth: Some(10),
            deadline_ms: 0,
            subscribers: 1,
            waits_for_match: true,
            is_real_time: false,
        },
    }
}

/// Parameters of a pipeline configuration.
#[derive(Clone, Copy)]
struct PipelineParameters<'a> {
    nodes: u64,
    /// Bytes of a message.
    size: u64,
    /// Messages per second.
    rate: u64,
    /// `reliable` or `best-effort`.
    qos: &'a str,
}

/// A configuration with these parameters.
fn configuration(
    extent: Extent,
    parameters: PipelineParameters<'_>,
    implementation: &'static str,
) -> Configuration {
    let mut configuration = Configuration {
        case: vec![
            ("nodes", parameters.nodes.to_string()),
            ("size", parameters.size.to_string()),
            ("rate", parameters.rate.to_string()),
            ("qos", parameters.qos.to_owned()),
        ],
        implementation,
        seconds: 0.0,
    };
    configuration.seconds = pipeline(extent, &configuration).seconds();
    configuration
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    pipeline(lab.extent, configuration).run(lab, lab.implementation(configuration.implementation)?)
}
