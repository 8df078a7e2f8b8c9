//! M16.6: bytes of messages on a link of 100 Mbit/s (figs 20, 21): a constant
//! overhead for small messages, and the link's limit for large ones.
//!
//! Bytes are counted at the publisher's network device in both directions, after
//! discovery until the last message. Periodic announcements count.

use std::process::Command;
use std::time::Duration;

use crate::testbed::hosts::{NAMES, TwoHosts};
use crate::testbed::{EmulatedLink, MeasurementFailure};
use anyhow::{Context, bail};

use super::{IMPLEMENTATIONS, among, configuration, flow};
use crate::experiment::{Experiment, Paper, Scope};
use crate::flow;
use crate::lab::Lab;
use crate::measurement::{Better, Configuration, Measurement, Metric, Published, Statistic};
use crate::report_items::{self, ReportItem};
use crate::results::View;

pub const EXPERIMENT: Experiment = Experiment {
    id: "m16.6",
    paper: Paper::M16,
    title: "Throughput to another host",
    reproduces: "figs 20, 21",
    question: "How many bytes does a message cost on the wire, and is the link used up to its limit?",
    metrics: &[OVERHEAD, WIRE, GOODPUT],
    configurations,
    run,
    published: &[
        Published {
            case: &[("size", "256")],
            implementation: "ROS 2",
            value: "a constant number of bytes per message up to 2 KB, Connext's less than OpenSplice's",
            source: "fig. 20",
        },
        Published {
            case: &[("size", "4194304")],
            implementation: "ROS 1, ROS 2",
            value: "the network's limit, 12.5 MB/s",
            source: "fig. 21",
        },
    ],
    report_items,
};

/// Bytes on the wire without the payload.
const OVERHEAD: Metric = metric("overhead per message", "bytes", Better::Lower);
const WIRE: Metric = metric("on the wire", "kB/s", Better::Neither);
const GOODPUT: Metric = metric("payload", "kB/s", Better::Higher);

const fn metric(name: &'static str, unit: &'static str, better: Better) -> Metric {
    Metric::new(name, unit, better, Statistic::Median)
}

/// Pause until discovery is complete.
const SETTLE: Duration = Duration::from_millis(800);

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let extent = scope.extent;
    let sizes = extent.choose(
        vec![256],
        vec![256, 256 << 10],
        (8..=22).map(|power| 1 << power).collect(),
    );
    let mut configurations = Vec::new();
    for policies in extent.choose(
        &["reliable"][..],
        &["reliable"],
        &["reliable", "best-effort"],
    ) {
        for size in &sizes {
            for implementation in among(scope, &IMPLEMENTATIONS, policies) {
                let case = vec![("qos", (*policies).to_owned()), ("size", size.to_string())];
                let mut configuration =
                    configuration(case, implementation, &flow(policies, *size, extent));
                configuration.seconds += 0.8;
                configurations.push(configuration);
            }
        }
    }
    configurations
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let flow = flow(
        configuration.get("qos"),
        configuration.number("size"),
        lab.extent,
    );
    let implementation = lab.implementation(configuration.implementation)?;
    let (flowed, wire) = flow::run_remote(
        lab,
        implementation,
        &flow,
        EmulatedLink::FAST_ETHERNET,
        SETTLE,
        &device_bytes,
    )?;
    let mut measured = flowed.measured(&flow);
    // M16.1 measures the latency over a link.
    measured.samples.clear();
    let received = measured.delivery.map_or(0, |d| d.received);
    let wall_ms: f64 = flowed.results.iter().map(|h| h.wall_ms).fold(0.0, f64::max);
    if received < 2 || wall_ms <= 0.0 {
        return Err(MeasurementFailure::Failed(format!(
            "{received} messages received"
        )));
    }
    // There is one interval less than messages.
    let seconds = wall_ms / 1e3 * flow.count as f64 / (flow.count - 1).max(1) as f64;
    let payload = received * flow.size;
    measured.values = vec![
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
    let [ip, arguments @ ..] = TwoHosts::command_prefix(NAMES[0]);
    let folder = format!("/sys/class/net/{}0/statistics", NAMES[0]);
    let mut read = Command::new(ip);
    read.args(arguments).arg("cat");
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

fn report_items(view: &View) -> Vec<ReportItem> {
    let name = |c: &crate::results::ConfigurationResult| {
        Some(format!("{} {}", c.implementation, c.get("qos")))
    };
    let mut all: Vec<ReportItem> = [&OVERHEAD, &WIRE, &GOODPUT]
        .map(|metric| ReportItem::Table(report_items::comparison(view, metric)))
        .into();
    all.push(report_items::lines_by(
        view,
        "On the wire at 10 Hz (figs 20, 21)",
        "size",
        &WIRE,
        name,
    ));
    all
}
