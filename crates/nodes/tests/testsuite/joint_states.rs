//! joint_state_publisher: zeros, sources, dependent and mimic joints.

use pteros::interfaces::sensor_msgs::msg::JointState;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::{Started, TIMEOUT, start};

const ROBOT: &str = r#"<robot name="r"><link name="a"/><link name="b"/><link name="c"/><link name="d"/><link name="e"/>
  <joint name="turn" type="continuous"><parent link="a"/><child link="b"/></joint>
  <joint name="lift" type="prismatic"><parent link="b"/><child link="c"/><limit lower="0.5" upper="1.5"/></joint>
  <joint name="weld" type="fixed"><parent link="c"/><child link="d"/></joint>
  <joint name="grip" type="continuous"><parent link="d"/><child link="e"/><mimic joint="lift" multiplier="2" offset="1"/></joint>
</robot>"#;

/// Publishes the model. A new one resets the joints, so it comes once.
fn describe(started: &Started) -> Publisher<Text> {
    let topic = "/robot_description".keep_last(1).transient_local();
    let description = started.test.create_publisher::<Text>(topic).unwrap();
    let data = ROBOT.into();
    description.publish_owned(Text { data }).unwrap();
    description
}

/// The first joint state that `wanted` accepts.
fn state_of(started: &Started, wanted: impl Fn(&JointState) -> bool) -> JointState {
    let states = started
        .test
        .create_polled_subscription::<JointState>("/joint_states");
    let states = states.unwrap();
    loop {
        let state = states.take_timeout(TIMEOUT).expect("joint states");
        if wanted(&state) {
            return JointState::clone(&state);
        }
    }
}

fn positions(state: &JointState) -> Vec<(&str, f64)> {
    let names = state.name.iter().map(String::as_str);
    names.zip(state.position.iter().copied()).collect()
}

#[test]
fn joints_begin_at_zero_or_amid_their_limits_and_mimics_follow() {
    let started = start("joint_state_publisher", "joint_state_publisher", &[]);
    let _description = describe(&started);
    let state = state_of(&started, |_| true);
    assert_eq!(
        positions(&state),
        [("turn", 0.0), ("lift", 1.0), ("grip", 3.0)]
    );
    assert!(state.velocity.is_empty() && state.effort.is_empty());
}

#[test]
fn sources_and_dependent_joints_set_positions() {
    let line = "--ros-args -p source_list:=[moved] -p rate:=50 -p zeros.lift:=0.75 \
        -p use_mimic_tags:=false -p dependent_joints.grip.parent:=turn \
        -p dependent_joints.grip.factor:=-1.0 -p publish_default_velocities:=true";
    let line: Vec<&str> = line.split_whitespace().collect();
    let started = start("joint_state_publisher", "joint_state_publisher", &line);
    let _description = describe(&started);
    let state = state_of(&started, |_| true);
    assert_eq!(
        positions(&state),
        [("turn", 0.0), ("lift", 0.75), ("grip", 0.0)]
    );
    assert_eq!(state.velocity, [0.0; 3]);
    let moved = started
        .test
        .create_publisher::<JointState>("/moved")
        .unwrap();
    assert!(moved.wait_for_matched(1, TIMEOUT));
    let mut source = JointState {
        name: vec!["turn".into(), "unknown".into()],
        ..JointState::default()
    };
    source.position = vec![0.25, 9.0];
    moved.publish_owned(source).unwrap();
    let state = state_of(&started, |state| state.position.first() == Some(&0.25));
    assert_eq!(
        positions(&state),
        [("turn", 0.25), ("lift", 0.75), ("grip", -0.25)]
    );
}
