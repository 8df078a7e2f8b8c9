//! Announcements besides topics: type hashes, enclaves, QoS, type information.

use std::time::Duration;

use pteros::interfaces::sensor_msgs::msg::JointState;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::qos::{DurabilityPolicy, ReliabilityPolicy};

use crate::interop::harness::*;

pub fn their_type_hash_is_read(harness: &Harness) {
    let node = harness.node();
    let graph = node.context().graph();
    let hash = Text::TYPE_HASH;
    let _theirs = [
        harness.peer(&format!("pub --typehash {hash} --enclave /theirs")),
        harness.peer(&format!("sub --typehash {hash}")),
    ];
    time_until(&node, TIMEOUT, || {
        !graph.publishers("/chatter").is_empty() && !graph.subscriptions("/chatter").is_empty()
    });
    let publisher = &graph.publishers("/chatter")[0];
    let subscription = &graph.subscriptions("/chatter")[0];
    assert_eq!(publisher.type_hash, Some(hash));
    assert_eq!(subscription.type_hash, Some(hash));
    assert_eq!(publisher.topic_type, "std_msgs/msg/String");
    assert_eq!(publisher.enclave.as_deref(), Some("/theirs"));
    assert_eq!(subscription.enclave.as_deref(), Some("/"));
}

/// Non-default values of our side are equal on theirs, or they would not match.
pub fn our_type_announcements_match_theirs(harness: &Harness) {
    let node = harness.node();
    let graph = node.context().graph();
    let mut peer = harness.peer(
        "pub --durability transient_local --deadline 1500 --lease 2500 --liveliness manual_topic \
         --partition robots",
    );
    time_until(&node, TIMEOUT, || !graph.publishers("/chatter").is_empty());
    let theirs = graph.publishers("/chatter")[0].qos.clone();
    assert_eq!(theirs.reliability, ReliabilityPolicy::Reliable);
    assert_eq!(theirs.durability, DurabilityPolicy::TransientLocal);
    assert_eq!(theirs.deadline, Some(Duration::from_millis(1500)));
    assert_eq!(theirs.liveliness_lease, Some(Duration::from_millis(2500)));
    assert_eq!(theirs.partition, ["robots"]);
    let elsewhere = node
        .create_polled_subscription::<Text>("chatter".keep_last(10))
        .unwrap();
    let there = QosProfile {
        partition: vec!["ro*".into()],
        ..theirs
    };
    let subscription = node
        .create_polled_subscription::<Text>("chatter".qos(there))
        .unwrap();
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    peer.expect("matched 1", TIMEOUT);
    assert_eq!(elsewhere.matched_count(), 0);
}

/// The members are written as Python shows them.
pub fn our_types_are_shown(harness: &Harness) {
    let node = harness.node();
    let _publisher = node
        .create_publisher::<Text>("chatter".keep_last(10))
        .unwrap();
    let _subscription = node
        .create_polled_subscription::<JointState>("joints".keep_last(10))
        .unwrap();
    for (topic, expected) in [
        ("rt/chatter", "type std_msgs::msg::dds_::String_ data"),
        (
            "rt/joints",
            "type sensor_msgs::msg::dds_::JointState_ header name position velocity effort",
        ),
    ] {
        let mut peer = harness.peer(&format!("typeof --topic {topic}"));
        assert_eq!(peer.expect("type ", TIMEOUT), expected);
    }
}

/// A type that is only described by the peer, under their name.
pub fn their_types_are_understood(harness: &Harness) {
    let node = harness.node();
    let graph = node.context().graph();
    let _peer = harness.peer("pub --type shape --topic Foreign --type-name Foreign::Kind");
    time_until(&node, TIMEOUT, || !graph.publishers("Foreign").is_empty());
    let ty = graph.announced_type("Foreign", TIMEOUT).unwrap();
    assert_eq!(ty.dds_type_name(), "Foreign::Kind");
    let fields = ty.fields().iter();
    let members: Vec<(&str, bool)> = fields.map(|f| (f.name.as_str(), f.is_key)).collect();
    let expected = [
        ("color", true),
        ("x", false),
        ("y", false),
        ("shapesize", false),
        ("additional_payload_size", false),
    ];
    assert_eq!(members, expected);
}

pub fn our_type_hash_is_read(harness: &Harness) {
    let node = harness.node();
    let _publisher = node
        .create_publisher::<Text>("chatter".keep_last(10))
        .unwrap();
    let _subscription = node
        .create_polled_subscription::<Text>("chatter".keep_last(10))
        .unwrap();
    let hash = Text::TYPE_HASH;
    let mut peer = harness.peer("look");
    let ours = format!("type=std_msgs::msg::dds_::String_ user_data=typehash={hash}; enclave=/;");
    let mut found = Vec::new();
    while found.len() < 2 {
        let line = peer.expect("", TIMEOUT);
        if line.contains("topic=rt/chatter ") {
            assert!(line.contains(&ours), "{line}");
            found.push(line);
        }
    }
    found.sort();
    assert!(found[0].starts_with("publication "), "{found:?}");
    assert!(found[1].starts_with("subscription "), "{found:?}");
}
