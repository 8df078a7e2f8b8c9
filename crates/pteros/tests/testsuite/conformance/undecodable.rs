//! Messages that are not of the subscription's type: they are dropped and counted, and
//! what follows arrives.

use bytes::Bytes;
use pteros::SubscriptionOptions;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::interfaces::test_msgs::msg::BoundedSequences;
use pteros::prelude::*;
use pteros::subscription::{MessageView, SerializedMessage, SerializedType, in_place};
use std::sync::mpsc;

use crate::conformance::harness::{Harness, TIMEOUT, text};

/// Payloads that are no `std_msgs/msg/String`: a header alone, a length beyond the end,
/// the largest length, parameter lists, and an encoding that nobody knows.
const NO_TEXTS: [&[u8]; 5] = [
    &[0, 1, 0, 0],
    &[0, 1, 0, 0, 5, 0, 0, 0, b'a'],
    &[0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff],
    &[0, 3, 0, 0, 2, 0, 0, 0, b'a', 0],
    &[0x80, 1, 0, 0, 2, 0, 0, 0, b'a', 0],
];

/// Payloads that are one, although no publisher of ours writes them: with more behind the
/// message, as of a later version, and with bytes that are not UTF-8.
const TEXTS: [(&[u8], &str); 3] = [
    (&[0, 1, 0, 0, 2, 0, 0, 0, b'a', 0, 9, 9, 9], "a"),
    (&[0, 1, 0, 0, 4, 0, 0, 0, b'a', 0xff, b'b', 0], "a\u{fffd}b"),
    (&[0, 0, 0, 0, 0, 0, 0, 2, b'b', 0], "b"),
];

pub fn a_message_that_does_not_decode_is_dropped_and_counted(harness: &Harness) {
    let qos = QosProfile::default().keep_last(20);
    let (publisher, subscription) = harness.pair(&qos);
    let send = |payload: &'static [u8]| {
        let payload = Bytes::from_static(payload);
        publisher.publish_serialized(payload).unwrap();
    };
    let mut wrong = 0usize;
    let counted = || usize::try_from(subscription.undecodable_count()).unwrap();
    for payload in NO_TEXTS {
        send(payload);
        wrong += 1;
        // Twice in a row, so that a take skips several.
        send(payload);
        wrong += 1;
        publisher.publish(&text(wrong)).unwrap();
        let sample = subscription.take_timeout(TIMEOUT).expect("what follows");
        assert_eq!(*sample, text(wrong), "{payload:?}");
        assert_eq!(counted(), wrong, "{payload:?}");
    }
    for (payload, meant) in TEXTS {
        send(payload);
        let sample = subscription.take_timeout(TIMEOUT).expect("a legal text");
        assert_eq!(sample.data, meant);
    }
    assert_eq!((counted(), subscription.counts().lost), (wrong, 0));
}

/// Both ends, and every tool, know the count.
pub fn undecodable_messages_are_counted_in_the_graph(harness: &Harness) {
    let (publisher, subscription) = harness.pair(&QosProfile::default().keep_last(20));
    for payload in NO_TEXTS {
        let payload = Bytes::from_static(payload);
        publisher.publish_serialized(payload).unwrap();
    }
    publisher.publish(&text(1)).unwrap();
    assert!(subscription.take_timeout(TIMEOUT).is_some());
    for node in [&harness.publishing, &harness.subscribing] {
        let graph = node.context().graph();
        let announced = || {
            let reports = graph.match_reports("/topic");
            let counts = reports.iter().map(|pair| pair.undecodable_count() as usize);
            counts.sum::<usize>()
        };
        harness.wait_until("the counts in the graph", || announced() == NO_TEXTS.len());
    }
}

pub fn every_form_of_subscription_survives_what_does_not_decode(harness: &Harness) {
    let qos = QosProfile::default().keep_last(20);
    let publisher = harness.publisher(&qos);
    let (sender, texts) = mpsc::channel();
    let views = sender.clone();
    let node = &harness.subscribing;
    let called = node
        .create_subscription("topic".qos(&qos), move |word: Sample<Text>| {
            sender.send(("a callback", word.data.clone())).unwrap();
        })
        .unwrap();
    let viewing = node
        .create_subscription(
            "topic".qos(&qos),
            in_place(move |word: MessageView<'_, Text>| {
                views.send(("a view", word.data.to_string())).unwrap();
            }),
        )
        .unwrap();
    let ty = SerializedType::new("std_msgs/msg/String", Some(Text::TYPE_HASH));
    let raw = node
        .create_polled_subscription::<SerializedMessage>(SubscriptionOptions::of_type(
            &ty,
            "topic".qos(&qos),
        ))
        .unwrap();
    assert!(publisher.wait_for_matched(3, TIMEOUT));
    let spun = harness.spin(node);
    for payload in NO_TEXTS {
        publisher
            .publish_serialized(Bytes::from_static(payload))
            .unwrap();
    }
    publisher.publish(&text(1)).unwrap();
    let last = text(1).data;
    let mut seen = Vec::new();
    harness.wait_until("both callbacks", || {
        seen.extend(texts.try_iter());
        seen.len() == 2
    });
    drop(spun);
    seen.sort();
    assert_eq!(seen, [("a callback", last.clone()), ("a view", last)]);
    for count in [called.undecodable_count(), viewing.undecodable_count()] {
        assert_eq!(count, NO_TEXTS.len() as u64);
    }
    // One that never decodes gets the bytes, which RTPS pads.
    for payload in NO_TEXTS {
        let sample = raw.take_timeout(TIMEOUT).unwrap();
        assert!(sample.starts_with(payload), "{sample:?}");
    }
    assert_eq!(raw.undecodable_count(), 0);
}

pub fn bounds_and_booleans_are_judged_on_arrival(harness: &Harness) {
    let publisher = harness
        .publishing
        .create_publisher::<BoundedSequences>("bounded")
        .unwrap();
    let subscription = harness
        .subscribing
        .create_polled_subscription::<BoundedSequences>("bounded")
        .unwrap();
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    let wrong: [&[u8]; 3] = [
        // Four booleans where three fit.
        &[0, 1, 0, 0, 4, 0, 0, 0, 1, 1, 1, 1],
        // A boolean of 7.
        &[0, 1, 0, 0, 1, 0, 0, 0, 7],
        // The rest is missing.
        &[0, 1, 0, 0, 1, 0, 0, 0, 1],
    ];
    for payload in wrong {
        publisher
            .publish_serialized(Bytes::from_static(payload))
            .unwrap();
    }
    let sent = BoundedSequences::default();
    publisher.publish(&sent).unwrap();
    assert_eq!(*subscription.take_timeout(TIMEOUT).unwrap(), sent);
    assert_eq!(subscription.undecodable_count(), 3);
}
