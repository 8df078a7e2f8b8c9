//! M16.4: cost of choices between two processes: middleware (fig. 13), reliability
//! (fig. 14), history depth (fig. 15), fragment size (fig. 16).
//!
//! Fragments are measured over UDP. Shared memory of Pteros has none.

use crate::testbed::{Implementation, MeasurementFailure};

use super::{configuration, flow};
use crate::experiment::{Experiment, Paper, Scope};
use crate::flow;
use crate::lab::Lab;
use crate::measurement::{Configuration, LATENCY, Measurement, Metric, Published};
use crate::report_items::{self, ReportItem};
use crate::results::View;

pub const EXPERIMENT: Experiment = Experiment {
    id: "m16.4",
    paper: Paper::M16,
    title: "Middlewares, reliability, depth and fragment size",
    reproduces: "figs 13-16",
    question: "What do the middleware, reliability, history depth and fragment size cost?",
    metrics: &[METRIC],
    configurations,
    run,
    published: &[
        Published {
            case: &[("study", "depth")],
            implementation: "OpenSplice",
            value: "no difference by depth",
            source: "fig. 15",
        },
        Published {
            case: &[("study", "fragment")],
            implementation: "OpenSplice",
            value: "larger fragments are faster",
            source: "fig. 16",
        },
    ],
    report_items,
};

const METRIC: Metric = LATENCY;

const MIDDLEWARES: [&str; 5] = [
    "pteros",
    "pteros-udp",
    "cyclone",
    "cyclone-tuned",
    "fastdds",
];
/// Implementations with a configurable fragment size.
const FRAGMENTING: [&str; 2] = ["pteros", "cyclone"];
const DEPTHS: [&str; 3] = ["1-depth", "10-depth", "100-depth"];

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let extent = scope.extent;
    let mut configurations = Vec::new();
    let mut add = |study: &str, policies: &str, fragment: u64, size: u64, all: &[&'static str]| {
        for implementation in scope.among(all) {
            let case = vec![
                ("study", study.to_owned()),
                ("qos", policies.to_owned()),
                (
                    "fragment",
                    match fragment {
                        0 => "default".to_owned(),
                        bytes => bytes.to_string(),
                    },
                ),
                ("size", size.to_string()),
            ];
            configurations.push(configuration(
                case,
                implementation,
                &flow(policies, size, extent),
            ));
        }
    };
    // Fig. 13 of the paper begins at 16 KB, because nothing differed below.
    let large: Vec<u64> = extent.choose(
        vec![16 << 10],
        vec![16 << 10, 1 << 20],
        (14..=22).map(|power| 1 << power).collect(),
    );
    for size in &large {
        add("middleware", "best-effort", 0, *size, &MIDDLEWARES);
    }
    for size in extent.choose(&large[..1], &large[1..], &large[..]) {
        add(
            "reliability",
            "reliable",
            0,
            *size,
            extent.choose(&["pteros"], &["pteros", "cyclone"], &MIDDLEWARES),
        );
    }
    for size in extent.choose(vec![256], vec![64 << 10], super::sizes(extent)) {
        for depth in extent.choose(&DEPTHS[..1], &["1-depth", "100-depth"], &DEPTHS[..]) {
            add(
                "depth",
                depth,
                0,
                size,
                &["pteros", "cyclone", "fastdds"][..extent.choose(1, 2, 3)],
            );
        }
    }
    let fragments: &[u64] = extent.choose(
        &[1 << 10],
        &[1 << 10, 60 << 10],
        &[
            1 << 10,
            2 << 10,
            4 << 10,
            8 << 10,
            16 << 10,
            32 << 10,
            60 << 10,
        ],
    );
    for size in extent.choose(
        vec![64 << 10],
        vec![1 << 20],
        vec![64 << 10, 256 << 10, 1 << 20, 4 << 20],
    ) {
        for fragment in fragments {
            add("fragment", "best-effort", *fragment, size, &FRAGMENTING);
        }
    }
    configurations
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let mut implementation = lab.implementation(configuration.implementation)?.clone();
    let fragment = configuration.number("fragment");
    if fragment > 0 {
        set_fragment(&mut implementation, fragment);
    }
    let flow = flow(
        configuration.get("qos"),
        configuration.number("size"),
        lab.extent,
    );
    Ok(flow::run(lab, &implementation, &flow)?.measured(&flow))
}

/// Sets the fragment size over UDP.
fn set_fragment(implementation: &mut Implementation, bytes: u64) {
    match implementation.stack {
        "cyclone" => {
            // The datagram also has headers.
            let datagram = bytes + 256;
            let settings = format!(
                "<General><MaxMessageSize>{datagram}B</MaxMessageSize><FragmentSize>{bytes}B</FragmentSize></General>"
            );
            // It may already have settings of its network interface.
            match implementation
                .environment
                .iter_mut()
                .find(|(name, _)| *name == "CYCLONEDDS_URI")
            {
                Some((_, uri)) => uri.push_str(&settings),
                None => implementation
                    .environment
                    .push(("CYCLONEDDS_URI", settings)),
            }
        }
        _ => implementation.environment.extend([
            ("PTEROS_SHARED_MEMORY", "off".to_owned()),
            ("PTEROS_LOCAL_FRAGMENT_BYTES", bytes.to_string()),
        ]),
    }
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let metric = view.metric();
    let study =
        |name: &'static str| move |c: &crate::results::ConfigurationResult| c.get("study") == name;
    let (middleware, depth, fragment) = (study("middleware"), study("depth"), study("fragment"));
    vec![
        ReportItem::Table(report_items::comparison(view, metric)),
        report_items::lines(
            view,
            "Middlewares, local, best-effort (fig. 13)",
            "size",
            metric,
            middleware,
        ),
        report_items::lines_by(
            view,
            "Reliable and best-effort (fig. 14)",
            "size",
            metric,
            |c| {
                let is_it = ["middleware", "reliability"].contains(&c.get("study"));
                let is_plain = c.implementation == "pteros" || c.implementation == "cyclone";
                (is_it && is_plain).then(|| format!("{} {}", c.implementation, c.get("qos")))
            },
        ),
        report_items::boxes(view, "Depth of the history (fig. 15)", "qos", metric, |c| {
            depth(c).then(|| {
                format!(
                    "{} {}",
                    c.implementation,
                    report_items::value_text("size", c.get("size"))
                )
            })
        }),
        report_items::lines_by(
            view,
            "Fragment size over UDP (fig. 16)",
            "fragment",
            metric,
            |c| {
                fragment(c).then(|| {
                    format!(
                        "{} {}",
                        c.implementation,
                        report_items::value_text("size", c.get("size"))
                    )
                })
            },
        ),
    ]
}
