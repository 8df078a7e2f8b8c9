//! Simulated time: `/clock`, `use_sim_time`, timers, rates and jumps.
#![allow(clippy::disallowed_methods, reason = "a loop runs beside the spin")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pteros::TimerOptions;
use pteros::clock::{ClockChange, ClockServer, ClockType, JumpThreshold, Rate, Time};
use pteros::interfaces::rosgraph_msgs::msg::Clock as ClockMessage;
use pteros::parameter::Parameter;
use pteros::prelude::*;

const TIMEOUT: Duration = Duration::from_secs(10);
const MS: u64 = 1_000_000;

fn simulated(context: &Context, name: &str) -> Node {
    let yes = Parameter::new("use_sim_time", true);
    let options = NodeOptions::new(name).parameter_overrides([yes]);
    context.create_node(options).unwrap()
}

fn millis(time: u64) -> Time {
    Time::from_nanos(i64::try_from(time * MS).unwrap())
}

fn tick(publisher: &Publisher<ClockMessage>, time: u64) {
    let clock = millis(time).into();
    publisher.publish(&ClockMessage { clock }).unwrap();
}

/// Publishes the time until the node has received it: the subscription is best
/// effort and may be matched later than the publisher.
fn publish_until_received(publisher: &Publisher<ClockMessage>, node: &Node, time: u64) {
    let is_received = || {
        let is_received = node.now() == millis(time);
        if !is_received {
            tick(publisher, time);
        }
        is_received
    };
    assert!(node.spin_until(is_received, TIMEOUT));
}

/// A context for the simulator and one for its user, and the same context for both.
fn context_pairs(domain: u32) -> [(Context, Context); 2] {
    let open = |domain| Context::with_options(ContextOptions::local(domain)).unwrap();
    let one = open(domain);
    [(open(domain + 1), open(domain + 1)), (one.clone(), one)]
}

#[test]
fn ros_time_follows_clock_while_use_sim_time_is_true() {
    for (theirs, ours) in context_pairs(51) {
        let source = theirs.create_node("source").unwrap();
        let publisher = source
            .create_publisher::<ClockMessage>("/clock".qos(QosProfile::clock().reliable()))
            .unwrap();
        let (real, node) = (
            ours.create_node("real").unwrap(),
            simulated(&ours, "simulated"),
        );
        assert!(publisher.wait_for_matched(1, TIMEOUT));
        assert_eq!(node.now(), Time::default(), "nothing said yet");
        publish_until_received(&publisher, &node, 5_000);
        assert!(real.now() > Time::from_nanos(1_500_000_000_000_000_000));
        assert!(node.clock().is_simulated() && !real.clock().is_simulated());
        let steady = node.clock_of(ClockType::SteadyTime);
        assert_ne!(steady.now(), millis(5_000));
        // Switched at run time, by setting the parameter.
        real.set_parameter("use_sim_time", true).unwrap();
        assert_eq!(real.now(), millis(5_000));
        node.set_parameter("use_sim_time", false).unwrap();
        assert!(node.now() > Time::from_nanos(1_500_000_000_000_000_000));
    }
}

#[test]
fn simulated_time_advances_while_a_callback_runs() {
    for (theirs, ours) in context_pairs(53) {
        let source = theirs.create_node("source").unwrap();
        let publisher = source
            .create_publisher::<ClockMessage>("/clock".qos(QosProfile::clock().reliable()))
            .unwrap();
        let node = simulated(&ours, "busy");
        assert!(publisher.wait_for_matched(1, TIMEOUT));
        publish_until_received(&publisher, &node, 6_000);
        let clock = node.clock();
        let seen = Arc::new(Mutex::new(Time::default()));
        let (note, stop) = (seen.clone(), ours.clone());
        let _timer = node
            .create_timer(
                TimerOptions::new(Duration::from_millis(1)).one_shot(),
                move || {
                    tick(&publisher, 7_000);
                    // The callback occupies the only spinning thread.
                    clock.sleep_until(millis(7_000));
                    *note.lock().unwrap() = clock.now();
                    stop.shutdown();
                },
            )
            .unwrap();
        node.spin();
        assert_eq!(*seen.lock().unwrap(), millis(7_000));
    }
}

#[test]
fn timers_follow_simulated_time_and_restart_when_it_goes_back() {
    for (theirs, ours) in context_pairs(55) {
        let source = theirs.create_node("source").unwrap();
        let publisher = source
            .create_publisher::<ClockMessage>("/clock".qos(QosProfile::clock().reliable()))
            .unwrap();
        let node = simulated(&ours, "timed");
        assert!(publisher.wait_for_matched(1, TIMEOUT));
        let count = Arc::new(AtomicUsize::new(0));
        let ticks = count.clone();
        let options = TimerOptions::new(Duration::from_millis(100)).on_ros_time();
        let _timer = node
            .create_timer(options, move || {
                ticks.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
        let after = |time: u64| {
            publish_until_received(&publisher, &node, time);
            // Due timers are queued by then.
            node.spin_until(|| false, Duration::from_millis(1));
            count.load(Ordering::Relaxed)
        };
        assert_eq!(
            after(10_000),
            0,
            "the period begins with the first time told"
        );
        assert_eq!(after(10_099), 0);
        assert_eq!(after(10_100), 1);
        assert_eq!(after(10_450), 2, "those missed are skipped");
        assert_eq!(after(10_500), 3, "the phase is kept");
        assert_eq!(after(2_000), 3, "back: the period begins again");
        assert_eq!(after(2_099), 3);
        assert_eq!(after(2_100), 4);
        // In system time again.
        node.set_parameter("use_sim_time", false).unwrap();
        assert!(node.spin_until(|| count.load(Ordering::Relaxed) > 4, TIMEOUT));
    }
}

#[test]
fn time_jumps_are_reported_by_threshold() {
    let context = Context::with_options(ContextOptions::local(57)).unwrap();
    let source = context.create_node("source").unwrap();
    let publisher = source
        .create_publisher::<ClockMessage>("/clock".qos(QosProfile::clock()))
        .unwrap();
    let node = simulated(&context, "jumpy");
    let jumps = Arc::new(Mutex::new(Vec::new()));
    let list = jumps.clone();
    let threshold = JumpThreshold {
        on_clock_change: true,
        min_forward: Some(Duration::from_secs(2)),
        min_backward: Some(Duration::from_nanos(1)),
    };
    let kept = node.clock().on_jump(threshold, move |jump| {
        list.lock().unwrap().push((jump.clock_change, jump.delta));
    });
    for time in [10_000, 11_000, 13_000, 12_999] {
        tick(&publisher, time);
    }
    node.set_parameter("use_sim_time", false).unwrap();
    assert!(node.spin_until(|| jumps.lock().unwrap().len() == 3, TIMEOUT));
    let jumps = jumps.lock().unwrap();
    assert_eq!(
        jumps[..2],
        [
            (ClockChange::RosTimeNoChange, 2_000_000_000),
            (ClockChange::RosTimeNoChange, -1_000_000)
        ]
    );
    assert_eq!(jumps[2].0, ClockChange::Deactivated);
    drop(kept);
}

#[test]
fn a_clock_server_is_paused_stepped_and_set() {
    let options = ContextOptions {
        use_sim_time: true,
        ..ContextOptions::local(58)
    };
    let context = Context::with_options(options).unwrap();
    let world = context.create_node("world").unwrap();
    assert_eq!(world.parameter("use_sim_time").unwrap(), true.into());
    let time = ClockServer::new(&world, millis(1_000), Duration::from_millis(1)).unwrap();
    time.pause();
    let stood = time.now();
    world.spin_until(|| false, Duration::from_millis(5));
    assert_eq!((time.now(), world.now()), (stood, stood));
    time.step(Duration::from_secs(1));
    assert_eq!(world.now(), stood + Duration::from_secs(1));
    time.set(millis(100_000));
    assert_eq!(world.now(), millis(100_000));
    assert!(time.set_speed(-1.0).is_err() && time.set_speed(f64::NAN).is_err());
    // A hundred iterations of one second each, in a moment.
    time.set_speed(10_000.0).unwrap();
    time.resume();
    let spinner = world.clone();
    let done = Arc::new(AtomicUsize::new(0));
    let turns = done.clone();
    let clock = world.clock();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut rate = Rate::new(&clock, 1.0);
            while turns.load(Ordering::Relaxed) < 100 {
                assert!(rate.sleep());
                turns.fetch_add(1, Ordering::Relaxed);
            }
        });
        assert!(spinner.spin_until(|| done.load(Ordering::Relaxed) == 100, TIMEOUT));
    });
    assert!(world.now() >= millis(200_000));
}

#[test]
fn the_rows_of_the_behaviour_table_hold_for_use_sim_time() {
    let rows = include_str!("../../../rcl/tests/behaviour/time.txt").lines();
    let rows: Vec<_> = rows.filter_map(|row| row.strip_prefix("source ")).collect();
    assert!(rows.len() >= 3);
    let hundred_seconds = |word: &str| word.parse::<u64>().unwrap() * 100_000;
    for row in rows {
        let (steps, expected) = row.split_once("->").unwrap();
        let expected = expected.split('|').next().unwrap_or_default();
        let context = Context::with_options(ContextOptions::local(59)).unwrap();
        let node = context.create_node("row").unwrap();
        let publisher = node
            .create_publisher::<ClockMessage>("/clock".qos(QosProfile::clock()))
            .unwrap();
        let mut seen = Vec::new();
        for step in steps.split_whitespace() {
            match step {
                "on" | "off" => node.set_parameter("use_sim_time", step == "on").unwrap(),
                time => tick(&publisher, hundred_seconds(time)),
            }
            let clock = node.clock();
            seen.push(if clock.is_simulated() {
                (clock.now().as_nanos() / 100_000_000_000).to_string()
            } else {
                "system".to_owned()
            });
            assert_eq!(
                clock.now() > Time::from_nanos(1 << 60),
                !clock.is_simulated()
            );
        }
        let expected: Vec<_> = expected.split_whitespace().collect();
        assert_eq!(seen, expected, "{row}");
    }
}
