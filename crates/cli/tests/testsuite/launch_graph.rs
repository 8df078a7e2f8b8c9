//! The node of `pteros launch`: components, managed nodes and the ROS clock. Nodes
//! of this process replace those that a launch file would start.

#![allow(clippy::disallowed_methods, reason = "nodes run beside the command")]

use crate::folder::LaunchFolder;
use crate::spin_thread::{SPIN_PERIOD, SpinThread};
use crate::support::{Domain, Running, assert_contains, finish, start};
use pteros::interfaces::composition_interfaces::srv::{
    LoadNode, LoadNodeRequest, LoadNodeResponse,
};
use pteros::lifecycle::{LifecycleNode, LifecycleState};
use pteros::parameter::ParameterValue;
use pteros::prelude::*;
use std::process::Command;
use std::sync::{Arc, Mutex};

fn context(domain: &Domain) -> Context {
    Context::with_options(ContextOptions::local(domain.id())).unwrap()
}

/// Spins one node until dropped.
fn spin(
    context: Context,
    node: impl std::ops::Deref<Target = Node> + Send + 'static,
) -> SpinThread {
    SpinThread::new(move |is_over| {
        let executor = SingleThreadedExecutor::new(&context);
        executor.add_node(&node).unwrap();
        while !executor.spin_until(is_over, SPIN_PERIOD) {}
    })
}

fn launch(folder: &LaunchFolder, domain: &Domain) -> Command {
    let mut command = folder.command("a.launch.xml");
    command
        .env("ROS_DOMAIN_ID", domain.id().to_string())
        .env("AMENT_PREFIX_PATH", folder.path());
    command
}

/// Reads lines until one contains all of these words.
fn line_with(running: &mut Running, words: &[&str]) {
    let mut lines = String::new();
    loop {
        let line = running.line();
        assert!(!line.is_empty(), "no line with {words:?} among:\n{lines}");
        if words.iter().all(|word| line.contains(word)) {
            return;
        }
        lines += &line;
        lines += "\n";
    }
}

#[test]
fn components_are_loaded_one_by_one_and_a_refused_load_makes_the_launch_fail() {
    let (folder, domain) = (LaunchFolder::new("load"), Domain::new());
    folder.write(
        "share/ament_index/resource_index/pteros_components/box",
        "box::Talker;lib/libbox.so\nbox::Lame;lib/libbox.so\n",
    );
    folder.write(
        "a.launch.xml",
        r#"<launch><push_ros_namespace namespace="robot"/>
          <set_parameter name="rate" value="2.5"/><set_remap from="a" to="b"/>
          <load_composable_node target="/container">
            <composable_node pkg="box" plugin="box::Talker" name="t" namespace="left">
              <param name="words" value="[one, two]"/><remap from="c" to="d"/>
              <extra_arg name="own_thread" value="true"/>
            </composable_node>
            <composable_node pkg="box" plugin="box::Lame" name="l"/>
            <composable_node pkg="box" plugin="box::Lame" name="never" if="false"/>
          </load_composable_node></launch>"#,
    );
    let asked: Arc<Mutex<Vec<LoadNodeRequest>>> = Arc::default();
    let received = asked.clone();
    let context = context(&domain);
    let node = context.create_node("container").unwrap();
    let service = node.create_service::<LoadNode>("~/_container/load_node", move |request| {
        received.lock().unwrap().push((*request).clone());
        let success = request.plugin_name == "box::Talker";
        LoadNodeResponse {
            success,
            error_message: if success {
                String::new()
            } else {
                "it is lame".into()
            },
            full_node_name: format!("{}/{}", request.node_namespace, request.node_name),
            unique_id: 1,
        }
    });
    let _service = service.unwrap();
    let _spun = spin(context, Box::new(node));
    let answer = finish(launch(&folder, &domain));
    assert_eq!(answer.code, Some(1), "{}\n{}", answer.out, answer.err);
    assert_contains(
        &answer.out,
        "Loaded node '/robot/left/t' in container '/container'",
    );
    assert_contains(
        &answer.out,
        "'box::Lame' is not loaded into container '/container': it is lame",
    );
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    let first = &asked[0];
    assert_eq!(first.package_name, "box");
    assert_eq!(first.remap_rules, ["a:=b", "c:=d"]);
    let values = first.parameters.iter().map(|one| {
        let value = ParameterValue::from_message(&one.value).unwrap();
        (one.name.as_str(), value)
    });
    let values: Vec<_> = values.collect();
    let words = vec!["one".to_owned(), "two".to_owned()];
    let expected = [
        ("rate", ParameterValue::Double(2.5)),
        ("words", ParameterValue::StringArray(words)),
    ];
    assert_eq!(values, expected);
    assert_eq!(first.extra_arguments[0].name, "own_thread");
    assert!(first.extra_arguments[0].value.bool_value);
}

#[test]
fn a_managed_node_is_brought_up_when_its_process_has_started() {
    let (folder, domain) = (LaunchFolder::new("managed"), Domain::new());
    folder.write("share/ament_index/resource_index/packages/arm", "");
    folder.program("lib/arm/arm", "#!/bin/sh\nexec sleep 1000\n");
    folder.write(
        "a.launch.xml",
        r#"<launch><lifecycle_node pkg="arm" exec="arm" name="arm" namespace="/robot" autostart="true"/></launch>"#,
    );
    let context = context(&domain);
    let options = NodeOptions::new("arm").namespace("/robot");
    let arm = Arc::new(LifecycleNode::new(&context, options, ()).unwrap());
    let spun = arm.clone();
    let _spun = spin(context, ArmNode(spun));
    let mut launch = start(launch(&folder, &domain));
    line_with(&mut launch, &["[launch]", "/robot/arm is active"]);
    assert_eq!(arm.state(), LifecycleState::Active);
    launch.signal("INT");
    let answer = launch.wait();
    assert_eq!(answer.code, Some(0), "{}", answer.out);
}

/// The node of a managed node.
struct ArmNode(Arc<LifecycleNode>);

impl std::ops::Deref for ArmNode {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.0
    }
}

#[test]
fn a_timer_on_the_ros_clock_ends_a_launch() {
    let (folder, domain) = (LaunchFolder::new("clock"), Domain::new());
    folder.write(
        "a.launch.xml",
        r#"<launch><executable cmd="sleep 1000"/>
          <ros_timer period="0.1"><log message="it is time"/><shutdown reason="enough"/></ros_timer></launch>"#,
    );
    let out = finish(launch(&folder, &domain)).ok();
    assert!(out.contains("[INFO] [launch]: it is time"), "{out}");
    assert!(out.contains("shutdown: enough"), "{out}");
}
