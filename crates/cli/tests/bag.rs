//! `pteros bag`: records and plays between processes, and reads torn bags and those
//! of other libraries.
#![allow(
    clippy::disallowed_methods,
    reason = "finds the Python whose libraries read our bags"
)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Answer, Domain, Running, assert_contains, finish, pteros, start};

fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bag-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn bag(words: &str, folder: &Path) -> Answer {
    let mut command = pteros();
    command
        .arg("bag")
        .args(words.split_whitespace())
        .arg(folder);
    finish(command)
}

/// Starts a recorder of `words` into the folder.
fn record(domain: &Domain, folder: &Path, words: &str) -> Running {
    let mut command = domain.command(["bag", "record", "-o"]);
    command.arg(folder).args(words.split_whitespace());
    let mut recorder = start(command);
    assert_contains(&recorder.error_line(), "Recording to ");
    recorder
}

/// Publishes `count` messages to a matched subscription.
fn publish(domain: &Domain, topic: &str, count: u32) {
    let words = format!("topic pub {topic} std_msgs/msg/Int32 --times {count} -r 500 -w 1");
    let words: Vec<&str> = words.split(' ').chain(["data: 7"]).collect();
    finish(domain.command(words)).ok();
}

#[test]
fn a_recorded_topic_is_shown_printed_and_played() {
    let domain = Domain::new();
    let folder = folder("round");
    let mut recorder = record(&domain, &folder, "/numbers");
    publish(&domain, "/numbers", 25);
    assert_contains(&recorder.error_line(), "Subscribed to topic '/numbers'");
    recorder.signal("INT");
    let answer = recorder.wait();
    assert_eq!(answer.code, Some(0), "{}{}", answer.out, answer.err);
    assert_contains(&answer.out, "/numbers: 25 messages written\n");
    assert_contains(&answer.out, "25 messages, 0 lost");

    let shown = bag("info", &folder).ok();
    assert_contains(&shown, "Files:             bag-round_0.mcap\n");
    assert_contains(&shown, "Messages:          25\n");
    let line = "Topic: /numbers | Type: std_msgs/msg/Int32 | Count: 25 | Serialization Format: cdr";
    assert_contains(&shown, line);
    assert_contains(&shown, "Lost messages:     0\n");
    let known = bag("info --json", &folder).json();
    assert_eq!(known["topics"][0]["lost"]["wire"], 0);
    assert_eq!(known["complete"], true);
    assert_eq!(
        bag("topics", &folder).ok(),
        "/numbers [std_msgs/msg/Int32] 25\n"
    );
    let printed = bag("cat --json -n 2", &folder).ok();
    assert_eq!(printed.lines().count(), 2);
    assert_contains(&printed, r#""message":{"data":7}"#);
    assert_eq!(
        bag("check", &folder).ok(),
        "25 messages read, no problems\n"
    );

    let mut echo =
        domain.start("topic echo /again std_msgs/msg/Int32 --csv --qos-reliability reliable");
    let words =
        "bag play -r 10 --wait-for-matched 20 --wait-for-all-acked 5000 -m /numbers:=/again --";
    let mut command = domain.command(words.split(' '));
    command.arg(&folder);
    let played = finish(command).ok();
    assert_contains(&played, "25 messages published");
    for _ in 0..25 {
        assert_eq!(echo.line(), "7");
    }
    let error = {
        let mut command = domain.command(["bag", "record", "/numbers", "-o"]);
        command.arg(&folder);
        finish(command).failed(1)
    };
    assert_contains(&error, "exists already, and bags are never overwritten");
}

/// The recorder is killed: what was older than a second is there.
#[test]
fn a_killed_recorder_leaves_a_readable_bag() {
    let domain = Domain::new();
    let folder = folder("killed");
    let recorder = record(&domain, &folder, "/numbers");
    publish(&domain, "/numbers", 10);
    // A bag that is being recorded is read as far as it goes.
    let has_messages = |_| bag("info --json", &folder).json()["messages"] != 0;
    assert!((0..2000).any(has_messages), "nothing is flushed");
    recorder.signal("KILL");
    drop(recorder);
    let known = bag("info --json", &folder).json();
    assert_eq!(known["complete"], false);
    let count = known["messages"].as_u64().unwrap();
    assert!((1..=10).contains(&count), "{known}");
    bag("check", &folder).failed(1);
    let new = self::folder("killed-new");
    let mut command = pteros();
    command
        .args(["bag", "recover"])
        .arg(&folder)
        .arg("-o")
        .arg(&new);
    assert_contains(&finish(command).ok(), &format!("{count} messages"));
    assert_eq!(
        bag("check", &new).ok(),
        format!("{count} messages read, no problems\n")
    );
    assert_contains(&bag("reindex", &folder).ok(), "metadata.yaml written");
    let shown = std::fs::read_to_string(folder.join("metadata.yaml")).unwrap();
    assert_contains(&shown, &format!("message_count: {count}\n"));
}

/// Checks our bag with the PyPI packages `mcap`, `mcap-ros2-support` and `rosbags`, and
/// one of theirs with ours. `PTEROS_BAG_PYTHON` names a Python that has them.
#[test]
fn bags_are_exchanged_with_other_libraries() {
    let Some(python) = std::env::var_os("PTEROS_BAG_PYTHON") else {
        eprintln!("skipped: PTEROS_BAG_PYTHON names no Python with mcap-ros2-support and rosbags");
        return;
    };
    let domain = Domain::new();
    for compression in ["none", "lz4", "zstd"] {
        let ours = folder(&format!("ours-{compression}"));
        let words =
            format!("-a --compression {compression} --exclude-topics /rosout /parameter_events");
        let recorder = record(&domain, &ours, &words);
        publish(&domain, "/numbers", 25);
        let mut recorder = recorder;
        recorder.signal("INT");
        assert_eq!(recorder.wait().code, Some(0));
        let theirs = folder(&format!("theirs-{compression}"));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bag_libraries.py");
        let mut command = Command::new(&python);
        command.arg(script).arg(&ours).arg(&theirs).arg(compression);
        let out = finish(command).ok();
        assert_contains(&out, "mcap: 25 messages, all 7");
        assert_contains(&out, "rosbags: 25 messages, all 7");
        let printed = bag("cat --json", &theirs).ok();
        assert_eq!(printed.lines().count(), 5, "{printed}");
        assert_contains(&printed, r#""message":{"data":"text 4"}"#);
        assert_eq!(bag("check", &theirs).ok(), "5 messages read, no problems\n");
    }
}
