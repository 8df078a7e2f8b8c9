//! Policies per instance of a keyed topic, and what becomes of ended instances.

use pteros::subscription::SerializedMessage;
use std::time::{Duration, SystemTime};

use pteros::PublisherOptions;
use pteros::interfaces::dds_shapes::msg::ShapeType as Shape;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::prelude::*;
use pteros::qos::{LivelinessPolicy, ResourceLimits};
use pteros::subscription::SerializedType;
use pteros::{SubscriptionOptions, instance::ViewState};
use pteros::{
    error::PublishError,
    event_handler::EndpointEvent as Event,
    instance::{InstanceState as State, ReceivedChange},
};

use crate::conformance::harness::{EventLog, Harness, TIMEOUT};
use crate::conformance::instances::{
    ObservedChange, Pair, at, ended, next, observed_changes, pair_of, publisher, shape,
    subscription,
};

fn same(harness: &Harness, qos: &QosProfile) -> (Publisher<Shape>, Subscription<Shape>) {
    let Pair {
        publisher,
        subscription,
    } = pair_of(harness, qos, qos);
    (publisher, subscription)
}

fn limits(instances: Option<u32>, per_instance: Option<u32>) -> ResourceLimits {
    ResourceLimits {
        max_samples: None,
        max_instances: instances,
        max_samples_per_instance: per_instance,
    }
}

pub fn keep_last_keeps_the_last_of_each_instance(harness: &Harness) {
    let (publisher, subscription) = same(harness, &QosProfile::default().keep_last(2));
    for n in 1..=5 {
        publisher.publish(&shape("red", n)).unwrap();
        if n <= 3 {
            publisher.publish(&shape("blue", n)).unwrap();
        }
    }
    harness.wait_until("received", || subscription.counts().received == 8);
    assert_eq!(subscription.counts().overwritten, 4);
    let expected = [at("blue", 2), at("blue", 3), at("red", 4), at("red", 5)];
    let mut all = observed_changes(harness, &subscription, 4);
    all.sort_by_key(|(color, x)| (color.clone(), x.ok()));
    assert_eq!(all, expected);
}

pub fn an_instance_without_room_blocks_only_its_own_samples(harness: &Harness) {
    let qos = QosProfile::default()
        .keep_all()
        .max_blocking_time(Duration::from_millis(20))
        .resource_limits(limits(None, Some(2)));
    let (publisher, subscription) = same(harness, &qos);
    let mut accepted = 0;
    let refused = loop {
        match publisher.publish(&shape("red", accepted)) {
            Ok(()) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 50, "no sample is taken, yet all is accepted");
    };
    assert!(
        matches!(refused, PublishError::TimedOut { .. }),
        "{refused}"
    );
    publisher.publish(&shape("blue", 0)).unwrap();
    let all = observed_changes(harness, &subscription, 1 + accepted as usize);
    let red = |saw: &&ObservedChange| saw.0 == "red";
    let expected: Vec<ObservedChange> = (0..accepted).map(|n| at("red", n)).collect();
    let found: Vec<ObservedChange> = all.iter().filter(red).cloned().collect();
    assert_eq!(found, expected);
    assert!(all.contains(&at("blue", 0)));
    assert_eq!(subscription.counts().lost, 0);
}

pub fn a_subscription_rejects_instances_beyond_its_limit(harness: &Harness) {
    let few = QosProfile::default().resource_limits(limits(Some(2), None));
    let Pair {
        publisher,
        subscription,
    } = pair_of(harness, &QosProfile::default(), &few);
    for color in ["red", "blue", "green", "red"] {
        publisher.publish(&shape(color, 1)).unwrap();
    }
    let expected = [at("red", 1), at("blue", 1), at("red", 1)];
    assert_eq!(observed_changes(harness, &subscription, 3), expected);
    assert_eq!(subscription.counts().rejected, 1);
    let mut events = EventLog::by(|| subscription.take_event());
    assert!(events.any(|e| *e == Event::SampleRejected { total: 1 }));
    // An ended instance makes room for another.
    publisher.dispose(&shape("blue", 0)).unwrap();
    assert_eq!(
        observed_changes(harness, &subscription, 1),
        [ended("blue", State::Disposed)]
    );
    publisher.publish(&shape("green", 2)).unwrap();
    assert_eq!(
        observed_changes(harness, &subscription, 1),
        [at("green", 2)]
    );
}

pub fn a_publisher_writes_no_more_instances_than_its_limit(harness: &Harness) {
    let few = QosProfile::default().resource_limits(limits(Some(2), None));
    let publisher = publisher(harness, &few);
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

pub fn an_unpublished_sample_creates_no_instance(harness: &Harness) {
    let qos = QosProfile::default()
        .keep_all()
        // Longer than an idle reader takes to acknowledge.
        .max_blocking_time(Duration::from_millis(200))
        .resource_limits(ResourceLimits {
            max_samples: Some(1),
            ..limits(Some(2), None)
        });
    let (publisher, subscription) = same(harness, &qos);
    let publish = |color: &str| publisher.publish(&shape(color, 1));
    // Until there is no room, at the writer or the reader.
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
    harness.wait_until("published", || {
        subscription.take();
        publish("green").is_ok()
    });
}

pub fn each_instance_has_its_own_deadline(harness: &Harness) {
    let qos = QosProfile::default().deadline(Duration::from_millis(400));
    let (publisher, subscription) = same(harness, &qos);
    publisher.publish(&shape("blue", 0)).unwrap();
    let mut offered = EventLog::by(|| publisher.take_event());
    let mut requested = EventLog::by(|| subscription.take_event());
    let missed = |e: &Event| matches!(e, Event::DeadlineMissed { .. });
    // Red meets its deadline, which does not help blue.
    harness.wait_until("missed", || {
        publisher.publish(&shape("red", 0)).unwrap();
        harness.poll_for(Duration::from_millis(20), || false);
        offered.any(missed) && requested.any(missed)
    });
    // A disposed instance has no deadline.
    for color in ["red", "blue"] {
        publisher.dispose(&shape(color, 0)).unwrap();
    }
    let mut ends = 0;
    harness.wait_until("the ends", || {
        while let Some(change) = subscription.take_change() {
            ends += usize::from(matches!(change, ReceivedChange::End(_)));
        }
        ends == 2
    });
    offered.clear();
    requested.clear();
    let again = || offered.any(missed) || requested.any(missed);
    assert!(!harness.poll_for(Duration::from_millis(900), again));
}

pub fn each_instance_has_its_own_time_filter(harness: &Harness) {
    let filtered = QosProfile::default()
        .best_effort()
        .time_based_filter(TIMEOUT);
    let Pair {
        publisher,
        subscription,
    } = pair_of(harness, &QosProfile::default(), &filtered);
    for n in 0..3 {
        publisher.publish(&shape("red", n)).unwrap();
        publisher.publish(&shape("blue", n)).unwrap();
    }
    harness.wait_until("filtered", || subscription.counts().filtered == 4);
    let expected = [at("red", 0), at("blue", 0)];
    assert_eq!(observed_changes(harness, &subscription, 2), expected);
}

pub fn the_last_sample_of_an_instance_passes_the_time_filter_before_its_end(harness: &Harness) {
    let filtered = QosProfile::default().time_based_filter(TIMEOUT);
    let Pair {
        publisher,
        subscription,
    } = pair_of(harness, &QosProfile::default(), &filtered);
    for n in 0..3 {
        publisher.publish(&shape("red", n)).unwrap();
    }
    publisher.dispose(&shape("red", 0)).unwrap();
    let expected = [at("red", 0), at("red", 2), ended("red", State::Disposed)];
    assert_eq!(observed_changes(harness, &subscription, 3), expected);
    assert_eq!(subscription.counts().filtered, 1);
}

pub fn each_instance_has_its_own_owner(harness: &Harness) {
    let exclusive = |strength| {
        QosProfile::default()
            .exclusive()
            .ownership_strength(strength)
            .no_autodispose()
    };
    let subscription = subscription(harness, &exclusive(0));
    let weak = publisher(harness, &exclusive(1));
    let strong = publisher(harness, &exclusive(2));
    assert!(subscription.wait_for_matched(2, TIMEOUT));
    assert!(weak.wait_for_matched(1, TIMEOUT) && strong.wait_for_matched(1, TIMEOUT));
    strong.publish(&shape("red", 1)).unwrap();
    assert_eq!(observed_changes(harness, &subscription, 1), [at("red", 1)]);
    weak.publish(&shape("red", 2)).unwrap();
    weak.publish(&shape("blue", 3)).unwrap();
    assert_eq!(observed_changes(harness, &subscription, 1), [at("blue", 3)]);
    assert_eq!(subscription.counts().not_owner, 1);
    // The weaker publisher may not end it either.
    weak.dispose(&shape("red", 0)).unwrap();
    harness.wait_until("ignored", || subscription.counts().not_owner == 2);
    // A publisher that unregisters an instance no longer owns it.
    strong.unregister(&shape("red", 0)).unwrap();
    // Not on every poll: polling would itself cause the wake-ups.
    let is_heard = || subscription.take().is_some_and(|sample| sample.x == 4);
    let delivered = (0..1000).any(|_| {
        weak.publish(&shape("red", 4)).unwrap();
        harness.poll_for(Duration::from_millis(20), is_heard)
    });
    assert!(delivered, "the weaker one is not heard");
    strong.publish(&shape("blue", 5)).unwrap();
    let mut last = None;
    harness.wait_until("the stronger one takes over", || {
        last = subscription.take().map(|s| (s.color.clone(), Ok(s.x)));
        last == Some(at("blue", 5))
    });
}

pub fn each_instance_has_its_own_order_by_source(harness: &Harness) {
    let stamp = |s: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + s);
    let qos = QosProfile::default().order_by_source();
    let (first, subscription) = same(harness, &qos);
    let second = publisher(harness, &qos);
    assert!(subscription.wait_for_matched(2, TIMEOUT));
    assert!(second.wait_for_matched(1, TIMEOUT));
    first.publish_at(&shape("red", 5), stamp(5)).unwrap();
    assert_eq!(observed_changes(harness, &subscription, 1), [at("red", 5)]);
    second.publish_at(&shape("red", 3), stamp(3)).unwrap();
    second.publish_at(&shape("blue", 4), stamp(4)).unwrap();
    assert_eq!(observed_changes(harness, &subscription, 1), [at("blue", 4)]);
    assert_eq!(subscription.counts().late, 1);
}

pub fn a_late_joiner_gets_instances_and_disposes_but_no_unregisters(harness: &Harness) {
    let latched = QosProfile::default().keep_last(1).transient_local();
    let publisher = publisher(harness, &latched);
    for n in 1..=2 {
        for color in ["red", "blue", "green"] {
            publisher.publish(&shape(color, n)).unwrap();
        }
    }
    publisher.dispose(&shape("red", 0)).unwrap();
    publisher.unregister(&shape("green", 0)).unwrap();
    let late = subscription(harness, &latched);
    let expected = [at("blue", 2), ended("red", State::Disposed)];
    assert_eq!(observed_changes(harness, &late, 2), expected);
    publisher.publish(&shape("yellow", 3)).unwrap();
    assert_eq!(observed_changes(harness, &late, 1), [at("yellow", 3)]);
}

pub fn untaken_samples_of_a_disposed_instance_are_purged(harness: &Harness) {
    let short = QosProfile::default().autopurge_disposed(Duration::from_millis(50));
    let (publisher, subscription) = same(harness, &short);
    publisher.publish(&shape("red", 1)).unwrap();
    publisher.publish(&shape("blue", 1)).unwrap();
    publisher.dispose(&shape("red", 0)).unwrap();
    harness.wait_until("purged", || subscription.counts().purged == 1);
    assert_eq!(observed_changes(harness, &subscription, 1), [at("blue", 1)]);
    assert!(subscription.take_change().is_none());
    // An instance that returned in time is not purged.
    publisher.publish(&shape("red", 2)).unwrap();
    publisher.dispose(&shape("red", 0)).unwrap();
    publisher.publish(&shape("red", 3)).unwrap();
    assert!(!harness.poll_for(Duration::from_millis(150), || {
        subscription.counts().purged > 1
    }));
    let (what, _) = next(harness, &subscription);
    assert_eq!(what, at("red", 2));
}

pub fn purging_makes_room(harness: &Harness) {
    let mut qos = QosProfile::default()
        .keep_all()
        .autopurge_disposed(Duration::from_millis(50));
    qos.resource_limits.max_samples = Some(2);
    qos.max_blocking_time = Some(TIMEOUT);
    let (publisher, subscription) = same(harness, &qos);
    publisher.publish(&shape("red", 1)).unwrap();
    publisher.dispose(&shape("red", 0)).unwrap();
    // The second one waits for room, at the writer or the reader.
    publisher.publish(&shape("blue", 1)).unwrap();
    publisher.publish(&shape("blue", 2)).unwrap();
    harness.wait_until("received", || subscription.counts().received == 3);
    assert_eq!(
        observed_changes(harness, &subscription, 2),
        [at("blue", 1), at("blue", 2)]
    );
    assert_eq!(subscription.counts().purged, 1);
}

pub fn untaken_samples_of_an_instance_without_writers_are_purged(harness: &Harness) {
    let short = QosProfile::default()
        .no_autodispose()
        .autopurge_nowriter(Duration::from_millis(50));
    let (publisher, subscription) = same(harness, &short);
    publisher.publish(&shape("red", 1)).unwrap();
    publisher.publish(&shape("blue", 1)).unwrap();
    publisher.unregister(&shape("red", 0)).unwrap();
    harness.wait_until("purged", || subscription.counts().purged == 1);
    assert_eq!(observed_changes(harness, &subscription, 1), [at("blue", 1)]);
    drop(publisher);
    let end = || subscription.take_change().is_some();
    harness.poll_for(Duration::from_millis(20), end);
    assert_eq!(subscription.counts().purged, 1);
}

pub fn a_writer_that_loses_liveliness_ends_its_instances_until_it_returns(harness: &Harness) {
    let manual = QosProfile::default()
        .liveliness(LivelinessPolicy::ManualByTopic, Duration::from_millis(150));
    let (publisher, subscription) = same(harness, &manual);
    publisher.publish(&shape("red", 1)).unwrap();
    harness.wait_until("received", || subscription.counts().received == 1);
    let mut events = EventLog::by(|| subscription.take_event());
    let lives = |e: &&Event| matches!(e, Event::LivelinessChanged { .. });
    harness.wait_until("silent", || {
        // Liveliness may have been lost before the first sample, too.
        events.any(|_| false);
        let last = events.list.iter().rfind(lives);
        matches!(last, Some(Event::LivelinessChanged { not_alive: 1, .. }))
    });
    publisher.publish(&shape("red", 2)).unwrap();
    harness.wait_until("received", || subscription.counts().received == 2);
    let expected = [at("red", 1), ended("red", State::NoWriters)];
    assert_eq!(observed_changes(harness, &subscription, 2), expected);
    let (what, info) = next(harness, &subscription);
    assert_eq!((what, info.view), (at("red", 2), ViewState::NotNew));
    assert_eq!(info.no_writers_generations, 1);
}

pub fn dynamic_and_raw_endpoints_use_the_key(harness: &Harness) {
    let ty = DynamicType::new(Shape::type_description()).unwrap();
    let qos = QosProfile::default();
    let publisher = harness
        .publishing
        .create_publisher::<DynamicMessage>(PublisherOptions::of_type(
            &ty,
            "shapes".qos(qos.clone()),
        ))
        .unwrap();
    let node = &harness.subscribing;
    let dynamic = node
        .create_polled_subscription::<DynamicMessage>(SubscriptionOptions::of_type(
            &ty,
            "shapes".qos(qos.clone()),
        ))
        .unwrap();
    let raw = SubscriptionOptions::of_type(
        &SerializedType::new(ty.dds_type_name(), None).key_reader(ty.key_reader().unwrap()),
        "shapes".qos(qos.clone()),
    );
    let raw = node
        .create_polled_subscription::<SerializedMessage>(raw)
        .unwrap();
    let typed = subscription(harness, &qos);
    assert!(publisher.wait_for_matched(3, TIMEOUT));
    let subscribed = || dynamic.matched_count() == 1 && raw.matched_count() == 1;
    harness.wait_until("matched", subscribed);
    assert!(typed.wait_for_matched(1, TIMEOUT));
    let red = DynamicMessage::from_yaml(&ty, "{color: red, x: 7}").unwrap();
    publisher.publish(&red).unwrap();
    publisher.dispose(&red).unwrap();
    let expected = [at("red", 7), ended("red", State::Disposed)];
    assert_eq!(observed_changes(harness, &typed, 2), expected);
    let mut key = None;
    harness.wait_until("the dynamic end", || {
        if let Some(ReceivedChange::End(end)) = dynamic.take_change() {
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
    harness.wait_until("the raw end", || {
        if let Some(ReceivedChange::End(end)) = raw.take_change() {
            bytes = Some(end.key().clone());
        }
        bytes.is_some()
    });
    let shape = DynamicMessage::from_key_payload(&ty, &bytes.unwrap()).unwrap();
    assert_eq!(shape.to_json(), key);
}
