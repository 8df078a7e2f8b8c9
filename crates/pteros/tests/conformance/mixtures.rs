//! Several policies at a time on one topic: each keeps its promise beside the
//! others.

use std::time::Duration;

use pteros::interfaces::dds_shapes::msg::ShapeType as Shape;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::msg::message::Message;
use pteros::prelude::*;
use pteros::qos::{
    DurabilityService, History, Ownership, Presentation, Representation, ResourceLimits,
};
use pteros::{InstanceState as State, PublisherOptions, SubscriptionOptions};

use crate::instances::{Seen, at, ended, publisher, seen, shape, subscription};
use crate::stage::{PATIENCE, SLOW, Stage, text};

const TOPIC_SETS: Presentation = Presentation {
    access_scope: 1,
    coherent: true,
    ordered: false,
};

fn filtered(stage: &Stage, qos: &QosProfile, expression: &str) -> Subscription<Shape> {
    let options = SubscriptionOptions::new(qos).content_filter(expression, Vec::<String>::new());
    let node = &stage.subscribing;
    node.create_subscription_with("shapes", options).unwrap()
}

fn matched(publisher: &Publisher<Shape>, subscription: &Subscription<Shape>) {
    assert!(publisher.wait_for_matched(1, PATIENCE));
    assert!(subscription.wait_for_matched(1, PATIENCE));
}

/// All that comes until `last` does.
fn up_to(stage: &Stage, subscription: &Subscription<Shape>, last: &Seen) -> Vec<Seen> {
    let mut all = Vec::new();
    while all.last() != Some(last) {
        all.extend(seen(stage, subscription, 1));
    }
    all
}

/// Who cannot read keys hears samples alone, whatever way they come, and ends
/// of instances push none out of its queue.
pub fn who_reads_no_keys_hears_no_ends(stage: &Stage) {
    let qos = QosProfile::default().keep_last(1);
    let publisher = publisher(stage, &QosProfile::default());
    let name = Shape::dds_type_name();
    let raw = stage
        .subscribing
        .create_raw_subscription("shapes", &name, None, SubscriptionOptions::new(&qos))
        .unwrap();
    let keyed = subscription(stage, &QosProfile::default());
    assert!(publisher.wait_for_matched(2, PATIENCE) && raw.wait_for_matched(1, PATIENCE));
    publisher.publish(&shape("red", 1)).unwrap();
    publisher.dispose(&shape("red", 1)).unwrap();
    let all = seen(stage, &keyed, 2);
    assert_eq!(all, [at("red", 1), ended("red", State::Disposed)]);
    stage.until("received", || raw.counts().received > 0);
    assert!(matches!(raw.take_change(), Some(pteros::Change::Sample(_))));
    assert!(raw.take_change().is_none());
    let counts = raw.counts();
    assert_eq!((counts.received, counts.overwritten), (1, 0));
}

/// A coherent set of a keyed topic, part of which a filter keeps out, sent by
/// an asynchronous publisher that outlives nothing.
pub fn a_filtered_set_of_instances_is_whole_at_an_asynchronous_pace(stage: &Stage) {
    let qos = QosProfile::default().keep_last(20);
    let group = stage.publishing.create_publisher_group(TOPIC_SETS).unwrap();
    let options = PublisherOptions::new(&qos).asynchronous(SLOW);
    let publisher: Publisher<Shape> = group.create_publisher_with("shapes", options).unwrap();
    let wants = QosProfile {
        presentation: TOPIC_SETS,
        ..qos
    };
    let subscription = filtered(stage, &wants, "x >= 10");
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
        let all = up_to(stage, &subscription, &last);
        let expected = if round == 0 { 5 } else { 7 };
        assert_eq!(all.len(), expected, "{all:?}");
        assert_eq!(subscription.counts().incomplete_sets, 0);
        assert_eq!(subscription.counts().lost, 0);
    }
}

/// A publisher that keeps everything waits for those that want a message.
pub fn nobody_waits_for_room_where_a_message_is_not_wanted(stage: &Stage) {
    let qos = QosProfile::default()
        .keep_all()
        .resource_limits(ResourceLimits {
            max_samples: Some(2),
            max_instances: Some(1),
            max_samples_per_instance: Some(2),
        });
    let publisher = stage.publisher(&QosProfile::default().keep_all());
    let options = SubscriptionOptions::new(&qos).content_filter("data < '2'", Vec::<String>::new());
    let subscription: Subscription<Text> = stage
        .subscribing
        .create_subscription_with("topic", options)
        .unwrap();
    assert!(publisher.wait_for_matched(1, PATIENCE));
    assert!(subscription.wait_for_matched(1, PATIENCE));
    for n in 0..2 {
        publisher.publish(&text(n)).unwrap();
    }
    stage.until("full", || subscription.counts().received == 2);
    // Nobody takes them: the subscription is full, and wants none of these.
    for n in 2..9 {
        publisher.publish(&text(n)).unwrap();
    }
    assert_eq!(subscription.take().unwrap().data, "0");
}

/// What a restarted publisher brings along is filtered, by instance, for late
/// joiners too; what had ended is told so.
pub fn stored_instances_are_filtered_for_late_joiners(stage: &Stage) {
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
        let options = PublisherOptions::new(&qos).store("mixture");
        let node = &stage.publishing;
        node.create_publisher_with::<Shape>("shapes", options)
            .unwrap()
    };
    let first = lives();
    for x in 0..4 {
        first.publish(&shape("red", x)).unwrap();
        first.publish(&shape("blue", x)).unwrap();
    }
    first.dispose(&shape("blue", 0)).unwrap();
    assert!(first.wait_until_stored(PATIENCE));
    drop(first);
    let second = lives();
    let late = filtered(stage, &qos, "x <> 3");
    matched(&second, &late);
    second.publish(&shape("green", 9)).unwrap();
    let all = up_to(stage, &late, &at("green", 9));
    assert_eq!(
        all,
        [at("red", 2), ended("blue", State::Disposed), at("green", 9),]
    );
}

/// Two owners of instances, each with sets, one of them with a filter's
/// blessing only.
pub fn the_owner_of_an_instance_is_heard_in_whole_sets(stage: &Stage) {
    let qos = |strength| QosProfile {
        ownership: Ownership::Exclusive,
        ownership_strength: strength,
        ..QosProfile::default().keep_last(20)
    };
    let make = |strength| {
        let group = stage.publishing.create_publisher_group(TOPIC_SETS).unwrap();
        let publisher: Publisher<Shape> = group.create_publisher("shapes", qos(strength)).unwrap();
        (group, publisher)
    };
    let (weak, strong) = (make(1), make(2));
    let subscription = subscription(
        stage,
        &QosProfile {
            presentation: TOPIC_SETS,
            ..qos(0)
        },
    );
    assert!(subscription.wait_for_matched(2, PATIENCE));
    matched(&weak.1, &subscription);
    matched(&strong.1, &subscription);
    let write =
        |(group, publisher): &(pteros::PublisherGroup, Publisher<Shape>), colors: &[&str], x| {
            let set = group.begin_coherent_changes().unwrap();
            for color in colors {
                publisher.publish(&shape(color, x)).unwrap();
            }
            set.end();
        };
    write(&weak, &["red", "blue"], 1);
    assert_eq!(seen(stage, &subscription, 2), [at("red", 1), at("blue", 1)]);
    write(&strong, &["red"], 2);
    assert_eq!(seen(stage, &subscription, 1), [at("red", 2)]);
    write(&weak, &["red", "blue"], 3);
    assert_eq!(seen(stage, &subscription, 1), [at("blue", 3)]);
    drop(strong);
    let last = at("blue", 4);
    stage.until("the strong one is gone", || {
        weak.1.matched_count() == 1 && subscription.matched_count() == 1
    });
    write(&weak, &["red", "blue"], 4);
    let all = up_to(stage, &subscription, &last);
    assert_eq!(all[all.len() - 2..], [at("red", 4), at("blue", 4)]);
}

/// XCDR2 written by hand: instances, filters and ends are told as of XCDR1.
pub fn a_dynamic_publisher_of_xcdr2_is_filtered_by_instance(stage: &Stage) {
    let qos = QosProfile::default().keep_last(20);
    let ty = DynamicType::new(Shape::type_description()).unwrap();
    let offered = qos.clone().representation(Representation::Xcdr2);
    let publisher = stage
        .publishing
        .create_dynamic_publisher("shapes", &ty, &offered)
        .unwrap();
    let subscription = filtered(stage, &qos, "color = 'red' OR x > 5");
    assert!(publisher.wait_for_matched(1, PATIENCE));
    assert!(subscription.wait_for_matched(1, PATIENCE));
    let message = |color, x| DynamicMessage::from_message(&ty, &shape(color, x)).unwrap();
    for x in [1, 6] {
        publisher.publish(&message("red", x)).unwrap();
        publisher.publish(&message("blue", x)).unwrap();
    }
    publisher.dispose(&message("blue", 0)).unwrap();
    publisher.unregister(&message("red", 0)).unwrap();
    assert_eq!(
        seen(stage, &subscription, 5),
        [
            at("red", 1),
            at("red", 6),
            at("blue", 6),
            ended("blue", State::Disposed),
            ended("red", State::Disposed),
        ]
    );
}

/// Held back to share a datagram, and yet each instance's last sample comes
/// before its end, though its distance in time is too short.
pub fn a_batch_of_instances_keeps_its_order_under_a_time_filter(stage: &Stage) {
    let offered = QosProfile {
        latency_budget: Duration::from_millis(20),
        ..QosProfile::default().keep_last(20)
    };
    let requested = QosProfile {
        time_based_filter: Duration::from_secs(100),
        latency_budget: offered.latency_budget,
        ..QosProfile::default().keep_last(20)
    };
    let publisher = publisher(stage, &offered);
    let subscription = subscription(stage, &requested);
    matched(&publisher, &subscription);
    for x in 0..3 {
        publisher.publish(&shape("red", x)).unwrap();
        publisher.publish(&shape("blue", x)).unwrap();
    }
    publisher.dispose(&shape("red", 0)).unwrap();
    assert_eq!(
        seen(stage, &subscription, 4),
        [
            at("red", 0),
            at("blue", 0),
            at("red", 2),
            ended("red", State::Disposed),
        ]
    );
}

/// A late joiner gets kept sets without what its filter keeps out.
pub fn kept_sets_are_filtered_for_late_joiners(stage: &Stage) {
    let qos = QosProfile::default().keep_last(20).transient_local();
    let group = stage.publishing.create_publisher_group(TOPIC_SETS).unwrap();
    let publisher: Publisher<Shape> = group.create_publisher("shapes", &qos).unwrap();
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
    let late = filtered(stage, &wants, "x BETWEEN 2 AND 4 OR x = 7");
    matched(&publisher, &late);
    write(6);
    let all = up_to(stage, &late, &at("red", 7));
    assert_eq!(all, [2, 3, 4, 7].map(|x| at("red", x)));
    let counts = late.counts();
    assert_eq!((counts.incomplete_sets, counts.lost), (0, 0));
}
