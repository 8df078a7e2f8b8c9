//! Policy combinations: several policies on one topic, each in force.

use pteros::subscription::SerializedMessage;
use std::time::Duration;

use pteros::interfaces::dds_shapes::msg::ShapeType as Shape;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::msg::message::Message;
use pteros::prelude::*;
use pteros::publisher::PublisherGroup;
use pteros::qos::{
    DurabilityService, History, Ownership, Presentation, Representation, ResourceLimits,
};
use pteros::subscription::SerializedType;
use pteros::{PublisherOptions, SubscriptionOptions, instance::InstanceState as State};

use crate::conformance::harness::{Harness, SLOW_CONTROLLER, TIMEOUT, text};
use crate::conformance::instances::{
    ObservedChange, at, ended, observed_changes, publisher, shape, subscription,
};

const TOPIC_SETS: Presentation = Presentation {
    access_scope: 1,
    coherent: true,
    ordered: false,
};

fn filtered(harness: &Harness, qos: &QosProfile, expression: &str) -> Subscription<Shape> {
    let options = SubscriptionOptions::new("shapes".qos(qos))
        .content_filter(expression, Vec::<String>::new());
    let node = &harness.subscribing;
    node.create_polled_subscription(options).unwrap()
}

fn matched(publisher: &Publisher<Shape>, subscription: &Subscription<Shape>) {
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    assert!(subscription.wait_for_matched(1, TIMEOUT));
}

/// All samples up to `last`.
fn up_to(
    harness: &Harness,
    subscription: &Subscription<Shape>,
    last: &ObservedChange,
) -> Vec<ObservedChange> {
    let mut all = Vec::new();
    while all.last() != Some(last) {
        all.extend(observed_changes(harness, subscription, 1));
    }
    all
}

/// A reader without key reader gets samples only, by every path, and ends of
/// instances displace none from its queue.
pub fn a_raw_reader_without_key_reader_gets_no_instance_ends(harness: &Harness) {
    let qos = QosProfile::default().keep_last(1);
    let publisher = publisher(harness, &QosProfile::default());
    let name = Shape::dds_type_name();
    let raw = harness
        .subscribing
        .create_polled_subscription::<SerializedMessage>(SubscriptionOptions::of_type(
            &SerializedType::new(&name, None),
            "shapes".qos(&qos),
        ))
        .unwrap();
    let keyed = subscription(harness, &QosProfile::default());
    assert!(publisher.wait_for_matched(2, TIMEOUT) && raw.wait_for_matched(1, TIMEOUT));
    publisher.publish(&shape("red", 1)).unwrap();
    publisher.dispose(&shape("red", 1)).unwrap();
    let all = observed_changes(harness, &keyed, 2);
    assert_eq!(all, [at("red", 1), ended("red", State::Disposed)]);
    harness.wait_until("received", || raw.counts().received > 0);
    assert!(matches!(
        raw.take_change(),
        Some(pteros::instance::ReceivedChange::Sample(_))
    ));
    assert!(raw.take_change().is_none());
    let counts = raw.counts();
    assert_eq!((counts.received, counts.overwritten), (1, 0));
}

/// A coherent set of a keyed topic, partly filtered out, of an asynchronous
/// publisher that is dropped.
pub fn a_filtered_set_of_instances_is_complete_with_flow_control(harness: &Harness) {
    let qos = QosProfile::default().keep_last(20);
    let group = PublisherGroup::new(&harness.publishing, TOPIC_SETS).unwrap();
    let options = PublisherOptions::new("shapes".qos(&qos)).asynchronous(SLOW_CONTROLLER);
    let publisher: Publisher<Shape> = group.create_publisher(options).unwrap();
    let wants = QosProfile {
        presentation: TOPIC_SETS,
        ..qos
    };
    let subscription = filtered(harness, &wants, "x >= 10");
    matched(&publisher, &subscription);
    for round in 0..3 {
        let set = group.begin_coherent_changes().unwrap();
        for x in 8..12 {
            publisher.publish(&shape("red", x + 10 * round)).unwrap();
            publisher.publish(&shape("blue", x)).unwrap();
        }
        publisher.dispose(&shape("blue", 0)).unwrap();
        assert!(subscription.take_change().is_none());
        set.end();
        let last = ended("blue", State::Disposed);
        let all = up_to(harness, &subscription, &last);
        let expected = if round == 0 { 5 } else { 7 };
        assert_eq!(all.len(), expected, "{all:?}");
        assert_eq!(subscription.counts().incomplete_sets, 0);
        assert_eq!(subscription.counts().lost, 0);
    }
}

/// A KEEP_ALL publisher waits only for readers that want a message.
pub fn a_filtered_out_message_needs_no_room(harness: &Harness) {
    let qos = QosProfile::default()
        .keep_all()
        .resource_limits(ResourceLimits {
            max_samples: Some(2),
            max_instances: Some(1),
            max_samples_per_instance: Some(2),
        });
    let publisher = harness.publisher(&QosProfile::default().keep_all());
    let options = SubscriptionOptions::new("topic".qos(&qos))
        .content_filter("data < '2'", Vec::<String>::new());
    let subscription: Subscription<Text> = harness
        .subscribing
        .create_polled_subscription(options)
        .unwrap();
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    for n in 0..2 {
        publisher.publish(&text(n)).unwrap();
    }
    harness.wait_until("full", || subscription.counts().received == 2);
    // Nobody takes them: the subscription is full, and filters all of these out.
    for n in 2..9 {
        publisher.publish(&text(n)).unwrap();
    }
    assert_eq!(subscription.take().unwrap().data, "0");
}

/// A restarted publisher's stored samples are filtered by instance for late
/// joiners; ended instances are reported as ended.
pub fn stored_instances_are_filtered_for_late_joiners(harness: &Harness) {
    let transient = QosProfile::default().keep_last(2).transient();
    let qos = QosProfile {
        durability_service: Some(DurabilityService {
            cleanup_delay: Some(Duration::from_secs(3_600)),
            history: History::KeepLast(2),
            ..DurabilityService::default()
        }),
        ..transient
    };
    let lives = || {
        let options = PublisherOptions::new("shapes".qos(&qos)).store("mixture");
        let node = &harness.publishing;
        node.create_publisher::<Shape>(options).unwrap()
    };
    let first = lives();
    for x in 0..4 {
        first.publish(&shape("red", x)).unwrap();
        first.publish(&shape("blue", x)).unwrap();
    }
    first.dispose(&shape("blue", 0)).unwrap();
    assert!(first.wait_until_stored(TIMEOUT));
    drop(first);
    let second = lives();
    let late = filtered(harness, &qos, "x <> 3");
    matched(&second, &late);
    second.publish(&shape("green", 9)).unwrap();
    let all = up_to(harness, &late, &at("green", 9));
    assert_eq!(
        all,
        [at("red", 2), ended("blue", State::Disposed), at("green", 9),]
    );
}

/// Two owners of instances, each with coherent sets; the sets of one pass a filter
/// only in part.
pub fn coherent_sets_respect_ownership_per_instance(harness: &Harness) {
    let qos = |strength| QosProfile {
        ownership: Ownership::Exclusive,
        ownership_strength: strength,
        ..QosProfile::default().keep_last(20)
    };
    let make = |strength| {
        let group = PublisherGroup::new(&harness.publishing, TOPIC_SETS).unwrap();
        let publisher: Publisher<Shape> =
            group.create_publisher("shapes".qos(qos(strength))).unwrap();
        (group, publisher)
    };
    let (weak, strong) = (make(1), make(2));
    let subscription = subscription(
        harness,
        &QosProfile {
            presentation: TOPIC_SETS,
            ..qos(0)
        },
    );
    assert!(subscription.wait_for_matched(2, TIMEOUT));
    matched(&weak.1, &subscription);
    matched(&strong.1, &subscription);
    let write = |(group, publisher): &(pteros::publisher::PublisherGroup, Publisher<Shape>),
                 colors: &[&str],
                 x| {
        let set = group.begin_coherent_changes().unwrap();
        for color in colors {
            publisher.publish(&shape(color, x)).unwrap();
        }
        set.end();
    };
    write(&weak, &["red", "blue"], 1);
    assert_eq!(
        observed_changes(harness, &subscription, 2),
        [at("red", 1), at("blue", 1)]
    );
    write(&strong, &["red"], 2);
    assert_eq!(observed_changes(harness, &subscription, 1), [at("red", 2)]);
    write(&weak, &["red", "blue"], 3);
    assert_eq!(observed_changes(harness, &subscription, 1), [at("blue", 3)]);
    drop(strong);
    let last = at("blue", 4);
    harness.wait_until("the strong one is gone", || {
        weak.1.matched_count() == 1 && subscription.matched_count() == 1
    });
    write(&weak, &["red", "blue"], 4);
    let all = up_to(harness, &subscription, &last);
    assert_eq!(all[all.len() - 2..], [at("red", 4), at("blue", 4)]);
}

/// Hand-encoded XCDR2: instances, filters and ends work as with XCDR1.
pub fn a_dynamic_publisher_of_xcdr2_is_filtered_by_instance(harness: &Harness) {
    let qos = QosProfile::default().keep_last(20);
    let ty = DynamicType::new(Shape::type_description()).unwrap();
    let offered = qos.clone().representation(Representation::Xcdr2);
    let publisher = harness
        .publishing
        .create_publisher::<DynamicMessage>(PublisherOptions::of_type(&ty, "shapes".qos(&offered)))
        .unwrap();
    let subscription = filtered(harness, &qos, "color = 'red' OR x > 5");
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    let message = |color, x| DynamicMessage::from_message(&ty, &shape(color, x)).unwrap();
    for x in [1, 6] {
        publisher.publish(&message("red", x)).unwrap();
        publisher.publish(&message("blue", x)).unwrap();
    }
    publisher.dispose(&message("blue", 0)).unwrap();
    publisher.unregister(&message("red", 0)).unwrap();
    assert_eq!(
        observed_changes(harness, &subscription, 5),
        [
            at("red", 1),
            at("red", 6),
            at("blue", 6),
            ended("blue", State::Disposed),
            ended("red", State::Disposed),
        ]
    );
}

/// Hand-encoded XCDR2: instances, filters and ends work as with XCDR1.
pub fn a_batch_of_instances_keeps_its_order_under_a_time_filter(harness: &Harness) {
    let offered = QosProfile {
        latency_budget: Duration::from_millis(20),
        ..QosProfile::default().keep_last(20)
    };
    let requested = QosProfile {
        time_based_filter: Duration::from_secs(100),
        latency_budget: offered.latency_budget,
        ..QosProfile::default().keep_last(20)
    };
    let publisher = publisher(harness, &offered);
    let subscription = subscription(harness, &requested);
    matched(&publisher, &subscription);
    for x in 0..3 {
        publisher.publish(&shape("red", x)).unwrap();
        publisher.publish(&shape("blue", x)).unwrap();
    }
    publisher.dispose(&shape("red", 0)).unwrap();
    assert_eq!(
        observed_changes(harness, &subscription, 4),
        [
            at("red", 0),
            at("blue", 0),
            at("red", 2),
            ended("red", State::Disposed),
        ]
    );
}

/// Batched within a latency budget: each instance's last sample still precedes its
/// end, though the time-based filter would suppress it.
pub fn kept_coherent_sets_are_filtered_for_late_joiners(harness: &Harness) {
    let qos = QosProfile::default().keep_last(20).transient_local();
    let group = PublisherGroup::new(&harness.publishing, TOPIC_SETS).unwrap();
    let publisher: Publisher<Shape> = group.create_publisher("shapes".qos(&qos)).unwrap();
    let wants = QosProfile {
        presentation: TOPIC_SETS,
        ..qos
    };
    let write = |first| {
        let set = group.begin_coherent_changes().unwrap();
        for x in first..first + 3 {
            publisher.publish(&shape("red", x)).unwrap();
        }
        set.end();
    };
    write(0);
    write(3);
    let late = filtered(harness, &wants, "x BETWEEN 2 AND 4 OR x = 7");
    matched(&publisher, &late);
    write(6);
    let all = up_to(harness, &late, &at("red", 7));
    assert_eq!(all, [2, 3, 4, 7].map(|x| at("red", x)));
    let counts = late.counts();
    assert_eq!((counts.incomplete_sets, counts.lost), (0, 0));
}
