//! Measurement of one row for one implementation, once.

use std::fs;
use std::time::{Duration, Instant};

use crate::testbed::implementation::FLOOR;
use crate::testbed::process::value;
use crate::testbed::{Implementation, MeasurementFailure, PeerProcess, procfs};
use anyhow::anyhow;

use super::super::{
    AtRest, RoundTrips, Size, TIMEOUT, cpu_load, is_floor, latencies, number, warmup,
};
use super::rows::{Kind, Regime};
use crate::lab::Lab;
use crate::measurement::Measurement;

/// Time limit for many processes at once.
const MANY_PROCESSES_TIMEOUT: Duration = Duration::from_secs(90);

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

/// Measures the row.
pub fn measure(
    kind: &Kind,
    lab: &Lab,
    implementation: &Implementation,
) -> Result<Measurement, MeasurementFailure> {
    let extent = lab.extent;
    let run = Run::new(lab, implementation);
    match *kind {
        Kind::Wake { how, pinning } => {
            let trips = RoundTrips {
                bytes: 64,
                count: extent.choose(100, 4_000, 4_000),
                pinning,
                is_polling: false,
                // Nothing is copied.
                is_loaned: true,
                rate: 0,
            };
            latency(&trips.run_floor(implementation, how)?, 2.0)
        }
        Kind::Memcpy { size } => run.memcpy(size),
        Kind::RoundTrip {
            size,
            regime,
            loan,
            pinning,
        } => run.round_trip(
            regime,
            RoundTrips {
                bytes: size.bytes,
                count: match regime {
                    Regime::Idle => extent.choose(5, 40, 100),
                    _ => size.trips_in(extent),
                },
                pinning,
                is_polling: regime == Regime::Saturated,
                is_loaned: loan,
                rate: if regime == Regime::Idle { 50 } else { 0 },
            },
        ),
        Kind::Intra {
            size,
            remote_subscribers,
        } => run.intra(size, remote_subscribers),
        Kind::FanOut { size, subscribers } => {
            let count = extent.choose(4, 20, 60);
            let columns = ["p50", "slowest", "spread", "cpu ms/s", "lost"];
            run.flow(size, subscribers, count, "--rate 20", &columns)
        }
        Kind::Goodput {
            size,
            subscribers,
            loan,
        } => {
            let count = size.flood / extent.choose(100, 4, 1);
            let loan = if loan { "yes" } else { "no" };
            let options = format!("--history keep_all --loan {loan}");
            let columns = ["MB/s", "cpu ms/s", "lost"];
            run.flow(size, subscribers, count, &options, &columns)
        }
        Kind::Cpu { sizes, quick } => run.cpu(extent.choose(quick, quick, sizes)),
        Kind::Memory { nodes, composed } => run.memory(nodes, composed),
        Kind::Growth { nodes } => run.growth(nodes),
        Kind::Discovery { processes } => run.discovery(processes),
    }
}

/// One repeat of a row with an implementation, on a topic of its own.
pub(in super::super) struct Run<'a> {
    lab: &'a Lab,
    implementation: &'a Implementation,
    topic: String,
    /// For every process beside those of the measurement.
    pub options: String,
    /// Milliseconds until idle processes are at rest, beside 20 each; measured as
    /// long.
    pub rest_ms: u64,
}

impl<'a> Run<'a> {
    /// The options of the measurement alone.
    pub fn new(lab: &'a Lab, implementation: &'a Implementation) -> Self {
        Self {
            lab,
            implementation,
            topic: lab.fresh_topic(),
            options: String::new(),
            rest_ms: lab.extent.choose(100, 500, 2000),
        }
    }
    fn start(&self, line: &str) -> Result<PeerProcess, MeasurementFailure> {
        let line = match self.implementation.name {
            FLOOR => line.to_owned(),
            _ => format!("{line} --topic {} {}", self.topic, self.options),
        };
        Ok(self.implementation.start(&line, None)?)
    }

    /// Starts a peer and waits until it is ready.
    fn ready(&self, line: &str) -> Result<PeerProcess, MeasurementFailure> {
        let mut process = self.start(line)?;
        process.expect("ready", TIMEOUT)?;
        Ok(process)
    }

    fn memcpy(&self, size: Size) -> Result<Measurement, MeasurementFailure> {
        let count = self.lab.extent.choose(10, 200, 200);
        let line = format!("memcpy --size {} --count {count}", size.bytes);
        let copied = self.start(&line)?.expect("copied", TIMEOUT)?;
        Ok(only_values(vec![
            ("p50", number(&copied, "hot")?),
            ("cold", number(&copied, "cold")?),
        ]))
    }

    /// Latencies are half of a round trip.
    fn round_trip(
        &self,
        regime: Regime,
        trips: RoundTrips,
    ) -> Result<Measurement, MeasurementFailure> {
        if is_floor(self.implementation) {
            let how = match regime {
                Regime::Saturated => "spin",
                _ => "futex",
            };
            return latency(&trips.run_floor(self.implementation, how)?, 2.0);
        }
        let [took, ponged] = trips.run(self.lab, self.implementation)?;
        let mut outcome = latency(&took, 2.0)?;
        let load = cpu_load(&took)? + cpu_load(&ponged)?;
        outcome.values.push(("cpu ms/s", load));
        Ok(outcome)
    }

    pub fn intra(
        &self,
        size: Size,
        remote_subscribers: u32,
    ) -> Result<Measurement, MeasurementFailure> {
        let count = size.trips_in(self.lab.extent);
        let common = format!(
            "--size {} --count {count} --warmup {} --subscribers {}",
            size.bytes,
            warmup(count),
            remote_subscribers + 1
        );
        let subscriptions: Result<Vec<_>, _> = (0..remote_subscribers)
            .map(|_| self.ready(&format!("sub {common}")))
            .collect();
        let _subscriptions = subscriptions?;
        let mut both = self.start(&format!("intra {common}"))?;
        latency(&both.expect("took", TIMEOUT)?, 1.0)
    }

    /// Runs one publisher and its subscriptions, one process each, and returns the
    /// values named in `columns`.
    pub fn flow(
        &self,
        size: Size,
        subscribers: u32,
        count: u64,
        options: &str,
        columns: &[&str],
    ) -> Result<Measurement, MeasurementFailure> {
        let (sent, took) = self.flow_lines(size, subscribers, count, options)?;
        let mut p50s = Vec::new();
        let mut outcome = Measurement::default();
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
        outcome.values = vec![
            ("p50", middle),
            ("slowest", most),
            ("spread", (most - least) / middle),
            ("MB/s", rate),
            ("cpu ms/s", load),
            ("lost", lost),
        ];
        // Programs in Python time each call.
        if let Ok(publish) = number(&sent, "publish") {
            outcome.values.push(("publish", publish));
        }
        outcome.values.retain(|(name, _)| columns.contains(name));
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
            .map(|_| self.ready(&format!("sub {common}")))
            .collect();
        let mut listening = listening?;
        let mut publisher = self.start(&format!("pub {common}"))?;
        let sent = publisher.expect("sent", TIMEOUT)?;
        let took: Result<Vec<_>, _> = listening
            .iter_mut()
            .map(|process| process.expect("took", TIMEOUT))
            .collect();
        Ok((sent, took?))
    }

    /// Sequential calls of a service in another process.
    pub fn call(&self, count: u64) -> Result<Measurement, MeasurementFailure> {
        let _server = self.ready("serve")?;
        let line = format!("call --count {count} --warmup {}", warmup(count));
        let took = self.start(&line)?.expect("took", TIMEOUT)?;
        Ok(only_values(vec![("p50", number(&took, "p50")?)]))
    }

    /// The time that the executor adds to each of `count` callbacks.
    pub fn callbacks(&self, count: u64) -> Result<Measurement, MeasurementFailure> {
        let line = format!("callbacks --count {count} --warmup 0");
        let ended = self.start(&line)?.expect("callbacks", TIMEOUT)?;
        Ok(only_values(vec![("overhead", number(&ended, "overhead")?)]))
    }

    /// From the start of a process until its node is there.
    pub fn start_of_node(&self) -> Result<Measurement, MeasurementFailure> {
        let begin = Instant::now();
        let _node = self.ready("nodes --nodes 1 --of 1")?;
        let took = begin.elapsed().as_secs_f64() * 1e3;
        Ok(only_values(vec![("ms", took)]))
    }

    fn cpu(&self, sizes: &[Size]) -> Result<Measurement, MeasurementFailure> {
        let mut sum = 0.0;
        let mut outcome = Measurement::default();
        let count = self.lab.extent.choose(5, 50, 150);
        for size in sizes {
            let (sent, took) = self.flow_lines(*size, 1, count, "--rate 50")?;
            let of_both = cpu_load(&sent)? + cpu_load(&took[0])?;
            sum += of_both;
            outcome.values.push((size.name, of_both));
            outcome.path = value(&took[0], "path").map(str::to_owned);
        }
        outcome.values.insert(0, ("cpu ms/s", sum));
        Ok(outcome)
    }

    pub fn memory(&self, nodes: u32, composed: bool) -> Result<Measurement, MeasurementFailure> {
        if is_floor(self.implementation) {
            let all_processes = self.start_all(&vec![String::from("nodes"); nodes as usize])?;
            return self.at_rest(&all_processes, None);
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
        self.at_rest(&all_processes, bare)
    }

    /// Starts all processes, then waits until each is ready.
    fn start_all(&self, lines: &[String]) -> Result<Vec<PeerProcess>, MeasurementFailure> {
        let started: Result<Vec<_>, _> = lines.iter().map(|line| self.start(line)).collect();
        let mut started = started?;
        for process in &mut started {
            process.expect("ready", MANY_PROCESSES_TIMEOUT)?;
        }
        Ok(started)
    }

    /// Cost of the processes after discovery. `bare` is the memory of a process
    /// without nodes.
    fn at_rest(
        &self,
        all_processes: &[PeerProcess],
        bare: Option<u64>,
    ) -> Result<Measurement, MeasurementFailure> {
        let rest = self.rest_ms + 20 * all_processes.len() as u64;
        let rest = Duration::from_millis(rest);
        std::thread::sleep(rest);
        let rest = AtRest::of(all_processes, rest)?;
        let mut values = vec![
            ("PSS kB", rest.pss_kb),
            ("private kB", rest.private_kb),
            ("threads", rest.threads),
            ("cpu ms/s", rest.cpu_ms_per_s),
            ("wakes/s", rest.wakes_per_s),
        ];
        if let Some(bare) = bare {
            values.push(("over bare kB", rest.pss_kb - bare as f64));
        }
        Ok(only_values(values))
    }

    /// How much one process grows when another process creates nodes.
    fn growth(&self, nodes: u32) -> Result<Measurement, MeasurementFailure> {
        let of = nodes + 1;
        let watched = self.start_all(&[format!("nodes --nodes 1 --of {of}")])?;
        let look = || -> Result<f64, MeasurementFailure> {
            std::thread::sleep(Duration::from_secs(2));
            Ok(procfs::memory(watched[0].id())?.pss_anonymous_kb as f64)
        };
        let before = look()?;
        let _others = self.start_all(&[format!("nodes --nodes {nodes} --first 1 --of {of}")])?;
        let grown = look()? - before;
        Ok(only_values(vec![(
            "kB/endpoint",
            grown / f64::from(2 * nodes),
        )]))
    }

    pub fn discovery(&self, processes: u32) -> Result<Measurement, MeasurementFailure> {
        let line = match self.implementation.name {
            FLOOR => "nodes".to_owned(),
            _ => format!(
                "meet --of {processes} --timeout {}",
                MANY_PROCESSES_TIMEOUT.as_secs()
            ),
        };
        let bytes_before = procfs::loopback_bytes()?;
        let begin = Instant::now();
        let all_processes: Result<Vec<_>, _> = (0..processes).map(|_| self.start(&line)).collect();
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
            .sum::<anyhow::Result<_>>()?;
        Ok(only_values(vec![
            ("ms", ms),
            ("kB", kilobytes),
            ("cpu ms", used.ms),
        ]))
    }
}

fn only_values(values: Vec<(&'static str, f64)>) -> Measurement {
    Measurement {
        values,
        ..Measurement::default()
    }
}

/// Latencies and transport of a line `took …`.
fn latency(line: &str, parts: f64) -> Result<Measurement, MeasurementFailure> {
    Ok(Measurement {
        values: latencies(line, parts)?,
        path: value(line, "path").map(str::to_owned),
        ..Measurement::default()
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
