//! C23.5 and C23.6: whole graphs: fifteen nodes with the topics and rates of Nav2 (table
//! I), ten with those of a Create 3 (VI-B), as processes and composed.
//!
//! Those of Nav2 are managed nodes, those of a Create 3 serve an action each, all have
//! their parameter services.

use std::time::Duration;

use pteros_testbed::Failure;
use serde_json::{Value, json};

use super::{CONTAINER, CPU, MEMORY, Placing, cpu_and_memory, heard, run_graph};
use crate::exhibit::{self, Exhibit};
use crate::experiment::{Cell, Experiment, LATENCY, Measured, Paper, Published, Scope};
use crate::lab::Lab;
use crate::results::View;
use crate::topology::Division;

/// Fifteen nodes.
pub const NAV2: Experiment = Experiment {
    id: "c23.5",
    paper: Paper::C23,
    title: "A graph of fifteen nodes, as large as Nav2's",
    shows: "table I",
    asks: "What do memory and CPU of a whole system gain by composition?",
    metrics: &[MEMORY, CPU, LATENCY],
    cells: nav2_cells,
    run: run_nav2,
    published: &[
        table_one(X86, &[("way", "processes")], "118.85 MB, 48.60 % CPU"),
        table_one(X86, &[("way", "composed")], "67.13 MB, 36.60 % CPU"),
        table_one(
            X86,
            &[("way", "container isolated")],
            "67.67 MB, 36.09 % CPU",
        ),
        table_one(ARM, &[("way", "processes")], "116.63 MB, 154.27 % CPU"),
        table_one(ARM, &[("way", "composed")], "77.84 MB, 110.50 % CPU"),
        table_one(
            ARM,
            &[("way", "container isolated")],
            "78.63 MB, 109.62 % CPU",
        ),
        table_one(
            ARM,
            &[("way", "container multi-threaded")],
            "75.52 MB, 140.32 % CPU",
        ),
    ],
    exhibits,
};

/// Ten nodes.
pub const CREATE3: Experiment = Experiment {
    id: "c23.6",
    paper: Paper::C23,
    title: "A graph of ten nodes, as large as a Create 3's",
    shows: "VI-B",
    asks: "Does a whole robot fit into 60 MB?",
    metrics: &[MEMORY, CPU, LATENCY],
    cells: create3_cells,
    run: run_create3,
    published: &[Published {
        case: &[("way", "composed")],
        who: "ROS 2 on a Create 3",
        value: "32 of 60 MB",
        place: "VI-B",
    }],
    exhibits,
};

const X86: &str = "Nav2 on x86";
const ARM: &str = "Nav2 on ARM";

const fn table_one(
    who: &'static str,
    case: &'static [(&'static str, &'static str)],
    value: &'static str,
) -> Published {
    Published {
        case,
        who,
        value,
        place: "table I",
    }
}

const WAYS: [(&str, Placing); 7] = [
    ("processes", placing(Division::PerNode, 1, None)),
    ("composed", placing(Division::Composed, 1, None)),
    ("composed isolated", placing(Division::Composed, 1, None)),
    (
        "composed multi-threaded",
        placing(Division::Composed, 4, None),
    ),
    (CONTAINER, placing(Division::Composed, 1, Some("single"))),
    (
        "container isolated",
        placing(Division::Composed, 1, Some("isolated")),
    ),
    (
        "container multi-threaded",
        placing(Division::Composed, 1, Some("multi")),
    ),
];

const fn placing(division: Division, threads: usize, container: Option<&'static str>) -> Placing {
    Placing {
        division,
        intra_process: true,
        threads,
        container,
    }
}

/// Publishers: node, topic, type, bytes, Hz.
type Says = (&'static str, &'static str, &'static str, u64, f64);

/// What a navigating robot's nodes tell each other.
const NAV2_SAYS: &[Says] = &[
    ("driver", "scan", "sensor_msgs/msg/LaserScan", 0, 10.0),
    ("driver", "points", "stamped_vector", 300_000, 5.0),
    ("driver", "odom", "nav_msgs/msg/Odometry", 0, 50.0),
    ("localization", "tf", "tf2_msgs/msg/TFMessage", 0, 50.0),
    (
        "localization",
        "pose",
        "geometry_msgs/msg/PoseWithCovarianceStamped",
        0,
        10.0,
    ),
    ("map_server", "map", "stamped1mb", 0, 1.0),
    (
        "local_costmap",
        "local_costmap",
        "stamped_vector",
        40_000,
        5.0,
    ),
    ("global_costmap", "global_costmap", "stamped1mb", 0, 1.0),
    ("planner", "plan", "stamped_vector", 20_000, 1.0),
    ("smoother", "smooth_plan", "stamped_vector", 20_000, 1.0),
    (
        "controller",
        "cmd_vel_raw",
        "geometry_msgs/msg/TwistStamped",
        0,
        20.0,
    ),
    (
        "velocity_smoother",
        "cmd_vel_smooth",
        "geometry_msgs/msg/TwistStamped",
        0,
        20.0,
    ),
    (
        "collision_monitor",
        "cmd_vel",
        "geometry_msgs/msg/TwistStamped",
        0,
        20.0,
    ),
    ("behaviors", "state", "std_msgs/msg/String", 0, 10.0),
    ("navigator", "feedback", "stamped1kb", 0, 10.0),
    ("waypoints", "progress", "stamped100b", 0, 2.0),
    ("docking", "dock", "stamped100b", 0, 2.0),
    ("manager", "bond", "stamped100b", 0, 4.0),
];

/// Who hears what of it.
const NAV2_HEARS: &[(&str, &[&str])] = &[
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

/// What a Create 3's nodes publish; each hears what the next two say.
const CREATE3_NODES: [&str; 10] = [
    "motion", "odometry", "hazards", "buttons", "lights", "audio", "docking", "wheels", "imu",
    "status",
];

fn nav2() -> Value {
    let nodes: Vec<Value> = NAV2_HEARS
        .iter()
        .enumerate()
        .map(|(index, (node, hears))| {
            let says = NAV2_SAYS.iter().filter(|says| says.0 == *node);
            let of = |topic: &str| NAV2_SAYS.iter().find(|says| says.1 == topic);
            let subscribers = hears.iter().filter_map(|topic| of(topic));
            json!({
                "node_name": node,
                "lifecycle": true,
                "executor_id": index,
                "publishers": says.map(publisher).collect::<Vec<_>>(),
                "subscribers": subscribers
                    .map(|says| json!({ "topic_name": says.1, "msg_type": says.2 }))
                    .collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({ "nodes": nodes })
}

fn publisher(says: &Says) -> Value {
    let (_, topic, ty, bytes, hz) = says;
    let mut value = json!({ "topic_name": topic, "msg_type": ty, "freq_hz": hz });
    if *bytes > 0 {
        value["msg_size"] = json!(bytes);
    }
    value
}

/// Three topics, a service and an action of each node, between 1 and 62.5 Hz.
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

fn nav2_cells(scope: &Scope) -> Vec<Cell> {
    cells(scope, &WAYS)
}

fn create3_cells(scope: &Scope) -> Vec<Cell> {
    let ways: Vec<(&str, Placing)> = WAYS
        .into_iter()
        .filter(|(way, _)| ["processes", "composed", CONTAINER].contains(way))
        .collect();
    cells(scope, &ways)
}

fn seconds(extent: crate::experiment::Extent) -> f64 {
    extent.choose(1.0, 3.0, 60.0)
}

fn cells(scope: &Scope, ways: &[(&str, Placing)]) -> Vec<Cell> {
    let ours = scope.among(&["pteros"]);
    let cell = |way: &str, contestant| Cell {
        case: vec![("way", way.to_owned())],
        contestant,
        seconds: seconds(scope.extent) + 1.0,
    };
    ways.iter()
        .flat_map(|(way, _)| ours.iter().map(|contestant| cell(way, *contestant)))
        .collect()
}

fn run_nav2(lab: &Lab, cell: &Cell) -> Result<Measured, Failure> {
    run(lab, cell, nav2())
}

fn run_create3(lab: &Lab, cell: &Cell) -> Result<Measured, Failure> {
    run(lab, cell, create3())
}

fn run(lab: &Lab, cell: &Cell, mut graph: Value) -> Result<Measured, Failure> {
    let way = cell.get("way");
    let found = WAYS.iter().find(|(name, _)| *name == way);
    let (_, placing) = found.ok_or_else(|| Failure::Failed(format!("no way {way:?}")))?;
    if way != "composed isolated"
        && let Some(nodes) = graph["nodes"].as_array_mut()
    {
        for node in nodes {
            node["executor_id"] = json!(0);
        }
    }
    let duration = Duration::from_secs_f64(seconds(lab.extent));
    let results = run_graph(lab, &graph, *placing, duration)?;
    let (latency, delivery) = heard(&results);
    Ok(Measured {
        samples: vec![("latency", latency.into_iter().collect())],
        figures: cpu_and_memory(&results).to_vec(),
        delivery: Some(delivery),
        ..Measured::default()
    })
}

fn exhibits(view: &View) -> Vec<Exhibit> {
    [&MEMORY, &CPU, &LATENCY]
        .map(|metric| Exhibit::Table(exhibit::comparison(view, metric)))
        .into()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::topology::{Topology, library};

    #[test]
    fn the_graphs_are_as_large_as_they_say_and_everybody_meets() {
        let library = library();
        for (graph, nodes, topics) in [(nav2(), 15, 18), (create3(), 10, 30)] {
            let read = Topology::parse(Path::new("x.json"), &graph.to_string(), &library);
            let read = read.expect("right");
            assert_eq!(read.warnings, []);
            assert_eq!(read.nodes.len(), nodes);
            let said = read.nodes.iter().flat_map(|n| &n.publishers);
            let said: Vec<_> = said.map(|p| (&p.full_topic, &p.ty)).collect();
            assert_eq!(said.len(), topics);
            for heard in read.nodes.iter().flat_map(|n| &n.subscriptions) {
                assert!(said.contains(&(&heard.full_topic, &heard.ty)), "{heard:?}");
            }
        }
    }
}
