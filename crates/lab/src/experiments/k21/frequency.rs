//! K21.1: latency against frequency, three nodes, all payloads (fig. 4).

use super::{CONTESTANTS, LATENCY, cell, run};
use crate::exhibit::{self, Exhibit, bytes_text};
use crate::experiment::{Cell, Experiment, Paper, Scope};
use crate::results::View;

/// See the module.
pub const EXPERIMENT: Experiment = Experiment {
    id: "k21.1",
    paper: Paper::K21,
    title: "Latency of a pipeline of three nodes by frequency",
    shows: "fig. 4",
    asks: "Does latency depend on how often a message is sent, and on its size?",
    metrics: &[LATENCY],
    cells,
    run,
    published: &[],
    exhibits,
};

fn cells(scope: &Scope) -> Vec<Cell> {
    let few: &[u64] = &[128, 500_000];
    let all: &[u64] = &[128, 1_000, 10_000, 100_000, 500_000];
    let sizes = scope.extent.choose(&few[..1], few, all);
    let tens: Vec<u64> = (1..=10).map(|tens| tens * 10).collect();
    let rates = scope.extent.choose(
        vec![100],
        vec![10, 100],
        [1].into_iter().chain(tens).collect(),
    );
    let mut cells = Vec::new();
    for size in sizes {
        for rate in &rates {
            for contestant in scope.among(&CONTESTANTS) {
                let parameters = (3, *size, *rate, "best-effort");
                cells.push(cell(scope.extent, parameters, contestant));
            }
        }
    }
    cells
}

fn exhibits(view: &View) -> Vec<Exhibit> {
    let mut all = vec![Exhibit::Table(exhibit::comparison(view, view.metric()))];
    for size in view.values("size") {
        let bytes = size.parse().map_or(size.to_owned(), bytes_text);
        let title = format!("{bytes}: 95th percentile by frequency (fig. 4)");
        let wanted = [("size", size)];
        all.push(exhibit::lines(view, title, "rate", view.metric(), |c| {
            c.is(&wanted)
        }));
    }
    all
}
