//! C23: what composition gains (Macenski et al. 2023): memory of many nodes, CPU and
//! latency by size, goodput, containers, and graphs as large as Nav2 and a Create 3.
//!
//! Ways to place nodes: *processes*, one each; *composed*, all in one, whose messages
//! are serialized as between processes; *composed + intra-process*, where they are handed over;
//! *loaned*, processes whose messages are written and read in memory that the stack lends;
//! *container*, loaded from a shared library (`crates/labnodes`), where that lies beside the command.

pub mod containers;
pub mod goodput;
pub mod graphs;
pub mod memory;
pub mod sizes;

use std::fs;
use std::path::Path;
use std::time::Duration;

use pteros_testbed::Failure;
use serde_json::Value;

use crate::experiment::{Better, Cell, Extent, Metric, Scope, Statistic};
use crate::flow::Flow;
use crate::lab::{Lab, Worker};
use crate::topology::{self, Containers, Division, ProcessResult, RunOptions};

/// CPU of all processes together.
pub(crate) const CPU: Metric = Metric {
    name: "CPU",
    unit: "% of one core",
    better: Better::Lower,
    statistic: Statistic::Mean,
};

/// PSS of all processes together.
pub(crate) const MEMORY: Metric = Metric {
    name: "PSS",
    unit: "MB",
    better: Better::Lower,
    statistic: Statistic::Mean,
};

/// A cell for each way, size and contestant that knows the way.
fn by_way_and_size(
    scope: &Scope,
    ways: &[(&str, &[&'static str])],
    sizes: &[u64],
    flow: impl Fn(&str, u64, Extent) -> Flow,
) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (way, contestants) in ways {
        for size in sizes {
            for contestant in scope.among(contestants) {
                cells.push(Cell {
                    case: vec![("way", (*way).to_owned()), ("size", size.to_string())],
                    contestant,
                    seconds: flow(way, *size, scope.extent).seconds(),
                });
            }
        }
    }
    cells
}

/// How a graph is run.
#[derive(Clone, Copy, Debug)]
struct Placing {
    division: Division,
    intra_process: bool,
    threads: usize,
    /// Loaded by a container with that executor in place of composed by hand.
    container: Option<&'static str>,
}

/// Runs a graph of ours; every publisher has met its subscriptions before it counts.
fn run_graph(
    lab: &Lab,
    graph: &Value,
    placing: Placing,
    duration: Duration,
) -> Result<Vec<ProcessResult>, Failure> {
    let name = lab.fresh_topic();
    let file = lab.scratch_file(&format!("{name}.json"));
    let out = lab.scratch_file(&name);
    let failed = |error: &dyn std::fmt::Display| Failure::Failed(format!("{error:#}"));
    fs::write(&file, graph.to_string()).map_err(|e| failed(&e))?;
    let options = RunOptions {
        worker: Worker::find()?.of_topology(&[]),
        duration,
        division: placing.division,
        out: out.clone(),
        intra_process: placing.intra_process,
        threads: placing.threads,
        container: placing.container.map(containers).transpose()?,
    };
    let library = topology::library();
    let outcome = topology::run(&[file], &library, &options, &mut |_| ());
    let outcome = outcome.map_err(|e| Failure::Failed(format!("{e:#}")))?;
    let _ = fs::remove_dir_all(&out);
    if let Some(unmet) = outcome.results.iter().flat_map(|r| &r.unmet).next() {
        return Err(Failure::Failed(format!("not met: {unmet}")));
    }
    Ok(outcome.results)
}

/// Sums over processes: percent of one core, and MB.
fn cpu_and_memory(results: &[ProcessResult]) -> [(&'static str, f64); 2] {
    let cpu = results.iter().map(|r| r.cpu_percent_of_one).sum();
    let kb: u64 = results.iter().map(|r| r.resources.pss_kb).sum();
    [(CPU.name, cpu), (MEMORY.name, kb as f64 / 1024.0)]
}

/// Messages of all subscriptions: their mean latency in microseconds, weighted, and
/// what became of them.
fn heard(results: &[ProcessResult]) -> (Option<f64>, crate::experiment::Delivery) {
    let rows = || {
        results
            .iter()
            .flat_map(|r| &r.rows)
            .filter(|row| row.kind == "subscription")
    };
    let mut delivery = crate::experiment::Delivery::default();
    let (mut sum, mut count) = (0.0, 0);
    for row in rows() {
        delivery.expected += row.received + row.lost;
        delivery.received += row.received;
        delivery.duplicates += row.duplicates;
        delivery.disordered += row.reordered;
        let counted = row.received - row.too_late;
        if counted > 0 {
            sum += row.latency_us[0] * counted as f64;
            count += counted;
        }
    }
    ((count > 0).then(|| sum / count as f64), delivery)
}

/// Nodes that a container has loaded.
const CONTAINER: &str = "container";

/// The container program and the library of nodes beside this program.
fn containers(executor: &'static str) -> Result<Containers, Failure> {
    let own = std::env::current_exe().map_err(anyhow::Error::from)?;
    let program = own.with_file_name("pteros-container");
    let library = own.with_file_name(Containers::FILE);
    if !(program.is_file() && library.is_file()) {
        let text = "pteros-container and the library of nodes that it loads are not beside this program; build all \
                    at once: cargo build --release -p pteros-cli -p pteros-components -p pteros-lab-nodes";
        return Err(Failure::Unsupported(text.into()));
    }
    Ok(Containers {
        program,
        folder: own.parent().map(Path::to_owned).unwrap_or_default(),
        executor,
    })
}
