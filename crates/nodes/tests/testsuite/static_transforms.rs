//! static_transform_publisher: what it publishes, and under which name.

use pteros::interfaces::tf2_msgs::msg::TFMessage;
use pteros::prelude::*;

use crate::{TIMEOUT, start, try_start};

#[test]
fn a_transform_of_the_command_line_is_latched() {
    let line =
        "--x 1.5 --yaw 1.0 --frame-id map --child-frame-id odom --ros-args -r /tf_static:=/frames";
    let line: Vec<&str> = line.split(' ').collect();
    let started = start("tf2_ros", "static_transform_publisher", &line);
    let topic = "/frames".qos(QosProfile::tf_static_listener());
    let message = started.test.wait_for_message::<TFMessage>(topic, TIMEOUT);
    let message = message.unwrap().expect("a late joiner gets it");
    let transform = &message.transforms[0];
    assert_eq!(transform.header.frame_id, "map");
    assert_eq!(transform.child_frame_id, "odom");
    assert_eq!(transform.transform.translation.x, 1.5);
    assert!((transform.transform.rotation.z - 0.5f64.sin()).abs() < 1e-15);
    let nodes = started.context.graph().nodes();
    let is_named = |name: &str| name.starts_with("static_transform_publisher_");
    assert!(nodes.iter().any(|node| is_named(&node.name)), "{nodes:?}");
}

#[test]
fn wrong_arguments_end_the_node_with_the_usage() {
    let problem = try_start("tf2_ros", "static_transform_publisher", &["1", "2"]).err();
    let problem = problem.expect("refused");
    assert!(
        problem.contains("Extra unparsed arguments on command-line; usage: "),
        "{problem}"
    );
    let line = ["--qz", "3", "--frame-id", "a", "--child-frame-id", "b"];
    let problem = try_start("tf2_ros", "static_transform_publisher", &line).err();
    assert!(problem.expect("no unit quaternion").contains("/tf_static"));
}
