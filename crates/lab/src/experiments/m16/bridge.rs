//! M16.8: messages through a bridge between ROS 1 and ROS 2 (figs 5, 6, table 4).
//!
//! Pteros has no bridge yet, so every cell says that it is missing.

use pteros_testbed::Failure;

use crate::exhibit::{Entry, Exhibit, Table, Tone, figure_entry};
use crate::experiment::{Cell, Experiment, LATENCY, Measured, Paper, Published, Scope};
use crate::lab::Lab;
use crate::results::View;

/// See the module.
pub const EXPERIMENT: Experiment = Experiment {
    id: "m16.8",
    paper: Paper::M16,
    title: "Through a bridge between ROS 1 and ROS 2",
    shows: "figs 5, 6, table 4",
    asks: "Does a bridge lose the first messages, and does it keep a reliable topic reliable?",
    metrics: &[LATENCY],
    cells,
    run,
    published: &[
        Published {
            case: &[("direction", "ROS 1 to 2")],
            who: "ros_bridge",
            value: "initial messages lost; best-effort only",
            place: "table 4",
        },
        Published {
            case: &[("direction", "ROS 2 to 1")],
            who: "ros_bridge",
            value: "initial messages lost; best-effort only",
            place: "table 4",
        },
    ],
    exhibits,
};

fn cells(scope: &Scope) -> Vec<Cell> {
    let mut cells = Vec::new();
    for direction in ["ROS 1 to 2", "ROS 2 to 1"] {
        for contestant in scope.among(&["pteros"]) {
            cells.push(Cell {
                case: vec![("direction", direction.to_owned())],
                contestant,
                seconds: 0.0,
            });
        }
    }
    cells
}

fn run(_: &Lab, _: &Cell) -> Result<Measured, Failure> {
    let why = "Pteros has no bridge to ROS 1 yet, and Debian packages none to compare with";
    Err(Failure::Unsupported(why.into()))
}

fn exhibits(view: &View) -> Vec<Exhibit> {
    let row = |case: &[(String, String)]| {
        let published = view.published(case).into_iter();
        let texts: Vec<String> = published
            .map(|p| format!("{}: {}", p.who, p.value))
            .collect();
        vec![
            Entry::plain(crate::exhibit::case_words(case)),
            Entry::toned(texts.join("; "), Tone::Faint),
            figure_entry(view.cell(case, "pteros"), view.metric()),
        ]
    };
    vec![Exhibit::Table(Table {
        title: "Bridge".into(),
        columns: ["case", "published", "pteros"].map(str::to_owned).into(),
        rows: view.cases().into_iter().map(row).collect(),
        note: "n/a: Pteros has no bridge to ROS 1 yet, and Debian packages none.".into(),
    })]
}
