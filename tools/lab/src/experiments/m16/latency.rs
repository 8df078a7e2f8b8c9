//! M16.1: latency by size in each situation (figs 5-10): two hosts with 100 Mbit/s,
//! two processes over loopback or shared memory, and both endpoints in one process.

use std::time::Duration;

use super::{IMPLEMENTATIONS, among, configuration, flow, sizes};
use crate::experiment::{Experiment, Paper, Scope};
use crate::flow::{self, Flow};
use crate::lab::Lab;
use crate::measurement::{Configuration, Extent, LATENCY, Measurement, Metric};
use crate::report_items::{self, ReportItem};
use crate::results::View;
use crate::testbed::{EmulatedLink, MeasurementFailure};

pub const EXPERIMENT: Experiment = Experiment {
    id: "m16.1",
    paper: Paper::M16,
    title: "Latency of a string by size and situation",
    reproduces: "figs 5-10",
    question: "How long does a message take from the publish call to the callback, between processes and within one?",
    metrics: &[METRIC],
    configurations,
    run,
    published: &[],
    report_items,
};

const METRIC: Metric = LATENCY;

/// Pause after matching, as between processes.
const SETTLE: Duration = Duration::from_millis(200);
/// Other transport settings between processes, in full runs only.
const TUNED: [&str; 2] = ["pteros-udp", "cyclone-tuned"];

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let extent = scope.extent;
    let mut configurations = Vec::new();
    for situation in ["remote", "local", "intra-process"] {
        let is_wire = situation != "intra-process";
        // Policies matter least where nothing is sent.
        let policies = if is_wire || extent == Extent::Full {
            &["reliable", "best-effort"][..]
        } else {
            &["reliable"]
        };
        for policies in policies {
            for size in sizes(extent) {
                if situation == "remote" && extent == Extent::Quick && *policies == "best-effort" {
                    continue;
                }
                let mut names = among(scope, &IMPLEMENTATIONS, policies);
                if situation == "local" && extent == Extent::Full {
                    names.extend(scope.among(&TUNED));
                }
                for implementation in names {
                    let case = vec![
                        ("situation", situation.to_owned()),
                        ("qos", (*policies).to_owned()),
                        ("size", size.to_string()),
                    ];
                    configurations.push(configuration(
                        case,
                        implementation,
                        &flow(policies, size, extent),
                    ));
                }
            }
        }
    }
    configurations
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let flow = Flow {
        is_intra: configuration.get("situation") == "intra-process",
        ..flow(
            configuration.get("qos"),
            configuration.number("size"),
            lab.extent,
        )
    };
    let implementation = lab.implementation(configuration.implementation)?;
    if configuration.get("situation") == "remote" {
        let (flowed, _) = flow::run_remote(
            lab,
            implementation,
            &flow,
            EmulatedLink::FAST_ETHERNET,
            SETTLE,
            &|| Ok(0),
        )?;
        return Ok(flowed.measured(&flow));
    }
    let flowed = flow::run(lab, implementation, &flow)?;
    Ok(flowed.measured(&flow))
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let mut all = vec![ReportItem::Table(report_items::comparison(
        view,
        view.metric(),
    ))];
    for situation in view.values("situation") {
        for policies in view.values("qos") {
            let title = format!("{situation}, {policies}: medians by size (figs 7-10)");
            let wanted = [("situation", situation), ("qos", policies)];
            all.push(report_items::lines(
                view,
                title,
                "size",
                view.metric(),
                |c| c.is(&wanted),
            ));
        }
    }
    all.push(report_items::boxes(
        view,
        "local, reliable: all samples",
        "size",
        view.metric(),
        |c| {
            let is_it = c.is(&[("situation", "local"), ("qos", "reliable")]);
            is_it.then(|| c.implementation.clone())
        },
    ));
    all
}
