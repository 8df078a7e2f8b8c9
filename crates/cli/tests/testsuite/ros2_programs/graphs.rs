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

/// An installation and a middleware.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    pub ros2: &'a Ros2,
    pub rmw: &'static str,
}

/// Runs programs together; the first one on `first`, the others on `rest`.
fn run_together(domain: &Domain, first: Side<'_>, rest: Side<'_>, programs: &Together) -> bool {
    let names = programs
        .iter()
        .map(|(line, _)| line.split(' ').next().unwrap());
    for name in names {
        if !first.ros2.has(name) || !rest.ros2.has(name) {
            println!("left out: {name} is not installed");
            return false;
        }
    }
    let mut running = Vec::new();
    for (at, (line, _)) in programs.iter().enumerate() {
        let side = if at == 0 { first } else { rest };
        running.push(side.ros2.start(domain, side.rmw, line));
    }
    for (program, (_, part)) in running.iter_mut().zip(programs) {
        program.expect(part);
    }
    running
        .into_iter()
        .for_each(|program| drop(program.interrupt()));
    true
}

/// Runs all of them, and names those that failed at the end. Returns how many ran.
fn run_all<'a>(
    domain: &Domain,
    graphs: impl Iterator<Item = (Side<'a>, Side<'a>, Together)>,
) -> usize {
    let (mut ran, mut failed) = (0, Vec::new());
    for (first, rest, graph) in graphs {
        let run = AssertUnwindSafe(|| run_together(domain, first, rest, &graph));
        match catch_unwind(run) {
            Ok(is_installed) => ran += usize::from(is_installed),
            Err(_) => failed.push(format!("{}, {}: {graph:?}", first.rmw, rest.rmw)),
        }
    }
    println!("{ran} graphs ran");
    assert!(failed.is_empty(), "{failed:#?}");
    ran
}

/// Runs all graphs of both sides, alone and either way. Returns how many ran.
pub fn run_both_ways(domain: &Domain, one: Side<'_>, other: Side<'_>) -> usize {
    let ways = [(one, other), (other, one)];
    let graphs = ways.into_iter();
    let graphs = graphs.flat_map(|(first, rest)| together().map(move |g| (first, rest, g)));
    run_all(domain, graphs)
}

/// Runs all programs and graphs on one side. Returns how many ran.
pub fn run_alone(domain: &Domain, side: Side<'_>) -> usize {
    let graphs = alone().chain(together());
    run_all(domain, graphs.map(|graph| (side, side, graph)))
}

#[test]
fn programs_run_unchanged_on_the_plug_in() {
    let Some(ros2) = Ros2::find() else { return };
    let domain = Domain::new();
    let rmw = PLUG_IN;
    run_alone(&domain, Side { ros2: &ros2, rmw });
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
    let side = |rmw| Side { ros2: &ros2, rmw };
    for other in ros2.others() {
        run_both_ways(&domain, side(PLUG_IN), side(other));
    }
}
