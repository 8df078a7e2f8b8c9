//! `topic pub` with a flow controller, between processes.

#![allow(clippy::disallowed_methods, reason = "another process takes real time")]

mod support;

use std::time::Instant;

use support::{Domain, assert_contains, run};

#[test]
fn an_asynchronous_publisher_is_flow_controlled_and_ends_when_all_is_sent() {
    let domain = Domain::new();
    let mut echo = domain.start("topic echo /numbers std_msgs/msg/Int32 --csv");
    let begin = Instant::now();
    // A datagram with its heartbeat is larger than 80 bytes, so one is sent per 20
    // ms.
    let words = "topic pub /numbers std_msgs/msg/Int32 -r 1000 --times 30 -p 0 --qos-depth 30 \
                 --qos-publish-mode asynchronous --qos-flow-bytes-per-period 80 \
                 --qos-flow-period-seconds 0.02";
    domain.run_with(words, "data: 7").ok();
    assert!(
        begin.elapsed().as_millis() >= 28 * 20,
        "{:?}",
        begin.elapsed()
    );
    for _ in 0..30 {
        assert_eq!(echo.line(), "7");
    }
}

#[test]
fn flags_without_effect_are_refused() {
    for (flags, code, expected) in [
        (
            "--qos-flow-bytes-per-period 9",
            1,
            "--qos-publish-mode asynchronous",
        ),
        (
            "--qos-publish-mode asynchronous --qos-flow-period-seconds 1",
            1,
            "give both",
        ),
        (
            "--qos-publish-mode asynchronous --qos-flow-bytes-per-period 0",
            2,
            "--qos-flow-bytes-per-period",
        ),
        ("--qos-publish-mode later", 2, "synchronous, asynchronous"),
        (
            "--qos-publish-mode asynchronous --qos-flow-bytes-per-period 9 \
             --qos-flow-period-seconds 0.000001",
            1,
            "100µs",
        ),
    ] {
        let words = format!("topic pub /x std_msgs/msg/Empty --once -w 0 {flags}");
        let error = run(&words).failed(code);
        assert!(error.contains(expected), "{flags}: {error}");
    }
}

/// A paused subscription with KEEP_ALL must not end the publisher.
#[test]
fn a_publisher_without_space_says_so_and_tries_again() {
    let domain = Domain::new();
    let qos = "--qos-history keep_all --qos-reliability reliable";
    let words = format!("topic echo /drive std_msgs/msg/Int32 --csv {qos}");
    let mut echo = domain.start(&words);
    let words = format!(
        "topic pub /drive std_msgs/msg/Int32 -r 1000 -w 1 --print 0 {qos} --qos-max-samples 20"
    );
    let mut publisher = domain.start_with(&words, "data: 7");
    // It acknowledges the first messages before it is stopped.
    (0..40).for_each(|_| assert_eq!(echo.line(), "7"));
    echo.signal("STOP");
    let mut said = String::new();
    while !said.contains("trying again") {
        said = publisher.error_line();
        assert!(!said.is_empty(), "the publisher has ended");
    }
    assert_contains(&said, "topic \"/drive\": no space for another sample");
    echo.signal("CONT");
    for _ in 0..500 {
        assert_eq!(echo.line(), "7");
    }
    publisher.signal("INT");
    assert_eq!(publisher.wait().ok(), "publisher: beginning loop\n");
}
