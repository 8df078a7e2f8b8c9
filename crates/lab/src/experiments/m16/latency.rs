//! M16.1: latency by size in each situation (figs 5-10): two hosts with 100 Mbit/s
//! between them, two processes over loopback or shared memory, and both ends in one process.

use std::time::Duration;

use super::{CONTESTANTS, among, cell, flow, sizes};
use crate::exhibit::{self, Exhibit};
use crate::experiment::{Cell, Experiment, Extent, LATENCY, Measured, Metric, Paper, Scope};
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

/// As between processes.
const SETTLE: Duration = Duration::from_millis(200);
/// Other settings of the wire between processes, which a full run asks, too.
const TUNED: [&str; 2] = ["pteros-udp", "cyclone-tuned"];

fn cells(scope: &Scope) -> Vec<Cell> {
    let extent = scope.extent;
    let mut cells = Vec::new();
    for situation in ["remote", "local", "intra-process"] {
        let is_wire = situation != "intra-process";
        // Policies say least where nothing is sent.
        let policies = match is_wire || extent == Extent::Full {
            true => &["reliable", "best-effort"][..],
            false => &["reliable"],
        };
        for policies in policies {
            for size in sizes(extent) {
                if situation == "remote" && extent == Extent::Quick && *policies == "best-effort" {
                    continue;
                }
                let mut names = among(scope, &CONTESTANTS, policies);
                if situation == "local" && extent == Extent::Full {
                    names.extend(scope.among(&TUNED));
                }
                for contestant in names {
                    let case = vec![
                        ("situation", situation.to_owned()),
                        ("qos", (*policies).to_owned()),
                        ("size", size.to_string()),
                    ];
                    cells.push(cell(case, contestant, &flow(policies, size, extent)));
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
    let who = lab.contestant(cell.contestant)?;
    if cell.get("situation") == "remote" {
        let (flowed, _) = flow::run_remote(lab, who, &flow, SETTLE, &|| Ok(0))?;
        return Ok(flowed.measured(&flow));
    }
    let flowed = flow::run(lab, who, &flow)?;
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
