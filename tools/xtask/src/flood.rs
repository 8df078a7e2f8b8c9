//! Flood test, `cargo xtask flood [--seconds N] [--rate HZ] [--kinds KIND,...] [--dev]`:
//! two processes exchange reliable messages while a third sends hostile datagrams to
//! both, 100 000 a second.
//!
//! It runs in a private network. The attacker is a process of the same host, or of a
//! host of its own, see [`Kind`]. It has a CPU of its own; the attacked
//! processes share another. The test fails if a process crashes, if its memory
//! grows by [`GROWTH_KIB_MAX`] or more, if fewer than 99 % of the messages arrive in
//! time, if the 99th percentile of the round trip exceeds [`P99_MICROS_MAX`], or if the
//! processes answer with more than [`ANSWERS_PER_SECOND_MAX`] datagrams.
//!
//! A kind that fails runs once more, after the others. `cargo xtask test --all` runs it
//! with `--seconds 3 --dev`.

mod attacker;
mod attacking_host;
mod forged;

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum as _;

use crate::{bench, namespace, peers, test};

use attacker::Kind;
use attacking_host::AttackingHost;

pub use attacker::Attack;

/// Name of the task that runs inside the namespace.
const INSIDE_TASK: &str = "flood-inside";

/// Hostile packets per second.
const RATE_DEFAULT: u32 = 100_000;
/// Legitimate messages per second.
const MESSAGE_RATE: u32 = 2_000;
/// Limit of the memory growth of each process.
const GROWTH_KIB_MAX: u64 = 32 << 10;
/// Share of the messages that must arrive before the publisher ends.
const SHARE_MIN: f64 = 0.99;
/// Limit of the 99th percentile of a round trip, in microseconds.
const P99_MICROS_MAX: f64 = 20_000.0;
/// Datagrams per second that the attacked processes may send beyond those without a
/// flood. Two writers answer ACKNACKs once per millisecond, and their readers answer these
/// heartbeats. Newcomers are asked for their address, in another number.
const ANSWERS_PER_SECOND_MAX: u64 = 12_000;
/// Answers per second to spoofed requests. Fewer mean that they reach no reader.
const ANSWERS_PER_SECOND_MIN: u64 = 500;
/// Round trips that are measured.
const ROUND_TRIPS: u32 = 5_000;
/// How long the flood of the round trips lasts if they do not end.
const ATTACK_SECONDS_MAX: u32 = 120;

#[derive(clap::Args)]
pub struct Arguments {
    /// Seconds for each kind
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Packets per second
    #[arg(long, value_name = "HZ", default_value_t = RATE_DEFAULT, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Kinds of packets; without it all
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',', default_values_t = Kind::value_variants().to_vec(), hide_default_value = true)]
    kinds: Vec<Kind>,
    /// Attack the programs of the development profile
    #[arg(long)]
    dev: bool,
}

impl Arguments {
    fn program(&self) -> Result<PathBuf> {
        let profile = if self.dev { "debug" } else { bench::PROFILE };
        Ok(peers::target_folder()?.join(profile).join("ping-pong"))
    }
}

/// Why this machine cannot run a flood.
pub fn is_possible() -> Result<(), String> {
    let failed = |error: anyhow::Error| format!("{error:#}");
    let mut probe = namespace::command(true, "ip").map_err(failed)?;
    let probe = probe
        .args(["link", "add", "probe0", "type", "veth"])
        .output();
    let probe = probe.map_err(|error| error.to_string())?;
    if !probe.status.success() {
        let said = String::from_utf8_lossy(&probe.stderr);
        return Err(format!(
            "no cable between network namespaces: {}",
            said.trim()
        ));
    }
    for cpu in ["0", "1"] {
        let pinned = Command::new("taskset").args(["-c", cpu, "true"]).output();
        if !pinned.is_ok_and(|output| output.status.success()) {
            return Err(format!(
                "attacker and attacked need a CPU each, and `taskset -c {cpu}` fails"
            ));
        }
    }
    Ok(())
}

/// Builds the programs, then attacks them in a private network.
pub fn run(arguments: &Arguments) -> Result<ExitStatus> {
    if arguments.dev {
        test::build_ping_pong()?;
    } else {
        bench::build(&["-p", "ping-pong"])?;
    }
    is_possible().map_err(anyhow::Error::msg)?;
    command(arguments)?
        .status()
        .context("run the flood in a private network")
}

/// The command that attacks in a private network. The programs are built.
fn command(arguments: &Arguments) -> Result<Command> {
    let own = std::env::current_exe()?;
    let mut command = namespace::command(true, &own.to_string_lossy())?;
    let [seconds, rate] = [arguments.seconds, arguments.rate].map(|number| number.to_string());
    command.args([INSIDE_TASK, "--seconds", &seconds, "--rate", &rate]);
    for kind in &arguments.kinds {
        command.args(["--kinds", &kind.name()]);
    }
    command.args(arguments.dev.then_some("--dev"));
    Ok(command)
}

/// The command for a few seconds of each kind, as `cargo xtask test --all` runs it.
pub fn short_command() -> Result<Command> {
    command(&Arguments {
        seconds: 3,
        rate: RATE_DEFAULT,
        kinds: Kind::value_variants().to_vec(),
        dev: true,
    })
}

/// Runs the measurement inside the namespace. Prints `unsteady: ` before a kind that
/// failed once.
pub fn run_inside(plan: Arguments) -> Result<()> {
    let lab = FloodLab {
        program: plan.program()?,
        attacking_host: AttackingHost::attach()?,
        seconds: plan.seconds,
        rate: plan.rate,
    };
    let calm = lab.measure_calm()?;
    let mut failed = Vec::new();
    for kind in plan.kinds {
        if let Err(error) = lab.attack(kind, &calm) {
            println!("{}: {error:#}", kind.name());
            failed.push(kind);
        }
    }
    let mut failed_twice = Vec::new();
    for kind in failed {
        println!("once more, alone: {}", kind.name());
        match lab.attack(kind, &calm) {
            Ok(()) => println!("{UNSTEADY}{}", kind.name()),
            Err(error) => failed_twice.push(format!("{}: {error:#}", kind.name())),
        }
    }
    ensure!(failed_twice.is_empty(), "{}", failed_twice.join("; "));
    Ok(())
}

/// Begins the line of a kind that failed once and passed alone.
pub const UNSTEADY: &str = "unsteady: ";

/// The attacked host and the attacking one.
struct FloodLab {
    program: PathBuf,
    attacking_host: AttackingHost,
    seconds: u32,
    rate: u32,
}

impl FloodLab {
    /// Exchanges messages without a flood.
    fn measure_calm(&self) -> Result<ExchangeOutcome> {
        let calm = self.exchange(self.seconds.min(5), None)?;
        let calm_p99 = self.round_trip_p99(None)?;
        println!("without a flood: {calm}; round trip p99 {calm_p99:.0} us");
        ensure!(
            calm.share() >= SHARE_MIN,
            "too few messages arrive even without the flood; is the machine busy?"
        );
        Ok(calm)
    }

    /// Attacks with one kind, and checks what arrives.
    fn attack(&self, kind: Kind, calm: &ExchangeOutcome) -> Result<()> {
        let flooded = self.exchange(self.seconds, Some(kind))?;
        let p99 = self.round_trip_p99(Some(kind))?;
        println!(
            "{}, {} packets a second: {flooded}; round trip p99 {p99:.0} us",
            kind.name(),
            self.rate
        );
        ensure!(
            flooded.share() >= SHARE_MIN * calm.share(),
            "fewer than {SHARE_MIN} of the messages arrived in time"
        );
        let answers = flooded.sent_per_second.saturating_sub(calm.sent_per_second);
        ensure!(
            kind == Kind::Announcements || answers <= ANSWERS_PER_SECOND_MAX,
            "{answers} answers a second, more than {ANSWERS_PER_SECOND_MAX}"
        );
        ensure!(
            kind != Kind::SpoofedRequests || answers >= ANSWERS_PER_SECOND_MIN,
            "{answers} answers a second: the spoofed requests name no matched endpoints"
        );
        ensure!(
            flooded.growth_kib <= GROWTH_KIB_MAX,
            "memory of a process grew by more than {GROWTH_KIB_MAX} KiB"
        );
        ensure!(
            p99 <= P99_MICROS_MAX,
            "the 99th percentile of a round trip is {p99:.0} us, more than {P99_MICROS_MAX}"
        );
        Ok(())
    }

    /// Starts an attacker, on a CPU of its own. It waits for [`FloodProcess::begin`].
    fn attacker(&self, kind: Kind, seconds: u32) -> Result<FloodProcess> {
        let mut command = match kind.is_from_attacking_host() {
            true => self.attacking_host.command("taskset"),
            false => Command::new("taskset"),
        };
        command.args(["-c", "0"]).arg(std::env::current_exe()?);
        command.args([attacker::TASK, &self.rate.to_string()]);
        command.args([&seconds.to_string(), &kind.name()]);
        let mut attacker = FloodProcess::start(command)?;
        attacker.wait_for("listens")?;
        Ok(attacker)
    }

    /// The 99th percentile of the round trip, in microseconds.
    fn round_trip_p99(&self, kind: Option<Kind>) -> Result<f64> {
        let start = |kind| self.attacker(kind, ATTACK_SECONDS_MAX);
        let mut attacker = kind.map(start).transpose()?;
        let mut pong = attacked(&self.program, "pong")?;
        pong.wait_for("ready")?;
        if let Some(attacker) = &mut attacker {
            attacker.begin()?;
        }
        let line = format!("ping --count {ROUND_TRIPS} --timeout 120");
        let mut ping = attacked(&self.program, &line)?;
        let line = ping.wait_for("rtt ")?;
        let p99 = line
            .split(' ')
            .find_map(|word| word.strip_prefix("p99=")?.parse().ok());
        // The flood ends with the round trips.
        drop(attacker.take());
        p99.with_context(|| format!("no round trip was complete: {line}"))
    }

    /// Runs a publisher and a subscriber, with or without a flood.
    fn exchange(&self, seconds: u32, kind: Option<Kind>) -> Result<ExchangeOutcome> {
        let count = MESSAGE_RATE * seconds;
        let start = |kind| self.attacker(kind, seconds);
        let mut attacker = kind.map(start).transpose()?;
        let mut subscriber = attacked(&self.program, "sub --history keep_last:1000")?;
        let mut publisher = attacked(
            &self.program,
            &format!(
                "pub --history keep_last:1000 --wait-matched 1 --settle 2 --linger 1 --rate {MESSAGE_RATE} --count {count}"
            ),
        )?;
        subscriber.wait_for("received ")?;
        let before = [subscriber.resident_kib()?, publisher.resident_kib()?];
        let udp_before = udp_counts()?;
        if let Some(attacker) = &mut attacker {
            attacker.begin()?;
        }
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
        let udp = udp_counts()?.since(udp_before);
        let in_time = arrived.load(Ordering::Relaxed);
        let growth = before.iter().zip(after).map(|(b, a)| a.saturating_sub(*b));
        let mut own = udp.sent;
        let hostile = match attacker.as_mut().zip(kind) {
            None => None,
            Some((attacker, kind)) => {
                let sent = attacker.wait_for("sent ")?;
                let arrived = udp.arrived;
                ensure!(
                    arrived >= u64::from(self.rate) * u64::from(seconds) / 2,
                    "{sent}; of all datagrams {arrived} arrived, so this was no flood"
                );
                if !kind.is_from_attacking_host() {
                    let numbers = sent.split(' ').filter_map(|word| word.parse::<u64>().ok());
                    // All, those of a second, and those that the kernel refused.
                    let [all, _, refused] = numbers.collect::<Vec<_>>()[..] else {
                        bail!("{sent}: not the line of an attacker");
                    };
                    own = own.saturating_sub(all.saturating_sub(refused));
                }
                Some(sent)
            }
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
            sent_per_second: own / u64::from(seconds).max(1),
            hostile,
        })
    }
}

/// Datagrams of the sockets of this network namespace.
#[derive(Clone, Copy)]
struct UdpCounts {
    /// Those received, and those dropped because a socket was full.
    arrived: u64,
    sent: u64,
}

impl UdpCounts {
    fn since(self, before: Self) -> Self {
        Self {
            arrived: self.arrived - before.arrived,
            sent: self.sent - before.sent,
        }
    }
}

fn udp_counts() -> Result<UdpCounts> {
    let text =
        std::fs::read_to_string("/proc/self/net/snmp").context("read /proc/self/net/snmp")?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, numbers) = lines.next().zip(lines.next()).context("no counts of UDP")?;
    let of = |name: &str| {
        let mut columns = names.split(' ').zip(numbers.split(' '));
        let found = columns.find(|(column, _)| *column == name);
        let number = found.and_then(|(_, number)| number.parse::<u64>().ok());
        number.with_context(|| format!("no {name} in /proc/self/net/snmp"))
    };
    Ok(UdpCounts {
        arrived: of("InDatagrams")? + of("RcvbufErrors")?,
        sent: of("OutDatagrams")?,
    })
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

/// Result of one exchange of messages.
struct ExchangeOutcome {
    sent: u32,
    in_time: u32,
    growth_kib: u64,
    /// Datagrams that the attacked processes sent.
    sent_per_second: u64,
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
            "{} of {} messages in time ({:.1} %), {} datagrams a second, memory grew by {} KiB",
            self.in_time,
            self.sent,
            100.0 * self.share(),
            self.sent_per_second,
            self.growth_kib
        )?;
        match &self.hostile {
            Some(said) => write!(f, "; {said}"),
            None => Ok(()),
        }
    }
}

/// A process and its output lines, killed on drop.
struct FloodProcess {
    child: Child,
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

impl FloodProcess {
    fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {command:?}"))?;
        let lines = child.stdout.take().map(|out| BufReader::new(out).lines());
        Ok(Self { child, lines })
    }

    /// Lets an attacker send.
    fn begin(&mut self) -> Result<()> {
        let mut stdin = self.child.stdin.take().context("begins once")?;
        writeln!(stdin).context("let the attacker begin")?;
        self.wait_for("begins")?;
        Ok(())
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
