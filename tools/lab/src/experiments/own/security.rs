//! Security benchmark: round trips of two processes, plain and secured as SROS 2
//! does by default (RTPS messages signed, submessages and payloads encrypted).
//! docs/measurements/security.md quotes its tables.

use crate::testbed::MeasurementFailure;
use crate::testbed::process::value;

use super::{MIN, P50, P95, Pinning, RoundTrips, SIZES, digits, latencies};
use crate::experiment::{Experiment, Paper, Scope};
use crate::keystore::Rules;
use crate::lab::Lab;
use crate::measurement::{Configuration, Measurement, Metric};
use crate::report_items::{ReportItem, Table, TableEntry, bytes_text};
use crate::results::View;

pub const EXPERIMENT: Experiment = Experiment {
    id: "own.security",
    paper: Paper::Own,
    title: "Round trip, secured and plain",
    reproduces: "docs/measurements/security.md",
    question: "What does DDS Security add to a reliable round trip of two processes?",
    metrics: &[P50, P95, MIN],
    configurations,
    run,
    published: &[],
    report_items,
};

/// Only Pteros uses shared memory; `pteros-udp` does not.
const IMPLEMENTATIONS: [&str; 4] = ["pteros", "pteros-udp", "cyclone", "fastdds"];
/// The values of the parameter `protection`.
pub(super) const PROTECTIONS: [&str; 2] = ["plain", "secured"];

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let mut all = Vec::new();
    let sizes = scope.extent.choose(1, SIZES.len(), SIZES.len());
    for size in SIZES.iter().take(sizes) {
        for protection in PROTECTIONS {
            for implementation in scope.among(&IMPLEMENTATIONS) {
                all.push(Configuration {
                    case: vec![
                        ("protection", protection.to_owned()),
                        ("size", size.bytes.to_string()),
                    ],
                    implementation,
                    seconds: 1.5,
                });
            }
        }
    }
    all
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let mut implementation = lab.implementation(configuration.implementation)?.clone();
    // Fast DDS has shared memory too, which its secured messages do not use.
    if configuration.get("protection") == "secured" {
        implementation = lab.secured(&implementation, Rules::Sros2)?;
    }
    let bytes = configuration.number("size");
    let size = SIZES.iter().find(|size| size.bytes == bytes);
    let trips = RoundTrips {
        bytes,
        count: size.map_or(0, |size| size.trips_in(lab.extent)),
        pinning: Pinning::None,
        is_polling: false,
        is_loaned: false,
        rate: 0,
    };
    let [took, _] = trips.run(lab, &implementation)?;
    Ok(Measurement {
        values: latencies(&took, 1.0)?,
        path: value(&took, "path").map(str::to_owned),
        ..Measurement::default()
    })
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let of = |name: &str, protection: &str, size: &str, metric: &Metric| {
        let wanted = [("protection", protection), ("size", size)];
        let value = view.value(name, &wanted, metric.name);
        value.unwrap_or(f64::NAN)
    };
    let both = |name: &str, size: &str, metric: &Metric| {
        PROTECTIONS.map(|protection| of(name, protection, size, metric))
    };
    vec![
        by_size(view, "Plain, p50 (us)", |name, size| {
            of(name, "plain", size, &P50)
        }),
        by_size(view, "Secured, p50 (us)", |name, size| {
            of(name, "secured", size, &P50)
        }),
        by_size(view, "Secured / plain, p50", |name, size| {
            let [plain, secured] = both(name, size, &P50);
            secured / plain
        }),
        by_size(view, "Secured - plain, p50 (us)", |name, size| {
            let [plain, secured] = both(name, size, &P50);
            secured - plain
        }),
        // The minimum suffers least from a busy machine.
        by_size(view, "Least - least (us)", |name, size| {
            let [plain, secured] = both(name, size, &MIN);
            secured - plain
        }),
    ]
}

/// A table with a row per implementation and a column per size.
fn by_size(view: &View, title: &str, value: impl Fn(&str, &str) -> f64) -> ReportItem {
    let sizes = view.values("size");
    let heading = |size: &&str| bytes_text(size.parse().unwrap_or(0));
    let mut columns = vec![String::new()];
    columns.extend(sizes.iter().map(heading));
    let row = |name: &str| {
        let mut row = vec![TableEntry::plain(name)];
        let entries = sizes.iter().map(|size| digits(value(name, size)));
        row.extend(entries.map(TableEntry::plain));
        row
    };
    ReportItem::Table(Table {
        title: title.to_owned(),
        columns,
        rows: view.implementations().into_iter().map(row).collect(),
        note: String::new(),
    })
}
