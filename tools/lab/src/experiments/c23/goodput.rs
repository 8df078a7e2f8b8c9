//! C23.3: goodput from one publisher to one subscription without pauses, by size
//! (fig. 4), with the size of a VGA frame.

use crate::testbed::MeasurementFailure;
use crate::testbed::implementation::OF_RCLCPP;

use super::by_placement_and_size;
use crate::experiment::{Experiment, Paper, Scope};
use crate::flow::{self, Flow};
use crate::lab::Lab;
use crate::measurement::{
    Better, Configuration, Extent, Measurement, Metric, Published, Statistic,
};
use crate::report_items::{self, ReportItem};
use crate::results::View;

pub const EXPERIMENT: Experiment = Experiment {
    id: "c23.3",
    paper: Paper::C23,
    title: "Goodput by size",
    reproduces: "fig. 4",
    question: "How high is the goodput, at which CPU load, and does it collapse at some size?",
    metrics: &[GOODPUT, MESSAGES, CPU, CPU_EACH],
    configurations,
    run,
    published: &[
        Published {
            case: &[("placement", "processes"), ("size", "921600")],
            implementation: "ROS 2",
            value: "20 Hz",
            source: "V-B, Raspberry Pi 4",
        },
        Published {
            case: &[
                ("placement", "composed + intra-process"),
                ("size", "921600"),
            ],
            implementation: "ROS 2",
            value: "415 Hz",
            source: "V-B, Raspberry Pi 4",
        },
        Published {
            case: &[("placement", COMPOSED), ("size", "921600")],
            implementation: "ROS 2",
            value: "85 Hz",
            source: "V-B, Raspberry Pi 4",
        },
        Published {
            case: &[("placement", "loaned"), ("size", "921600")],
            implementation: "ROS 2",
            value: "deadlocked at 500 Hz",
            source: "fig. 4",
        },
    ],
    report_items,
};

/// 640 x 480 x 3 bytes.
const VGA: u64 = 921_600;

const GOODPUT: Metric = Metric::new("goodput", "MB/s", Better::Higher, Statistic::Mean);

const MESSAGES: Metric = Metric::new("messages", "Hz", Better::Higher, Statistic::Mean);

/// CPU of all processes. A higher goodput may need more.
const CPU: Metric = Metric {
    better: Better::Neither,
    ..super::CPU
};

/// CPU time of all processes per message.
const CPU_EACH: Metric = Metric::new("CPU per message", "us", Better::Lower, Statistic::Mean);

const COMPOSED: &str = "composed";

const PLACEMENTS: [(&str, &[&str]); 4] = [
    (
        "processes",
        &[
            "pteros",
            "cyclone",
            "cyclone-tuned",
            "fastdds",
            "iceoryx2",
            "zenoh",
            OF_RCLCPP[0],
            OF_RCLCPP[1],
            OF_RCLCPP[2],
        ],
    ),
    (
        "loaned",
        &["pteros", "fastdds-sharing", "iceoryx2", "zenoh"],
    ),
    // Only Pteros and rclcpp compose without intra-process communication.
    (
        COMPOSED,
        &["pteros", OF_RCLCPP[0], OF_RCLCPP[1], OF_RCLCPP[2]],
    ),
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

fn flow(placement: &str, size: u64, extent: Extent) -> Flow {
    let bytes = extent.choose(4 << 20, 128 << 20, 1 << 30);
    Flow {
        is_intra: placement.starts_with(COMPOSED),
        is_serialized: placement == COMPOSED,
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
        is_loaned: placement == "loaned",
    }
}

fn configurations(scope: &Scope) -> Vec<Configuration> {
    by_placement_and_size(scope, &PLACEMENTS, sizes(scope.extent), flow)
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let size = configuration.number("size");
    let flow = flow(configuration.get("placement"), size, lab.extent);
    let flowed = flow::run(
        lab,
        lab.implementation(configuration.implementation)?,
        &flow,
    )?;
    let mut measured = flowed.measured(&flow);
    // Latency is meaningless when messages queue behind each other.
    measured.samples.clear();
    if let Some(results) = flowed
        .results
        .first()
        .filter(|results| results.wall_ms > 0.0)
    {
        // The clock begins with the first message.
        let hz = results.messages.len().saturating_sub(1) as f64 / results.wall_ms * 1e3;
        measured.values.push((GOODPUT.name, hz * size as f64 / 1e6));
        measured.values.push((MESSAGES.name, hz));
        if hz > 0.0 {
            let each = (CPU_EACH.name, flowed.load() * 1e6 / hz);
            measured.values.push(each);
        }
    }
    measured.values.push((CPU.name, flowed.load() * 100.0));
    Ok(measured)
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let mut all = vec![
        ReportItem::Table(report_items::comparison(view, &GOODPUT)),
        ReportItem::Table(report_items::comparison(view, &MESSAGES)),
        ReportItem::Table(report_items::comparison(view, &CPU)),
        ReportItem::Table(report_items::comparison(view, &CPU_EACH)),
    ];
    for (placement, _) in PLACEMENTS {
        let title = format!("{placement}: goodput by size (fig. 4)");
        all.push(report_items::lines(view, title, "size", &GOODPUT, |c| {
            c.is(&[("placement", placement)])
        }));
    }
    all
}
