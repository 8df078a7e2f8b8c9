//! `pteros tf`: a robot in this process, the command in others.

#![allow(clippy::disallowed_methods, reason = "nodes run beside the command")]

use std::time::Duration;

use crate::spin_thread::SpinThread;
use crate::support::{Domain, assert_contains};
use pteros::interfaces::geometry_msgs::msg::TransformStamped;
use pteros::prelude::*;
use pteros::tf::{Isometry, StaticTransformBroadcaster, TransformBroadcaster};

/// A robot that publishes the transforms of `base_link` and `laser`, until dropped.
fn robot(domain: &Domain) -> SpinThread {
    let context = Context::with_options(ContextOptions::local(domain.id()));
    let node = context.unwrap().create_node("robot").unwrap();
    let fixed = StaticTransformBroadcaster::new(&node).unwrap();
    fixed
        .send_transform(transform(&node, "base_link", "laser", 0.5))
        .unwrap();
    let moving = TransformBroadcaster::new(&node).unwrap();
    let clock = node.clone();
    let timer = node.create_timer(Duration::from_millis(20), move || {
        let base = transform(&clock, "odom", "base_link", 1.0);
        moving.send_transform(base).unwrap();
    });
    SpinThread::of_node(&node, (fixed, timer.unwrap()))
}

fn transform(node: &Node, parent: &str, child: &str, x: f64) -> TransformStamped {
    let mut transform = TransformStamped::default();
    transform.header.stamp = node.now().into();
    transform.header.frame_id = parent.into();
    transform.child_frame_id = child.into();
    transform.transform = Isometry::planar(x, 0.0, std::f64::consts::FRAC_PI_2).into();
    transform
}

#[test]
fn echo_prints_a_transform_as_tf2_does() {
    let domain = Domain::new();
    let _robot = robot(&domain);
    let out = domain.run("tf echo odom laser --once --timeout 30").ok();
    let (time, rest) = out.split_once('\n').unwrap();
    assert!(time.starts_with("At time ") && time.len() > 27, "{time}");
    assert_eq!(
        rest,
        "- Translation: [1.000, 0.500, 0.000]\n\
         - Rotation: in Quaternion [0.000, 0.000, 1.000, 0.000]\n\
         - Rotation: in RPY (radian) [0.000, -0.000, 3.142]\n\
         - Rotation: in RPY (degree) [0.000, -0.000, 180.000]\n\
         - Matrix:\n\
         \x20-1.000 -0.000  0.000  1.000\n\
         \x20 0.000 -1.000  0.000  0.500\n\
         \x20 0.000  0.000  1.000  0.000\n\
         \x20 0.000  0.000  0.000  1.000\n"
    );
    let json = domain
        .run("--json tf echo odom laser --once --timeout 30")
        .json();
    assert_eq!(json["target_frame"], "laser");
    assert!((json["translation"][1].as_f64().unwrap() - 0.5).abs() < 1e-9);
    let error = domain.run("tf echo odom lasre --timeout 3").failed(1);
    assert_contains(&error, "no frame \"lasre\"; did you mean laser?");
}

#[test]
fn tree_shows_frames_with_their_publishers() {
    let domain = Domain::new();
    let _robot = robot(&domain);
    let all = |out: &str| out.contains("laser") && out.contains("/robot");
    let out = domain.run_until("tf tree", |answer| all(&answer.out)).ok();
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("odom"));
    let base = lines.next().unwrap();
    assert!(
        base.starts_with("└─ base_link") && base.ends_with(" s old, by /robot"),
        "{out}"
    );
    assert_eq!(lines.next(), Some("   └─ laser   static, by /robot"));
    let yaml = domain
        .run_until("tf tree --yaml", |answer| all(&answer.out))
        .ok();
    assert_contains(
        &yaml,
        "laser:\n  parent: 'base_link'\n  broadcaster: '/robot'",
    );
    let dot = domain
        .run_until("tf tree --dot", |answer| all(&answer.out))
        .ok();
    assert_contains(
        &dot,
        "\"base_link\" -> \"laser\" [label=\"/robot\\nstatic\"];",
    );
    let json = domain
        .run_until("--json tf tree", |answer| all(&answer.out))
        .json();
    let frames = json.as_array().unwrap();
    let laser = frames
        .iter()
        .find(|frame| frame["frame"] == "laser")
        .unwrap();
    assert_eq!(
        (&laser["parent"], &laser["static"]),
        (&"base_link".into(), &true.into())
    );
    assert_eq!(laser["authority"], "/robot");
}

#[test]
fn monitor_names_broadcasters_with_their_rates() {
    let domain = Domain::new();
    let _robot = robot(&domain);
    let received =
        |out: &str| out.contains("Frame: base_link, published by /robot, Average Delay: ");
    let words = "tf monitor --period 1 --timeout 2.5";
    let out = domain.run_until(words, |answer| received(&answer.out)).ok();
    assert!(
        out.starts_with("RESULTS: for all Frames\n\nFrames:\n") && received(&out),
        "{out}"
    );
    assert!(out.contains("All Broadcasters:\nNode: /robot "), "{out}");
    let words = "--json tf monitor --period 1 --timeout 2.5 odom laser";
    let chain = |out: &str| out.contains("\"chain\":[\"laser\",\"base_link\",\"odom\"]");
    let out = domain.run_until(words, |answer| chain(&answer.out)).ok();
    assert!(chain(&out), "{out}");
}

#[test]
fn a_frame_name_forges_no_line_of_the_monitor() {
    let domain = Domain::new();
    let context = Context::with_options(ContextOptions::local(domain.id()));
    let node = context.unwrap().create_node("robot").unwrap();
    let fixed = StaticTransformBroadcaster::new(&node).unwrap();
    let child = "laser\nNode: /forged 1.000 Hz";
    fixed
        .send_transform(transform(&node, "base_link", child, 0.5))
        .unwrap();
    let _robot = SpinThread::of_node(&node, fixed);
    let words = "tf monitor --period 1 --timeout 2.5";
    let out = domain
        .run_until(words, |answer| answer.out.contains("Frame: laser"))
        .out;
    assert_contains(&out, "Frame: laser\\n");
    assert!(!out.contains("\nNode: /forged"), "{out}");
}

#[test]
fn without_transforms_the_verbs_report_an_error() {
    let domain = Domain::new();
    let error = domain.run("tf tree --spin-time 0.2").failed(1);
    assert_contains(&error, "from 0 publishers of /tf and /tf_static");
    let error = domain.run("tf echo a b --timeout 0.2").failed(1);
    assert!(error.contains("is any node publishing on /tf"), "{error}");
    let error = domain.run("tf monitor --timeout 0.2").failed(1);
    assert!(error.contains("pteros topic why /tf"), "{error}");
}
