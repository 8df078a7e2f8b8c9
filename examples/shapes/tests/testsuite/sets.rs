//! Coherent sets and ordered access with Cyclone DDS and Fast DDS, which do not
//! implement coherent sets. Their readers get all samples of our sets, and our
//! readers that request sets match no writer without them.
//!
//! Run and skipped as `vendors.rs` is.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::peer::Peer;

const TIMEOUT: Duration = Duration::from_secs(20);

/// Reliable, keep all, with sizes that count the samples.
const WRITER: &str = "-P -t Square -r -k 0 -w -z 0 --write-period 20";
const READER: &str = "-S -t Square -r -k 0 --read-period 20";

/// The programs of another stack and of this one.
struct SetsHarness {
    theirs: PathBuf,
    domain: u32,
}

impl SetsHarness {
    fn start(&self, program: &std::path::Path, options: &str) -> Peer {
        Peer::start(program, &format!("-d {} {options}", self.domain))
    }

    fn ours(&self, options: &str) -> Peer {
        self.start(env!("CARGO_BIN_EXE_shapes").as_ref(), options)
    }

    fn theirs(&self, options: &str) -> Peer {
        self.start(&self.theirs, options)
    }
}

fn run_case(program: &str, case: fn(&SetsHarness)) {
    let found = match std::env::var_os("PTEROS_PRIVATE_NETWORK") {
        None => Err("not in a private network; run cargo xtask test".into()),
        Some(_) => crate::peer::program(program),
    };
    match found {
        Ok(theirs) => case(&SetsHarness {
            theirs,
            domain: crate::domain(),
        }),
        // Not `println!`, which is captured when a test passes. xtask counts these
        // lines.
        Err(why) => {
            let _ = writeln!(std::io::stdout(), "\nskipped: {program}: {why}");
        }
    }
}

macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        $(mod $case {
            use super::*;
            #[test]
            fn cyclone() {
                run_case("cyclone-shapes", super::$case);
            }
            #[test]
            fn fast_dds() {
                run_case("fastdds-shapes", super::$case);
            }
        })+
    };
}

cases! {
    their_readers_get_every_sample_of_our_sets,
    our_set_readers_match_no_writer_without_sets,
    writers_that_offer_sets_and_send_none_are_heard,
}

/// Ends a program as Ctrl-C would. Returns its output.
fn stop(mut program: Peer) -> Vec<String> {
    let killed = Command::new("kill")
        .args(["-INT", &program.id().to_string()])
        .status();
    assert!(killed.is_ok_and(|status| status.success()));
    let ended = program
        .finish(TIMEOUT)
        .unwrap_or_else(|why| panic!("{why}"));
    assert!(ended.success(), "{ended}: {:#?}", program.seen());
    program.seen().to_vec()
}

fn contains_line(lines: &[String], what: &str) -> bool {
    lines.iter().any(|line| line.contains(what))
}

/// The sizes of the shapes, which number them.
fn sizes(lines: &[String]) -> Vec<i32> {
    let size = |line: &String| {
        let rest = line.strip_prefix("Square ")?;
        rest.split_once('[')?.1.split_once(']')?.0.parse().ok()
    };
    lines.iter().filter_map(size).collect()
}

fn their_readers_get_every_sample_of_our_sets(harness: &SetsHarness) {
    for sets in ["--access-scope t", "--access-scope g --ordered"] {
        let mut reader = harness.theirs(READER);
        reader.expect("Create reader", TIMEOUT);
        let options = format!("{WRITER} {sets} --coherent --coherent-sample-count 3");
        let mut writer = harness.ours(&options);
        writer.expect("on_publication_matched()", TIMEOUT);
        // End markers of sets lie between them and are ignored.
        for _ in 0..30 {
            reader.expect("Square ", TIMEOUT);
        }
        let subscriber_lines = stop(reader);
        let publisher_lines = stop(writer);
        let sizes = sizes(&subscriber_lines);
        assert!(sizes.windows(2).all(|w| w[1] == w[0] + 1), "{sizes:?}");
        assert!(
            contains_line(&publisher_lines, "Finished Coherent Set"),
            "{publisher_lines:#?}"
        );
        for lines in [subscriber_lines, publisher_lines] {
            for bad in ["incompatible_qos", "on_sample_lost", "error"] {
                assert!(!contains_line(&lines, bad), "{bad}: {lines:#?}");
            }
        }
    }
}

fn our_set_readers_match_no_writer_without_sets(harness: &SetsHarness) {
    for sets in [
        "--access-scope t --coherent",
        "--access-scope g --coherent",
        "--access-scope g --ordered",
    ] {
        // A reader without sets shows when discovery is done.
        let mut witness = harness.ours(READER);
        let mut reader = harness.ours(&format!("{READER} {sets}"));
        witness.expect("Create reader", TIMEOUT);
        reader.expect("Create reader", TIMEOUT);
        let writer = harness.theirs(WRITER);
        let publisher_lines = reader.expect("on_requested_incompatible_qos()", TIMEOUT);
        assert!(
            publisher_lines.ends_with("3 (PRESENTATION)"),
            "{publisher_lines}"
        );
        for _ in 0..5 {
            witness.expect("Square ", TIMEOUT);
        }
        stop(witness);
        let subscriber_lines = stop(reader);
        assert!(sizes(&subscriber_lines).is_empty(), "{subscriber_lines:#?}");
        assert!(
            !contains_line(&subscriber_lines, "on_subscription_matched()"),
            "{subscriber_lines:#?}"
        );
        stop(writer);
    }
}

fn writers_that_offer_sets_and_send_none_are_heard(harness: &SetsHarness) {
    let sets = "--access-scope g --coherent --ordered";
    let mut reader = harness.ours(&format!("{READER} {sets}"));
    reader.expect("Create reader", TIMEOUT);
    let writer = harness.theirs(&format!("{WRITER} {sets}"));
    for _ in 0..10 {
        reader.expect("Square ", TIMEOUT);
    }
    let subscriber_lines = stop(reader);
    let sizes = sizes(&subscriber_lines);
    assert!(sizes.windows(2).all(|w| w[1] == w[0] + 1), "{sizes:?}");
    assert!(
        contains_line(&subscriber_lines, "incomplete_sets: 0"),
        "{subscriber_lines:#?}"
    );
    stop(writer);
}
