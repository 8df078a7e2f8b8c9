//! `cargo xtask test [-p PACKAGE | --all [--no-peers]]`: builds, runs tests, prints the
//! slowest modules and one line of counts at the end.
//!
//! Without options it runs what is quick: every crate's unit tests and the modules of
//! its integration tests that are not in [`LONG_TESTS`]. `-p` runs those of one package.
//! `--all` adds the long ones, documentation tests, examples, other DDS stacks, ROS 2's
//! own suites and mutants.
//!
//! Each module of integration tests runs in a process of its own, one after the other,
//! in a private network namespace. If the system does not allow one, tests run without
//! it and without peers, which is reported. A few tests that failed run once more, see
//! `test_process.rs`.
//!
//! The build uses the development profile: overflow checks and assertions are worth
//! more here than speed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::checkout::root;
use crate::counts::Counts;
use crate::seeded_bugs::InstrumentedCopy;
use crate::test_process::{
    Filter, Network, Surroundings, TestRun, Tests, run_all as run_processes,
};
use crate::test_programs::{self, Kind, TestGroup, cargo_program};
use crate::{flood, generate, namespace, peers, progress, ros2};

/// Slowest modules and programs named at the end.
const SLOWEST_SHOWN: usize = 12;

/// Integration tests that only `--all` runs: a package, and a module or a program.
const LONG_TESTS: &[(&str, &str)] = &[
    // Other DDS stacks.
    ("pteros", "interop"),
    ("pteros-cli", "interop"),
    ("pteros-security", "peers"),
    ("shapes", "vendors"),
    // Hundreds of simulated graphs, and the engine built with its seeded bugs.
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
    // Over Zenoh.
    ("pteros", "zenoh_choice"),
    ("pteros-cli", "zenoh_networks"),
    // Every example, tutorial and demo, as users run them.
    ("tour", "every_example"),
    ("tutorials", "programs"),
];

/// Whether only `--all` runs these integration tests of a package.
pub fn is_long(package: &str, name: &str) -> bool {
    LONG_TESTS.contains(&(package, name))
}

/// Cargo's selection for the quick run. The Zenoh transport takes minutes to build, and
/// nothing else needs it.
const QUICK: [&str; 6] = [
    "--workspace",
    "--features",
    "pteros-cli/full",
    "--exclude",
    "pteros-zenoh",
    "--tests",
];

/// All packages. The command has the features of its packages.
const WHOLE: [&str; 3] = ["--workspace", "--features", "pteros-cli/full"];

/// Tests in the copy of the workspace that has the seeded bugs: what must notice them.
const MUTANT_RUNS: [&str; 6] = [
    "-p",
    "pteros-sim",
    "--features",
    "faults",
    "--test",
    "mutants",
];

/// The tests in that copy that stop and kill processes at every step.
const STOP_RUNS: [&str; 4] = ["-p", "pteros-shm", "--test", "testsuite"];

/// What is built for a step, and which tests of that run.
#[derive(Clone, Copy, Default)]
struct Step<'a> {
    /// Cargo's arguments.
    build: &'a [&'a str],
    /// Only this package's.
    package: Option<&'a str>,
    /// Only the integration tests in this module or program.
    name: Option<&'a str>,
    filter: Filter<'a>,
    /// Not the [`LONG_TESTS`].
    is_quick: bool,
}

impl Step<'_> {
    fn has(&self, group: &TestGroup) -> bool {
        let is_integration = group.program.kind == Kind::Integration;
        let package = group.program.package.as_str();
        let is_long = is_integration && is_long(package, &group.name);
        self.package.is_none_or(|wanted| wanted == package)
            && self
                .name
                .is_none_or(|wanted| is_integration && wanted == group.name)
            && !(self.is_quick && is_long)
    }

    /// Builds, which is quick if it is built already, and runs.
    fn run(&self, surroundings: Surroundings) -> Result<TestRun> {
        let mut groups = Vec::new();
        for program in test_programs::build(self.build)? {
            groups.extend(program.groups()?);
        }
        groups.retain(|group| self.has(group));
        if groups.is_empty() {
            bail!("no tests {:?} {:?}", self.package, self.name);
        }
        let tests: Vec<Tests> = groups.iter().map(Tests::Group).collect();
        run_processes(&tests, surroundings, self.filter)
    }
}

#[derive(clap::Args)]
pub struct Arguments {
    /// The quick tests of this package alone
    #[arg(short, long)]
    package: Option<String>,
    /// Also the long ones, other DDS stacks, ROS 2's suites, examples and mutants
    #[arg(long, conflicts_with = "package")]
    all: bool,
    /// Without the other DDS stacks
    #[arg(long, requires = "all")]
    no_peers: bool,
}

/// Runs the command. Returns whether everything passed, and prints the counts at
/// the end.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let mut report = TestReport::new();
    if let Some(package) = &arguments.package {
        let features = match package.as_str() {
            "pteros-cli" => "pteros-cli/full",
            _ => "",
        };
        let build = ["-p", package, "--features", features, "--tests"];
        run_quick(&mut report, &build)?;
        return Ok(report.end());
    }
    if arguments.all {
        run_all(&mut report, !arguments.no_peers);
    } else {
        run_quick(&mut report, &QUICK)?;
    }
    report.run_step("generated interfaces", || {
        println!("{}", generate::run(&generate::Arguments { check: true })?);
        Ok(TestRun::single(true))
    });
    Ok(report.end())
}

fn run_quick(report: &mut TestReport, build: &[&str]) -> Result<()> {
    let tests = Step {
        build,
        is_quick: true,
        ..Step::default()
    };
    let built = report.run_step("build tests", || {
        test_programs::build(build)?;
        let has_module = !build.starts_with(&["-p"]) || build.contains(&PYTHON_MODULE);
        if has_module && has_pytest() {
            build_libraries(build)?;
        }
        Ok(TestRun::default())
    });
    if built {
        report.run_step("tests", || tests.run(surroundings(None)));
        println!(
            "other stacks, simulation, documentation tests and examples: cargo xtask test --all"
        );
    }
    Ok(())
}

fn run_all(report: &mut TestReport, with_peers: bool) {
    // Only the build needs the network. The tests run without it.
    let built = report.run_step("build tests and examples", || {
        test_programs::build(&WHOLE)?;
        build_libraries(&WHOLE)?;
        for runs in [&MUTANT_RUNS[..], &STOP_RUNS] {
            build_seeded(runs)?;
        }
        Ok(TestRun::default())
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
    let with_peers = surroundings(folder.as_deref());
    let all = Step {
        build: &WHOLE,
        ..Step::default()
    };
    report.run_step("tests", || all.run(with_peers));
    report.run_step("documentation tests", || {
        let documentation = [Tests::Documentation(&WHOLE)];
        run_processes(&documentation, with_peers, Filter::default())
    });
    if with_peers.peers.is_some() {
        report.run_step("interop without multicast", || {
            let interop = Step {
                name: Some("interop"),
                ..all
            };
            interop.run(Surroundings {
                network: Network::WithoutMulticast,
                ..with_peers
            })
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
    // Runs the simulator again with mutants of the engine, to check that it
    // detects them.
    report.run_step("mutants and tolerated faults", || {
        run_seeded(&MUTANT_RUNS, "mutants", "")
    });
    report.run_step("processes stopped at every step", || {
        run_seeded(
            &STOP_RUNS,
            "crash",
            "a_process_stopped_and_killed_at_any_step",
        )
    });
}

/// Builds tests in the copy of the workspace that has the seeded bugs.
fn build_seeded(build: &[&str]) -> Result<Vec<test_programs::TestProgram>> {
    let copy = InstrumentedCopy::make()?.arguments();
    let copy: Vec<&str> = copy.iter().map(String::as_str).collect();
    test_programs::build(&[copy.as_slice(), build].concat())
}

/// Runs one module or program of them.
fn run_seeded(build: &[&str], name: &str, part: &str) -> Result<TestRun> {
    let mut groups = Vec::new();
    for program in build_seeded(build)? {
        groups.extend(program.groups()?);
    }
    groups.retain(|group| group.name == name);
    if groups.is_empty() {
        bail!("the copy with the seeded bugs has no tests {name}");
    }
    let tests: Vec<Tests> = groups.iter().map(Tests::Group).collect();
    let filter = Filter {
        part,
        ignored: false,
    };
    let seeded = Surroundings {
        seeded: true,
        ..surroundings(None)
    };
    run_processes(&tests, seeded, filter)
}

/// The steps that build with the feature `zenoh`, which nothing else needs.
fn run_zenoh(report: &mut TestReport) {
    let run = |build: &[&str], package: &str, name: &str, filter: Filter| {
        let step = Step {
            build,
            package: Some(package),
            name: Some(name),
            filter,
            is_quick: false,
        };
        step.run(surroundings(None))
    };
    let part = |part| Filter {
        part,
        ignored: false,
    };
    let ignored = |part| Filter {
        part,
        ignored: true,
    };
    // Alone, because it measures the memory of its process.
    report.run_step("a Zenoh router that is killed 100 times", || {
        run(&WHOLE, "pteros-zenoh", "router_kills", ignored(""))
    });
    let on_pteros = ["-p", "pteros", "--features", "zenoh", "--tests"];
    report.run_step("wires by the command line", || {
        run(&on_pteros, "pteros", "zenoh_choice", part(""))
    });
    report.run_step("conformance over Zenoh", || {
        run(&on_pteros, "pteros", "conformance", part("over_zenoh"))
    });
    report.run_step("the plug-in for ROS 2 over Zenoh", || {
        let on_plug_in = ["-p", "pteros-rmw", "--features", "zenoh", "--tests"];
        run(&on_plug_in, "pteros-rmw", "over_zenoh", part(""))
    });
    report.run_step("the Python wheel over Zenoh", || {
        let on_module = ["-p", "pteros-python", "--features", "zenoh"];
        cargo(&[&["build", "--quiet"], on_module.as_slice()].concat())?;
        let tests = [on_module.as_slice(), &["--tests"]].concat();
        let filter = part("programs_meet_over_zenoh");
        let run = run(&tests, "pteros-python", "python", filter)?;
        // What follows tests the module of the other steps.
        build_libraries(&WHOLE)?;
        Ok(run)
    });
    // The command has Zenoh in these steps only.
    let on_command = ["-p", "pteros-cli", "--features", "full,zenoh", "--tests"];
    report.run_step("Zenoh in network namespaces", || {
        run(&on_command, "pteros-cli", "zenoh_networks", part(""))
    });
    // Alone, because it measures the memory of its processes.
    report.run_step("a hundred nodes on Zenoh", || {
        let filter = ignored("a_hundred_nodes");
        run(&on_command, "pteros-cli", "zenoh_networks", filter)
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
    let step = Step {
        build: &WHOLE,
        package: Some("pteros-cli"),
        name: Some("ros2_programs"),
        filter: Filter {
            part: "humble_",
            ignored: true,
        },
        is_quick: false,
    };
    step.run(Surroundings {
        humble: Some(&prefix),
        ..surroundings(None)
    })
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
    let mut child = flood::short_command()?
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
    test_programs::build(&[&WHOLE[..], &["--test", "there_and_back"]].concat())?;
    Ok(())
}

/// The package of Python's extension module.
const PYTHON_MODULE: &str = "pteros-python";

/// Whether there is a Python that can run the suite of the wheel; says so if not.
fn has_pytest() -> bool {
    let check = "import sys, pytest; sys.exit(sys.version_info < (3, 10))";
    let found = Command::new("python3").args(["-c", check]).output();
    let has_pytest = found.is_ok_and(|output| output.status.success());
    if !has_pytest {
        println!("without the Python suite: no python3 of version 3.10 or later with pytest");
    }
    has_pytest
}

/// Builds the shared libraries that no test program links, so that cargo does not build
/// them for the tests: the extension module, and the plug-in beside the command. They are
/// built with the packages of the tests. Alone they have other features, and all that
/// they use would be built again.
fn build_libraries(packages: &[&str]) -> Result<TestRun> {
    let packages = packages.iter().filter(|word| **word != "--tests");
    let words = ["build"]
        .iter()
        .chain(packages)
        .chain(&["--lib", "--tests"]);
    cargo(&words.copied().collect::<Vec<_>>())
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
        let counts = run.counts;
        self.total.add(run);
        if counts.failed > 0 {
            self.failed.push(name);
        }
        counts.failed == 0
    }

    fn end(mut self) -> bool {
        let Counts {
            passed,
            failed,
            skipped,
        } = self.total.counts;
        self.total.times.sort_by(|a, b| b.0.total_cmp(&a.0));
        if !self.total.times.is_empty() {
            println!("\nslowest modules and programs of tests, seconds:");
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

/// A private network where the system has one, and the peers.
fn surroundings(peers: Option<&Path>) -> Surroundings<'_> {
    let network = match namespace::available() {
        Ok(()) => Network::Private,
        Err(_) => Network::Shared,
    };
    Surroundings {
        peers,
        humble: None,
        seeded: false,
        network,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_programs::TESTSUITE;
    use serde_json::Value;

    /// The folder of a package of the workspace.
    fn folder(package: &str) -> PathBuf {
        let mut cargo = Command::new(cargo_program());
        let words = ["metadata", "--no-deps", "--format-version", "1"];
        let output = cargo.args(words).current_dir(root()).output().unwrap();
        let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
        let packages = metadata["packages"].as_array().unwrap();
        let found = packages.iter().find(|found| found["name"] == package);
        let manifest = found.unwrap_or_else(|| panic!("no package {package}"))["manifest_path"]
            .as_str()
            .unwrap();
        PathBuf::from(manifest).with_file_name("tests")
    }

    #[test]
    fn every_long_test_exists() {
        for (package, name) in LONG_TESTS {
            let tests = folder(package);
            let suite = tests.join(TESTSUITE);
            let places = [
                suite.join(format!("{name}.rs")),
                suite.join(name).join("mod.rs"),
                tests.join(format!("{name}.rs")),
                tests.join(name).join("main.rs"),
            ];
            let exists = places.iter().any(|place| place.exists());
            assert!(
                exists,
                "LONG_TESTS: {package} has no module or program {name}"
            );
        }
    }

    #[test]
    fn a_step_has_the_tests_of_its_package_and_module() {
        let group = |package: &str, name: &str, kind| TestGroup {
            program: test_programs::TestProgram {
                package: package.into(),
                target: TESTSUITE.into(),
                kind,
                path: PathBuf::new(),
                folder: PathBuf::new(),
                binaries: Vec::new(),
            },
            name: name.into(),
            tests: Vec::new(),
        };
        let step = Step {
            is_quick: true,
            ..Step::default()
        };
        assert!(step.has(&group("pteros", "actions", Kind::Integration)));
        assert!(!step.has(&group("pteros", "churn", Kind::Integration)));
        assert!(step.has(&group("pteros", "churn", Kind::Library)));
        let step = Step {
            package: Some("pteros"),
            name: Some("churn"),
            ..Step::default()
        };
        assert!(step.has(&group("pteros", "churn", Kind::Integration)));
        assert!(!step.has(&group("pteros", "churn", Kind::Library)));
        assert!(!step.has(&group("pteros-cli", "churn", Kind::Integration)));
    }
}
