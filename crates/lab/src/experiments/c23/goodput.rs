//! C23.3: the most that one publisher gets to one subscription, without pause, against
//! size (fig. 4); the size of a VGA frame among them.

use pteros_testbed::Failure;

use super::by_way_and_size;
use crate::exhibit::{self, Exhibit};
use crate::experiment::{
    Better, Cell, Experiment, Extent, Measured, Metric, Paper, Published, Scope, Statistic,
};
use crate::flow::{self, Flow};
use crate::lab::Lab;
use crate::results::View;

/// See the module.
pub const EXPERIMENT: Experiment = Experiment {
    id: "c23.3",
    paper: Paper::C23,
    title: "Goodput by size",
    shows: "fig. 4",
    asks: "How much gets through, at which CPU, and does it collapse anywhere?",
    metrics: &[GOODPUT, MESSAGES, CPU, CPU_EACH],
    cells,
    run,
    published: &[
        Published {
            case: &[("way", "processes"), ("size", "921600")],
            who: "ROS 2",
            value: "20 Hz",
            place: "V-B, Raspberry Pi 4",
        },
        Published {
            case: &[("way", "composed + intra-process"), ("size", "921600")],
            who: "ROS 2",
            value: "415 Hz",
            place: "V-B, Raspberry Pi 4",
        },
        Published {
            case: &[("way", COMPOSED), ("size", "921600")],
            who: "ROS 2",
            value: "85 Hz",
            place: "V-B, Raspberry Pi 4",
        },
        Published {
            case: &[("way", "loaned"), ("size", "921600")],
            who: "ROS 2",
            value: "deadlocked at 500 Hz",
            place: "fig. 4",
        },
    ],
    exhibits,
};

/// 640 x 480 x 3.
const VGA: u64 = 921_600;

const GOODPUT: Metric = Metric {
    name: "goodput",
    unit: "MB/s",
    better: Better::Higher,
    statistic: Statistic::Mean,
};

const MESSAGES: Metric = Metric {
    name: "messages",
    unit: "Hz",
    better: Better::Higher,
    statistic: Statistic::Mean,
};

/// All processes together. Whoever gets more through may use more.
const CPU: Metric = Metric {
    better: Better::Neither,
    ..super::CPU
};

/// What a message costs all processes together.
const CPU_EACH: Metric = Metric {
    name: "CPU per message",
    unit: "us",
    better: Better::Lower,
    statistic: Statistic::Mean,
};

const COMPOSED: &str = "composed";

const WAYS: [(&str, &[&str]); 4] = [
    (
        "processes",
        &[
            "pteros",
            "cyclone",
            "cyclone-tuned",
            "fastdds",
            "iceoryx2",
            "zenoh",
        ],
    ),
    (
        "loaned",
        &["pteros", "fastdds-sharing", "iceoryx2", "zenoh"],
    ),
    // Only ours composes without handing values over.
    (COMPOSED, &["pteros"]),
    (
        "composed + intra-process",
        &["pteros", "cyclone", "fastdds"],
    ),
];

fn sizes(extent: Extent) -> &'static [u64] {
    match extent {
        Extent::Smoke => &[65_536],
        Extent::Quick => &[65_536, VGA],
        Extent::Full => &[
            64, 256, 1_024, 4_096, 16_384, 32_768, 61_440, 65_536, 131_072, 262_144, 524_288, VGA,
            1_048_576, 2_097_152, 4_194_304, 8_388_608,
        ],
    }
}

fn flow(way: &str, size: u64, extent: Extent) -> Flow {
    let bytes = extent.choose(4 << 20, 128 << 20, 1 << 30);
    Flow {
        is_intra: way.starts_with(COMPOSED),
        is_serialized: way == COMPOSED,
        is_text: false,
        size,
        count: (bytes / size).clamp(20, extent.choose(1_000, 20_000, 200_000)),
        warmup: 10,
        rate: 0,
        is_reliable: true,
        is_transient_local: false,
        // With less the publisher would overwrite what was not sent yet.
        depth: None,
        deadline_ms: 0,
        subscribers: 1,
        waits_for_match: true,
        is_real_time: false,
        is_lent: way == "loaned",
    }
}

fn cells(scope: &Scope) -> Vec<Cell> {
    by_way_and_size(scope, &WAYS, sizes(scope.extent), flow)
}

fn run(lab: &Lab, cell: &Cell) -> Result<Measured, Failure> {
    let size = cell.number("size");
    let flow = flow(cell.get("way"), size, lab.extent);
    let flowed = flow::run(lab, lab.contestant(cell.contestant)?, &flow)?;
    let mut measured = flowed.measured(&flow);
    // Latency says nothing where messages wait for each other.
    measured.samples.clear();
    if let Some(heard) = flowed.heard.first().filter(|heard| heard.wall_ms > 0.0) {
        // The clock begins with the first message.
        let hz = heard.messages.len().saturating_sub(1) as f64 / heard.wall_ms * 1e3;
        measured
            .figures
            .push((GOODPUT.name, hz * size as f64 / 1e6));
        measured.figures.push((MESSAGES.name, hz));
        if hz > 0.0 {
            let each = (CPU_EACH.name, flowed.load() * 1e6 / hz);
            measured.figures.push(each);
        }
    }
    measured.figures.push((CPU.name, flowed.load() * 100.0));
    Ok(measured)
}

fn exhibits(view: &View) -> Vec<Exhibit> {
    let mut all = vec![
        Exhibit::Table(exhibit::comparison(view, &GOODPUT)),
        Exhibit::Table(exhibit::comparison(view, &MESSAGES)),
        Exhibit::Table(exhibit::comparison(view, &CPU)),
        Exhibit::Table(exhibit::comparison(view, &CPU_EACH)),
    ];
    for (way, _) in WAYS {
        let title = format!("{way}: goodput by size (fig. 4)");
        all.push(exhibit::lines(view, title, "size", &GOODPUT, |c| {
            c.is(&[("way", way)])
        }));
    }
    all
}
