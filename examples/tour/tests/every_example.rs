//! Every example runs as a user runs it and prints the expected lines, on this host
//! only.
#![allow(clippy::disallowed_methods, reason = "starts programs")]

use std::process::Command;

use pteros_test_support::program::Program;

/// Domains of this file, one per test, different from those of other tests.
const DOMAIN: u32 = 210;

fn start(name: &str, domain: u32) -> Program {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tour"));
    command
        .arg(name)
        .env("ROS_DOMAIN_ID", domain.to_string())
        .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        .env_remove("ROS_STATIC_PEERS");
    Program::start(&mut command)
}

/// Runs an example that ends by itself.
fn run(name: &str, domain: u32, promises: &[&str]) {
    let mut program = start(name, domain);
    for promise in promises {
        program.expect(promise);
    }
    program.finish();
}

#[test]
fn a_listener_receives_the_talkers_messages_and_the_graph_shows_both() {
    let mut watch = start("graph_watch", DOMAIN);
    let mut listener = start("listener", DOMAIN);
    let mut talker = start("talker", DOMAIN);
    talker.expect("Publishing: 'Hello World: 2'");
    listener.expect("I heard: 'Hello World: ");
    watch.expect("/chatter [std_msgs/msg/String]");
    for program in [talker, listener, watch] {
        program.interrupt();
    }
}

#[test]
fn a_parameter_is_set_by_another_node_within_its_range() {
    run(
        "parameters",
        DOMAIN + 17,
        &[
            "speed is 1.5 at first",
            "the parameter handle has 0.5",
            "9 is refused: Parameter {speed} doesn't comply",
        ],
    );
}

#[test]
fn a_timer_ticks_three_times() {
    run(
        "timer",
        DOMAIN + 1,
        &["tick 1", "tick 3", "3 ticks of 100ms"],
    );
}

#[test]
fn both_endpoints_report_the_incompatible_policy() {
    let promises = [
        "incompatible RELIABILITY",
        "incompatible RELIABILITY",
        "offered ",
    ];
    run("qos_events", DOMAIN + 2, &promises);
}

#[test]
fn a_late_joiner_gets_the_last_two_samples() {
    let promises = ["the map of the ground floor", "the map of the attic"];
    run("late_joiner", DOMAIN + 3, &promises);
}

#[test]
fn a_message_of_a_dynamic_type_is_delivered() {
    let promises = [
        "orchard/msg/Apple is RIHS01_",
        "x: 1.5",
        "ripeness: 0.5",
        "{",
    ];
    run("dynamic_types", DOMAIN + 4, &promises);
}

#[test]
fn intra_process_delivery_copies_nothing() {
    let promises = ["same memory: true", "serialized: 0 times"];
    run("intra_process", DOMAIN + 5, &promises);
}

#[test]
fn an_image_is_written_and_read_in_a_loaned_message() {
    let promises = ["mono8: brightest 1, by ", "brightest 3, by "];
    run("loaned_message", DOMAIN + 6, &promises);
}

#[test]
fn an_external_event_loop_serves_a_node_and_the_keyboard() {
    let mut program = start("event_loop", DOMAIN + 7);
    program.expect("tick");
    program.write_line("typed by hand");
    program.expect("received: typed by hand");
    // The end of the keyboard input does not end the program.
    program.close_input();
    program.expect("tick");
    program.interrupt();
}

#[test]
fn managed_nodes_are_brought_up_and_down_in_order() {
    let promises = [
        "camera: configured",
        "camera: active",
        "detector: configured",
        "up: /camera active, /detector active",
        "detector: image ",
        "camera: inactive",
        "down: /camera unconfigured, /detector unconfigured",
    ];
    run("managed_nodes", DOMAIN + 8, &promises);
}

#[test]
fn a_service_answers_a_future_and_a_callback() {
    let promises = [
        "server: 2 + 3",
        "client: the sum is 5",
        "server: 40 + 2",
        "client: then 42",
    ];
    run("service", DOMAIN + 18, &promises);
}

#[test]
fn an_action_succeeds_gives_feedback_and_is_cancelled() {
    let promises = [
        "server: goal 5",
        "client: [0, 1, 1]",
        "client: succeeded with [0, 1, 1, 2, 3, 5]",
        "server: goal 40",
        "client: canceled",
    ];
    run("action", DOMAIN + 9, &promises);
}

#[test]
fn without_a_name_the_examples_are_listed() {
    let output = Command::new(env!("CARGO_BIN_EXE_tour")).output();
    let output = output.expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("late_joiner"));
}

#[test]
fn an_unknown_example_prints_the_list() {
    let program = Command::new(env!("CARGO_BIN_EXE_tour"))
        .arg("nothing")
        .output();
    let output = program.expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("late_joiner"),
        "{said}"
    );
}
