//! Coherent sets: seen whole or not at all.

use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::qos::{Presentation, ResourceLimits};
use pteros::{CreateError, EndpointError, EndpointEvent, GroupError, PublisherGroup};

use crate::stage::{PATIENCE, Seen, Stage, text};

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

fn group(stage: &Stage, presentation: Presentation) -> PublisherGroup {
    stage
        .publishing
        .create_publisher_group(presentation)
        .unwrap()
}

fn publisher(group: &PublisherGroup, topic: &str, qos: &QosProfile) -> Publisher<Text> {
    group.create_publisher(topic, qos).unwrap()
}

fn subscription(stage: &Stage, topic: &str, qos: &QosProfile) -> Subscription<Text> {
    let node = &stage.subscribing;
    node.create_polled_subscription(topic, qos).unwrap()
}

/// A name of its own, so that endpoints of an earlier round that are just going
/// are not matched.
fn topic_of(scope: u8) -> &'static str {
    ["of_instance", "of_topic", "of_group"][usize::from(scope)]
}

/// A group's publisher and a subscription, matched.
fn pair(
    stage: &Stage,
    presentation: Presentation,
    qos: &QosProfile,
) -> (PublisherGroup, Publisher<Text>, Subscription<Text>) {
    let group = group(stage, presentation);
    let topic = topic_of(presentation.access_scope);
    let publisher = publisher(&group, topic, qos);
    let qos = QosProfile {
        presentation,
        ..qos.clone()
    };
    let subscription = subscription(stage, topic, &qos);
    matched(&publisher, &subscription);
    (group, publisher, subscription)
}

fn matched(publisher: &Publisher<Text>, subscription: &Subscription<Text>) {
    assert!(publisher.wait_for_matched(1, PATIENCE));
    assert!(subscription.wait_for_matched(1, PATIENCE));
}

fn publish_set(group: &PublisherGroup, publisher: &Publisher<Text>, numbers: &[usize]) {
    let changes = group.begin_coherent_changes().unwrap();
    for n in numbers {
        publisher.publish(&text(*n)).unwrap();
    }
    changes.end();
}

fn next(subscription: &Subscription<Text>) -> usize {
    let sample = subscription.take_timeout(PATIENCE).expect("a sample");
    sample.data.parse().unwrap()
}

/// What is there now.
fn taken(subscription: &Subscription<Text>) -> Vec<usize> {
    let all = std::iter::from_fn(|| subscription.take());
    all.map(|sample| sample.data.parse().unwrap()).collect()
}

/// Nothing comes, though there was time for it.
fn stays_empty(stage: &Stage, subscription: &Subscription<Text>) {
    let pause = Duration::from_millis(150);
    assert!(!stage.watch(pause, || subscription.take().is_some()));
}

pub fn a_set_is_seen_after_its_end_and_then_at_once(stage: &Stage) {
    for (round, scope) in [INSTANCE, TOPIC, GROUP].into_iter().enumerate() {
        let (group, publisher, subscription) = pair(stage, coherent(scope), &QosProfile::default());
        publisher.publish(&text(0)).unwrap();
        assert_eq!(next(&subscription), 0, "outside of sets nothing waits");
        let changes = group.begin_coherent_changes().unwrap();
        for n in 1..=3 {
            publisher.publish(&text(n)).unwrap();
        }
        stays_empty(stage, &subscription);
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

pub fn a_set_begun_within_another_ends_with_the_outer_one(stage: &Stage) {
    let (group, publisher, subscription) = pair(stage, coherent(TOPIC), &QosProfile::default());
    let outer = group.begin_coherent_changes().unwrap();
    publish_set(&group, &publisher, &[1]);
    publisher.publish(&text(2)).unwrap();
    stays_empty(stage, &subscription);
    assert!(group.is_changing());
    drop(outer);
    assert!(!group.is_changing());
    assert_eq!(next(&subscription), 1);
    assert_eq!(taken(&subscription), [2]);
    // The next set is another one.
    publish_set(&group, &publisher, &[3]);
    assert_eq!(next(&subscription), 3);
}

pub fn a_set_of_a_group_is_whole_over_all_its_topics(stage: &Stage) {
    let group = group(stage, coherent(GROUP));
    let qos = QosProfile::default();
    let [left, right] = ["left", "right"].map(|topic| publisher(&group, topic, &qos));
    let [of_left, of_right] = ["left", "right"].map(|topic| {
        let qos = requesting(coherent(GROUP));
        let node = &stage.subscribing;
        node.create_polled_subscription::<Text>(topic, &qos)
            .unwrap()
    });
    matched(&left, &of_left);
    matched(&right, &of_right);
    for round in 0..3 {
        let changes = group.begin_coherent_changes().unwrap();
        left.publish(&text(10 * round)).unwrap();
        right.publish(&text(10 * round + 1)).unwrap();
        left.publish(&text(10 * round + 2)).unwrap();
        stays_empty(stage, &of_left);
        assert!(of_right.take().is_none());
        changes.end();
        assert_eq!(next(&of_left), 10 * round);
        assert_eq!(taken(&of_left), [10 * round + 2]);
        assert_eq!(next(&of_right), 10 * round + 1);
    }
    // One of them alone is a set too.
    publish_set(&group, &right, &[100]);
    assert_eq!(next(&of_right), 100);
    left.publish(&text(101)).unwrap();
    assert_eq!(next(&of_left), 101);
}

pub fn who_asks_for_no_coherence_gets_samples_as_they_come(stage: &Stage) {
    let group = group(stage, coherent(GROUP));
    let publisher = publisher(&group, "topic", &QosProfile::default());
    let plain = stage.subscription(&QosProfile::default());
    let of_topic = stage.subscription(&requesting(coherent(TOPIC)));
    assert!(publisher.wait_for_matched(2, PATIENCE));
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
    stays_empty(stage, &plain);
    assert_eq!(plain.counts().lost, 0, "ends of sets are no samples");
    assert_eq!(plain.counts().received, 3);
}

pub fn a_set_that_the_queue_cannot_hold_is_dropped_whole_and_counted(stage: &Stage) {
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
        let group = group(stage, coherent(TOPIC));
        let publisher = publisher(&group, topic, &QosProfile::default().keep_last(20));
        let qos = QosProfile {
            presentation: coherent(TOPIC),
            ..history
        };
        let subscription = subscription(stage, topic, &qos);
        matched(&publisher, &subscription);
        let mut events = Seen::by(|| subscription.take_event());
        publish_set(&group, &publisher, &[1, 2, 3, 4]);
        stage.until("counted", || subscription.counts().incomplete_sets == 1);
        assert!(events.any(|e| matches!(e, EndpointEvent::SampleLost { total: 4, .. })));
        publish_set(&group, &publisher, &[5, 6, 7]);
        assert_eq!(next(&subscription), 5);
        assert_eq!(taken(&subscription), [6, 7]);
    }
}

pub fn when_sets_need_room_the_oldest_goes_as_a_whole(stage: &Stage) {
    let (group, publisher, subscription) =
        pair(stage, coherent(TOPIC), &QosProfile::default().keep_last(5));
    publish_set(&group, &publisher, &[1, 2]);
    publish_set(&group, &publisher, &[3, 4]);
    publish_set(&group, &publisher, &[5, 6]);
    stage.until("the third set", || subscription.counts().received == 6);
    assert_eq!(next(&subscription), 3);
    // What has begun to be taken is taken whole.
    publish_set(&group, &publisher, &[7, 8, 9, 10, 11]);
    stage.until("the large set", || subscription.counts().received == 11);
    assert_eq!(taken(&subscription), [4, 7, 8, 9, 10, 11]);
    assert_eq!(subscription.counts().overwritten, 4);
    assert_eq!(subscription.counts().incomplete_sets, 0);
}

pub fn a_late_joiner_gets_whole_sets_or_none(stage: &Stage) {
    let latched = QosProfile::default().keep_last(5).transient_local();
    for scope in [TOPIC, GROUP] {
        let group = group(stage, coherent(scope));
        let publisher = publisher(&group, topic_of(scope), &latched);
        publish_set(&group, &publisher, &[1, 2, 3]);
        publish_set(&group, &publisher, &[4, 5, 6]);
        let qos = QosProfile {
            presentation: coherent(scope),
            ..latched.clone()
        };
        let late = subscription(stage, topic_of(scope), &qos);
        matched(&publisher, &late);
        assert_eq!(next(&late), 4, "of the first set the publisher keeps two");
        assert_eq!(taken(&late), [5, 6]);
        assert_eq!(late.counts().incomplete_sets, 1);
    }
}

pub fn who_comes_within_a_set_sees_the_next_one(stage: &Stage) {
    for scope in [TOPIC, GROUP] {
        let group = group(stage, coherent(scope));
        let publisher = publisher(&group, topic_of(scope), &QosProfile::default());
        let changes = group.begin_coherent_changes().unwrap();
        publisher.publish(&text(1)).unwrap();
        let qos = requesting(coherent(scope));
        let subscription = subscription(stage, topic_of(scope), &qos);
        matched(&publisher, &subscription);
        publisher.publish(&text(2)).unwrap();
        changes.end();
        publish_set(&group, &publisher, &[3, 4]);
        assert_eq!(next(&subscription), 3);
        assert_eq!(taken(&subscription), [4]);
        assert_eq!(subscription.counts().incomplete_sets, 1);
    }
}

pub fn a_publisher_dropped_within_a_set_leaves_after_it(stage: &Stage) {
    let (group, publisher, subscription) = pair(stage, coherent(GROUP), &QosProfile::default());
    let changes = group.begin_coherent_changes().unwrap();
    publisher.publish(&text(1)).unwrap();
    publisher.publish(&text(2)).unwrap();
    drop(publisher);
    stays_empty(stage, &subscription);
    assert_eq!(subscription.matched_count(), 1);
    drop(changes);
    assert_eq!(next(&subscription), 1);
    assert_eq!(taken(&subscription), [2]);
    stage.until("it leaves", || subscription.matched_count() == 0);
}

pub fn a_slow_reader_holds_coherent_writers_back_and_gets_every_set(stage: &Stage) {
    let mut qos = QosProfile::default().keep_all();
    qos.resource_limits.max_samples = Some(8);
    qos.max_blocking_time = Some(PATIENCE);
    let (group, publisher, subscription) = pair(stage, coherent(TOPIC), &qos);
    let writing = || {
        for n in 0..50 {
            publish_set(&group, &publisher, &[3 * n, 3 * n + 1, 3 * n + 2]);
        }
    };
    stage.beside(writing, || {
        for n in 0..150 {
            if n % 30 == 0 {
                stage.watch(Duration::from_millis(20), || false);
            }
            assert_eq!(next(&subscription), n);
        }
    });
    assert_eq!(subscription.counts().incomplete_sets, 0);
}

pub fn what_a_group_cannot_do_is_said(stage: &Stage) {
    let plain = group(stage, Presentation::default());
    assert_eq!(
        plain.begin_coherent_changes().err(),
        Some(GroupError::NotCoherent)
    );
    let scope = Presentation {
        access_scope: 3,
        ..Presentation::default()
    };
    let error = stage.publishing.create_publisher_group(scope).unwrap_err();
    assert!(error.to_string().contains("access scope 3"), "{error}");
    let group = group(stage, coherent(GROUP));
    let changes = group.begin_coherent_changes().unwrap();
    let refused = group.create_publisher::<Text>("topic", 10).unwrap_err();
    let open = EndpointError::Group(GroupError::SetOpen);
    assert!(
        matches!(&refused, CreateError::Endpoint { source, .. } if *source == open),
        "{refused}"
    );
    drop(changes);
    let publisher = publisher(&group, "topic", &QosProfile::default());
    assert_eq!(publisher.qos().presentation, coherent(GROUP));
    // An empty set is nothing to anybody.
    let subscription = stage.subscription(&requesting(coherent(GROUP)));
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

pub fn the_order_of_a_group_holds_across_its_publishers(stage: &Stage) {
    let group = group(stage, ordered());
    let qos = QosProfile::default().keep_last(200);
    let one = publisher(&group, "topic", &qos);
    let two = publisher(&group, "topic", &qos);
    // Nobody listens to this one, so its numbers are missing everywhere.
    let aside = publisher(&group, "aside", &qos);
    let subscription = stage.subscription(&QosProfile {
        presentation: ordered(),
        ..qos.clone()
    });
    matched(&one, &subscription);
    matched(&two, &subscription);
    assert!(subscription.wait_for_matched(2, PATIENCE));
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

pub fn a_silent_publisher_of_an_ordered_group_holds_nobody_up(stage: &Stage) {
    let group = group(stage, ordered());
    let qos = QosProfile::default();
    let [talking, silent, aside] =
        ["topic", "topic", "aside"].map(|topic| publisher(&group, topic, &qos));
    let subscription = stage.subscription(&requesting(ordered()));
    matched(&talking, &subscription);
    matched(&silent, &subscription);
    assert!(subscription.wait_for_matched(2, PATIENCE));
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
