//! Rows of the Zenoh benchmark, as data.

use super::super::host::rows::{Kind as OneHost, Regime};
use super::super::{B64, K1, K64, M1, P50, PSS, Pinning, SIZES, Size};
use crate::measurement::Extent;

/// The measurement of a row.
#[derive(Clone, Copy)]
pub enum Kind {
    /// As in the host benchmark.
    OneHost(OneHost),
    /// CPU time of a publisher and a subscription of one host at [`CPU_RATE`].
    Cpu { size: Size },
    /// Round trips between two hosts over a link that loses so many packets of a
    /// thousand.
    Link { size: Size, loss: u32 },
}

/// Messages per second of a row for CPU time.
pub const CPU_RATE: u64 = 50;

/// One measurement, its name, and whether a quick run includes it.
pub struct Row {
    pub name: String,
    pub kind: Kind,
    pub quick: bool,
}

/// Lost packets per thousand of the two links.
const LOSSES: [u32; 2] = [0, 10];

/// Processes that discover each other in a full and a quick run.
const MANY: u32 = 100;
const FEW: u32 = 10;

/// All rows in their order.
pub fn all() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |name: String, kind: Kind, quick: bool| rows.push(Row { name, kind, quick });
    for size in SIZES {
        let kind = Kind::OneHost(OneHost::RoundTrip {
            size,
            regime: Regime::Blocked,
            loan: false,
            pinning: Pinning::None,
        });
        add(format!("host-{}", size.name), kind, true);
    }
    for loss in LOSSES {
        for size in SIZES {
            let name = match loss {
                0 => format!("link-{}", size.name),
                _ => format!("lossy-{}", size.name),
            };
            // A lost packet costs TCP half its rate.
            let largest = if loss == 0 { M1 } else { K64 };
            let quick = size.bytes <= largest.bytes && size.bytes != K1.bytes;
            add(name, Kind::Link { size, loss }, quick);
        }
    }
    for size in [B64, K64, M1] {
        add(format!("cpu-{}", size.name), Kind::Cpu { size }, true);
    }
    let composed = false;
    for (nodes, quick) in [(1, true), (20, false)] {
        let kind = Kind::OneHost(OneHost::Memory { nodes, composed });
        add(format!("nodes-{nodes}"), kind, quick);
    }
    for (processes, quick) in [(FEW, true), (MANY, false)] {
        let kind = Kind::OneHost(OneHost::Discovery { processes });
        add(format!("discovery-{processes}"), kind, quick);
    }
    rows
}

/// A smoke run's rows: one of each kind.
pub const SMOKE: [&str; 5] = ["host-64B", "link-64B", "cpu-64B", "nodes-1", "discovery-10"];

impl Row {
    /// Whether a run of that extent has it.
    pub fn is_in(&self, extent: Extent) -> bool {
        match extent {
            Extent::Smoke => SMOKE.contains(&self.name.as_str()),
            Extent::Quick => self.quick,
            Extent::Full => true,
        }
    }

    /// The value that ratios and aims compare.
    pub fn main_figure(&self) -> &'static str {
        match self.kind {
            Kind::Cpu { .. } => "cpu ms/s",
            Kind::OneHost(OneHost::Memory { .. }) => PSS.name,
            Kind::OneHost(OneHost::Discovery { .. }) => "kB",
            _ => P50.name,
        }
    }

    /// The unit of the values, for the heading.
    pub fn unit(&self) -> &'static str {
        match self.kind {
            Kind::OneHost(OneHost::Memory { .. }) => {
                "all processes idle, each node one publisher and subscription"
            }
            Kind::OneHost(OneHost::Discovery { .. }) => {
                "from the first start until all processes have discovered each other; kB on loopback"
            }
            Kind::OneHost(_) => "µs one way, half of a round trip, one host",
            Kind::Cpu { .. } => "CPU ms per second of both ends, 50 Hz, one host",
            Kind::Link { loss: 0, .. } => "µs one way, half of a round trip, 1 Gbit/s, 20 ms",
            Kind::Link { .. } => {
                "µs one way, half of a round trip, 1 Gbit/s, 20 ms, 1 % of packets lost"
            }
        }
    }

    /// Approximate seconds of one repeat.
    pub fn seconds(&self, extent: Extent) -> f64 {
        match self.kind {
            Kind::Link { size, loss } => {
                let trips = (trips(size, loss, extent) + LINK_WARMUP) as f64;
                // A connection that loses 1 % carries half a megabyte per second.
                let rate = if loss == 0 { 60e6 } else { 0.5e6 };
                3.0 + trips * (0.05 + 2.0 * size.bytes as f64 / rate)
            }
            Kind::OneHost(OneHost::Discovery { processes }) => 2.0 + 0.3 * f64::from(processes),
            Kind::OneHost(OneHost::Memory { nodes, .. }) => 5.0 + 0.2 * f64::from(nodes),
            _ => extent.choose(1.0, 3.0, 5.0),
        }
    }
}

/// Round trips over a link before the measured ones.
pub const LINK_WARMUP: u64 = 2;

/// Round trips over a link in one repeat.
pub fn trips(size: Size, loss: u32, extent: Extent) -> u64 {
    let (quick, full) = match (size.bytes, loss) {
        (bytes, _) if bytes <= K1.bytes => (60, 200),
        (bytes, _) if bytes <= K64.bytes => (30, 100),
        (bytes, 0) if bytes <= M1.bytes => (20, 60),
        (_, 0) => (8, 24),
        (bytes, _) if bytes <= M1.bytes => (4, 10),
        _ => (2, 4),
    };
    extent.choose(3, quick, full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_a_smoke_run_has_a_row_of_each() {
        let rows = all();
        let mut names: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
        assert!(SMOKE.iter().all(|name| names.contains(name)), "{names:?}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows.len());
    }
}
