//! Performance targets of docs/measurements/host.md as data, and their evaluation
//! against a run.

use super::rows::{Kind, Regime, Row, copied_twin};
use crate::results::View;
use crate::testbed::implementation::PTEROS;

/// Reference that a Pteros value is divided by.
pub enum Reference {
    /// The best of these implementations, in this row or in the same row with
    /// copies.
    Best(&'static [&'static str]),
    /// The Pteros value of another row, by name.
    Own(&'static str),
    /// No reference: the value itself counts.
    Itself,
}

#[derive(Clone, Copy)]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

pub struct PerformanceTarget {
    /// Row of the table in docs/measurements/host.md.
    pub id: &'static str,
    applies: fn(&Row) -> bool,
    pub figure: &'static str,
    pub against: Reference,
    pub bound: Bound,
}

/// Evaluation of a target in one row.
pub struct TargetResult {
    pub ratio: f64,
    pub met: bool,
    pub text: String,
}

const CYCLONE: Reference = Reference::Best(&["cyclone", "cyclone-tuned"]);
const FAST: Reference = Reference::Best(&["fastdds", "fastdds-sharing"]);
const FAST_DEFAULT: Reference = Reference::Best(&["fastdds"]);
const ICEORYX: Reference = Reference::Best(&["iceoryx2"]);
const ZENOH: Reference = Reference::Best(&["zenoh", "zenoh-low"]);

const fn target(
    id: &'static str,
    applies: fn(&Row) -> bool,
    figure: &'static str,
    against: Reference,
    bound: Bound,
) -> PerformanceTarget {
    PerformanceTarget {
        id,
        applies,
        figure,
        against,
        bound,
    }
}

use Bound::{AtLeast, AtMost};

/// Every target, in the order of the table.
#[rustfmt::skip]
pub const TARGETS: &[PerformanceTarget] = &[
    target("1", |r| matches!(r.kind, Kind::Intra { remote_subscribers: 0, .. }), "p50", FAST, AtMost(0.5)),
    target("1b", |r| matches!(r.kind, Kind::Intra { remote_subscribers: 1, .. }), "p50", Reference::Own("intra-64B"), AtMost(1.3)),
    target("2a", |r| is_inter(r, 64, Regime::Saturated), "p50", ICEORYX, AtMost(1.5)),
    target("2a", |r| is_inter(r, 64, Regime::Saturated), "p50", CYCLONE, AtMost(0.1)),
    target("2a", |r| is_inter(r, 64, Regime::Saturated), "p50", FAST, AtMost(0.1)),
    target("2b", |r| is_inter(r, 64, Regime::Blocked), "p50", CYCLONE, AtMost(0.5)),
    target("2b", |r| is_inter(r, 64, Regime::Blocked), "p50", FAST, AtMost(0.4)),
    target("2b", |r| is_inter(r, 64, Regime::Blocked), "p50", ICEORYX, AtMost(1.0)),
    target("2c", |r| is_inter(r, 64, Regime::Idle), "p50", CYCLONE, AtMost(0.7)),
    target("2c", |r| is_inter(r, 64, Regime::Idle), "p50", FAST, AtMost(0.6)),
    target("2c", |r| is_inter(r, 64, Regime::Idle), "p50", ZENOH, AtMost(0.6)),
    target("2d", |r| r.name == "inter-1MB-blocked-loaned", "p50", CYCLONE, AtMost(0.1)),
    target("2d", |r| r.name == "inter-1MB-blocked-loaned", "p50", FAST_DEFAULT, AtMost(0.1)),
    target("2d", |r| r.name == "inter-1MB-blocked-loaned", "p50", ICEORYX, AtMost(1.2)),
    target("2e", |r| r.name == "inter-4MB-blocked-loaned", "p50", CYCLONE, AtMost(0.05)),
    target("2e", |r| r.name == "inter-4MB-blocked-loaned", "p50", FAST_DEFAULT, AtMost(0.05)),
    target("2e", |r| r.name == "inter-4MB-blocked", "p50", CYCLONE, AtMost(0.35)),
    target("2e", |r| r.name == "inter-4MB-blocked", "p50", FAST_DEFAULT, AtMost(0.35)),
    target("4b", |r| r.name.starts_with("goodput-4MB-"), "MB/s", FAST, AtLeast(5.0)),
    target("4b", |r| r.name == "goodput-4MB-5subs", "MB/s", Reference::Own("goodput-4MB-1sub"), AtLeast(0.8)),
    target("4b", |r| r.name == "goodput-4MB-5subs-loaned", "MB/s", Reference::Own("goodput-4MB-1sub-loaned"), AtLeast(0.8)),
    target("5", |r| matches!(r.kind, Kind::Cpu { .. }), "cpu ms/s", CYCLONE, AtMost(0.5)),
    target("5", |r| matches!(r.kind, Kind::Cpu { .. }), "cpu ms/s", FAST, AtMost(0.4)),
    target("5", |r| matches!(r.kind, Kind::Cpu { .. }), "cpu ms/s", ZENOH, AtMost(0.25)),
    target("5b", |r| r.name == "nodes-1", "cpu ms/s", CYCLONE, AtMost(0.5)),
    target("6", |r| r.name == "nodes-1", "over bare kB", CYCLONE, AtMost(1.0)),
    target("6", |r| r.name == "nodes-1", "over bare kB", ZENOH, AtMost(0.15)),
    target("6b", |r| r.name == "nodes-20", "PSS kB", CYCLONE, AtMost(0.7)),
    target("6b", |r| r.name == "nodes-20-composed", "PSS kB", Reference::Own("nodes-20"), AtMost(0.15)),
    target("6c", |r| matches!(r.kind, Kind::Growth { .. }), "kB/endpoint", CYCLONE, AtMost(0.2)),
    target("6c", |r| matches!(r.kind, Kind::Growth { .. }), "kB/endpoint", FAST, AtMost(0.2)),
    target("7", |r| matches!(r.kind, Kind::Discovery { .. }), "ms", CYCLONE, AtMost(0.3)),
    target("7b", |r| r.name == "discovery-200", "kB", CYCLONE, AtMost(0.1)),
    target("7b", |r| r.name == "discovery-200", "kB", FAST, AtMost(0.1)),
    target("7b", |r| r.name == "discovery-200", "kB", Reference::Own("discovery-50"), AtMost(5.0)),
    target("9", |r| matches!(r.kind, Kind::FanOut { subscribers: 5, .. }), "spread", Reference::Itself, AtMost(0.5)),
    target("9", |r| r.name == "fanout-4MB-5subs", "slowest", Reference::Own("fanout-4MB-1subs"), AtMost(2.0)),
    target("12", |r| r.name == "nodes-1", "threads", Reference::Itself, AtMost(2.0)),
    target("12", |r| r.name == "nodes-20-composed", "threads", Reference::Itself, AtMost(3.0)),
];

/// The unpinned row with copied messages of that size and regime.
fn is_inter(row: &Row, bytes: u64, regime: Regime) -> bool {
    matches!(row.kind, Kind::RoundTrip { size, regime: is, loan: false, .. } if size.bytes == bytes && is == regime)
}

impl PerformanceTarget {
    pub fn applies(&self, row: &Row) -> bool {
        (self.applies)(row)
    }

    /// Whether the target is met. `None` if a value that it compares is missing.
    pub fn evaluate(&self, row: &Row, view: &View) -> Option<TargetResult> {
        let ours = view.value(PTEROS, &[("row", &row.name)], self.figure)?;
        let (base, name) = self.base(row, view)?;
        let ratio = ours / base;
        let (met, sign, bound) = match self.bound {
            AtMost(bound) => (ratio <= bound, "≤", bound),
            AtLeast(bound) => (ratio >= bound, "≥", bound),
        };
        if !ratio.is_finite() {
            return None;
        }
        let text = format!(
            "{} {}: {} {sign} {bound} {name}",
            self.id, row.name, self.figure
        );
        Some(TargetResult { ratio, met, text })
    }

    fn base(&self, row: &Row, view: &View) -> Option<(f64, String)> {
        match &self.against {
            Reference::Itself => Some((1.0, "itself".into())),
            Reference::Own(other) => {
                let own = view.value(PTEROS, &[("row", other)], self.figure)?;
                Some((own, format!("× our {other}")))
            }
            Reference::Best(names) => {
                let rows = [Some(row.name.clone()), copied_twin(&row.name)];
                let found = rows.iter().flatten().flat_map(|row| {
                    let of = |name: &&'static str| {
                        Some((view.value(name, &[("row", row)], self.figure)?, *name))
                    };
                    names.iter().filter_map(of).collect::<Vec<_>>()
                });
                let order = |a: &(f64, &str), b: &(f64, &str)| a.0.total_cmp(&b.0);
                let best = match self.bound {
                    AtMost(_) => found.min_by(order),
                    AtLeast(_) => found.max_by(order),
                };
                best.map(|(figure, name)| (figure, format!("× {name}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows;
    use super::*;

    #[test]
    fn every_target_applies_to_a_row_and_names_existing_rows() {
        let rows = rows::all();
        for target in TARGETS {
            assert!(rows.iter().any(|row| target.applies(row)), "{}", target.id);
            if let Reference::Own(name) = target.against {
                assert!(rows.iter().any(|row| row.name == name), "{name}");
            }
        }
    }

    #[test]
    fn a_target_is_evaluated_against_the_best_row_of_a_peer() {
        let row = rows::all()
            .into_iter()
            .find(|row| row.name == "inter-1MB-blocked-loaned")
            .expect("the row");
        let evaluate = |results: &[(&str, &str, f64)]| {
            let view = super::super::tests::view(results);
            let targets = TARGETS.iter().filter(|target| target.applies(&row));
            let evaluations = targets.filter_map(|target| target.evaluate(&row, &view));
            evaluations.map(|v| (v.ratio, v.met)).collect::<Vec<_>>()
        };
        let mut results = vec![
            ("inter-1MB-blocked-loaned", PTEROS, 50.0),
            ("inter-1MB-blocked", "cyclone", 900.0),
            ("inter-1MB-blocked", "cyclone-tuned", 400.0),
        ];
        assert_eq!(evaluate(&results), [(0.125, false)]);
        results.push(("inter-1MB-blocked-loaned", "cyclone", 500.0));
        assert_eq!(evaluate(&results), [(0.125, false)]);
        results.push(("inter-1MB-blocked-loaned", "iceoryx2", 50.0));
        assert_eq!(evaluate(&results), [(0.125, false), (1.0, true)]);
    }
}
