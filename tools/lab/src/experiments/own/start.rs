//! Simultaneous start of processes: half of them have a publisher, half a
//! subscription. Measures the time until each publisher has matched all
//! subscriptions, and the datagrams sent until then. `bench security` prints it.

use std::time::{Duration, Instant};

use crate::testbed::{MeasurementFailure, PeerProcess, procfs};

use super::metric;
use super::security::PROTECTIONS;
use crate::experiment::{Experiment, Paper, Scope};
use crate::keystore::Rules;
use crate::lab::Lab;
use crate::measurement::{Better, Configuration, Measurement, Metric};
use crate::report_items::{ReportItem, parts};
use crate::results::View;

pub const EXPERIMENT: Experiment = Experiment {
    id: "own.start",
    paper: Paper::Own,
    title: "Many processes at once, secured and plain",
    reproduces: "docs/measurements/security.md",
    question: "How long do processes that start at once need until every publisher has matched every subscription?",
    metrics: &[SECONDS, DATAGRAMS],
    configurations,
    run,
    published: &[],
    report_items,
};

const SECONDS: Metric = metric("seconds", "s", Better::Lower);
const DATAGRAMS: Metric = metric("datagrams", "", Better::Neither);

/// Time after which a publisher that has not matched all subscriptions gives up.
const TIMEOUT: Duration = Duration::from_secs(60);

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let sizes: &[usize] = scope.extent.choose(&[4], &[10, 20, 50], &[10, 20, 50]);
    let mut all = Vec::new();
    for protection in PROTECTIONS {
        for processes in sizes {
            for implementation in scope.among(&["pteros"]) {
                all.push(Configuration {
                    case: vec![
                        ("protection", protection.to_owned()),
                        ("processes", processes.to_string()),
                    ],
                    implementation,
                    seconds: 3.0,
                });
            }
        }
    }
    all
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let mut implementation = lab.implementation(configuration.implementation)?.clone();
    if configuration.get("protection") == "secured" {
        implementation = lab.secured(&implementation, Rules::Sros2)?;
    }
    let processes = configuration.number("processes");
    let subscriptions = processes / 2;
    let common = format!(
        "--topic {} --timeout {}",
        lab.fresh_topic(),
        TIMEOUT.as_secs()
    );
    let start = |count: u64, line: String| -> anyhow::Result<Vec<PeerProcess>> {
        (0..count)
            .map(|_| implementation.start(&line, None))
            .collect()
    };
    let before = procfs::sent_datagrams()?;
    let began = Instant::now();
    let _subscribers = start(subscriptions, format!("sub {common}"))?;
    // A publisher stays after its message, so that no datagrams announce its end.
    let line =
        format!("pub {common} --subscribers {subscriptions} --count 1 --warmup 0 --settle 0");
    let mut publishers = start(processes - subscriptions, line)?;
    for publisher in &mut publishers {
        publisher.expect("sent ", TIMEOUT)?;
    }
    let datagrams = procfs::sent_datagrams()? - before;
    Ok(Measurement {
        values: vec![
            (SECONDS.name, began.elapsed().as_secs_f64()),
            (DATAGRAMS.name, datagrams as f64),
        ],
        ..Measurement::default()
    })
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let title = "Processes until all matched";
    vec![ReportItem::Table(parts(
        view,
        title,
        &[&SECONDS, &DATAGRAMS],
    ))]
}
