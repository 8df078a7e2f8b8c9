//! `pteros trace`: records of processes without code for it, shown and exported,
//! and the errors if there is nothing to show.

use pteros_test_support::folder::Folder;

use crate::support::{Domain, finish};
use serde_json::Value;

#[test]
fn messages_between_two_processes_are_recorded_shown_and_exported() {
    let domain = Domain::new();
    let folder = Folder::absent("cli-trace");
    let path = folder.to_str().expect("a path of letters");
    let pteros = env!("CARGO_BIN_EXE_pteros");
    let script = r#""$0" topic echo /heard --once &
        "$0" topic pub /heard std_msgs/msg/Int32 'data: 7' -w 1 -r 20 --times 40; wait"#;
    let words = [
        "trace", "record", "-o", path, "--", "sh", "-c", script, pteros,
    ];
    let output = finish(domain.command(words)).ok();
    assert!(output.contains("records of 2 contexts"), "{output}");

    let show = |words: &[&str]| {
        let before = ["trace", "show", path];
        finish(domain.command(before.iter().chain(words)))
    };
    let shown = show(&[]).ok();
    let row = shown.lines().find(|line| line.starts_with("/heard"));
    // The first message may precede the shared-memory connection.
    let by = |row: &str| row.contains("shared memory") || row.contains("UDP");
    assert!(row.is_some_and(by), "{shown}");
    let json: Value = serde_json::from_str(&show(&["--json"]).ok()).expect("JSON");
    let topics = json["topics"].as_array().expect("topics");
    let received = topics.iter().find(|topic| topic["topic"] == "/heard");
    let received = received.expect("the topic");
    let latency = received["latency_ns"]["p50"].as_u64().expect("a latency");
    let layers = received["layers_ns"].as_object().expect("layers");
    assert_eq!(layers.len(), 6);
    assert!(
        latency > 0 && layers.values().all(|l| l["p50"].as_u64() <= Some(latency)),
        "{received}"
    );

    let error = show(&["--chain", "/heard,/nowhere"]).failed(1);
    assert!(error.contains("/heard,/nowhere"), "{error}");
    let error = show(&["--chain", "heard", "--json"]).ok();
    assert!(error.contains("\"runs\": "), "{error}");

    let file = folder.join("chrome.json");
    let file = file.to_str().expect("a path of letters");
    let export = ["trace", "export", path, "--chrome", "-o", file];
    finish(domain.command(export)).ok();
    let text = std::fs::read_to_string(file).expect("the export");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let events = json["traceEvents"].as_array().expect("events");
    let phases = |phase: &str| events.iter().filter(|e| e["ph"] == phase).count();
    assert!(phases("X") >= 2 && phases("s") == phases("f") && phases("s") > 0);
    let error = finish(domain.command(export)).failed(1);
    assert!(
        error.contains("chrome.json"),
        "it is there already: {error}"
    );
    let error = finish(domain.command(["trace", "record", "-o", path, "--", "true"])).failed(1);
    assert!(error.contains("has traces already"), "{error}");
}

#[test]
fn a_missing_trace_is_reported_with_a_hint() {
    let domain = Domain::new();
    let folder = Folder::absent("cli-no-trace");
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.to_str().expect("a path of letters");
    let error = |words: &[&str], code| finish(domain.command(words.to_vec())).failed(code);
    let output = error(&["trace", "show", "nowhere"], 1);
    assert!(
        output.contains("nowhere") && output.contains("PTEROS_TRACE"),
        "{output}"
    );
    let output = error(&["trace", "show", path], 1);
    assert!(output.contains("no .ptrace file"), "{output}");
    let file = folder.join("mine.ptrace");
    std::fs::write(&file, "something else altogether").expect("a file");
    let output = error(&["trace", "show", path], 1);
    assert!(
        output.contains("mine.ptrace") && output.contains("not a trace"),
        "{output}"
    );
    let new = folder.join("new");
    let new = new.to_str().expect("a path of letters");
    let output = error(&["trace", "record", "-o", new, "--", "true"], 1);
    assert!(output.contains("nothing was recorded"), "{output}");
    let output = error(&["trace", "record", "-o", new, "--", "no-such-program"], 1);
    assert!(output.contains("no-such-program"), "{output}");
    error(&["trace", "record", "--duration", "-1", "--", "true"], 2);
    error(&["trace", "record"], 2);
    let mut traced = domain.command(["topic", "list"]);
    traced.env("PTEROS_TRACE", &file);
    let output = finish(traced).failed(1);
    assert!(
        output.contains("mine.ptrace") && output.contains("PTEROS_TRACE"),
        "{output}"
    );
}

#[test]
fn a_command_is_interrupted_when_its_time_is_over() {
    let domain = Domain::new();
    let pteros = env!("CARGO_BIN_EXE_pteros");
    let words = "topic pub /t std_msgs/msg/Int32 -r 50 --ros-args -r __node:=counted";
    // The longer time is for slow machines.
    let recorded = |seconds: &str| {
        let folder = Folder::absent("cli-trace-duration");
        let mut command = domain.command(["trace", "record", "--json", "-o"]);
        command
            .arg(&folder)
            .args(["--duration", seconds, "--", pteros]);
        command.args(words.split(' '));
        let answer = finish(command);
        let json: Value = serde_json::from_str(answer.out.get(answer.out.find("{\n")?..)?).ok()?;
        let records = json["records"].as_u64().filter(|count| *count > 0)?;
        (answer.code == Some(0)).then_some((records, json["files"].as_u64()))
    };
    let (records, files) = recorded("2").or_else(|| recorded("25")).expect("a trace");
    assert!(records > 0);
    assert_eq!(files, Some(1));
}
