//! K21.2: latency by the number of nodes (fig. 5).

use super::{IMPLEMENTATIONS, LATENCY, PipelineParameters, configuration, run};
use crate::experiment::{Experiment, Paper, Scope};
use crate::measurement::Configuration;
use crate::report_items::{self, ReportItem, bytes_text};
use crate::results::View;

pub const EXPERIMENT: Experiment = Experiment {
    id: "k21.2",
    paper: Paper::K21,
    title: "Latency of a pipeline by its number of nodes",
    reproduces: "fig. 5",
    question: "Does every node of a pipeline cost the same?",
    metrics: &[LATENCY],
    configurations,
    run,
    published: &[],
    report_items,
};

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let extent = scope.extent;
    let nodes = extent.choose(
        vec![5],
        vec![3, 11, 23],
        (1..=11).map(|n| 2 * n + 1).collect(),
    );
    let sizes: &[u64] = extent.choose(&[128], &[128], &[128, 500_000]);
    let rates: &[u64] = extent.choose(&[100], &[50], &[1, 10, 50, 100]);
    let mut configurations = Vec::new();
    for size in sizes {
        for rate in rates {
            for nodes in &nodes {
                for implementation in scope.among(&IMPLEMENTATIONS) {
                    let parameters = PipelineParameters {
                        nodes: *nodes,
                        size: *size,
                        rate: *rate,
                        qos: "best-effort",
                    };
                    configurations.push(configuration(extent, parameters, implementation));
                }
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
        for rate in view.values("rate") {
            let bytes = size.parse().map_or(size.to_owned(), bytes_text);
            let title = format!("{bytes} at {rate} Hz: 95th percentile by nodes (fig. 5)");
            let wanted = [("size", size), ("rate", rate)];
            all.push(report_items::lines(
                view,
                title,
                "nodes",
                view.metric(),
                |c| c.is(&wanted),
            ));
        }
    }
    all
}
