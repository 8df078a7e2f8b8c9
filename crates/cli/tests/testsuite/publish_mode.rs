//! How `topic pub` paces its messages, between processes: flow controllers, a
//! subscription without space, and a stop of the publisher.

#![allow(clippy::disallowed_methods, reason = "another process takes real time")]

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::support::{Domain, assert_contains, run};

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

/// A burst of old commands after a pause would be dangerous on `/cmd_vel`.
#[test]
fn a_publisher_that_was_stopped_for_three_seconds_sends_no_burst() {
    const RATE: usize = 50;
    let domain = Domain::new();
    let words = "topic echo /cmd_vel std_msgs/msg/Int32 --csv";
    let mut command = domain.command(words.split(' '));
    let mut echo = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(echo.stdout.take().unwrap()).lines();
    let (send, received) = channel();
    std::thread::spawn(move || {
        for _ in lines.map_while(Result::ok) {
            let _ = send.send(Instant::now());
        }
    });
    let words = format!("topic pub /cmd_vel std_msgs/msg/Int32 -r {RATE} -w 1 --print 0");
    let publisher = domain.start_with(&words, "data: 7");
    let limit = Duration::from_secs(30);
    (0..RATE).for_each(|_| {
        received.recv_timeout(limit).unwrap();
    });
    publisher.signal("STOP");
    // Messages sent before the stop arrive first. Then nothing does.
    let stopped = Instant::now() + Duration::from_secs(3);
    let mut last = Instant::now();
    loop {
        match received.recv_timeout(stopped.saturating_duration_since(Instant::now())) {
            Ok(at) => last = at,
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => panic!("echo has ended"),
        }
    }
    assert!(stopped.duration_since(last) > Duration::from_secs(1));
    let begin = Instant::now();
    publisher.signal("CONT");
    let mut times = Vec::new();
    while begin.elapsed() < Duration::from_secs(1) {
        times.extend(received.recv_timeout(Duration::from_millis(100)));
    }
    let within = |millis| {
        let span = Duration::from_millis(millis);
        times
            .iter()
            .filter(|at| at.duration_since(begin) < span)
            .count()
    };
    println!("{} in 100 ms, {} in 1 s", within(100), within(1000));
    // Five turns, and the one that it was stopped in.
    assert!(within(100) <= 5 + 2, "{} in 100 ms", within(100));
    assert!(within(1000) <= RATE + 2, "{} in 1 s", within(1000));
    assert!(
        within(1000) >= RATE / 4,
        "it goes on: {} in 1 s",
        within(1000)
    );
    let _ = echo.kill();
    let _ = echo.wait();
}

/// The lines of `topic pub` say what it does. A disk that is full loses them, and
/// nothing else.
#[test]
fn a_full_disk_behind_the_output_does_not_end_a_publisher() {
    let domain = Domain::new();
    let words = "topic pub -r 100 -t 5 -w 0 /chatter std_msgs/msg/String {data: x}";
    let mut words: Vec<&str> = words.splitn(11, ' ').collect();
    for json in [false, true] {
        if json {
            words.push("--json");
        }
        let mut command = domain.command(&words);
        let full = std::fs::File::options().write(true).open("/dev/full");
        let output = command.stdout(full.unwrap()).output().unwrap();
        let notes = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{notes}");
        let says = "No space left on device (os error 28); going on without this output";
        assert_eq!(notes.matches(says).count(), 1, "{notes}");
    }
}
