//! The same components alone, statically composed and loaded by a container.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use pteros::interfaces::composition_interfaces::srv::{
    LoadNode, LoadNodeRequest, UnloadNode, UnloadNodeRequest,
};
use pteros::interfaces::rcl_interfaces::msg::Parameter;
use pteros::interfaces::std_msgs::msg::Int64;
use pteros::parameter::ParameterValue;
use pteros::prelude::*;
use pteros_test_support::program::Program;

const TIMEOUT: Duration = Duration::from_secs(20);

fn start(program: &str, domain: u32, arguments: &[&str]) -> Program {
    let mut command = Command::new(program);
    command
        .env("ROS_DOMAIN_ID", domain.to_string())
        .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        .env("PTEROS_COMPONENT_PATH", libraries())
        .env_remove("AMENT_PREFIX_PATH");
    Program::spawn(command.args(arguments))
}

/// The folder where cargo puts the library that is built beside the tests.
fn libraries() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().map(Path::to_owned).unwrap()
}

/// A separate domain for each test of each run.
fn domain(test: u32) -> u32 {
    30 + (std::process::id() * 3 + test) % 70
}

struct TopicListener {
    node: Node,
    numbers: Receiver<i64>,
    _subscription: Subscription<Int64>,
}

impl TopicListener {
    fn new(domain: u32, topic: &str) -> Self {
        let context = Context::with_options(ContextOptions::local(domain)).unwrap();
        let node = context.create_node("ear").unwrap();
        let (sender, numbers) = channel();
        let subscription = node.create_subscription::<Int64>(topic.keep_last(10), move |count| {
            let _ = sender.send(count.data);
        });
        Self {
            node,
            numbers,
            _subscription: subscription.unwrap(),
        }
    }

    /// The next received numbers.
    fn next(&self, count: usize) -> Vec<i64> {
        let mut got = Vec::new();
        self.node.spin_until(
            || {
                got.extend(self.numbers.try_iter());
                got.len() >= count
            },
            TIMEOUT,
        );
        assert!(got.len() >= count, "only {got:?} came");
        got
    }
}

#[test]
fn a_component_runs_alone_and_uses_ros_arguments() {
    let ear = TopicListener::new(domain(0), "steps");
    let arguments = ["--ros-args", "-p", "step:=5", "-r", "count:=steps"];
    let _counter = start(env!("CARGO_BIN_EXE_counter"), domain(0), &arguments);
    let numbers = ear.next(2);
    assert!(numbers.iter().all(|number| number % 5 == 0), "{numbers:?}");
}

#[test]
fn both_are_statically_composed_in_one_program() {
    let ear = TopicListener::new(domain(1), "doubled");
    let _composed = start(env!("CARGO_BIN_EXE_composed"), domain(1), &[]);
    let numbers = ear.next(2);
    assert!(numbers.iter().all(|number| number % 2 == 0), "{numbers:?}");
}

#[test]
fn both_are_loaded_from_the_library_and_unloaded_again() {
    let ear = TopicListener::new(domain(2), "twice");
    let program = env!("CARGO_BIN_EXE_component_package_container");
    let _container = start(program, domain(2), &["--executor", "isolated"]);
    let service = |name| format!("/ComponentManager/_container/{name}");
    let load = ear
        .node
        .create_client::<LoadNode>(&service("load_node"))
        .unwrap();
    let unload = ear
        .node
        .create_client::<UnloadNode>(&service("unload_node"))
        .unwrap();
    let mut ids = Vec::new();
    for class in ["Counter", "Doubler"] {
        let request = LoadNodeRequest {
            package_name: "component_package".into(),
            plugin_name: format!("component_package::{class}"),
            remap_rules: vec!["doubled:=twice".into()],
            parameters: vec![Parameter {
                name: "step".into(),
                value: ParameterValue::Integer(7).into_message(),
            }],
            ..LoadNodeRequest::default()
        };
        let answer = load.call(&request, TIMEOUT).unwrap();
        assert!(answer.success, "{}", answer.error_message);
        ids.push(answer.unique_id);
    }
    assert_eq!(ids, [1, 2]);
    let numbers = ear.next(2);
    assert!(numbers.iter().all(|number| number % 14 == 0), "{numbers:?}");
    for unique_id in ids {
        let request = UnloadNodeRequest { unique_id };
        assert!(unload.call(&request, TIMEOUT).unwrap().success);
    }
}
