//! M16.3: latency by part between two processes (figs 11, 12): conversion at the
//! publisher, conversion at the subscription, middleware, and the rest.
//!
//! Only Pteros, with the stamps of `pteros::trace`; other stacks have none. The
//! stamps cost some tenths of a microsecond.

use std::fs;

use crate::testbed::MeasurementFailure;
use pteros::trace::{Hop, Layer, Trace};

use super::{configuration, flow, sizes};
use crate::experiment::{Experiment, Paper, Scope};
use crate::flow;
use crate::lab::Lab;
use crate::measurement::{Better, Configuration, Measurement, Metric, Published, Statistic};
use crate::pipeline::TRACE;
use crate::report_items::{self, Figure, Plot, ReportItem, value_text};
use crate::results::{MetricValues, View};

pub const EXPERIMENT: Experiment = Experiment {
    id: "m16.3",
    paper: Paper::M16,
    title: "Latency by part",
    reproduces: "figs 11, 12",
    question: "How much of the latency is message conversion, and how much middleware?",
    metrics: &[TOTAL, SERIALIZATION, MIDDLEWARE, DESERIALIZATION, OTHERS],
    configurations,
    run,
    published: &[
        published(&[("qos", "reliable")], "fig. 11"),
        published(&[("qos", "best-effort")], "fig. 12"),
    ],
    report_items,
};

const fn published(
    case: &'static [(&'static str, &'static str)],
    source: &'static str,
) -> Published {
    Published {
        case,
        implementation: "OpenSplice",
        value: "two conversions and DDS are all of it and grow with the size; next to nothing is left for others",
        source,
    }
}

const TOTAL: Metric = metric("latency");
const SERIALIZATION: Metric = metric("publisher conversion");
/// History, headers, sockets or shared memory, the kernel, the remote protocol.
const MIDDLEWARE: Metric = metric("middleware");
const DESERIALIZATION: Metric = metric("subscriber conversion");
/// Calls into the runtime before and after, and the executor.
const OTHERS: Metric = metric("others");

const PARTS: [&Metric; 4] = [&SERIALIZATION, &MIDDLEWARE, &DESERIALIZATION, &OTHERS];

const fn metric(name: &'static str) -> Metric {
    Metric::new(name, "us", Better::Neither, Statistic::Median)
}

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let mut configurations = Vec::new();
    for policies in ["reliable", "best-effort"] {
        for size in sizes(scope.extent) {
            for implementation in scope.among(&["pteros", "pteros-udp"]) {
                let case = vec![("qos", policies.to_owned()), ("size", size.to_string())];
                configurations.push(configuration(
                    case,
                    implementation,
                    &flow(policies, size, scope.extent),
                ));
            }
        }
    }
    configurations
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let folder = lab.scratch_file(&format!("{}.trace", lab.fresh_topic()));
    let mut implementation = lab.implementation(configuration.implementation)?.clone();
    let place = folder.to_string_lossy().into_owned();
    implementation.environment.push((TRACE, place));
    let flow = flow(
        configuration.get("qos"),
        configuration.number("size"),
        lab.extent,
    );
    let flowed = flow::run(lab, &implementation, &flow)?;
    let trace = Trace::load(&folder).map_err(anyhow::Error::from)?;
    let is_flow = |hop: &Hop<'_>| hop.topic.ends_with("/flow");
    let hops: Vec<Hop<'_>> = trace.hops().filter(is_flow).collect();
    if hops.is_empty() {
        return Err(MeasurementFailure::Failed(
            "the trace contains no message".into(),
        ));
    }
    let of = |time: fn(&Hop<'_>) -> u64| hops.iter().map(|hop| time(hop) as f64 / 1e3).collect();
    let mut measured = flowed.measured(&flow);
    measured.samples = vec![
        (TOTAL.name, of(|hop| hop.latency())),
        (SERIALIZATION.name, of(|hop| hop.serializing)),
        (MIDDLEWARE.name, of(middleware)),
        (DESERIALIZATION.name, of(|hop| hop.decoding)),
        (OTHERS.name, of(others)),
    ];
    fs::remove_dir_all(&folder).map_err(anyhow::Error::from)?;
    Ok(measured)
}

fn middleware(hop: &Hop<'_>) -> u64 {
    let all = [Layer::PublisherRmw, Layer::Wire, Layer::SubscriberRmw];
    let all: u64 = all.iter().map(|layer| hop.layer(*layer)).sum();
    all.saturating_sub(hop.serializing)
}

fn others(hop: &Hop<'_>) -> u64 {
    let known = hop.serializing + hop.decoding + middleware(hop);
    hop.latency().saturating_sub(known)
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let title = "parts of the latency (us), medians";
    let mut all = vec![
        ReportItem::Table(report_items::comparison(view, &TOTAL)),
        ReportItem::Table(report_items::parts(view, title, &PARTS)),
    ];
    for policies in view.values("qos") {
        for implementation in view.implementations() {
            let of = view
                .configurations
                .iter()
                .filter(|c| c.implementation == implementation);
            let bars = of.filter(|c| c.get("qos") == policies).filter_map(|c| {
                let part =
                    |metric: &&Metric| c.metric_values(metric.name).map(MetricValues::median);
                let parts: Vec<f64> = PARTS.iter().map(part).collect::<Option<_>>()?;
                let sum = parts.iter().sum::<f64>().max(1e-9);
                let percent = parts.iter().map(|part| part / sum * 100.0).collect();
                Some((value_text("size", c.get("size")), percent))
            });
            let place = if policies == "reliable" { 11 } else { 12 };
            all.push(ReportItem::Figure(Figure {
                title: format!("{implementation}, {policies}: parts of the latency (fig. {place})"),
                x: "size".into(),
                y: "% of the parts' medians".into(),
                plot: Plot::Stack {
                    layers: PARTS.map(|metric| metric.name.to_owned()).into(),
                    bars: bars.collect(),
                },
            }));
        }
    }
    all
}
