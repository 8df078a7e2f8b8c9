//! `cargo xtask test`: builds, installs the peers, runs all tests and prints one
//! line of counts at the end. Tests with sockets run in a private network
//! namespace. If the system does not allow one, they run without it and without
//! peers, which is reported.
//!
//! The build uses the development profile: overflow checks and assertions are worth
//! more here than speed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::tidy::root;
use crate::{fault_points, generate, namespace, peers};

/// Environment variable with the folder of the peer programs (interop/peer.rs).
const PEERS_VARIABLE: &str = "PTEROS_PEERS";

/// Tests whose engine is built with fault points.
const FAULT_RUNS: [&str; 7] = [
    "test",
    "-p",
    "pteros-sim",
    "--features",
    "faults",
    "--test",
    "mutants",
];

/// Numbers of passed, failed and skipped tests.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Passed tests.
    pub passed: usize,
    /// Failed tests.
    pub failed: usize,
    /// Tests that are ignored or cannot run here.
    pub skipped: usize,
}

impl Counts {
    fn single(held: bool) -> Counts {
        Counts {
            passed: usize::from(held),
            failed: usize::from(!held),
            skipped: 0,
        }
    }

    fn add(&mut self, more: Counts) {
        self.passed += more.passed;
        self.failed += more.failed;
        self.skipped += more.skipped;
    }
}

/// Runs the command; `--no-peers` leaves the other stacks out. Returns whether
/// everything passed, and prints the counts at the end.
pub fn run(arguments: &[String]) -> Result<bool> {
    let with_peers = match arguments {
        [] => true,
        [word] if word == "--no-peers" => false,
        _ => bail!("usage: cargo xtask test [--no-peers]"),
    };
    let mut report = TestReport::new();
    // Only the build needs the network. The tests run without it.
    let built = report.run_step("build tests and examples", || {
        cargo(&["test", "--workspace", "--no-run", "--quiet"])?;
        cargo(&[FAULT_RUNS.as_slice(), &["--no-run", "--quiet"]].concat())
    });
    if built {
        let mut folder = None;
        if with_peers {
            report.run_step("peers", || {
                let (found, counts) = find_peers()?;
                folder = found;
                Ok(counts)
            });
        }
        let peers = folder.as_deref();
        report.run_step("tests", || cargo_tests(peers, true, &["--workspace"]));
        if peers.is_some() {
            report.run_step("interop without multicast", || {
                cargo_tests(peers, false, &["--workspace", "--test", "interop"])
            });
        }
        report.run_step("no fault points in the program", || {
            // Built alone, as users do. The tests of shared memory enable fault
            // points, and everything that is built with them has fault points too.
            cargo(&["build", "--quiet", "-p", "pteros-cli"])?;
            let program = peers::target_folder()?.join("debug").join("pteros");
            let count = fault_points::absent_from(&program)?;
            println!("{}: none of {count}", program.display());
            Ok(Counts::single(true))
        });
        // Runs the simulator again with mutants of the engine, to check that it
        // detects them.
        report.run_step("mutants and tolerated faults", || {
            cargo_tests(None, true, &FAULT_RUNS[1..])
        });
        report.run_step("generated interfaces", || {
            println!("{}", generate::run(&["--check".into()])?);
            Ok(Counts::single(true))
        });
    }
    Ok(report.end())
}

/// Names of the failed steps, and the sum of the counts.
struct TestReport {
    began: Instant,
    total: Counts,
    failed: Vec<&'static str>,
}

impl TestReport {
    fn new() -> TestReport {
        TestReport {
            began: Instant::now(),
            total: Counts::default(),
            failed: Vec::new(),
        }
    }

    fn run_step(&mut self, name: &'static str, run: impl FnOnce() -> Result<Counts>) -> bool {
        println!("\n--- {name} ({} s) ---", self.began.elapsed().as_secs());
        let counts = run().unwrap_or_else(|error| {
            println!("{error:#}");
            Counts::single(false)
        });
        self.total.add(counts);
        if counts.failed > 0 {
            self.failed.push(name);
        }
        counts.failed == 0
    }

    fn end(self) -> bool {
        let Counts {
            passed,
            failed,
            skipped,
        } = self.total;
        let seconds = self.began.elapsed().as_secs();
        if !self.failed.is_empty() {
            println!("\nfailed: {}", self.failed.join(", "));
        }
        println!("\n{passed} passed, {failed} failed, {skipped} skipped in {seconds} s");
        self.failed.is_empty()
    }
}

/// Installs and builds the peers. A missing peer, or a system without private
/// networks, counts as a skip with its reason.
fn find_peers() -> Result<(Option<PathBuf>, Counts)> {
    let mut counts = Counts::default();
    if let Err(why) = namespace::available() {
        println!("no peers, since a private network is not available: {why}");
        counts.skipped += 1;
        return Ok((None, counts));
    }
    let peers = peers::prepare()?;
    for (name, outcome) in &peers.list {
        match outcome {
            Ok(_) => println!("{name}: ready"),
            Err(why) => {
                println!("{name}: skipped, not available: {why:#}");
                counts.skipped += 1;
            }
        }
    }
    Ok((Some(peers.folder), counts))
}

/// A command in a private network, or in the current one if none is available.
fn in_network_namespace(multicast: bool, program: &str) -> Result<Command> {
    match namespace::available() {
        Ok(()) => namespace::command(multicast, program),
        Err(_) => Ok(Command::new(program)),
    }
}

fn cargo_program() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// Runs one cargo command as one check. Success adds nothing to the counts.
fn cargo(arguments: &[&str]) -> Result<Counts> {
    let status = Command::new(cargo_program())
        .args(arguments)
        .current_dir(root())
        .status()
        .context("run cargo")?;
    if !status.success() {
        bail!("cargo {} failed", arguments.join(" "));
    }
    Ok(Counts::default())
}

/// Runs tests and adds the counts that each test binary prints.
fn cargo_tests(peers: Option<&Path>, multicast: bool, which: &[&str]) -> Result<Counts> {
    let mut command = in_network_namespace(multicast, &cargo_program())?;
    if let Some(folder) = peers {
        command.env(PEERS_VARIABLE, folder);
    }
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        command.env("RUST_TEST_THREADS", test_threads().to_string());
    }
    let mut child = command
        .args(["test", "--offline", "--no-fail-fast"])
        .args(which)
        .current_dir(root())
        .stdout(Stdio::piped())
        .spawn()
        .context("run the tests")?;
    let mut counts = Counts::default();
    let mut skipped = 0;
    let output = child.stdout.take().context("the tests' output")?;
    for line in BufReader::new(output).lines() {
        let line = line.context("read the tests' output")?;
        if let Some(more) = test_result(&line) {
            counts.add(more);
        }
        skipped += usize::from(line.starts_with("skipped: "));
        if !is_noise(&line) {
            println!("{line}");
        }
    }
    let status = child.wait().context("wait for the tests")?;
    if !status.success() && counts.failed == 0 {
        bail!("the tests ended early: {status}");
    }
    // A test without its peer prints a skip and returns, which its test harness
    // counts as passed.
    counts.passed = counts.passed.saturating_sub(skipped);
    counts.skipped += skipped;
    Ok(counts)
}

/// Interoperability tests mostly wait for their peers, so more threads than cores
/// are used.
fn test_threads() -> usize {
    std::thread::available_parallelism().map_or(4, |cores| cores.get().max(4))
}

/// Lines of passed tests, which would hide the failed ones.
fn is_noise(line: &str) -> bool {
    let starts = ["running ", "test result: ok. 0 passed"];
    line.is_empty() || line.ends_with(" ... ok") || starts.iter().any(|s| line.starts_with(s))
}

/// Parses `test result: ok. 21 passed; 0 failed; 1 ignored; …`.
fn test_result(line: &str) -> Option<Counts> {
    let rest = line.strip_prefix("test result: ")?;
    let (_, numbers) = rest.split_once(". ")?;
    let mut counts = Counts::default();
    for part in numbers.split("; ") {
        let (number, word) = part.split_once(' ')?;
        match word {
            "passed" => counts.passed = number.parse().ok()?,
            "failed" => counts.failed = number.parse().ok()?,
            "ignored" => counts.skipped = number.parse().ok()?,
            _ => {}
        }
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_parsed_from_the_output_of_a_test_binary() {
        let line = "test result: FAILED. 21 passed; 2 failed; 1 ignored; 0 measured; 0 filtered \
                    out; finished in 0.00s";
        assert_eq!(
            test_result(line),
            Some(Counts {
                passed: 21,
                failed: 2,
                skipped: 1
            })
        );
        assert_eq!(test_result("test a ... ok"), None);
    }
}
