//! Wire benchmark: round trips of two processes over loopback UDP, without shared
//! memory, beside Cyclone DDS and plain UDP (docs/measurements/wire.md).
//!
//! No program gets larger socket buffers than an ordinary user would.

use crate::testbed::process::value;
use crate::testbed::{Implementation, MeasurementFailure};

use super::{MIN, P50, P95, Pinning, RoundTrips, SIZES, is_floor, latencies};
use crate::experiment::{Experiment, Paper, Scope};
use crate::lab::Lab;
use crate::measurement::{Configuration, Extent, Measurement};
use crate::report_items::{ReportItem, comparison, parts};
use crate::results::View;

pub const EXPERIMENT: Experiment = Experiment {
    id: "own.wire",
    paper: Paper::Own,
    title: "Round trip over loopback UDP",
    reproduces: "docs/measurements/wire.md",
    question: "How long does a reliable round trip of two processes take without shared memory?",
    metrics: &[P50, P95, MIN],
    configurations,
    run,
    published: &[],
    report_items,
};

const IMPLEMENTATIONS: [&str; 4] = ["floor", "cyclone", "cyclone-tuned", "pteros"];

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let pinnings = scope.extent.choose(1, 1, 3);
    let sizes = scope.extent.choose(1, SIZES.len(), SIZES.len());
    let mut all = Vec::new();
    for pinning in Pinning::ALL.iter().take(pinnings) {
        for size in SIZES.iter().take(sizes) {
            for implementation in scope.among(&IMPLEMENTATIONS) {
                all.push(Configuration {
                    case: vec![
                        ("cpus", pinning.name().to_owned()),
                        ("size", size.bytes.to_string()),
                    ],
                    implementation,
                    seconds: 1.0,
                });
            }
        }
    }
    all
}

/// The implementation on the wire: Pteros without shared memory.
pub(super) fn without_shared_memory(implementation: &Implementation) -> Implementation {
    let mut implementation = implementation.clone();
    if implementation.is_ours() {
        let off = ("PTEROS_SHARED_MEMORY", "off".to_owned());
        implementation.environment.push(off);
    }
    implementation
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let implementation = without_shared_memory(lab.implementation(configuration.implementation)?);
    let pinning = Pinning::ALL
        .into_iter()
        .find(|pinning| pinning.name() == configuration.get("cpus"));
    let bytes = configuration.number("size");
    let trips = SIZES.iter().find(|size| size.bytes == bytes);
    let trips = RoundTrips {
        bytes,
        count: trips.map_or(0, |size| size.trips_in(lab.extent)),
        pinning: pinning.unwrap_or(Pinning::None),
        is_polling: false,
        is_loaned: false,
        rate: 0,
    };
    let took = if is_floor(&implementation) {
        trips.run_floor(&implementation, "udp")?
    } else {
        let [took, _] = trips.run(lab, &implementation)?;
        took
    };
    Ok(Measurement {
        values: latencies(&took, 1.0)?,
        path: value(&took, "path").map(str::to_owned),
        ..Measurement::default()
    })
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let title = match view.extent {
        Extent::Full => "Medians of repeats, us",
        Extent::Quick | Extent::Smoke => "Medians of repeats with fewer round trips, us",
    };
    vec![
        ReportItem::Table(comparison(view, &P50)),
        ReportItem::Table(parts(view, title, &[&P50, &P95, &MIN])),
    ]
}
