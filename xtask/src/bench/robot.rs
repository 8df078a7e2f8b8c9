//! `cargo xtask bench robot [--quick]`: memory and CPU time of a graph as large as
//! that of iRobot's Create 3 (Macenski et al. 2023, VI-B), in one process and in
//! ten.
//!
//! Ten idle processes of Cyclone DDS run for comparison. The task runs in a private
//! network, reports, and never fails.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::composition::{Process, is_quick, met_text, pss_of, ticks_of};
use crate::{namespace, peers};

/// Name of the task that runs inside the namespace.
pub const INSIDE_TASK: &str = "bench-robot-inside";

const USAGE: &str = "usage: cargo xtask bench robot [--quick]";
const NODES: usize = 10;
/// Pause before processes are measured; discovery is over by then.
const REST: Duration = Duration::from_secs(3);
/// Target: the memory of the whole robot, published for ROS 2.
const PUBLISHED_MB: f64 = 60.0;

/// Builds the programs, then measures them in a private network.
pub fn run(flags: &[String]) -> Result<ExitStatus> {
    is_quick(flags, USAGE)?;
    let folder = peers::prepare_for_bench().unwrap_or_else(|why| {
        println!("without Cyclone DDS, because its program could not be built: {why:#}");
        PathBuf::new()
    });
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let words = [
        "build",
        "--release",
        "--quiet",
        "--package",
        "pteros-demo-components",
    ];
    let status = Command::new(cargo)
        .args(words)
        .args(["--example", "create3"])
        .status()
        .context("run cargo")?;
    if !status.success() {
        bail!("cargo build --release: {status}");
    }
    let own = std::env::current_exe()?;
    namespace::command(true, &own.to_string_lossy())?
        .arg(INSIDE_TASK)
        .arg(folder)
        .args(flags)
        .status()
        .context("run the bench in a private network")
}

/// Runs the measurement inside the namespace.
pub fn run_inside(arguments: &[String]) -> Result<()> {
    let [folder, flags @ ..] = arguments else {
        bail!(USAGE);
    };
    let seconds = if is_quick(flags, USAGE)? { 3 } else { 20 };
    let release = peers::target_folder()?.join("release");
    let program = release.join("examples").join("create3");
    let cyclone = Path::new(folder).join("cyclone-peer");
    let size = Command::new(&program).arg("count").output()?;
    println!("{}", String::from_utf8_lossy(&size.stdout).trim());
    println!("  {:<34}{:>10}{:>14}", "", "PSS MB", "CPU % of one");
    let start = |program: &Path, words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words);
        Process::start(command, "ready")
    };
    let one = vec![start(&program, &["all"])?];
    let (mb, _) = measure("one process", &one, seconds)?;
    drop(one);
    let ten: Result<Vec<_>> = (0..NODES)
        .map(|node| start(&program, &[&node.to_string()]))
        .collect();
    measure("one process each", &ten?, seconds)?;
    if cyclone.is_file() {
        let ten: Result<Vec<_>> = (0..NODES).map(|_| start(&cyclone, &["sub"])).collect();
        measure("Cyclone DDS, 10 idle participants", &ten?, seconds)?;
    }
    println!("Aim");
    println!(
        "  {}: one process: {mb:.1} MB; published for ROS 2 on a Create 3: under {PUBLISHED_MB} MB (32 MB used)",
        met_text(mb < PUBLISHED_MB)
    );
    Ok(())
}

fn measure(what: &str, processes: &[Process], seconds: u64) -> Result<(f64, f64)> {
    std::thread::sleep(REST);
    let began = Instant::now();
    let before = ticks_of(processes)?;
    std::thread::sleep(Duration::from_secs(seconds));
    let ticks = ticks_of(processes)? - before;
    // USER_HZ is 100 on every supported Linux, so a tick per second is one percent.
    let percent = ticks as f64 / began.elapsed().as_secs_f64();
    let mb = pss_of(processes)? as f64 / 1024.0;
    println!("  {what:<34}{mb:>10.1}{percent:>14.1}");
    Ok((mb, percent))
}
