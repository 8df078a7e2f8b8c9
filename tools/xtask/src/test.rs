//! `cargo xtask test [-p PACKAGE | --all [--no-peers]]`: builds, runs tests, prints the
//! slowest modules and one line of counts at the end.
//!
//! Without options it runs what is quick: every crate's unit tests and the modules of
//! its integration tests that are not in [`LONG_TESTS`]. `-p` runs those of one package.
//! `--all` adds the long ones, documentation tests, examples, other DDS stacks, ROS 2's
//! own suites and mutants.
//!
//! Each module of integration tests runs in a process of its own, in a private network
//! namespace. Several run at once, see `test_lanes.rs`. If the system does not allow
//! such a namespace, tests run one by one, without it and without peers, which is
//! reported.
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
use crate::test_jobs::Job;
use crate::test_lanes::{BuildPeers, TestRun, lanes, run_all as run_jobs};
use crate::test_process::{Filter, Network, Surroundings, Tests};
use crate::test_programs::{self, Kind, TESTSUITE, TestGroup, TestProgram, cargo_program};
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
    ("pteros-cli", "discovery_server"),
    ("pteros-cli", "rclpy_of_the_index"),
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
/// nothing else needs it. The programs of `tour` and `tutorials` are a gigabyte, and their
/// tests are long.
const QUICK: [&str; 10] = [
    "--workspace",
    "--features",
    "pteros-cli/full",
    "--exclude",
    "pteros-zenoh",
    "--exclude",
    "tour",
    "--exclude",
    "tutorials",
    "--tests",
];

/// All packages. The command has the features of its packages. What may have Zenoh has
/// it: a second build without it would compile half of the crates again.
const WHOLE: [&str; 3] = [
    "--workspace",
    "--features",
    "pteros-cli/full,pteros-cli/zenoh,pteros-python/zenoh,pteros-rmw/zenoh,\
     pteros-rmw-humble/zenoh,pteros-rmw-kilted/zenoh",
];

/// The same, with a command that has no Zenoh: nothing else is compiled again.
const COMMAND_WITHOUT_ZENOH: [&str; 5] = [
    "--workspace",
    "--features",
    "pteros-cli/full,pteros/zenoh,pteros-python/zenoh,pteros-rmw/zenoh,\
     pteros-rmw-humble/zenoh,pteros-rmw-kilted/zenoh",
    "--test",
    TESTSUITE,
];

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

/// Which of the built tests run, and where.
#[derive(Clone, Copy, Default)]
struct Selection<'a> {
    /// Only this package's.
    package: Option<&'a str>,
    /// Only the integration tests in this module or program.
    name: Option<&'a str>,
    filter: Filter<'a>,
    surroundings: Surroundings<'a>,
    /// Not the [`LONG_TESTS`].
    is_quick: bool,
}

impl<'a> Selection<'a> {
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

    /// A job of each module or program.
    ///
    /// # Errors
    /// There is none.
    fn jobs(&self, groups: &'a [TestGroup]) -> Result<Vec<Job<'a>>> {
        let groups = groups.iter().filter(|group| self.has(group));
        let jobs = groups.map(|group| Job {
            tests: Tests::Group(group),
            surroundings: self.surroundings,
            filter: self.filter,
        });
        let jobs: Vec<Job> = jobs.collect();
        if jobs.is_empty() {
            bail!("no tests {:?} {:?}", self.package, self.name);
        }
        Ok(jobs)
    }
}

/// The modules and programs of built programs of tests.
fn groups_of(programs: &[TestProgram]) -> Result<Vec<TestGroup>> {
    let groups = programs.iter().map(TestProgram::groups);
    let groups: Vec<Vec<TestGroup>> = groups.collect::<Result<_>>()?;
    Ok(groups.concat())
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
    /// Processes of tests at once, instead of two more than processors
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=16))]
    lanes: Option<u8>,
}

/// Runs the command. Returns whether everything passed, and prints the counts at
/// the end.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let mut report = TestReport::new();
    let lanes = lanes(arguments.lanes);
    if let Some(package) = &arguments.package {
        let features = match package.as_str() {
            "pteros-cli" => "pteros-cli/full",
            _ => "",
        };
        let build = ["-p", package, "--features", features, "--tests"];
        run_quick(&mut report, &build, lanes)?;
        return Ok(report.end());
    }
    if arguments.all {
        run_all(&mut report, !arguments.no_peers, lanes);
    } else {
        run_quick(&mut report, &QUICK, lanes)?;
    }
    report.run_step("generated interfaces", || {
        println!("{}", generate::run(&generate::Arguments { check: true })?);
        Ok(TestRun::single(true))
    });
    Ok(report.end())
}

fn run_quick(report: &mut TestReport, build: &[&str], lanes: usize) -> Result<()> {
    let mut groups = Vec::new();
    let built = report.run_step("build tests", || {
        groups = groups_of(&test_programs::build(build)?)?;
        let has_module = !build.starts_with(&["-p"]) || build.contains(&PYTHON_MODULE);
        if has_module && has_pytest() {
            build_libraries(build)?;
        }
        Ok(TestRun::default())
    });
    if built {
        let quick = Selection {
            surroundings: surroundings(None),
            is_quick: true,
            ..Selection::default()
        };
        report.run_step("tests", || run_jobs(&quick.jobs(&groups)?, lanes, None));
        println!(
            "other stacks, simulation, documentation tests and examples: cargo xtask test --all"
        );
    }
    Ok(())
}

/// What `--all` builds.
#[derive(Default)]
struct Built {
    /// The tests of the workspace.
    whole: Vec<TestGroup>,
    /// What must notice the seeded bugs, in the copy of the workspace that has them.
    mutants: Vec<TestGroup>,
    /// In that copy, what stops and kills processes at every step.
    stops: Vec<TestGroup>,
}

impl Built {
    fn build() -> Result<Built> {
        let whole = groups_of(&test_programs::build(&WHOLE)?)?;
        build_libraries(&WHOLE)?;
        Ok(Built {
            whole,
            mutants: build_seeded(&MUTANT_RUNS)?,
            stops: build_seeded(&STOP_RUNS)?,
        })
    }

    /// All tests, with what they need.
    fn jobs<'a>(
        &'a self,
        peers: Option<&'a Path>,
        ros2: &'a Installations,
    ) -> Result<Vec<Job<'a>>> {
        let here = surroundings(None);
        let humble = ros2.humble.as_deref();
        let all = Selection {
            surroundings: Surroundings {
                peers,
                ros2: ros2.jazzy.as_deref(),
                humble,
                ..here
            },
            ..Selection::default()
        };
        let ignored = |package, name, part| Selection {
            package: Some(package),
            name: Some(name),
            filter: Filter {
                part,
                ignored: true,
            },
            ..all
        };
        let mut jobs = all.jobs(&self.whole)?;
        // Its programs get networks of their own.
        jobs.push(Job {
            tests: Tests::Task("ROS 2's suites on the plug-in", &ros2::IN_TESTS),
            surroundings: Surroundings {
                network: Network::Shared,
                ..here
            },
            filter: Filter::default(),
        });
        jobs.push(Job {
            tests: Tests::Documentation(&WHOLE),
            surroundings: all.surroundings,
            filter: Filter::default(),
        });
        if peers.is_some() {
            let interop = Selection {
                name: Some("interop"),
                surroundings: Surroundings {
                    peers,
                    network: Network::WithoutMulticast,
                    ..here
                },
                ..all
            };
            jobs.extend(interop.jobs(&self.whole)?);
        }
        // A router that is killed a hundred times.
        jobs.extend(ignored("pteros-zenoh", "router_kills", "").jobs(&self.whole)?);
        let hundred = ignored("pteros-cli", "zenoh_networks", "a_hundred_nodes");
        jobs.extend(hundred.jobs(&self.whole)?);
        if humble.is_some() {
            let nodes = Selection {
                surroundings: Surroundings {
                    peers: None,
                    ..all.surroundings
                },
                ..ignored("pteros-cli", "ros2_programs", "humble_")
            };
            jobs.extend(nodes.jobs(&self.whole)?);
        }
        // The simulator runs again with mutants of the engine: it must detect them.
        for (groups, name, part) in [
            (&self.mutants, "mutants", ""),
            (
                &self.stops,
                "crash",
                "a_process_stopped_and_killed_at_any_step",
            ),
        ] {
            let seeded = Selection {
                name: Some(name),
                filter: Filter {
                    part,
                    ignored: false,
                },
                surroundings: Surroundings {
                    seeded: true,
                    ..here
                },
                ..Selection::default()
            };
            jobs.extend(seeded.jobs(groups)?);
        }
        Ok(jobs)
    }
}

fn run_all(report: &mut TestReport, with_peers: bool, lanes: usize) {
    // Only the build needs the network. The tests run without it.
    let mut built = Built::default();
    let is_built = report.run_step("build tests and examples", || {
        built = Built::build()?;
        Ok(TestRun::default())
    });
    if !is_built {
        return;
    }
    let mut peers = None;
    if with_peers {
        report.run_step("peers", || {
            let (found, run) = find_peers()?;
            peers = found;
            Ok(run)
        });
    }
    let mut ros2 = Installations::default();
    report.run_step("installed ROS 2", || {
        let (found, run) = Installations::find();
        ros2 = found;
        Ok(run)
    });
    report.run_step("tests", || {
        let build_peers = peers.as_ref().map(|_| &build_peers as BuildPeers);
        let jobs = built.jobs(peers.as_deref(), &ros2)?;
        run_jobs(&jobs, lanes, build_peers)
    });
    // Last of those that run the command, which this builds again.
    report.run_step("the command without Zenoh", || {
        let groups = groups_of(&test_programs::build(&COMMAND_WITHOUT_ZENOH)?)?;
        let refusals = Selection {
            package: Some("pteros-cli"),
            name: Some("wrong_inputs"),
            surroundings: surroundings(None),
            ..Selection::default()
        };
        run_jobs(&refusals.jobs(&groups)?, lanes, None)
    });
    report.run_step("floods of hostile packets", run_floods);
    report.run_step("ROS 2's Python suites on the wheel", || {
        Ok(TestRun {
            counts: ros2::run_all_on_wheel()?,
            ..TestRun::default()
        })
    });
}

/// Builds tests in the copy of the workspace that has the seeded bugs.
fn build_seeded(build: &[&str]) -> Result<Vec<TestGroup>> {
    let copy = InstrumentedCopy::make()?.arguments();
    let copy: Vec<&str> = copy.iter().map(String::as_str).collect();
    groups_of(&test_programs::build(&[copy.as_slice(), build].concat())?)
}

/// Prefixes of installed ROS 2, whose nodes tests run, where the tests do not find them.
#[derive(Default)]
struct Installations {
    jazzy: Option<PathBuf>,
    humble: Option<PathBuf>,
}

impl Installations {
    /// A missing one counts as a skip with its reason.
    fn find() -> (Self, TestRun) {
        let mut run = TestRun::default();
        let mut keep = |variable: &str, found: Result<Option<PathBuf>>| {
            let left_out = |why: &anyhow::Error| {
                println!("left out: {variable} names no ROS 2, and {why:#}");
                run.counts.skipped += 1;
            };
            found.inspect_err(left_out).ok().flatten()
        };
        let found = Self {
            jazzy: keep(ros2::VARIABLE, ros2::jazzy()),
            humble: keep(ros2::HUMBLE_VARIABLE, ros2::humble().map(Some)),
        };
        (found, run)
    }
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
        let cpu = self.total.cpu_seconds;
        println!(
            "\n{passed} passed, {failed} failed, {skipped} skipped in {seconds} s, tests took {cpu:.0} s of CPU time"
        );
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
        ros2: None,
        humble: None,
        seeded: false,
        yields: false,
        network,
    }
}

/// The folder of the other stacks, whose tests need private networks. A system without
/// them counts as a skip with its reason. Installs the compilers, which other tests use,
/// too.
fn find_peers() -> Result<(Option<PathBuf>, TestRun)> {
    let mut run = TestRun::default();
    if let Err(why) = namespace::available() {
        println!("no peers, since a private network is not available: {why}");
        run.counts.skipped += 1;
        return Ok((None, run));
    }
    let folder = peers::install_tools()?;
    println!("built while the tests run");
    Ok((Some(folder), run))
}

/// How much the build of the other stacks gives way to tests, which wait with deadlines.
/// Tests on simulated time give way to both.
const PEERS_NICE: &str = "10";

/// Installs and builds the other stacks. A missing one counts as a skip with its reason.
fn build_peers() -> Result<TestRun> {
    let own = std::env::current_exe().context("find this program's own path")?;
    let mut child = Command::new("nice")
        .args(["-n", PEERS_NICE])
        .arg(own)
        .arg("peers")
        .stdout(Stdio::piped())
        // The last line says how many are missing.
        .stderr(Stdio::null())
        .spawn()
        .context("build the other stacks")?;
    let mut run = TestRun::default();
    let mut present = 0;
    for line in child
        .stdout
        .take()
        .into_iter()
        .flat_map(|out| BufReader::new(out).lines())
    {
        let line = line.context("read what the build of the other stacks prints")?;
        if let Some(why) = peers::missing(&line) {
            println!("skipped: {line}");
            run.counts.skipped += 1;
            *run.skips.entry(why).or_default() += 1;
        } else {
            present += 1;
        }
    }
    let status = child.wait().context("wait for the other stacks' build")?;
    let missing = run.counts.skipped;
    if !status.success() && missing == 0 {
        bail!("the other stacks were not built ({status}); cargo xtask peers says why");
    }
    println!("peers: {present} ready, {missing} missing");
    Ok(run)
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
    fn a_selection_has_the_tests_of_its_package_and_module() {
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
        let step = Selection {
            is_quick: true,
            ..Selection::default()
        };
        assert!(step.has(&group("pteros", "actions", Kind::Integration)));
        assert!(!step.has(&group("pteros", "churn", Kind::Integration)));
        assert!(step.has(&group("pteros", "churn", Kind::Library)));
        let step = Selection {
            package: Some("pteros"),
            name: Some("churn"),
            ..Selection::default()
        };
        assert!(step.has(&group("pteros", "churn", Kind::Integration)));
        assert!(!step.has(&group("pteros", "churn", Kind::Library)));
        assert!(!step.has(&group("pteros-cli", "churn", Kind::Integration)));
    }
}
