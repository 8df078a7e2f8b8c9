//! `--use-sim-time`: `/clock` runs in this process, twenty times as fast as a wall
//! clock, and the command in others.

#![allow(clippy::disallowed_methods, reason = "the clock is a thread")]

use crate::spin_thread::SpinThread;
use crate::support::{Domain, assert_contains};
use pteros::clock::{ClockServer, Time};
use pteros::prelude::*;
use std::time::Duration;

/// `/clock` from 100 s on, every 5 ms.
fn clock(domain: &Domain) -> SpinThread {
    let context = Context::with_options(ContextOptions::local(domain.id()));
    let node = context.unwrap().create_node("simulator").unwrap();
    let begin = Time::from_nanos(100_000_000_000);
    let time = ClockServer::new(&node, begin, Duration::from_millis(5)).unwrap();
    time.set_speed(20.0).unwrap();
    SpinThread::of_node(&node, time)
}

#[test]
fn rates_stamps_and_ages_are_in_simulated_time() {
    let domain = Domain::new();
    let _clock = clock(&domain);
    // Once per simulated second, which is 20 times per second.
    let words = "topic pub /pose geometry_msgs/msg/PoseStamped -r 1 -s -p 0";
    let mut publisher = domain.start_with(words, "header: auto");
    assert_eq!(publisher.line(), "publisher: beginning loop");
    let last = |words: &str| -> serde_json::Value {
        let answer = domain.run_until(words, |answer| !answer.out.is_empty());
        serde_json::from_str(answer.ok().lines().last().unwrap()).unwrap()
    };
    let rate = last("topic hz /pose --json -s --timeout 3");
    let hertz = rate["rate"].as_f64().unwrap();
    assert!((0.5..2.0).contains(&hertz), "{rate}");
    let wall = last("topic hz /pose --json -s --wall-time --timeout 3");
    let wall = wall["rate"].as_f64().unwrap();
    assert!(
        wall > 3.0 * hertz,
        "{wall} in wall time, {hertz} in simulated time"
    );
    let age = last("topic delay /pose --json -s --timeout 3");
    let seconds = age["delay"].as_f64().unwrap();
    assert!((-1.0..1_000.0).contains(&seconds), "{age}");
    let bandwidth = last("topic bw /pose --json -s --timeout 3");
    let bytes = bandwidth["bytes_per_second"].as_f64().unwrap();
    let mean = bandwidth["mean_bytes"].as_f64().unwrap();
    assert!((0.3..3.0).contains(&(bytes / mean)), "{bandwidth}");
    let echo = "topic echo /pose --once --field header.stamp.sec --timeout 20";
    let stamp = domain.run_until(echo, |answer| answer.code == Some(0)).ok();
    let stamp: u64 = stamp.lines().next().unwrap().parse().unwrap();
    assert!((100..100_000).contains(&stamp), "{stamp}");
}

#[test]
fn a_missing_clock_is_named() {
    let domain = Domain::new();
    let words = "topic pub /pose geometry_msgs/msg/PoseStamped -r 20 --use-sim-time";
    let mut publisher = domain.start_with(words, "{}");
    assert_contains(&publisher.error_line(), "no message on /clock yet");
}
