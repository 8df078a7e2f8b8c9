//! `cargo xtask ros2 --valgrind [SUITE …]`: ROS 2's suites under valgrind's memcheck.
//!
//! A program fails if memcheck reports an invalid access, a use of uninitialized
//! memory or a definite leak, or if it ends early. `valgrind.supp` has exceptions. A failed case does not count: many of them measure time, which valgrind
//! stretches. Such cases are listed.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::Suite;
use super::bench::{Bench, PlugIn, write_log};
use super::case::{CRASHED, CaseStatus};
use super::gtest::{self, Listed};
use crate::checkout::root;
use crate::limited_command::run_limited;
use pteros_peers::ros2::Installation;

/// Known errors of others, each with a reason.
const SUPPRESSIONS: &str = "tools/xtask/src/ros2/valgrind.supp";
/// The longest that one program may take.
const PROGRAM_MAX: Duration = Duration::from_secs(1_200);
/// The library whose frames make an error ours.
const LIBRARY: &str = "librmw_pteros_cpp.so";
/// Error reports that are printed of one program.
const REPORTS_MAX: usize = 3;

/// Runs the suites. Returns whether memcheck found nothing.
pub fn run(installation: Installation, rmw: &str, suites: &[Suite], only: &str) -> Result<bool> {
    let version = Command::new("valgrind").arg("--version").output();
    ensure!(
        version.is_ok_and(|output| output.status.success()),
        "no valgrind is installed; install the package valgrind"
    );
    let bench = Bench::new(installation, rmw, "ros2-valgrind", PlugIn::ToBuild)?;
    println!(
        "{} on {rmw}, under valgrind",
        bench.installation.prefix().display()
    );
    let mut passed = true;
    for suite in suites {
        let Some(build) = bench.installation.tests() else {
            bail!("PTEROS_ROS2_TESTS names no build folder of a workspace with built tests");
        };
        let programs = gtest::list(&bench, suite, &build.join(suite.package), only)?;
        let (began, count) = (Instant::now(), programs.len());
        let mut failed = 0;
        for test in &programs {
            let checked = check(&bench, suite.package, test)?;
            checked.notes.iter().for_each(|note| println!("  {note}"));
            failed += usize::from(checked.has_failed);
        }
        let clean = count - failed;
        let seconds = began.elapsed().as_secs();
        println!(
            "{}: {clean} programs clean, {failed} failed ({seconds} s)",
            suite.package
        );
        passed &= failed == 0;
    }
    Ok(passed)
}

#[derive(Default)]
struct Checked {
    has_failed: bool,
    notes: Vec<String>,
}

fn check(bench: &Bench, suite: &str, test: &Listed) -> Result<Checked> {
    let program = test.program.display().to_string();
    let log = bench.log(suite, &format!("{}.valgrind", test.name));
    let log_option = format!("--log-file={}", log.display());
    let suppressions = format!("--suppressions={}", root().join(SUPPRESSIONS).display());
    let words = [
        "valgrind",
        "--leak-check=full",
        "--show-leak-kinds=definite",
        "--errors-for-leak-kinds=definite",
        "--num-callers=40",
        // Suppressions of a further error are then copied from its log.
        "--gen-suppressions=all",
        &suppressions,
        &log_option,
        &program,
    ];
    // Two allocators cannot both be replaced.
    let is_replaced = |name: &str| name.starts_with("LD_PRELOAD");
    let environment: Vec<_> = test
        .environment
        .iter()
        .filter(|(name, _)| !is_replaced(name))
        .cloned()
        .collect();
    let mut command = bench.command(&words, &environment)?;
    let output = run_limited(command.current_dir(&test.folder), PROGRAM_MAX, false)?;
    let output_log = write_log(&bench.log(suite, &test.name), &output.text)?;
    let text = fs::read_to_string(&log).with_context(|| format!("read {}", log.display()))?;
    let mut checked = judge(&text, &log);
    for case in gtest::cases(&output) {
        let name = format!("{} {}", test.name, case.name);
        if case.name == CRASHED {
            checked.has_failed = true;
            let note = format!("failed: {name}, see {}", output_log.display());
            checked.notes.push(note);
        } else if case.status == CaseStatus::Failed {
            let note = format!("not judged: {name} fails under valgrind");
            checked.notes.push(note);
        }
    }
    Ok(checked)
}

/// Reads memcheck's log.
fn judge(text: &str, log: &Path) -> Checked {
    let mut checked = Checked::default();
    let reports = reports(text);
    for report in reports.iter().take(REPORTS_MAX) {
        let owner = if report.iter().any(|line| line.contains(LIBRARY)) {
            "of the plug-in"
        } else {
            "of others"
        };
        let first = report.first().copied().unwrap_or_default();
        checked
            .notes
            .push(format!("{owner}: {first}, see {}", log.display()));
    }
    if reports.len() > REPORTS_MAX {
        checked
            .notes
            .push(format!("and {} more", reports.len() - REPORTS_MAX));
    }
    let is_complete = text.contains("ERROR SUMMARY:");
    if !is_complete {
        let note = format!("memcheck did not end, see {}", log.display());
        checked.notes.push(note);
    }
    checked.has_failed = !reports.is_empty() || !is_complete;
    checked
}

/// The error reports: lines with frames, from the first line to an empty one.
fn reports(text: &str) -> Vec<Vec<&str>> {
    let mut all = Vec::new();
    let mut report: Vec<&str> = Vec::new();
    for line in text.lines() {
        let line = line
            .strip_prefix("==")
            .and_then(|rest| rest.split_once("== "))
            .map_or("", |(_, line)| line);
        let is_frame = line.contains(" at 0x") || line.contains(" by 0x");
        if line.trim().is_empty() {
            if report.iter().any(|line| line.contains(" at 0x")) {
                all.push(std::mem::take(&mut report));
            }
            report.clear();
        } else if is_frame || report.is_empty() || report.len() < 3 {
            report.push(line.trim_end());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "==7== Memcheck, a memory error detector\n\
        ==7== Command: test\n\
        ==7== \n\
        ==7== Invalid read of size 4\n\
        ==7==    at 0x48: pteros (in /lib/librmw_pteros_cpp.so)\n\
        ==7==    by 0x49: main (in /test)\n\
        ==7==  Address 0x10 is 0 bytes inside a block of size 4 free'd\n\
        ==7==    at 0x50: free (in /valgrind)\n\
        ==7== \n\
        {\n   <insert_a_suppression_name_here>\n   Memcheck:Addr4\n}\n\
        ==7== 8 bytes in 1 blocks are definitely lost in loss record 1 of 2\n\
        ==7==    at 0x51: malloc (in /valgrind)\n\
        ==7==    by 0x52: rcl_init (in /lib/librcl.so)\n\
        ==7== \n\
        ==7== LEAK SUMMARY:\n\
        ==7==    definitely lost: 8 bytes in 1 blocks\n\
        ==7== \n\
        ==7== ERROR SUMMARY: 2 errors from 2 contexts (suppressed: 1 from 1)\n";

    #[test]
    fn each_error_of_memcheck_fails_and_names_whose_it_is() {
        let checked = judge(LOG, Path::new("/log"));
        assert!(checked.has_failed);
        assert_eq!(
            checked.notes,
            [
                "of the plug-in: Invalid read of size 4, see /log",
                "of others: 8 bytes in 1 blocks are definitely lost in loss record 1 of 2, \
                 see /log"
            ]
        );
    }

    #[test]
    fn a_log_without_reports_is_clean_if_memcheck_came_to_its_end() {
        let clean = "==7== Memcheck\n==7== \n==7== ERROR SUMMARY: 0 errors from 0 contexts\n";
        assert!(!judge(clean, Path::new("/log")).has_failed);
        let cut = judge("==7== Memcheck\n", Path::new("/log"));
        assert!(cut.has_failed && cut.notes[0].contains("did not end"));
    }

    #[test]
    fn each_suppression_has_a_reason() {
        let text = fs::read_to_string(root().join(SUPPRESSIONS)).unwrap();
        let mut before = "";
        for line in text.lines() {
            assert!(line != "{" || before.starts_with("# "), "{before}");
            before = line;
        }
    }
}
