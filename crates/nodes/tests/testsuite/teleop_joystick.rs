//! teleop_twist_joy: axes, scales, the enable and turbo buttons. The parameters of the
//! cases are those of upstream's launch tests.

use std::time::Duration;

use pteros::interfaces::geometry_msgs::msg::{Twist, TwistStamped};
use pteros::interfaces::sensor_msgs::msg::Joy;
use pteros::prelude::*;

use crate::{Started, TIMEOUT, start, try_start};

fn start_with(parameters: &str) -> Started {
    let mut line = vec!["--ros-args"];
    line.extend(parameters.split_whitespace().flat_map(|one| ["-p", one]));
    start("teleop_twist_joy", "teleop_node", &line)
}

fn joystick<T: Message + pteros::msg::type_support::MessageTypeSupport<Support = ()>>(
    started: &Started,
) -> (Publisher<Joy>, Subscription<T>) {
    let joystick = started.test.create_publisher::<Joy>("/joy").unwrap();
    let velocities = started.test.create_polled_subscription("/cmd_vel").unwrap();
    assert!(joystick.wait_for_matched(1, TIMEOUT));
    assert!(velocities.wait_for_matched(1, TIMEOUT));
    (joystick, velocities)
}

fn joy(axes: &[f32], buttons: &[i32]) -> Joy {
    Joy {
        axes: axes.to_vec(),
        buttons: buttons.to_vec(),
        ..Joy::default()
    }
}

/// Linear x, y, z and angular x, y, z.
fn numbers(twist: &Twist) -> [f64; 6] {
    let (linear, angular) = (&twist.linear, &twist.angular);
    [
        linear.x, linear.y, linear.z, angular.x, angular.y, angular.z,
    ]
}

const DIFFERENTIAL: &str = "axis_linear.x:=1 axis_angular.yaw:=0 scale_linear.x:=2.0 scale_angular.yaw:=3.0 enable_button:=0";

#[test]
fn axes_move_the_robot_while_a_button_is_held() {
    let turbo = format!(
        "{DIFFERENTIAL} enable_turbo_button:=1 scale_linear_turbo.x:=4.0 scale_angular_turbo.yaw:=6.0"
    );
    let six = "axis_linear.x:=1 axis_linear.y:=2 axis_linear.z:=3 axis_angular.yaw:=4 axis_angular.pitch:=5 axis_angular.roll:=0 scale_linear.x:=1.0 scale_linear.y:=1.0 scale_linear.z:=1.0 scale_angular.yaw:=1.0 scale_angular.pitch:=1.0 scale_angular.roll:=1.0 enable_button:=0";
    let free = format!("{DIFFERENTIAL} require_enable_button:=false");
    let inverted = format!("{DIFFERENTIAL} inverted_reverse:=true");
    let axes = [0.25, 0.5, -0.5, -0.25, 0.125, 1.0];
    let plain = [1.0, 0.0, 0.0, 0.0, 0.0, 0.75];
    let fast = [2.0, 0.0, 0.0, 0.0, 0.0, 1.5];
    for (parameters, axes, buttons, expected) in [
        (DIFFERENTIAL, &axes[..], &[1, 0][..], plain),
        (
            DIFFERENTIAL,
            &axes[..1],
            &[1],
            [0.0, 0.0, 0.0, 0.0, 0.0, 0.75],
        ),
        (DIFFERENTIAL, &axes, &[0, 1], [0.0; 6]),
        (&turbo, &axes, &[1, 1], fast),
        (&turbo, &axes, &[0, 1], fast),
        (&turbo, &axes, &[1, 0], plain),
        (six, &axes, &[1], [0.5, -0.5, -0.25, 0.25, 1.0, 0.125]),
        (&free, &axes, &[], plain),
        (
            &inverted,
            &[0.5, -1.0],
            &[1],
            [-2.0, 0.0, 0.0, 0.0, 0.0, -1.5],
        ),
        (&inverted, &[0.5, 1.0], &[1], [2.0, 0.0, 0.0, 0.0, 0.0, 1.5]),
    ] {
        let started = start_with(parameters);
        let (joystick, velocities) = joystick::<Twist>(&started);
        joystick.publish(&joy(axes, buttons)).unwrap();
        let velocity = velocities.take_timeout(TIMEOUT).expect(parameters);
        assert_eq!(numbers(&velocity), expected, "{parameters} {buttons:?}");
    }
}

#[test]
fn a_released_button_stops_the_robot_once() {
    let started = start_with(DIFFERENTIAL);
    let (joystick, velocities) = joystick::<Twist>(&started);
    for buttons in [[1], [0], [0], [0], [1]] {
        joystick.publish(&joy(&[0.0, 1.0], &buttons)).unwrap();
    }
    let take = || {
        velocities
            .take_timeout(TIMEOUT)
            .expect("a velocity")
            .linear
            .x
    };
    assert_eq!([take(), take(), take()], [2.0, 0.0, 2.0]);
    assert!(velocities.take_timeout(Duration::ZERO).is_none());
}

#[test]
fn velocities_are_stamped_on_request() {
    let started =
        start_with("publish_stamped_twist:=true frame:=base require_enable_button:=false");
    let (joystick, velocities) = joystick::<TwistStamped>(&started);
    joystick
        .publish(&joy(&[0.0, 0.0, 0.0, 0.0, 0.0, 1.0], &[]))
        .unwrap();
    let velocity = velocities.take_timeout(TIMEOUT).expect("a velocity");
    assert_eq!(velocity.header.frame_id, "base");
    assert!(velocity.header.stamp.sec > 0);
    assert_eq!(velocity.twist.linear.x, 0.5, "axis 5 is the default");
}

#[test]
fn a_parameter_of_a_wrong_type_names_itself() {
    let line = ["--ros-args", "-p", "axis_linear.x:=left"];
    let problem = try_start("teleop_twist_joy", "teleop_node", &line).err();
    let problem = problem.expect("refused");
    assert!(problem.contains("axis_linear.x"), "{problem}");
}
