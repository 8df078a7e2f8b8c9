//! `pteros demo`: the first thing a user runs.

use crate::support::{Domain, assert_contains, pteros};
use pteros_test_support::folder::Folder;
use serde_json::Value;

#[test]
fn the_robot_uses_both_delivery_paths_and_the_demo_ends_by_itself() {
    let output = pteros()
        .args(["demo", "--seconds", "3", "--json"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}{error}");
    let end: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(end["did_not_flow"], serde_json::json!([]));
    let connections = end["connections"].as_array().unwrap();
    for kind in ["LaserScan", "Image", "String"] {
        for path in ["intra-process", "shared memory"] {
            let flows = connections.iter().any(|row| {
                row["type"].as_str().unwrap().ends_with(kind)
                    && row["path"] == path
                    && row["count"].as_u64().unwrap() > 0
                    && row["p95_ns"].as_u64().unwrap() >= row["p50_ns"].as_u64().unwrap()
            });
            assert!(flows, "{kind} by {path}: {end:#}");
        }
    }
}

#[test]
fn plain_output_ends_with_commands_to_try() {
    let output = pteros()
        .args(["demo", "--seconds", "2.5"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(!text.contains('\x1b'), "colour only on a terminal");
    assert_contains(&text, "/camera/image_raw  sensor_msgs/Image");
    assert_contains(&text, "All 8 connections carried messages");
    assert!(text.contains("demo talker"), "{text}");
}

#[test]
fn no_child_process_survives_the_demo() {
    let domain = Domain::new();
    for (signal, code) in [("INT", Some(130)), ("KILL", None)] {
        let mut demo = domain.start("demo --seconds 60 --json");
        assert!(demo.line().contains("connections"));
        demo.signal(signal);
        // Returns only when the children, which share standard error, have ended.
        let answer = demo.wait();
        assert_eq!(answer.code, code, "{}", answer.err);
    }
}

#[test]
fn the_listener_prints_messages_as_ros2_does() {
    let domain = Domain::new();
    let mut listener = domain.start("demo listener -t 1");
    let mut talker = domain.start("demo talker");
    let output = talker.error_line();
    assert!(output.starts_with("[INFO] ["), "{output}");
    assert!(
        output.ends_with("] [talker]: Publishing: 'Hello World: 1'"),
        "{output}"
    );
    let received = listener.error_line();
    assert_contains(&received, "] [listener]: I heard: [Hello World: ");
    listener.wait().ok();
    talker.signal("INT");
    talker.wait().ok();
}

/// An ordinary node: parameters, `/rosout`, a log file, remaps and levels.
#[test]
fn the_talker_is_an_ordinary_node() {
    let domain = Domain::new();
    let logs = Folder::absent("demo");
    let words = "demo talker --ros-args -r __node:=mouth -r chatter:=words --log-file-name demo";
    let mut command = domain.command(words.split(' '));
    command.env("ROS_LOG_DIR", &logs);
    let mut talker = crate::support::start(command);
    let output = talker.error_line();
    assert!(
        output.ends_with("[mouth]: Publishing: 'Hello World: 1'"),
        "{output}"
    );
    let rosout = domain.run("topic echo --once --timeout 30 /rosout rcl_interfaces/msg/Log");
    assert!(rosout.ok().contains("Hello World: "));
    let listed = domain.run_until("param list /mouth", |answer| {
        answer.out.contains("use_sim_time")
    });
    assert!(listed.out.contains("use_sim_time"), "{}", listed.err);
    talker.signal("INT");
    talker.wait().ok();
    let files: Vec<_> = std::fs::read_dir(&logs).unwrap().flatten().collect();
    let [file] = &files[..] else {
        panic!("{files:?}");
    };
    let name = file.file_name().into_string().unwrap();
    assert!(name.starts_with("demo_"), "{name}");
    let text = std::fs::read_to_string(file.path()).unwrap();
    assert_contains(&text, "[mouth]: Publishing: 'Hello World: 1'");
}

#[test]
fn the_talker_logs_nothing_below_its_level_and_prints_json() {
    let domain = Domain::new();
    let answer = domain.run("demo talker -t 1 --json --ros-args --log-level warn");
    assert_eq!(answer.err, "");
    let line: Value = serde_json::from_str(&answer.ok()).unwrap();
    assert_eq!(line["published"], "Hello World: 1");
}
