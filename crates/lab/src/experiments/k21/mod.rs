//! K21: a pipeline of nodes in separate processes, 128 B to 500 KB, 1 to 100 Hz, the
//! 95th percentile of first publish to last callback (Kronauer et al. 2021, 4).

pub mod frequency;
pub mod profile;
pub mod reliability;
pub mod scale;

use pteros_testbed::Failure;

use crate::experiment::{Better, Cell, Extent, Measured, Metric, Statistic};
use crate::flow::Flow;
use crate::lab::Lab;
use crate::pipeline::Pipeline;

/// The paper's statistic.
pub const LATENCY: Metric = Metric {
    name: "latency",
    unit: "us",
    better: Better::Lower,
    statistic: Statistic::P95,
};

/// Who takes part: UDP on localhost is the paper's transport, shared memory is what
/// is chosen where nobody forbids it.
pub const CONTESTANTS: [&str; 4] = ["pteros", "pteros-udp", "cyclone", "fastdds"];

/// The paper's 60 s per configuration.
const FULL_SECONDS: u64 = 60;

/// What a cell's parameters say.
fn pipeline(extent: Extent, cell: &Cell) -> Pipeline {
    let rate = cell.number("rate").max(1);
    Pipeline {
        nodes: usize::try_from(cell.number("nodes")).unwrap_or(3),
        flow: Flow {
            is_intra: false,
            is_serialized: false,
            is_text: false,
            is_lent: false,
            size: cell.number("size"),
            count: extent.choose(5, rate.clamp(5, 50), rate * FULL_SECONDS),
            // Neither the first match nor fresh memory is what is measured.
            warmup: extent.choose(1, 3, 5),
            rate,
            is_reliable: cell.get("qos") == "reliable",
            is_transient_local: false,
            depth: Some(10),
            deadline_ms: 0,
            subscribers: 1,
            waits_for_match: true,
            is_real_time: false,
        },
    }
}

/// A cell with these parameters.
fn cell(
    extent: Extent,
    (nodes, size, rate, qos): (u64, u64, u64, &str),
    contestant: &'static str,
) -> Cell {
    let mut cell = Cell {
        case: vec![
            ("nodes", nodes.to_string()),
            ("size", size.to_string()),
            ("rate", rate.to_string()),
            ("qos", qos.to_owned()),
        ],
        contestant,
        seconds: 0.0,
    };
    cell.seconds = pipeline(extent, &cell).seconds();
    cell
}

fn run(lab: &Lab, cell: &Cell) -> Result<Measured, Failure> {
    pipeline(lab.extent, cell).run(lab, lab.contestant(cell.contestant)?)
}
