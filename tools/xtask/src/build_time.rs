//! Build time of the README's first commands, from nothing: `cargo xtask bench build`.
//!
//! Clones the last commit into an empty folder, builds `cargo run --release -- demo`
//! there without the network, and runs the demo. Then it empties the target folder and
//! runs `cargo xtask test`. Reports the wall time and the CPU time of each, the slowest
//! crates of the demo, and the disk that the tests take. Like every benchmark it never
//! fails because of a figure.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::Value;

use crate::checkout::root;

/// What the build of the demo may take on two cores; shown beside what it took.
const WALL_MAX: Duration = Duration::from_secs(150);
const CPU_MAX: Duration = Duration::from_secs(240);

/// What building and running the quick tests may take on two cores.
const TESTS_WALL_MAX: Duration = Duration::from_secs(480);
const TESTS_CPU_MAX: Duration = Duration::from_secs(960);

/// What the target folder of the quick tests may take, in units of 10⁹ bytes.
const TESTS_DISK_MAX: f64 = 5.0;

/// How many crates are listed.
const SLOWEST: usize = 5;

/// Where cargo's timing report keeps its data: a JavaScript constant that is JSON.
const REPORT: &str = "cargo-timings/cargo-timing.html";
const UNIT_DATA: &str = "const UNIT_DATA = ";

/// Builds from nothing, and prints what it took.
pub fn run() -> Result<ExitStatus> {
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
    println!("cold build of `cargo run --release -- demo`");
    print_times((wall, WALL_MAX), (cpu, CPU_MAX));
    println!("slowest crates, seconds of wall time");
    for (name, seconds) in slowest(&report)? {
        println!("{seconds:>10.1}   {name}");
    }
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
    if status.success() {
        measure_tests(&folder)?;
    }
    fs::remove_dir_all(&folder).context("remove the clone")?;
    Ok(status)
}

/// Builds and runs the quick tests with an empty target folder.
fn measure_tests(folder: &Path) -> Result<()> {
    let target = folder.join("target");
    fs::remove_dir_all(&target).with_context(|| format!("remove {}", target.display()))?;
    let (began, cpu_before) = (Instant::now(), children_cpu()?);
    let status = cargo(folder)
        .args(["xtask", "test"])
        .status()
        .context("run cargo xtask test")?;
    let (wall, cpu) = (began.elapsed(), children_cpu()?.saturating_sub(cpu_before));
    println!("cold build and run of `cargo xtask test`, {status}");
    print_times((wall, TESTS_WALL_MAX), (cpu, TESTS_CPU_MAX));
    let disk = disk_bytes(&target)? as f64 / 1e9;
    println!("disk  {disk:>8.1} GB  (at most {TESTS_DISK_MAX} GB)");
    Ok(())
}

/// What the files below a folder take on the disk. Hard links count once.
fn disk_bytes(folder: &Path) -> Result<u64> {
    let mut seen = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    let mut bytes = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                folders.push(entry.path());
            } else if seen.insert(metadata.ino()) {
                bytes += metadata.blocks() * 512;
            }
        }
    }
    Ok(bytes)
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

/// Prints what was taken, and what may be.
fn print_times(wall: (Duration, Duration), cpu: (Duration, Duration)) {
    for (what, (took, max)) in [("wall", wall), ("CPU", cpu)] {
        println!(
            "{what:<6}{:>8.1} s   (at most {} s)",
            took.as_secs_f64(),
            max.as_secs()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_test_support::folder::Folder;

    #[test]
    fn a_file_with_two_names_takes_its_disk_once() {
        let folder = Folder::absent("build-time");
        fs::create_dir_all(folder.join("deps")).unwrap();
        let file = folder.join("deps/program");
        fs::write(&file, [1; 9_000]).unwrap();
        let once = disk_bytes(&folder).unwrap();
        fs::hard_link(&file, folder.join("program")).unwrap();
        assert!(once >= 9_000);
        assert_eq!(disk_bytes(&folder).unwrap(), once);
    }

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
