//! What the figures should be: the aims of docs/bench-host.md as data, and
//! whether a run met them.

use super::Results;
use super::rows::{Kind, Regime, Row, copied_twin};
use pteros_testbed::contestant::PTEROS;

/// What a figure of ours is divided by.
pub enum Against {
    /// The best of these contestants, in this row or its copied twin.
    Best(&'static [&'static str]),
    /// Our own figure in another row, by name.
    Own(&'static str),
    /// Nothing: the figure itself counts.
    Itself,
}

#[derive(Clone, Copy)]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

pub struct Aim {
    /// The row of the table in docs/bench-host.md.
    pub id: &'static str,
    applies: fn(&Row) -> bool,
    pub figure: &'static str,
    pub against: Against,
    pub bound: Bound,
}

/// What came of an aim in one row.
pub struct Verdict {
    pub ratio: f64,
    pub met: bool,
    pub text: String,
}

const CYCLONE: Against = Against::Best(&["cyclone", "cyclone-tuned"]);
const FAST: Against = Against::Best(&["fastdds", "fastdds-sharing"]);
const FAST_DEFAULT: Against = Against::Best(&["fastdds"]);
const ICEORYX: Against = Against::Best(&["iceoryx2"]);
const ZENOH: Against = Against::Best(&["zenoh", "zenoh-low"]);

const fn aim(
    id: &'static str,
    applies: fn(&Row) -> bool,
    figure: &'static str,
    against: Against,
    bound: Bound,
) -> Aim {
    Aim {
        id,
        applies,
        figure,
        against,
        bound,
    }
}

use Bound::{AtLeast, AtMost};

/// Every aim, in the order of the table.
#[rustfmt::skip]
pub const AIMS: &[Aim] = &[
    aim("1", |r| matches!(r.kind, Kind::Intra { outside: 0, .. }), "p50", FAST, AtMost(0.5)),
    aim("1b", |r| matches!(r.kind, Kind::Intra { outside: 1, .. }), "p50", Against::Own("intra-64B"), AtMost(1.3)),
    aim("2a", |r| is_inter(r, 64, Regime::Saturated), "p50", ICEORYX, AtMost(1.5)),
    aim("2a", |r| is_inter(r, 64, Regime::Saturated), "p50", CYCLONE, AtMost(0.1)),
    aim("2a", |r| is_inter(r, 64, Regime::Saturated), "p50", FAST, AtMost(0.1)),
    aim("2b", |r| is_inter(r, 64, Regime::Blocked), "p50", CYCLONE, AtMost(0.5)),
    aim("2b", |r| is_inter(r, 64, Regime::Blocked), "p50", FAST, AtMost(0.4)),
    aim("2b", |r| is_inter(r, 64, Regime::Blocked), "p50", ICEORYX, AtMost(1.0)),
    aim("2c", |r| is_inter(r, 64, Regime::Idle), "p50", CYCLONE, AtMost(0.7)),
    aim("2c", |r| is_inter(r, 64, Regime::Idle), "p50", FAST, AtMost(0.6)),
    aim("2c", |r| is_inter(r, 64, Regime::Idle), "p50", ZENOH, AtMost(0.6)),
    aim("2d", |r| r.name == "inter-1MB-blocked-loaned", "p50", CYCLONE, AtMost(0.1)),
    aim("2d", |r| r.name == "inter-1MB-blocked-loaned", "p50", FAST_DEFAULT, AtMost(0.1)),
    aim("2d", |r| r.name == "inter-1MB-blocked-loaned", "p50", ICEORYX, AtMost(1.2)),
    aim("2e", |r| r.name == "inter-4MB-blocked-loaned", "p50", CYCLONE, AtMost(0.05)),
    aim("2e", |r| r.name == "inter-4MB-blocked-loaned", "p50", FAST_DEFAULT, AtMost(0.05)),
    aim("2e", |r| r.name == "inter-4MB-blocked", "p50", CYCLONE, AtMost(0.35)),
    aim("2e", |r| r.name == "inter-4MB-blocked", "p50", FAST_DEFAULT, AtMost(0.35)),
    aim("4b", |r| r.name.starts_with("goodput-4MB-"), "MB/s", FAST, AtLeast(5.0)),
    aim("4b", |r| r.name == "goodput-4MB-5subs", "MB/s", Against::Own("goodput-4MB-1sub"), AtLeast(0.8)),
    aim("4b", |r| r.name == "goodput-4MB-5subs-loaned", "MB/s", Against::Own("goodput-4MB-1sub-loaned"), AtLeast(0.8)),
    aim("5", |r| matches!(r.kind, Kind::Cpu { .. }), "cpu ms/s", CYCLONE, AtMost(0.5)),
    aim("5", |r| matches!(r.kind, Kind::Cpu { .. }), "cpu ms/s", FAST, AtMost(0.4)),
    aim("5", |r| matches!(r.kind, Kind::Cpu { .. }), "cpu ms/s", ZENOH, AtMost(0.25)),
    aim("5b", |r| r.name == "nodes-1", "cpu ms/s", CYCLONE, AtMost(0.5)),
    aim("6", |r| r.name == "nodes-1", "over bare kB", CYCLONE, AtMost(1.0)),
    aim("6", |r| r.name == "nodes-1", "over bare kB", ZENOH, AtMost(0.15)),
    aim("6b", |r| r.name == "nodes-20", "PSS kB", CYCLONE, AtMost(0.7)),
    aim("6b", |r| r.name == "nodes-20-composed", "PSS kB", Against::Own("nodes-20"), AtMost(0.15)),
    aim("6c", |r| matches!(r.kind, Kind::Growth { .. }), "kB/endpoint", CYCLONE, AtMost(0.2)),
    aim("6c", |r| matches!(r.kind, Kind::Growth { .. }), "kB/endpoint", FAST, AtMost(0.2)),
    aim("7", |r| matches!(r.kind, Kind::Discovery { .. }), "ms", CYCLONE, AtMost(0.3)),
    aim("7b", |r| r.name == "discovery-200", "kB", CYCLONE, AtMost(0.1)),
    aim("7b", |r| r.name == "discovery-200", "kB", FAST, AtMost(0.1)),
    aim("7b", |r| r.name == "discovery-200", "kB", Against::Own("discovery-50"), AtMost(5.0)),
    aim("9", |r| matches!(r.kind, Kind::FanOut { subscribers: 5, .. }), "spread", Against::Itself, AtMost(0.5)),
    aim("9", |r| r.name == "fanout-4MB-5subs", "slowest", Against::Own("fanout-4MB-1subs"), AtMost(2.0)),
    aim("12", |r| r.name == "nodes-1", "threads", Against::Itself, AtMost(2.0)),
    aim("12", |r| r.name == "nodes-20-composed", "threads", Against::Itself, AtMost(3.0)),
];

/// The unpinned row with copied messages of that size and regime.
fn is_inter(row: &Row, bytes: usize, regime: Regime) -> bool {
    matches!(row.kind, Kind::RoundTrip { size, regime: is, loan: false, .. } if size.bytes == bytes && is == regime)
}

impl Aim {
    pub fn applies(&self, row: &Row) -> bool {
        (self.applies)(row)
    }

    /// Whether it is met, if everything that it compares was measured.
    pub fn judge(&self, row: &Row, results: &Results) -> Option<Verdict> {
        let ours = results.figure(&row.name, PTEROS, self.figure)?;
        let (base, name) = self.base(row, results)?;
        let ratio = ours / base;
        let (met, sign, bound) = match self.bound {
            AtMost(bound) => (ratio <= bound, "≤", bound),
            AtLeast(bound) => (ratio >= bound, "≥", bound),
        };
        if !ratio.is_finite() {
            return None;
        }
        let text = format!(
            "aim {:<3} {:<13} {sign} {bound:<5} {name:<26} {ratio:>8.2}  {}",
            self.id,
            self.figure,
            if met { "met" } else { "NOT MET" }
        );
        Some(Verdict { ratio, met, text })
    }

    fn base(&self, row: &Row, results: &Results) -> Option<(f64, String)> {
        match &self.against {
            Against::Itself => Some((1.0, "itself".into())),
            Against::Own(other) => {
                let own = results.figure(other, PTEROS, self.figure)?;
                Some((own, format!("× our {other}")))
            }
            Against::Best(names) => {
                let rows = [Some(row.name.clone()), copied_twin(&row.name)];
                let found = rows.iter().flatten().flat_map(|row| {
                    let of = |name: &&'static str| {
                        Some((results.figure(row, name, self.figure)?, *name))
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
    fn every_aim_has_a_row_and_every_row_it_names_exists() {
        let rows = rows::all();
        for aim in AIMS {
            assert!(rows.iter().any(|row| aim.applies(row)), "{}", aim.id);
            if let Against::Own(name) = aim.against {
                assert!(rows.iter().any(|row| row.name == name), "{name}");
            }
        }
    }

    #[test]
    fn an_aim_is_judged_against_the_best_row_of_a_peer() {
        let row = rows::all()
            .into_iter()
            .find(|row| row.name == "inter-1MB-blocked-loaned")
            .expect("the row");
        let mut results = Results::default();
        let mut add = |row: &str, who, p50| results.add(row, who, &[("p50", p50)]);
        add("inter-1MB-blocked-loaned", PTEROS, 50.0);
        add("inter-1MB-blocked", "cyclone", 900.0);
        add("inter-1MB-blocked", "cyclone-tuned", 400.0);
        let judge = |results: &Results| {
            let aims = AIMS.iter().filter(|aim| aim.applies(&row));
            let verdicts = aims.filter_map(|aim| aim.judge(&row, results));
            verdicts.map(|v| (v.ratio, v.met)).collect::<Vec<_>>()
        };
        assert_eq!(judge(&results), [(0.125, false)]);
        results.add("inter-1MB-blocked-loaned", "cyclone", &[("p50", 500.0)]);
        assert_eq!(judge(&results), [(0.125, false)]);
        results.add("inter-1MB-blocked-loaned", "iceoryx2", &[("p50", 50.0)]);
        assert_eq!(judge(&results), [(0.125, false), (1.0, true)]);
    }
}
