//! One process of tests: its command, what it prints, and its results. Failed tests
//! run once more, alone.
//!
//! Many tests start processes and wait with deadlines. On a loaded machine one of some
//! thousand misses its deadline now and then. Up to [`REPEATED_MAX`] failed tests run
//! once more. A test that fails twice fails the run. A test that passes then is
//! reported as unsteady, so that it is mended without holding up another change.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::checkout::root;
use crate::counts::Counts;
use crate::test_programs::{TestGroup, cargo_program};
use crate::{namespace, ros2};

/// Environment variable with the folder of the peer programs.
const PEERS_VARIABLE: &str = "PTEROS_PEERS";

/// Environment variable of a build with the seeded bugs.
const SEEDED_VARIABLE: &str = "PTEROS_TEST_SEEDED";

/// Number of failed tests that are repeated. More have a cause in common.
const REPEATED_MAX: usize = 5;

/// What a step did.
#[derive(Default)]
pub struct TestRun {
    /// Numbers of tests.
    pub counts: Counts,
    /// Seconds and names of modules and programs.
    pub times: Vec<(f64, String)>,
    /// Tests that failed once and passed alone.
    pub unsteady: Vec<String>,
    /// Why tests were left out, and how to run them.
    pub skips: BTreeMap<String, usize>,
}

impl TestRun {
    /// The result of a single check.
    pub fn single(held: bool) -> TestRun {
        TestRun {
            counts: Counts {
                passed: usize::from(held),
                failed: usize::from(!held),
                skipped: 0,
            },
            ..TestRun::default()
        }
    }

    /// Adds another run.
    pub fn add(&mut self, more: TestRun) {
        self.counts.add(more.counts);
        self.times.extend(more.times);
        self.unsteady.extend(more.unsteady);
        for (reason, count) in more.skips {
            *self.skips.entry(reason).or_default() += count;
        }
    }
}

/// The network in which tests run.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Network {
    /// A namespace for each process.
    #[default]
    Private,
    /// A namespace for each process, without multicast.
    WithoutMulticast,
    /// That of this process.
    Shared,
}

/// What tests find where they run.
#[derive(Clone, Copy, Default)]
pub struct Surroundings<'a> {
    /// Folder of other DDS stacks.
    pub peers: Option<&'a Path>,
    /// An installed ROS 2 Humble.
    pub humble: Option<&'a Path>,
    /// The build has the seeded bugs: a test that needs them must run.
    pub seeded: bool,
    /// Their network.
    pub network: Network,
}

/// Tests that run in one process.
#[derive(Clone, Copy)]
pub enum Tests<'a> {
    /// A module, or a whole program.
    Group(&'a TestGroup),
    /// Documentation tests, which cargo runs, with its selection of packages.
    Documentation(&'a [&'a str]),
}

/// Which tests of a group run.
#[derive(Clone, Copy, Default)]
pub struct Filter<'a> {
    /// Part of their names.
    pub part: &'a str,
    /// Ignored ones, and no others.
    pub ignored: bool,
}

impl Tests<'_> {
    fn title(&self) -> String {
        match self {
            Self::Group(group) => group.title(),
            Self::Documentation(_) => "documentation tests".into(),
        }
    }

    /// The command that runs the tests with these names, or those of a filter.
    fn command(
        &self,
        surroundings: Surroundings,
        filter: Filter,
        names: &[String],
    ) -> Result<Command> {
        let program = match self {
            Self::Group(group) => group.program.path.display().to_string(),
            Self::Documentation(_) => cargo_program(),
        };
        let mut command = match surroundings.network {
            Network::Shared => Command::new(&program),
            network => namespace::command(network == Network::Private, &program)?,
        };
        if let Some(folder) = surroundings.peers {
            command.env(PEERS_VARIABLE, folder);
        }
        if surroundings.seeded {
            command.env(SEEDED_VARIABLE, "1");
        }
        if let Some(prefix) = surroundings.humble {
            command.env(ros2::HUMBLE_VARIABLE, prefix);
        }
        if std::env::var_os("RUST_TEST_THREADS").is_none() {
            command.env("RUST_TEST_THREADS", test_threads().to_string());
        }
        let mut chosen = names.to_vec();
        match self {
            Self::Group(group) => {
                group.program.prepare(&mut command)?;
                if chosen.is_empty() {
                    let tests = group.tests.iter();
                    chosen.extend(tests.filter(|name| name.contains(filter.part)).cloned());
                    if chosen.is_empty() && !group.tests.is_empty() {
                        bail!(
                            "{}: no test has {:?} in its name",
                            group.title(),
                            filter.part
                        );
                    }
                }
            }
            Self::Documentation(packages) => {
                command.args(["test", "--doc", "--offline", "--no-fail-fast"]);
                command.args(*packages).arg("--").current_dir(root());
            }
        }
        if filter.ignored {
            command.arg("--ignored");
        }
        if !chosen.is_empty() {
            command.arg("--exact").args(chosen);
        } else if !filter.part.is_empty() {
            command.arg(filter.part);
        }
        Ok(command)
    }

    fn run(&self, surroundings: Surroundings, filter: Filter, names: &[String]) -> Result<Process> {
        let mut command = self.command(surroundings, filter, names)?;
        // The harness prints on stdout, and the tests' processes on stderr: one pipe
        // keeps their order.
        let (output, input) = std::io::pipe().context("a pipe for the tests' output")?;
        command
            .stdout(input.try_clone().context("a pipe for the tests' output")?)
            .stderr(input);
        let began = Instant::now();
        let mut child = command
            .spawn()
            .with_context(|| format!("run {}", self.title()))?;
        // It holds the writing end, which would keep the pipe open.
        drop(command);
        let mut process = Process::default();
        for line in BufReader::new(output).split(b'\n') {
            let line = line.context("read the tests' output")?;
            let line = String::from_utf8_lossy(&line);
            process.read_line(&line);
            if !is_noise(&line) {
                println!("{line}");
            }
        }
        let status = child.wait().context("wait for the tests")?;
        process.end(status.success(), |why| println!("{}: {why}", self.title()));
        let has_names = matches!(self, Self::Group(group) if !group.tests.is_empty());
        if has_names && !process.has_result && process.counts.failed == 0 {
            println!("{}: ended without a result", self.title());
            process.counts.failed = 1;
        }
        process.seconds = began.elapsed().as_secs_f64();
        Ok(process)
    }

    /// The line of a skip, with the command that runs the test if the reason has none.
    fn skip_line(&self, reason: &str, is_ignored: bool) -> String {
        match self {
            Self::Group(group) if is_ignored && !reason.contains("cargo ") => {
                format!("{reason}: {}", group.ignored_command())
            }
            _ => reason.to_owned(),
        }
    }
}

/// Runs tests, one process after the other, and prints each result as it comes. Runs
/// failed tests once more.
///
/// # Errors
/// A process could not be started, or its output not read.
pub fn run_all(all: &[Tests], surroundings: Surroundings, filter: Filter) -> Result<TestRun> {
    let mut run = TestRun::default();
    let mut failed = Vec::new();
    for (number, tests) in (1..).zip(all) {
        let process = tests.run(surroundings, filter, &[])?;
        let Counts {
            passed,
            failed: failures,
            skipped,
        } = process.counts;
        run.counts.add(process.counts);
        for (reason, is_ignored) in &process.skips {
            let line = tests.skip_line(reason, *is_ignored);
            *run.skips.entry(line).or_default() += 1;
        }
        if passed + failures + skipped > 0 {
            let (title, seconds) = (tests.title(), process.seconds);
            let parts = [
                (passed, "passed"),
                (failures, "failed"),
                (skipped, "skipped"),
            ];
            let parts = parts.into_iter().filter(|(count, _)| *count > 0);
            let parts: Vec<String> = parts
                .map(|(count, word)| format!("{count} {word}"))
                .collect();
            let total = all.len();
            println!(
                "[{number}/{total}] {seconds:6.1} s  {title}: {}",
                parts.join(", ")
            );
            run.times.push((seconds, title));
        }
        if failures > 0 {
            failed.push((tests, process.failed));
        }
    }
    let names: usize = failed.iter().map(|(_, names)| names.len()).sum();
    if run.counts.failed != names || names > REPEATED_MAX {
        return Ok(run);
    }
    for (tests, names) in failed {
        println!("\nonce more, alone: {}", names.join(", "));
        let repeated = tests.run(surroundings, filter, &names)?;
        if repeated.counts.failed == 0 && repeated.counts.passed >= names.len() {
            run.counts.failed -= names.len();
            run.counts.passed += names.len();
            let title = tests.title();
            run.unsteady
                .extend(names.iter().map(|name| format!("{title}: {name}")));
        }
    }
    Ok(run)
}

/// What a process of tests printed.
#[derive(Default)]
struct Process {
    counts: Counts,
    /// Whether the harness printed a result.
    has_result: bool,
    seconds: f64,
    /// Full names of failed tests.
    failed: Vec<String>,
    /// Reasons of skipped tests, and whether `#[ignore]` gives them.
    skips: Vec<(String, bool)>,
}

impl Process {
    fn read_line(&mut self, line: &str) {
        let result = line.strip_prefix("test ");
        if let Some(name) = result.and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            self.failed.push(name.to_owned());
        }
        if let Some(more) = test_result(line) {
            self.counts.add(more);
            self.has_result = true;
        }
        self.skips
            .extend(skip_reason(line).map(|(reason, is_ignored)| (reason.to_owned(), is_ignored)));
    }

    /// Adds what the lines do not say: a test without its peer prints a skip and
    /// returns, which its harness counts as passed, and an aborted process has no counts.
    fn end(&mut self, succeeded: bool, report: impl FnOnce(&str)) {
        if !succeeded && self.counts.failed == 0 {
            report("ended early");
            self.counts.failed = self.failed.len().max(1);
        }
        let own = self.skips.iter().filter(|(_, is_ignored)| !is_ignored);
        let own = own.count();
        self.counts.passed = self.counts.passed.saturating_sub(own);
        self.counts.skipped += own;
    }
}

/// The reason in `skipped: …`, which a test prints, or in `test … ignored, …`, and
/// whether it is the latter.
fn skip_reason(line: &str) -> Option<(&str, bool)> {
    if let Some(reason) = line.strip_prefix("skipped: ") {
        return Some((reason, false));
    }
    let (_, reason) = line.strip_prefix("test ")?.split_once(" ... ignored")?;
    Some((reason.strip_prefix(", ").unwrap_or("ignored"), true))
}

/// Interoperability tests mostly wait for their peers, so more threads than cores
/// are used.
fn test_threads() -> usize {
    std::thread::available_parallelism().map_or(4, |cores| cores.get().max(4))
}

/// Lines of passed tests, which would hide the failed ones.
fn is_noise(line: &str) -> bool {
    let starts = ["running ", "test result: ok."];
    let is_skip = line.starts_with("test ") && line.contains(" ... ignored");
    line.is_empty()
        || is_skip
        || line.ends_with(" ... ok")
        || starts.iter().any(|s| line.starts_with(s))
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
    use crate::test_programs::{Kind, TestProgram};
    use pteros_test_support::folder::Folder;

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

    #[test]
    fn a_skipped_test_says_why() {
        let ignored = "test long ... ignored, minutes";
        assert_eq!(skip_reason(ignored), Some(("minutes", true)));
        assert_eq!(
            skip_reason("test long ... ignored"),
            Some(("ignored", true))
        );
        let skipped = skip_reason("skipped: no python3");
        assert_eq!(skipped, Some(("no python3", false)));
        assert_eq!(skip_reason("test a ... ok"), None);
    }

    /// A script stands for a program of tests. It prints its arguments as tests; `a`
    /// fails the first time, `b` always, and `c` aborts.
    fn program(folder: &Path) -> TestProgram {
        let path = folder.join("program");
        let text = "#!/bin/sh\n\
             code=0; passed=0; failed=0\n\
             for test in \"$@\"; do case \"$test\" in\n\
             --exact) ;;\n\
             c) exit 134;;\n\
             b) echo 'test b ... FAILED'; failed=$((failed + 1)); code=101;;\n\
             a) if mkdir seen 2> /dev/null; then echo 'test a ... FAILED'; failed=$((failed + 1))\n\
             code=101; else passed=$((passed + 1)); fi;;\n\
             s) echo 'skipped: no peer'; passed=$((passed + 1));;\n\
             *) passed=$((passed + 1));;\n\
             esac; done\n\
             echo \"test result: x. $passed passed; $failed failed; 0 ignored; 0 measured\"\n\
             exit $code\n";
        std::fs::write(&path, text).unwrap();
        let mut chmod = Command::new("chmod");
        assert!(chmod.arg("+x").arg(&path).status().unwrap().success());
        TestProgram {
            package: "p".into(),
            target: "testsuite".into(),
            kind: Kind::Integration,
            path,
            folder: folder.to_owned(),
            binaries: Vec::new(),
        }
    }

    #[test]
    fn a_failed_test_runs_once_more_and_an_aborted_process_fails() {
        let folder = Folder::new("test-process");
        let program = program(&folder);
        let run = |tests: &[&str]| {
            let group = TestGroup {
                program: program.clone(),
                name: "m".into(),
                tests: tests.iter().map(|&test| test.to_owned()).collect(),
            };
            let all = [Tests::Group(&group)];
            let surroundings = Surroundings {
                humble: None,
                seeded: false,
                peers: None,
                network: Network::Shared,
            };
            run_all(&all, surroundings, Filter::default()).unwrap()
        };
        let unsteady = run(&["a", "x", "s"]);
        let counts = |passed, failed, skipped| Counts {
            passed,
            failed,
            skipped,
        };
        assert_eq!(unsteady.counts, counts(2, 0, 1));
        assert_eq!(unsteady.unsteady, ["p m: a"]);
        assert_eq!(unsteady.skips["no peer"], 1);
        let failed = run(&["a", "b"]);
        assert_eq!((failed.counts, failed.unsteady.len()), (counts(1, 1, 0), 0));
        assert_eq!(run(&["x", "c"]).counts, counts(0, 1, 0));
    }
}
