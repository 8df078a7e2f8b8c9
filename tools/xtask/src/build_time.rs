//! Build time of the README's first command, from nothing: `cargo xtask bench build`.
//!
//! Clones the last commit into an empty folder, builds `cargo run --release -- demo`
//! there without the network, and runs the demo. Reports the wall time, the CPU time
//! of all compilers, and the slowest crates. Like every benchmark it never fails
//! because of a figure.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::Value;

use crate::checkout::root;

/// What the build may take on two cores; shown beside what it took.
const WALL_MAX: Duration = Duration::from_secs(150);
const CPU_MAX: Duration = Duration::from_secs(240);

/// How many crates are listed.
const SLOWEST: usize = 5;

/// Where cargo's timing report keeps its data: a JavaScript constant that is JSON.
const REPORT: &str = "cargo-timings/cargo-timing.html";
const UNIT_DATA: &str = "const UNIT_DATA = ";

/// Builds from nothing, and prints what it took.
pub fn run(arguments: &[String]) -> Result<ExitStatus> {
    if let [other, ..] = arguments {
        bail!("unknown option {other:?}; usage: cargo xtask bench build");
    }
    let root = root();
    let folder = clone(&root)?;
    println!("load before: {}", load_average()?);
    let (began, cpu_before) = (Instant::now(), children_cpu()?);
    let status = cargo(&folder)
        .args(["build", "--release", "--locked", "--timings"])
        .status()
        .context("run cargo build")?;
    let (wall, cpu) = (began.elapsed(), children_cpu()?.saturating_sub(cpu_before));
    if !status.success() {
        bail!("the build failed ({status}); `cargo fetch` fills the registry's cache");
    }
    let report = fs::read_to_string(folder.join("target").join(REPORT))
        .context("read cargo's timing report")?;
    print_results(wall, cpu, &slowest(&report)?);
    // The same command again builds nothing, and works.
    let status = cargo(&folder)
        .args([
            "run",
            "--release",
            "--locked",
            "--",
            "demo",
            "--seconds",
            "3",
        ])
        .status()
        .context("run the demo")?;
    fs::remove_dir_all(&folder).context("remove the clone")?;
    Ok(status)
}

/// A fresh clone of the last commit. What is not committed is not measured.
fn clone(root: &Path) -> Result<PathBuf> {
    let folder = root.join("target/bench-build");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("remove {}", folder.display()))?;
    }
    let status = Command::new("git")
        .args(["clone", "--quiet", "--no-hardlinks"])
        .args([root, &folder])
        .status()
        .context("run git clone")?;
    if !status.success() {
        bail!("git clone failed ({status})");
    }
    Ok(folder)
}

/// Cargo in the clone, with what an unprepared shell would give it, and no network.
fn cargo(folder: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(folder).env("CARGO_NET_OFFLINE", "true");
    for (variable, _) in std::env::vars() {
        let changes_builds = [
            "CARGO_BUILD_",
            "CARGO_INCREMENTAL",
            "CARGO_PROFILE_",
            "CARGO_TARGET_",
            "RUSTC_WRAPPER",
            "RUSTFLAGS",
        ];
        if changes_builds
            .iter()
            .any(|start| variable.starts_with(start))
        {
            cargo.env_remove(variable);
        }
    }
    cargo
}

/// CPU time of ended children and their children.
fn children_cpu() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("read the children's CPU time")?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(micros.unsigned_abs()))
}

fn load_average() -> Result<String> {
    let text = fs::read_to_string("/proc/loadavg").context("read /proc/loadavg")?;
    Ok(text.split_whitespace().next().unwrap_or_default().into())
}

/// The crates that took longest, build scripts included, with their seconds.
fn slowest(report: &str) -> Result<Vec<(String, f64)>> {
    let data = report
        .split_once(UNIT_DATA)
        .context("cargo's timing report has another format: no UNIT_DATA")?
        .1;
    let mut units = serde_json::Deserializer::from_str(data).into_iter::<Value>();
    let units = units.next().context("UNIT_DATA is empty")??;
    let mut seconds: BTreeMap<String, f64> = BTreeMap::new();
    for unit in units.as_array().context("UNIT_DATA is no list")? {
        let (Some(name), Some(duration)) = (unit["name"].as_str(), unit["duration"].as_f64())
        else {
            bail!("a unit of cargo's timing report has no name or duration: {unit}");
        };
        *seconds.entry(name.to_owned()).or_default() += duration;
    }
    let mut crates: Vec<_> = seconds.into_iter().collect();
    crates.sort_by(|a, b| b.1.total_cmp(&a.1));
    crates.truncate(SLOWEST);
    Ok(crates)
}

fn print_results(wall: Duration, cpu: Duration, slowest: &[(String, f64)]) {
    let row = |what: &str, took: Duration, max: Duration| {
        println!(
            "{what:<6}{:>8.1} s   (at most {} s)",
            took.as_secs_f64(),
            max.as_secs()
        );
    };
    println!("cold build of `cargo run --release -- demo`");
    row("wall", wall, WALL_MAX);
    row("CPU", cpu, CPU_MAX);
    println!("slowest crates, seconds of wall time");
    for (name, seconds) in slowest {
        println!("{seconds:>10.1}   {name}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crates_units_are_added_up_and_the_slowest_come_first() {
        let report = "<script>\nconst UNIT_DATA = [{\"name\": \"a\", \"duration\": 1.5}, \
                      {\"name\": \"b\", \"duration\": 2.0}, {\"name\": \"a\", \"duration\": 1.0}];\n\
                      const CONCURRENCY_DATA = [];</script>";
        let found = slowest(report).unwrap();
        assert_eq!(found, [("a".to_owned(), 2.5), ("b".to_owned(), 2.0)]);
        assert!(slowest("<html>").is_err());
    }
}
