//! Which samples are handed over, and in which order, when policies judge.

use std::time::{Duration, SystemTime};

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::qos::{DurabilityPolicy, LivelinessPolicy, Presentation, ResourceLimits};
use pteros::{EndpointEvent as Event, PolicyId, PublishError};

use crate::stage::{PATIENCE, Seen, Stage, text};

fn exclusive(strength: i32) -> QosProfile {
    QosProfile::default()
        .exclusive()
        .ownership_strength(strength)
}

/// Publishes and waits until the subscription has judged the sample; whether
/// it was heard.
fn is_heard(
    stage: &Stage,
    publisher: &Publisher<Text>,
    subscription: &Subscription<Text>,
    n: usize,
) -> bool {
    let before = subscription.counts();
    publisher.publish(&text(n)).unwrap();
    stage.until("judged", || {
        let now = subscription.counts();
        now.received + now.outranked > before.received + before.outranked
    });
    let taken = subscription.take();
    assert!(taken.as_ref().is_none_or(|sample| **sample == text(n)));
    assert_eq!(
        taken.is_none(),
        subscription.counts().outranked > before.outranked
    );
    taken.is_some()
}

pub fn the_strongest_publisher_is_heard_while_it_is_there(stage: &Stage) {
    let subscription = stage.subscription(&exclusive(0));
    let weak = stage.publisher(&exclusive(-3));
    let strong = stage.publisher(&exclusive(7));
    assert!(subscription.wait_for_matched(2, PATIENCE));
    assert!(weak.wait_for_matched(1, PATIENCE) && strong.wait_for_matched(1, PATIENCE));
    // Nobody owns what nobody stronger has written.
    assert!(is_heard(stage, &weak, &subscription, 1));
    assert!(is_heard(stage, &strong, &subscription, 2));
    assert!(!is_heard(stage, &weak, &subscription, 3));
    assert!(is_heard(stage, &strong, &subscription, 4));
    drop(strong);
    stage.until("gone", || subscription.matched_count() == 1);
    assert!(is_heard(stage, &weak, &subscription, 5));
    assert_eq!(subscription.counts().lost, 0);
}

pub fn a_silent_owner_is_followed_by_the_next(stage: &Stage) {
    let manual = |qos: QosProfile| {
        qos.liveliness(LivelinessPolicy::ManualByTopic, Duration::from_millis(150))
    };
    let subscription = stage.subscription(&exclusive(0));
    let weak = stage.publisher(&exclusive(1));
    let strong = stage.publisher(&manual(exclusive(2)));
    assert!(subscription.wait_for_matched(2, PATIENCE));
    assert!(weak.wait_for_matched(1, PATIENCE) && strong.wait_for_matched(1, PATIENCE));
    assert!(is_heard(stage, &strong, &subscription, 1));
    let mut seen = Seen::by(|| subscription.take_event());
    stage.until("silent", || {
        seen.any(|_| false);
        // It may have been silent before its first sample, too.
        let lives = |e: &&Event| matches!(e, Event::LivelinessChanged { .. });
        let last = seen.list.iter().rfind(lives);
        matches!(last, Some(Event::LivelinessChanged { not_alive: 1, .. }))
    });
    assert!(is_heard(stage, &weak, &subscription, 2));
    assert!(is_heard(stage, &strong, &subscription, 3));
}

pub fn an_owner_that_misses_its_deadline_is_followed_by_the_next(stage: &Stage) {
    let within = |qos: QosProfile| qos.deadline(Duration::from_millis(400));
    let subscription = stage.subscription(&within(exclusive(0)));
    let weak = stage.publisher(&within(exclusive(1)));
    let strong = stage.publisher(&within(exclusive(2)));
    assert!(subscription.wait_for_matched(2, PATIENCE));
    assert!(weak.wait_for_matched(1, PATIENCE) && strong.wait_for_matched(1, PATIENCE));
    assert!(is_heard(stage, &strong, &subscription, 1));
    let mut seen = Seen::by(|| subscription.take_event());
    // What others write is no update: the deadline is missed all the same.
    stage.until("missed", || {
        stage.watch(Duration::from_millis(50), || false);
        let missed = seen.any(|e| matches!(e, Event::DeadlineMissed { .. }));
        if !missed {
            weak.publish(&text(2)).unwrap();
        }
        missed
    });
    while subscription.take().is_some() {}
    assert!(is_heard(stage, &weak, &subscription, 3));
    assert!(is_heard(stage, &strong, &subscription, 4));
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds)
}

pub fn samples_are_taken_in_the_order_of_their_source_times(stage: &Stage) {
    let qos = QosProfile::default().order_by_source();
    let subscription = stage.subscription(&qos);
    let (a, b) = (stage.publisher(&qos), stage.publisher(&qos));
    assert!(subscription.wait_for_matched(2, PATIENCE));
    assert!(a.wait_for_matched(1, PATIENCE) && b.wait_for_matched(1, PATIENCE));
    for n in [1, 3, 5] {
        a.publish_at(&text(n), at(n as u64)).unwrap();
    }
    stage.until("received", || subscription.counts().received == 3);
    for n in [2, 4, 6] {
        b.publish_at(&text(n), at(n as u64)).unwrap();
    }
    stage.until("received", || subscription.counts().received == 6);
    for n in 1..=6 {
        let sample = subscription.take().unwrap();
        assert_eq!(
            (&*sample, sample.info().source_time),
            (&text(n), Some(at(n as u64)))
        );
    }
    a.publish_at(&text(0), at(5)).unwrap();
    stage.until("found late", || subscription.counts().late == 1);
    assert!(subscription.take().is_none());
    assert_eq!(subscription.counts().lost, 0);
    a.publish_at(&text(7), at(7)).unwrap();
    assert_eq!(*subscription.take_timeout(PATIENCE).unwrap(), text(7));
}

pub fn source_times_never_run_back_at_one_publisher(stage: &Stage) {
    let (publisher, subscription) = stage.pair(&QosProfile::default().order_by_source());
    publisher.publish_at(&text(1), at(100)).unwrap();
    assert_eq!(*subscription.take_timeout(PATIENCE).unwrap(), text(1));
    // As after the wall clock was set back.
    publisher.publish_at(&text(2), at(1)).unwrap();
    let sample = subscription.take_timeout(PATIENCE).unwrap();
    assert_eq!(
        (&*sample, sample.info().source_time),
        (&text(2), Some(at(100)))
    );
}

const SEPARATION: Duration = Duration::from_millis(300);

pub fn samples_keep_their_distance_and_the_last_arrives(stage: &Stage) {
    let filtered = QosProfile::default().time_based_filter(SEPARATION);
    let (publisher, subscription) = stage.pair_of(&QosProfile::default(), &filtered);
    let begin = stage.now();
    for n in 0..30 {
        publisher.publish(&text(n)).unwrap();
        stage.watch(Duration::from_millis(20), || false);
    }
    let mut taken = Vec::new();
    stage.until("the last", || {
        while let Some(sample) = subscription.take() {
            taken.push(sample.data.clone());
        }
        taken.last() == Some(&text(29).data)
    });
    assert_eq!(taken[0], text(0).data);
    let periods = (stage.now() - begin).as_nanos() / SEPARATION.as_nanos();
    assert!(taken.len() as u128 <= periods + 1, "{taken:?}");
    let counts = subscription.counts();
    assert_eq!(counts.filtered + taken.len() as u64, 30);
    assert_eq!(counts.lost, 0);
}

pub fn best_effort_samples_keep_their_distance(stage: &Stage) {
    let filtered = QosProfile::default()
        .best_effort()
        .time_based_filter(PATIENCE);
    let (publisher, subscription) = stage.pair_of(&QosProfile::default(), &filtered);
    for n in 0..5 {
        publisher.publish(&text(n)).unwrap();
    }
    stage.until("filtered", || subscription.counts().filtered == 4);
    assert_eq!(*subscription.take().unwrap(), text(0));
    assert!(subscription.take().is_none());
}

pub fn limits_of_the_one_instance_hold_writers_back(stage: &Stage) {
    let qos = QosProfile::default()
        .keep_all()
        .max_blocking_time(Duration::from_millis(20))
        .resource_limits(ResourceLimits {
            max_samples: Some(1000),
            max_instances: None,
            max_samples_per_instance: Some(3),
        });
    let (publisher, subscription) = stage.pair(&qos);
    let mut accepted = 0;
    let refused = loop {
        match publisher.publish(&text(accepted)) {
            Ok(()) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 50, "nobody takes, yet all is accepted");
    };
    assert!(
        matches!(refused, PublishError::TimedOut { .. }),
        "{refused}"
    );
    for n in 0..accepted {
        assert_eq!(*subscription.take_timeout(PATIENCE).unwrap(), text(n));
    }
}

pub fn free_data_is_read_in_the_graph(stage: &Stage) {
    let ours = QosProfile::default()
        .user_data(*b"of the camera \xff;")
        .topic_data("of the topic")
        .group_data("of the group")
        .partition(["front", "rear*"]);
    let theirs = QosProfile::default()
        .user_data("watcher")
        .partition(["rear2"]);
    let (publisher, subscription) = stage.pair_of(&ours, &theirs);
    let graph = stage.subscribing.context().graph();
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
    let graph = stage.publishing.context().graph();
    let subscriptions = graph.subscriptions("/topic");
    let info = subscriptions
        .iter()
        .find(|e| e.gid == subscription.gid())
        .unwrap();
    assert_eq!(info.qos.user_data, b"watcher");
    publisher.publish(&text(1)).unwrap();
    assert_eq!(*subscription.take_timeout(PATIENCE).unwrap(), text(1));
}

pub fn every_offer_that_falls_short_is_named_to_both_ends(stage: &Stage) {
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
        let publisher = stage.publisher(&offered);
        let subscription = stage.subscription(&requested);
        let mut ours = Seen::by(|| publisher.take_event());
        let mut theirs = Seen::by(|| subscription.take_event());
        let named = |event: &Event, other| {
            matches!(event, Event::IncompatibleQos { peer, policies, .. }
                if *peer == other && *policies == [policy])
        };
        stage.until(policy.name(), || {
            ours.any(|e| named(e, subscription.gid())) && theirs.any(|e| named(e, publisher.gid()))
        });
        // An end of the round before may not be forgotten yet.
        stage.until("no match", || {
            publisher.matched_count() + subscription.matched_count() == 0
        });
    }
}
