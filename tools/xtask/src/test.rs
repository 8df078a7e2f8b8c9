//! `cargo xtask test [--all [--no-peers]]`: builds, runs tests, prints the slowest
//! test programs and one line of counts at the end.
//!
//! Without `--all` it runs what is quick: every crate's unit tests and the test
//! programs that are not in [`LONG_TESTS`]. `--all` adds those, documentation
//! tests, examples, other DDS stacks, ROS 2's own suites and mutants. Tests with sockets run in a
//! private network namespace. If the system does not allow one, they run without it
//! and without peers, which is reported.
//!
//! A few tests that failed run once more, alone. Those that pass then are reported as
//! unsteady, see `unsteady.rs`.
//!
//! The build uses the development profile: overflow checks and assertions are worth
//! more here than speed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::checkout::root;
use crate::counts::Counts;
use crate::unsteady::{self, FailedTests, FailureCollector};
use crate::{fault_points, flood, generate, namespace, peers, progress, ros2};

/// Slowest test programs named at the end.
const SLOWEST_SHOWN: usize = 12;

/// Environment variable with the folder of the peer programs (verify/interop/peer.rs).
const PEERS_VARIABLE: &str = "PTEROS_PEERS";

/// Test programs that only `--all` runs, by package and name.
const LONG_TESTS: &[(&str, &str)] = &[
    // Other DDS stacks.
    ("pteros", "interop"),
    ("pteros-cli", "interop"),
    ("pteros-security", "peers"),
    ("shapes", "vendors"),
    // Hundreds of simulated graphs, and the engine built with fault points.
    ("pteros-sim", "mutants"),
    ("pteros-sim", "nodes"),
    ("pteros-sim", "scenarios"),
    ("pteros-sim", "seeds"),
    // Many processes, restarts and packages that are built on the spot.
    ("pteros", "churn"),
    ("pteros", "many_processes"),
    ("pteros-cli", "packages"),
    // Processes that are stopped for longer than a lease of 20 s.
    ("pteros-cli", "stopped_processes"),
    // Makes a Python environment and installs the wheel into it.
    ("pteros-python", "clean_root"),
    // Programs of an installed ROS 2.
    ("pteros-cli", "ros2_programs"),
    ("pteros-rtps", "soak"),
    ("pteros-security", "crowd"),
    // Every experiment of the lab, at a minimum.
    ("pteros-lab", "command"),
    // The Zenoh wire: minutes to build, and nothing else needs it.
    ("pteros-zenoh", "zenoh"),
    ("pteros", "zenoh_choice"),
    ("pteros-cli", "zenoh_networks"),
    // Every example, tutorial and demo, as users run them.
    ("tour", "every_example"),
    ("tutorials", "programs"),
];

/// Whether only `--all` runs a test program.
pub fn is_long(package: &str, name: &str) -> bool {
    LONG_TESTS.contains(&(package, name))
}

/// All packages. The command has the features of its packages.
const WHOLE: [&str; 3] = ["--workspace", "--features", "pteros-cli/full"];

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

/// What a step did.
#[derive(Default)]
struct TestRun {
    counts: Counts,
    /// Seconds and names of test programs.
    times: Vec<(f64, String)>,
    /// Tests that failed once and passed alone.
    unsteady: Vec<String>,
    /// Why tests were left out, and how to run them.
    skips: BTreeMap<String, usize>,
}

impl TestRun {
    fn single(held: bool) -> TestRun {
        TestRun {
            counts: Counts {
                passed: usize::from(held),
                failed: usize::from(!held),
                skipped: 0,
            },
            ..TestRun::default()
        }
    }
}

/// How much is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Extent {
    Quick,
    All { with_peers: bool },
}

impl Extent {
    fn of(arguments: &[String]) -> Result<Extent> {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] => Ok(Extent::Quick),
            ["--all"] => Ok(Extent::All { with_peers: true }),
            ["--all", "--no-peers"] => Ok(Extent::All { with_peers: false }),
            _ => bail!("usage: cargo xtask test [--all [--no-peers]]"),
        }
    }
}

/// Runs the command. Returns whether everything passed, and prints the counts at
/// the end.
pub fn run(arguments: &[String]) -> Result<bool> {
    let extent = Extent::of(arguments)?;
    let mut report = TestReport::new();
    match extent {
        Extent::Quick => run_quick(&mut report)?,
        Extent::All { with_peers } => run_all(&mut report, with_peers),
    }
    report.run_step("generated interfaces", || {
        println!("{}", generate::run(&["--check".into()])?);
        Ok(TestRun::single(true))
    });
    Ok(report.end())
}

fn run_quick(report: &mut TestReport) -> Result<()> {
    let targets = quick_targets(&workspace()?)?;
    let arguments: Vec<&str> = targets.iter().map(String::as_str).collect();
    let build = [&["test", "--no-run"], arguments.as_slice()].concat();
    let built = report.run_step("build tests", || {
        build_python_module()?;
        cargo(&build)
    });
    if built {
        report.run_step("tests", || cargo_tests(None, true, &arguments));
        println!(
            "other stacks, simulation, documentation tests and examples: cargo xtask test --all"
        );
    }
    Ok(())
}

fn run_all(report: &mut TestReport, with_peers: bool) {
    // Only the build needs the network. The tests run without it.
    let built = report.run_step("build tests and examples", || {
        cargo(&[&["test", "--no-run"], WHOLE.as_slice()].concat())?;
        if ros2::is_found() {
            // The plug-in, which tests with ROS 2 find beside the command.
            cargo(&["build", "-p", "pteros-rmw"])?;
        }
        build_python_module()?;
        cargo(&[FAULT_RUNS.as_slice(), &["--no-run"]].concat())
    });
    if !built {
        return;
    }
    let mut folder = None;
    if with_peers {
        report.run_step("peers", || {
            let (found, run) = find_peers()?;
            folder = found;
            Ok(run)
        });
    }
    let peers = folder.as_deref();
    report.run_step("tests", || cargo_tests(peers, true, &WHOLE));
    if peers.is_some() {
        report.run_step("interop without multicast", || {
            let interop = [WHOLE.as_slice(), &["--test", "interop"]].concat();
            cargo_tests(peers, false, &interop)
        });
    }
    run_zenoh(report);
    report.run_step("floods of hostile packets", run_floods);
    report.run_step("nodes of ROS 2 Humble", run_humble);
    report.run_step("ROS 2's suites on the plug-in", || {
        Ok(TestRun {
            counts: ros2::run_all()?,
            ..TestRun::default()
        })
    });
    report.run_step("ROS 2's Python suites on the wheel", || {
        Ok(TestRun {
            counts: ros2::run_all_on_wheel()?,
            ..TestRun::default()
        })
    });
    report.run_step("no fault points in the program", || {
        // Built alone, as users do. The tests of shared memory enable fault
        // points, and everything that is built with them has fault points too.
        cargo(&["build", "--quiet", "-p", "pteros-cli"])?;
        let program = peers::target_folder()?.join("debug").join("pteros");
        let count = fault_points::absent_from(&program)?;
        println!("{}: none of {count}", program.display());
        Ok(TestRun::single(true))
    });
    // Runs the simulator again with mutants of the engine, to check that it
    // detects them.
    report.run_step("mutants and tolerated faults", || {
        cargo_tests(None, true, &FAULT_RUNS[1..])
    });
}

/// The steps that build with the feature `zenoh`, which nothing else needs.
fn run_zenoh(report: &mut TestReport) {
    let run_with = |features: &[&str], program: &[&str]| {
        let mut command = test_command(None, true)?;
        command.args(features).args(["--test"]).args(program);
        let (run, _) = run_tests(command)?;
        Ok(run)
    };
    // Alone, because it measures the memory of its process.
    report.run_step("a Zenoh router that is killed 100 times", || {
        run_with(&WHOLE, &["zenoh", "--", "--ignored", "router_kills"])
    });
    let on_pteros = ["-p", "pteros", "--features", "zenoh"];
    report.run_step("wires by the command line", || {
        run_with(&on_pteros, &["zenoh_choice"])
    });
    report.run_step("conformance over Zenoh", || {
        run_with(&on_pteros, &["conformance", "over_zenoh"])
    });
    report.run_step("the plug-in for ROS 2 over Zenoh", || {
        let on_plug_in = ["-p", "pteros-rmw", "--features", "zenoh"];
        run_with(&on_plug_in, &["plugin", "over_zenoh"])
    });
    report.run_step("the Python wheel over Zenoh", || {
        let on_module = ["-p", "pteros-python", "--features", "zenoh"];
        cargo(&[&["build", "--quiet"], on_module.as_slice()].concat())?;
        let run = run_with(&on_module, &["python", "programs_meet_over_zenoh"])?;
        // What follows tests the module of the other steps.
        build_python_module()?;
        Ok(run)
    });
    let on_command = ["-p", "pteros-cli", "--features", "full,zenoh"];
    report.run_step("Zenoh in network namespaces", || {
        // The command has Zenoh in this step only.
        let program = [&on_command[..], &["--test", "zenoh_networks"]].concat();
        cargo_tests(None, true, &program)
    });
    // Alone, because it measures the memory of its processes.
    report.run_step("a hundred nodes on Zenoh", || {
        let ignored = ["zenoh_networks", "--", "--ignored", "a_hundred_nodes"];
        run_with(&on_command, &ignored)
    });
}

/// Runs the tests with nodes of Humble where one is found.
fn run_humble() -> Result<TestRun> {
    let prefix = match ros2::humble() {
        Ok(prefix) => prefix,
        Err(why) => {
            println!(
                "left out: {} names no ROS 2, and {why:#}",
                ros2::HUMBLE_VARIABLE
            );
            let mut run = TestRun::default();
            run.counts.skipped += 1;
            return Ok(run);
        }
    };
    let mut command = test_command(None, true)?;
    command.env(ros2::HUMBLE_VARIABLE, prefix).args(WHOLE);
    command.args(["--test", "ros2_programs", "--", "--ignored", "humble_"]);
    Ok(run_tests(command)?.0)
}

/// Attacks two processes that communicate, at 100 000 packets a second of every kind.
fn run_floods() -> Result<TestRun> {
    if let Err(why) = flood::is_possible() {
        println!("no floods of hostile packets: {why}");
        let mut run = TestRun::default();
        run.counts.skipped += 1;
        return Ok(run);
    }
    build_ping_pong()?;
    let flags = ["--seconds", "3", "--dev"].map(str::to_owned);
    let mut child = flood::command(&flags)?
        .stdout(Stdio::piped())
        .spawn()
        .context("run the flood in a private network")?;
    let mut run = TestRun::default();
    for line in child
        .stdout
        .take()
        .into_iter()
        .flat_map(|out| BufReader::new(out).lines())
    {
        let line = line.context("read what the flood prints")?;
        let kind = line.strip_prefix(flood::UNSTEADY);
        run.unsteady
            .extend(kind.map(|kind| format!("flood of {kind}")));
        println!("{line}");
    }
    let held = child.wait().context("wait for the flood")?.success();
    run.counts.add(TestRun::single(held).counts);
    Ok(run)
}

/// Builds the attacked program as its own test does: the tests of the whole workspace
/// have built it already.
pub fn build_ping_pong() -> Result<()> {
    let build = ["test", "--no-run", "--quiet", "--test", "there_and_back"];
    cargo(&[build.as_slice(), WHOLE.as_slice()].concat())?;
    Ok(())
}

/// Builds the extension module that the test program `python` loads, where there is a
/// Python with pytest.
fn build_python_module() -> Result<TestRun> {
    let check = "import sys, pytest; sys.exit(sys.version_info < (3, 10))";
    let found = Command::new("python3").args(["-c", check]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        println!("without the Python suite: no python3 of version 3.10 or later with pytest");
        return Ok(TestRun::default());
    }
    cargo(&["build", "--quiet", "-p", "pteros-python"])
}

/// The test programs of the workspace, by package and name.
type TestTargets = BTreeSet<(String, String)>;

/// Asks cargo for the test programs.
fn workspace() -> Result<TestTargets> {
    let output = Command::new(cargo_program())
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .context("run cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo's metadata")?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut targets = TestTargets::new();
    for package in list(&metadata["packages"]) {
        for target in list(&package["targets"]) {
            if target["kind"][0] == "test" {
                targets.insert((text(&package["name"]), text(&target["name"])));
            }
        }
    }
    Ok(targets)
}

/// Cargo's arguments for unit tests and the test programs that are not long. Cargo
/// selects test programs by name in all packages.
fn quick_targets(all: &TestTargets) -> Result<Vec<String>> {
    let long: TestTargets = LONG_TESTS
        .iter()
        .map(|(package, name)| ((*package).to_owned(), (*name).to_owned()))
        .collect();
    if let Some((package, name)) = long.difference(all).next() {
        bail!("LONG_TESTS in tools/xtask/src/test.rs: {package} has no test program {name}");
    }
    let quick: TestTargets = all.difference(&long).cloned().collect();
    let names: BTreeSet<&String> = quick.iter().map(|(_, name)| name).collect();
    if let Some((package, name)) = long.iter().find(|(_, name)| names.contains(name)) {
        bail!("{package}: the long test {name} has the name of a quick one; rename one");
    }
    let kinds = ["--exclude", "pteros-zenoh", "--lib", "--bins"];
    let mut arguments: Vec<String> = WHOLE
        .iter()
        .chain(&kinds)
        .map(|&word| word.into())
        .collect();
    for name in names {
        arguments.extend(["--test".to_owned(), name.clone()]);
    }
    Ok(arguments)
}

/// Names of the failed steps, and the sum of the counts.
struct TestReport {
    began: Instant,
    total: TestRun,
    failed: Vec<&'static str>,
}

impl TestReport {
    fn new() -> TestReport {
        TestReport {
            began: Instant::now(),
            total: TestRun::default(),
            failed: Vec::new(),
        }
    }

    fn run_step(&mut self, name: &'static str, run: impl FnOnce() -> Result<TestRun>) -> bool {
        println!("\n--- {name} ({} s) ---", self.began.elapsed().as_secs());
        let run = run().unwrap_or_else(|error| {
            println!("{error:#}");
            TestRun::single(false)
        });
        self.total.counts.add(run.counts);
        self.total.times.extend(run.times);
        self.total.unsteady.extend(run.unsteady);
        for (reason, count) in run.skips {
            *self.total.skips.entry(reason).or_default() += count;
        }
        if run.counts.failed > 0 {
            self.failed.push(name);
        }
        run.counts.failed == 0
    }

    fn end(mut self) -> bool {
        let Counts {
            passed,
            failed,
            skipped,
        } = self.total.counts;
        self.total.times.sort_by(|a, b| b.0.total_cmp(&a.0));
        if !self.total.times.is_empty() {
            println!("\nslowest test programs, seconds:");
        }
        for (seconds, name) in self.total.times.iter().take(SLOWEST_SHOWN) {
            println!("{seconds:8.1}  {name}");
        }
        if !self.total.unsteady.is_empty() {
            println!("\nunsteady tests, failed once and passed alone:");
        }
        for test in &self.total.unsteady {
            println!("  {test}");
        }
        if !self.total.skips.is_empty() {
            println!("\nskipped tests, and what would run them:");
        }
        for (reason, count) in &self.total.skips {
            println!("{count:5}  {reason}");
        }
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
fn find_peers() -> Result<(Option<PathBuf>, TestRun)> {
    let mut run = TestRun::default();
    if let Err(why) = namespace::available() {
        println!("no peers, since a private network is not available: {why}");
        run.counts.skipped += 1;
        return Ok((None, run));
    }
    let peers = peers::prepare()?;
    for (name, outcome) in &peers.list {
        match outcome {
            Ok(_) => println!("{name}: ready"),
            Err(why) => {
                println!("{name}: skipped, not available: {why:#}");
                run.counts.skipped += 1;
                *run.skips.entry(format!("{name}: {why:#}")).or_default() += 1;
            }
        }
    }
    Ok((Some(peers.folder), run))
}

fn cargo_program() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// Runs one cargo command as one check. Success adds nothing to the counts.
fn cargo(arguments: &[&str]) -> Result<TestRun> {
    let mut command = Command::new(cargo_program());
    command.args(arguments).current_dir(root());
    let status = progress::run_build(&mut command).context("run cargo")?;
    if !status.success() {
        bail!("cargo {} failed", arguments.join(" "));
    }
    Ok(TestRun::default())
}

/// Runs tests, and those that failed once more. Adds the counts and the time that each
/// test program prints.
fn cargo_tests(peers: Option<&Path>, multicast: bool, which: &[&str]) -> Result<TestRun> {
    let run_some = |which: &[&str], names: &[&str]| {
        let mut command = test_command(peers, multicast)?;
        command.args(which);
        if !names.is_empty() {
            command.args(["--", "--exact"]).args(names);
        }
        run_tests(command)
    };
    let (mut run, failed) = run_some(which, &[])?;
    let failed_names: usize = failed.iter().map(|program| program.names.len()).sum();
    if run.counts.failed != failed_names || failed_names > unsteady::REPEATED_MAX {
        return Ok(run);
    }
    for program in failed {
        println!("\nonce more, alone: {}", program.names.join(", "));
        let names: Vec<&str> = program.names.iter().map(String::as_str).collect();
        let (repeated, _) = run_some(&program.selection(which), &names)?;
        if repeated.counts.failed == 0 && repeated.counts.passed >= names.len() {
            run.counts.failed -= names.len();
            run.counts.passed += names.len();
            let unsteady = names
                .iter()
                .map(|name| format!("{} {name}", program.target));
            run.unsteady.extend(unsteady);
        }
    }
    Ok(run)
}

/// `cargo test` as the tests need it.
fn test_command(peers: Option<&Path>, multicast: bool) -> Result<Command> {
    let mut command = namespace::command_where_available(multicast, &cargo_program())?;
    if let Some(folder) = peers {
        command.env(PEERS_VARIABLE, folder);
    }
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        command.env("RUST_TEST_THREADS", test_threads().to_string());
    }
    command
        .args(["test", "--offline", "--no-fail-fast"])
        .current_dir(root());
    Ok(command)
}

/// Runs tests and prints what they print. Returns the failed ones, too.
fn run_tests(mut command: Command) -> Result<(TestRun, Vec<FailedTests>)> {
    // Cargo names the program on stderr, and the program prints its result on
    // stdout: one pipe keeps their order.
    let (output, input) = std::io::pipe().context("a pipe for the tests' output")?;
    command
        .stdout(input.try_clone().context("a pipe for the tests' output")?)
        .stderr(input);
    let mut child = command.spawn().context("run the tests")?;
    // It holds the writing end, which would keep the pipe open.
    drop(command);
    let mut run = TestRun::default();
    let mut failures = FailureCollector::default();
    let mut skipped = 0;
    let mut program = String::new();
    for line in BufReader::new(output).lines() {
        let line = line.context("read the tests' output")?;
        failures.read_line(&line);
        if let Some(name) = program_name(&line) {
            program = name;
        }
        if let Some(more) = test_result(&line) {
            run.counts.add(more);
            run.times
                .extend(seconds(&line).map(|s| (s, program.clone())));
        }
        skipped += usize::from(line.starts_with("skipped: "));
        if let Some(reason) = skip_reason(&line) {
            *run.skips.entry(reason.to_owned()).or_default() += 1;
        }
        if !is_noise(&line) {
            println!("{line}");
        }
    }
    let status = child.wait().context("wait for the tests")?;
    if !status.success() && run.counts.failed == 0 {
        bail!("the tests ended early: {status}");
    }
    // A test without its peer prints a skip and returns, which its test harness
    // counts as passed.
    run.counts.passed = run.counts.passed.saturating_sub(skipped);
    run.counts.skipped += skipped;
    Ok((run, failures.end()))
}

/// The reason in `skipped: …`, which a test prints, or in `test … ignored, …`.
fn skip_reason(line: &str) -> Option<&str> {
    line.strip_prefix("skipped: ")
        .or_else(|| Some(line.strip_prefix("test ")?.split_once(" ... ignored, ")?.1))
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

/// The test program in cargo's line `Running tests/actions.rs (target/…/actions-0f3)`
/// or `Doc-tests pteros`.
fn program_name(line: &str) -> Option<String> {
    let line = line.trim_start();
    if line.starts_with("Doc-tests ") {
        return Some(line.to_owned());
    }
    let path = line.strip_prefix("Running ")?.split_once('(')?.1;
    let file = path.trim_end_matches(')').rsplit('/').next()?;
    let name = file.rsplit_once('-').map_or(file, |(name, _)| name);
    Some(name.to_owned())
}

/// The seconds in `test result: …; finished in 0.03s`.
fn seconds(line: &str) -> Option<f64> {
    let (_, time) = line.rsplit_once("finished in ")?;
    time.trim_end_matches('s').parse().ok()
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
        assert_eq!(seconds(line), Some(0.0));
    }

    #[test]
    fn a_skipped_test_says_why() {
        let ignored = "test long ... ignored, minutes: cargo test -p pteros-rtps -- --ignored";
        let reason = "minutes: cargo test -p pteros-rtps -- --ignored";
        assert_eq!(skip_reason(ignored), Some(reason));
        assert_eq!(skip_reason("skipped: no python3"), Some("no python3"));
        assert_eq!(skip_reason("test a ... ok"), None);
    }

    #[test]
    fn the_test_program_is_named_in_cargos_line() {
        let line = "     Running tests/message_cost/main.rs (target/debug/deps/message_cost-0a1b)";
        assert_eq!(program_name(line).as_deref(), Some("message_cost"));
        let line = "   Doc-tests pteros_msg";
        assert_eq!(program_name(line).as_deref(), Some("Doc-tests pteros_msg"));
        assert_eq!(program_name("test a ... ok"), None);
    }

    #[test]
    fn the_quick_run_has_every_test_program_that_is_not_long() {
        let all = workspace().unwrap();
        let arguments = quick_targets(&all).unwrap();
        let chosen: BTreeSet<&String> = arguments.iter().filter(|a| !a.starts_with("--")).collect();
        let long: BTreeSet<&str> = LONG_TESTS.iter().map(|(_, name)| *name).collect();
        for (package, name) in &all {
            let is_long = long.contains(name.as_str());
            assert_ne!(is_long, chosen.contains(name), "{package} {name}");
        }
    }

    #[test]
    fn a_long_test_that_is_gone_or_shares_a_quick_ones_name_is_reported() {
        let pairs = |more: &[(&str, &str)]| -> TestTargets {
            let all = LONG_TESTS.iter().chain(more);
            all.map(|(package, name)| ((*package).to_owned(), (*name).to_owned()))
                .collect()
        };
        let without_the_wire = [
            "--workspace",
            "--features",
            "pteros-cli/full",
            "--exclude",
            "pteros-zenoh",
            "--lib",
            "--bins",
        ];
        assert_eq!(quick_targets(&pairs(&[])).unwrap(), without_the_wire);
        assert!(quick_targets(&TestTargets::new()).is_err());
        assert!(quick_targets(&pairs(&[("other", LONG_TESTS[0].1)])).is_err());
    }

    #[test]
    fn peers_belong_to_the_whole_run() {
        let extent = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            Extent::of(&words).ok()
        };
        assert_eq!(extent(&[]), Some(Extent::Quick));
        assert_eq!(extent(&["--all"]), Some(Extent::All { with_peers: true }));
        assert_eq!(
            extent(&["--all", "--no-peers"]),
            Some(Extent::All { with_peers: false })
        );
        assert_eq!(extent(&["--no-peers"]), None);
    }
}
