//! Measurement of one row for one implementation, once.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use pteros_testbed::implementation::FLOOR;
use pteros_testbed::{Implementation, MeasurementFailure, PeerProcess, procfs};

use super::rows::{Kind, Regime, Size};
use crate::bench::wire_peer::Pinning;
use crate::driver::value;

/// Longest time for a process to start, to match and to end.
const TIMEOUT: Duration = Duration::from_secs(25);
/// The same limit for many processes at once.
const MANY_PROCESSES_TIMEOUT: Duration = Duration::from_secs(90);

/// Result of one measurement: values by name, and the transport of the messages.
#[derive(Default)]
pub struct Outcome {
    pub figures: Vec<(&'static str, f64)>,
    pub path: Option<String>,
}

/// Whether the row applies to this implementation. Only some rows apply to the
/// floor.
pub fn applies_to(kind: &Kind, implementation: &str) -> bool {
    let floor = implementation == FLOOR;
    match kind {
        Kind::Wake { .. } | Kind::Memcpy { .. } => floor,
        Kind::RoundTrip { .. } | Kind::Discovery { .. } => true,
        Kind::Memory { composed, .. } => !floor || !composed,
        _ => !floor,
    }
}

/// Measures the row. `topic_number` selects topics that no earlier process has
/// used.
pub fn measure(
    kind: &Kind,
    implementation: &Implementation,
    quick: bool,
    topic_number: u64,
) -> Result<Outcome, MeasurementFailure> {
    let run = Run {
        implementation,
        quick,
        topic_number,
    };
    match *kind {
        Kind::Wake { how, pinning } => {
            let line = format!("ping --how {how} --cpus {}", cpus(pinning));
            run.floor_ping(&line, 4000)
        }
        Kind::Memcpy { size } => run.memcpy(size),
        Kind::RoundTrip {
            size,
            regime,
            loan,
            pinning,
        } if implementation.name == FLOOR => {
            let how = match regime {
                Regime::Saturated => "spin",
                _ => "futex",
            };
            let copy = if loan { "no" } else { "yes" };
            let rate = if regime == Regime::Idle { 50 } else { 0 };
            let line = format!(
                "ping --how {how} --cpus {} --copy {copy} --size {} --rate {rate}",
                cpus(pinning),
                size.bytes
            );
            run.floor_ping(&line, run.trips(size, regime))
        }
        Kind::RoundTrip {
            size,
            regime,
            loan,
            pinning,
        } => run.round_trip(size, regime, loan, pinning),
        Kind::Intra {
            size,
            remote_subscribers,
        } => run.intra(size, remote_subscribers),
        Kind::FanOut { size, subscribers } => {
            let count = if quick { 20 } else { 60 };
            let columns = ["p50", "slowest", "spread", "cpu ms/s", "lost"];
            run.flow(size, subscribers, count, "--rate 20", &columns)
        }
        Kind::Goodput {
            size,
            subscribers,
            loan,
        } => {
            let count = size.flood / if quick { 4 } else { 1 };
            let loan = if loan { "yes" } else { "no" };
            let options = format!("--history keep_all --loan {loan}");
            let columns = ["MB/s", "cpu ms/s", "lost"];
            run.flow(size, subscribers, count, &options, &columns)
        }
        Kind::Cpu { sizes, quick: few } => run.cpu(if quick { few } else { sizes }),
        Kind::Memory { nodes, composed } => run.memory(nodes, composed),
        Kind::Growth { nodes } => run.growth(nodes),
        Kind::Discovery { processes } => run.discovery(processes),
    }
}

struct Run<'a> {
    implementation: &'a Implementation,
    quick: bool,
    topic_number: u64,
}

impl Run<'_> {
    fn start(&self, line: &str, cpu: Option<u32>) -> Result<PeerProcess, MeasurementFailure> {
        let line = match self.implementation.name {
            FLOOR => line.to_owned(),
            _ => format!("{line} --topic t{}", self.topic_number),
        };
        Ok(self.implementation.start(&line, cpu)?)
    }

    /// Starts a peer and waits until it is ready.
    fn ready(&self, line: &str, cpu: Option<u32>) -> Result<PeerProcess, MeasurementFailure> {
        let mut process = self.start(line, cpu)?;
        process.expect("ready", TIMEOUT)?;
        Ok(process)
    }

    fn trips(&self, size: Size, regime: Regime) -> u64 {
        match (regime, self.quick) {
            (Regime::Idle, true) => 40,
            (Regime::Idle, false) => 100,
            (_, true) => (size.trips / 3).max(20),
            (_, false) => size.trips,
        }
    }

    fn floor_ping(&self, line: &str, count: u64) -> Result<Outcome, MeasurementFailure> {
        let line = format!("{line} --count {count} --warmup {}", warmup(count));
        let took = self.start(&line, None)?.expect("took", TIMEOUT)?;
        latency(&took, 2.0)
    }

    fn memcpy(&self, size: Size) -> Result<Outcome, MeasurementFailure> {
        let line = format!("memcpy --size {} --count 200", size.bytes);
        let copied = self.start(&line, None)?.expect("copied", TIMEOUT)?;
        let figures = vec![
            ("p50", number(&copied, "hot")?),
            ("cold", number(&copied, "cold")?),
        ];
        Ok(Outcome {
            figures,
            path: None,
        })
    }

    fn round_trip(
        &self,
        size: Size,
        regime: Regime,
        loan: bool,
        pinning: Pinning,
    ) -> Result<Outcome, MeasurementFailure> {
        let count = self.trips(size, regime);
        let common = format!(
            "--size {} --count {count} --warmup {} --wait {} --loan {} --rate {}",
            size.bytes,
            warmup(count),
            if regime == Regime::Saturated {
                "poll"
            } else {
                "block"
            },
            if loan { "yes" } else { "no" },
            if regime == Regime::Idle { 50 } else { 0 },
        );
        let cpu = |index| match pinning {
            Pinning::None => None,
            Pinning::OneCpu => Some(0),
            Pinning::TwoCpus => Some(index),
        };
        let mut pong = self.ready(&format!("pong {common}"), cpu(1))?;
        let mut ping = self.start(&format!("ping {common}"), cpu(0))?;
        let took = ping.expect("took", TIMEOUT)?;
        let ponged = pong.expect("took", TIMEOUT)?;
        let mut outcome = latency(&took, 2.0)?;
        let load = cpu_load(&took)? + cpu_load(&ponged)?;
        outcome.figures.push(("cpu ms/s", load));
        Ok(outcome)
    }

    fn intra(&self, size: Size, remote_subscribers: u32) -> Result<Outcome, MeasurementFailure> {
        let count = self.trips(size, Regime::Blocked);
        let common = format!(
            "--size {} --count {count} --warmup {} --subscribers {}",
            size.bytes,
            warmup(count),
            remote_subscribers + 1
        );
        let subscriptions: Result<Vec<_>, _> = (0..remote_subscribers)
            .map(|_| self.ready(&format!("sub {common}"), None))
            .collect();
        let _subscriptions = subscriptions?;
        let mut both = self.start(&format!("intra {common}"), None)?;
        latency(&both.expect("took", TIMEOUT)?, 1.0)
    }

    /// Runs one publisher and its subscriptions, one process each, and returns the
    /// values named in `columns`.
    fn flow(
        &self,
        size: Size,
        subscribers: u32,
        count: u64,
        options: &str,
        columns: &[&str],
    ) -> Result<Outcome, MeasurementFailure> {
        let (sent, took) = self.flow_lines(size, subscribers, count, options)?;
        let mut p50s = Vec::new();
        let mut outcome = Outcome::default();
        let (mut lost, mut rate, mut load) = (0.0, f64::INFINITY, cpu_load(&sent)?);
        for line in &took {
            p50s.push(number(line, "p50")?);
            lost += number(line, "lost")? + number(line, "torn")?;
            load += cpu_load(line)?;
            let bytes = number(line, "count")? * size.bytes as f64;
            rate = f64::min(rate, bytes / number(line, "wall_ms")? / 1e3);
            outcome.path = value(line, "path").map(str::to_owned);
        }
        p50s.sort_by(f64::total_cmp);
        let (least, most) = (p50s[0], p50s[p50s.len() - 1]);
        let middle = p50s[(p50s.len() - 1) / 2];
        outcome.figures = vec![
            ("p50", middle),
            ("slowest", most),
            ("spread", (most - least) / middle),
            ("MB/s", rate),
            ("cpu ms/s", load),
            ("lost", lost),
        ];
        outcome.figures.retain(|(name, _)| columns.contains(name));
        Ok(outcome)
    }

    fn flow_lines(
        &self,
        size: Size,
        subscribers: u32,
        count: u64,
        options: &str,
    ) -> Result<(String, Vec<String>), MeasurementFailure> {
        let common = format!(
            "--size {} --count {count} --warmup {} --subscribers {subscribers} {options}",
            size.bytes,
            warmup(count).min(10)
        );
        let listening: Result<Vec<_>, _> = (0..subscribers)
            .map(|_| self.ready(&format!("sub {common}"), None))
            .collect();
        let mut listening = listening?;
        let mut publisher = self.start(&format!("pub {common}"), None)?;
        let sent = publisher.expect("sent", TIMEOUT)?;
        let took: Result<Vec<_>, _> = listening
            .iter_mut()
            .map(|process| process.expect("took", TIMEOUT))
            .collect();
        Ok((sent, took?))
    }

    fn cpu(&self, sizes: &[Size]) -> Result<Outcome, MeasurementFailure> {
        let mut sum = 0.0;
        let mut outcome = Outcome::default();
        let count = if self.quick { 50 } else { 150 };
        for size in sizes {
            let (sent, took) = self.flow_lines(*size, 1, count, "--rate 50")?;
            let of_both = cpu_load(&sent)? + cpu_load(&took[0])?;
            sum += of_both;
            outcome.figures.push((size.name, of_both));
            outcome.path = value(&took[0], "path").map(str::to_owned);
        }
        outcome.figures.insert(0, ("cpu ms/s", sum));
        Ok(outcome)
    }

    fn memory(&self, nodes: u32, composed: bool) -> Result<Outcome, MeasurementFailure> {
        if self.implementation.name == FLOOR {
            let all_processes = self.start_all(&vec![String::from("nodes"); nodes as usize])?;
            return Ok(Outcome {
                figures: self.at_rest(&all_processes, None)?,
                path: None,
            });
        }
        let all_processes = if composed {
            self.start_all(&[format!("nodes --nodes {nodes} --of {nodes}")])?
        } else {
            let line = |first| format!("nodes --nodes 1 --first {first} --of {nodes}");
            self.start_all(&(0..nodes).map(line).collect::<Vec<_>>())?
        };
        let bare = match nodes {
            1 => Some(self.start_all(&["nodes --nodes 0".to_owned()])?),
            _ => None,
        };
        let bare = match &bare {
            Some(processes) => Some(procfs::memory(processes[0].id())?.pss_kb),
            None => None,
        };
        let figures = self.at_rest(&all_processes, bare)?;
        Ok(Outcome {
            figures,
            path: None,
        })
    }

    /// Starts all processes, then waits until each is ready.
    fn start_all(&self, lines: &[String]) -> Result<Vec<PeerProcess>, MeasurementFailure> {
        let started: Result<Vec<_>, _> = lines.iter().map(|line| self.start(line, None)).collect();
        let mut started = started?;
        for process in &mut started {
            process.expect("ready", MANY_PROCESSES_TIMEOUT)?;
        }
        Ok(started)
    }

    /// Cost of the processes after discovery: sums over all of them.
    fn at_rest(
        &self,
        all_processes: &[PeerProcess],
        bare: Option<u64>,
    ) -> Result<Vec<(&'static str, f64)>, MeasurementFailure> {
        let rest = if self.quick { 500 } else { 2000 } + 20 * all_processes.len() as u64;
        std::thread::sleep(Duration::from_millis(rest));
        let sum = || -> Result<(f64, f64)> {
            let used = all_processes.iter().map(|p| procfs::cpu(p.id()));
            used.sum::<Result<procfs::CpuUsage>>()
                .map(|u| (u.ms, u.wakes))
        };
        let (begin, before) = (Instant::now(), sum()?);
        std::thread::sleep(Duration::from_millis(rest));
        let (seconds, after) = (begin.elapsed().as_secs_f64(), sum()?);
        let (mut pss, mut private, mut threads) = (0, 0, 0);
        for process in all_processes {
            let memory = procfs::memory(process.id())?;
            pss += memory.pss_kb;
            private += memory.pss_anonymous_kb;
            threads += memory.threads;
        }
        let mut figures = vec![
            ("PSS kB", pss as f64),
            ("private kB", private as f64),
            ("threads", threads as f64),
            ("cpu ms/s", (after.0 - before.0) / seconds),
            ("wakes/s", (after.1 - before.1) / seconds),
        ];
        if let Some(bare) = bare {
            figures.push(("over bare kB", pss as f64 - bare as f64));
        }
        Ok(figures)
    }

    /// How much one process grows when another process creates nodes.
    fn growth(&self, nodes: u32) -> Result<Outcome, MeasurementFailure> {
        let of = nodes + 1;
        let watched = self.start_all(&[format!("nodes --nodes 1 --of {of}")])?;
        let look = || -> Result<f64, MeasurementFailure> {
            std::thread::sleep(Duration::from_secs(2));
            Ok(procfs::memory(watched[0].id())?.pss_anonymous_kb as f64)
        };
        let before = look()?;
        let _others = self.start_all(&[format!("nodes --nodes {nodes} --first 1 --of {of}")])?;
        let grown = look()? - before;
        let figures = vec![("kB/endpoint", grown / f64::from(2 * nodes))];
        Ok(Outcome {
            figures,
            path: None,
        })
    }

    fn discovery(&self, processes: u32) -> Result<Outcome, MeasurementFailure> {
        let line = match self.implementation.name {
            FLOOR => "nodes".to_owned(),
            _ => format!(
                "meet --of {processes} --timeout {}",
                MANY_PROCESSES_TIMEOUT.as_secs()
            ),
        };
        let bytes_before = procfs::loopback_bytes()?;
        let begin = Instant::now();
        let all_processes: Result<Vec<_>, _> =
            (0..processes).map(|_| self.start(&line, None)).collect();
        let mut all_processes = all_processes?;
        let word = if self.implementation.name == FLOOR {
            "ready"
        } else {
            "met"
        };
        let mut met = 0;
        for process in &mut all_processes {
            let left = MANY_PROCESSES_TIMEOUT.saturating_sub(begin.elapsed());
            match process.expect(word, left.max(Duration::from_millis(1))) {
                Ok(_) => met += 1,
                Err(MeasurementFailure::Unsupported(why)) => {
                    return Err(MeasurementFailure::Unsupported(why));
                }
                Err(MeasurementFailure::Failed(why)) if met + 1 == processes || processes < 3 => {
                    return Err(MeasurementFailure::Failed(why));
                }
                Err(MeasurementFailure::Failed(_)) => {}
            }
        }
        let ms = begin.elapsed().as_secs_f64() * 1e3;
        if met < processes {
            let why = anyhow!(
                "{met} of {processes} processes discovered all others in {MANY_PROCESSES_TIMEOUT:?}"
            );
            return Err(why.into());
        }
        let kilobytes = (procfs::loopback_bytes()? - bytes_before) as f64 / 1024.0;
        let used: procfs::CpuUsage = all_processes
            .iter()
            .map(|p| procfs::cpu(p.id()))
            .sum::<Result<_>>()?;
        let figures = vec![("ms", ms), ("kB", kilobytes), ("cpu ms", used.ms)];
        Ok(Outcome {
            figures,
            path: None,
        })
    }
}

fn cpus(pinning: Pinning) -> &'static str {
    match pinning {
        Pinning::None => "-1,-1",
        Pinning::OneCpu => "0,0",
        Pinning::TwoCpus => "0,1",
    }
}

fn warmup(count: u64) -> u64 {
    (count / 8).max(5)
}

fn number(line: &str, key: &str) -> Result<f64> {
    value(line, key)
        .and_then(|v| v.parse().ok())
        .with_context(|| format!("no {key} in {line}"))
}

/// CPU milliseconds per second of a `took` or `sent` line.
fn cpu_load(line: &str) -> Result<f64> {
    Ok(number(line, "cpu_ms")? / number(line, "wall_ms")? * 1e3)
}

/// Latencies of a `took` line; for a round trip, half of them.
fn latency(line: &str, parts: f64) -> Result<Outcome, MeasurementFailure> {
    let failed = number(line, "lost")? + number(line, "torn")?;
    if failed > 0.0 {
        return Err(anyhow!("lost or corrupt: {line}").into());
    }
    let figures = ["p50", "p95", "min"].map(|key| Ok((key, number(line, key)? / parts)));
    Ok(Outcome {
        figures: figures.into_iter().collect::<Result<_>>()?,
        path: value(line, "path").map(str::to_owned),
    })
}

/// Removes shared-memory files that remain after all processes of a measurement
/// have ended, in the private mount of this run.
pub fn remove_shared_memory_files() {
    let Ok(entries) = fs::read_dir("/dev/shm") else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let _ = if path.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_counts_half_and_a_loss_counts_as_failure() {
        let line = "took count=9 min=2.0 p50=4.0 p95=6.0 p99=7 max=8 lost=0 torn=0 path=UDP";
        let outcome = latency(line, 2.0).expect("a whole line");
        assert_eq!(outcome.figures[0], ("p50", 2.0));
        assert_eq!(outcome.path.as_deref(), Some("UDP"));
        assert!(latency(&line.replace("lost=0", "lost=1"), 2.0).is_err());
    }
}
