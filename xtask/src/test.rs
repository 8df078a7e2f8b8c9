//! `cargo xtask test`: builds, fetches the peers, runs every test there is and
//! ends with one line of counts. Whatever opens sockets runs in a private
//! network namespace; where the system grants none, the tests run without it
//! and without peers, and it is said.
//!
//! Everything is built in the development profile, whose overflow checks and
//! assertions are worth more here than speed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::tidy::root;
use crate::{fault_points, generate, namespace, peers};

/// Where tests look for the peers' programs (interop/peer.rs).
const PEERS_VARIABLE: &str = "PTEROS_PEERS";

/// The tests whose engine has fault points.
const FAULTY: [&str; 7] = [
    "test",
    "-p",
    "pteros-sim",
    "--features",
    "faults",
    "--test",
    "mutants",
];

/// How many checks went which way.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Those that held.
    pub passed: usize,
    /// Those that did not.
    pub failed: usize,
    /// Those that could not be tried here, or are marked so.
    pub skipped: usize,
}

impl Counts {
    fn one(held: bool) -> Counts {
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

/// Runs the command; `--no-peers` leaves the other stacks out. Whether all
/// went well; the counts are printed last.
pub fn run(arguments: &[String]) -> Result<bool> {
    let with_peers = match arguments {
        [] => true,
        [word] if word == "--no-peers" => false,
        _ => bail!("usage: cargo xtask test [--no-peers]"),
    };
    let mut report = Report::new();
    // Building is where the network is needed; tests then run without it.
    let built = report.step("build tests and examples", || {
        cargo(&["test", "--workspace", "--no-run", "--quiet"])?;
        cargo(&[FAULTY.as_slice(), &["--no-run", "--quiet"]].concat())
    });
    if built {
        let mut folder = None;
        if with_peers {
            report.step("peers", || {
                let (found, counts) = find_peers()?;
                folder = found;
                Ok(counts)
            });
        }
        let peers = folder.as_deref();
        report.step("tests", || cargo_tests(peers, true, &["--workspace"]));
        if peers.is_some() {
            report.step("interop without multicast", || {
                cargo_tests(peers, false, &["--workspace", "--test", "interop"])
            });
        }
        report.step("no fault points in the program", || {
            // Built alone, as users do: the tests of shared memory ask for faults, and
            // all that is built with them gets those.
            cargo(&["build", "--quiet", "-p", "pteros-cli"])?;
            let program = peers::target_folder()?.join("debug").join("pteros");
            let count = fault_points::absent_from(&program)?;
            println!("{}: none of {count}", program.display());
            Ok(Counts::one(true))
        });
        // The simulator once more with bugs in the engine, to see that it
        // notices them.
        report.step("mutants and mishaps", || {
            cargo_tests(None, true, &FAULTY[1..])
        });
        report.step("generated interfaces", || {
            println!("{}", generate::run(&["--check".into()])?);
            Ok(Counts::one(true))
        });
    }
    Ok(report.end())
}

/// The steps so far: names of those that failed, and the sum.
struct Report {
    began: Instant,
    total: Counts,
    failed: Vec<&'static str>,
}

impl Report {
    fn new() -> Report {
        Report {
            began: Instant::now(),
            total: Counts::default(),
            failed: Vec::new(),
        }
    }

    fn step(&mut self, name: &'static str, run: impl FnOnce() -> Result<Counts>) -> bool {
        println!("\n--- {name} ({} s) ---", self.began.elapsed().as_secs());
        let counts = run().unwrap_or_else(|error| {
            println!("{error:#}");
            Counts::one(false)
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

/// Installs and builds the peers. One that cannot be had, or a system without
/// private networks to run them in, is a skip with its reason.
fn find_peers() -> Result<(Option<PathBuf>, Counts)> {
    let mut counts = Counts::default();
    if let Err(why) = namespace::available() {
        println!("no peers, since there is no private network to run them in: {why}");
        counts.skipped += 1;
        return Ok((None, counts));
    }
    let peers = peers::prepare()?;
    for (name, outcome) in &peers.list {
        match outcome {
            Ok(_) => println!("{name}: ready"),
            Err(why) => {
                println!("{name}: skipped, it could not be had: {why:#}");
                counts.skipped += 1;
            }
        }
    }
    Ok((Some(peers.folder), counts))
}

/// A command in a private network, or a plain one where there is none.
fn isolated(multicast: bool, program: &str) -> Result<Command> {
    match namespace::available() {
        Ok(()) => namespace::command(multicast, program),
        Err(_) => Ok(Command::new(program)),
    }
}

fn cargo_program() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// One cargo command as one check; nothing is counted when it succeeds.
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

/// Tests, counted by what each test binary reports.
fn cargo_tests(peers: Option<&Path>, multicast: bool, which: &[&str]) -> Result<Counts> {
    let mut command = isolated(multicast, &cargo_program())?;
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
        bail!("the tests stopped before they were done: {status}");
    }
    // A test that finds no peer says so and returns: passed, for its harness.
    counts.passed = counts.passed.saturating_sub(skipped);
    counts.skipped += skipped;
    Ok(counts)
}

/// Interop mostly waits for its peers, so more than there are cores.
fn test_threads() -> usize {
    std::thread::available_parallelism().map_or(4, |cores| cores.get().max(4))
}

/// Thousands of lines of "ok" would hide the one that is not.
fn is_noise(line: &str) -> bool {
    let starts = ["running ", "test result: ok. 0 passed"];
    line.is_empty() || line.ends_with(" ... ok") || starts.iter().any(|s| line.starts_with(s))
}

/// Reads `test result: ok. 21 passed; 0 failed; 1 ignored; …`.
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
    fn counts_are_read_from_what_a_test_binary_prints() {
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
