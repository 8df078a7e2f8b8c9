//! Launch tests of a package (launch_testing), as its CTest file lists them. Each starts
//! programs that name their middleware in the launch file: a copy of the file names the
//! one under test.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::bench::{Bench, run_twice, write_log};
use super::case::{CRASHED, Case, CaseStatus, ProgramRun};
use crate::limited_command::run_limited;

/// The longest that one file may take: thirteen types of messages, seconds for each.
const FILE_MAX: Duration = Duration::from_secs(300);
/// The middleware that the files name, and the end of their names.
const NAMED: &str = "rmw_cyclonedds_cpp";
/// What CTest starts.
const MODULE: &str = "launch_testing.launch_test";

/// Runs the launch tests of a package. `only` is a part of their names.
pub fn run(bench: &Bench, suite: &str, build: &Path, only: &str) -> Result<Vec<ProgramRun>> {
    let list = build.join("CTestTestfile.cmake");
    let text = fs::read_to_string(&list).unwrap_or_default();
    let copies = bench.folder.join(suite);
    fs::create_dir_all(&copies)?;
    let mut runs = Vec::new();
    for (name, file) in launch_files(&text) {
        if !name.contains(only) {
            continue;
        }
        let text = fs::read_to_string(file).with_context(|| format!("read {file}"))?;
        // An installation may lack the sources of programs in Python.
        let own = format!("/{suite}/");
        let mut programs = text.split('\'').filter(|word| word.contains(&own));
        if !programs.all(|program| Path::new(program).exists()) {
            println!("{suite}: {name} left out: not all of its programs are there");
            continue;
        }
        let copy = copies.join(name).with_extension("py");
        fs::write(&copy, text.replace(NAMED, &bench.rmw))?;
        runs.push(run_twice(&bench.exceptions, suite, || {
            run_once(bench, suite, name, build, &copy)
        })?);
    }
    ensure!(!runs.is_empty(), "{} lists no launch test", list.display());
    Ok(runs)
}

fn run_once(
    bench: &Bench,
    suite: &str,
    name: &str,
    build: &Path,
    file: &PathBuf,
) -> Result<ProgramRun> {
    let libraries = ("LD_LIBRARY_PATH+".to_owned(), build.display().to_string());
    let python = bench.installation.python();
    let mut command = bench.command(&[&python, "-m", MODULE], &[libraries])?;
    let output = run_limited(command.arg(file).current_dir(build), FILE_MAX, false)?;
    let mut found = cases(&output.text);
    let any_failed = found.iter().any(|case| case.status == CaseStatus::Failed);
    if output.ended_early || (output.failed() && !any_failed) || found.is_empty() {
        found.push(Case::new(CRASHED, CaseStatus::Failed));
    }
    Ok(ProgramRun {
        program: name.to_owned(),
        cases: found,
        was_repeated: false,
        log: write_log(&bench.log(suite, name), &output.text)?,
    })
}

/// Name and launch file of each test whose programs all use the one middleware.
fn launch_files(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("add_test(")?.split_once(' ')?;
        let name = name.strip_suffix(NAMED)?.strip_suffix("__")?;
        let mut words = rest.split('"').skip(1).step_by(2);
        words.find(|word| *word == MODULE)?;
        let file = words.next()?;
        (!name.contains("__rmw_")).then_some((name, file))
    })
}

/// Statuses in lines of unittest, `test_it (a.B.test_it)[key='value'] ... ok`. A test of
/// parameters runs once for each, with a number here.
fn cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines() {
        let Some((name, status)) = line.rsplit_once(" ... ") else {
            continue;
        };
        let status = match status.split(' ').next() {
            Some("ok") => CaseStatus::Passed,
            Some("FAIL" | "ERROR") => CaseStatus::Failed,
            Some("skipped") => CaseStatus::Skipped,
            _ => continue,
        };
        let name = name.split(' ').next().unwrap_or_default();
        let number = cases.iter().filter(|case| case.name.starts_with(name));
        let number = number.count() + 1;
        cases.push(Case::new(&format!("{name}/{number}"), status));
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launch_files_of_one_middleware_are_listed() {
        let line = |name: &str, module: &str| {
            format!(
                "add_test({name} \"python3\" \"-u\" \"--command\" \"python3\" \"-m\" \"{module}\" \"/b/{name}.py\" \"--x\")\n"
            )
        };
        let text = line("test_a__rclpy__rmw_cyclonedds_cpp", MODULE)
            + &line("test_a__rclpy__rmw_fastrtps_cpp", MODULE)
            + &line(
                "test_a__rclpy__rmw_fastrtps_cpp__rmw_cyclonedds_cpp",
                MODULE,
            )
            + &line("test_b__rmw_cyclonedds_cpp", "pytest");
        assert_eq!(
            launch_files(&text).collect::<Vec<_>>(),
            [("test_a__rclpy", "/b/test_a__rclpy__rmw_cyclonedds_cpp.py")]
        );
    }

    #[test]
    fn statuses_are_read_from_the_lines_of_unittest() {
        let text = "test_it (launch.Test.test_it)[message_type='A'] ... ok\n\
            noise ... and more\n\
            test_it (launch.Test.test_it)[message_type='B'] ... FAIL\n\
            test_end (launch.Test.test_end) ... skipped 'why'\n";
        assert_eq!(
            cases(text),
            [
                Case::new("test_it/1", CaseStatus::Passed),
                Case::new("test_it/2", CaseStatus::Failed),
                Case::new("test_end/1", CaseStatus::Skipped),
            ]
        );
    }
}
