//! K21.4: RELIABLE against BEST_EFFORT (fig. 7).

use super::{IMPLEMENTATIONS, LATENCY, PipelineParameters, configuration, run};
use crate::experiment::{Experiment, Paper, Scope};
use crate::measurement::{Configuration, Published};
use crate::report_items::{self, ReportItem};
use crate::results::View;

pub const EXPERIMENT: Experiment = Experiment {
    id: "k21.4",
    paper: Paper::K21,
    title: "A pipeline, reliable against best effort",
    reproduces: "fig. 7",
    question: "What does reliability cost?",
    metrics: &[LATENCY],
    configurations,
    run,
    published: &[Published {
        case: &[("qos", "reliable")],
        implementation: "all",
        value: "up to +15 %",
        source: "fig. 7",
    }],
    report_items,
};

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let extent = scope.extent;
    let few: &[u64] = &[128, 100_000];
    let all: &[u64] = &[128, 1_000, 10_000, 100_000, 500_000];
    let sizes = extent.choose(&few[..1], few, all);
    let rates: &[u64] = extent.choose(&[100], &[80], &[1, 10, 50, 100]);
    let mut configurations = Vec::new();
    for size in sizes {
        for rate in rates {
            for qos in ["best-effort", "reliable"] {
                for implementation in scope.among(&IMPLEMENTATIONS) {
                    let parameters = PipelineParameters {
                        nodes: 3,
                        size: *size,
                        rate: *rate,
                        qos,
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
    for rate in view.values("rate") {
        let title = format!("{rate} Hz: 95th percentile by size (fig. 7)");
        all.push(report_items::lines_by(
            view,
            title,
            "size",
            view.metric(),
            |c| {
                let is_it = c.is(&[("rate", rate)]);
                is_it.then(|| format!("{} {}", c.implementation, c.get("qos")))
            },
        ));
    }
    all
}
