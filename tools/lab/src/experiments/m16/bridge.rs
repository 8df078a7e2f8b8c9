//! M16.8: messages through a bridge between ROS 1 and ROS 2 (figs 5, 6, table 4),
//! beside those within each.
//!
//! The bridge is two processes, roscpp and Pteros, with a pipe between them. It is
//! reliable on both sides. Publishers start after the first match. In ROS 1
//! everything published before is lost.

use std::time::Duration;

use crate::testbed::implementation::{PTEROS, ROS1};
use crate::testbed::programs::ROS1_BRIDGE;
use crate::testbed::{Implementation, MeasurementFailure, PeerProcess};

use super::{configuration, flow};
use crate::experiment::{Experiment, Paper, Scope};
use crate::flow::{self, Flow, FlowResult};
use crate::lab::{BRIDGE, Lab};
use crate::measurement::{Configuration, LATENCY, Measurement, Published};
use crate::report_items::{self, ReportItem, Table, TableEntry, Tone, value_entry};
use crate::results::View;

pub const EXPERIMENT: Experiment = Experiment {
    id: "m16.8",
    paper: Paper::M16,
    title: "Through a bridge between ROS 1 and ROS 2",
    reproduces: "figs 5, 6, table 4",
    question: "Does a bridge lose the first messages, does it keep a reliable topic reliable, and what does it cost?",
    metrics: &[LATENCY],
    configurations,
    run,
    published: &[
        Published {
            case: &[("direction", TO_ROS2)],
            implementation: "ros_bridge",
            value: LOSSY_PATH,
            source: "table 4",
        },
        Published {
            case: &[("direction", TO_ROS1)],
            implementation: "ros_bridge",
            value: LOSSY_PATH,
            source: "table 4",
        },
    ],
    report_items,
};

const LOSSY_PATH: &str = "initial messages lost; best-effort only";
const TO_ROS2: &str = "ROS 1 to 2";
const TO_ROS1: &str = "ROS 2 to 1";

/// Without a bridge first, to show what the bridge adds.
const DIRECTIONS: [(&str, &str); 4] = [
    ("ROS 1 to 1", ROS1),
    ("ROS 2 to 2", PTEROS),
    (TO_ROS2, PTEROS),
    (TO_ROS1, PTEROS),
];

/// Start time limit of both processes.
const TIMEOUT: Duration = Duration::from_secs(25);

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let extent = scope.extent;
    let sizes = extent.choose(vec![256], vec![64 << 10], super::sizes(extent));
    let mut configurations = Vec::new();
    for (direction, implementation) in DIRECTIONS {
        for size in &sizes {
            for implementation in scope.among(&[implementation]) {
                let case = vec![
                    ("direction", direction.to_owned()),
                    ("size", size.to_string()),
                ];
                configurations.push(configuration(
                    case,
                    implementation,
                    &flow("reliable", *size, extent),
                ));
            }
        }
    }
    configurations
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let flow = flow("reliable", configuration.number("size"), lab.extent);
    let (ours, ros1) = (lab.implementation(PTEROS)?, lab.implementation(ROS1));
    let flowed = match configuration.get("direction") {
        TO_ROS2 => through(lab, &flow, "in", ros1?, ours)?,
        TO_ROS1 => through(lab, &flow, "out", ours, ros1?)?,
        _ => flow::run(
            lab,
            lab.implementation(configuration.implementation)?,
            &flow,
        )?,
    };
    Ok(flowed.measured(&flow))
}

/// From a publisher of one ROS to a subscription of the other.
fn through(
    lab: &Lab,
    flow: &Flow,
    direction: &str,
    from: &Implementation,
    to: &Implementation,
) -> Result<FlowResult, MeasurementFailure> {
    let topic = lab.fresh_topic();
    let file = lab.scratch_file(&topic);
    let mut arguments = flow.arguments("sub", &topic);
    arguments.extend(["--samples".into(), file.to_string_lossy().into_owned()]);
    let mut listening = lab.start(to, flow.is_real_time, arguments)?;
    listening.expect("ready", TIMEOUT)?;
    let _bridge = bridge(lab, flow, direction, &topic)?;
    let mut publisher = lab.start(from, flow.is_real_time, flow.arguments("pub", &topic))?;
    let timeout = TIMEOUT + Duration::from_secs_f64(2.0 * flow.seconds());
    let sent = publisher.expect("sent", timeout)?;
    let took = listening.expect("took", timeout)?;
    let results = vec![flow::read_subscription_result(&took, &file)?];
    Ok(FlowResult { results, sent })
}

fn bridge(
    lab: &Lab,
    flow: &Flow,
    direction: &str,
    topic: &str,
) -> Result<PeerProcess, MeasurementFailure> {
    let half = lab
        .implementation(ROS1)?
        .program
        .with_file_name(ROS1_BRIDGE);
    let mut implementation = lab.implementation(PTEROS)?.clone();
    implementation.environment.extend(lab.ros1(None)?);
    let arguments = [
        BRIDGE,
        direction,
        &half.to_string_lossy(),
        // The name in the two programs.
        &format!("/{topic}_flow"),
        &format!("{topic}/flow"),
        "--deadline",
        &flow.deadline_ms.to_string(),
    ];
    let arguments = arguments.map(str::to_owned).into();
    let mut process = lab.start(&implementation, flow.is_real_time, arguments)?;
    process.expect("ready", TIMEOUT)?;
    Ok(process)
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let row = |case: &[(String, String)]| {
        let published = view.published(case).into_iter();
        let texts: Vec<String> = published
            .map(|p| format!("{}: {}", p.implementation, p.value))
            .collect();
        let direction = case.first().map_or("", |(_, value)| value.as_str());
        let implementation = DIRECTIONS.iter().find(|(name, _)| *name == direction);
        let configuration =
            implementation.and_then(|(_, implementation)| view.configuration(case, implementation));
        let delivery = configuration.and_then(|configuration| configuration.delivery);
        let lost = |count: Option<u64>| match count {
            None => TableEntry::with_tone("–", Tone::Faint),
            Some(0) => TableEntry::with_tone("none", Tone::Good),
            Some(lost) => TableEntry::with_tone(lost.to_string(), Tone::Bad),
        };
        vec![
            TableEntry::plain(report_items::case_label(case)),
            TableEntry::with_tone(texts.join("; "), Tone::Faint),
            value_entry(configuration, view.metric()),
            lost(delivery.map(|d| d.initial_loss)),
            lost(delivery.map(|d| d.lost())),
        ]
    };
    vec![ReportItem::Table(Table {
        title: "Bridge".into(),
        columns: ["case", "published", "latency us", "initial loss", "lost"]
            .map(str::to_owned)
            .into(),
        rows: view.cases().into_iter().map(row).collect(),
        note: "Reliable. The bridge is the lab's: roscpp and Pteros, one process each, with a pipe between them. Debian \
               has no packaged bridge to compare with."
            .into(),
    })]
}
