//! Bag benchmark: how fast messages of a running graph reach a bag, what is lost and
//! where, and how exactly a bag is played (docs/measurements/bags.md).
//!
//! A publisher and the recorder are processes of their own. What was published,
//! received, written and lost by cause must add up, or the row fails. Where a ROS 2 is
//! found, its recorder is fed by the same publishers, over UDP. So is ours once more.

mod measure;
mod rosbag2;
mod rows;

use crate::testbed::MeasurementFailure;
use crate::testbed::implementation::{PTEROS, RECORDERS};

use super::{digits, metric, targets};
use crate::experiment::{Experiment, Paper, Scope};
use crate::lab::Lab;
use crate::measurement::{Better, Configuration, Extent, Measurement, Metric, Published};
use crate::report_items::{ReportItem, Table, TableEntry, Tone};
use crate::results::{ConfigurationResult, View};
use rows::{Kind, Row};

pub const EXPERIMENT: Experiment = Experiment {
    id: "own.bag",
    paper: Paper::Own,
    title: "Bags: recording, its losses, and the spacing of playback",
    reproduces: "docs/measurements/bags.md",
    question: "How much can be recorded without loss, at which cost, and how exactly is it played?",
    metrics: &METRICS,
    configurations,
    run,
    published: &PUBLISHED_VALUES,
    report_items,
};

const MB_PER_S: Metric = metric("MB/s", "MB/s", Better::Higher);
const MESSAGES_PER_S: Metric = metric("messages/s", "1/s", Better::Higher);
const RATE: Metric = metric("published/s", "1/s", Better::Neither);
const PUBLISHED: Metric = metric("published", "", Better::Neither);
const RECEIVED: Metric = metric("received", "", Better::Neither);
const WRITTEN: Metric = metric("written", "", Better::Neither);
const WIRE: Metric = metric("lost on the wire", "", Better::Neither);
const QUEUE: Metric = metric("lost in the queue", "", Better::Neither);
const BUFFER: Metric = metric("lost in the buffer", "", Better::Neither);
const WRITER: Metric = metric("lost in the writer", "", Better::Neither);
const CPU_PER_GB: Metric = metric("CPU s/GB", "s/GB", Better::Lower);
const CPU_MESSAGE: Metric = metric("CPU us/message", "us", Better::Lower);
const PSS_PEAK: Metric = metric("PSS peak MB", "MB", Better::Lower);
const PUBLISH_ALONE: Metric = metric("publish p95 alone", "us", Better::Lower);
const PUBLISH_BESIDE: Metric = metric("publish p95 beside", "us", Better::Lower);
const DELIVERY_ALONE: Metric = metric("delivery p95 alone", "us", Better::Lower);
const DELIVERY_BESIDE: Metric = metric("delivery p95 beside", "us", Better::Lower);
const SPACING: [Metric; 3] = [
    metric("spacing p50", "us", Better::Lower),
    metric("spacing p99", "us", Better::Lower),
    metric("spacing max", "us", Better::Neither),
];
const TIMER: [Metric; 3] = [
    metric("timer p50", "us", Better::Neither),
    metric("timer p99", "us", Better::Neither),
    metric("timer max", "us", Better::Neither),
];

const METRICS: [Metric; 23] = [
    MB_PER_S,
    MESSAGES_PER_S,
    RATE,
    PUBLISHED,
    RECEIVED,
    WRITTEN,
    WIRE,
    QUEUE,
    BUFFER,
    WRITER,
    CPU_PER_GB,
    CPU_MESSAGE,
    PSS_PEAK,
    PUBLISH_ALONE,
    PUBLISH_BESIDE,
    DELIVERY_ALONE,
    DELIVERY_BESIDE,
    SPACING[0],
    SPACING[1],
    SPACING[2],
    TIMER[0],
    TIMER[1],
    TIMER[2],
];

/// The counts of a recording, in the order of its table.
const COUNTS: [Metric; 7] = [PUBLISHED, RECEIVED, WRITTEN, WIRE, QUEUE, BUFFER, WRITER];

/// Of rosbag2, on another machine.
const PUBLISHED_VALUES: [Published; 1] = [Published {
    case: &[("row", "record-1MB-1000Hz-none-tmpfs")],
    implementation: "rosbag2",
    value: "110-120 MB/s",
    source: "ros2/rosbag2 issue 1787",
}];

/// Aims: the least written bytes and messages per second, the largest ratio of a 95th
/// percentile, the most memory, the largest error of spacing.
const MB_PER_S_MIN: f64 = 1000.0;
const MESSAGES_PER_S_MIN: f64 = 300_000.0;
const BESIDE_MAX: f64 = 1.1;
const PSS_MB_MAX: f64 = 200.0;
const SPACING_US_MAX: f64 = 200.0;

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let is_in = |row: &Row| match scope.extent {
        Extent::Smoke => rows::SMOKE.contains(&row.name.as_str()),
        Extent::Quick => row.quick,
        Extent::Full => true,
    };
    let mut all = Vec::new();
    for row in rows::all().into_iter().filter(is_in) {
        let others = if row.has_others() {
            &RECORDERS[..]
        } else {
            &[]
        };
        for implementation in scope.among(&[&[PTEROS][..], others].concat()) {
            all.push(Configuration {
                case: vec![("row", row.name.clone())],
                implementation,
                seconds: measure::seconds(row.kind, scope.extent),
            });
        }
    }
    all
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let implementation = lab.implementation(configuration.implementation)?;
    let name = configuration.get("row");
    let row = rows::all().into_iter().find(|row| row.name == name);
    let row = row.ok_or_else(|| MeasurementFailure::Failed(format!("no row {name}")))?;
    measure::measure(row.kind, lab, implementation)
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let tables = [recordings(view), flows(view), playbacks(view), aims(view)];
    let filled = tables.into_iter().filter(|table| !table.rows.is_empty());
    filled.map(ReportItem::Table).collect()
}

/// The measured rows of a kind, with the results of each implementation.
fn measured_by_all(
    view: &View,
    is_it: fn(Kind) -> bool,
) -> impl Iterator<Item = (Row, &ConfigurationResult)> {
    let rows = rows::all().into_iter().filter(move |row| is_it(row.kind));
    rows.flat_map(|row| {
        let all = view.configurations.iter();
        all.filter_map(move |result| {
            let is_of_row = result.get("row") == row.name;
            is_of_row.then(|| (row.clone(), result))
        })
    })
}

/// The same of Pteros alone.
fn measured(
    view: &View,
    is_it: fn(Kind) -> bool,
) -> impl Iterator<Item = (Row, &ConfigurationResult)> {
    measured_by_all(view, is_it).filter(|(_, result)| result.implementation == PTEROS)
}

fn median(result: &ConfigurationResult, metric: Metric) -> f64 {
    let values = result.metric_values(metric.name);
    values.map_or(f64::NAN, |values| values.median())
}

/// The row's name and its figures, or why there are none.
fn line(
    row: &Row,
    result: &ConfigurationResult,
    columns: usize,
    figures: Vec<TableEntry>,
) -> Vec<TableEntry> {
    let mut line = vec![TableEntry::plain(row.name.clone())];
    match &result.failure {
        Some((_, why)) => {
            let why = format!("{}: {why}", result.implementation);
            line.push(TableEntry::with_tone(why, Tone::Faint));
        }
        None => line.extend(figures),
    }
    line.resize(columns, TableEntry::default());
    line
}

fn recordings(view: &View) -> Table {
    let mut columns = vec!["row", "recorder", "MB/s", "messages/s", "published/s"];
    columns.extend(COUNTS.map(|metric| metric.name));
    columns.extend([CPU_PER_GB.name, CPU_MESSAGE.name, PSS_PEAK.name, "rosbag2"]);
    let row = |(row, result): (Row, &ConfigurationResult)| {
        let shown = |metric| TableEntry::plain(digits(median(result, metric)));
        let mut figures = vec![TableEntry::plain(result.implementation.clone())];
        figures.extend([MB_PER_S, MESSAGES_PER_S, RATE].map(shown));
        for metric in COUNTS {
            let Some(values) = result.metric_values(metric.name) else {
                // It does not say.
                figures.push(TableEntry::plain("?"));
                continue;
            };
            // Sums over the repeats: medians would not add up.
            let sum: f64 = values.repeats.iter().sum();
            let is_loss = metric.name.starts_with("lost") && sum > 0.0;
            let tone = if is_loss { Tone::Bad } else { Tone::Plain };
            figures.push(TableEntry::with_tone(format!("{sum:.0}"), tone));
        }
        figures.extend([CPU_PER_GB, CPU_MESSAGE, PSS_PEAK].map(shown));
        let published = view.published(&result.case);
        let published = published.first().map(|one| TableEntry {
            text: one.value.to_owned(),
            hint: one.source.to_owned(),
            tone: Tone::Faint,
        });
        figures.push(published.unwrap_or_default());
        line(&row, result, columns.len(), figures)
    };
    let rows = measured_by_all(view, |kind| matches!(kind, Kind::Record { .. })).map(row);
    Table {
        title: "Recording: a publisher and a recorder, a process each".to_owned(),
        rows: rows.collect(),
        columns: columns.iter().map(|&column| column.to_owned()).collect(),
        note: "Counts are sums over the repeats. Rates are of written payload, until the file is synced. \
               CPU time and memory are the recorder's; PSS has its share of the chunk pool. \
               pteros-udp and rosbag2/… receive from the same publishers over UDP. rosbag2 does not \
               say what it lost before its cache (?), and does not sync. \
               Last column: published, on another machine (ros2/rosbag2 issue 1787)."
            .to_owned(),
    }
}

fn flows(view: &View) -> Table {
    let columns = [
        "row",
        "publish p95 alone",
        "beside a recorder",
        "ratio",
        "delivery p95 alone",
        "beside a recorder",
        "ratio",
    ];
    let row = |(row, result): (Row, &ConfigurationResult)| {
        let mut figures = Vec::new();
        for [alone, beside] in BESIDE {
            let (alone, beside) = (median(result, alone), median(result, beside));
            figures.extend([alone, beside, beside / alone].map(|f| TableEntry::plain(digits(f))));
        }
        line(&row, result, columns.len(), figures)
    };
    let rows = measured(view, |kind| matches!(kind, Kind::Beside { .. })).map(row);
    Table {
        title: "A publisher and a subscription beside a recorder: us".to_owned(),
        rows: rows.collect(),
        columns: columns.map(str::to_owned).into(),
        note: "publish: duration of the call; delivery: from the call to the other process's callback."
            .to_owned(),
    }
}

/// Figures without and with a recorder.
const BESIDE: [[Metric; 2]; 2] = [
    [PUBLISH_ALONE, PUBLISH_BESIDE],
    [DELIVERY_ALONE, DELIVERY_BESIDE],
];

fn playbacks(view: &View) -> Table {
    let columns = [
        "row",
        "p50",
        "p99",
        "max",
        "timer p50",
        "timer p99",
        "timer max",
    ];
    let row = |(row, result): (Row, &ConfigurationResult)| {
        let shown = |metric| TableEntry::plain(digits(median(result, metric)));
        let figures = SPACING.into_iter().chain(TIMER).map(shown);
        line(&row, result, columns.len(), figures.collect())
    };
    let rows = measured(view, |kind| matches!(kind, Kind::Play { .. })).map(row);
    Table {
        title: "Playback: error of the space between two messages, us".to_owned(),
        rows: rows.collect(),
        columns: columns.map(str::to_owned).into(),
        note: "timer: a loop of bare sleeps in the same run, half before and half after."
            .to_owned(),
    }
}

fn aims(view: &View) -> Table {
    let mut lines: Vec<(String, String, bool)> = Vec::new();
    let mut peak: Option<f64> = None;
    for (row, result) in measured(view, |_| true) {
        if result.failure.is_some() {
            continue;
        }
        let mut add = |what: &str, value: String, met: bool| {
            lines.push((format!("{}: {what}", row.name), value, met));
        };
        match row.kind {
            Kind::Record { load, .. } => {
                let lost = result.delivery.unwrap_or_default().lost();
                let pss = median(result, PSS_PEAK);
                peak = Some(peak.map_or(pss, |peak| peak.max(pss)));
                if load == rows::IMAGES {
                    let value = median(result, MB_PER_S);
                    let text = format!("{} MB/s, {lost} lost", digits(value));
                    let met = value >= MB_PER_S_MIN && lost == 0;
                    add("1000 MB/s without loss", text, met);
                }
                if load == rows::MANY_SMALL {
                    let value = median(result, MESSAGES_PER_S);
                    let text = format!("{} messages/s, {lost} lost", digits(value));
                    let met = value >= MESSAGES_PER_S_MIN && lost == 0;
                    add("300 000 messages/s without loss", text, met);
                }
            }
            Kind::Beside { .. } => {
                for ([alone, beside], what) in BESIDE.into_iter().zip(["publish", "delivery"]) {
                    let ratio = median(result, beside) / median(result, alone);
                    let what = format!("p95 of {what} at most {BESIDE_MAX} times that alone");
                    add(&what, digits(ratio), ratio <= BESIDE_MAX);
                }
            }
            Kind::Play { .. } => {
                let value = median(result, SPACING[1]);
                let text = format!("{} us", digits(value));
                add("p99 at most 200 us", text, value <= SPACING_US_MAX);
            }
        }
    }
    if let Some(peak) = peak {
        let text = format!("{} MB", digits(peak));
        let what = "recorder's memory at most 200 MB in every row".to_owned();
        lines.push((what, text, peak <= PSS_MB_MAX));
    }
    targets(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::MetricValues;

    fn result(row: &str, values: &[(Metric, &[f64])]) -> ConfigurationResult {
        result_of(PTEROS, row, values)
    }

    fn result_of(
        implementation: &str,
        row: &str,
        values: &[(Metric, &[f64])],
    ) -> ConfigurationResult {
        let metrics = values.iter().map(|(metric, repeats)| {
            let values = MetricValues {
                repeats: repeats.to_vec(),
                pooled: None,
            };
            (metric.name.to_owned(), values)
        });
        ConfigurationResult {
            case: vec![("row".to_owned(), row.to_owned())],
            implementation: implementation.to_owned(),
            metrics: metrics.collect(),
            delivery: None,
            path: None,
            notes: Vec::new(),
            failure: None,
            other_load: 0.0,
        }
    }

    fn tables(configurations: Vec<ConfigurationResult>) -> Vec<Vec<Vec<String>>> {
        let view = View {
            experiment: &EXPERIMENT,
            extent: Extent::Quick,
            configurations,
        };
        let items = report_items(&view)
            .into_iter()
            .filter_map(|item| match item {
                ReportItem::Table(table) => Some(table.rows),
                ReportItem::Figure(_) => None,
            });
        let texts = |row: Vec<TableEntry>| row.into_iter().map(|entry| entry.text).collect();
        items
            .map(|rows| rows.into_iter().map(texts).collect())
            .collect()
    }

    #[test]
    fn counts_are_sums_and_published_figures_stand_beside() {
        let tables = tables(vec![result(
            "record-1MB-1000Hz-none-tmpfs",
            &[
                (MB_PER_S, &[900.0, 1100.0, 1000.0]),
                (PUBLISHED, &[10.0, 10.0, 10.0]),
                (WRITTEN, &[10.0, 9.0, 10.0]),
                (BUFFER, &[0.0, 1.0, 0.0]),
                (PSS_PEAK, &[210.0]),
            ],
        )]);
        let [recordings, aims] = tables.as_slice() else {
            panic!("{tables:?}");
        };
        assert_eq!(recordings[0][1..3], [PTEROS, "1000"]);
        assert_eq!(recordings[0][5..12], ["30", "?", "29", "?", "?", "1", "?"]);
        assert_eq!(
            recordings[0].last().map(String::as_str),
            Some("110-120 MB/s")
        );
        assert_eq!(aims[0][2], "met");
        assert_eq!(aims[1][1..], ["210.0 MB", "not met"]);
    }

    #[test]
    fn other_recorders_stand_beside_ours_and_have_no_aim() {
        let row = "record-64B-300kHz-none-tmpfs";
        let tables = tables(vec![
            result(row, &[(MESSAGES_PER_S, &[300_000.0]), (PSS_PEAK, &[9.0])]),
            result_of(RECORDERS[2], row, &[(MESSAGES_PER_S, &[400_000.0])]),
        ]);
        let [recordings, aims] = tables.as_slice() else {
            panic!("{tables:?}");
        };
        let names: Vec<&str> = recordings.iter().map(|row| row[1].as_str()).collect();
        assert_eq!(names, [PTEROS, RECORDERS[2]]);
        assert_eq!(aims.len(), 2, "{aims:?}");
        let scope = Scope {
            extent: Extent::Full,
            implementations: vec![PTEROS, RECORDERS[2]],
        };
        let all = configurations(&scope);
        let others = all.iter().filter(|c| c.implementation != PTEROS);
        assert_eq!(others.count(), 7);
    }

    #[test]
    fn a_flow_is_compared_with_itself_alone_and_a_playback_with_a_timer() {
        let tables = tables(vec![
            result(
                "beside-64B-1kHz",
                &[
                    (PUBLISH_ALONE, &[2.0]),
                    (PUBLISH_BESIDE, &[3.0]),
                    (DELIVERY_ALONE, &[10.0]),
                    (DELIVERY_BESIDE, &[10.5]),
                ],
            ),
            result("play-1000Hz", &[(SPACING[1], &[90.0]), (TIMER[1], &[80.0])]),
        ]);
        let [flows, playbacks, aims] = tables.as_slice() else {
            panic!("{tables:?}");
        };
        assert_eq!(flows[0][1..4], ["2.00", "3.00", "1.50"]);
        assert_eq!(playbacks[0][2], "90.0");
        let met: Vec<&str> = aims.iter().map(|row| row[2].as_str()).collect();
        assert_eq!(met, ["not met", "met", "met"]);
    }

    #[test]
    fn a_quick_run_takes_less_than_ten_minutes() {
        let scope = Scope {
            extent: Extent::Quick,
            implementations: vec![PTEROS],
        };
        let seconds: f64 = configurations(&scope).iter().map(|c| c.seconds).sum();
        assert!(
            seconds * Extent::Quick.repeats() as f64 <= 600.0,
            "{seconds}"
        );
    }
}
