//! Zenoh benchmark: Pteros over Zenoh beside plain Zenoh with the same keys and bytes,
//! hiroz, Cyclone DDS and our RTPS, on one host and between two
//! (docs/measurements/zenoh.md).
//!
//! `pteros-zenoh-tcp` has its shared memory switched off: everything goes through
//! Zenoh. Only it takes part between hosts, which are network namespaces of one kernel
//! here.

mod aims;
mod rows;

use std::time::Duration;

use crate::testbed::hosts::NAMES;
use crate::testbed::implementation::{PTEROS, ZENOH_OVERRIDE};
use crate::testbed::process::value;
use crate::testbed::{EmulatedLink, Implementation, MeasurementFailure};

use super::host::measure::{self, Run, remove_shared_memory_files};
use super::{MIN, P50, P95, PSS, Size, TIMEOUT, cpu_load, digits, latencies, metric, number};
use crate::experiment::{Experiment, Paper, Scope};
use crate::lab::Lab;
use crate::measurement::{Better, Configuration, Measurement, Metric};
use crate::report_items::{ReportItem, Table, TableEntry, Tone};
use crate::results::{ConfigurationResult, View};
use aims::{AIMS, OURS};
use rows::{CPU_RATE, Kind, LINK_WARMUP, Row};

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "own.zenoh",
    paper: Paper::Own,
    title: "The Zenoh transport: latency, CPU, memory, discovery",
    reproduces: "docs/measurements/zenoh.md",
    question: "What does Pteros add to Zenoh, and how do other programs over it compare?",
    metrics: &METRICS,
    configurations,
    run,
    published: &[],
    report_items,
};

/// Every value of a row, in the order of the columns.
const METRICS: [Metric; 14] = [
    P50,
    P95,
    MIN,
    metric("p99", "us", Better::Neither),
    metric("cpu ms/s", "ms/s", Better::Lower),
    metric("lost", "", Better::Neither),
    PSS,
    metric("private kB", "kB", Better::Neither),
    metric("over bare kB", "kB", Better::Neither),
    metric("threads", "", Better::Neither),
    metric("wakes/s", "1/s", Better::Neither),
    metric("kB", "kB", Better::Lower),
    metric("ms", "ms", Better::Neither),
    metric("cpu ms", "ms", Better::Neither),
];

/// In the order of the tables.
const IMPLEMENTATIONS: [&str; 7] = [
    OURS,
    "zenoh-ros",
    "hiroz",
    "cyclone",
    "pteros-udp",
    PTEROS,
    "pteros-zenoh",
];

/// Those between two hosts. `pteros-udp` is `pteros` there.
const BETWEEN_HOSTS: [&str; 5] = [OURS, "zenoh-ros", "hiroz", "cyclone", "pteros-udp"];

/// Delay of the link in one direction, and its rate.
const DELAY_US: u32 = 20_000;
const BITS_PER_SECOND: u64 = 1_000_000_000;

/// Sessions of two hosts without a router: they find each other by multicast.
const ZENOH_BETWEEN_HOSTS: &str = "scouting/multicast/enabled=true;\
     scouting/multicast/interface=\"auto\";listen/endpoints=[\"tcp/0.0.0.0:0\"];\
     connect/endpoints=[]";

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let mut all = Vec::new();
    for row in rows::all() {
        if !row.is_in(scope.extent) {
            continue;
        }
        let wanted: &[&'static str] = match row.kind {
            Kind::Link { .. } => &BETWEEN_HOSTS,
            _ => &IMPLEMENTATIONS,
        };
        for implementation in scope.among(wanted) {
            all.push(Configuration {
                case: vec![("row", row.name.clone())],
                implementation,
                seconds: row.seconds(scope.extent),
            });
        }
    }
    all
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let implementation = lab.implementation(configuration.implementation)?;
    if !cfg!(feature = "zenoh") && implementation.name.starts_with("pteros-zenoh") {
        return Err(MeasurementFailure::Unsupported(
            "this pteros-lab has no Zenoh; cargo xtask bench zenoh builds one that has".into(),
        ));
    }
    let name = configuration.get("row");
    let row = rows::all().into_iter().find(|row| row.name == name);
    let row = row.ok_or_else(|| MeasurementFailure::Failed(format!("no row {name}")))?;
    let measured = match row.kind {
        Kind::OneHost(kind) => measure::measure(&kind, lab, implementation),
        Kind::Cpu { size } => cpu(lab, implementation, size),
        Kind::Link { size, loss } => over_link(lab, implementation, size, loss),
    };
    if lab.has_private_shared_memory() {
        remove_shared_memory_files();
    }
    measured
}

/// Publishers keep all messages: with keep last, Zenoh drops large ones while its
/// queue is full.
fn cpu(
    lab: &Lab,
    implementation: &Implementation,
    size: Size,
) -> Result<Measurement, MeasurementFailure> {
    let count = lab.extent.choose(10, 150, 400);
    let options = format!("--rate {CPU_RATE} --history keep_all");
    let columns = ["cpu ms/s", "p50", "lost"];
    Run::new(lab, implementation).flow(size, 1, count, &options, &columns)
}

/// Round trips back to back, one host each.
fn over_link(
    lab: &Lab,
    implementation: &Implementation,
    size: Size,
    loss: u32,
) -> Result<Measurement, MeasurementFailure> {
    lab.join_hosts(EmulatedLink {
        bits_per_second: BITS_PER_SECOND,
        loss_per_mille: loss,
        loses_tcp: true,
        delay_us: DELAY_US,
        seed: 77,
    })?;
    let mut implementation = implementation.clone();
    // Programs without Zenoh ignore it.
    let between = (ZENOH_OVERRIDE, ZENOH_BETWEEN_HOSTS.to_owned());
    implementation.environment.push(between);
    let topic = lab.fresh_topic();
    let count = rows::trips(size, loss, lab.extent);
    let timeout = TIMEOUT + 10 * Duration::from_secs_f64(row_seconds(lab, size, loss));
    let start = |verb: &str, host: &str| {
        let line = format!(
            "{verb} --topic {topic} --size {} --count {count} --warmup {LINK_WARMUP} --history keep_all --settle 1000 --timeout {}",
            size.bytes,
            timeout.as_secs()
        );
        let words = line.split(' ').map(str::to_owned).collect();
        lab.start_on(Some(host), &implementation, false, words)
    };
    let mut pong = start("pong", NAMES[1])?;
    pong.expect("ready", TIMEOUT)?;
    let mut ping = start("ping", NAMES[0])?;
    let took = ping.expect("took", timeout)?;
    let ponged = pong.expect("took", timeout)?;
    let mut values = latencies(&took, 2.0)?;
    values.push(("p99", number(&took, "p99")? / 2.0));
    values.push(("cpu ms/s", cpu_load(&took)? + cpu_load(&ponged)?));
    Ok(Measurement {
        values,
        path: value(&took, "path").map(str::to_owned),
        ..Measurement::default()
    })
}

fn row_seconds(lab: &Lab, size: Size, loss: u32) -> f64 {
    let (name, quick) = (String::new(), false);
    let kind = Kind::Link { size, loss };
    Row { name, kind, quick }.seconds(lab.extent)
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let rows = rows::all();
    let measured = |row: &&Row| view.configurations.iter().any(|c| c.get("row") == row.name);
    let rows = || rows.iter().filter(measured);
    let mut items: Vec<ReportItem> = rows().map(|row| table(view, row)).collect();
    let met = AIMS
        .iter()
        .flat_map(|aim| rows().filter_map(|row| aim.evaluate(row, view)));
    items.push(ReportItem::Table(super::targets(met.collect::<Vec<_>>())));
    items
}

/// The table of a row: a line per implementation.
fn table(view: &View, row: &Row) -> ReportItem {
    let mut of_row: Vec<&ConfigurationResult> = view.configurations.iter().collect();
    of_row.retain(|c| c.get("row") == row.name);
    of_row.sort_by_key(|c| {
        let mut names = IMPLEMENTATIONS.iter();
        names.position(|name| *name == c.implementation)
    });
    let has = |metric: &&Metric| {
        of_row
            .iter()
            .any(|c| c.metric_values(metric.name).is_some())
    };
    let shown: Vec<&Metric> = METRICS.iter().filter(has).collect();
    let main = |name: &str| view.value(name, &[("row", &row.name)], row.main_figure());
    let line = |c: &&ConfigurationResult| {
        let value = |metric: &&Metric| {
            let values = c.metric_values(metric.name);
            TableEntry::plain(digits(values.map_or(f64::NAN, |values| values.median())))
        };
        let mut line = vec![TableEntry::plain(c.implementation.clone())];
        line.extend(shown.iter().map(value));
        let ratio = main(OURS).zip(main(&c.implementation)).map(|(a, b)| a / b);
        line.push(TableEntry::plain(digits(ratio.unwrap_or(f64::NAN))));
        line.push(match (&c.failure, &c.path) {
            (Some((_, why)), _) => TableEntry::with_tone(why.clone(), Tone::Faint),
            (None, path) => TableEntry::plain(path.clone().unwrap_or_default()),
        });
        line
    };
    let mut columns = vec![String::new()];
    columns.extend(shown.iter().map(|metric| metric.name.to_owned()));
    columns.extend([format!("{OURS}/it"), "path".to_owned()]);
    ReportItem::Table(Table {
        title: format!("{}  ({})", row.name, row.unit()),
        columns,
        rows: of_row.iter().map(line).collect(),
        note: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Extent;
    use crate::results::MetricValues;
    use crate::testbed::implementation::names;

    fn result(row: &str, implementation: &str, metric: &str, value: f64) -> ConfigurationResult {
        let values = MetricValues {
            repeats: vec![value],
            pooled: None,
        };
        ConfigurationResult {
            case: vec![("row".to_owned(), row.to_owned())],
            implementation: implementation.to_owned(),
            metrics: [(metric.to_owned(), values)].into(),
            delivery: None,
            path: None,
            notes: Vec::new(),
            failure: None,
            other_load: 0.0,
        }
    }

    #[test]
    fn a_row_shows_ratios_and_each_aim_is_judged_by_its_own_peer() {
        let mut missing = result("host-64B", "hiroz", "p50", 0.0);
        missing.metrics.clear();
        missing.failure = Some((true, "not built".to_owned()));
        let view = View {
            experiment: &EXPERIMENT,
            extent: Extent::Quick,
            configurations: vec![
                result("host-64B", OURS, "p50", 120.0),
                result("host-64B", "zenoh-ros", "p50", 100.0),
                missing,
                result("host-64B", PTEROS, "p50", 10.0),
                result("host-64B", "pteros-zenoh", "p50", 10.5),
                result("discovery-10", OURS, "kB", 90.0),
                result("discovery-10", "hiroz", "kB", 100.0),
                result("discovery-10", PTEROS, "kB", 0.0),
                result("discovery-10", "pteros-zenoh", "kB", 0.0),
            ],
        };
        let texts: Vec<Vec<String>> = report_items(&view)
            .into_iter()
            .flat_map(|item| match item {
                ReportItem::Table(table) => table.rows,
                ReportItem::Figure(_) => Vec::new(),
            })
            .map(|row| row.into_iter().map(|entry| entry.text).collect())
            .collect();
        for line in [
            &["zenoh-ros", "100.0", "1.20", ""][..],
            &["hiroz", "–", "–", "not built"],
            &[
                "1 host-64B: p50 of pteros-zenoh-tcp ≤ 1.1 × zenoh-ros",
                "1.20",
                "not met",
            ],
            &[
                "2 discovery-10: kB of pteros-zenoh-tcp ≤ 1 × hiroz",
                "0.90",
                "met",
            ],
            &[
                "3 host-64B: p50 of pteros-zenoh ≤ 1.1 × pteros",
                "1.05",
                "met",
            ],
            &[
                "3 discovery-10: kB of pteros-zenoh ≤ 1.1 × pteros",
                "1.00",
                "met",
            ],
        ] {
            assert!(texts.iter().any(|row| row == line), "{line:?}: {texts:?}");
        }
        let judged = texts
            .iter()
            .filter(|row| row.last().is_some_and(|word| word.ends_with("met")));
        assert_eq!(judged.count(), 4, "{texts:?}");
    }

    #[test]
    fn a_quick_run_takes_less_than_ten_minutes() {
        let scope = Scope {
            extent: Extent::Quick,
            implementations: names(),
        };
        let quick: f64 = configurations(&scope).iter().map(|c| c.seconds).sum();
        assert!(quick < 600.0, "{quick}");
    }
}
