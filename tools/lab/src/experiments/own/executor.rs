//! Executor benchmark: overhead of a callback, dropped messages, and latency of an
//! urgent callback for each executor, beside a plain epoll loop
//! (docs/measurements/executors.md).
//!
//! Every value comes from a process of its own (`examples/executor_load`). Only
//! numbers of a quiet machine count.

use std::process::Command;

use crate::testbed::MeasurementFailure;
use anyhow::{Context, Result};

use super::{metric, program, targets};
use crate::experiment::{Experiment, Paper, Scope};
use crate::lab::Lab;
use crate::measurement::{Better, Configuration, Extent, Measurement, Metric, Published};
use crate::report_items::{ReportItem, Table, TableEntry, Tone, parts};
use crate::results::View;

pub const EXPERIMENT: Experiment = Experiment {
    id: "own.executor",
    paper: Paper::Own,
    title: "Cost of a callback by executor",
    reproduces: "docs/measurements/executors.md",
    question: "What does an executor add to a callback, what does it drop under load, and how long does an urgent callback wait?",
    metrics: &METRICS,
    configurations,
    run,
    // From other machines, for orientation.
    published: &[Published {
        case: &[
            ("executor", "single"),
            ("measured", "overhead"),
            ("work us", "0"),
            ("timers", "0"),
            ("subscriptions", "1"),
        ],
        implementation: "rclcpp (issue 1637)",
        value: "175 us",
        source: "4 000 empty callbacks a second take 70 % of a processor",
    }],
    report_items,
};

const OVERHEAD: Metric = metric("overhead_us", "us", Better::Lower);
const PUBLISHED: Metric = metric("published", "", Better::Neither);
const CALLBACKS: Metric = metric("callbacks", "", Better::Neither);
const UTILISATION: Metric = metric("utilisation", "of the threads", Better::Neither);
const DROPPED: Metric = metric("dropped", "", Better::Lower);
const OVERWRITTEN: Metric = metric("overwritten", "", Better::Neither);
const URGENT: Metric = metric("urgent", "", Better::Neither);
const URGENT_P50: Metric = metric("urgent_p50_us", "us", Better::Neither);
const URGENT_P99: Metric = metric("urgent_p99_us", "us", Better::Lower);
const URGENT_MAX: Metric = metric("urgent_max_us", "us", Better::Neither);

/// The metrics that the program prints.
const METRICS: [Metric; 10] = [
    OVERHEAD,
    PUBLISHED,
    CALLBACKS,
    UTILISATION,
    DROPPED,
    OVERWRITTEN,
    URGENT,
    URGENT_P50,
    URGENT_P99,
    URGENT_MAX,
];

/// Executors in the order of the table. The floor has no timers.
const KINDS: [&str; 6] = ["floor", "single", "static", "chain", "multi", "isolated"];
/// Executors whose throughput under load is measured.
const LOADED: [&str; 4] = ["single", "chain", "multi", "isolated"];

/// The work of a callback in the paper's experiment, µs (Macenski et al. 2023,
/// fig. 5).
const WORK_US: u64 = 500;
/// Largest overhead beyond the work of a callback, µs.
const OVERHEAD_MAX_US: f64 = 2.0;
/// How much more each of two hundred subscriptions may cost than each of ten: a
/// factor, and the noise of a clock in µs.
const FLAT: (f64, f64) = (1.5, 0.1);
/// An urgent callback waits for one other callback at most, plus this margin, µs.
const URGENT_MAX_US: f64 = WORK_US as f64 + 50.0;

fn millis(what: &str, extent: Extent) -> u64 {
    match what {
        "overhead" => extent.choose(50, 300, 1_000),
        _ => extent.choose(100, 1_500, 5_000),
    }
}

fn configurations(scope: &Scope) -> Vec<Configuration> {
    if scope.among(&["pteros"]).is_empty() {
        return Vec::new();
    }
    let mut all = Vec::new();
    let mut add = |what: &str, kind: &str, subscriptions: u64, work_us: u64, timers: u64| {
        all.push(Configuration {
            case: vec![
                ("measured", what.to_owned()),
                ("executor", kind.to_owned()),
                ("subscriptions", subscriptions.to_string()),
                ("work us", work_us.to_string()),
                ("timers", timers.to_string()),
            ],
            implementation: "pteros",
            seconds: millis(what, scope.extent) as f64 / 1e3 + 0.3,
        });
    };
    let counts: &[u64] = scope
        .extent
        .choose(&[1], &[1, 10, 200], &[1, 10, 50, 100, 200]);
    let works: &[u64] = scope.extent.choose(&[0], &[0, WORK_US], &[0, WORK_US]);
    for work_us in works {
        for with_timers in [false, true] {
            for count in counts {
                let timers = if with_timers { *count } else { 0 };
                let with_timers = KINDS.iter().filter(|kind| timers == 0 || **kind != "floor");
                with_timers.for_each(|kind| add("overhead", kind, *count, *work_us, timers));
            }
        }
    }
    for kind in LOADED {
        for count in counts {
            for timers in [0, *count] {
                add("load", kind, *count, WORK_US, timers);
            }
        }
    }
    for kind in LOADED {
        add("urgent", kind, 10, WORK_US, 0);
    }
    all
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let program = program("executor-load", "executor-load")?;
    let what = configuration.get("measured");
    let mut command = Command::new(program);
    command.args([configuration.get("executor"), what]);
    for (option, name) in [
        ("--subscriptions", "subscriptions"),
        ("--work-us", "work us"),
        ("--timers", "timers"),
    ] {
        command.args([option, configuration.get(name)]);
    }
    let millis = millis(what, lab.extent).to_string();
    let output = command.args(["--millis", &millis]).output();
    let output = output.context("run executor-load")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(MeasurementFailure::Failed(said));
    }
    Ok(Measurement {
        values: parse(&String::from_utf8_lossy(&output.stdout))?,
        ..Measurement::default()
    })
}

/// Parses lines of a name and a number.
fn parse(text: &str) -> Result<Vec<(&'static str, f64)>> {
    let value = |line: &str| -> Result<(&'static str, f64)> {
        let (name, value) = line.split_once(' ').context("no value")?;
        let metric = METRICS.iter().find(|metric| metric.name == name);
        let metric = metric.context("no such metric")?;
        Ok((metric.name, value.parse().context("no number")?))
    };
    text.lines()
        .map(|line| value(line).with_context(|| format!("executor-load printed {line:?}")))
        .collect()
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let overhead = |kind: &str, count: &str, work: &str, timers: &str| {
        let wanted = [
            ("measured", "overhead"),
            ("executor", kind),
            ("subscriptions", count),
            ("work us", work),
            ("timers", timers),
        ];
        view.value("pteros", &wanted, OVERHEAD.name)
    };
    let mut rows = Vec::new();
    let mut met = Vec::new();
    for work in view.values("work us") {
        for with_timers in [false, true] {
            let mut flat = KINDS.map(|kind| (kind, Vec::new()));
            for count in view.values("subscriptions") {
                let timers = if with_timers { count } else { "0" };
                let mut row: Vec<TableEntry> = [count, work, timers].map(TableEntry::plain).into();
                for (kind, values) in &mut flat {
                    let timers = if *kind == "floor" { "0" } else { timers };
                    let value = overhead(kind, count, work, timers);
                    let is_high = value.is_some_and(|us| us > OVERHEAD_MAX_US);
                    row.push(TableEntry::with_tone(
                        value.map_or_else(|| "–".to_owned(), |us| format!("{us:.2}")),
                        match is_high && *kind != "floor" {
                            true => Tone::Bad,
                            false => Tone::Plain,
                        },
                    ));
                    if count.parse().unwrap_or(0) >= 10 {
                        values.extend(value);
                    }
                }
                if row.iter().skip(3).any(|entry| entry.text != "–") {
                    rows.push(row);
                }
            }
            for (kind, values) in flat {
                if let [first, .., last] = values[..] {
                    let timers = if with_timers { " with timers" } else { "" };
                    met.push((
                        format!(
                            "{kind}, {work} us of work{timers}: N = 200 at most {} × N = 10",
                            FLAT.0
                        ),
                        format!("{first:.2} to {last:.2}"),
                        last <= first * FLAT.0 + FLAT.1,
                    ));
                }
            }
        }
    }
    let only = |what: &str| {
        let mut part = view.clone();
        part.configurations.retain(|c| c.get("measured") == what);
        part
    };
    let (load, urgent) = (only("load"), only("urgent"));
    for c in &load.configurations {
        if let Some(dropped) = c.metric_values(DROPPED.name).map(|v| v.median()) {
            let (kind, count) = (c.get("executor"), c.get("subscriptions"));
            let what = format!("{kind}, N = {count}, {} timers: no drops", c.get("timers"));
            met.push((what, dropped.to_string(), dropped == 0.0));
        }
    }
    for c in &urgent.configurations {
        if let Some(p99) = c.metric_values(URGENT_P99.name).map(|v| v.median()) {
            let what = format!(
                "{}: urgent p99 at most {URGENT_MAX_US} us",
                c.get("executor")
            );
            met.push((what, format!("{p99:.0}"), p99 <= URGENT_MAX_US));
        }
    }
    let mut columns: Vec<String> = ["N", "work us", "timers"].map(str::to_owned).into();
    columns.extend(KINDS.map(str::to_owned));
    vec![
        ReportItem::Table(Table {
            title: "Overhead of a callback beyond its work, us of CPU time; one publisher, N subscriptions on N nodes; multi has 2 threads".to_owned(),
            columns,
            rows,
            note: format!("Target: at most {OVERHEAD_MAX_US} us."),
        }),
        ReportItem::Table(parts(
            &load,
            "90 % of the threads' time requested, 500 us of work each",
            &[&CALLBACKS, &UTILISATION, &DROPPED],
        )),
        ReportItem::Table(parts(
            &urgent,
            "An urgent message every 7.3 ms beside that load: from publish to callback, us",
            &[&URGENT, &URGENT_P50, &URGENT_P99, &URGENT_MAX],
        )),
        ReportItem::Table(targets(met)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_line_by_line() {
        let values = parse("overhead_us 0.250\ncallbacks 4\n").unwrap();
        assert_eq!(values, [("overhead_us", 0.25), ("callbacks", 4.0)]);
        for wrong in ["overhead_us many", "overhead_us", "unheard_of 3"] {
            let error = parse(wrong).unwrap_err();
            assert!(format!("{error:#}").contains(wrong), "{error:#}");
        }
    }
}
