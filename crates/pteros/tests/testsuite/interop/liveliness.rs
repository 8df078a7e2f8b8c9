//! DEADLINE and LIVELINESS across implementations.

use std::time::Duration;

use pteros::event_handler::EndpointEvent::{
    self, DeadlineMissed, LivelinessChanged, LivelinessLost,
};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::qos::LivelinessPolicy;

use crate::interop::Stack;
use crate::interop::harness::*;

const LEASE: Duration = Duration::from_millis(600);

pub fn our_missed_deadline_is_reported_on_both_sides(harness: &Harness) {
    let node = harness.node();
    let qos = QosProfile::default().deadline(Duration::from_millis(200));
    let publisher = node.create_publisher::<Text>("chatter".qos(&qos)).unwrap();
    let mut peer = harness.peer("sub --deadline 200");
    wait_until_peer_matched(&publisher, &mut peer);
    publisher.publish(&hello(1)).unwrap();
    peer_expects_hello(&mut peer, 1);
    wait_for_event(
        &node,
        || publisher.take_event(),
        |event| matches!(event, DeadlineMissed { total: 1.. }),
    );
    peer.expect("deadline_missed total=", TIMEOUT);
}

pub fn their_missed_deadline_is_reported_on_both_sides(harness: &Harness) {
    let node = harness.node();
    let qos = QosProfile::default().deadline(Duration::from_millis(200));
    let subscription = node
        .create_polled_subscription::<Text>("chatter".qos(&qos))
        .unwrap();
    let mut peer = harness.waiting_publisher("--deadline 200 --rate 0.5");
    wait_until_matched_and_start(&subscription, &mut peer);
    expect_hello(&subscription, 1);
    wait_for_event(
        &node,
        || subscription.take_event(),
        |event| matches!(event, DeadlineMissed { total: 1.. }),
    );
    peer.expect("deadline_missed total=", TIMEOUT);
    expect_hello(&subscription, 2);
}

fn lease(kind: LivelinessPolicy) -> QosProfile {
    QosProfile {
        liveliness: kind,
        liveliness_lease: Some(LEASE),
        ..QosProfile::default()
    }
}

pub fn our_automatic_liveliness_is_kept_without_messages(harness: &Harness) {
    let node = harness.node();
    let automatic = lease(LivelinessPolicy::Automatic);
    let publisher = node
        .create_publisher::<Text>("chatter".qos(&automatic))
        .unwrap();
    let mut peer = harness.peer(&format!(
        "sub --liveliness automatic --lease {}",
        LEASE.as_millis()
    ));
    wait_until_peer_matched(&publisher, &mut peer);
    // Fast DDS reports it only after the first sample.
    if harness.stack != Stack::FastDds {
        peer.expect("liveliness alive=1 not_alive=0", TIMEOUT);
    }
    publisher.publish(&hello(1)).unwrap();
    peer_expects_hello(&mut peer, 1);
    drive_for(&node, 4 * LEASE);
    publisher.publish(&hello(2)).unwrap();
    peer_expects_hello(&mut peer, 2);
    let died = |line: &String| line.starts_with("liveliness alive=0");
    assert!(!peer.seen().iter().any(died), "{:?}", peer.seen());
}

pub fn their_automatic_liveliness_is_kept_without_messages(harness: &Harness) {
    let node = harness.node();
    let automatic = lease(LivelinessPolicy::Automatic);
    let subscription = node
        .create_polled_subscription::<Text>("chatter".qos(&automatic))
        .unwrap();
    let mut peer = harness.waiting_publisher(&format!(
        "--liveliness automatic --lease {} --count 1 --linger 60",
        LEASE.as_millis()
    ));
    wait_until_matched_and_start(&subscription, &mut peer);
    expect_hello(&subscription, 1);
    wait_for_event(
        &node,
        || subscription.take_event(),
        |event| matches!(event, LivelinessChanged { alive: 1, .. }),
    );
    drive_for(&node, 4 * LEASE);
    while let Some(event) = subscription.take_event() {
        assert!(!matches!(event, LivelinessChanged { alive: 0, .. }));
    }
}

fn check_our_manual_liveliness(harness: &Harness, kind: LivelinessPolicy, word: &str) {
    let node = harness.node();
    let publisher = node
        .create_publisher::<Text>("chatter".qos(lease(kind)))
        .unwrap();
    let mut peer = harness.peer(&format!(
        "sub --liveliness {word} --lease {}",
        LEASE.as_millis()
    ));
    wait_until_peer_matched(&publisher, &mut peer);
    publisher.publish(&hello(1)).unwrap();
    peer_expects_hello(&mut peer, 1);
    for _ in 0..6 {
        publisher.assert_liveliness();
        drive_for(&node, LEASE / 3);
    }
    publisher.assert_liveliness();
    publisher.publish(&hello(2)).unwrap();
    peer_expects_hello(&mut peer, 2);
    let died = |line: &String| line.ends_with("not_alive=1");
    assert!(!peer.seen().iter().any(died), "{:?}", peer.seen());

    peer.expect("liveliness alive=0 not_alive=1", TIMEOUT);
    wait_for_event(
        &node,
        || publisher.take_event(),
        |event| matches!(event, LivelinessLost { .. }),
    );
    // Cyclone DDS: assertions keep a writer alive, but only data makes it alive
    // again.
    publisher.publish(&hello(3)).unwrap();
    peer.expect("liveliness alive=1 not_alive=0", TIMEOUT);
}

pub fn our_participant_must_be_asserted(harness: &Harness) {
    let kind = LivelinessPolicy::ManualByParticipant;
    check_our_manual_liveliness(harness, kind, "manual_participant");
}

pub fn our_topic_must_be_asserted(harness: &Harness) {
    check_our_manual_liveliness(harness, LivelinessPolicy::ManualByTopic, "manual_topic");
}

fn check_their_manual_liveliness(harness: &Harness, kind: LivelinessPolicy, word: &str) {
    // The Python binding cannot assert liveliness.
    if harness.stack != Stack::Python {
        expect_alive_while_asserted(harness, kind, word);
    }
    expect_lost_without_assertions(harness, kind, word);
}

fn expect_alive_while_asserted(harness: &Harness, kind: LivelinessPolicy, word: &str) {
    let node = harness.node();
    let subscription = node
        .create_polled_subscription::<Text>("chatter".qos(lease(kind)))
        .unwrap();
    let mut peer = harness.waiting_publisher(&format!(
        "--liveliness {word} --lease {} --assert 150 --rate 0.5 --count 2 --linger 60",
        LEASE.as_millis()
    ));
    wait_until_matched_and_start(&subscription, &mut peer);
    expect_hello(&subscription, 1);
    expect_hello(&subscription, 2);
    while let Some(event) = subscription.take_event() {
        assert!(!is_liveliness_lost(&event), "{event:?}");
    }
}

fn expect_lost_without_assertions(harness: &Harness, kind: LivelinessPolicy, word: &str) {
    let node = harness.node();
    let subscription = node
        .create_polled_subscription::<Text>("silence".qos(lease(kind)))
        .unwrap();
    let mut peer = harness.waiting_publisher(&format!(
        "--topic rt/silence --liveliness {word} --lease {} --rate 0.5",
        LEASE.as_millis()
    ));
    wait_until_matched_and_start(&subscription, &mut peer);
    expect_hello(&subscription, 1);
    wait_for_event(&node, || subscription.take_event(), is_liveliness_lost);
    peer.expect("liveliness_lost total=", TIMEOUT);
    expect_hello(&subscription, 2);
    wait_for_event(
        &node,
        || subscription.take_event(),
        |event| matches!(event, LivelinessChanged { alive: 1.., .. }),
    );
}

fn is_liveliness_lost(event: &EndpointEvent) -> bool {
    matches!(event, LivelinessChanged { not_alive: 1, .. })
}

pub fn their_participant_must_be_asserted(harness: &Harness) {
    let kind = LivelinessPolicy::ManualByParticipant;
    check_their_manual_liveliness(harness, kind, "manual_participant");
}

pub fn their_topic_must_be_asserted(harness: &Harness) {
    check_their_manual_liveliness(harness, LivelinessPolicy::ManualByTopic, "manual_topic");
}
