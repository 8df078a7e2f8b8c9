//! Python tests of a package: one pytest process per file, as its own build runs them.
//!
//! The files are copied into the build folder of this project without the package's
//! `__init__.py`, which would load extensions from the package's own build folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::bench::{Bench, run_twice, write_log};
use super::case::{CRASHED, Case, CaseStatus, ProgramRun};
use super::exceptions::Exceptions;
use crate::checkout::root;
use crate::limited_command::run_limited;

/// The longest that one file may take.
const FILE_MAX: Duration = Duration::from_secs(300);
/// The behaviour tables of the client core, from the folder of the crates.
const TABLES: &str = "rcl/tests/behaviour";
/// Files of tests that look at the sources, and not at what they do.
const LINTERS: [&str; 5] = ["copyright", "flake8", "mypy", "pep257", "xmllint"];

/// How the tests of a suite run.
pub struct Pytest<'a> {
    pub suite: &'a str,
    pub python: &'a str,
    pub exceptions: &'a Exceptions,
    /// The folder for the copy, `test`.
    pub folder: PathBuf,
    /// A command line in the suite's environment.
    pub command: &'a dyn Fn(&[&str]) -> Result<Command>,
    /// The log of a program.
    pub log: &'a dyn Fn(&str) -> PathBuf,
}

/// Runs the files of a package that CMake has configured: its source folder is in
/// CMake's cache. `only` is a part of their names.
pub fn run(bench: &Bench, suite: &str, build: &Path, only: &str) -> Result<Vec<ProgramRun>> {
    run_folder(
        bench,
        suite,
        &source_folder(build, suite)?.join("test"),
        only,
    )
}

/// Plays the behaviour tables by the driver of the wheel's tests, on the installation's
/// rclpy. The rows that ROS 2 answers otherwise stand in the driver.
pub fn run_tables(bench: &Bench, suite: &str) -> Result<Vec<ProgramRun>> {
    let crates = root().join("crates");
    // The driver looks for them from its copy.
    copy_tree(&crates.join(TABLES), &bench.folder.join(TABLES))?;
    run_folder(bench, suite, &crates.join("python/tests"), "test_behaviour")
}

fn run_folder(bench: &Bench, suite: &str, source: &Path, only: &str) -> Result<Vec<ProgramRun>> {
    let pytest = Pytest {
        suite,
        python: &bench.installation.python(),
        exceptions: &bench.exceptions,
        folder: bench.folder.join(suite),
        command: &|words| bench.command(words, &[]),
        log: &|program| bench.log(suite, program),
    };
    pytest.run(source, only)
}

impl Pytest<'_> {
    /// Runs the files of a folder and those below it.
    pub fn run(&self, source: &Path, only: &str) -> Result<Vec<ProgramRun>> {
        let copy = self.folder.join("test");
        copy_tree(source, &copy)?;
        if copy.join("__init__.py").exists() {
            fs::write(copy.join("__init__.py"), "")?;
        }
        let python = self.python;
        let mut command = (self.command)(&[python, "-m", "pytest", "--version"])?;
        let version = run_limited(&mut command, FILE_MAX, false)?;
        ensure!(
            version.succeeded,
            "{python} has no pytest: {}",
            version.text.trim()
        );
        let mut programs = Vec::new();
        find_programs(&copy, "", &mut programs)?;
        programs.retain(|program| program.contains(only));
        programs.sort();
        ensure!(
            !programs.is_empty(),
            "{} has no test files",
            source.display()
        );
        let runs = programs
            .iter()
            .map(|program| run_twice(self.exceptions, self.suite, || self.run_once(program)));
        runs.collect()
    }

    fn run_once(&self, program: &str) -> Result<ProgramRun> {
        let mut command = (self.command)(&[self.python, "-m", "pytest"])?;
        // Tests of command lines look at the arguments of the process.
        let options = "-p no:cacheprovider -v --color=no --tb=short";
        command
            .env("PYTEST_ADDOPTS", format!("{options} test/{program}.py"))
            .current_dir(&self.folder);
        let output = run_limited(&mut command, FILE_MAX, false)?;
        let mut found = cases(&output.text);
        let any_failed = found.iter().any(|case| case.status == CaseStatus::Failed);
        if output.ended_early || (output.failed() && !any_failed) || found.is_empty() {
            found.push(Case::new(CRASHED, CaseStatus::Failed));
        }
        Ok(ProgramRun {
            program: program.to_owned(),
            cases: found,
            was_repeated: false,
            log: write_log(&(self.log)(program), &output.text)?,
        })
    }
}

/// Appends the test files of a folder and those below it: their paths from the first
/// folder, without `.py`.
fn find_programs(folder: &Path, start: &str, programs: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if entry.file_type()?.is_dir() {
            find_programs(&entry.path(), &format!("{start}{name}/"), programs)?;
        } else if let Some(stem) = name.strip_suffix(".py")
            && let Some(subject) = stem.strip_prefix("test_")
            && !LINTERS.contains(&subject)
        {
            programs.push(format!("{start}{stem}"));
        }
    }
    Ok(())
}

/// Statuses in the lines `test/test_a.py::Class::case PASSED [ 5%]`. A test's own
/// output may stand between name and status.
fn cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        let name = line
            .strip_prefix("test/")
            .and_then(|line| line.split_once(".py::"));
        let rest = match name {
            Some((_, rest)) => {
                let (name, rest) = split_name(rest);
                open = Some(name.to_owned());
                rest
            }
            None => line,
        };
        let words = rest.split_whitespace().rev();
        let percentage = |word: &&str| !word.starts_with('[') && !word.ends_with("%]");
        let Some(status) = words.filter(percentage).find_map(status) else {
            continue;
        };
        if rest.trim_end().ends_with("%]")
            && let Some(name) = open.take()
        {
            cases.push(Case::new(&name, status));
        }
    }
    cases
}

/// A case's name may have spaces within brackets.
fn split_name(rest: &str) -> (&str, &str) {
    let mut depth = 0;
    let end = rest.find(|c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ' ' && depth == 0
    });
    rest.split_at(end.unwrap_or(rest.len()))
}

fn status(word: &str) -> Option<CaseStatus> {
    match word {
        "PASSED" | "XFAIL" => Some(CaseStatus::Passed),
        "SKIPPED" => Some(CaseStatus::Skipped),
        "FAILED" | "ERROR" | "XPASS" => Some(CaseStatus::Failed),
        _ => None,
    }
}

/// The package's source folder in CMake's cache.
fn source_folder(build: &Path, package: &str) -> Result<PathBuf> {
    let cache = build.join("CMakeCache.txt");
    let text = fs::read_to_string(&cache).with_context(|| format!("read {}", cache.display()))?;
    let start = format!("{package}_SOURCE_DIR:STATIC=");
    let Some(path) = text.lines().find_map(|line| line.strip_prefix(&start)) else {
        bail!("{} names no source folder of {package}", cache.display());
    };
    Ok(path.into())
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    let list = fs::read_dir(from).with_context(|| format!("read {}", from.display()))?;
    fs::create_dir_all(to)?;
    for entry in list {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_read_from_the_lines_of_pytest() {
        let text = "collected 4 items\n\n\
                    test/test_a.py::TestA::one PASSED                 [ 25%]\n\
                    test/test_a.py::two[a b-1] FAILED [ 50%]\n\
                    test/test_a.py::three [INFO] [1.2] [node]: words\nmore words\n\
                    PASSED [ 75%]\n\
                    test/test_a.py::four SKIPPED (why) [100%]\n\
                    FAILED test/test_a.py::two[a b-1] - assert\n";
        assert_eq!(
            cases(text),
            [
                Case::new("TestA::one", CaseStatus::Passed),
                Case::new("two[a b-1]", CaseStatus::Failed),
                Case::new("three", CaseStatus::Passed),
                Case::new("four", CaseStatus::Skipped),
            ]
        );
    }
}
