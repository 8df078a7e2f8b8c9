//! Flood test, `cargo xtask flood [--seconds N] [--rate HZ]`: two processes
//! exchange reliable messages while a third sends hostile datagrams to both, 100
//! 000 a second.
//!
//! It runs in a private network. The attacker has a CPU of its own; the attacked
//! processes share another. The test fails if a process crashes, if its memory
//! grows by [`GROWTH_KIB_MAX`] or more, or if fewer than nine in ten messages
//! arrive in time.

mod attacker;

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail, ensure};

use crate::{bench, namespace, peers};

pub use attacker::TASK as ATTACKER_TASK;
pub use attacker::run as attack;

/// Name of the task that runs inside the namespace.
pub const INSIDE_TASK: &str = "flood-inside";

const USAGE: &str = "usage: cargo xtask flood [--seconds N] [--rate HZ]";

/// Legitimate messages per second.
const MESSAGE_RATE: u32 = 2_000;
/// Limit of the memory growth of each process.
const GROWTH_KIB_MAX: u64 = 32 << 10;
/// Share of the messages that must arrive before the publisher ends.
const SHARE_MIN: f64 = 0.9;

struct FloodPlan {
    seconds: u32,
    rate: u32,
}

impl FloodPlan {
    fn parse(flags: &[String]) -> Result<Self> {
        let mut plan = Self {
            seconds: 20,
            rate: 100_000,
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
    let program = peers::target_folder()?.join("release/ping-pong");
    let calm = exchange(&program, plan.seconds.min(5), None)?;
    println!("without a flood: {calm}");
    let flooded = exchange(&program, plan.seconds, Some(plan.rate))?;
    println!("{} packets a second: {flooded}", plan.rate);
    ensure!(
        calm.share() >= SHARE_MIN,
        "too few messages arrive even without the flood; is the machine busy?"
    );
    ensure!(
        flooded.share() >= SHARE_MIN * calm.share(),
        "fewer than {SHARE_MIN} of the messages arrived in time"
    );
    ensure!(
        flooded.growth_kib <= GROWTH_KIB_MAX,
        "memory of a process grew by more than {GROWTH_KIB_MAX} KiB"
    );
    Ok(())
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
fn exchange(program: &Path, seconds: u32, flood: Option<u32>) -> Result<ExchangeOutcome> {
    let count = MESSAGE_RATE * seconds;
    let attacked = |line: &str| {
        let mut command = Command::new("taskset");
        command.args(["-c", "1"]).arg(program);
        // The flood arrives over UDP, so the messages must use UDP too.
        command.env("PTEROS_SHARED_MEMORY", "off");
        command.args(line.split(' '));
        FloodProcess::start(command)
    };
    let mut subscriber = attacked("sub --history keep_last:1000")?;
    let mut publisher = attacked(&format!(
        "pub --history keep_last:1000 --wait-matched 1 --settle 2 --linger 1 --rate {MESSAGE_RATE} --count {count}"
    ))?;
    subscriber.wait_for("received ")?;
    let before = [subscriber.resident_kib()?, publisher.resident_kib()?];
    let mut attacker = match flood {
        None => None,
        Some(rate) => {
            let mut command = Command::new("taskset");
            command.args(["-c", "0"]).arg(std::env::current_exe()?);
            command.args([ATTACKER_TASK, &rate.to_string(), &seconds.to_string()]);
            Some(FloodProcess::start(command)?)
        }
    };
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
    }
}
