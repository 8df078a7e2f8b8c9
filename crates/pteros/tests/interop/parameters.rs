//! Parameters between us and them: the six services of a node, what it tells of
//! its changes, and what ROS 2 says of nodes at all.

use std::sync::{Arc, Mutex};

use pteros::parameter::{
    Parameter, ParameterClient, ParameterClientError, ParameterDescriptor, ParameterType,
    ParameterValue,
};
use pteros::prelude::*;

use crate::peer::Peer;
use crate::stage::{PATIENCE, Stage};

/// One of each type, as `parameter_peer.h` declares them.
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

/// Works until the peer says such a line.
#[track_caller]
fn hears(node: &Node, peer: &mut Peer, line: &str) {
    let heard = node.spin_until(|| peer.has(line), PATIENCE);
    assert!(heard, "no {line:?}: {:#?}", peer.seen());
}

/// Their client, who knows all our services and hears our events.
fn asked_by_them(stage: &Stage, node: &Node) -> Peer {
    let mut peer = stage.node_peer("parameters", "call --name /ours");
    peer.expect("ready", PATIENCE);
    hears(node, &mut peer, "met");
    let graph = node.context().graph();
    let knows_them = || graph.subscriptions("/parameter_events").len() == 1;
    assert!(graph.wait_until(PATIENCE, knows_them));
    peer
}

pub fn they_read_our_parameters(stage: &Stage) {
    let node = stage.node();
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
    let mut peer = asked_by_them(stage, &node);

    let names: Vec<_> = theirs().into_iter().map(|p| p.name).collect();
    peer.tell(&format!("get {}", names.join(" ")));
    hears(&node, &mut peer, "values 1 9");
    for (n, printed) in PRINTED.iter().enumerate() {
        let (_, value) = printed.split_once(' ').unwrap();
        hears(&node, &mut peer, &format!("value 1 {n} {value}"));
    }
    peer.tell("get count nope");
    hears(&node, &mut peer, "values 2 0");
    peer.tell("types flag arm.bytes texts");
    for (n, number) in [1, 5, 9].into_iter().enumerate() {
        hears(&node, &mut peer, &format!("type 1 {n} {number}"));
    }
    peer.tell("describe ranged fixed");
    hears(
        &node,
        &mut peer,
        "descriptor 1 ranged kind=2 read_only=0 dynamic=0 constraints=even text=how many",
    );
    hears(&node, &mut peer, "range 1 ranged 0 100 2");
    hears(
        &node,
        &mut peer,
        "descriptor 1 fixed kind=3 read_only=1 dynamic=0 constraints= text=",
    );
    hears(&node, &mut peer, "range 1 fixed -1.5 2 0.25");
    peer.tell("list 1 arm");
    hears(&node, &mut peer, "names 1 2");
    for line in ["name 1 arm.bytes", "name 1 arm.flags", "prefix 1 arm"] {
        hears(&node, &mut peer, line);
    }
    assert!(!peer.has("name 1 arm.left"));
}

pub fn they_set_our_parameters_and_hear_of_it(stage: &Stage) {
    let node = stage.node();
    let mut peer = asked_by_them(stage, &node);
    for (parameter, printed) in theirs().into_iter().zip(PRINTED) {
        let dynamic = ParameterDescriptor::new().dynamic_typing();
        node.declare_parameter_with(&parameter.name, parameter.value, dynamic)
            .unwrap();
        hears(&node, &mut peer, &format!("event /ours new {printed}"));
    }
    let fixed = ParameterDescriptor::new().read_only();
    node.declare_parameter_with("fixed", 1, fixed).unwrap();
    // What they write of each type is what is read here.
    let printed = PRINTED.join(" ; ");
    peer.tell(&format!("set {printed} ; fixed integer 2"));
    for n in 0..PRINTED.len() {
        hears(&node, &mut peer, &format!("set 1 {n} 1"));
    }
    hears(&node, &mut peer, "set 1 9 0 ");
    for parameter in theirs() {
        assert_eq!(node.parameter(&parameter.name).unwrap(), parameter.value);
    }
    assert_eq!(node.parameter("fixed").unwrap(), 1.into());
    peer.tell("atomic count integer 7 ; fixed integer 2");
    hears(&node, &mut peer, "atomic 1 0 ");
    assert_eq!(node.parameter("count").unwrap(), 42.into());
    peer.tell("atomic count integer 7 ; speed double 2.5");
    hears(&node, &mut peer, "atomic 2 1");
    hears(&node, &mut peer, "event /ours changed count integer 7");
    hears(&node, &mut peer, "event /ours changed speed double 2.5");
    peer.tell("set flag not_set");
    hears(&node, &mut peer, "event /ours deleted flag not_set");
    assert!(!node.has_parameter("flag"));
}

pub fn we_read_and_set_their_parameters(stage: &Stage) {
    let node = stage.node();
    let client = ParameterClient::new(&node, "/theirs");
    let events = Arc::new(Mutex::new(Vec::new()));
    let heard = events.clone();
    let _events = client
        .on_events(move |event| heard.lock().unwrap().push((*event).clone()))
        .unwrap();
    let mut peer = stage.node_peer("parameters", "serve");
    peer.expect("ready", PATIENCE);

    // Every node of theirs tells what it has when it begins.
    let came = node.spin_until(|| !events.lock().unwrap().is_empty(), PATIENCE);
    assert!(came, "no event");
    let first = events.lock().unwrap().remove(0);
    let told: Vec<_> = theirs().into_iter().map(Parameter::into_message).collect();
    assert_eq!((&*first.node, first.new_parameters), ("/theirs", told));
    assert_eq!((first.stamp.sec, first.stamp.nanosec), (7, 8));

    let expected = theirs();
    let names: Vec<&str> = expected.iter().map(|p| &*p.name).collect();
    let values = client.get(&names, PATIENCE).unwrap();
    assert!(
        values.iter().eq(expected.iter().map(|p| &p.value)),
        "{values:?}"
    );
    let none = client.get(&["count", "nope"], PATIENCE);
    assert!(matches!(none, Err(ParameterClientError::NotTold { .. })));
    let types = client.types(&["flag", "texts"], PATIENCE).unwrap();
    assert_eq!(types, [ParameterType::Bool, ParameterType::StringArray]);
    let described = client.describe(&["count", "title"], PATIENCE).unwrap();
    let range = &described[0].integer_range[0];
    assert_eq!((range.from_value, range.to_value, range.step), (0, 100, 2));
    assert_eq!(described[0].description, "how many");
    assert!(described[1].read_only && described[1].integer_range.is_empty());
    let mut listed = client.list(&["arm"], 1, PATIENCE).unwrap();
    listed.sort_unstable();
    assert_eq!(listed, ["arm.bytes", "arm.flags"]);

    let wanted = vec![
        Parameter::new("count", 8),
        Parameter::new("title", "r3"),
        Parameter::new("speed", 1),
    ];
    let outcomes = client.set(wanted, PATIENCE).unwrap();
    let no = |why: &str| Err(why.to_owned());
    assert_eq!(outcomes, [Ok(()), no("read only"), no("another type")]);
    let changed = |event: &pteros::interfaces::rcl_interfaces::msg::ParameterEvent| {
        event.changed_parameters == [Parameter::new("count", 8).into_message()]
    };
    let came = node.spin_until(|| events.lock().unwrap().iter().any(changed), PATIENCE);
    assert!(came, "{:?}", events.lock().unwrap());
    for parameter in theirs() {
        if parameter.name != "title" {
            let line = parameter.name.clone();
            assert_eq!(
                client.set(vec![parameter], PATIENCE).unwrap(),
                [Ok(())],
                "{line}"
            );
        }
    }
    for printed in PRINTED.iter().filter(|line| !line.starts_with("title")) {
        assert!(
            peer.seen().iter().any(|line| line.ends_with(printed))
                || peer.wait_for(&format!("asked {printed}"), PATIENCE).is_ok()
        );
    }
    let both = |count| vec![Parameter::new("count", count), Parameter::new("speed", 0.5)];
    let outcome = client.set_atomically(both(101), PATIENCE).unwrap();
    assert_eq!(outcome, no("out of range"));
    assert_eq!(client.set_atomically(both(10), PATIENCE).unwrap(), Ok(()));
    let values = client.get(&["count", "speed"], PATIENCE).unwrap();
    assert_eq!(values, [10.into(), 0.5.into()]);
}

pub fn we_know_their_node_by_name(stage: &Stage) {
    let node = stage.node();
    let mut peer = stage.node_peer("parameters", "serve");
    peer.expect("ready", PATIENCE);
    let graph = node.context().graph();
    let named = || {
        let nodes = graph.nodes();
        let mut names = nodes.iter().map(|node| node.fully_qualified_name());
        names.any(|name| name == "/theirs")
    };
    assert!(graph.wait_until(PATIENCE, named), "{:?}", graph.nodes());
}
