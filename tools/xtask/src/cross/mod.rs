//! `cargo xtask cross [TARGET...]`: builds and tests Pteros for other processors, under
//! qemu-user.
//!
//! For each target the unit tests of the crates that know bytes and the kernel run. The
//! command is built; it talks to itself and to this machine's, by UDP and by shared
//! memory. musl needs no emulator. For macOS and Windows the crates without input and
//! output are type-checked. Emulators cannot show weak memory ordering (see `cargo xtask
//! loom`), other page sizes of the kernel, or speed.

mod board;
mod foreign_root;
mod pairs;
mod target;

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::checkout::root;
use crate::counts::Counts;
use crate::peers::target_folder;
use crate::progress;
pub use board::Board;
pub use foreign_root::{ForeignRoot, PATH_INSIDE};
pub use pairs::run_inside as run_pairs_inside;
pub use target::Target;
use target::Toolchain;

#[derive(clap::Args)]
pub struct Arguments {
    /// aarch64 (if none is given), armv7, s390x, musl, macos, windows
    targets: Vec<String>,
    /// Only type-check the crates and their tests
    #[arg(long)]
    check: bool,
}

impl Arguments {
    /// Every target, in full.
    pub fn all() -> Self {
        let names = target::TARGETS.iter().map(|target| target.machine.name);
        Self {
            targets: names.map(str::to_owned).collect(),
            check: false,
        }
    }
}

/// What was done.
pub enum Outcome {
    /// Nothing: why no foreign root can be made here.
    LeftOut(String),
    /// A line for each target, and how many tests passed.
    Done { lines: Vec<String>, tests: usize },
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::LeftOut(why) => write!(f, "left out: {why}"),
            Self::Done { lines, .. } => f.write_str(&lines.join("\n")),
        }
    }
}

/// Runs the task.
///
/// # Errors
/// An unknown target, and builds, tests and pairs that fail.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let targets = target::select(&arguments.targets)?;
    let root = match ForeignRoot::open(&targets) {
        Ok(root) => root,
        Err(why) => return Ok(Outcome::LeftOut(format!("{why:#}"))),
    };
    let (mut lines, mut tests) = (Vec::new(), 0);
    for target in targets {
        let done = if arguments.check || target.toolchain == Toolchain::CheckOnly {
            check(&root, target)
        } else {
            build_and_run(&root, target)
        };
        let (line, passed) = done.with_context(|| target.machine.name)?;
        lines.push(line);
        tests += passed;
    }
    Ok(Outcome::Done { lines, tests })
}

/// Returns a line for the report, and the number of tests that passed.
fn check(foreign: &ForeignRoot, target: &Target) -> Result<(String, usize)> {
    let mut words = cargo("check", target);
    words.push("--lib");
    // Tests need sockets and memory of Linux.
    let and_tests = match target.toolchain {
        Toolchain::CheckOnly => "",
        Toolchain::Debian { .. } | Toolchain::Musl => {
            words.push("--tests");
            " and their tests"
        }
    };
    words.extend(packages(target));
    let mut check = foreign.command(&target.variables(), &words)?;
    let status = progress::run_build(&mut check)?;
    ensure!(status.success(), "cargo check failed ({status})");
    let line = format!(
        "{}: {} crates{and_tests} compile",
        target.machine.name,
        target.packages().len()
    );
    Ok((line, 0))
}

/// As [`check`].
fn build_and_run(foreign: &ForeignRoot, target: &Target) -> Result<(String, usize)> {
    let counts = test(foreign, target)?;
    build_command(foreign, target)?;
    let pairs = run_pairs(target, None)?;
    let line = format!(
        "{}: {} tests pass, {} left out; the command runs; {pairs} pairs of talker and \
         listener meet",
        target.machine.name, counts.passed, counts.skipped
    );
    Ok((line, counts.passed))
}

/// The words of a cargo command for a target.
fn cargo<'a>(verb: &'a str, target: &Target) -> Vec<&'a str> {
    let words = ["cargo", verb, "--locked", "--target", target.machine.triple];
    [&words, target.options()].concat()
}

fn packages(target: &Target) -> impl Iterator<Item = &'static str> {
    target.packages().iter().flat_map(|name| ["-p", *name])
}

/// Runs the unit tests, by an emulator if they need one.
fn test(foreign: &ForeignRoot, target: &Target) -> Result<Counts> {
    let mut words = cargo("test", target);
    words.extend(["--lib", "--no-fail-fast"]);
    words.extend(packages(target));
    let log = target_folder()?.join(format!("cross/{}.tests", target.machine.name));
    let file = File::create(&log).with_context(|| format!("write {}", log.display()))?;
    let mut command = foreign.command(&target.variables(), &words)?;
    let status = progress::run_build(command.stdout(file))?;
    let said = fs::read_to_string(&log)?;
    let failed: Vec<&str> = said
        .lines()
        .filter(|line| line.ends_with("... FAILED"))
        .collect();
    ensure!(
        status.success(),
        "tests failed ({status}): {}; see {}",
        failed.join(", "),
        log.display()
    );
    counts_of(&said).context("cargo test ran no test")
}

/// The sum of the closing lines of test programs; `None` without one.
fn counts_of(said: &str) -> Option<Counts> {
    let mut sum = None;
    for line in said
        .lines()
        .filter(|line| line.starts_with("test result: "))
    {
        let number = |word: &str| {
            let before = line.split(word).next()?;
            before.split(' ').next_back()?.parse().ok()
        };
        let counts = sum.get_or_insert(Counts::default());
        counts.add(Counts {
            passed: number(" passed")?,
            failed: number(" failed")?,
            skipped: number(" ignored")? + number(" filtered out")?,
        });
    }
    sum
}

fn build_command(foreign: &ForeignRoot, target: &Target) -> Result<()> {
    let mut words = cargo("build", target);
    words.extend(["-p", "pteros-cli"]);
    let mut build = foreign.command(&target.variables(), &words)?;
    let status = progress::run_build(&mut build)?;
    ensure!(status.success(), "the command does not build ({status})");
    let mut command = foreign.program(target, "pteros", &[], &["--version"])?;
    let version = command.output().context("run the command")?;
    let said = String::from_utf8_lossy(&version.stdout);
    ensure!(
        said.trim() == concat!("pteros ", env!("CARGO_PKG_VERSION")),
        "{} says {said:?}: {}",
        target.machine.name,
        String::from_utf8_lossy(&version.stderr)
    );
    Ok(())
}

/// Lets a talker and a listener meet on the target and on this machine, by each path.
/// The target's command is that of `cargo xtask cross`, or one that runs on a board.
/// Returns how many pairs there are.
pub fn run_pairs(target: &Target, packed: Option<&Path>) -> Result<usize> {
    build_host_command()?;
    pairs::run_in_namespace(target, packed)
}

fn build_host_command() -> Result<()> {
    let mut build = Command::new("cargo");
    build
        .args(["build", "--locked", "-p", "pteros-cli"])
        .current_dir(root());
    let status = progress::run_build(&mut build).context("run cargo")?;
    ensure!(status.success(), "this machine's command does not build");
    let program = pairs::host_program()?;
    ensure!(program.is_file(), "{} is not there", program.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_all_test_programs_are_added() {
        let said = "running 2 tests\n\
            test result: ok. 89 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 5.95s\n\
            test result: FAILED. 3 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s\n";
        let counts = Counts {
            passed: 92,
            failed: 4,
            skipped: 3,
        };
        assert_eq!(counts_of(said), Some(counts));
        assert_eq!(counts_of("no test"), None);
    }
}
