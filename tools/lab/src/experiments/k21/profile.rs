//! K21.3: latency by layer (fig. 6).
//!
//! Pteros is traced at the boundaries of its layers. Other stacks have no tracing,
//! so only their total is measured. The cost of tracing is measured in the same
//! turns: Pteros with and without it.

use super::{IMPLEMENTATIONS, LATENCY, PipelineParameters, configuration, pipeline};
use crate::experiment::{Experiment, Paper, Scope};
use crate::lab::Lab;
use crate::measurement::{Better, Configuration, Measurement, Metric, Statistic};
use crate::pipeline::LAYERS;
use crate::report_items::{self, Figure, Plot, ReportItem, Table, TableEntry, bytes_text};
use crate::results::{ConfigurationResult, MetricValues, View};
use crate::testbed::implementation::PTEROS;
use crate::testbed::{MeasurementFailure, implementation};

pub const EXPERIMENT: Experiment = Experiment {
    id: "k21.3",
    paper: Paper::K21,
    title: "Latency of a pipeline by layer",
    reproduces: "fig. 6",
    question: "What does each layer cost, and the wait between layers?",
    metrics: METRICS,
    configurations,
    run,
    published: &[],
    report_items,
};

const METRICS: &[Metric] = &[
    LATENCY,
    layer(LAYERS[0]),
    layer(LAYERS[1]),
    layer(LAYERS[2]),
    layer(LAYERS[3]),
    layer(LAYERS[4]),
    layer(LAYERS[5]),
    layer(LAYERS[6]),
];

const fn layer(name: &'static str) -> Metric {
    Metric::new(name, "us", Better::Neither, Statistic::Median)
}

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let sizes: &[u64] = scope
        .extent
        .choose(&[128], &[128, 500_000], &[128, 500_000]);
    let mut configurations = Vec::new();
    for size in sizes {
        let parameters = PipelineParameters {
            nodes: 3,
            size: *size,
            rate: 100,
            qos: "best-effort",
        };
        for stamps in [WITHOUT, WITH] {
            for implementation in scope.among(&IMPLEMENTATIONS) {
                if stamps == WITHOUT || implementation::stack_of(implementation) == PTEROS {
                    let mut configuration = configuration(scope.extent, parameters, implementation);
                    configuration.case.push(("stamps", stamps.to_owned()));
                    configurations.push(configuration);
                }
            }
        }
    }
    configurations
}

const WITHOUT: &str = "without stamps";
const WITH: &str = "with stamps";

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let implementation = lab.implementation(configuration.implementation)?;
    let pipeline = pipeline(lab.extent, configuration);
    match configuration.get("stamps") {
        WITH => pipeline.profile(lab, implementation),
        _ => pipeline.run(lab, implementation),
    }
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let parts: Vec<&'static Metric> = METRICS.iter().skip(1).collect();
    let title = "latency by layer (us), medians over messages of the sum over hops";
    let mut all = vec![
        ReportItem::Table(report_items::comparison(view, view.metric())),
        ReportItem::Table(report_items::parts(view, title, &parts)),
        ReportItem::Table(cost_of_stamps(view)),
    ];
    let mut layers: Vec<String> = LAYERS.iter().map(|part| (*part).to_owned()).collect();
    layers.push("total, without stamps".to_owned());
    for size in view.values("size") {
        let of_size = view
            .configurations
            .iter()
            .filter(|configuration| configuration.get("size") == size);
        let bars = of_size.filter_map(|configuration| {
            let median = |name: &str| {
                configuration
                    .metric_values(name)
                    .map_or(0.0, MetricValues::median)
            };
            let mut parts: Vec<f64> = LAYERS.iter().map(|name| median(name)).collect();
            let whole = configuration.metric_values(LATENCY.name)?.pooled?.p50;
            let is_stamped = parts.iter().any(|part| *part > 0.0);
            let is_shown_by_parts =
                implementation::stack_of(&configuration.implementation) == PTEROS;
            if is_shown_by_parts && !is_stamped {
                return None;
            }
            parts.push(if is_stamped { 0.0 } else { whole });
            Some((configuration.implementation.clone(), parts))
        });
        let bytes = size.parse().map_or(size.to_owned(), bytes_text);
        all.push(ReportItem::Figure(Figure {
            title: format!("{bytes} through three nodes: medians by layer (fig. 6)"),
            x: "implementation".to_owned(),
            y: "us".to_owned(),
            plot: Plot::Stack {
                layers: layers.clone(),
                bars: bars.collect(),
            },
        }));
    }
    all
}

/// Latency of Pteros with and without tracing, by size.
fn cost_of_stamps(view: &View) -> Table {
    let mut rows = Vec::new();
    for without in view
        .configurations
        .iter()
        .filter(|c| c.get("stamps") == WITHOUT)
    {
        let size = without.get("size");
        let with = view.configurations.iter().find(|c| {
            c.implementation == without.implementation && c.is(&[("stamps", WITH), ("size", size)])
        });
        let Some(with) = with else { continue };
        let p50 = |configuration: &ConfigurationResult| {
            Some(configuration.metric_values(LATENCY.name)?.pooled?.p50)
        };
        let of = |p50: Option<f64>| p50.map_or_else(|| "–".to_owned(), report_items::number);
        let (off, on) = (p50(without), p50(with));
        let ratio = off.zip(on).map(|(off, on)| on / off);
        let size = report_items::value_text("size", size);
        rows.push(vec![
            TableEntry::plain(format!("{size} {}", without.implementation)),
            TableEntry::plain(of(off)),
            TableEntry::plain(of(on)),
            TableEntry::plain(of(ratio)),
        ]);
    }
    Table {
        title: "cost of tracing: latency through three nodes (us), median of all samples".into(),
        columns: ["case", WITHOUT, WITH, "ratio"].map(str::to_owned).into(),
        rows,
        note: "Without stamps is the default of every program.".into(),
    }
}
