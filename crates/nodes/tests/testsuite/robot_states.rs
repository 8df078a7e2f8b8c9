//! robot_state_publisher: tf as upstream publishes it, and changes at run time.
//!
//! `robot_states.txt` has what robot_state_publisher 3.3.3 of ROS 2 Jazzy published for
//! `robot.urdf`. Ten public models were compared in the same way, within 1e-9.

use std::fmt::Write;

use pteros::interfaces::geometry_msgs::msg::TransformStamped;
use pteros::interfaces::sensor_msgs::msg::JointState;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::interfaces::tf2_msgs::msg::TFMessage;
use pteros::parameter::{Parameter, ParameterClient};
use pteros::prelude::*;

use crate::{Started, TIMEOUT, start, try_start};

const ROBOT: &str = include_str!("robot.urdf");
const UPSTREAM: &str = include_str!("robot_states.txt");

fn start_with(robot: &str, more: &[&str]) -> Started {
    let description = format!("robot_description:={}", serialized(robot));
    let mut line = vec!["--ros-args", "-p", &description];
    line.extend(more);
    start("robot_state_publisher", "robot_state_publisher", &line)
}

/// A text as YAML of one line.
fn serialized(text: &str) -> String {
    format!("{text:?}")
}

fn fixed_transforms(started: &Started) -> Vec<TransformStamped> {
    let topic = "/tf_static".qos(QosProfile::tf_static_listener());
    let message = started.test.wait_for_message::<TFMessage>(topic, TIMEOUT);
    message
        .unwrap()
        .expect("static transforms")
        .transforms
        .clone()
}

/// The positions of the vectors: joint `j1` at 0.1, and so on.
fn joint_state(stamp_seconds: i32, names: &[&str]) -> JointState {
    let mut state = JointState::default();
    state.header.stamp.sec = stamp_seconds;
    state.name = names.iter().map(|name| (*name).to_owned()).collect();
    state.position = names
        .iter()
        .map(|name| f64::from(name.as_bytes()[1] - b'0') / 10.0)
        .collect();
    state
}

fn table(transforms: &[TransformStamped]) -> Vec<(String, [f64; 7])> {
    let row = |one: &TransformStamped| {
        let (t, r) = (&one.transform.translation, &one.transform.rotation);
        let frames = format!("{} {}", one.header.frame_id, one.child_frame_id);
        (frames, [t.x, t.y, t.z, r.x, r.y, r.z, r.w])
    };
    let mut rows: Vec<_> = transforms.iter().map(row).collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows
}

/// The rows of `robot_states.txt` below a heading.
fn upstream(heading: &str) -> Vec<(String, [f64; 7])> {
    let lines = UPSTREAM.lines().skip_while(|line| *line != heading).skip(1);
    let rows = lines.take_while(|line| !line.is_empty()).map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let numbers: Vec<f64> = words[2..]
            .iter()
            .map(|word| word.parse().unwrap())
            .collect();
        (words[..2].join(" "), numbers.try_into().unwrap())
    });
    rows.collect()
}

fn assert_same(ours: &[TransformStamped], heading: &str) {
    let (ours, theirs) = (table(ours), upstream(heading));
    let mut report = String::new();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let is_near = ours
            .1
            .iter()
            .zip(&theirs.1)
            .all(|(a, b)| (a - b).abs() < 1e-9);
        if ours.0 != theirs.0 || !is_near {
            writeln!(report, "{ours:?} instead of {theirs:?}").unwrap();
        }
    }
    assert!(
        report.is_empty() && ours.len() == theirs.len(),
        "{report}{}",
        ours.len()
    );
}

/// Publishes states until transforms arrive.
fn moving_transforms(started: &Started, states: &[JointState]) -> Vec<TransformStamped> {
    let node = &started.test;
    let transforms = node.create_polled_subscription::<TFMessage>("/tf".qos(QosProfile::tf()));
    let transforms = transforms.unwrap();
    let publisher = node
        .create_publisher::<JointState>("/joint_states")
        .unwrap();
    assert!(publisher.wait_for_matched(1, TIMEOUT) && transforms.matched_count() == 1);
    for state in states {
        publisher.publish(state).unwrap();
    }
    let message = transforms.take_timeout(TIMEOUT).expect("transforms");
    message.transforms.clone()
}

#[test]
fn transforms_are_those_of_upstream() {
    let started = start_with(ROBOT, &[]);
    assert_same(&fixed_transforms(&started), "static");
    let state = joint_state(1, &["j1", "j2", "j3", "j4", "j5", "unknown"]);
    let moving = moving_transforms(&started, &[state]);
    assert_same(&moving, "moving");
    assert_eq!(moving[0].header.stamp.sec, 1);
    let description = "/robot_description".keep_last(1).transient_local();
    let text = started.test.wait_for_message::<Text>(description, TIMEOUT);
    assert_eq!(text.unwrap().expect("the description").data, ROBOT);
}

#[test]
fn states_within_the_publish_period_are_left_out() {
    let started = start_with(
        ROBOT,
        &["-p", "publish_frequency:=1.0", "-p", "frame_prefix:=r/"],
    );
    assert_eq!(fixed_transforms(&started)[0].header.frame_id, "r/base");
    let mut early = joint_state(10, &["j1"]);
    early.header.stamp.nanosec = 900_000_000;
    let mut due = joint_state(11, &["j1"]);
    due.position = vec![0.7];
    let node = &started.test;
    let received = node.create_polled_subscription::<TFMessage>("/tf".qos(QosProfile::tf()));
    let received = received.unwrap();
    moving_transforms(&started, &[joint_state(10, &["j1"]), early, due]);
    let stamps: Vec<i32> = (0..2)
        .map(|_| {
            received
                .take_timeout(TIMEOUT)
                .expect("two messages")
                .transforms[0]
                .header
                .stamp
                .sec
        })
        .collect();
    assert_eq!(stamps, [10, 11]);
}

#[test]
fn a_new_description_replaces_the_robot_and_a_wrong_one_is_refused() {
    let started = start_with(ROBOT, &[]);
    let client = ParameterClient::new(&started.test, "/robot_state_publisher");
    let set = |text: &str| {
        let parameter = Parameter::new("robot_description", text);
        client.set(vec![parameter], TIMEOUT).unwrap().remove(0)
    };
    assert_eq!(set(""), Err("Empty URDF is not allowed".into()));
    assert!(
        set("<robot name='x'/>")
            .unwrap_err()
            .contains("there is no link")
    );
    let other = r#"<robot name="o"><link name="one"/><link name="two"/><joint name="j" type="fixed"><parent link="one"/><child link="two"/></joint></robot>"#;
    assert_eq!(set(other), Ok(()));
    let children = || -> Vec<String> {
        let transforms = fixed_transforms(&started).into_iter();
        transforms.map(|one| one.child_frame_id).collect()
    };
    assert!(children().contains(&"two".to_owned()));
    let parameter = Parameter::new("publish_frequency", 0.0);
    let refused = client.set(vec![parameter], TIMEOUT).unwrap().remove(0);
    assert!(
        refused
            .unwrap_err()
            .contains("between 0.0 (exclusive) and 1000.0")
    );
    drop(started.context);
}

#[test]
fn a_node_without_a_model_says_so() {
    let start = |line: &[&str]| try_start("robot_state_publisher", "robot_state_publisher", line);
    let problem = start(&[]).err().expect("no model");
    assert!(
        problem.contains("robot_description parameter must not be empty"),
        "{problem}"
    );
    let problem = start(&["/no/such.urdf"]).err().expect("no file");
    assert!(problem.contains("read /no/such.urdf"), "{problem}");
    let wrong = ["--ros-args", "-p", "publish_frequency:=2000.0"];
    assert!(
        start(&wrong)
            .err()
            .expect("too often")
            .contains("publish_frequency = 2000")
    );
}
