//! Policies that hold for each instance of a keyed topic by itself, and what
//! becomes of instances that end.

use std::time::{Duration, SystemTime};

use pteros::interfaces::dds_shapes::msg::ShapeType as Shape;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::prelude::*;
use pteros::qos::{LivelinessPolicy, ResourceLimits};
use pteros::{Change, EndpointEvent as Event, InstanceState as State, PublishError};
use pteros::{SubscriptionOptions, ViewState};

use crate::instances::{
    Pair, Seen as Saw, at, ended, next, pair_of, publisher, seen, shape, subscription,
};
use crate::stage::{PATIENCE, Seen, Stage};

fn same(stage: &Stage, qos: &QosProfile) -> (Publisher<Shape>, Subscription<Shape>) {
    let Pair {
        publisher,
        subscription,
    } = pair_of(stage, qos, qos);
    (publisher, subscription)
}

fn limits(instances: Option<u32>, per_instance: Option<u32>) -> ResourceLimits {
    ResourceLimits {
        max_samples: None,
        max_instances: instances,
        max_samples_per_instance: per_instance,
    }
}

pub fn keep_last_keeps_the_last_of_each_instance(stage: &Stage) {
    let (publisher, subscription) = same(stage, &QosProfile::default().keep_last(2));
    for n in 1..=5 {
        publisher.publish(&shape("red", n)).unwrap();
        if n <= 3 {
            publisher.publish(&shape("blue", n)).unwrap();
        }
    }
    stage.until("received", || subscription.counts().received == 8);
    assert_eq!(subscription.counts().overwritten, 4);
    let expected = [at("blue", 2), at("blue", 3), at("red", 4), at("red", 5)];
    let mut all = seen(stage, &subscription, 4);
    all.sort_by_key(|(color, x)| (color.clone(), x.ok()));
    assert_eq!(all, expected);
}

pub fn an_instance_without_room_holds_back_its_own_samples_alone(stage: &Stage) {
    let qos = QosProfile::default()
        .keep_all()
        .max_blocking_time(Duration::from_millis(20))
        .resource_limits(limits(None, Some(2)));
    let (publisher, subscription) = same(stage, &qos);
    let mut accepted = 0;
    let refused = loop {
        match publisher.publish(&shape("red", accepted)) {
            Ok(()) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 50, "nobody takes, yet all is accepted");
    };
    assert!(
        matches!(refused, PublishError::TimedOut { .. }),
        "{refused}"
    );
    publisher.publish(&shape("blue", 0)).unwrap();
    let all = seen(stage, &subscription, 1 + accepted as usize);
    let red = |saw: &&Saw| saw.0 == "red";
    let expected: Vec<Saw> = (0..accepted).map(|n| at("red", n)).collect();
    let found: Vec<Saw> = all.iter().filter(red).cloned().collect();
    assert_eq!(found, expected);
    assert!(all.contains(&at("blue", 0)));
    assert_eq!(subscription.counts().lost, 0);
}

pub fn a_subscription_rejects_instances_beyond_its_limit(stage: &Stage) {
    let few = QosProfile::default().resource_limits(limits(Some(2), None));
    let Pair {
        publisher,
        subscription,
    } = pair_of(stage, &QosProfile::default(), &few);
    for color in ["red", "blue", "green", "red"] {
        publisher.publish(&shape(color, 1)).unwrap();
    }
    let expected = [at("red", 1), at("blue", 1), at("red", 1)];
    assert_eq!(seen(stage, &subscription, 3), expected);
    assert_eq!(subscription.counts().rejected, 1);
    let mut events = Seen::by(|| subscription.take_event());
    assert!(events.any(|e| *e == Event::SampleRejected { total: 1 }));
    // One that has ended makes room for another.
    publisher.dispose(&shape("blue", 0)).unwrap();
    assert_eq!(
        seen(stage, &subscription, 1),
        [ended("blue", State::Disposed)]
    );
    publisher.publish(&shape("green", 2)).unwrap();
    assert_eq!(seen(stage, &subscription, 1), [at("green", 2)]);
}

pub fn a_publisher_writes_no_more_instances_than_its_limit(stage: &Stage) {
    let few = QosProfile::default().resource_limits(limits(Some(2), None));
    let publisher = publisher(stage, &few);
    for color in ["red", "blue"] {
        publisher.publish(&shape(color, 1)).unwrap();
    }
    let refused = PublishError::TooManyInstances {
        topic: "/shapes".into(),
        max: 2,
    };
    assert_eq!(publisher.publish(&shape("green", 1)), Err(refused));
    publisher.unregister(&shape("blue", 0)).unwrap();
    publisher.publish(&shape("green", 1)).unwrap();
}

pub fn what_was_not_published_is_no_instance(stage: &Stage) {
    let qos = QosProfile::default()
        .keep_all()
        // Longer than an idle reader takes to acknowledge.
        .max_blocking_time(Duration::from_millis(200))
        .resource_limits(ResourceLimits {
            max_samples: Some(1),
            ..limits(Some(2), None)
        });
    let (publisher, subscription) = same(stage, &qos);
    let publish = |color: &str| publisher.publish(&shape(color, 1));
    // Until there is no room, here or there.
    let refused = (0..10).find_map(|_| publish("red").err());
    assert!(matches!(refused, Some(PublishError::TimedOut { .. })));
    for color in ["blue", "green"] {
        let refused = publish(color).unwrap_err();
        assert!(
            matches!(refused, PublishError::TimedOut { .. }),
            "{refused}"
        );
    }
    let unknown = publisher.unregister(&shape("blue", 0)).unwrap_err();
    assert!(matches!(unknown, PublishError::UnknownInstance { .. }));
    stage.until("published", || {
        subscription.take();
        publish("green").is_ok()
    });
}

pub fn each_instance_has_its_own_deadline(stage: &Stage) {
    let qos = QosProfile::default().deadline(Duration::from_millis(400));
    let (publisher, subscription) = same(stage, &qos);
    publisher.publish(&shape("blue", 0)).unwrap();
    let mut offered = Seen::by(|| publisher.take_event());
    let mut requested = Seen::by(|| subscription.take_event());
    let missed = |e: &Event| matches!(e, Event::DeadlineMissed { .. });
    // Red is in time, which does not help blue.
    stage.until("missed", || {
        publisher.publish(&shape("red", 0)).unwrap();
        stage.watch(Duration::from_millis(20), || false);
        offered.any(missed) && requested.any(missed)
    });
    // What is gone is not waited for.
    for color in ["red", "blue"] {
        publisher.dispose(&shape(color, 0)).unwrap();
    }
    let mut ends = 0;
    stage.until("the ends", || {
        while let Some(change) = subscription.take_change() {
            ends += usize::from(matches!(change, Change::End(_)));
        }
        ends == 2
    });
    offered.clear();
    requested.clear();
    let again = || offered.any(missed) || requested.any(missed);
    assert!(!stage.watch(Duration::from_millis(900), again));
}

pub fn each_instance_has_its_own_time_filter(stage: &Stage) {
    let filtered = QosProfile::default()
        .best_effort()
        .time_based_filter(PATIENCE);
    let Pair {
        publisher,
        subscription,
    } = pair_of(stage, &QosProfile::default(), &filtered);
    for n in 0..3 {
        publisher.publish(&shape("red", n)).unwrap();
        publisher.publish(&shape("blue", n)).unwrap();
    }
    stage.until("filtered", || subscription.counts().filtered == 4);
    let expected = [at("red", 0), at("blue", 0)];
    assert_eq!(seen(stage, &subscription, 2), expected);
}

pub fn the_last_sample_of_an_instance_passes_the_time_filter_before_its_end(stage: &Stage) {
    let filtered = QosProfile::default().time_based_filter(PATIENCE);
    let Pair {
        publisher,
        subscription,
    } = pair_of(stage, &QosProfile::default(), &filtered);
    for n in 0..3 {
        publisher.publish(&shape("red", n)).unwrap();
    }
    publisher.dispose(&shape("red", 0)).unwrap();
    let expected = [at("red", 0), at("red", 2), ended("red", State::Disposed)];
    assert_eq!(seen(stage, &subscription, 3), expected);
    assert_eq!(subscription.counts().filtered, 1);
}

pub fn each_instance_has_its_own_owner(stage: &Stage) {
    let exclusive = |strength| {
        QosProfile::default()
            .exclusive()
            .ownership_strength(strength)
            .no_autodispose()
    };
    let subscription = subscription(stage, &exclusive(0));
    let weak = publisher(stage, &exclusive(1));
    let strong = publisher(stage, &exclusive(2));
    assert!(subscription.wait_for_matched(2, PATIENCE));
    assert!(weak.wait_for_matched(1, PATIENCE) && strong.wait_for_matched(1, PATIENCE));
    strong.publish(&shape("red", 1)).unwrap();
    assert_eq!(seen(stage, &subscription, 1), [at("red", 1)]);
    weak.publish(&shape("red", 2)).unwrap();
    weak.publish(&shape("blue", 3)).unwrap();
    assert_eq!(seen(stage, &subscription, 1), [at("blue", 3)]);
    assert_eq!(subscription.counts().outranked, 1);
    // Nor may the weaker one end it.
    weak.dispose(&shape("red", 0)).unwrap();
    stage.until("ignored", || subscription.counts().outranked == 2);
    // Whoever leaves an instance owns it no longer.
    strong.unregister(&shape("red", 0)).unwrap();
    // Not at every look: what wakes the one who looks would be made by looking.
    let is_heard = || subscription.take().is_some_and(|sample| sample.x == 4);
    let heard = (0..1000).any(|_| {
        weak.publish(&shape("red", 4)).unwrap();
        stage.watch(Duration::from_millis(20), is_heard)
    });
    assert!(heard, "the weaker one is not heard");
    strong.publish(&shape("blue", 5)).unwrap();
    let mut last = None;
    stage.until("the stronger one takes over", || {
        last = subscription.take().map(|s| (s.color.clone(), Ok(s.x)));
        last == Some(at("blue", 5))
    });
}

pub fn each_instance_has_its_own_order_by_source(stage: &Stage) {
    let stamp = |s: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + s);
    let qos = QosProfile::default().order_by_source();
    let (first, subscription) = same(stage, &qos);
    let second = publisher(stage, &qos);
    assert!(subscription.wait_for_matched(2, PATIENCE));
    assert!(second.wait_for_matched(1, PATIENCE));
    first.publish_at(&shape("red", 5), stamp(5)).unwrap();
    assert_eq!(seen(stage, &subscription, 1), [at("red", 5)]);
    second.publish_at(&shape("red", 3), stamp(3)).unwrap();
    second.publish_at(&shape("blue", 4), stamp(4)).unwrap();
    assert_eq!(seen(stage, &subscription, 1), [at("blue", 4)]);
    assert_eq!(subscription.counts().late, 1);
}

pub fn a_late_joiner_gets_each_instance_and_what_ended_but_nothing_that_was_left(stage: &Stage) {
    let latched = QosProfile::default().keep_last(1).transient_local();
    let publisher = publisher(stage, &latched);
    for n in 1..=2 {
        for color in ["red", "blue", "green"] {
            publisher.publish(&shape(color, n)).unwrap();
        }
    }
    publisher.dispose(&shape("red", 0)).unwrap();
    publisher.unregister(&shape("green", 0)).unwrap();
    let late = subscription(stage, &latched);
    let expected = [at("blue", 2), ended("red", State::Disposed)];
    assert_eq!(seen(stage, &late, 2), expected);
    publisher.publish(&shape("yellow", 3)).unwrap();
    assert_eq!(seen(stage, &late, 1), [at("yellow", 3)]);
}

pub fn what_was_not_taken_of_a_disposed_instance_is_purged(stage: &Stage) {
    let short = QosProfile::default().autopurge_disposed(Duration::from_millis(50));
    let (publisher, subscription) = same(stage, &short);
    publisher.publish(&shape("red", 1)).unwrap();
    publisher.publish(&shape("blue", 1)).unwrap();
    publisher.dispose(&shape("red", 0)).unwrap();
    stage.until("purged", || subscription.counts().purged == 1);
    assert_eq!(seen(stage, &subscription, 1), [at("blue", 1)]);
    assert!(subscription.take_change().is_none());
    // One that came back in time is not.
    publisher.publish(&shape("red", 2)).unwrap();
    publisher.dispose(&shape("red", 0)).unwrap();
    publisher.publish(&shape("red", 3)).unwrap();
    assert!(!stage.watch(Duration::from_millis(150), || {
        subscription.counts().purged > 1
    }));
    let (what, _) = next(stage, &subscription);
    assert_eq!(what, at("red", 2));
}

pub fn what_is_purged_makes_room(stage: &Stage) {
    let mut qos = QosProfile::default()
        .keep_all()
        .autopurge_disposed(Duration::from_millis(50));
    qos.resource_limits.max_samples = Some(2);
    qos.max_blocking_time = Some(PATIENCE);
    let (publisher, subscription) = same(stage, &qos);
    publisher.publish(&shape("red", 1)).unwrap();
    publisher.dispose(&shape("red", 0)).unwrap();
    // The second one waits for room, here or there.
    publisher.publish(&shape("blue", 1)).unwrap();
    publisher.publish(&shape("blue", 2)).unwrap();
    stage.until("received", || subscription.counts().received == 3);
    assert_eq!(
        seen(stage, &subscription, 2),
        [at("blue", 1), at("blue", 2)]
    );
    assert_eq!(subscription.counts().purged, 1);
}

pub fn what_was_not_taken_of_an_instance_without_writers_is_purged(stage: &Stage) {
    let short = QosProfile::default()
        .no_autodispose()
        .autopurge_nowriter(Duration::from_millis(50));
    let (publisher, subscription) = same(stage, &short);
    publisher.publish(&shape("red", 1)).unwrap();
    publisher.publish(&shape("blue", 1)).unwrap();
    publisher.unregister(&shape("red", 0)).unwrap();
    stage.until("purged", || subscription.counts().purged == 1);
    assert_eq!(seen(stage, &subscription, 1), [at("blue", 1)]);
    drop(publisher);
    let end = || subscription.take_change().is_some();
    stage.watch(Duration::from_millis(20), end);
    assert_eq!(subscription.counts().purged, 1);
}

pub fn a_silent_writer_leaves_its_instances_and_brings_them_back(stage: &Stage) {
    let manual = QosProfile::default()
        .liveliness(LivelinessPolicy::ManualByTopic, Duration::from_millis(150));
    let (publisher, subscription) = same(stage, &manual);
    publisher.publish(&shape("red", 1)).unwrap();
    stage.until("received", || subscription.counts().received == 1);
    let mut events = Seen::by(|| subscription.take_event());
    let lives = |e: &&Event| matches!(e, Event::LivelinessChanged { .. });
    stage.until("silent", || {
        // It may have been silent before its first sample, too.
        events.any(|_| false);
        let last = events.list.iter().rfind(lives);
        matches!(last, Some(Event::LivelinessChanged { not_alive: 1, .. }))
    });
    publisher.publish(&shape("red", 2)).unwrap();
    stage.until("received", || subscription.counts().received == 2);
    let expected = [at("red", 1), ended("red", State::NoWriters)];
    assert_eq!(seen(stage, &subscription, 2), expected);
    let (what, info) = next(stage, &subscription);
    assert_eq!((what, info.view), (at("red", 2), ViewState::NotNew));
    assert_eq!(info.no_writers_generations, 1);
}

pub fn dynamic_and_raw_ends_know_the_key(stage: &Stage) {
    let ty = DynamicType::new(Shape::type_description()).unwrap();
    let qos = QosProfile::default();
    let publisher = stage
        .publishing
        .create_dynamic_publisher("shapes", &ty, qos.clone())
        .unwrap();
    let node = &stage.subscribing;
    let dynamic = node
        .create_dynamic_subscription("shapes", &ty, SubscriptionOptions::new(qos.clone()))
        .unwrap();
    let raw = SubscriptionOptions::new(qos.clone()).key_reader(ty.key_reader().unwrap());
    let raw = node
        .create_raw_subscription("shapes", &ty.dds_type_name(), None, raw)
        .unwrap();
    let typed = subscription(stage, &qos);
    assert!(publisher.wait_for_matched(3, PATIENCE));
    let subscribed = || dynamic.matched_count() == 1 && raw.matched_count() == 1;
    stage.until("matched", subscribed);
    assert!(typed.wait_for_matched(1, PATIENCE));
    let red = DynamicMessage::from_yaml(&ty, "{color: red, x: 7}").unwrap();
    publisher.publish(&red).unwrap();
    publisher.dispose(&red).unwrap();
    let expected = [at("red", 7), ended("red", State::Disposed)];
    assert_eq!(seen(stage, &typed, 2), expected);
    let mut key = None;
    stage.until("the dynamic end", || {
        if let Some(Change::End(end)) = dynamic.take_change() {
            key = Some(end.key().to_json());
        }
        key.is_some()
    });
    let key = key.unwrap();
    assert!(
        key.contains("\"color\":\"red\"") && key.contains("\"x\":0"),
        "{key}"
    );
    let mut bytes = None;
    stage.until("the raw end", || {
        if let Some(Change::End(end)) = raw.take_change() {
            bytes = Some(end.key().clone());
        }
        bytes.is_some()
    });
    let shape = DynamicMessage::from_key_payload(&ty, &bytes.unwrap()).unwrap();
    assert_eq!(shape.to_json(), key);
}
