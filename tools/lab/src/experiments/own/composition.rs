//! Composition benchmark: cost of nodes as separate processes, composed by hand and
//! loaded by a component container (Macenski et al. 2023, fig. 2 and table I;
//! docs/measurements/composition.md).
//!
//! It measures the memory of empty nodes, with and without parameter services, and
//! the memory and CPU time of a graph of fifteen. As many processes of Cyclone DDS
//! with one reader each run for comparison.

use std::process::Command;
use std::time::Duration;

use crate::testbed::{MeasurementFailure, PeerProcess};

use super::{
    AtRest, CPU_PERCENT, PSS, digits, idle_participants, metric, program, start_idle, targets,
};
use crate::experiment::{Experiment, Paper, Scope};
use crate::lab::Lab;
use crate::measurement::{Better, Configuration, Extent, Measurement, Metric, Published};
use crate::report_items::{ReportItem, Table, TableEntry, parts};
use crate::results::View;

pub const EXPERIMENT: Experiment = Experiment {
    id: "own.composition",
    paper: Paper::Own,
    title: "Memory and CPU time of composed nodes",
    reproduces: "docs/measurements/composition.md",
    question: "What does a node cost as a process, composed by hand, and loaded by a container?",
    metrics: &[PSS, CPU_PERCENT, THREADS],
    configurations,
    run,
    // Fifteen nodes of Nav2 themselves, which compute what these only publish.
    published: &[
        published(
            &[("class", GRAPH), ("placement", PROCESSES)],
            "118.85 MB, 48.6 %",
        ),
        published(
            &[("class", GRAPH), ("placement", STATIC)],
            "67.13 MB, 36.6 %",
        ),
        published(
            &[("class", GRAPH), ("placement", "container single")],
            "67.67 MB, 36.1 %",
        ),
    ],
    report_items,
};

const fn published(
    case: &'static [(&'static str, &'static str)],
    value: &'static str,
) -> Published {
    Published {
        case,
        implementation: "ROS 2",
        value,
        source: "table I",
    }
}

const THREADS: Metric = metric("threads", "", Better::Neither);

/// Classes: empty nodes as in ROS 2, without parameter services, and the graph.
const EMPTY: &str = "Empty";
const BARE: &str = "Bare";
const GRAPH: &str = "GraphNode";

const PROCESSES: &str = "one process each";
const STATIC: &str = "by hand static";
const SHARED: &str = "by hand shared library";
const CONTAINERS: [&str; 3] = ["container single", "container isolated", "container multi"];

const GRAPH_NODES: u64 = 15;
/// Pause before processes are measured; discovery is over by then.
const REST: Duration = Duration::from_secs(2);
const LIBRARY: &str = "compose_library";
/// Targets: KB of a composed node, KB of loading over composing by hand.
const NODE_KB_MAX: f64 = 60.0;
const DYNAMIC_KB_MAX: f64 = 100.0;

fn numbers(extent: Extent) -> &'static [u64] {
    extent.choose(&[2], &[1, 2, 10], &[1, 2, 5, 10, 15, 20])
}

fn time(extent: Extent) -> Duration {
    Duration::from_secs(extent.choose(1, 3, 10))
}

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let mut all = Vec::new();
    let mut add = |class: &str, placement: &str, nodes: u64, name: &'static str| {
        for implementation in scope.among(&[name]) {
            all.push(Configuration {
                case: vec![
                    ("class", class.to_owned()),
                    ("placement", placement.to_owned()),
                    ("nodes", nodes.to_string()),
                ],
                implementation,
                seconds: REST.as_secs_f64() + 1.0 + 0.1 * nodes as f64,
            });
        }
    };
    for class in [EMPTY, BARE] {
        for nodes in numbers(scope.extent) {
            for placement in [PROCESSES, STATIC, SHARED, CONTAINERS[0]] {
                add(class, placement, *nodes, "pteros");
            }
            if class == EMPTY {
                add(class, PROCESSES, *nodes, "cyclone");
            }
        }
    }
    for placement in [PROCESSES, STATIC, SHARED].into_iter().chain(CONTAINERS) {
        add(GRAPH, placement, GRAPH_NODES, "pteros");
    }
    all
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let implementation = lab.implementation(configuration.implementation)?;
    let (class, nodes) = (configuration.get("class"), configuration.number("nodes"));
    let processes = if implementation.is_ours() {
        start(class, configuration.get("placement"), nodes)?
    } else {
        idle_participants(lab, implementation, nodes)?
    };
    std::thread::sleep(REST);
    let is_active = class == GRAPH;
    let time = if is_active {
        time(lab.extent)
    } else {
        Duration::ZERO
    };
    let rest = AtRest::of(&processes, time)?;
    let mut values = vec![(PSS.name, rest.pss_kb), (THREADS.name, rest.threads)];
    if is_active {
        values.push((CPU_PERCENT.name, rest.cpu_percent()));
    }
    Ok(Measurement {
        values,
        ..Measurement::default()
    })
}

fn start(class: &str, placement: &str, nodes: u64) -> Result<Vec<PeerProcess>, MeasurementFailure> {
    const PACKAGE: &str = "pteros-demo-components";
    let by_hand =
        |name: &str, words: &[&str]| start_idle(Command::new(program(name, PACKAGE)?).args(words));
    let empty = class.to_lowercase();
    let words = |nodes: &str| -> Vec<String> {
        match class {
            GRAPH => vec!["graph".to_owned()],
            _ => vec![empty.clone(), nodes.to_owned()],
        }
    };
    let all = words(&nodes.to_string());
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let executor = placement.strip_prefix("container ");
    match placement {
        PROCESSES => (0..nodes)
            .map(|row| match class {
                GRAPH => by_hand("compose_static", &["row", &row.to_string()]),
                _ => by_hand("compose_static", &[&empty, "1"]),
            })
            .collect(),
        STATIC => Ok(vec![by_hand("compose_static", &all)?]),
        SHARED => Ok(vec![by_hand("compose_shared", &all)?]),
        _ => Ok(vec![container(executor.unwrap_or("single"), class, nodes)?]),
    }
}

/// A container that loads the nodes at its start.
fn container(executor: &str, class: &str, nodes: u64) -> Result<PeerProcess, MeasurementFailure> {
    const PACKAGE: &str = "pteros-demo-components";
    let container = program("pteros-container", PACKAGE)?;
    let libraries = program("compose_static", PACKAGE)?;
    // It logs on standard error that it is ready.
    let mut command = Command::new("sh");
    command
        .args(["-c", r#"exec "$@" 2>&1"#, "sh"])
        .arg(container);
    if let Some(folder) = libraries.parent() {
        command.env("PTEROS_COMPONENT_PATH", folder);
    }
    command.args(["--executor", executor]);
    for node in 0..nodes {
        let class = format!("{LIBRARY}::{class}");
        command.args(["--load", LIBRARY, &class, "-n", &format!("node_{node}")]);
        if class.ends_with(GRAPH) {
            command.args(["-p", &format!("row:={node}")]);
        }
    }
    start_idle(&mut command)
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let mut items = Vec::new();
    let mut met = Vec::new();
    for class in [EMPTY, BARE] {
        let kb = |placement: &str, implementation: &str, nodes: &str| {
            let wanted = [("class", class), ("placement", placement), ("nodes", nodes)];
            let value = view.value(implementation, &wanted, PSS.name);
            value.unwrap_or(f64::NAN)
        };
        let is_class = |nodes: &&&str| {
            let wanted = [("class", class), ("nodes", **nodes)];
            view.configurations.iter().any(|c| c.is(&wanted))
        };
        let all = view.values("nodes");
        let nodes: Vec<&str> = all.iter().filter(is_class).copied().collect();
        let (Some(least), Some(most)) = (nodes.first(), nodes.last()) else {
            continue;
        };
        let count = |nodes: &str| nodes.parse::<f64>().unwrap_or(f64::NAN);
        // Cost of one more node, between two numbers of them.
        let slope = |placement: &str, name: &str, few: &str, many: &str| {
            (kb(placement, name, many) - kb(placement, name, few)) / (count(many) - count(few))
        };
        let mut rows = Vec::new();
        let placements = [PROCESSES, STATIC, SHARED, CONTAINERS[0]].map(|p| (p, "pteros"));
        for (placement, name) in placements.into_iter().chain([(PROCESSES, "cyclone")]) {
            let values = nodes.iter().map(|nodes| kb(placement, name, nodes));
            let values: Vec<f64> = values.collect();
            if values.iter().all(|kb| kb.is_nan()) {
                continue;
            }
            let what = match name {
                "pteros" => placement.to_owned(),
                _ => format!("{name}, {placement}"),
            };
            let each = slope(placement, name, least, most);
            if [STATIC, SHARED, CONTAINERS[0]].contains(&placement) && each.is_finite() {
                let what = format!("{class}: a node {placement} at most {NODE_KB_MAX} KB");
                met.push((what, format!("{each:.1}"), each <= NODE_KB_MAX));
            }
            let mut row = vec![TableEntry::plain(what)];
            row.extend(values.iter().map(|kb| TableEntry::plain(digits(*kb))));
            row.push(TableEntry::plain(digits(each)));
            rows.push(row);
        }
        let more = nodes
            .iter()
            .map(|n| kb(CONTAINERS[0], "pteros", n) - kb(SHARED, "pteros", n));
        let more = more.fold(f64::NAN, f64::max);
        if more.is_finite() {
            let what = format!("{class}: container minus by hand at most {DYNAMIC_KB_MAX} KB");
            met.push((what, format!("{more:.0}"), more <= DYNAMIC_KB_MAX));
        }
        // On a straight line the second half is as steep as the first.
        if let Some(middle) = nodes.get(nodes.len() / 2) {
            let early = slope(PROCESSES, "pteros", least, middle);
            let late = slope(PROCESSES, "pteros", middle, most);
            if early.is_finite() && late.is_finite() {
                let what = format!("{class}: processes linear in their number, KB each");
                let text = format!("{early:.0} up to {middle}, {late:.0} beyond");
                met.push((what, text, late <= early * 1.2));
            }
        }
        let mut columns = vec![String::new()];
        columns.extend(nodes.iter().map(|nodes| (*nodes).to_owned()));
        columns.push("one more".to_owned());
        let kind = match class {
            EMPTY => "with parameter services, as in ROS 2",
            _ => "without parameter services",
        };
        items.push(ReportItem::Table(Table {
            title: format!("Empty nodes {kind}: PSS of all processes, KB"),
            columns,
            rows,
            note: String::new(),
        }));
    }
    let mut graph = view.clone();
    graph.configurations.retain(|c| c.get("class") == GRAPH);
    items.push(ReportItem::Table(parts(
        &graph,
        "Active graph of 15 managed nodes",
        &[&PSS, &CPU_PERCENT, &THREADS],
    )));
    items.push(ReportItem::Table(targets(met)));
    items
}
