//! Demos and examples of rclcpp and rclpy, alone and together.

use crate::ros2_programs::PLUG_IN;
use crate::ros2_programs::ros2::Ros2;
use crate::support::Domain;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Programs that run together, in this order: command line, and what it prints.
type Together = Vec<(&'static str, &'static str)>;

/// Programs that run alone.
const ALONE: &str = include_str!("alone.txt");

/// Graphs of several programs, which may have different middlewares.
const TOGETHER: &str = include_str!("together.txt");

fn program(line: &'static str) -> Option<(&'static str, &'static str)> {
    let (command, prints) = line.split_once(" =>")?;
    let is_comment = line.starts_with('#');
    (!is_comment).then_some((command, prints.trim_start()))
}

fn alone() -> impl Iterator<Item = Together> {
    ALONE.lines().filter_map(program).map(|one| vec![one])
}

fn together() -> impl Iterator<Item = Together> {
    let graphs = TOGETHER.split("\n\n");
    graphs.map(|graph| graph.lines().filter_map(program).collect())
}

/// Runs programs together; the first one on `first`, the others on `rest`.
fn run_together(
    ros2: &Ros2,
    domain: &Domain,
    first: &str,
    rest: &str,
    programs: &Together,
) -> bool {
    let names = programs
        .iter()
        .map(|(line, _)| line.split(' ').next().unwrap());
    for name in names {
        if !ros2.has(name) {
            println!("left out: {name} is not installed");
            return false;
        }
    }
    let mut running = Vec::new();
    for (at, (line, _)) in programs.iter().enumerate() {
        let rmw = if at == 0 { first } else { rest };
        running.push(ros2.start(domain, rmw, line));
    }
    for (program, (_, part)) in running.iter_mut().zip(programs) {
        program.expect(part);
    }
    running
        .into_iter()
        .for_each(|program| drop(program.interrupt()));
    true
}

/// Runs all of them, and names those that failed at the end.
fn run_all(
    ros2: &Ros2,
    domain: &Domain,
    graphs: impl Iterator<Item = (&'static str, &'static str, Together)>,
) {
    let (mut ran, mut failed) = (0, Vec::new());
    for (first, rest, graph) in graphs {
        let run = AssertUnwindSafe(|| run_together(ros2, domain, first, rest, &graph));
        match catch_unwind(run) {
            Ok(is_installed) => ran += usize::from(is_installed),
            Err(_) => failed.push(format!("{first}, {rest}: {graph:?}")),
        }
    }
    println!("{ran} graphs ran");
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn programs_run_unchanged_on_the_plug_in() {
    let Some(ros2) = Ros2::find() else { return };
    let domain = Domain::new();
    let graphs = alone().chain(together());
    run_all(
        &ros2,
        &domain,
        graphs.map(|graph| (PLUG_IN, PLUG_IN, graph)),
    );
}

/// A node in a global variable is destroyed after the main thread's thread-local
/// values.
#[test]
fn a_node_in_a_global_variable_is_destroyed_at_exit() {
    let Some(ros2) = Ros2::find() else { return };
    let server = "examples_rclcpp_minimal_action_server/action_server_member_functions";
    let client = "examples_rclcpp_minimal_action_client/action_client_not_composable_with_feedback";
    if !ros2.has(server) || !ros2.has(client) {
        println!("left out: {server} or {client} is not installed");
        return;
    }
    let domain = Domain::new();
    let _server = ros2.start(&domain, PLUG_IN, server);
    let mut client = ros2.start(&domain, PLUG_IN, client);
    client.expect("Next number in sequence received");
    let text = client.interrupt();
    assert!(!text.contains("Error in destruction"), "{text}");
}

#[test]
fn programs_of_different_middlewares_work_together() {
    let Some(ros2) = Ros2::find() else { return };
    let domain = Domain::new();
    let both_ways = |other| {
        let ways = [(PLUG_IN, other), (other, PLUG_IN)];
        ways.into_iter()
            .flat_map(|(first, rest)| together().map(move |graph| (first, rest, graph)))
    };
    run_all(&ros2, &domain, ros2.others().flat_map(both_ways));
}
