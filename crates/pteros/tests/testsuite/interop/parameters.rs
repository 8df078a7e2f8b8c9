//! Parameters across implementations: the six services of a node, parameter events,
//! and the node's entry in the graph.

use std::sync::{Arc, Mutex};

use pteros::parameter::{
    Parameter, ParameterClient, ParameterDescriptor, ParameterType, ParameterValue,
};
use pteros::prelude::*;

use crate::interop::harness::{Harness, TIMEOUT};
use pteros_test_support::peer::Peer;

/// One parameter of each type, as `parameter_peer.h` declares them.
fn theirs() -> Vec<Parameter> {
    let texts = vec!["a".to_owned(), "bc".to_owned()];
    vec![
        Parameter::new("flag", true),
        Parameter::new("count", 42),
        Parameter::new("speed", 0.25),
        Parameter::new("title", "r2"),
        Parameter::new("arm.bytes", ParameterValue::ByteArray(vec![0, 127, 255])),
        Parameter::new("arm.flags", ParameterValue::BoolArray(vec![true, false])),
        Parameter::new("arm.left.integers", vec![i64::MIN, i64::MAX]),
        Parameter::new("arm.left.doubles", vec![0.1, -1e300]),
        Parameter::new("texts", texts),
    ]
}

/// As the peers print them.
const PRINTED: [&str; 9] = [
    "flag bool true",
    "count integer 42",
    "speed double 0.25",
    "title string r2",
    "arm.bytes byte_array 0 127 255",
    "arm.flags bool_array true false",
    "arm.left.integers integer_array -9223372036854775808 9223372036854775807",
    "arm.left.doubles double_array 0.10000000000000001 -1.0000000000000001e+300",
    "texts string_array a bc",
];

/// Spins until the peer prints such a line.
#[track_caller]
fn expect_line(node: &Node, peer: &mut Peer, line: &str) {
    let received = node.spin_until(|| peer.has(line), TIMEOUT);
    assert!(received, "no {line:?}: {:#?}", peer.seen());
}

/// Their client, matched with all our services and subscribed to our events.
fn start_client_peer(harness: &Harness, node: &Node) -> Peer {
    let mut peer = harness.node_peer("parameters", "call --name /ours");
    peer.expect("ready", TIMEOUT);
    expect_line(node, &mut peer, "met");
    let graph = node.context().graph();
    let knows_them = || graph.subscriptions("/parameter_events").len() == 1;
    assert!(graph.wait_until(TIMEOUT, knows_them));
    peer
}

pub fn they_read_our_parameters(harness: &Harness) {
    let node = harness.node();
    for parameter in theirs() {
        node.declare_parameter(&parameter.name, parameter.value)
            .unwrap();
    }
    let range = ParameterDescriptor::new()
        .description("how many")
        .additional_constraints("even")
        .integer_range(0, 100, 2);
    node.declare_parameter_with("ranged", 4, range).unwrap();
    let fixed = ParameterDescriptor::new()
        .read_only()
        .float_range(-1.5, 2.0, 0.25);
    node.declare_parameter_with("fixed", 0.5, fixed).unwrap();
    let mut peer = start_client_peer(harness, &node);

    let names: Vec<_> = theirs().into_iter().map(|p| p.name).collect();
    peer.send_line(&format!("get {}", names.join(" ")));
    expect_line(&node, &mut peer, "values 1 9");
    for (n, printed) in PRINTED.iter().enumerate() {
        let (_, value) = printed.split_once(' ').unwrap();
        expect_line(&node, &mut peer, &format!("value 1 {n} {value}"));
    }
    peer.send_line("get count nope");
    expect_line(&node, &mut peer, "values 2 0");
    peer.send_line("types flag arm.bytes texts");
    for (n, number) in [1, 5, 9].into_iter().enumerate() {
        expect_line(&node, &mut peer, &format!("type 1 {n} {number}"));
    }
    peer.send_line("describe ranged fixed");
    expect_line(
        &node,
        &mut peer,
        "descriptor 1 ranged kind=2 read_only=0 dynamic=0 constraints=even text=how many",
    );
    expect_line(&node, &mut peer, "range 1 ranged 0 100 2");
    expect_line(
        &node,
        &mut peer,
        "descriptor 1 fixed kind=3 read_only=1 dynamic=0 constraints= text=",
    );
    expect_line(&node, &mut peer, "range 1 fixed -1.5 2 0.25");
    peer.send_line("list 1 arm");
    expect_line(&node, &mut peer, "names 1 2");
    for line in ["name 1 arm.bytes", "name 1 arm.flags", "prefix 1 arm"] {
        expect_line(&node, &mut peer, line);
    }
    assert!(!peer.has("name 1 arm.left"));
}

pub fn they_set_our_parameters_and_get_the_events(harness: &Harness) {
    let node = harness.node();
    let mut peer = start_client_peer(harness, &node);
    for (parameter, printed) in theirs().into_iter().zip(PRINTED) {
        let dynamic = ParameterDescriptor::new().dynamic_typing();
        node.declare_parameter_with(&parameter.name, parameter.value, dynamic)
            .unwrap();
        expect_line(&node, &mut peer, &format!("event /ours new {printed}"));
    }
    let fixed = ParameterDescriptor::new().read_only();
    node.declare_parameter_with("fixed", 1, fixed).unwrap();
    // The form that they print for each type is read here.
    let printed = PRINTED.join(" ; ");
    peer.send_line(&format!("set {printed} ; fixed integer 2"));
    for n in 0..PRINTED.len() {
        expect_line(&node, &mut peer, &format!("set 1 {n} 1"));
    }
    expect_line(&node, &mut peer, "set 1 9 0 ");
    for parameter in theirs() {
        assert_eq!(node.parameter(&parameter.name).unwrap(), parameter.value);
    }
    assert_eq!(node.parameter("fixed").unwrap(), 1.into());
    peer.send_line("atomic count integer 7 ; fixed integer 2");
    expect_line(&node, &mut peer, "atomic 1 0 ");
    assert_eq!(node.parameter("count").unwrap(), 42.into());
    peer.send_line("atomic count integer 7 ; speed double 2.5");
    expect_line(&node, &mut peer, "atomic 2 1");
    expect_line(&node, &mut peer, "event /ours changed count integer 7");
    expect_line(&node, &mut peer, "event /ours changed speed double 2.5");
    peer.send_line("set flag not_set");
    expect_line(&node, &mut peer, "event /ours deleted flag not_set");
    assert!(!node.has_parameter("flag"));
}

pub fn we_read_and_set_their_parameters(harness: &Harness) {
    let node = harness.node();
    let client = ParameterClient::new(&node, "/theirs");
    let events = Arc::new(Mutex::new(Vec::new()));
    let received = events.clone();
    let _events = client
        .on_events(move |event| received.lock().unwrap().push((*event).clone()))
        .unwrap();
    let mut peer = harness.node_peer("parameters", "serve");
    peer.expect("ready", TIMEOUT);

    // Each of their nodes publishes its parameters when it starts.
    let received = node.spin_until(|| !events.lock().unwrap().is_empty(), TIMEOUT);
    assert!(received, "no event");
    let first = events.lock().unwrap().remove(0);
    let told: Vec<_> = theirs().into_iter().map(Parameter::into_message).collect();
    assert_eq!((&*first.node, first.new_parameters), ("/theirs", told));
    assert_eq!((first.stamp.sec, first.stamp.nanosec), (7, 8));

    let expected = theirs();
    let names: Vec<&str> = expected.iter().map(|p| &*p.name).collect();
    let values = client.get(&names, TIMEOUT).unwrap();
    assert!(
        values.iter().eq(expected.iter().map(|p| &p.value)),
        "{values:?}"
    );
    let none = client.get(&["count", "nope"], TIMEOUT);
    assert!(matches!(
        none,
        Err(pteros::service::CallError::Refused { .. })
    ));
    let types = client.types(&["flag", "texts"], TIMEOUT).unwrap();
    assert_eq!(types, [ParameterType::Bool, ParameterType::StringArray]);
    let described = client.describe(&["count", "title"], TIMEOUT).unwrap();
    let range = &described[0].integer_range[0];
    assert_eq!((range.from_value, range.to_value, range.step), (0, 100, 2));
    assert_eq!(described[0].description, "how many");
    assert!(described[1].read_only && described[1].integer_range.is_empty());
    let mut listed = client.list(&["arm"], 1, TIMEOUT).unwrap();
    listed.sort_unstable();
    assert_eq!(listed, ["arm.bytes", "arm.flags"]);

    let wanted = vec![
        Parameter::new("count", 8),
        Parameter::new("title", "r3"),
        Parameter::new("speed", 1),
    ];
    let outcomes = client.set(wanted, TIMEOUT).unwrap();
    let no = |why: &str| Err(why.to_owned());
    assert_eq!(outcomes, [Ok(()), no("read only"), no("another type")]);
    let changed = |event: &pteros::interfaces::rcl_interfaces::msg::ParameterEvent| {
        event.changed_parameters == [Parameter::new("count", 8).into_message()]
    };
    let received = node.spin_until(|| events.lock().unwrap().iter().any(changed), TIMEOUT);
    assert!(received, "{:?}", events.lock().unwrap());
    for parameter in theirs() {
        if parameter.name != "title" {
            let line = parameter.name.clone();
            assert_eq!(
                client.set(vec![parameter], TIMEOUT).unwrap(),
                [Ok(())],
                "{line}"
            );
        }
    }
    for printed in PRINTED.iter().filter(|line| !line.starts_with("title")) {
        assert!(
            peer.seen().iter().any(|line| line.ends_with(printed))
                || peer.wait_for(&format!("asked {printed}"), TIMEOUT).is_ok()
        );
    }
    let both = |count| vec![Parameter::new("count", count), Parameter::new("speed", 0.5)];
    let outcome = client.set_atomically(both(101), TIMEOUT).unwrap();
    assert_eq!(outcome, no("out of range"));
    assert_eq!(client.set_atomically(both(10), TIMEOUT).unwrap(), Ok(()));
    let values = client.get(&["count", "speed"], TIMEOUT).unwrap();
    assert_eq!(values, [10.into(), 0.5.into()]);
}

pub fn their_node_has_its_name_in_our_graph(harness: &Harness) {
    let node = harness.node();
    let mut peer = harness.node_peer("parameters", "serve");
    peer.expect("ready", TIMEOUT);
    let graph = node.context().graph();
    let named = || {
        let nodes = graph.nodes();
        let mut names = nodes.iter().map(|node| node.fully_qualified_name());
        names.any(|name| name == "/theirs")
    };
    assert!(graph.wait_until(TIMEOUT, named), "{:?}", graph.nodes());
}
