//! Robot benchmark: memory and CPU time of a graph as large as that of iRobot's
//! Create 3 (Macenski et al. 2023, VI-B), in one process and in ten, beside ten idle
//! processes of Cyclone DDS (docs/measurements/composition.md).

use std::process::Command;
use std::time::Duration;

use crate::testbed::MeasurementFailure;

use super::{AtRest, CPU_PERCENT, PSS, idle_participants, program, start_idle, targets};
use crate::experiment::{Experiment, Paper, Scope};
use crate::lab::Lab;
use crate::measurement::{Configuration, Extent, Measurement};
use crate::report_items::{ReportItem, parts};
use crate::results::View;

pub const EXPERIMENT: Experiment = Experiment {
    id: "own.robot",
    paper: Paper::Own,
    title: "A graph as large as a Create 3's",
    reproduces: "docs/measurements/composition.md",
    question: "What do ten nodes with 32 topics, ten services and ten actions cost while they publish?",
    metrics: &[PSS, CPU_PERCENT],
    configurations,
    run,
    published: &[],
    report_items,
};

const NODES: u64 = 10;
/// Pause before processes are measured; discovery is over by then.
const REST: Duration = Duration::from_secs(3);
/// Target: the memory of the whole robot, published for ROS 2.
const PUBLISHED_KB: f64 = 60.0 * 1024.0;

const ONE_PROCESS: &str = "one process";

fn time(extent: Extent) -> Duration {
    Duration::from_secs(extent.choose(1, 3, 20))
}

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let placements: [(&str, &[&str]); 3] = [
        (ONE_PROCESS, &["pteros"]),
        ("one process each", &["pteros"]),
        ("10 idle participants", &["cyclone"]),
    ];
    let mut all = Vec::new();
    for (placement, implementations) in placements {
        for implementation in scope.among(implementations) {
            all.push(Configuration {
                case: vec![("placement", placement.to_owned())],
                implementation,
                seconds: (REST + time(scope.extent)).as_secs_f64() + 1.0,
            });
        }
    }
    all
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let implementation = lab.implementation(configuration.implementation)?;
    let processes = if implementation.is_ours() {
        let program = program("create3", "pteros-demo-components")?;
        let start = |word: &str| start_idle(Command::new(&program).arg(word));
        match configuration.get("placement") {
            ONE_PROCESS => vec![start("all")?],
            _ => (0..NODES)
                .map(|node| start(&node.to_string()))
                .collect::<Result<_, _>>()?,
        }
    } else {
        idle_participants(lab, implementation, NODES)?
    };
    std::thread::sleep(REST);
    let rest = AtRest::of(&processes, time(lab.extent))?;
    Ok(Measurement {
        values: vec![
            (PSS.name, rest.pss_kb),
            (CPU_PERCENT.name, rest.cpu_percent()),
        ],
        ..Measurement::default()
    })
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let one = view.configurations.iter();
    let one = one.filter(|c| c.get("placement") == ONE_PROCESS);
    let kb = one.filter_map(|c| Some(c.metric_values(PSS.name)?.median()));
    let met = kb.map(|kb| {
        let what = "one process: less than published for ROS 2 on a Create 3 (60 MB)";
        (
            what.to_owned(),
            format!("{:.1} MB", kb / 1024.0),
            kb < PUBLISHED_KB,
        )
    });
    vec![
        ReportItem::Table(parts(view, "Memory and CPU time", &[&PSS, &CPU_PERCENT])),
        ReportItem::Table(targets(met)),
    ]
}
