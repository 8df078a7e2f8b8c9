//! Durability TRANSIENT and PERSISTENT, and the durability service: samples that
//! outlive their publisher.

use std::time::{Duration, SystemTime};

use pteros::interfaces::std_msgs::msg::{Int32, String as Text};
use pteros::prelude::*;
use pteros::qos::{DurabilityService, History, ResourceLimits};
use pteros::{
    PublisherOptions,
    event_handler::{EndpointEvent as Event, PolicyId},
    instance::InstanceState,
};

use crate::conformance::harness::{EventLog, Harness, TIMEOUT, text};
use crate::conformance::instances::{self, shape};

fn transient(depth: usize) -> QosProfile {
    QosProfile::default().keep_last(depth).transient()
}

fn publish(publisher: &Publisher<Text>, numbers: impl IntoIterator<Item = usize>) {
    for n in numbers {
        publisher.publish(&text(n)).unwrap();
    }
}

/// Waits for the sample `last`; returns all samples up to it.
#[track_caller]
fn up_to(harness: &Harness, subscription: &Subscription<Text>, last: usize) -> Vec<String> {
    let mut taken = Vec::new();
    harness.wait_until("the last sample", || {
        while let Some(sample) = subscription.take() {
            taken.push(sample.data.clone());
        }
        taken.last() == Some(&last.to_string())
    });
    taken
}

fn numbers(range: impl IntoIterator<Item = usize>) -> Vec<String> {
    range.into_iter().map(|n| n.to_string()).collect()
}

pub fn a_restarted_publisher_sends_stored_samples_before_new_ones(harness: &Harness) {
    for (qos, first) in [(transient(3), 0), (transient(3).persistent(), 10)] {
        // Endpoints of the previous round may still be known.
        let topic = format!("topic_{first}");
        let options =
            || PublisherOptions::new(topic.as_str().qos(&qos)).store(format!("story {first}"));
        let create = || {
            let node = &harness.publishing;
            node.create_publisher::<Text>(options()).unwrap()
        };
        let subscribe = |qos: &QosProfile| {
            let node = &harness.subscribing;
            node.create_polled_subscription::<Text>(topic.as_str().qos(qos))
                .unwrap()
        };
        let publisher = create();
        let source = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        publish(&publisher, first..first + 4);
        publisher.publish_at(&text(first + 4), source).unwrap();
        assert!(publisher.wait_until_stored(TIMEOUT));
        drop(publisher);
        let publisher = create();
        assert_eq!(publisher.store_counts().unwrap().kept, 3);
        publish(&publisher, [first + 5]);
        let late = subscribe(&QosProfile::default().transient());
        let expected = numbers(first + 3..first + 6);
        assert_eq!(up_to(harness, &late, first + 5)[..], expected[..]);
        publish(&publisher, [first + 6]);
        assert_eq!(up_to(harness, &late, first + 6), numbers([first + 6]));
        assert_eq!(late.counts().duplicates, 0);
        drop(publisher);

        // It keeps the source timestamp of its publication.
        let _publisher = create();
        let late = subscribe(&QosProfile::default().keep_last(3).transient());
        let mut sources = Vec::new();
        harness.wait_until("stored samples", || {
            sources.extend(late.take().map(|sample| sample.info().source_timestamp));
            sources.len() == 3
        });
        assert_eq!(sources[0], Some(source));
    }
}

pub fn a_reader_does_not_get_stored_samples_twice(harness: &Harness) {
    let qos = transient(10);
    let subscription = harness.subscription(&qos);
    for lives in 0..3 {
        let publisher = harness.publisher(&qos);
        assert!(publisher.wait_for_matched(1, TIMEOUT));
        harness.wait_until("matched", || subscription.matched_count() == 1);
        let news = lives * 2 + 1..lives * 2 + 3;
        publish(&publisher, news.clone());
        assert_eq!(up_to(harness, &subscription, lives * 2 + 2), numbers(news));
        drop(publisher);
        harness.wait_until("unmatched", || subscription.matched_count() == 0);
    }
    // Two of the first incarnation with the second, four with the third.
    assert_eq!(subscription.counts().duplicates, 6);
    let _publisher = harness.publisher(&qos);
    let late = harness.subscription(&qos);
    assert_eq!(up_to(harness, &late, 6), numbers(1..7));
}

pub fn readers_get_samples_according_to_their_durability(harness: &Harness) {
    let publisher = harness.publisher(&transient(5));
    publish(&publisher, 1..4);
    drop(publisher);
    let publisher = harness.publisher(&transient(5));
    let plain = QosProfile::default();
    let volatile = harness.subscription(&plain);
    let latched = harness.subscription(&plain.clone().transient_local());
    let persistent = harness.subscription(&plain.persistent());
    for subscription in [&volatile, &latched] {
        assert!(subscription.wait_for_matched(1, TIMEOUT));
    }
    harness.wait_until("matched", || publisher.matched_count() == 2);
    publish(&publisher, [4]);
    assert_eq!(up_to(harness, &volatile, 4), numbers([4]));
    assert_eq!(up_to(harness, &latched, 4), numbers(1..5));
    let mut seen = EventLog::by(|| persistent.take_event());
    harness.wait_until("reported", || {
        seen.any(|event| {
            matches!(event, Event::IncompatibleQos { policies, .. }
                if policies[..] == [PolicyId::Durability])
        })
    });
    assert_eq!(persistent.matched_count(), 0);
}

pub fn durability_service_limits_the_store(harness: &Harness) {
    let service = |history| DurabilityService {
        history,
        ..DurabilityService::default()
    };
    let all = QosProfile::default().keep_last(9).transient();
    for (name, history, last, expected) in [
        ("few", History::KeepLast(2), 9, numbers(8..10)),
        ("many", History::KeepLast(12), 15, numbers(4..16)),
        ("all", History::KeepAll, 15, numbers(1..16)),
    ] {
        let qos = all.clone().durability_service(service(history));
        let create = || {
            let options = PublisherOptions::new("topic".qos(&qos)).store(name);
            let node = &harness.publishing;
            node.create_publisher::<Text>(options).unwrap()
        };
        publish(&create(), 1..=last);
        let _publisher = create();
        let late = harness.subscription(&QosProfile::default().keep_all().transient());
        assert_eq!(up_to(harness, &late, last), expected, "{name}");
        let announced = harness.subscribing.context().graph();
        harness.wait_until("announced", || {
            let offers = announced.publishers("/topic");
            let services = offers.iter().filter_map(|o| o.qos.durability_service);
            services.map(|s| s.history).any(|h| h == history)
        });
    }
}

pub fn expired_samples_in_the_store_are_not_sent(harness: &Harness) {
    let qos = transient(5).lifespan(Duration::from_secs(600));
    let publisher = harness.publisher(&qos);
    let now = harness.wall();
    let at = |n, seconds| {
        let source = now - Duration::from_secs(seconds);
        publisher.publish_at(&text(n), source).unwrap();
    };
    at(1, 700);
    at(2, 601);
    at(3, 10);
    drop(publisher);
    let publisher = harness.publisher(&qos);
    publish(&publisher, [4]);
    let late = harness.subscription(&transient(5));
    assert_eq!(up_to(harness, &late, 4), numbers(3..5));
}

pub fn a_full_store_reports_an_event_and_live_traffic_continues(harness: &Harness) {
    let service = DurabilityService {
        history: History::KeepAll,
        resource_limits: ResourceLimits {
            max_samples: Some(2),
            ..ResourceLimits::default()
        },
        ..DurabilityService::default()
    };
    let qos = transient(10).durability_service(service);
    let (publisher, subscription) = harness.pair_of(&qos, &transient(10));
    publish(&publisher, 1..6);
    assert_eq!(up_to(harness, &subscription, 5), numbers(1..6));
    let mut seen = EventLog::by(|| publisher.take_event());
    harness.wait_until_on_disk("reported", || {
        seen.any(|event| matches!(event, Event::NotStored { total: 3, .. }))
    });
    let Some(Event::NotStored { reason, .. }) = seen.list.last() else {
        panic!("{:?}", seen.list);
    };
    assert!(
        reason.contains("is full: its limit is 2 samples"),
        "{reason}"
    );
    drop(seen);
    drop((publisher, subscription));
    let _publisher = harness.publisher(&qos);
    let late = harness.subscription(&transient(10));
    assert_eq!(up_to(harness, &late, 2), numbers(1..3));
}

pub fn a_store_in_use_or_of_another_type_is_a_clear_error(harness: &Harness) {
    let publisher = harness.publisher(&transient(1));
    let node = &harness.publishing;
    let error = |result: Result<(), pteros::error::CreateError>| result.unwrap_err().to_string();
    let second = node.create_publisher::<Text>("topic".qos(transient(1)));
    let text = error(second.map(drop));
    assert!(
        text.contains("is in use by another publisher") && text.contains(".redb"),
        "{text}"
    );
    let path = publisher.store_path().unwrap();
    assert!(text.contains(&path.display().to_string()), "{text}");
    drop(publisher);
    let other = node.create_publisher::<Int32>("topic".qos(transient(1)));
    let text = error(other.map(drop));
    assert!(text.contains("std_msgs::msg::dds_::String_"), "{text}");
    // A contradictory profile is refused earlier.
    let service = DurabilityService {
        history: History::KeepLast(0),
        ..DurabilityService::default()
    };
    let none = node.create_publisher::<Text>("topic".qos(transient(1).durability_service(service)));
    let text = error(none.map(drop));
    assert!(text.contains("DURABILITY_SERVICE keep last 0"), "{text}");
}

pub fn instances_outlive_their_publisher_until_they_are_disposed_of(harness: &Harness) {
    let qos = transient(1);
    let late = || {
        let subscription = instances::subscription(harness, &transient(9));
        assert!(subscription.wait_for_matched(1, TIMEOUT));
        subscription
    };
    let publisher = instances::publisher(harness, &qos);
    for (color, x) in [("red", 1), ("blue", 2), ("red", 3)] {
        publisher.publish(&shape(color, x)).unwrap();
    }
    drop(publisher);
    let publisher = instances::publisher(harness, &qos);
    let subscription = late();
    for expected in [instances::at("blue", 2), instances::at("red", 3)] {
        assert_eq!(instances::next(harness, &subscription).0, expected);
    }
    publisher.dispose(&shape("blue", 0)).unwrap();
    let gone = instances::ended("blue", InstanceState::Disposed);
    assert_eq!(instances::next(harness, &subscription).0, gone);
    drop((publisher, subscription));
    let _publisher = instances::publisher(harness, &qos);
    let subscription = late();
    assert_eq!(
        instances::next(harness, &subscription).0,
        instances::at("red", 3)
    );
    assert!(subscription.take_change().is_none());
}
