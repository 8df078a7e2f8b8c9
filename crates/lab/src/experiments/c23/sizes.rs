//! C23.2: CPU and latency against message size at 50 Hz (fig. 3), for each way to place
//! a publisher and a subscription.

use std::time::Duration;

use pteros_testbed::Failure;
use serde_json::json;

use super::{CONTAINER, CPU, Placing, by_way_and_size, cpu_and_memory, heard, run_graph};
use crate::exhibit::{self, Exhibit};
use crate::experiment::{Cell, Experiment, Extent, LATENCY, Measured, Paper, Published, Scope};
use crate::flow::{self, Flow};
use crate::lab::Lab;
use crate::results::View;
use crate::topology::Division;

/// See the module.
pub const EXPERIMENT: Experiment = Experiment {
    id: "c23.2",
    paper: Paper::C23,
    title: "CPU and latency by size and way to place nodes",
    shows: "fig. 3",
    asks: "From which size on do processes cost more than composed nodes, and do loans help?",
    metrics: &[LATENCY, CPU],
    cells,
    run,
    published: &[Published {
        case: &[("way", "composed + intra-process")],
        who: "ROS 2",
        value: "40 us at every size",
        place: "fig. 3",
    }],
    exhibits,
};

const RATE: u64 = 50;
const COMPOSED: &str = "composed";

/// Ways and who knows them. Only ours composes without handing values over, and has
/// containers.
const WAYS: [(&str, &[&str]); 6] = [
    (
        "processes",
        &["pteros", "cyclone", "fastdds", "iceoryx2", "zenoh"],
    ),
    (
        "loaned",
        &["pteros", "fastdds-sharing", "iceoryx2", "zenoh"],
    ),
    (COMPOSED, &["pteros"]),
    (CONTAINER, &["pteros"]),
    ("container + intra-process", &["pteros"]),
    (
        "composed + intra-process",
        &["pteros", "cyclone", "fastdds"],
    ),
];

fn sizes(extent: Extent) -> &'static [u64] {
    match extent {
        Extent::Smoke => &[65_536],
        Extent::Quick => &[65_536, 4_194_304],
        // Those of Fast DDS's lent types are among them.
        Extent::Full => &[
            256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 2_097_152, 4_194_304, 8_388_608,
        ],
    }
}

fn flow(way: &str, size: u64, extent: Extent) -> Flow {
    Flow {
        is_intra: way.starts_with(COMPOSED),
        is_serialized: false,
        is_text: false,
        size,
        count: extent.choose(5, 20, 500),
        warmup: extent.choose(0, 5, 20),
        rate: RATE,
        is_reliable: true,
        is_transient_local: false,
        depth: Some(10),
        deadline_ms: 0,
        subscribers: 1,
        waits_for_match: true,
        is_real_time: false,
        is_lent: way == "loaned",
    }
}

fn cells(scope: &Scope) -> Vec<Cell> {
    by_way_and_size(scope, &WAYS, sizes(scope.extent), flow)
}

fn run(lab: &Lab, cell: &Cell) -> Result<Measured, Failure> {
    let (way, size) = (cell.get("way"), cell.number("size"));
    let flow = flow(way, size, lab.extent);
    if way == COMPOSED || way.starts_with(CONTAINER) {
        return graph(lab, way, size, &flow);
    }
    let flowed = flow::run(lab, lab.contestant(cell.contestant)?, &flow)?;
    let mut measured = flowed.measured(&flow);
    measured.figures.push((CPU.name, flowed.load() * 100.0));
    Ok(measured)
}

/// Two nodes in a process, composed by hand or loaded: a graph.
fn graph(lab: &Lab, way: &str, size: u64, flow: &Flow) -> Result<Measured, Failure> {
    let topic = json!({ "topic_name": "sized", "msg_type": "stamped_vector" });
    let mut publisher = topic.clone();
    publisher["msg_size"] = json!(size);
    publisher["freq_hz"] = json!(RATE);
    let graph = json!({ "nodes": [
        { "node_name": "publisher", "publishers": [publisher] },
        { "node_name": "subscriber", "subscribers": [topic] },
    ]});
    let placing = Placing {
        division: Division::Composed,
        intra_process: way.ends_with("intra-process"),
        threads: 1,
        container: way.starts_with(CONTAINER).then_some("single"),
    };
    let duration = Duration::from_secs_f64(flow.count as f64 / RATE as f64);
    let results = run_graph(lab, &graph, placing, duration)?;
    let (latency, delivery) = heard(&results);
    let [cpu, _] = cpu_and_memory(&results);
    Ok(Measured {
        samples: vec![("latency", latency.into_iter().collect())],
        figures: vec![cpu],
        delivery: Some(delivery),
        path: Some(match placing.intra_process {
            true => "intra-process".into(),
            false => "bytes within the process".into(),
        }),
        ..Measured::default()
    })
}

fn exhibits(view: &View) -> Vec<Exhibit> {
    let mut all = vec![
        Exhibit::Table(exhibit::comparison(view, &LATENCY)),
        Exhibit::Table(exhibit::comparison(view, &CPU)),
    ];
    for (metric, what) in [(&LATENCY, "latency"), (&CPU, "CPU")] {
        let title = format!("Pteros: {what} by size and way (fig. 3)");
        all.push(exhibit::lines_by(view, title, "size", metric, |c| {
            (c.contestant == "pteros").then(|| c.get("way").to_owned())
        }));
    }
    all
}
