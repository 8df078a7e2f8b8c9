//! The scenarios of `tests/scenarios`, one file per policy: each line is played
//! in simulated time on the paths it names, and can fail.

use std::fmt::Write;
use std::path::PathBuf;

use pteros_sim::scenario::{Scenario, Way, play, read};

fn scenarios(file: &str) -> Vec<Scenario> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let path = folder.join(file).with_extension("txt");
    let text = std::fs::read_to_string(&path).unwrap();
    read(&text).unwrap_or_else(|mistake| panic!("{}: {mistake}", path.display()))
}

/// Plays every line of a file, and tells of all that fail.
fn play_all(file: &str) {
    let mut failures = String::new();
    for scenario in scenarios(file) {
        for way in &scenario.ways {
            if let Err(failure) = play(&scenario, *way) {
                writeln!(failures, "\n{file}.txt {failure}").unwrap();
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// Plays every line with each of its expectations made wrong in turn.
fn spoil_all(file: &str) {
    let mut passed = String::new();
    for scenario in scenarios(file) {
        let spoiled = scenario.spoiled();
        assert!(!spoiled.is_empty(), "{}", scenario.name);
        for (what, spoiled) in spoiled {
            for way in &spoiled.ways {
                if play(&spoiled, *way).is_ok() {
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

/// A test that plays a file, and one that shows that each line of it can fail.
macro_rules! files {
    ($($file:ident)*) => {
        const FILES: &[&str] = &[$(stringify!($file)),*];
        $(mod $file {
            #[test]
            fn scenarios_go_as_they_say() {
                super::play_all(stringify!($file));
            }

            #[test]
            fn scenarios_that_expect_otherwise_fail() {
                super::spoil_all(stringify!($file));
            }
        })*
    };
}

files! {
    matching deadline liveliness reliability history durability lifespan partition ownership
    destination_order time_filter instances lifecycle presentation content_filter pace contexts set_qos
}

/// Where a line goes wrong is told.
#[track_caller]
fn assert_mistake(line: &str, column: usize, reason: &str) {
    let mistake = read(line).unwrap_err();
    assert_eq!((mistake.line, mistake.column), (1, column), "{mistake}");
    assert!(mistake.reason.contains(reason), "{mistake}");
}

#[test]
fn what_is_not_understood_is_told_with_its_place() {
    assert_mistake("name w r", 1, "no colon");
    assert_mistake("Name: w; w? matched=0/0", 1, "small letters");
    assert_mistake("name [tcp]: w; w? matched=0/0", 6, "[udp] or [local]");
    assert_mistake("name: w r", 1, "expects nothing");
    assert_mistake("name: w;; w? matched=0/0", 9, "empty step");
    assert_mistake("name: w(dedline=1s); w? matched=0/0", 9, "\"dedline\"");
    assert_mistake("name: w(deadline=1 s); w? matched=0/0", 9, "not a number");
    assert_mistake("name: w(depth=many); w? matched=0/0", 9, "not a number");
    assert_mistake("name: w(depth=2; w? matched=0/0", 7, "not closed");
    assert_mistake("name: x; w? matched=0/0", 7, "no step");
    assert_mistake("name: w@z; w? matched=0/0", 9, "no context");
    assert_mistake("name: w; w.publish 1; w? matched=0/0", 12, "writers write");
    assert_mistake("name: w; w.write one; w? matched=0/0", 18, "32 bit");
    assert_mistake("name: w; w? matched=1", 21, "two numbers");
    assert_mistake("name: w; w? sample_lost=1", 13, "liveliness_lost");
    assert_mistake("name: w; w? incompatible_qos=1/color", 30, "policies are");
    assert_mistake("name: w; w! published=1", 13, "deadline_missed");
    assert_mistake("name: w; r.take 1:gone", 17, "red:disposed");
    assert_mistake("name: w; r.take red=1/young", 23, "new old");
    assert_mistake("name: w; +350; w? matched=0/0", 10, "not a time");
    assert_mistake("name: w; cut a>b; w? matched=0/0", 10, "[net]");
    assert_mistake("name [net]: w; lose a>b 130%; w? matched=0/0", 25, "share");
    assert_mistake("name: w; +1s -> timed_out", 17, "cannot be refused");
    assert_mistake("name: w(filter=\"x > 1\"); w? matched=0/0", 7, "no filter");
    assert_mistake("name: w; w? matched=0/0 matched", 25, "name=value");
    assert_mistake("name: w; w.set keyed; w? matched=0/0", 16, "no policy");
    assert_mistake(
        "name: w; w.set dedline=1s; w? matched=0/0",
        16,
        "\"dedline\"",
    );
    let twice = "name: w; w? matched=0/0\n# and again\nname: w; w? matched=0/0";
    let mistake = read(twice).unwrap_err();
    assert_eq!((mistake.line, mistake.column), (3, 1));
}

#[test]
fn a_failure_shows_the_step_and_all_that_was_seen() {
    let line = "name [net]: w r; w.write 1 2; r.take 1 3";
    let scenario = &read(line).unwrap()[0];
    let failure = play(scenario, Way::Net).unwrap_err();
    assert_eq!((failure.step, failure.column), (3, 31));
    let told = failure.to_string();
    for part in [
        "line 1, name [net], step 3: took 1 2",
        line,
        "     0.100 ms  w! matched=1/1",
        "    10.000 ms  r takes 1 2",
    ] {
        assert!(told.contains(part), "{part:?} is not in\n{told}");
    }
}

#[test]
fn there_are_scenarios_of_every_policy_and_each_file_is_played() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let entries = std::fs::read_dir(folder).unwrap();
    let stem = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        path.file_stem().unwrap().to_str().unwrap().to_owned()
    };
    let mut there: Vec<_> = entries.map(stem).collect();
    let mut played: Vec<_> = FILES.iter().map(|file| file.to_string()).collect();
    there.sort();
    played.sort();
    assert_eq!(there, played);
    let count: usize = FILES.iter().map(|file| scenarios(file).len()).sum();
    assert!(count >= 150, "{count} scenarios");
}
