//! Round-trip measurement: every implementation at every size, in turns,
//! repeatedly.

use std::io::Write;

use anyhow::{Context, Result};

use super::wire_peer::{Pinning, WirePeer};
use super::{WireBenchPlan, median};
use crate::driver::value;

/// A payload size and its round trips per measurement: enough for a p95, few enough
/// that a whole run takes less than three minutes.
struct Size {
    name: &'static str,
    bytes: usize,
    count: usize,
    warmup: usize,
}

const SIZES: [Size; 5] = [
    size("64 B", 64, 4000, 500),
    size("1 KB", 1 << 10, 4000, 500),
    size("64 KB", 64 << 10, 1000, 100),
    size("1 MB", 1 << 20, 150, 20),
    size("4 MB", 4 << 20, 40, 5),
];

const fn size(name: &'static str, bytes: usize, count: usize, warmup: usize) -> Size {
    Size {
        name,
        bytes,
        count,
        warmup,
    }
}

/// Time limit of a measurement in seconds. A stack that waits for retransmissions
/// at 4 MB would take minutes.
const TIMEOUT: &str = "4";

/// Result of one measurement, microseconds.
#[derive(Clone, Copy)]
pub struct Rtt {
    pub p50: f64,
    pub p95: f64,
    pub min: f64,
}

/// Results of one implementation at one size.
pub struct RoundTripResult {
    pub implementation: &'static str,
    /// Each repeat, in order, without those that failed.
    pub repeats: Vec<Rtt>,
}

/// Results of one size.
pub struct Row {
    pub size: &'static str,
    pub bytes: usize,
    pub results: Vec<RoundTripResult>,
}

impl RoundTripResult {
    /// Median of the repeats' medians. NaN without repeats.
    pub fn p50(&self) -> f64 {
        median(self.repeats.iter().map(|r| r.p50).collect())
    }

    /// Median of the repeats' p95.
    pub fn p95(&self) -> f64 {
        median(self.repeats.iter().map(|r| r.p95).collect())
    }

    /// Minimum over all repeats.
    pub fn min(&self) -> f64 {
        self.repeats.iter().map(|r| r.min).fold(f64::NAN, f64::min)
    }

    /// Smallest and largest median of the repeats.
    pub fn spread(&self) -> (f64, f64) {
        let medians = || self.repeats.iter().map(|r| r.p50);
        (
            medians().fold(f64::NAN, f64::min),
            medians().fold(f64::NAN, f64::max),
        )
    }
}

impl Row {
    /// Median of one implementation divided by that of another.
    pub fn ratio(&self, of: &str, to: &str) -> Option<f64> {
        let p50 = |name: &str| self.results.iter().find(|c| c.implementation == name);
        let ratio = p50(of)?.p50() / p50(to)?.p50();
        ratio.is_finite().then_some(ratio)
    }
}

/// Measures all sizes. Within a repeat the implementations take turns at each size.
/// Each repeat starts with another one, so that none is always first.
pub fn measure(implementations: &[WirePeer], plan: &WireBenchPlan, pinning: Pinning) -> Vec<Row> {
    let mut rows: Vec<Row> = SIZES
        .iter()
        .map(|size| Row {
            size: size.name,
            bytes: size.bytes,
            results: implementations
                .iter()
                .map(|c| RoundTripResult {
                    implementation: c.name,
                    repeats: Vec::new(),
                })
                .collect(),
        })
        .collect();
    for repeat in 0..plan.repeats {
        eprint!("{pinning}, repeat {} of {}:", repeat + 1, plan.repeats);
        for (size, row) in SIZES.iter().zip(&mut rows) {
            eprint!(" {}", size.name);
            let _ = std::io::stderr().flush();
            for turn in 0..implementations.len() {
                let index = (turn + repeat) % implementations.len();
                match measure_one(&implementations[index], size, plan.quick, pinning) {
                    Ok(rtt) => row.results[index].repeats.push(rtt),
                    Err(error) => eprintln!("\n{}: {error:#}", size.name),
                }
            }
        }
        eprintln!();
    }
    rows
}

fn measure_one(
    implementation: &WirePeer,
    size: &Size,
    quick: bool,
    pinning: Pinning,
) -> Result<Rtt> {
    let part = if quick { 3 } else { 1 };
    let bytes = size.bytes.to_string();
    let count = (size.count / part).to_string();
    let warmup = (size.warmup / part).to_string();
    let mut arguments = vec!["--size", &bytes, "--count", &count, "--warmup", &warmup];
    if implementation.name != "floor" {
        arguments.extend(["--timeout", TIMEOUT]);
    }
    let _pong = implementation.start(&["pong"], pinning)?;
    let line = implementation.ping(&arguments, pinning)?;
    read(&line)
}

fn read(line: &str) -> Result<Rtt> {
    let number = |key: &str| -> Result<f64> {
        value(line, key)
            .and_then(|v| v.parse().ok())
            .with_context(|| format!("no round trip completed: {line}"))
    };
    Ok(Rtt {
        p50: number("p50")?,
        p95: number("p95")?,
        min: number("min")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rtt_line_is_parsed_and_an_empty_one_is_an_error() {
        let line = "rtt size=64 count=10 min=1.50 p50=2.00 p95=3.25 p99=4.00 max=5.00 mean=2.10";
        let rtt = read(line).expect("a full line");
        assert_eq!((rtt.p50, rtt.p95, rtt.min), (2.0, 3.25, 1.5));
        assert!(read("rtt size=64 count=0").is_err());
    }

    #[test]
    fn ratios_compare_medians_of_repeats() {
        let result = |implementation, p50s: [f64; 3]| RoundTripResult {
            implementation,
            repeats: p50s
                .map(|p50| Rtt {
                    p50,
                    p95: p50,
                    min: p50,
                })
                .into(),
        };
        let row = Row {
            size: "64 B",
            bytes: 64,
            results: vec![
                result("a", [8.0, 900.0, 7.0]),
                result("b", [10.0, 9.0, 11.0]),
            ],
        };
        assert_eq!(row.ratio("a", "b"), Some(0.8));
        assert_eq!(row.ratio("a", "c"), None);
        assert_eq!(row.results[0].spread(), (7.0, 900.0));
    }
}
