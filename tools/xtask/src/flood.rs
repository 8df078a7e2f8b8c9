//! Flood test, `cargo xtask flood [--seconds N] [--rate HZ] [--kinds KIND,...]`: two
//! processes exchange reliable messages while a third sends hostile datagrams to
//! both, 100 000 a second.
//!
//! It runs in a private network. The attacker has a CPU of its own; the attacked
//! processes share another. The test fails if a process crashes, if its memory
//! grows by [`GROWTH_KIB_MAX`] or more, if fewer than 99 % of the messages arrive in
//! time, or if the 99th percentile of the round trip exceeds [`P99_MICROS_MAX`].

mod attacker;

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail, ensure};

use crate::{bench, namespace, peers};

use attacker::Kind;

pub use attacker::TASK as ATTACKER_TASK;
pub use attacker::run as attack;

/// Name of the task that runs inside the namespace.
pub const INSIDE_TASK: &str = "flood-inside";

const USAGE: &str = "usage: cargo xtask flood [--seconds N] [--rate HZ] [--kinds KIND,...]\n\
     KIND: mixed, announcements, duplicates; without it all";

/// Legitimate messages per second.
const MESSAGE_RATE: u32 = 2_000;
/// Limit of the memory growth of each process.
const GROWTH_KIB_MAX: u64 = 32 << 10;
/// Share of the messages that must arrive before the publisher ends.
const SHARE_MIN: f64 = 0.99;
/// Limit of the 99th percentile of a round trip, in microseconds.
const P99_MICROS_MAX: f64 = 20_000.0;
/// Round trips that are measured.
const ROUND_TRIPS: u32 = 5_000;

struct FloodPlan {
    seconds: u32,
    rate: u32,
    kinds: Vec<Kind>,
}

impl FloodPlan {
    fn parse(flags: &[String]) -> Result<Self> {
        let mut plan = Self {
            seconds: 20,
            rate: 100_000,
            kinds: Kind::ALL.to_vec(),
        };
        let mut flags = flags.iter();
        while let Some(flag) = flags.next() {
            let value = flags
                .next()
                .with_context(|| format!("{flag} lacks a value\n{USAGE}"))?;
            let number = || {
                let number = value.parse::<u32>().ok().filter(|n| *n > 0);
                number.with_context(|| format!("{flag} {value}: expected a number of at least 1"))
            };
            match flag.as_str() {
                "--seconds" => plan.seconds = number()?,
                "--rate" => plan.rate = number()?,
                "--kinds" => {
                    let kind = |name| {
                        Kind::named(name)
                            .with_context(|| format!("--kinds {name}: no such kind\n{USAGE}"))
                    };
                    plan.kinds = value.split(',').map(kind).collect::<Result<_>>()?;
                }
                other => bail!("{other}: no such option\n{USAGE}"),
            }
        }
        Ok(plan)
    }
}

/// Builds the programs, then attacks them in a private network.
pub fn run(flags: &[String]) -> Result<ExitStatus> {
    FloodPlan::parse(flags)?;
    bench::build(&["-p", "ping-pong"])?;
    let own = std::env::current_exe()?;
    namespace::command(true, &own.to_string_lossy())?
        .arg(INSIDE_TASK)
        .args(flags)
        .status()
        .context("run the flood in a private network")
}

/// Runs the measurement inside the namespace.
pub fn run_inside(flags: &[String]) -> Result<()> {
    let plan = FloodPlan::parse(flags)?;
    let program = peers::target_folder()?
        .join(bench::PROFILE)
        .join("ping-pong");
    let calm = exchange(&program, plan.seconds.min(5), None)?;
    let calm_p99 = round_trip_p99(&program, None)?;
    println!("without a flood: {calm}; round trip p99 {calm_p99:.0} us");
    ensure!(
        calm.share() >= SHARE_MIN,
        "too few messages arrive even without the flood; is the machine busy?"
    );
    for kind in plan.kinds {
        let flood = Flood {
            kind,
            rate: plan.rate,
            seconds: plan.seconds,
        };
        let flooded = exchange(&program, plan.seconds, Some(flood))?;
        let p99 = round_trip_p99(&program, Some(flood))?;
        let name = kind.name();
        println!(
            "{name}, {} packets a second: {flooded}; round trip p99 {p99:.0} us",
            plan.rate
        );
        ensure!(
            flooded.share() >= SHARE_MIN * calm.share(),
            "{name}: fewer than {SHARE_MIN} of the messages arrived in time"
        );
        ensure!(
            flooded.growth_kib <= GROWTH_KIB_MAX,
            "{name}: memory of a process grew by more than {GROWTH_KIB_MAX} KiB"
        );
        ensure!(
            p99 <= P99_MICROS_MAX,
            "{name}: the 99th percentile of a round trip is {p99:.0} us, more than {P99_MICROS_MAX}"
        );
    }
    Ok(())
}

/// What the attacker does.
#[derive(Clone, Copy)]
struct Flood {
    kind: Kind,
    rate: u32,
    seconds: u32,
}

impl Flood {
    /// Starts the attacker, on a CPU of its own.
    fn start(self) -> Result<FloodProcess> {
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).arg(std::env::current_exe()?);
        command.args([ATTACKER_TASK, &self.rate.to_string()]);
        command.args([&self.seconds.to_string(), self.kind.name()]);
        let mut attacker = FloodProcess::start(command)?;
        attacker.wait_for("begins")?;
        Ok(attacker)
    }
}

/// An attacked process. All share a CPU.
fn attacked(program: &Path, line: &str) -> Result<FloodProcess> {
    let mut command = Command::new("taskset");
    command.args(["-c", "1"]).arg(program);
    // The flood arrives over UDP, so the messages must use UDP too.
    command.env("PTEROS_SHARED_MEMORY", "off");
    command.args(line.split(' '));
    FloodProcess::start(command)
}

/// The 99th percentile of the round trip, in microseconds.
fn round_trip_p99(program: &Path, flood: Option<Flood>) -> Result<f64> {
    let mut pong = attacked(program, "pong")?;
    pong.wait_for("ready")?;
    let mut attacker = flood.map(Flood::start).transpose()?;
    let line = format!("ping --count {ROUND_TRIPS} --timeout 120");
    let mut ping = attacked(program, &line)?;
    let line = ping.wait_for("rtt ")?;
    let p99 = line
        .split(' ')
        .find_map(|word| word.strip_prefix("p99=")?.parse().ok());
    // A flood that lasts longer than the round trips ends with them.
    drop(attacker.take());
    p99.with_context(|| format!("no round trip was complete: {line}"))
}

/// Result of one exchange of messages.
struct ExchangeOutcome {
    sent: u32,
    in_time: u32,
    growth_kib: u64,
    hostile: Option<String>,
}

impl ExchangeOutcome {
    fn share(&self) -> f64 {
        f64::from(self.in_time) / f64::from(self.sent)
    }
}

impl std::fmt::Display for ExchangeOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} of {} messages in time ({:.1} %), memory grew by {} KiB",
            self.in_time,
            self.sent,
            100.0 * self.share(),
            self.growth_kib
        )?;
        match &self.hostile {
            Some(said) => write!(f, "; {said}"),
            None => Ok(()),
        }
    }
}

/// Runs a publisher and a subscriber, with or without a flood.
fn exchange(program: &Path, seconds: u32, flood: Option<Flood>) -> Result<ExchangeOutcome> {
    let count = MESSAGE_RATE * seconds;
    let mut subscriber = attacked(program, "sub --history keep_last:1000")?;
    let mut publisher = attacked(
        program,
        &format!(
            "pub --history keep_last:1000 --wait-matched 1 --settle 2 --linger 1 --rate {MESSAGE_RATE} --count {count}"
        ),
    )?;
    subscriber.wait_for("received ")?;
    let before = [subscriber.resident_kib()?, publisher.resident_kib()?];
    let mut attacker = flood.map(Flood::start).transpose()?;
    let arrived = Arc::new(AtomicU32::new(1));
    let lines = subscriber.lines.take().context("read once")?;
    std::thread::spawn({
        let arrived = arrived.clone();
        move || {
            for _ in lines.map_while(Result::ok) {
                arrived.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    publisher.wait_for(&format!("sent seq={count} "))?;
    // The publisher lingers for one second.
    let after = [subscriber.resident_kib()?, publisher.resident_kib()?];
    publisher.wait_for("ended sent=")?;
    let in_time = arrived.load(Ordering::Relaxed);
    let growth = before.iter().zip(after).map(|(b, a)| a.saturating_sub(*b));
    let hostile = match &mut attacker {
        None => None,
        Some(attacker) => Some(attacker.wait_for("sent ")?),
    };
    ensure!(
        subscriber.child.try_wait()?.is_none(),
        "the subscriber crashed"
    );
    ensure!(publisher.child.wait()?.success(), "the publisher crashed");
    Ok(ExchangeOutcome {
        sent: count,
        in_time,
        growth_kib: growth.max().unwrap_or(0),
        hostile,
    })
}

/// A process and its output lines, killed on drop.
struct FloodProcess {
    child: Child,
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

impl FloodProcess {
    fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {command:?}"))?;
        let lines = child.stdout.take().map(|out| BufReader::new(out).lines());
        Ok(Self { child, lines })
    }

    /// Reads up to a line with this prefix and returns the line.
    fn wait_for(&mut self, beginning: &str) -> Result<String> {
        let lines = self
            .lines
            .as_mut()
            .context("another thread reads its lines")?;
        for line in lines {
            let line = line?;
            if line.starts_with(beginning) {
                return Ok(line);
            }
        }
        bail!("a process ended before it printed {beginning:?}")
    }

    /// Resident memory of the process.
    fn resident_kib(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.trim().split(' ').next()?.parse().ok());
        number.with_context(|| format!("{path}: no VmRSS; the process is gone"))
    }
}

impl Drop for FloodProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_option_is_named() {
        let parse = |line: &str| {
            let flags: Vec<String> = line.split(' ').map(str::to_owned).collect();
            FloodPlan::parse(&flags)
                .map(|p| p.rate)
                .map_err(|e| e.to_string())
        };
        assert_eq!(parse("--rate 5 --seconds 2"), Ok(5));
        assert!(parse("--rate 0").unwrap_err().contains("--rate 0"));
        assert!(parse("--rate").unwrap_err().contains("--rate"));
        assert!(parse("--hard 1").unwrap_err().contains("--hard"));
        assert_eq!(parse("--kinds duplicates,mixed"), Ok(100_000));
        let error = parse("--kinds mixed,soft").unwrap_err();
        assert!(error.contains("--kinds soft: no such kind"), "{error}");
    }
}
