//! Coherent sets: visible as a whole or not at all (DDS 1.4 §2.2.3.6).

use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::qos::{Presentation, ResourceLimits};
use pteros::{
    error::{CreateError, EndpointError, GroupError},
    event_handler::EndpointEvent,
    publisher::PublisherGroup,
};

use crate::conformance::harness::{EventLog, Harness, TIMEOUT, text};

const INSTANCE: u8 = 0;
const TOPIC: u8 = 1;
const GROUP: u8 = 2;

fn coherent(access_scope: u8) -> Presentation {
    Presentation {
        access_scope,
        coherent: true,
        ordered: false,
    }
}

fn requesting(presentation: Presentation) -> QosProfile {
    QosProfile {
        presentation,
        ..QosProfile::default().keep_last(20)
    }
}

fn group(harness: &Harness, presentation: Presentation) -> PublisherGroup {
    PublisherGroup::new(&harness.publishing, presentation).unwrap()
}

fn publisher(group: &PublisherGroup, topic: &str, qos: &QosProfile) -> Publisher<Text> {
    group.create_publisher(topic.qos(qos)).unwrap()
}

fn subscription(harness: &Harness, topic: &str, qos: &QosProfile) -> Subscription<Text> {
    let node = &harness.subscribing;
    node.create_polled_subscription(topic.qos(qos)).unwrap()
}

/// A separate topic, so that endpoints of an earlier round that are still leaving
/// are not matched.
fn topic_of(scope: u8) -> &'static str {
    ["of_instance", "of_topic", "of_group"][usize::from(scope)]
}

/// A group's publisher and a subscription, matched.
fn pair(
    harness: &Harness,
    presentation: Presentation,
    qos: &QosProfile,
) -> (PublisherGroup, Publisher<Text>, Subscription<Text>) {
    let group = group(harness, presentation);
    let topic = topic_of(presentation.access_scope);
    let publisher = publisher(&group, topic, qos);
    let qos = QosProfile {
        presentation,
        ..qos.clone()
    };
    let subscription = subscription(harness, topic, &qos);
    matched(&publisher, &subscription);
    (group, publisher, subscription)
}

fn matched(publisher: &Publisher<Text>, subscription: &Subscription<Text>) {
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    assert!(subscription.wait_for_matched(1, TIMEOUT));
}

fn publish_set(group: &PublisherGroup, publisher: &Publisher<Text>, numbers: &[usize]) {
    let changes = group.begin_coherent_changes().unwrap();
    for n in numbers {
        publisher.publish(&text(*n)).unwrap();
    }
    changes.end();
}

fn next(subscription: &Subscription<Text>) -> usize {
    let sample = subscription.take_timeout(TIMEOUT).expect("a sample");
    sample.data.parse().unwrap()
}

/// All samples that wait now.
fn taken(subscription: &Subscription<Text>) -> Vec<usize> {
    let all = std::iter::from_fn(|| subscription.take());
    all.map(|sample| sample.data.parse().unwrap()).collect()
}

/// No sample arrives, though there is time for it.
fn stays_empty(harness: &Harness, subscription: &Subscription<Text>) {
    let pause = Duration::from_millis(150);
    assert!(!harness.poll_for(pause, || subscription.take().is_some()));
}

pub fn a_coherent_set_is_visible_at_its_end_as_a_whole(harness: &Harness) {
    for (round, scope) in [INSTANCE, TOPIC, GROUP].into_iter().enumerate() {
        let (group, publisher, subscription) =
            pair(harness, coherent(scope), &QosProfile::default());
        publisher.publish(&text(0)).unwrap();
        assert_eq!(next(&subscription), 0, "outside of sets nothing waits");
        let changes = group.begin_coherent_changes().unwrap();
        for n in 1..=3 {
            publisher.publish(&text(n)).unwrap();
        }
        stays_empty(harness, &subscription);
        changes.end();
        assert_eq!(next(&subscription), 1, "round {round}");
        assert_eq!(
            taken(&subscription),
            [2, 3],
            "all of it was there with the first"
        );
        publisher.publish(&text(4)).unwrap();
        assert_eq!(next(&subscription), 4);
        assert_eq!(subscription.counts().incomplete_sets, 0);
        assert_eq!(subscription.counts().lost, 0);
    }
}

pub fn a_nested_coherent_set_ends_with_the_outer_one(harness: &Harness) {
    let (group, publisher, subscription) = pair(harness, coherent(TOPIC), &QosProfile::default());
    let outer = group.begin_coherent_changes().unwrap();
    publish_set(&group, &publisher, &[1]);
    publisher.publish(&text(2)).unwrap();
    stays_empty(harness, &subscription);
    assert!(group.has_open_coherent_set());
    drop(outer);
    assert!(!group.has_open_coherent_set());
    assert_eq!(next(&subscription), 1);
    assert_eq!(taken(&subscription), [2]);
    // The next set is another one.
    publish_set(&group, &publisher, &[3]);
    assert_eq!(next(&subscription), 3);
}

pub fn a_group_set_is_complete_on_all_its_topics(harness: &Harness) {
    let group = group(harness, coherent(GROUP));
    let qos = QosProfile::default();
    let [left, right] = ["left", "right"].map(|topic| publisher(&group, topic, &qos));
    let [of_left, of_right] = ["left", "right"].map(|topic| {
        let qos = requesting(coherent(GROUP));
        let node = &harness.subscribing;
        node.create_polled_subscription::<Text>(topic.qos(&qos))
            .unwrap()
    });
    matched(&left, &of_left);
    matched(&right, &of_right);
    for round in 0..3 {
        let changes = group.begin_coherent_changes().unwrap();
        left.publish(&text(10 * round)).unwrap();
        right.publish(&text(10 * round + 1)).unwrap();
        left.publish(&text(10 * round + 2)).unwrap();
        stays_empty(harness, &of_left);
        assert!(of_right.take().is_none());
        changes.end();
        assert_eq!(next(&of_left), 10 * round);
        assert_eq!(taken(&of_left), [10 * round + 2]);
        assert_eq!(next(&of_right), 10 * round + 1);
    }
    // A sample of one publisher alone is a set too.
    publish_set(&group, &right, &[100]);
    assert_eq!(next(&of_right), 100);
    left.publish(&text(101)).unwrap();
    assert_eq!(next(&of_left), 101);
}

pub fn readers_without_coherent_access_get_samples_as_they_arrive(harness: &Harness) {
    let group = group(harness, coherent(GROUP));
    let publisher = publisher(&group, "topic", &QosProfile::default());
    let plain = harness.subscription(&QosProfile::default());
    let of_topic = harness.subscription(&requesting(coherent(TOPIC)));
    assert!(publisher.wait_for_matched(2, TIMEOUT));
    matched(&publisher, &plain);
    matched(&publisher, &of_topic);
    for round in 0..3 {
        let changes = group.begin_coherent_changes().unwrap();
        publisher.publish(&text(round)).unwrap();
        assert_eq!(next(&plain), round);
        assert!(of_topic.take().is_none());
        changes.end();
        assert_eq!(next(&of_topic), round, "a lower scope is served too");
    }
    stays_empty(harness, &plain);
    assert_eq!(plain.counts().lost, 0, "ends of sets are no samples");
    assert_eq!(plain.counts().received, 3);
}

pub fn a_set_that_exceeds_the_history_is_dropped_whole_and_counted(harness: &Harness) {
    let limited = ResourceLimits {
        max_samples: Some(3),
        ..ResourceLimits::default()
    };
    for (topic, history) in [
        ("last", QosProfile::default().keep_last(3)),
        (
            "all",
            QosProfile::default().keep_all().resource_limits(limited),
        ),
    ] {
        let group = group(harness, coherent(TOPIC));
        let publisher = publisher(&group, topic, &QosProfile::default().keep_last(20));
        let qos = QosProfile {
            presentation: coherent(TOPIC),
            ..history
        };
        let subscription = subscription(harness, topic, &qos);
        matched(&publisher, &subscription);
        let mut events = EventLog::by(|| subscription.take_event());
        publish_set(&group, &publisher, &[1, 2, 3, 4]);
        harness.wait_until("counted", || subscription.counts().incomplete_sets == 1);
        assert!(events.any(|e| matches!(e, EndpointEvent::SampleLost { total: 4, .. })));
        publish_set(&group, &publisher, &[5, 6, 7]);
        assert_eq!(next(&subscription), 5);
        assert_eq!(taken(&subscription), [6, 7]);
    }
}

pub fn a_full_history_drops_the_oldest_set_as_a_whole(harness: &Harness) {
    let (group, publisher, subscription) = pair(
        harness,
        coherent(TOPIC),
        &QosProfile::default().keep_last(5),
    );
    publish_set(&group, &publisher, &[1, 2]);
    publish_set(&group, &publisher, &[3, 4]);
    publish_set(&group, &publisher, &[5, 6]);
    harness.wait_until("the third set", || subscription.counts().received == 6);
    assert_eq!(next(&subscription), 3);
    // A set that has been taken in part is taken as a whole.
    publish_set(&group, &publisher, &[7, 8, 9, 10, 11]);
    harness.wait_until("the large set", || subscription.counts().received == 11);
    assert_eq!(taken(&subscription), [4, 7, 8, 9, 10, 11]);
    assert_eq!(subscription.counts().overwritten, 4);
    assert_eq!(subscription.counts().incomplete_sets, 0);
}

pub fn a_late_joiner_gets_whole_sets_or_none(harness: &Harness) {
    let latched = QosProfile::default().keep_last(5).transient_local();
    for scope in [TOPIC, GROUP] {
        let group = group(harness, coherent(scope));
        let publisher = publisher(&group, topic_of(scope), &latched);
        publish_set(&group, &publisher, &[1, 2, 3]);
        publish_set(&group, &publisher, &[4, 5, 6]);
        let qos = QosProfile {
            presentation: coherent(scope),
            ..latched.clone()
        };
        let late = subscription(harness, topic_of(scope), &qos);
        matched(&publisher, &late);
        assert_eq!(next(&late), 4, "of the first set the publisher keeps two");
        assert_eq!(taken(&late), [5, 6]);
        assert_eq!(late.counts().incomplete_sets, 1);
    }
}

pub fn a_reader_matched_within_a_set_gets_the_next_one(harness: &Harness) {
    for scope in [TOPIC, GROUP] {
        let group = group(harness, coherent(scope));
        let publisher = publisher(&group, topic_of(scope), &QosProfile::default());
        let changes = group.begin_coherent_changes().unwrap();
        publisher.publish(&text(1)).unwrap();
        let qos = requesting(coherent(scope));
        let subscription = subscription(harness, topic_of(scope), &qos);
        matched(&publisher, &subscription);
        publisher.publish(&text(2)).unwrap();
        changes.end();
        publish_set(&group, &publisher, &[3, 4]);
        assert_eq!(next(&subscription), 3);
        assert_eq!(taken(&subscription), [4]);
        assert_eq!(subscription.counts().incomplete_sets, 1);
    }
}

pub fn a_publisher_dropped_within_a_set_leaves_at_its_end(harness: &Harness) {
    let (group, publisher, subscription) = pair(harness, coherent(GROUP), &QosProfile::default());
    let changes = group.begin_coherent_changes().unwrap();
    publisher.publish(&text(1)).unwrap();
    publisher.publish(&text(2)).unwrap();
    drop(publisher);
    stays_empty(harness, &subscription);
    assert_eq!(subscription.matched_count(), 1);
    drop(changes);
    assert_eq!(next(&subscription), 1);
    assert_eq!(taken(&subscription), [2]);
    harness.wait_until("it leaves", || subscription.matched_count() == 0);
}

pub fn a_slow_keep_all_reader_blocks_coherent_writers_and_gets_every_set(harness: &Harness) {
    let mut qos = QosProfile::default().keep_all();
    qos.resource_limits.max_samples = Some(8);
    qos.max_blocking_time = Some(TIMEOUT);
    let (group, publisher, subscription) = pair(harness, coherent(TOPIC), &qos);
    let writing = || {
        for n in 0..50 {
            publish_set(&group, &publisher, &[3 * n, 3 * n + 1, 3 * n + 2]);
        }
    };
    harness.run_concurrently(writing, || {
        for n in 0..150 {
            if n % 30 == 0 {
                harness.poll_for(Duration::from_millis(20), || false);
            }
            assert_eq!(next(&subscription), n);
        }
    });
    assert_eq!(subscription.counts().incomplete_sets, 0);
}

pub fn invalid_group_operations_are_errors(harness: &Harness) {
    let plain = group(harness, Presentation::default());
    assert_eq!(
        plain.begin_coherent_changes().err(),
        Some(GroupError::NotCoherent)
    );
    let scope = Presentation {
        access_scope: 3,
        ..Presentation::default()
    };
    let error = PublisherGroup::new(&harness.publishing, scope).unwrap_err();
    assert!(error.to_string().contains("access scope 3"), "{error}");
    let group = group(harness, coherent(GROUP));
    let changes = group.begin_coherent_changes().unwrap();
    let refused = group
        .create_publisher::<Text>("topic".keep_last(10))
        .unwrap_err();
    let open = EndpointError::Group(GroupError::SetOpen);
    assert!(
        matches!(&refused, CreateError::Endpoint { source, .. } if *source == open),
        "{refused}"
    );
    drop(changes);
    let publisher = publisher(&group, "topic", &QosProfile::default());
    assert_eq!(publisher.qos().presentation, coherent(GROUP));
    // An empty set delivers nothing.
    let subscription = harness.subscription(&requesting(coherent(GROUP)));
    matched(&publisher, &subscription);
    drop(group.begin_coherent_changes().unwrap());
    publisher.publish(&text(1)).unwrap();
    assert_eq!(next(&subscription), 1);
}

fn ordered() -> Presentation {
    Presentation {
        access_scope: GROUP,
        coherent: false,
        ordered: true,
    }
}

pub fn the_order_of_a_group_holds_across_its_publishers(harness: &Harness) {
    let group = group(harness, ordered());
    let qos = QosProfile::default().keep_last(200);
    let one = publisher(&group, "topic", &qos);
    let two = publisher(&group, "topic", &qos);
    // This one has no subscription, so its sequence numbers are missing everywhere.
    let aside = publisher(&group, "aside", &qos);
    let subscription = harness.subscription(&QosProfile {
        presentation: ordered(),
        ..qos.clone()
    });
    matched(&one, &subscription);
    matched(&two, &subscription);
    assert!(subscription.wait_for_matched(2, TIMEOUT));
    for n in 0..100 {
        let publisher = if n % 3 == 0 { &one } else { &two };
        publisher.publish(&text(n)).unwrap();
        if n % 7 == 0 {
            aside.publish(&text(1000)).unwrap();
        }
    }
    let got: Vec<usize> = (0..100).map(|_| next(&subscription)).collect();
    assert_eq!(got, (0..100).collect::<Vec<_>>());
    assert_eq!(subscription.counts().late, 0);
}

pub fn a_silent_publisher_of_an_ordered_group_delays_no_reader(harness: &Harness) {
    let group = group(harness, ordered());
    let qos = QosProfile::default();
    let [talking, silent, aside] =
        ["topic", "topic", "aside"].map(|topic| publisher(&group, topic, &qos));
    let subscription = harness.subscription(&requesting(ordered()));
    matched(&talking, &subscription);
    matched(&silent, &subscription);
    assert!(subscription.wait_for_matched(2, TIMEOUT));
    for n in 0..5 {
        aside.publish(&text(1000)).unwrap();
        talking.publish(&text(n)).unwrap();
        assert_eq!(next(&subscription), n);
    }
    drop(silent);
    aside.publish(&text(1000)).unwrap();
    talking.publish(&text(5)).unwrap();
    assert_eq!(next(&subscription), 5);
}
