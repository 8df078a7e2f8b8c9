//! Kills, pauses and crowds of rclcpp programs.

use crate::ros2_programs::PLUG_IN;
use crate::ros2_programs::ros2::{Program, Ros2};
use crate::support::Domain;

/// Kills of either side, one after the other.
const KILLS: usize = 200;
/// Listeners of one talker.
const PROCESSES: usize = 100;
/// Messages of one per second that a stopped listener misses.
const MISSED: usize = 30;

/// Talker and listener of rclcpp, or nothing with a sentence.
fn talk(ros2: &Ros2, domain: &Domain) -> Option<(Program, Program)> {
    for program in ["demo_nodes_cpp/talker", "demo_nodes_cpp/listener"] {
        if !ros2.has(program) {
            println!("left out: {program} is not installed");
            return None;
        }
    }
    Some((
        ros2.start(domain, PLUG_IN, "demo_nodes_cpp/talker"),
        ros2.start(domain, PLUG_IN, "demo_nodes_cpp/listener"),
    ))
}

#[test]
#[ignore = "minutes: kills either side 200 times"]
fn kills_of_either_side() {
    let Some(ros2) = Ros2::find() else { return };
    let domain = Domain::new();
    let Some((mut talker, mut listener)) = talk(&ros2, &domain) else {
        return;
    };
    for kill in 0..KILLS {
        listener.expect("I heard: [Hello World");
        // Dropping a program kills it with SIGKILL.
        if kill % 2 == 0 {
            listener = ros2.start(&domain, PLUG_IN, "demo_nodes_cpp/listener");
        } else {
            talker = ros2.start(&domain, PLUG_IN, "demo_nodes_cpp/talker");
            listener.seen.clear();
        }
    }
    listener.expect("I heard: [Hello World");
    drop((talker.interrupt(), listener.interrupt()));
}

#[test]
#[ignore = "half a minute: a listener is stopped for 30 messages"]
fn a_stopped_listener() {
    let Some(ros2) = Ros2::find() else { return };
    let domain = Domain::new();
    let Some((mut talker, mut listener)) = talk(&ros2, &domain) else {
        return;
    };
    let mut second = ros2.start(&domain, PLUG_IN, "demo_nodes_cpp/listener");
    listener.expect("I heard: [Hello World");
    listener.signal("STOP");
    let number = talker.seen.matches("Publishing").count();
    // The talker goes on, and the other listener hears it.
    talker.expect(&format!("'Hello World: {}'", number + MISSED));
    second.expect(&format!("[Hello World: {}]", number + MISSED));
    listener.signal("CONT");
    talker.expect(&format!("'Hello World: {}'", number + MISSED + 2));
    listener.expect(&format!("[Hello World: {}]", number + MISSED + 2));
    for program in [talker, listener, second] {
        program.interrupt();
    }
}

#[test]
#[ignore = "a minute: 100 processes of rclcpp"]
fn a_hundred_processes() {
    let Some(ros2) = Ros2::find() else { return };
    let domain = Domain::new();
    let Some((talker, first)) = talk(&ros2, &domain) else {
        return;
    };
    let more = (1..PROCESSES).map(|_| ros2.start(&domain, PLUG_IN, "demo_nodes_cpp/listener"));
    let mut listeners: Vec<Program> = std::iter::once(first).chain(more).collect();
    for listener in &mut listeners {
        listener.expect("I heard: [Hello World");
    }
    drop(talker.interrupt());
    listeners
        .into_iter()
        .for_each(|program| drop(program.interrupt()));
}
