//! The `--qos-*` flags between processes: matching, delivery and reported
//! mismatches.

use crate::support::{Domain, Running, assert_contains};

/// A running publisher at 20 Hz with its own name.
fn publisher(domain: &Domain, name: &str, flags: &str) -> Running {
    let words = format!("topic pub /chatter std_msgs/msg/String -r 20 -n {name} {flags}");
    let mut publisher = domain.start_with(&words, &format!("data: {name}"));
    assert_eq!(publisher.line(), "publisher: beginning loop");
    publisher
}

/// Reads lines until one contains the text.
#[track_caller]
fn until(running: &mut Running, wanted: &str) {
    let found = (0..400).any(|_| running.line() == wanted);
    assert!(found, "no line {wanted:?} among 400");
}

#[test]
fn the_strongest_exclusive_publisher_is_echoed_while_it_runs() {
    let domain = Domain::new();
    let _weak = publisher(
        &domain,
        "weak",
        "--qos-ownership exclusive --qos-ownership-strength -1",
    );
    let mut echo =
        domain.start("topic echo /chatter std_msgs/msg/String --csv --qos-ownership exclusive");
    assert_eq!(echo.line(), "weak");
    let strong = publisher(
        &domain,
        "strong",
        "--qos-ownership exclusive --qos-ownership-strength 5",
    );
    until(&mut echo, "strong");
    for _ in 0..10 {
        assert_eq!(echo.line(), "strong");
    }
    strong.signal("INT");
    until(&mut echo, "weak");
}

#[test]
fn partitions_determine_matching() {
    let domain = Domain::new();
    let _front = publisher(
        &domain,
        "front",
        "--qos-partition front --qos-partition all",
    );
    let meets = "topic echo /chatter --once --csv --qos-partition";
    assert_eq!(domain.run(&format!("{meets} f*")).ok(), "front\n");
    assert_eq!(domain.run(&format!("{meets} all")).ok(), "front\n");
    let error = domain.run(&format!("{meets} rear --timeout 1")).failed(1);
    assert_contains(
        &error,
        "PARTITION: offered [\"front\", \"all\"], requested [\"rear\"]",
    );
}

#[test]
fn policies_that_ros2_does_not_show_are_printed_if_they_are_not_default() {
    let domain = Domain::new();
    let _publisher = publisher(
        &domain,
        "exotic",
        "--qos-ownership exclusive --qos-ownership-strength 7 --qos-partition arm \
         --qos-destination-order by_source --qos-latency-budget-seconds 0.01 \
         --qos-deadline-seconds 2 --qos-user-data mine --qos-topic-data its \
         --qos-representation xcdr2",
    );
    let text = domain.run("topic info --details /chatter").ok();
    for line in [
        "  Deadline: 2000000000 nanoseconds\n",
        "  Partition: arm\n",
        "  Ownership: EXCLUSIVE, strength 7\n",
        "  Destination order: BY_SOURCE\n",
        "  Latency budget: 10000000 nanoseconds\n",
        "  Data representation: XCDR2\n",
        "  User data: mine\n",
        "  Topic data: its\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
    let json = domain.run("topic info /chatter --json").json();
    let qos = &json["publishers"][0]["qos"];
    assert_eq!(qos["ownership_strength"], 7);
    assert_eq!(qos["partition"][0], "arm");
    assert_eq!(qos["xcdr2_only"], true);
    assert_eq!(qos["user_data"], "mine");
}

#[test]
fn every_incompatible_policy_is_named_with_a_fix() {
    let domain = Domain::new();
    let _publisher = publisher(&domain, "plain", "--qos-latency-budget-seconds 1");
    let error = domain
        .run(
            "topic echo /chatter --once --timeout 1 --qos-ownership exclusive \
             --qos-destination-order by_source --qos-presentation group --qos-deadline-seconds 1",
        )
        .failed(1);
    for reason in [
        "OWNERSHIP: offered shared, requested exclusive; use the same",
        "DESTINATION_ORDER: offered by reception, requested by source; ",
        "PRESENTATION: offered instance, requested group; ",
        "DEADLINE: offered infinite, requested 1 s; ",
        "LATENCY_BUDGET: offered 1 s, requested 0 ns; ",
    ] {
        assert!(error.contains(reason), "{reason}\n{error}");
    }
}

#[test]
fn inconsistent_policies_are_refused_by_name() {
    let domain = Domain::new();
    for (flags, expected) in [
        ("--qos-ownership-strength 3", "--qos-ownership exclusive"),
        ("--qos-max-samples 2", "less than the history depth 5"),
        (
            "--qos-time-based-filter-seconds 2 --qos-deadline-seconds 1",
            "shorter than the time-based filter of 2 s",
        ),
    ] {
        let words = format!("topic echo /chatter std_msgs/msg/String --once {flags}");
        let error = domain.run(&words).failed(1);
        assert!(error.contains(expected), "{flags}: {error}");
    }
    let error = domain.run("topic echo /x --qos-ownership mine").failed(2);
    assert!(error.contains("shared, exclusive"), "{error}");
}

#[test]
fn the_end_of_an_instance_is_echoed_as_a_comment() {
    let domain = Domain::new();
    let ty = "dds_shapes/msg/ShapeType";
    let mut echo = domain.start(&format!("topic echo /square {ty}"));
    let mut lines = domain.start(&format!("topic echo /square {ty} --json"));
    let publish = format!("topic pub /square {ty} -1 -w 2");
    let left = "--qos-autodispose-unregistered-instances false";
    domain.run_with(&publish, "{color: RED, x: 3}").ok();
    until(&mut echo, "color: RED");
    until(
        &mut echo,
        "# instance {\"color\":\"RED\"}: NOT_ALIVE_DISPOSED",
    );
    domain
        .run_with(&format!("{publish} {left}"), "{color: BLUE}")
        .ok();
    until(
        &mut echo,
        "# instance {\"color\":\"BLUE\"}: NOT_ALIVE_NO_WRITERS",
    );
    let ended = r#"{"instance":{"color":"BLUE"},"state":"NOT_ALIVE_NO_WRITERS"}"#;
    until(&mut lines, ended);
}

#[test]
fn messages_use_the_requested_data_representation() {
    let domain = Domain::new();
    let _publisher = publisher(&domain, "modern", "--qos-representation xcdr2");
    let echo = "topic echo /chatter --once --timeout 20";
    let raw = domain.run(&format!("{echo} --raw --json")).json();
    assert!(raw["raw"].as_str().unwrap().starts_with("0007"), "{raw}");
    let answer = domain.run(&format!("{echo} --csv --qos-representation xcdr2"));
    assert_eq!(answer.ok(), "modern\n");
    let error = domain
        .run("topic echo /chatter --once --timeout 1 --qos-representation xcdr1")
        .failed(1);
    assert_contains(
        &error,
        "DATA_REPRESENTATION: offered XCDR2, requested XCDR1",
    );
}

#[test]
fn a_content_filter_is_applied_and_shown() {
    let domain = Domain::new();
    let _near = publisher(&domain, "near", "--qos-depth 10");
    let _far = publisher(&domain, "far", "--qos-depth 10");
    let words =
        "topic echo /chatter std_msgs/msg/String --csv --filter-parameter 'n%' --content-filter";
    let mut echo = domain.start_with(words, "data LIKE %0 AND data <> 'x'");
    for _ in 0..10 {
        assert_eq!(echo.line(), "near");
    }
    let info = domain.run("topic info --details /chatter").ok();
    let shown = "Content filter: data LIKE %0 AND data <> 'x', %0 = 'n%'";
    assert!(info.contains(shown), "{info}");
    let raw =
        domain.run("topic echo /chatter --raw --once --timeout 20 --content-filter data='far'");
    assert!(raw.ok().contains("far"));
    let of_ros2 = "topic echo /chatter std_msgs/msg/String --csv --once --timeout 20 --filter";
    let far = domain.run_with(of_ros2, "m.data == 'far' and not m.data == \"near\"");
    assert_eq!(far.ok(), "far\n");
    let error = domain
        .run("topic echo /chatter std_msgs/msg/String --once --content-filter data=5")
        .failed(1);
    assert_contains(&error, "line 1, column 6: field data is a string");
    assert!(error.contains("  data=5\n       ^"), "{error}");
}
