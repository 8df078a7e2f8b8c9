//! Changeable QoS: policies that change on existing publishers and subscriptions.

use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::publisher::PublisherGroup;
use pteros::qos::Presentation;
use pteros::subscription::SubscriptionGroup;
use pteros::{
    error::{CreateError, QosChangeError},
    event_handler::{EndpointEvent as Event, PolicyId},
    graph::EndpointInfo,
};

use crate::conformance::harness::{EventLog, Harness, TIMEOUT, TestTransport, text};
use crate::conformance::instances::{Pair, at, ended, observed_changes, pair_of, shape};

const MILLIS_50: Duration = Duration::from_millis(50);

/// Waits until the other side's graph shows that of an endpoint.
fn wait_until_known(
    harness: &Harness,
    gid: pteros::graph::Guid,
    mut fits: impl FnMut(&EndpointInfo) -> bool,
) {
    let graphs = [harness.publishing.context(), harness.subscribing.context()].map(|c| c.graph());
    harness.wait_until("known on both sides", || {
        graphs.iter().all(|graph| {
            let mut known = graph.publishers("/topic");
            known.extend(graph.subscriptions("/topic"));
            known.extend(graph.publishers("/shapes"));
            known.iter().find(|e| e.gid == gid).is_some_and(&mut fits)
        })
    });
    // Discovered; one poll later the writer and reader have it.
    harness.poll_for(Duration::from_millis(20), || false);
}

fn is_missed(event: &Event) -> bool {
    matches!(event, Event::DeadlineMissed { .. })
}

fn changes(seen: &mut EventLog<'_>) -> Vec<i32> {
    seen.any(|_| false);
    let of_matches = |event: &Event| match event {
        Event::Matched { change, .. } => Some(*change),
        _ => None,
    };
    seen.list.iter().filter_map(of_matches).collect()
}

pub fn a_publisher_that_changes_partition_is_unmatched_until_the_reader_follows(harness: &Harness) {
    let qos = QosProfile::default();
    let (publisher, subscription) = harness.pair(&qos);
    let mut ours = EventLog::by(|| publisher.take_event());
    let mut theirs = EventLog::by(|| subscription.take_event());
    publisher.publish(&text(1)).unwrap();
    harness.wait_until("received", || subscription.counts().received == 1);
    let moved = qos.clone().partition(["rear", "spare*"]);
    subscription.set_qos(&moved).unwrap();
    assert_eq!(*subscription.qos(), moved);
    assert_eq!(subscription.matched_count(), 0);
    harness.wait_until("parted", || publisher.matched_count() == 0);
    publisher.publish(&text(2)).unwrap();
    publisher
        .set_qos(&qos.clone().partition(["spare7"]))
        .unwrap();
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    publisher.publish(&text(3)).unwrap();
    // Samples that wait to be taken survive the change.
    assert_eq!(*subscription.take_timeout(TIMEOUT).unwrap(), text(1));
    assert_eq!(*subscription.take_timeout(TIMEOUT).unwrap(), text(3));
    assert_eq!(subscription.counts().lost, 0);
    assert!(publisher.wait_for_all_acked(TIMEOUT));
    assert_eq!(changes(&mut ours), [1, -1, 1]);
    assert_eq!(changes(&mut theirs), [1, -1, 1]);
    // Back and forth without anybody polling.
    for _ in 0..5 {
        subscription.set_qos(&qos).unwrap();
        subscription.set_qos(&moved).unwrap();
    }
    let settled = moved.clone().user_data("settled");
    subscription.set_qos(&settled).unwrap();
    wait_until_known(harness, subscription.gid(), |e| {
        e.qos.user_data == b"settled"
    });
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    publisher.publish(&text(4)).unwrap();
    assert_eq!(*subscription.take_timeout(TIMEOUT).unwrap(), text(4));
    assert_eq!(subscription.counts().lost, 0);
    assert!(publisher.wait_for_all_acked(TIMEOUT));
}

pub fn a_reader_that_enters_a_partition_gets_kept_samples(harness: &Harness) {
    let latched = QosProfile::default().keep_last(3).transient_local();
    let elsewhere = latched.clone().partition(["elsewhere"]);
    let publisher = harness.publisher(&latched);
    for n in 1..=4 {
        publisher.publish(&text(n)).unwrap();
    }
    let subscription = harness.subscription(&elsewhere);
    let witness = harness.subscription(&latched);
    assert!(witness.wait_for_matched(1, TIMEOUT));
    assert_eq!(subscription.matched_count(), 0);
    subscription.set_qos(&latched).unwrap();
    for n in 2..=4 {
        assert_eq!(*subscription.take_timeout(TIMEOUT).unwrap(), text(n));
        assert_eq!(*witness.take_timeout(TIMEOUT).unwrap(), text(n));
    }
    // A publisher that changes its partition takes its history along.
    publisher.set_qos(&elsewhere).unwrap();
    harness.wait_until("parted", || {
        subscription.matched_count() + publisher.matched_count() == 0
    });
    let mover = harness.subscription(&elsewhere);
    for n in 2..=4 {
        assert_eq!(*mover.take_timeout(TIMEOUT).unwrap(), text(n));
    }
    publisher.set_qos(&latched).unwrap();
    publisher.publish(&text(5)).unwrap();
    // A newly matched reader is a late joiner, even if it was matched before.
    harness.wait_until("the last", || {
        subscription.take().is_some_and(|sample| *sample == text(5))
    });
    harness.wait_until("gone", || mover.matched_count() == 0);
    assert!(mover.take().is_none());
    let lost = [&subscription, &witness, &mover].map(|s| s.counts().lost);
    assert_eq!(lost, [0, 0, 0]);
}

pub fn a_policy_that_becomes_incompatible_is_reported_on_both_ends(harness: &Harness) {
    let qos = QosProfile::default();
    let (publisher, subscription) = harness.pair(&qos);
    let mut ours = EventLog::by(|| publisher.take_event());
    let mut theirs = EventLog::by(|| subscription.take_event());
    let hasty = qos.clone().deadline(Duration::from_millis(300));
    let misfit = |event: &Event| {
        matches!(event, Event::IncompatibleQos { policies, total: 1, .. }
            if *policies == [PolicyId::Deadline])
    };
    subscription.set_qos(&hasty).unwrap();
    harness.wait_until("reported", || ours.any(misfit) && theirs.any(misfit));
    assert_eq!(publisher.matched_count() + subscription.matched_count(), 0);
    publisher.set_qos(&hasty).unwrap();
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    assert_eq!(changes(&mut ours), [1, -1, 1]);
    publisher.publish(&text(1)).unwrap();
    harness.wait_until("missed", || ours.any(is_missed) && theirs.any(is_missed));
    // The latency budget is the other policy of that kind.
    let patient = hasty.clone().latency_budget(MILLIS_50);
    publisher.set_qos(&patient).unwrap();
    let budget = |event: &Event| {
        matches!(event, Event::IncompatibleQos { policies, total: 2, .. }
            if *policies == [PolicyId::LatencyBudget])
    };
    harness.wait_until("reported", || ours.any(budget) && theirs.any(budget));
}

pub fn a_deadline_may_begin_change_and_end(harness: &Harness) {
    let qos = QosProfile::default();
    let (publisher, subscription) = harness.pair(&qos);
    let mut ours = EventLog::by(|| publisher.take_event());
    let mut theirs = EventLog::by(|| subscription.take_event());
    publisher.publish(&text(1)).unwrap();
    assert!(subscription.take_timeout(TIMEOUT).is_some());
    // The offering side first, else they are unmatched for a moment.
    let hasty = qos.clone().deadline(Duration::from_millis(200));
    publisher.set_qos(&hasty).unwrap();
    wait_until_known(harness, publisher.gid(), |e| {
        e.qos.deadline == hasty.deadline
    });
    subscription.set_qos(&hasty).unwrap();
    // The deadline runs though nothing is published any more.
    harness.wait_until("missed", || ours.any(is_missed) && theirs.any(is_missed));
    subscription.set_qos(&qos).unwrap();
    wait_until_known(harness, subscription.gid(), |e| e.qos.deadline.is_none());
    publisher.set_qos(&qos).unwrap();
    ours.clear();
    theirs.clear();
    let again = || ours.any(is_missed) || theirs.any(is_missed);
    assert!(!harness.poll_for(Duration::from_millis(500), again));
    assert_eq!(publisher.matched_count() + subscription.matched_count(), 2);
}

pub fn a_deadline_that_begins_holds_for_each_instance(harness: &Harness) {
    let qos = QosProfile::default();
    let Pair {
        publisher,
        subscription,
    } = pair_of(harness, &qos, &qos);
    let mut ours = EventLog::by(|| publisher.take_event());
    let mut theirs = EventLog::by(|| subscription.take_event());
    for color in ["red", "blue"] {
        publisher.publish(&shape(color, 1)).unwrap();
    }
    publisher.dispose(&shape("blue", 1)).unwrap();
    assert_eq!(observed_changes(harness, &subscription, 3).len(), 3);
    let hasty = qos.clone().deadline(Duration::from_millis(400));
    let since = harness.now();
    publisher.set_qos(&hasty).unwrap();
    wait_until_known(harness, publisher.gid(), |e| {
        e.qos.deadline == hasty.deadline
    });
    subscription.set_qos(&hasty).unwrap();
    let count = |seen: &mut EventLog<'_>| {
        seen.any(|_| false);
        seen.list.iter().filter(|event| is_missed(event)).count()
    };
    harness.wait_until("red is missed", || {
        count(&mut ours) > 0 && count(&mut theirs) > 0
    });
    // Disposed instances have no deadline: otherwise there were twice as many.
    let periods = ((harness.now() - since).as_millis() / 400) as usize;
    assert!(count(&mut ours) <= periods && count(&mut theirs) <= periods);
}

pub fn a_strength_that_changes_changes_the_owner(harness: &Harness) {
    let exclusive = |strength| {
        QosProfile::default()
            .exclusive()
            .ownership_strength(strength)
    };
    let subscription = harness.subscription(&exclusive(0));
    let (a, b) = (
        harness.publisher(&exclusive(5)),
        harness.publisher(&exclusive(3)),
    );
    assert!(subscription.wait_for_matched(2, TIMEOUT));
    assert!(a.wait_for_matched(1, TIMEOUT) && b.wait_for_matched(1, TIMEOUT));
    let is_heard = |publisher: &Publisher<Text>, n| {
        let before = subscription.counts();
        publisher.publish(&text(n)).unwrap();
        harness.wait_until("judged", || {
            let now = subscription.counts();
            now.received + now.not_owner > before.received + before.not_owner
        });
        subscription.take().is_some()
    };
    assert!(is_heard(&a, 1) && !is_heard(&b, 2));
    b.set_qos(&exclusive(7)).unwrap();
    wait_until_known(harness, b.gid(), |e| e.qos.ownership_strength == 7);
    assert!(is_heard(&b, 3) && !is_heard(&a, 4));
    b.set_qos(&exclusive(-7)).unwrap();
    wait_until_known(harness, b.gid(), |e| e.qos.ownership_strength == -7);
    assert!(is_heard(&a, 5) && !is_heard(&b, 6));
    assert_eq!(subscription.matched_count(), 2);
}

pub fn changed_user_topic_and_group_data_are_in_the_graph(harness: &Harness) {
    let qos = QosProfile::default();
    let (publisher, subscription) = harness.pair(&qos);
    let mut ours = EventLog::by(|| publisher.take_event());
    ours.clear();
    for round in ["first", "second"] {
        let changed = qos
            .clone()
            .user_data(format!("user {round};"))
            .topic_data(format!("topic {round}"))
            .group_data(format!("group {round}"))
            .transport_priority(46);
        publisher.set_qos(&changed).unwrap();
        subscription.set_qos(&changed).unwrap();
        for gid in [publisher.gid(), subscription.gid()] {
            wait_until_known(harness, gid, |e| {
                // The USER_DATA that ROS 2 announces is still there.
                assert!(e.type_hash.is_some());
                let (now, then) = (&e.qos, &changed);
                (&now.user_data, &now.topic_data, &now.group_data)
                    == (&then.user_data, &then.topic_data, &then.group_data)
            });
        }
    }
    publisher.publish(&text(1)).unwrap();
    assert_eq!(*subscription.take_timeout(TIMEOUT).unwrap(), text(1));
    assert!(!ours.any(|_| true), "{:?}", ours.list);
}

pub fn a_lifespan_holds_from_the_next_sample_on(harness: &Harness) {
    let qos = QosProfile::default().transient_local();
    let (publisher, subscription) = harness.pair(&qos);
    publisher.publish(&text(1)).unwrap();
    harness.wait_until("received", || subscription.counts().received == 1);
    let brief = qos.clone().lifespan(MILLIS_50);
    publisher.set_qos(&brief).unwrap();
    wait_until_known(harness, publisher.gid(), |e| {
        e.qos.lifespan == brief.lifespan
    });
    publisher.publish(&text(2)).unwrap();
    harness.wait_until("received", || subscription.counts().received == 2);
    harness.poll_for(MILLIS_50 * 2, || false);
    let late = harness.subscription(&qos);
    assert!(late.wait_for_matched(1, TIMEOUT));
    publisher.set_qos(&qos).unwrap();
    wait_until_known(harness, publisher.gid(), |e| e.qos.lifespan.is_none());
    publisher.publish(&text(3)).unwrap();
    for subscription in [&subscription, &late] {
        harness.wait_until("received", || subscription.counts().received >= 2);
        assert_eq!(*subscription.take_timeout(TIMEOUT).unwrap(), text(1));
        assert_eq!(*subscription.take_timeout(TIMEOUT).unwrap(), text(3));
    }
    assert_eq!(subscription.counts().expired, 1);
    assert_eq!(late.counts().lost, 0);
}

pub fn a_time_filter_may_begin_and_end(harness: &Harness) {
    let qos = QosProfile::default();
    let filtered = qos.clone().time_based_filter(TIMEOUT * 10);
    let (publisher, subscription) = harness.pair(&qos);
    publisher.publish(&text(1)).unwrap();
    harness.wait_until("received", || subscription.counts().received == 1);
    subscription.set_qos(&filtered).unwrap();
    for n in 2..=4 {
        publisher.publish(&text(n)).unwrap();
    }
    // The first passes, the second is replaced by the third, which is held back.
    harness.wait_until("filtered", || subscription.counts().filtered == 1);
    assert_eq!(subscription.counts().received, 2);
    subscription.set_qos(&qos).unwrap();
    harness.wait_until("handed over", || subscription.counts().received == 3);
    publisher.publish(&text(5)).unwrap();
    for n in [1, 2, 4, 5] {
        assert_eq!(*subscription.take_timeout(TIMEOUT).unwrap(), text(n));
    }
    assert_eq!(subscription.counts().lost, 0);
}

pub fn a_latency_budget_may_begin_and_end(harness: &Harness) {
    let budget = QosProfile::default()
        .keep_last(50)
        .latency_budget(TIMEOUT * 10);
    let none = budget.clone().latency_budget(Duration::ZERO);
    let (publisher, subscription) = harness.pair_of(&none, &budget);
    let received =
        |count| harness.wait_until("received", || subscription.counts().received == count);
    publisher.publish(&text(1)).unwrap();
    received(1);
    publisher.set_qos(&budget).unwrap();
    publisher.publish(&text(2)).unwrap();
    let comes = harness.poll_for(MILLIS_50, || subscription.counts().received == 2);
    // Intra-process delivery has no datagrams to fill.
    assert_eq!(comes, harness.transport == TestTransport::IntraProcess);
    publisher.set_qos(&none).unwrap();
    received(2);
    publisher.publish(&text(3)).unwrap();
    received(3);
    assert!(publisher.wait_for_all_acked(TIMEOUT));
}

pub fn reader_data_lifecycle_may_change(harness: &Harness) {
    let qos = QosProfile::default();
    let Pair {
        publisher,
        subscription,
    } = pair_of(harness, &qos, &qos);
    publisher.publish(&shape("red", 1)).unwrap();
    publisher.set_qos(&qos.clone().no_autodispose()).unwrap();
    publisher.unregister(&shape("red", 1)).unwrap();
    let left = ended("red", pteros::instance::InstanceState::NoWriters);
    assert_eq!(
        observed_changes(harness, &subscription, 2),
        [at("red", 1), left]
    );
    publisher.publish(&shape("blue", 2)).unwrap();
    publisher.dispose(&shape("blue", 2)).unwrap();
    harness.wait_until("received", || subscription.counts().received == 2);
    harness.poll_for(MILLIS_50, || false);
    // Also for instances that have already ended.
    subscription
        .set_qos(&qos.clone().autopurge_disposed(MILLIS_50))
        .unwrap();
    harness.wait_until("purged", || subscription.counts().purged == 1);
    assert!(subscription.take_change().is_none());
}

pub fn immutable_policies_are_named_and_nothing_changes(harness: &Harness) {
    let qos = QosProfile::default();
    let (publisher, subscription) = harness.pair(&qos);
    let other = qos
        .clone()
        .best_effort()
        .keep_all()
        .exclusive()
        .partition(["elsewhere"]);
    let refused = publisher.set_qos(&other).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "topic \"/topic\": QoS RELIABILITY (reliable, max blocking time 100 ms, requested best \
         effort, max blocking time 100 ms), HISTORY (keep last 10, requested keep all), OWNERSHIP \
         (shared, requested exclusive) is immutable after creation; keep it, or create another \
         endpoint"
    );
    let named = |error: CreateError| match error {
        CreateError::QosChange {
            source: QosChangeError::Immutable(fixed),
            ..
        } => fixed.iter().map(|f| f.policy).collect(),
        _ => Vec::new(),
    };
    let unlike = qos.clone().transient_local().order_by_source();
    let refused = subscription.set_qos(&unlike).unwrap_err();
    assert_eq!(named(refused), ["DURABILITY", "DESTINATION_ORDER"]);
    let plain_name = qos.clone().avoid_ros_namespace_conventions();
    let refused = subscription.set_qos(&plain_name).unwrap_err();
    assert_eq!(named(refused), ["avoid_ros_namespace_conventions"]);
    let contradiction = qos
        .clone()
        .deadline(Duration::from_millis(10))
        .time_based_filter(Duration::from_millis(20));
    let refused = subscription.set_qos(&contradiction).unwrap_err();
    assert!(
        matches!(&refused, CreateError::QosChange { source: QosChangeError::Contradiction(e), .. } if e.policy == "DEADLINE")
    );
    assert_eq!((&*publisher.qos(), &*subscription.qos()), (&qos, &qos));
    assert_eq!(publisher.matched_count() + subscription.matched_count(), 2);
    // "Best available" keeps what it resolved to.
    let available = QosProfile {
        reliability: pteros::qos::ReliabilityPolicy::BestAvailable,
        durability: pteros::qos::DurabilityPolicy::BestAvailable,
        ..qos.clone().user_data("settled")
    };
    subscription.set_qos(&available).unwrap();
    assert_eq!(*subscription.qos(), qos.clone().user_data("settled"));
    publisher.publish(&text(1)).unwrap();
    assert_eq!(*subscription.take_timeout(TIMEOUT).unwrap(), text(1));
    subscription.set_qos(&qos).unwrap();
    drop((publisher, subscription));
}

pub fn a_group_changes_partition_as_a_whole(harness: &Harness) {
    let presentation = Presentation {
        access_scope: 2,
        coherent: true,
        ordered: false,
    };
    let writing = PublisherGroup::new(&harness.publishing, presentation).unwrap();
    let reading = SubscriptionGroup::new(&harness.subscribing, presentation).unwrap();
    let qos = QosProfile::default();
    let publisher = |topic: &str| writing.create_publisher::<Text>(topic.qos(&qos)).unwrap();
    let subscription = |topic: &str| {
        reading
            .create_polled_subscription::<Text>(topic.qos(&qos))
            .unwrap()
    };
    let (a, b) = (publisher("a"), publisher("b"));
    let (of_a, of_b) = (subscription("a"), subscription("b"));
    let matched = |count: usize| {
        harness.wait_until("all matched, or none", || {
            let publishers = [a.matched_count(), b.matched_count()];
            publishers == [count; 2] && [of_a.matched_count(), of_b.matched_count()] == [count; 2]
        });
    };
    matched(1);
    writing.set_partition(["rear"]).unwrap();
    matched(0);
    reading.set_partition(["rear"]).unwrap();
    matched(1);
    // Members created later join the group's partition.
    let (c, of_c) = (publisher("c"), subscription("c"));
    assert_eq!(c.qos().partition, ["rear"]);
    assert!(c.wait_for_matched(1, TIMEOUT) && of_c.wait_for_matched(1, TIMEOUT));
    writing.set_group_data("of the arm").unwrap();
    let graph = harness.subscribing.context().graph();
    harness.wait_until("read", || {
        ["/a", "/b", "/c"].iter().all(|topic| {
            let publishers = graph.publishers(topic);
            publishers.iter().all(|e| e.qos.group_data == b"of the arm")
        })
    });
    let set = writing.begin_coherent_changes().unwrap();
    assert_eq!(
        writing.set_partition(["front"]),
        Err(QosChangeError::SetOpen)
    );
    for (n, publisher) in [&a, &b, &c].into_iter().enumerate() {
        publisher.publish(&text(n)).unwrap();
    }
    set.end();
    let mut taken = 0;
    harness.wait_until("the set", || {
        while reading.take().is_some() {
            taken += 1;
        }
        taken == 3
    });
    let too_long = "x".repeat(300);
    assert!(matches!(
        reading.set_partition([too_long]),
        Err(QosChangeError::Contradiction(_))
    ));
}
