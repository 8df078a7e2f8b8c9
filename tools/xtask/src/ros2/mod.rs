//! `cargo xtask ros2`: ROS 2's own test suites on the middleware plug-in.
//!
//! `cargo xtask test --all` runs them where a ROS 2 is found: the one that is sourced,
//! or the one that `PTEROS_ROS2` names by its prefix. `PTEROS_ROS2_TESTS` names the
//! build folder of a workspace with built tests. Each suite gives one line: passed,
//! failed, and failures that `exceptions.txt` expects with a reason. An exception for
//! a case that passes, or that is gone, fails too.
//!
//! The tests are the workspace's own; nothing of them is copied into the repository.

mod exceptions;
mod gtest;
mod installation;
mod pytest;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::checkout::root;
use crate::peers::target_folder;
use crate::test::Counts;
use exceptions::Exceptions;
use installation::Installation;

const USAGE: &str = "usage: cargo xtask ros2 [--rmw NAME] [--only PART] [SUITE …]; suites: \
                     test_rmw_implementation, rcl, rcl_action, rcl_lifecycle, rclpy";
/// The middleware under test.
const PLUG_IN: &str = "rmw_pteros_cpp";
const LIBRARY: &str = "librmw_pteros_cpp.so";

/// A suite, named after the package that has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Suite {
    package: &'static str,
    kind: SuiteKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SuiteKind {
    Gtest,
    Pytest,
}

const SUITES: [Suite; 5] = [
    gtest_suite("test_rmw_implementation"),
    gtest_suite("rcl"),
    gtest_suite("rcl_action"),
    gtest_suite("rcl_lifecycle"),
    Suite {
        package: "rclpy",
        kind: SuiteKind::Pytest,
    },
];

const fn gtest_suite(package: &'static str) -> Suite {
    Suite {
        package,
        kind: SuiteKind::Gtest,
    }
}

/// How a test case ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Passed,
    Skipped,
    Failed,
}

/// A test case of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Case {
    name: String,
    verdict: Verdict,
}

impl Case {
    fn new(name: &str, verdict: Verdict) -> Self {
        let name = name.to_owned();
        Self { name, verdict }
    }
}

/// What one test program did.
struct ProgramRun {
    /// The program, without the name of a middleware.
    program: String,
    cases: Vec<Case>,
    /// It failed at first and passed when it was repeated.
    was_repeated: bool,
    log: PathBuf,
}

/// Environment and folders of a run.
struct Bench {
    installation: Installation,
    rmw: String,
    /// A folder with the plug-in alone, for `LD_LIBRARY_PATH`.
    plug_in_folder: Option<PathBuf>,
    /// Logs, and a home for ROS's own files.
    folder: PathBuf,
    exceptions: Exceptions,
}

impl Bench {
    fn new(installation: Installation, rmw: &str) -> Result<Self> {
        let folder = target_folder()?.join("ros2-suites").join(rmw);
        if folder.exists() {
            fs::remove_dir_all(&folder).context("remove the logs of the last run")?;
        }
        fs::create_dir_all(&folder)?;
        let plug_in_folder = (rmw == PLUG_IN).then(|| folder.join("lib"));
        if let Some(lib) = &plug_in_folder {
            fs::create_dir_all(lib)?;
            let built = build_plug_in()?;
            fs::copy(&built, lib.join(LIBRARY)).context("copy the plug-in")?;
        }
        Ok(Self {
            installation,
            rmw: rmw.to_owned(),
            plug_in_folder,
            folder,
            exceptions: Exceptions::read()?,
        })
    }

    /// A shell command line with the installation sourced and the middleware chosen.
    /// The words are its arguments, and replace the shell.
    fn command(&self, words: &[&str], environment: &[(String, String)]) -> Result<Command> {
        let setup = self.installation.setup();
        let mut script = String::new();
        if let Some(setup) = &setup {
            script += &format!(". '{}' > /dev/null\n", setup.display());
        }
        if let Some(lib) = &self.plug_in_folder {
            let lib = lib.display();
            script += &format!("export LD_LIBRARY_PATH='{lib}':\"$LD_LIBRARY_PATH\"\n");
        }
        // `append` of CTest's list puts a folder behind those that are there.
        for (name, value) in environment {
            script += &match name.strip_suffix('+') {
                Some(name) => format!("export {name}=\"${{{name}:+${name}:}}\"'{value}'\n"),
                None => format!("export {name}='{value}'\n"),
            };
        }
        script += "exec \"$@\"\n";
        let mut command = crate::test::in_network_namespace(true, "bash")?;
        command
            .args(["-c", &script, "bash"])
            .args(words)
            .env("RMW_IMPLEMENTATION", &self.rmw)
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .env("ROS_DOMAIN_ID", "77")
            .env("ROS_HOME", self.folder.join("home"))
            .env_remove("ROS_STATIC_PEERS")
            .env_remove("ROS_LOCALHOST_ONLY");
        Ok(command)
    }

    fn log(&self, suite: &str, program: &str) -> PathBuf {
        self.folder.join(format!("{suite}.{program}.log"))
    }
}

/// Runs the command line. Returns whether everything passed.
pub fn run(arguments: &[String]) -> Result<bool> {
    let mut rmw = PLUG_IN.to_owned();
    let mut only = String::new();
    let mut suites = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--rmw" => rmw = words.next().context(USAGE)?.clone(),
            "--only" => only = words.next().context(USAGE)?.clone(),
            name => match SUITES.iter().find(|suite| suite.package == name) {
                Some(suite) => suites.push(*suite),
                None => bail!("{name:?} is no suite; {USAGE}"),
            },
        }
    }
    if suites.is_empty() {
        suites = SUITES.into();
    }
    let Some(installation) = Installation::find()? else {
        bail!("no ROS 2 was found: source its setup file, or name its prefix in PTEROS_ROS2");
    };
    let counts = run_suites(installation, &rmw, &suites, &only)?;
    Ok(counts.failed == 0)
}

/// Runs every suite where an installation is found, as a part of `test --all`.
pub fn run_all() -> Result<Counts> {
    match Installation::find()? {
        Some(installation) => run_suites(installation, PLUG_IN, &SUITES, ""),
        None => {
            println!("left out: no ROS 2 is sourced or named by PTEROS_ROS2");
            Ok(Counts {
                skipped: 1,
                ..Counts::default()
            })
        }
    }
}

fn run_suites(
    installation: Installation,
    rmw: &str,
    suites: &[Suite],
    only: &str,
) -> Result<Counts> {
    println!("{} on {rmw}", installation.prefix().display());
    let bench = Bench::new(installation, rmw)?;
    let mut total = Counts::default();
    for suite in suites {
        let began = Instant::now();
        let runs = match run_suite(&bench, *suite, only) {
            Ok(runs) => runs,
            Err(why) => {
                println!("{}: left out: {why:#}", suite.package);
                total.skipped += 1;
                continue;
            }
        };
        let judged = judge(suite.package, &runs, &bench.exceptions, rmw);
        println!(
            "{} ({} s)",
            judged.line(suite.package),
            began.elapsed().as_secs()
        );
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
    let Some(build) = bench.installation.tests() else {
        bail!("PTEROS_ROS2_TESTS names no build folder of a workspace with built tests");
    };
    let folder = build.join(suite.package);
    ensure!(folder.is_dir(), "{} does not exist", folder.display());
    match suite.kind {
        SuiteKind::Gtest => gtest::run(bench, suite.package, &folder, only),
        SuiteKind::Pytest => pytest::run(bench, suite.package, &folder, only),
    }
}

/// Runs a program, and repeats it once if a case failed unexpectedly: many of them
/// measure time, which a busy machine disturbs.
fn run_twice(
    bench: &Bench,
    suite: &str,
    run_once: impl Fn() -> Result<ProgramRun>,
) -> Result<ProgramRun> {
    let has_failed = |run: &ProgramRun| {
        let mut failed = run
            .cases
            .iter()
            .filter(|case| case.verdict == Verdict::Failed);
        failed.any(|case| {
            let reason = bench
                .exceptions
                .reason(&bench.rmw, suite, &run.program, &case.name);
            reason.is_none()
        })
    };
    let run = run_once()?;
    if !has_failed(&run) {
        return Ok(run);
    }
    let again = run_once()?;
    Ok(ProgramRun {
        was_repeated: !has_failed(&again),
        ..again
    })
}

/// A suite's counts, and a line for each case that needs a look.
#[derive(Default)]
struct Judged {
    passed: usize,
    failed: usize,
    expected: usize,
    skipped: usize,
    notes: Vec<String>,
}

impl Judged {
    fn line(&self, suite: &str) -> String {
        format!(
            "{suite}: {} passed, {} failed, {} expected, {} skipped",
            self.passed, self.failed, self.expected, self.skipped
        )
    }
}

/// Compares verdicts with the exceptions.
fn judge(suite: &str, runs: &[ProgramRun], exceptions: &Exceptions, rmw: &str) -> Judged {
    let mut judged = Judged::default();
    for run in runs {
        if run.was_repeated {
            let note = format!("{}: passed when it was repeated", run.program);
            judged.notes.push(note);
        }
        for case in &run.cases {
            let reason = exceptions.reason(rmw, suite, &run.program, &case.name);
            let name = format!("{} {}", run.program, case.name);
            match (case.verdict, reason) {
                (Verdict::Passed, None) => judged.passed += 1,
                (Verdict::Skipped, _) => judged.skipped += 1,
                (Verdict::Failed, Some(_)) => judged.expected += 1,
                (Verdict::Failed, None) => {
                    judged.failed += 1;
                    let log = run.log.display();
                    judged.notes.push(format!("failed: {name}, see {log}"));
                }
                (Verdict::Passed, Some(_)) => {
                    judged.failed += 1;
                    judged.notes.push(format!(
                        "stale: {name} passes; remove its line from {}",
                        exceptions::FILE
                    ));
                }
            }
        }
        for case in exceptions.unknown(rmw, suite, &run.program, &run.cases) {
            judged.failed += 1;
            judged.notes.push(format!(
                "stale: {} has no case {case}; remove its line from {}",
                run.program,
                exceptions::FILE
            ));
        }
    }
    judged
}

/// Builds the plug-in with the development profile and returns its path.
fn build_plug_in() -> Result<PathBuf> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "-p", "pteros-rmw"])
        .current_dir(root())
        .status()
        .context("run cargo")?;
    ensure!(status.success(), "the plug-in was not built ({status})");
    Ok(target_folder()?.join("debug").join(LIBRARY))
}

/// Writes a log and returns its path.
fn write_log(path: &Path, text: &str) -> Result<PathBuf> {
    fs::write(path, text).with_context(|| format!("write {}", path.display()))?;
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(cases: &[(&str, Verdict)]) -> ProgramRun {
        let cases = cases
            .iter()
            .map(|(name, verdict)| Case::new(name, *verdict));
        ProgramRun {
            program: "test_a".into(),
            cases: cases.collect(),
            was_repeated: false,
            log: "/log".into(),
        }
    }

    #[test]
    fn an_exception_that_passes_or_is_gone_fails_as_an_unexpected_failure_does() {
        let exceptions = Exceptions::parse(
            "rcl test_a B.expected | theirs\n\
             rcl test_a B.passes | was theirs\n\
             rcl test_a B.gone | was renamed\n\
             rcl test_other B.c | another program, which did not run\n",
        )
        .unwrap();
        let run = program(&[
            ("B.expected", Verdict::Failed),
            ("B.passes", Verdict::Passed),
            ("B.fails", Verdict::Failed),
            ("B.skipped", Verdict::Skipped),
            ("B.d", Verdict::Passed),
        ]);
        let judged = judge("rcl", &[run], &exceptions, PLUG_IN);
        assert_eq!(
            judged.line("rcl"),
            "rcl: 1 passed, 3 failed, 1 expected, 1 skipped"
        );
        let has = |part: &str| judged.notes.iter().any(|note| note.contains(part));
        assert!(has("failed: test_a B.fails, see /log") && has("stale: test_a B.passes passes"));
        assert!(has("stale: test_a has no case B.gone"));
    }

    #[test]
    fn words_that_are_no_suite_are_refused() {
        let words = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
        for line in ["rclcp", "--rmw", "rcl --only"] {
            let error = run(&words(line)).unwrap_err().to_string();
            assert!(error.contains("usage: cargo xtask ros2"), "{error}");
        }
    }
}
