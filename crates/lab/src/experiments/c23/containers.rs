//! C23.4: the three executors of containers (fig. 5), in containers and composed by hand: one publisher of 500 KB at 50 Hz
//! and N subscriptions that compute 500 us for each message; again without computing; again N timers
//! instead, each a publisher that nobody hears.

use std::time::Duration;

use pteros_testbed::Failure;
use serde_json::{Value, json};

use super::{CONTAINER, CPU, Placing, cpu_and_memory, heard, run_graph};
use crate::exhibit::{self, Exhibit};
use crate::experiment::{Cell, Experiment, Extent, LATENCY, Measured, Paper, Scope};
use crate::lab::Lab;
use crate::results::View;
use crate::topology::Division;

/// See the module.
pub const EXPERIMENT: Experiment = Experiment {
    id: "c23.4",
    paper: Paper::C23,
    title: "Containers: which executor for how many nodes",
    shows: "fig. 5",
    asks: "What do one thread, several threads and a thread for each node cost, and how late are messages?",
    metrics: &[LATENCY, CPU],
    cells,
    run,
    published: &[],
    exhibits,
};

/// The paper's words and the container program's.
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

fn cells(scope: &Scope) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut add = |placed: &str, load: &str, executor: &str, nodes: u64| {
        for contestant in scope.among(&["pteros"]) {
            let case = vec![
                ("placed", placed.to_owned()),
                ("load", load.to_owned()),
                ("executor", executor.to_owned()),
                ("nodes", nodes.to_string()),
            ];
            cells.push(Cell {
                case,
                contestant,
                seconds: duration(scope.extent).as_secs_f64() + 0.4,
            });
        }
    };
    for load in LOADS {
        for (executor, _) in EXECUTORS {
            for nodes in numbers(scope.extent) {
                add(CONTAINER, load, executor, *nodes);
            }
            // Beside the paper: what loading costs over composing by hand.
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
    cells
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

fn run(lab: &Lab, cell: &Cell) -> Result<Measured, Failure> {
    let executor = cell.get("executor");
    let graph = graph(
        cell.get("load"),
        cell.number("nodes"),
        executor == "isolated",
    );
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let placing = Placing {
        division: Division::Composed,
        intra_process: true,
        threads: if executor == "multi-threaded" {
            cores.max(2)
        } else {
            1
        },
        container: EXECUTORS
            .iter()
            .find(|(name, _)| cell.get("placed") == CONTAINER && *name == executor)
            .map(|(_, word)| *word),
    };
    let results = run_graph(lab, &graph, placing, duration(lab.extent))?;
    let [cpu, _] = cpu_and_memory(&results);
    let (latency, delivery) = heard(&results);
    Ok(Measured {
        samples: vec![("latency", latency.into_iter().collect())],
        figures: vec![cpu],
        delivery: (delivery.expected > 0).then_some(delivery),
        ..Measured::default()
    })
}

fn exhibits(view: &View) -> Vec<Exhibit> {
    let mut all = vec![
        Exhibit::Table(exhibit::comparison(view, &LATENCY)),
        Exhibit::Table(exhibit::comparison(view, &CPU)),
    ];
    for load in LOADS {
        for (metric, what) in [(&LATENCY, "latency"), (&CPU, "CPU")] {
            let title = format!("work {load}: {what} by number of nodes (fig. 5)");
            all.push(exhibit::lines_by(view, title, "nodes", metric, |c| {
                let name = || format!("{} {}", c.get("placed"), c.get("executor"));
                c.is(&[("load", load)]).then(name)
            }));
        }
    }
    all
}
