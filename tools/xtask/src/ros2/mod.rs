//! `cargo xtask ros2`: ROS 2's own test suites on the middleware plug-in.
//!
//! `cargo xtask test --all` runs them where a ROS 2 is found. That is the one that is
//! sourced, or the one that `PTEROS_ROS2` names by its prefix. `PTEROS_ROS2_TESTS` names the
//! build folder of a workspace with built tests. Elsewhere a folder beside the checkout may
//! bring both (`beside`); then the suites of the middleware itself run. Each suite gives one line: passed,
//! failed, and failures that `exceptions.txt` expects with a reason. An exception for
//! a case that passes, or that is gone, fails too. The suite `behaviour` is ours: the tables
//! of `crates/rcl/tests/behaviour`, played on ROS 2's rclpy.
//!
//! `--wheel` runs ROS 2's suites of Python on the Python wheel (`wheel`).
//! `--valgrind` runs the suites of C++ under valgrind (`memcheck`), and `--soak` lets
//! nodes talk for half an hour (`soak`).
//!
//! The tests are the workspace's own; nothing of them is copied into the repository.

mod bench;
mod beside;
mod case;
mod exceptions;
mod gtest;
mod judgement;
mod launch_tests;
mod memcheck;
mod programs;
mod pytest;
mod soak;
mod sources;
mod wheel;
mod wheel_programs;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::counts::Counts;
use bench::{Bench, PLUG_IN, PlugIn};
use case::ProgramRun;
use judgement::judge;
use pteros_peers::ros2::{Installation, NOT_FOUND};

pub use programs::run_inside as run_programs_inside;
pub use pteros_peers::ros2::PREFIX_VARIABLE as VARIABLE;
pub use soak::run_inside as run_soak_inside;

/// The variable with the prefix of a ROS 2 Humble.
pub const HUMBLE_VARIABLE: &str = "PTEROS_ROS2_HUMBLE";

/// A suite, named after the package that has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Suite {
    package: &'static str,
    kind: SuiteKind,
    /// Values of [`bench::OPTIONAL_FEATURES`], a run for each. The tests of rcl decide by
    /// the name of the middleware whether loans and content filters must be refused.
    optional_features: &'static [&'static str],
    /// The beginnings of its programs' names; none stands for all programs.
    prefixes: &'static [&'static str],
    /// Programs that are not run. The reasons stand where they are listed.
    left_out: &'static [&'static str],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SuiteKind {
    Gtest,
    Pytest,
    /// gtest programs, and launch files that start programs of both languages.
    Launch,
    /// The behaviour tables of the client core, which are ours.
    Tables,
}

impl Suite {
    /// Whether a program belongs to it. `only` is a part of the names that are asked for.
    fn includes(&self, program: &str, only: &str) -> bool {
        let begins = |prefix: &&str| program.starts_with(*prefix);
        (self.prefixes.is_empty() || self.prefixes.iter().any(begins))
            && !self.left_out.contains(&program)
            && program.contains(only)
    }

    /// Whether valgrind runs it without being asked for it by name. The suites above
    /// the middleware find the same, in hours.
    fn is_checked_for_memory(&self) -> bool {
        self.package == "test_rmw_implementation"
    }
}

const SUITES: [Suite; 10] = [
    gtest_suite("test_rmw_implementation", &["on", "off"]),
    gtest_suite("rcl", &["off"]),
    gtest_suite("rcl_action", &["on"]),
    gtest_suite("rcl_lifecycle", &["on"]),
    Suite {
        kind: SuiteKind::Pytest,
        ..gtest_suite("rclpy", &["on"])
    },
    RCLCPP,
    gtest_suite("rclcpp_action", &["on"]),
    gtest_suite("rclcpp_lifecycle", &["on"]),
    COMMUNICATION,
    TABLES,
];

/// What uses the middleware. The others of its hundred programs test rclcpp alone.
const RCLCPP: Suite = Suite {
    prefixes: &[
        "test_subscription",
        "test_service",
        "test_client",
        "test_executor",
        "test_publisher",
        "test_generic",
        "test_qos_event",
        "test_graph",
        "test_wait_set",
    ],
    left_out: &[
        // It measures the load of its process, which a busy machine changes.
        "test_executors_busy_waiting",
        // Its end frees a node whose executor may still call a timer of it, which crashes on
        // a busy machine with each middleware. Here it does so more often: a node ends in
        // 0.1 ms, over Fast DDS and Cyclone DDS in 7 and 12 ms.
        "test_executors_timer_cancel_behavior",
        // Built for a middleware by name: the one for Cyclone DDS expects no filters, and
        // fails with Fast DDS as well.
        "test_subscription_content_filter",
    ],
    ..gtest_suite("rclcpp", &["on"])
};

/// Every type of message, service and action, between programs of rclcpp and rclpy.
const COMMUNICATION: Suite = Suite {
    kind: SuiteKind::Launch,
    ..gtest_suite("test_communication", &["on"])
};

/// What the tables say of Pteros, asked of rcl and rclpy.
const TABLES: Suite = Suite {
    kind: SuiteKind::Tables,
    ..gtest_suite("behaviour", &["on"])
};

/// The suites of an installation that a folder beside the checkout brings: minutes.
const SUITES_BESIDE: [Suite; 5] = [
    gtest_suite("test_rmw_implementation", &["on"]),
    RCLCPP,
    gtest_suite("rclcpp_action", &["on"]),
    gtest_suite("rclcpp_lifecycle", &["on"]),
    TABLES,
];

/// The suites of a ROS 2 Humble, which has the tests of the middleware alone.
const SUITES_HUMBLE: [Suite; 1] = [gtest_suite("test_rmw_implementation", &["on"])];

const fn gtest_suite(package: &'static str, optional_features: &'static [&'static str]) -> Suite {
    Suite {
        package,
        kind: SuiteKind::Gtest,
        optional_features,
        prefixes: &[],
        left_out: &[],
    }
}

#[derive(Args)]
pub struct Arguments {
    /// The suites; without them all
    #[arg(value_name = "SUITE", value_parser = PossibleValuesParser::new(names()))]
    suites: Vec<String>,
    /// Only programs, or files of Python, with this part in their name
    #[arg(long, value_name = "PART", default_value = "")]
    only: String,
    /// The middleware, as RMW_IMPLEMENTATION names it
    #[arg(long, value_name = "NAME", default_value = PLUG_IN)]
    rmw: String,
    /// The suites of C++ under valgrind's memcheck
    #[arg(long)]
    valgrind: bool,
    /// The suites of Python on the Python wheel
    #[arg(long, conflicts_with_all = ["rmw", "valgrind"])]
    wheel: bool,
    /// Nodes of rclcpp and rclpy that talk for long, instead of the suites
    #[arg(long, conflicts_with_all = ["suites", "only", "valgrind", "wheel"])]
    soak: bool,
    /// How long they talk
    #[arg(long, value_name = "N", default_value_t = 30, requires = "soak", value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
}

/// The names of all suites, each once.
fn names() -> impl Iterator<Item = &'static str> {
    let of_wheel = wheel::SUITES.into_iter();
    let is_other = |name: &&str| SUITES.iter().all(|suite| suite.package != *name);
    let packages = SUITES.iter().map(|suite| suite.package);
    packages.chain(of_wheel.filter(is_other))
}

impl Arguments {
    /// The chosen suites on the middleware.
    fn suites(&self) -> Result<Vec<Suite>> {
        let is_checked = |suite: &&Suite| !self.valgrind || suite.is_checked_for_memory();
        if self.suites.is_empty() {
            return Ok(SUITES.iter().filter(is_checked).copied().collect());
        }
        let find = |name: &String| {
            let found = SUITES.iter().find(|suite| suite.package == name);
            let suite = found.with_context(|| format!("{name} needs --wheel"))?;
            ensure!(
                !self.valgrind || suite.kind == SuiteKind::Gtest,
                "--valgrind runs suites of C++ alone, and {name} is one of Python"
            );
            Ok(*suite)
        };
        self.suites.iter().map(find).collect()
    }

    /// The chosen suites of the wheel.
    fn wheel_suites(&self) -> Result<Vec<&str>> {
        if self.suites.is_empty() {
            return Ok(wheel::SUITES.to_vec());
        }
        for name in &self.suites {
            ensure!(
                wheel::SUITES.contains(&name.as_str()),
                "{name} is no suite of the wheel: {}",
                wheel::SUITES.join(", ")
            );
        }
        Ok(self.suites.iter().map(String::as_str).collect())
    }
}

/// Runs the command line. Returns whether everything passed.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let Arguments { rmw, only, .. } = arguments;
    if arguments.wheel {
        let counts = wheel::run(&arguments.wheel_suites()?, only)?;
        return Ok(counts.failed == 0);
    }
    let suites = arguments.suites()?;
    let installation = match Installation::find()? {
        Some(installation) => installation,
        None => beside::unpack().map_err(|why| anyhow!("{NOT_FOUND}; {why:#}"))?,
    };
    if arguments.soak {
        return soak::run(installation, rmw, arguments.minutes);
    }
    if arguments.valgrind {
        return memcheck::run(installation, rmw, &suites, only);
    }
    let counts = run_suites(installation, rmw, &suites, only, PlugIn::ToBuild)?;
    Ok(counts.failed == 0)
}

/// The words of the task [`run_in_tests`].
pub const IN_TESTS: [&str; 1] = ["ros2-in-tests"];

/// Runs every suite where an installation is found, as a part of `test --all`, which has
/// built the plug-ins. Of one that a folder beside the checkout brings, those of the
/// middleware. Those of Humble follow. The last line has the result. Returns whether
/// everything passed.
///
/// # Errors
/// An installation has no setup, or its programs could not be started.
pub fn run_in_tests() -> Result<bool> {
    let run = |installation, suites: &[Suite]| {
        run_suites(installation, PLUG_IN, suites, "", PlugIn::Built)
    };
    let mut counts = match Installation::find()? {
        Some(installation) => run(installation, &SUITES)?,
        None => match beside::unpack() {
            Ok(installation) => run(installation, &SUITES_BESIDE)?,
            Err(why) => left_out("no ROS 2 is sourced or named by PTEROS_ROS2", &why),
        },
    };
    counts.add(match humble() {
        Ok(prefix) => {
            let tests = prefix.with_file_name("build");
            run(Installation::at(prefix, tests), &SUITES_HUMBLE)?
        }
        Err(why) => left_out(&format!("{HUMBLE_VARIABLE} names no ROS 2"), &why),
    });
    println!("{}", counts.result_line());
    Ok(counts.failed == 0)
}

fn left_out(what: &str, why: &anyhow::Error) -> Counts {
    println!("left out: {what}, and {why:#}");
    Counts {
        skipped: 1,
        ..Counts::default()
    }
}

/// The prefix of a ROS 2 Jazzy that a folder beside the checkout brings. `None` if one is
/// named or sourced, which tests find by themselves.
///
/// # Errors
/// Why there is none, as the rest of a sentence.
pub fn jazzy() -> Result<Option<PathBuf>> {
    if Installation::find()?.is_some() {
        return Ok(None);
    }
    Ok(Some(beside::unpack()?.prefix().to_owned()))
}

/// The prefix of a ROS 2 Humble: the one that the variable names, else one that a folder
/// beside the checkout brings.
///
/// # Errors
/// Why there is none, as the rest of a sentence.
pub fn humble() -> Result<PathBuf> {
    match std::env::var_os(HUMBLE_VARIABLE).filter(|value| !value.is_empty()) {
        Some(prefix) => Ok(PathBuf::from(prefix)),
        None => beside::unpack_humble(),
    }
}

/// Runs every suite of the Python wheel where the sources are named, as a part of
/// `test --all`.
pub fn run_all_on_wheel() -> Result<Counts> {
    if wheel::is_found() {
        return wheel::run(&wheel::SUITES, "");
    }
    println!("left out: PTEROS_ROS2_SOURCES names no sources of ROS 2");
    Ok(Counts {
        skipped: 1,
        ..Counts::default()
    })
}

fn run_suites(
    installation: Installation,
    rmw: &str,
    suites: &[Suite],
    only: &str,
    plug_in: PlugIn,
) -> Result<Counts> {
    println!("{} on {rmw}", installation.prefix().display());
    let mut bench = Bench::new(installation, rmw, "ros2-suites", plug_in)?;
    let mut total = Counts::default();
    let runs = suites.iter().flat_map(|suite| {
        // The variable is the plug-in's.
        let count = if rmw == PLUG_IN { usize::MAX } else { 1 };
        let values = suite.optional_features.iter().take(count);
        values.map(|value| (*suite, *value))
    });
    for (suite, optional_features) in runs {
        let began = Instant::now();
        bench.optional_features = optional_features;
        let title = match optional_features {
            "on" => suite.package.to_owned(),
            value => format!("{} with optional features {value}", suite.package),
        };
        let runs = match run_suite(&bench, suite, only) {
            Ok(runs) => runs,
            Err(why) => {
                println!("{title}: left out: {why:#}");
                total.skipped += 1;
                continue;
            }
        };
        let judged = judge(suite.package, &runs, &bench.exceptions);
        println!("{} ({} s)", judged.line(&title), began.elapsed().as_secs());
        judged.notes.iter().for_each(|note| println!("  {note}"));
        total.passed += judged.passed + judged.expected;
        total.failed += judged.failed;
        total.skipped += judged.skipped;
    }
    Ok(total)
}

/// The runs of a suite's programs.
///
/// # Errors
/// Its built tests are not there; the text says where they were looked for.
fn run_suite(bench: &Bench, suite: Suite, only: &str) -> Result<Vec<ProgramRun>> {
    let tests = || {
        let Some(build) = bench.installation.tests() else {
            bail!("PTEROS_ROS2_TESTS names no build folder of a workspace with built tests");
        };
        let folder = build.join(suite.package);
        ensure!(folder.is_dir(), "{} does not exist", folder.display());
        Ok(folder)
    };
    match suite.kind {
        SuiteKind::Gtest => gtest::run(bench, &suite, &tests()?, only),
        SuiteKind::Pytest => pytest::run(bench, suite.package, &tests()?, only),
        SuiteKind::Launch => {
            let build = tests()?;
            let mut runs = launch_tests::run(bench, suite.package, &build, only)?;
            runs.extend(gtest::run(bench, &suite, &build, only)?);
            Ok(runs)
        }
        SuiteKind::Tables => pytest::run_tables(bench, suite.package),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_has_programs_of_a_package_by_the_beginning_of_their_names() {
        assert!(RCLCPP.includes("test_client_common", ""));
        assert!(RCLCPP.includes("test_executor", "exec"));
        assert!(!RCLCPP.includes("test_executor", "client"));
        assert!(!RCLCPP.includes("test_executors_busy_waiting", ""));
        assert!(!RCLCPP.includes("test_parameter_client", ""));
        assert!(SUITES[0].includes("test_anything", ""));
    }

    #[test]
    fn words_that_are_no_suite_are_refused() {
        use clap::FromArgMatches as _;

        let arguments = |line: &str| {
            let command = Arguments::augment_args(clap::Command::new("ros2"));
            let words = ["ros2"].into_iter().chain(line.split_whitespace());
            Arguments::from_arg_matches(&command.get_matches_from(words)).unwrap()
        };
        let suites = |line: &str| arguments(line).suites();
        assert_eq!(suites("--only x").unwrap(), SUITES);
        assert_eq!(suites("--valgrind").unwrap(), SUITES[..1]);
        assert_eq!(suites("--valgrind rcl").unwrap(), SUITES[1..2]);
        let error = suites("--valgrind rclpy").unwrap_err().to_string();
        assert!(error.contains("rclpy is one of Python"), "{error}");
        let error = suites("programs").unwrap_err().to_string();
        assert!(error.contains("--wheel"), "{error}");
        let of_wheel = |line: &str| {
            let arguments = arguments(line);
            let suites = arguments.wheel_suites()?;
            Ok::<_, anyhow::Error>(suites.join(" "))
        };
        assert_eq!(of_wheel("--wheel").unwrap(), wheel::SUITES.join(" "));
        assert_eq!(of_wheel("--wheel rclpy --only qos").unwrap(), "rclpy");
        assert!(of_wheel("--wheel rcl").is_err());
    }
}
