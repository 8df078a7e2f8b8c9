//! Parts that a child process of this program plays on a host: a node with a service and
//! an action, a publisher of numbers, a relay of frames, a connection.

use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use pteros::action::{ActionServerOptions, ServerGoalHandle};
use pteros::clock::Rate;
use pteros::interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciResult,
};
use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros::interfaces::std_msgs::msg::Int64;
use pteros::prelude::*;
use pteros::service::Service;
use pteros_peers::frame_relay;

use crate::namespaces::{Namespace, Program};
use crate::spin_thread::SpinThread;
use crate::zenoh_networks::hundred_nodes;

/// The part and its words, in the environment of the child.
const PART: &str = "PTEROS_TEST_PART";
/// A child that nobody ends does so itself, as the namespaces do.
pub const LIFETIME: Duration = Duration::from_secs(400);
/// A part prints this line when it has begun. The test harness may have begun the line.
const READY: &str = "ready";
/// The server prints this line for each request that it leaves without a response.
pub const REQUEST: &str = "a request";

/// A command that plays a part, on a host.
pub fn command(host: &Namespace, part: &str) -> Command {
    let own = std::env::current_exe().expect("its own path");
    let own = own.to_string_lossy();
    let mut command = host.command(&[
        &own,
        "--exact",
        "zenoh_networks::parts::a_part",
        "--nocapture",
    ]);
    command.env(PART, part);
    command
}

/// Starts a part and waits until it has begun.
#[track_caller]
pub fn start(command: Command) -> Program {
    let mut program = Program::start(command);
    program.wait_for_line(crate::zenoh_networks::host::SOON, |line| {
        line.ends_with(READY)
    });
    program
}

/// Relays frames between two devices of the switch.
pub fn relay(words: &str) -> impl FnOnce(&Namespace, [&str; 2]) -> Program {
    move |switch, [near, far]| start(command(switch, &format!("relay {near} {far} {words}")))
}

/// Whether a TCP connection to an address is possible from a host.
pub fn connects(host: &Namespace, address: &str) -> bool {
    let mut program = Program::start(command(host, &format!("connect {address}")));
    let line = program.wait_for_line(crate::zenoh_networks::host::SOON, |line| {
        line.ends_with("connection")
    });
    !line.ends_with("no connection")
}

/// The child process, and nothing without its variable.
#[test]
fn a_part() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let words: Vec<&str> = part.split(' ').collect();
    match words.as_slice() {
        ["server", prefix] => serve(prefix),
        ["latched", topic] => publish_latched(topic),
        ["volatile", topic] => publish_volatile(topic),
        ["batch", topic, count] => publish_batch(topic, count.parse().unwrap()),
        ["member", number, has_services] => {
            hundred_nodes::be_member(number.parse().unwrap(), has_services.parse().unwrap());
        }
        ["connect", address] => {
            let limit = Duration::from_secs(3);
            let connected = TcpStream::connect_timeout(&address.parse().unwrap(), limit);
            println!("\n{}connection", if connected.is_ok() { "" } else { "no " });
        }
        ["relay", rest @ ..] => {
            let words: Vec<String> = rest.iter().map(ToString::to_string).collect();
            frame_relay::run(&words).unwrap();
        }
        other => panic!("no such part: {other:?}"),
    }
}

pub fn context() -> Context {
    let options = ContextOptions {
        use_environment: true,
        ..ContextOptions::default()
    };
    Context::with_options(options).unwrap()
}

fn node(name: &str) -> Node {
    context().create_node(name).unwrap()
}

/// A service that adds, one that never responds, and an action that counts.
fn serve(prefix: &str) {
    let node = node(&format!("server_of_{}", prefix.trim_matches('/')));
    let sum = |request: Sample<AddTwoIntsRequest>| AddTwoIntsResponse {
        sum: request.a + request.b,
    };
    let add = node
        .create_service::<AddTwoInts>(&format!("{prefix}/add"), sum)
        .unwrap();
    let silent = Service::<AddTwoInts>::polled(&node, format!("{prefix}/silent")).unwrap();
    let options = ActionServerOptions::<Fibonacci>::new(format!("{prefix}/count"));
    let action = node.create_action_server(options, |goal| count(&goal));
    let _spun = SpinThread::of_node(&node, (add, action.unwrap()));
    println!("\n{READY}");
    let mut kept = Vec::new();
    let end = Instant::now() + LIFETIME;
    let mut rate = Rate::new(&node.clock(), 50.0);
    while Instant::now() < end {
        if let Some(request) = silent.take_request() {
            kept.push(request);
            println!("{REQUEST}");
        }
        rate.sleep();
    }
}

fn count(goal: &ServerGoalHandle<Fibonacci>) {
    let mut sequence = vec![0, 1];
    for at in 1..usize::try_from(goal.goal().order).unwrap() {
        sequence.push(sequence[at] + sequence[at - 1]);
        goal.publish_feedback(FibonacciFeedback {
            sequence: sequence.clone(),
        });
    }
    goal.succeed(FibonacciResult { sequence }).unwrap();
}

/// The depth of latched topics: all numbers that a test publishes.
pub const LATCHED_DEPTH: usize = 2_000;

/// Publishes 1, 2, … on a topic whose history late joiners get.
fn publish_latched(topic: &str) {
    let qos = QosProfile::default().keep_last(LATCHED_DEPTH);
    publish_numbers(topic, qos.transient_local());
}

/// Publishes 1, 2, … for those that listen now.
fn publish_volatile(topic: &str) {
    publish_numbers(topic, QosProfile::default());
}

fn publish_numbers(topic: &str, qos: QosProfile) {
    let node = node("numbers");
    let publisher: Publisher<Int64> = node.create_publisher(topic.qos(qos)).unwrap();
    let mut rate = Rate::new(&node.clock(), 10.0);
    println!("\n{READY}");
    let end = Instant::now() + LIFETIME;
    for data in 1.. {
        publisher.publish(&Int64 { data }).unwrap();
        rate.sleep();
        if Instant::now() > end {
            return;
        }
    }
}

/// Publishes so many numbers at once when somebody listens, and drops none.
fn publish_batch(topic: &str, count: i64) {
    let qos = QosProfile::default().keep_all();
    let node = node("batch");
    let publisher: Publisher<Int64> = node.create_publisher(topic.qos(qos)).unwrap();
    println!("\n{READY}");
    assert!(publisher.wait_for_matched(1, LIFETIME));
    for data in 1..=count {
        publisher.publish(&Int64 { data }).unwrap();
    }
    let clock = node.clock();
    clock.sleep_until(clock.now() + LIFETIME);
}
