//! Asynchronous publishers: what they publish arrives like any other's, later.

use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::{CreateError, PublisherOptions};

use crate::stage::{PATIENCE, SLOW, Stage, Way, text};

fn paced(stage: &Stage, qos: &QosProfile) -> (Publisher<Text>, Subscription<Text>) {
    let options = PublisherOptions::new(qos).asynchronous(SLOW);
    let publisher = stage
        .publishing
        .create_publisher_with("topic", options)
        .unwrap();
    let subscription = stage.subscription(qos);
    assert!(publisher.wait_for_matched(1, PATIENCE));
    assert!(subscription.wait_for_matched(1, PATIENCE));
    (publisher, subscription)
}

/// 20 kB, beginning with its number.
fn large(n: usize) -> Text {
    Text {
        data: format!("{n:<20000}"),
    }
}

fn number(sample: &Sample<Text>) -> usize {
    sample.data.trim_end().parse().unwrap()
}

pub fn an_asynchronous_publisher_keeps_its_pace_and_loses_nothing(stage: &Stage) {
    let (publisher, subscription) = paced(stage, &QosProfile::default().keep_last(50));
    let begin = stage.now();
    for n in 0..50 {
        publisher.publish(&large(n)).unwrap();
    }
    let unsent = publisher.unsent_count();
    match stage.way {
        Way::Local => assert_eq!(unsent, 0, "no pace within a process"),
        _ => assert!(unsent > 0),
    }
    assert!(publisher.wait_for_all_acked(PATIENCE));
    assert_eq!(publisher.unsent_count(), 0);
    if stage.way != Way::Local {
        // 1 MB at 5 MB/s, the first period's bytes at once.
        let took = stage.now() - begin;
        assert!(took.as_millis() >= 180, "{took:?}");
    }
    for n in 0..50 {
        let sample = subscription.take_timeout(PATIENCE).expect("the next one");
        assert_eq!(number(&sample), n);
    }
    assert_eq!(publisher.counts().replaced_unsent, 0);
}

pub fn an_asynchronous_keep_all_publisher_waits_for_its_turn(stage: &Stage) {
    for qos in [QosProfile::default(), QosProfile::default().best_effort()] {
        let is_reliable = qos.reliability == QosProfile::default().reliability;
        let mut qos = qos.keep_all();
        qos.resource_limits.max_samples = Some(4);
        qos.max_blocking_time = Some(PATIENCE);
        let (publisher, subscription) = paced(stage, &qos);
        for n in 0..20 {
            publisher.publish(&large(n)).unwrap();
            // A best-effort one within a process waits for nobody.
            while let Some(sample) = subscription.take() {
                assert!(number(&sample) <= n);
            }
        }
        publisher.wait_for_all_acked(PATIENCE);
        publisher.publish(&text(99)).unwrap();
        let mut last = 0;
        stage.until("the last one", || {
            // A storm may take one that nobody sends again.
            if !is_reliable {
                publisher.publish(&text(99)).unwrap();
            }
            while let Some(sample) = subscription.take() {
                last = number(&sample);
            }
            last == 99
        });
        assert_eq!(publisher.counts().replaced_unsent, 0);
        if is_reliable {
            // A best-effort one may have overrun a queue of four.
            assert_eq!(subscription.counts().lost, 0);
        }
    }
}

pub fn the_newest_message_is_sent_where_the_pace_is_too_slow_for_all(stage: &Stage) {
    let (publisher, subscription) = paced(stage, &QosProfile::default().keep_last(1));
    for n in 0..50 {
        publisher.publish(&large(n)).unwrap();
    }
    assert!(publisher.wait_for_all_acked(PATIENCE));
    let mut taken = Vec::new();
    while let Some(sample) = subscription.take() {
        taken.push(number(&sample));
    }
    assert_eq!(taken.last(), Some(&49));
    let replaced = publisher.counts().replaced_unsent;
    match stage.way {
        Way::Local => assert_eq!(replaced, 0),
        _ => assert!((30..50).contains(&replaced), "{replaced}"),
    }
    // Nothing was lost on the way.
    assert_eq!(subscription.counts().lost, 0);
}

pub fn an_expired_message_is_not_sent(stage: &Stage) {
    let mut qos = QosProfile::default().keep_last(200);
    qos.lifespan = Some(Duration::from_millis(50));
    let (publisher, subscription) = paced(stage, &qos);
    for n in 0..100 {
        publisher.publish(&large(n)).unwrap();
    }
    // 2 MB are 400 ms.
    publisher.wait_for_all_acked(PATIENCE);
    let counts = subscription.counts();
    assert_eq!(counts.lost, 0);
    match stage.way {
        Way::Local => assert_eq!(counts.received, 100),
        _ => assert!(counts.received < 60, "{counts:?}"),
    }
}

/// A minute's budget, room for all: nothing goes by itself while a story lasts.
fn a_minute() -> QosProfile {
    let qos = QosProfile::default().keep_last(1_000);
    qos.latency_budget(Duration::from_secs(60))
}

/// Publishes ten messages, lets go of them with `release`, takes them.
#[track_caller]
fn ten(stage: &Stage, release: impl FnOnce(Publisher<Text>)) {
    let (publisher, subscription) = stage.pair(&a_minute());
    for n in 0..10 {
        publisher.publish(&text(n)).unwrap();
    }
    release(publisher);
    for n in 0..10 {
        let sample = subscription.take_timeout(PATIENCE).expect("the next one");
        assert_eq!(*sample, text(n));
    }
}

pub fn a_flush_ends_the_latency_budget(stage: &Stage) {
    // The publisher stays, or its end would flush, too.
    let mut kept = None;
    ten(stage, |publisher| {
        publisher.flush();
        kept = Some(publisher);
    });
}

pub fn waiting_for_acknowledgements_ends_the_latency_budget(stage: &Stage) {
    ten(stage, |publisher| {
        assert!(publisher.wait_for_all_acked(PATIENCE));
    });
}

pub fn a_publisher_that_goes_holds_nothing_back(stage: &Stage) {
    ten(stage, drop);
}

pub fn small_messages_share_datagrams_within_the_latency_budget(stage: &Stage) {
    let qos = a_minute().latency_budget(Duration::from_millis(50));
    let (publisher, subscription) = stage.pair(&qos);
    let sent = || {
        let context = stage.publishing.context();
        let linked = context.link_counts().map_or(0, |counts| counts.sent);
        context.counts().datagrams_sent + linked
    };
    let before = sent();
    for n in 0..500 {
        publisher.publish(&text(n)).unwrap();
    }
    for n in 0..500 {
        let sample = subscription.take_timeout(PATIENCE).expect("the next one");
        assert_eq!(*sample, text(n));
    }
    // Discovery says something now and then, too.
    let sent = sent() - before;
    assert!(sent <= 250, "{sent}");
}

pub fn a_flow_controller_that_does_not_exist_is_named(stage: &Stage) {
    let options = PublisherOptions::new(10).asynchronous("fast");
    let refused = stage
        .publishing
        .create_publisher_with::<Text>("topic", options);
    let error = refused.expect_err("refused");
    assert!(matches!(error, CreateError::Endpoint { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("\"fast\"") && text.contains(SLOW), "{text}");
}
