//! Which samples are delivered, and which are not.

use pteros::subscription::SerializedMessage;
use std::time::Duration;

use pteros::PublisherOptions;
use pteros::SubscriptionOptions;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::prelude::*;
use pteros::subscription::SerializedType;

use crate::conformance::harness::{Harness, TIMEOUT, text};

pub fn sample_info_has_publisher_and_timestamps(harness: &Harness) {
    let (publisher, subscription) = harness.pair(&QosProfile::default());
    let before = harness.wall();
    for n in 1..=3 {
        publisher.publish(&text(n)).unwrap();
    }
    for n in 1..=3 {
        let sample = subscription.take_timeout(TIMEOUT).unwrap();
        let info = *sample.info();
        assert_eq!(*sample, text(n));
        assert_eq!(info.publisher_gid, publisher.gid());
        assert_eq!(info.sequence, n as i64);
        assert_eq!(info.delivery_path, harness.path());
        // RTPS timestamps have fractions of 2^-32 s.
        let stamp = info.source_timestamp.unwrap() + Duration::from_nanos(1);
        assert!(before <= stamp && stamp <= harness.wall());
        assert!(info.latency().is_some());
    }
}

pub fn keep_last_keeps_the_last(harness: &Harness) {
    let deep = QosProfile::default().keep_all();
    let (publisher, subscription) = harness.pair_of(&deep, &QosProfile::default().keep_last(3));
    for n in 0..10 {
        publisher.publish(&text(n)).unwrap();
    }
    harness.wait_until("all received", || subscription.counts().received == 10);
    for n in 7..10 {
        assert_eq!(*subscription.take().unwrap(), text(n));
    }
    assert!(subscription.take().is_none());
    assert_eq!(subscription.counts().overwritten, 7);
    assert_eq!(subscription.counts().lost, 0);
}

/// For typed, dynamic and raw publishers alike, late joiners read typed, dynamic or
/// raw.
pub fn a_late_joiner_gets_kept_samples_in_its_delivery_form(harness: &Harness) {
    let ty = DynamicType::new(Text::type_description()).unwrap();
    let latched = QosProfile::default().keep_last(5).transient_local();
    let typed = harness.publisher(&latched);
    let dynamic = harness
        .publishing
        .create_publisher::<DynamicMessage>(PublisherOptions::of_type(&ty, "topic".qos(&latched)))
        .unwrap();
    typed.publish(&text(1)).unwrap();
    let message = |n| DynamicMessage::from_message(&ty, &text(n)).unwrap();
    dynamic.publish(&message(2)).unwrap();
    let payload = message(3).to_payload(Default::default());
    dynamic.publish_serialized(payload.into()).unwrap();

    let node = &harness.subscribing;
    let late = harness.subscription(&latched);
    let late_dynamic = node
        .create_polled_subscription::<DynamicMessage>(SubscriptionOptions::of_type(
            &ty,
            "topic".qos(&latched),
        ))
        .unwrap();
    let late_raw = node
        .create_polled_subscription::<SerializedMessage>(SubscriptionOptions::of_type(
            &SerializedType::new(Text::TYPE_NAME, None),
            "topic".qos(&latched),
        ))
        .unwrap();
    let mut seen: [Vec<Text>; 3] = Default::default();
    harness.wait_until("all kept samples, three times", || {
        seen[0].extend(late.take().map(|sample| sample.into_inner()));
        seen[1].extend(late_dynamic.take().map(|m| m.to_message().unwrap()));
        seen[2].extend(late_raw.take().map(|bytes| {
            let message = DynamicMessage::from_payload(&ty, &bytes[..]).unwrap();
            message.to_message().unwrap()
        }));
        seen.iter().all(|list| list.len() == 3)
    });
    for mut list in seen {
        list.sort_by(|a, b| a.data.cmp(&b.data));
        assert_eq!(list, [text(1), text(2), text(3)]);
    }
}

pub fn a_late_joiner_gets_the_last_samples_in_order(harness: &Harness) {
    let latched = QosProfile::default().keep_last(5).transient_local();
    let publisher = harness.publisher(&latched);
    for n in 0..8 {
        publisher.publish(&text(n)).unwrap();
    }
    // The reader's depth bounds what it gets, the publisher's what is available.
    for (depth, first) in [(2, 6), (5, 3), (50, 3)] {
        let late = harness.subscription(&latched.clone().keep_last(depth));
        for n in first..8 {
            let sample = late.take_timeout(TIMEOUT).expect("a latched sample");
            assert_eq!(*sample, text(n), "depth {depth}");
        }
        assert!(late.wait_for_matched(1, TIMEOUT));
        assert!(late.take().is_none(), "depth {depth}");
    }
    let late = harness.subscription(&latched.clone().keep_last(50));
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    publisher.publish(&text(8)).unwrap();
    for n in [4, 5, 6, 7, 8] {
        // Samples published after the match follow those before it.
        let sample = late.take_timeout(TIMEOUT).expect("latched, then news");
        let sample = if *sample == text(3) {
            late.take_timeout(TIMEOUT).unwrap()
        } else {
            sample
        };
        assert_eq!(*sample, text(n));
    }
}

pub fn a_volatile_late_joiner_gets_only_new_samples(harness: &Harness) {
    let latched = QosProfile::default().keep_last(5).transient_local();
    let publisher = harness.publisher(&latched);
    publisher.publish(&text(0)).unwrap();
    let late = harness.subscription(&QosProfile::default());
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    assert!(late.wait_for_matched(1, TIMEOUT));
    publisher.publish(&text(1)).unwrap();
    assert_eq!(*late.take_timeout(TIMEOUT).unwrap(), text(1));
    assert!(late.take().is_none());
    assert_eq!(late.counts().lost, 0);
}

fn short_lived() -> QosProfile {
    QosProfile::default()
        .transient_local()
        .lifespan(Duration::from_millis(50))
}

pub fn an_expired_sample_is_not_delivered(harness: &Harness) {
    let (publisher, subscription) = harness.pair(&short_lived());
    publisher.publish(&text(1)).unwrap();
    harness.wait_until("received", || subscription.counts().received == 1);
    harness.poll_for(Duration::from_millis(60), || false);
    assert!(subscription.take().is_none());
    assert_eq!(subscription.counts().expired, 1);
    publisher.publish(&text(2)).unwrap();
    assert_eq!(*subscription.take_timeout(TIMEOUT).unwrap(), text(2));
}

pub fn an_expired_sample_is_not_kept_for_late_joiners(harness: &Harness) {
    let publisher = harness.publisher(&short_lived());
    publisher.publish(&text(1)).unwrap();
    harness.poll_for(Duration::from_millis(60), || false);
    let late = harness.subscription(&short_lived());
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    assert!(late.wait_for_matched(1, TIMEOUT));
    publisher.publish(&text(2)).unwrap();
    assert_eq!(*late.take_timeout(TIMEOUT).unwrap(), text(2));
}
