//! M16.1: latency by size in each situation (figs 5-10): two processes over loopback
//! or shared memory, and both ends in one process.

use super::{cell, flow, sizes};
use crate::exhibit::{self, Exhibit};
use crate::experiment::{Cell, Experiment, LATENCY, Measured, Metric, Paper, Scope};
use crate::flow::{self, Flow};
use crate::lab::Lab;
use crate::results::View;
use pteros_testbed::Failure;

/// See the module.
pub const EXPERIMENT: Experiment = Experiment {
    id: "m16.1",
    paper: Paper::M16,
    title: "Latency of a string by size and situation",
    shows: "figs 5-10",
    asks: "How long does a message take from the publish call to the callback, between processes and within one?",
    metrics: &[METRIC],
    cells,
    run,
    published: &[],
    exhibits,
};

const METRIC: Metric = LATENCY;

const CONTESTANTS: [&str; 5] = [
    "pteros",
    "pteros-udp",
    "cyclone",
    "cyclone-tuned",
    "fastdds",
];

fn cells(scope: &Scope) -> Vec<Cell> {
    let mut cells = Vec::new();
    for situation in ["local", "intra-process"] {
        for policies in ["reliable", "best-effort"] {
            for size in sizes(scope.extent) {
                for contestant in scope.among(&CONTESTANTS) {
                    // Within a process there is no wire to tune.
                    let is_wire = ["pteros-udp", "cyclone-tuned"].contains(&contestant);
                    if is_wire && situation == "intra-process" {
                        continue;
                    }
                    let case = vec![
                        ("situation", situation.to_owned()),
                        ("qos", policies.to_owned()),
                        ("size", size.to_string()),
                    ];
                    cells.push(cell(case, contestant, &flow(policies, size, scope.extent)));
                }
            }
        }
    }
    cells
}

fn run(lab: &Lab, cell: &Cell) -> Result<Measured, Failure> {
    let flow = Flow {
        is_intra: cell.get("situation") == "intra-process",
        ..flow(cell.get("qos"), cell.number("size"), lab.extent)
    };
    let flowed = flow::run(lab, lab.contestant(cell.contestant)?, &flow)?;
    Ok(flowed.measured(&flow))
}

fn exhibits(view: &View) -> Vec<Exhibit> {
    let mut all = vec![Exhibit::Table(exhibit::comparison(view, view.metric()))];
    for situation in view.values("situation") {
        for policies in view.values("qos") {
            let title = format!("{situation}, {policies}: medians by size (figs 7-10)");
            let wanted = [("situation", situation), ("qos", policies)];
            all.push(exhibit::lines(view, title, "size", view.metric(), |c| {
                c.is(&wanted)
            }));
        }
    }
    all.push(exhibit::boxes(
        view,
        "local, reliable: all samples",
        "size",
        view.metric(),
        |c| {
            let is_it = c.is(&[("situation", "local"), ("qos", "reliable")]);
            is_it.then(|| c.contestant.clone())
        },
    ));
    all
}
