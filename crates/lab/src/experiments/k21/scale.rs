//! K21.2: latency against the number of nodes (fig. 5).

use super::{CONTESTANTS, LATENCY, cell, run};
use crate::exhibit::{self, Exhibit, bytes_text};
use crate::experiment::{Cell, Experiment, Paper, Scope};
use crate::results::View;

/// See the module.
pub const EXPERIMENT: Experiment = Experiment {
    id: "k21.2",
    paper: Paper::K21,
    title: "Latency of a pipeline by its number of nodes",
    shows: "fig. 5",
    asks: "Does every node of a pipeline cost the same?",
    metrics: &[LATENCY],
    cells,
    run,
    published: &[],
    exhibits,
};

fn cells(scope: &Scope) -> Vec<Cell> {
    let extent = scope.extent;
    let nodes = extent.choose(
        vec![5],
        vec![3, 11, 23],
        (1..=11).map(|n| 2 * n + 1).collect(),
    );
    let sizes: &[u64] = extent.choose(&[128], &[128], &[128, 500_000]);
    let rates: &[u64] = extent.choose(&[100], &[50], &[1, 10, 50, 100]);
    let mut cells = Vec::new();
    for size in sizes {
        for rate in rates {
            for nodes in &nodes {
                for contestant in scope.among(&CONTESTANTS) {
                    let parameters = (*nodes, *size, *rate, "best-effort");
                    cells.push(cell(extent, parameters, contestant));
                }
            }
        }
    }
    cells
}

fn exhibits(view: &View) -> Vec<Exhibit> {
    let mut all = vec![Exhibit::Table(exhibit::comparison(view, view.metric()))];
    for size in view.values("size") {
        for rate in view.values("rate") {
            let bytes = size.parse().map_or(size.to_owned(), bytes_text);
            let title = format!("{bytes} at {rate} Hz: 95th percentile by nodes (fig. 5)");
            let wanted = [("size", size), ("rate", rate)];
            all.push(exhibit::lines(view, title, "nodes", view.metric(), |c| {
                c.is(&wanted)
            }));
        }
    }
    all
}
