//! M16.5: fairness of one publisher with five subscribing processes (figs 17-19).

use crate::testbed::MeasurementFailure;

use super::{IMPLEMENTATIONS, among, configuration, flow, sizes};
use crate::experiment::{Experiment, Paper, Scope};
use crate::flow::{self, Flow};
use crate::lab::Lab;
use crate::measurement::{
    Better, Configuration, LATENCY, Measurement, Metric, Published, Statistic,
};
use crate::report_items::{self, ReportItem};
use crate::results::View;
use crate::stats;

pub const EXPERIMENT: Experiment = Experiment {
    id: "m16.5",
    paper: Paper::M16,
    title: "Five subscribers",
    reproduces: "figs 17-19",
    question: "Do all subscribers of one publisher receive equally soon?",
    metrics: &[LATENCY, FIRST, LAST, UNFAIRNESS],
    configurations,
    run,
    published: &[
        Published {
            case: &[("qos", "reliable"), ("size", "1048576")],
            implementation: "ROS 1",
            value: "the fifth takes about twice the first",
            source: "fig. 17",
        },
        Published {
            case: &[("qos", "reliable"), ("size", "1048576")],
            implementation: "OpenSplice",
            value: "small differences, all are served fairly",
            source: "figs 18, 19",
        },
    ],
    report_items,
};

/// Subscriptions, one process each.
const SUBSCRIBERS: usize = 5;

const FIRST: Metric = metric("fastest subscriber", "us");
const LAST: Metric = metric("slowest subscriber", "us");
/// Median of the slowest subscriber divided by that of the fastest.
const UNFAIRNESS: Metric = metric("slowest over fastest", "ratio");

const fn metric(name: &'static str, unit: &'static str) -> Metric {
    Metric::new(name, unit, Better::Lower, Statistic::Median)
}

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let extent = scope.extent;
    let sizes = extent.choose(vec![256], vec![64 << 10, 1 << 20], sizes(extent));
    let policies: &[&str] =
        extent.choose(&["reliable"], &["reliable"], &["reliable", "best-effort"]);
    let mut configurations = Vec::new();
    for policies in policies {
        for size in &sizes {
            for implementation in among(scope, &IMPLEMENTATIONS, policies) {
                let case = vec![("qos", (*policies).to_owned()), ("size", size.to_string())];
                let mut configuration =
                    configuration(case, implementation, &flow(policies, *size, extent));
                configuration.seconds += 0.5;
                configurations.push(configuration);
            }
        }
    }
    configurations
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let flow = Flow {
        subscribers: SUBSCRIBERS,
        ..flow(
            configuration.get("qos"),
            configuration.number("size"),
            lab.extent,
        )
    };
    let flowed = flow::run(
        lab,
        lab.implementation(configuration.implementation)?,
        &flow,
    )?;
    let mut measured = flowed.measured(&flow);
    let medians = flowed
        .results
        .iter()
        .map(|results| stats::median(results.messages.iter().map(|m| m.1)));
    let medians = stats::sorted(medians);
    if let (Some(first), Some(last)) = (medians.first(), medians.last()) {
        measured.values = vec![
            (FIRST.name, *first),
            (LAST.name, *last),
            (UNFAIRNESS.name, last / first),
        ];
    }
    Ok(measured)
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let mut all: Vec<ReportItem> = [&LATENCY, &LAST, &UNFAIRNESS]
        .map(|metric| ReportItem::Table(report_items::comparison(view, metric)))
        .into();
    all.push(report_items::lines_by(
        view,
        "The fastest and the slowest of five (figs 17-19)",
        "size",
        &LAST,
        |c| Some(format!("{} {}", c.implementation, c.get("qos"))),
    ));
    all
}
