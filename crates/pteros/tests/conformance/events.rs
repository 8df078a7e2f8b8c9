//! Matches, QoS that does not fit, deadlines, liveliness.

use std::time::Duration;

use pteros::prelude::*;
use pteros::qos::LivelinessPolicy;
use pteros::{EndpointEvent as Event, PolicyId};

use crate::stage::{PATIENCE, Seen, Stage, text};

pub fn matches_are_counted_up_and_down(stage: &Stage) {
    let qos = QosProfile::default();
    let publisher = stage.publisher(&qos);
    let mut seen = Seen::by(|| publisher.take_event());
    for round in 1..=2 {
        let subscription = stage.subscription(&qos);
        let mut theirs = Seen::by(|| subscription.take_event());
        stage.until("a match at the publisher", || {
            seen.any(|e| {
                matches!(e, Event::Matched { total, current: 1, change: 1, peer }
                if *total == round && *peer == subscription.gid())
            })
        });
        stage.until("a match at the subscription", || {
            theirs.any(|e| {
                matches!(e, Event::Matched { total: 1, current: 1, change: 1, peer }
                if *peer == publisher.gid())
            })
        });
        drop(theirs);
        drop(subscription);
        stage.until("its end at the publisher", || {
            seen.any(|e| {
                matches!(e, Event::Matched { total, current: 0, change: -1, .. }
                if *total == round)
            })
        });
    }
    let subscription = stage.subscription(&qos);
    assert!(subscription.wait_for_matched(1, PATIENCE));
    drop(seen);
    drop(publisher);
    let mut theirs = Seen::by(|| subscription.take_event());
    stage.until("the publisher's end", || {
        theirs.any(|e| {
            matches!(
                e,
                Event::Matched {
                    current: 0,
                    change: -1,
                    ..
                }
            )
        })
    });
    assert_eq!(subscription.matched_count(), 0);
}

pub fn qos_that_does_not_fit_names_the_policy_on_both_ends(stage: &Stage) {
    let publisher = stage.publisher(&QosProfile::default().deadline(Duration::from_secs(2)));
    let strict = QosProfile::default()
        .deadline(Duration::from_secs(1))
        .transient_local();
    let subscription = stage.subscription(&strict);
    let mut ours = Seen::by(|| publisher.take_event());
    let mut theirs = Seen::by(|| subscription.take_event());
    let named = |event: &Event, other| {
        matches!(event, Event::IncompatibleQos { total: 1, peer, policies }
            if *peer == other
                && policies.contains(&PolicyId::Deadline)
                && policies.contains(&PolicyId::Durability)
                && policies.len() == 2)
    };
    stage.until("told to both", || {
        ours.any(|e| named(e, subscription.gid())) && theirs.any(|e| named(e, publisher.gid()))
    });
    assert_eq!(publisher.matched_count() + subscription.matched_count(), 0);
}

pub fn another_type_is_told_to_both_ends(stage: &Stage) {
    let qos = QosProfile::default();
    let publisher = stage.publisher(&qos);
    let subscription = stage
        .subscribing
        .create_polled_subscription::<pteros::interfaces::std_msgs::msg::Int8>("topic", &qos)
        .unwrap();
    let mut ours = Seen::by(|| publisher.take_event());
    let mut theirs = Seen::by(|| subscription.take_event());
    let named = |event: &Event, word: &str| {
        matches!(event, Event::IncompatibleType { total: 1, peer_type, .. }
            if peer_type.contains(word))
    };
    stage.until("told to both", || {
        ours.any(|e| named(e, "Int8")) && theirs.any(|e| named(e, "String"))
    });
}

pub fn partitions_keep_endpoints_apart_in_silence(stage: &Stage) {
    let of = |partition: &str| QosProfile {
        partition: vec![partition.into()],
        ..QosProfile::default()
    };
    let publisher = stage.publisher(&of("left"));
    let apart = stage.subscription(&of("right"));
    // The pattern makes the last match the proof that the first was judged.
    let together = stage.subscription(&of("l*"));
    assert!(publisher.wait_for_matched(1, PATIENCE));
    assert!(together.wait_for_matched(1, PATIENCE));
    assert_eq!(apart.matched_count(), 0);
    assert_eq!(apart.take_event(), None);
    let mut ours = Seen::by(|| publisher.take_event());
    assert!(!ours.any(|e| matches!(e, Event::IncompatibleQos { .. })));
}

pub fn a_missed_deadline_is_counted_on_both_ends(stage: &Stage) {
    let qos = QosProfile::default().deadline(Duration::from_millis(40));
    let (publisher, subscription) = stage.pair(&qos);
    publisher.publish(&text(1)).unwrap();
    let mut ours = Seen::by(|| publisher.take_event());
    let mut theirs = Seen::by(|| subscription.take_event());
    let third = |e: &Event| matches!(e, Event::DeadlineMissed { total: 3 });
    stage.until("missed three times", || {
        ours.any(third) && theirs.any(third)
    });
    let totals = |seen: &Seen<'_>| -> Vec<u64> {
        let of = |e: &Event| match e {
            Event::DeadlineMissed { total } => Some(*total),
            _ => None,
        };
        seen.list.iter().filter_map(of).take(3).collect()
    };
    assert_eq!(
        (totals(&ours), totals(&theirs)),
        (vec![1, 2, 3], vec![1, 2, 3])
    );
}

fn manual(kind: LivelinessPolicy, lease_ms: u64) -> QosProfile {
    QosProfile {
        liveliness: kind,
        liveliness_lease: Some(Duration::from_millis(lease_ms)),
        ..QosProfile::default()
    }
}

fn alive(event: &Event) -> bool {
    matches!(
        event,
        Event::LivelinessChanged {
            alive: 1,
            not_alive: 0,
            ..
        }
    )
}

fn silent(event: &Event) -> bool {
    matches!(
        event,
        Event::LivelinessChanged {
            alive: 0,
            not_alive: 1,
            ..
        }
    )
}

pub fn a_silent_manual_writer_is_noticed_and_welcomed_back(stage: &Stage) {
    let (publisher, subscription) = stage.pair(&manual(LivelinessPolicy::ManualByTopic, 100));
    let mut ours = Seen::by(|| publisher.take_event());
    let mut theirs = Seen::by(|| subscription.take_event());
    for round in 1..=3 {
        match round {
            1 => publisher.publish(&text(1)).unwrap(),
            _ => publisher.assert_liveliness(),
        }
        stage.until("alive", || theirs.any(alive));
        theirs.clear();
        stage.until("silent at the subscription", || theirs.any(silent));
        theirs.clear();
        stage.until("lost at the publisher", || {
            ours.any(|e| matches!(e, Event::LivelinessLost { total } if *total >= round))
        });
    }
    drop(ours);
    drop(publisher);
    stage.until("gone", || {
        theirs.any(|e| {
            matches!(
                e,
                Event::LivelinessChanged {
                    alive: 0,
                    not_alive: 0,
                    ..
                }
            )
        })
    });
}

pub fn a_writer_never_heard_of_loses_its_lease(stage: &Stage) {
    let (publisher, subscription) = stage.pair(&manual(LivelinessPolicy::ManualByTopic, 60));
    let mut ours = Seen::by(|| publisher.take_event());
    let mut theirs = Seen::by(|| subscription.take_event());
    stage.until("silent from the start", || {
        theirs.any(silent) && ours.any(|e| matches!(e, Event::LivelinessLost { total: 1 }))
    });
}

pub fn one_writer_manual_by_participant_speaks_for_all(stage: &Stage) {
    let qos = manual(LivelinessPolicy::ManualByParticipant, 100);
    let (quiet, subscription) = stage.pair(&qos);
    let speaker: Publisher<_> = stage
        .publishing
        .create_publisher::<pteros::interfaces::std_msgs::msg::Empty>("elsewhere", &qos)
        .unwrap();
    let mut theirs = Seen::by(|| subscription.take_event());
    stage.until("silent", || theirs.any(silent));
    theirs.clear();
    speaker.assert_liveliness();
    stage.until("alive through another's word", || theirs.any(alive));
    stage.until("silent again", || theirs.any(silent));
    theirs.clear();
    speaker.publish_owned(Default::default()).unwrap();
    stage.until("alive through another's sample", || theirs.any(alive));
    drop(quiet);
}

pub fn automatic_liveliness_lasts_as_long_as_the_process(stage: &Stage) {
    let (publisher, subscription) = stage.pair(&manual(LivelinessPolicy::Automatic, 500));
    let mut theirs = Seen::by(|| subscription.take_event());
    stage.until("alive", || theirs.any(alive));
    assert!(!stage.watch(Duration::from_millis(1200), || theirs.any(silent)));
    let mut ours = Seen::by(|| publisher.take_event());
    assert!(!ours.any(|e| matches!(e, Event::LivelinessLost { .. })));
}
