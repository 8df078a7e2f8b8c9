//! Instances of a keyed topic between Pteros and Cyclone DDS, which sends no key
//! hashes: keys are read from the payloads.

use pteros::instance::{InstanceState as State, ReceivedChange};
use pteros::interfaces::dds_shapes::msg::ShapeType as Shape;
use pteros::msg::message::dds_type_name;
use pteros::prelude::*;

use crate::interop::harness::*;
use pteros_test_support::peer::{Peer, value};

fn shape(color: &str, x: i32) -> Shape {
    Shape {
        color: color.into(),
        x,
        ..Shape::default()
    }
}

/// The next change: the colour, and its position or how it ended.
fn next(node: &Node, subscription: &Subscription<Shape>) -> (String, Result<i32, State>) {
    let mut change = None;
    time_until(node, TIMEOUT, || {
        change = subscription.take_change();
        change.is_some()
    });
    match change.unwrap() {
        ReceivedChange::Sample(sample) => (sample.color.clone(), Ok(sample.x)),
        ReceivedChange::End(end) => (end.key().color.clone(), Err(end.state())),
    }
}

/// The peer's options for drawing on our topic, on which we have an endpoint.
fn peer_options(node: &Node) -> String {
    let graph = node.context().graph();
    let ours = graph
        .topics()
        .into_iter()
        .find(|topic| topic.name == "/shapes");
    let name = ours.unwrap().types.remove(0);
    let name = if name.contains('/') {
        dds_type_name(&name)
    } else {
        name
    };
    format!("--type shape --topic rt/shapes --type-name {name}")
}

fn they_draw(harness: &Harness, options: &str, script: &[(&str, &[Result<i32, State>])]) {
    let node = harness.node();
    let subscription = node.create_polled_subscription::<Shape>("shapes").unwrap();
    let mut peer = harness.waiting_publisher(&format!("{} {options}", peer_options(&node)));
    wait_until_matched_and_start(&subscription, &mut peer);
    for (line, expected) in script {
        peer.send_line(line);
        peer.expect(&format!("did {line}"), TIMEOUT);
        let color = line.split(' ').nth(1).unwrap();
        for what in *expected {
            assert_eq!(next(&node, &subscription), (color.into(), *what), "{line}");
        }
    }
    assert_eq!(subscription.counts().lost, 0);
}

pub fn their_instances_end_for_us(harness: &Harness) {
    let disposed = Err(State::Disposed);
    they_draw(
        harness,
        "",
        &[
            ("write RED 1", &[Ok(1)]),
            ("write BLUE 2", &[Ok(2)]),
            ("dispose RED", &[disposed]),
            ("write RED 3", &[Ok(3)]),
            ("unregister BLUE", &[disposed]),
            ("write_dispose GREEN 4", &[Ok(4), disposed]),
        ],
    );
    they_draw(
        harness,
        "--autodispose off",
        &[
            ("write RED 1", &[Ok(1)]),
            ("unregister RED", &[Err(State::NoWriters)]),
            ("write RED 2", &[Ok(2)]),
        ],
    );
}

fn expect_instance(peer: &mut Peer, color: &str, state: &str) {
    let line = peer.expect("instance ", TIMEOUT);
    let printed = (value(&line, "color"), value(&line, "state"));
    assert_eq!(printed, (Some(color), Some(state)));
}

fn expect_shape(peer: &mut Peer, text: &str) {
    let line = peer.expect("received ", TIMEOUT);
    assert_eq!(value(&line, "text"), Some(text), "{line}");
}

pub fn our_instances_end_for_them(harness: &Harness) {
    let node = harness.node();
    let first = node
        .create_publisher::<Shape>("shapes".keep_last(10))
        .unwrap();
    let mut peer = harness.peer(&format!("sub {}", peer_options(&node)));
    wait_until_peer_matched(&first, &mut peer);
    first.publish(&shape("RED", 1)).unwrap();
    expect_shape(&mut peer, "RED 1");
    first.dispose(&shape("RED", 0)).unwrap();
    expect_instance(&mut peer, "RED", "disposed");
    first.publish(&shape("BLUE", 2)).unwrap();
    expect_shape(&mut peer, "BLUE 2");
    // Its instances are disposed of with it.
    drop(first);
    expect_instance(&mut peer, "BLUE", "disposed");
    let kept = QosProfile::default().no_autodispose();
    let second = node.create_publisher::<Shape>("shapes".qos(kept)).unwrap();
    assert!(second.wait_for_matched(1, TIMEOUT));
    peer.expect("matched 1", TIMEOUT);
    second.publish(&shape("GREEN", 3)).unwrap();
    expect_shape(&mut peer, "GREEN 3");
    second.unregister(&shape("GREEN", 0)).unwrap();
    expect_instance(&mut peer, "GREEN", "no_writers");
}
