//! `cargo xtask bench X [OPTION...]`: builds what the lab's benchmark `own.X` needs, in
//! the profile of the packages, and runs `pteros-lab run own.X` with the options.
//!
//! `--quick` is one of them; without it a run is full. Results and report lie in
//! `target/bench/X`. Wall time is reported and never fails. `ros2` needs a ROS 2;
//! `bag` and `python` compare with it where it is found. `zenoh` builds the lab with Zenoh.

use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail, ensure};
use clap::builder::PossibleValuesParser;
use pteros_peers::ros2::{Installation, NOT_FOUND};

use crate::{build_time, peers, wheel};

/// A benchmark: its name, the experiments, and what cargo builds beside the lab.
struct Benchmark(
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const COMPONENTS: &[&str] = &["-p", "pteros-demo-components", "--bins", "--examples"];

#[rustfmt::skip]
const ALL: [Benchmark; 11] = [
    Benchmark("wire", &["own.wire"], &[]),
    Benchmark("host", &["own.host"], &[]),
    Benchmark("loss", &["own.loss"], &[]),
    Benchmark("executor", &["own.executor"], &["-p", "executor-load"]),
    Benchmark("composition", &["own.composition"], COMPONENTS),
    Benchmark("robot", &["own.robot"], COMPONENTS),
    Benchmark(BAG, &["own.bag"], &[]),
    Benchmark("security", &["own.security", "own.start"], &[]),
    Benchmark(ROS2, &["own.ros2"], &["-p", "pteros-rmw"]),
    Benchmark(PYTHON, &["own.python"], &["-p", "pteros-python"]),
    Benchmark(ZENOH, &["own.zenoh"], &[]),
];

/// The profile of `cargo xtask dist`. It has link-time optimization, which the release
/// profile does without to build faster.
pub const PROFILE: &str = "dist";

/// The measurement of the build, which needs no lab.
const BUILD: &str = "build";

/// The benchmark of bags, with rosbag2's recorder beside ours.
const BAG: &str = "bag";

/// The benchmark of rclcpp and rclpy.
const ROS2: &str = "ros2";

/// The benchmark of the Python wheel.
const PYTHON: &str = "python";

/// The benchmark of the Zenoh transport.
const ZENOH: &str = "zenoh";

#[derive(clap::Args)]
pub struct Arguments {
    /// The benchmark
    #[arg(value_name = "WHAT", value_parser = PossibleValuesParser::new(ALL.iter().map(|benchmark| benchmark.0).chain([BUILD])))]
    name: String,
    /// Options of the lab, see below
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

/// The options, for the help text.
pub const OPTIONS: &str = "Options of the lab:
  --quick                      minutes instead of a full run
  --implementations NAME,...   --only CASE,...   --repeats N   --out DIR   --json
`build` has none: it measures the cold build of the README's first command.";

/// Builds the programs, then runs the lab.
pub fn run(arguments: &Arguments) -> Result<ExitStatus> {
    let Arguments { name, options } = arguments;
    let found = ALL.iter().find(|benchmark| benchmark.0 == name);
    let Some(Benchmark(name, experiments, beside)) = found else {
        ensure!(options.is_empty(), "bench {BUILD} takes no options");
        return build_time::run();
    };
    if *name == ROS2 && Installation::find()?.is_none() {
        bail!("bench {ROS2}: {NOT_FOUND}");
    }
    let mut lab = vec!["-p", "pteros-lab", "--bins"];
    if *name == ZENOH {
        lab.extend(["--features", "zenoh"]);
    }
    build(&lab)?;
    if !beside.is_empty() {
        build(beside)?;
    }
    let target = peers::target_folder()?;
    if *name == PYTHON {
        wheel::unpack(&target.join(PROFILE))?;
    }
    let out = target.join("bench").join(name);
    // A run in the same folder would only continue the one before.
    if out.exists() {
        std::fs::remove_dir_all(&out).with_context(|| format!("empty {}", out.display()))?;
    }
    let mut lab = Command::new(target.join(PROFILE).join("pteros-lab"));
    // cargo sets this to the libraries of the dev build. A ROS 2 that was sourced needs
    // its own in it.
    if ![BAG, ROS2, PYTHON].contains(name) {
        lab.env_remove("LD_LIBRARY_PATH");
    }
    lab.arg("run").args(*experiments).args(options);
    if !options
        .iter()
        .any(|word| ["--quick", "--smoke"].contains(&word.as_str()))
    {
        lab.arg("--full");
    }
    if !options.iter().any(|word| word == "--out") {
        lab.arg("--out").arg(out);
    }
    lab.arg("--install-peers").status().context("run the lab")
}

/// Builds parts of the workspace in the profile of the packages, into `target/dist`.
pub fn build(what: &[&str]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--profile", PROFILE, "--quiet"])
        .args(what)
        .status()
        .context("run cargo")?;
    if !status.success() {
        bail!("cargo build --profile {PROFILE}: {status}");
    }
    Ok(())
}
