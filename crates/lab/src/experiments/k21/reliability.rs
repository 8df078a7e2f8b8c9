//! K21.4: RELIABLE against BEST_EFFORT (fig. 7).

use super::{CONTESTANTS, LATENCY, cell, run};
use crate::exhibit::{self, Exhibit};
use crate::experiment::{Cell, Experiment, Paper, Published, Scope};
use crate::results::View;

/// See the module.
pub const EXPERIMENT: Experiment = Experiment {
    id: "k21.4",
    paper: Paper::K21,
    title: "A pipeline, reliable against best effort",
    shows: "fig. 7",
    asks: "What does it cost that nothing may be lost?",
    metrics: &[LATENCY],
    cells,
    run,
    published: &[Published {
        case: &[("qos", "reliable")],
        who: "all",
        value: "up to +15 %",
        place: "fig. 7",
    }],
    exhibits,
};

fn cells(scope: &Scope) -> Vec<Cell> {
    let extent = scope.extent;
    let few: &[u64] = &[128, 100_000];
    let all: &[u64] = &[128, 1_000, 10_000, 100_000, 500_000];
    let sizes = extent.choose(&few[..1], few, all);
    let rates: &[u64] = extent.choose(&[100], &[80], &[1, 10, 50, 100]);
    let mut cells = Vec::new();
    for size in sizes {
        for rate in rates {
            for qos in ["best-effort", "reliable"] {
                for contestant in scope.among(&CONTESTANTS) {
                    cells.push(cell(extent, (3, *size, *rate, qos), contestant));
                }
            }
        }
    }
    cells
}

fn exhibits(view: &View) -> Vec<Exhibit> {
    let mut all = vec![Exhibit::Table(exhibit::comparison(view, view.metric()))];
    for rate in view.values("rate") {
        let title = format!("{rate} Hz: 95th percentile by size (fig. 7)");
        all.push(exhibit::lines_by(view, title, "size", view.metric(), |c| {
            let is_it = c.is(&[("rate", rate)]);
            is_it.then(|| format!("{} {}", c.contestant, c.get("qos")))
        }));
    }
    all
}
