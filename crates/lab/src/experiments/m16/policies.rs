//! M16.4: what a choice costs between two processes: the middleware (fig. 13),
//! reliability (fig. 14), the depth of the history (fig. 15), the size of fragments
//! (fig. 16).
//!
//! Fragments are asked of UDP: ours through shared memory has none.

use pteros_testbed::{Contestant, Failure};

use super::{cell, flow};
use crate::exhibit::{self, Exhibit};
use crate::experiment::{Cell, Experiment, LATENCY, Measured, Metric, Paper, Published, Scope};
use crate::flow;
use crate::lab::Lab;
use crate::results::View;

/// See the module.
pub const EXPERIMENT: Experiment = Experiment {
    id: "m16.4",
    paper: Paper::M16,
    title: "Middlewares, reliability, depth and fragment size",
    shows: "figs 13-16",
    asks: "What do the middleware, reliability, the depth of the history and the size of fragments cost?",
    metrics: &[METRIC],
    cells,
    run,
    published: &[
        Published {
            case: &[("study", "depth")],
            who: "OpenSplice",
            value: "no difference by depth",
            place: "fig. 15",
        },
        Published {
            case: &[("study", "fragment")],
            who: "OpenSplice",
            value: "larger fragments are faster",
            place: "fig. 16",
        },
    ],
    exhibits,
};

const METRIC: Metric = LATENCY;

const MIDDLEWARES: [&str; 5] = [
    "pteros",
    "pteros-udp",
    "cyclone",
    "cyclone-tuned",
    "fastdds",
];
/// Those whose fragments can be set from outside.
const FRAGMENTING: [&str; 2] = ["pteros", "cyclone"];
const DEPTHS: [&str; 3] = ["1-depth", "10-depth", "100-depth"];

fn cells(scope: &Scope) -> Vec<Cell> {
    let extent = scope.extent;
    let mut cells = Vec::new();
    let mut add = |study: &str, policies: &str, fragment: u64, size: u64, all: &[&'static str]| {
        for contestant in scope.among(all) {
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
            cells.push(cell(case, contestant, &flow(policies, size, extent)));
        }
    };
    // The paper's fig. 13 begins at 16 KB: below nothing differed.
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
    cells
}

fn run(lab: &Lab, cell: &Cell) -> Result<Measured, Failure> {
    let mut who = lab.contestant(cell.contestant)?.clone();
    let fragment = cell.number("fragment");
    if fragment > 0 {
        set_fragment(&mut who, fragment);
    }
    let flow = flow(cell.get("qos"), cell.number("size"), lab.extent);
    Ok(flow::run(lab, &who, &flow)?.measured(&flow))
}

/// Datagrams with that much of a message each, over UDP.
fn set_fragment(who: &mut Contestant, bytes: u64) {
    match who.stack {
        "cyclone" => {
            // The datagram has headers beside the fragment.
            let datagram = bytes + 256;
            let settings = format!(
                "<General><MaxMessageSize>{datagram}B</MaxMessageSize><FragmentSize>{bytes}B</FragmentSize></General>"
            );
            // It may have settings of where to be heard already.
            match who
                .environment
                .iter_mut()
                .find(|(name, _)| *name == "CYCLONEDDS_URI")
            {
                Some((_, uri)) => uri.push_str(&settings),
                None => who.environment.push(("CYCLONEDDS_URI", settings)),
            }
        }
        _ => who.environment.extend([
            ("PTEROS_SHARED_MEMORY", "off".to_owned()),
            ("PTEROS_LOCAL_FRAGMENT_BYTES", bytes.to_string()),
        ]),
    }
}

fn exhibits(view: &View) -> Vec<Exhibit> {
    let metric = view.metric();
    let study = |name: &'static str| move |c: &crate::results::CellResult| c.get("study") == name;
    let (middleware, depth, fragment) = (study("middleware"), study("depth"), study("fragment"));
    vec![
        Exhibit::Table(exhibit::comparison(view, metric)),
        exhibit::lines(
            view,
            "Middlewares, local, best-effort (fig. 13)",
            "size",
            metric,
            middleware,
        ),
        exhibit::lines_by(
            view,
            "Reliable and best-effort (fig. 14)",
            "size",
            metric,
            |c| {
                let is_it = ["middleware", "reliability"].contains(&c.get("study"));
                let is_plain = c.contestant == "pteros" || c.contestant == "cyclone";
                (is_it && is_plain).then(|| format!("{} {}", c.contestant, c.get("qos")))
            },
        ),
        exhibit::boxes(view, "Depth of the history (fig. 15)", "qos", metric, |c| {
            depth(c).then(|| {
                format!(
                    "{} {}",
                    c.contestant,
                    exhibit::value_text("size", c.get("size"))
                )
            })
        }),
        exhibit::lines_by(
            view,
            "Fragment size over UDP (fig. 16)",
            "fragment",
            metric,
            |c| {
                fragment(c).then(|| {
                    format!(
                        "{} {}",
                        c.contestant,
                        exhibit::value_text("size", c.get("size"))
                    )
                })
            },
        ),
    ]
}
