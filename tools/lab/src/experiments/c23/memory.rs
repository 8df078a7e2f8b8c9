//! C23.1: memory of one to twenty nodes (fig. 2), as processes and in one process.
//! A node has one publisher and one subscription in every stack.

use std::time::Duration;

use crate::testbed::implementation::OF_RCLCPP;
use crate::testbed::{Implementation, MeasurementFailure, PeerProcess, procfs};

use super::{CONTAINER, MEMORY, containers};
use crate::experiment::{Experiment, Paper, Scope};
use crate::lab::Lab;
use crate::measurement::{Configuration, Extent, Measurement, Published};
use crate::report_items::{self, ReportItem};
use crate::results::View;
use crate::topology::Containers;

pub const EXPERIMENT: Experiment = Experiment {
    id: "c23.1",
    paper: Paper::C23,
    title: "Memory of many nodes",
    reproduces: "fig. 2",
    question: "What does one more node cost, as a process and composed?",
    metrics: &[MEMORY],
    configurations,
    run,
    published: &[
        Published {
            case: &[("placement", "processes"), ("nodes", "2")],
            implementation: "ROS 2",
            value: "+2.1 MB for the second",
            source: "fig. 2",
        },
        Published {
            case: &[("placement", "processes"), ("nodes", "20")],
            implementation: "ROS 2",
            value: "+4.3 MB for the twentieth",
            source: "fig. 2",
        },
        Published {
            case: &[("placement", "composed"), ("nodes", "20")],
            implementation: "ROS 2",
            value: "as much as two processes",
            source: "fig. 2",
        },
        Published {
            case: &[("placement", CONTAINER), ("nodes", "20")],
            implementation: "ROS 2",
            value: "less than 100 KB over composing by hand",
            source: "fig. 2",
        },
    ],
    report_items,
};

const PEERS: [&str; 8] = [
    "pteros",
    "cyclone",
    "fastdds",
    "iceoryx2",
    "zenoh",
    OF_RCLCPP[0],
    OF_RCLCPP[1],
    OF_RCLCPP[2],
];

const PLACEMENTS: [(&str, &[&str]); 3] = [
    ("processes", &PEERS),
    (
        "composed",
        &[
            "pteros",
            "cyclone",
            "fastdds",
            OF_RCLCPP[0],
            OF_RCLCPP[1],
            OF_RCLCPP[2],
        ],
    ),
    (CONTAINER, &["pteros"]),
];

/// Time limit for start and discovery.
const TIMEOUT: Duration = Duration::from_secs(40);

fn numbers(extent: Extent) -> Vec<u64> {
    match extent {
        Extent::Smoke => vec![2],
        Extent::Quick => vec![1, 10, 20],
        Extent::Full => (1..=20).collect(),
    }
}

fn rest(extent: Extent) -> Duration {
    Duration::from_millis(extent.choose(200, 700, 3_000))
}

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let mut configurations = Vec::new();
    for (placement, implementations) in PLACEMENTS {
        for nodes in numbers(scope.extent) {
            for implementation in scope.among(implementations) {
                configurations.push(Configuration {
                    case: vec![
                        ("placement", placement.to_owned()),
                        ("nodes", nodes.to_string()),
                    ],
                    implementation,
                    seconds: rest(scope.extent).as_secs_f64() + 0.05 * nodes as f64,
                });
            }
        }
    }
    configurations
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let (mut implementation, nodes) = (
        lab.implementation(configuration.implementation)?.clone(),
        configuration.number("nodes"),
    );
    let topic = lab.fresh_topic();
    let arguments = |first: u64, count: u64| -> Vec<String> {
        let line = format!("nodes --topic {topic} --nodes {count} --first {first} --of {nodes}");
        line.split(' ').map(str::to_owned).collect()
    };
    let lines: Vec<Vec<String>> = match configuration.get("placement") {
        "processes" => (0..nodes).map(|first| arguments(first, 1)).collect(),
        CONTAINER => vec![load(&mut implementation, nodes, &topic)?],
        _ => vec![arguments(0, nodes)],
    };
    let started: Result<Vec<PeerProcess>, MeasurementFailure> = lines
        .into_iter()
        .map(|line| lab.start(&implementation, false, line))
        .collect();
    let mut started = started?;
    for process in &mut started {
        process.expect("ready", TIMEOUT)?;
    }
    std::thread::sleep(rest(lab.extent));
    let memory = started.iter().map(|process| procfs::memory(process.id()));
    let kb: u64 = memory
        .map(|memory| Ok(memory?.pss_kb))
        .sum::<anyhow::Result<u64>>()?;
    Ok(Measurement {
        values: vec![(MEMORY.name, kb as f64 / 1024.0)],
        ..Measurement::default()
    })
}

/// Replaces the program by a component container, with arguments that load the
/// nodes.
fn load(
    implementation: &mut Implementation,
    nodes: u64,
    topic: &str,
) -> Result<Vec<String>, MeasurementFailure> {
    let container = containers("single")?;
    let folder = container.folder.to_string_lossy().into_owned();
    implementation
        .environment
        .push(("PTEROS_COMPONENT_PATH", folder));
    // The directory of cargo's libraries may hold those of another build.
    implementation
        .environment
        .push(("LD_LIBRARY_PATH", String::new()));
    implementation.program = container.program;
    let mut arguments: Vec<String> = vec!["--executor".into(), container.executor.into()];
    for index in 0..nodes {
        let package = Containers::LIBRARY;
        let line = format!(
            "--load {package} {package}::ScaleTestNode -n scale_test_{index} -p topic:={topic} -p index:={index} -p of:={nodes}"
        );
        arguments.extend(line.split(' ').map(str::to_owned));
    }
    Ok(arguments)
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let lines = |placement: &'static str| {
        let title = format!("{placement}: memory by number of nodes (fig. 2)");
        report_items::lines(view, title, "nodes", &MEMORY, move |c| {
            c.is(&[("placement", placement)])
        })
    };
    vec![
        ReportItem::Table(report_items::comparison(view, &MEMORY)),
        lines("processes"),
        lines("composed"),
        report_items::lines_by(
            view,
            "Pteros: memory by number of nodes and placement (fig. 2)",
            "nodes",
            &MEMORY,
            |c| (c.implementation == "pteros").then(|| c.get("placement").to_owned()),
        ),
    ]
}
