//! C23: benefits of node composition (Macenski et al. 2023): memory of many nodes,
//! CPU and latency by size, goodput, containers, and graphs as large as Nav2 and a
//! Create 3.
//!
//! Placements of nodes: *processes*, one each; *composed*, all in one, with
//! messages serialized as between processes; *composed + intra-process*, with
//! intra-process communication; *loaned*, processes with loaned messages;
//! *container*, loaded from a shared library (`tools/lab/nodes`), if it lies in
//! `examples` next to the command.

pub mod containers;
pub mod goodput;
pub mod graphs;
pub mod memory;
pub mod sizes;

use std::fs;
use std::time::Duration;

use crate::testbed::MeasurementFailure;
use serde_json::Value;

use crate::experiment::Scope;
use crate::flow::Flow;
use crate::lab::{Lab, topology_worker};
use crate::measurement::{Better, Configuration, Extent, Metric, Statistic};
use crate::topology::{self, Containers, Division, ProcessResult, RunOptions};

/// CPU of all processes together.
pub(crate) const CPU: Metric = Metric::new("CPU", "% of one core", Better::Lower, Statistic::Mean);

/// PSS of all processes together.
pub(crate) const MEMORY: Metric = Metric::new("PSS", "MB", Better::Lower, Statistic::Mean);

/// A configuration for each placement, size and implementation that supports it.
fn by_placement_and_size(
    scope: &Scope,
    ways: &[(&str, &[&'static str])],
    sizes: &[u64],
    flow: impl Fn(&str, u64, Extent) -> Flow,
) -> Vec<Configuration> {
    let mut configurations = Vec::new();
    for (placement, implementations) in ways {
        for size in sizes {
            for implementation in scope.among(implementations) {
                configurations.push(Configuration {
                    case: vec![
                        ("placement", (*placement).to_owned()),
                        ("size", size.to_string()),
                    ],
                    implementation,
                    seconds: flow(placement, *size, scope.extent).seconds(),
                });
            }
        }
    }
    configurations
}

/// How the nodes of a graph are placed.
#[derive(Clone, Copy, Debug)]
struct GraphPlacement {
    division: Division,
    intra_process: bool,
    threads: usize,
    /// Loaded by a container with that executor, instead of manual composition.
    container: Option<&'static str>,
}

/// Runs a graph of Pteros. Discovery completes before the measurement.
fn run_graph(
    lab: &Lab,
    graph: &Value,
    graph_placement: GraphPlacement,
    duration: Duration,
) -> Result<Vec<ProcessResult>, MeasurementFailure> {
    let name = lab.fresh_topic();
    let file = lab.scratch_file(&format!("{name}.json"));
    let out = lab.scratch_file(&name);
    let failed = |error: &dyn std::fmt::Display| MeasurementFailure::Failed(format!("{error:#}"));
    fs::write(&file, graph.to_string()).map_err(|e| failed(&e))?;
    let options = RunOptions {
        worker: topology_worker(&[])?,
        duration,
        division: graph_placement.division,
        out: out.clone(),
        intra_process: graph_placement.intra_process,
        threads: graph_placement.threads,
        container: graph_placement.container.map(containers).transpose()?,
    };
    let library = topology::library();
    let outcome = topology::run(&[file], &library, &options, &mut |_| ());
    let outcome = outcome.map_err(|e| MeasurementFailure::Failed(format!("{e:#}")))?;
    let _ = fs::remove_dir_all(&out);
    if let Some(unmatched) = outcome.results.iter().flat_map(|r| &r.unmatched).next() {
        return Err(MeasurementFailure::Failed(format!(
            "not matched: {unmatched}"
        )));
    }
    Ok(outcome.results)
}

/// Sums over processes: percent of one core, and MB.
fn cpu_and_memory(results: &[ProcessResult]) -> [(&'static str, f64); 2] {
    let cpu = results.iter().map(|r| r.cpu_percent_of_one).sum();
    let kb: u64 = results.iter().map(|r| r.resources.pss_kb).sum();
    [(CPU.name, cpu), (MEMORY.name, kb as f64 / 1024.0)]
}

/// Weighted mean latency in microseconds and delivery counts of all subscriptions.
fn latency_and_delivery(results: &[ProcessResult]) -> (Option<f64>, crate::measurement::Delivery) {
    let rows = || {
        results
            .iter()
            .flat_map(|r| &r.rows)
            .filter(|row| row.kind == "subscription")
    };
    let mut delivery = crate::measurement::Delivery::default();
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

/// Placement of nodes that a container loads.
const CONTAINER: &str = "container";

/// The container program and the library of nodes next to this program.
fn containers(executor: &'static str) -> Result<Containers, MeasurementFailure> {
    let own = std::env::current_exe().map_err(anyhow::Error::from)?;
    let program = own.with_file_name("pteros-container");
    let folder = own.with_file_name("examples");
    if !(program.is_file() && folder.join(Containers::FILE).is_file()) {
        let text = "pteros-container or its library of nodes is missing next to this program; build all \
                    at once: cargo build --release -p pteros-lab -p pteros-demo-components --bins --examples";
        return Err(MeasurementFailure::Unsupported(text.into()));
    }
    Ok(Containers {
        program,
        folder,
        executor,
    })
}
