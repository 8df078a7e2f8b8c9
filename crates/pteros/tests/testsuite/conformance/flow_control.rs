//! Flow control: messages of asynchronous publishers arrive like all others, only
//! later.

use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::{PublisherOptions, error::CreateError};

use crate::conformance::harness::{Harness, SLOW_CONTROLLER, TIMEOUT, TestTransport, text};

fn flow_controlled(harness: &Harness, qos: &QosProfile) -> (Publisher<Text>, Subscription<Text>) {
    let options = PublisherOptions::new("topic".qos(qos)).asynchronous(SLOW_CONTROLLER);
    let publisher = harness.publishing.create_publisher(options).unwrap();
    let subscription = harness.subscription(qos);
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    (publisher, subscription)
}

/// 20 kB, starting with its number.
fn large(n: usize) -> Text {
    Text {
        data: format!("{n:<20000}"),
    }
}

fn number(sample: &Sample<Text>) -> usize {
    sample.data.trim_end().parse().unwrap()
}

pub fn an_asynchronous_publisher_keeps_the_flow_controllers_rate_and_loses_nothing(
    harness: &Harness,
) {
    let (publisher, subscription) = flow_controlled(harness, &QosProfile::default().keep_last(50));
    let begin = harness.now();
    for n in 0..50 {
        publisher.publish(&large(n)).unwrap();
    }
    let unsent = publisher.unsent_count();
    match harness.transport {
        TestTransport::IntraProcess => assert_eq!(unsent, 0, "no pace within a process"),
        _ => assert!(unsent > 0),
    }
    assert!(publisher.wait_for_all_acked(TIMEOUT));
    assert_eq!(publisher.unsent_count(), 0);
    if harness.transport != TestTransport::IntraProcess {
        // 1 MB at 5 MB/s; the first period's bytes are sent at once.
        let took = harness.now() - begin;
        assert!(took.as_millis() >= 180, "{took:?}");
    }
    for n in 0..50 {
        let sample = subscription.take_timeout(TIMEOUT).expect("the next one");
        assert_eq!(number(&sample), n);
    }
    assert_eq!(publisher.counts().replaced_before_send, 0);
}

pub fn an_asynchronous_keep_all_publisher_blocks_until_it_may_send(harness: &Harness) {
    for qos in [QosProfile::default(), QosProfile::default().best_effort()] {
        let is_reliable = qos.reliability == QosProfile::default().reliability;
        let mut qos = qos.keep_all();
        qos.resource_limits.max_samples = Some(4);
        qos.max_blocking_time = Some(TIMEOUT);
        let (publisher, subscription) = flow_controlled(harness, &qos);
        for n in 0..20 {
            publisher.publish(&large(n)).unwrap();
            // A best-effort publisher does not wait for intra-process readers.
            while let Some(sample) = subscription.take() {
                assert!(number(&sample) <= n);
            }
        }
        publisher.wait_for_all_acked(TIMEOUT);
        publisher.publish(&text(99)).unwrap();
        let mut last = 0;
        harness.wait_until("the last one", || {
            // A lossy network may drop one, and best effort does not retransmit.
            if !is_reliable {
                publisher.publish(&text(99)).unwrap();
            }
            while let Some(sample) = subscription.take() {
                last = number(&sample);
            }
            last == 99
        });
        assert_eq!(publisher.counts().replaced_before_send, 0);
        if is_reliable {
            // A best-effort publisher may have overrun a queue of four.
            assert_eq!(subscription.counts().lost, 0);
        }
    }
}

pub fn keep_last_sends_the_newest_when_the_flow_controller_is_too_slow(harness: &Harness) {
    let (publisher, subscription) = flow_controlled(harness, &QosProfile::default().keep_last(1));
    for n in 0..50 {
        publisher.publish(&large(n)).unwrap();
    }
    assert!(publisher.wait_for_all_acked(TIMEOUT));
    let mut taken = Vec::new();
    while let Some(sample) = subscription.take() {
        taken.push(number(&sample));
    }
    assert_eq!(taken.last(), Some(&49));
    let replaced = publisher.counts().replaced_before_send;
    match harness.transport {
        TestTransport::IntraProcess => assert_eq!(replaced, 0),
        _ => assert!((30..50).contains(&replaced), "{replaced}"),
    }
    // Nothing was lost on the network.
    assert_eq!(subscription.counts().lost, 0);
}

pub fn an_expired_message_is_not_sent(harness: &Harness) {
    let mut qos = QosProfile::default().keep_last(200);
    qos.lifespan = Some(Duration::from_millis(50));
    let (publisher, subscription) = flow_controlled(harness, &qos);
    for n in 0..100 {
        publisher.publish(&large(n)).unwrap();
    }
    // 2 MB are 400 ms.
    publisher.wait_for_all_acked(TIMEOUT);
    let counts = subscription.counts();
    assert_eq!(counts.lost, 0);
    match harness.transport {
        TestTransport::IntraProcess => assert_eq!(counts.received, 100),
        _ => assert!(counts.received < 60, "{counts:?}"),
    }
}

/// A budget of a minute and room for all: nothing is sent by itself during a test.
fn a_minute() -> QosProfile {
    let qos = QosProfile::default().keep_last(1_000);
    qos.latency_budget(Duration::from_secs(60))
}

/// Publishes ten messages, sends them with `release`, takes them.
#[track_caller]
fn ten(harness: &Harness, release: impl FnOnce(Publisher<Text>)) {
    let (publisher, subscription) = harness.pair(&a_minute());
    for n in 0..10 {
        publisher.publish(&text(n)).unwrap();
    }
    release(publisher);
    for n in 0..10 {
        let sample = subscription.take_timeout(TIMEOUT).expect("the next one");
        assert_eq!(*sample, text(n));
    }
}

pub fn a_flush_ends_the_latency_budget(harness: &Harness) {
    // Keeps the publisher: dropping it would flush, too.
    let mut kept = None;
    ten(harness, |publisher| {
        publisher.flush();
        kept = Some(publisher);
    });
}

pub fn waiting_for_acknowledgements_ends_the_latency_budget(harness: &Harness) {
    ten(harness, |publisher| {
        assert!(publisher.wait_for_all_acked(TIMEOUT));
    });
}

pub fn a_dropped_publisher_sends_its_batch(harness: &Harness) {
    ten(harness, drop);
}

pub fn small_messages_share_datagrams_within_the_latency_budget(harness: &Harness) {
    let qos = a_minute().latency_budget(Duration::from_millis(50));
    let (publisher, subscription) = harness.pair(&qos);
    let sent = || {
        let context = harness.publishing.context();
        let linked = context.connection_counts().map_or(0, |counts| counts.sent);
        context.counts().datagrams_sent + linked
    };
    let before = sent();
    for n in 0..500 {
        publisher.publish(&text(n)).unwrap();
    }
    for n in 0..500 {
        let sample = subscription.take_timeout(TIMEOUT).expect("the next one");
        assert_eq!(*sample, text(n));
    }
    // Discovery sends datagrams now and then, too.
    let sent = sent() - before;
    assert!(sent <= 250, "{sent}");
}

pub fn a_flow_controller_that_does_not_exist_is_named(harness: &Harness) {
    let options = PublisherOptions::new("topic".keep_last(10)).asynchronous("fast");
    let refused = harness.publishing.create_publisher::<Text>(options);
    let error = refused.expect_err("refused");
    assert!(matches!(error, CreateError::Endpoint { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("\"fast\"") && text.contains(SLOW_CONTROLLER),
        "{text}"
    );
}
