//! twist_mux: sources and locks from parameters. Its unit tests cover priorities.

use pteros::interfaces::geometry_msgs::msg::{Twist, TwistStamped};
use pteros::interfaces::std_msgs::msg::Bool;
use pteros_test_support::folder::Folder;

use crate::{TIMEOUT, start, try_start};

const PARAMETERS: &str = "twist_mux:
  ros__parameters:
    topics:
      navigation: {topic: nav_vel, timeout: 0, priority: 10}
      joystick: {topic: joy_vel, timeout: 0.5, priority: 100}
    locks:
      pause: {topic: pause, timeout: 0.0, priority: 50}
";

fn twist(speed: f64) -> Twist {
    let mut twist = Twist::default();
    twist.linear.x = speed;
    twist
}

#[test]
fn a_lock_stops_lower_sources_only() {
    let folder = Folder::new("twist_mux");
    let file = folder.write("mux.yaml", PARAMETERS).display().to_string();
    let line = [
        "--ros-args",
        "--params-file",
        &file,
        "-r",
        "/cmd_vel_out:=/cmd_vel",
    ];
    let started = start("twist_mux", "twist_mux", &line);
    let node = &started.test;
    let chosen = node
        .create_polled_subscription::<Twist>("/cmd_vel")
        .unwrap();
    let source = |topic: &str| {
        let publisher = node.create_publisher::<Twist>(topic).unwrap();
        assert!(publisher.wait_for_matched(1, TIMEOUT));
        publisher
    };
    let (navigation, joystick) = (source("/nav_vel"), source("/joy_vel"));
    let pause = node.create_publisher::<Bool>("/pause").unwrap();
    assert!(chosen.wait_for_matched(1, TIMEOUT) && pause.wait_for_matched(1, TIMEOUT));
    let take = || chosen.take_timeout(TIMEOUT).expect("a velocity").linear.x;
    navigation.publish(&twist(1.0)).unwrap();
    assert_eq!(take(), 1.0);
    pause.publish(&Bool { data: true }).unwrap();
    // One thread takes both in order of arrival.
    navigation.publish(&twist(2.0)).unwrap();
    joystick.publish(&twist(3.0)).unwrap();
    assert_eq!(take(), 3.0, "navigation is locked");
}

#[test]
fn stamped_velocities_are_passed_on_with_their_header() {
    let line = "--ros-args -p use_stamped:=true -p topics.nav.topic:=/nav -p topics.nav.timeout:=0.5 -p topics.nav.priority:=1";
    let line: Vec<&str> = line.split(' ').collect();
    let started = start("twist_mux", "twist_mux", &line);
    let chosen = started
        .test
        .create_polled_subscription::<TwistStamped>("/cmd_vel_out")
        .unwrap();
    let source = started
        .test
        .create_publisher::<TwistStamped>("/nav")
        .unwrap();
    assert!(source.wait_for_matched(1, TIMEOUT) && chosen.wait_for_matched(1, TIMEOUT));
    let mut velocity = TwistStamped::default();
    velocity.header.frame_id = "base".into();
    source.publish_owned(velocity).unwrap();
    let velocity = chosen.take_timeout(TIMEOUT).expect("a velocity");
    assert_eq!(velocity.header.frame_id, "base");
}

#[test]
fn a_source_without_priority_is_refused() {
    let line = [
        "--ros-args",
        "-p",
        "topics.nav.topic:=nav",
        "-p",
        "topics.nav.timeout:=1.0",
    ];
    let problem = try_start("twist_mux", "twist_mux", &line)
        .err()
        .expect("refused");
    assert!(problem.contains("topics.nav.priority"), "{problem}");
}
