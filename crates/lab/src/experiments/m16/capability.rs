//! M16.2: what works at all (table 4): per situation, policies and size whether the
//! first messages are lost, and whether later ones are late, lost or refused.
//!
//! The publisher begins without waiting for anybody, a subscription that was started before it is
//! already there: so what is lost at the beginning is lost to discovery.

use std::time::Duration;

use pteros_testbed::Failure;

use super::{CONTESTANTS, among, cell, flow, sizes};
use crate::exhibit::{Entry, Exhibit, Table, Tone, value_text};
use crate::experiment::{
    Better, Cell, Experiment, LATENCY, Measured, Metric, Paper, Published, Scope,
};
use crate::flow::{self, Flow};
use crate::lab::Lab;
use crate::results::{CellResult, View};

/// See the module.
pub const EXPERIMENT: Experiment = Experiment {
    id: "m16.2",
    paper: Paper::M16,
    title: "What works: initial losses, late, lost and refused messages",
    shows: "table 4",
    asks: "Which sizes get through, by situation and policies, and is the first message among them?",
    metrics: &[TOLD],
    cells,
    run,
    published: PUBLISHED,
    exhibits,
};

/// Whether it works is asked here, not how fast: that is M16.1.
const TOLD: Metric = Metric {
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
    who: &'static str,
    value: &'static str,
) -> Published {
    Published {
        case,
        who,
        value,
        place: "table 4",
    }
}

fn cells(scope: &Scope) -> Vec<Cell> {
    let extent = scope.extent;
    let sizes = extent.choose(vec![256], vec![64 << 10, 4 << 20], sizes(extent));
    let mut cells = Vec::new();
    for situation in SITUATIONS {
        for policies in ["reliable", "best-effort"] {
            for size in &sizes {
                for contestant in among(scope, &CONTESTANTS, policies) {
                    let case = vec![
                        ("situation", (*situation).to_owned()),
                        ("qos", policies.to_owned()),
                        ("size", size.to_string()),
                    ];
                    cells.push(cell(case, contestant, &flow(policies, *size, extent)));
                }
            }
        }
    }
    cells
}

const SITUATIONS: &[&str] = &["remote", "local", "intra-process"];

fn run(lab: &Lab, cell: &Cell) -> Result<Measured, Failure> {
    let is_intra = cell.get("situation") == "intra-process";
    let flow = Flow {
        is_intra,
        waits_for_match: is_intra,
        ..flow(cell.get("qos"), cell.number("size"), lab.extent)
    };
    let who = lab.contestant(cell.contestant)?;
    if cell.get("situation") == "remote" {
        let (flowed, _) = flow::run_remote(lab, who, &flow, Duration::ZERO, &|| Ok(0))?;
        return Ok(flowed.measured(&flow));
    }
    let flowed = flow::run(lab, who, &flow)?;
    Ok(flowed.measured(&flow))
}

fn exhibits(view: &View) -> Vec<Exhibit> {
    let sizes = view.values("size");
    let mut columns = vec!["situation".to_owned(), "initial loss".into()];
    columns.extend(sizes.iter().map(|size| value_text("size", size)));
    columns.push("published".into());
    let mut rows = Vec::new();
    for situation in view.values("situation") {
        for policies in view.values("qos") {
            for contestant in view.contestants() {
                let of: Vec<&CellResult> = view
                    .cells
                    .iter()
                    .filter(|c| c.contestant == contestant)
                    .filter(|c| c.is(&[("situation", situation), ("qos", policies)]))
                    .collect();
                let mut row = vec![Entry::plain(format!("{situation} {policies} {contestant}"))];
                row.push(initial(&of));
                for size in &sizes {
                    row.push(mark(of.iter().find(|c| c.get("size") == *size)));
                }
                let published = of.first().filter(|_| contestant == "pteros");
                let published = published.map_or_else(Vec::new, |c| view.published(&c.case));
                let texts = published.iter().map(|p| format!("{}: {}", p.who, p.value));
                row.push(Entry::toned(
                    texts.collect::<Vec<_>>().join("; "),
                    Tone::Faint,
                ));
                rows.push(row);
            }
        }
    }
    vec![Exhibit::Table(Table {
        title: "What gets through (table 4)".into(),
        columns,
        rows,
        note: "✓ all in time; late: after the deadline of 100 ms; lost: of those behind the first that came.".into(),
    })]
}

/// Whether the first messages were lost, at whatever size.
fn initial(cells: &[&CellResult]) -> Entry {
    let lost = cells
        .iter()
        .filter_map(|c| c.delivery)
        .map(|d| d.initial_loss)
        .max();
    match lost {
        None => Entry::toned("–", Tone::Faint),
        Some(0) => Entry::toned("none", Tone::Good),
        Some(most) => Entry::toned(format!("up to {most}"), Tone::Bad),
    }
}

fn mark(cell: Option<&&CellResult>) -> Entry {
    let Some(cell) = cell else {
        return Entry::toned("–", Tone::Faint);
    };
    let Some(delivery) = cell.delivery else {
        let why = cell.failure.as_ref().map_or("", |f| f.1.as_str());
        return Entry {
            text: "✗".into(),
            hint: why.to_owned(),
            tone: Tone::Bad,
        };
    };
    let later = delivery.lost().saturating_sub(delivery.initial_loss);
    match (later, delivery.late, delivery.received) {
        (_, _, 0) => Entry::toned("nothing came", Tone::Bad),
        (0, 0, _) => Entry::toned("✓", Tone::Good),
        (0, late, _) => Entry::toned(format!("{late} late"), Tone::Bad),
        (lost, ..) => Entry::toned(format!("{lost} of {} lost", delivery.expected), Tone::Bad),
    }
}
