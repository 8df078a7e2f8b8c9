//! C23.5 and C23.6: whole graphs: fifteen nodes with the topics and rates of Nav2 (table
//! I), ten with those of a Create 3 (VI-B), as processes and composed.
//!
//! Those of Nav2 are managed nodes, those of a Create 3 serve an action each, all have
//! their parameter services.

use std::time::Duration;

use crate::testbed::MeasurementFailure;
use serde_json::{Value, json};

use super::{
    CONTAINER, CPU, GraphPlacement, MEMORY, cpu_and_memory, latency_and_delivery, run_graph,
};
use crate::experiment::{Experiment, Paper, Scope};
use crate::lab::Lab;
use crate::measurement::{Configuration, LATENCY, Measurement, Published};
use crate::report_items::{self, ReportItem};
use crate::results::View;
use crate::topology::Division;

/// Fifteen nodes.
pub const NAV2: Experiment = Experiment {
    id: "c23.5",
    paper: Paper::C23,
    title: "A graph of fifteen nodes, as large as Nav2's",
    reproduces: "table I",
    question: "What do memory and CPU of a whole system gain by composition?",
    metrics: &[MEMORY, CPU, LATENCY],
    configurations: nav2_cells,
    run: run_nav2,
    published: &[
        table_one(X86, &[("placement", "processes")], "118.85 MB, 48.60 % CPU"),
        table_one(X86, &[("placement", "composed")], "67.13 MB, 36.60 % CPU"),
        table_one(
            X86,
            &[("placement", "container isolated")],
            "67.67 MB, 36.09 % CPU",
        ),
        table_one(
            ARM,
            &[("placement", "processes")],
            "116.63 MB, 154.27 % CPU",
        ),
        table_one(ARM, &[("placement", "composed")], "77.84 MB, 110.50 % CPU"),
        table_one(
            ARM,
            &[("placement", "container isolated")],
            "78.63 MB, 109.62 % CPU",
        ),
        table_one(
            ARM,
            &[("placement", "container multi-threaded")],
            "75.52 MB, 140.32 % CPU",
        ),
    ],
    report_items,
};

/// Ten nodes.
pub const CREATE3: Experiment = Experiment {
    id: "c23.6",
    paper: Paper::C23,
    title: "A graph of ten nodes, as large as a Create 3's",
    reproduces: "VI-B",
    question: "Does a whole robot fit into 60 MB?",
    metrics: &[MEMORY, CPU, LATENCY],
    configurations: create3_cells,
    run: run_create3,
    published: &[Published {
        case: &[("placement", "composed")],
        implementation: "ROS 2 on a Create 3",
        value: "32 of 60 MB",
        source: "VI-B",
    }],
    report_items,
};

const X86: &str = "Nav2 on x86";
const ARM: &str = "Nav2 on ARM";

const fn table_one(
    implementation: &'static str,
    case: &'static [(&'static str, &'static str)],
    value: &'static str,
) -> Published {
    Published {
        case,
        implementation,
        value,
        source: "table I",
    }
}

const PLACEMENTS: [(&str, GraphPlacement); 7] = [
    ("processes", graph_placement(Division::PerNode, 1, None)),
    ("composed", graph_placement(Division::Composed, 1, None)),
    (
        "composed isolated",
        graph_placement(Division::Composed, 1, None),
    ),
    (
        "composed multi-threaded",
        graph_placement(Division::Composed, 4, None),
    ),
    (
        CONTAINER,
        graph_placement(Division::Composed, 1, Some("single")),
    ),
    (
        "container isolated",
        graph_placement(Division::Composed, 1, Some("isolated")),
    ),
    (
        "container multi-threaded",
        graph_placement(Division::Composed, 1, Some("multi")),
    ),
];

const fn graph_placement(
    division: Division,
    threads: usize,
    container: Option<&'static str>,
) -> GraphPlacement {
    GraphPlacement {
        division,
        intra_process: true,
        threads,
        container,
    }
}

/// A publisher of a node.
struct PublisherRow {
    node: &'static str,
    topic: &'static str,
    ty: &'static str,
    /// Bytes of a message. 0 if the type determines them.
    bytes: u64,
    hz: f64,
}

impl PublisherRow {
    const fn new(
        node: &'static str,
        topic: &'static str,
        ty: &'static str,
        bytes: u64,
        hz: f64,
    ) -> Self {
        Self {
            node,
            topic,
            ty,
            bytes,
            hz,
        }
    }
}

/// Publishers of a navigating robot.
const NAV2_PUBLISHERS: &[PublisherRow] = &[
    PublisherRow::new("driver", "scan", "sensor_msgs/msg/LaserScan", 0, 10.0),
    PublisherRow::new("driver", "points", "stamped_vector", 300_000, 5.0),
    PublisherRow::new("driver", "odom", "nav_msgs/msg/Odometry", 0, 50.0),
    PublisherRow::new("localization", "tf", "tf2_msgs/msg/TFMessage", 0, 50.0),
    PublisherRow::new(
        "localization",
        "pose",
        "geometry_msgs/msg/PoseWithCovarianceStamped",
        0,
        10.0,
    ),
    PublisherRow::new("map_server", "map", "stamped1mb", 0, 1.0),
    PublisherRow::new(
        "local_costmap",
        "local_costmap",
        "stamped_vector",
        40_000,
        5.0,
    ),
    PublisherRow::new("global_costmap", "global_costmap", "stamped1mb", 0, 1.0),
    PublisherRow::new("planner", "plan", "stamped_vector", 20_000, 1.0),
    PublisherRow::new("smoother", "smooth_plan", "stamped_vector", 20_000, 1.0),
    PublisherRow::new(
        "controller",
        "cmd_vel_raw",
        "geometry_msgs/msg/TwistStamped",
        0,
        20.0,
    ),
    PublisherRow::new(
        "velocity_smoother",
        "cmd_vel_smooth",
        "geometry_msgs/msg/TwistStamped",
        0,
        20.0,
    ),
    PublisherRow::new(
        "collision_monitor",
        "cmd_vel",
        "geometry_msgs/msg/TwistStamped",
        0,
        20.0,
    ),
    PublisherRow::new("behaviors", "state", "std_msgs/msg/String", 0, 10.0),
    PublisherRow::new("navigator", "feedback", "stamped1kb", 0, 10.0),
    PublisherRow::new("waypoints", "progress", "stamped100b", 0, 2.0),
    PublisherRow::new("docking", "dock", "stamped100b", 0, 2.0),
    PublisherRow::new("manager", "bond", "stamped100b", 0, 4.0),
];

/// Subscriptions of each node.
const NAV2_SUBSCRIPTIONS: &[(&str, &[&str])] = &[
    ("driver", &["cmd_vel"]),
    ("localization", &["scan", "odom", "map"]),
    ("map_server", &["bond"]),
    ("local_costmap", &["scan", "points", "tf", "odom"]),
    ("global_costmap", &["scan", "points", "tf", "map"]),
    ("planner", &["global_costmap", "tf", "pose"]),
    ("smoother", &["plan", "global_costmap"]),
    (
        "controller",
        &["smooth_plan", "local_costmap", "odom", "tf"],
    ),
    ("velocity_smoother", &["cmd_vel_raw", "odom"]),
    ("collision_monitor", &["cmd_vel_smooth", "scan"]),
    ("behaviors", &["local_costmap", "cmd_vel_raw", "tf"]),
    ("navigator", &["pose", "plan", "odom", "state"]),
    ("waypoints", &["feedback"]),
    ("docking", &["pose", "tf"]),
    ("manager", &["state", "dock", "progress"]),
];

/// Nodes of a Create 3. Each subscribes to topics of the next two.
const CREATE3_NODES: [&str; 10] = [
    "motion", "odometry", "hazards", "buttons", "lights", "audio", "docking", "wheels", "imu",
    "status",
];

fn nav2() -> Value {
    let nodes: Vec<Value> = NAV2_SUBSCRIPTIONS
        .iter()
        .enumerate()
        .map(|(index, (node, subscribed))| {
            let own_publishers = NAV2_PUBLISHERS.iter().filter(|entry| entry.node == *node);
            let of = |topic: &str| NAV2_PUBLISHERS.iter().find(|entry| entry.topic == topic);
            let subscribers = subscribed.iter().filter_map(|topic| of(topic));
            json!({
                "node_name": node,
                "lifecycle": true,
                "executor_id": index,
                "publishers": own_publishers.map(publisher).collect::<Vec<_>>(),
                "subscribers": subscribers
                    .map(|entry| json!({ "topic_name": entry.topic, "msg_type": entry.ty }))
                    .collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({ "nodes": nodes })
}

fn publisher(entry: &PublisherRow) -> Value {
    let PublisherRow {
        topic,
        ty,
        bytes,
        hz,
        ..
    } = entry;
    let mut value = json!({ "topic_name": topic, "msg_type": ty, "freq_hz": hz });
    if *bytes > 0 {
        value["msg_size"] = json!(bytes);
    }
    value
}

/// Three topics, a service and an action per node, between 1 and 62.5 Hz.
fn create3() -> Value {
    let topic = |node: &str, kind: &str| format!("{node}_{kind}");
    let nodes: Vec<Value> = CREATE3_NODES
        .iter()
        .enumerate()
        .map(|(index, node)| {
            let next = |by: usize| CREATE3_NODES[(index + by) % CREATE3_NODES.len()];
            let kinds = [
                ("state", "stamped100b", 62.5),
                ("data", "stamped1kb", 20.0),
                ("info", "stamped250b", 1.0),
            ];
            let publishers = kinds.map(|(kind, ty, hz)| {
                json!({ "topic_name": topic(node, kind), "msg_type": ty, "freq_hz": hz })
            });
            let subscribers = [(1, kinds[0]), (1, kinds[1]), (2, kinds[0]), (2, kinds[2])]
                .map(|(by, (kind, ty, _))| {
                    json!({ "topic_name": topic(next(by), kind), "msg_type": ty })
                });
            json!({
                "node_name": node,
                "executor_id": index,
                "actions": [topic(node, "act")],
                "publishers": publishers,
                "subscribers": subscribers,
                "servers": [{ "service_name": topic(node, "set"), "srv_type": "stamped10b" }],
                "clients": [{ "service_name": topic(next(3), "set"), "srv_type": "stamped10b",
                              "freq_hz": 1 }],
            })
        })
        .collect();
    json!({ "nodes": nodes })
}

fn nav2_cells(scope: &Scope) -> Vec<Configuration> {
    configurations(scope, &PLACEMENTS)
}

fn create3_cells(scope: &Scope) -> Vec<Configuration> {
    let ways: Vec<(&str, GraphPlacement)> = PLACEMENTS
        .into_iter()
        .filter(|(placement, _)| ["processes", "composed", CONTAINER].contains(placement))
        .collect();
    configurations(scope, &ways)
}

fn seconds(extent: crate::measurement::Extent) -> f64 {
    extent.choose(1.0, 3.0, 60.0)
}

fn configurations(scope: &Scope, ways: &[(&str, GraphPlacement)]) -> Vec<Configuration> {
    let ours = scope.among(&["pteros"]);
    let configuration = |placement: &str, implementation| Configuration {
        case: vec![("placement", placement.to_owned())],
        implementation,
        seconds: seconds(scope.extent) + 1.0,
    };
    ways.iter()
        .flat_map(|(placement, _)| {
            ours.iter()
                .map(|implementation| configuration(placement, *implementation))
        })
        .collect()
}

fn run_nav2(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    run(lab, configuration, nav2())
}

fn run_create3(
    lab: &Lab,
    configuration: &Configuration,
) -> Result<Measurement, MeasurementFailure> {
    run(lab, configuration, create3())
}

fn run(
    lab: &Lab,
    configuration: &Configuration,
    mut graph: Value,
) -> Result<Measurement, MeasurementFailure> {
    let placement = configuration.get("placement");
    let found = PLACEMENTS.iter().find(|(name, _)| *name == placement);
    let (_, graph_placement) =
        found.ok_or_else(|| MeasurementFailure::Failed(format!("no placement {placement:?}")))?;
    if placement != "composed isolated"
        && let Some(nodes) = graph["nodes"].as_array_mut()
    {
        for node in nodes {
            node["executor_id"] = json!(0);
        }
    }
    let duration = Duration::from_secs_f64(seconds(lab.extent));
    let results = run_graph(lab, &graph, *graph_placement, duration)?;
    let (latency, delivery) = latency_and_delivery(&results);
    Ok(Measurement {
        samples: vec![("latency", latency.into_iter().collect())],
        values: cpu_and_memory(&results).to_vec(),
        delivery: Some(delivery),
        ..Measurement::default()
    })
}

fn report_items(view: &View) -> Vec<ReportItem> {
    [&MEMORY, &CPU, &LATENCY]
        .map(|metric| ReportItem::Table(report_items::comparison(view, metric)))
        .into()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::topology::{Topology, library};

    #[test]
    fn the_graphs_have_their_stated_size_and_all_endpoints_match() {
        let library = library();
        for (graph, nodes, topics) in [(nav2(), 15, 18), (create3(), 10, 30)] {
            let read = Topology::parse(Path::new("x.json"), &graph.to_string(), &library);
            let read = read.expect("right");
            assert_eq!(read.warnings, []);
            assert_eq!(read.nodes.len(), nodes);
            let said = read.nodes.iter().flat_map(|n| &n.publishers);
            let said: Vec<_> = said.map(|p| (&p.full_topic, &p.ty)).collect();
            assert_eq!(said.len(), topics);
            for results in read.nodes.iter().flat_map(|n| &n.subscriptions) {
                assert!(
                    said.contains(&(&results.full_topic, &results.ty)),
                    "{results:?}"
                );
            }
        }
    }
}
