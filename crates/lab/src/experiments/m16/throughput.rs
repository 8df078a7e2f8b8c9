//! M16.6: what messages cost on a cable of 100 Mbit/s (figs 20, 21): a constant number
//! of bytes beside each small one, and the cable's limit for large ones.
//!
//! Bytes are counted by the publisher's network device, both ways: after discovery, until
//! the last message came. What is told regularly meanwhile counts.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use pteros_testbed::Failure;
use pteros_testbed::hosts::{NAMES, TwoHosts};

use super::{CONTESTANTS, among, cell, flow};
use crate::exhibit::{self, Exhibit};
use crate::experiment::{
    Better, Cell, Experiment, Measured, Metric, Paper, Published, Scope, Statistic,
};
use crate::flow;
use crate::lab::Lab;
use crate::results::View;

/// See the module.
pub const EXPERIMENT: Experiment = Experiment {
    id: "m16.6",
    paper: Paper::M16,
    title: "Throughput to another host",
    shows: "figs 20, 21",
    asks: "How many bytes does a message cost on the wire, and is the cable used up to its limit?",
    metrics: &[OVERHEAD, WIRE, GOODPUT],
    cells,
    run,
    published: &[
        Published {
            case: &[("size", "256")],
            who: "ROS 2",
            value: "a constant number of bytes per message up to 2 KB, Connext's less than OpenSplice's",
            place: "fig. 20",
        },
        Published {
            case: &[("size", "4194304")],
            who: "ROS 1, ROS 2",
            value: "the network's limit, 12.5 MB/s",
            place: "fig. 21",
        },
    ],
    exhibits,
};

/// On the wire beside the payload.
const OVERHEAD: Metric = figure("overhead per message", "bytes", Better::Lower);
const WIRE: Metric = figure("on the wire", "kB/s", Better::Neither);
const GOODPUT: Metric = figure("payload", "kB/s", Better::Higher);

const fn figure(name: &'static str, unit: &'static str, better: Better) -> Metric {
    Metric {
        name,
        unit,
        better,
        statistic: Statistic::Median,
    }
}

/// Discovery is over by then.
const SETTLE: Duration = Duration::from_millis(800);

fn cells(scope: &Scope) -> Vec<Cell> {
    let extent = scope.extent;
    let sizes = extent.choose(
        vec![256],
        vec![256, 256 << 10],
        (8..=22).map(|power| 1 << power).collect(),
    );
    let mut cells = Vec::new();
    for policies in extent.choose(
        &["reliable"][..],
        &["reliable"],
        &["reliable", "best-effort"],
    ) {
        for size in &sizes {
            for contestant in among(scope, &CONTESTANTS, policies) {
                let case = vec![("qos", (*policies).to_owned()), ("size", size.to_string())];
                let mut cell = cell(case, contestant, &flow(policies, *size, extent));
                cell.seconds += 0.8;
                cells.push(cell);
            }
        }
    }
    cells
}

fn run(lab: &Lab, cell: &Cell) -> Result<Measured, Failure> {
    let flow = flow(cell.get("qos"), cell.number("size"), lab.extent);
    let who = lab.contestant(cell.contestant)?;
    let (flowed, wire) = flow::run_remote(lab, who, &flow, SETTLE, &device_bytes)?;
    let mut measured = flowed.measured(&flow);
    // Latency over a cable is M16.1's.
    measured.samples.clear();
    let received = measured.delivery.map_or(0, |d| d.received);
    let wall_ms: f64 = flowed.heard.iter().map(|h| h.wall_ms).fold(0.0, f64::max);
    if received < 2 || wall_ms <= 0.0 {
        return Err(Failure::Failed(format!("{received} messages came")));
    }
    // From the first to the last message one interval less than messages.
    let seconds = wall_ms / 1e3 * flow.count as f64 / (flow.count - 1).max(1) as f64;
    let payload = received * flow.size;
    measured.figures = vec![
        (
            OVERHEAD.name,
            (wire as f64 - payload as f64) / flow.count as f64,
        ),
        (WIRE.name, wire as f64 / seconds / 1e3),
        (GOODPUT.name, payload as f64 / seconds / 1e3),
    ];
    Ok(measured)
}

/// Bytes that the publisher's host has sent and received.
fn device_bytes() -> anyhow::Result<u64> {
    let [ip, words @ ..] = TwoHosts::words(NAMES[0]);
    let folder = format!("/sys/class/net/{}0/statistics", NAMES[0]);
    let mut read = Command::new(ip);
    read.args(words).arg("cat");
    read.args(["tx_bytes", "rx_bytes"].map(|name| format!("{folder}/{name}")));
    let outcome = read.output().context("run ip netns")?;
    if !outcome.status.success() {
        bail!(
            "read {folder}: {}",
            String::from_utf8_lossy(&outcome.stderr).trim()
        );
    }
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let numbers = text.split_whitespace().map(|word| word.parse::<u64>());
    let numbers: Result<Vec<u64>, _> = numbers.collect();
    Ok(numbers
        .with_context(|| format!("read {folder}: {text}"))?
        .iter()
        .sum())
}

fn exhibits(view: &View) -> Vec<Exhibit> {
    let name = |c: &crate::results::CellResult| Some(format!("{} {}", c.contestant, c.get("qos")));
    let mut all: Vec<Exhibit> = [&OVERHEAD, &WIRE, &GOODPUT]
        .map(|metric| Exhibit::Table(exhibit::comparison(view, metric)))
        .into();
    all.push(exhibit::lines_by(
        view,
        "On the wire at 10 Hz (figs 20, 21)",
        "size",
        &WIRE,
        name,
    ));
    all
}
