//! Every example runs as a user runs it and prints the expected lines, on this host
//! only.
#![allow(clippy::disallowed_methods, reason = "starts programs")]

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Domains of this file, one per test, different from those of other tests.
const DOMAIN: u32 = 210;

struct Program {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(name: &str, domain: u32) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tour"))
            .arg(name)
            .env("ROS_DOMAIN_ID", domain.to_string())
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .env_remove("ROS_STATIC_PEERS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the example starts");
        let output = child.stdout.take().expect("its output is piped");
        Self {
            child,
            lines: BufReader::new(output).lines(),
        }
    }

    /// Reads lines until one contains `text`.
    fn expect(&mut self, text: &str) {
        let found = self
            .lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line.contains(text));
        assert!(found, "it ended without saying {text:?}");
    }

    /// Interrupts it as Ctrl-C does. It must exit without error.
    fn interrupt(mut self) {
        let sent = Command::new("kill")
            .args(["-INT", &self.child.id().to_string()])
            .status();
        assert!(sent.is_ok_and(|status| status.success()));
        assert!(self.child.wait().expect("it ends").success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs an example that ends by itself.
fn run(name: &str, domain: u32, promises: &[&str]) {
    let mut program = Program::start(name, domain);
    for promise in promises {
        program.expect(promise);
    }
    assert!(program.child.wait().expect("it ends").success(), "{name}");
}

#[test]
fn a_listener_receives_the_talkers_messages_and_the_graph_shows_both() {
    let mut watch = Program::start("graph_watch", DOMAIN);
    let mut listener = Program::start("listener", DOMAIN);
    let mut talker = Program::start("talker", DOMAIN);
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
    let mut program = Program::start("event_loop", DOMAIN + 7);
    program.expect("tick");
    let mut keyboard = program.child.stdin.take().expect("it is piped");
    writeln!(keyboard, "typed by hand").expect("it reads");
    program.expect("received: typed by hand");
    // The end of the keyboard input does not end the program.
    drop(keyboard);
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
