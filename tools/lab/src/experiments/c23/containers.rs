//! C23.4: the three executors of component containers (fig. 5), in containers and
//! with manual composition.
//!
//! One publisher of 500 KB at 50 Hz, and N subscriptions that compute 500 us per
//! message. Then without computing. Then N timers, each a publisher without
//! subscriptions.

use std::time::Duration;

use crate::testbed::MeasurementFailure;
use serde_json::{Value, json};

use super::{CONTAINER, CPU, GraphPlacement, cpu_and_memory, latency_and_delivery, run_graph};
use crate::experiment::{Experiment, Paper, Scope};
use crate::lab::Lab;
use crate::measurement::{Configuration, Extent, LATENCY, Measurement};
use crate::report_items::{self, ReportItem};
use crate::results::View;
use crate::topology::Division;

pub const EXPERIMENT: Experiment = Experiment {
    id: "c23.4",
    paper: Paper::C23,
    title: "Containers: which executor for how many nodes",
    reproduces: "fig. 5",
    question: "What do single-threaded, multi-threaded and isolated executors cost, and how late are messages?",
    metrics: &[LATENCY, CPU],
    configurations,
    run,
    published: &[],
    report_items,
};

/// Names in the paper and in the container program.
const EXECUTORS: [(&str, &str); 3] = [
    ("single-threaded", "single"),
    ("multi-threaded", "multi"),
    ("isolated", "isolated"),
];
const BY_HAND: &str = "by hand";
const LOADS: [&str; 3] = ["500 us", "none", "timers"];
const RATE: u64 = 50;

fn numbers(extent: Extent) -> &'static [u64] {
    match extent {
        Extent::Smoke => &[2],
        Extent::Quick => &[1, 8],
        Extent::Full => &[1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20],
    }
}

fn duration(extent: Extent) -> Duration {
    Duration::from_millis(extent.choose(300, 1_000, 10_000))
}

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let mut configurations = Vec::new();
    let mut add = |placed: &str, load: &str, executor: &str, nodes: u64| {
        for implementation in scope.among(&["pteros"]) {
            let case = vec![
                ("placement", placed.to_owned()),
                ("load", load.to_owned()),
                ("executor", executor.to_owned()),
                ("nodes", nodes.to_string()),
            ];
            configurations.push(Configuration {
                case,
                implementation,
                seconds: duration(scope.extent).as_secs_f64() + 0.4,
            });
        }
    };
    for load in LOADS {
        for (executor, _) in EXECUTORS {
            for nodes in numbers(scope.extent) {
                add(CONTAINER, load, executor, *nodes);
            }
            // Beyond the paper: the cost of loading over manual composition.
            let most = numbers(scope.extent).iter().rev();
            let by_hand: Vec<&u64> = match scope.extent {
                Extent::Full => most.collect(),
                _ => most.take(1).collect(),
            };
            for nodes in by_hand {
                add(BY_HAND, load, executor, *nodes);
            }
        }
    }
    configurations
}

fn graph(load: &str, nodes: u64, is_isolated: bool) -> Value {
    let executor = |node: u64| if is_isolated { node } else { 0 };
    let topic = |name: String, ty: &str| json!({ "topic_name": name, "msg_type": ty });
    let mut list = Vec::new();
    if load != "timers" {
        let mut publisher = topic("image".into(), "stamped500kb");
        publisher["freq_hz"] = json!(RATE);
        list.push(json!({ "node_name": "camera", "executor_id": 0, "publishers": [publisher] }));
    }
    for node in 1..=nodes {
        let mut value =
            json!({ "node_name": format!("node_{node}"), "executor_id": executor(node) });
        if load == "timers" {
            let mut publisher = topic(format!("tick_{node}"), "stamped10b");
            publisher["freq_hz"] = json!(RATE);
            value["publishers"] = json!([publisher]);
        } else {
            let mut subscriber = topic("image".into(), "stamped500kb");
            subscriber["work_us"] = json!(if load == "none" { 0 } else { 500 });
            value["subscribers"] = json!([subscriber]);
        }
        list.push(value);
    }
    json!({ "nodes": list })
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let executor = configuration.get("executor");
    let graph = graph(
        configuration.get("load"),
        configuration.number("nodes"),
        executor == "isolated",
    );
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let graph_placement = GraphPlacement {
        division: Division::Composed,
        intra_process: true,
        threads: if executor == "multi-threaded" {
            cores.max(2)
        } else {
            1
        },
        container: EXECUTORS
            .iter()
            .find(|(name, _)| configuration.get("placement") == CONTAINER && *name == executor)
            .map(|(_, word)| *word),
    };
    let results = run_graph(lab, &graph, graph_placement, duration(lab.extent))?;
    let [cpu, _] = cpu_and_memory(&results);
    let (latency, delivery) = latency_and_delivery(&results);
    Ok(Measurement {
        samples: vec![("latency", latency.into_iter().collect())],
        values: vec![cpu],
        delivery: (delivery.expected > 0).then_some(delivery),
        ..Measurement::default()
    })
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let mut all = vec![
        ReportItem::Table(report_items::comparison(view, &LATENCY)),
        ReportItem::Table(report_items::comparison(view, &CPU)),
    ];
    for load in LOADS {
        for (metric, what) in [(&LATENCY, "latency"), (&CPU, "CPU")] {
            let title = format!("work {load}: {what} by number of nodes (fig. 5)");
            all.push(report_items::lines_by(view, title, "nodes", metric, |c| {
                let name = || format!("{} {}", c.get("placement"), c.get("executor"));
                c.is(&[("load", load)]).then(name)
            }));
        }
    }
    all
}
