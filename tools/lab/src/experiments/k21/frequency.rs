//! K21.1: latency by publish frequency, three nodes, all payloads (fig. 4).

use super::{IMPLEMENTATIONS, LATENCY, PipelineParameters, configuration, run};
use crate::experiment::{Experiment, Paper, Scope};
use crate::measurement::Configuration;
use crate::report_items::{self, ReportItem, bytes_text};
use crate::results::View;

pub const EXPERIMENT: Experiment = Experiment {
    id: "k21.1",
    paper: Paper::K21,
    title: "Latency of a pipeline of three nodes by frequency",
    reproduces: "fig. 4",
    question: "Does latency depend on the publish frequency and on the size?",
    metrics: &[LATENCY],
    configurations,
    run,
    published: &[],
    report_items,
};

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let few: &[u64] = &[128, 500_000];
    let all: &[u64] = &[128, 1_000, 10_000, 100_000, 500_000];
    let sizes = scope.extent.choose(&few[..1], few, all);
    let tens: Vec<u64> = (1..=10).map(|tens| tens * 10).collect();
    let rates = scope.extent.choose(
        vec![100],
        vec![10, 100],
        [1].into_iter().chain(tens).collect(),
    );
    let mut configurations = Vec::new();
    for size in sizes {
        for rate in &rates {
            for implementation in scope.among(&IMPLEMENTATIONS) {
                let parameters = PipelineParameters {
                    nodes: 3,
                    size: *size,
                    rate: *rate,
                    qos: "best-effort",
                };
                configurations.push(configuration(scope.extent, parameters, implementation));
            }
        }
    }
    configurations
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let mut all = vec![ReportItem::Table(report_items::comparison(
        view,
        view.metric(),
    ))];
    for size in view.values("size") {
        let bytes = size.parse().map_or(size.to_owned(), bytes_text);
        let title = format!("{bytes}: 95th percentile by frequency (fig. 4)");
        let wanted = [("size", size)];
        all.push(report_items::lines(
            view,
            title,
            "rate",
            view.metric(),
            |c| c.is(&wanted),
        ));
    }
    all
}
