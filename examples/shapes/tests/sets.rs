//! Coherent sets and ordered access beside Cyclone DDS and Fast DDS, neither of
//! which knows sets: their readers get the samples of ours unharmed, and our
//! readers that ask for them match no writer that offers none.
//!
//! Run and skipped as `vendors.rs` is.
#![allow(
    clippy::disallowed_methods,
    reason = "other people's programs run in real time"
)]

#[path = "../../../interop/peer.rs"]
mod peer;

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use peer::Peer;

const PATIENCE: Duration = Duration::from_secs(20);

/// Reliable, all kept, with sizes that count the samples.
const WRITER: &str = "-P -t Square -r -k 0 -w -z 0 --write-period 20";
const READER: &str = "-S -t Square -r -k 0 --read-period 20";

/// The programs of one other stack and this one.
struct Stage {
    theirs: PathBuf,
    domain: u32,
}

impl Stage {
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

fn play(program: &str, story: fn(&Stage)) {
    static DOMAIN: AtomicU32 = AtomicU32::new(0);
    let found = match std::env::var_os("PTEROS_PRIVATE_NETWORK") {
        None => Err("not in a private network; run cargo xtask test".into()),
        Some(_) => peer::program(program),
    };
    match found {
        Ok(theirs) => story(&Stage {
            theirs,
            // Their ports stay below the ephemeral ones.
            domain: 1 + DOMAIN.fetch_add(1, Ordering::Relaxed) % 100,
        }),
        // Not `println!`, which is swallowed when a test passes. xtask counts these.
        Err(why) => {
            let _ = writeln!(std::io::stdout(), "\nskipped: {program}: {why}");
        }
    }
}

macro_rules! stories {
    ($($story:ident),+ $(,)?) => {
        $(mod $story {
            use super::*;
            #[test]
            fn cyclone() {
                play("cyclone-shapes", super::$story);
            }
            #[test]
            fn fast_dds() {
                play("fastdds-shapes", super::$story);
            }
        })+
    };
}

stories! {
    their_readers_get_every_sample_of_our_sets,
    our_set_readers_match_no_writer_without_sets,
    writers_that_offer_sets_and_send_none_are_heard,
}

/// Ends a program as Ctrl-C would; all it said.
fn stop(mut program: Peer) -> Vec<String> {
    let asked = Command::new("kill")
        .args(["-INT", &program.id().to_string()])
        .status();
    assert!(asked.is_ok_and(|status| status.success()));
    let ended = program
        .finish(PATIENCE)
        .unwrap_or_else(|why| panic!("{why}"));
    assert!(ended.success(), "{ended}: {:#?}", program.seen());
    program.seen().to_vec()
}

fn said(lines: &[String], what: &str) -> bool {
    lines.iter().any(|line| line.contains(what))
}

/// The sizes of the shapes, which count them.
fn sizes(lines: &[String]) -> Vec<i32> {
    let size = |line: &String| {
        let rest = line.strip_prefix("Square ")?;
        rest.split_once('[')?.1.split_once(']')?.0.parse().ok()
    };
    lines.iter().filter_map(size).collect()
}

fn their_readers_get_every_sample_of_our_sets(stage: &Stage) {
    for sets in ["--access-scope t", "--access-scope g --ordered"] {
        let mut reader = stage.theirs(READER);
        reader.expect("Create reader", PATIENCE);
        let options = format!("{WRITER} {sets} --coherent --coherent-sample-count 3");
        let mut writer = stage.ours(&options);
        writer.expect("on_publication_matched()", PATIENCE);
        // Ends of sets lie between them, and count for nothing.
        for _ in 0..30 {
            reader.expect("Square ", PATIENCE);
        }
        let heard = stop(reader);
        let told = stop(writer);
        let sizes = sizes(&heard);
        assert!(sizes.windows(2).all(|w| w[1] == w[0] + 1), "{sizes:?}");
        assert!(said(&told, "Finished Coherent Set"), "{told:#?}");
        for lines in [heard, told] {
            for bad in ["incompatible_qos", "on_sample_lost", "error"] {
                assert!(!said(&lines, bad), "{bad}: {lines:#?}");
            }
        }
    }
}

fn our_set_readers_match_no_writer_without_sets(stage: &Stage) {
    for sets in [
        "--access-scope t --coherent",
        "--access-scope g --coherent",
        "--access-scope g --ordered",
    ] {
        // A witness that asks for nothing tells when discovery is done.
        let mut witness = stage.ours(READER);
        let mut reader = stage.ours(&format!("{READER} {sets}"));
        witness.expect("Create reader", PATIENCE);
        reader.expect("Create reader", PATIENCE);
        let writer = stage.theirs(WRITER);
        let told = reader.expect("on_requested_incompatible_qos()", PATIENCE);
        assert!(told.ends_with("3 (PRESENTATION)"), "{told}");
        for _ in 0..5 {
            witness.expect("Square ", PATIENCE);
        }
        stop(witness);
        let heard = stop(reader);
        assert!(sizes(&heard).is_empty(), "{heard:#?}");
        assert!(!said(&heard, "on_subscription_matched()"), "{heard:#?}");
        stop(writer);
    }
}

fn writers_that_offer_sets_and_send_none_are_heard(stage: &Stage) {
    let sets = "--access-scope g --coherent --ordered";
    let mut reader = stage.ours(&format!("{READER} {sets}"));
    reader.expect("Create reader", PATIENCE);
    let writer = stage.theirs(&format!("{WRITER} {sets}"));
    for _ in 0..10 {
        reader.expect("Square ", PATIENCE);
    }
    let heard = stop(reader);
    let sizes = sizes(&heard);
    assert!(sizes.windows(2).all(|w| w[1] == w[0] + 1), "{sizes:?}");
    assert!(said(&heard, "incomplete_sets: 0"), "{heard:#?}");
    stop(writer);
}
