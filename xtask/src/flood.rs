//! `cargo xtask flood [--seconds N] [--rate HZ]`: two processes exchange reliable
//! messages while a third throws hostile datagrams at both, 100 000 a second.
//!
//! Alone in a private network; the attacker has a CPU of its own, the attacked
//! share another. What must hold: nobody crashes, memory grows by less than
//! [`GROWTH_KIB_MAX`], and at least nine in ten messages still arrive in time.

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

/// The task that runs inside the namespace.
pub const INSIDE_TASK: &str = "flood-inside";

const USAGE: &str = "usage: cargo xtask flood [--seconds N] [--rate HZ]";

/// Legitimate messages a second.
const MESSAGE_RATE: u32 = 2_000;
/// What each process may grow by.
const GROWTH_KIB_MAX: u64 = 32 << 10;
/// How many messages must arrive before the publisher ends.
const SHARE_MIN: f64 = 0.9;

struct Plan {
    seconds: u32,
    rate: u32,
}

impl Plan {
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
                number.with_context(|| format!("{flag} {value}: expected a number from 1 on"))
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

/// Builds what is attacked, then attacks it in a private network.
pub fn run(flags: &[String]) -> Result<ExitStatus> {
    Plan::parse(flags)?;
    bench::build_ours()?;
    let own = std::env::current_exe()?;
    namespace::command(true, &own.to_string_lossy())?
        .arg(INSIDE_TASK)
        .args(flags)
        .status()
        .context("run the flood in a private network")
}

/// The inner half.
pub fn run_inside(flags: &[String]) -> Result<()> {
    let plan = Plan::parse(flags)?;
    let program = peers::target_folder()?.join("release/ping-pong");
    let calm = exchange(&program, plan.seconds.min(5), None)?;
    println!("without a flood: {calm}");
    let flooded = exchange(&program, plan.seconds, Some(plan.rate))?;
    println!("{} packets a second: {flooded}", plan.rate);
    ensure!(
        calm.share() >= SHARE_MIN,
        "too few messages arrive even without a flood; is the machine busy?"
    );
    ensure!(
        flooded.share() >= SHARE_MIN * calm.share(),
        "fewer than {SHARE_MIN} of the messages arrived in time"
    );
    ensure!(
        flooded.growth_kib <= GROWTH_KIB_MAX,
        "a process grew by more than {GROWTH_KIB_MAX} KiB"
    );
    Ok(())
}

/// What became of one exchange of messages.
struct Outcome {
    sent: u32,
    in_time: u32,
    growth_kib: u64,
    hostile: Option<String>,
}

impl Outcome {
    fn share(&self) -> f64 {
        f64::from(self.in_time) / f64::from(self.sent)
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} of {} messages in time ({:.1} %), {} KiB grown",
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

/// Lets a publisher and a subscriber talk, with a flood around them.
fn exchange(program: &Path, seconds: u32, flood: Option<u32>) -> Result<Outcome> {
    let count = MESSAGE_RATE * seconds;
    let attacked = |line: &str| {
        let mut command = Command::new("taskset");
        command.args(["-c", "1"]).arg(program);
        // The flood comes by UDP; so does what it is to disturb.
        command.env("PTEROS_SHARED_MEMORY", "off");
        command.args(line.split(' '));
        Process::start(command)
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
            Some(Process::start(command)?)
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
    // It lingers a second longer.
    let after = [subscriber.resident_kib()?, publisher.resident_kib()?];
    publisher.wait_for("ended sent=")?;
    let in_time = arrived.load(Ordering::Relaxed);
    let growth = before.iter().zip(after).map(|(b, a)| a.saturating_sub(*b));
    let hostile = match &mut attacker {
        None => None,
        Some(attacker) => Some(attacker.wait_for("threw ")?),
    };
    ensure!(
        subscriber.child.try_wait()?.is_none(),
        "the subscriber crashed"
    );
    ensure!(publisher.child.wait()?.success(), "the publisher crashed");
    Ok(Outcome {
        sent: count,
        in_time,
        growth_kib: growth.max().unwrap_or(0),
        hostile,
    })
}

/// One process and its lines; killed when dropped.
struct Process {
    child: Child,
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

impl Process {
    fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {command:?}"))?;
        let lines = child.stdout.take().map(|out| BufReader::new(out).lines());
        Ok(Self { child, lines })
    }

    /// Reads up to a line that begins so; the whole line.
    fn wait_for(&mut self, beginning: &str) -> Result<String> {
        let lines = self
            .lines
            .as_mut()
            .context("its lines are read elsewhere")?;
        for line in lines {
            let line = line?;
            if line.starts_with(beginning) {
                return Ok(line);
            }
        }
        bail!("a process ended before it said {beginning:?}")
    }

    /// Memory it has in use now.
    fn resident_kib(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.trim().split(' ').next()?.parse().ok());
        number.with_context(|| format!("{path}: no VmRSS; the process is gone"))
    }
}

impl Drop for Process {
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
            Plan::parse(&flags)
                .map(|p| p.rate)
                .map_err(|e| e.to_string())
        };
        assert_eq!(parse("--rate 5 --seconds 2"), Ok(5));
        assert!(parse("--rate 0").unwrap_err().contains("--rate 0"));
        assert!(parse("--rate").unwrap_err().contains("--rate"));
        assert!(parse("--hard 1").unwrap_err().contains("--hard"));
    }
}
