//! K21.3: where the time goes, by layer (fig. 6). Ours by stamps at the boundaries
//! of the layers; of the other stacks, which have none, the whole. What the stamps themselves
//! cost is in the same turns: ours with them and without.

use super::{CONTESTANTS, LATENCY, cell, pipeline};
use crate::exhibit::{self, Entry, Exhibit, Figure, Plot, Table, bytes_text};
use crate::experiment::{Better, Cell, Experiment, Measured, Metric, Paper, Scope, Statistic};
use crate::lab::Lab;
use crate::pipeline::PARTS;
use crate::results::{CellResult, Figures, View};
use pteros_testbed::contestant::PTEROS;
use pteros_testbed::{Failure, contestant};

/// See the module.
pub const EXPERIMENT: Experiment = Experiment {
    id: "k21.3",
    paper: Paper::K21,
    title: "Where the time of a pipeline's messages goes",
    shows: "fig. 6",
    asks: "What does each layer cost, and the wait between two of them?",
    metrics: METRICS,
    cells,
    run,
    published: &[],
    exhibits,
};

const METRICS: &[Metric] = &[
    LATENCY,
    part(PARTS[0]),
    part(PARTS[1]),
    part(PARTS[2]),
    part(PARTS[3]),
    part(PARTS[4]),
    part(PARTS[5]),
    part(PARTS[6]),
];

const fn part(name: &'static str) -> Metric {
    Metric {
        name,
        unit: "us",
        better: Better::Neither,
        statistic: Statistic::Median,
    }
}

fn cells(scope: &Scope) -> Vec<Cell> {
    let sizes: &[u64] = scope
        .extent
        .choose(&[128], &[128, 500_000], &[128, 500_000]);
    let mut cells = Vec::new();
    for size in sizes {
        let parameters = (3, *size, 100, "best-effort");
        for stamps in [WITHOUT, WITH] {
            for contestant in scope.among(&CONTESTANTS) {
                if stamps == WITHOUT || contestant::stack_of(contestant) == PTEROS {
                    let mut cell = cell(scope.extent, parameters, contestant);
                    cell.case.push(("stamps", stamps.to_owned()));
                    cells.push(cell);
                }
            }
        }
    }
    cells
}

const WITHOUT: &str = "without stamps";
const WITH: &str = "with stamps";

fn run(lab: &Lab, cell: &Cell) -> Result<Measured, Failure> {
    let who = lab.contestant(cell.contestant)?;
    let pipeline = pipeline(lab.extent, cell);
    match cell.get("stamps") {
        WITH => pipeline.profile(lab, who),
        _ => pipeline.run(lab, who),
    }
}

fn exhibits(view: &View) -> Vec<Exhibit> {
    let parts: Vec<&'static Metric> = METRICS.iter().skip(1).collect();
    let title = "where the time goes by layer (us), medians over messages of the sum over hops";
    let mut all = vec![
        Exhibit::Table(exhibit::comparison(view, view.metric())),
        Exhibit::Table(exhibit::parts(view, title, &parts)),
        Exhibit::Table(cost_of_stamps(view)),
    ];
    let mut layers: Vec<String> = PARTS.iter().map(|part| (*part).to_owned()).collect();
    layers.push("all of it, without stamps".to_owned());
    for size in view.values("size") {
        let of_size = view.cells.iter().filter(|cell| cell.get("size") == size);
        let bars = of_size.filter_map(|cell| {
            let median = |name: &str| cell.figures(name).map_or(0.0, Figures::median);
            let mut parts: Vec<f64> = PARTS.iter().map(|name| median(name)).collect();
            let whole = cell.figures(LATENCY.name)?.pooled?.p50;
            let is_stamped = parts.iter().any(|part| *part > 0.0);
            let is_shown_by_parts = contestant::stack_of(&cell.contestant) == PTEROS;
            if is_shown_by_parts && !is_stamped {
                return None;
            }
            parts.push(if is_stamped { 0.0 } else { whole });
            Some((cell.contestant.clone(), parts))
        });
        let bytes = size.parse().map_or(size.to_owned(), bytes_text);
        all.push(Exhibit::Figure(Figure {
            title: format!("{bytes} through three nodes: medians by layer (fig. 6)"),
            x: "contestant".to_owned(),
            y: "us".to_owned(),
            plot: Plot::Stack {
                layers: layers.clone(),
                bars: bars.collect(),
            },
        }));
    }
    all
}

/// Ours with stamps over ours without, by size.
fn cost_of_stamps(view: &View) -> Table {
    let mut rows = Vec::new();
    for without in view.cells.iter().filter(|c| c.get("stamps") == WITHOUT) {
        let size = without.get("size");
        let with = view.cells.iter().find(|c| {
            c.contestant == without.contestant && c.is(&[("stamps", WITH), ("size", size)])
        });
        let Some(with) = with else { continue };
        let p50 = |cell: &CellResult| Some(cell.figures(LATENCY.name)?.pooled?.p50);
        let of = |p50: Option<f64>| p50.map_or_else(|| "–".to_owned(), exhibit::number);
        let (off, on) = (p50(without), p50(with));
        let ratio = off.zip(on).map(|(off, on)| on / off);
        let size = exhibit::value_text("size", size);
        rows.push(vec![
            Entry::plain(format!("{size} {}", without.contestant)),
            Entry::plain(of(off)),
            Entry::plain(of(on)),
            Entry::plain(of(ratio)),
        ]);
    }
    Table {
        title: "what the stamps cost: latency through three nodes (us), median of all samples"
            .into(),
        columns: ["case", WITHOUT, WITH, "ratio"].map(str::to_owned).into(),
        rows,
        note: "Without is how every program runs that nobody traces.".into(),
    }
}
