//! Round trips: every contestant at every size, in turns, several times over.

use std::io::Write;

use anyhow::{Context, Result};

use super::contestant::{Contestant, Pinning};
use super::{Plan, median};
use crate::driver::value;

/// A payload and how often it goes there and back in one measurement: enough
/// for a p95, few enough that a whole run stays below three minutes.
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

/// Seconds until a measurement ends with what it has: a stack that waits for
/// repairs at 4 MB would take minutes.
const TIMEOUT: &str = "4";

/// What one measurement says, microseconds.
#[derive(Clone, Copy)]
pub struct Rtt {
    pub p50: f64,
    pub p95: f64,
    pub min: f64,
}

/// One contestant at one size.
pub struct Cell {
    pub contestant: &'static str,
    /// Each repeat, in order; those without any answer are left out.
    pub repeats: Vec<Rtt>,
}

/// One size.
pub struct Row {
    pub size: &'static str,
    pub bytes: usize,
    pub cells: Vec<Cell>,
}

impl Cell {
    /// The median of the repeats' medians; not a number if none came.
    pub fn p50(&self) -> f64 {
        median(self.repeats.iter().map(|r| r.p50).collect())
    }

    /// The median of the repeats' p95.
    pub fn p95(&self) -> f64 {
        median(self.repeats.iter().map(|r| r.p95).collect())
    }

    /// The least of all.
    pub fn min(&self) -> f64 {
        self.repeats.iter().map(|r| r.min).fold(f64::NAN, f64::min)
    }

    /// The least and the greatest of the repeats' medians.
    pub fn spread(&self) -> (f64, f64) {
        let medians = || self.repeats.iter().map(|r| r.p50);
        (
            medians().fold(f64::NAN, f64::min),
            medians().fold(f64::NAN, f64::max),
        )
    }
}

impl Row {
    /// A contestant's median divided by another's.
    pub fn ratio(&self, of: &str, to: &str) -> Option<f64> {
        let p50 = |name: &str| self.cells.iter().find(|c| c.contestant == name);
        let ratio = p50(of)?.p50() / p50(to)?.p50();
        ratio.is_finite().then_some(ratio)
    }
}

/// Measures everything. Within a repeat the contestants take turns at each
/// size; each repeat begins with another one, so that none is always first.
pub fn measure(contestants: &[Contestant], plan: &Plan, pinning: Pinning) -> Vec<Row> {
    let mut rows: Vec<Row> = SIZES
        .iter()
        .map(|size| Row {
            size: size.name,
            bytes: size.bytes,
            cells: contestants
                .iter()
                .map(|c| Cell {
                    contestant: c.name,
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
            for turn in 0..contestants.len() {
                let index = (turn + repeat) % contestants.len();
                match measure_one(&contestants[index], size, plan.quick, pinning) {
                    Ok(rtt) => row.cells[index].repeats.push(rtt),
                    Err(error) => eprintln!("\n{}: {error:#}", size.name),
                }
            }
        }
        eprintln!();
    }
    rows
}

fn measure_one(contestant: &Contestant, size: &Size, quick: bool, pinning: Pinning) -> Result<Rtt> {
    let part = if quick { 3 } else { 1 };
    let bytes = size.bytes.to_string();
    let count = (size.count / part).to_string();
    let warmup = (size.warmup / part).to_string();
    let mut arguments = vec!["--size", &bytes, "--count", &count, "--warmup", &warmup];
    if contestant.name != "floor" {
        arguments.extend(["--timeout", TIMEOUT]);
    }
    let _pong = contestant.start(&["pong"], pinning)?;
    let line = contestant.ping(&arguments, pinning)?;
    read(&line)
}

fn read(line: &str) -> Result<Rtt> {
    let number = |key: &str| -> Result<f64> {
        value(line, key)
            .and_then(|v| v.parse().ok())
            .with_context(|| format!("no round trip came back: {line}"))
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
    fn the_peers_line_is_read_and_an_empty_one_is_an_error() {
        let line = "rtt size=64 count=10 min=1.50 p50=2.00 p95=3.25 p99=4.00 max=5.00 mean=2.10";
        let rtt = read(line).expect("a full line");
        assert_eq!((rtt.p50, rtt.p95, rtt.min), (2.0, 3.25, 1.5));
        assert!(read("rtt size=64 count=0").is_err());
    }

    #[test]
    fn ratios_compare_medians_of_repeats() {
        let cell = |contestant, p50s: [f64; 3]| Cell {
            contestant,
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
            cells: vec![cell("a", [8.0, 900.0, 7.0]), cell("b", [10.0, 9.0, 11.0])],
        };
        assert_eq!(row.ratio("a", "b"), Some(0.8));
        assert_eq!(row.ratio("a", "c"), None);
        assert_eq!(row.cells[0].spread(), (7.0, 900.0));
    }
}
