//! Policies that decide which samples are delivered, and in which order.

use std::time::{Duration, SystemTime};

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::qos::{DurabilityPolicy, LivelinessPolicy, Presentation, ResourceLimits};
use pteros::{
    error::PublishError,
    event_handler::{EndpointEvent as Event, PolicyId},
};

use crate::conformance::harness::{EventLog, Harness, TIMEOUT, text};

fn exclusive(strength: i32) -> QosProfile {
    QosProfile::default()
        .exclusive()
        .ownership_strength(strength)
}

/// Publishes and waits until the subscription has evaluated the sample; returns
/// whether it was delivered.
fn receives(
    harness: &Harness,
    publisher: &Publisher<Text>,
    subscription: &Subscription<Text>,
    n: usize,
) -> bool {
    let before = subscription.counts();
    publisher.publish(&text(n)).unwrap();
    harness.wait_until("judged", || {
        let now = subscription.counts();
        now.received + now.not_owner > before.received + before.not_owner
    });
    let taken = subscription.take();
    assert!(taken.as_ref().is_none_or(|sample| **sample == text(n)));
    assert_eq!(
        taken.is_none(),
        subscription.counts().not_owner > before.not_owner
    );
    taken.is_some()
}

pub fn the_strongest_publisher_owns_the_topic_while_it_is_matched(harness: &Harness) {
    let subscription = harness.subscription(&exclusive(0));
    let weak = harness.publisher(&exclusive(-3));
    let strong = harness.publisher(&exclusive(7));
    assert!(subscription.wait_for_matched(2, TIMEOUT));
    assert!(weak.wait_for_matched(1, TIMEOUT) && strong.wait_for_matched(1, TIMEOUT));
    // The strongest publisher that has written is the owner.
    assert!(receives(harness, &weak, &subscription, 1));
    assert!(receives(harness, &strong, &subscription, 2));
    assert!(!receives(harness, &weak, &subscription, 3));
    assert!(receives(harness, &strong, &subscription, 4));
    drop(strong);
    harness.wait_until("gone", || subscription.matched_count() == 1);
    assert!(receives(harness, &weak, &subscription, 5));
    assert_eq!(subscription.counts().lost, 0);
}

pub fn an_owner_without_liveliness_is_replaced_by_the_next(harness: &Harness) {
    let manual = |qos: QosProfile| {
        qos.liveliness(LivelinessPolicy::ManualByTopic, Duration::from_millis(150))
    };
    let subscription = harness.subscription(&exclusive(0));
    let weak = harness.publisher(&exclusive(1));
    let strong = harness.publisher(&manual(exclusive(2)));
    assert!(subscription.wait_for_matched(2, TIMEOUT));
    assert!(weak.wait_for_matched(1, TIMEOUT) && strong.wait_for_matched(1, TIMEOUT));
    assert!(receives(harness, &strong, &subscription, 1));
    let mut seen = EventLog::by(|| subscription.take_event());
    harness.wait_until("silent", || {
        seen.any(|_| false);
        // Liveliness may have been lost before the first sample, too.
        let lives = |e: &&Event| matches!(e, Event::LivelinessChanged { .. });
        let last = seen.list.iter().rfind(lives);
        matches!(last, Some(Event::LivelinessChanged { not_alive: 1, .. }))
    });
    assert!(receives(harness, &weak, &subscription, 2));
    assert!(receives(harness, &strong, &subscription, 3));
}

pub fn an_owner_that_misses_its_deadline_is_replaced_by_the_next(harness: &Harness) {
    let within = |qos: QosProfile| qos.deadline(Duration::from_millis(400));
    let subscription = harness.subscription(&within(exclusive(0)));
    let weak = harness.publisher(&within(exclusive(1)));
    let strong = harness.publisher(&within(exclusive(2)));
    assert!(subscription.wait_for_matched(2, TIMEOUT));
    assert!(weak.wait_for_matched(1, TIMEOUT) && strong.wait_for_matched(1, TIMEOUT));
    assert!(receives(harness, &strong, &subscription, 1));
    let mut seen = EventLog::by(|| subscription.take_event());
    // Samples of others are no update: the deadline is missed all the same.
    harness.wait_until("missed", || {
        harness.poll_for(Duration::from_millis(50), || false);
        let missed = seen.any(|e| matches!(e, Event::DeadlineMissed { .. }));
        if !missed {
            weak.publish(&text(2)).unwrap();
        }
        missed
    });
    while subscription.take().is_some() {}
    assert!(receives(harness, &weak, &subscription, 3));
    assert!(receives(harness, &strong, &subscription, 4));
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds)
}

pub fn samples_are_taken_in_the_order_of_their_source_times(harness: &Harness) {
    let qos = QosProfile::default().order_by_source();
    let subscription = harness.subscription(&qos);
    let (a, b) = (harness.publisher(&qos), harness.publisher(&qos));
    assert!(subscription.wait_for_matched(2, TIMEOUT));
    assert!(a.wait_for_matched(1, TIMEOUT) && b.wait_for_matched(1, TIMEOUT));
    for n in [1, 3, 5] {
        a.publish_at(&text(n), at(n as u64)).unwrap();
    }
    harness.wait_until("received", || subscription.counts().received == 3);
    for n in [2, 4, 6] {
        b.publish_at(&text(n), at(n as u64)).unwrap();
    }
    harness.wait_until("received", || subscription.counts().received == 6);
    for n in 1..=6 {
        let sample = subscription.take().unwrap();
        assert_eq!(
            (&*sample, sample.info().source_timestamp),
            (&text(n), Some(at(n as u64)))
        );
    }
    a.publish_at(&text(0), at(5)).unwrap();
    harness.wait_until("found late", || subscription.counts().late == 1);
    assert!(subscription.take().is_none());
    assert_eq!(subscription.counts().lost, 0);
    a.publish_at(&text(7), at(7)).unwrap();
    assert_eq!(*subscription.take_timeout(TIMEOUT).unwrap(), text(7));
}

pub fn source_times_never_run_back_at_one_publisher(harness: &Harness) {
    let (publisher, subscription) = harness.pair(&QosProfile::default().order_by_source());
    publisher.publish_at(&text(1), at(100)).unwrap();
    assert_eq!(*subscription.take_timeout(TIMEOUT).unwrap(), text(1));
    // As after the wall clock was set back.
    publisher.publish_at(&text(2), at(1)).unwrap();
    let sample = subscription.take_timeout(TIMEOUT).unwrap();
    assert_eq!(
        (&*sample, sample.info().source_timestamp),
        (&text(2), Some(at(100)))
    );
}

const SEPARATION: Duration = Duration::from_millis(300);

pub fn time_based_filter_keeps_the_separation_and_delivers_the_last(harness: &Harness) {
    let filtered = QosProfile::default().time_based_filter(SEPARATION);
    let (publisher, subscription) = harness.pair_of(&QosProfile::default(), &filtered);
    let begin = harness.now();
    for n in 0..30 {
        publisher.publish(&text(n)).unwrap();
        harness.poll_for(Duration::from_millis(20), || false);
    }
    let mut taken = Vec::new();
    harness.wait_until("the last", || {
        while let Some(sample) = subscription.take() {
            taken.push(sample.data.clone());
        }
        taken.last() == Some(&text(29).data)
    });
    assert_eq!(taken[0], text(0).data);
    let periods = (harness.now() - begin).as_nanos() / SEPARATION.as_nanos();
    assert!(taken.len() as u128 <= periods + 1, "{taken:?}");
    let counts = subscription.counts();
    assert_eq!(counts.filtered + taken.len() as u64, 30);
    assert_eq!(counts.lost, 0);
}

pub fn time_based_filter_applies_to_best_effort(harness: &Harness) {
    let filtered = QosProfile::default()
        .best_effort()
        .time_based_filter(TIMEOUT);
    let (publisher, subscription) = harness.pair_of(&QosProfile::default(), &filtered);
    for n in 0..5 {
        publisher.publish(&text(n)).unwrap();
    }
    harness.wait_until("filtered", || subscription.counts().filtered == 4);
    assert_eq!(*subscription.take().unwrap(), text(0));
    assert!(subscription.take().is_none());
}

pub fn resource_limits_of_a_keyless_topic_block_writers(harness: &Harness) {
    let qos = QosProfile::default()
        .keep_all()
        .max_blocking_time(Duration::from_millis(20))
        .resource_limits(ResourceLimits {
            max_samples: Some(1000),
            max_instances: None,
            max_samples_per_instance: Some(3),
        });
    let (publisher, subscription) = harness.pair(&qos);
    let mut accepted = 0;
    let refused = loop {
        match publisher.publish(&text(accepted)) {
            Ok(()) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 50, "no sample is taken, yet all is accepted");
    };
    assert!(
        matches!(refused, PublishError::TimedOut { .. }),
        "{refused}"
    );
    for n in 0..accepted {
        assert_eq!(*subscription.take_timeout(TIMEOUT).unwrap(), text(n));
    }
}

pub fn user_topic_and_group_data_are_in_the_graph(harness: &Harness) {
    let ours = QosProfile::default()
        .user_data(*b"of the camera \xff;")
        .topic_data("of the topic")
        .group_data("of the group")
        .partition(["front", "rear*"]);
    let theirs = QosProfile::default()
        .user_data("watcher")
        .partition(["rear2"]);
    let (publisher, subscription) = harness.pair_of(&ours, &theirs);
    let graph = harness.subscribing.context().graph();
    let publishers = graph.publishers("/topic");
    let info = publishers
        .iter()
        .find(|e| e.gid == publisher.gid())
        .unwrap();
    assert_eq!(info.qos.user_data, ours.user_data);
    assert_eq!(info.qos.topic_data, ours.topic_data);
    assert_eq!(info.qos.group_data, ours.group_data);
    assert_eq!(info.qos.partition, ours.partition);
    assert!(info.type_hash.is_some());
    let graph = harness.publishing.context().graph();
    let subscriptions = graph.subscriptions("/topic");
    let info = subscriptions
        .iter()
        .find(|e| e.gid == subscription.gid())
        .unwrap();
    assert_eq!(info.qos.user_data, b"watcher");
    publisher.publish(&text(1)).unwrap();
    assert_eq!(*subscription.take_timeout(TIMEOUT).unwrap(), text(1));
}

pub fn incompatible_qos_names_the_policy_on_both_ends_for_every_policy(harness: &Harness) {
    let plain = QosProfile::default;
    let presented = QosProfile {
        presentation: Presentation {
            access_scope: 1,
            coherent: true,
            ordered: true,
        },
        ..plain()
    };
    let millis = Duration::from_millis;
    let latched = QosProfile {
        durability: DurabilityPolicy::TransientLocal,
        ..plain()
    };
    let table = [
        (plain().best_effort(), plain(), PolicyId::Reliability),
        (plain(), latched, PolicyId::Durability),
        (plain(), plain().deadline(millis(500)), PolicyId::Deadline),
        (
            plain(),
            plain().liveliness(LivelinessPolicy::ManualByTopic, Duration::MAX),
            PolicyId::Liveliness,
        ),
        (plain(), plain().exclusive(), PolicyId::Ownership),
        (plain().exclusive(), plain(), PolicyId::Ownership),
        (
            plain(),
            plain().order_by_source(),
            PolicyId::DestinationOrder,
        ),
        (
            plain().latency_budget(millis(5)),
            plain(),
            PolicyId::LatencyBudget,
        ),
        (plain(), presented, PolicyId::Presentation),
    ];
    for (offered, requested, policy) in table {
        let publisher = harness.publisher(&offered);
        let subscription = harness.subscription(&requested);
        let mut ours = EventLog::by(|| publisher.take_event());
        let mut theirs = EventLog::by(|| subscription.take_event());
        let named = |event: &Event, other| {
            matches!(event, Event::IncompatibleQos { peer, policies, .. }
                if *peer == other && *policies == [policy])
        };
        harness.wait_until(policy.name(), || {
            ours.any(|e| named(e, subscription.gid())) && theirs.any(|e| named(e, publisher.gid()))
        });
        // An endpoint of the previous round may still be known.
        harness.wait_until("no match", || {
            publisher.matched_count() + subscription.matched_count() == 0
        });
    }
}
