//! `cargo xtask bench loss [--quick] [--only NAME,…]`: latency of reliable messages
//! over a lossy cable, compared with Cyclone DDS and Fast DDS.
//!
//! Two network namespaces act as hosts. A relay between them delays and drops
//! datagrams. The latency of a message is the time between the publisher's `sent`
//! line and the subscriber's `received` line; this process stamps both when it
//! reads them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use pteros_testbed::hosts::NAMES as HOSTS;
use pteros_testbed::{EmulatedLink, TwoHosts};

use crate::{namespace, peers};

/// Name of the task that runs inside the namespace.
pub const INSIDE_TASK: &str = "bench-loss-inside";

const USAGE: &str =
    "usage: cargo xtask bench loss [--quick] [--only NAME,...]\nnames: pteros cyclone fastdds";

const NAMES: [&str; 3] = ["pteros", "cyclone", "fastdds"];

/// Delay of the cable in one direction.
const DELAY_US: u32 = 500;

/// Time limit for the results, however lossy the cable is.
const TIMEOUT: Duration = Duration::from_secs(20);

struct Experiment {
    name: &'static str,
    loss_per_mille: u32,
    rate: u32,
    count: u32,
    quick_count: u32,
}

const EXPERIMENTS: [Experiment; 3] = [
    Experiment {
        name: "no loss, 1 kHz",
        loss_per_mille: 0,
        rate: 1000,
        count: 10_000,
        quick_count: 3_000,
    },
    Experiment {
        name: "5 % loss, 1 kHz",
        loss_per_mille: 50,
        rate: 1000,
        count: 30_000,
        quick_count: 5_000,
    },
    Experiment {
        name: "30 % loss, 2 Hz",
        loss_per_mille: 300,
        rate: 2,
        count: 120,
        quick_count: 30,
    },
];

/// Builds the programs, then measures them in a private network.
pub fn run(flags: &[String]) -> Result<ExitStatus> {
    parse(flags)?;
    let folder = peers::prepare_for_bench()?;
    super::build_ours()?;
    let own = std::env::current_exe()?;
    namespace::command(true, &own.to_string_lossy())?
        .arg(INSIDE_TASK)
        .arg(folder)
        .args(flags)
        .status()
        .context("run the bench in a private network")
}

fn parse(flags: &[String]) -> Result<(bool, Vec<&'static str>)> {
    let mut quick = false;
    let mut only = NAMES.to_vec();
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        match flag.as_str() {
            "--quick" => quick = true,
            "--only" => {
                let wanted = flags.next().context("--only needs a value")?;
                for name in wanted.split(',') {
                    if !NAMES.contains(&name) {
                        bail!("--only {name}: expected {}", NAMES.join(", "));
                    }
                }
                only.retain(|name| wanted.split(',').any(|w| w == *name));
            }
            other => bail!("{other}: no such option\n{USAGE}"),
        }
    }
    Ok((quick, only))
}

/// Runs the measurement inside the namespace.
pub fn run_inside(arguments: &[String]) -> Result<()> {
    let [folder, flags @ ..] = arguments else {
        bail!(USAGE);
    };
    let (quick, only) = parse(flags)?;
    let release = peers::target_folder()?.join("release");
    println!(
        "Two hosts, {:.1} ms one way, reliable, short texts, keep last 1000; milliseconds from write to arrival",
        f64::from(DELAY_US) / 1e3
    );
    println!(
        "{:<18}{:<10}{:>9}{:>9}{:>9}{:>9}{:>9}",
        "", "", "p50", "p99", "max", "arrived", "of"
    );
    for experiment in &EXPERIMENTS {
        let count = if quick {
            experiment.quick_count
        } else {
            experiment.count
        };
        for name in &only {
            let program = match *name {
                "pteros" => release.join("ping-pong"),
                _ => Path::new(folder).join(format!("{name}-peer")),
            };
            if !program.exists() {
                println!(
                    "{:<18}{name:<10} not built; see cargo xtask peers",
                    experiment.name
                );
                continue;
            }
            let mut late = measure(&program, experiment, count)?;
            late.sort_by(f64::total_cmp);
            let at = |percent: usize| {
                let index = (late.len() * percent / 100).min(late.len().saturating_sub(1));
                late.get(index).copied().unwrap_or(f64::NAN)
            };
            println!(
                "{:<18}{name:<10}{:>9.2}{:>9.2}{:>9.2}{:>9}{:>9}",
                experiment.name,
                at(50),
                at(99),
                at(100),
                late.len(),
                count
            );
        }
    }
    Ok(())
}

/// Time at which one side reported that it sent or received a message.
struct Stamp {
    sent: bool,
    text: String,
    at: Instant,
}

/// Returns the latency of each received message in milliseconds.
fn measure(program: &PathBuf, experiment: &Experiment, count: u32) -> Result<Vec<f64>> {
    let hosts = TwoHosts::join(EmulatedLink {
        bits_per_second: 0,
        loss_per_mille: experiment.loss_per_mille,
        delay_us: DELAY_US,
        seed: 77,
    })?;
    let (stamps, stamped) = mpsc::channel();
    let side = |host: &str, line: String| -> Result<Side> {
        let mut command = Command::new(program);
        command.args(line.split(' '));
        command.env("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET");
        Side::start(hosts.on(host, &command), stamps.clone())
    };
    let _subscriber = side(HOSTS[1], "sub --history keep_last:1000".into())?;
    let _publisher = side(
        HOSTS[0],
        format!(
            "pub --history keep_last:1000 --count {count} --rate {} --wait-matched 1 --settle 3 --linger 20",
            experiment.rate
        ),
    )?;
    drop(stamps);
    // Either line may be read first.
    let mut met: BTreeMap<String, (Option<Instant>, Option<Instant>)> = BTreeMap::new();
    let mut late = Vec::new();
    let whole = Duration::from_secs(u64::from(count / experiment.rate));
    let end = Instant::now() + whole + 2 * TIMEOUT;
    while late.len() < count as usize {
        let left = end.saturating_duration_since(Instant::now());
        let Ok(stamp) = stamped.recv_timeout(left) else {
            break;
        };
        let pair = met.entry(stamp.text).or_default();
        if stamp.sent {
            pair.0 = Some(stamp.at)
        } else {
            pair.1 = Some(stamp.at)
        }
        if let (Some(sent), Some(received)) = *pair {
            late.push(received.saturating_duration_since(sent).as_secs_f64() * 1e3);
        }
    }
    Ok(late)
}

/// A process whose lines are stamped, killed on drop.
struct Side(Child);

impl Side {
    fn start(mut command: Command, stamps: Sender<Stamp>) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {command:?}"))?;
        let out = child.stdout.take().context("its output is piped")?;
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let at = Instant::now();
                let sent = line.starts_with("sent ");
                if !sent && !line.starts_with("received ") {
                    continue;
                }
                let Some((_, text)) = line.split_once("text=") else {
                    continue;
                };
                let text = text.to_owned();
                if stamps.send(Stamp { sent, text, at }).is_err() {
                    break;
                }
            }
        });
        Ok(Self(child))
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implementations_are_selected_by_name() {
        let parsed = |line: &str| {
            let flags: Vec<String> = line.split(' ').map(str::to_owned).collect();
            parse(&flags).map_err(|e| e.to_string())
        };
        assert_eq!(
            parsed("--quick --only fastdds,pteros"),
            Ok((true, vec!["pteros", "fastdds"]))
        );
        assert!(parsed("--only them").unwrap_err().contains("them"));
        assert!(parsed("--slow").unwrap_err().contains("--slow"));
    }
}
