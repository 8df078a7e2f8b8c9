//! Host benchmark: Pteros on one host beside Cyclone DDS, Fast DDS, iceoryx2 and
//! Zenoh, and beside the limit of the kernel (docs/measurements/host.md).
//!
//! Ratios within one run mean much more than absolute numbers.

pub(super) mod measure;
pub(super) mod rows;
mod targets;

use crate::testbed::MeasurementFailure;
use crate::testbed::implementation::{FLOOR, PTEROS};

use super::{MIN, P50, P95, PSS, digits, metric};
use crate::experiment::{Experiment, Paper, Scope};
use crate::lab::Lab;
use crate::measurement::{Better, Configuration, Extent, Measurement, Metric};
use crate::report_items::{ReportItem, Table, TableEntry, Tone};
use crate::results::{ConfigurationResult, View};
use rows::{Kind, Row};
use targets::TARGETS;

pub const EXPERIMENT: Experiment = Experiment {
    id: "own.host",
    paper: Paper::Own,
    title: "One host: latency, goodput, CPU, memory, discovery",
    reproduces: "docs/measurements/host.md",
    question: "How does Pteros compare with other middleware and with the bare kernel on one host?",
    metrics: &METRICS,
    configurations,
    run,
    published: &[],
    report_items,
};

/// Every value of a row, in the order of the columns.
const METRICS: [Metric; 23] = [
    P50,
    P95,
    MIN,
    metric("cold", "us", Better::Neither),
    metric("slowest", "us", Better::Neither),
    metric("spread", "", Better::Neither),
    metric("MB/s", "MB/s", Better::Higher),
    metric("cpu ms/s", "ms/s", Better::Neither),
    metric("lost", "", Better::Neither),
    metric("256B", "ms/s", Better::Neither),
    metric("4KB", "ms/s", Better::Neither),
    metric("64KB", "ms/s", Better::Neither),
    metric("1MB", "ms/s", Better::Neither),
    metric("4MB", "ms/s", Better::Neither),
    PSS,
    metric("private kB", "kB", Better::Neither),
    metric("threads", "", Better::Neither),
    metric("wakes/s", "1/s", Better::Neither),
    metric("over bare kB", "kB", Better::Neither),
    metric("kB/endpoint", "kB", Better::Lower),
    metric("ms", "ms", Better::Lower),
    metric("kB", "kB", Better::Neither),
    metric("cpu ms", "ms", Better::Neither),
];

/// In the order of the tables. ROS 1 needs a master process and has no row.
const IMPLEMENTATIONS: [&str; 10] = [
    "floor",
    "cyclone",
    "cyclone-tuned",
    "fastdds",
    "fastdds-sharing",
    "iceoryx2",
    "zenoh",
    "zenoh-low",
    "pteros",
    "pteros-udp",
];

/// Rows of a smoke run: one of each kind.
const SMOKE: [&str; 9] = [
    "control-eventfd-1cpu",
    "control-memcpy-64B",
    "intra-64B",
    "inter-64B-blocked",
    "fanout-64B-1subs",
    "goodput-1KB-1sub",
    "cpu-50Hz-sweep",
    "nodes-1",
    "discovery-2",
];

fn rows_of(extent: Extent) -> Vec<Row> {
    let mut all = rows::all();
    all.retain(|row| match extent {
        Extent::Smoke => SMOKE.contains(&row.name.as_str()),
        Extent::Quick => row.quick,
        Extent::Full => true,
    });
    all
}

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let mut all = Vec::new();
    for row in rows_of(scope.extent) {
        for implementation in scope.among(&IMPLEMENTATIONS) {
            if measure::applies_to(&row.kind, implementation) {
                all.push(Configuration {
                    case: vec![("row", row.name.clone())],
                    implementation,
                    seconds: scope.extent.choose(0.7, 1.5, 3.0),
                });
            }
        }
    }
    all
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let implementation = lab.implementation(configuration.implementation)?;
    let name = configuration.get("row");
    let row = rows::all().into_iter().find(|row| row.name == name);
    let row = row.ok_or_else(|| MeasurementFailure::Failed(format!("no row {name}")))?;
    let measured = measure::measure(&row.kind, lab, implementation);
    if lab.has_private_shared_memory() {
        measure::remove_shared_memory_files();
    }
    measured
}

/// Unit of a row's values, for its heading.
fn unit(kind: &Kind) -> &'static str {
    match kind {
        Kind::Memcpy { .. } => "µs: hot (p50) and cold",
        Kind::Wake { .. } => "µs one way",
        Kind::RoundTrip { .. } => "µs one way, half of a round trip",
        Kind::Intra { .. } => "µs from publish to callback",
        Kind::FanOut { .. } => "µs from publish to callback, 20 Hz",
        Kind::Goodput { .. } => "MB/s of payload at the slowest subscriber",
        Kind::Cpu { .. } => "CPU ms per second of both ends, 50 Hz",
        Kind::Memory { .. } => "all processes idle, each node one publisher and subscription",
        Kind::Growth { .. } => "kB that a process stores per remote endpoint",
        Kind::Discovery { .. } => {
            "from the first start until all processes have discovered each other"
        }
    }
}

/// Name of the value that ratios compare.
fn main_figure(kind: &Kind) -> &'static str {
    match kind {
        Kind::Goodput { .. } => "MB/s",
        Kind::Cpu { .. } => "cpu ms/s",
        Kind::Memory { .. } => PSS.name,
        Kind::Growth { .. } => "kB/endpoint",
        Kind::Discovery { .. } => "ms",
        _ => P50.name,
    }
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let rows = rows::all();
    let measured = |row: &&Row| view.configurations.iter().any(|c| c.get("row") == row.name);
    let rows = || rows.iter().filter(measured);
    let mut items: Vec<ReportItem> = rows().map(|row| table(view, row)).collect();
    let mut met = Vec::new();
    for target in TARGETS {
        for row in rows().filter(|row| target.applies(row)) {
            let evaluated = target.evaluate(row, view);
            met.extend(evaluated.map(|it| (it.text, format!("{:.2}", it.ratio), it.met)));
        }
    }
    items.push(ReportItem::Table(super::targets(met)));
    items
}

/// The table of a row: a line per implementation.
fn table(view: &View, row: &Row) -> ReportItem {
    let order = |c: &&ConfigurationResult| {
        let mut names = IMPLEMENTATIONS.iter();
        names.position(|name| *name == c.implementation)
    };
    let of_row = view.configurations.iter();
    let mut of_row: Vec<_> = of_row.filter(|c| c.get("row") == row.name).collect();
    of_row.sort_by_key(order);
    let is_shown = |metric: &&Metric| {
        let mut all = of_row.iter();
        all.any(|c| c.metric_values(metric.name).is_some())
    };
    let shown: Vec<&Metric> = METRICS.iter().filter(is_shown).collect();
    let main = main_figure(&row.kind);
    let of = |name: &str| view.value(name, &[("row", &row.name)], main);
    let ratio = |a: Option<f64>, b: Option<f64>| {
        let ratio = a.zip(b).map(|(a, b)| a / b);
        TableEntry::plain(ratio.map_or_else(|| "–".to_owned(), digits))
    };
    let line = |c: &&ConfigurationResult| {
        let value = |metric: &&Metric| {
            let values = c.metric_values(metric.name);
            TableEntry::plain(digits(values.map_or(f64::NAN, |values| values.median())))
        };
        let mut line = vec![TableEntry::plain(c.implementation.clone())];
        line.extend(shown.iter().map(value));
        let own = of(&c.implementation);
        line.extend([ratio(of(PTEROS), own), ratio(own, of(FLOOR))]);
        line.push(match (&c.failure, &c.path) {
            (Some((_, why)), _) => TableEntry::with_tone(why.clone(), Tone::Faint),
            (None, path) => TableEntry::plain(path.clone().unwrap_or_default()),
        });
        line
    };
    let mut columns = vec![String::new()];
    columns.extend(shown.iter().map(|metric| metric.name.to_owned()));
    columns.extend(["pteros/it", "it/floor", "path"].map(str::to_owned));
    ReportItem::Table(Table {
        title: format!("{}  ({})", row.name, unit(&row.kind)),
        columns,
        rows: of_row.iter().map(line).collect(),
        note: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::MetricValues;

    /// Results with one value of p50 per row and implementation.
    pub(super) fn view(results: &[(&str, &str, f64)]) -> View {
        let result = |(row, implementation, p50): &(&str, &str, f64)| {
            let values = MetricValues {
                repeats: vec![*p50],
                pooled: None,
            };
            ConfigurationResult {
                case: vec![("row".to_owned(), (*row).to_owned())],
                implementation: (*implementation).to_owned(),
                metrics: [(P50.name.to_owned(), values)].into(),
                delivery: None,
                path: None,
                notes: Vec::new(),
                failure: None,
                other_load: 0.0,
            }
        };
        View {
            experiment: &EXPERIMENT,
            extent: Extent::Quick,
            configurations: results.iter().map(result).collect(),
        }
    }

    #[test]
    fn a_row_shows_ratios_and_met_targets() {
        let mut view = view(&[
            ("inter-64B-blocked", FLOOR, 2.0),
            ("inter-64B-blocked", "cyclone", 10.0),
            ("inter-64B-blocked", PTEROS, 4.0),
            ("inter-64B-blocked", "iceoryx2", 0.0),
        ]);
        if let Some(last) = view.configurations.last_mut() {
            last.metrics.clear();
            last.failure = Some((true, "not built".to_owned()));
        }
        let texts: Vec<Vec<String>> = report_items(&view)
            .into_iter()
            .flat_map(|item| match item {
                ReportItem::Table(table) => table.rows,
                ReportItem::Figure(_) => Vec::new(),
            })
            .map(|row| row.into_iter().map(|entry| entry.text).collect())
            .collect();
        let is_there = |words: &[&str]| texts.iter().any(|row| row == words);
        assert!(
            is_there(&["cyclone", "10.0", "0.40", "5.00", ""]),
            "{texts:?}"
        );
        assert!(
            is_there(&["iceoryx2", "–", "–", "–", "not built"]),
            "{texts:?}"
        );
        let target = "2b inter-64B-blocked: p50 ≤ 0.5 × cyclone";
        assert!(is_there(&[target, "0.40", "met"]), "{texts:?}");
    }

    #[test]
    fn a_smoke_run_has_a_row_of_each_name() {
        assert_eq!(rows_of(Extent::Smoke).len(), SMOKE.len());
        assert!(rows_of(Extent::Quick).len() < rows_of(Extent::Full).len());
    }
}
