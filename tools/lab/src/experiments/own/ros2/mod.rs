//! Programs of ROS 2's own client libraries over Pteros's middleware plug-in, and over
//! those of Cyclone DDS and Fast DDS where they are found, at their default settings
//! (docs/measurements/ros2.md). The same program runs over each; native Pteros runs
//! beside them. The second experiment compares rclpy of Pteros's wheel with ROS 2's
//! (docs/measurements/python.md).
//!
//! The result is one table: a line per row and figure, with the ratio of Pteros's
//! plug-in to the better of the other two.

mod aims;
mod rows;

use crate::testbed::implementation::PTEROS;
use crate::testbed::{Implementation, MeasurementFailure};

use super::host::measure::{Run, remove_shared_memory_files};
use super::{P50, PSS, Size, digits, metric};
use crate::experiment::{Experiment, Paper, Scope};
use crate::lab::Lab;
use crate::measurement::{Better, Configuration, Extent, Measurement, Metric};
use crate::report_items::{ReportItem, Table, TableEntry, Tone};
use crate::results::View;
use aims::{Aim, Figure};
use rows::{Client, Kind, Row};

pub const EXPERIMENT: Experiment = Experiment {
    id: "own.ros2",
    paper: Paper::Own,
    title: "Programs of rclcpp and rclpy over each middleware plug-in",
    reproduces: "docs/measurements/ros2.md",
    question: "What does a ROS 2 program gain when its middleware is Pteros?",
    metrics: &METRICS,
    configurations: |scope| configurations(rows::all(), scope),
    run: |lab, configuration| run(rows::all(), lab, configuration),
    published: &[],
    report_items: |view| vec![report_item(rows::all(), view)],
};

/// The experiment of the Python wheel.
pub const OF_WHEEL: Experiment = Experiment {
    id: "own.python",
    title: "Programs of rclpy on Pteros's wheel, and on ROS 2",
    reproduces: "docs/measurements/python.md",
    question: "What does a Python program gain on the wheel?",
    configurations: |scope| configurations(rows::of_wheel(), scope),
    run: |lab, configuration| run(rows::of_wheel(), lab, configuration),
    report_items: |view| vec![report_item(rows::of_wheel(), view)],
    ..EXPERIMENT
};

/// Every value of a row. Findings compare native Pteros; the table compares the plug-in.
const METRICS: [Metric; 10] = [
    P50,
    metric("cpu ms/s", "ms/s", Better::Neither),
    metric("lost", "", Better::Neither),
    metric("MB/s", "MB/s", Better::Higher),
    PSS,
    metric("threads", "", Better::Neither),
    metric("ms", "ms", Better::Lower),
    metric("cpu ms", "ms", Better::Neither),
    metric("publish", "us", Better::Lower),
    metric("overhead", "us", Better::Lower),
];

/// Rows of a smoke run: one of each kind and client.
const SMOKE: [&str; 7] = [
    "two-64B-100Hz",
    "events-two-64B-100Hz",
    "py-two-64B-100Hz",
    "one-64B",
    "goodput-1MB",
    "nodes-1",
    "meet-20",
];

/// Processes that meet in a smoke run.
const SMOKE_PROCESSES: u32 = 3;

fn configurations(rows: Vec<Row>, scope: &Scope) -> Vec<Configuration> {
    let mut all = Vec::new();
    for row in rows {
        let is_in = match scope.extent {
            Extent::Smoke => row.client == Client::Wheel || SMOKE.contains(&row.name.as_str()),
            Extent::Quick => row.quick,
            Extent::Full => true,
        };
        if !is_in {
            continue;
        }
        for implementation in scope.among(&row.client.implementations()) {
            all.push(Configuration {
                case: vec![("row", row.name.clone())],
                implementation,
                seconds: seconds(row.kind, scope.extent),
            });
        }
    }
    all
}

/// Approximate seconds of one repeat.
fn seconds(kind: Kind, extent: Extent) -> f64 {
    match kind {
        Kind::Two { rate, .. } | Kind::Typed { rate, .. } => {
            1.5 + count(rate, extent) as f64 / rate as f64
        }
        Kind::Nodes { nodes, .. } => 5.0 + 0.2 * f64::from(nodes),
        Kind::Meet { processes } => 1.0 + 0.2 * f64::from(processes),
        Kind::One { .. } | Kind::Goodput { .. } => 2.5,
        Kind::Callbacks | Kind::Call | Kind::Start => 2.5,
    }
}

/// Messages of a flow at that rate: two seconds of a quick run, but enough for a
/// median.
fn count(rate: u64, extent: Extent) -> u64 {
    extent.choose(10, (2 * rate).max(30), (5 * rate).max(60))
}

fn run(
    rows: Vec<Row>,
    lab: &Lab,
    configuration: &Configuration,
) -> Result<Measurement, MeasurementFailure> {
    let implementation = lab.implementation(configuration.implementation)?;
    let name = configuration.get("row");
    let row = rows.into_iter().find(|row| row.name == name);
    let row = row.ok_or_else(|| MeasurementFailure::Failed(format!("no row {name}")))?;
    let measured = measure(&row, lab, implementation);
    if lab.has_private_shared_memory() {
        remove_shared_memory_files();
    }
    measured
}

fn measure(
    row: &Row,
    lab: &Lab,
    implementation: &Implementation,
) -> Result<Measurement, MeasurementFailure> {
    let extent = lab.extent;
    let mut run = Run::new(lab, implementation);
    // Discovery of nodes with parameter services goes on after the first answer.
    run.rest_ms = extent.choose(100, 2000, 4000);
    let mut options: Vec<&str> = Vec::new();
    if row.client == Client::Events {
        options.push("--executor events");
    }
    if implementation.name == PTEROS {
        // As the nodes of rclcpp and rclpy have them.
        options.push("--services yes");
    }
    if matches!(
        row.kind,
        Kind::One {
            intra_process: false,
            ..
        }
    ) {
        options.push("--serialize yes");
    }
    run.options = options.join(" ");
    match row.kind {
        Kind::Two { size, rate } => {
            let columns = ["p50", "cpu ms/s", "lost"];
            let options = format!("--rate {rate}");
            run.flow(size, 1, count(rate, extent), &options, &columns)
        }
        Kind::Typed { message, rate } => {
            let size = Size {
                name: message.name,
                bytes: message.bytes,
                trips: 0,
                flood: 0,
            };
            let columns = ["p50", "cpu ms/s", "lost", "publish"];
            let options = format!("--rate {rate} --type {}", message.name);
            run.flow(size, 1, count(rate, extent), &options, &columns)
        }
        Kind::Callbacks => run.callbacks(extent.choose(100, 20_000, 100_000)),
        Kind::Call => run.call(extent.choose(10, 500, 2000)),
        Kind::Start => run.start_of_node(),
        Kind::One { size, .. } => {
            let mut measured = run.intra(size, 0)?;
            measured.values.retain(|(name, _)| *name == P50.name);
            Ok(measured)
        }
        Kind::Goodput { size } => {
            let count = size.flood / extent.choose(100, 4, 1);
            let columns = ["MB/s", "cpu ms/s", "lost"];
            run.flow(size, 1, count, "--history keep_all", &columns)
        }
        Kind::Nodes { nodes, composed } => {
            let mut measured = run.memory(nodes, composed)?;
            let is_shown = |name: &str| [PSS.name, "threads", "cpu ms/s"].contains(&name);
            measured.values.retain(|(name, _)| is_shown(name));
            Ok(measured)
        }
        Kind::Meet { processes } => {
            let processes = extent.choose(SMOKE_PROCESSES, processes, processes);
            let mut measured = run.discovery(processes)?;
            measured.values.retain(|(name, _)| *name != "kB");
            Ok(measured)
        }
    }
}

fn report_item(rows: Vec<Row>, view: &View) -> ReportItem {
    let mut lines = Vec::new();
    for row in rows {
        for figure in aims::figures(&row) {
            lines.extend(line(view, &row, &figure));
        }
    }
    let columns = [
        "row",
        "figure",
        "Pteros",
        "Cyclone DDS",
        "Fast DDS",
        "native",
        "ratio",
        "aim",
        "",
    ];
    ReportItem::Table(Table {
        title:
            "Middleware plug-ins below the same program; ratio: Pteros ÷ the better of the others"
                .to_owned(),
        columns: columns.map(str::to_owned).into(),
        rows: lines,
        note:
            "two: from publish to callback in another process; one: in one process of two nodes; \
               py: rclpy; events: the events executor; native: Pteros's own API."
                .to_owned(),
    })
}

/// A line of the table. None if no implementation has the figure.
fn line(view: &View, row: &Row, figure: &Figure) -> Option<Vec<TableEntry>> {
    let wanted = [("row", row.name.as_str())];
    let value = |name: &str| view.value(name, &wanted, figure.metric);
    let [ours, peers @ ..] = row.client.plug_ins();
    let native = (row.client == Client::Cpp).then(|| value(PTEROS)).flatten();
    let of_peers = peers.map(value);
    let measured: Vec<f64> = of_peers.iter().flatten().copied().collect();
    if value(ours).is_none() && measured.is_empty() && native.is_none() {
        return None;
    }
    let failure = |name: &str| {
        let mut all = view.configurations.iter();
        let found = all.find(|c| c.implementation == name && c.is(&wanted))?;
        found.failure.as_ref().map(|(_, why)| why.clone())
    };
    let entry = |name: &str, value: Option<f64>| match (value, failure(name)) {
        (None, Some(why)) => TableEntry::with_tone(why, Tone::Faint),
        (value, _) => TableEntry::plain(digits(value.unwrap_or(f64::NAN))),
    };
    let evaluation = figure.evaluate(value(ours), &measured);
    let unit = METRICS.iter().find(|m| m.name == figure.metric);
    let unit = unit.map_or("", |m| m.unit);
    let is_named = figure.metric.contains(unit);
    let name = if is_named {
        figure.metric.to_owned()
    } else {
        format!("{} {unit}", figure.metric)
    };
    let mut line = vec![TableEntry::plain(row.name.clone()), TableEntry::plain(name)];
    line.push(entry(ours, value(ours)));
    line.extend(
        peers
            .iter()
            .zip(of_peers)
            .map(|(name, value)| entry(name, value)),
    );
    line.push(entry("", native));
    line.push(TableEntry::plain(digits(
        evaluation.ratio.unwrap_or(f64::NAN),
    )));
    line.push(TableEntry::plain(match figure.aim {
        Some(Aim::Ratio(most)) => format!("≤ {most}"),
        Some(Aim::Value(most)) => format!("{most} at most"),
        None => String::new(),
    }));
    line.push(
        evaluation
            .met
            .map_or_else(TableEntry::default, TableEntry::aim),
    );
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{ConfigurationResult, MetricValues};
    use crate::testbed::implementation::names;

    fn result(row: &str, implementation: &str, values: &[(&str, f64)]) -> ConfigurationResult {
        let metric = |(name, value): &(&str, f64)| {
            let values = MetricValues {
                repeats: vec![*value],
                pooled: None,
            };
            ((*name).to_owned(), values)
        };
        ConfigurationResult {
            case: vec![("row".to_owned(), row.to_owned())],
            implementation: implementation.to_owned(),
            metrics: values.iter().map(metric).collect(),
            delivery: None,
            path: None,
            notes: Vec::new(),
            failure: None,
            other_load: 0.0,
        }
    }

    fn texts(configurations: Vec<ConfigurationResult>) -> Vec<Vec<String>> {
        let view = View {
            experiment: &EXPERIMENT,
            extent: Extent::Quick,
            configurations,
        };
        let items = [report_item(rows::all(), &view)].into_iter();
        let rows = items.flat_map(|item| match item {
            ReportItem::Table(table) => table.rows,
            ReportItem::Figure(_) => Vec::new(),
        });
        rows.map(|row| row.into_iter().map(|entry| entry.text).collect())
            .collect()
    }

    #[test]
    fn a_line_compares_the_plug_in_with_the_better_peer() {
        let row = "two-64B-100Hz";
        let mut failed = result(row, "rclcpp/fastrtps", &[]);
        failed.failure = Some((false, "it crashed".to_owned()));
        let texts = texts(vec![
            result(row, "rclcpp/pteros", &[("p50", 30.0), ("lost", 0.0)]),
            result(row, "rclcpp/cyclonedds", &[("p50", 60.0), ("lost", 1.0)]),
            failed,
            result(row, PTEROS, &[("p50", 20.0)]),
        ]);
        assert_eq!(
            texts[0],
            [
                row,
                "p50 us",
                "30.0",
                "60.0",
                "it crashed",
                "20.0",
                "0.50",
                "≤ 0.6",
                "met"
            ]
        );
        assert_eq!(
            texts[1],
            [
                row,
                "lost",
                "0.00",
                "1.00",
                "it crashed",
                "–",
                "0.00",
                "",
                ""
            ]
        );
        assert_eq!(texts.len(), 2);
    }

    #[test]
    fn rows_of_python_are_compared_with_rclpy() {
        let row = "py-two-1MB-100Hz";
        let texts = texts(vec![
            result(row, "rclpy/pteros", &[("p50", 40.0)]),
            result(row, "rclpy/cyclonedds", &[("p50", 100.0)]),
            result(row, "rclpy/fastrtps", &[("p50", 80.0)]),
        ]);
        assert_eq!(
            texts,
            [[
                row, "p50 us", "40.0", "100.0", "80.0", "–", "0.50", "≤ 0.3", "not met"
            ]]
        );
    }

    #[test]
    fn a_quick_run_takes_less_than_ten_minutes_and_a_smoke_run_has_every_row() {
        let of = |extent| {
            configurations(
                rows::all(),
                &Scope {
                    extent,
                    implementations: names(),
                },
            )
        };
        let quick: f64 = of(Extent::Quick).iter().map(|c| c.seconds).sum();
        assert!(quick < 600.0, "{quick}");
        let smoke = of(Extent::Smoke);
        for name in SMOKE {
            assert!(smoke.iter().any(|c| c.get("row") == name), "{name}");
        }
    }
}
