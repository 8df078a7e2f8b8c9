//! C23.1: memory of one to twenty nodes (fig. 2), as processes and in one process. A
//! node has a publisher and a subscription, the same in every stack.

use std::time::Duration;

use pteros_testbed::{Failure, Process, watch};

use super::{CONTAINER, MEMORY, no_container};
use crate::exhibit::{self, Exhibit};
use crate::experiment::{Cell, Experiment, Extent, Measured, Paper, Published, Scope};
use crate::lab::Lab;
use crate::results::View;

/// See the module.
pub const EXPERIMENT: Experiment = Experiment {
    id: "c23.1",
    paper: Paper::C23,
    title: "Memory of many nodes",
    shows: "fig. 2",
    asks: "What does one more node cost, as a process and composed?",
    metrics: &[MEMORY],
    cells,
    run,
    published: &[
        Published {
            case: &[("way", "processes"), ("nodes", "2")],
            who: "ROS 2",
            value: "+2.1 MB for the second",
            place: "fig. 2",
        },
        Published {
            case: &[("way", "processes"), ("nodes", "20")],
            who: "ROS 2",
            value: "+4.3 MB for the twentieth",
            place: "fig. 2",
        },
        Published {
            case: &[("way", "composed"), ("nodes", "20")],
            who: "ROS 2",
            value: "as much as two processes",
            place: "fig. 2",
        },
    ],
    exhibits,
};

/// For processes to start, and to rest until discovery is over.
const PATIENCE: Duration = Duration::from_secs(40);

fn numbers(extent: Extent) -> Vec<u64> {
    match extent {
        Extent::Smoke => vec![2],
        Extent::Quick => vec![1, 2, 10, 20],
        Extent::Full => (1..=20).collect(),
    }
}

fn rest(extent: Extent) -> Duration {
    Duration::from_millis(extent.choose(200, 700, 3_000))
}

fn cells(scope: &Scope) -> Vec<Cell> {
    let mut cells = Vec::new();
    for way in ["processes", "composed"] {
        for nodes in numbers(scope.extent) {
            for contestant in scope.among(&["pteros", "cyclone", "fastdds"]) {
                cells.push(Cell {
                    case: vec![("way", way.to_owned()), ("nodes", nodes.to_string())],
                    contestant,
                    seconds: rest(scope.extent).as_secs_f64() + 0.05 * nodes as f64,
                });
            }
        }
    }
    for contestant in scope.among(&["pteros"]) {
        let nodes = numbers(scope.extent).last().copied().unwrap_or(1);
        cells.push(Cell {
            case: vec![("way", CONTAINER.to_owned()), ("nodes", nodes.to_string())],
            contestant,
            seconds: 0.0,
        });
    }
    cells
}

fn run(lab: &Lab, cell: &Cell) -> Result<Measured, Failure> {
    if cell.get("way") == CONTAINER {
        return Err(no_container());
    }
    let (who, nodes) = (lab.contestant(cell.contestant)?, cell.number("nodes"));
    let topic = lab.fresh_topic();
    let words = |first: u64, count: u64| -> Vec<String> {
        let line = format!("nodes --topic {topic} --nodes {count} --first {first} --of {nodes}");
        line.split(' ').map(str::to_owned).collect()
    };
    let lines: Vec<Vec<String>> = match cell.get("way") {
        "processes" => (0..nodes).map(|first| words(first, 1)).collect(),
        _ => vec![words(0, nodes)],
    };
    let started: Result<Vec<Process>, Failure> = lines
        .into_iter()
        .map(|line| lab.start(who, false, line))
        .collect();
    let mut started = started?;
    for process in &mut started {
        process.expect("ready", PATIENCE)?;
    }
    std::thread::sleep(rest(lab.extent));
    let memory = started.iter().map(|process| watch::memory(process.id()));
    let kb: u64 = memory
        .map(|memory| Ok(memory?.pss_kb))
        .sum::<anyhow::Result<u64>>()?;
    Ok(Measured {
        figures: vec![(MEMORY.name, kb as f64 / 1024.0)],
        ..Measured::default()
    })
}

fn exhibits(view: &View) -> Vec<Exhibit> {
    let lines = |way: &'static str| {
        let title = format!("{way}: memory by number of nodes (fig. 2)");
        exhibit::lines(view, title, "nodes", &MEMORY, move |c| {
            c.is(&[("way", way)])
        })
    };
    vec![
        Exhibit::Table(exhibit::comparison(view, &MEMORY)),
        lines("processes"),
        lines("composed"),
    ]
}
