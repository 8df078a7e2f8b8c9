//! C23.1: memory of one to twenty nodes (fig. 2), as processes and in one process. A
//! node has a publisher and a subscription, the same in every stack.

use std::time::Duration;

use pteros_testbed::{Contestant, Failure, Process, watch};

use super::{CONTAINER, MEMORY, containers};
use crate::exhibit::{self, Exhibit};
use crate::experiment::{Cell, Experiment, Extent, Measured, Paper, Published, Scope};
use crate::lab::Lab;
use crate::results::View;
use crate::topology::Containers;

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
        Published {
            case: &[("way", CONTAINER), ("nodes", "20")],
            who: "ROS 2",
            value: "less than 100 KB over composing by hand",
            place: "fig. 2",
        },
    ],
    exhibits,
};

const PEERS: [&str; 5] = ["pteros", "cyclone", "fastdds", "iceoryx2", "zenoh"];

const WAYS: [(&str, &[&str]); 3] = [
    ("processes", &PEERS),
    ("composed", &["pteros", "cyclone", "fastdds"]),
    (CONTAINER, &["pteros"]),
];

/// For processes to start, and to rest until discovery is over.
const PATIENCE: Duration = Duration::from_secs(40);

fn numbers(extent: Extent) -> Vec<u64> {
    match extent {
        Extent::Smoke => vec![2],
        Extent::Quick => vec![1, 10, 20],
        Extent::Full => (1..=20).collect(),
    }
}

fn rest(extent: Extent) -> Duration {
    Duration::from_millis(extent.choose(200, 700, 3_000))
}

fn cells(scope: &Scope) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (way, contestants) in WAYS {
        for nodes in numbers(scope.extent) {
            for contestant in scope.among(contestants) {
                cells.push(Cell {
                    case: vec![("way", way.to_owned()), ("nodes", nodes.to_string())],
                    contestant,
                    seconds: rest(scope.extent).as_secs_f64() + 0.05 * nodes as f64,
                });
            }
        }
    }
    cells
}

fn run(lab: &Lab, cell: &Cell) -> Result<Measured, Failure> {
    let (mut who, nodes) = (
        lab.contestant(cell.contestant)?.clone(),
        cell.number("nodes"),
    );
    let topic = lab.fresh_topic();
    let words = |first: u64, count: u64| -> Vec<String> {
        let line = format!("nodes --topic {topic} --nodes {count} --first {first} --of {nodes}");
        line.split(' ').map(str::to_owned).collect()
    };
    let lines: Vec<Vec<String>> = match cell.get("way") {
        "processes" => (0..nodes).map(|first| words(first, 1)).collect(),
        CONTAINER => vec![load(&mut who, nodes, &topic)?],
        _ => vec![words(0, nodes)],
    };
    let started: Result<Vec<Process>, Failure> = lines
        .into_iter()
        .map(|line| lab.start(&who, false, line))
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

/// Makes a container of the contestant; the words have it load such nodes as the
/// worker has.
fn load(who: &mut Contestant, nodes: u64, topic: &str) -> Result<Vec<String>, Failure> {
    let container = containers("single")?;
    let folder = container.folder.to_string_lossy().into_owned();
    who.environment.push(("PTEROS_COMPONENT_PATH", folder));
    // Where cargo's libraries lie those of another build may, too.
    who.environment.push(("LD_LIBRARY_PATH", String::new()));
    (who.program, who.leading) = (container.program, &[]);
    let mut words: Vec<String> = vec!["--executor".into(), container.executor.into()];
    for index in 0..nodes {
        let package = Containers::LIBRARY;
        let line = format!(
            "--load {package} {package}::CrowdNode -n crowd_{index} -p topic:={topic} -p index:={index} -p of:={nodes}"
        );
        words.extend(line.split(' ').map(str::to_owned));
    }
    Ok(words)
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
        exhibit::lines_by(
            view,
            "Pteros: memory by number of nodes and way (fig. 2)",
            "nodes",
            &MEMORY,
            |c| (c.contestant == "pteros").then(|| c.get("way").to_owned()),
        ),
    ]
}
