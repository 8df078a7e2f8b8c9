//! M16.5: one publisher, five subscribing processes: does the last one wait for the
//! first (figs 17-19)?

use pteros_testbed::Failure;

use super::{CONTESTANTS, among, cell, flow, sizes};
use crate::exhibit::{self, Exhibit};
use crate::experiment::{
    Better, Cell, Experiment, LATENCY, Measured, Metric, Paper, Published, Scope, Statistic,
};
use crate::flow::{self, Flow};
use crate::lab::Lab;
use crate::results::View;
use crate::stats;

/// See the module.
pub const EXPERIMENT: Experiment = Experiment {
    id: "m16.5",
    paper: Paper::M16,
    title: "Five subscribers",
    shows: "figs 17-19",
    asks: "Do all subscribers of one publisher hear it equally soon?",
    metrics: &[LATENCY, FIRST, LAST, UNFAIRNESS],
    cells,
    run,
    published: &[
        Published {
            case: &[("qos", "reliable"), ("size", "1048576")],
            who: "ROS 1",
            value: "the fifth takes about twice the first",
            place: "fig. 17",
        },
        Published {
            case: &[("qos", "reliable"), ("size", "1048576")],
            who: "OpenSplice",
            value: "small differences, all are served fairly",
            place: "figs 18, 19",
        },
    ],
    exhibits,
};

/// Subscriptions, a process each.
const SUBSCRIBERS: usize = 5;

const FIRST: Metric = figure("fastest subscriber", "us");
const LAST: Metric = figure("slowest subscriber", "us");
/// The slowest subscriber's median over the fastest one's.
const UNFAIRNESS: Metric = figure("slowest over fastest", "ratio");

const fn figure(name: &'static str, unit: &'static str) -> Metric {
    Metric {
        name,
        unit,
        better: Better::Lower,
        statistic: Statistic::Median,
    }
}

fn cells(scope: &Scope) -> Vec<Cell> {
    let extent = scope.extent;
    let sizes = extent.choose(vec![256], vec![64 << 10, 1 << 20], sizes(extent));
    let policies: &[&str] =
        extent.choose(&["reliable"], &["reliable"], &["reliable", "best-effort"]);
    let mut cells = Vec::new();
    for policies in policies {
        for size in &sizes {
            for contestant in among(scope, &CONTESTANTS, policies) {
                let case = vec![("qos", (*policies).to_owned()), ("size", size.to_string())];
                let mut cell = cell(case, contestant, &flow(policies, *size, extent));
                cell.seconds += 0.5;
                cells.push(cell);
            }
        }
    }
    cells
}

fn run(lab: &Lab, cell: &Cell) -> Result<Measured, Failure> {
    let flow = Flow {
        subscribers: SUBSCRIBERS,
        ..flow(cell.get("qos"), cell.number("size"), lab.extent)
    };
    let flowed = flow::run(lab, lab.contestant(cell.contestant)?, &flow)?;
    let mut measured = flowed.measured(&flow);
    let medians = flowed
        .heard
        .iter()
        .map(|heard| stats::median(heard.messages.iter().map(|m| m.1)));
    let medians = stats::sorted(medians);
    if let (Some(first), Some(last)) = (medians.first(), medians.last()) {
        measured.figures = vec![
            (FIRST.name, *first),
            (LAST.name, *last),
            (UNFAIRNESS.name, last / first),
        ];
    }
    Ok(measured)
}

fn exhibits(view: &View) -> Vec<Exhibit> {
    let mut all: Vec<Exhibit> = [&LATENCY, &LAST, &UNFAIRNESS]
        .map(|metric| Exhibit::Table(exhibit::comparison(view, metric)))
        .into();
    all.push(exhibit::lines_by(
        view,
        "The fastest and the slowest of five (figs 17-19)",
        "size",
        &LAST,
        |c| Some(format!("{} {}", c.contestant, c.get("qos"))),
    ));
    all
}
