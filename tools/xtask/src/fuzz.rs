//! `cargo xtask fuzz [--seconds N] [TARGET …]`: builds the targets in `verify/fuzz/` and
//! runs each for a while. The initial corpus comes from captures and interface
//! definitions. It needs a nightly toolchain and cargo-fuzz; `cargo xtask test`
//! needs neither and does not run it.

mod seeds;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;

use crate::checkout::root;

/// Every target and the largest length of its input in bytes. Scripts of stateful
/// targets are short, since their ends cost more than their steps.
pub const TARGETS: &[(&str, u32)] = &[
    ("message", 4096),
    ("participant_data", 4096),
    ("endpoint_data", 4096),
    ("type_objects", 4096),
    ("liveliness_data", 256),
    ("cdr", 2048),
    ("dynamic", 2048),
    ("interface_file", 2048),
    ("yaml", 1024),
    ("filter", 1024),
    ("matched_reader", 1024),
    ("matched_writer", 1024),
    ("fragments", 1024),
    ("participant", 4096),
    ("security_governance", 2048),
    ("security_permissions", 2048),
    ("security_smime", 4096),
    ("security_certificate", 4096),
    ("security_message", 4096),
    ("security_frame", 512),
    ("security_handshake", 64),
    ("security_crypto_transform", 512),
    ("bag_mcap", 4096),
    ("bag_sqlite", 16_384),
    ("bag_ros1", 12_288),
];

/// Limits for libFuzzer: memory of the process (including the sanitizer's), one
/// allocation, and seconds for one input.
const LIMITS: [&str; 3] = ["-rss_limit_mb=2048", "-malloc_limit_mb=96", "-timeout=10"];
/// Those of bags, whose chunks have up to 512 MiB. A growing buffer has up to twice as
/// much.
const BAG_LIMITS: [&str; 3] = ["-rss_limit_mb=4096", "-malloc_limit_mb=1100", "-timeout=30"];

#[derive(clap::Args)]
pub struct Arguments {
    /// Seconds for each target
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// The targets; without them all
    #[arg(value_name = "TARGET", value_parser = PossibleValuesParser::new(TARGETS.iter().map(|target| target.0)))]
    targets: Vec<String>,
}

/// Runs the command. Returns whether no target found anything; findings are
/// printed.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let seconds = arguments.seconds;
    let is_chosen = |name: &str| arguments.targets.iter().any(|target| target == name);
    let mut chosen = TARGETS.to_vec();
    chosen.retain(|(name, _)| arguments.targets.is_empty() || is_chosen(name));
    check_tools()?;
    prepare(&chosen)?;
    let mut found = Vec::new();
    for (name, bytes_max) in &chosen {
        println!("\n--- {name} ({seconds} s) ---");
        let mut run = target_command(name, *bytes_max, seconds);
        if !run.status().context("run cargo fuzz")?.success() {
            found.push(*name);
        }
    }
    if found.is_empty() {
        println!("\n{} targets, nothing found", chosen.len());
    } else {
        println!(
            "\nfound something: {}; the inputs are in verify/fuzz/artifacts; turn them into tests",
            found.join(", ")
        );
    }
    Ok(found.is_empty())
}

/// Writes the initial corpus and builds the targets.
pub fn prepare(chosen: &[(&str, u32)]) -> Result<()> {
    let folder = root().join("verify/fuzz");
    let corpus = folder.join("corpus");
    println!("{} new seeds", seeds::write(&corpus)?);
    println!("build {} targets", chosen.len());
    for (name, _) in chosen {
        std::fs::create_dir_all(corpus.join(name))?;
        let mut build = cargo_fuzz(&folder, "build", &target_folder());
        run_checked(build.arg(name), "build the fuzz targets")?;
    }
    Ok(())
}

/// The command that runs a target for so many seconds.
pub fn target_command(name: &str, bytes_max: u32, seconds: u64) -> Command {
    let folder = root().join("verify/fuzz");
    let mut run = cargo_fuzz(&folder, "run", &target_folder());
    let limits = if name.starts_with("bag_") {
        BAG_LIMITS
    } else {
        LIMITS
    };
    run.arg(name).arg("--").args(limits).args([
        format!("-max_total_time={seconds}"),
        format!("-max_len={bytes_max}"),
        "-print_final_stats=1".into(),
        "-verbosity=0".into(),
    ]);
    run
}

/// Reports missing tools and how to install them.
pub fn check_tools() -> Result<()> {
    let answers = |arguments: &[&str]| {
        let output = Command::new("cargo").args(arguments).output();
        output.is_ok_and(|output| output.status.success())
    };
    if !answers(&["+nightly", "--version"]) {
        bail!("fuzzing needs a nightly toolchain: rustup toolchain install nightly");
    }
    if !answers(&["+nightly", "fuzz", "--version"]) {
        bail!("fuzzing needs cargo-fuzz: cargo install cargo-fuzz");
    }
    Ok(())
}

fn cargo_fuzz(folder: &Path, verb: &str, target: &Path) -> Command {
    let mut command = Command::new("cargo");
    command
        .args(["+nightly", "fuzz", verb, "--fuzz-dir"])
        .arg(folder)
        .arg("--target-dir")
        .arg(target)
        .current_dir(root());
    without_toolchain(&mut command);
    command
}

/// Removes what the outer cargo sets for its own toolchain.
pub fn without_toolchain(command: &mut Command) {
    for variable in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC"] {
        command.env_remove(variable);
    }
}

/// A separate build folder, since flags and compiler differ.
fn target_folder() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder).join("fuzz"),
        None => root().join("target/fuzz"),
    }
}

fn run_checked(command: &mut Command, what: &str) -> Result<()> {
    let status = command.status().with_context(|| what.to_string())?;
    if !status.success() {
        bail!("{what}: {status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_a_program() {
        let manifest = std::fs::read_to_string(root().join("verify/fuzz/Cargo.toml")).unwrap();
        for (name, _) in TARGETS {
            assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
            let program = root().join(format!("verify/fuzz/fuzz_targets/{name}.rs"));
            assert!(program.exists(), "{name}");
        }
        assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
    }
}
