//! What is handed over, and what is not.

use std::time::Duration;

use pteros::SubscriptionOptions;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::prelude::*;

use crate::stage::{PATIENCE, Stage, text};

pub fn a_sample_says_where_and_when_it_was_published(stage: &Stage) {
    let (publisher, subscription) = stage.pair(&QosProfile::default());
    let before = stage.wall();
    for n in 1..=3 {
        publisher.publish(&text(n)).unwrap();
    }
    for n in 1..=3 {
        let sample = subscription.take_timeout(PATIENCE).unwrap();
        let info = *sample.info();
        assert_eq!(*sample, text(n));
        assert_eq!(info.publisher, publisher.gid());
        assert_eq!(info.sequence, n as i64);
        assert_eq!(info.path, stage.path());
        // RTPS keeps fractions of 2^-32 s.
        let stamp = info.source_time.unwrap() + Duration::from_nanos(1);
        assert!(before <= stamp && stamp <= stage.wall());
        assert!(info.latency().is_some());
    }
}

pub fn keep_last_keeps_the_last(stage: &Stage) {
    let deep = QosProfile::default().keep_all();
    let (publisher, subscription) = stage.pair_of(&deep, &QosProfile::default().keep_last(3));
    for n in 0..10 {
        publisher.publish(&text(n)).unwrap();
    }
    stage.until("all received", || subscription.counts().received == 10);
    for n in 7..10 {
        assert_eq!(*subscription.take().unwrap(), text(n));
    }
    assert!(subscription.take().is_none());
    assert_eq!(subscription.counts().overwritten, 7);
    assert_eq!(subscription.counts().lost, 0);
}

/// Whoever publishes them, what late joiners read is typed, dynamic or bytes.
pub fn a_late_joiner_gets_what_was_kept_in_the_form_it_reads(stage: &Stage) {
    let ty = DynamicType::new(Text::type_description()).unwrap();
    let latched = QosProfile::default().keep_last(5).transient_local();
    let typed = stage.publisher(&latched);
    let dynamic = stage
        .publishing
        .create_dynamic_publisher("topic", &ty, &latched)
        .unwrap();
    typed.publish(&text(1)).unwrap();
    let message = |n| DynamicMessage::from_message(&ty, &text(n)).unwrap();
    dynamic.publish(&message(2)).unwrap();
    let payload = message(3).to_payload(Default::default());
    dynamic.publish_serialized(payload.into()).unwrap();

    let node = &stage.subscribing;
    let late = stage.subscription(&latched);
    let late_dynamic = node
        .create_dynamic_subscription("topic", &ty, SubscriptionOptions::new(&latched))
        .unwrap();
    let late_raw = node
        .create_raw_subscription(
            "topic",
            Text::TYPE_NAME,
            None,
            SubscriptionOptions::new(&latched),
        )
        .unwrap();
    let mut seen: [Vec<Text>; 3] = Default::default();
    stage.until("all kept samples, three times", || {
        seen[0].extend(late.take().map(|sample| sample.into_inner()));
        seen[1].extend(late_dynamic.take().map(|m| m.to_message().unwrap()));
        seen[2].extend(late_raw.take().map(|bytes| {
            let message = DynamicMessage::from_payload(&ty, &bytes).unwrap();
            message.to_message().unwrap()
        }));
        seen.iter().all(|list| list.len() == 3)
    });
    for mut list in seen {
        list.sort_by(|a, b| a.data.cmp(&b.data));
        assert_eq!(list, [text(1), text(2), text(3)]);
    }
}

pub fn a_late_joiner_gets_the_last_samples_in_order(stage: &Stage) {
    let latched = QosProfile::default().keep_last(5).transient_local();
    let publisher = stage.publisher(&latched);
    for n in 0..8 {
        publisher.publish(&text(n)).unwrap();
    }
    // Its own depth bounds what it gets, the publisher's what there is.
    for (depth, first) in [(2, 6), (5, 3), (50, 3)] {
        let late = stage.subscription(&latched.clone().keep_last(depth));
        for n in first..8 {
            let sample = late.take_timeout(PATIENCE).expect("a latched sample");
            assert_eq!(*sample, text(n), "depth {depth}");
        }
        assert!(late.wait_for_matched(1, PATIENCE));
        assert!(late.take().is_none(), "depth {depth}");
    }
    let late = stage.subscription(&latched.clone().keep_last(50));
    assert!(publisher.wait_for_matched(1, PATIENCE));
    publisher.publish(&text(8)).unwrap();
    for n in [4, 5, 6, 7, 8] {
        // What is published after the match comes after what was before.
        let sample = late.take_timeout(PATIENCE).expect("latched, then news");
        let sample = match *sample == text(3) {
            true => late.take_timeout(PATIENCE).unwrap(),
            false => sample,
        };
        assert_eq!(*sample, text(n));
    }
}

pub fn a_volatile_late_joiner_gets_only_news(stage: &Stage) {
    let latched = QosProfile::default().keep_last(5).transient_local();
    let publisher = stage.publisher(&latched);
    publisher.publish(&text(0)).unwrap();
    let late = stage.subscription(&QosProfile::default());
    assert!(publisher.wait_for_matched(1, PATIENCE));
    assert!(late.wait_for_matched(1, PATIENCE));
    publisher.publish(&text(1)).unwrap();
    assert_eq!(*late.take_timeout(PATIENCE).unwrap(), text(1));
    assert!(late.take().is_none());
    assert_eq!(late.counts().lost, 0);
}

fn short_lived() -> QosProfile {
    QosProfile::default()
        .transient_local()
        .lifespan(Duration::from_millis(50))
}

pub fn an_expired_sample_is_not_handed_over(stage: &Stage) {
    let (publisher, subscription) = stage.pair(&short_lived());
    publisher.publish(&text(1)).unwrap();
    stage.until("received", || subscription.counts().received == 1);
    stage.watch(Duration::from_millis(60), || false);
    assert!(subscription.take().is_none());
    assert_eq!(subscription.counts().expired, 1);
    publisher.publish(&text(2)).unwrap();
    assert_eq!(*subscription.take_timeout(PATIENCE).unwrap(), text(2));
}

pub fn an_expired_sample_is_not_kept_for_late_joiners(stage: &Stage) {
    let publisher = stage.publisher(&short_lived());
    publisher.publish(&text(1)).unwrap();
    stage.watch(Duration::from_millis(60), || false);
    let late = stage.subscription(&short_lived());
    assert!(publisher.wait_for_matched(1, PATIENCE));
    assert!(late.wait_for_matched(1, PATIENCE));
    publisher.publish(&text(2)).unwrap();
    assert_eq!(*late.take_timeout(PATIENCE).unwrap(), text(2));
}
