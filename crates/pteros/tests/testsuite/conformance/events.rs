//! Events: matches, incompatible QoS, deadlines, liveliness.

use std::time::Duration;

use pteros::event_handler::{EndpointEvent as Event, PolicyId};
use pteros::graph::MatchOutcome;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::msg::library::InterfaceLibrary;
use pteros::msg::schema::InterfaceKind;
use pteros::prelude::*;
use pteros::qos::LivelinessPolicy;
use pteros::subscription::{SerializedMessage, SerializedType};
use pteros::{PublisherOptions, SubscriptionOptions};

use crate::conformance::harness::{EventLog, Harness, TIMEOUT, text};

pub fn matches_are_counted_up_and_down(harness: &Harness) {
    let qos = QosProfile::default();
    let publisher = harness.publisher(&qos);
    let mut seen = EventLog::by(|| publisher.take_event());
    for round in 1..=2 {
        let subscription = harness.subscription(&qos);
        let mut theirs = EventLog::by(|| subscription.take_event());
        harness.wait_until("a match at the publisher", || {
            seen.any(|e| {
                matches!(e, Event::Matched { total, current: 1, change: 1, peer }
                if *total == round && *peer == subscription.gid())
            })
        });
        harness.wait_until("a match at the subscription", || {
            theirs.any(|e| {
                matches!(e, Event::Matched { total: 1, current: 1, change: 1, peer }
                if *peer == publisher.gid())
            })
        });
        drop(theirs);
        drop(subscription);
        harness.wait_until("its end at the publisher", || {
            seen.any(|e| {
                matches!(e, Event::Matched { total, current: 0, change: -1, .. }
                if *total == round)
            })
        });
    }
    let subscription = harness.subscription(&qos);
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    drop(seen);
    drop(publisher);
    let mut theirs = EventLog::by(|| subscription.take_event());
    harness.wait_until("the publisher's end", || {
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

pub fn incompatible_qos_names_the_policy_on_both_ends(harness: &Harness) {
    let publisher = harness.publisher(&QosProfile::default().deadline(Duration::from_secs(2)));
    let strict = QosProfile::default()
        .deadline(Duration::from_secs(1))
        .transient_local();
    let subscription = harness.subscription(&strict);
    let mut ours = EventLog::by(|| publisher.take_event());
    let mut theirs = EventLog::by(|| subscription.take_event());
    let named = |event: &Event, other| {
        matches!(event, Event::IncompatibleQos { total: 1, peer, policies }
            if *peer == other
                && policies.contains(&PolicyId::Deadline)
                && policies.contains(&PolicyId::Durability)
                && policies.len() == 2)
    };
    harness.wait_until("reported to both", || {
        ours.any(|e| named(e, subscription.gid())) && theirs.any(|e| named(e, publisher.gid()))
    });
    assert_eq!(publisher.matched_count() + subscription.matched_count(), 0);
}

pub fn a_type_mismatch_is_reported_on_both_ends(harness: &Harness) {
    let qos = QosProfile::default();
    let publisher = harness.publisher(&qos);
    let subscription = harness
        .subscribing
        .create_polled_subscription::<pteros::interfaces::std_msgs::msg::Int8>("topic".qos(&qos))
        .unwrap();
    let mut ours = EventLog::by(|| publisher.take_event());
    let mut theirs = EventLog::by(|| subscription.take_event());
    let named = |event: &Event, word: &str| {
        matches!(event, Event::IncompatibleType { total: 1, peer_type, .. }
            if peer_type.contains(word))
    };
    harness.wait_until("reported to both", || {
        ours.any(|e| named(e, "Int8")) && theirs.any(|e| named(e, "String"))
    });
}

/// A type of one name, by its definition.
fn defined(text: &'static str) -> DynamicType {
    let mut library = InterfaceLibrary::new();
    library.insert_text("made", InterfaceKind::Message, "Up", text, "here");
    DynamicType::new(&library.describe("made/msg/Up").unwrap()).unwrap()
}

pub fn another_version_of_the_type_is_reported_on_both_ends(harness: &Harness) {
    let publisher = |text| {
        let options = PublisherOptions::of_type(&defined(text), "made");
        let created = harness
            .publishing
            .create_publisher::<DynamicMessage>(options);
        created.unwrap()
    };
    let subscription = |text| {
        let options = SubscriptionOptions::of_type(&defined(text), "made");
        let subscribing = &harness.subscribing;
        let created = subscribing.create_polled_subscription::<DynamicMessage>(options);
        created.unwrap()
    };
    // Renamed alone, another order, another width, one more: each is another version.
    let versions = [
        "int64 b\n",
        "float64 a\n",
        "int32 a\n",
        "int64 a\nint64 more\n",
    ];
    let written = publisher("int64 a\n");
    let mut ours = EventLog::by(|| written.take_event());
    for (total, version) in (1..).zip(versions) {
        let read = subscription(version);
        let mut theirs = EventLog::by(|| read.take_event());
        let is_total = |event: &Event, wanted: u64| matches!(event, Event::IncompatibleType { total, .. } if *total == wanted);
        harness.wait_until("reported to both", || {
            ours.any(|e| is_total(e, total)) && theirs.any(|e| is_total(e, 1))
        });
        assert_eq!(
            (written.matched_count(), read.matched_count()),
            (0, 0),
            "{version}"
        );
        let graph = harness.subscribing.context().graph();
        let reports = graph.match_reports("/made");
        let of_pair = reports
            .iter()
            .find(|pair| pair.subscription.gid == read.gid());
        let outcomes = &of_pair.unwrap().outcomes;
        assert!(
            matches!(&outcomes[..], [MatchOutcome::Incompatible { policy, offered, requested, .. }]
                if policy == "type" && offered.contains("RIHS01_") && offered != requested),
            "{outcomes:?}"
        );
    }
    // Comments and blank lines make no version.
    let same = subscription("# A number.\n\nint64 a # of things\n");
    assert!(same.wait_for_matched(1, TIMEOUT));
}

/// As a recorder's.
pub fn a_subscription_that_never_decodes_takes_any_version(harness: &Harness) {
    let options = PublisherOptions::of_type(&defined("int64 a\n"), "made");
    let _written = harness
        .publishing
        .create_publisher::<DynamicMessage>(options)
        .unwrap();
    let hash = defined("int32 a\n").hash();
    let ty = SerializedType::new("made/msg/Up", Some(hash));
    let recorder = |ty: SerializedType| {
        let options = SubscriptionOptions::of_type(&ty, "made");
        let subscribing = &harness.subscribing;
        let created = subscribing.create_polled_subscription::<SerializedMessage>(options);
        created.unwrap()
    };
    assert!(recorder(SerializedType::new("made/msg/Up", None)).wait_for_matched(1, TIMEOUT));
    assert!(recorder(ty.clone().any_version()).wait_for_matched(1, TIMEOUT));
    let strict = recorder(ty);
    let mut theirs = EventLog::by(|| strict.take_event());
    harness.wait_until("reported", || {
        theirs.any(|e| matches!(e, Event::IncompatibleType { .. }))
    });
}

pub fn partitions_separate_endpoints_without_an_event(harness: &Harness) {
    let of = |partition: &str| QosProfile {
        partition: vec![partition.into()],
        ..QosProfile::default()
    };
    let publisher = harness.publisher(&of("left"));
    let apart = harness.subscription(&of("right"));
    // The pattern makes the last match the proof that the first was evaluated.
    let together = harness.subscription(&of("l*"));
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    assert!(together.wait_for_matched(1, TIMEOUT));
    assert_eq!(apart.matched_count(), 0);
    assert_eq!(apart.take_event(), None);
    let mut ours = EventLog::by(|| publisher.take_event());
    assert!(!ours.any(|e| matches!(e, Event::IncompatibleQos { .. })));
}

pub fn a_missed_deadline_is_counted_on_both_ends(harness: &Harness) {
    let qos = QosProfile::default().deadline(Duration::from_millis(40));
    let (publisher, subscription) = harness.pair(&qos);
    publisher.publish(&text(1)).unwrap();
    let mut ours = EventLog::by(|| publisher.take_event());
    let mut theirs = EventLog::by(|| subscription.take_event());
    let third = |e: &Event| matches!(e, Event::DeadlineMissed { total: 3 });
    harness.wait_until("missed three times", || {
        ours.any(third) && theirs.any(third)
    });
    let totals = |seen: &EventLog<'_>| -> Vec<u64> {
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

fn is_liveliness_gained(event: &Event) -> bool {
    matches!(
        event,
        Event::LivelinessChanged {
            alive: 1,
            not_alive: 0,
            ..
        }
    )
}

fn is_liveliness_lost(event: &Event) -> bool {
    matches!(
        event,
        Event::LivelinessChanged {
            alive: 0,
            not_alive: 1,
            ..
        }
    )
}

pub fn a_manual_writer_loses_and_regains_liveliness(harness: &Harness) {
    let (publisher, subscription) = harness.pair(&manual(LivelinessPolicy::ManualByTopic, 100));
    let mut ours = EventLog::by(|| publisher.take_event());
    let mut theirs = EventLog::by(|| subscription.take_event());
    for round in 1..=3 {
        if round == 1 {
            publisher.publish(&text(1)).unwrap();
        }
        harness.wait_until("alive", || {
            // One assertion may be lost.
            if round > 1 {
                publisher.assert_liveliness();
            }
            theirs.any(is_liveliness_gained)
        });
        theirs.clear();
        harness.wait_until("silent at the subscription", || {
            theirs.any(is_liveliness_lost)
        });
        theirs.clear();
        harness.wait_until("lost at the publisher", || {
            ours.any(|e| matches!(e, Event::LivelinessLost { total } if *total >= round))
        });
    }
    drop(ours);
    drop(publisher);
    harness.wait_until("gone", || {
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

pub fn a_writer_that_never_asserts_loses_liveliness(harness: &Harness) {
    let (publisher, subscription) = harness.pair(&manual(LivelinessPolicy::ManualByTopic, 60));
    let mut ours = EventLog::by(|| publisher.take_event());
    let mut theirs = EventLog::by(|| subscription.take_event());
    harness.wait_until("silent from the start", || {
        theirs.any(is_liveliness_lost)
            && ours.any(|e| matches!(e, Event::LivelinessLost { total: 1 }))
    });
}

pub fn manual_by_participant_one_writer_asserts_all(harness: &Harness) {
    let qos = manual(LivelinessPolicy::ManualByParticipant, 100);
    let (quiet, subscription) = harness.pair(&qos);
    let speaker: Publisher<_> = harness
        .publishing
        .create_publisher::<pteros::interfaces::std_msgs::msg::Empty>("elsewhere".qos(&qos))
        .unwrap();
    let mut theirs = EventLog::by(|| subscription.take_event());
    harness.wait_until("silent", || theirs.any(is_liveliness_lost));
    theirs.clear();
    speaker.assert_liveliness();
    harness.wait_until("alive through another's word", || {
        theirs.any(is_liveliness_gained)
    });
    harness.wait_until("silent again", || theirs.any(is_liveliness_lost));
    theirs.clear();
    speaker.publish_owned(Default::default()).unwrap();
    harness.wait_until("alive through another's sample", || {
        theirs.any(is_liveliness_gained)
    });
    drop(quiet);
}

pub fn automatic_liveliness_lasts_as_long_as_the_process(harness: &Harness) {
    let (publisher, subscription) = harness.pair(&manual(LivelinessPolicy::Automatic, 500));
    let mut theirs = EventLog::by(|| subscription.take_event());
    harness.wait_until("alive", || theirs.any(is_liveliness_gained));
    assert!(!harness.poll_for(Duration::from_millis(1200), || {
        theirs.any(is_liveliness_lost)
    }));
    let mut ours = EventLog::by(|| publisher.take_event());
    assert!(!ours.any(|e| matches!(e, Event::LivelinessLost { .. })));
}
