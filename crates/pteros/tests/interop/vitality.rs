//! DEADLINE and LIVELINESS: what is due, and who is taken for alive.

use std::time::Duration;

use pteros::EndpointEvent::{self, DeadlineMissed, LivelinessChanged, LivelinessLost};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::qos::LivelinessPolicy;

use crate::Stack;
use crate::stage::*;

const LEASE: Duration = Duration::from_millis(600);

pub fn a_missed_deadline_of_ours_is_told_on_both_sides(stage: &Stage) {
    let node = stage.node();
    let qos = QosProfile::default().deadline(Duration::from_millis(200));
    let publisher = node.create_publisher::<Text>("chatter", &qos).unwrap();
    let mut peer = stage.peer("sub --deadline 200");
    wait_until_they_hear(&publisher, &mut peer);
    publisher.publish(&hello(1)).unwrap();
    peer_expects_hello(&mut peer, 1);
    wait_for_event(
        &node,
        || publisher.take_event(),
        |event| matches!(event, DeadlineMissed { total: 1.. }),
    );
    peer.expect("deadline_missed total=", PATIENCE);
}

pub fn a_missed_deadline_of_theirs_is_told_on_both_sides(stage: &Stage) {
    let node = stage.node();
    let qos = QosProfile::default().deadline(Duration::from_millis(200));
    let subscription = node
        .create_polled_subscription::<Text>("chatter", &qos)
        .unwrap();
    let mut peer = stage.waiting_publisher("--deadline 200 --rate 0.5");
    wait_until_we_hear(&subscription, &mut peer);
    expect_hello(&subscription, 1);
    wait_for_event(
        &node,
        || subscription.take_event(),
        |event| matches!(event, DeadlineMissed { total: 1.. }),
    );
    peer.expect("deadline_missed total=", PATIENCE);
    expect_hello(&subscription, 2);
}

fn lease(kind: LivelinessPolicy) -> QosProfile {
    QosProfile {
        liveliness: kind,
        liveliness_lease: Some(LEASE),
        ..QosProfile::default()
    }
}

pub fn we_stay_alive_for_them_without_a_word(stage: &Stage) {
    let node = stage.node();
    let automatic = lease(LivelinessPolicy::Automatic);
    let publisher = node
        .create_publisher::<Text>("chatter", &automatic)
        .unwrap();
    let mut peer = stage.peer(&format!(
        "sub --liveliness automatic --lease {}",
        LEASE.as_millis()
    ));
    wait_until_they_hear(&publisher, &mut peer);
    // Fast DDS tells of it only when the first sample has come.
    if stage.stack != Stack::FastDds {
        peer.expect("liveliness alive=1 not_alive=0", PATIENCE);
    }
    publisher.publish(&hello(1)).unwrap();
    peer_expects_hello(&mut peer, 1);
    live_for(&node, 4 * LEASE);
    publisher.publish(&hello(2)).unwrap();
    peer_expects_hello(&mut peer, 2);
    let died = |line: &String| line.starts_with("liveliness alive=0");
    assert!(!peer.seen().iter().any(died), "{:?}", peer.seen());
}

pub fn they_stay_alive_for_us_without_a_word(stage: &Stage) {
    let node = stage.node();
    let automatic = lease(LivelinessPolicy::Automatic);
    let subscription = node
        .create_polled_subscription::<Text>("chatter", &automatic)
        .unwrap();
    let mut peer = stage.waiting_publisher(&format!(
        "--liveliness automatic --lease {} --count 1 --linger 60",
        LEASE.as_millis()
    ));
    wait_until_we_hear(&subscription, &mut peer);
    expect_hello(&subscription, 1);
    wait_for_event(
        &node,
        || subscription.take_event(),
        |event| matches!(event, LivelinessChanged { alive: 1, .. }),
    );
    live_for(&node, 4 * LEASE);
    while let Some(event) = subscription.take_event() {
        assert!(!matches!(event, LivelinessChanged { alive: 0, .. }));
    }
}

fn we_must_be_asserted(stage: &Stage, kind: LivelinessPolicy, word: &str) {
    let node = stage.node();
    let publisher = node
        .create_publisher::<Text>("chatter", lease(kind))
        .unwrap();
    let mut peer = stage.peer(&format!(
        "sub --liveliness {word} --lease {}",
        LEASE.as_millis()
    ));
    wait_until_they_hear(&publisher, &mut peer);
    publisher.publish(&hello(1)).unwrap();
    peer_expects_hello(&mut peer, 1);
    for _ in 0..6 {
        publisher.assert_liveliness();
        live_for(&node, LEASE / 3);
    }
    publisher.assert_liveliness();
    publisher.publish(&hello(2)).unwrap();
    peer_expects_hello(&mut peer, 2);
    let died = |line: &String| line.ends_with("not_alive=1");
    assert!(!peer.seen().iter().any(died), "{:?}", peer.seen());

    peer.expect("liveliness alive=0 not_alive=1", PATIENCE);
    wait_for_event(
        &node,
        || publisher.take_event(),
        |event| matches!(event, LivelinessLost { .. }),
    );
    // For Cyclone DDS assertions keep a writer alive, but only data revives it.
    publisher.publish(&hello(3)).unwrap();
    peer.expect("liveliness alive=1 not_alive=0", PATIENCE);
}

pub fn our_participant_must_be_asserted(stage: &Stage) {
    let kind = LivelinessPolicy::ManualByParticipant;
    we_must_be_asserted(stage, kind, "manual_participant");
}

pub fn our_topic_must_be_asserted(stage: &Stage) {
    we_must_be_asserted(stage, LivelinessPolicy::ManualByTopic, "manual_topic");
}

fn they_must_be_asserted(stage: &Stage, kind: LivelinessPolicy, word: &str) {
    // The Python binding has no way to assert.
    if stage.stack != Stack::Python {
        they_assert_and_live(stage, kind, word);
    }
    they_say_nothing_and_die(stage, kind, word);
}

fn they_assert_and_live(stage: &Stage, kind: LivelinessPolicy, word: &str) {
    let node = stage.node();
    let subscription = node
        .create_polled_subscription::<Text>("chatter", lease(kind))
        .unwrap();
    let mut peer = stage.waiting_publisher(&format!(
        "--liveliness {word} --lease {} --assert 150 --rate 0.5 --count 2 --linger 60",
        LEASE.as_millis()
    ));
    wait_until_we_hear(&subscription, &mut peer);
    expect_hello(&subscription, 1);
    expect_hello(&subscription, 2);
    while let Some(event) = subscription.take_event() {
        assert!(!is_dead(&event), "{event:?}");
    }
}

fn they_say_nothing_and_die(stage: &Stage, kind: LivelinessPolicy, word: &str) {
    let node = stage.node();
    let subscription = node
        .create_polled_subscription::<Text>("silence", lease(kind))
        .unwrap();
    let mut peer = stage.waiting_publisher(&format!(
        "--topic rt/silence --liveliness {word} --lease {} --rate 0.5",
        LEASE.as_millis()
    ));
    wait_until_we_hear(&subscription, &mut peer);
    expect_hello(&subscription, 1);
    wait_for_event(&node, || subscription.take_event(), is_dead);
    peer.expect("liveliness_lost total=", PATIENCE);
    expect_hello(&subscription, 2);
    wait_for_event(
        &node,
        || subscription.take_event(),
        |event| matches!(event, LivelinessChanged { alive: 1.., .. }),
    );
}

fn is_dead(event: &EndpointEvent) -> bool {
    matches!(event, LivelinessChanged { not_alive: 1, .. })
}

pub fn their_participant_must_be_asserted(stage: &Stage) {
    let kind = LivelinessPolicy::ManualByParticipant;
    they_must_be_asserted(stage, kind, "manual_participant");
}

pub fn their_topic_must_be_asserted(stage: &Stage) {
    they_must_be_asserted(stage, LivelinessPolicy::ManualByTopic, "manual_topic");
}
