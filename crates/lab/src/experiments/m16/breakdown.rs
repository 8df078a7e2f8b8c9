//! M16.3: where the time between two processes goes (figs 11, 12): conversion at the
//! publisher, conversion at the subscription, the middleware between, the rest.
//!
//! Ours alone, by the stamps of `pteros::trace`; the other stacks have none. The stamps
//! cost some tenths of a microsecond themselves.

use std::fs;

use pteros::trace::{Hop, Layer, Trace};
use pteros_testbed::Failure;

use super::{cell, flow, sizes};
use crate::exhibit::{self, Exhibit, Figure, Plot, value_text};
use crate::experiment::{
    Better, Cell, Experiment, Measured, Metric, Paper, Published, Scope, Statistic,
};
use crate::flow;
use crate::lab::Lab;
use crate::pipeline::TRACE;
use crate::results::{Figures, View};

/// See the module.
pub const EXPERIMENT: Experiment = Experiment {
    id: "m16.3",
    paper: Paper::M16,
    title: "Where the time goes",
    shows: "figs 11, 12",
    asks: "How much of the latency is conversion of the message, how much the middleware?",
    metrics: &[WHOLE, WRITING, MIDDLEWARE, READING, OTHERS],
    cells,
    run,
    published: &[
        published(&[("qos", "reliable")], "fig. 11"),
        published(&[("qos", "best-effort")], "fig. 12"),
    ],
    exhibits,
};

const fn published(
    case: &'static [(&'static str, &'static str)],
    place: &'static str,
) -> Published {
    Published {
        case,
        who: "OpenSplice",
        value: "two conversions and DDS are all of it and grow with the size; next to nothing is left for others",
        place,
    }
}

const WHOLE: Metric = figure("latency");
const WRITING: Metric = figure("publisher conversion");
/// History, headers, sockets or links, the kernel, the protocol at the other end.
const MIDDLEWARE: Metric = figure("middleware");
const READING: Metric = figure("subscriber conversion");
/// Calls into the runtime before and after, the executor's turn.
const OTHERS: Metric = figure("others");

const PARTS: [&Metric; 4] = [&WRITING, &MIDDLEWARE, &READING, &OTHERS];

const fn figure(name: &'static str) -> Metric {
    Metric {
        name,
        unit: "us",
        better: Better::Neither,
        statistic: Statistic::Median,
    }
}

fn cells(scope: &Scope) -> Vec<Cell> {
    let mut cells = Vec::new();
    for policies in ["reliable", "best-effort"] {
        for size in sizes(scope.extent) {
            for contestant in scope.among(&["pteros", "pteros-udp"]) {
                let case = vec![("qos", policies.to_owned()), ("size", size.to_string())];
                cells.push(cell(case, contestant, &flow(policies, size, scope.extent)));
            }
        }
    }
    cells
}

fn run(lab: &Lab, cell: &Cell) -> Result<Measured, Failure> {
    let folder = lab.scratch_file(&format!("{}.trace", lab.fresh_topic()));
    let mut who = lab.contestant(cell.contestant)?.clone();
    let place = folder.to_string_lossy().into_owned();
    who.environment.push((TRACE, place));
    let flow = flow(cell.get("qos"), cell.number("size"), lab.extent);
    let flowed = flow::run(lab, &who, &flow)?;
    let trace = Trace::load(&folder).map_err(anyhow::Error::from)?;
    let is_flow = |hop: &Hop<'_>| hop.topic.ends_with("/flow");
    let hops: Vec<Hop<'_>> = trace.hops().filter(is_flow).collect();
    if hops.is_empty() {
        return Err(Failure::Failed("the trace has no message".into()));
    }
    let of = |time: fn(&Hop<'_>) -> u64| hops.iter().map(|hop| time(hop) as f64 / 1e3).collect();
    let mut measured = flowed.measured(&flow);
    measured.samples = vec![
        (WHOLE.name, of(|hop| hop.latency())),
        (WRITING.name, of(|hop| hop.serializing)),
        (MIDDLEWARE.name, of(middleware)),
        (READING.name, of(|hop| hop.decoding)),
        (OTHERS.name, of(others)),
    ];
    fs::remove_dir_all(&folder).map_err(anyhow::Error::from)?;
    Ok(measured)
}

fn middleware(hop: &Hop<'_>) -> u64 {
    let all = [Layer::PublisherRmw, Layer::Wire, Layer::SubscriberRmw];
    let all: u64 = all.iter().map(|layer| hop.layer(*layer)).sum();
    all.saturating_sub(hop.serializing)
}

fn others(hop: &Hop<'_>) -> u64 {
    let known = hop.serializing + hop.decoding + middleware(hop);
    hop.latency().saturating_sub(known)
}

fn exhibits(view: &View) -> Vec<Exhibit> {
    let title = "parts of the latency (us), medians";
    let mut all = vec![
        Exhibit::Table(exhibit::comparison(view, &WHOLE)),
        Exhibit::Table(exhibit::parts(view, title, &PARTS)),
    ];
    for policies in view.values("qos") {
        for contestant in view.contestants() {
            let of = view.cells.iter().filter(|c| c.contestant == contestant);
            let bars = of.filter(|c| c.get("qos") == policies).filter_map(|c| {
                let part = |metric: &&Metric| c.figures(metric.name).map(Figures::median);
                let parts: Vec<f64> = PARTS.iter().map(part).collect::<Option<_>>()?;
                let sum = parts.iter().sum::<f64>().max(1e-9);
                let percent = parts.iter().map(|part| part / sum * 100.0).collect();
                Some((value_text("size", c.get("size")), percent))
            });
            let place = if policies == "reliable" { 11 } else { 12 };
            all.push(Exhibit::Figure(Figure {
                title: format!("{contestant}, {policies}: parts of the latency (fig. {place})"),
                x: "size".into(),
                y: "% of the parts' medians".into(),
                plot: Plot::Stack {
                    layers: PARTS.map(|metric| metric.name.to_owned()).into(),
                    bars: bars.collect(),
                },
            }));
        }
    }
    all
}
