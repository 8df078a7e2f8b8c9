//! Loss benchmark: latency of reliable messages between two hosts, over a link that
//! delays and loses datagrams (docs/measurements/wire.md).

use std::time::Duration;

use crate::testbed::{EmulatedLink, MeasurementFailure};

use super::digits;
use crate::experiment::{Experiment, Paper, Scope};
use crate::flow::{self, Flow};
use crate::lab::Lab;
use crate::measurement::{Configuration, Extent, LATENCY, Measurement};
use crate::report_items::{ReportItem, Table, TableEntry, case_label};
use crate::results::{ConfigurationResult, View};

pub const EXPERIMENT: Experiment = Experiment {
    id: "own.loss",
    paper: Paper::Own,
    title: "Latency over a lossy link",
    reproduces: "docs/measurements/wire.md",
    question: "How late are reliable messages when the network loses datagrams?",
    metrics: &[LATENCY],
    configurations,
    run,
    published: &[],
    report_items,
};

const IMPLEMENTATIONS: [&str; 3] = ["pteros", "cyclone", "fastdds"];

/// Delay of the link in one direction.
const DELAY_US: u32 = 500;
/// Pause after matching.
const SETTLE: Duration = Duration::from_secs(3);

/// Lost datagrams per thousand, messages per second, and their number in a smoke, a
/// quick and a full run.
const CASES: [(u64, u64, [u64; 3]); 3] = [
    (0, 1000, [100, 3_000, 10_000]),
    (50, 1000, [100, 5_000, 30_000]),
    (300, 2, [4, 30, 120]),
];

fn flow(loss: u64, extent: Extent) -> Flow {
    let case = CASES.iter().find(|case| case.0 == loss);
    let (_, rate, [smoke, quick, full]) = case.copied().unwrap_or(CASES[0]);
    Flow {
        is_intra: false,
        is_serialized: false,
        is_text: true,
        size: 64,
        count: extent.choose(smoke, quick, full),
        warmup: 0,
        rate,
        is_reliable: true,
        is_transient_local: false,
        depth: Some(1000),
        deadline_ms: 0,
        subscribers: 1,
        waits_for_match: true,
        is_real_time: false,
        is_loaned: false,
    }
}

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let mut all = Vec::new();
    for (loss, rate, _) in CASES.iter().take(scope.extent.choose(2, 3, 3)) {
        for implementation in scope.among(&IMPLEMENTATIONS) {
            all.push(Configuration {
                case: vec![("loss", loss.to_string()), ("rate", rate.to_string())],
                implementation,
                seconds: flow(*loss, scope.extent).seconds() + SETTLE.as_secs_f64() + 1.0,
            });
        }
    }
    all
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let loss = configuration.number("loss");
    let link = EmulatedLink {
        bits_per_second: 0,
        loss_per_mille: u32::try_from(loss).unwrap_or(0),
        loses_tcp: false,
        delay_us: DELAY_US,
        seed: 77,
    };
    let flow = flow(loss, lab.extent);
    let implementation = lab.implementation(configuration.implementation)?;
    let (flowed, _) = flow::run_remote(lab, implementation, &flow, link, SETTLE, &|| Ok(0))?;
    Ok(flowed.measured(&flow))
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let row = |configuration: &ConfigurationResult| {
        let values = configuration.metric_values(LATENCY.name);
        let pooled = values.and_then(|values| values.pooled);
        let ms = |us: Option<f64>| digits(us.unwrap_or(f64::NAN) / 1e3);
        let delivery = configuration.delivery.unwrap_or_default();
        let texts = [
            case_label(&configuration.case),
            configuration.implementation.clone(),
            ms(pooled.map(|q| q.p50)),
            ms(pooled.map(|q| q.p99)),
            ms(pooled.map(|q| q.max)),
            delivery.received.to_string(),
            delivery.expected.to_string(),
        ];
        texts.map(TableEntry::plain).into()
    };
    let columns = ["", "", "p50", "p99", "max", "arrived", "of"];
    vec![ReportItem::Table(Table {
        title: format!(
            "Two hosts, {} ms one way, reliable, short texts, keep last 1000: ms from write to arrival",
            f64::from(DELAY_US) / 1e3
        ),
        columns: columns.map(str::to_owned).into(),
        rows: view.configurations.iter().map(row).collect(),
        note: String::new(),
    })]
}
