//! Incompatible QoS is reported by both sides, by the policy's name.

use std::time::Duration;

use pteros::event_handler::EndpointEvent::IncompatibleQos;
use pteros::event_handler::PolicyId;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::qos::LivelinessPolicy;

use crate::interop::harness::*;

struct Case {
    policy: PolicyId,
    weak: fn() -> QosProfile,
    weak_words: &'static str,
    strong: fn() -> QosProfile,
    strong_words: &'static str,
}

const CASES: [Case; 5] = [
    Case {
        policy: PolicyId::Reliability,
        weak: || QosProfile::default().best_effort(),
        weak_words: "--reliability best_effort",
        strong: QosProfile::default,
        strong_words: "",
    },
    Case {
        policy: PolicyId::Durability,
        weak: QosProfile::default,
        weak_words: "",
        strong: || QosProfile::default().transient_local(),
        strong_words: "--durability transient_local",
    },
    Case {
        policy: PolicyId::Deadline,
        weak: || QosProfile::default().deadline(Duration::from_secs(2)),
        weak_words: "--deadline 2000",
        strong: || QosProfile::default().deadline(Duration::from_secs(1)),
        strong_words: "--deadline 1000",
    },
    Case {
        policy: PolicyId::Liveliness,
        weak: QosProfile::default,
        weak_words: "",
        strong: || QosProfile {
            liveliness: LivelinessPolicy::ManualByTopic,
            ..QosProfile::default()
        },
        strong_words: "--liveliness manual_topic",
    },
    Case {
        policy: PolicyId::Liveliness,
        weak: || QosProfile {
            liveliness_lease: Some(Duration::from_secs(5)),
            ..QosProfile::default()
        },
        weak_words: "--lease 5000",
        strong: || QosProfile {
            liveliness_lease: Some(Duration::from_secs(3)),
            ..QosProfile::default()
        },
        strong_words: "--lease 3000",
    },
];

fn names(policy: PolicyId) -> impl FnMut(&pteros::event_handler::EndpointEvent) -> bool {
    move |event| matches!(event, IncompatibleQos { policies, .. } if policies == &[policy])
}

pub fn our_incompatible_offer_is_reported_on_both_sides(harness: &Harness) {
    let node = harness.node();
    for (n, case) in CASES.iter().enumerate() {
        let topic = format!("chatter{n}");
        let publisher = node
            .create_publisher::<Text>(topic.as_str().qos((case.weak)()))
            .unwrap();
        let mut peer = harness.peer(&format!("sub --topic rt/{topic} {}", case.strong_words));
        let told = format!("incompatible_qos policy={} ", case.policy.name());
        peer.expect(&told, TIMEOUT);
        wait_for_event(&node, || publisher.take_event(), names(case.policy));
        assert_eq!(publisher.matched_count(), 0);
        let why = format!(
            "{:?}",
            node.context().graph().match_reports(&format!("/{topic}"))
        );
        assert!(why.contains(case.policy.name()), "{why}");
    }
}

pub fn their_incompatible_offer_is_reported_on_both_sides(harness: &Harness) {
    let node = harness.node();
    for (n, case) in CASES.iter().enumerate() {
        let topic = format!("chatter{n}");
        let subscription = node
            .create_polled_subscription::<Text>(topic.as_str().qos((case.strong)()))
            .unwrap();
        let mut peer = harness.peer(&format!("pub --topic rt/{topic} {}", case.weak_words));
        let told = format!("incompatible_qos policy={} ", case.policy.name());
        peer.expect(&told, TIMEOUT);
        wait_for_event(&node, || subscription.take_event(), names(case.policy));
        assert_eq!(subscription.matched_count(), 0);
    }
}
