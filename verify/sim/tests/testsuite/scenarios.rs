//! Runs the scenarios of `tests/scenarios`, one file per policy, on the paths that
//! each line names. Each line must be able to fail.

use std::fmt::Write;
use std::path::PathBuf;

use pteros_sim::world::scenario::{Scenario, ScenarioPath, read};

fn scenarios(file: &str) -> Vec<Scenario> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let path = folder.join(file).with_extension("txt");
    let text = std::fs::read_to_string(&path).unwrap();
    read(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Runs every line of a file and reports all failures.
fn run_all(file: &str) {
    let mut failures = String::new();
    for scenario in scenarios(file) {
        for path in &scenario.paths {
            if let Err(failure) = scenario.on(*path).check() {
                writeln!(failures, "\n{file}.txt {failure}").unwrap();
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// Runs every line with each of its expectations changed in turn.
fn falsify_all(file: &str) {
    let mut passed = String::new();
    for scenario in scenarios(file) {
        let falsified = scenario.falsified();
        assert!(!falsified.is_empty(), "{}", scenario.name);
        for (what, falsified) in falsified {
            for path in &falsified.paths {
                if falsified.on(*path).check().is_ok() {
                    let (name, line) = (&scenario.name, scenario.line);
                    writeln!(passed, "{file}.txt line {line} {name}: {what}").unwrap();
                }
            }
        }
    }
    assert!(
        passed.is_empty(),
        "these pass though they must not:\n{passed}"
    );
}

/// Two tests per file: its scenarios pass, and each of them can fail.
macro_rules! files {
    ($($file:ident)*) => {
        const FILES: &[&str] = &[$(stringify!($file)),*];
        $(mod $file {
            #[test]
            fn scenarios_pass() {
                super::run_all(stringify!($file));
            }

            #[test]
            fn scenarios_with_a_falsified_expectation_fail() {
                super::falsify_all(stringify!($file));
            }
        })*
    };
}

files! {
    matching deadline liveliness reliability history durability lifespan partition ownership
    destination_order time_based_filter instances lifecycle presentation content_filter flow_control contexts set_qos
}

/// The position and the reason of a parse error.
#[track_caller]
fn assert_error(line: &str, column: usize, reason: &str) {
    let error = read(line).unwrap_err();
    assert_eq!((error.line, error.column), (1, column), "{error}");
    assert!(error.reason.contains(reason), "{error}");
}

#[test]
fn parse_errors_name_line_and_column() {
    assert_error("name w r", 1, "no colon");
    assert_error("Name: w; w? matched=0/0", 1, "small letters");
    assert_error("name [tcp]: w; w? matched=0/0", 6, "[udp] or [local]");
    assert_error("name: w r", 1, "expects nothing");
    assert_error("name: w;; w? matched=0/0", 9, "empty step");
    assert_error("name: w(dedline=1s); w? matched=0/0", 9, "\"dedline\"");
    assert_error("name: w(deadline=1 s); w? matched=0/0", 9, "not a number");
    assert_error("name: w(depth=many); w? matched=0/0", 9, "not a number");
    assert_error("name: w(depth=2; w? matched=0/0", 7, "not closed");
    assert_error("name: x; w? matched=0/0", 7, "no step");
    assert_error("name: w@z; w? matched=0/0", 9, "no context");
    assert_error("name: w; w.publish 1; w? matched=0/0", 12, "writers write");
    assert_error("name: w; w.write one; w? matched=0/0", 18, "32 bit");
    assert_error("name: w; w? matched=1", 21, "two numbers");
    assert_error("name: w; w? sample_lost=1", 13, "liveliness_lost");
    assert_error("name: w; w? incompatible_qos=1/color", 30, "policies are");
    assert_error("name: w; w! published=1", 13, "deadline_missed");
    assert_error("name: w; r.take 1:gone", 17, "red:disposed");
    assert_error("name: w; r.take red=1/young", 23, "new old");
    assert_error("name: w; +350; w? matched=0/0", 10, "not a time");
    assert_error("name: w; cut a>b; w? matched=0/0", 10, "[net]");
    assert_error("name [net]: w; lose a>b 130%; w? matched=0/0", 25, "share");
    assert_error("name: w; +1s -> timed_out", 17, "cannot be refused");
    assert_error("name: w(filter=\"x > 1\"); w? matched=0/0", 7, "no filter");
    assert_error("name: w; w? matched=0/0 matched", 25, "name=value");
    assert_error("name: w; w.set keyed; w? matched=0/0", 16, "no policy");
    assert_error(
        "name: w; w.set dedline=1s; w? matched=0/0",
        16,
        "\"dedline\"",
    );
    let twice = "name: w; w? matched=0/0\n# and again\nname: w; w? matched=0/0";
    let error = read(twice).unwrap_err();
    assert_eq!((error.line, error.column), (3, 1));
}

#[test]
fn a_failure_shows_the_step_and_the_log() {
    let line = "name [net]: w r; w.write 1 2; r.take 1 3";
    let scenario = &read(line).unwrap()[0];
    let failure = scenario.on(ScenarioPath::Network).check().unwrap_err();
    assert_eq!((failure.step, failure.column), (3, 31));
    let text = failure.to_string();
    for part in [
        "line 1, name [net], step 3: took 1 2",
        line,
        "     0.100 ms  w! matched=1/1",
        "    10.000 ms  r takes 1 2",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn every_policy_has_a_scenario_file_and_each_file_runs() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let entries = std::fs::read_dir(folder).unwrap();
    let stem = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        path.file_stem().unwrap().to_str().unwrap().to_owned()
    };
    let mut there: Vec<_> = entries.map(stem).collect();
    let mut run: Vec<_> = FILES.iter().map(|file| file.to_string()).collect();
    there.sort();
    run.sort();
    assert_eq!(there, run);
    let count: usize = FILES.iter().map(|file| scenarios(file).len()).sum();
    assert!(count >= 150, "{count} scenarios");
}
