//! `pteros topic` and `pteros node` on a running graph: separate processes, one
//! domain per test, loopback only.

#![allow(clippy::disallowed_methods, reason = "measures what a user waits for")]

use crate::support::{Domain, Running, assert_contains};
use std::time::{Duration, Instant};

/// A running publisher of `Hello` at 20 Hz.
fn hello(domain: &Domain, more: &str) -> Running {
    let words = format!("topic pub /chatter std_msgs/msg/String -r 20 -n greeter {more}");
    let mut publisher = domain.start_with(words.trim_end(), "data: Hello");
    assert_eq!(publisher.line(), "publisher: beginning loop");
    publisher
}

#[test]
fn a_running_graph_is_listed_within_half_a_second() {
    let domain = Domain::new();
    let _publisher = hello(&domain, "");
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let started = Instant::now();
        assert_eq!(
            domain.run("topic list -t").ok(),
            "/chatter [std_msgs/msg/String]\n\
             /parameter_events [rcl_interfaces/msg/ParameterEvent]\n\
             /rosout [rcl_interfaces/msg/Log]\n"
        );
        best = best.min(started.elapsed());
    }
    assert!(best < Duration::from_millis(500), "{best:?}");
    assert_eq!(domain.run("topic list -c").ok(), "3\n");
    assert_eq!(
        domain.run("topic type /chatter").ok(),
        "std_msgs/msg/String\n"
    );
    assert_eq!(domain.run("topic find std_msgs/String").ok(), "/chatter\n");
    assert_eq!(domain.run("topic find std_msgs/msg/Bool -c").ok(), "0\n");
}

#[test]
fn nodes_and_endpoints_are_described_as_in_ros2() {
    let domain = Domain::new();
    let _publisher = hello(&domain, "--qos-durability transient_local");
    assert_eq!(domain.run("node list").ok(), "/greeter\n");
    assert!(domain.run("node list -a").ok().contains("/_pteros_cli_"));
    let node = domain.run("node info greeter").ok();
    assert!(
        node.starts_with(
            "/greeter\n  Subscribers:\n\n  Publishers:\n    /chatter: std_msgs/msg/String\n"
        ),
        "{node}"
    );
    assert_eq!(
        domain.run("topic info /chatter").ok(),
        "Type: std_msgs/msg/String\nPublisher count: 1\nSubscription count: 0\n"
    );
    let verbose = domain.run("topic info -v /chatter").ok();
    for line in [
        "Node name: greeter\n",
        "Node namespace: /\n",
        "Topic type hash: RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18\n",
        "Endpoint type: PUBLISHER\n",
        "  Durability: TRANSIENT_LOCAL\n",
        "  Lifespan: Infinite\n",
    ] {
        assert!(verbose.contains(line), "{line}{verbose}");
    }
    assert!(
        verbose.ends_with("  Liveliness lease duration: Infinite\n\nSubscription count: 0\n\n"),
        "ros2 prints no more: {verbose}"
    );
    let details = domain.run("topic info --details /chatter").ok();
    for line in [
        "Shared-memory connections of each process:\n  /greeter: ",
        " sent, 0 received, nothing dropped\n",
    ] {
        assert!(details.contains(line), "{line}{details}");
    }
    let json = domain.run("topic info /chatter --json").json();
    assert_eq!(json["publishers"][0]["qos"]["reliability"], "RELIABLE");
    assert_eq!(json["connections"][0]["nodes"], "/greeter");
    assert_eq!(json["connections"][0]["dropped"]["ring_full"], 0);
}

#[test]
fn messages_are_echoed_in_every_format() {
    let domain = Domain::new();
    let _publisher = hello(&domain, "");
    let echo = |flags: &str| {
        domain
            .run(&format!("topic echo /chatter --once {flags}"))
            .ok()
    };
    assert_eq!(echo("std_msgs/msg/String"), "data: Hello\n---\n");
    assert_eq!(echo("--field data"), "Hello\n---\n");
    assert_eq!(echo("--csv"), "Hello\n");
    assert_eq!(echo("--json"), "{\"data\":\"Hello\"}\n");
    assert_eq!(echo("--no-str"), "data: '<string length: <5>>'\n---\n");
    assert!(echo("--raw").starts_with("b'\\x00\\x01"));
    assert!(echo("-i").contains("publication_sequence_number: "));
}

/// A line break of a text begins no further record, and nothing of it moves a cursor.
#[test]
fn a_text_of_several_lines_is_one_record_of_csv() {
    let domain = Domain::new();
    let words = "topic pub /chatter std_msgs/msg/String -r 20 -p 0";
    let mut publisher = domain.start_with(words, "data: \"one\\n---\\x1b[2J\"");
    assert_eq!(publisher.line(), "publisher: beginning loop");
    let answer = domain.run("topic echo /chatter --once --csv").ok();
    assert_eq!(answer, "one\\n---\\x1b[2J\n");
}

#[test]
fn an_empty_graph_lists_the_topics_of_every_ros2_node() {
    let domain = Domain::new();
    let list = domain.run("topic list").ok();
    assert_eq!(list, "/parameter_events\n/rosout\n");
    assert_eq!(
        domain.run("topic list -v").ok(),
        "Published topics:\n \
         * /parameter_events [rcl_interfaces/msg/ParameterEvent] 1 publisher\n \
         * /rosout [rcl_interfaces/msg/Log] 1 publisher\n\n\
         Subscribed topics:\n\n"
    );
    let info = domain.run("topic info /rosout").ok();
    assert!(info.contains("Publisher count: 1\n"), "{info}");
    assert_eq!(domain.run("service list").ok(), "");
    assert_eq!(domain.run("node list").ok(), "");
}

#[test]
fn arrays_and_strings_are_cut_in_json_if_asked() {
    let domain = Domain::new();
    let words = "topic pub /scan sensor_msgs/msg/LaserScan -r 20 -p 0";
    let values = "{header: {frame_id: laser}, ranges: [0.1, 2, 3]}";
    let mut publisher = domain.start_with(words, values);
    publisher.line();
    let echo = |flags: &str| {
        let words = format!("topic echo /scan --once {flags}");
        let words = words.trim_end();
        domain
            .run_until(words, |answer| answer.code == Some(0))
            .ok()
    };
    let json = |flags: &str| -> serde_json::Value {
        serde_json::from_str(&echo(&format!("--json {flags}"))).unwrap()
    };
    assert_eq!(json("-l 2")["ranges"][2], "...");
    assert_eq!(json("-l 2")["header"]["frame_id"], "la...");
    let summary = "<sequence type: float, length: 3>";
    assert_eq!(json("--no-arr")["ranges"], summary);
    assert_eq!(json("--no-arr --field ranges"), summary);
    assert_eq!(json("")["ranges"][2], 3.0);
    // As rclpy, which has doubles only.
    assert_contains(&echo(""), "ranges:\n- 0.10000000149011612\n- 2.0\n");
    assert_eq!(echo("--field ranges[0]"), "0.10000000149011612\n---\n");
}

#[test]
fn hidden_topics_and_services_are_listed_if_asked_before_or_after_the_verb() {
    let domain = Domain::new();
    let mut publisher = domain.start("topic pub /_hidden std_msgs/msg/Empty -r 20");
    publisher.line();
    for words in [
        "topic --include-hidden-topics list",
        "topic list --include-hidden-topics",
        "topic --include-hidden-topics find std_msgs/msg/Empty",
    ] {
        let list = domain.run_until(words, |answer| answer.out.contains("/_hidden"));
        assert_contains(&list.ok(), "/_hidden\n");
    }
    let list = domain.run("topic list").ok();
    assert!(!list.contains("/_hidden"), "{list}");
    domain.run("service --include-hidden-services list").ok();
}

#[test]
fn rates_and_bandwidths_are_measured_without_a_type_definition() {
    let domain = Domain::new();
    let _publisher = hello(&domain, "");
    let words = "topic hz /chatter --json --timeout 2.5 --filter";
    let rate = last_line(
        &domain
            .run_with(words, "len(m.data) == 5 and m.data[0] == 'H'")
            .ok(),
    );
    let hertz = rate["rate"].as_f64().unwrap();
    assert!((15.0..25.0).contains(&hertz), "{rate}");
    let none = domain.run_with(words, "m.data > 'Z'").failed(1);
    assert_contains(&none, "no message received");
    let error = domain.run_with(words, "m.dat > 'A'").failed(1);
    assert!(
        error.contains("--filter") && error.contains("dat"),
        "{error}"
    );
    let rate = last_line(&domain.run("topic hz /chatter --json --timeout 2.5").ok());
    let hertz = rate["rate"].as_f64().unwrap();
    assert!((15.0..25.0).contains(&hertz), "{rate}");
    let bandwidth = last_line(&domain.run("topic bw /chatter --json --timeout 2.5").ok());
    assert_eq!(bandwidth["mean_bytes"], 16.0);
    let error = domain.run("topic delay /chatter --timeout 2").failed(1);
    assert!(error.contains("no header"), "{error}");
}

#[test]
fn stamps_are_filled_in_and_their_age_is_measured() {
    let domain = Domain::new();
    let words = "topic pub /pose geometry_msgs/msg/PoseStamped -r 20";
    let mut publisher = domain.start_with(words, "{header: auto, pose: {position: {x: 1.5}}}");
    publisher.line();
    let age = last_line(&domain.run("topic delay /pose --json --timeout 2.5").ok());
    let seconds = age["delay"].as_f64().unwrap();
    assert!((0.0..0.5).contains(&seconds), "{age}");
    let x = domain
        .run("topic echo /pose --once --field pose.position.x")
        .ok();
    assert_eq!(x, "1.5\n---\n");
}

#[test]
fn a_message_published_once_reaches_the_subscription_it_waited_for() {
    let domain = Domain::new();
    let mut echo = domain.start("topic echo /once std_msgs/msg/Int32 --once");
    let sent = domain
        .run_with("topic pub /once std_msgs/msg/Int32 --once", "data: 42")
        .ok();
    assert_contains(&sent, "publishing #1: std_msgs.msg.Int32(data=42)\n");
    assert_eq!(echo.wait().ok(), "data: 42\n---\n");
}

#[test]
fn why_names_the_incompatible_policy() {
    let domain = Domain::new();
    let _publisher = hello(&domain, "--qos-reliability best_effort");
    let mut echo =
        domain.start("topic echo /chatter std_msgs/msg/String --qos-reliability reliable -n picky");
    let warning = echo.error_line();
    assert!(warning.contains("/greeter is not received"), "{warning}");
    assert_contains(
        &warning,
        "RELIABILITY: offered best effort, requested reliable",
    );
    let why = domain.run_until("topic why /chatter", |answer| {
        answer.out.contains("no match")
    });
    assert_eq!(why.code, Some(1));
    assert_contains(
        &why.out,
        "/greeter -> /picky: no match, because of RELIABILITY",
    );
    assert!(why.out.contains("fix:"), "{}", why.out);
}

#[test]
fn why_names_the_delivery_path_of_a_match() {
    let domain = Domain::new();
    let _publisher = hello(&domain, "");
    let mut echo = domain.start("topic echo /chatter -n friend");
    assert_eq!(echo.line(), "data: Hello");
    let why = domain.run("topic why /chatter").ok();
    assert_contains(&why, "/greeter -> /friend: match, by shared memory");
}

#[test]
fn ros_arguments_rename_node_namespace_and_topic() {
    let domain = Domain::new();
    let last = "data: Hello";
    let mut command = domain.command("topic pub chatter std_msgs/msg/String -r 20".split(' '));
    command
        .arg(last)
        .args("--ros-args -r __ns:=/robot -r __node:=voice -r chatter:=speech".split(' '));
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let nodes = domain.run_until("node list", |answer| !answer.out.is_empty());
    let topics = domain.run("topic find std_msgs/msg/String");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(nodes.ok(), "/robot/voice\n");
    assert_eq!(topics.ok(), "/robot/speech\n");
}

#[test]
fn mistakes_are_reported_with_a_hint() {
    let domain = Domain::new();
    let _publisher = hello(&domain, "");
    let expectations = [
        ("topic info /chater", "did you mean /chatter?"),
        ("topic echo /chater --once", "did you mean /chatter?"),
        ("topic hz /chater", "did you mean /chatter?"),
        ("topic bw /chater", "did you mean /chatter?"),
        ("topic delay /chattr", "did you mean /chatter?"),
        ("bag record /chater", "did you mean /chatter?"),
        ("topic type /nothing", "pteros topic list"),
        ("node info /greater", "did you mean /greeter?"),
        (
            "topic echo /chatter --once --field dat",
            "its fields are data",
        ),
        ("topic echo // --once", "//"),
        (
            "topic pub /chatter std_msgs/msg/String dat:1",
            "std_msgs/msg/String",
        ),
        (
            "topic pub /x std_msgs/msg/Strin {}",
            "did you mean std_msgs/msg/String?",
        ),
        ("topic pub /x std_srvs/srv/Empty {}", "not a message"),
        (
            "topic pub /chatter {data:1}",
            "write it as package/msg/Name",
        ),
        ("topic echo /chatter --once --qos-depth 0", "at least 1"),
        (
            "topic echo /silent std_msgs/msg/String --once --timeout 0.3",
            "topic why /silent",
        ),
        (
            "topic pub /x std_msgs/msg/String {} --once --max-wait-time-secs 0.3",
            "found 0",
        ),
    ];
    for (words, expected) in expectations {
        let error = domain.run(words).failed(1);
        assert!(error.contains(expected), "{words}: {error}");
    }
    // An unused type is no error, but a misspelt one gets a warning.
    for noun in ["topic", "service", "action"] {
        let answer = domain.run(&format!("{noun} find std_msgs/msg/Strin"));
        assert_eq!((answer.code, answer.out.as_str()), (Some(0), ""));
        assert_contains(&answer.err, "did you mean std_msgs/msg/String?");
        let answer = domain.run(&format!("{noun} find std_msgs/msg/Bool"));
        assert_eq!((answer.code, answer.err.as_str()), (Some(0), ""));
    }
    let error = domain
        .command(["topic", "list"])
        .env("ROS_DOMAIN_ID", "none")
        .output()
        .unwrap();
    let error = String::from_utf8(error.stderr).unwrap();
    assert!(
        error.contains("ROS_DOMAIN_ID") && error.contains("none"),
        "{error}"
    );
}

#[test]
fn ctrl_c_ends_an_echo_without_an_error() {
    let domain = Domain::new();
    let _publisher = hello(&domain, "");
    let mut echo = domain.start("topic echo /chatter");
    assert_eq!(echo.line(), "data: Hello");
    echo.signal("INT");
    let answer = echo.wait();
    assert_eq!((answer.code, answer.err.as_str()), (Some(0), ""));
}

#[test]
fn a_publisher_that_is_kept_alive_serves_late_joiners() {
    let domain = Domain::new();
    let words = "topic pub /map std_msgs/msg/String --once -w 0 --keep-alive 30 --qos-durability transient_local";
    let mut publisher = domain.start_with(words, "data: Hello");
    assert_eq!(publisher.line(), "publisher: beginning loop");
    let answer = domain.run_until("topic echo /map --once --timeout 5", |answer| {
        answer.code == Some(0)
    });
    assert_eq!(answer.ok(), "data: Hello\n---\n");
    publisher.signal("INT");
    assert_eq!(publisher.wait().code, Some(0));
}

#[test]
fn a_topic_of_two_types_needs_an_explicit_type() {
    let domain = Domain::new();
    let _text = hello(&domain, "");
    let mut number = domain.start("topic pub /chatter std_msgs/msg/Int32 -r 20");
    assert_eq!(number.line(), "publisher: beginning loop");
    let both = |answer: &crate::support::Answer| answer.err.contains("more than one type");
    let error = domain.run_until("topic echo /chatter --once", both);
    assert!(
        error
            .failed(1)
            .ends_with("append one of them to the command\n")
    );
    let error = domain.run_until("topic hz /chatter --timeout 1", both);
    assert!(error.failed(1).contains("pteros topic info -v /chatter"));
}

#[test]
fn a_shell_completes_the_type_of_the_topic_that_is_there() {
    let domain = Domain::new();
    let mut publisher = domain.start("topic pub /chatter std_msgs/msg/String");
    publisher.line();
    for line in ["pub /chatter ", "pub -r 5 chatter std", "echo /chatter "] {
        let found = domain.candidates(&format!("pteros topic {line}"));
        assert_eq!(found, ["std_msgs/msg/String"], "{line}");
    }
    let found = domain.candidates("pteros topic pub /other std_msgs/msg/");
    assert!(found.len() > 10, "{found:?}");
}

#[test]
fn a_signal_before_the_work_is_done_is_a_failure() {
    let domain = Domain::new();
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut waiting = domain.start("topic pub /x std_msgs/msg/Empty --once");
        assert!(waiting.error_line().starts_with("Waiting"));
        let mut unfinished = domain.start("topic pub /y std_msgs/msg/Empty --times 9 -w 0");
        assert_eq!(unfinished.line(), "publisher: beginning loop");
        let mut looking = domain.start("param get /nobody p --timeout 600");
        let name = format!("/_pteros_cli_{}\n", looking.id());
        domain.run_until("node list --all", |list| list.out.contains(&name));
        for running in [&mut waiting, &mut unfinished, &mut looking] {
            running.signal(signal);
            let answer = running.wait();
            assert_eq!(answer.code, Some(code));
            assert!(!answer.err.contains("error"), "{}", answer.err);
        }
    }
}

#[test]
fn a_remapped_name_is_resolved_to_its_new_name() {
    let domain = Domain::new();
    let _publisher = hello(&domain, "");
    let remap = "--ros-args -r foo:=/chatter -r /chatter:=/elsewhere";
    let echo = format!("topic echo foo --once --timeout 5 {remap}");
    let answer = domain.run_until(&echo, |answer| answer.code == Some(0));
    assert_eq!(answer.ok(), "data: Hello\n---\n");
    let info = format!("topic info foo --json {remap}");
    assert_eq!(domain.run(&info).json()["name"], "/chatter");
}

#[test]
fn a_measurement_shorter_than_a_second_is_printed() {
    let domain = Domain::new();
    let _publisher = hello(&domain, "");
    for verb in ["hz", "bw"] {
        let words = format!("topic {verb} /chatter --json --timeout 0.8 --spin-time 0.1");
        let answer = domain.run_until(&words, |answer| !answer.out.is_empty());
        assert_eq!(last_line(&answer.ok())["topic"], "/chatter");
    }
}

fn last_line(text: &str) -> serde_json::Value {
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

/// The publisher makes the topic, so a misspelt one is no error.
#[test]
fn a_publisher_of_a_misspelt_topic_is_told_which_one_has_a_subscription() {
    let domain = Domain::new();
    let _listener = domain.start("demo listener");
    domain.run_until("topic info /chatter", |answer| answer.code == Some(0));
    let once = "topic pub /chater std_msgs/msg/String --once --max-wait-time-secs 5";
    let hint = "WARNING: topic [/chater] has no subscription; did you mean /chatter?";
    assert_contains(&domain.run(once).failed(1), hint);
    let mut repeated = domain.start("topic pub /chater std_msgs/msg/String -p 0");
    assert_eq!(repeated.error_line(), hint);
    let other = "topic pub /chatter2 std_msgs/msg/String --once --max-wait-time-secs 1.5";
    let said = domain.run(other).failed(1);
    assert!(!said.contains("did you mean"), "{said}");
}
