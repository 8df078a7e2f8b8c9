//! Graphs with native nodes of Pteros beside programs of ROS 2.

use crate::ros2_programs::ros2::{Ros2, secured};
use crate::ros2_programs::{LINE_MAX, PLUG_IN};
use crate::support::{self, Domain};
use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsResponse};
use pteros::interfaces::std_msgs::msg::{String as Text, UInt8MultiArray};
use pteros::msg::hash::TypeHash;
use pteros::prelude::*;
use pteros::qos::QosProfile;
use pteros::subscription::{SerializedMessage, SerializedType};
use pteros::{NamedQosExt, SubscriptionOptions};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Latched messages from nothing to 8 MiB, between the plug-in, other middlewares and
/// a native node.
#[test]
fn latched_messages_of_every_size_reach_late_joiners_of_every_kind() {
    let Some(ros2) = Ros2::find() else { return };
    let sizes = [0, 1, 1_000, 64_000, 1_000_000, 8_388_608];
    let mut kinds = vec![(PLUG_IN, PLUG_IN)];
    for other in ros2.others() {
        kinds.extend([(PLUG_IN, other), (other, PLUG_IN)]);
    }
    for (from, to) in kinds {
        let domain = Domain::new();
        let mut publisher = ros2.start_script(&domain, from, "ros2_sizes.py publish");
        publisher.expect("published");
        let mut subscriber = ros2.start_script(&domain, to, "ros2_sizes.py subscribe");
        for size in sizes {
            subscriber.expect(&format!("size {size} whole"));
        }
    }
    for rmw in ros2.middlewares() {
        exchange_sizes_with_a_native_node(&ros2, rmw, &sizes);
    }
}

/// Latched messages from a middleware to a native node, and back.
fn exchange_sizes_with_a_native_node(ros2: &Ros2, rmw: &str, sizes: &[usize]) {
    let domain = Domain::new();
    let mut publisher = ros2.start_script(&domain, rmw, "ros2_sizes.py publish");
    publisher.expect("published");
    let context = Context::with_options(ContextOptions::local(domain.id())).unwrap();
    let node = context.create_node("native").unwrap();
    let latched = QosProfile::default().keep_last(6).transient_local();
    let subscription = node
        .create_polled_subscription::<UInt8MultiArray>("/sizes".qos(latched.clone()))
        .unwrap();
    let bytes = |size: usize| (0..size).map(|at| (at % 251) as u8);
    for size in sizes {
        let sample = subscription.take_timeout(LINE_MAX).unwrap();
        let is_whole = sample.data.iter().copied().eq(bytes(*size));
        assert!(is_whole, "{rmw}: {size}");
    }
    drop((publisher, subscription));
    let publisher = node
        .create_publisher::<UInt8MultiArray>("/sizes".qos(latched))
        .unwrap();
    for size in sizes {
        let message = UInt8MultiArray {
            data: bytes(*size).collect(),
            ..UInt8MultiArray::default()
        };
        publisher.publish(&message).unwrap();
    }
    let spinning = node.clone();
    std::thread::spawn(move || spinning.spin());
    let mut subscriber = ros2.start_script(&domain, rmw, "ros2_sizes.py subscribe");
    for size in sizes {
        subscriber.expect(&format!("size {size} whole"));
    }
    context.shutdown();
}

/// A native subscription refuses the publisher for its type hash. Publishers of other
/// middlewares take it for matched. The publisher keeps all messages for another
/// subscription, and none of its calls blocks for good or fails. More messages than
/// Cyclone DDS holds back (500 kB), and than Fast DDS keeps (5 000).
#[test]
fn a_publisher_that_keeps_all_does_not_wait_for_a_native_node_that_refuses_it() {
    let Some(ros2) = Ros2::find() else { return };
    for rmw in ros2.others() {
        for flow in ["300000 20 40", "10 1000 6000"] {
            let domain = Domain::new();
            let context = Context::with_options(ContextOptions::local(domain.id())).unwrap();
            let node = context.create_node("native").unwrap();
            let version =
                SerializedType::new("std_msgs/msg/String", Some(TypeHash::rihs01([7; 32])));
            let refusing = node
                .create_polled_subscription::<SerializedMessage>(SubscriptionOptions::of_type(
                    &version, "/flow",
                ))
                .unwrap();
            let spinning = node.clone();
            std::thread::spawn(move || spinning.spin());
            let mut subscriber = ros2.start_script(&domain, rmw, "ros2_keep_all.py subscribe");
            let line = format!("ros2_keep_all.py publish {flow}");
            let mut publisher = ros2.start_script(&domain, rmw, &line);
            publisher.expect("matched");
            let count = flow.rsplit(' ').next().unwrap();
            publisher.expect(&format!("published {count}, failed 0"));
            subscriber.expect(&format!("received {count}."));
            assert_eq!(refusing.matched_count(), 0, "{rmw}");
            assert!(refusing.take().is_none(), "{rmw}");
            context.shutdown();
        }
    }
}

/// Processes of every kind at once: a talker and listeners on each middleware, and a
/// native node that talks and listens. Each listener hears each talker.
#[test]
fn processes_of_every_kind_hear_one_another() {
    let Some(ros2) = Ros2::find() else { return };
    for program in ["demo_nodes_cpp/talker", "demo_nodes_cpp/listener"] {
        if !ros2.has(program) {
            println!("left out: {program} is not installed");
            return;
        }
    }
    let domain = Domain::new();
    let context = Context::with_options(ContextOptions::local(domain.id())).unwrap();
    let node = context.create_node("native").unwrap();
    let spinning = node.clone();
    std::thread::spawn(move || spinning.spin());
    let publisher = node.create_publisher::<Text>("/from_native").unwrap();
    let _timer = node.create_timer(Duration::from_millis(200), move || {
        let message = Text {
            data: "Hello World".into(),
        };
        // The test's own listeners tell of a message that is missing.
        let _ = publisher.publish(&message);
    });
    let (mut talkers, mut native, mut listeners) = (Vec::new(), Vec::new(), Vec::new());
    let names = |line: &str, role: &str, topic: &str| {
        format!("{line} --ros-args -r chatter:={topic} -r __node:={role}_{topic}")
    };
    for rmw in ros2.middlewares() {
        let topic = format!("from_{rmw}");
        let line = names("demo_nodes_cpp/talker", "talker", &topic);
        talkers.push(ros2.start(&domain, rmw, &line));
        let subscription = node
            .create_polled_subscription::<Text>(&format!("/{topic}"))
            .unwrap();
        native.push((topic, subscription));
    }
    let topics: Vec<String> = native.iter().map(|(topic, _)| topic.clone()).collect();
    for rmw in ros2.middlewares() {
        for topic in topics.iter().map(String::as_str).chain(["from_native"]) {
            let line = names("demo_nodes_cpp/listener", &format!("on_{rmw}"), topic);
            listeners.push((format!("{topic} on {rmw}"), ros2.start(&domain, rmw, &line)));
        }
    }
    for (topic, subscription) in &native {
        let sample = subscription.take_timeout(LINE_MAX);
        assert!(sample.is_some(), "the native node heard nothing of {topic}");
    }
    for (name, listener) in &mut listeners {
        let heard = catch_unwind(AssertUnwindSafe(|| {
            listener.expect("I heard: [Hello World");
        }));
        assert!(heard.is_ok(), "nothing was heard {name}");
    }
    let listeners = listeners.into_iter().map(|(_, listener)| listener);
    listeners
        .chain(talkers)
        .for_each(|program| drop(program.interrupt()));
    context.shutdown();
}

/// The command's native nodes with topics, services, actions, parameters and lifecycle
/// nodes of rclcpp and rclpy on each middleware.
#[test]
fn native_nodes_use_those_of_every_middleware() {
    let Some(ros2) = Ros2::find() else { return };
    for rmw in ros2.middlewares() {
        println!("native nodes with {rmw}");
        use_from_native_nodes(&ros2, rmw);
    }
}

/// Servers on one middleware, and another middleware's listener beside them.
fn use_from_native_nodes(ros2: &Ros2, rmw: &str) {
    let domain = Domain::new();
    let sums = "example_interfaces/srv/AddTwoInts";
    let mut running = vec![
        ros2.start(&domain, rmw, "demo_nodes_cpp/talker"),
        ros2.start(&domain, rmw, "demo_nodes_py/add_two_ints_server"),
    ];
    if let Some(other) = ros2.middlewares().find(|other| *other != rmw) {
        running.push(ros2.start(&domain, other, "demo_nodes_cpp/listener"));
    }
    let contains = |words: &str, last: &str, part: &str| {
        let mut text = String::new();
        for _ in 0..20 {
            let answer = match last {
                "" => domain.run(words),
                last => domain.run_with(words, last),
            };
            text = answer.out + &answer.err;
            if text.contains(part) {
                return;
            }
        }
        panic!("pteros {words} {last}: no {part:?} in {text}");
    };
    contains("topic echo --once /chatter", "", "data: 'Hello World");
    contains(
        &format!("service call /add_two_ints {sums}"),
        "{a: 20, b: 22}",
        "sum=42",
    );
    contains(
        "param get /talker use_sim_time",
        "",
        "Boolean value is: False",
    );
    contains("topic info /chatter", "", "Publisher count: 1");
    contains("node info /talker", "", "/chatter: std_msgs/msg/String");
    let server = "examples_rclcpp_minimal_action_server/action_server_member_functions";
    if ros2.has(server) {
        running.push(ros2.start(&domain, rmw, server));
        let fibonacci = "action send_goal /fibonacci example_interfaces/action/Fibonacci";
        contains(
            fibonacci,
            "order: 2",
            "Goal finished with status: SUCCEEDED",
        );
    }
    if ros2.has("lifecycle/lifecycle_talker") {
        running.push(ros2.start(&domain, rmw, "lifecycle/lifecycle_talker"));
        contains(
            "lifecycle set /lc_talker configure",
            "",
            "Transitioning successful",
        );
        contains("lifecycle get /lc_talker", "", "inactive [2]");
    }
    // A native server, and clients on each middleware.
    let context = Context::with_options(ContextOptions::local(domain.id())).unwrap();
    let node = context.create_node("native").unwrap();
    let _service = node.create_service::<AddTwoInts>("native_sum", |request| AddTwoIntsResponse {
        sum: request.a + request.b,
    });
    let spinning = node.clone();
    std::thread::spawn(move || spinning.spin());
    let line = "demo_nodes_py/add_two_ints_client --ros-args -r add_two_ints:=native_sum";
    for client in ros2.middlewares() {
        let mut client = ros2.start(&domain, client, line);
        client.expect("Result of add_two_ints: 5");
    }
    context.shutdown();
    if let Some(listener) = running.get_mut(2) {
        listener.expect("I heard: [Hello World");
    }
}

/// A secured talker and listener on the plug-in and a secured native node hear one
/// another. Beside them an unsecured node of each kind hears the other one only.
#[test]
fn secured_programs_and_unsecured_ones_are_apart() {
    let Some(ros2) = Ros2::find() else { return };
    for program in ["demo_nodes_cpp/talker", "demo_nodes_cpp/listener"] {
        if !ros2.has(program) {
            println!("left out: {program} is not installed");
            return;
        }
    }
    let domain = Domain::new();
    let enclaves = ["/talker", "/listener", "/native"];
    let keystore = ros2.keystore(&domain, "keystore", &enclaves);
    let on_plug_in = |enclave: &str, program: &str| {
        let secured = ros2.secured(&keystore, enclave);
        secured.start(&domain, PLUG_IN, program)
    };
    let talker = on_plug_in("/talker", "demo_nodes_cpp/talker");
    let mut listener = on_plug_in("/listener", "demo_nodes_cpp/listener");
    let mut unsecured = ros2.start(&domain, PLUG_IN, "demo_nodes_cpp/listener");
    let context = Context::with_options(ContextOptions::local(domain.id())).unwrap();
    let node = context.create_node("unsecured").unwrap();
    let publisher = node.create_publisher::<Text>("/chatter").unwrap();
    let _timer = node.create_timer(Duration::from_millis(200), move || {
        let message = Text {
            data: "Unsecured".into(),
        };
        // The unsecured listener tells of a message that is missing.
        let _ = publisher.publish(&message);
    });
    let spinning = node.clone();
    std::thread::spawn(move || spinning.spin());
    unsecured.expect("I heard: [Unsecured]");
    listener.expect("I heard: [Hello World");
    let mut command = domain.command("topic echo /chatter --once".split(' '));
    command.envs(secured(&keystore, "/native"));
    let heard = support::finish(command);
    assert!(
        heard.out.contains("Hello World"),
        "{}",
        heard.out + &heard.err
    );
    context.shutdown();
    // What each has heard until now.
    let (heard, unsecured) = (listener.interrupt(), unsecured.interrupt());
    assert!(!heard.contains("Unsecured"), "{heard}");
    assert!(!unsecured.contains("Hello World"), "{unsecured}");
    talker.interrupt();
}

/// Secured programs on the plug-in and on other middlewares hear one another, and answer
/// one another's requests.
#[test]
fn secured_programs_meet_those_of_other_middlewares() {
    let Some(ros2) = Ros2::find() else { return };
    secured_programs_meet(&ros2, ros2.others());
}

/// Those on the plug-in meet those of each of these middlewares. An unsecured one beside
/// them hears nothing, and one without its enclave ends.
pub fn secured_programs_meet(ros2: &Ros2, others: impl Iterator<Item = &'static str>) {
    let programs = [
        "talker",
        "listener",
        "add_two_ints_server",
        "add_two_ints_client",
    ];
    let programs = programs.map(|name| format!("demo_nodes_cpp/{name}"));
    if let Some(missing) = programs.iter().find(|program| !ros2.has(program)) {
        println!("left out: {missing} is not installed");
        return;
    }
    let [talker, listener, server, client] = &programs;
    let domain = Domain::new();
    let keystore = ros2.keystore(&domain, "keystore_of_pairs", &["/one", "/other"]);
    let unsecured = ros2.start(&domain, PLUG_IN, listener);
    let absent = ros2.secured(&keystore, "/absent");
    assert!(
        !absent
            .start(&domain, PLUG_IN, talker)
            .expect_or_end("Publishing: ")
    );
    for other in others {
        let start = |enclave: &str, rmw: &str, program: &str| {
            ros2.secured(&keystore, enclave)
                .start(&domain, rmw, program)
        };
        let mut probe = start("/other", other, talker);
        if !probe.expect_or_end("Publishing: ") {
            // Fast DDS is often built so, and says it.
            let part = "doesn't have the security libraries";
            support::assert_contains(&probe.seen, part);
            println!("left out: {other} {part}");
            continue;
        }
        let mut here = start("/one", PLUG_IN, listener);
        here.expect("I heard: [Hello World");
        here.interrupt();
        probe.interrupt();
        let here = start("/one", PLUG_IN, talker);
        let mut there = start("/other", other, listener);
        there.expect("I heard: [Hello World");
        there.interrupt();
        here.interrupt();
        for (serving, asking) in [(PLUG_IN, other), (other, PLUG_IN)] {
            let serving = start("/one", serving, server);
            let mut asking = start("/other", asking, client);
            asking.expect("Result of add_two_ints: 5");
            serving.interrupt();
        }
    }
    let heard = unsecured.interrupt();
    assert!(!heard.contains("I heard"), "{heard}");
}
