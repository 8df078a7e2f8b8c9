//! Benchmarks: experiments of our own, which repeat no paper. `cargo xtask bench X`
//! builds what `own.X` needs and runs it. docs/measurements quotes their tables.

pub mod bag;
pub mod composition;
pub mod executor;
pub mod host;
pub mod loss;
pub mod robot;
pub mod ros2;
pub mod security;
pub mod start;
pub mod wire;
pub mod zenoh;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::testbed::implementation::FLOOR;
use crate::testbed::process::value;
use crate::testbed::{Implementation, MeasurementFailure, PeerProcess, procfs};
use anyhow::{Context, Result, anyhow};

use crate::lab::Lab;
use crate::measurement::{Better, Extent, Metric, Statistic};
use crate::report_items::{Table, TableEntry};

/// Time limit for a process to start, to match and to end.
const TIMEOUT: Duration = Duration::from_secs(25);

/// A metric whose repeats are single values.
const fn metric(name: &'static str, unit: &'static str, better: Better) -> Metric {
    Metric::new(name, unit, better, Statistic::Median)
}

const P50: Metric = metric("p50", "us", Better::Lower);
const P95: Metric = metric("p95", "us", Better::Neither);
const MIN: Metric = metric("min", "us", Better::Neither);
const PSS: Metric = metric("PSS kB", "kB", Better::Lower);
const CPU_PERCENT: Metric = metric("CPU %", "% of a core", Better::Lower);

/// Payload size, and the number of messages of one measurement.
#[derive(Clone, Copy, Debug)]
struct Size {
    name: &'static str,
    bytes: u64,
    /// Round trips of one measurement.
    trips: u64,
    /// Messages of one goodput measurement, about one second of traffic.
    flood: u64,
}

const fn size(name: &'static str, bytes: u64, trips: u64, flood: u64) -> Size {
    Size {
        name,
        bytes,
        trips,
        flood,
    }
}

const B64: Size = size("64B", 64, 4000, 200_000);
const K1: Size = size("1KB", 1 << 10, 4000, 150_000);
const K64: Size = size("64KB", 64 << 10, 1000, 20_000);
const M1: Size = size("1MB", 1 << 20, 200, 1_500);
const M4: Size = size("4MB", 4 << 20, 60, 400);

/// Sizes of the latency tables.
const SIZES: [Size; 5] = [B64, K1, K64, M1, M4];

impl Size {
    /// Round trips of a repeat.
    fn trips_in(self, extent: Extent) -> u64 {
        extent.choose(10, (self.trips / 3).max(20), self.trips)
    }
}

/// CPUs that the two processes of a round trip may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pinning {
    /// Any CPU.
    None,
    /// Both on CPU 0.
    OneCpu,
    /// One on CPU 0, the other on CPU 1.
    TwoCpus,
}

impl Pinning {
    const ALL: [Self; 3] = [Self::None, Self::OneCpu, Self::TwoCpus];

    fn name(self) -> &'static str {
        match self {
            Self::None => "unpinned",
            Self::OneCpu => "both on one CPU",
            Self::TwoCpus => "one CPU each",
        }
    }

    /// The CPU of a process, 0 or 1.
    fn cpu(self, process: u32) -> Option<u32> {
        match self {
            Self::None => None,
            Self::OneCpu => Some(0),
            Self::TwoCpus => Some(process),
        }
    }
}

/// Round trips of two processes, `ping` and `pong`.
#[derive(Clone, Copy, Debug)]
struct RoundTrips {
    bytes: u64,
    count: u64,
    pinning: Pinning,
    /// Polls where the stack can, instead of sleeping.
    is_polling: bool,
    is_loaned: bool,
    /// Hz; 0 is back to back.
    rate: u64,
}

impl RoundTrips {
    /// Runs them once. Returns the lines `took …` of both processes.
    fn run(
        &self,
        lab: &Lab,
        implementation: &Implementation,
    ) -> Result<[String; 2], MeasurementFailure> {
        let topic = lab.fresh_topic();
        let line = |verb: &str| {
            format!(
                "{verb} --topic {topic} --size {} --count {} --warmup {} --wait {} --loan {} --rate {}",
                self.bytes,
                self.count,
                warmup(self.count),
                if self.is_polling { "poll" } else { "block" },
                if self.is_loaned { "yes" } else { "no" },
                self.rate
            )
        };
        let mut pong = implementation.start(&line("pong"), self.pinning.cpu(1))?;
        pong.expect("ready", TIMEOUT)?;
        let mut ping = implementation.start(&line("ping"), self.pinning.cpu(0))?;
        let took = ping.expect("took", TIMEOUT)?;
        Ok([took, pong.expect("took", TIMEOUT)?])
    }

    /// The same through a primitive of the kernel (`udp`, `futex`, …).
    fn run_floor(
        &self,
        implementation: &Implementation,
        how: &str,
    ) -> Result<String, MeasurementFailure> {
        let line = format!(
            "ping --how {how} --cpus {} --copy {} --size {} --rate {} --count {} --warmup {}",
            match self.pinning {
                Pinning::None => "-1,-1",
                Pinning::OneCpu => "0,0",
                Pinning::TwoCpus => "0,1",
            },
            if self.is_loaned { "no" } else { "yes" },
            self.bytes,
            self.rate,
            self.count,
            warmup(self.count)
        );
        implementation.start(&line, None)?.expect("took", TIMEOUT)
    }
}

fn warmup(count: u64) -> u64 {
    (count / 8).max(5)
}

/// The number after `key=` in a line.
fn number(line: &str, key: &str) -> Result<f64> {
    value(line, key)
        .and_then(|v| v.parse().ok())
        .with_context(|| format!("no {key} in {line}"))
}

/// CPU milliseconds per second of a line `took …` or `sent …`.
fn cpu_load(line: &str) -> Result<f64> {
    Ok(number(line, "cpu_ms")? / number(line, "wall_ms")? * 1e3)
}

/// [`P50`], [`P95`] and [`MIN`] of a line `took …`, divided by `parts`. A lost or
/// corrupt message is a failure.
fn latencies(line: &str, parts: f64) -> Result<Vec<(&'static str, f64)>> {
    if number(line, "lost")? + number(line, "torn")? > 0.0 {
        return Err(anyhow!("lost or corrupt: {line}"));
    }
    let of = |metric: Metric| Ok((metric.name, number(line, metric.name)? / parts));
    [P50, P95, MIN].into_iter().map(of).collect()
}

/// A program of the workspace next to this one or among its examples.
fn program(name: &str, package: &str) -> Result<PathBuf, MeasurementFailure> {
    let own = std::env::current_exe().map_err(anyhow::Error::from)?;
    let places = [
        own.with_file_name(name),
        own.with_file_name("examples").join(name),
    ];
    let found = places.into_iter().find(|place| place.is_file());
    found.ok_or_else(|| {
        MeasurementFailure::Unsupported(format!(
            "{name} is missing next to this program; cargo xtask bench builds it from the package {package}"
        ))
    })
}

/// Starts participants of another stack with one reader each.
fn idle_participants(
    lab: &Lab,
    implementation: &Implementation,
    count: u64,
) -> Result<Vec<PeerProcess>, MeasurementFailure> {
    let line = format!("sub --topic {} --timeout 600", lab.fresh_topic());
    let start = |_| {
        let mut process = implementation.start(&line, None)?;
        process.expect("ready", TIMEOUT)?;
        Ok(process)
    };
    (0..count).map(start).collect()
}

/// Starts a program that is measured idle, and waits for a line that ends with
/// `ready`.
fn start_idle(command: &mut Command) -> Result<PeerProcess, MeasurementFailure> {
    for variable in [
        "ROS_DOMAIN_ID",
        "ROS_LOCALHOST_ONLY",
        "ROS_STATIC_PEERS",
        "RUST_LOG",
        // cargo's library folders may hold those of another build.
        "LD_LIBRARY_PATH",
    ] {
        command.env_remove(variable);
    }
    let name = command.get_program().to_string_lossy().into_owned();
    let mut process = PeerProcess::start(&name, command)?;
    process.expect_line("ready", |line| line.ends_with("ready"), TIMEOUT)?;
    Ok(process)
}

/// Cost of processes that are left alone: sums over all of them.
struct AtRest {
    pss_kb: f64,
    private_kb: f64,
    threads: f64,
    cpu_ms_per_s: f64,
    wakes_per_s: f64,
}

impl AtRest {
    /// Measures for `time`.
    fn of(processes: &[PeerProcess], time: Duration) -> Result<Self> {
        let sum =
            || -> Result<procfs::CpuUsage> { processes.iter().map(|p| procfs::cpu(p.id())).sum() };
        let (begin, before) = (Instant::now(), sum()?);
        std::thread::sleep(time);
        let (seconds, after) = (begin.elapsed().as_secs_f64(), sum()?);
        let mut rest = Self {
            pss_kb: 0.0,
            private_kb: 0.0,
            threads: 0.0,
            cpu_ms_per_s: (after.ms - before.ms) / seconds,
            wakes_per_s: (after.wakes - before.wakes) / seconds,
        };
        for process in processes {
            let memory = procfs::memory(process.id())?;
            rest.pss_kb += memory.pss_kb as f64;
            rest.private_kb += memory.pss_anonymous_kb as f64;
            rest.threads += memory.threads as f64;
        }
        Ok(rest)
    }

    /// CPU time as a percentage of one core.
    fn cpu_percent(&self) -> f64 {
        self.cpu_ms_per_s / 10.0
    }
}

/// A value with as many digits as are significant.
fn digits(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "–".to_owned(),
        f if f >= 1000.0 => format!("{value:.0}"),
        f if f >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A table with a row per target: what it is about, the value, whether it is met.
fn targets(rows: impl IntoIterator<Item = (String, String, bool)>) -> Table {
    let row = |(what, value, met): (String, String, bool)| {
        vec![
            TableEntry::plain(what),
            TableEntry::plain(value),
            TableEntry::aim(met),
        ]
    };
    Table {
        title: "Targets".to_owned(),
        columns: ["target", "value", ""].map(str::to_owned).into(),
        rows: rows.into_iter().map(row).collect(),
        note: String::new(),
    }
}

/// Whether it is the kernel's baseline.
fn is_floor(implementation: &Implementation) -> bool {
    implementation.name == FLOOR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_counts_in_parts_and_a_loss_counts_as_failure() {
        let line = "took count=9 min=2.0 p50=4.0 p95=6.0 p99=7 max=8 lost=0 torn=0 path=UDP";
        let values = latencies(line, 2.0).expect("a whole line");
        assert_eq!(values, [("p50", 2.0), ("p95", 3.0), ("min", 1.0)]);
        assert!(latencies(&line.replace("lost=0", "lost=1"), 2.0).is_err());
    }
}
