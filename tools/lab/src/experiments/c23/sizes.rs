//! C23.2: CPU and latency by message size at 50 Hz (fig. 3), for each placement of
//! a publisher and a subscription.

use std::time::Duration;

use crate::testbed::MeasurementFailure;
use crate::testbed::implementation::{OF_RCLCPP, PTEROS};
use serde_json::json;

use super::{
    CONTAINER, CPU, GraphPlacement, by_placement_and_size, cpu_and_memory, latency_and_delivery,
    run_graph,
};
use crate::experiment::{Experiment, Paper, Scope};
use crate::flow::{self, Flow};
use crate::lab::Lab;
use crate::measurement::{Configuration, Extent, LATENCY, Measurement, Published};
use crate::report_items::{self, ReportItem};
use crate::results::View;
use crate::topology::Division;

pub const EXPERIMENT: Experiment = Experiment {
    id: "c23.2",
    paper: Paper::C23,
    title: "CPU and latency by size and placement of nodes",
    reproduces: "fig. 3",
    question: "From which size on do processes cost more than composed nodes, and do loaned messages help?",
    metrics: &[LATENCY, CPU],
    configurations,
    run,
    published: &[Published {
        case: &[("placement", "composed + intra-process")],
        implementation: "ROS 2",
        value: "40 us at every size",
        source: "fig. 3",
    }],
    report_items,
};

const RATE: u64 = 50;
const COMPOSED: &str = "composed";

/// Placements and the implementations that support them. Only Pteros and rclcpp
/// compose without intra-process communication. Only Pteros has containers.
const PLACEMENTS: [(&str, &[&str]); 6] = [
    (
        "processes",
        &[
            "pteros",
            "cyclone",
            "fastdds",
            "iceoryx2",
            "zenoh",
            OF_RCLCPP[0],
            OF_RCLCPP[1],
            OF_RCLCPP[2],
        ],
    ),
    (
        "loaned",
        &["pteros", "fastdds-sharing", "iceoryx2", "zenoh"],
    ),
    (
        COMPOSED,
        &["pteros", OF_RCLCPP[0], OF_RCLCPP[1], OF_RCLCPP[2]],
    ),
    (CONTAINER, &["pteros"]),
    ("container + intra-process", &["pteros"]),
    (
        "composed + intra-process",
        &[
            "pteros",
            "cyclone",
            "fastdds",
            OF_RCLCPP[0],
            OF_RCLCPP[1],
            OF_RCLCPP[2],
        ],
    ),
];

fn sizes(extent: Extent) -> &'static [u64] {
    match extent {
        Extent::Smoke => &[65_536],
        Extent::Quick => &[65_536, 4_194_304],
        // Including the sizes of Fast DDS's loanable types.
        Extent::Full => &[
            256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 2_097_152, 4_194_304, 8_388_608,
        ],
    }
}

fn flow(placement: &str, size: u64, extent: Extent) -> Flow {
    Flow {
        is_intra: placement.starts_with(COMPOSED),
        is_serialized: placement == COMPOSED,
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
        is_loaned: placement == "loaned",
    }
}

fn configurations(scope: &Scope) -> Vec<Configuration> {
    by_placement_and_size(scope, &PLACEMENTS, sizes(scope.extent), flow)
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let (placement, size) = (configuration.get("placement"), configuration.number("size"));
    let flow = flow(placement, size, lab.extent);
    let is_ours = configuration.implementation == PTEROS;
    if is_ours && placement == COMPOSED || placement.starts_with(CONTAINER) {
        return graph(lab, placement, size, &flow);
    }
    let flowed = flow::run(
        lab,
        lab.implementation(configuration.implementation)?,
        &flow,
    )?;
    let mut measured = flowed.measured(&flow);
    measured.values.push((CPU.name, flowed.load() * 100.0));
    Ok(measured)
}

/// Two nodes in a process, with manual composition or loaded.
fn graph(
    lab: &Lab,
    placement: &str,
    size: u64,
    flow: &Flow,
) -> Result<Measurement, MeasurementFailure> {
    let topic = json!({ "topic_name": "sized", "msg_type": "stamped_vector" });
    let mut publisher = topic.clone();
    publisher["msg_size"] = json!(size);
    publisher["freq_hz"] = json!(RATE);
    let graph = json!({ "nodes": [
        { "node_name": "publisher", "publishers": [publisher] },
        { "node_name": "subscriber", "subscribers": [topic] },
    ]});
    let graph_placement = GraphPlacement {
        division: Division::Composed,
        intra_process: placement.ends_with("intra-process"),
        threads: 1,
        container: placement.starts_with(CONTAINER).then_some("single"),
    };
    let duration = Duration::from_secs_f64(flow.count as f64 / RATE as f64);
    let results = run_graph(lab, &graph, graph_placement, duration)?;
    let (latency, delivery) = latency_and_delivery(&results);
    let [cpu, _] = cpu_and_memory(&results);
    Ok(Measurement {
        samples: vec![("latency", latency.into_iter().collect())],
        values: vec![cpu],
        delivery: Some(delivery),
        path: Some(if graph_placement.intra_process {
            "intra-process".into()
        } else {
            "bytes within the process".into()
        }),
        ..Measurement::default()
    })
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let mut all = vec![
        ReportItem::Table(report_items::comparison(view, &LATENCY)),
        ReportItem::Table(report_items::comparison(view, &CPU)),
    ];
    for (metric, what) in [(&LATENCY, "latency"), (&CPU, "CPU")] {
        let title = format!("Pteros: {what} by size and placement (fig. 3)");
        all.push(report_items::lines_by(view, title, "size", metric, |c| {
            (c.implementation == "pteros").then(|| c.get("placement").to_owned())
        }));
    }
    all
}
