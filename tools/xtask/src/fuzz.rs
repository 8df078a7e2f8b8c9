//! `cargo xtask fuzz [--seconds N] [TARGET …]`: builds the targets in `verify/fuzz/` and
//! runs each for a while. The initial corpus comes from captures and interface
//! definitions. It needs a nightly toolchain and cargo-fuzz; `cargo xtask test`
//! needs neither and does not run it.

mod seeds;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::checkout::root;

/// Default seconds per target.
const SECONDS_DEFAULT: u64 = 20;

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

/// Runs the command. Returns whether no target found anything; findings are
/// printed.
pub fn run(arguments: &[String]) -> Result<bool> {
    let (seconds, chosen) = parse_arguments(arguments)?;
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

type SelectedTargets = Vec<(&'static str, u32)>;

fn parse_arguments(arguments: &[String]) -> Result<(u64, SelectedTargets)> {
    let usage = "usage: cargo xtask fuzz [--seconds N] [TARGET …]";
    let mut seconds = SECONDS_DEFAULT;
    let mut chosen = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if word == "--seconds" {
            let number = rest.next().context(usage)?;
            seconds =
                number.parse().ok().filter(|n| *n > 0).with_context(|| {
                    format!("--seconds {number}: give a whole number above zero")
                })?;
        } else if let Some(target) = TARGETS.iter().find(|(name, _)| name == word) {
            chosen.push(*target);
        } else {
            let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
            bail!(
                "{word} is not a fuzz target; there are {}\n{usage}",
                names.join(", ")
            );
        }
    }
    if chosen.is_empty() {
        chosen = TARGETS.to_vec();
    }
    Ok((seconds, chosen))
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

    #[test]
    fn arguments_are_parsed_or_refused_by_name() {
        let read = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(Into::into).collect();
            parse_arguments(&words)
        };
        assert_eq!(read("").unwrap(), (SECONDS_DEFAULT, TARGETS.to_vec()));
        assert_eq!(read("--seconds 5 yaml").unwrap(), (5, vec![("yaml", 1024)]));
        assert!(
            read("--seconds soon")
                .unwrap_err()
                .to_string()
                .contains("soon")
        );
        assert!(read("jaml").unwrap_err().to_string().contains("yaml"));
    }
}
