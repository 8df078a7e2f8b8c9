//! gtest programs of a package, as its CTest files list them: program, environment
//! and working folder. The name of the middleware that they were built with is
//! replaced by the one under test.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};

use super::Suite;
use super::bench::{Bench, run_twice, write_log};
use super::case::{CRASHED, Case, CaseStatus, ProgramRun};
use crate::limited_command::{Output, run_limited};

/// The longest that one program may take.
const PROGRAM_MAX: Duration = Duration::from_secs(400);
/// Folders of a package's build folder with CTest files.
const FOLDERS: [&str; 3] = ["", "test", "test/rclcpp"];
/// Variables of the list that name the middleware.
const REPLACED: [&str; 2] = ["RMW_IMPLEMENTATION", "RCL_ASSERT_RMW_ID_MATCHES"];

/// A test of a CTest file.
#[derive(Debug, PartialEq, Eq)]
pub struct Listed {
    /// Without the name of a middleware.
    pub name: String,
    pub program: PathBuf,
    /// A name that ends in `+` is appended to.
    pub environment: Vec<(String, String)>,
    pub folder: PathBuf,
}

/// The programs of a suite. `only` is a part of their names.
pub fn list(bench: &Bench, suite: &Suite, build: &Path, only: &str) -> Result<Vec<Listed>> {
    let mut listed = BTreeMap::new();
    for folder in FOLDERS {
        let folder = build.join(folder);
        let text = fs::read_to_string(folder.join("CTestTestfile.cmake")).unwrap_or_default();
        for test in tests(&text, &folder, &bench.rmw) {
            if test.program.is_file() && suite.includes(&test.name, only) {
                listed.entry(test.name.clone()).or_insert(test);
            }
        }
    }
    ensure!(
        !listed.is_empty(),
        "{} lists no built gtest program; build the package with BUILD_TESTING=ON",
        build.join("CTestTestfile.cmake").display()
    );
    Ok(listed.into_values().collect())
}

/// Runs the programs of a suite. `only` is a part of their names.
pub fn run(bench: &Bench, suite: &Suite, build: &Path, only: &str) -> Result<Vec<ProgramRun>> {
    let package = suite.package;
    list(bench, suite, build, only)?
        .iter()
        .map(|test| {
            run_twice(&bench.exceptions, package, || {
                run_once(bench, package, test)
            })
        })
        .collect()
}

fn run_once(bench: &Bench, suite: &str, test: &Listed) -> Result<ProgramRun> {
    let program = test.program.display().to_string();
    let mut command = bench.command(&[&program], &test.environment)?;
    let output = run_limited(command.current_dir(&test.folder), PROGRAM_MAX, false)?;
    Ok(ProgramRun {
        program: test.name.clone(),
        cases: cases(&output),
        was_repeated: false,
        log: write_log(&bench.log(suite, &test.name), &output.text)?,
    })
}

/// Statuses in what a gtest program printed. A program that ended without its summary
/// failed in the case that ran, and as a whole.
pub fn cases(output: &Output) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut running = None;
    for line in output.text.lines() {
        // A test's own output may stand before the mark, without a line break.
        let Some((_, line)) = line.split_once('[') else {
            continue;
        };
        let Some((mark, rest)) = line.split_once("] ") else {
            continue;
        };
        let name = rest.split([' ', ',']).next().unwrap_or_default();
        match mark.trim() {
            "RUN" => running = Some(name.to_owned()),
            status @ ("OK" | "FAILED" | "SKIPPED") if rest.ends_with("ms)") => {
                running = None;
                let status = match status {
                    "OK" => CaseStatus::Passed,
                    "SKIPPED" => CaseStatus::Skipped,
                    _ => CaseStatus::Failed,
                };
                cases.push(Case::new(name, status));
            }
            _ => {}
        }
    }
    let any_failed = cases.iter().any(|case| case.status == CaseStatus::Failed);
    if let Some(name) = running {
        cases.push(Case::new(&name, CaseStatus::Failed));
    }
    if output.ended_early || (!output.succeeded && !any_failed) || cases.is_empty() {
        cases.push(Case::new(CRASHED, CaseStatus::Failed));
    }
    cases
}

/// The gtest programs in a CTest file of a folder.
fn tests(text: &str, folder: &Path, rmw: &str) -> Vec<Listed> {
    let mut found: Vec<Listed> = Vec::new();
    for line in text.lines() {
        let Some((name, rest)) = line
            .strip_prefix("add_test(")
            .and_then(|line| line.split_once(' '))
        else {
            continue;
        };
        let words: Vec<&str> = rest.split('"').skip(1).step_by(2).collect();
        let after = |option: &str| {
            let at = words.iter().position(|word| *word == option);
            let rest = at.map_or(&[][..], |at| words.get(at + 1..).unwrap_or_default());
            rest.iter().take_while(|word| !word.starts_with("--"))
        };
        let Some(program) = after("--command").next() else {
            continue;
        };
        if !words.iter().any(|word| word.starts_with("--gtest_output")) {
            continue;
        }
        let pair = |word: &&str, append: &str| {
            let (name, value) = word.split_once('=')?;
            let value = if REPLACED.contains(&name) { rmw } else { value };
            Some((format!("{name}{append}"), value.to_owned()))
        };
        let set = after("--env").filter_map(|word| pair(word, ""));
        let appended = after("--append-env").filter_map(|word| pair(word, "+"));
        let bare = name.trim_start_matches("[=[").trim_end_matches("]=]");
        found.push(Listed {
            name: bare.split("__rmw_").next().unwrap_or(bare).to_owned(),
            program: PathBuf::from(program),
            environment: set.chain(appended).collect(),
            folder: working_folder(text, name).unwrap_or_else(|| folder.to_owned()),
        });
    }
    found
}

fn working_folder(text: &str, test: &str) -> Option<PathBuf> {
    let start = format!("set_tests_properties({test} ");
    let line = text.lines().find(|line| line.starts_with(&start))?;
    let (_, rest) = line.split_once("WORKING_DIRECTORY \"")?;
    Some(rest.split_once('"')?.0.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str, succeeded: bool) -> Output {
        Output {
            text: text.into(),
            succeeded,
            ended_early: false,
        }
    }

    #[test]
    fn statuses_are_read_from_the_lines_of_gtest() {
        let text = "[ RUN      ] A.one\nnoise[       OK ] A.one (3 ms)\n\
                    [ RUN      ] A.two/0\n\
                    [  FAILED  ] A.two/0, where GetParam() = 4 (1 ms)\n\
                    [ RUN      ] A.three\n[  SKIPPED ] A.three (0 ms)\n\
                    [  FAILED  ] A.two/0, where GetParam() = 4\n 1 FAILED TEST\n";
        assert_eq!(
            cases(&output(text, false)),
            [
                Case::new("A.one", CaseStatus::Passed),
                Case::new("A.two/0", CaseStatus::Failed),
                Case::new("A.three", CaseStatus::Skipped),
            ]
        );
        // It crashed in the second case, or printed nothing.
        let crashed = cases(&output("[ RUN      ] A.one\nSegmentation fault\n", false));
        assert_eq!(
            crashed,
            [
                Case::new("A.one", CaseStatus::Failed),
                Case::new(CRASHED, CaseStatus::Failed)
            ]
        );
        assert_eq!(
            cases(&output("", true)),
            [Case::new(CRASHED, CaseStatus::Failed)]
        );
    }

    #[test]
    fn programs_come_from_ctest_with_the_middleware_under_test() {
        let text = "add_test(test_a__rmw_x_cpp \"python\" \"run_test.py\" \"--env\" \
             \"RMW_IMPLEMENTATION=rmw_x_cpp\" \"LD_PRELOAD=/lib.so\" \"--append-env\" \
             \"LD_LIBRARY_PATH=/b\" \"--command\" \"/b/test_a\" \"--gtest_output=xml:/r\")\n\
             set_tests_properties(test_a__rmw_x_cpp PROPERTIES  TIMEOUT \"60\" \
             WORKING_DIRECTORY \"/w\" X \"\")\n\
             add_test(launched \"python\" \"--command\" \"launch_test\" \"file.py\")\n\
             add_test([=[test_b]=] \"python\" \"--command\" \"/b/test_b\" \
             \"--gtest_output=xml:/r\")\n\
             set_tests_properties([=[test_b]=] PROPERTIES  WORKING_DIRECTORY \"/v\")\n";
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            tests(text, Path::new("/b"), "rmw_pteros_cpp"),
            [
                Listed {
                    name: "test_a".into(),
                    program: "/b/test_a".into(),
                    environment: vec![
                        pair("RMW_IMPLEMENTATION", "rmw_pteros_cpp"),
                        pair("LD_PRELOAD", "/lib.so"),
                        pair("LD_LIBRARY_PATH+", "/b"),
                    ],
                    folder: "/w".into(),
                },
                Listed {
                    name: "test_b".into(),
                    program: "/b/test_b".into(),
                    environment: vec![],
                    folder: "/v".into(),
                }
            ]
        );
    }
}
