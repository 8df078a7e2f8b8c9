//! A storing process is killed repeatedly: its store opens every time and holds the
//! committed samples, in order.

#![allow(clippy::disallowed_methods, reason = "a child reads its part")]

use pteros_test_support::folder::Folder;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use pteros_store::{Depth, Origin, Retention, Safety, Store, StoreSpec, StoredSample, read};
use pteros_test_support::own_process;

const FOLDER: &str = "PTEROS_TEST_STORE_FOLDER";
const SAFETY: &str = "PTEROS_TEST_STORE_SAFETY";

fn spec(folder: PathBuf, safety: Safety) -> StoreSpec {
    StoreSpec {
        folder,
        name: "killed".into(),
        topic: "t".into(),
        type_name: "T".into(),
        retention: Retention {
            depth: Depth::KeepLast(50),
            ..Retention::default()
        },
        safety,
        file_bytes_max: u64::MAX,
    }
}

fn sample(sequence: i64) -> StoredSample {
    // Sizes that need one page, several, and parts of one.
    let bytes = (sequence as usize * 7919) % 20_000;
    StoredSample {
        origin: Origin {
            writer: [1; 16],
            sequence,
        },
        source_nanos: None,
        key_hash: None,
        disposed: false,
        ended_nanos: 0,
        payload: Bytes::from(vec![sequence as u8; bytes]),
    }
}

/// Not a test: the process that is killed. Continues where the store ends, and
/// prints each number once it is stored.
#[test]
#[ignore = "run by the other test, as a process of its own"]
fn the_process_that_is_killed() {
    let folder = std::env::var_os(FOLDER).expect("only with a folder");
    let safety = if std::env::var_os(SAFETY).is_some_and(|word| word == "disk") {
        Safety::Disk
    } else {
        Safety::Process
    };
    let (store, found) = Store::open(spec(folder.into(), safety), 0, Box::new(|_| {})).unwrap();
    let first = found.last().map_or(1, |last| last.origin.sequence + 1);
    println!("\nopen");
    for n in first.. {
        store.put(sample(n));
        if n % 3 == 0 {
            assert!(store.wait_until_stored(Duration::from_secs(60)));
            println!("stored {n}");
        }
    }
}

fn killed_in_a_loop(safety: Safety, rounds: usize) {
    let folder = Folder::absent(&format!("killed-{safety:?}"));
    let mut promised = 0;
    for round in 0..rounds {
        let mut child = own_process::command("kill::the_process_that_is_killed")
            .env(FOLDER, &folder)
            .env(
                SAFETY,
                if safety == Safety::Disk {
                    "disk"
                } else {
                    "process"
                },
            )
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut left = 1 + round * 5 % 17;
        for line in lines.map_while(Result::ok) {
            if let Some(number) = line.strip_prefix("stored ") {
                promised = number.parse().unwrap();
                left -= 1;
            }
            // Some die right after opening, some while they open.
            let early = (round % 4 == 3 && line == "open")
                || (round % 5 == 2 && line.starts_with("running"));
            if left == 0 || early {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if round % 3 == 1 {
            // Reading mends the file: the next process finds it unmended.
            continue;
        }
        let contents = read(&spec(folder.to_path_buf(), safety).path()).unwrap();
        let numbers: Vec<i64> = contents.samples.iter().map(|s| s.origin.sequence).collect();
        let last = numbers.last().copied().unwrap_or(0);
        assert!(last >= promised, "round {round}: {last} after {promised}");
        let first = (last - 49).max(1);
        assert_eq!(numbers, (first..=last).collect::<Vec<_>>(), "round {round}");
        for found in contents.samples {
            assert_eq!(found, sample(found.origin.sequence));
        }
    }
    assert!(promised > 100, "only {promised} were stored");
}

#[test]
fn a_killed_process_leaves_a_transient_store_with_all_committed_samples() {
    killed_in_a_loop(Safety::Process, 30);
}

#[test]
fn a_killed_process_leaves_a_persistent_store_with_all_committed_samples() {
    killed_in_a_loop(Safety::Disk, 12);
}
