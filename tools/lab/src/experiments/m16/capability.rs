//! M16.2: capabilities (table 4): by situation, policies and size, whether the
//! first messages are lost, and whether later ones are late, lost or refused.
//!
//! The publisher starts without waiting, after the subscription. So initial losses
//! are losses during discovery.

use std::time::Duration;

use crate::testbed::{EmulatedLink, MeasurementFailure};

use super::{IMPLEMENTATIONS, among, configuration, flow, sizes};
use crate::experiment::{Experiment, Paper, Scope};
use crate::flow::{self, Flow};
use crate::lab::Lab;
use crate::measurement::{Better, Configuration, LATENCY, Measurement, Metric, Published};
use crate::report_items::{ReportItem, Table, TableEntry, Tone, value_text};
use crate::results::{ConfigurationResult, View};

pub const EXPERIMENT: Experiment = Experiment {
    id: "m16.2",
    paper: Paper::M16,
    title: "Capabilities: initial losses, late, lost and refused messages",
    reproduces: "table 4",
    question: "Which sizes get through, by situation and policies, and is the first message among them?",
    metrics: &[REPORTED_LATENCY],
    configurations,
    run,
    published: PUBLISHED,
    report_items,
};

/// For information. M16.1 compares latency.
const REPORTED_LATENCY: Metric = Metric {
    better: Better::Neither,
    ..LATENCY
};

#[rustfmt::skip]
const PUBLISHED: &[Published] = &[
    row(&[("situation", "local"), ("qos", "reliable")], "Connext", "no initial loss; up to 64 KB, above an error"),
    row(&[("situation", "local"), ("qos", "best-effort")], "Connext", "no initial loss; data loss or late at the largest two sizes"),
    row(&[("situation", "local"), ("qos", "reliable")], "OpenSplice", "no initial loss; all sizes"),
    row(&[("situation", "local"), ("qos", "best-effort")], "OpenSplice", "no initial loss; data loss at the largest two sizes"),
    row(&[("situation", "local"), ("qos", "reliable")], "FastRTPS", "an error at every size"),
    row(&[("situation", "remote"), ("qos", "reliable")], "Connext", "no initial loss; up to 64 KB, above an error"),
    row(&[("situation", "remote"), ("qos", "best-effort")], "Connext", "no initial loss; late at the largest two sizes"),
    row(&[("situation", "remote"), ("qos", "reliable")], "OpenSplice", "no initial loss; all sizes"),
    row(&[("situation", "remote"), ("qos", "best-effort")], "OpenSplice", "no initial loss; late at the largest two sizes"),
    row(&[("situation", "remote"), ("qos", "reliable")], "FastRTPS", "an error at every size"),
    row(&[("situation", "intra-process")], "ROS 2", "no initial loss; all sizes"),
];

const fn row(
    case: &'static [(&'static str, &'static str)],
    implementation: &'static str,
    value: &'static str,
) -> Published {
    Published {
        case,
        implementation,
        value,
        source: "table 4",
    }
}

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let extent = scope.extent;
    let sizes = extent.choose(vec![256], vec![64 << 10, 4 << 20], sizes(extent));
    let mut configurations = Vec::new();
    for situation in SITUATIONS {
        for policies in ["reliable", "best-effort"] {
            for size in &sizes {
                for implementation in among(scope, &IMPLEMENTATIONS, policies) {
                    let case = vec![
                        ("situation", (*situation).to_owned()),
                        ("qos", policies.to_owned()),
                        ("size", size.to_string()),
                    ];
                    configurations.push(configuration(
                        case,
                        implementation,
                        &flow(policies, *size, extent),
                    ));
                }
            }
        }
    }
    configurations
}

const SITUATIONS: &[&str] = &["remote", "local", "intra-process"];

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let is_intra = configuration.get("situation") == "intra-process";
    let flow = Flow {
        is_intra,
        waits_for_match: is_intra,
        ..flow(
            configuration.get("qos"),
            configuration.number("size"),
            lab.extent,
        )
    };
    let implementation = lab.implementation(configuration.implementation)?;
    if configuration.get("situation") == "remote" {
        let (flowed, _) = flow::run_remote(
            lab,
            implementation,
            &flow,
            EmulatedLink::FAST_ETHERNET,
            Duration::ZERO,
            &|| Ok(0),
        )?;
        return Ok(flowed.measured(&flow));
    }
    let flowed = flow::run(lab, implementation, &flow)?;
    Ok(flowed.measured(&flow))
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let sizes = view.values("size");
    let mut columns = vec!["situation".to_owned(), "initial loss".into()];
    columns.extend(sizes.iter().map(|size| value_text("size", size)));
    columns.push("published".into());
    let mut rows = Vec::new();
    for situation in view.values("situation") {
        for policies in view.values("qos") {
            for implementation in view.implementations() {
                let of: Vec<&ConfigurationResult> = view
                    .configurations
                    .iter()
                    .filter(|c| c.implementation == implementation)
                    .filter(|c| c.is(&[("situation", situation), ("qos", policies)]))
                    .collect();
                let mut row = vec![TableEntry::plain(format!(
                    "{situation} {policies} {implementation}"
                ))];
                row.push(initial(&of));
                for size in &sizes {
                    row.push(mark(of.iter().find(|c| c.get("size") == *size)));
                }
                let published = of.first().filter(|_| implementation == "pteros");
                let published = published.map_or_else(Vec::new, |c| view.published(&c.case));
                let texts = published
                    .iter()
                    .map(|p| format!("{}: {}", p.implementation, p.value));
                row.push(TableEntry::with_tone(
                    texts.collect::<Vec<_>>().join("; "),
                    Tone::Faint,
                ));
                rows.push(row);
            }
        }
    }
    vec![ReportItem::Table(Table {
        title: "What gets through (table 4)".into(),
        columns,
        rows,
        note: "✓ all in time; late: after the deadline of 100 ms; lost: of those after the first received one.".into(),
    })]
}

/// Whether the first messages were lost at any size.
fn initial(configurations: &[&ConfigurationResult]) -> TableEntry {
    let lost = configurations
        .iter()
        .filter_map(|c| c.delivery)
        .map(|d| d.initial_loss)
        .max();
    match lost {
        None => TableEntry::with_tone("–", Tone::Faint),
        Some(0) => TableEntry::with_tone("none", Tone::Good),
        Some(most) => TableEntry::with_tone(format!("up to {most}"), Tone::Bad),
    }
}

fn mark(configuration: Option<&&ConfigurationResult>) -> TableEntry {
    let Some(configuration) = configuration else {
        return TableEntry::with_tone("–", Tone::Faint);
    };
    let Some(delivery) = configuration.delivery else {
        let why = configuration.failure.as_ref().map_or("", |f| f.1.as_str());
        return TableEntry {
            text: "✗".into(),
            hint: why.to_owned(),
            tone: Tone::Bad,
        };
    };
    let later = delivery.lost().saturating_sub(delivery.initial_loss);
    match (later, delivery.late, delivery.received) {
        (_, _, 0) => TableEntry::with_tone("nothing received", Tone::Bad),
        (0, 0, _) => TableEntry::with_tone("✓", Tone::Good),
        (0, late, _) => TableEntry::with_tone(format!("{late} late"), Tone::Bad),
        (lost, ..) => {
            TableEntry::with_tone(format!("{lost} of {} lost", delivery.expected), Tone::Bad)
        }
    }
}
