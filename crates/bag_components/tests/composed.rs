//! Recorder and player as components, in one process with a publisher.
#![allow(
    clippy::disallowed_methods,
    reason = "tests wait for other threads with a deadline"
)]

use pteros_test_support::folder::Folder;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pteros::args::Arguments;
use pteros::component::Component;
use pteros::interfaces::std_msgs::msg::Int32;
use pteros::parameter::Parameter;
use pteros::prelude::*;
use pteros_bag::BagReader;
use pteros_bag_components::{Player, Recorder};

const TIMEOUT: Duration = Duration::from_secs(60);

fn options(parameters: Vec<Parameter>) -> NodeOptions {
    NodeOptions::default().parameter_overrides(parameters)
}

#[track_caller]
fn spin_until(executor: &SingleThreadedExecutor, done: impl Fn() -> bool) {
    let end = Instant::now() + TIMEOUT;
    while !done() {
        assert!(Instant::now() < end, "it does not come to that");
        executor.spin_once(Duration::from_millis(5));
    }
}

#[test]
fn what_a_component_publishes_is_recorded_in_its_process_and_played_again() {
    let domain = 20 + std::process::id() % 80;
    let context = Context::with_options(ContextOptions::local(domain)).unwrap();
    let executor = SingleThreadedExecutor::new(&context);
    let camera = context.create_node("camera").unwrap();
    executor.add_node(&camera).unwrap();
    let numbers = camera
        .create_publisher::<Int32>("/numbers".keep_last(100))
        .unwrap();
    let folder = Folder::absent("composed");
    let uri = Parameter::new("storage.uri", folder.to_str().unwrap());
    let topics = Parameter::new("record.topics", vec!["numbers".to_owned()]);
    let recorder = Recorder::new(&context, options(vec![uri.clone(), topics])).unwrap();
    executor.add_node(recorder.node()).unwrap();
    spin_until(&executor, || numbers.matched_count() == 1);
    for data in 0..50 {
        numbers.publish(&Int32 { data }).unwrap();
        executor.spin_once(Duration::ZERO);
    }
    drop(recorder);
    let bag = BagReader::open(&folder).unwrap();
    assert_eq!(bag.message_count(), 50);
    assert!(bag.is_complete());
    assert_eq!(bag.accounts()["/numbers"].lost(), 0);

    let heard = Arc::<Mutex<Vec<i32>>>::default();
    let seen = heard.clone();
    let _subscription = camera
        .create_subscription::<Int32>("/again".keep_last(100), move |number| {
            seen.lock().unwrap().push(number.data);
        })
        .unwrap();
    let delay = Parameter::new("play.delay.nsec", 200_000_000_i64);
    let remapped = options(vec![uri, delay]).arguments(
        Arguments::parse(["--ros-args", "-r", "/numbers:=/again"])
            .unwrap()
            .0,
    );
    let player = Player::new(&context, remapped).unwrap();
    executor.add_node(player.node()).unwrap();
    spin_until(&executor, || heard.lock().unwrap().len() == 50);
    assert!(heard.lock().unwrap().iter().copied().eq(0..50));
    drop(player);
}

#[test]
fn a_recorder_without_a_folder_names_its_parameter() {
    let domain = 21 + std::process::id() % 80;
    let context = Context::with_options(ContextOptions::local(domain)).unwrap();
    let error = Recorder::new(&context, options(Vec::new())).err().unwrap();
    assert!(
        error.to_string().contains("'storage.uri' is empty"),
        "{error}"
    );
}

/// Sums of these with the time of the clock are beyond it.
#[test]
fn the_longest_durations_of_parameters_are_waited_for() {
    let domain = 22 + std::process::id() % 80;
    let context = Context::with_options(ContextOptions::local(domain)).unwrap();
    let executor = SingleThreadedExecutor::new(&context);
    let robot = context.create_node("robot").unwrap();
    executor.add_node(&robot).unwrap();
    let numbers = robot
        .create_publisher::<Int32>("/numbers".keep_last(10))
        .unwrap();
    let folder = Folder::absent("longest");
    let uri = Parameter::new("storage.uri", folder.to_str().unwrap());
    let longest = |names: &[&str]| -> Vec<Parameter> {
        let units = names.iter().flat_map(|name| {
            ["sec", "nsec"].map(|unit| Parameter::new(format!("{name}.{unit}"), i64::MAX))
        });
        units.chain([uri.clone()]).collect()
    };
    let mut parameters = longest(&["record.topic_polling_interval"]);
    parameters.extend([
        Parameter::new("record.topics", vec!["numbers".to_owned()]),
        Parameter::new("storage.max_bagfile_duration", i64::MAX),
    ]);
    let recorder = Recorder::new(&context, options(parameters)).unwrap();
    executor.add_node(recorder.node()).unwrap();
    spin_until(&executor, || numbers.matched_count() == 1);
    numbers.publish(&Int32 { data: 1 }).unwrap();
    drop(recorder);
    assert_eq!(BagReader::open(&folder).unwrap().message_count(), 1);
    let parameters = longest(&["play.delay", "play.start_offset"]);
    let player = Player::new(&context, options(parameters)).unwrap();
    drop(player);
    let clock = Parameter::new("play.clock_publish_frequency", f64::INFINITY);
    let error = Player::new(&context, options(vec![uri, clock])).err();
    let error = error.unwrap().to_string();
    assert!(error.contains("clock rate inf"), "{error}");
}
