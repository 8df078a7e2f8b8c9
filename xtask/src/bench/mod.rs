//! Wire benchmark:
//! `cargo xtask bench wire [--quick] [--pin 0|1|2] [--only NAME,…] [--json FILE]`.
//! Round trips of two processes over loopback UDP, compared with Cyclone DDS and
//! with plain UDP, in turns within one run, in a private network.
//!
//! Wall time is reported and never fails a build. Absolute numbers depend on the
//! machine, ratios within one run much less. Every program runs without
//! CAP_NET_ADMIN, so that none gets larger socket buffers than an ordinary user
//! would.

pub mod composition;
mod executor;
mod footprint;
pub mod host;
pub mod loss;
mod report;
pub mod robot;
mod round_trip;
pub mod security;
mod simultaneous_start;
mod wire_peer;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};

use crate::{namespace, peers};
use wire_peer::Pinning;

/// Name of the task that runs inside the namespace.
pub const INSIDE_TASK: &str = "bench-inside";

const USAGE: &str = "usage: cargo xtask bench wire [--quick] [--pin 0|1|2] [--only NAME,...] [--repeats N] [--json FILE]\n\
     names: floor cyclone cyclone-tuned pteros; --pin: 0 no pinning,\n\
     1 both processes on one CPU, 2 on one each; without it 0, then 1 (--quick: 0)";

/// Parsed command line.
pub struct WireBenchPlan {
    quick: bool,
    pinnings: Vec<Pinning>,
    only: Vec<String>,
    repeats: usize,
    json: Option<PathBuf>,
}

/// All results of one run.
pub struct WireResults {
    repeats: usize,
    implementations: Vec<&'static str>,
    tables: Vec<(Pinning, Vec<round_trip::Row>)>,
    footprints: Vec<footprint::Footprint>,
    binary: Option<footprint::Binary>,
}

/// Builds the programs, then measures them in a private network.
pub fn run(arguments: &[String]) -> Result<ExitStatus> {
    let flags = match arguments {
        [task, flags @ ..] if task == "wire" => flags,
        [task, flags @ ..] if task == "loss" => return loss::run(flags),
        [task, flags @ ..] if task == "host" => return host::run(flags),
        [task, flags @ ..] if task == "composition" => return composition::run(flags),
        [task, flags @ ..] if task == "robot" => return robot::run(flags),
        [task, flags @ ..] if task == "executor" => return executor::run(flags),
        [task, flags @ ..] if task == "security" => return security::run(flags),
        _ => bail!(
            "usage: cargo xtask bench host|wire|loss|composition|robot|executor|security [OPTION...]"
        ),
    };
    WireBenchPlan::parse(flags)?;
    let folder = peers::prepare_for_bench()?;
    build_ours()?;
    let own = std::env::current_exe()?;
    namespace::command(true, &own.to_string_lossy())?
        .arg(INSIDE_TASK)
        .arg(folder)
        .args(flags)
        .status()
        .context("run the bench in a private network")
}

pub fn build_ours() -> Result<()> {
    build(&["ping-pong", "pteros-cli"])
}

/// Builds packages of the workspace in release mode, as users do.
fn build(packages: &[&str]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--release", "--quiet"])
        .args(packages.iter().flat_map(|name| ["--package", name]))
        .status()
        .context("run cargo")?;
    if !status.success() {
        bail!("cargo build --release: {status}");
    }
    Ok(())
}

/// Runs the measurement inside the namespace.
pub fn run_inside(arguments: &[String]) -> Result<()> {
    let [folder, flags @ ..] = arguments else {
        bail!(USAGE);
    };
    let plan = WireBenchPlan::parse(flags)?;
    let programs = peers::target_folder()?.join("release");
    let mut implementations = wire_peer::all(Path::new(folder), &programs);
    if !plan.only.is_empty() {
        implementations.retain(|c| plan.only.iter().any(|name| name == c.name));
    }
    let tables = plan
        .pinnings
        .iter()
        .map(|pinning| {
            (
                *pinning,
                round_trip::measure(&implementations, &plan, *pinning),
            )
        })
        .collect();
    let findings = WireResults {
        repeats: plan.repeats,
        tables,
        footprints: footprint::measure(&implementations)?,
        binary: footprint::binary(&programs.join("pteros"))?,
        implementations: implementations.iter().map(|c| c.name).collect(),
    };
    print!("{}", report::text(&findings));
    if let Some(file) = &plan.json {
        let json = serde_json::to_string_pretty(&report::json(&findings))?;
        std::fs::write(file, json + "\n").with_context(|| format!("write {}", file.display()))?;
    }
    Ok(())
}

impl WireBenchPlan {
    fn parse(flags: &[String]) -> Result<Self> {
        let mut plan = Self {
            quick: false,
            pinnings: Vec::new(),
            only: Vec::new(),
            repeats: 0,
            json: None,
        };
        let mut flags = flags.iter();
        while let Some(flag) = flags.next() {
            let mut value = || {
                flags
                    .next()
                    .with_context(|| format!("{flag} lacks a value"))
            };
            match flag.as_str() {
                "--quick" => plan.quick = true,
                "--json" => plan.json = Some(value()?.into()),
                "--repeats" => plan.repeats = value()?.parse().context("--repeats")?,
                "--only" => plan.only = value()?.split(',').map(str::to_owned).collect(),
                "--pin" => {
                    plan.pinnings.push(match value()?.as_str() {
                        "0" => Pinning::None,
                        "1" => Pinning::OneCpu,
                        "2" => Pinning::TwoCpus,
                        other => bail!("--pin {other}: expected 0, 1 or 2"),
                    });
                }
                other => bail!("{other}: no such option\n{USAGE}"),
            }
        }
        for name in &plan.only {
            if !wire_peer::NAMES.contains(&name.as_str()) {
                bail!("--only {name}: expected {}", wire_peer::NAMES.join(", "));
            }
        }
        if plan.pinnings.is_empty() {
            plan.pinnings.push(Pinning::None);
            plan.pinnings
                .extend((!plan.quick).then_some(Pinning::OneCpu));
        }
        if plan.repeats == 0 {
            plan.repeats = if plan.quick { 2 } else { 5 };
        }
        Ok(plan)
    }
}

/// The median; of an even number of values the lower one of the middle two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len().saturating_sub(1) / 2;
    values.get(middle).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_repeats_ignores_one_disturbed_run() {
        assert_eq!(median(vec![9000.0, 11.0, 12.0]), 12.0);
        assert_eq!(median(vec![2.0, 1.0]), 1.0);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn a_wrong_option_is_named() {
        let parse = |line: &str| {
            let flags: Vec<String> = line.split(' ').map(str::to_owned).collect();
            WireBenchPlan::parse(&flags)
                .map(drop)
                .map_err(|e| e.to_string())
        };
        assert_eq!(parse("--quick --pin 2 --only floor,pteros"), Ok(()));
        assert!(parse("--pin 3").unwrap_err().contains("--pin 3"));
        assert!(parse("--only them").unwrap_err().contains("them"));
        assert!(parse("--json").unwrap_err().contains("--json"));
    }
}
