//! `pteros-lab topology`: files in ros2-performance's format run in one process and
//! in several. Invalid files start nothing.

use std::fs;
use std::path::Path;

use crate::support::{Domain, run};
use pteros_test_support::folder::Folder;
use serde_json::Value;

/// Two topics, one with its own type and one without; a service; three nodes of
/// four.
const ROBOT: &str = r#"{"nodes": [
    {"node_name": "camera", "executor_id": 1, "publishers": [
        {"topic_name": "image", "msg_type": "stamped_vector", "msg_size": 20000, "freq_hz": 50,
         "qos_depth": 1000},
        {"topic_name": "info", "msg_type": "sensor_msgs/msg/CameraInfo", "period_ms": 20,
         "msg_pass_by": "shared_ptr", "qos_depth": 1000}]},
    {"node_name": "viewer", "number": 2, "subscribers": [
        {"topic_name": "image", "msg_type": "stamped_vector", "qos_depth": 1000},
        {"topic_name": "info", "msg_type": "sensor_msgs/msg/CameraInfo", "qos_depth": 1000}],
     "clients": [{"service_name": "shot", "srv_type": "stamped10b", "period_ms": 50}]},
    {"node_name": "server", "servers": [{"service_name": "shot", "srv_type": "stamped10b"}]}]}"#;

/// A folder with a run of the lab.
trait RunFolder {
    fn out(&self) -> String;
}

impl RunFolder for Folder {
    fn out(&self) -> String {
        self.path().join("out").to_string_lossy().into_owned()
    }
}

fn results(out: &str) -> Value {
    let text = fs::read_to_string(Path::new(out).join("results.json")).expect("results");
    serde_json::from_str(&text).expect("JSON")
}

/// All rows of a kind: node, entity, received, lost, duplicates.
fn rows(results: &Value, kind: &str) -> Vec<(String, String, u64, u64, u64)> {
    let processes = results["processes"].as_array().expect("a list").iter();
    let rows = processes.flat_map(|process| process["rows"].as_array().expect("a list"));
    let of_kind = rows.filter(|row| row["kind"] == kind);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let count = |value: &Value| value.as_u64().expect("a number");
    of_kind
        .map(|row| {
            let [received, lost, twice] =
                ["received", "lost", "duplicates"].map(|key| count(&row[key]));
            (
                text(&row["node"]),
                text(&row["entity"]),
                received,
                lost,
                twice,
            )
        })
        .collect()
}

/// Every subscription received every message once.
fn check_results(results: &Value) {
    let publishers = rows(results, "publisher");
    let subscriptions = rows(results, "subscription");
    assert_eq!(
        (publishers.len(), subscriptions.len()),
        (2, 4),
        "{results:#}"
    );
    for (node, topic, received, lost, twice) in subscriptions {
        let published = publishers
            .iter()
            .find(|row| row.1 == topic)
            .expect("its publisher")
            .2;
        assert!(
            received > 0 && received == published,
            "{node} {topic}: {received} of {published}"
        );
        assert_eq!((lost, twice), (0, 0), "{node} {topic}");
    }
    let answers = rows(results, "client");
    assert_eq!(answers.len(), 2);
    assert!(answers.iter().all(|row| row.2 > 0), "{answers:?}");
}

#[test]
fn a_file_runs_in_one_process_and_in_one_per_node() {
    let (domain, folder) = (Domain::new(), Folder::new("runs"));
    let (file, out) = (
        folder.write("robot.json", ROBOT).display().to_string(),
        folder.out(),
    );
    let answer = domain.run(&format!("topology {file} -t 1 --out {out}"));
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    assert!(answer.out.contains("System total:"), "{}", answer.out);
    check_results(&results(&out));
    let log = Path::new(&out).join("robot_log");
    for (name, head) in [
        (
            "latency_all.txt",
            "node topic size_b received_msgs late_msgs too_late_msgs lost_msgs",
        ),
        (
            "latency_total.txt",
            "received_msgs mean_us late_msgs late_perc too_late_msgs",
        ),
        (
            "resources.txt",
            "time_ms cpu_perc arena_KB in_use_KB mmap_KB rss_KB vsz_KB",
        ),
        ("events.txt", "Time_ms Caller Code Description"),
        ("samples.csv", "kind,node,entity,number,latency_us"),
    ] {
        let text = fs::read_to_string(log.join(name)).expect(name);
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(head), "{name}:\n{text}");
    }
    let answer = domain.run(&format!(
        "topology {file} --processes -t 1 --out {out} --json"
    ));
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    let results = results(&out);
    check_results(&results);
    let processes = results["processes"].as_array().expect("a list");
    assert_eq!(processes.len(), 4);
    for process in processes {
        assert!(process["pss_kb"].as_u64() > Some(500), "{process:#}");
        assert_eq!(process["unmatched"], serde_json::json!([]), "{process:#}");
    }
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let (domain, folder) = (Domain::new(), Folder::new("ctrl-c"));
    let (file, out) = (
        folder.write("robot.json", ROBOT).display().to_string(),
        folder.out(),
    );
    let mut running = domain.start(&format!("topology {file} --processes -t 900 --out {out}"));
    let line = running.error_line();
    assert!(
        line.contains("4 processes have discovered each other"),
        "{line}"
    );
    running.signal("INT");
    let answer = running.wait();
    assert_eq!(answer.code, Some(130), "{}", answer.err);
    assert!(answer.out.contains("System total:"), "{}", answer.out);
    assert_eq!(results(&out)["processes"].as_array().map(Vec::len), Some(4));
}

#[test]
fn an_invalid_file_is_reported_and_starts_nothing() {
    let folder = Folder::new("wrong");
    let right = folder.write("right.json", ROBOT).display().to_string();
    let wrong = folder
        .write("wrong.json", &ROBOT.replace("stamped10b", "stamped10kib"))
        .display()
        .to_string();
    let out = folder.out();
    let answer = run(&format!("topology {right} {wrong} --out {out}"));
    assert_eq!(answer.code, Some(1));
    for part in [
        "wrong.json: node \"viewer_1\", client 1, srv_type: \"stamped10kib\"",
        "no such type",
    ] {
        assert!(answer.err.contains(part), "{}", answer.err);
    }
    assert!(!Path::new(&out).exists());
    let answer = run(&format!("topology {right} --out {right}/x"));
    assert_eq!(answer.code, Some(1));
    assert!(answer.err.contains("make the folder"), "{}", answer.err);
    let answer = run(&format!("topology --check {right}"));
    assert_eq!(
        (answer.code, answer.out.as_str()),
        (Some(0), "1 files with 4 nodes can run\n")
    );
}

#[test]
fn generated_files_run() {
    let (domain, folder) = (Domain::new(), Folder::new("generated"));
    let answer = run("topology --generate fan-in 4 --type stamped1kb --rate 100");
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    let (file, out) = (
        folder.write("fan.json", &answer.out).display().to_string(),
        folder.out(),
    );
    let answer = domain.run(&format!("topology {file} -t 1 --out {out}"));
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    let received = rows(&results(&out), "subscription");
    assert_eq!(received.len(), 3);
    assert!(
        received.iter().all(|row| row.2 > 0 && row.3 == 0),
        "{received:?}"
    );
    let answer = run("topology --generate ring 4");
    assert!(
        answer
            .err
            .contains("Known: chain, star, fan-in, all-to-all"),
        "{}",
        answer.err
    );
}
