//! M16.8: messages through a bridge between ROS 1 and ROS 2 (figs 5, 6, table 4), beside
//! those within each.
//!
//! The bridge is two processes, roscpp in one and Pteros in the other, with a pipe between them:
//! it is as good as what Pteros has to do with it, and shows what that is. It is reliable on both
//! sides. Publishers begin when they have met somebody; in ROS 1 all that they publish before is lost.

use std::time::Duration;

use pteros_testbed::contestant::{PTEROS, ROS1};
use pteros_testbed::programs::ROS1_BRIDGE;
use pteros_testbed::{Contestant, Failure, Process};

use super::{cell, flow};
use crate::exhibit::{self, Entry, Exhibit, Table, Tone, figure_entry};
use crate::experiment::{Cell, Experiment, LATENCY, Measured, Paper, Published, Scope};
use crate::flow::{self, Flow, Flowed};
use crate::lab::{BRIDGE, Lab};
use crate::results::View;

/// See the module.
pub const EXPERIMENT: Experiment = Experiment {
    id: "m16.8",
    paper: Paper::M16,
    title: "Through a bridge between ROS 1 and ROS 2",
    shows: "figs 5, 6, table 4",
    asks: "Does a bridge lose the first messages, does it keep a reliable topic reliable, and what does it cost?",
    metrics: &[LATENCY],
    cells,
    run,
    published: &[
        Published {
            case: &[("direction", TO_ROS2)],
            who: "ros_bridge",
            value: LOSES,
            place: "table 4",
        },
        Published {
            case: &[("direction", TO_ROS1)],
            who: "ros_bridge",
            value: LOSES,
            place: "table 4",
        },
    ],
    exhibits,
};

const LOSES: &str = "initial messages lost; best-effort only";
const TO_ROS2: &str = "ROS 1 to 2";
const TO_ROS1: &str = "ROS 2 to 1";

/// Without a bridge, for what that adds; then through it.
const DIRECTIONS: [(&str, &str); 4] = [
    ("ROS 1 to 1", ROS1),
    ("ROS 2 to 2", PTEROS),
    (TO_ROS2, PTEROS),
    (TO_ROS1, PTEROS),
];

/// For the two halves to begin.
const PATIENCE: Duration = Duration::from_secs(25);

fn cells(scope: &Scope) -> Vec<Cell> {
    let extent = scope.extent;
    let sizes = extent.choose(vec![256], vec![64 << 10], super::sizes(extent));
    let mut cells = Vec::new();
    for (direction, contestant) in DIRECTIONS {
        for size in &sizes {
            for contestant in scope.among(&[contestant]) {
                let case = vec![
                    ("direction", direction.to_owned()),
                    ("size", size.to_string()),
                ];
                cells.push(cell(case, contestant, &flow("reliable", *size, extent)));
            }
        }
    }
    cells
}

fn run(lab: &Lab, cell: &Cell) -> Result<Measured, Failure> {
    let flow = flow("reliable", cell.number("size"), lab.extent);
    let (ours, ros1) = (lab.contestant(PTEROS)?, lab.contestant(ROS1));
    let flowed = match cell.get("direction") {
        TO_ROS2 => through(lab, &flow, "in", ros1?, ours)?,
        TO_ROS1 => through(lab, &flow, "out", ours, ros1?)?,
        _ => flow::run(lab, lab.contestant(cell.contestant)?, &flow)?,
    };
    Ok(flowed.measured(&flow))
}

/// From a publisher of the one to a subscription of the other.
fn through(
    lab: &Lab,
    flow: &Flow,
    direction: &str,
    from: &Contestant,
    to: &Contestant,
) -> Result<Flowed, Failure> {
    let topic = lab.fresh_topic();
    let file = lab.scratch_file(&topic);
    let mut words = flow.words("sub", &topic);
    words.extend(["--samples".into(), file.to_string_lossy().into_owned()]);
    let mut listening = lab.start(to, flow.is_real_time, words)?;
    listening.expect("ready", PATIENCE)?;
    let _bridge = bridge(lab, flow, direction, &topic)?;
    let mut publisher = lab.start(from, flow.is_real_time, flow.words("pub", &topic))?;
    let patience = PATIENCE + Duration::from_secs_f64(2.0 * flow.seconds());
    let sent = publisher.expect("sent", patience)?;
    let took = listening.expect("took", patience)?;
    let heard = vec![flow::heard(&took, &file)?];
    Ok(Flowed { heard, sent })
}

fn bridge(lab: &Lab, flow: &Flow, direction: &str, topic: &str) -> Result<Process, Failure> {
    let half = lab.contestant(ROS1)?.program.with_file_name(ROS1_BRIDGE);
    let mut who = lab.contestant(PTEROS)?.clone();
    who.environment.extend(lab.ros1(None)?);
    let words = [
        BRIDGE,
        direction,
        &half.to_string_lossy(),
        // As the two programs call it.
        &format!("/{topic}_flow"),
        &format!("{topic}/flow"),
        "--deadline",
        &flow.deadline_ms.to_string(),
    ];
    let words = words.map(str::to_owned).into();
    let mut process = lab.start(&who, flow.is_real_time, words)?;
    process.expect("ready", PATIENCE)?;
    Ok(process)
}

fn exhibits(view: &View) -> Vec<Exhibit> {
    let row = |case: &[(String, String)]| {
        let published = view.published(case).into_iter();
        let texts: Vec<String> = published
            .map(|p| format!("{}: {}", p.who, p.value))
            .collect();
        let direction = case.first().map_or("", |(_, value)| value.as_str());
        let who = DIRECTIONS.iter().find(|(name, _)| *name == direction);
        let cell = who.and_then(|(_, who)| view.cell(case, who));
        let delivery = cell.and_then(|cell| cell.delivery);
        let lost = |count: Option<u64>| match count {
            None => Entry::toned("–", Tone::Faint),
            Some(0) => Entry::toned("none", Tone::Good),
            Some(lost) => Entry::toned(lost.to_string(), Tone::Bad),
        };
        vec![
            Entry::plain(exhibit::case_words(case)),
            Entry::toned(texts.join("; "), Tone::Faint),
            figure_entry(cell, view.metric()),
            lost(delivery.map(|d| d.initial_loss)),
            lost(delivery.map(|d| d.lost())),
        ]
    };
    vec![Exhibit::Table(Table {
        title: "Bridge".into(),
        columns: ["case", "published", "latency us", "initial loss", "lost"]
            .map(str::to_owned)
            .into(),
        rows: view.cases().into_iter().map(row).collect(),
        note: "Reliable. The bridge is the lab's: roscpp and Pteros, a process each, with a pipe between them. Debian \
               packages none to compare with."
            .into(),
    })]
}
